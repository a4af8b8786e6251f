//! The NIC's NVMe logic (paper, section 2) as one program.
//!
//! Every command but add_write is a *stream*: a source, some targets, a length. A stream is cut
//! into *pieces*, each at most the length of one NVMe command. The engine requests a piece when the
//! FIFO of every target has room for all of it, and forwards its data as they arrive. Devices and
//! clients are both *ends*. The engine requests a piece from a device by a read in its queue pair,
//! and from a client by a grant. It delivers a piece to a device by a write that fetches, and to a
//! client by packets.
//!
//! Invariants: reserved and present bytes never exceed a FIFO's bound; each command ends once; a
//! slot is free again only after its device has completed it or is removed.

mod adds;
mod port;
mod streams;

use crate::fifo::Credits;
use crate::locks::Locks;
use crate::results::{Known, Results};
use crate::ring::Ring;
use crate::slots::Slots;
use crate::{ClientId, Command, CommandId, DeviceId, DeviceOperation, Extent, Geometry, Outcome, Payload, Refusal};
use adds::Adding;
use base::{Program, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use streams::{Piece, Stream};

/// Configuration of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The devices below it.
    pub devices: Vec<Geometry>,
    /// Commands in a device's queue pair at once.
    pub queue_depth: u16,
    /// Most bytes of one NVMe command; a multiple of every device's block.
    pub piece: u32,
    /// Maximum bytes in the FIFO of a pair, data in flight included; at least a piece.
    pub fifo: u64,
    /// Most payload of a packet to a client.
    pub packet: u32,
    /// Most commands at once.
    pub commands_max: usize,
    /// Most targets of a MultiCast.
    pub targets_max: usize,
    /// Commands of a client whose answers are kept; at least as many as it has outstanding.
    pub remembered: usize,
    /// How long a client may take to send what it was granted, before it is granted again.
    pub grant_timeout: Span,
    /// Grants of one piece before its client counts as gone.
    pub grants_max: u32,
}

/// Reason why an engine cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Slots, packets or commands of size nothing.
    #[error("{what} is 0")]
    Zero {
        /// Name of the parameter.
        what: &'static str,
    },
    /// A device's block is no power of two from 8, or does not divide a piece.
    #[error(
        "device {device}: blocks of {block} bytes; a power of two from 8 that divides a piece of {piece} is needed"
    )]
    Block {
        /// The device.
        device: usize,
        /// Its block.
        block: u64,
        /// A piece.
        piece: u32,
    },
    /// A FIFO smaller than a piece would block forever.
    #[error("a FIFO of {fifo} bytes does not hold a piece of {piece}")]
    Fifo {
        /// The bound.
        fifo: u64,
        /// A piece.
        piece: u32,
    },
}

/// Inputs of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineIn<P> {
    /// A client's command has come.
    Command {
        /// The identifier.
        id: CommandId,
        /// The command.
        command: Command,
    },
    /// A client's data have come, for a grant.
    Data {
        /// The command.
        id: CommandId,
        /// Their place in the command.
        offset: u64,
        /// They.
        data: P,
    },
    /// A device has written data of a read to the NIC, in order.
    Arrived {
        /// The device.
        device: DeviceId,
        /// The read.
        slot: u16,
        /// They.
        data: P,
    },
    /// A device requests the next bytes of a write.
    Fetch {
        /// The device.
        device: DeviceId,
        /// The write.
        slot: u16,
        /// Length in bytes.
        bytes: u32,
    },
    /// A device has posted a completion.
    Completed {
        /// The device.
        device: DeviceId,
        /// The command.
        slot: u16,
        /// Whether its status is success.
        is_success: bool,
    },
    /// A device was removed.
    Gone(DeviceId),
    /// A device is there again, with an empty queue pair.
    Back(DeviceId),
    /// A device is there: a new one, whose number is the next, or a known one whose capacity has
    /// changed.
    Present {
        /// The device.
        device: DeviceId,
        /// Size and layout of the device.
        geometry: Geometry,
    },
    /// The port to the fabric can take a packet of data again.
    PortFree,
}

