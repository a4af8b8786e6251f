//! Packets of a host whose sessions have windows: what comes is in order, what goes waits its turn.

use super::{Attempt, Connections, Flow, Host, HostOut, Packet};
use crate::id::Port;
use base::Time;

impl Host {
    /// As [`HostIn::Packet`](super::HostIn::Packet), without moving the packet.
    pub fn receive(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HostOut>) {
        let Some(connections) = &mut self.connections else { return self.take(now, port, packet, out) };
        let session = self.by_drive.get(packet.drive.index()).copied();
        let lane = Attempt::of_bits(packet.tag.attempt).lane;
        let place = session.and_then(|session| self.lanes.place(session, usize::from(lane)));
        let Some(place) = place.filter(|_| Connections::carries(packet)) else {
            return self.by_windows(now, out, |host, out| host.take(now, port, packet, out));
        };
        let mut flows = std::mem::take(&mut self.flows);
        connections.arrive(now, place, port, packet, &mut flows);
        for flow in flows.drain(..) {
            match flow {
                Flow::Send(port, packet) => out.push(HostOut::Send { port, packet }),
                Flow::Deliver(port, packet) => {
                    self.by_windows(now, out, |host, out| host.take(now, port, &packet, out));
                }
            }
        }
        self.flows = flows;
    }

    /// Lets what the program sends pass the windows, if there are any.
    pub(super) fn by_windows(
        &mut self,
        now: Time,
        out: &mut Vec<HostOut>,
        program: impl FnOnce(&mut Host, &mut Vec<HostOut>),
    ) {
        if self.connections.is_none() {
            return program(self, out);
        }
        let mut said = std::mem::take(&mut self.said);
        program(self, &mut said);
        let mut flows = Vec::new();
        for action in said.drain(..) {
            match action {
                HostOut::Send { port, packet } if Connections::carries(&packet) => {
                    self.depart(now, port, &packet, &mut flows);
                    out.extend(flows.drain(..).filter_map(sent));
                }
                other => out.push(other),
            }
        }
        self.said = said;
    }

    fn depart(&mut self, now: Time, port: Port, packet: &Packet, flows: &mut Vec<Flow>) {
        let session = self.by_drive[packet.drive.index()];
        let lane = Attempt::of_bits(packet.tag.attempt).lane;
        let place = self.lanes.place(session, usize::from(lane));
        if let (Some(place), Some(connections)) = (place, &mut self.connections) {
            connections.depart(now, place, port, packet, flows);
        }
    }

    /// Sends again what was not acknowledged in time.
    pub(super) fn repair(&mut self, now: Time, out: &mut Vec<HostOut>) {
        let Some(connections) = &mut self.connections else { return };
        let mut flows = std::mem::take(&mut self.flows);
        connections.on_wakeup(now, &mut flows);
        out.extend(flows.drain(..).filter_map(sent));
        self.flows = flows;
    }
}

fn sent(flow: Flow) -> Option<HostOut> {
    match flow {
        Flow::Send(port, packet) => Some(HostOut::Send { port, packet }),
        Flow::Deliver(..) => None,
    }
}
