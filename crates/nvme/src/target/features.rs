//! Features that a host reads and changes.

use crate::feature::{EventMask, FeatureId, HostBehavior, QueueCounts};
use crate::target::controller::{Controller, Role};
use crate::target::flight::Transfer;
use crate::target::reservations::Reservations;
use crate::target::subsystem::Subsystem;
use crate::target::{BackendId, TargetLimits};
use crate::{FeatureSelect, Status};
use base::{Span, Time};

/// Bytes of the timestamp, whose clock takes six of them (Base 2.0, 5.27.1.12).
const TIMESTAMP_BYTES: u32 = 8;
const HOST_ID_BYTES: u32 = 16;
/// Bits 2 (changeable) and 1 (per namespace) of a feature's capabilities.
const CHANGEABLE: u32 = 1 << 2;
const PER_NAMESPACE: u32 = 1 << 1;
/// The namespace of all.
const ALL: u32 = u32::MAX;

/// The value of a feature: dword 0, and data where it has any.
pub(super) type Value = (u32, Vec<u8>);

/// Bytes and direction of Set Features.
pub(super) fn set_feature_transfer(feature: u8) -> Transfer {
    match FeatureId::of_code(feature) {
        Some(FeatureId::Timestamp) => Transfer::In(TIMESTAMP_BYTES),
        Some(FeatureId::HostBehavior) => Transfer::In(HostBehavior::BYTES as u32),
        _ => Transfer::None,
    }
}

/// Bytes and direction of Get Features.
pub(super) fn get_feature_transfer(feature: u8, select: FeatureSelect, argument: u32) -> Transfer {
    match FeatureId::of_code(feature) {
        _ if select == FeatureSelect::Capabilities => Transfer::None,
        Some(FeatureId::Timestamp) => Transfer::Out(TIMESTAMP_BYTES),
        Some(FeatureId::HostBehavior) => Transfer::Out(HostBehavior::BYTES as u32),
        // Bit 0 (EXHID) asks for sixteen bytes; fabrics never have eight there.
        Some(FeatureId::HostId) if argument & 1 != 0 => Transfer::Out(HOST_ID_BYTES),
        _ => Transfer::None,
    }
}

/// The I/O queues granted for a requested number, as in Number of Queues.
pub(super) fn granted_queues(wanted: u32, limits: &TargetLimits) -> Option<u32> {
    let wanted = QueueCounts::decode(wanted);
    // FFFFh is no number of queues (Base 2.0, 5.27.1.5).
    if wanted.submission_minus_one == u16::MAX || wanted.completion_minus_one == u16::MAX {
        return None;
    }
    let least = wanted.submission_minus_one.min(wanted.completion_minus_one);
    Some(queue_counts(least.min(limits.io_queues_max - 1)))
}

fn queue_counts(minus_one: u16) -> u32 {
    QueueCounts { submission_minus_one: minus_one, completion_minus_one: minus_one }.encode()
}

/// The default value of a feature. Nothing is saved, and a reset leaves zero of all but the queues.
fn default_value(feature: FeatureId, limits: &TargetLimits) -> u32 {
    match feature {
        FeatureId::NumberOfQueues => queue_counts(limits.io_queues_max - 1),
        FeatureId::VolatileWriteCache => 1,
        _ => 0,
    }
}

impl Controller {
    /// The feature `code`, if this controller has it. A discovery controller has those that a host
    /// needs to keep the connection.
    pub(super) fn feature(&self, code: u8) -> Option<FeatureId> {
        let of_discovery = [FeatureId::AsynchronousEvents, FeatureId::KeepAlive, FeatureId::HostId];
        FeatureId::of_code(code).filter(|known| self.role != Role::Discovery || of_discovery.contains(known))
    }

