//! Messages between clients and the NIC as bytes: the UDP payload.
//!
//! The paper says that commands are encapsulated and not how; the layout is ours. A header of 26
//! bytes, little endian, precedes a body:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | version, 1 |
//! | 1 | kind: 1 command, 2 data, 3 grant, 4 answer |
//! | 2..4 | client |
//! | 4..8 | number of the command |
//! | 8..16 | offset (data, grant), else 0 |
//! | 16..20 | length of the data (data), of the granted range (grant), of the body (command, answer) |
//! | 20..22 | 0 |
//! | 22..26 | CRC-32C of the preceding bytes and of the body of a command or an answer |
//!
//! The checksum excludes data: the packet's own covers them. A command's body is padded to 64
//! bytes, an answer's and a grant's to 16.

use crate::{ClientId, Command, CommandId, DeviceId, Extent, Outcome, Refusal};

/// Bytes in front of every body.
pub const HEADER_BYTES: usize = 26;
/// Devices that a command or an answer can name: more than any machine has.
pub const NAMED_MAX: usize = 255;
const VERSION: u8 = 1;
const CAPSULE_BYTES: usize = 64;
const ANSWER_BYTES: usize = 16;

/// What clients and the NIC say to each other. Data travel behind their message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A client's command.
    Command {
        /// Its number.
        id: CommandId,
        /// The command.
        command: Command,
    },
    /// Data, to either side.
    Data {
        /// The command.
        id: CommandId,
        /// Their place in it.
        offset: u64,
        /// Number of following bytes.
        bytes: u32,
    },
    /// The client may send.
    Grant {
        /// For which command.
        id: CommandId,
        /// From here.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// A command has ended.
    Answer {
        /// The identifier.
        id: CommandId,
        /// The result.
        outcome: Outcome,
    },
}

/// Reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It ends too early.
    #[error("a message of {got} bytes ends before its {needed}")]
    Short {
        /// The actual length.
        got: usize,
        /// What there has to be.
        needed: usize,
    },
    /// Another version.
    #[error("version {0} of the messages is not known, 1 is")]
    Version(u8),
    /// A field says what it cannot.
    #[error("{field} = {got} is not allowed")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
    /// The message was corrupted in transit.
    #[error("the checksum is {got:#010x}, and {expected:#010x} was sent")]
    Checksum {
        /// Of what came.
        got: u32,
        /// What the message says.
        expected: u32,
    },
}

impl Message {
    /// Appends the message, without the data of [`Message::Data`].
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let (kind, id, offset, length, body) = match self {
            Message::Command { id, command } => (1, id, 0, 0, capsule(command)),
            Message::Data { id, offset, bytes } => (2, id, *offset, *bytes, Vec::new()),
            Message::Grant { id, offset, bytes } => (3, id, *offset, *bytes, vec![0; ANSWER_BYTES]),
            Message::Answer { id, outcome } => (4, id, 0, 0, answer(outcome)),
        };
        let length = if matches!(kind, 1 | 4) { body.len() as u32 } else { length };
        let start = bytes.len();
        bytes.extend([VERSION, kind]);
        bytes.extend(id.client.0.to_le_bytes());
        bytes.extend(id.number.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0, 0]);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[start..]), &body);
        bytes.extend(sum.to_le_bytes());
        bytes.extend(body);
    }

    /// Parses a message, and ignores bytes after it, such as data.
    ///
    /// # Errors
    /// If the bytes are no valid message.
    pub fn decode(bytes: &[u8]) -> Result<Message, MessageError> {
        let mut reader = Reader { bytes };
        let [version, kind] = [reader.u8()?, reader.u8()?];
        let id = CommandId { client: ClientId(reader.u16()?), number: reader.u32()? };
        let (offset, length, reserved, sum) = (reader.u64()?, reader.u32()?, reader.u16()?, reader.u32()?);
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        if reserved != 0 {
            return Err(field("reserved", reserved));
        }
        let body_bytes = match kind {
            1 | 4 => length as usize,
            2 => 0,
            3 => ANSWER_BYTES,
            _ => return Err(field("kind", kind)),
        };
        let body = reader.take(body_bytes)?;
        let got = crc32c::crc32c_append(crc32c::crc32c(&bytes[..HEADER_BYTES - 4]), body);
        if got != sum {
            return Err(MessageError::Checksum { got, expected: sum });
        }
        let mut body = Reader { bytes: body };
        Ok(match kind {
            1 => Message::Command { id, command: read_command(&mut body)? },
            2 => Message::Data { id, offset, bytes: length },
            3 => Message::Grant { id, offset, bytes: length },
            _ => Message::Answer { id, outcome: read_outcome(&mut body)? },
        })
    }

    /// Bytes of the body, data left out.
    pub fn body_bytes(&self) -> usize {
        match self {
            Message::Command { command, .. } => capsule(command).len(),
            Message::Data { .. } => 0,
            Message::Grant { .. } => ANSWER_BYTES,
            Message::Answer { outcome, .. } => answer(outcome).len(),
        }
    }
}

