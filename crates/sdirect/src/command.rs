//! Commands of clients, checks that reject them before anything is issued, and their results.

use base::Bytes;

/// A device below the NIC, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// A client, over the fabric or (a driver on the NIC's own host) over PCIe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u16);

/// A client's command. Clients count their commands; a number comes again only when the client
/// repeats the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The requesting client.
    pub client: ClientId,
    /// The client's count, from 0.
    pub number: u32,
}

/// A place on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The device.
    pub device: DeviceId,
    /// First byte.
    pub address: u64,
}

/// A command of a client. Lengths and addresses are in bytes, and whole blocks except in
/// [`Command::AddWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Data to the client.
    Read {
        /// The source.
        from: Extent,
        /// Length in bytes.
        bytes: u64,
    },
    /// Data from the client.
    Write {
        /// The destination.
        to: Extent,
        /// Length in bytes.
        bytes: u64,
    },
    /// `Copy(ssd1_address1, ssd2_address2, length)` of the paper, section 2.
    Copy {
        /// The source.
        from: Extent,
        /// The destination.
        to: Extent,
        /// Length in bytes.
        bytes: u64,
    },
    /// `MultiCast(ssd1_address1, ssd2_address2, ..., length)`.
    MultiCast {
        /// The source.
        from: Extent,
        /// The destinations, all different.
        to: Vec<Extent>,
        /// Length in bytes.
        bytes: u64,
    },
    /// `add_write(ssd1_address1, ssd1_address2)`: the 64-bit little-endian words at both addresses
    /// are added, wrapping, and the sum is written to the second.
    AddWrite {
        /// The device.
        device: DeviceId,
        /// The first word, at a multiple of 8.
        first: u64,
        /// The second word and the place of the sum, at a multiple of 8.
        second: u64,
    },
}

/// An operation that a device executes through its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOperation {
    /// Data to the NIC.
    Read,
    /// Data from the NIC.
    Write,
}

/// What the engine knows of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// All of it.
    pub capacity: Bytes,
    /// A logical block; a power of two, at least 8.
    pub block: Bytes,
}

impl Geometry {
    /// Returns whether its blocks are such that pieces of `piece` bytes are whole ones.
    pub(crate) fn fits(self, piece: u32) -> bool {
        let block = self.block.count();
        block.is_power_of_two() && block >= 8 && u64::from(piece).is_multiple_of(block)
    }
}

/// Reason why a command is not even begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No device has this number.
    #[error("there is no device {}", device.0)]
    NoDevice {
        /// The number.
        device: DeviceId,
    },
    /// The device was removed.
    #[error("device {} is gone", device.0)]
    Gone {
        /// The device.
        device: DeviceId,
    },
    /// Not a whole number of blocks, or an odd place of a word.
    #[error("address {address} or length {bytes} is not a multiple of {unit}")]
    Unaligned {
        /// The address.
        address: u64,
        /// The length.
        bytes: u64,
        /// What it has to be a multiple of.
        unit: u64,
    },
    /// Beyond the device's end, or of no length.
    #[error("{bytes} bytes from {address} are not within the {capacity} bytes of device {}", device.0)]
    Range {
        /// The device.
        device: DeviceId,
        /// The first byte.
        address: u64,
        /// The length.
        bytes: u64,
        /// Where the device ends.
        capacity: u64,
    },
    /// Source and target, or two targets, share a byte.
    #[error("two ranges of the command overlap on device {}", device.0)]
    Overlap {
        /// On which device.
        device: DeviceId,
    },
    /// A MultiCast to nobody, or to more than the engine takes.
    #[error("{got} targets; allowed are 1 to {max}")]
    Targets {
        /// The actual number.
        got: usize,
        /// The most.
        max: usize,
    },
    /// The engine's command table is full.
    #[error("the engine holds {max} commands already")]
    Busy {
        /// The most.
        max: usize,
    },
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// Not begun.
    Refused(Refusal),
    /// What was to be read could not be, or not all of it. Targets may hold a part.
    SourceFailed,
    /// These targets do not hold all of it, the others do. In the order of the command.
    TargetsFailed(Vec<DeviceId>),
}

/// A range of a device.
#[derive(Clone, Copy)]
struct Range {
    place: Extent,
    bytes: u64,
}

impl Range {
    fn overlaps(&self, other: &Range) -> bool {
        let (one, two) = (self.place, other.place);
        one.device == two.device && one.address < two.address + other.bytes && two.address < one.address + self.bytes
    }
}

impl Command {
    /// Whether the engine can begin it.
    pub(crate) fn check(
        &self,
        geometry: impl Fn(DeviceId) -> Result<Geometry, Refusal>,
        targets_max: usize,
    ) -> Result<(), Refusal> {
        if let Command::AddWrite { device, first, second } = self {
            let known = geometry(*device)?;
            return [first, second].into_iter().try_for_each(|address| check_word(*device, *address, known));
        }
        if let Command::MultiCast { to, .. } = self
            && (to.is_empty() || to.len() > targets_max)
        {
            return Err(Refusal::Targets { got: to.len(), max: targets_max });
        }
        let ranges = self.ranges();
        ranges.iter().try_for_each(|range| check_range(*range, geometry(range.place.device)?))?;
        check_apart(&ranges)
    }

    fn ranges(&self) -> Vec<Range> {
        let (places, bytes) = match self {
            Command::Read { from: place, bytes } | Command::Write { to: place, bytes } => (vec![*place], *bytes),
            Command::Copy { from, to, bytes } => (vec![*from, *to], *bytes),
            Command::MultiCast { from, to, bytes } => {
                (std::iter::once(*from).chain(to.iter().copied()).collect(), *bytes)
            }
            Command::AddWrite { .. } => (Vec::new(), 0),
        };
        places.into_iter().map(|place| Range { place, bytes }).collect()
    }
}

fn check_range(range: Range, known: Geometry) -> Result<(), Refusal> {
    let Range { place: Extent { device, address }, bytes } = range;
    let (capacity, unit) = (known.capacity.count(), known.block.count());
    if bytes == 0 || address > capacity || bytes > capacity - address {
        return Err(Refusal::Range { device, address, bytes, capacity });
    }
    if !address.is_multiple_of(unit) || !bytes.is_multiple_of(unit) {
        return Err(Refusal::Unaligned { address, bytes, unit });
    }
    Ok(())
}

const WORD: u64 = 8;

fn check_word(device: DeviceId, address: u64, known: Geometry) -> Result<(), Refusal> {
    let capacity = known.capacity.count();
    if address > capacity || WORD > capacity - address {
        return Err(Refusal::Range { device, address, bytes: WORD, capacity });
    }
    if !address.is_multiple_of(WORD) {
        return Err(Refusal::Unaligned { address, bytes: WORD, unit: WORD });
    }
    Ok(())
}

fn check_apart(ranges: &[Range]) -> Result<(), Refusal> {
    for (place, range) in ranges.iter().enumerate() {
        if let Some(other) = ranges[..place].iter().find(|other| other.overlaps(range)) {
            return Err(Refusal::Overlap { device: other.place.device });
        }
    }
    Ok(())
}
