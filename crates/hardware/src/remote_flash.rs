//! An NVMe-oF target inside the adapter: it brings commands to drives over PCIe, peer to peer, and
//! no core of the host has to do with it.

use base::{Span, Time};

/// Such a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetOffloadConfig {
    /// Commands that it begins a second.
    pub commands_per_second: u64,
    /// From a command's arrival to the drive's doorbell: its entry in the drive's queue.
    pub submission: Span,
    /// From the drive's completion to the departure of the answer, with the data in the adapter's
    /// staging memory.
    pub completion: Span,
}

/// One adapter's.
#[derive(Clone, Debug)]
pub struct TargetOffload {
    config: TargetOffloadConfig,
    step: Span,
    free_at: Time,
    commands: u64,
}

impl TargetOffload {
    /// An idle one. `commands_per_second` must not be zero.
    pub fn new(config: TargetOffloadConfig) -> TargetOffload {
        let step = Span::ps(1_000_000_000_000 / config.commands_per_second.max(1));
        TargetOffload { config, step, free_at: Time::ZERO, commands: 0 }
    }

    /// A command is here; when its drive has it.
    pub fn submit(&mut self, now: Time) -> Time {
        self.commands += 1;
        let begun = self.free_at.max(now);
        self.free_at = begun + self.step;
        begun + self.config.submission
    }

    /// A drive is done; when the answer may leave.
    pub fn complete(&self, now: Time) -> Time {
        now + self.config.completion
    }

    /// Commands so far.
    pub fn commands(&self) -> u64 {
        self.commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> TargetOffload {
        let (submission, completion) = (Span::ns(600), Span::ns(900));
        TargetOffload::new(TargetOffloadConfig { commands_per_second: 8_000_000, submission, completion })
    }

    #[test]
    fn a_lone_command_waits_for_nothing() {
        let mut target = target();
        assert_eq!(target.submit(Time::us(1)), Time::ns(1_600));
        assert_eq!(target.complete(Time::us(70)), Time::ns(70_900));
    }

    #[test]
    fn commands_that_come_together_are_begun_one_step_apart() {
        let mut target = target();
        target.submit(Time::us(1));
        assert_eq!(target.submit(Time::us(1)), Time::ns(1_725));
        assert_eq!(target.submit(Time::ns(1_250)), Time::ns(1_850), "the engine is free at that very moment");
        assert_eq!(target.submit(Time::ns(1_376)), Time::ns(1_976), "and a picosecond later all the more");
        assert_eq!(target.commands(), 4);
    }
}
