//! Network control shared by the designs and their rivals.

mod packet;

pub use packet::{Host, HostIn, HostOut, Message, Packet, PacketKind, Switch, SwitchIn, SwitchOut};
