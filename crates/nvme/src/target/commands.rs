//! Commands: checked, given memory, carried out by backends, completed once.

use crate::log::ErrorEntry;
use crate::pdu::PduError;
use crate::queue::QueueError;
use crate::target::connection::{Connection, Fused, Incoming, Stage};
use crate::target::controller::Controller;
use crate::target::events::SubsystemEvent;
use crate::target::flight::{Admitted, Flights, Own, Phase, Transfer};
use crate::target::io::IoOperation;
use crate::target::notice::{CloseReason, Tolerated};
use crate::target::nvm::{IoController, Work, is_durable};
use crate::target::reservations::Effects;
use crate::target::reserve::{self, ReservationEvent};
use crate::target::subsystem::Subsystem;
use crate::target::{BackendId, ConnectionId, Target, features};
use crate::{Admin, Body, Command, Fabrics, Fuse, HostId, Io, QueueKind, Sgl, Sqe, Status};

/// TRTYPE of TCP in the error log.
const TRANSPORT_TCP: u8 = 3;
/// No field of the command is known to be wrong.
const NO_PARAMETER: u16 = u16::MAX;

impl Connection {
    /// Checks the order of a fused pair. Returns also a first half that fails with this status.
    fn pair(&mut self, slot: u32, fuse: Fuse, flights: &mut Flights) -> (Result<(), Status>, Option<(u32, Status)>) {
        let failed = |first, status: Status| Some((first, status.without_retry()));
        let is_compare = matches!(flights[slot].command.body, Body::Io(Io::Compare(_)));
        match (std::mem::replace(&mut self.fused, Fused::None), fuse) {
            (Fused::First(first), Fuse::Second) if flights.is_pair(first, slot) => {
                flights[first].partner = Some(slot);
                flights[slot].partner = Some(first);
                (Ok(()), None)
            }
            (Fused::First(first), Fuse::Second) => {
                (Err(Status::INVALID_FIELD.without_retry()), failed(first, Status::FAILED_FUSED))
            }
            (Fused::Failed, Fuse::Second) => (Err(Status::FAILED_FUSED.without_retry()), None),
            (before, _) => {
                let missing = match before {
                    Fused::First(first) => failed(first, Status::MISSING_FUSED),
                    _ => None,
                };
                (self.open_pair(slot, fuse, is_compare), missing)
            }
        }
    }

    /// Takes the first half of a pair, or a single command.
    fn open_pair(&mut self, slot: u32, fuse: Fuse, is_compare: bool) -> Result<(), Status> {
        match fuse {
            Fuse::None => Ok(()),
            Fuse::Second => Err(Status::MISSING_FUSED.without_retry()),
            Fuse::First if is_compare => {
                self.fused = Fused::First(slot);
                Ok(())
            }
            Fuse::First => {
                self.fused = Fused::Failed;
                Err(Status::INVALID_FIELD.without_retry())
            }
        }
    }

    /// Refuses a command beyond the number that is carried out at a time, where a host's queue is
    /// deeper: the host may try again.
    fn check_load(&self) -> Result<(), Status> {
        let fits = self.queue.outstanding() <= self.commands_max;
        if fits { Ok(()) } else { Err(Status::INTERRUPTED) }
    }

    fn fabrics_transfer(&self, fabrics: Fabrics) -> Result<Transfer, Status> {
        match fabrics {
            Fabrics::Connect(_) => Ok(Transfer::In(crate::ConnectData::BYTES as u32)),
            Fabrics::AuthenticationSend { .. } | Fabrics::AuthenticationReceive { .. } => {
                self.authentication_transfer(fabrics)
            }
            _ if self.has_to_prove() => Err(Status::AUTHENTICATION_REQUIRED.without_retry()),
            Fabrics::PropertySet { .. } | Fabrics::PropertyGet { .. } | Fabrics::Disconnect => Ok(Transfer::None),
        }
    }

