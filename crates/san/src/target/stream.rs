//! Packets of a target whose sessions have windows: as `host::stream`, on the other side.

use super::{Attempt, Connections, Flow, Packet, Target, TargetOut};
use crate::id::Port;
use base::Time;

impl Target {
    /// As [`TargetIn::Packet`](super::TargetIn::Packet), without moving the packet.
    pub fn receive(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        if self.connections.is_none() {
            return self.take(now, port, packet, out);
        }
        let Some(place) = self.stream_of(packet).filter(|_| Connections::carries(packet)) else {
            return self.by_windows(now, out, |target, out| target.take(now, port, packet, out));
        };
        let mut flows = std::mem::take(&mut self.flows);
        if let Some(connections) = &mut self.connections {
            connections.arrive(now, place, port, packet, &mut flows);
        }
        for flow in flows.drain(..) {
            match flow {
                Flow::Send(port, packet) => out.push(TargetOut::Send { port, packet }),
                Flow::Deliver(port, packet) => {
                    self.by_windows(now, out, |target, out| target.take(now, port, &packet, out));
                }
            }
        }
        self.flows = flows;
    }

    /// The connection of a packet; `None` where nobody knows its session or lane.
    fn stream_of(&self, packet: &Packet) -> Option<usize> {
        let lane = usize::from(Attempt::of_bits(packet.tag.attempt).lane);
        let session = self.session_place(packet.tag.session)?;
        (lane < self.lanes).then_some(session * self.lanes + lane)
    }

    /// Lets what the program sends pass the windows, if there are any.
    pub(super) fn by_windows(
        &mut self,
        now: Time,
        out: &mut Vec<TargetOut>,
        program: impl FnOnce(&mut Target, &mut Vec<TargetOut>),
    ) {
        if self.connections.is_none() {
            return program(self, out);
        }
        let mut said = std::mem::take(&mut self.said);
        program(self, &mut said);
        let mut flows = Vec::new();
        for action in said.drain(..) {
            match action {
                TargetOut::Send { port, packet } if Connections::carries(&packet) => {
                    let place = self.stream_of(&packet);
                    if let (Some(place), Some(connections)) = (place, &mut self.connections) {
                        connections.depart(now, place, port, &packet, &mut flows);
                    }
                    out.extend(flows.drain(..).filter_map(sent));
                }
                other => out.push(other),
            }
        }
        self.said = said;
    }

    /// Sends again what was not acknowledged in time.
    pub(super) fn repair(&mut self, now: Time, out: &mut Vec<TargetOut>) {
        let Some(connections) = &mut self.connections else { return };
        let mut flows = std::mem::take(&mut self.flows);
        connections.on_wakeup(now, &mut flows);
        out.extend(flows.drain(..).filter_map(sent));
        self.flows = flows;
    }
}

fn sent(flow: Flow) -> Option<TargetOut> {
    match flow {
        Flow::Send(port, packet) => Some(TargetOut::Send { port, packet }),
        Flow::Deliver(..) => None,
    }
}