/// Decisions of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineOut<P> {
    /// A command is in its slot and the doorbell is rung.
    Submit {
        /// Which client's command it serves.
        id: CommandId,
        /// The device.
        device: DeviceId,
        /// Its command identifier.
        slot: u16,
        /// The operation.
        operation: DeviceOperation,
        /// First byte on the device.
        address: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// Data for a device's fetch.
    Supply {
        /// The device.
        device: DeviceId,
        /// The write.
        slot: u16,
        /// They.
        data: P,
    },
    /// A device's fetches, those that wait and those that will come, end in an error: the data will
    /// not come.
    Abort {
        /// The device.
        device: DeviceId,
        /// The write.
        slot: u16,
    },
    /// A packet of data to a client. The engine sends the next when the port is free.
    Send {
        /// The command.
        id: CommandId,
        /// Their place in the command.
        offset: u64,
        /// They.
        data: P,
    },
    /// A client may send this part of its data.
    Grant {
        /// The command.
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

/// What an engine has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Commands that have ended, refused ones included.
    pub ended: u64,
    /// Commands refused.
    pub refused: u64,
    /// Doorbells.
    pub doorbells: u64,
    /// Commands that came again.
    pub repeated: u64,
    /// Data and completions that belong to no command, and completions beyond what a device was
    /// requested to do.
    pub strays: u64,
    /// Grants that were given again.
    pub granted_again: u64,
    /// Bytes of data on the NIC now.
    pub held: u64,
    /// The most there ever were.
    pub held_highest: u64,
}

/// One end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Device(DeviceId),
    Client(ClientId),
}

/// Use of a slot of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reads a piece.
    Read(u32),
    /// Writes a piece for the target of that number.
    Write(u32, usize),
    /// Reads the first or second block of an add_write.
    AddRead(u32, usize),
    /// Writes the sum.
    AddWrite(u32),
}

/// One device and what waits for it.
#[derive(Clone, Debug)]
struct Device {
    geometry: Geometry,
    is_gone: bool,
    slots: Slots<Use>,
    /// Reads and writes of add_writes.
    adds: VecDeque<Use>,
    /// Pieces that wait for a slot to be written, by pair.
    writes: Ring<(u32, usize)>,
    /// Streams that read from it, by pair.
    reads: Ring<u32>,
}

impl Device {
    fn new(geometry: Geometry, queue_depth: u16) -> Device {
        Device {
            geometry,
            is_gone: false,
            slots: Slots::new(queue_depth),
            adds: VecDeque::new(),
            writes: Ring::default(),
            reads: Ring::default(),
        }
    }
}

/// A table whose rows keep their number as long as they live.
pub(crate) type Table<T> = slab::Slab<T>;

/// The NIC's logic.
#[derive(Clone, Debug)]
pub struct Engine<P> {
    config: EngineConfig,
    devices: Vec<Device>,
    /// Streams that take from clients, by client and pair.
    clients: BTreeMap<ClientId, Ring<u32>>,
    pairs: BTreeMap<(End, End), u32>,
    fifos: Vec<Credits>,
    streams: Table<Stream>,
    pieces: Table<Piece<P>>,
    adds: Table<Adding<P>>,
    locks: Locks,
    /// Pieces that go to clients, by pair.
    outgoing: Ring<(u32, usize)>,
    port_is_busy: bool,
    /// When a granted piece has to be there.
    deadlines: BTreeSet<(Time, u32)>,
    results: Results,
    running: BTreeMap<CommandId, u32>,
    counters: EngineCounters,
}

impl<P: Payload> Engine<P> {
    /// An engine with nothing to do.
    ///
    /// # Errors
    /// When its numbers do not fit each other.
    pub fn new(config: EngineConfig) -> Result<Engine<P>, EngineError> {
        config.check()?;
        let devices = config.devices.iter().map(|geometry| Device::new(*geometry, config.queue_depth));
        Ok(Engine {
            devices: devices.collect(),
            clients: BTreeMap::new(),
            pairs: BTreeMap::new(),
            fifos: Vec::new(),
            streams: Table::new(),
            pieces: Table::new(),
            adds: Table::new(),
            locks: Locks::default(),
            outgoing: Ring::default(),
            port_is_busy: false,
            deadlines: BTreeSet::new(),
            results: Results::new(config.remembered),
            running: BTreeMap::new(),
            counters: EngineCounters::default(),
            config,
        })
    }

    /// What it has seen.
    pub fn counters(&self) -> EngineCounters {
        self.counters
    }

    /// The fullest that any FIFO ever was, in bytes; never above [`EngineConfig::fifo`].
    pub fn fifo_highest(&self) -> u64 {
        self.fifos.iter().map(Credits::highest).max().unwrap_or(0)
    }

    /// Takes the most bytes on the NIC and the fullest FIFO from now on.
    pub fn restart_highest(&mut self) {
        self.counters.held_highest = self.counters.held;
        self.fifos.iter_mut().for_each(Credits::restart_highest);
    }

