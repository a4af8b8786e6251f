//! The target's side of a reset of an association (NVMe TP8028, Cross-Controller Reset).

use super::flight::Stage;
use super::{JobId, Target, TargetOut, answer};
use crate::id::Port;
use crate::packet::{Outcome, Packet};
use crate::session::{Attempt, is_earlier_generation};

impl Target {
    /// Handles a reset, received on another lane or a later association. Packets of the dead
    /// associations are refused from now on; commands that are not at the drive die; those at the
    /// drive are awaited. A repeated reset only changes the path of the answer.
    pub(super) fn on_reset(&mut self, place: usize, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        let attempt = Attempt::of_bits(packet.tag.attempt);
        self.sessions[place].reset(attempt, port, packet);
        for job in self.waiting_of(place, attempt) {
            self.withdraw(job);
            self.counters.aborted += 1;
            self.flights.close(job);
        }
        self.answer_reset(place, attempt.lane, out);
    }

    /// Returns the flights of dead associations that are not at the drive. All flights of dead
    /// associations become orphans.
    fn waiting_of(&mut self, place: usize, attempt: Attempt) -> Vec<JobId> {
        let dead = self
            .flights
            .iter_mut()
            .filter(|(_, flight)| flight.session() == place && is_dead(flight.attempt(), attempt));
        let mut waiting = Vec::new();
        for (job, flight) in dead {
            flight.is_orphan = true;
            if flight.stage != Stage::AtDrive {
                waiting.push(job);
            }
        }
        waiting
    }

    /// Answers a pending reset if the flight that ended was the last one it waited for.
    pub(super) fn after_flight(&mut self, place: usize, attempt: Attempt, out: &mut Vec<TargetOut>) {
        let lane = attempt.lane;
        if self.sessions[place].waiting_reset(lane).is_some() {
            self.answer_reset(place, lane, out);
        }
    }

    fn answer_reset(&mut self, place: usize, lane: u8, out: &mut Vec<TargetOut>) {
        let Some((port, packet)) = self.sessions[place].waiting_reset(lane) else { return };
        let attempt = Attempt::of_bits(packet.tag.attempt);
        let remains =
            self.flights.iter().any(|(_, flight)| flight.session() == place && is_dead(flight.attempt(), attempt));
        if !remains {
            let credit = self.credit(place);
            answer::respond(&self.format, *port, packet, Outcome::Success, credit, out);
            self.sessions[place].reset_is_answered(lane);
        }
    }
}

/// Returns whether a reset of `reset` ends `attempt`: of the same lane and not later.
fn is_dead(attempt: Attempt, reset: Attempt) -> bool {
    attempt.lane == reset.lane && !is_earlier_generation(reset.generation, attempt.generation)
}
