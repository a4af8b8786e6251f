//! What a host does with the I/Os of a path that has failed.
//!
//! A write whose path fails may still be in a queue of the network or of the target. Sent again
//! over another path it is done and acknowledged, a later write to the same block is done and
//! acknowledged, and then the first copy arrives and undoes it: data that were acknowledged are
//! lost. So the first copy has to be dead before the second is sent.
//!
//! | policy | waits for | source |
//! | --- | --- | --- |
//! | [`RetryPolicy::Naive`] | nothing: the rival, and what NVMe hosts did before | spdk/spdk issue 3593 describes the corruption |
//! | [`RetryPolicy::Quiesce`] | time: until no copy can be in the network, and none begins or goes on at the target | NVMe TP4129 (KATO Corrections and Clarifications): the controller tells its Command Quiesce Time, the host waits for it and for the keep-alive timeouts until the controller has surely noticed; NVMe Base 2.1, 9.6 |
//! | [`RetryPolicy::CrossControllerReset`] | an answer: another association of the same subsystem has ended the failed one | NVMe TP8028 (Rapid Path Failure Recovery): the host asks a controller that it still reaches to reset the impacted one, and is told when no command of it remains |
//!
//! Both texts are for members; what is here follows the Linux host and target patches for TP8028 of
//! 2026 and their discussion on linux-nvme (cover letter of 13 February 2026: commands in flight
//! must be terminated before they are retried on another path; without a reset they are held for
//! the time of TP4129), and the manual pages of libnvme. Ours differs in two points: nobody sends
//! keep-alives, so that the target cannot notice by itself, and instead bounds the life of every
//! command ([`crate::target::TargetConfig::command_life_max`]); and reads are sent again at once
//! under every policy, since a late copy of a read changes nothing.
//!
//! A repeat within an association (a lost packet, a refused reservation) needs none of this: the
//! target knows the command by its identifier.

use base::Span;

/// What a host does with the writes of a path that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Sends them again at once: wrong.
    Naive,
    /// Sends them again after so long; [`quiesce_wait`] tells how long is enough.
    Quiesce {
        /// From the moment the path is given up.
        wait: Span,
    },
    /// Has the association reset over a path that works, and sends them again when that is
    /// confirmed.
    CrossControllerReset,
}

/// How long a copy that was sent before now may still change a block: as long as it may be in the
/// network, then as long as the target may let it wait, then as long as a drive takes for it. A
/// retry that begins no sooner is safe.
pub fn quiesce_wait(packet_life_max: Span, command_life_max: Span, drive_time_max: Span) -> Span {
    packet_life_max + command_life_max + drive_time_max + Span::ps(1)
}
