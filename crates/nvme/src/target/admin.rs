//! Admin commands.

use crate::feature::FeatureId;
use crate::target::Target;
use crate::target::controller::Role;
use crate::target::fabrics::keep_alive_span;
use crate::target::features::{Value, granted_queues};
use crate::target::flight::Phase;
use crate::target::identify::Identity;
use crate::target::io::IoOperation;
use crate::target::logs::Logs;
use crate::{Admin, GetLogPage, Identify, SetFeatures, Status};

impl Target {
    pub(super) fn on_admin(&mut self, index: u32, slot: u32, admin: Admin) {
        let Some(controller) = self.controller_of(index) else { return };
        if !controller.status.ready {
            return self.finish(slot, Status::COMMAND_SEQUENCE.without_retry(), 0);
        }
        let (id, is_discovery) = (controller.id, controller.role == Role::Discovery);
        match admin {
            // The command itself has restarted the keep-alive timer.
            Admin::KeepAlive => self.finish(slot, Status::SUCCESS, 0),
            Admin::Identify(identify) => self.on_identify(id, slot, identify),
            Admin::GetLogPage(log) => self.on_get_log(id, slot, log),
            Admin::SetFeatures(set) => self.on_set_features(id, slot, set),
            Admin::GetFeatures { feature, select, argument } => {
                self.on_get_features(id, slot, (feature, select, argument));
            }
            Admin::AsynchronousEvent => self.on_event_request(id, slot),
            Admin::Abort { .. } if is_discovery => self.finish(slot, Status::INVALID_OPCODE.without_retry(), 0),
            Admin::Abort { queue, id } => {
                // Bit 0 of the result is clear when the command was aborted (Base 2.0, 5.1).
                let is_aborted = self.abort(index, queue, id);
                self.finish(slot, Status::SUCCESS, u64::from(!is_aborted));
            }
        }
    }

    fn on_identify(&mut self, id: u16, slot: u32, asked: Identify) {
        let (limits, subsystems, controllers) = (&self.limits, &self.subsystems, &self.controllers);
        let group = &self.group;
        let namespace = self.io.flights[slot].command.namespace;
        let controller = controllers.get(id).ok_or(Status::INTERNAL_ERROR);
        let identity = Identity { limits, subsystems, controllers, group };
        let page = controller.and_then(|controller| identity.page(controller, namespace, asked));
        self.reply(slot, page);
    }

    fn on_get_log(&mut self, id: u16, slot: u32, asked: GetLogPage) {
        let logs = Logs {
            limits: &self.limits,
            ports: &self.ports,
            subsystems: &self.subsystems,
            counters: self.observer.counters,
            uptime: self.clock.uptime(),
        };
        let controller = self.controllers.get(id).ok_or(Status::INTERNAL_ERROR);
        let page = controller.and_then(|controller| logs.part(controller, asked));
        if let Some(controller) = self.controllers.get_mut(id).filter(|_| page.is_ok() && !asked.retain_event) {
            controller.log_read(asked.log);
            self.report_events(&[id]);
        }
        self.reply(slot, page);
    }

