//! S-Direct's commands: the engine of [`sdirect`], which the simulator plays too, over backends in
//! place of flash drives.
//!
//! A namespace is a device. What the engine submits to a device's queue pair becomes one request to
//! its backend. A read returns all its data at once; a write starts when all its data have been
//! fetched. The write of an add_write is conditional: it succeeds only if its block is unchanged.
//! The engine orders add_writes among themselves, but not against plain writes. A command that
//! loses this race is given to the engine again.

use crate::machine::Machine;
use base::{Bytes, Program, Span, Time};
use nvme::target::{
    BackendId, BlockRange, EngineDevice, EngineOperation, IoOperation, IoRequest, IoResult, IoStatus, IoTag, Member,
};
use nvme::vendor::TARGETS_MAX;
use sdirect::{
    ClientId, Command, CommandId, DeviceId, DeviceOperation, Engine, EngineConfig, EngineError, EngineIn, EngineOut,
    Extent, Geometry, Outcome, Payload, Refusal,
};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of one request to a backend; a multiple of every block. With [`QUEUE_DEPTH`] it bounds
/// what a namespace's commands hold: 1 MiB. Our own.
const PIECE: u32 = 64 << 10;
/// Requests to a backend at once: our own.
const QUEUE_DEPTH: u16 = 16;
/// Bytes in transfer between two namespaces: our own, so that reading continues while pieces are
/// written.
const FIFO: u64 = 4 * PIECE as u64;
/// Commands at once; more are refused, and hosts may retry. Our own.
const COMMANDS_MAX: usize = 128;
/// Attempts of an add_write whose block changes meanwhile: our own. Then the host may retry.
const ATTEMPTS_MAX: u32 = 16;
/// Tags of the engine's own requests. Connections and their queues keep the target's slots below.
const OWN: u64 = 1 << 31;
/// Devices that fit into such a tag.
const DEVICES_MAX: usize = 1 << 15;

/// A command that a host waits for.
struct Running {
    /// The loop of the host, and the tag of its target's request.
    asker: (Member, IoTag),
    controller: u16,
    command: Command,
    /// The first failure of a backend.
    failure: Option<IoStatus>,
    /// The block of an add_write's sum, as it was read.
    block: Vec<u8>,
    sum: u64,
    attempts: u32,
}

/// The operation in a slot of a device.
struct Doing {
    id: CommandId,
    operation: DeviceOperation,
    address: u64,
    bytes: u32,
    /// The data fetched for a write.
    data: Vec<u8>,
}

/// An output of the engine.
enum Order {
    Io(IoRequest),
    Answer((Member, IoTag), IoResult),
}

/// What goes between the engine and another loop.
pub(crate) enum Errand {
    /// A command for the engine of the first loop.
    Asked(IoRequest),
    /// The answer to a loop's command.
    Answered(Member, IoTag, IoResult),
}

/// The engine and its outstanding operations. The first loop has the engine of all.
pub(crate) struct EngineRole {
    own: Member,
    errands: VecDeque<Errand>,
    engine: Engine<Vec<u8>>,
    /// By number: the backend of a device, as the engine knows it.
    devices: Vec<EngineDevice>,
    numbers: BTreeMap<BackendId, DeviceId>,
    running: BTreeMap<CommandId, Running>,
    doing: BTreeMap<(DeviceId, u16), Doing>,
    orders: VecDeque<Order>,
    /// add_writes to start again.
    again: Vec<Running>,
    /// Commands since the start.
    count: u64,
    /// Scratch space for decisions.
    decisions: Vec<EngineOut<Vec<u8>>>,
}

