//! Whole PDUs, for callers that do not mind the copy: tests, tools, control paths.

use crate::pdu::{Event, Framing, Header, Limits, PduError, Reader, Receiver};

/// A whole PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Everything but the data.
    pub header: Header,
    /// The data, as long as the header says.
    pub data: Vec<u8>,
    /// Whether data fit their digest; true without one.
    pub is_sound: bool,
}

/// Collects what a [`Reader`] hands on. Memory for data is taken when their length was held against
/// the limits, once a PDU.
#[derive(Clone, Debug)]
pub struct Assembler {
    reader: Reader,
    header: Option<Header>,
    data: Vec<u8>,
}

impl Assembler {
    /// A connection from which nothing was read. What it holds at most is the larger of the two
    /// limits, or 128 bytes.
    pub fn new(receiver: Receiver, limits: Limits) -> Self {
        Assembler { reader: Reader::new(receiver, limits), header: None, data: Vec::new() }
    }

    /// As [`Reader::open`].
    pub fn open(&mut self, framing: Framing) {
        self.reader.open(framing);
    }

    /// The reader beneath.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// The next whole PDU; takes what it read from the front of `input`. `None` when more input is
    /// needed.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Pdu>, PduError> {
        while let Some(event) = self.reader.next(input)? {
            match event {
                Event::Header(header) => {
                    self.data = Vec::with_capacity(header.data_length() as usize);
                    self.header = Some(header);
                }
                Event::Data { bytes, .. } => self.data.extend_from_slice(bytes),
                Event::End { is_sound } => {
                    let header = self.header.take().expect("a header comes before its end");
                    return Ok(Some(Pdu { header, data: std::mem::take(&mut self.data), is_sound }));
                }
            }
        }
        Ok(None)
    }
}
