//! The rivals that RackBlox is compared with (4.1): virtual datacenters, and RackBlox done in
//! software on top of them. Both are a logically central controller on a server of its own; clients
//! enforce its rates, storage servers its answers.

mod fair;
pub mod software;
pub mod vdc;

use crate::packet::Packet;
use base::{Program, Time};

/// What a controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerOut {
    /// Sends a packet into the network.
    Send(Packet),
}

/// The controller of either rival.
#[derive(Clone, Debug)]
pub enum Controller {
    /// Of virtual datacenters.
    Vdc(vdc::Controller),
    /// Of RackBlox in software.
    Software(software::Controller),
}

impl Program for Controller {
    type In = Packet;
    type Out = ControllerOut;

    fn on(&mut self, now: Time, packet: Packet, out: &mut Vec<ControllerOut>) {
        match self {
            Controller::Vdc(controller) => controller.on(now, packet, out),
            Controller::Software(controller) => controller.on(now, packet, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        match self {
            Controller::Vdc(controller) => controller.next_wakeup(),
            Controller::Software(controller) => controller.next_wakeup(),
        }
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ControllerOut>) {
        match self {
            Controller::Vdc(controller) => controller.on_wakeup(now, out),
            Controller::Software(controller) => controller.on_wakeup(now, out),
        }
    }
}
