//! The filter for two networks in lock step with `edm::mirror`.
//!
//! The model says whether a message is a first copy, and is told of it when its last block leaves its
//! queue. The queues, who goes on when, and when an interface is given up are the harness's reference,
//! after the contract of `edm_mirror`.

use crate::gates::Gates;
use edm::mirror::{LinkLoss, Mirror, Networks};
use edm::pcs::block::{Block, Content};
use edm::pcs::memory::{MemoryError, encode_grant, encode_message};
use edm::{Body, Grant, Message};
use std::collections::VecDeque;

const VALID: usize = 2;
const BLOCK: usize = 3;
const FAULT: usize = 4;
const DOWN: usize = 5;
const LINK_LOST: usize = 6;
const SWITCH_LOST: usize = 7;
const VALID_OUT: usize = 8;
const BLOCK_OUT: usize = 9;
const USED: usize = 10;
const GIVEN_UP: usize = 11;
/// Copies, strangers, lost.
const COUNTS: [usize; 3] = [12, 13, 14];

/// Peers of the gates.
pub const NODES: u32 = 4;
/// Messages by which an interface may fall back.
pub const LAG_MAX: u64 = 31;
/// Blocks that may wait of an interface.
pub const DEPTH: usize = 16;
/// Cycles without a block in a message.
const STALL_MAX: u64 = 7;

/// What comes in on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// A /G/.
    Grant(Grant),
    /// A memory message. Its data are zeros.
    Message(Message),
}

impl Copy {
    /// Its blocks.
    ///
    /// # Errors
    /// If a number does not fit its field.
    pub fn blocks(&self) -> Result<Vec<Block>, MemoryError> {
        let mut blocks = Vec::new();
        match self {
            Copy::Grant(grant) => blocks.push(encode_grant(grant)?),
            Copy::Message(message) => {
                let bytes = match message.body {
                    Body::WriteRequest { bytes, .. } | Body::ReadResponse { bytes, .. } => bytes,
                    _ => 0,
                };
                encode_message(message, &vec![0; bytes as usize], &mut blocks)?;
            }
        }
        Ok(blocks)
    }
}

/// A block on an interface in this cycle, and the copy that it begins.
pub type Arrival = Option<(Block, Option<Copy>)>;

/// What an interface brings in a cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brings {
    /// A block.
    pub block: Arrival,
    /// The message that it is in is broken off.
    pub is_broken: bool,
    /// The link is dead.
    pub is_down: bool,
}

/// The message that an interface is in.
#[derive(Clone, Copy, Debug)]
struct Open {
    copy: Copy,
    /// Whether it goes on.
    keep: bool,
}

/// What waits of an interface.
#[derive(Default)]
struct Interface {
    queue: VecDeque<(Block, Option<Copy>)>,
    open: Option<Open>,
    is_dead: bool,
    /// A block of the message that comes in is lost, and so is the rest of it.
    is_torn: bool,
}

impl Interface {
    fn goes_on(&self) -> bool {
        self.open.is_some_and(|open| open.keep)
    }

    fn loses(&self, (_, begins): (Block, Option<Copy>)) -> bool {
        self.queue.len() == DEPTH || (self.is_torn && begins.is_none())
    }
}

/// The gates and the model.
pub struct Lockstep {
    gates: Gates,
    model: Mirror,
    networks: Networks,
    interfaces: [Interface; 2],
    stall: u64,
    passed: u64,
    copies: u64,
    strangers: u64,
    lost: u64,
}

impl Default for Lockstep {
    fn default() -> Lockstep {
        let functions =
            crate::unit_functions!(crate::units::MIRROR_PORTS, mirror_new, mirror_free, mirror_eval, mirror_port);
        Lockstep {
            gates: Gates::new(functions),
            model: Mirror::new(NODES),
            networks: Networks::new(true),
            interfaces: Default::default(),
            stall: 0,
            passed: 0,
            copies: 0,
            strangers: 0,
            lost: 0,
        }
    }
}

impl Lockstep {
    /// First and second copies so far, the same in both.
    pub fn seen(&self) -> (u64, u64) {
        (self.passed, self.copies)
    }

    /// Interfaces that are not given up.
    pub fn alive(&self) -> usize {
        self.interfaces.iter().filter(|interface| !interface.is_dead).count()
    }

    /// Blocks that found no room, and the rest of their messages.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// One cycle. Returns the block that goes on, and the message that is whole with it.
    ///
    /// # Errors
    /// How gates and model differ.
    pub fn cycle(&mut self, brings: [Brings; 2]) -> Result<(Option<Block>, Option<Copy>), String> {
        for (interface, Brings { block, is_broken, is_down }) in brings.into_iter().enumerate() {
            self.gates.set_bit(VALID, interface, block.is_some());
            self.gates.set_bit(FAULT, interface, is_broken);
            self.gates.set_bit(DOWN, interface, is_down);
            if let Some((block, _)) = block {
                self.gates.set_block(BLOCK, interface, block.to_bits());
            }
        }
        self.gates.eval();
        self.compare_state()?;
        let (expected, whole) = self.model(brings);
        let got = self.gates.bit(VALID_OUT, 0).then(|| self.gates.block(BLOCK_OUT, 0));
        if got != expected.map(Block::to_bits) {
            return Err(format!("the stream: model {expected:x?}, gates {got:x?}"));
        }
        self.gates.tick();
        match Gates::failures() {
            0 => Ok((expected, whole)),
            failures => Err(format!("{failures} assertions of the gates failed")),
        }
    }

