//! A line of the gates (multiplexer, wire, demultiplexer) in lock step with `edm::pcs::multiplex`.
//!
//! The model's multiplexer takes offers after it has chosen the block of a cycle, so an offer of
//! cycle *c* can be chosen in *c* + 1, in both. The block chosen in *c* is on the gates' line in
//! *c* + 1, and what the demultiplexer makes of a block of *c* comes out in *c* + 1.

use crate::gates::{Functions, Gates};
use edm::pcs::block::Block;
use edm::pcs::multiplex::{Demultiplexer, Fault, Multiplexer, OfferError, Policy, Received};
use std::collections::VecDeque;

const VALID: [usize; 3] = [2, 4, 6];
const OFFER: [usize; 3] = [3, 5, 7];
const READY: [usize; 3] = [8, 9, 10];
const BLOCK: usize = 11;
const REFUSED_COUNT: usize = 12;

const LINE: usize = 2;
const MEMORY_VALID: usize = 3;
const MEMORY: usize = 4;
const FRAME: usize = 5;
const FAULT: usize = 6;
const FAULT_COUNT: usize = 7;

/// The three queues before the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// /N/ and /G/.
    Control,
    /// /M*/.
    Message,
    /// Frames.
    Frame,
}

impl Lane {
    /// All three.
    pub const ALL: [Lane; 3] = [Lane::Control, Lane::Message, Lane::Frame];
}

/// What happens on the wire in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The block comes through.
    Clean,
    /// These bits change.
    Flip(u128),
    /// These 66 bits come instead.
    Replace(u128),
}

/// The blocks that the three lanes offer, each not before its cycle.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    lanes: [VecDeque<(u64, Block)>; 3],
}

impl Offers {
    /// Appends a block that its lane offers from `cycle` on.
    pub fn push(&mut self, lane: Lane, cycle: u64, block: Block) {
        self.lanes[lane as usize].push_back((cycle, block));
    }

    fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }
}

/// The gates and the model of one line.
pub struct Lockstep {
    multiplexer: Gates,
    demultiplexer: Gates,
    model_multiplexer: Multiplexer,
    model_demultiplexer: Demultiplexer,
    now: u64,
    /// What the line and the receiver show in this cycle.
    block: Block,
    received: Received,
    refused: u64,
    faults: u64,
}

macro_rules! line_functions {
    ($ports:ident, $($name:ident)+) => {
        crate::unit_functions!(crate::units::$ports, $($name),+)
    };
}

fn functions(policy: Policy) -> (Functions, Functions) {
    match policy {
        Policy::Fair => (
            line_functions!(MULTIPLEXER_PORTS, multiplexer_fair_new multiplexer_fair_free multiplexer_fair_eval multiplexer_fair_port),
            line_functions!(DEMULTIPLEXER_PORTS, demultiplexer_fair_new demultiplexer_fair_free demultiplexer_fair_eval demultiplexer_fair_port),
        ),
        Policy::Strict => (
            line_functions!(MULTIPLEXER_PORTS, multiplexer_strict_new multiplexer_strict_free multiplexer_strict_eval multiplexer_strict_port),
            line_functions!(DEMULTIPLEXER_PORTS, demultiplexer_strict_new demultiplexer_strict_free demultiplexer_strict_eval demultiplexer_strict_port),
        ),
        Policy::None => (
            line_functions!(MULTIPLEXER_PORTS, multiplexer_whole_new multiplexer_whole_free multiplexer_whole_eval multiplexer_whole_port),
            line_functions!(DEMULTIPLEXER_PORTS, demultiplexer_whole_new demultiplexer_whole_free demultiplexer_whole_eval demultiplexer_whole_port),
        ),
    }
}

