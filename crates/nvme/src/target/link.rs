//! PDUs of a connection: initialization, capsules and data as they come, terminations.

use crate::Status;
use crate::pdu::{Event, Framing, Header, HostData, InitializeRequest, InitializeResponse, PduError, ReadyToTransfer};
use crate::target::connection::{Connection, Incoming, Stage};
use crate::target::flight::{Flight, Flights, Phase, Transfer};
use crate::target::notice::{AuthenticationFault, CloseReason, Notice};
use crate::target::{Target, TargetLimits};
use crate::transfer::ReadyPlan;
use base::{Span, Time};

/// Bytes of one call, and the part that is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    length: usize,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Input { length: bytes.len(), rest: bytes }
    }

    /// Returns the number of taken bytes.
    pub(super) fn taken(&self) -> usize {
        self.length - self.rest.len()
    }
}

/// An event of a connection about a command whose data arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataEvent {
    /// All data are here.
    Complete(u32),
    /// The command failed.
    Failed(u32, Status),
    /// More data have to be requested.
    Incomplete(u32),
}

impl Connection {
    fn on_initialize(&mut self, request: InitializeRequest, limits: &TargetLimits) {
        // Data of the host may begin at any dword: Linux insists on CPDA 0.
        self.reader.open(Framing { digests: request.digests, alignment: 0 });
        self.ready_open_max = request.ready_max_minus_one.saturating_add(1).min(limits.ready_open_max);
        let response =
            InitializeResponse { alignment: 0, digests: request.digests, host_data_max: limits.host_data_max };
        self.out.push(self.framing, &Header::InitializeResponse(response));
        self.framing = Framing { digests: request.digests, alignment: request.alignment };
        self.stage = Stage::Connect;
    }

    /// Takes the header of H2CData: only what an open R2T asked for.
    fn on_host_data(&mut self, data: &HostData, flights: &mut Flights) -> Result<(), PduError> {
        let slot = *self.tags.find(data.tag)?;
        if flights[slot].write.on_data(data)? {
            self.tags.close(data.tag)?;
        }
        self.incoming = Incoming::Data { slot, offset: data.offset };
        Ok(())
    }

