//! What goes out on a port of the switch, block by block: the harness's reference for `edm_egress`,
//! after paper 3.2.2 and the contract of the module.

use crate::ingress::{Asked, Word};
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
    /// The requester whose request leaves with it.
    pub left: Option<u32>,
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
    /// Of those that are granted, how many messages of the requester go before.
    granted: VecDeque<u64>,
    /// Messages of the requester that have left.
    left: u64,
}

impl Waits {
    fn is_due(&self) -> bool {
        self.granted.front().is_some_and(|ahead| *ahead == self.left)
    }
}

/// The egress of a port.
pub struct Egress {
    own: u32,
    control: Option<Block>,
    waits: Vec<Waits>,
    lane: Lane,
    /// The last source, and the last requester.
    last: [u32; 2],
    lost: u64,
}

impl Egress {
    /// An idle port of a switch with so many.
    pub fn new(own: u32, ports: u32) -> Egress {
        Egress {
            own,
            control: None,
            waits: vec![Waits::default(); ports as usize],
            lane: Lane::Free,
            last: [0; 2],
            lost: 0,
        }
    }

    /// Grants that found no room.
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
        let control = self.control.take();
        self.lost += u64::from(control.is_some() && !cycle.is_ready[0]);
        let mut offers = Offers { control: control.filter(|_| cycle.is_ready[0]), ..Offers::default() };
        self.message(&cycle, &mut offers);
        if let Some(made) = cycle.grant {
            self.grant(made, &cycle);
        }
        for (requester, request) in cycle.requests {
            self.waits[requester as usize].requests.push_back(request);
        }
        offers
    }

    /// A grant becomes a /G/, or lets a request go.
    fn grant(&mut self, made: &Match, cycle: &Cycle) {
        if made.first && matches!(made.demand.kind, DemandKind::Response { .. }) {
            let requester = made.demand.target.index();
            return self.waits[requester].granted.push_back(cycle.entered[requester]);
        }
        let bytes = u16::try_from(made.bytes).expect("a chunk has 16 bits");
        let said = edm::Grant { target: made.demand.target, id: made.demand.id, bytes };
        self.control = Some(encode_grant(&said).expect("its target is a port"));
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
            offers.left = Some(requester);
            self.lane = Lane::Free;
        }
    }
}
