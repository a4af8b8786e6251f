//! Properties: enable, reset and shutdown of a controller.

use crate::feature::QueueCounts;
use crate::property::{Configuration, PropertyId, Shutdown, ShutdownState};
use crate::target::controller::{Controller, VERSION};
use crate::target::flight::{Own, Phase};
use crate::target::io::IoOperation;
use crate::target::notice::CloseReason;
use crate::target::{BackendId, Target, Tolerated};
use crate::{PropertySize, Status};

/// CC.CSS: all I/O command sets that the controller has, which is NVM alone.
const ALL_COMMAND_SETS: u8 = 6;
/// CAP.MPSMAX.
const PAGE_MAX: u8 = 4;
const INVALID: Status = Status::INVALID_FIELD.without_retry();
/// What Base 2.0, 4.1 and 4.2 fix: entries of 64 and 16 bytes, as powers of two.
const ENTRY_SHIFTS: (u8, u8) = (6, 4);

impl Target {
    /// The controller of a connection that has one.
    pub(super) fn controller_of(&mut self, index: u32) -> Option<&mut Controller> {
        let id = self.connections[index].controller()?;
        self.controllers.get_mut(id)
    }

    pub(super) fn on_property_get(&mut self, index: u32, slot: u32, offset: u32, size: PropertySize) {
        let limits = self.limits;
        let property = PropertyId::of_code(offset).filter(|property| property.size() == size);
        let controller = self.controller_of(index);
        let value = property.zip(controller).map(|(property, controller)| match property {
            PropertyId::Capabilities => Controller::capabilities(&limits).encode(),
            PropertyId::Version => VERSION.encode().into(),
            PropertyId::Configuration => controller.configuration.encode().into(),
            PropertyId::Status => controller.status.encode().into(),
            PropertyId::SubsystemReset => 0,
        });
        match value {
            Some(value) => self.finish(slot, Status::SUCCESS, value),
            None => self.finish(slot, INVALID, 0),
        }
    }

    pub(super) fn on_property_set(&mut self, index: u32, slot: u32, offset: u32, size: PropertySize, value: u64) {
        let is_configuration = offset == PropertyId::Configuration.code() && size == PropertySize::Four;
        let wanted = Configuration::decode(value as u32).ok().filter(|_| is_configuration);
        match wanted {
            Some(wanted) => {
                self.configure(index, wanted);
                self.finish(slot, Status::SUCCESS, 0);
            }
            None => self.finish(slot, INVALID, 0),
        }
    }

    /// Whether a controller can be enabled so.
    fn fits(&mut self, index: u32, wanted: &Configuration) -> bool {
        let has_set = match wanted.command_set {
            0 => true,
            ALL_COMMAND_SETS => self.tolerates(index, Tolerated::CommandSets),
            _ => false,
        };
        has_set
            && (wanted.sqe_size, wanted.cqe_size) == ENTRY_SHIFTS
            && wanted.page <= PAGE_MAX
            && wanted.arbitration == 0
    }

    fn configure(&mut self, index: u32, wanted: Configuration) {
        let (fits, now) = (wanted.enable && self.fits(index, &wanted), self.now);
        let Some(controller) = self.controller_of(index) else { return };
        let id = controller.id;
        let before = std::mem::replace(&mut controller.configuration, wanted);
        match (before.enable, wanted.enable) {
            (false, true) => {
                (controller.status.ready, controller.status.fatal) = (fits, !fits);
                controller.status.shutdown = ShutdownState::None;
                controller.keep_alive(now);
                let deadline = controller.keep_alive_deadline;
                self.wake_by(deadline);
            }
            (true, false) => self.reset(id),
            _ => {}
        }
        if before.shutdown == Shutdown::None && wanted.shutdown != Shutdown::None {
            self.shut_down(id);
        }
    }

    /// CC.EN from 1 to 0: I/O queues are gone, event requests end, features are as at first. The
    /// host makes a new association.
    fn reset(&mut self, id: u16) {
        let Some(controller) = self.controllers.get_mut(id) else { return };
        controller.reset();
        let queues: Vec<u32> = controller.queues.iter().skip(1).copied().flatten().collect();
        let requests: Vec<u32> = controller.event_requests.drain(..).collect();
        for index in queues {
            self.close(index, CloseReason::Reset);
        }
        for slot in requests {
            self.finish(slot, Status::ABORT_REQUESTED, 0);
        }
    }

    /// CC.SHN: complete when everything that was written would survive a loss of power.
    fn shut_down(&mut self, id: u16) {
        let Some(controller) = self.controllers.get_mut(id) else { return };
        controller.status.shutdown = ShutdownState::Occurring;
        let backends = controller.subsystem().map(|at| self.volatile_backends(at)).unwrap_or_default();
        if backends.is_empty() {
            return self.on_shutdown_done(id);
        }
        let slot = self.flights.open_own(self.now, Own::Shutdown(id));
        self.flights[slot].phase = Phase::Working;
        for backend in backends {
            self.request(slot, backend, IoOperation::Flush);
        }
    }

    /// Who may hold what was written in a volatile cache.
    pub(super) fn volatile_backends(&self, subsystem: usize) -> Vec<BackendId> {
        let namespaces = self.subsystems[subsystem].namespaces.values();
        namespaces.filter(|space| space.config.has_volatile_cache).map(|space| space.config.backend).collect()
    }

    /// Everything is flushed; where that failed nothing better can be done.
    pub(super) fn on_shutdown_done(&mut self, id: u16) {
        let controller = self.controllers.get_mut(id);
        if let Some(controller) = controller.filter(|known| known.status.shutdown == ShutdownState::Occurring) {
            controller.status.shutdown = ShutdownState::Complete;
        }
    }

    /// How many I/O queues a host gets that asks for so many.
    pub(super) fn grant_queues(&self, wanted: u32) -> Option<u32> {
        let wanted = QueueCounts::decode(wanted);
        let least = wanted.submission_minus_one.min(wanted.completion_minus_one);
        // FFFFh is no number of queues (Base 2.0, 5.27.1.5).
        if wanted.submission_minus_one == u16::MAX || wanted.completion_minus_one == u16::MAX {
            return None;
        }
        let granted = least.min(self.limits.io_queues_max - 1);
        Some(QueueCounts { submission_minus_one: granted, completion_minus_one: granted }.encode())
    }
}
