//! EDM: memory messages in the Ethernet PHY, an in-switch priority matching scheduler, intra-frame
//! preemption.
//!
//! Source: Su and Shrivastav, "EDM: An Ultra-Low Latency Ethernet Fabric for Memory
//! Disaggregation", ASPLOS 2025.
//!
//! * [`pcs`]: 66-bit blocks, the codec of messages and frames, and their interleaving.
//! * [`Host`] and [`Switch`]: the programs; [`scheduler`] is the matching, [`memory`] the atomic
//!   operations, [`mirror`] the filter for two networks in step.
//! * [`budget`], [`cost`] and [`analysis`]: the cycle budget, closed forms for time and bytes, the
//!   time to a maximal matching.
//! * [`shim`]: loads and stores over local and remote pages.

pub mod analysis;
pub mod budget;
mod circuits;
mod config;
pub mod cost;
mod fifo;
mod host;
pub mod memory;
mod message;
pub mod mirror;
pub mod pcs;
mod priority;
pub mod scheduler;
pub mod shim;
mod sparse;
mod switch;

pub use circuits::{Circuits, Passage};
pub use config::{Config, Matching, Ordering, Place, Policy};
pub use host::{Access, Host, HostIn, HostOut, Transmission, Wire};
pub use message::{Body, Grant, Message, MessageId, Modify, Notification};
pub use priority::Competitor;
pub use switch::{Switch, SwitchIn, SwitchOut, Withdrawals};

/// The caller's name for a request, carried through the programs for its answer and for traces;
/// never on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// The tag of a withdrawal, which belongs to no request.
    pub const NONE: Tag = Tag(u32::MAX);
}
