//! One queue of the host: its connection, its commands, the data that they move.

use crate::initiator::{InitiatorConfig, InitiatorError, Payload, Purpose, Tolerance};
use crate::outgoing::{Outgoing, Slices};
use crate::pdu::{
    ControllerData, Digests, Event, Framing, HOST_DATA_MAX_MIN, Header, InitializeRequest, InitializeResponse, Limits,
    PduError, PduKind, Reader, ReadyToTransfer, Receiver,
};
use crate::pool::Pool;
use crate::queue::{HostQueue, QueueError, QueueShape};
use crate::transfer::{Carriage, HostRead, HostWrite};
use crate::{Body, Command, Cqe, Sgl, Sqe, Status};
use base::Time;
use std::collections::BTreeSet;

/// In-capsule data of fabrics and admin commands (NVMe/TCP Transport 1.0, 3.4).
const ADMIN_IN_CAPSULE: u32 = 8192;

/// A command that is over.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) purpose: Purpose,
    pub(super) status: Status,
    pub(super) result: u64,
    pub(super) data: Vec<u8>,
}

/// A command that was sent.
#[derive(Debug)]
struct Pending {
    purpose: Purpose,
    read: HostRead,
    write: HostWrite,
    /// The data of a write, or room for those of a read.
    data: Vec<u8>,
    /// A data digest was wrong: the command failed, whatever its completion.
    is_damaged: bool,
    is_write: bool,
    deadline: Option<Time>,
}

/// The command of the data that are being read.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    command: u16,
    offset: u32,
    is_over: bool,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No connection.
    Idle,
    /// ICResp has to come.
    Initialize,
    /// ICResp came and was not noticed yet.
    Initialized,
    /// Capsules.
    Open,
}

/// One queue.
#[derive(Debug)]
pub(super) struct Link {
    id: u16,
    stage: Stage,
    reader: Reader,
    framing: Framing,
    flow_control: bool,
    in_capsule_max: u32,
    host_data_max: u32,
    ready_max_minus_one: u32,
    queue: HostQueue<Pending>,
    out: Outgoing,
    pool: Pool,
    incoming: Option<Incoming>,
    initialize_deadline: Option<Time>,
    tolerated: BTreeSet<Tolerance>,
}

impl Link {
    /// A queue of at least two entries, without a connection.
    pub(super) fn new(id: u16, entries: u32, config: &InitiatorConfig) -> Self {
        let size_minus_one = (entries.clamp(2, 1 << 16) - 1) as u16;
        let shape = QueueShape::new(id, size_minus_one, config.flow_control).expect("two entries are a queue");
        let limits = Limits { in_capsule_max: 0, data_max: config.transfer_bytes_max.max(1 << 16) };
        Link {
            id,
            stage: Stage::Idle,
            reader: Reader::new(Receiver::Host, limits),
            framing: Framing::INITIAL,
            flow_control: config.flow_control,
            in_capsule_max: ADMIN_IN_CAPSULE,
            host_data_max: 0,
            ready_max_minus_one: config.ready_max_minus_one,
            queue: HostQueue::new(shape),
            out: Outgoing::default(),
            pool: Pool::new(0),
            incoming: None,
            initialize_deadline: None,
            tolerated: BTreeSet::new(),
        }
    }

    /// Deviations tolerated since the last call.
    pub(super) fn take_tolerated(&mut self) -> BTreeSet<Tolerance> {
        std::mem::take(&mut self.tolerated)
    }

    pub(super) fn queue_id(&self) -> u16 {
        self.id
    }

    pub(super) fn set_in_capsule_max(&mut self, bytes: u32) {
        self.in_capsule_max = bytes;
    }

    /// Commands that may be sent now.
    pub(super) fn room(&self) -> u32 {
        if self.stage == Stage::Open && self.queue.has_room() { self.queue.room() } else { 0 }
    }

