//! Network control shared by the designs and their rivals.

pub mod config;
mod packet;

pub use packet::{Host, HostIn, HostOut, Message, Packet, PacketKind, Switch, SwitchIn, SwitchOut};
