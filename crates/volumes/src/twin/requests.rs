//! The requests of a rack, live or simulated, and where their time went.

use crate::journal::{End, Entry, State};
use base::{NodeId, Span, Time};
use blox::{Body, Page, Tag};
use std::collections::BTreeMap;

/// The server that answered a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its node.
    pub server: NodeId,
    /// When the request came there.
    pub came: Time,
    /// When the answer left.
    pub answered: Time,
}

/// A request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its door.
    pub door: NodeId,
    /// When the door began with it.
    pub asked: Time,
    /// The volume's place in the rack's file.
    pub volume: u32,
    /// The page.
    pub page: Page,
    /// Whether it is a write.
    pub is_write: bool,
    /// When and how it ended.
    pub ended: Option<(Time, End)>,
    /// Who answered first.
    pub served: Option<Served>,
    /// Copies that its door sent.
    pub attempts: u32,
    /// The server that its door first sent it to.
    pub first: Option<NodeId>,
}

/// The spans of a request; they add up to its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// From the door, through the switch, to the server that answered.
    pub out: Span,
    /// In that server, and for a write in its replicas.
    pub server: Span,
    /// From there back to the door.
    pub back: Span,
}

impl Request {
    /// Time until a good end.
    pub fn total(&self) -> Option<Span> {
        let (at, end) = self.ended?;
        matches!(end, End::Read | End::Written).then(|| at.saturating_since(self.asked))
    }

    /// Where its time went; `None` without a good end, or where its server's journal is missing.
    pub fn spans(&self) -> Option<Parts> {
        self.total()?;
        let (ended, _) = self.ended?;
        let Served { came, answered, .. } = self.served?;
        Some(Parts {
            out: came.saturating_since(self.asked),
            server: answered.saturating_since(came),
            back: ended.saturating_since(answered),
        })
    }

    /// Whether another server answered than the door had sent it to at first.
    pub fn is_redirected(&self) -> bool {
        self.served.zip(self.first).is_some_and(|(served, first)| served.server != first)
    }
}

/// All requests of a rack.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    all: Vec<Request>,
    /// Places in `all`, by door and tag.
    places: BTreeMap<(NodeId, Tag), u32>,
    /// The next tag of each door.
    next: BTreeMap<NodeId, u64>,
    /// When the first copy of a request came to a server that has not answered since.
    came: BTreeMap<(NodeId, Tag, NodeId), Time>,
    /// Answers of servers whose door was not seen yet.
    early: Vec<(NodeId, Tag, Served)>,
}

impl Requests {
    /// All of them: those of a door in the order in which it began with them.
    pub fn all(&self) -> &[Request] {
        &self.all
    }

    /// A role begins. Of what had come before it knows nothing.
    pub(crate) fn begin(&mut self, node: NodeId, state: &State) {
        self.came.retain(|(_, _, server), _| *server != node);
        if let State::Door { start, .. } = state {
            self.next.insert(node, *start);
        }
    }

    /// Something happens at a node, at a time of the whole rack.
    pub(crate) fn see(&mut self, at: Time, node: NodeId, entry: &Entry) {
        match entry {
            Entry::Asked { volume, page, is_write, .. } => self.asked(at, node, *volume, *page, *is_write),
            Entry::Ended { tag, end } => {
                if let Some(request) = self.request(node, *tag) {
                    request.ended.get_or_insert((at, *end));
                }
            }
            Entry::Sent { packet, .. } => match packet.body {
                Body::Read { tag, .. } | Body::Write { tag, .. } if packet.source == node => {
                    if let Some(request) = self.request(node, tag) {
                        request.attempts += 1;
                        request.first.get_or_insert(packet.target);
                    }
                }
                Body::ReadReply { tag, .. } | Body::WriteReply { tag, .. } if packet.source == node => {
                    self.answered(at, node, packet.target, tag);
                }
                _ => {}
            },
            Entry::Packet { packet, .. } => {
                if let Body::Read { tag, .. } | Body::Write { tag, .. } = packet.body
                    && packet.target == node
                {
                    self.came.entry((packet.source, tag, node)).or_insert(at);
                }
            }
            Entry::Wakeup { .. }
            | Entry::Rested { .. }
            | Entry::Processor { .. }
            | Entry::Machine { .. }
            | Entry::Left { .. }
            | Entry::HostLeft { .. }
            | Entry::Rotted { .. }
            | Entry::Finished { .. } => {}
        }
    }