    fn on_data(&self, offset: usize, bytes: &[u8], flights: &mut Flights) {
        let (slot, start) = match self.incoming {
            Incoming::Discard => return,
            Incoming::Capsule { slot } => (slot, offset),
            Incoming::Data { slot, offset: from } => (slot, from as usize + offset),
        };
        // The reader and the transfer have checked every length against what was requested; a
        // command that failed meanwhile has no buffer.
        if let Some(room) = flights[slot].buffer.get_mut(start..start + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// A PDU is over. Returns what that means for the command of its data.
    fn on_end(&mut self, is_sound: bool, flights: &mut Flights) -> Option<DataEvent> {
        let incoming = std::mem::replace(&mut self.incoming, Incoming::Discard);
        let (Incoming::Capsule { slot } | Incoming::Data { slot, .. }) = incoming else { return None };
        let write = &mut flights[slot].write;
        if !is_sound {
            write.fail(Status::TRANSIENT_TRANSPORT);
        }
        Some(match incoming {
            Incoming::Capsule { .. } if !is_sound => DataEvent::Failed(slot, Status::TRANSIENT_TRANSPORT),
            Incoming::Capsule { .. } => DataEvent::Complete(slot),
            _ => match write.outcome() {
                Some(status) if status.is_success() => DataEvent::Complete(slot),
                Some(status) => DataEvent::Failed(slot, status),
                None => DataEvent::Incomplete(slot),
            },
        })
    }

    /// Requests data of a write, as far as R2Ts may be open. Returns whether it did.
    fn request_data(&mut self, slot: u32, flight: &mut Flight) -> bool {
        let mut has_asked = false;
        while flight.write.wants_ready() {
            let Some(tag) = self.tags.open(slot) else { break };
            let ready: Option<ReadyToTransfer> = flight.write.next_ready(tag);
            let ready = ready.expect("a transfer that wants to ask does");
            self.out.push(self.framing, &Header::ReadyToTransfer(ready));
            has_asked = true;
        }
        has_asked
    }
}

impl Target {
    /// Takes the next PDU: a whole command, or the events of the reader. False when nothing more
    /// can be taken from `input`.
    pub(super) fn take_pdu(&mut self, index: u32, input: &mut Input<'_>) -> bool {
        if let Some((entry, data)) = self.connections[index].reader.next_capsule(&mut input.rest) {
            let data_begin = input.taken() - data.len();
            self.on_command(index, entry, data.len() as u32, Some(data_begin));
            let place = &self.connections[index];
            if place.incoming != Incoming::Discard {
                place.on_data(0, data, &mut self.io.flights);
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
        let place = &mut self.connections[index];
        match event {
            Event::Header(Header::InitializeRequest(request)) => {
                place.on_initialize(request, &self.limits);
                place.deadline = self.clock.deadline(self.limits.handshake);
                self.connections.has_output(index, &mut self.clock);
            }
            Event::Header(Header::HostTermination(end)) => {
                self.close(index, CloseReason::HostTerminated(end.status));
                self.connections.drop_output(index, &mut self.io);
            }
            Event::Header(Header::Command { entry, data_length }) => {
                self.on_command(index, &entry, data_length, None);
            }
            Event::Header(Header::HostData(data)) => {
                if let Err(error) = place.on_host_data(&data, &mut self.io.flights) {
                    self.terminate(index, error);
                }
            }
            Event::Header(_) => unreachable!("a controller's reader gives what hosts send"),
            Event::Data { offset, bytes } => place.on_data(offset as usize, bytes, &mut self.io.flights),
            Event::End { is_sound } => self.on_end(index, is_sound),
        }
    }

    fn on_end(&mut self, index: u32, is_sound: bool) {
        let Some(event) = self.connections[index].on_end(is_sound, &mut self.io.flights) else { return };
        self.observer.counters.data_digest_errors += u64::from(!is_sound);
        match event {
            DataEvent::Complete(slot) => self.launch(slot),
            DataEvent::Failed(slot, status) => self.finish(slot, status, 0),
            DataEvent::Incomplete(slot) => self.request_data(index, slot),
        }
    }

    /// Starts to receive the data of a write, for which the budget has room now.
    pub(super) fn start_receiving(&mut self, index: u32, slot: u32, length: u32) {
        let plan = ReadyPlan {
            ready_bytes_max: self.limits.ready_bytes_max,
            open_max: self.connections[index].ready_open_max,
        };
        let flight = &mut self.io.flights[slot];
        flight.phase = Phase::Receiving;
        flight.transfer = Transfer::In(length);
        flight.write.restart_with(flight.command.id, length, plan);
        flight.buffer = self.io.pool.take(length as usize);
        self.request_data(index, slot);
    }

    fn request_data(&mut self, index: u32, slot: u32) {
        if self.connections[index].request_data(slot, &mut self.io.flights[slot]) {
            self.connections.has_output(index, &mut self.clock);
        }
    }

    /// The host broke the protocol: terminates the connection.
    pub(super) fn terminate(&mut self, index: u32, error: PduError) {
        self.observer.counters.protocol_errors += 1;
        let mut bytes = Vec::new();
        Framing::write_termination(false, &error, self.connections[index].reader.last_header(), &mut bytes);
        self.close(index, CloseReason::Protocol(error));
        self.connections[index].out.push_bytes(&bytes);
        self.connections.has_output(index, &mut self.clock);
    }

    /// Closes the connection once its output is sent. Its commands end now.
    pub(super) fn close(&mut self, index: u32, reason: CloseReason) {
        let place = &self.connections[index];
        if place.is_closing() {
            return;
        }
        self.observer.notice(Notice::Closing { connection: place.id, reason });
        self.detach(index, reason);
        let place = &mut self.connections[index];
        (place.stage, place.deadline) = (Stage::Closing(reason), None);
        if reason == CloseReason::Displaced {
            self.connections.displaced += 1;
            self.connections.drop_output(index, &mut self.io);
        }
        self.connections.mark_active(index);
    }

    /// Removes the connection from its controller and drops its commands. The admin queue ends its
    /// controller.
    pub(super) fn detach(&mut self, index: u32, reason: CloseReason) {
        let stage = self.connections[index].stage;
        for slot in self.connections[index].abandon() {
            self.orphan(slot);
        }
        let Stage::Queue { controller, queue } = stage else { return };
        // The end of the controller closes its connections: not this one a second time.
        self.connections[index].stage = Stage::Closing(reason);
        if queue == 0 {
            self.end_controller(controller, reason);
        } else if let Some(controller) = self.controllers.get_mut(controller) {
            controller.queues[usize::from(queue)] = None;
        }
    }

    /// The connection of a command is gone. Commands that backends work on stay until they answer.
    fn orphan(&mut self, slot: u32) {
        let flight = &mut self.io.flights[slot];
        let charged = std::mem::take(&mut flight.charged);
        let (connection, partner, phase) = (flight.connection.take(), flight.partner.take(), flight.phase);
        if let Some(index) = connection {
            self.connections[index].charged -= charged;
        }
        if let Some(partner) = partner {
            self.io.flights[partner].partner = None;
        }
        if phase == Phase::Waiting {
            self.leave_reservation_queue(slot);
        }
        if phase != Phase::Working {
            self.release(slot);
        }
    }

    /// Closes connections and ends controllers whose deadline has passed.
    pub(super) fn expire(&mut self) {
        let now = self.clock.now();
        for controller in self.controllers.expired(now) {
            self.observer.counters.keep_alive_expirations += 1;
            self.end_controller(controller, CloseReason::KeepAlive);
        }
        let late = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        for index in self.connections.indexes_of(|place| late(place.stall)) {
            self.close(index, CloseReason::Stalled);
            self.connections.drop_output(index, &mut self.io);
        }
        for index in self.connections.indexes_of(|place| late(place.deadline) && !place.is_closing()) {
            let place = &self.connections[index];
            let reason = place.late_reason();
            if let (CloseReason::Authentication, Some((host, subsystem, _))) = (reason, self.names_of(index)) {
                self.observer.authentication_failed(place.id, (host, subsystem), AuthenticationFault::Late);
            }
            self.close(index, reason);
        }
    }

    /// A command came: with traffic-based keep alive it counts as Keep Alive (Base 2.0, 3.9). One
    /// on an I/O queue whose host has yet to authenticate says nothing of the controller's own
    /// host.
    pub(super) fn restart_keep_alive(&mut self, index: u32) {
        let (now, place) = (self.clock.now(), &self.connections[index]);
        let counts = !place.has_to_prove() || place.queue_id() == 0;
        if let Some(controller) = self.controller_of(index).filter(|_| counts) {
            controller.restart_keep_alive(now);
        }
    }

    /// Something came from the host. Only a queue of a controller without keep-alive may not be
    /// idle for ever.
    pub(super) fn refresh_idle(&mut self, index: u32) {
        let Some(idle) = self.limits.idle else { return };
        let place = &mut self.connections[index];
        let Some(id) = place.controller().filter(|_| !place.has_to_prove()) else { return };
        let has_keep_alive = self.controllers.get(id).is_some_and(|controller| controller.keep_alive > Span::ZERO);
        place.deadline = if has_keep_alive { None } else { self.clock.deadline(idle) };
    }
}
