//! The port to the fabric: one packet of data at a time, the pairs in turn.

use super::{Engine, EngineOut};
use crate::Payload;

impl<P: Payload> Engine<P> {
    /// Sends the next packet that is there, if the port is free.
    pub(super) fn send(&mut self, out: &mut Vec<EngineOut<P>>) {
        for _ in 0..self.outgoing.len() {
            if self.port_is_busy {
                return;
            }
            let Some((number, target)) = self.outgoing.front().copied() else { return };
            let (id, offset, left) = self.outgoing_place(number, target);
            let Some(data) = self.take(number, target, self.config.packet) else {
                self.outgoing.turn(false);
                continue;
            };
            let is_last = data.size() == left;
            self.port_is_busy = true;
            self.outgoing.turn(is_last);
            out.push(EngineOut::Send { id, offset, data });
            match is_last {
                true => self.sent(number, target, out),
                false => self.release(number),
            }
        }
    }
}