    /// The error log's entry of a command that failed.
    fn error_entry(&self, command: &Command, status: Status) -> ErrorEntry {
        let block = match command.body {
            Body::Io(Io::Read(access) | Io::Write(access) | Io::Compare(access)) => access.start,
            _ => 0,
        };
        ErrorEntry {
            count: 0,
            queue: self.queue_id(),
            id: command.id,
            status_bits: status.bits() << 1,
            parameter: NO_PARAMETER,
            block,
            namespace: command.namespace,
            transport: TRANSPORT_TCP,
            specific: 0,
        }
    }
}

impl Target {
    /// Takes the header of a capsule. `data_length` bytes of data follow: from byte `whole` of the
    /// input on, if all of them are there.
    pub(super) fn on_command(&mut self, index: u32, entry: &Sqe, data_length: u32, whole: Option<usize>) {
        self.observer.counters.commands += 1;
        let kind = QueueKind::of(self.connections[index].queue_id());
        let decoded = Command::decode(entry, kind);
        // A command that cannot be decoded keeps its identifier, for the completion.
        let command = decoded.unwrap_or(Command::new(entry.id.get(), Body::Fabrics(Fabrics::Disconnect)));
        let slot = self.io.flights.open(self.clock.now(), Some(index), command);
        if !self.enter_queue(index, slot, command.id) {
            return;
        }
        let fuse = decoded.map_or(Fuse::None, |command| command.fuse);
        let (is_paired, missing) = self.connections[index].pair(slot, fuse, &mut self.io.flights);
        if let Some((first, status)) = missing {
            self.fail_early(first, status);
        }
        let checked = decoded.map_err(|error| error.status()).and_then(|command| {
            is_paired?;
            self.connections[index].check_load()?;
            self.check(index, &command, data_length)
        });
        match checked {
            Ok(admitted) => self.begin(index, slot, admitted, data_length, whole),
            Err(status) => self.finish(slot, status, 0),
        }
    }

    /// Enters the command into its queue. Returns false when that fails: the completion is sent, or
    /// the connection terminated.
    fn enter_queue(&mut self, index: u32, slot: u32, id: u16) -> bool {
        let Err(error) = self.connections[index].queue.receive(id, slot) else { return true };
        if matches!(error, QueueError::InUse { .. }) && self.replace_event_request(index, slot, id) {
            return true;
        }
        let refusal = self.connections[index].queue.refuse(id, Status::COMMAND_ID_CONFLICT.without_retry(), 0);
        self.io.flights.close(slot);
        match error {
            QueueError::Full { outstanding, most } => {
                let got = u64::from(outstanding) + 1;
                let what = "outstanding commands";
                self.terminate(index, PduError::LimitExceeded { what, got, most: most.into() });
            }
            _ => {
                self.observer.counters.commands_failed += 1;
                self.connections.send(index, &crate::pdu::Header::Response(refusal), &mut self.clock);
            }
        }
        false
    }

    /// Whether `id` was of an event request, whose place `slot` has now. A host that shuts down
    /// drops its event requests and uses their identifiers again (SPDK's does), so nothing waits
    /// for a completion.
    fn replace_event_request(&mut self, index: u32, slot: u32, id: u16) -> bool {
        let Some(holder) = self.connections[index].queue.get_mut(id).copied() else { return false };
        let flight = &self.io.flights[holder];
        let is_event = flight.phase == Phase::Waiting && flight.command.body == Body::Admin(Admin::AsynchronousEvent);
        if !is_event || !self.connections.tolerates(index, Tolerated::EventIdentifier, &mut self.observer) {
            return false;
        }
        if let Some(controller) = self.controller_of(index) {
            controller.event_requests.retain(|waiting| *waiting != holder);
        }
        if let Some(place) = self.connections[index].queue.get_mut(id) {
            *place = slot;
        }
        self.release(holder);
        true
    }