fn field(field: &'static str, got: impl Into<u64>) -> MessageError {
    MessageError::Field { field, got: got.into() }
}

fn padded(mut body: Vec<u8>, least: usize) -> Vec<u8> {
    body.resize(body.len().max(least), 0);
    body
}

fn put_place(place: &Extent, body: &mut Vec<u8>) {
    body.extend(place.device.0.to_le_bytes());
    body.extend(place.address.to_le_bytes());
}

/// Opcode, number of targets, source, length, targets.
fn capsule(command: &Command) -> Vec<u8> {
    let nowhere = Extent { device: DeviceId(0), address: 0 };
    let (opcode, source, length, targets) = match command {
        Command::Read { from, bytes } => (1, *from, *bytes, Vec::new()),
        Command::Write { to, bytes } => (2, nowhere, *bytes, vec![*to]),
        Command::Copy { from, to, bytes } => (3, *from, *bytes, vec![*to]),
        Command::MultiCast { from, to, bytes } => (4, *from, *bytes, to.clone()),
        Command::AddWrite { device, first, second } => {
            let at = |address: &u64| Extent { device: *device, address: *address };
            (5, at(first), 0, vec![at(second)])
        }
    };
    let mut body = vec![opcode, targets.len().min(NAMED_MAX) as u8];
    put_place(&source, &mut body);
    body.extend(length.to_le_bytes());
    targets.iter().take(NAMED_MAX).for_each(|target| put_place(target, &mut body));
    padded(body, CAPSULE_BYTES)
}

fn read_command(body: &mut Reader<'_>) -> Result<Command, MessageError> {
    let [opcode, count] = [body.u8()?, body.u8()?];
    let (from, bytes) = (body.place()?, body.u64()?);
    let mut targets = Vec::with_capacity(count.into());
    for _ in 0..count {
        targets.push(body.place()?);
    }
    let one = |targets: &[Extent]| match targets {
        [target] => Ok(*target),
        _ => Err(field("targets", count)),
    };
    Ok(match opcode {
        1 if count == 0 => Command::Read { from, bytes },
        2 => Command::Write { to: one(&targets)?, bytes },
        3 => Command::Copy { from, to: one(&targets)?, bytes },
        4 => Command::MultiCast { from, to: targets, bytes },
        5 if one(&targets)?.device != from.device => return Err(field("device", targets[0].device.0)),
        5 => Command::AddWrite { device: from.device, first: from.address, second: one(&targets)?.address },
        1 => return Err(field("targets", count)),
        _ => return Err(field("opcode", opcode)),
    })
}

/// Outcome, and for a refusal its kind and its numbers.
fn answer(outcome: &Outcome) -> Vec<u8> {
    let mut body = Vec::new();
    match outcome {
        Outcome::Done => body.push(0),
        Outcome::SourceFailed => body.push(1),
        Outcome::TargetsFailed(devices) => {
            body.extend([2, devices.len().min(NAMED_MAX) as u8]);
            devices.iter().take(NAMED_MAX).for_each(|device| body.extend(device.0.to_le_bytes()));
        }
        Outcome::Refused(refusal) => {
            let (kind, device, numbers) = parts(refusal);
            body.extend([3, kind]);
            body.extend(device.0.to_le_bytes());
            numbers.into_iter().for_each(|number| body.extend(number.to_le_bytes()));
        }
    }
    padded(body, ANSWER_BYTES)
}

fn parts(refusal: &Refusal) -> (u8, DeviceId, [u64; 3]) {
    let none = DeviceId(0);
    match *refusal {
        Refusal::NoDevice { device } => (1, device, [0; 3]),
        Refusal::Gone { device } => (2, device, [0; 3]),
        Refusal::Unaligned { address, bytes, unit } => (3, none, [address, bytes, unit]),
        Refusal::Range { device, address, bytes, capacity } => (4, device, [address, bytes, capacity]),
        Refusal::Overlap { device } => (5, device, [0; 3]),
        Refusal::Targets { got, max } => (6, none, [got as u64, max as u64, 0]),
        Refusal::Busy { max } => (7, none, [max as u64, 0, 0]),
    }
}

fn read_outcome(body: &mut Reader<'_>) -> Result<Outcome, MessageError> {
    Ok(match body.u8()? {
        0 => Outcome::Done,
        1 => Outcome::SourceFailed,
        2 => {
            let count = body.u8()?;
            let devices = (0..count).map(|_| body.u16().map(DeviceId)).collect::<Result<_, _>>()?;
            Outcome::TargetsFailed(devices)
        }
        3 => Outcome::Refused(read_refusal(body)?),
        other => return Err(field("outcome", other)),
    })
}

