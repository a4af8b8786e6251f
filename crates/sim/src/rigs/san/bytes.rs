//! Packets as bytes, and back: what `--wire` checks.

use san::wire::{WireFormat, decode, encode};
use san::{Packet, PacketKind};

/// Writes every packet as bytes and reads it again.
pub(super) struct WireCheck {
    format: WireFormat,
    bytes: Vec<u8>,
}

/// Where data may begin: at the start of a PDU, or inside one. A packet does not say, but is as
/// long as the one or the other.
const OFFSETS: [u32; 2] = [0, 4];

impl WireCheck {
    pub fn new(format: WireFormat) -> WireCheck {
        WireCheck { format, bytes: Vec::new() }
    }

    /// Acknowledgements, notifications and pauses are the transport's own, and have no bytes here.
    ///
    /// # Panics
    /// When the bytes say something else than the packet.
    pub fn check(&mut self, packet: &Packet) {
        if packet.kind.is_control() {
            return;
        }
        let is_data = matches!(packet.kind, PacketKind::WriteData { .. } | PacketKind::ReadData { .. });
        let tried = if is_data { &OFFSETS[..] } else { &OFFSETS[..1] };
        let fits = tried.iter().any(|offset| self.round_trip(packet, *offset) == *packet);
        assert!(fits, "a packet's bytes decode to the packet: {packet:?}");
    }

    fn round_trip(&mut self, packet: &Packet, offset: u32) -> Packet {
        self.bytes.clear();
        encode(&self.format, packet, offset, &mut self.bytes).expect("a packet of ours has bytes");
        decode(&self.format, packet, &self.bytes).expect("our own bytes are sound")
    }
}
