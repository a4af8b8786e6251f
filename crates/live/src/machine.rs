//! The target as the loop holds it: alone, or with a journal of its inputs and decisions.

use base::Time;
use nvme::journal::Recorder;
use nvme::target::{
    Channel, CloseReason, ConfigError, ConnectionId, IoRequest, IoResult, IoTag, Letter, Notice, PortId, Refused,
    Target, TargetConfig,
};
use std::io::Write;

/// The sink of a journal.
pub type JournalSink = Box<dyn Write + Send>;

/// A target, with a journal or without.
pub(crate) enum Machine {
    Alone(Box<Target>),
    Recorded(Box<Recorder<JournalSink>>),
}

/// Calls the same method of both.
macro_rules! of_both {
    ($self:ident, $machine:ident => $call:expr) => {
        match $self {
            Machine::Alone($machine) => $call,
            Machine::Recorded($machine) => $call,
        }
    };
}

impl Machine {
    pub(crate) fn new(config: TargetConfig, journal: Option<JournalSink>) -> Result<Machine, ConfigError> {
        Ok(match journal {
            None => Machine::Alone(Box::new(Target::new(config)?)),
            Some(sink) => Machine::Recorded(Box::new(Recorder::new(config, sink)?)),
        })
    }

    /// Returns the target, read-only.
    pub(crate) fn target(&self) -> &Target {
        match self {
            Machine::Alone(target) => target,
            Machine::Recorded(recorder) => recorder.target(),
        }
    }

    /// Returns the target for changes of its configuration; `None` with a journal, which does not
    /// record them.
    pub(crate) fn managed(&mut self) -> Option<&mut Target> {
        match self {
            Machine::Alone(target) => Some(target),
            Machine::Recorded(_) => None,
        }
    }

    pub(crate) fn accept(&mut self, now: Time, port: PortId) -> Result<ConnectionId, Refused> {
        of_both!(self, machine => machine.accept(now, port))
    }
    pub(crate) fn receive(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) -> usize {
        of_both!(self, machine => machine.receive(now, connection, bytes))
    }
    pub(crate) fn secured(&mut self, now: Time, connection: ConnectionId, channel: Channel) {
        of_both!(self, machine => machine.secured(now, connection, channel))
    }
    pub(crate) fn wants_input(&self, connection: ConnectionId) -> bool {
        self.target().wants_input(connection)
    }
    pub(crate) fn end_loans(&mut self, connection: ConnectionId) -> usize {
        of_both!(self, machine => machine.end_loans(connection))
    }
    pub(crate) fn transmitted(&mut self, connection: ConnectionId, bytes: usize) {
        of_both!(self, machine => machine.transmitted(connection, bytes))
    }
    pub(crate) fn closed(&mut self, now: Time, connection: ConnectionId) {
        of_both!(self, machine => machine.closed(now, connection))
    }
    pub(crate) fn is_abandoned(&self, tag: IoTag) -> bool {
        self.target().is_abandoned(tag)
    }
    pub(crate) fn should_close(&self, connection: ConnectionId) -> Option<CloseReason> {
        self.target().should_close(connection)
    }
    pub(crate) fn next_active(&mut self) -> Option<ConnectionId> {
        of_both!(self, machine => machine.next_active())
    }
    pub(crate) fn next_io(&mut self) -> Option<IoRequest> {
        of_both!(self, machine => machine.next_io())
    }
    pub(crate) fn complete(&mut self, now: Time, tag: IoTag, result: IoResult) {
        of_both!(self, machine => machine.complete(now, tag, result))
    }
    /// A journal has the inputs of one machine alone: there are no letters then.
    pub(crate) fn next_letter(&mut self) -> Option<Letter> {
        self.managed().and_then(Target::next_letter)
    }
    pub(crate) fn hear(&mut self, now: Time, letter: Letter) -> Option<ConnectionId> {
        self.managed().and_then(|target| target.hear(now, letter))
    }
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.target().next_wakeup()
    }
    pub(crate) fn on_wakeup(&mut self, now: Time) {
        of_both!(self, machine => machine.on_wakeup(now))
    }
    /// The recorder owns the target: with a journal, no notices are logged.
    pub(crate) fn next_notice(&mut self) -> Option<Notice> {
        self.managed().and_then(Target::next_notice)
    }
}
