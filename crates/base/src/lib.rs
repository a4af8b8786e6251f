//! The ground floor: what every other crate of Rackweave measures and names things with.
//!
//! * [`Time`] and [`Span`]: virtual time in integer picoseconds.
//! * [`Bytes`], [`Length`], [`Rate`] and [`Clock`]: sizes, cables, link rates and hardware clocks,
//!   with exact integer conversions to [`Span`].
//! * [`mod@unit`]: quantities written with their unit (`"10ns"`, `"4KiB"`, `"100Gbps"`); a bare
//!   number is an error.
//! * [`Seed`] and [`Stream`]: one random stream a component, named by a path.
//! * [`BoundedQueue`]: a queue that says no.
//! * [`Program`]: the pure state machine that both hosts drive.
//! * [`Decision`] and [`Decide`]: what a policy of a user's own decides in place of a design.

mod decision;
mod id;
mod program;
mod queue;
mod random;
mod serialization;
mod size;
mod time;
pub mod unit;

pub use decision::{Decide, Decision};
pub use id::{NodeId, Operation, Request, RequestId};
pub use program::Program;
pub use queue::{BoundedQueue, Full};
pub use random::{Seed, Stream, mix};
pub use serialization::Serialization;
pub use size::{Bytes, Clock, Length, Rate};
pub use time::{Span, Time};
pub use unit::UnitError;
