//! The bytes that one I/O moves in each direction, in closed form (paper, Figures 6 and 7).

use super::{WireConfig, WireFormat};
use base::{Bytes, Operation};
use nvme::pdu::PduKind;
use nvme::wire::{MtuError, Packets};

/// The counting rules, and the sharing of packets by small PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeModel {
    /// Whether preamble, start delimiter, FCS and gap count: on a wire they do, in counters of
    /// network cards mostly not.
    pub counts_around: bool,
    /// Commands of different I/Os that share a TCP segment: 1 if the host sends each at once.
    pub commands_together: u32,
    /// R2Ts and responses of different I/Os that share a TCP segment: 1 at queue depth 1, more in a
    /// deep queue of a polling target.
    pub answers_together: u32,
    /// Full data segments per bare acknowledgement: 2 by RFC 9293, more with receive offload;
    /// `None` leaves acknowledgements out.
    pub acknowledged: Option<u32>,
}

/// Bytes of one I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Volume {
    /// Bytes into the target.
    pub ingress: f64,
    /// Bytes out of the target.
    pub egress: f64,
}

/// Preamble and start delimiter, FCS, gap (IEEE 802.3-2022, 3.1.1 and 4.4.2).
const AROUND: u64 = 8 + 4 + 12;

impl Volume {
    /// Returns the volume of one I/O of `bytes`, without hops in between.
    pub fn of(config: &WireConfig, operation: Operation, bytes: u32, model: VolumeModel) -> Result<Self, MtuError> {
        let format = WireFormat::new(config)?;
        let counter = Counter { packets: format.packets, format, model };
        Ok(match operation {
            Operation::Read => counter.read(bytes),
            Operation::Write | Operation::ReadModifyWrite => counter.write(bytes),
        })
    }
}

struct Counter {
    format: WireFormat,
    packets: Packets,
    model: VolumeModel,
}

impl Counter {
    fn read(&self, bytes: u32) -> Volume {
        let data = self.data(PduKind::ControllerData, self.format.config.controller_data_max, bytes);
        let response = if self.format.config.success_flag { 0.0 } else { self.small(PduKind::Response) };
        Volume { ingress: self.small(PduKind::Command) + self.acknowledgements(bytes), egress: data + response }
    }

    fn write(&self, bytes: u32) -> Volume {
        let back = self.small(PduKind::Response) + self.acknowledgements(bytes);
        if self.format.in_capsule(Operation::Write, bytes) == bytes {
            let capsule = self.burst(self.format.pdu_bytes(PduKind::Command, bytes));
            return Volume { ingress: capsule, egress: back };
        }
        let data = self.data(PduKind::HostData, self.format.config.host_data_max, bytes);
        let readies = f64::from(bytes.div_ceil(self.format.config.ready_max));
        Volume {
            ingress: self.small(PduKind::Command) + data,
            egress: back + readies * self.small(PduKind::ReadyToTransfer),
        }
    }

    /// Returns the bytes of an I/O's data: its PDUs as one stream of full packets.
    fn data(&self, kind: PduKind, pdu_max: u32, bytes: u32) -> f64 {
        let (full, left) = (bytes / pdu_max, bytes % pdu_max);
        let rest = if left > 0 { self.format.pdu_bytes(kind, left) } else { 0 };
        self.burst(u64::from(full) * self.format.pdu_bytes(kind, pdu_max) + rest)
    }

    fn burst(&self, payload: u64) -> f64 {
        let around = if self.model.counts_around { 0 } else { AROUND * self.packets.count(Bytes::new(payload)) };
        (self.packets.wire_bytes(Bytes::new(payload)).count() - around) as f64
    }

    /// Returns the bytes of a PDU without data: its share of the segment that carries it.
    fn small(&self, kind: PduKind) -> f64 {
        let together = match kind {
            PduKind::Command => self.model.commands_together,
            _ => self.model.answers_together,
        };
        let together = u64::from(together.max(1));
        self.burst(together * self.format.pdu_bytes(kind, 0)) / together as f64
    }

    fn acknowledgements(&self, bytes: u32) -> f64 {
        let Some(every) = self.model.acknowledged else { return 0.0 };
        let segments = self.packets.count(Bytes::new(u64::from(bytes)));
        let around = if self.model.counts_around { 0 } else { AROUND };
        let one = self.packets.packet_bytes(Bytes::ZERO).count() - around;
        segments as f64 / f64::from(every.max(1)) * one as f64
    }
}