    /// Checks that the command is allowed now, and returns what it moves. Nothing is allocated for
    /// it before.
    fn check(&self, index: u32, command: &Command, data_length: u32) -> Result<Admitted, Status> {
        let place = &self.connections[index];
        let is_connected = matches!(place.stage, Stage::Queue { .. });
        let is_connect = matches!(command.body, Body::Fabrics(Fabrics::Connect(_)));
        if is_connected == is_connect {
            return Err(Status::COMMAND_SEQUENCE.without_retry());
        }
        let admitted = match command.body {
            Body::Fabrics(fabrics) => place.fabrics_transfer(fabrics)?.into(),
            _ if place.has_to_prove() => {
                return Err(Status::AUTHENTICATION_REQUIRED.without_retry());
            }
            Body::Admin(admin) => admin_transfer(admin).into(),
            Body::Io(io) => self.io_controller(index)?.check(command, io)?,
        };
        let transfer = admitted.transfer;
        let (Transfer::In(length) | Transfer::Out(length)) = transfer else { return Ok(admitted) };
        if length > self.limits.transfer_bytes() {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        check_descriptor(command.data, transfer, data_length)?;
        if is_connect && !matches!(command.data, Sgl::InCapsule { .. }) {
            return Err(Status::INVALID_SGL_TYPE.without_retry());
        }
        Ok(admitted)
    }

    fn io_controller(&self, index: u32) -> Result<IoController<'_>, Status> {
        IoController::of(&self.connections[index], &self.controllers, &self.subsystems, &self.limits)
    }

    /// Starts a command when its data are here and the budget has room.
    fn begin(&mut self, index: u32, slot: u32, admitted: Admitted, data_length: u32, whole: Option<usize>) {
        let Admitted { transfer, lender } = admitted;
        let flight = &mut self.io.flights[slot];
        flight.transfer = transfer;
        match (transfer, flight.command.data) {
            (Transfer::None, _) => self.launch(slot),
            (Transfer::In(length), Sgl::InCapsule { offset: 0, .. })
                if self.writes_input(index, slot, lender, length, whole) => {}
            (Transfer::In(_), Sgl::InCapsule { .. }) => {
                self.io.flights[slot].buffer = self.io.pool.take(data_length as usize);
                self.connections[index].incoming = Incoming::Capsule { slot };
            }
            (Transfer::In(length) | Transfer::Out(length), _) => {
                let (place, flight) = (&mut self.connections[index], &mut self.io.flights[slot]);
                if place.parked.is_empty() && place.charge(flight, length, self.limits.data_budget_bytes) {
                    return self.start(index, slot, lender);
                }
                flight.phase = Phase::Parked;
                place.parked.push_back(slot);
            }
        }
    }

    /// Has a backend in memory write from the input. Returns false when the data need a buffer.
    fn writes_input(
        &mut self,
        index: u32,
        slot: u32,
        lender: Option<BackendId>,
        length: u32,
        whole: Option<usize>,
    ) -> bool {
        let command = &self.io.flights[slot].command;
        let (Some(from), Some(backend), Body::Io(Io::Write(access))) = (whole, lender, command.body) else {
            return false;
        };
        let (to, is_durable) = (from + length as usize, is_durable(access.flags));
        let operation = IoOperation::WriteInput { range: access.into(), from, to, is_durable };
        self.request(index, slot, backend, operation);
        true
    }

    /// Requests `operation` of a backend for a command.
    fn request(&mut self, index: u32, slot: u32, backend: BackendId, operation: IoOperation) {
        let controller = self.connections[index].controller().unwrap_or(0);
        self.io.request(slot, backend, controller, operation);
    }

