//! The retry policies of a host for the I/Os of a failed path.
//!
//! A write whose path fails may still be in a queue of the network or of the target. Suppose it is
//! sent again over another path, done and acknowledged, and a later write to the same block is done
//! and acknowledged. Then the first copy arrives and overwrites it: acknowledged data are lost. So
//! the first copy must be dead before the second is sent.
//!
//! | policy | waits for | source |
//! | --- | --- | --- |
//! | [`RetryPolicy::Naive`] | nothing: the baseline, and the former behaviour of NVMe hosts | spdk/spdk issue 3593 describes the corruption |
//! | [`RetryPolicy::Quiesce`] | time: until no copy can be in the network, and none begins or continues at the target | NVMe TP4129 (KATO Corrections and Clarifications): the controller reports its Command Quiesce Time, the host waits for it and for the keep-alive timeouts until the controller has surely noticed; NVMe Base 2.1, 9.6 |
//! | [`RetryPolicy::CrossControllerReset`] | an answer: another association of the same subsystem has ended the failed one | NVMe TP8028 (Rapid Path Failure Recovery): the host requests the reset of the impacted controller from one that it still reaches, and is notified when no command of it remains |
//!
//! Both texts are available to members only. This implementation follows the Linux host and target
//! patches for TP8028 of 2026 and their discussion on linux-nvme, and the manual pages of libnvme.
//! (Cover letter of 13 February 2026: commands in flight must be terminated before they are retried
//! on another path; without a reset they are held for the time of TP4129.)
//!
//! This implementation differs in two points. There are no keep-alives, so the target cannot detect
//! a failed path; instead it bounds the life of every command
//! ([`crate::target::TargetConfig::command_life_max`]). Reads are resent at once under every
//! policy, since a late copy of a read changes nothing.
//!
//! A repeat within an association (a lost packet, a refused reservation) needs none of this: the
//! target recognises the command by its identifier.

use base::Span;

/// The retry policy of a host for the writes of a failed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Resends them at once: unsafe.
    Naive,
    /// Resends them after a fixed time; [`quiesce_wait`] returns a safe one.
    Quiesce {
        /// Time since the path was declared failed.
        wait: Span,
    },
    /// Resets the association over a working path, and resends them when the reset is confirmed.
    CrossControllerReset,
}

/// Returns the time for which a copy sent before now may still change a block. It is the sum of the
/// times in the network, in the target's queue and at the drive. A retry that begins no sooner is
/// safe.
pub fn quiesce_wait(packet_life_max: Span, command_life_max: Span, drive_time_max: Span) -> Span {
    packet_life_max + command_life_max + drive_time_max + Span::ps(1)
}
