//! Scatter-gather descriptors (NVM Express Base 2.0, 4.1.2): sixteen bytes that say where a
//! command's data are.

/// Where a command's data are. The last byte on the wire is type (high four bits) and subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sgl {
    /// 00h: one block of host memory. All zero in commands without data.
    Block {
        /// Where, in the host's memory.
        address: u64,
        /// Bytes.
        length: u32,
    },
    /// 01h: inside the capsule, behind the SQE at an offset that ICDOFF shifts (NVMe over Fabrics:
    /// in-capsule data).
    InCapsule {
        /// Bytes from the start of the in-capsule data.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// 10h: that many bytes are thrown away.
    BitBucket {
        /// Bytes.
        length: u32,
    },
    /// 20h: more descriptors, of which the last is another segment.
    Segment {
        /// Where they are.
        address: u64,
        /// Bytes of descriptors.
        length: u32,
    },
    /// 30h: the last descriptors.
    LastSegment {
        /// Where they are.
        address: u64,
        /// Bytes of descriptors.
        length: u32,
    },
    /// 40h: a block with a key (RDMA).
    Keyed {
        /// Where, in the host's memory.
        address: u64,
        /// Bytes, below 2^24.
        length: u32,
        /// The key.
        key: u32,
    },
    /// 5Ah: the transport moves the data: by H2CData and C2HData PDUs on TCP.
    Transport {
        /// Bytes.
        length: u32,
    },
    /// A descriptor of a type that is not known here, as it came. Never made by hand.
    Unknown([u8; 16]),
}

impl Sgl {
    /// No data.
    pub const NONE: Sgl = Sgl::Block { address: 0, length: 0 };

    /// Bytes of data that it describes; of a segment nothing is known before the segment is read.
    pub const fn length(self) -> Option<u32> {
        match self {
            Sgl::Block { length, .. }
            | Sgl::InCapsule { length, .. }
            | Sgl::BitBucket { length }
            | Sgl::Keyed { length, .. }
            | Sgl::Transport { length } => Some(length),
            Sgl::Segment { .. } | Sgl::LastSegment { .. } | Sgl::Unknown(_) => None,
        }
    }

    /// As bytes.
    pub fn encode(self) -> [u8; 16] {
        let (address, length, identifier) = match self {
            Sgl::Block { address, length } => (address, length, 0x00),
            Sgl::InCapsule { offset, length } => (offset, length, 0x01),
            Sgl::BitBucket { length } => (0, length, 0x10),
            Sgl::Segment { address, length } => (address, length, 0x20),
            Sgl::LastSegment { address, length } => (address, length, 0x30),
            Sgl::Keyed { address, length, key } => return keyed(address, length, key),
            Sgl::Transport { length } => (0, length, 0x5a),
            Sgl::Unknown(bytes) => return bytes,
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        bytes[15] = identifier;
        bytes
    }

    /// Reads it; never fails, see [`Sgl::Unknown`].
    pub fn decode(bytes: &[u8; 16]) -> Sgl {
        let [a, b, c, d, e, f, g, h, low, mid, high, top, k, l, m, identifier] = *bytes;
        let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let length = u32::from_le_bytes([low, mid, high, top]);
        match identifier {
            0x00 => Sgl::Block { address, length },
            0x01 => Sgl::InCapsule { offset: address, length },
            0x10 => Sgl::BitBucket { length },
            0x20 => Sgl::Segment { address, length },
            0x30 => Sgl::LastSegment { address, length },
            0x40 => Sgl::Keyed { address, length: length & 0xff_ffff, key: u32::from_le_bytes([top, k, l, m]) },
            0x5a => Sgl::Transport { length },
            _ => Sgl::Unknown(*bytes),
        }
    }
}

/// The keyed form has a length of three bytes and then the key (Base 2.0, Figure 112).
fn keyed(address: u64, length: u32, key: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..11].copy_from_slice(&length.to_le_bytes()[..3]);
    bytes[11..15].copy_from_slice(&key.to_le_bytes());
    bytes[15] = 0x40;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NVMe/TCP Transport 1.0, 3.4: the transport data block has no address.
    #[test]
    fn the_two_descriptors_of_tcp_look_as_hosts_write_them() {
        let bytes = Sgl::Transport { length: 0x0002_1000 }.encode();
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 0x5a]);
        let bytes = Sgl::InCapsule { offset: 0, length: 1024 }.encode();
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1]);
    }

    /// Base 2.0, Figure 112.
    #[test]
    fn a_keyed_block_has_three_bytes_of_length_and_four_of_key() {
        let bytes = Sgl::Keyed { address: 0x0102_0304_0506_0708, length: 0x0a0b0c, key: 0x1112_1314 }.encode();
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 0x0c, 0x0b, 0x0a, 0x14, 0x13, 0x12, 0x11, 0x40]);
    }

    proptest! {
        #[test]
        fn a_descriptor_comes_back(address in any::<u64>(), length in any::<u32>(), key in any::<u32>()) {
            let all = [
                Sgl::Block { address, length }, Sgl::InCapsule { offset: address, length }, Sgl::BitBucket { length },
                Sgl::Segment { address, length }, Sgl::LastSegment { address, length }, Sgl::Transport { length },
                Sgl::Keyed { address, length: length >> 8, key },
            ];
            for sgl in all {
                prop_assert_eq!(Sgl::decode(&sgl.encode()), sgl);
            }
        }

        #[test]
        fn any_sixteen_bytes_are_a_descriptor(bytes in any::<[u8; 16]>()) {
            let sgl = Sgl::decode(&bytes);
            prop_assert_eq!(Sgl::decode(&sgl.encode()), sgl);
        }
    }
}
