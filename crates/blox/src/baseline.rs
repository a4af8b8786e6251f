//! The rivals that RackBlox is compared with (4.1): virtual datacenters, and RackBlox done in
//! software on top of them. Both are a logically central controller on a server of its own; clients
//! enforce its rates, storage servers its answers.

mod fair;
pub mod software;
pub mod vdc;

use crate::packet::Packet;

/// What a controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerOut {
    /// Sends a packet into the network.
    Send(Packet),
}
