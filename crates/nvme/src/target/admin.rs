//! Admin commands.

use crate::feature::Event;
use crate::target::Target;
use crate::target::controller::Role;
use crate::target::flight::Phase;
use crate::target::io::IoOperation;
use crate::{Admin, Status};

impl Target {
    pub(super) fn on_admin(&mut self, index: u32, slot: u32, admin: Admin) {
        let Some(controller) = self.controller_of(index) else { return };
        if !controller.status.ready {
            return self.finish(slot, Status::COMMAND_SEQUENCE.without_retry(), 0);
        }
        let is_discovery = controller.role == Role::Discovery;
        match admin {
            // That a command came has restarted the timer.
            Admin::KeepAlive => self.finish(slot, Status::SUCCESS, 0),
            Admin::Identify(identify) => {
                let page = self.identify(index, self.flights[slot].command.namespace, identify);
                self.reply(slot, page);
            }
            Admin::GetLogPage(log) => self.on_get_log(index, slot, log),
            Admin::SetFeatures(set) => self.on_set_features(index, slot, set),
            Admin::GetFeatures { feature, select, argument } => {
                self.on_get_features(index, slot, feature, select, argument);
            }
            Admin::AsynchronousEvent => self.on_event_request(index, slot),
            Admin::Abort { .. } if is_discovery => self.finish(slot, Status::INVALID_OPCODE.without_retry(), 0),
            Admin::Abort { queue, id } => self.on_abort(index, slot, queue, id),
        }
    }

    fn on_event_request(&mut self, index: u32, slot: u32) {
        let most = usize::from(self.limits.events_max);
        let Some(controller) = self.controller_of(index) else { return };
        if controller.event_requests.len() >= most {
            return self.finish(slot, Status::EVENT_LIMIT.without_retry(), 0);
        }
        controller.event_requests.push_back(slot);
        let id = controller.id;
        self.flights[slot].phase = Phase::Waiting;
        self.tell_events(id);
    }

    /// Answers event requests with what happened.
    pub(super) fn tell_events(&mut self, controller: u16) {
        while let Some((slot, event)) = self.controllers.get_mut(controller).and_then(|known| known.next_event()) {
            self.finish(slot, Status::SUCCESS, event.encode().into());
        }
    }

    /// Something happened that the hosts of `who` are told.
    pub(super) fn tell_all(&mut self, who: &[u16], event: Event) {
        for id in who {
            if let Some(controller) = self.controllers.get_mut(*id) {
                controller.raise(event);
            }
            self.tell_events(*id);
        }
    }

    /// Ends a command that has not come as far as a backend. Bit 0 of the result is clear when it
    /// has ended (Base 2.0, 5.1).
    fn on_abort(&mut self, index: u32, slot: u32, queue: u16, id: u16) {
        let aborted = self.abort(index, queue, id);
        self.finish(slot, Status::SUCCESS, u64::from(!aborted));
    }

    fn abort(&mut self, index: u32, queue: u16, id: u16) -> bool {
        let Some(controller) = self.controller_of(index) else { return false };
        let Some(queue) = controller.queues.get(usize::from(queue)).copied().flatten() else { return false };
        let Some(victim) = self.connections[queue].queue.get_mut(id).copied() else { return false };
        match self.flights[victim].phase {
            Phase::Parked | Phase::Fused => {}
            Phase::Waiting => self.leave_waiting(index, victim),
            Phase::Working => return self.withdraw(victim),
            // It ends when the data that were asked for are here, and is not carried out: an abort
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

    /// Ends a command that no backend has taken up. One that changes reservations has changed them,
    /// and goes on.
    fn withdraw(&mut self, victim: u32) -> bool {
        let (tag, flight) = (self.flights.tag(victim), &self.flights[victim]);
        let (mut waiting, mut is_decided) = (0, false);
        for request in self.requests.of(tag) {
            waiting += 1;
            is_decided |= matches!(request.operation, IoOperation::PersistReservations { .. });
        }
        if waiting != flight.pending || is_decided || flight.partner.is_some() {
            return false;
        }
        debug_assert!(!flight.is_loan, "no command comes before requests to lend are taken");
        self.requests.withdraw(tag);
        self.flights[victim].pending = 0;
        self.finish(victim, Status::ABORT_REQUESTED, 0);
        true
    }

    fn leave_waiting(&mut self, index: u32, slot: u32) {
        if let Some(controller) = self.controller_of(index) {
            controller.event_requests.retain(|waiting| *waiting != slot);
        }
        self.leave_reservation_queue(slot);
    }
}
