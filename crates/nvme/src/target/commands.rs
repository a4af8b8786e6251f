//! Commands as they come: counted, checked, given memory, carried out.

use crate::pdu::PduError;
use crate::queue::QueueError;
use crate::target::connection::{Fused, Incoming, Stage};
use crate::target::flight::{Admitted, Phase, Transfer};
use crate::target::io::IoOperation;
use crate::target::nvm::is_durable;
use crate::target::{BackendId, Target, Tolerated};
use crate::{Admin, Body, Command, Fabrics, Fuse, Io, QueueKind, Sgl, Sqe, Status};

impl Target {
    /// A capsule's header came; `data_length` bytes of data follow, in the input from byte `whole`
    /// on if all of them are there already.
    pub(super) fn on_command(&mut self, index: u32, entry: &Sqe, data_length: u32, whole: Option<usize>) {
        self.counters.commands += 1;
        let kind = QueueKind::of(self.connections[index].queue_id());
        let decoded = Command::decode(entry, kind);
        // What cannot be read keeps its id, for the answer.
        let command = decoded.unwrap_or(Command::new(entry.id.get(), Body::Fabrics(Fabrics::Disconnect)));
        let slot = self.flights.open(self.now, Some(index), command);
        if !self.enter_queue(index, slot, command.id) {
            return;
        }
        let fuse = decoded.map_or(Fuse::None, |command| command.fuse);
        let is_paired = self.pair(index, slot, fuse);
        let checked = decoded.map_err(|error| error.status()).and_then(|command| {
            is_paired?;
            self.check_load(index)?;
            self.check(index, &command, data_length)
        });
        match checked {
            Ok(admitted) => self.begin(index, slot, admitted, data_length, whole),
            Err(status) => self.finish(slot, status, 0),
        }
    }

    /// The queue takes the entry. False when it could not: the answer, or the end of the
    /// connection, is on its way.
    fn enter_queue(&mut self, index: u32, slot: u32, id: u16) -> bool {
        let Err(error) = self.connections[index].queue.receive(id, slot) else { return true };
        if matches!(error, QueueError::InUse { .. }) && self.replace_event_request(index, slot, id) {
            return true;
        }
        let place = &mut self.connections[index];
        let refusal = place.queue.refuse(id, Status::COMMAND_ID_CONFLICT.without_retry(), 0);
        self.flights.close(slot);
        match error {
            QueueError::Full { outstanding, most } => {
                let got = u64::from(outstanding) + 1;
                let what = "outstanding commands";
                self.terminate(index, PduError::LimitExceeded { what, got, most: most.into() });
            }
            _ => {
                self.counters.commands_failed += 1;
                self.send(index, &crate::pdu::Header::Response(refusal));
            }
        }
        false
    }