impl EngineRole {
    /// An engine without devices, of this loop: commands bring the devices that they name.
    ///
    /// # Errors
    /// When the limits above contradict each other.
    pub(crate) fn new(own: Member) -> Result<EngineRole, EngineError> {
        let config = EngineConfig {
            devices: Vec::new(),
            queue_depth: QUEUE_DEPTH,
            piece: PIECE,
            fifo: FIFO,
            // Data of clients never pass through: hosts read and write by themselves.
            packet: PIECE,
            grant_timeout: Span::secs(1),
            grants_max: 1,
            commands_max: COMMANDS_MAX,
            targets_max: TARGETS_MAX,
            remembered: COMMANDS_MAX,
        };
        Ok(EngineRole {
            own,
            errands: VecDeque::new(),
            engine: Engine::new(config)?,
            devices: Vec::new(),
            numbers: BTreeMap::new(),
            running: BTreeMap::new(),
            doing: BTreeMap::new(),
            orders: VecDeque::new(),
            again: Vec::new(),
            count: 0,
            decisions: Vec::new(),
        })
    }

    /// The next request to a backend: the target's own, or one of the engine for a command of
    /// S-Direct. Passes the engine's answers to the target.
    pub(crate) fn next_io(&mut self, now: Time, target: &mut Machine) -> Option<IoRequest> {
        loop {
            match self.orders.pop_front() {
                Some(Order::Io(request)) => return Some(request),
                Some(Order::Answer((member, tag), result)) => {
                    match member == self.own {
                        true => target.complete(now, tag, result),
                        false => self.errands.push_back(Errand::Answered(member, tag, result)),
                    }
                    continue;
                }
                None => {}
            }
            match target.next_io()? {
                request @ IoRequest { operation: IoOperation::Engine(_), .. } if self.own != Member::FIRST => {
                    self.errands.push_back(Errand::Asked(request));
                }
                IoRequest { tag, controller, operation: IoOperation::Engine(operation), .. } => {
                    self.begin(now, (self.own, tag), controller, &operation);
                }
                request => return Some(request),
            }
        }
    }

    /// Takes the answer of a backend: for the engine if it sent the request, else for the target.
    pub(crate) fn complete(&mut self, now: Time, target: &mut Machine, tag: IoTag, result: IoResult) {
        match self.asked(tag) {
            Some((device, slot, doing)) => self.carried_out(now, device, slot, doing, result),
            None => target.complete(now, tag, result),
        }
    }

    fn asked(&mut self, tag: IoTag) -> Option<(DeviceId, u16, Doing)> {
        let bits = tag.bits();
        let (device, slot) = (DeviceId((bits >> 16) as u16 & (DEVICES_MAX as u16 - 1)), bits as u16);
        let doing = (bits & OWN != 0).then(|| self.doing.remove(&(device, slot)))??;
        Some((device, slot, doing))
    }

    /// What has to go to another loop.
    pub(crate) fn next_errand(&mut self) -> Option<Errand> {
        self.errands.pop_front()
    }

    /// Takes a command of another loop.
    pub(crate) fn take(&mut self, now: Time, member: Member, request: IoRequest) {
        if let IoRequest { tag, controller, operation: IoOperation::Engine(operation), .. } = request {
            self.begin(now, (member, tag), controller, &operation);
        }
    }

    fn begin(&mut self, now: Time, asker: (Member, IoTag), controller: u16, operation: &EngineOperation) {
        match self.command(now, operation) {
            Some(command) => {
                let (block, failure) = (Vec::new(), None);
                self.run(now, Running { asker, controller, command, failure, block, sum: 0, attempts: 0 });
            }
            None => self.orders.push_back(Order::Answer(asker, IoResult::of_engine(IoStatus::Unavailable, 0))),
        }
    }

    fn run(&mut self, now: Time, running: Running) {
        // The engine remembers identifiers, so none is used twice.
        let id = CommandId { client: ClientId((self.count >> 32) as u16), number: self.count as u32 };
        self.count += 1;
        let command = running.command.clone();
        self.running.insert(id, running);
        self.tell(now, EngineIn::Command { id, command });
    }

    /// The command with devices in place of backends; `None` when there are more devices than tags.
    fn command(&mut self, now: Time, operation: &EngineOperation) -> Option<Command> {
        Some(match operation {
            EngineOperation::MultiCast { from, to, bytes } => {
                let from = Extent { device: self.device(now, from.device)?, address: from.address };
                let mut places = Vec::with_capacity(to.len());
                for place in to {
                    places.push(Extent { device: self.device(now, place.device)?, address: place.address });
                }
                Command::MultiCast { from, to: places, bytes: *bytes }
            }
            EngineOperation::AddWrite { device, first, second } => {
                Command::AddWrite { device: self.device(now, *device)?, first: *first, second: *second }
            }
        })
    }

