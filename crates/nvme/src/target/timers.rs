//! Deadlines: handshakes, silence, hosts that do not read, keep-alive.

use crate::target::Target;
use crate::target::connection::Stage;
use crate::target::notice::CloseReason;
use base::{Span, Time};

impl Target {
    /// Time has passed. Call it at [`Self::next_wakeup`] or later.
    pub fn on_wakeup(&mut self, now: Time) {
        self.pass(now);
        self.expire_controllers();
        self.expire_connections();
        self.wakeup = self.earliest_deadline();
    }

    fn expire_controllers(&mut self) {
        for controller in self.controllers.expired(self.now) {
            self.counters.keep_alive_expirations += 1;
            self.end_controller(controller, CloseReason::KeepAlive);
        }
    }

    fn expire_connections(&mut self) {
        let now = self.now;
        let late = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        let stalled: Vec<u32> =
            self.connections.iter().filter(|(_, place)| late(place.stall)).map(|(index, _)| index).collect();
        for index in stalled {
            self.close(index, CloseReason::Stalled);
            self.drop_output(index);
        }
        let silent = self.connections.iter().filter(|(_, place)| late(place.deadline) && !place.is_closing());
        let silent: Vec<u32> = silent.map(|(index, _)| index).collect();
        for index in silent {
            let place = &self.connections[index];
            let reason = match place.stage {
                Stage::Queue { .. } if place.has_to_prove() => CloseReason::Authentication,
                Stage::Queue { .. } => CloseReason::Idle,
                _ => CloseReason::Handshake,
            };
            if reason == CloseReason::Authentication {
                self.on_authentication_late(index);
            }
            self.close(index, reason);
        }
    }

    /// What waits to be sent never will be.
    pub(super) fn drop_output(&mut self, index: u32) {
        let place = &mut self.connections[index];
        let freed = place.out.clear(&mut self.pool);
        (place.charged, place.stall) = (place.charged - freed.bytes, None);
        self.loans_over(freed.loans);
        self.mark_active(index);
    }

    fn earliest_deadline(&self) -> Option<Time> {
        let connections = self.connections.iter().flat_map(|(_, place)| [place.deadline, place.stall]).flatten();
        self.controllers.earliest_deadline().into_iter().chain(connections).min()
    }

    /// A deadline was set.
    pub(super) fn wake_by(&mut self, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.wakeup = Some(self.wakeup.map_or(deadline, |known| known.min(deadline)));
        }
    }

    /// The connection has to get further within `span`.
    pub(super) fn set_deadline(&mut self, index: u32, span: Span) {
        let deadline = self.now.checked_add(span);
        self.connections[index].deadline = deadline;
        self.wake_by(deadline);
    }

    /// A command came: with traffic-based keep alive it says as much as Keep Alive (Base 2.0, 3.9).
    /// One on an I/O queue whose host has to prove itself yet says nothing of the controller's own
    /// host.
    pub(super) fn keep_alive_of(&mut self, index: u32) {
        let (now, place) = (self.now, &self.connections[index]);
        let speaks = !place.has_to_prove() || place.queue_id() == 0;
        if let Some(controller) = self.controller_of(index).filter(|_| speaks) {
            controller.keep_alive(now);
        }
    }

    /// Something came from the host. Only a queue of a controller without keep-alive may not be
    /// silent for ever.
    pub(super) fn refresh_idle(&mut self, index: u32) {
        let Some(idle) = self.limits.idle else { return };
        let place = &self.connections[index];
        let Some(controller) = place.controller().filter(|_| !place.has_to_prove()) else { return };
        let has_keep_alive =
            self.controllers.get(controller).is_some_and(|controller| controller.keep_alive > Span::ZERO);
        if has_keep_alive {
            self.connections[index].deadline = None;
        } else {
            self.set_deadline(index, idle);
        }
    }

    /// The host read something: what is left has its time again.
    pub(super) fn restart_stall(&mut self, index: u32) {
        self.connections[index].stall = None;
        self.start_stall(index);
    }

    /// Something waits to be sent.
    pub(super) fn start_stall(&mut self, index: u32) {
        let place = &mut self.connections[index];
        if place.stall.is_none() && !place.out.is_empty() {
            place.stall = self.now.checked_add(self.limits.stall);
            let stall = place.stall;
            self.wake_by(stall);
        }
    }
}
