//! Bytes of a connection in any split, read as PDUs. Takes no memory: a header is gathered in
//! place, data are handed on as slices of the input.

use crate::Sqe;
use crate::layout::Field;
use crate::pdu::{
    COMMON_BYTES, DIGEST_BYTES, Framing, HEADER_BYTES_MAX, Header, PduError, PduKind, TERMINATION_DATA_MAX,
};

/// The side that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The host, from a controller.
    Host,
    /// The controller, from a host.
    Controller,
}

/// Most data of a PDU. A longer PDU is refused as soon as its length is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In-capsule data: 8,192 on the admin queue, IOCCSZ x 16 - 64 on others.
    pub in_capsule_max: u32,
    /// Data of H2CData (the announced MAXH2CDATA) or, at a host, of C2HData.
    pub data_max: u32,
}

/// An event of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A sound header. Its data follow, then [`Event::End`].
    Header(Header),
    /// Data of the last header, in order and none twice.
    Data {
        /// From the start of this PDU's data.
        offset: u32,
        /// A piece of the input, never empty.
        bytes: &'a [u8],
    },
    /// The PDU is over.
    End {
        /// Whether data fit their digest; true without one. Where not, the command fails and the
        /// connection goes on.
        is_sound: bool,
    },
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was read: only initialization may come.
    First,
    /// Initialization was read; nothing may come before [`Reader::open`].
    Waiting,
    /// Capsules and data.
    Open,
}

/// State of the PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Gathering the common header.
    Common,
    /// Gathering the rest of the header, and its digest.
    Specific(PduKind),
    /// Skipping the rest of the padding.
    Padding { left: u32, data: u32 },
    /// Handing on data.
    Data { offset: u32, length: u32, digest: u32 },
    /// Gathering the digest of data.
    Trailer { digest: u32 },
    /// Nothing is left of the PDU.
    End { is_sound: bool },
    /// The peer was found wrong.
    Failed(PduError),
}

/// Reads PDUs. Make one a connection, call [`Reader::next`] until it returns `None`, feed more.
/// After an error it gives the same error for ever.
#[derive(Clone, Debug)]
pub struct Reader {
    receiver: Receiver,
    limits: Limits,
    framing: Framing,
    phase: Phase,
    stage: Stage,
    /// Header and digest, or the digest of data, as far as they came.
    gathered: [u8; HEADER_BYTES_MAX],
    filled: usize,
    /// Bytes of the last header that `gathered` still holds.
    header_bytes: usize,
    has_data_digest: bool,
}

impl Reader {
    /// A connection from which nothing was read.
    pub fn new(receiver: Receiver, limits: Limits) -> Self {
        Reader {
            receiver,
            limits,
            framing: Framing::INITIAL,
            phase: Phase::First,
            stage: Stage::Common,
            gathered: [0; HEADER_BYTES_MAX],
            filled: 0,
            header_bytes: 0,
            has_data_digest: false,
        }
    }

    /// Initialization is over; `framing` has what the *receiver* asked for as alignment. Call it
    /// after the event of the peer's initialization and before reading on.
    pub fn open(&mut self, framing: Framing) {
        (self.framing, self.phase) = (framing, Phase::Open);
    }

    /// Other limits from the next header on: Connect decides which queue a connection carries.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The bytes of the last header as far as they were read, for a termination.
    pub fn last_header(&self) -> &[u8] {
        &self.gathered[..self.header_bytes]
    }