    /// The device of a backend. The engine learns of new devices and of new sizes.
    fn device(&mut self, now: Time, found: EngineDevice) -> Option<DeviceId> {
        let next = DeviceId(u16::try_from(self.devices.len()).ok()?);
        let device = self.numbers.get(&found.backend).copied().unwrap_or(next);
        match self.devices.get_mut(usize::from(device.0)) {
            Some(known) if *known == found => return Some(device),
            Some(known) => *known = found,
            None if usize::from(next.0) == DEVICES_MAX => return None,
            None => {
                self.devices.push(found);
                self.numbers.insert(found.backend, device);
            }
        }
        let block = Bytes::new(1 << found.block_shift);
        let geometry = Geometry { capacity: Bytes::new(found.blocks << found.block_shift), block };
        self.tell(now, EngineIn::Present { device, geometry });
        Some(device)
    }

    /// Passes an input to the engine, and what follows at once from its decisions.
    fn tell(&mut self, now: Time, input: EngineIn<Vec<u8>>) {
        let mut inputs = VecDeque::from([input]);
        let mut decisions = std::mem::take(&mut self.decisions);
        while let Some(input) = inputs.pop_front() {
            self.engine.on(now, input, &mut decisions);
            decisions.drain(..).for_each(|decision| self.decided(decision, &mut inputs));
        }
        self.decisions = decisions;
        while let Some(running) = self.again.pop() {
            self.run(now, running);
        }
    }

    fn decided(&mut self, decision: EngineOut<Vec<u8>>, inputs: &mut VecDeque<EngineIn<Vec<u8>>>) {
        match decision {
            EngineOut::Submit { id, device, slot, operation, address, bytes } => {
                self.doing.insert((device, slot), Doing { id, operation, address, bytes, data: Vec::new() });
                match operation {
                    DeviceOperation::Read => self.request(device, slot),
                    DeviceOperation::Write => inputs.push_back(EngineIn::Fetch { device, slot, bytes }),
                }
            }
            EngineOut::Supply { device, slot, data } => self.supplied(device, slot, data),
            EngineOut::Abort { device, slot } => inputs.extend(self.aborted(device, slot)),
            EngineOut::Answer { id, outcome } => self.ended(id, &outcome),
            // No command of this engine has data of a client.
            EngineOut::Send { .. } | EngineOut::Grant { .. } => {}
        }
    }

    fn supplied(&mut self, device: DeviceId, slot: u16, data: Vec<u8>) {
        let Some(doing) = self.doing.get_mut(&(device, slot)) else { return };
        match doing.data.is_empty() {
            true => doing.data = data,
            false => doing.data.extend_from_slice(&data),
        }
        if doing.data.len() == doing.bytes as usize {
            self.request(device, slot);
        }
    }

    /// Fails a write that will not get its data, unless it is already submitted.
    fn aborted(&mut self, device: DeviceId, slot: u16) -> Option<EngineIn<Vec<u8>>> {
        let doing = self.doing.get(&(device, slot))?;
        if doing.data.len() == doing.bytes as usize {
            return None;
        }
        self.doing.remove(&(device, slot));
        Some(EngineIn::Completed { device, slot, is_success: false })
    }

