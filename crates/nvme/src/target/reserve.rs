//! Reservation commands: one at a time a namespace, written down before they are answered, other
//! hosts told.

use crate::reservation::{AcquireKeys, RegisterKeys};
use crate::target::Target;
use crate::target::flight::Phase;
use crate::target::io::IoOperation;
use crate::target::reservations::{Effects, Reservations};
use crate::{Body, HostId, Io, Status};

/// Kinds of notices (Base 2.0, Figure 264).
const REGISTRATION_PREEMPTED: u8 = 1;
const RESERVATION_RELEASED: u8 = 2;
const RESERVATION_PREEMPTED: u8 = 3;
/// A host that registered and is gone (Base 2.0, Figure 417).
const NO_CONTROLLER: u16 = 0xffff;

/// What is asked to survive a loss of power has to be kept by somebody; else the host is told that
/// this controller does not do it (Base 2.0, 7.3, CPTPL and RESCAP bit 0).
fn may_persist(state: &Reservations, keeps: bool) -> Result<(), Status> {
    if state.persists && !keeps { Err(Status::INVALID_FIELD) } else { Ok(()) }
}

impl Target {
    /// A reservation command whose data are here.
    pub(super) fn on_reservation(&mut self, index: u32, slot: u32) {
        let id = self.flights[slot].command.namespace;
        let Some((subsystem, host)) = self.place_of(index) else { return };
        if let Body::Io(Io::ReservationReport { is_extended, .. }) = self.flights[slot].command.body {
            let report = self.report(subsystem, id, is_extended);
            return self.reply(slot, report);
        }
        let Some(namespace) = self.subsystems[subsystem].namespaces.get_mut(&id) else {
            return self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        };
        if namespace.is_reserving {
            namespace.waiting.push_back(slot);
            self.flights[slot].phase = Phase::Waiting;
            return;
        }
        let keeps = namespace.config.keeps_reservations;
        let before = namespace.config.reservations.clone();
        let mut state = before.clone();
        match self.change(slot, host, &mut state).and_then(|effects| may_persist(&state, keeps).map(|()| effects)) {
            Ok(effects) => self.commit(subsystem, slot, before, state, effects),
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    fn place_of(&mut self, index: u32) -> Option<(usize, HostId)> {
        let controller = self.controller_of(index)?;
        Some((controller.subsystem()?, controller.host_id))
    }

    fn change(&self, slot: u32, host: HostId, state: &mut Reservations) -> Result<Effects, Status> {
        let flight = &self.flights[slot];
        let short = |_| Status::INVALID_FIELD;
        match flight.command.body {
            Body::Io(Io::ReservationRegister(command)) => {
                let keys = RegisterKeys::decode(&flight.buffer).map_err(short)?;
                state.register(host, command, [keys.current, keys.new])
            }
            Body::Io(Io::ReservationAcquire(command)) => {
                let keys = AcquireKeys::decode(&flight.buffer).map_err(short)?;
                state.acquire(host, command, [keys.current, keys.preempt])
            }
            Body::Io(Io::ReservationRelease(command)) => {
                let key = flight.buffer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                state.release(host, command, key.ok_or(Status::INVALID_FIELD)?)
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The new state holds; what persists is written down before the host is answered.
    fn commit(&mut self, subsystem: usize, slot: u32, before: Reservations, state: Reservations, effects: Effects) {
        let id = self.flights[slot].command.namespace;
        let is_kept = before.persists || state.persists;
        let is_changed = before != state;
        let Some(namespace) = self.subsystems[subsystem].namespaces.get_mut(&id) else { return };
        namespace.config.reservations = state.clone();
        let backend = namespace.config.backend;
        self.tell_effects(subsystem, id, &effects);
        if is_kept && is_changed {
            if let Some(namespace) = self.subsystems[subsystem].namespaces.get_mut(&id) {
                namespace.is_reserving = true;
            }
            self.request(slot, backend, IoOperation::PersistReservations { state: state.kept() });
        } else {
            self.finish(slot, Status::SUCCESS, 0);
        }
    }

    /// The state was written down, or could not be. It holds until the target ends either way:
    /// other hosts may have seen it.
    pub(super) fn on_reserved(&mut self, slot: u32, status: Status) {
        let flight = &self.flights[slot];
        let (connection, id) = (flight.connection, flight.command.namespace);
        let subsystem = connection.and_then(|index| self.place_of(index)).map(|(subsystem, _)| subsystem);
        self.finish(slot, if status.is_success() { status } else { Status::INTERNAL_ERROR }, 0);
        match subsystem {
            Some(subsystem) => self.next_reservation(subsystem, id),
            // Its host is gone: whose namespace it was is not known any more, so all that wait for
            // nothing go on.
            None => (0..self.subsystems.len()).for_each(|subsystem| self.next_reservation(subsystem, id)),
        }
    }

    /// The next command that waits for a namespace's reservations.
    fn next_reservation(&mut self, subsystem: usize, id: u32) {
        let Some(namespace) = self.subsystems[subsystem].namespaces.get_mut(&id) else { return };
        namespace.is_reserving = false;
        while let Some(namespace) = self.subsystems[subsystem].namespaces.get_mut(&id) {
            if namespace.is_reserving {
                return;
            }
            let Some(slot) = namespace.waiting.pop_front() else { return };
            if let Some(index) = self.flights[slot].connection {
                self.on_reservation(index, slot);
            }
        }
    }

    /// The command no longer waits for reservations.
    pub(super) fn leave_reservation_queue(&mut self, slot: u32) {
        for subsystem in &mut self.subsystems {
            for namespace in subsystem.namespaces.values_mut() {
                namespace.waiting.retain(|waiting| *waiting != slot);
            }
        }
    }

    fn report(&self, subsystem: usize, id: u32, is_extended: bool) -> Result<Vec<u8>, Status> {
        // Host identifiers of fabrics have sixteen bytes and do not fit the other structure (Base
        // 2.0, 7.5).
        if !is_extended {
            return Err(Status::HOST_ID_FORMAT);
        }
        let namespace = self.subsystems[subsystem].namespaces.get(&id).ok_or(Status::INVALID_NAMESPACE)?;
        let controller_of = |host: HostId| {
            let mut known = self.controllers.iter();
            let of_host = known.find(|known| known.subsystem() == Some(subsystem) && known.host_id == host);
            of_host.map_or(NO_CONTROLLER, |controller| controller.id)
        };
        Ok(namespace.config.reservations.report(controller_of).encode())
    }

    fn tell_effects(&mut self, subsystem: usize, id: u32, effects: &Effects) {
        self.tell_hosts(subsystem, id, &effects.preempted, REGISTRATION_PREEMPTED);
        self.tell_hosts(subsystem, id, &effects.released, RESERVATION_RELEASED);
        self.tell_hosts(subsystem, id, &effects.taken, RESERVATION_PREEMPTED);
        if effects.aborts {
            self.abort_commands(subsystem, id, &effects.preempted);
        }
    }

    fn tell_hosts(&mut self, subsystem: usize, id: u32, hosts: &[HostId], kind: u8) {
        let told = self
            .controllers
            .iter_mut()
            .filter(|controller| controller.subsystem() == Some(subsystem) && hosts.contains(&controller.host_id));
        let told: Vec<u16> = told
            .map(|controller| {
                controller.notify_reservation(id, kind);
                controller.id
            })
            .collect();
        told.into_iter().for_each(|controller| self.tell_events(controller));
    }

    /// Commands of preempted hosts that no backend works on yet.
    fn abort_commands(&mut self, subsystem: usize, id: u32, hosts: &[HostId]) {
        let theirs = self
            .controllers
            .iter()
            .filter(|controller| controller.subsystem() == Some(subsystem) && hosts.contains(&controller.host_id));
        let queues: Vec<u32> =
            theirs.flat_map(|controller| controller.queues.iter().skip(1).flatten().copied()).collect();
        for index in queues {
            let commands: Vec<u32> = self.connections[index].queue.iter().map(|(_, slot)| *slot).collect();
            for slot in commands {
                if self.flights[slot].command.namespace == id && self.flights[slot].phase != Phase::Free {
                    self.leave_reservation_queue(slot);
                    self.fail_early(slot, Status::PREEMPTED);
                }
            }
        }
    }
}
