//! The filter for two networks in lock step with `edm::mirror`.
//!
//! The model is asked once a message, with its first block; the gates then pass all of its blocks or
//! none. Of two first blocks in one cycle the primary's comes first.

use crate::gates::Gates;
use edm::mirror::{LinkLoss, Mirror, Networks};
use edm::pcs::block::Block;
use edm::pcs::memory::{MemoryError, encode_grant, encode_message};
use edm::{Body, Grant, Message};

const VALID: usize = 2;
const BLOCK: usize = 3;
const LINK_LOST: usize = 4;
const SWITCH_LOST: usize = 5;
const VALID_OUT: usize = 6;
const BLOCK_OUT: usize = 7;
const USED: usize = 8;
const COPIES: usize = 9;
const STRANGERS: usize = 10;

/// Peers of the gates.
pub const NODES: u32 = 4;
/// Messages by which an interface may fall back.
pub const LAG_MAX: u64 = 31;

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

/// The gates and the model.
pub struct Lockstep {
    gates: Gates,
    model: Mirror,
    networks: Networks,
    keeps: [bool; 2],
    passed: u64,
    copies: u64,
    strangers: u64,
}

impl Default for Lockstep {
    fn default() -> Lockstep {
        let functions =
            crate::unit_functions!(crate::units::MIRROR_PORTS, mirror_new, mirror_free, mirror_eval, mirror_port);
        Lockstep {
            gates: Gates::new(functions),
            model: Mirror::new(NODES),
            networks: Networks::new(true),
            keeps: [false; 2],
            passed: 0,
            copies: 0,
            strangers: 0,
        }
    }
}

impl Lockstep {
    /// First and second copies so far, the same in both.
    pub fn seen(&self) -> (u64, u64) {
        (self.passed, self.copies)
    }

    /// One cycle: a block of each interface, or none.
    ///
    /// # Errors
    /// How gates and model differ.
    pub fn cycle(&mut self, arrivals: [Arrival; 2]) -> Result<(), String> {
        let mut expected = [None; 2];
        for (interface, arrival) in arrivals.into_iter().enumerate() {
            self.gates.set_bit(VALID, interface, arrival.is_some());
            let Some((block, copy)) = arrival else { continue };
            let bits = block.to_bits();
            self.gates.set_block(BLOCK, interface, bits);
            let passes = match copy {
                Some(copy) => self.accept(interface, copy),
                None => self.keeps[interface],
            };
            if passes {
                expected[interface] = Some(bits);
            }
        }
        self.gates.tick();
        self.compare(expected)
    }

    fn accept(&mut self, interface: usize, copy: Copy) -> bool {
        let (is_message, peer) = match copy {
            Copy::Grant(grant) => (false, grant.target),
            Copy::Message(message) => (true, message.source),
        };
        let is_stranger = peer.0 >= NODES;
        let passes = !is_stranger
            && match copy {
                Copy::Grant(grant) => self.model.accept_grant(interface, &grant),
                Copy::Message(message) => self.model.accept_message(interface, &message),
            };
        self.passed += u64::from(passes);
        self.strangers += u64::from(is_stranger);
        self.copies += u64::from(!passes && !is_stranger);
        if is_message {
            self.keeps[interface] = passes;
        }
        passes
    }

    /// Loses a link to the primary switch, or a switch.
    ///
    /// # Errors
    /// If gates and model then use other networks.
    pub fn lose(&mut self, switch: Option<usize>) -> Result<(), String> {
        match switch {
            Some(network) => {
                self.gates.set_bit(SWITCH_LOST, network, true);
                self.networks.on_switch_loss(network);
            }
            None => {
                self.gates.set_bit(LINK_LOST, 0, true);
                assert_eq!(self.networks.on_link_loss(), LinkLoss::Primary);
            }
        }
        let compared = self.cycle([None; 2]);
        self.gates.clear(SWITCH_LOST);
        self.gates.clear(LINK_LOST);
        compared
    }

    fn compare(&self, expected: [Option<u128>; 2]) -> Result<(), String> {
        for (interface, expected) in expected.into_iter().enumerate() {
            let bits = self.gates.block(BLOCK_OUT, interface);
            let got = self.gates.bit(VALID_OUT, interface).then_some(bits);
            if got != expected {
                return Err(format!("interface {interface}: model {expected:x?}, gates {got:x?}"));
            }
            let (used, model) = (self.gates.bit(USED, interface), self.networks.is_used(interface));
            if used != model {
                return Err(format!("network {interface} is in use: model {model}, gates {used}"));
            }
        }
        let counted = (self.gates.get(COPIES, 0, 32), self.gates.get(STRANGERS, 0, 32));
        let model = (self.copies, self.strangers);
        if counted != model {
            return Err(format!("copies and strangers: model {model:?}, gates {counted:?}"));
        }
        match Gates::failures() {
            0 => Ok(()),
            failures => Err(format!("{failures} assertions of the gates failed")),
        }
    }
}