    fn model(&mut self, brings: [Brings; 2]) -> (Option<Block>, Option<Copy>) {
        let was_dead: [bool; 2] = std::array::from_fn(|at| self.interfaces[at].is_dead);
        let dies = self.dies(&brings);
        let mut stream = (None, None);
        let owner = self.interfaces.iter().position(Interface::goes_on);
        let mut stands = false;
        for at in 0..2 {
            let interface = &mut self.interfaces[at];
            if let Some(block) = brings[at].block.filter(|_| !was_dead[at]) {
                let is_lost = interface.loses(block);
                self.lost += u64::from(is_lost);
                if !is_lost && !dies[at] {
                    interface.queue.push_back(block);
                }
                let is_grant = matches!(block.1, Some(Copy::Grant(_)));
                interface.is_torn = if is_grant { interface.is_torn } else { is_lost };
            }
            interface.is_dead |= dies[at];
            let has_head = !interface.queue.is_empty();
            stands |= owner == Some(at) && !has_head;
            if has_head {
                self.take(at, owner, &mut stream);
            } else if was_dead[at] {
                interface.open = None;
            }
        }
        self.stall = if stands { STALL_MAX.min(self.stall + 1) } else { 0 };
        stream
    }

    /// The interfaces that are given up in this cycle. The last one is kept while its link lives.
    fn dies(&self, brings: &[Brings; 2]) -> [bool; 2] {
        let fails = |at: usize| {
            let interface = &self.interfaces[at];
            let is_lost = brings[at].block.is_some_and(|block| !interface.is_dead && interface.loses(block));
            brings[at].is_broken || is_lost || (self.stall == STALL_MAX && self.interfaces[at].goes_on())
        };
        let ends = |at: usize| brings[at].is_down || !self.networks.is_used(at);
        let primary = ends(0) || (fails(0) && !self.interfaces[1].is_dead);
        let is_last = self.interfaces[0].is_dead || primary;
        [primary, ends(1) || (fails(1) && !is_last)]
    }

    /// Takes the next block of an interface, if it may go: on, or away.
    fn take(&mut self, at: usize, owner: Option<usize>, stream: &mut (Option<Block>, Option<Copy>)) {
        let Some((block, begins)) = self.interfaces[at].queue.front().copied() else { return };
        let is_grant = matches!(begins, Some(Copy::Grant(_)));
        let stranger = begins.is_some_and(is_stranger);
        let goes = match begins {
            Some(copy) => !stranger && accept(&mut self.model.clone(), at, copy),
            None => self.interfaces[at].goes_on(),
        };
        let has_to_wait = begins.is_some() && !is_grant && owner.is_some_and(|owner| owner != at);
        if goes && (stream.0.is_some() || has_to_wait) {
            return;
        }
        self.interfaces[at].queue.pop_front();
        if begins.is_some() {
            self.strangers += u64::from(stranger);
            self.copies += u64::from(!stranger && !goes);
            self.passed += u64::from(goes);
        }
        let copy = begins.or(self.interfaces[at].open.map(|open| open.copy));
        let ends = matches!(block.content(), Ok(Content::Grant(_) | Content::MemoryEnd(_) | Content::MemorySingle(_)));
        if !is_grant {
            self.interfaces[at].open = copy.filter(|_| !ends).map(|copy| Open { copy, keep: goes });
        }
        let whole = copy.filter(|_| ends);
        if let Some(copy) = whole.filter(|copy| !is_stranger(*copy)) {
            accept(&mut self.model, at, copy);
        }
        if goes {
            *stream = (Some(block), whole);
        }
    }

    /// Loses a link to the primary switch, or a switch.
    ///
    /// # Errors
    /// If gates and model then use other networks.
    pub fn lose(&mut self, switch: Option<usize>) -> Result<(), String> {
        match switch {
            Some(network) => self.gates.set_bit(SWITCH_LOST, network, true),
            None => self.gates.set_bit(LINK_LOST, 0, true),
        }
        self.cycle(Default::default())?;
        match switch {
            Some(network) => self.networks.on_switch_loss(network),
            None => assert_eq!(self.networks.on_link_loss(), LinkLoss::Primary),
        }
        self.gates.clear(SWITCH_LOST);
        self.gates.clear(LINK_LOST);
        self.cycle(Default::default()).map(drop)
    }

    fn compare_state(&self) -> Result<(), String> {
        for at in 0..2 {
            let got = (self.gates.bit(USED, at), self.gates.bit(GIVEN_UP, at));
            let model = (self.networks.is_used(at), self.interfaces[at].is_dead);
            if got != model {
                return Err(format!("network {at} is in use, is given up: model {model:?}, gates {got:?}"));
            }
        }
        let counted = COUNTS.map(|count| self.gates.get(count, 0, 32));
        let model = [self.copies, self.strangers, self.lost];
        if counted != model {
            return Err(format!("copies, strangers, lost: model {model:?}, gates {counted:?}"));
        }
        Ok(())
    }
}

/// Whether it is of a peer that does not exist, or from a node to itself: for nobody.
pub fn is_stranger(copy: Copy) -> bool {
    let for_nobody = matches!(copy, Copy::Message(message) if message.source == message.target);
    for_nobody || peer_of(copy) >= NODES
}

/// Of a /G/ its target, of a message its source.
pub fn peer_of(copy: Copy) -> u32 {
    match copy {
        Copy::Grant(grant) => grant.target.0,
        Copy::Message(message) => message.source.0,
    }
}

fn accept(model: &mut Mirror, at: usize, copy: Copy) -> bool {
    match copy {
        Copy::Grant(grant) => model.accept_grant(at, &grant),
        Copy::Message(message) => model.accept_message(at, &message),
    }
}
