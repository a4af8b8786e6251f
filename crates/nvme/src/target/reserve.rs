//! Reservation commands of a namespace: one at a time, kept by the backend before they are
//! answered, and reported to other hosts.

use crate::reservation::{AcquireKeys, RegisterKeys};
use crate::target::BackendId;
use crate::target::controllers::Controllers;
use crate::target::flight::Flight;
use crate::target::group::{Elsewhere, Group};
use crate::target::reservations::{Effects, Reservations};
use crate::target::subsystem::{Namespace, Subsystem};
use crate::{Body, HostId, Io, Status};

/// Kinds of notices (Base 2.0, Figure 264).
pub(super) const REGISTRATION_PREEMPTED: u8 = 1;
pub(super) const RESERVATION_RELEASED: u8 = 2;
pub(super) const RESERVATION_PREEMPTED: u8 = 3;
/// A host that registered and has no controller (Base 2.0, Figure 417).
const NO_CONTROLLER: u16 = 0xffff;

/// The outcome of a reservation command.
#[derive(Debug)]
pub(super) enum ReservationEvent {
    /// The command waits until the one before it is kept.
    Waits,
    /// The new state holds, and the command has succeeded.
    Done(Effects),
    /// The new state holds; `backend` has to keep it before the host is answered.
    Persist { backend: BackendId, state: Reservations, effects: Effects },
}

/// The state after a reservation command of `host`, and its effects on other hosts.
fn after(flight: &Flight, host: HostId, mut state: Reservations) -> Result<(Reservations, Effects), Status> {
    let short = |_| Status::INVALID_FIELD;
    let effects = match flight.command.body {
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
    }?;
    Ok((state, effects))
}

impl Namespace {
    /// Carries out a reservation command of `host`, whose data are in its flight.
    pub(super) fn reserve(&mut self, slot: u32, flight: &Flight, host: HostId) -> Result<ReservationEvent, Status> {
        if self.reserving.is_some() {
            self.waiting.push_back(slot);
            return Ok(ReservationEvent::Waits);
        }
        let config = &mut self.config;
        let (state, effects) = after(flight, host, config.reservations.clone())?;
        // A controller without a backend that keeps reservations does not offer persistence (Base
        // 2.0, 7.3, CPTPL and RESCAP bit 0).
        if state.persists && !config.keeps_reservations {
            return Err(Status::INVALID_FIELD);
        }
        let before = std::mem::replace(&mut config.reservations, state);
        let state = &config.reservations;
        let has_to_persist = (before.persists || state.persists) && before != *state;
        self.reserving = has_to_persist.then_some(slot);
        Ok(match has_to_persist {
            true => ReservationEvent::Persist { backend: config.backend, state: state.kept(), effects },
            false => ReservationEvent::Done(effects),
        })
    }

    /// The backend has kept a state, or could not. The state holds until the target ends either
    /// way: other hosts may have seen it.
    pub(super) fn reserved(&mut self) {
        self.reserving = None;
    }

    /// The next command that waits, when it may be carried out.
    pub(super) fn next_waiting(&mut self) -> Option<u32> {
        if self.reserving.is_some() { None } else { self.waiting.pop_front() }
    }
}

impl Subsystem {
    /// The command no longer waits for reservations.
    pub(super) fn leave_reservation_queue(&mut self, slot: u32) {
        for namespace in self.namespaces.values_mut() {
            namespace.waiting.retain(|waiting| *waiting != slot);
        }
    }

    /// The report on reservations of the namespace `id`. This subsystem is the one at `at`.
    pub(super) fn report(
        &self,
        at: usize,
        id: u32,
        is_extended: bool,
        (controllers, group): (&Controllers, &Group),
    ) -> Result<Vec<u8>, Status> {
        // Host identifiers of fabrics have sixteen bytes: they fit the extended structure alone
        // (Base 2.0, 7.5).
        if !is_extended {
            return Err(Status::HOST_ID_FORMAT);
        }
        let namespace = self.namespaces.get(&id).ok_or(Status::INVALID_NAMESPACE)?;
        let controller_of = |host: HostId| {
            let of_host = controllers.iter().find(|known| known.subsystem() == Some(at) && known.host_id == host);
            let is_it = |known: &Elsewhere| known.subsystem == Some(self.config.name) && known.host_id == host;
            let elsewhere = || group.elsewhere.iter().find(|(_, known)| is_it(known)).map(|(id, _)| *id);
            of_host.map(|controller| controller.id).or_else(elsewhere).unwrap_or(NO_CONTROLLER)
        };
        Ok(namespace.config.reservations.report(controller_of).encode())
    }
}
