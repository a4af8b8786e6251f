//! What goes out on a port of the switch, block by block: the harness's reference for `edm_egress`,
//! after paper 3.2.2 and the contract of the module.

use crate::ingress::{Asked, Word};
use edm::MessageId;
use edm::pcs::block::Block;
use edm::pcs::memory::encode_grant;
use edm::scheduler::{DemandKind, Match};
use std::collections::VecDeque;

/// What one cycle brings.
pub struct Cycle<'a> {
    /// A grant for this port as a source.
    pub grant: Option<&'a Match>,
    /// The next word of each port, whoever it is for.
    pub fronts: &'a [Option<Word>],
    /// Of each port, messages for this one that have come in before this cycle.
    pub entered: &'a [u64],
    /// Requests for this port as a memory node, by requester.
    pub requests: Vec<(u32, Asked)>,
    /// Whether the port takes a /G/, and a block of a message.
    pub is_ready: [bool; 2],
}

/// What it offers to the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// A /G/. Only if it is taken.
    pub control: Option<Block>,
    /// A block of a message, and whether it ends one that has broken off. Only if it is taken.
    pub message: Option<(Block, bool)>,
    /// The port whose front that is.
    pub taken: Option<u32>,
}

/// The message that goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Free,
    Forward,
    /// With so many of its blocks gone.
    Request(usize),
}

/// What waits for one requester.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Requests that wait for their grant, or for their turn.
    requests: VecDeque<Asked>,
    /// Those that are granted, and how many messages of the requester go before.
    granted: VecDeque<(MessageId, u64)>,
    /// Messages of the requester that have left.
    left: u64,
}

impl Waits {
    /// A request that found no room never comes.
    fn is_missing(&self) -> bool {
        let granted = self.granted.front();
        granted.is_some_and(|(id, _)| self.requests.front().is_none_or(|request| request.id != *id))
    }

    fn is_due(&self) -> bool {
        self.granted.front().is_some_and(|(_, ahead)| *ahead == self.left) && !self.is_missing()
    }
}

/// The egress of a port.
pub struct Egress {
    own: u32,
    /// Places in each queue for a requester.
    places: usize,
    control: Option<Block>,
    waits: Vec<Waits>,
    lane: Lane,
    /// The last source, and the last requester.
    last: [u32; 2],
    lost: u64,
    /// Requests that found no room one cycle ago.
    dropped: u64,
}

impl Egress {
    /// An idle port of a switch with so many, and this X.
    pub fn new(own: u32, ports: u32, active: u32) -> Egress {
        Egress {
            own,
            places: 2 * active as usize,
            control: None,
            waits: vec![Waits::default(); ports as usize],
            lane: Lane::Free,
            last: [0; 2],
            lost: 0,
            dropped: 0,
        }
    }

    /// Grants and requests that found no room, as the gates have counted them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The number of the lane's state in the gates.
    pub fn state(&self) -> u64 {
        match self.lane {
            Lane::Free => 0,
            Lane::Forward => 1,
            Lane::Request(_) => 2,
        }
    }

    /// A cycle.
    pub fn cycle(&mut self, cycle: Cycle) -> Offers {
        let missing: Vec<bool> = self.waits.iter().map(Waits::is_missing).collect();
        let control = self.control.take();
        let has_no_room = control.is_some() && !cycle.is_ready[0];
        let mut offers = Offers { control: control.filter(|_| cycle.is_ready[0]), ..Offers::default() };
        let room = self.waits.iter().map(|waits| (waits.requests.len(), waits.granted.len()));
        let room: Vec<(usize, usize)> = room.collect();
        self.message(&cycle, &mut offers);
        for (waits, missing) in self.waits.iter_mut().zip(&missing) {
            if *missing {
                waits.granted.pop_front();
            }
        }
        let is_full = cycle.grant.is_some_and(|made| !self.grant(made, &cycle, &room));
        self.lost += u64::from(has_no_room) + u64::from(is_full) + u64::from(missing.contains(&true));
        self.lost += std::mem::take(&mut self.dropped);
        for (requester, request) in cycle.requests {
            if room[requester as usize].0 < self.places {
                self.waits[requester as usize].requests.push_back(request);
            } else {
                self.dropped += 1;
            }
        }
        offers
    }

    /// A grant becomes a /G/, or lets a request go. Returns whether it found room.
    fn grant(&mut self, made: &Match, cycle: &Cycle, room: &[(usize, usize)]) -> bool {
        if made.first && matches!(made.demand.kind, DemandKind::Response { .. }) {
            let requester = made.demand.target.index();
            let has_room = room[requester].1 < self.places;
            if has_room {
                self.waits[requester].granted.push_back((made.demand.id, cycle.entered[requester]));
            }
            return has_room;
        }
        let bytes = u16::try_from(made.bytes).expect("a chunk has 16 bits");
        let said = edm::Grant { target: made.demand.target, id: made.demand.id, bytes };
        self.control = Some(encode_grant(&said).expect("its target is a port"));
        true
    }

    /// One message at a time, data first.
    fn message(&mut self, cycle: &Cycle, offers: &mut Offers) {
        let source = match self.lane {
            Lane::Free => self.next(0, |egress, port| egress.asks(cycle, port) && !egress.waits[port].is_due()),
            Lane::Forward => Some(self.last[0]).filter(|port| self.asks(cycle, *port as usize)),
            Lane::Request(_) => None,
        };
        let requester = match self.lane {
            Lane::Free => self.next(1, |egress, port| egress.waits[port].is_due()),
            Lane::Request(_) => Some(self.last[1]),
            Lane::Forward => None,
        };
        match (source, requester) {
            _ if !cycle.is_ready[1] => {}
            (Some(source), _) => self.forward(cycle, source, offers),
            (None, Some(requester)) => self.request(requester, offers),
            (None, None) => {}
        }
    }

    fn asks(&self, cycle: &Cycle, port: usize) -> bool {
        cycle.fronts[port].is_some_and(|word| word.target == self.own)
    }

    /// The first of those, after the last one.
    fn next(&self, kind: usize, wants: impl Fn(&Egress, usize) -> bool) -> Option<u32> {
        let ports = self.waits.len() as u32;
        (1..=ports).map(|step| (self.last[kind] + step) % ports).find(|port| wants(self, *port as usize))
    }

    fn forward(&mut self, cycle: &Cycle, source: u32, offers: &mut Offers) {
        let word = cycle.fronts[source as usize].expect("it asks");
        offers.message = Some((word.block, word.cut));
        offers.taken = Some(source);
        self.last[0] = source;
        self.lane = if word.last { Lane::Free } else { Lane::Forward };
        self.waits[source as usize].left += u64::from(word.last);
    }

    fn request(&mut self, requester: u32, offers: &mut Offers) {
        let gone = if let Lane::Request(gone) = self.lane { gone } else { 0 };
        let waits = &mut self.waits[requester as usize];
        let blocks = &waits.requests.front().expect("it is due").blocks;
        offers.message = Some((blocks[gone], false));
        self.last[1] = requester;
        self.lane = Lane::Request(gone + 1);
        if gone + 1 == blocks.len() {
            waits.requests.pop_front();
            waits.granted.pop_front();
            self.lane = Lane::Free;
        }
    }
}