    /// Commands that have begun and not ended.
    pub fn running(&self) -> usize {
        self.streams.len() + self.adds.len()
    }

    /// Returns whether nothing is left of any command: no piece, no slot, no byte of a FIFO.
    pub fn is_idle(&self) -> bool {
        let slots = self.devices.iter().all(|device| device.slots.taken().is_empty());
        slots && self.running() == 0 && self.pieces.is_empty() && self.fifos.iter().all(Credits::is_idle)
    }

    fn geometry(&self, device: DeviceId) -> Result<Geometry, Refusal> {
        match self.devices.get(device.0 as usize) {
            None => Err(Refusal::NoDevice { device }),
            Some(known) if known.is_gone => Err(Refusal::Gone { device }),
            Some(known) => Ok(known.geometry),
        }
    }

    fn device(&mut self, device: DeviceId) -> &mut Device {
        &mut self.devices[device.0 as usize]
    }

    /// The FIFO of a pair.
    fn pair(&mut self, source: End, target: End) -> u32 {
        let (fifos, bound) = (&mut self.fifos, self.config.fifo);
        *self.pairs.entry((source, target)).or_insert_with(|| {
            fifos.push(Credits::new(bound));
            fifos.len() as u32 - 1
        })
    }

    fn command(&mut self, now: Time, id: CommandId, command: Command, out: &mut Vec<EngineOut<P>>) {
        match self.results.know(id) {
            Known::New => {}
            Known::Ended(outcome) => {
                self.counters.repeated += 1;
                return out.push(EngineOut::Answer { id, outcome });
            }
            Known::Running | Known::Forgotten => return self.counters.repeated += 1,
        }
        self.results.begin(id);
        let checked = command.check(|device| self.geometry(device), self.config.targets_max);
        let max = self.config.commands_max;
        let room = if self.running() < max { Ok(()) } else { Err(Refusal::Busy { max }) };
        if let Err(refusal) = checked.and(room) {
            self.counters.refused += 1;
            return self.answer(id, Outcome::Refused(refusal), out);
        }
        self.begin(id, command);
        self.pump(now, out);
    }

    fn begin(&mut self, id: CommandId, command: Command) {
        let client = Extent { device: DeviceId(0), address: 0 };
        let (source, targets, bytes) = match command {
            Command::Read { from, bytes } => (device_end(from), vec![(End::Client(id.client), client.address)], bytes),
            Command::Write { to, bytes } => ((End::Client(id.client), client.address), vec![device_end(to)], bytes),
            Command::Copy { from, to, bytes } => (device_end(from), vec![device_end(to)], bytes),
            Command::MultiCast { from, to, bytes } => {
                (device_end(from), to.into_iter().map(device_end).collect(), bytes)
            }
            Command::AddWrite { device, first, second } => return self.begin_add(id, device, [first, second]),
        };
        self.begin_stream(id, source, &targets, bytes);
    }

    fn answer(&mut self, id: CommandId, outcome: Outcome, out: &mut Vec<EngineOut<P>>) {
        self.counters.ended += 1;
        self.results.end(id, &outcome);
        out.push(EngineOut::Answer { id, outcome });
    }

    /// Puts everything to work that can be: slots first for add_writes, then for pieces that hold
    /// memory, then for new reads.
    fn pump(&mut self, now: Time, out: &mut Vec<EngineOut<P>>) {
        for device in (0..self.devices.len() as u16).map(DeviceId) {
            self.submit_adds(device, out);
            self.submit_writes(device, out);
            self.submit_reads(device, out);
        }
        self.grant(now, out);
        self.send(out);
    }

    /// Takes a slot for a command and rings the doorbell, if there is one.
    fn submit(
        &mut self,
        id: CommandId,
        place: Extent,
        operation: DeviceOperation,
        bytes: u32,
        what: Use,
        out: &mut Vec<EngineOut<P>>,
    ) -> Option<u16> {
        let Extent { device, address } = place;
        let slot = self.device(device).slots.take(what)?;
        self.counters.doorbells += 1;
        out.push(EngineOut::Submit { id, device, slot, operation, address, bytes });
        Some(slot)
    }

    fn use_of(&self, device: DeviceId, slot: u16) -> Option<Use> {
        self.devices.get(device.0 as usize)?.slots.get(slot).copied()
    }

    fn arrived(&mut self, device: DeviceId, slot: u16, data: P, out: &mut Vec<EngineOut<P>>) {
        match self.use_of(device, slot) {
            Some(Use::Read(piece)) => self.fill(piece, data, out),
            Some(Use::AddRead(add, which)) => self.fill_add(add, which, data),
            _ => self.counters.strays += 1,
        }
    }

