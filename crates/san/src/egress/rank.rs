//! Ranks: the urgency of packets.

use crate::packet::{Packet, PacketKind};
use base::Operation;

/// The mapping of credits to ranks: a step function (paper, 4.5). More credit means a lower rank,
/// which is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankConfig {
    /// Credits per step, at least 1.
    pub quantum: u32,
    /// The rank of a drive without credit; `rank_max` quanta and more have rank 0.
    pub rank_max: u8,
    /// Assumed credit of a drive whose credit is unknown or which has failed.
    pub unknown_credit: u32,
    /// The rank of all packets that complete reads.
    pub read_rank: u8,
}

impl RankConfig {
    /// Returns the rank of a command for a drive with `credit`.
    pub fn of_credit(&self, credit: Option<u32>) -> u8 {
        let steps = credit.unwrap_or(self.unknown_credit) / self.quantum;
        self.rank_max - steps.min(u32::from(self.rank_max)) as u8
    }
}

/// The queueing class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Completes a write, or enables the transfer of its data: small, and in the highest queue (the
    /// paper mentions completions only).
    WriteCompletion,
    /// Queued by this rank.
    Ranked(u8),
    /// Completes a read and has left its request's path: in the lowest queue (paper, 4.6).
    Stray,
}

impl Traffic {
    /// Returns the queueing class of `packet`.
    pub fn of(packet: &Packet, config: &RankConfig) -> Traffic {
        match packet.kind {
            PacketKind::Command | PacketKind::WriteData { .. } => Traffic::Ranked(packet.rank),
            PacketKind::ReadyToTransfer => Traffic::WriteCompletion,
            PacketKind::Acknowledgement { .. } => Traffic::WriteCompletion,
            PacketKind::Notification { .. } | PacketKind::Pause { .. } => Traffic::WriteCompletion,
            PacketKind::Response if packet.operation == Operation::Write => Traffic::WriteCompletion,
            PacketKind::Response | PacketKind::ReadData { .. } if packet.trail.is_detour() => Traffic::Stray,
            PacketKind::Response | PacketKind::ReadData { .. } => Traffic::Ranked(config.read_rank),
        }
    }
}
