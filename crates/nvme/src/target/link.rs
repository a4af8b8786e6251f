//! PDUs of a connection: initialization, capsules and data as they come, terminations.

use crate::Status;
use crate::pdu::{Event, Framing, Header, HostData, InitializeRequest, InitializeResponse, PduError, ReadyToTransfer};
use crate::target::Target;
use crate::target::connection::{Fused, Incoming, Stage};
use crate::target::flight::{Phase, Transfer};
use crate::target::notice::{CloseReason, Notice};
use crate::transfer::ReadyPlan;

/// Bytes of one call, and how far they are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    length: usize,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Input { length: bytes.len(), rest: bytes }
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.length - self.rest.len()
    }
}

impl Target {
    /// Takes the next PDU: a command that is whole, or the events that the reader has of it. False
    /// when nothing more can be taken from `input`.
    pub(super) fn take_pdu(&mut self, index: u32, input: &mut Input<'_>) -> bool {
        if let Some((entry, data)) = self.connections[index].reader.next_capsule(&mut input.rest) {
            let data_begin = input.taken() - data.len();
            self.on_command(index, entry, data.len() as u32, Some(data_begin));
            if self.connections[index].incoming != Incoming::Discard {
                self.on_data(index, 0, data);
                self.on_end(index, true);
            }
            return true;
        }
        while self.connections[index].takes_input(&self.limits) {
            match self.connections[index].reader.next(&mut input.rest) {
                Ok(Some(event @ Event::End { .. })) => {
                    self.on_event(index, event);
                    return true;
                }
                Ok(Some(event)) => self.on_event(index, event),
                Ok(None) => return false,
                Err(error) => {
                    self.terminate(index, error);
                    return false;
                }
            }
        }
        false
    }

    fn on_event(&mut self, index: u32, event: Event<'_>) {
        match event {
            Event::Header(Header::InitializeRequest(request)) => self.on_initialize(index, request),
            Event::Header(Header::HostTermination(end)) => {
                self.close(index, CloseReason::HostTerminated(end.status));
                self.drop_output(index);
            }
            Event::Header(Header::Command { entry, data_length }) => {
                self.on_command(index, &entry, data_length, None);
            }
            Event::Header(Header::HostData(data)) => {
                if let Err(error) = self.on_host_data(index, &data) {
                    self.terminate(index, error);
                }
            }
            Event::Header(_) => unreachable!("a controller's reader gives what hosts send"),
            Event::Data { offset, bytes } => self.on_data(index, offset as usize, bytes),
            Event::End { is_sound } => self.on_end(index, is_sound),
        }
    }

    fn on_initialize(&mut self, index: u32, request: InitializeRequest) {
        let place = &mut self.connections[index];
        // Data of the host are taken at any dword: Linux insists on CPDA 0.
        place.reader.open(Framing { digests: request.digests, alignment: 0 });
        place.ready_open_max = request.ready_max_minus_one.saturating_add(1).min(self.limits.ready_open_max);
        let response =
            InitializeResponse { alignment: 0, digests: request.digests, host_data_max: self.limits.host_data_max };
        self.send(index, &Header::InitializeResponse(response));
        let place = &mut self.connections[index];
        place.framing = Framing { digests: request.digests, alignment: request.alignment };
        place.stage = Stage::Connect;
        self.set_deadline(index, self.limits.handshake);
    }

    /// Puts a PDU without data behind what waits.
    pub(super) fn send(&mut self, index: u32, header: &Header) {
        let place = &mut self.connections[index];
        place.out.push(place.framing, header);
        self.has_more(index);
    }

    /// Something was put behind what waits.
    pub(super) fn has_more(&mut self, index: u32) {
        self.start_stall(index);
        self.mark_active(index);
    }

    /// H2CData: only what an open R2T asked for.
    fn on_host_data(&mut self, index: u32, data: &HostData) -> Result<(), PduError> {
        let place = &mut self.connections[index];
        let slot = *place.tags.find(data.tag)?;
        if self.flights[slot].write.on_data(data)? {
            place.tags.close(data.tag)?;
        }
        place.incoming = Incoming::Data { slot, offset: data.offset };
        Ok(())
    }

