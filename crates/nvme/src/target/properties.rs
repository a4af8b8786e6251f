//! Properties: enable, reset and shutdown of a controller.

use crate::property::{Configuration, PropertyId, Shutdown, ShutdownState};
use crate::target::TargetLimits;
use crate::target::controller::{Controller, VERSION};
use crate::{PropertySize, Status};
use base::Time;

/// CC.CSS: all I/O command sets that the controller has, which is NVM alone.
pub(super) const ALL_COMMAND_SETS: u8 = 6;
/// CAP.MPSMAX.
const PAGE_MAX: u8 = 4;
/// The status of an unknown property or value.
pub(super) const INVALID: Status = Status::INVALID_FIELD.without_retry();
/// Entries of 64 and 16 bytes, as powers of two (Base 2.0, 4.1 and 4.2).
const ENTRY_SHIFTS: (u8, u8) = (6, 4);

/// A change of a controller that concerns others.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ControllerEvent {
    /// It is enabled: its keep-alive timer runs.
    Enabled,
    /// CC.EN went from 1 to 0: these I/O queues end, and these event requests are aborted. The host
    /// makes a new association.
    Reset { queues: Vec<u32>, requests: Vec<u32> },
    /// CC.SHN asks for a shutdown: complete it when all caches are flushed.
    ShutdownRequested,
}

/// The configuration that Property Set writes; `None` for any other property or value.
pub(super) fn wanted(offset: u32, size: PropertySize, value: u64) -> Option<Configuration> {
    let is_configuration = offset == PropertyId::Configuration.code() && size == PropertySize::Four;
    Configuration::decode(value as u32).ok().filter(|_| is_configuration)
}

/// Whether a controller can be enabled with this configuration, its command set aside.
pub(super) fn fits(wanted: &Configuration) -> bool {
    (wanted.sqe_size, wanted.cqe_size) == ENTRY_SHIFTS && wanted.page <= PAGE_MAX && wanted.arbitration == 0
}

impl Controller {
    /// The value of a property; `None` without such a property.
    pub(super) fn property(&self, offset: u32, size: PropertySize, limits: &TargetLimits) -> Option<u64> {
        let property = PropertyId::of_code(offset).filter(|property| property.size() == size)?;
        Some(match property {
            PropertyId::Capabilities => Controller::capabilities(limits).encode(),
            PropertyId::Version => VERSION.encode().into(),
            PropertyId::Configuration => self.configuration.encode().into(),
            PropertyId::Status => self.status.encode().into(),
            PropertyId::SubsystemReset => 0,
        })
    }

    /// Takes a configuration. A controller that is enabled by one that does not fit fails
    /// (CSTS.CFS).
    pub(super) fn configure(&mut self, wanted: Configuration, fits: bool, now: Time) -> Vec<ControllerEvent> {
        let before = std::mem::replace(&mut self.configuration, wanted);
        let mut events = Vec::new();
        match (before.enable, wanted.enable) {
            (false, true) => {
                (self.status.ready, self.status.fatal) = (fits, !fits);
                self.status.shutdown = ShutdownState::None;
                self.restart_keep_alive(now);
                events.push(ControllerEvent::Enabled);
            }
            (true, false) => {
                self.reset();
                let queues = self.queues.iter().skip(1).copied().flatten().collect();
                events.push(ControllerEvent::Reset { queues, requests: self.event_requests.drain(..).collect() });
            }
            _ => {}
        }
        if before.shutdown == Shutdown::None && wanted.shutdown != Shutdown::None {
            self.status.shutdown = ShutdownState::Occurring;
            events.push(ControllerEvent::ShutdownRequested);
        }
        events
    }

    /// All caches are flushed; a failure to flush cannot be helped.
    pub(super) fn shutdown_done(&mut self) {
        if self.status.shutdown == ShutdownState::Occurring {
            self.status.shutdown = ShutdownState::Complete;
        }
    }
}
