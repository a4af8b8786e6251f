//! Switched and switchless storage area networks with NVMe-oF-aware traffic control (NSDI'26).
//!
//! | program | where | made of |
//! | --- | --- | --- |
//! | [`hop`] | adapter, switch | [`route`] chooses the port, [`reserve`] books bandwidth for answers, [`egress`] queues |
//! | [`host`] | initiator | [`session`], [`retry`], rate control by credits |
//! | [`target`] | storage node | one [`gimbal`] per drive |
//!
//! A [`Packet`] carries the [`Trail`] that hops write and read. [`oracle`] and [`cost`] evaluate
//! whole networks.

pub mod connection;
pub mod cost;
pub mod deadlock;
pub mod egress;
pub mod gimbal;
pub mod hop;
pub mod host;
mod id;
pub mod oracle;
mod packet;
pub mod reserve;
pub mod retry;
pub mod route;
pub mod session;
mod stream;
pub mod target;
#[cfg(test)]
mod testing;
mod trail;
pub mod wire;

pub use hop::{DropReason, HopIn, HopOut};
pub use id::{DriveId, Port, SessionId, Tag};
pub use packet::{Outcome, Packet, PacketKind};
pub use trail::{HOPS_MAX, PORTS_MAX, Trail, TrailHop};
