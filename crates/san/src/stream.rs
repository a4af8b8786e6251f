//! Programs whose packets pass connections: what comes is in order, what goes waits its turn. Hosts
//! and targets do that alike.

use crate::connection::{Connections, Flow};
use crate::id::Port;
use crate::packet::{Packet, PacketKind};
use base::Time;

/// The windows of a program that has actions `O`.
#[derive(Clone, Debug)]
pub(crate) struct Streams<O> {
    /// `None`: packets leave as they come.
    connections: Option<Connections>,
    /// Memory for what goes through connections.
    flows: Vec<Flow>,
    said: Vec<O>,
}

impl<O> Streams<O> {
    pub(crate) fn new(connections: Option<Connections>) -> Streams<O> {
        Streams { connections, flows: Vec::new(), said: Vec::new() }
    }

    /// When [`repair`] is next to be called.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.connections.as_ref().and_then(Connections::next_wakeup)
    }
}

/// A program that may have windows.
pub(crate) trait Streamed: Sized {
    /// Its actions.
    type Out;

    fn streams(&mut self) -> &mut Streams<Self::Out>;
    /// The connection of a packet; `None` where nobody knows its session or lane.
    fn place_of(&mut self, packet: &Packet) -> Option<usize>;
    /// Takes a packet in, which is the next in order.
    fn take_in(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<Self::Out>);
    /// The action that sends a packet.
    fn send(port: Port, packet: Packet) -> Self::Out;
    /// What an action sends, if it does.
    fn sent(action: &Self::Out) -> Option<(Port, &Packet)>;
}

/// A packet has come by `port`.
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

/// Lets what the program does in `work` pass the windows, if there are any.
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

/// Sends again what was not acknowledged in time.
pub(crate) fn repair<P: Streamed>(program: &mut P, now: Time, out: &mut Vec<P::Out>) {
    let Streams { connections: Some(connections), flows, .. } = program.streams() else { return };
    connections.on_wakeup(now, flows);
    out.extend(flows.drain(..).filter_map(sending::<P>));
}

/// The hop at the other end of a link wants no more, or wants it again; a link that comes up is not
/// paused.
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
