//! Parts that several rivals are made of. Those of one pair keep no memory while nothing is open;
//! the others allocate nothing once they have grown to their working size.

mod class_switch;
mod inbox;
mod peers;
mod queue;
mod ranges;
mod ready;
mod timers;

pub use class_switch::ClassSwitch;
pub use inbox::{Arrived, Inbox};
pub use peers::Sparse;
pub use queue::{ByteQueue, PortQueues};
pub use ranges::Ranges;
pub use ready::{Ready, ReadyRing};
pub use timers::Timers;
