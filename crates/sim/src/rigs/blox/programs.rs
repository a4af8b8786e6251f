//! The programs of a rack in their seats.

use super::Who;
use crate::rigs::seat::Seat;
use base::Time;
use blox::baseline::Controller;
use blox::{Client, Control, NodeIn, StorageNode, Switch};
use std::collections::VecDeque;

/// All programs.
pub struct Programs {
    /// Clients, by node.
    pub clients: Vec<Seat<Client>>,
    /// The switch.
    pub switch: Seat<Switch>,
    /// The control plane.
    pub control: Seat<Control>,
    /// The rivals' controller.
    pub controller: Option<Seat<Controller>>,
    /// Storage servers, those of the other rack last.
    pub servers: Vec<Seat<StorageNode>>,
    /// Inputs of storage servers within this moment, by server.
    pub inputs: VecDeque<(usize, NodeIn)>,
}

impl Programs {
    /// Returns the time for which a wake-up event of a program has to be scheduled, if one has to.
    pub fn arm(&mut self, who: Who, now: Time) -> Option<Time> {
        match who {
            Who::Client(client) => self.clients[client as usize].arm(now),
            Who::Switch => self.switch.arm(now),
            Who::Control => self.control.arm(now),
            Who::Controller => self.controller.as_mut()?.arm(now),
            Who::Server(server) => self.servers[server as usize].arm(now),
        }
    }
}
