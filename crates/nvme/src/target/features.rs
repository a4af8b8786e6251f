//! Features that a host reads and changes.

use crate::feature::{EventMask, FeatureId, HostBehavior, QueueCounts};
use crate::target::controller::{Controller, Role};
use crate::target::flight::Transfer;
use crate::target::io::IoOperation;
use crate::target::reservations::Reservations;
use crate::target::{BackendId, Target};
use crate::{FeatureSelect, SetFeatures, Status};
use base::Span;

/// Bytes of the timestamp, whose clock takes six of them (Base 2.0, 5.27.1.12).
const TIMESTAMP_BYTES: u32 = 8;
const HOST_ID_BYTES: u32 = 16;
/// Bits 2 (changeable) and 1 (per namespace) of what can be done with a feature.
const CHANGEABLE: u32 = 1 << 2;
const PER_NAMESPACE: u32 = 1 << 1;
/// The namespace of all.
const ALL: u32 = u32::MAX;

/// What a feature is now: dword 0, and data where it has any.
type Value = (u32, Vec<u8>);

impl Target {
    /// What Set Features brings.
    pub(super) fn set_feature_transfer(feature: u8) -> Transfer {
        match FeatureId::of_code(feature) {
            Some(FeatureId::Timestamp) => Transfer::In(TIMESTAMP_BYTES),
            Some(FeatureId::HostBehavior) => Transfer::In(HostBehavior::BYTES as u32),
            _ => Transfer::None,
        }
    }

    /// What Get Features returns.
    pub(super) fn get_feature_transfer(feature: u8, select: FeatureSelect, argument: u32) -> Transfer {
        match FeatureId::of_code(feature) {
            _ if select == FeatureSelect::Capabilities => Transfer::None,
            Some(FeatureId::Timestamp) => Transfer::Out(TIMESTAMP_BYTES),
            Some(FeatureId::HostBehavior) => Transfer::Out(HostBehavior::BYTES as u32),
            // Bit 0 (EXHID) asks for sixteen bytes; eight there never are on fabrics.
            Some(FeatureId::HostId) if argument & 1 != 0 => Transfer::Out(HOST_ID_BYTES),
            _ => Transfer::None,
        }
    }

