use super::*;
use crate::id::{DriveId, SessionId, Tag};
use crate::packet::Outcome;
use base::RequestId;
use proptest::prelude::*;
use topology::VertexId;

fn config(mtu: u32) -> WireConfig {
    WireConfig {
        mtu,
        tcp_options: 12,
        has_header: false,
        framing: Framing::INITIAL,
        segment_max: 4096,
        in_capsule_max: 0,
        host_data_max: 128 << 10,
        controller_data_max: 128 << 10,
        ready_max: 128 << 10,
        success_flag: false,
        fast_retransmit: true,
    }
}

fn format(mtu: u32) -> WireFormat {
    WireFormat::new(&config(mtu)).unwrap()
}

fn packet(kind: PacketKind) -> Packet {
    Packet {
        tag: Tag { session: SessionId(4), command: 0x0105, attempt: 0x2041 },
        request: RequestId(77),
        kind,
        operation: Operation::Write,
        address: 8192,
        bytes: 4096,
        payload: 0,
        frame: 0,
        source: VertexId(1),
        target: VertexId(2),
        drive: DriveId(3),
        trail: Trail::default(),
        status: Outcome::Success,
        credit: 0,
        rank: 0,
        marked: false,
        ingress: 0,
        length: 0,
        stream: 0,
    }
}

mod frames {
    use super::*;

    /// 38 B of Ethernet, 20 of IPv4, 32 of TCP with timestamps: 90 B around each PDU of 72, 24 and
    /// 24 B.
    #[test]
    fn small_packets_are_their_pdu_and_ninety_bytes() {
        let format = format(9000);
        assert_eq!(format.frame(PacketKind::Command, 0, 0), 72 + 90);
        assert_eq!(format.frame(PacketKind::ReadyToTransfer, 0, 0), 24 + 90);
        assert_eq!(format.frame(PacketKind::Response, 0, 0), 24 + 90);
    }

    #[test]
    fn only_the_first_segment_of_a_pdu_carries_its_header() {
        let format = format(9000);
        let data = PacketKind::ReadData { last: false };
        assert_eq!(format.frame(data, 4096, 0), 24 + 4096 + 90);
        assert_eq!(format.frame(data, 4096, 4096), 4096 + 90);
        assert_eq!(format.frame(data, 4096, 128 << 10), 24 + 4096 + 90, "the next PDU");
    }

    #[test]
    fn a_segment_over_an_ordinary_mtu_is_several_frames() {
        assert_eq!(format(1500).frame(PacketKind::WriteData { last: true }, 4096, 0), 24 + 4096 + 3 * 90);
    }

    #[test]
    fn segments_end_at_pdus_and_at_the_end_of_the_data() {
        let format = WireFormat::new(&WireConfig { host_data_max: 6000, ..config(9000) }).unwrap();
        let mut ends = Vec::new();
        let mut offset = 0;
        while offset < 10_000 {
            offset += format.segment(offset, 10_000, 6000);
            ends.push(offset);
        }
        assert_eq!(ends, [4096, 6000, 10_000]);
    }

    #[test]
    fn data_of_a_write_go_in_the_capsule_up_to_its_limit() {
        let format = WireFormat::new(&WireConfig { in_capsule_max: 4096, ..config(9000) }).unwrap();
        assert_eq!(format.in_capsule(Operation::Write, 4096), 4096);
        assert_eq!(format.in_capsule(Operation::Write, 4097), 0);
        assert_eq!(format.in_capsule(Operation::Read, 4096), 0);
    }

    #[test]
    fn the_header_of_this_design_takes_its_bytes_in_every_frame() {
        let with = WireFormat::new(&WireConfig { has_header: true, ..config(9000) }).unwrap();
        let grown = with.frame(PacketKind::Response, 0, 0) - format(9000).frame(PacketKind::Response, 0, 0);
        assert_eq!(grown as usize, EXTENSION_BYTES + Trail::default().wire_bytes());
    }

    #[test]
    fn an_mtu_without_room_is_refused() {
        assert!(WireFormat::new(&config(52)).is_err());
        assert!(WireFormat::new(&config(53)).is_ok());
    }
}

mod bytes {
    use super::*;

    fn kinds() -> impl Strategy<Value = PacketKind> {
        prop_oneof![
            Just(PacketKind::Command),
            Just(PacketKind::ReadyToTransfer),
            any::<bool>().prop_map(|last| PacketKind::WriteData { last }),
            any::<bool>().prop_map(|last| PacketKind::ReadData { last }),
            Just(PacketKind::Response),
        ]
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        use Outcome::*;
        prop_oneof![
            Just(Success),
            Just(Rejected),
            Just(Unreachable),
            Just(Incomplete),
            Just(DriveFailed),
            Just(Aborted)
        ]
    }

