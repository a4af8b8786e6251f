//! Answers whose data the target itself makes.

use crate::Status;
use crate::target::Target;

impl Target {
    /// Ends a command with data of ours, as many as it asked for: cut, or zeros behind.
    pub(super) fn reply(&mut self, slot: u32, answer: Result<Vec<u8>, Status>) {
        match answer {
            Ok(bytes) => {
                let room = &mut self.flights[slot].buffer;
                let count = bytes.len().min(room.len());
                room[..count].copy_from_slice(&bytes[..count]);
                room[count..].fill(0);
                self.finish(slot, Status::SUCCESS, 0);
            }
            Err(status) => self.finish(slot, status.without_retry(), 0),
        }
    }
}
