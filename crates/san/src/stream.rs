//! Programs that exchange packets through connections: input arrives in order, output is subject to
//! congestion control. Hosts and targets share this code.

use crate::connection::{Connections, Flow};
use crate::id::Port;
use crate::packet::{Packet, PacketKind};
use base::Time;
use transport::Allowance;

/// The connections of a program with actions `O`.
#[derive(Clone, Debug)]
pub(crate) struct Streams<O> {
    /// `None`: packets are sent at once.
    connections: Option<Connections>,
    /// A reused buffer for the output of connections.
    flows: Vec<Flow>,
    said: Vec<O>,
}

impl<O> Streams<O> {
    pub(crate) fn new(connections: Option<Connections>) -> Streams<O> {
        Streams { connections, flows: Vec::new(), said: Vec::new() }
    }

    /// Returns what congestion control lets all connections send.
    pub(crate) fn allowance(&self) -> Allowance {
        self.connections.as_ref().map_or(Allowance::None, Connections::allowance)
    }

    /// Returns when [`repair`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.connections.as_ref().and_then(Connections::next_wakeup)
    }
}

/// A program that may use connections.
pub(crate) trait Streamed: Sized {
    /// Its actions.
    type Out;

    fn streams(&mut self) -> &mut Streams<Self::Out>;
    /// Returns the index of a packet's connection, or `None` for an unknown session or lane.
    fn place_of(&mut self, packet: &Packet) -> Option<usize>;
    /// Handles a packet that is next in order.
    fn take_in(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<Self::Out>);
    /// Creates the action that sends a packet.
    fn send(port: Port, packet: Packet) -> Self::Out;
    /// Returns the port and packet of a sending action, else `None`.
    fn sent(action: &Self::Out) -> Option<(Port, &Packet)>;
}

/// Handles a packet received on `port`.
pub(crate) fn receive<P: Streamed>(program: &mut P, now: Time, port: Port, packet: &Packet, out: &mut Vec<P::Out>) {
    if program.streams().connections.is_none() {
        return program.take_in(now, port, packet, out);
    }
    if let PacketKind::Pause { stop } = packet.kind {
        return pause(program, now, port, stop, out);
    }
    let Some(place) = program.place_of(packet).filter(|_| Connections::carries(packet)) else {
        return by_windows(program, out, now, |program, out| program.take_in(now, port, packet, out));
    };
    let streams = program.streams();
    let mut flows = std::mem::take(&mut streams.flows);
    if let Some(connections) = &mut streams.connections {
        connections.arrive(now, place, port, packet, &mut flows);
    }
    for flow in flows.drain(..) {
        match flow {
            Flow::Send(port, packet) => out.push(P::send(port, packet)),
            Flow::Deliver(port, packet) => {
                by_windows(program, out, now, |program, out| program.take_in(now, port, &packet, out));
            }
        }
    }
    program.streams().flows = flows;
}

/// Runs `work`, and passes the packets that it sends through their connections, if there are any.
pub(crate) fn by_windows<P: Streamed>(
    program: &mut P,
    out: &mut Vec<P::Out>,
    now: Time,
    work: impl FnOnce(&mut P, &mut Vec<P::Out>),
) {
    let streams = program.streams();
    if streams.connections.is_none() {
        return work(program, out);
    }
    let mut said = std::mem::take(&mut streams.said);
    work(program, &mut said);
    let mut flows = std::mem::take(&mut program.streams().flows);
    for action in said.drain(..) {
        let Some((port, packet)) = P::sent(&action).filter(|(_, packet)| Connections::carries(packet)) else {
            out.push(action);
            continue;
        };
        let place = program.place_of(packet);
        if let (Some(place), Some(connections)) = (place, &mut program.streams().connections) {
            connections.depart(now, place, port, packet, &mut flows);
        }
        out.extend(flows.drain(..).filter_map(sending::<P>));
    }
    let streams = program.streams();
    (streams.flows, streams.said) = (flows, said);
}

/// Retransmits what was not acknowledged in time, and sends what paced connections may send now.
pub(crate) fn repair<P: Streamed>(program: &mut P, now: Time, out: &mut Vec<P::Out>) {
    let Streams { connections: Some(connections), flows, .. } = program.streams() else { return };
    connections.on_wakeup(now, flows);
    out.extend(flows.drain(..).filter_map(sending::<P>));
}

/// Pauses or resumes a port at the request of the hop at the other end of its link. A link that
/// comes up is not paused.
pub(crate) fn pause<P: Streamed>(program: &mut P, now: Time, port: Port, stop: bool, out: &mut Vec<P::Out>) {
    let Streams { connections: Some(connections), flows, .. } = program.streams() else { return };
    connections.pause(now, port, stop, flows);
    out.extend(flows.drain(..).filter_map(sending::<P>));
}

fn sending<P: Streamed>(flow: Flow) -> Option<P::Out> {
    match flow {
        Flow::Send(port, packet) => Some(P::send(port, packet)),
        Flow::Deliver(..) => None,
    }
}
