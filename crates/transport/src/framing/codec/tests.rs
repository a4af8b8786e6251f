use super::*;
use crate::dcqcn::RESPONSE;
use crate::framing::*;
use base::NodeId;
use proptest::prelude::*;

/// Packets like those of the designs: kind and wire length fit the framing.
fn packet(framing: Framing) -> impl Strategy<Value = Packet> {
    let kinds: &'static [PacketKind] = match framing {
        Framing::Raw => &[PacketKind::Data],
        Framing::Tcp => &[PacketKind::Data, PacketKind::Acknowledgement],
        Framing::Roce => &[
            PacketKind::Data,
            PacketKind::Request,
            PacketKind::Acknowledgement,
            PacketKind::CongestionNotification,
            PacketKind::Pause,
        ],
        Framing::Pfabric => &[PacketKind::Data, PacketKind::Acknowledgement, PacketKind::Request],
        Framing::ReceiverDriven => &[PacketKind::Data, PacketKind::Grant],
        Framing::Fastpass => &[PacketKind::Data, PacketKind::Request, PacketKind::Grant],
        Framing::Flit => &[PacketKind::Data, PacketKind::CreditReturn],
    };
    let numbers = (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<[bool; 2]>());
    let places = (any::<u32>(), any::<u32>(), prop_oneof![Just(0), any::<u64>().prop_map(|offset| offset >> 1)]);
    (0..kinds.len(), 1u32..1500, numbers, places).prop_map(move |(kind, size, numbers, places)| {
        let (message, sequence, priority, value, tag, [marked, again]) = numbers;
        let kind = kinds[kind];
        let payload = match (framing, kind) {
            (_, PacketKind::Data) => size,
            (Framing::Roce, PacketKind::Request) => 1 + size % 40,
            _ => 0,
        };
        let priority = if framing == Framing::Roce { priority % 2 } else { priority };
        let offset = places.2;
        let value = if value % 2 == 0 { offset + u64::from(payload) } else { value };
        let bare = Packet { offset, payload, priority, value, ..Packet::new(kind, NodeId(0), NodeId(0), 0) };
        let wire = wire_of(framing, &bare, size);
        let (source, target) = (NodeId(places.0), NodeId(places.1));
        let marked = marked && kind != PacketKind::Pause && framing != Framing::Raw;
        Packet { kind, message, sequence, source, target, offset, payload, wire, priority, marked, again, value, tag }
    })
}

fn wire_of(framing: Framing, packet: &Packet, size: u32) -> u32 {
    let Packet { kind, payload, offset, .. } = *packet;
    let (first, last) = (offset == 0, offset + u64::from(payload) == packet.value);
    match (framing, kind) {
        (Framing::Raw, _) => frame_wire(payload),
        (Framing::Roce, PacketKind::Data) if packet.priority == RESPONSE => roce_response_wire(payload, first || last),
        (Framing::Roce, PacketKind::Data) => roce_wire(payload, first),
        (Framing::Roce, PacketKind::Request) => roce_request_wire(payload),
        (Framing::Roce, PacketKind::Acknowledgement) => roce_ack_wire(),
        (Framing::Roce, PacketKind::CongestionNotification) => roce_notification_wire(),
        (Framing::Roce, _) => pause_wire(),
        (Framing::Pfabric, PacketKind::Acknowledgement) => pfabric_ack_wire(),
        (Framing::Pfabric, _) => pfabric_wire(payload),
        (Framing::ReceiverDriven, _) => receiver_driven_wire(payload),
        (Framing::Fastpass, PacketKind::Request | PacketKind::Grant) => fastpass_demand_wire(size % 11),
        (Framing::Flit, PacketKind::Data) => 68,
        (Framing::Flit, _) => 8,
        (Framing::Tcp, PacketKind::Acknowledgement) => tcp_selective_wire(size % 4),
        (Framing::Tcp | Framing::Fastpass, _) => tcp_wire(payload),
    }
}

fn any_packet() -> impl Strategy<Value = (Framing, Packet)> {
    let all =
        [Framing::Tcp, Framing::Roce, Framing::Pfabric, Framing::ReceiverDriven, Framing::Fastpass, Framing::Flit];
    (0..all.len()).prop_flat_map(move |index| packet(all[index]).prop_map(move |packet| (all[index], packet)))
}

proptest! {
    #[test]
    fn every_packet_comes_back_equal_and_takes_the_bytes_it_says((framing, packet) in any_packet()) {
        let mut bytes = Vec::new();
        encode(framing, &packet, &[], &mut bytes);
        prop_assert_eq!(bytes.len(), packet.wire as usize + TRAILER);
        prop_assert_eq!(decode(framing, &bytes), Ok(packet));
    }

    #[test]
    fn a_flipped_bit_in_a_frame_is_found((framing, packet) in any_packet(), place in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = Vec::new();
        encode(framing, &packet, &[], &mut bytes);
        let gap = if framing == Framing::Flit { 0 } else { GAP as usize };
        let place = place.index(packet.wire as usize - gap);
        bytes[place] ^= 1u8 << bit;
        prop_assert!(decode(framing, &bytes).is_err());
    }

    #[test]
    fn no_bytes_panic((framing, packet) in any_packet(), cut in any::<prop::sample::Index>(), noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = Vec::new();
        encode(framing, &packet, &[], &mut bytes);
        let _ = decode(framing, &bytes[..cut.index(bytes.len())]);
        prop_assert!(decode(framing, &noise).is_err());
    }
}

#[test]
fn a_tcp_segment_is_what_a_capture_would_show() {
    let bare = Packet::new(PacketKind::Data, NodeId(1), NodeId(2), tcp_wire(64));
    let packet = Packet { payload: 64, offset: 0x0102_0304, marked: true, ..bare };
    let mut bytes = Vec::new();
    encode(Framing::Tcp, &packet, &[], &mut bytes);
    assert_eq!(bytes[8..22], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], "addresses and EtherType");
    assert_eq!(bytes[22..26], [0x45, 3, 0, 104], "IPv4, congestion experienced, 104 bytes");
    assert_eq!(bytes[34..42], [10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(bytes[46..50], [1, 2, 3, 4], "TCP sequence number");
}

#[test]
fn a_frame_of_another_framing_is_refused_by_name() {
    let bare = Packet::new(PacketKind::Data, NodeId(1), NodeId(2), tcp_wire(64));
    let mut bytes = Vec::new();
    encode(Framing::Tcp, &Packet { payload: 64, ..bare }, &[], &mut bytes);
    assert_eq!(decode(Framing::Roce, &bytes), Err(WireError::Field { field: "IPv4 protocol", got: 6 }));
    let trailer = bytes.len() - TRAILER;
    bytes[trailer + 1] = 1;
    assert_eq!(decode(Framing::Tcp, &bytes), Err(WireError::Disagreement { field: "marked" }));
}