fn read_refusal(body: &mut Reader<'_>) -> Result<Refusal, MessageError> {
    let kind = body.u8()?;
    let device = DeviceId(body.u16()?);
    let [one, two, three] = [body.u64()?, body.u64()?, body.u64()?];
    Ok(match kind {
        1 => Refusal::NoDevice { device },
        2 => Refusal::Gone { device },
        3 => Refusal::Unaligned { address: one, bytes: two, unit: three },
        4 => Refusal::Range { device, address: one, bytes: two, capacity: three },
        5 => Refusal::Overlap { device },
        6 => Refusal::Targets { got: one as usize, max: two as usize },
        7 => Refusal::Busy { max: one as usize },
        other => return Err(field("refusal", other)),
    })
}

/// What is left to read.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], MessageError> {
        let short = MessageError::Short { got: self.bytes.len(), needed: count };
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(short)?;
        self.bytes = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
    fn u8(&mut self) -> Result<u8, MessageError> {
        self.array().map(|[byte]| byte)
    }
    fn u16(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, MessageError> {
        self.array().map(u64::from_le_bytes)
    }
    fn place(&mut self) -> Result<Extent, MessageError> {
        Ok(Extent { device: DeviceId(self.u16()?), address: self.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = Extent> {
        (any::<u16>(), any::<u64>()).prop_map(|(device, address)| Extent { device: DeviceId(device), address })
    }

    fn command() -> impl Strategy<Value = Command> {
        let many = prop::collection::vec(place(), 0..20);
        prop_oneof![
            (place(), any::<u64>()).prop_map(|(from, bytes)| Command::Read { from, bytes }),
            (place(), any::<u64>()).prop_map(|(to, bytes)| Command::Write { to, bytes }),
            (place(), place(), any::<u64>()).prop_map(|(from, to, bytes)| Command::Copy { from, to, bytes }),
            (place(), many, any::<u64>()).prop_map(|(from, to, bytes)| Command::MultiCast { from, to, bytes }),
            (any::<u16>(), any::<u64>(), any::<u64>()).prop_map(|(device, first, second)| Command::AddWrite {
                device: DeviceId(device),
                first,
                second
            }),
        ]
    }

    fn refusal() -> impl Strategy<Value = Refusal> {
        let device = any::<u16>().prop_map(DeviceId);
        (0u8..7, device, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
            |(kind, device, one, two, three)| match kind {
                0 => Refusal::NoDevice { device },
                1 => Refusal::Gone { device },
                2 => Refusal::Unaligned { address: one, bytes: two, unit: three },
                3 => Refusal::Range { device, address: one, bytes: two, capacity: three },
                4 => Refusal::Overlap { device },
                5 => Refusal::Targets { got: one as usize, max: two as usize },
                _ => Refusal::Busy { max: one as usize },
            },
        )
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Done),
            Just(Outcome::SourceFailed),
            prop::collection::vec(any::<u16>().prop_map(DeviceId), 0..20).prop_map(Outcome::TargetsFailed),
            refusal().prop_map(Outcome::Refused),
        ]
    }

    fn message() -> impl Strategy<Value = Message> {
        let id =
            (any::<u16>(), any::<u32>()).prop_map(|(client, number)| CommandId { client: ClientId(client), number });
        prop_oneof![
            (id.clone(), command()).prop_map(|(id, command)| Message::Command { id, command }),
            (id.clone(), any::<u64>(), any::<u32>()).prop_map(|(id, offset, bytes)| Message::Data {
                id,
                offset,
                bytes
            }),
            (id.clone(), any::<u64>(), any::<u32>()).prop_map(|(id, offset, bytes)| Message::Grant {
                id,
                offset,
                bytes
            }),
            (id, outcome()).prop_map(|(id, outcome)| Message::Answer { id, outcome }),
        ]
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(message in message()) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), HEADER_BYTES + message.body_bytes());
            bytes.extend([7; 9]);
            prop_assert_eq!(Message::decode(&bytes), Ok(message));
        }

        #[test]
        fn a_message_that_is_cut_or_changed_is_an_error(message in message(), place: usize, flip in 1u8..=255) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let place = place % bytes.len();
            prop_assert!(Message::decode(&bytes[..place]).is_err());
            bytes[place] ^= flip;
            prop_assert!(Message::decode(&bytes).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::decode(&bytes);
        }
    }

    #[test]
    fn usual_commands_take_a_capsule_and_an_answer_sixteen_bytes() {
        let at = |device: u16| Extent { device: DeviceId(device), address: 4_096 };
        let command = |count: u16| Message::Command {
            id: CommandId::default(),
            command: Command::MultiCast { from: at(0), to: (1..=count).map(at).collect(), bytes: 4_096 },
        };
        assert_eq!([4, 5].map(|count| command(count).body_bytes()), [64, 70]);
        let answer = Message::Answer { id: CommandId::default(), outcome: Outcome::Done };
        assert_eq!(answer.body_bytes(), 16);
    }
}