    pub(super) fn transmit(&self) -> Slices<'_> {
        self.out.slices()
    }

    pub(super) fn transmitted(&mut self, bytes: usize) {
        self.out.advance(bytes, &mut self.pool);
    }

    /// The earliest time at which something is late.
    pub(super) fn deadline(&self) -> Option<Time> {
        let commands = self.queue.iter().filter_map(|pending| pending.deadline);
        commands.chain(self.initialize_deadline).min()
    }

    /// The connection is open: sends ICReq.
    pub(super) fn initialize(&mut self, config: &InitiatorConfig, deadline: Option<Time>) {
        if self.stage != Stage::Idle {
            return;
        }
        self.stage = Stage::Initialize;
        self.initialize_deadline = deadline;
        let request = InitializeRequest {
            alignment: config.alignment.min(31),
            digests: config.digests,
            ready_max_minus_one: config.ready_max_minus_one,
        };
        self.out.push(Framing::INITIAL, &Header::InitializeRequest(request));
    }

    /// Whether parameters were agreed on since the last call.
    pub(super) fn take_initialized(&mut self) -> bool {
        let is_new = self.stage == Stage::Initialized;
        if is_new {
            self.stage = Stage::Open;
        }
        is_new
    }

    /// Sends a command. Fails, and gives nothing back, when the queue is full.
    pub(super) fn send(
        &mut self,
        command: Command,
        payload: Payload,
        purpose: Purpose,
        deadline: Option<Time>,
    ) -> Result<(), QueueError> {
        let written = if let Payload::ToController(data) = &payload { data.len() as u32 } else { 0 };
        // On every queue, data of fabrics commands go in the capsule (NVMe/TCP Transport 1.0, 3.4).
        let is_fabrics = matches!(command.body, Body::Fabrics(_));
        let in_capsule_max = if is_fabrics { ADMIN_IN_CAPSULE } else { self.in_capsule_max };
        let carriage = Carriage::of_write(written, in_capsule_max);
        let separate = if carriage == Carriage::Separate { written } else { 0 };
        let pending = Pending {
            purpose,
            read: HostRead::new(0, 0),
            write: HostWrite::new(0, 0, 0, 1),
            data: Vec::new(),
            is_damaged: false,
            is_write: written > 0,
            deadline,
        };
        let id = self.queue.submit(pending).map_err(|(_, error)| error)?;
        let pending = self.queue.get_mut(id)?;
        pending.write = HostWrite::new(id, separate, self.ready_max_minus_one, self.host_data_max);
        let (data, length) = match payload {
            Payload::None => (Sgl::NONE, 0),
            Payload::ToHost(length) => {
                pending.data = vec![0; length as usize];
                (Sgl::Transport { length }, length)
            }
            Payload::ToController(data) => {
                pending.data = data;
                (carriage.sgl(written), 0)
            }
        };
        pending.read = HostRead::new(id, length);
        let entry = Command { id, data, ..command }.encode();
        self.put(entry, id, written - separate)
    }

    /// Appends the capsule of a command, with so many of its bytes inside.
    fn put(&mut self, entry: Sqe, id: u16, in_capsule: u32) -> Result<(), QueueError> {
        let pending = self.queue.get_mut(id)?;
        self.out.push(self.framing, &Header::Command { entry, data_length: in_capsule });
        let inline = &pending.data[..in_capsule as usize];
        self.out.push_bytes(inline);
        let trailer = self.framing.trailer(PduKind::Command, inline);
        self.out.push_bytes(trailer.as_ref().map_or(&[], |digest| digest));
        Ok(())
    }

    /// Bytes came. Commands that are over go to `done`; an error ends the association.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        config: &InitiatorConfig,
        done: &mut Vec<Done>,
    ) -> Result<(), InitiatorError> {
        let mut input = bytes;
        loop {
            let event = match self.reader.next(&mut input) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.terminate(error)),
            };
            let step = match event {
                Event::Header(header) => self.on_header(&header, config, done),
                Event::Data { offset, bytes } => {
                    self.on_data(offset, bytes);
                    Ok(())
                }
                Event::End { is_sound } => self.on_end(is_sound, done),
            };
            step.map_err(|error| match error {
                InitiatorError::Protocol { error, .. } => self.terminate(error),
                other => other,
            })?;
        }
    }

    /// Sends a termination to the controller.
    fn terminate(&mut self, error: PduError) -> InitiatorError {
        let mut bytes = Vec::new();
        Framing::write_termination(true, &error, self.reader.last_header(), &mut bytes);
        self.out.push_bytes(&bytes);
        InitiatorError::Protocol { queue: self.id, error }
    }

    fn on_header(
        &mut self,
        header: &Header,
        config: &InitiatorConfig,
        done: &mut Vec<Done>,
    ) -> Result<(), InitiatorError> {
        let queue = self.id;
        let protocol = |error: PduError| InitiatorError::Protocol { queue, error };
        match header {
            Header::InitializeResponse(response) => self.on_initialize(response, config),
            Header::ControllerTermination(end) => Err(InitiatorError::Terminated { queue, status: end.status }),
            Header::Response(completion) => self.on_response(completion, done),
            Header::ControllerData(data) => self.on_controller_data(data).map_err(protocol),
            Header::ReadyToTransfer(ready) => self.on_ready(ready).map_err(protocol),
            _ => unreachable!("a host's reader gives what controllers send"),
        }
    }

    fn on_initialize(&mut self, response: &InitializeResponse, config: &InitiatorConfig) -> Result<(), InitiatorError> {
        let Digests { header, data } = config.digests;
        let does_without = (header && !response.digests.header) || (data && !response.digests.data);
        if does_without {
            return Err(InitiatorError::Unusable("it does without a digest that was asked for"));
        }
        if response.digests != config.digests {
            let got = u64::from(response.digests.header) | u64::from(response.digests.data) << 1;
            let supported = match (header, data) {
                (false, false) => "no digest",
                (true, false) => "the header digest",
                (false, true) => "the data digest",
                (true, true) => "both digests",
            };
            let error = PduError::Unsupported { field: "DGST", at: 11, got, supported };
            return Err(InitiatorError::Protocol { queue: self.id, error });
        }
        self.reader.open(Framing { digests: config.digests, alignment: config.alignment.min(31) });
        self.framing = Framing { digests: config.digests, alignment: response.alignment };
        if response.host_data_max < HOST_DATA_MAX_MIN || !response.host_data_max.is_multiple_of(4) {
            self.tolerated.insert(Tolerance::OddDataMax);
        }
        self.host_data_max = response.host_data_max / 4 * 4;
        (self.stage, self.initialize_deadline) = (Stage::Initialized, None);
        Ok(())
    }

    fn on_response(&mut self, completion: &Cqe, done: &mut Vec<Done>) -> Result<(), InitiatorError> {
        let queue = self.id;
        let error = |error: QueueError| InitiatorError::Queue { queue, error };
        let pending = self.queue.get_mut(completion.id).map_err(error)?;
        let status = completion.status;
        pending.read.on_response(status).map_err(|error| InitiatorError::Protocol { queue, error })?;
        if status.is_success() && !pending.write.is_sent() {
            let (kind, allowed) = (PduKind::Response, "success behind the last data of a write");
            return Err(InitiatorError::Protocol { queue, error: PduError::Sequence { kind, allowed } });
        }
        let pending = self.queue.complete(completion).map_err(error)?;
        if self.queue.had_odd_head() {
            self.tolerated.insert(Tolerance::OddHead);
        }
        done.push(finished(pending, status, completion.result));
        Ok(())
    }

    fn on_controller_data(&mut self, data: &ControllerData) -> Result<(), PduError> {
        let pending = self.queue.get_mut(data.command).map_err(|_| unknown_command(data.command))?;
        let is_over = pending.read.on_data(data)?;
        if is_over && self.flow_control {
            self.tolerated.insert(Tolerance::FlagWithFlowControl);
        }
        if pending.read.lacks_last() {
            self.tolerated.insert(Tolerance::LastMissing);
        }
        self.incoming = Some(Incoming { command: data.command, offset: data.offset, is_over });
        Ok(())
    }

    fn on_data(&mut self, offset: u32, bytes: &[u8]) {
        let Some(Incoming { command, offset: start, .. }) = self.incoming else { return };
        let start = start as usize + offset as usize;
        // The transfer has checked offset and length against the request.
        let pending = self.queue.get_mut(command).ok();
        if let Some(room) = pending.and_then(|pending| pending.data.get_mut(start..start + bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }

    fn on_end(&mut self, is_sound: bool, done: &mut Vec<Done>) -> Result<(), InitiatorError> {
        let Some(Incoming { command, is_over, .. }) = self.incoming.take() else { return Ok(()) };
        let queue = self.id;
        let error = |error: QueueError| InitiatorError::Queue { queue, error };
        self.queue.get_mut(command).map_err(error)?.is_damaged |= !is_sound;
        if is_over {
            let pending = self.queue.complete_by_flag(command).map_err(error)?;
            done.push(finished(pending, Status::SUCCESS, 0));
        }
        Ok(())
    }

    /// Takes an R2T: its data are sent at once.
    fn on_ready(&mut self, ready: &ReadyToTransfer) -> Result<(), PduError> {
        let pending = self.queue.get_mut(ready.command).map_err(|_| unknown_command(ready.command))?;
        if !pending.is_write {
            let (kind, allowed) = (PduKind::ReadyToTransfer, "data or the end of a command that writes nothing");
            return Err(PduError::Sequence { kind, allowed });
        }
        pending.write.on_ready(ready)?;
        while let Some(data) = pending.write.next_data() {
            let from = data.offset as usize;
            let piece = &pending.data[from..from + data.length as usize];
            self.out.push(self.framing, &Header::HostData(data));
            self.out.push_bytes(piece);
            let trailer = self.framing.trailer(PduKind::HostData, piece);
            self.out.push_bytes(trailer.as_ref().map_or(&[], |digest| digest));
        }
        Ok(())
    }

    /// The connection is gone: every command, once.
    pub(super) fn abandon(&mut self, done: &mut Vec<Done>) {
        let all = self.queue.abandon();
        done.extend(all.into_iter().map(|(_, pending)| finished(pending, Status::HOST_ABORTED, 0)));
        (self.stage, self.initialize_deadline) = (Stage::Idle, None);
    }
}

fn finished(pending: Pending, status: Status, result: u64) -> Done {
    let is_wrong = pending.is_damaged && status.is_success();
    let status = if is_wrong { Status::TRANSIENT_TRANSPORT } else { status };
    Done { purpose: pending.purpose, status, result, data: pending.data }
}

fn unknown_command(command: u16) -> PduError {
    PduError::Field { field: "CCCID", at: 8, got: command.into(), allowed: "a command that is outstanding" }
}
