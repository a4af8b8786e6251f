//! Ranks: how urgent a packet is.

use crate::packet::{Packet, PacketKind};
use base::Operation;

/// How ranks follow from credits: a step function (paper, 4.5). More credit is a lower rank is more
/// urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankConfig {
    /// A step has so many credits, at least 1.
    pub quantum: u32,
    /// The rank of a drive without credit; `rank_max` quanta and more are rank 0.
    pub rank_max: u8,
    /// Credit of a drive of which nothing was heard yet, or which has gone.
    pub unknown_credit: u32,
    /// The one rank of all that completes reads.
    pub read_rank: u8,
}

impl RankConfig {
    /// The rank of a command for a drive with `credit`.
    pub fn of_credit(&self, credit: Option<u32>) -> u8 {
        let steps = credit.unwrap_or(self.unknown_credit) / self.quantum;
        self.rank_max - steps.min(u32::from(self.rank_max)) as u8
    }
}

/// How a packet is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// It completes a write, or lets its data come: small, and in the highest queue (the paper
    /// names completions only).
    WriteCompletion,
    /// By this rank.
    Ranked(u8),
    /// It completes a read and has left its request's way: in the lowest queue (paper, 4.6).
    Stray,
}

impl Traffic {
    /// How `packet` is queued.
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
