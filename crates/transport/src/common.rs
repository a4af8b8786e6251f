//! Components shared by several rivals. Those for one pair use no memory while idle; the others
//! allocate nothing after reaching their working size.

mod class_switch;
mod inbox;
mod peers;
mod queue;
mod ranges;
mod ready;
mod round_trip;
mod timers;

pub use class_switch::ClassSwitch;
pub use inbox::{Arrived, Inbox};
pub use peers::Sparse;
pub use queue::{ByteQueue, PortQueues};
pub use ranges::Ranges;
pub use ready::{Ready, ReadyRing};
pub use round_trip::SmoothedRoundTrip;
pub use timers::Timers;