    fn on_data(&mut self, index: u32, offset: usize, bytes: &[u8]) {
        let incoming = self.connections[index].incoming;
        let (slot, start) = match incoming {
            Incoming::Discard => return,
            Incoming::Capsule { slot } => (slot, offset),
            Incoming::Data { slot, offset: from } => (slot, from as usize + offset),
        };
        // The reader and the transfer have held every length against what was asked for; a command
        // that failed meanwhile has no buffer.
        if let Some(room) = self.flights[slot].buffer.get_mut(start..start + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    fn on_end(&mut self, index: u32, is_sound: bool) {
        let incoming = std::mem::replace(&mut self.connections[index].incoming, Incoming::Discard);
        let (Incoming::Capsule { slot } | Incoming::Data { slot, .. }) = incoming else { return };
        if !is_sound {
            self.counters.data_digest_errors += 1;
            self.flights[slot].write.fail(Status::TRANSIENT_TRANSPORT);
        }
        match incoming {
            Incoming::Capsule { .. } if !is_sound => self.finish(slot, Status::TRANSIENT_TRANSPORT, 0),
            Incoming::Capsule { .. } => self.launch(slot),
            _ => self.go_on_receiving(index, slot),
        }
    }

    /// Data of an R2T came: asks for more, carries the command out, or answers with its failure.
    fn go_on_receiving(&mut self, index: u32, slot: u32) {
        match self.flights[slot].write.outcome() {
            Some(status) if status.is_success() => self.launch(slot),
            Some(status) => self.finish(slot, status, 0),
            None => self.ask_for_data(index, slot),
        }
    }

    /// Data of a write that the budget has room for now.
    pub(super) fn start_receiving(&mut self, index: u32, slot: u32, length: u32) {
        let plan = ReadyPlan {
            ready_bytes_max: self.limits.ready_bytes_max,
            open_max: self.connections[index].ready_open_max,
        };
        let flight = &mut self.flights[slot];
        flight.phase = Phase::Receiving;
        flight.transfer = Transfer::In(length);
        flight.write.restart_with(flight.command.id, length, plan);
        flight.buffer = self.pool.take(length as usize);
        self.ask_for_data(index, slot);
    }

    fn ask_for_data(&mut self, index: u32, slot: u32) {
        while self.flights[slot].write.wants_ready() {
            let Some(tag) = self.connections[index].tags.open(slot) else { return };
            let ready: Option<ReadyToTransfer> = self.flights[slot].write.next_ready(tag);
            let ready = ready.expect("a transfer that wants to ask does");
            self.send(index, &Header::ReadyToTransfer(ready));
        }
    }

    /// The host broke the rules: says how, and closes.
    pub(super) fn terminate(&mut self, index: u32, error: PduError) {
        self.counters.protocol_errors += 1;
        let mut bytes = Vec::new();
        Framing::write_termination(false, &error, self.connections[index].reader.last_header(), &mut bytes);
        self.close(index, CloseReason::Protocol(error));
        self.connections[index].out.push_bytes(&bytes);
        self.has_more(index);
    }

    /// The connection ends when what waits was sent. Its commands end now.
    pub(super) fn close(&mut self, index: u32, reason: CloseReason) {
        if self.connections[index].is_closing() {
            return;
        }
        let connection = self.connections[index].id;
        self.notice(Notice::Closing { connection, reason });
        self.detach(index, reason);
        let place = &mut self.connections[index];
        (place.stage, place.deadline) = (Stage::Closing(reason), None);
        self.mark_active(index);
    }

    /// Takes the connection out of its controller and drops its commands.
    pub(super) fn detach(&mut self, index: u32, reason: CloseReason) {
        let stage = self.connections[index].stage;
        self.drop_commands(index);
        let Stage::Queue { controller, queue } = stage else { return };
        // What follows may come back here by way of the controller: not a second time for this
        // connection.
        self.connections[index].stage = Stage::Closing(reason);
        if queue == 0 {
            self.end_controller(controller, reason);
        } else if let Some(controller) = self.controllers.get_mut(controller) {
            controller.queues[usize::from(queue)] = None;
        }
    }

    /// Commands of a connection that is gone: those that backends work on are kept until they
    /// answer.
    fn drop_commands(&mut self, index: u32) {
        let place = &mut self.connections[index];
        place.parked.clear();
        (place.fused, place.incoming) = (Fused::None, Incoming::Discard);
        for (_, slot) in place.queue.abandon() {
            self.orphan(slot);
        }
    }

    /// The command's connection is gone.
    fn orphan(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        let charged = std::mem::take(&mut flight.charged);
        if let Some(index) = flight.connection.take() {
            self.connections[index].charged -= charged;
        }
        if let Some(partner) = self.flights[slot].partner.take() {
            self.flights[partner].partner = None;
        }
        match self.flights[slot].phase {
            Phase::Working => {}
            Phase::Waiting => {
                self.leave_reservation_queue(slot);
                self.release(slot);
            }
            _ => self.release(slot),
        }
    }
}