    fn on_set_features(&mut self, id: u16, slot: u32, set: SetFeatures) {
        let outcome = self.set_feature(id, slot, set);
        match outcome {
            // Backends have to keep it first.
            Ok(None) => {}
            Ok(Some(result)) => self.finish(slot, Status::SUCCESS, result.into()),
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    /// Sets a feature. Returns the result of the command, or `None` when backends answer first.
    fn set_feature(&mut self, id: u16, slot: u32, set: SetFeatures) -> Result<Option<u32>, Status> {
        if set.save {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let (now, value) = (self.clock.now(), set.arguments[0]);
        let namespace = self.io.flights[slot].command.namespace;
        let controller = self.controllers.get_mut(id).ok_or(Status::INTERNAL_ERROR)?;
        let feature = controller.feature(set.feature).ok_or(Status::INVALID_FIELD)?;
        let subsystem = controller.subsystem().map(|at| &mut self.subsystems[at]).ok_or(Status::INVALID_FIELD);
        match feature {
            FeatureId::NumberOfQueues => {
                return granted_queues(value, &self.limits).map(Some).ok_or(Status::INVALID_FIELD);
            }
            FeatureId::ReservationPersistence => {
                let states = subsystem?.set_persistence(namespace, value & 1 != 0)?;
                let is_done = states.is_empty();
                for (backend, state) in states {
                    self.io.request(slot, backend, id, IoOperation::PersistReservations { state });
                }
                return Ok(is_done.then_some(0));
            }
            FeatureId::ReservationNotifications => {
                let chosen = subsystem?.chosen(namespace)?;
                controller.reservation_masks.extend(chosen.into_iter().map(|id| (id, value)));
            }
            FeatureId::KeepAlive => {
                let deadline = controller.set_keep_alive(keep_alive_span(value, &self.limits), now);
                self.clock.wake_by(deadline);
            }
            feature => controller.set_feature(feature, value, &self.io.flights[slot].buffer, now)?,
        }
        Ok(Some(0))
    }

    fn on_get_features(&mut self, id: u16, slot: u32, asked: (u8, crate::FeatureSelect, u32)) {
        let namespace = self.io.flights[slot].command.namespace;
        let controller = self.controllers.get(id).ok_or(Status::INTERNAL_ERROR);
        let value: Result<Value, Status> = controller.and_then(|controller| {
            let subsystem = controller.subsystem().map(|at| &self.subsystems[at]);
            controller.get_feature(asked, namespace, subsystem, &self.limits, self.clock.now())
        });
        match value {
            Ok((result, data)) => {
                self.io.flights[slot].fill(&data);
                self.finish(slot, Status::SUCCESS, result.into());
            }
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    /// Ends a command with data that the target makes, cut or filled with zeros to its length.
    pub(super) fn reply(&mut self, slot: u32, answer: Result<Vec<u8>, Status>) {
        match answer {
            Ok(bytes) => {
                self.io.flights[slot].fill(&bytes);
                self.finish(slot, Status::SUCCESS, 0);
            }
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }

    fn on_event_request(&mut self, id: u16, slot: u32) {
        let most = usize::from(self.limits.events_max);
        let Some(controller) = self.controllers.get_mut(id) else { return };
        if controller.event_requests.len() >= most {
            return self.finish(slot, Status::EVENT_LIMIT.without_retry(), 0);
        }
        controller.event_requests.push_back(slot);
        self.io.flights[slot].phase = Phase::Waiting;
        self.report_events(&[id]);
    }

    /// Completes event requests of these controllers with what happened.
    pub(super) fn report_events(&mut self, controllers: &[u16]) {
        for id in controllers {
            while let Some((slot, event)) = self.controllers.get_mut(*id).and_then(|known| known.next_event()) {
                self.finish(slot, Status::SUCCESS, event.encode().into());
            }
        }
    }

    /// Aborts a command that has not come as far as a backend. Returns whether it did.
    fn abort(&mut self, index: u32, queue: u16, id: u16) -> bool {
        let Some(controller) = self.controller_of(index) else { return false };
        let Some(queue) = controller.queues.get(usize::from(queue)).copied().flatten() else { return false };
        let Some(victim) = self.connections[queue].queue.get_mut(id).copied() else { return false };
        match self.io.flights[victim].phase {
            Phase::Parked | Phase::Fused => {}
            Phase::Waiting => {
                if let Some(controller) = self.controller_of(index) {
                    controller.event_requests.retain(|waiting| *waiting != victim);
                }
                self.leave_reservation_queue(victim);
            }
            Phase::Working => {
                let is_withdrawn = self.io.withdraw(victim);
                if is_withdrawn {
                    self.finish(victim, Status::ABORT_REQUESTED, 0);
                }
                return is_withdrawn;
            }
            // It ends when the data that were requested are here, and is not carried out: an abort
            // that is not immediate (bit 0 stays set).
            Phase::Receiving => {
                self.fail_early(victim, Status::ABORT_REQUESTED);
                return false;
            }
            Phase::Free => return false,
        }
        self.fail_early(victim, Status::ABORT_REQUESTED);
        true
    }

    /// The command no longer waits for reservations.
    pub(super) fn leave_reservation_queue(&mut self, slot: u32) {
        self.subsystems.iter_mut().for_each(|subsystem| subsystem.leave_reservation_queue(slot));
    }
}
