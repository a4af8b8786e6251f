//! The connections of a target.

use super::{Attempt, JobId, Packet, Target, TargetOut};
use crate::id::Port;
use crate::stream::{self, Streamed, Streams};
use base::Time;

impl Target {
    /// Handles a packet as [`TargetIn::Packet`](super::TargetIn::Packet) does, without moving it.
    pub fn receive(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        stream::receive(self, now, port, packet, out);
    }

    /// Handles a completed job as [`TargetIn::Done`](super::TargetIn::Done) does, without moving an
    /// input as large as a packet.
    pub fn job_done(&mut self, now: Time, job: JobId, out: &mut Vec<TargetOut>) {
        stream::by_windows(self, out, now, |target, out| target.on_done(now, job, out));
    }
}

impl Streamed for Target {
    type Out = TargetOut;

    fn streams(&mut self) -> &mut Streams<TargetOut> {
        &mut self.streams
    }
    fn place_of(&mut self, packet: &Packet) -> Option<usize> {
        let lane = usize::from(Attempt::of_bits(packet.tag.attempt).lane);
        let session = self.meet(packet.tag.session)?;
        (lane < self.lanes).then_some(session * self.lanes + lane)
    }
    fn take_in(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        self.take(now, port, packet, out);
    }
    fn send(port: Port, packet: Packet) -> TargetOut {
        TargetOut::Send { port, packet }
    }
    fn sent(action: &TargetOut) -> Option<(Port, &Packet)> {
        match action {
            TargetOut::Send { port, packet } => Some((*port, packet)),
            _ => None,
        }
    }
}