    pub(super) fn on_set_features(&mut self, index: u32, slot: u32, set: SetFeatures) {
        if set.save {
            return self.finish(slot, Status::FEATURE_NOT_SAVEABLE.without_retry(), 0);
        }
        let outcome = match FeatureId::of_code(set.feature).filter(|id| self.has_feature(index, *id)) {
            Some(FeatureId::NumberOfQueues) => self.grant_queues(set.arguments[0]).ok_or(Status::INVALID_FIELD),
            Some(FeatureId::ReservationPersistence) => {
                return self.set_persistence(index, slot, set.arguments[0] & 1 != 0);
            }
            Some(FeatureId::ReservationNotifications) => self.set_masks(index, slot, set.arguments[0]).map(|()| 0),
            Some(FeatureId::KeepAlive) => {
                self.set_keep_alive(index, set.arguments[0]);
                Ok(0)
            }
            Some(feature) => self.set_of_controller(index, slot, feature, set.arguments[0]).map(|()| 0),
            None => Err(Status::INVALID_FIELD),
        };
        match outcome {
            Ok(result) => self.finish(slot, Status::SUCCESS, result.into()),
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    /// A discovery controller has what a host needs to stay with it.
    fn has_feature(&mut self, index: u32, feature: FeatureId) -> bool {
        let is_discovery = self.controller_of(index).is_some_and(|known| known.role == Role::Discovery);
        !is_discovery || matches!(feature, FeatureId::AsynchronousEvents | FeatureId::KeepAlive | FeatureId::HostId)
    }

    fn set_keep_alive(&mut self, index: u32, milliseconds: u32) {
        let (span, now) = (self.keep_alive_span(milliseconds), self.now);
        let Some(controller) = self.controller_of(index) else { return };
        controller.keep_alive = span;
        controller.keep_alive(now);
        let deadline = controller.keep_alive_deadline;
        self.wake_by(deadline);
    }

    fn set_of_controller(&mut self, index: u32, slot: u32, feature: FeatureId, value: u32) -> Result<(), Status> {
        let now = self.now;
        let data = std::mem::take(&mut self.flights[slot].buffer);
        let Some(controller) = self.controller_of(index) else { return Err(Status::INTERNAL_ERROR) };
        let features = &mut controller.features;
        match feature {
            FeatureId::Arbitration => features.arbitration = value,
            FeatureId::PowerManagement if value & 0x1f != 0 => return Err(Status::INVALID_FIELD),
            FeatureId::PowerManagement => features.power = value,
            FeatureId::TemperatureThreshold => features.temperature = value,
            FeatureId::ErrorRecovery => features.error_recovery = value,
            FeatureId::WriteAtomicity => features.write_atomicity = value,
            FeatureId::AsynchronousEvents => controller.event_mask = EventMask::from_bits_retain(value),
            // The cache is the backend's and cannot be switched off by one host for all.
            FeatureId::VolatileWriteCache if value & 1 == 0 => return Err(Status::FEATURE_NOT_CHANGEABLE),
            FeatureId::VolatileWriteCache => {}
            FeatureId::Timestamp => {
                let mut clock = [0; 8];
                clock[..6].copy_from_slice(&data[..6]);
                (features.timestamp_ms, features.timestamp_set) = (u64::from_le_bytes(clock), Some(now));
            }
            FeatureId::HostBehavior => controller.behavior = read_behavior(&data)?,
            // Base 2.0, 5.27.1.25: on fabrics Connect has set it for good.
            FeatureId::HostId => return Err(Status::COMMAND_SEQUENCE),
            _ => return Err(Status::INVALID_FIELD),
        }
        self.flights[slot].buffer = data;
        Ok(())
    }

    /// The subsystem of a controller, and which of its namespaces a feature is set for.
    fn chosen_namespaces(&mut self, index: u32, id: u32) -> Result<(usize, Vec<u32>), Status> {
        let controller = self.controller_of(index).ok_or(Status::INTERNAL_ERROR)?;
        let subsystem = controller.subsystem().ok_or(Status::INVALID_FIELD)?;
        let known = self.subsystems[subsystem].namespaces.keys().copied();
        let chosen: Vec<u32> = known.filter(|known| id == ALL || *known == id).collect();
        if chosen.is_empty() { Err(Status::INVALID_NAMESPACE) } else { Ok((subsystem, chosen)) }
    }

    fn set_masks(&mut self, index: u32, slot: u32, mask: u32) -> Result<(), Status> {
        let id = self.flights[slot].command.namespace;
        let (_, chosen) = self.chosen_namespaces(index, id)?;
        let controller = self.controller_of(index).ok_or(Status::INTERNAL_ERROR)?;
        controller.reservation_masks.extend(chosen.into_iter().map(|id| (id, mask)));
        Ok(())
    }

    /// Whether reservations last from now on. It is written down before the host is answered.
    fn set_persistence(&mut self, index: u32, slot: u32, persists: bool) {
        match self.lasting_states(index, slot, persists) {
            Ok(states) if states.is_empty() => self.finish(slot, Status::SUCCESS, 0),
            Ok(states) => states.into_iter().for_each(|(backend, state)| {
                self.request(slot, backend, IoOperation::PersistReservations { state });
            }),
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    /// What has to be kept of each namespace whose reservations last from now on, or no longer do.
    fn lasting_states(
        &mut self,
        index: u32,
        slot: u32,
        persists: bool,
    ) -> Result<Vec<(BackendId, Reservations)>, Status> {
        let (subsystem, chosen) = self.chosen_namespaces(index, self.flights[slot].command.namespace)?;
        let namespaces = &mut self.subsystems[subsystem].namespaces;
        let keeps = |id: &u32| namespaces.get(id).is_some_and(|namespace| namespace.config.keeps_reservations);
        if persists && !chosen.iter().all(keeps) {
            return Err(Status::INVALID_FIELD);
        }
        let changed = namespaces.iter_mut().filter(|(id, _)| chosen.contains(id)).map(|(_, namespace)| namespace);
        let changed = changed.filter(|namespace| namespace.config.reservations.persists != persists);
        Ok(changed
            .map(|namespace| {
                let config = &mut namespace.config;
                config.reservations.persists = persists;
                (config.backend, config.reservations.kept())
            })
            .collect())
    }

    pub(super) fn on_get_features(&mut self, index: u32, slot: u32, feature: u8, select: FeatureSelect, argument: u32) {
        let known = FeatureId::of_code(feature).filter(|id| self.has_feature(index, *id));
        let value = known.ok_or(Status::INVALID_FIELD).and_then(|known| match select {
            FeatureSelect::Capabilities => Ok((capabilities(known), Vec::new())),
            FeatureSelect::Current => self.feature_value(index, slot, known, argument),
            // Nothing is saved, and what a reset brings is zero of everything but the queues.
            FeatureSelect::Default | FeatureSelect::Saved => self.default_value(known),
        });
        match value {
            Ok((result, data)) => {
                let room = &mut self.flights[slot].buffer;
                let count = data.len().min(room.len());
                room[..count].copy_from_slice(&data[..count]);
                room[count..].fill(0);
                self.finish(slot, Status::SUCCESS, result.into());
            }
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    fn default_value(&self, feature: FeatureId) -> Result<Value, Status> {
        let result = match feature {
            FeatureId::NumberOfQueues => self.all_queues(),
            FeatureId::VolatileWriteCache => 1,
            _ => 0,
        };
        Ok((result, Vec::new()))
    }

    fn all_queues(&self) -> u32 {
        let most = self.limits.io_queues_max - 1;
        QueueCounts { submission_minus_one: most, completion_minus_one: most }.encode()
    }

    fn feature_value(&mut self, index: u32, slot: u32, feature: FeatureId, argument: u32) -> Result<Value, Status> {
        let (now, queues, id) = (self.now, self.all_queues(), self.flights[slot].command.namespace);
        if matches!(feature, FeatureId::ReservationNotifications | FeatureId::ReservationPersistence) {
            return self.value_of_namespace(index, feature, id).map(|value| (value, Vec::new()));
        }
        let controller = self.controller_of(index).ok_or(Status::INTERNAL_ERROR)?;
        let features = &controller.features;
        let value = match feature {
            FeatureId::Arbitration => features.arbitration,
            FeatureId::PowerManagement => features.power,
            FeatureId::TemperatureThreshold => features.temperature,
            FeatureId::ErrorRecovery => features.error_recovery,
            FeatureId::WriteAtomicity => features.write_atomicity,
            FeatureId::VolatileWriteCache => 1,
            FeatureId::NumberOfQueues => queues,
            FeatureId::AsynchronousEvents => controller.event_mask.bits(),
            FeatureId::KeepAlive => (controller.keep_alive.as_ps() / Span::ms(1).as_ps()) as u32,
            FeatureId::Timestamp => return Ok((0, timestamp(controller, now))),
            FeatureId::HostBehavior => return Ok((0, controller.behavior.encode().to_vec())),
            FeatureId::HostId if argument & 1 == 0 => return Err(Status::INVALID_FIELD),
            FeatureId::HostId => return Ok((0, controller.host_id.0.to_vec())),
            FeatureId::ReservationNotifications | FeatureId::ReservationPersistence => {
                unreachable!("features of namespaces went the other way")
            }
        };
        Ok((value, Vec::new()))
    }

    fn value_of_namespace(&mut self, index: u32, feature: FeatureId, id: u32) -> Result<u32, Status> {
        let controller = self.controller_of(index).ok_or(Status::INTERNAL_ERROR)?;
        let mask = controller.reservation_masks.get(&id).copied().unwrap_or(0);
        let subsystem = controller.subsystem().ok_or(Status::INVALID_FIELD)?;
        let namespace = self.subsystems[subsystem].namespaces.get(&id).ok_or(Status::INVALID_NAMESPACE)?;
        let persists = u32::from(namespace.config.reservations.persists);
        Ok(if feature == FeatureId::ReservationPersistence { persists } else { mask })
    }
}

fn capabilities(feature: FeatureId) -> u32 {
    match feature {
        FeatureId::HostId => 0,
        FeatureId::ReservationNotifications | FeatureId::ReservationPersistence => CHANGEABLE | PER_NAMESPACE,
        _ => CHANGEABLE,
    }
}

fn read_behavior(data: &[u8]) -> Result<HostBehavior, Status> {
    HostBehavior::decode(data).map_err(|_| Status::INVALID_FIELD)
}

/// The host's clock, and what has passed since it was set; byte 6 says in bit 1 that the host has
/// set it (Base 2.0, Figure 334).
fn timestamp(controller: &Controller, now: base::Time) -> Vec<u8> {
    let features = &controller.features;
    let passed = features.timestamp_set.map_or(Span::ZERO, |set| now.saturating_since(set));
    let clock = features.timestamp_ms.wrapping_add(passed.as_ps() / Span::ms(1).as_ps());
    let mut bytes = clock.to_le_bytes();
    (bytes[6], bytes[7]) = (u8::from(features.timestamp_set.is_some()) << 1, 0);
    bytes.to_vec()
}