    fn framings() -> impl Strategy<Value = Framing> {
        (any::<bool>(), any::<bool>(), 0u8..32)
            .prop_map(|(header, data, alignment)| Framing { digests: nvme::pdu::Digests { header, data }, alignment })
    }

    prop_compose! {
        fn packets()(
            kind in kinds(), operation in 0usize..3, block in 0u64..1 << 40, bytes in 1u32..1 << 20, command: u16, attempt: u16,
            status in outcomes(), credit: u32, rank: u8, at in 0u32..1 << 20, length in 1u32..9000,
        ) -> (Packet, u32) {
            let operation = [Operation::Read, Operation::Write, Operation::ReadModifyWrite][operation];
            let is_data = matches!(kind, PacketKind::WriteData { .. } | PacketKind::ReadData { .. });
            let offset = if is_data || kind == PacketKind::ReadyToTransfer { at % bytes } else { 0 };
            let payload = if is_data { length.min(bytes - offset) } else { 0 };
            let status = if kind == PacketKind::Response { status } else { Outcome::Success };
            let tag = Tag { session: SessionId(4), command, attempt };
            let shape = Packet { tag, kind, operation, address: block * 512, bytes, payload, status, credit, rank, ..packet(kind) };
            (shape, offset)
        }
    }

    proptest! {
        #[test]
        fn a_packet_comes_back_from_its_bytes((sent, offset) in packets(), framing in framings(), has_header: bool, in_capsule in 0u32..8192) {
            let config = WireConfig { framing, has_header, in_capsule_max: in_capsule, ..config(9000) };
            let format = WireFormat::new(&config).unwrap();
            let mut sent = sent;
            if sent.kind == PacketKind::Command {
                sent.payload = format.in_capsule(sent.operation, sent.bytes);
            }
            sent.frame = format.frame(sent.kind, sent.payload, offset);
            let mut bytes = Vec::new();
            encode(&format, &sent, offset, &mut bytes).unwrap();
            // The state of the connection and, after a command, the fields of the command.
            let is_command = sent.kind == PacketKind::Command;
            let known = Packet {
                tag: Tag { attempt: 0, ..sent.tag },
                operation: if is_command { Operation::Read } else { sent.operation },
                address: if is_command { 0 } else { sent.address },
                bytes: if is_command { 1 } else { sent.bytes },
                kind: if sent.kind.is_outward() { PacketKind::Command } else { PacketKind::Response },
                payload: 0, frame: 0, credit: 0, rank: 0, marked: false, ingress: 0, length: 0, stream: 0, status: Outcome::Success, trail: Trail::default(),
                ..sent
            };
            prop_assert_eq!(decode(&format, &known, &bytes).unwrap(), sent);
        }

        #[test]
        fn bytes_cut_short_or_changed_never_panic((sent, offset) in packets(), cut in 0usize..200, flip in 0usize..200, with: u8) {
            let format = format(9000);
            let mut bytes = Vec::new();
            encode(&format, &sent, offset, &mut bytes).unwrap();
            prop_assert!(decode(&format, &sent, &bytes[..cut.min(bytes.len() - 1)]).is_err());
            let place = flip % bytes.len();
            bytes[place] ^= with;
            let _ = decode(&format, &sent, &bytes);
        }
    }

    #[test]
    fn a_reset_is_a_command_without_data() {
        let format = format(9000);
        let sent = Packet { bytes: 0, frame: format.frame(PacketKind::Command, 0, 0), ..packet(PacketKind::Command) };
        let mut bytes = Vec::new();
        encode(&format, &sent, 0, &mut bytes).unwrap();
        assert_eq!(decode(&format, &Packet { bytes: 1, frame: 0, ..sent.clone() }, &bytes), Ok(sent));
    }

    #[test]
    fn a_packet_of_another_command_is_refused() {
        let format = format(9000);
        let sent = packet(PacketKind::Response);
        let mut bytes = Vec::new();
        encode(&format, &sent, 0, &mut bytes).unwrap();
        let other = Packet { tag: Tag { command: 9, ..sent.tag }, ..sent };
        assert_eq!(decode(&format, &other, &bytes), Err(WireError::Foreign { got: 0x0105, expected: 9 }));
    }