impl Lockstep {
    /// An idle line.
    pub fn new(policy: Policy) -> Lockstep {
        let (multiplexer, demultiplexer) = functions(policy);
        let mut demultiplexer = Gates::new(demultiplexer);
        // In reset the wire is idle.
        demultiplexer.set_block(LINE, 0, Block::IDLE.to_bits());
        demultiplexer.reset();
        Lockstep {
            multiplexer: Gates::new(multiplexer),
            demultiplexer,
            model_multiplexer: Multiplexer::new(policy),
            model_demultiplexer: Demultiplexer::new(policy),
            now: 0,
            block: Block::IDLE,
            received: Received { memory: None, frame: Block::IDLE, fault: None },
            refused: 0,
            faults: 0,
        }
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// Offers refused and faults seen so far, the same in both.
    pub fn refused_and_faults(&self) -> (u64, u64) {
        (self.refused, self.faults)
    }

    /// Plays all offers over a wire that does `wire` in each cycle (and is clean after its end),
    /// until nothing is left. `see` gets what the gates' receiver shows, cycle by cycle.
    ///
    /// # Errors
    /// The first cycle in which gates and model differ, and how.
    pub fn play(
        &mut self,
        mut offers: Offers,
        wire: &[Wire],
        mut see: impl FnMut(Option<Block>, Block),
    ) -> Result<(), String> {
        let last = offers.lanes.iter().filter_map(|lane| lane.back()).map(|(cycle, _)| *cycle).max();
        // What a broken sender has left open may hold up the rest for ever.
        let patience = 20_000 + last.unwrap_or(0).max(wire.len() as u64);
        let mut quiet = 0;
        while (quiet < 4 || self.now < wire.len() as u64) && self.now < patience {
            let noise = wire.get(self.now as usize).copied().unwrap_or(Wire::Clean);
            self.cycle(&mut offers, noise)?;
            see(self.received.memory, self.received.frame);
            let idle = offers.is_empty() && self.model_multiplexer.is_idle() && self.received.frame == Block::IDLE;
            quiet = if idle { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    fn cycle(&mut self, offers: &mut Offers, noise: Wire) -> Result<(), String> {
        self.compare()?;
        let bits = match noise {
            Wire::Clean => self.block.to_bits(),
            Wire::Flip(mask) => self.block.to_bits() ^ mask,
            Wire::Replace(bits) => bits,
        };
        self.demultiplexer.set_block(LINE, 0, bits);
        self.received = self.model_demultiplexer.push_bits(bits);
        self.faults += u64::from(self.received.fault.is_some());
        self.block = self.model_multiplexer.next_block();
        for lane in Lane::ALL {
            self.offer(lane, &mut offers.lanes[lane as usize])?;
        }
        self.multiplexer.tick();
        self.demultiplexer.tick();
        self.now += 1;
        match Gates::failures() {
            0 => Ok(()),
            failures => Err(format!("cycle {}: {failures} assertions of the gates failed", self.now - 1)),
        }
    }

    /// The gates' queues push back; the model's may be longer, and are never offered more.
    fn offer(&mut self, lane: Lane, waiting: &mut VecDeque<(u64, Block)>) -> Result<(), String> {
        let index = lane as usize;
        let is_ready = self.multiplexer.get(READY[index], 0, 1) == 1;
        let due = waiting.front().is_some_and(|(cycle, _)| *cycle <= self.now);
        self.multiplexer.set(VALID[index], 0, 1, u64::from(is_ready && due));
        if !is_ready || !due {
            return Ok(());
        }
        let Some((_, block)) = waiting.pop_front() else { return Ok(()) };
        self.multiplexer.set_block(OFFER[index], 0, block.to_bits());
        let is_control = block.payload & 0xff == 0x55 || block.payload & 0xff == 0x66;
        let is_control = is_control && block.sync == edm::pcs::block::Sync::Control;
        let answer = match lane {
            // The model has one entrance for both; what comes at the wrong one is refused.
            Lane::Control | Lane::Message if is_control != (lane == Lane::Control) => {
                self.refused += 1;
                return Ok(());
            }
            Lane::Control | Lane::Message => self.model_multiplexer.offer_memory(block),
            Lane::Frame => self.model_multiplexer.offer_frame(block),
        };
        match answer {
            Ok(()) => Ok(()),
            Err(OfferError::Full(_)) => Err(format!("cycle {}: the gates take more frame blocks", self.now)),
            Err(_) => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    fn compare(&mut self) -> Result<(), String> {
        let line = self.multiplexer.block(BLOCK, 0);
        let model = self.block.to_bits();
        if line != model {
            return Err(format!("cycle {}: on the line: model {model:#x}, gates {line:#x}", self.now));
        }
        let refused = self.multiplexer.get(REFUSED_COUNT, 0, 32);
        if refused != self.refused {
            return Err(format!("cycle {}: refused offers: model {}, gates {refused}", self.now, self.refused));
        }
        let memory = self.demultiplexer.get(MEMORY_VALID, 0, 1) == 1;
        let memory = memory.then(|| self.demultiplexer.block(MEMORY, 0));
        let got = (memory, self.demultiplexer.block(FRAME, 0), self.demultiplexer.get(FAULT, 0, 3));
        let Received { memory, frame, fault } = self.received;
        let model = (memory.map(Block::to_bits), frame.to_bits(), fault.map_or(0, fault_code));
        if got != model {
            return Err(format!("cycle {}: received: model {model:x?}, gates {got:x?}", self.now));
        }
        let faults = self.demultiplexer.get(FAULT_COUNT, 0, 32);
        if faults != self.faults {
            return Err(format!("cycle {}: faults: model {}, gates {faults}", self.now, self.faults));
        }
        Ok(())
    }
}

/// Plays golden vectors (`crates/edm/tests/vectors.rs` has their format) to the gates of a line, and
/// compares what they show in each cycle.
///
/// # Errors
/// The first cycle in which they differ, or that is no vector.
pub fn replay(policy: Policy, text: &str) -> Result<(), String> {
    let (multiplexer, demultiplexer) = functions(policy);
    let (mut multiplexer, mut demultiplexer) = (Gates::new(multiplexer), Gates::new(demultiplexer));
    // In reset the wire is idle.
    demultiplexer.set_block(LINE, 0, Block::IDLE.to_bits());
    demultiplexer.reset();
    for (cycle, line) in text.lines().enumerate() {
        let fail = |what: String| format!("cycle {cycle}: {what}");
        let read = |field: &str| match field {
            "-" => Ok(None),
            digits => u128::from_str_radix(digits, 16).map(Some).map_err(|error| fail(format!("{digits}: {error}"))),
        };
        let fields = line.split(' ').map(read).collect::<Result<Vec<_>, _>>()?;
        let &[control, message, frame, block, wire, memory, received, fault] = &fields[..] else {
            return Err(fail(format!("{} fields, 8 are wanted", fields.len())));
        };
        let has_memory = demultiplexer.get(MEMORY_VALID, 0, 1) == 1;
        let shown = [
            Some(multiplexer.block(BLOCK, 0)),
            has_memory.then(|| demultiplexer.block(MEMORY, 0)),
            Some(demultiplexer.block(FRAME, 0)),
            Some(u128::from(demultiplexer.get(FAULT, 0, 3))),
        ];
        if shown != [block, memory, received, fault] {
            return Err(fail(format!("the gates show {shown:x?}: {line}")));
        }
        demultiplexer.set_block(LINE, 0, wire.ok_or_else(|| fail("nothing on the wire".into()))?);
        for (lane, offer) in [control, message, frame].into_iter().enumerate() {
            multiplexer.set(VALID[lane], 0, 1, offer.is_some().into());
            let Some(bits) = offer else { continue };
            if multiplexer.get(READY[lane], 0, 1) == 0 {
                return Err(fail(format!("the gates do not take the offer of lane {lane}")));
            }
            multiplexer.set_block(OFFER[lane], 0, bits);
        }
        multiplexer.tick();
        demultiplexer.tick();
        if Gates::failures() > 0 {
            return Err(fail("assertions of the gates failed".into()));
        }
    }
    Ok(())
}

/// `fault_e`.
fn fault_code(fault: Fault) -> u64 {
    match fault {
        Fault::Block(_) => 1,
        Fault::Memory(_) => 2,
        Fault::DataOutside => 3,
        Fault::FrameNotEnded { .. } => 4,
        Fault::EndWithoutStart => 5,
        Fault::FrameTooLong { .. } => 6,
        Fault::Overrun { .. } => 7,
        other => unreachable!("{other} has no code: add it to fault_e"),
    }
}