    fn asked(&mut self, at: Time, door: NodeId, volume: u32, page: Page, is_write: bool) {
        let next = self.next.entry(door).or_default();
        let tag = Tag(*next);
        *next += 1;
        self.places.insert((door, tag), self.all.len() as u32);
        let (ended, served, attempts, first) = (None, None, 0, None);
        self.all.push(Request { door, asked: at, volume, page, is_write, ended, served, attempts, first });
    }

    fn request(&mut self, door: NodeId, tag: Tag) -> Option<&mut Request> {
        let place = *self.places.get(&(door, tag))?;
        self.all.get_mut(place as usize)
    }

    fn answered(&mut self, at: Time, server: NodeId, door: NodeId, tag: Tag) {
        let Some(came) = self.came.remove(&(door, tag, server)) else { return };
        let served = Served { server, came, answered: at };
        match self.request(door, tag) {
            Some(request) => request.serve(served),
            None => self.early.push((door, tag, served)),
        }
    }

    /// Everything has been seen.
    pub(crate) fn finish(&mut self) {
        for (door, tag, served) in std::mem::take(&mut self.early) {
            if let Some(request) = self.request(door, tag) {
                request.serve(served);
            }
        }
        self.came.clear();
    }
}

impl Request {
    fn serve(&mut self, served: Served) {
        if self.served.is_none_or(|other| served.answered < other.answered) {
            self.served = Some(served);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;
    use blox::{Packet, VssdId};

    const SERVER: NodeId = NodeId(0);
    const DOOR: NodeId = NodeId(1);

    fn us(time: u64) -> Time {
        Time::ZERO + Span::us(time)
    }

    fn packet(source: NodeId, target: NodeId, body: Body) -> Packet {
        Packet { vssd: VssdId(0), latency_ns: 0, source, target, body }
    }

    /// A read whose copies come at these times and are answered at those, and that ends with the
    /// first answer. The server starts again at `start`.
    fn spans(come: &[u64], start: Option<u64>, answers: &[u64]) -> Option<Parts> {
        let mut requests = Requests::default();
        requests.begin(DOOR, &State::Door { door: 0, start: 7 });
        requests.see(us(0), DOOR, &Entry::Asked { at: us(0), volume: 0, page: Page(2), is_write: false });
        let mut came = come.iter().map(|at| us(*at)).peekable();
        let take = |requests: &mut Requests, at| {
            let packet = packet(DOOR, SERVER, Body::Read { tag: Tag(7), page: Page(2) });
            requests.see(at, SERVER, &Entry::Packet { at, packet });
        };
        if let Some(start) = start.map(us) {
            std::iter::from_fn(|| came.next_if(|at| *at < start)).for_each(|at| take(&mut requests, at));
            let (server, starts, adopted, values) = (0, 1, Vec::new(), Vec::new());
            requests.begin(SERVER, &State::Storage { server, starts, adopted, values });
        }
        came.for_each(|at| take(&mut requests, at));
        for at in answers {
            let body = Body::ReadReply { tag: Tag(7), value: Ok(blox::Value(1)) };
            requests.see(us(*at), SERVER, &Entry::Sent { to: DOOR, packet: packet(SERVER, DOOR, body) });
        }
        requests.see(us(answers[0] + 5), DOOR, &Entry::Ended { tag: Tag(7), end: End::Read });
        requests.finish();
        requests.all()[0].spans()
    }

    #[test]
    fn a_request_is_in_a_server_from_its_first_copy_to_its_first_answer() {
        let parts = |out, server| Some(Parts { out: Span::us(out), server: Span::us(server), back: Span::us(5) });
        assert_eq!(spans(&[10], None, &[100]), parts(10, 90));
        assert_eq!(spans(&[10, 99], None, &[100, 110]), parts(10, 90), "sent again");
        assert_eq!(spans(&[10, 50], Some(30), &[100]), parts(50, 50), "the first copy died with the server");
    }
}