    #[test]
    fn what_a_command_cannot_say_is_refused() {
        let format = format(9000);
        let refused = |packet: Packet| encode(&format, &packet, 0, &mut Vec::new()).unwrap_err();
        let command = packet(PacketKind::Command);
        assert_eq!(refused(Packet { address: 100, ..command.clone() }), WireError::Address { got: 100 });
        assert_eq!(
            refused(Packet { bytes: (32 << 20) + 1, ..command.clone() }),
            WireError::Length { got: (32 << 20) + 1 }
        );
        assert!(encode(&format, &Packet { bytes: 32 << 20, ..command.clone() }, 0, &mut Vec::new()).is_ok());
    }
}

mod volumes {
    use super::*;

    const ALONE: VolumeModel =
        VolumeModel { counts_around: false, commands_together: 1, answers_together: 1, acknowledged: None };

    fn read_ratio(config: &WireConfig, bytes: u32, model: VolumeModel) -> f64 {
        let volume = Volume::of(config, Operation::Read, bytes, model).unwrap();
        volume.egress / volume.ingress
    }

    fn write_ratio(config: &WireConfig, bytes: u32, model: VolumeModel) -> f64 {
        let volume = Volume::of(config, Operation::Write, bytes, model).unwrap();
        volume.ingress / volume.egress
    }

    /// 66 B of Ethernet, IP and TCP around each PDU: the command has 138 B; 4 KiB in three segments
    /// 4,318 B and the response 90 B.
    #[test]
    fn a_read_of_four_kibibytes_alone() {
        let volume = Volume::of(&config(1500), Operation::Read, 4096, ALONE).unwrap();
        assert_eq!((volume.ingress, volume.egress), (138.0, (4096 + 24 + 3 * 66 + 24 + 66) as f64));
    }

    #[test]
    fn a_write_of_four_kibibytes_alone_and_in_the_capsule() {
        let volume = Volume::of(&config(1500), Operation::Write, 4096, ALONE).unwrap();
        assert_eq!((volume.ingress, volume.egress), ((138 + 4096 + 24 + 3 * 66) as f64, (2 * 90) as f64));
        let in_capsule = WireConfig { in_capsule_max: 8192, ..config(1500) };
        let volume = Volume::of(&in_capsule, Operation::Write, 4096, ALONE).unwrap();
        assert_eq!((volume.ingress, volume.egress), ((72 + 4096 + 3 * 66) as f64, 90.0));
    }

    #[test]
    fn acknowledgements_answer_every_so_many_segments() {
        let model = VolumeModel { acknowledged: Some(2), ..ALONE };
        let volume = Volume::of(&config(1500), Operation::Read, 128 << 10, model).unwrap();
        // 91 segments, one bare acknowledgement of 66 B for two of them.
        assert_eq!(volume.ingress, 138.0 + 45.5 * 66.0);
    }

    /// Returns the mean over queue depths of 1, 8 and 32, at which the target's small PDUs share
    /// segments, but not the host's commands. The published ratios scale with the I/O's size, so
    /// they include no acknowledgements. 110 B per read leave 38 B of headers for a command. 54 B
    /// per write leave no more than 6 B for an R2T and a response, so these shared a segment.
    fn mean_over_depths(ratio: impl Fn(VolumeModel) -> f64) -> f64 {
        [1, 8, 32].map(|depth| ratio(VolumeModel { answers_together: depth, ..ALONE })).iter().sum::<f64>() / 3.0
    }

    #[test]
    fn reads_and_writes_are_as_asymmetric_as_published() {
        let config = config(1500);
        let figures = [(4096, 37.0, 75.8), (32 << 10, 296.7, 609.7), (128 << 10, 1187.3, 2440.7)];
        for (bytes, reads, writes) in figures {
            let read = mean_over_depths(|model| read_ratio(&config, bytes, model));
            let write = mean_over_depths(|model| write_ratio(&config, bytes, model));
            println!("{bytes} B: read {read:.1} (published {reads}), write {write:.1} (published {writes})");
            assert!((0.75..1.25).contains(&(read / reads)), "{bytes} B read: {read}");
            assert!((0.75..1.25).contains(&(write / writes)), "{bytes} B write: {write}");
        }
    }

    #[test]
    fn jumbo_frames_change_the_asymmetry_by_their_headers_alone() {
        let [ordinary, jumbo] = [1500, 9000].map(|mtu| read_ratio(&config(mtu), 128 << 10, ALONE));
        assert_eq!(ordinary, (131_072 + 24 + 91 * 66 + 90) as f64 / 138.0);
        assert_eq!(jumbo, (131_072 + 24 + 15 * 66 + 90) as f64 / 138.0);
    }
}