    /// Sets a feature of the controller.
    pub(super) fn set_feature(&mut self, feature: FeatureId, value: u32, data: &[u8], now: Time) -> Result<(), Status> {
        let features = &mut self.features;
        match feature {
            FeatureId::Arbitration => features.arbitration = value,
            FeatureId::PowerManagement if value & 0x1f != 0 => return Err(Status::INVALID_FIELD),
            FeatureId::PowerManagement => features.power = value,
            FeatureId::TemperatureThreshold => features.temperature = value,
            FeatureId::ErrorRecovery => features.error_recovery = value,
            FeatureId::WriteAtomicity => features.write_atomicity = value,
            FeatureId::AsynchronousEvents => self.event_mask = EventMask::from_bits_retain(value),
            // The cache is the backend's: one host cannot switch it off for all.
            FeatureId::VolatileWriteCache if value & 1 == 0 => return Err(Status::FEATURE_NOT_CHANGEABLE),
            FeatureId::VolatileWriteCache => {}
            FeatureId::Timestamp => {
                let mut clock = [0; 8];
                clock[..6].copy_from_slice(&data[..6]);
                (features.timestamp_ms, features.timestamp_set) = (u64::from_le_bytes(clock), Some(now));
            }
            FeatureId::HostBehavior => self.behavior = read_behavior(data)?,
            // Base 2.0, 5.27.1.25: on fabrics Connect has set it for good.
            FeatureId::HostId => return Err(Status::COMMAND_SEQUENCE),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(())
    }

    /// The data of Get Features. Features of namespaces need `subsystem` and the namespace `id`.
    pub(super) fn get_feature(
        &self,
        (code, select, argument): (u8, FeatureSelect, u32),
        id: u32,
        subsystem: Option<&Subsystem>,
        limits: &TargetLimits,
        now: Time,
    ) -> Result<Value, Status> {
        let feature = self.feature(code).ok_or(Status::INVALID_FIELD)?;
        match (select, feature) {
            (FeatureSelect::Capabilities, _) => Ok((capabilities(feature), Vec::new())),
            (FeatureSelect::Default | FeatureSelect::Saved, _) => Ok((default_value(feature, limits), Vec::new())),
            (_, FeatureId::ReservationNotifications | FeatureId::ReservationPersistence) => {
                let namespace = subsystem.ok_or(Status::INVALID_FIELD)?.namespaces.get(&id);
                let persists = namespace.ok_or(Status::INVALID_NAMESPACE)?.config.reservations.persists;
                let mask = self.reservation_masks.get(&id).copied().unwrap_or(0);
                let is_persistence = feature == FeatureId::ReservationPersistence;
                Ok((if is_persistence { persists.into() } else { mask }, Vec::new()))
            }
            _ => self.own_value(feature, argument, limits, now),
        }
    }

    fn own_value(&self, feature: FeatureId, argument: u32, limits: &TargetLimits, now: Time) -> Result<Value, Status> {
        let features = &self.features;
        let value = match feature {
            FeatureId::Arbitration => features.arbitration,
            FeatureId::PowerManagement => features.power,
            FeatureId::TemperatureThreshold => features.temperature,
            FeatureId::ErrorRecovery => features.error_recovery,
            FeatureId::WriteAtomicity => features.write_atomicity,
            FeatureId::AsynchronousEvents => self.event_mask.bits(),
            FeatureId::KeepAlive => (self.keep_alive.as_ps() / Span::ms(1).as_ps()) as u32,
            FeatureId::Timestamp => return Ok((0, timestamp(self, now))),
            FeatureId::HostBehavior => return Ok((0, self.behavior.encode().to_vec())),
            FeatureId::HostId if argument & 1 == 0 => return Err(Status::INVALID_FIELD),
            FeatureId::HostId => return Ok((0, self.host_id.0.to_vec())),
            _ => default_value(feature, limits),
        };
        Ok((value, Vec::new()))
    }
}

impl Subsystem {
    /// The namespaces that a feature is set for.
    pub(super) fn chosen(&self, id: u32) -> Result<Vec<u32>, Status> {
        let known = self.namespaces.keys().copied();
        let chosen: Vec<u32> = known.filter(|known| id == ALL || *known == id).collect();
        if chosen.is_empty() { Err(Status::INVALID_NAMESPACE) } else { Ok(chosen) }
    }

    /// Sets whether reservations of the namespace `id`, or of all, persist through a power loss.
    /// Returns what each backend has to keep before the host is answered.
    pub(super) fn set_persistence(
        &mut self,
        id: u32,
        persists: bool,
    ) -> Result<Vec<(BackendId, Reservations)>, Status> {
        let chosen = self.chosen(id)?;
        let keeps = |id: &u32| self.namespaces.get(id).is_some_and(|namespace| namespace.config.keeps_reservations);
        if persists && !chosen.iter().all(keeps) {
            return Err(Status::INVALID_FIELD);
        }
        let changed = self.namespaces.iter_mut().filter(|(id, _)| chosen.contains(id)).map(|(_, namespace)| namespace);
        let changed = changed.filter(|namespace| namespace.config.reservations.persists != persists);
        Ok(changed
            .map(|namespace| {
                let config = &mut namespace.config;
                config.reservations.persists = persists;
                (config.backend, config.reservations.kept())
            })
            .collect())
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
fn timestamp(controller: &Controller, now: Time) -> Vec<u8> {
    let features = &controller.features;
    let passed = features.timestamp_set.map_or(Span::ZERO, |set| now.saturating_since(set));
    let clock = features.timestamp_ms.wrapping_add(passed.as_ps() / Span::ms(1).as_ps());
    let mut bytes = clock.to_le_bytes();
    (bytes[6], bytes[7]) = (u8::from(features.timestamp_set.is_some()) << 1, 0);
    bytes.to_vec()
}
