//! The switch: every packet of the rack passes [`blox::Switch`], which reads it, may turn it to
//! another replica, and answers requests for collection. Where the rack's file asks for it, the
//! kernel forwards most packets as the program would (`kernel`).

mod kernel;

use crate::configs;
use crate::journal::State;
use crate::role::{self, Carrier, Role, Running, Setup, Start};
use crate::wire;
use base::{NodeId, Program, Span, Time};
use blox::{Body, Packet, Switch, SwitchIn, SwitchOut, VssdId};
use bytes::Bytes;
use kernel::{Kernel, Told};
use plan::rack::Rack;
use runtime::error::{RunError, StartError};
use runtime::metrics::{Number, counter};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Interval between the switch's signs of life for the control plane.
const HELLO: Span = Span::ms(100);

pub(crate) struct SwitchRole {
    program: Switch,
    kernel: Option<Kernel>,
    /// Nodes of the rack; the control plane is the last.
    nodes: u32,
    control: NodeId,
    /// This start, in the upper half, and the signs of life since.
    hello: u64,
    hello_at: Time,
    out: Vec<SwitchOut>,
    /// Packets for nodes that the rack does not have, and pages that had lost their packet.
    misled: u64,
}

/// Starts the switch of a rack.
///
/// # Errors
/// When an address is wrong or taken, the rack impossible, or the kernel does not take its part.
pub fn start(rack: &Rack, start: Start) -> Result<Running, StartError> {
    let hello = started() << 32;
    let mut role = SwitchRole::new(rack, hello)?;
    role.kernel = kernel_of(rack)?;
    let (node, state) = (configs::switch_node(rack), State::Switch { hello });
    role::start(Setup { name: "switch", rack, node, metrics: rack.switch.metrics, start, state, rows: None }, |_| role)
}

/// The data path in the kernel, if the rack's file asks for one.
fn kernel_of(rack: &Rack) -> Result<Option<Kernel>, StartError> {
    let (Some(xdp), SocketAddr::V4(address)) = (&rack.switch.xdp, rack.switch.listen) else { return Ok(None) };
    let nodes = configs::switch_node(rack).0;
    let blox::SwitchConfig { nodes: inside, table_entries: vssds, .. } = configs::switch(rack);
    Kernel::start(xdp, &Told { tag: wire::tag_of(rack), address, inside, nodes, vssds }).map(Some)
}

/// Tells starts of one process name apart: tenths of a second since 1970, which wrap after 13
/// years.
fn started() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() / 100) as u64 & u64::from(u32::MAX)
}

impl SwitchRole {
    /// The switch of a rack, whose first sign of life has the number `hello`.
    pub fn new(rack: &Rack, hello: u64) -> Result<SwitchRole, StartError> {
        Ok(SwitchRole {
            program: Switch::new(configs::switch(rack)).map_err(StartError::plan)?,
            kernel: None,
            nodes: configs::switch_node(rack).0,
            control: configs::control_node(rack),
            hello,
            hello_at: Time::ZERO,
            out: Vec::new(),
            misled: 0,
        })
    }

    /// Sends what left the pipeline. A port takes the next packet at once: the system's queue is
    /// the link.
    fn transmit(&mut self, now: Time, wire: &mut dyn Carrier, page: Option<(&Packet, &Bytes)>) {
        while !self.out.is_empty() {
            for action in std::mem::take(&mut self.out) {
                let SwitchOut::Transmit { port, packet } = action else { continue };
                let data = packet
                    .body
                    .value()
                    .map(|value| page.filter(|(came, _)| came.body.value() == Some(value)).map(|(_, data)| data));
                let is_here = packet.target.0 < self.nodes;
                match data {
                    None if is_here => wire.send(packet.target, &packet, None),
                    Some(Some(data)) if is_here => wire.send(packet.target, &packet, Some(data)),
                    _ => self.misled += 1,
                }
                self.program.on(now, SwitchIn::PortIdle(port), &mut self.out);
            }
        }
    }
}

impl Role for SwitchRole {
    fn on_packet(&mut self, now: Time, packet: Packet, data: &Bytes, wire: &mut dyn Carrier) {
        self.program.on(now, SwitchIn::Packet(packet), &mut self.out);
        if let Some(kernel) = &mut self.kernel {
            kernel.follow(&mut self.program, &packet);
        }
        self.transmit(now, wire, Some((&packet, data)));
    }

    fn next_wakeup(&self) -> Option<Time> {
        let own = self.program.next_wakeup();
        Some(own.map_or(self.hello_at, |own| own.min(self.hello_at)))
    }

    fn on_wakeup(&mut self, now: Time, wire: &mut dyn Carrier) {
        self.program.on_wakeup(now, &mut self.out);
        self.transmit(now, wire, None);
        if self.hello_at <= now {
            self.hello_at = now + HELLO;
            let (source, target) = (self.control, self.control);
            let body = Body::Heartbeat { beat: self.hello };
            self.hello += 1;
            let packet = Packet { vssd: VssdId::default(), latency_ns: 0, source, target, body };
            wire.send(self.control, &packet, None);
            self.kernel.iter_mut().for_each(|kernel| kernel.look(wire));
        }
    }

    fn fault(&mut self) -> Option<RunError> {
        self.kernel.as_mut()?.fault()
    }

    fn numbers(&self) -> Vec<Number> {
        let counts = self.program.counters();
        let mut numbers = vec![
            counter("transmitted", "Packets sent.", counts.transmitted),
            counter("redirected", "Reads sent to another replica, since theirs collected.", counts.redirected),
            counter("rescued", "Reads sent to another replica, since their server was gone.", counts.rescued),
            counter("soft_accepted", "Soft requests for collection that were granted.", counts.soft_accepted),
            counter("soft_delayed", "Soft requests for collection that were delayed.", counts.soft_delayed),
            counter("regular", "Regular requests for collection.", counts.regular),
            counter("background", "Collections in idle time.", counts.background),
            counter("finished", "Collections that ended.", counts.finished),
            counter("lost", "Packets lost to full queues.", counts.lost),
            counter("refused", "Packets that no switch takes.", counts.malformed + counts.ignored),
            counter("misled", "Packets for nodes that the rack does not have.", self.misled),
        ];
        numbers.extend(self.kernel.iter().flat_map(Kernel::numbers));
        numbers
    }
}

#[cfg(test)]
mod tests;