    /// Submits the operation in a slot to the device's backend.
    fn request(&mut self, device: DeviceId, slot: u16) {
        let EngineDevice { backend, block_shift, .. } = self.devices[usize::from(device.0)];
        let Some(doing) = self.doing.get_mut(&(device, slot)) else { return };
        let Some(running) = self.running.get_mut(&doing.id) else { return };
        let range = BlockRange { start: doing.address >> block_shift, blocks: doing.bytes >> block_shift };
        let operation = match (doing.operation, &running.command) {
            (DeviceOperation::Read, _) => IoOperation::Read { range, buffer: vec![0; doing.bytes as usize] },
            (DeviceOperation::Write, Command::AddWrite { .. }) => {
                let expected = std::mem::take(&mut running.block);
                IoOperation::CompareAndWrite { range, expected, data: doing.data.clone(), is_durable: false }
            }
            (DeviceOperation::Write, _) => IoOperation::Write { range, data: doing.data.clone(), is_durable: false },
        };
        let tag = IoTag::of_bits(OWN | u64::from(device.0) << 16 | u64::from(slot));
        self.orders.push_back(Order::Io(IoRequest { tag, backend, controller: running.controller, operation }));
    }

    /// A backend has completed the operation in a slot.
    fn carried_out(&mut self, now: Time, device: DeviceId, slot: u16, doing: Doing, result: IoResult) {
        let is_success = result.status == IoStatus::Done;
        if let Some(running) = self.running.get_mut(&doing.id) {
            running.observe(&doing, &result);
        }
        if is_success && doing.operation == DeviceOperation::Read {
            self.tell(now, EngineIn::Arrived { device, slot, data: result.buffer });
        }
        self.tell(now, EngineIn::Completed { device, slot, is_success });
    }

    fn ended(&mut self, id: CommandId, outcome: &Outcome) {
        let Some(mut running) = self.running.remove(&id) else { return };
        if running.lost_a_race() && running.attempts < ATTEMPTS_MAX {
            (running.attempts, running.failure) = (running.attempts + 1, None);
            return self.again.push(running);
        }
        self.orders.push_back(Order::Answer(running.asker, running.result(outcome)));
    }
}

impl Running {
    /// Notes the failure of a backend, of which the engine only learns that there is one.
    fn observe(&mut self, doing: &Doing, result: &IoResult) {
        if result.status != IoStatus::Done {
            self.failure.get_or_insert(result.status);
        }
        let Command::AddWrite { second, .. } = self.command else { return };
        let place = second.checked_sub(doing.address).filter(|place| *place < doing.bytes.into());
        match (doing.operation, place) {
            (DeviceOperation::Read, Some(_)) => self.block.clone_from(&result.buffer),
            (DeviceOperation::Write, Some(place)) => self.sum = doing.data.word(place as u32),
            _ => {}
        }
    }

    /// Only conditional writes compare.
    fn lost_a_race(&self) -> bool {
        self.failure == Some(IoStatus::Miscompare)
    }

    /// The status for the host.
    fn result(&self, outcome: &Outcome) -> IoResult {
        let failure = |otherwise| match self.failure {
            Some(IoStatus::Miscompare) => IoStatus::Busy,
            failure => failure.unwrap_or(otherwise),
        };
        match outcome {
            Outcome::Done => IoResult::of_engine(IoStatus::Done, self.sum),
            Outcome::Refused(refusal) => IoResult::of_engine(refused(refusal), self.targets(|_| true)),
            Outcome::SourceFailed => IoResult::of_engine(failure(IoStatus::ReadError), self.targets(|_| true)),
            Outcome::TargetsFailed(failed) => {
                let bits = self.targets(|target| failed.contains(&target.device));
                IoResult::of_engine(failure(IoStatus::WriteError), bits)
            }
        }
    }

    /// A bit for each target of a MultiCast that `is_it`.
    fn targets(&self, is_it: impl Fn(&Extent) -> bool) -> u64 {
        let Command::MultiCast { to, .. } = &self.command else { return 0 };
        to.iter().enumerate().filter(|(_, target)| is_it(target)).map(|(place, _)| 1 << place).sum()
    }
}

fn refused(refusal: &Refusal) -> IoStatus {
    match refusal {
        Refusal::NoDevice { .. } | Refusal::Gone { .. } => IoStatus::Unavailable,
        Refusal::Range { .. } => IoStatus::OutOfRange,
        Refusal::Unaligned { .. } | Refusal::Overlap { .. } | Refusal::Targets { .. } => IoStatus::Invalid,
        Refusal::Busy { .. } => IoStatus::Busy,
    }
}
