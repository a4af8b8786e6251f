//! EDM: memory messages in the Ethernet PHY, an in-switch priority matching scheduler, intra-frame preemption.

mod message;

pub use message::{Body, Grant, Message, MessageId, Modify, Notification};
