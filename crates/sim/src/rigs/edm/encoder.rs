//! The check that what is sent survives its own encoding.

use base::NodeId;
use edm::pcs::block::Block;
use edm::pcs::memory as encoded;
use edm::{Body, Grant, Message, Transmission, Wire};

/// Encodes what is sent to blocks and decodes it again, if it is told to; the rig goes on with what
/// came out.
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

    /// What the receiver makes of what a host sends, if it is encoded.
    ///
    /// # Panics Here and below, if it differs from what was sent, or takes another number of blocks
    /// than the scheduler booked. Then the codec or the simulator is wrong, and so is every number
    /// of this run.
    #[inline]
    pub fn transmission(&mut self, sent: &Transmission, port: NodeId) -> Option<Transmission> {
        self.enabled.then(|| self.encoded_transmission(sent, port))
    }

    #[cold]
    fn encoded_transmission(&mut self, sent: &Transmission, port: NodeId) -> Transmission {
        let (what, word) = match sent.what {
            Wire::Memory(message) => {
                let (message, word) = self.message(&message, sent.word);
                (Wire::Memory(message), word)
            }
            Wire::Notification(said) => {
                let block = encoded::encode_notification(&said).expect("a notification of a host has a code");
                let decoded = encoded::decode_notification(block).expect("an encoded notification decodes");
                self.keep(block);
                (Wire::Notification(decoded), sent.word)
            }
        };
        let received = Transmission { what, word, ..*sent };
        self.compare(&received, sent, sent.blocks, port);
        received
    }

    /// What the receiver makes of a /G/.
    #[inline]
    pub fn grant(&mut self, grant: Grant, port: NodeId) -> Grant {
        if self.enabled { self.encoded_grant(grant, port) } else { grant }
    }

    /// What the memory node makes of a request.
    #[inline]
    pub fn request(&mut self, message: Message, port: NodeId) -> Message {
        if self.enabled { self.encoded_request(message, port) } else { message }
    }

    #[cold]
    fn encoded_grant(&mut self, grant: Grant, port: NodeId) -> Grant {
        let block = encoded::encode_grant(&grant).expect("a grant of this switch has a code");
        self.keep(block);
        let decoded = encoded::decode_grant(block).expect("an encoded grant decodes");
        self.compare(&decoded, &grant, encoded::GRANT_BLOCKS, port);
        decoded
    }

    #[cold]
    fn encoded_request(&mut self, message: Message, port: NodeId) -> Message {
        let decoded = self.message(&message, 0).0;
        self.compare(&decoded, &message, encoded::message_blocks(&message.body), port);
        decoded
    }

    fn keep(&mut self, block: Block) {
        self.blocks.clear();
        self.blocks.push(block);
    }

    fn compare<T: PartialEq + std::fmt::Debug>(&self, received: &T, sent: &T, booked: u64, port: NodeId) {
        assert_eq!(received, sent, "a message at port {} did not survive its encoding", port.0);
        assert_eq!(self.blocks.len() as u64, booked, "a message at port {} took other blocks than booked", port.0);
    }

    /// A message through the codec, with its payload: the word where it is the whole message, a
    /// pattern elsewhere.
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

    /// The word as the receiver reads it: the bytes that were sent, and what the sender knows
    /// beyond them.
    fn word(&self, sent: u64) -> u64 {
        let mut word = sent.to_le_bytes();
        word[..self.received.len()].copy_from_slice(&self.received);
        u64::from_le_bytes(word)
    }
}