    /// Takes a whole command capsule at the front of `input`, on a connection without digests.
    /// Returns its entry and its data at once, where [`Self::next`] has several events. `None`, and
    /// nothing taken, wherever that has to look closer.
    pub fn next_capsule<'a>(&mut self, input: &mut &'a [u8]) -> Option<(&'a Sqe, &'a [u8])> {
        const HEADER: usize = PduKind::Command.header_bytes();
        let is_between = matches!((self.stage, self.phase), (Stage::Common, Phase::Open)) && self.filled == 0;
        if !is_between || self.receiver == Receiver::Host || self.framing != Framing::INITIAL {
            return None;
        }
        let header = input.first_chunk::<HEADER>()?;
        let [code, flags, header_length, offset, ..] = *header;
        let length = u32::get(&header[4..8], "PLEN").ok()?;
        let carried = length.checked_sub(HEADER as u32)?;
        // Anything else is padded, or wrong.
        let is_plain = [code, flags, header_length] == [PduKind::Command.code(), 0, HEADER as u8];
        let has_data = usize::from(offset) == HEADER && carried <= self.limits.in_capsule_max;
        if !is_plain || (carried > 0 && !has_data) {
            return None;
        }
        let (capsule, rest) = input.split_at_checked(length as usize)?;
        let (header, data) = capsule.split_at(HEADER);
        let entry = Sqe::view(&header[COMMON_BYTES..]).ok()?;
        self.gathered[..HEADER].copy_from_slice(header);
        (self.header_bytes, *input) = (HEADER, rest);
        Some((entry, data))
    }

    /// The next event; takes the bytes that it read from the front of `input`. `None` when more
    /// input is needed.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, PduError> {
        let step = self.step(input);
        if let Err(error) = step {
            self.stage = Stage::Failed(error);
        }
        step
    }

    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, PduError> {
        loop {
            match self.stage {
                Stage::Common => match self.read_common(input)? {
                    Some(stage) => self.stage = stage,
                    None => return Ok(None),
                },
                Stage::Specific(kind) => return self.read_specific(kind, input),
                Stage::Padding { left, data } => match self.skip(left, data, input) {
                    Some(stage) => self.stage = stage,
                    None => return Ok(None),
                },
                Stage::Data { offset, length, digest } => return Ok(self.hand_on(offset, length, digest, input)),
                Stage::Trailer { digest } => match self.read_trailer(digest, input) {
                    Some(stage) => self.stage = stage,
                    None => return Ok(None),
                },
                Stage::End { is_sound } => {
                    (self.stage, self.filled) = (Stage::Common, 0);
                    return Ok(Some(Event::End { is_sound }));
                }
                Stage::Failed(error) => return Err(error),
            }
        }
    }

    /// Gathers until `needed` bytes are there.
    fn gather(&mut self, needed: usize, input: &mut &[u8]) -> bool {
        let count = input.len().min(needed - self.filled);
        let (taken, rest) = input.split_at(count);
        self.gathered[self.filled..self.filled + count].copy_from_slice(taken);
        (*input, self.filled) = (rest, self.filled + count);
        self.filled == needed
    }

    fn read_common(&mut self, input: &mut &[u8]) -> Result<Option<Stage>, PduError> {
        let is_there = self.gather(COMMON_BYTES, input);
        if self.filled > 0 {
            self.header_bytes = self.filled;
        }
        if is_there { self.check_common().map(|kind| Some(Stage::Specific(kind))) } else { Ok(None) }
    }

    /// Type, direction, order, lengths and flags: all that can be known before the rest of the
    /// header.
    fn check_common(&self) -> Result<PduKind, PduError> {
        let [code, flags, header_length, ..] = self.gathered;
        let kind = self.known_kind(code)?;
        self.check_order(kind)?;
        let expected = kind.header_bytes() as u64;
        exactly("HLEN", 2, header_length.into(), expected)?;
        let digest = u8::from(self.framing.has_header_digest(kind));
        if flags & 1 != digest && kind.has_digests() {
            let allowed = "HDGSTF as agreed";
            return Err(PduError::Field { field: "FLAGS", at: 1, got: flags.into(), allowed });
        }
        self.check_length(kind)?;
        Ok(kind)
    }

    fn known_kind(&self, code: u8) -> Result<PduKind, PduError> {
        let from_host = self.receiver == Receiver::Controller;
        let allowed = if from_host { "0 2 4 6" } else { "1 3 5 7 9" };
        let kind = PduKind::of_code(code).filter(|kind| kind.is_from_host() == from_host);
        kind.ok_or(PduError::Field { field: "PDU-Type", at: 0, got: code.into(), allowed })
    }

    fn check_order(&self, kind: PduKind) -> Result<(), PduError> {
        let (holds, allowed) = match self.phase {
            Phase::First => (kind.is_initialization(), "initialization"),
            Phase::Waiting => (false, "nothing before the answer to initialization"),
            Phase::Open => (!kind.is_initialization(), "capsules, data and their requests"),
        };
        if holds || kind.is_termination() { Ok(()) } else { Err(PduError::Sequence { kind, allowed }) }
    }

    fn length(&self) -> u32 {
        u32::get(&self.gathered[4..8], "PLEN").expect("the common header was gathered")
    }

    /// PLEN, and PDO where data follow. A limit of data is held against DATAL, which has an error
    /// of its own.
    fn check_length(&self, kind: PduKind) -> Result<(), PduError> {
        let bare = u64::from(self.framing.data_offset(kind, 0));
        let got = u64::from(self.length());
        if !kind.may_carry_data() || got <= bare {
            return exactly("PLEN", 4, got, bare);
        }
        if kind.is_termination() {
            return between("PLEN", 4, got, bare, bare + u64::from(TERMINATION_DATA_MAX));
        }
        let offset = self.data_offset()?;
        let data_max = if kind == PduKind::Command { self.limits.in_capsule_max } else { u32::MAX };
        between("PLEN", 4, got, offset + self.behind_offset(kind, 1), offset + self.behind_offset(kind, data_max))
    }

    /// Bytes from PDO on: `data` and their digest.
    fn behind_offset(&self, kind: PduKind, data: u32) -> u64 {
        let digest = if self.framing.has_data_digest(kind, 1) { DIGEST_BYTES as u64 } else { 0 };
        u64::from(data) + digest
    }

    /// PDO: behind the header, aligned. Any such offset is valid: padding is up to the sender.
    fn data_offset(&self) -> Result<u64, PduError> {
        let kind = PduKind::of_code(self.gathered[0]).expect("the type was checked first");
        let got = u64::from(self.gathered[3]);
        between("PDO", 3, got, u64::from(self.framing.data_offset(kind, 0)), u64::from(u8::MAX))?;
        if got.is_multiple_of(u64::from(self.framing.step())) {
            Ok(got)
        } else {
            Err(PduError::Field { field: "PDO", at: 3, got, allowed: "a multiple of the alignment that was asked for" })
        }
    }

    fn read_specific<'a>(&mut self, kind: PduKind, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, PduError> {
        let needed = self.framing.data_offset(kind, 0) as usize;
        let is_there = self.gather(needed, input);
        self.header_bytes = self.filled.min(kind.header_bytes());
        if !is_there {
            return Ok(None);
        }
        self.check_header_digest(kind)?;
        let (padding, carried) = self.lengths(kind, needed as u32)?;
        let header = Header::read(kind, &self.gathered[..kind.header_bytes()], carried)?;
        self.check_data(&header, carried)?;
        if kind.is_initialization() {
            self.phase = Phase::Waiting;
        }
        self.stage = Stage::Padding { left: padding, data: carried };
        Ok(Some(Event::Header(header)))
    }

    fn check_header_digest(&self, kind: PduKind) -> Result<(), PduError> {
        if !self.framing.has_header_digest(kind) {
            return Ok(());
        }
        let (header, digest) = self.gathered.split_at(kind.header_bytes());
        let got = u32::get(&digest[..DIGEST_BYTES], "HDGST").expect("the digest was gathered");
        let computed = crc32c::crc32c(header);
        if got == computed { Ok(()) } else { Err(PduError::HeaderDigest { got, computed }) }
    }

    /// Padding, and data bytes by the lengths; notes whether a digest follows.
    fn lengths(&mut self, kind: PduKind, behind_header: u32) -> Result<(u32, u32), PduError> {
        let length = self.length();
        if length == behind_header || kind.is_termination() {
            self.has_data_digest = false;
            return Ok((0, length - behind_header));
        }
        let offset = self.data_offset()? as u32;
        let carried = length - offset - (self.behind_offset(kind, 0) as u32);
        self.has_data_digest = self.framing.has_data_digest(kind, carried);
        let flags = self.gathered[1];
        if (flags & 2 != 0) != self.has_data_digest {
            let allowed = "DDGSTF as agreed, set only with data";
            return Err(PduError::Field { field: "FLAGS", at: 1, got: flags.into(), allowed });
        }
        Ok((offset - behind_header, carried))
    }

    /// Checks the header's own length of data against PLEN and the limit.
    fn check_data(&self, header: &Header, carried: u32) -> Result<(), PduError> {
        let (Header::HostData(_) | Header::ControllerData(_)) = header else { return Ok(()) };
        let length = header.data_length();
        let most = self.limits.data_max;
        if length > most {
            return Err(match self.receiver {
                Receiver::Controller => {
                    PduError::LimitExceeded { what: "data of H2CData", got: length.into(), most: most.into() }
                }
                Receiver::Host => {
                    let kind = PduKind::ControllerData;
                    PduError::OutOfRange { kind, offset: 0, length, from: 0, to: most }
                }
            });
        }
        exactly("DATAL", 16, length.into(), carried.into())
    }

    fn skip(&mut self, left: u32, data: u32, input: &mut &[u8]) -> Option<Stage> {
        let count = input.len().min(left as usize);
        *input = &input[count..];
        let left = left - count as u32;
        if left > 0 {
            self.stage = Stage::Padding { left, data };
            return None;
        }
        Some(if data > 0 { Stage::Data { offset: 0, length: data, digest: 0 } } else { Stage::End { is_sound: true } })
    }

    fn hand_on<'a>(&mut self, offset: u32, length: u32, digest: u32, input: &mut &'a [u8]) -> Option<Event<'a>> {
        let count = input.len().min((length - offset) as usize);
        if count == 0 {
            return None;
        }
        let (bytes, rest) = input.split_at(count);
        *input = rest;
        let digest = if self.has_data_digest { crc32c::crc32c_append(digest, bytes) } else { 0 };
        self.stage = self.behind_data(offset + count as u32, length, digest);
        Some(Event::Data { offset, bytes })
    }

    fn behind_data(&mut self, offset: u32, length: u32, digest: u32) -> Stage {
        match (offset < length, self.has_data_digest) {
            (true, _) => Stage::Data { offset, length, digest },
            (false, true) => {
                // Behind the header that is still wanted for a termination; `gathered` has room: no
                // header with data has 128 bytes.
                self.filled = HEADER_BYTES_MAX - DIGEST_BYTES;
                Stage::Trailer { digest }
            }
            (false, false) => Stage::End { is_sound: true },
        }
    }

    fn read_trailer(&mut self, digest: u32, input: &mut &[u8]) -> Option<Stage> {
        self.gather(HEADER_BYTES_MAX, input)
            .then(|| Stage::End { is_sound: self.gathered[HEADER_BYTES_MAX - DIGEST_BYTES..] == digest.to_le_bytes() })
    }
}

fn exactly(field: &'static str, at: u8, got: u64, expected: u64) -> Result<(), PduError> {
    between(field, at, got, expected, expected)
}

fn between(field: &'static str, at: u8, got: u64, least: u64, most: u64) -> Result<(), PduError> {
    if (least..=most).contains(&got) { Ok(()) } else { Err(PduError::Length { field, at, got, least, most }) }
}