    /// Whether `id` was of an event request, whose place `slot` has now. A host that ends gives its
    /// event requests up without a word and uses their identifiers again (SPDK's does): nobody
    /// waits for an answer.
    fn replace_event_request(&mut self, index: u32, slot: u32, id: u16) -> bool {
        let Some(holder) = self.connections[index].queue.get_mut(id).copied() else { return false };
        let flight = &self.flights[holder];
        let is_event = flight.phase == Phase::Waiting && flight.command.body == Body::Admin(Admin::AsynchronousEvent);
        if !is_event || !self.tolerates(index, Tolerated::EventIdentifier) {
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

    /// A host whose queue is deeper than ours is told to come again with what is too much.
    fn check_load(&self, index: u32) -> Result<(), Status> {
        let place = &self.connections[index];
        let fits = place.queue.outstanding() <= place.commands_max;
        if fits { Ok(()) } else { Err(Status::INTERRUPTED) }
    }

    /// Whether the command may come now, and what it moves. Nothing is held for it before.
    fn check(&self, index: u32, command: &Command, data_length: u32) -> Result<Admitted, Status> {
        let is_connected = matches!(self.connections[index].stage, Stage::Queue { .. });
        let is_connect = matches!(command.body, Body::Fabrics(Fabrics::Connect(_)));
        if is_connected == is_connect {
            return Err(Status::COMMAND_SEQUENCE.without_retry());
        }
        let admitted = match command.body {
            Body::Fabrics(fabrics) => self.fabrics_transfer(index, fabrics)?.into(),
            _ if self.connections[index].has_to_prove() => {
                return Err(Status::AUTHENTICATION_REQUIRED.without_retry());
            }
            Body::Admin(admin) => self.admin_transfer(admin)?.into(),
            Body::Io(io) => self.io_transfer(index, command, io)?,
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

    /// The command may be carried out: when its data are here, when the budget has room.
    fn begin(&mut self, index: u32, slot: u32, admitted: Admitted, data_length: u32, whole: Option<usize>) {
        let Admitted { transfer, lender } = admitted;
        self.flights[slot].transfer = transfer;
        match (transfer, self.flights[slot].command.data) {
            (Transfer::None, _) => self.launch(slot),
            (Transfer::In(length), Sgl::InCapsule { offset: 0, .. })
                if self.writes_input(slot, lender, length, whole) => {}
            (Transfer::In(_), Sgl::InCapsule { .. }) => {
                self.flights[slot].buffer = self.pool.take(data_length as usize);
                self.connections[index].incoming = Incoming::Capsule { slot };
            }
            (Transfer::In(length) | Transfer::Out(length), _) => {
                if self.connections[index].parked.is_empty() && self.charge(index, slot, length) {
                    return self.start(index, slot, lender);
                }
                self.flights[slot].phase = Phase::Parked;
                self.connections[index].parked.push_back(slot);
            }
        }
    }

    /// Has a backend in memory write from the input. False when the data have to be gathered.
    fn writes_input(&mut self, slot: u32, lender: Option<BackendId>, length: u32, whole: Option<usize>) -> bool {
        let command = &self.flights[slot].command;
        let (Some(from), Some(backend), Body::Io(Io::Write(access))) = (whole, lender, command.body) else {
            return false;
        };
        let (to, is_durable) = (from + length as usize, is_durable(access.flags));
        let operation = IoOperation::WriteInput { range: access.into(), from, to, is_durable };
        self.request(slot, backend, operation);
        true
    }

    /// Takes room for the command's data out of the connection's budget, if there is some.
    fn charge(&mut self, index: u32, slot: u32, length: u32) -> bool {
        let (place, length) = (&mut self.connections[index], u64::from(length));
        let fits = place.charged + length <= self.limits.data_budget_bytes;
        if fits {
            place.charged += length;
            self.flights[slot].charged = length;
        }
        fits
    }

    /// Gives the budget to those who wait for it, in order.
    pub(super) fn unpark(&mut self, index: u32) {
        while let Some(slot) = self.connections[index].parked.front().copied() {
            let (Transfer::In(length) | Transfer::Out(length)) = self.flights[slot].transfer else {
                unreachable!("only commands with data wait for the budget")
            };
            if !self.charge(index, slot, length) {
                return;
            }
            self.connections[index].parked.pop_front();
            // It may not be allowed any more: then it gets a buffer, and fails when it is launched.
            let command = self.flights[slot].command;
            let admitted = match command.body {
                Body::Io(io) => self.io_transfer(index, &command, io).ok(),
                _ => None,
            };
            self.start(index, slot, admitted.and_then(|admitted| admitted.lender));
        }
    }

    /// There is room for the command's data, at once or after it has waited.
    fn start(&mut self, index: u32, slot: u32, lender: Option<BackendId>) {
        let transfer = self.flights[slot].transfer;
        match transfer {
            Transfer::In(length) => self.start_receiving(index, slot, length),
            Transfer::Out(_) if lender.is_some_and(|lender| self.borrow(index, slot, lender)) => {}
            Transfer::Out(length) => {
                self.flights[slot].buffer = self.pool.take(length as usize);
                self.launch(slot);
            }
            Transfer::None => unreachable!("only commands with data wait for the budget"),
        }
    }

    /// All data that the command needs are here.
    pub(super) fn launch(&mut self, slot: u32) {
        self.trim_capsule(slot);
        let flight = &self.flights[slot];
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

    /// In-capsule data may begin at an offset: what the command means is moved to the front.
    fn trim_capsule(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        if let (Transfer::In(length), Sgl::InCapsule { offset, .. }) = (flight.transfer, flight.command.data) {
            let (offset, length) = (offset as usize, length as usize);
            if offset > 0 {
                flight.buffer.copy_within(offset..offset + length, 0);
            }
            flight.buffer.truncate(length);
        }
    }

    /// Sees to it that halves of fused pairs come one behind the other.
    fn pair(&mut self, index: u32, slot: u32, fuse: Fuse) -> Result<(), Status> {
        let before = std::mem::replace(&mut self.connections[index].fused, Fused::None);
        match (before, fuse) {
            (Fused::First(first), Fuse::Second) => return self.join(first, slot),
            (Fused::Failed, Fuse::Second) => return Err(Status::FAILED_FUSED.without_retry()),
            (Fused::First(first), _) => self.fail_early(first, Status::MISSING_FUSED.without_retry()),
            _ => {}
        }
        let is_compare = matches!(self.flights[slot].command.body, Body::Io(Io::Compare(_)));
        match fuse {
            Fuse::None => Ok(()),
            Fuse::Second => Err(Status::MISSING_FUSED.without_retry()),
            Fuse::First if is_compare => {
                self.connections[index].fused = Fused::First(slot);
                Ok(())
            }
            Fuse::First => {
                self.connections[index].fused = Fused::Failed;
                Err(Status::INVALID_FIELD.without_retry())
            }
        }
    }

    /// Compare and Write of the same blocks.
    fn join(&mut self, first: u32, second: u32) -> Result<(), Status> {
        let (compare, write) = (self.flights[first].command, self.flights[second].command);
        let is_pair = match (compare.body, write.body) {
            (Body::Io(Io::Compare(compared)), Body::Io(Io::Write(written))) => {
                compare.namespace == write.namespace
                    && compared.start == written.start
                    && compared.blocks_minus_one == written.blocks_minus_one
            }
            _ => false,
        };
        if !is_pair {
            self.fail_early(first, Status::FAILED_FUSED.without_retry());
            return Err(Status::INVALID_FIELD.without_retry());
        }
        self.flights[first].partner = Some(second);
        self.flights[second].partner = Some(first);
        Ok(())
    }

    /// Data of one half are here: both are carried out when those of the other are.
    fn launch_half(&mut self, slot: u32) {
        self.flights[slot].phase = Phase::Fused;
        let Some(partner) = self.flights[slot].partner else { return };
        if self.flights[partner].phase != Phase::Fused {
            return;
        }
        let is_first = self.flights[slot].command.fuse == Fuse::First;
        let (first, second) = if is_first { (slot, partner) } else { (partner, slot) };
        self.on_compare_and_write(first, second);
    }

    /// A command that is not carried out, whatever of it is still to come.
    pub(super) fn fail_early(&mut self, slot: u32, status: Status) {
        let flight = &mut self.flights[slot];
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

    fn fabrics_transfer(&self, index: u32, fabrics: Fabrics) -> Result<Transfer, Status> {
        match fabrics {
            Fabrics::Connect(_) => Ok(Transfer::In(crate::ConnectData::BYTES as u32)),
            Fabrics::AuthenticationSend { .. } | Fabrics::AuthenticationReceive { .. } => {
                self.authentication_transfer(index, fabrics)
            }
            _ if self.connections[index].has_to_prove() => Err(Status::AUTHENTICATION_REQUIRED.without_retry()),
            Fabrics::PropertySet { .. } | Fabrics::PropertyGet { .. } | Fabrics::Disconnect => Ok(Transfer::None),
        }
    }

    fn admin_transfer(&self, admin: Admin) -> Result<Transfer, Status> {
        match admin {
            Admin::Identify(_) => Ok(Transfer::Out(crate::identify::IDENTIFY_BYTES as u32)),
            Admin::GetLogPage(log) => {
                // More than a transfer is refused by the caller; here only what does not fit 32
                // bits.
                Ok(Transfer::Out(u32::try_from(log.bytes()).unwrap_or(u32::MAX)))
            }
            Admin::SetFeatures(set) => Ok(Self::set_feature_transfer(set.feature)),
            Admin::GetFeatures { feature, select, argument } => {
                Ok(Self::get_feature_transfer(feature, select, argument))
            }
            Admin::Abort { .. } | Admin::AsynchronousEvent | Admin::KeepAlive => Ok(Transfer::None),
        }
    }
}

/// That a descriptor says what the command moves: no more, no less, and by the right way.
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
