//! What is between two places, and the check that it survives its own encoding.

use base::NodeId;
use edm::pcs::block::Block;
use edm::pcs::memory as encoded;
use edm::{Body, Grant, Message, Tag, Transmission, Wire};

/// What a host has sent: of a [`Transmission`], what others than its sender need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What.
    pub what: Wire,
    /// Payload of up to eight bytes.
    pub word: u64,
    /// The request that it belongs to.
    pub tag: Tag,
    /// How many 66-bit blocks it makes.
    pub blocks: u32,
}

impl From<&Transmission> for Sent {
    fn from(transmission: &Transmission) -> Sent {
        let Transmission { what, word, tag, blocks, .. } = *transmission;
        // A chunk is at most 65,535 bytes.
        Sent { what, word, tag, blocks: blocks as u32 }
    }
}

/// What travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// From a host: up to the switch, and data on to its target.
    Sent(Sent),
    /// A /G/ from the switch.
    Grant {
        /// What it permits.
        grant: Grant,
        /// The demand's request.
        tag: Tag,
    },
    /// A buffered RREQ or RMWREQ from the switch.
    Request {
        /// The message.
        message: Message,
        /// The demand's request.
        tag: Tag,
    },
    /// An RREQ or RMWREQ in a memory node, while its memory reads.
    Reading {
        /// The message.
        message: Message,
        /// The demand's request.
        tag: Tag,
    },
}

/// One thing on its way.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// What.
    pub cargo: Cargo,
    /// By which switch.
    pub plane: usize,
    /// The host at the end of the link that it is on.
    pub node: NodeId,
}

/// Everything on its way, addressed by small numbers that are used again.
#[derive(Debug, Default)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    /// Takes `flight` in and gives its number.
    pub fn add(&mut self, flight: Flight) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = flight;
            return index;
        }
        self.slots.push(flight);
        self.slots.len() as u32 - 1
    }
    /// The flight with this number.
    pub fn get(&self, index: u32) -> Flight {
        self.slots[index as usize]
    }
    /// Ends a flight.
    pub fn remove(&mut self, index: u32) -> Flight {
        self.free.push(index);
        self.slots[index as usize]
    }
    /// Sends a flight on to another node.
    pub fn redirect(&mut self, index: u32, node: NodeId) {
        self.slots[index as usize].node = node;
    }
}

/// Encodes what is sent to blocks and decodes it again, if it is told to; the rig goes on with what came out.
#[derive(Debug, Default)]
pub struct Encoder {
    enabled: bool,
    blocks: Vec<Block>,
    payload: Vec<u8>,
    received: Vec<u8>,
}

impl Encoder {
    /// An encoder that checks, or one that lets everything pass as it is.
    pub fn new(enabled: bool) -> Encoder {
        Encoder { enabled, ..Encoder::default() }
    }

    /// What the receiver makes of `cargo`, which `port` sends or receives.
    ///
    /// # Panics
    /// If it differs from what was sent, or takes another number of blocks than the scheduler booked: the codec or the
    /// simulator is wrong, and no number of this run would mean anything.
    #[inline]
    pub fn check(&mut self, cargo: Cargo, port: NodeId) -> Cargo {
        if self.enabled { self.survive(cargo, port) } else { cargo }
    }

    #[cold]
    fn survive(&mut self, cargo: Cargo, port: NodeId) -> Cargo {
        let (decoded, booked) = match cargo {
            Cargo::Grant { grant, tag } => {
                let block = encoded::encode_grant(&grant).expect("a grant of this switch has a code");
                self.blocks.clear();
                self.blocks.push(block);
                let grant = encoded::decode_grant(block).expect("an encoded grant decodes");
                (Cargo::Grant { grant, tag }, encoded::GRANT_BLOCKS)
            }
            Cargo::Request { message, tag } | Cargo::Reading { message, tag } => {
                let blocks = encoded::message_blocks(&message.body);
                (Cargo::Request { message: self.message(&message, 0).0, tag }, blocks)
            }
            Cargo::Sent(sent) => (Cargo::Sent(self.sent(&sent)), u64::from(sent.blocks)),
        };
        assert_eq!(decoded, cargo, "a message at port {} did not survive its encoding", port.0);
        assert_eq!(self.blocks.len() as u64, booked, "a message at port {} took other blocks than booked", port.0);
        decoded
    }

    fn sent(&mut self, sent: &Sent) -> Sent {
        match sent.what {
            Wire::Memory(message) => {
                let (message, word) = self.message(&message, sent.word);
                Sent { what: Wire::Memory(message), word, ..*sent }
            }
            Wire::Notification(notification) => {
                let block = encoded::encode_notification(&notification).expect("a notification of a host has a code");
                self.blocks.clear();
                self.blocks.push(block);
                let what = encoded::decode_notification(block).expect("an encoded notification decodes");
                Sent { what: Wire::Notification(what), ..*sent }
            }
        }
    }

    /// A message through the codec, with its payload: the word where it is the whole message, a pattern elsewhere.
    fn message(&mut self, message: &Message, word: u64) -> (Message, u64) {
        let bytes = match message.body {
            Body::WriteRequest { bytes, .. } | Body::ReadResponse { bytes, .. } => bytes as usize,
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => 0,
        };
        self.payload.clear();
        self.payload.extend((0..bytes).map(|i| word.to_le_bytes()[i % 8] ^ (i / 8) as u8));
        self.blocks.clear();
        encoded::encode_message(message, &self.payload, &mut self.blocks).expect("a message of a host has a code");
        let decoded = encoded::decode_message(&self.blocks, &mut self.received).expect("an encoded message decodes");
        assert_eq!(self.received, self.payload, "the payload of {message:?} did not survive its encoding");
        (decoded, if bytes > 0 && bytes <= 8 { self.word(word) } else { word })
    }

    /// The word as the receiver reads it: the bytes that were sent, and what the sender knows beyond them.
    fn word(&self, sent: u64) -> u64 {
        let mut word = sent.to_le_bytes();
        word[..self.received.len()].copy_from_slice(&self.received);
        u64::from_le_bytes(word)
    }
}
