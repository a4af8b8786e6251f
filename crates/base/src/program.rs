//! The one trait that both hosts drive.

use crate::time::Time;

/// A pure state machine for one place (host, NIC, switch, controller).
///
/// It owns no clock, no socket, no thread and no global randomness: `now` comes in with every call
/// and never runs backward, actions go out through `out`, which the caller owns, empties and
/// reuses. Calling order: [`on`](Program::on) for each input at its time; after every call the host
/// reads [`next_wakeup`](Program::next_wakeup) and calls [`on_wakeup`](Program::on_wakeup) at that
/// time at the latest. A wake-up that comes early or twice changes nothing.
pub trait Program {
    /// What may happen to this place.
    type In;
    /// What this place may decide.
    type Out;
    /// Takes one input at `now` and appends its actions to `out`.
    fn on(&mut self, now: Time, input: Self::In, out: &mut Vec<Self::Out>);
    /// Returns the time at which the program next wants to run without input; `None` when only an
    /// input can change anything.
    fn next_wakeup(&self) -> Option<Time>;
    /// Lets time pass to `now` and appends due actions to `out`.
    fn on_wakeup(&mut self, now: Time, out: &mut Vec<Self::Out>);
}