    /// Starts commands that wait for the data budget, in order, as far as it has room.
    pub(super) fn unpark(&mut self, index: u32) {
        while let Some(slot) = self.connections[index].parked.front().copied() {
            let flight = &mut self.io.flights[slot];
            let (Transfer::In(length) | Transfer::Out(length)) = flight.transfer else {
                unreachable!("only commands with data wait for the budget")
            };
            let place = &mut self.connections[index];
            if !place.charge(flight, length, self.limits.data_budget_bytes) {
                return;
            }
            place.parked.pop_front();
            // It may no longer be allowed: then it gets a buffer, and fails when it is launched.
            let command = flight.command;
            let admitted = match command.body {
                Body::Io(io) => self.io_controller(index).and_then(|host| host.check(&command, io)).ok(),
                _ => None,
            };
            self.start(index, slot, admitted.and_then(|admitted| admitted.lender));
        }
    }

    /// Starts a command that the budget has room for.
    fn start(&mut self, index: u32, slot: u32, lender: Option<BackendId>) {
        let data_max = self.limits.controller_data_max;
        let place = &self.connections[index];
        let transfer = self.io.flights[slot].transfer;
        match transfer {
            Transfer::In(length) => self.start_receiving(index, slot, length),
            Transfer::Out(_) if lender.is_some_and(|lender| self.io.borrow(place, slot, lender, data_max)) => {}
            Transfer::Out(length) => {
                self.io.flights[slot].buffer = self.io.pool.take(length as usize);
                self.launch(slot);
            }
            Transfer::None => unreachable!("only commands with data wait for the budget"),
        }
    }

    /// Launches a command whose data are here.
    pub(super) fn launch(&mut self, slot: u32) {
        let flight = &mut self.io.flights[slot];
        flight.trim_capsule();
        let (status, command) = (flight.status, flight.command);
        let Some(index) = flight.connection else { return };
        match command.body {
            _ if !status.is_success() => self.finish(slot, status, 0),
            _ if command.fuse != Fuse::None => self.launch_half(slot),
            Body::Fabrics(fabrics) => self.on_fabrics(index, slot, fabrics),
            Body::Admin(admin) => self.on_admin(index, slot, admin),
            Body::Io(io) => self.on_io(index, slot, io),
        }
    }

    fn on_io(&mut self, index: u32, slot: u32, io: Io) {
        let place = &self.connections[index];
        let host = IoController::of(place, &self.controllers, &self.subsystems, &self.limits);
        match host.and_then(|host| host.work(&mut self.io.flights[slot], io)) {
            Ok(Work::Nothing) => self.finish(slot, Status::SUCCESS, 0),
            Ok(Work::Request { backend, operation, flush_after }) => {
                self.io.flights[slot].flush_after = flush_after;
                self.request(index, slot, backend, operation);
            }
            Ok(Work::Flush(backends)) => {
                backends.into_iter().for_each(|backend| self.request(index, slot, backend, IoOperation::Flush));
            }
            Ok(Work::Reservation) => self.on_reservation(slot),
            Err(status) => self.finish(slot, status, 0),
        }
    }

    /// The data of one half are here. Both are carried out when those of the other are.
    fn launch_half(&mut self, slot: u32) {
        let flight = &mut self.io.flights[slot];
        flight.phase = Phase::Fused;
        let is_first = flight.command.fuse == Fuse::First;
        let Some(partner) = flight.partner else { return };
        if self.io.flights[partner].phase != Phase::Fused {
            return;
        }
        let (first, second) = if is_first { (slot, partner) } else { (partner, slot) };
        let command = self.io.flights[second].command;
        let (Some(index), Body::Io(io @ Io::Write(access))) = (self.io.flights[second].connection, command.body) else {
            return self.finish(second, Status::INTERNAL_ERROR, 0);
        };
        let backend = match self.io_controller(index).and_then(|host| host.admit(&command, io)) {
            Ok(namespace) => namespace.config.backend,
            Err(status) => return self.finish(second, status, 0),
        };
        let expected = std::mem::take(&mut self.io.flights[first].buffer);
        let data = std::mem::take(&mut self.io.flights[second].buffer);
        let (range, is_durable) = (access.into(), is_durable(access.flags));
        self.request(index, second, backend, IoOperation::CompareAndWrite { range, expected, data, is_durable });
    }