    fn fetch(&mut self, device: DeviceId, slot: u16, bytes: u32, out: &mut Vec<EngineOut<P>>) {
        match self.use_of(device, slot) {
            Some(Use::Write(piece, target)) => self.want(piece, target, bytes, out),
            Some(Use::AddWrite(add)) => self.supply_add(add, slot, bytes, out),
            _ => self.counters.strays += 1,
        }
    }

    fn completed(&mut self, device: DeviceId, slot: u16, is_success: bool, out: &mut Vec<EngineOut<P>>) {
        let known = self.devices.get_mut(device.0 as usize).and_then(|device| device.slots.release(slot));
        match known {
            Some(Use::Read(piece)) => self.source_completed(piece, is_success, out),
            Some(Use::Write(piece, target)) => self.target_completed(piece, target, is_success, out),
            Some(Use::AddRead(add, which)) => self.add_read_completed(add, which, is_success, out),
            Some(Use::AddWrite(add)) => self.add_write_completed(add, is_success, out),
            None => self.counters.strays += 1,
        }
    }

    /// All that a removed device had to do fails, in the order of its slots and then of its queues.
    fn gone(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        if self.geometry(device).is_err() {
            return self.counters.strays += 1;
        }
        self.device(device).is_gone = true;
        for slot in self.device(device).slots.taken() {
            self.completed(device, slot, false, out);
        }
        self.drop_adds(device, out);
        self.drop_streams(device, out);
    }

    /// Takes a new device, or the new capacity of one; what cannot be is the caller's mistake, and
    /// is not taken.
    fn present(&mut self, device: DeviceId, geometry: Geometry) {
        let is_next = self.devices.len() == usize::from(device.0) && geometry.fits(self.config.piece);
        match self.devices.get_mut(device.0 as usize) {
            Some(known) if known.geometry.block == geometry.block => known.geometry = geometry,
            None if is_next => {
                self.devices.push(Device::new(geometry, self.config.queue_depth));
            }
            _ => self.counters.strays += 1,
        }
    }

    fn back(&mut self, device: DeviceId) {
        match self.devices.get_mut(device.0 as usize) {
            Some(known) if known.is_gone => known.is_gone = false,
            _ => self.counters.strays += 1,
        }
    }
}

fn device_end(place: Extent) -> (End, u64) {
    (End::Device(place.device), place.address)
}

impl EngineConfig {
    fn check(&self) -> Result<(), EngineError> {
        let sizes = [
            ("queue_depth", u64::from(self.queue_depth)),
            ("piece", u64::from(self.piece)),
            ("packet", u64::from(self.packet)),
            ("commands_max", self.commands_max as u64),
            ("targets_max", self.targets_max as u64),
            ("grant_timeout", self.grant_timeout.as_ps()),
            ("grants_max", u64::from(self.grants_max)),
        ];
        if let Some((what, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(EngineError::Zero { what });
        }
        for (device, geometry) in self.devices.iter().enumerate() {
            if !geometry.fits(self.piece) {
                return Err(EngineError::Block { device, block: geometry.block.count(), piece: self.piece });
            }
        }
        if self.fifo < u64::from(self.piece) {
            return Err(EngineError::Fifo { fifo: self.fifo, piece: self.piece });
        }
        Ok(())
    }
}

impl<P: Payload> Program for Engine<P> {
    type In = EngineIn<P>;
    type Out = EngineOut<P>;

    fn on(&mut self, now: Time, input: EngineIn<P>, out: &mut Vec<EngineOut<P>>) {
        match input {
            EngineIn::Command { id, command } => return self.command(now, id, command, out),
            EngineIn::Data { id, offset, data } => self.data(id, offset, data, out),
            EngineIn::Arrived { device, slot, data } => self.arrived(device, slot, data, out),
            EngineIn::Fetch { device, slot, bytes } => self.fetch(device, slot, bytes, out),
            EngineIn::Completed { device, slot, is_success } => self.completed(device, slot, is_success, out),
            EngineIn::Gone(device) => self.gone(device, out),
            EngineIn::Back(device) => self.back(device),
            EngineIn::Present { device, geometry } => self.present(device, geometry),
            EngineIn::PortFree => self.port_is_busy = false,
        }
        self.pump(now, out);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<EngineOut<P>>) {
        while let Some((at, piece)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, piece));
            self.grant_again(now, piece, out);
        }
        self.pump(now, out);
    }
}