    /// Fails a command that is not carried out, whatever its state.
    pub(super) fn fail_early(&mut self, slot: u32, status: Status) {
        let flight = &mut self.io.flights[slot];
        flight.fail(status);
        let Some(index) = flight.connection else { return };
        match flight.phase {
            Phase::Free | Phase::Working => {}
            Phase::Parked => {
                self.connections[index].parked.retain(|parked| *parked != slot);
                self.finish(slot, status, 0);
            }
            Phase::Receiving => flight.write.fail(status),
            Phase::Fused | Phase::Waiting => self.finish(slot, status, 0),
        }
    }

    /// Takes a reservation command whose data are here.
    pub(super) fn on_reservation(&mut self, slot: u32) {
        let Some((at, host)) = self.reserver(slot) else {
            return self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        };
        let flight = &self.io.flights[slot];
        let id = flight.command.namespace;
        let subsystem = &mut self.subsystems[at];
        if let Body::Io(Io::ReservationReport { is_extended, .. }) = flight.command.body {
            let report = subsystem.report(at, id, is_extended, (&self.controllers, &self.group));
            return self.reply(slot, report);
        }
        if !self.group.is_first() {
            return self.ask_first(slot, at, host);
        }
        let namespace = subsystem.namespaces.get_mut(&id).ok_or(Status::INVALID_NAMESPACE);
        match namespace.and_then(|namespace| namespace.reserve(slot, flight, host)) {
            Ok(ReservationEvent::Waits) => self.io.flights[slot].phase = Phase::Waiting,
            Ok(ReservationEvent::Done(effects)) => {
                self.on_effects(at, id, &effects);
                self.spread(slot, at, effects);
            }
            Ok(ReservationEvent::Persist { backend, state, effects }) => {
                self.on_effects(at, id, &effects);
                let controller =
                    self.io.flights[slot].connection.and_then(|index| self.connections[index].controller());
                self.io.request(slot, backend, controller.unwrap_or(0), IoOperation::PersistReservations { state });
                self.spread(slot, at, effects);
            }
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    /// The subsystem and the host of a reservation command, of this machine or of another.
    fn reserver(&self, slot: u32) -> Option<(usize, HostId)> {
        if let Some(asker) = self.group.askers.get(&slot) {
            let at = self.subsystems.iter().position(|known| known.config.name == asker.subsystem);
            return at.map(|at| (at, asker.host));
        }
        let controller = self.connections[self.io.flights[slot].connection?].controller()?;
        let controller = self.controllers.get(controller)?;
        controller.subsystem().map(|at| (at, controller.host_id))
    }

    /// Passes on the effects of a reservation command on other hosts.
    pub(super) fn on_effects(&mut self, at: usize, namespace: u32, effects: &Effects) {
        let lost = [
            (&effects.preempted, reserve::REGISTRATION_PREEMPTED),
            (&effects.released, reserve::RESERVATION_RELEASED),
            (&effects.taken, reserve::RESERVATION_PREEMPTED),
        ];
        for (hosts, kind) in lost {
            self.on_subsystem_event(at, SubsystemEvent::ReservationLost { namespace, hosts, kind });
        }
        if effects.aborts {
            self.abort_commands(at, namespace, &effects.preempted);
        }
    }

    /// Aborts commands of preempted hosts that no backend works on yet.
    fn abort_commands(&mut self, at: usize, id: u32, hosts: &[HostId]) {
        let theirs = self.controllers.iter().filter(|known| known.subsystem() == Some(at));
        let theirs = theirs.filter(|known| hosts.contains(&known.host_id));
        let queues: Vec<u32> = theirs.flat_map(|known| known.queues.iter().skip(1).flatten().copied()).collect();
        for index in queues {
            let commands: Vec<u32> = self.connections[index].queue.iter().map(|(_, slot)| *slot).collect();
            for slot in commands {
                let flight = &self.io.flights[slot];
                if flight.command.namespace == id && flight.phase != Phase::Free {
                    self.leave_reservation_queue(slot);
                    self.fail_early(slot, Status::PREEMPTED);
                }
            }
        }
    }

    /// A backend has kept the reservations of a command, or could not.
    fn on_reserved(&mut self, slot: u32, status: Status) {
        let id = self.io.flights[slot].command.namespace;
        let is_its = |known: &Subsystem| known.namespaces.get(&id).is_some_and(|known| known.reserving == Some(slot));
        let at = self.subsystems.iter().position(is_its);
        self.finish(slot, if status.is_success() { status } else { Status::INTERNAL_ERROR }, 0);
        // The namespace may be gone.
        at.into_iter().for_each(|at| self.next_reservation(at, id));
    }

    /// Carries out the reservation commands that wait for a namespace.
    fn next_reservation(&mut self, at: usize, id: u32) {
        if let Some(namespace) = self.subsystems[at].namespaces.get_mut(&id) {
            namespace.reserved();
        }
        while let Some(slot) = self.subsystems[at].namespaces.get_mut(&id).and_then(|known| known.next_waiting()) {
            self.on_reservation(slot);
        }
    }

    /// A backend has granted or refused the loan of a read.
    pub(super) fn on_loan_answered(&mut self, slot: u32, is_granted: bool) {
        let flight = &mut self.io.flights[slot];
        let (command, connection, transfer) = (flight.command, flight.connection, flight.transfer);
        if connection.is_none() || !is_granted {
            self.io.loans_over(1);
        }
        let (Some(index), Body::Io(Io::Read(access)), Transfer::Out(length)) = (connection, command.body, transfer)
        else {
            return self.release(slot);
        };
        if is_granted {
            let flight = &mut self.io.flights[slot];
            self.observer.count(flight, Status::SUCCESS);
            self.connections[index].answer_lent(flight, (access.into(), length));
            self.connections.has_output(index, &mut self.clock);
            return self.release(slot);
        }
        let namespace = self.io_controller(index).and_then(|host| host.subsystem.namespace(command.namespace));
        let Ok(backend) = namespace.map(|namespace| namespace.config.backend) else {
            return self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        };
        let buffer = self.io.pool.take(length as usize);
        self.request(index, slot, backend, IoOperation::Read { range: access.into(), buffer });
    }

    /// Takes the bytes of a loan that was ended.
    fn on_loan_ended(&mut self, slot: u32, connection: ConnectionId, payload: u64, status: Status) {
        let buffer = std::mem::take(&mut self.io.flights[slot].buffer);
        self.release(slot);
        let Some(index) = self.connections.find(connection) else { return self.io.pool.give(buffer) };
        if status.is_success() {
            match self.connections[index].out.take_in(payload, buffer) {
                Ok(()) => return self.connections.mark_active(index),
                Err(buffer) => self.io.pool.give(buffer),
            }
        }
        // The header has announced them: the stream cannot continue.
        self.close(index, CloseReason::Backend);
        self.connections.drop_output(index, &mut self.io);
    }

    /// Backends have answered all requests of a command.
    pub(super) fn on_worked(&mut self, slot: u32) {
        let flight = &mut self.io.flights[slot];
        let (status, command) = (flight.status, flight.command);
        match flight.own {
            Some(Own::Shutdown(id)) => {
                self.release(slot);
                return self.controllers.get_mut(id).into_iter().for_each(Controller::shutdown_done);
            }
            Some(Own::Loan { connection, payload }) => return self.on_loan_ended(slot, connection, payload, status),
            Some(Own::Reservation) | None => {}
        }
        if let Some(backend) = flight.flush_after.take().filter(|_| status.is_success()) {
            let controller = flight.connection.and_then(|index| self.connections[index].controller());
            return self.io.request(slot, backend, controller.unwrap_or(0), IoOperation::Flush);
        }
        match command.body {
            Body::Io(Io::Vendor(_)) => {
                let result = flight.engine_result();
                self.finish(slot, status, result);
            }
            Body::Io(Io::ReservationRegister(_) | Io::ReservationAcquire(_) | Io::ReservationRelease(_)) => {
                self.on_reserved(slot, status);
            }
            _ if command.fuse != Fuse::None => self.finish_pair(slot, status),
            _ => self.finish(slot, status, 0),
        }
    }

    /// Completes both halves of a pair; only the first reports that blocks differ.
    fn finish_pair(&mut self, second: u32, status: Status) {
        if let Some(first) = self.io.flights[second].partner.take() {
            self.io.flights[first].partner = None;
            self.finish(first, status, 0);
        }
        let failed = Status::FAILED_FUSED.without_retry();
        self.finish(second, if status.is_success() { status } else { failed }, 0);
    }

    /// Completes a command. Data that it read are in its buffer.
    pub(super) fn finish(&mut self, slot: u32, status: Status, result: u64) {
        if let Some(partner) = self.io.flights[slot].partner.take() {
            self.io.flights[partner].partner = None;
            self.fail_early(partner, Status::FAILED_FUSED.without_retry());
        }
        let flight = &mut self.io.flights[slot];
        if let Some(index) = flight.connection {
            let place = &mut self.connections[index];
            place.leave_fused(slot);
            self.observer.count(flight, status);
            if !status.is_success() {
                let controller = place.controller().and_then(|id| self.controllers.get_mut(id));
                controller.into_iter().for_each(|known| known.log_error(place.error_entry(&flight.command, status)));
            }
            place.answer(flight, status, result, self.limits.controller_data_max);
            self.connections.has_output(index, &mut self.clock);
        } else if flight.own == Some(Own::Reservation) {
            self.answer_asker(slot, status);
        }
        self.release(slot);
    }

    /// Frees a command and its resources. Commands that wait for the budget may start.
    pub(super) fn release(&mut self, slot: u32) {
        let tag = self.io.flights.tag(slot);
        if let Some((index, charged)) = self.io.release(slot) {
            self.connections[index].charged -= charged;
            self.unpark(index);
        }
        if !self.group.drains.is_empty() {
            self.drained(tag);
        }
    }
}

fn admin_transfer(admin: Admin) -> Transfer {
    match admin {
        Admin::Identify(_) => Transfer::Out(crate::identify::IDENTIFY_BYTES as u32),
        // More than a transfer is refused by the caller; here only what does not fit 32 bits.
        Admin::GetLogPage(log) => Transfer::Out(u32::try_from(log.bytes()).unwrap_or(u32::MAX)),
        Admin::SetFeatures(set) => features::set_feature_transfer(set.feature),
        Admin::GetFeatures { feature, select, argument } => features::get_feature_transfer(feature, select, argument),
        Admin::Abort { .. } | Admin::AsynchronousEvent | Admin::KeepAlive => Transfer::None,
    }
}

/// Checks that a descriptor fits what the command moves: its length, and its type.
fn check_descriptor(data: Sgl, transfer: Transfer, in_capsule: u32) -> Result<(), Status> {
    let status = match (data, transfer) {
        (Sgl::Transport { length }, Transfer::In(wanted) | Transfer::Out(wanted)) if length == wanted => return Ok(()),
        (Sgl::InCapsule { length, offset }, Transfer::In(wanted)) if length == wanted => {
            if offset.checked_add(wanted.into()).is_some_and(|end| end <= in_capsule.into()) {
                return Ok(());
            }
            Status::INVALID_SGL_OFFSET
        }
        (Sgl::Transport { .. }, _) | (Sgl::InCapsule { .. }, Transfer::In(_)) => Status::INVALID_SGL_LENGTH,
        _ => Status::INVALID_SGL_TYPE,
    };
    Err(status.without_retry())
}
