//! The ISR header (paper, 4.3, Figure 10): what the hops wrote into a packet, and which way it goes on.
//!
//! A hop on the way out writes itself, the time, whether its queue is long, and *the port that the packet came in by*, which is where the
//! answer has to leave. On the way back each hop takes that port and writes there the port that the answer came in by, so that the host
//! can send the write's data along the same way: each hop keeps one port per direction yet to come, and no state of its own. The paper's
//! header has ids only, which do not tell two cables between the same two adapters apart.

use crate::id::Port;
use nvme::CodecError;
use topology::VertexId;

/// Most hops of a way; the diameter of an 8 x 8 x 8 torus is 12.
pub const HOPS_MAX: usize = 24;

/// What one hop wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailHop {
    /// The hop: its vertex.
    pub vertex: u16,
    /// Where a packet in the opposite direction leaves this hop.
    pub port: u16,
    /// When the last packet on the way out passed, in nanoseconds, wrapping.
    pub time_ns: u32,
}

/// Whether an answer goes back the way of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// It does, or this is no answer.
    #[default]
    Kept,
    /// It did, until something failed.
    Detour,
    /// It never did: the network routes answers by themselves.
    Free,
}

/// The header. On the way out `position` hops have been passed; on the way back that many are still ahead. In this order in memory, so that what
/// is used of it lies together with the rest of its packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Trail {
    /// Bit `i`: the queue of hop `i` was over the threshold.
    pub(crate) ecn: u32,
    pub(crate) drive_latency_ns: u32,
    pub(crate) length: u8,
    pub(crate) position: u8,
    /// Most hops of the whole way, as the first that chose said it; 0 while nobody has.
    pub(crate) limit: u8,
    pub(crate) way: Way,
    /// Behind the first `length` lies what is left of earlier ways, which nobody looks at.
    pub(crate) hops: [TrailHop; HOPS_MAX],
}

impl PartialEq for Trail {
    fn eq(&self, other: &Trail) -> bool {
        let rest = |trail: &Trail| (trail.ecn, trail.drive_latency_ns, trail.position, trail.limit, trail.way);
        self.hops() == other.hops() && rest(self) == rest(other)
    }
}

impl Eq for Trail {}

/// Most ways are no longer than this: copying so many hops takes less than counting them.
const HOPS_USUAL: usize = 8;

impl Trail {
    /// What one hop adds to the header on the wire.
    pub const HOP_BYTES: u32 = 8;
    /// The hops so far, from the host on.
    pub fn hops(&self) -> &[TrailHop] {
        &self.hops[..usize::from(self.length)]
    }
    /// Hops passed on the way out, hops ahead on the way back.
    pub fn position(&self) -> usize {
        usize::from(self.position)
    }
    /// Time between the last packet of the request reaching the target and this answer leaving it, nanoseconds.
    pub fn drive_latency_ns(&self) -> u32 {
        self.drive_latency_ns
    }
    /// Whether an answer has left its request's way because something failed.
    pub fn is_detour(&self) -> bool {
        self.way == Way::Detour
    }
    /// Whether an answer goes another way than its request, by a failure or always. The hops are then those of that other way since then, and
    /// nobody can go back or learn by them.
    pub fn has_left(&self) -> bool {
        self.way != Way::Kept
    }
    /// Marks set at the hops from `index` on: the congestion level of what lies behind.
    pub fn congestion_from(&self, index: usize) -> u32 {
        (self.ecn >> index.min(31)).count_ones()
    }
    /// For the target: the header of an answer to the packet that brought this one (the command of a read, the last data of a write), given
    /// out `drive_latency_ns` after that packet came.
    pub fn turned_at_target(mut self, drive_latency_ns: u32) -> Trail {
        self.turn_at_target(drive_latency_ns);
        self
    }
    /// [`turned_at_target`](Self::turned_at_target) where it lies.
    pub(crate) fn turn_at_target(&mut self, drive_latency_ns: u32) {
        self.position = self.length;
        self.drive_latency_ns = drive_latency_ns;
    }
    /// For the host: the header of data that follows a ready-to-transfer with this header.
    pub fn turned_at_host(self) -> Trail {
        if self.has_left() { Trail::default() } else { Trail { position: 0, drive_latency_ns: 0, ecn: 0, ..self } }
    }
    /// As `*self = *other`, without what nobody looks at.
    #[inline]
    pub(crate) fn become_copy_of(&mut self, other: &Trail) {
        (self.ecn, self.drive_latency_ns, self.way) = (other.ecn, other.drive_latency_ns, other.way);
        (self.length, self.position, self.limit) = (other.length, other.position, other.limit);
        if usize::from(other.length) <= HOPS_USUAL {
            self.hops[..HOPS_USUAL].copy_from_slice(&other.hops[..HOPS_USUAL]);
        } else {
            self.hops = other.hops;
        }
    }
    /// Whether `vertex` is among the hops.
    pub fn has_visited(&self, vertex: VertexId) -> bool {
        self.hops().iter().any(|hop| u32::from(hop.vertex) == vertex.0)
    }

    /// Links that a way from here may have, at most. Whoever chooses first allows `allowed` in all, and no more than fit into the header.
    pub(crate) fn links_left(&mut self, allowed: u16) -> u16 {
        if self.limit == 0 {
            self.limit = allowed.saturating_add(u16::from(self.position)).min(HOPS_MAX as u16) as u8;
        }
        u16::from(self.limit.saturating_sub(self.position))
    }
    /// The hop that is next on the way out, where the way is known.
    pub(crate) fn ahead(&self) -> Option<&TrailHop> {
        self.hops().get(self.position())
    }
    /// The hop that is next on the way back.
    pub(crate) fn behind(&self) -> Option<&TrailHop> {
        self.hops().get(self.position().checked_sub(1)?)
    }
    /// Writes a hop at the present position, on the way out, and goes on. What was there (a way that is followed) is overwritten; `None`
    /// and no change when the trail is full.
    pub(crate) fn pass_out(&mut self, hop: TrailHop, is_marked: bool) -> Option<()> {
        let position = self.position();
        *self.hops.get_mut(position)? = hop;
        self.mark(position, is_marked);
        self.position += 1;
        self.length = self.length.max(self.position);
        Some(())
    }
    /// Goes over the hop behind on the way back, and leaves there the port by which data can come out again.
    pub(crate) fn pass_back(&mut self, port: Port, is_marked: bool) {
        debug_assert!(self.position > 0, "who passes back has looked behind");
        self.position -= 1;
        let position = self.position();
        self.hops[position].port = port.0;
        if is_marked {
            self.mark(position, true);
        }
    }
    /// Cuts off everything from `position` on; how many hops that were.
    pub(crate) fn truncate(&mut self, position: usize) -> usize {
        let cut = usize::from(self.length).saturating_sub(position);
        self.length -= cut as u8;
        self.position = self.position.min(self.length);
        self.ecn &= (1 << self.length) - 1;
        cut
    }
    /// Leaves the way of the request: from here on the hops are those of another. How many hops were forgotten.
    pub(crate) fn leave(&mut self, way: Way) -> usize {
        (self.way, self.limit) = (way, 0);
        self.truncate(0)
    }
    fn mark(&mut self, position: usize, is_marked: bool) {
        self.ecn = (self.ecn & !(1 << position)) | (u32::from(is_marked) << position);
    }
}

/// Bytes before the hops.
const FIXED_BYTES: usize = 12;

/// As bytes, little-endian as all of NVMe: count, position, way (0 kept, 1 detour, 2 free), most hops of
/// the way (0 while nobody has said), ECN vector (4), drive latency (4), and per hop
/// vertex (2), port (2), time (4). Figure 10 of the paper shows the fields but no widths; these are ours.
impl Trail {
    /// Most bytes of a header.
    pub const BYTES_MAX: usize = FIXED_BYTES + HOPS_MAX * Trail::HOP_BYTES as usize;

    /// Bytes of this header on the wire.
    pub fn wire_bytes(&self) -> usize {
        FIXED_BYTES + usize::from(self.length) * Trail::HOP_BYTES as usize
    }

    /// Writes it to the front of `bytes` and says how many bytes it took; `None` and nothing written when they are too few.
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let bytes = bytes.get_mut(..self.wire_bytes())?;
        let (fixed, hops) = bytes.split_at_mut(FIXED_BYTES);
        fixed[..4].copy_from_slice(&[self.length, self.position, self.way as u8, self.limit]);
        fixed[4..8].copy_from_slice(&self.ecn.to_le_bytes());
        fixed[8..].copy_from_slice(&self.drive_latency_ns.to_le_bytes());
        for (hop, bytes) in self.hops().iter().zip(hops.chunks_exact_mut(Trail::HOP_BYTES as usize)) {
            bytes[..2].copy_from_slice(&hop.vertex.to_le_bytes());
            bytes[2..4].copy_from_slice(&hop.port.to_le_bytes());
            bytes[4..].copy_from_slice(&hop.time_ns.to_le_bytes());
        }
        Some(self.wire_bytes())
    }

    /// Reads a header from the front of `bytes`, which may hold more.
    ///
    /// # Errors
    ///
    /// When bytes are missing, more hops are told than there may be, the position is behind the last hop, a hop that does not exist is marked, or
    /// the way is none of the three.
    pub fn decode(bytes: &[u8]) -> Result<Trail, CodecError> {
        let fixed: &[u8; FIXED_BYTES] = leading(bytes)?;
        let [length, position, way, limit, rest @ ..] = *fixed;
        let [ecn, drive_latency_ns] = [0, 4].map(|at| u32_at(&rest, at));
        check("hops of the trail", u32::from(length), usize::from(length) <= HOPS_MAX, "at most 24")?;
        check("position in the trail", u32::from(position), position <= length, "at most the number of hops")?;
        let known = [Way::Kept, Way::Detour, Way::Free].get(usize::from(way)).copied();
        check("way of the trail", u32::from(way), known.is_some(), "0 to 2")?;
        check("marks of the trail", ecn, ecn >> length == 0, "a bit a hop")?;
        let mut trail = Trail {
            ecn,
            drive_latency_ns,
            length,
            position,
            limit,
            way: known.unwrap_or_default(),
            ..Trail::default()
        };
        let hops = bytes.get(FIXED_BYTES..trail.wire_bytes()).ok_or(CodecError::Short {
            part: "the hops of the trail",
            got: bytes.len(),
            needed: trail.wire_bytes(),
        })?;
        for (hop, bytes) in trail.hops.iter_mut().zip(hops.chunks_exact(Trail::HOP_BYTES as usize)) {
            let [vertex, port] = [0, 2].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]));
            *hop = TrailHop { vertex, port, time_ns: u32_at(bytes, 4) };
        }
        Ok(trail)
    }
}

fn leading<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], CodecError> {
    bytes.first_chunk().ok_or(CodecError::Short { part: "the trail", got: bytes.len(), needed: N })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn check(field: &'static str, got: u32, is_allowed: bool, allowed: &'static str) -> Result<(), CodecError> {
    is_allowed.then_some(()).ok_or(CodecError::Field { field, got: u64::from(got), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hop(vertex: u16, port: u16, time_ns: u32) -> TrailHop {
        TrailHop { vertex, port, time_ns }
    }

    /// Three hops out, the second marked.
    fn three_hops() -> Trail {
        let mut trail = Trail::default();
        for vertex in 10..13u16 {
            trail.pass_out(hop(vertex, vertex + 100, u32::from(vertex) * 1_000), vertex == 11).expect("there is room");
        }
        trail
    }

    #[test]
    fn an_answer_goes_back_hop_by_hop_and_the_data_out_again_the_same_way() {
        let mut trail = three_hops().turned_at_target(77);
        assert_eq!((trail.position(), trail.drive_latency_ns()), (3, 77));
        for vertex in [12, 11, 10] {
            let behind = *trail.behind().expect("hops are left");
            assert_eq!((behind.vertex, behind.port), (vertex, vertex + 100));
            trail.pass_back(Port(vertex + 200), false);
        }
        assert_eq!(trail.behind(), None);
        let mut trail = trail.turned_at_host();
        for vertex in 10..13 {
            let ahead = *trail.ahead().expect("the way is known");
            assert_eq!((ahead.vertex, ahead.port), (vertex, vertex + 200));
            trail.pass_out(hop(vertex, vertex + 100, 5), false).expect("there is room");
        }
        assert_eq!((trail.ahead(), trail.hops().len()), (None, 3));
        assert_eq!(trail.turned_at_target(0).behind().map(|behind| behind.port), Some(112));
    }

    #[test]
    fn congestion_counts_marks_from_a_hop_to_the_target() {
        let trail = three_hops();
        assert_eq!([0, 1, 2, 3, 40].map(|index| trail.congestion_from(index)), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn who_chooses_first_says_how_long_the_way_may_be_and_the_others_have_what_is_left() {
        let mut trail = Trail::default();
        assert_eq!(trail.links_left(5), 5);
        trail.pass_out(hop(1, 0, 0), false).expect("there is room");
        assert_eq!(trail.links_left(99), 4);
        trail.leave(Way::Free);
        assert_eq!(trail.links_left(99), HOPS_MAX as u16, "another way, and no longer than the header");
    }

    #[test]
    fn a_full_trail_takes_no_hop_more() {
        let mut trail = Trail::default();
        assert!((0..HOPS_MAX as u16).all(|vertex| trail.pass_out(hop(vertex, 0, 0), true).is_some()));
        let full = trail;
        assert_eq!(trail.pass_out(hop(99, 0, 0), true), None);
        assert_eq!(trail, full);
    }

    #[test]
    fn a_way_cut_off_keeps_no_mark_of_what_is_gone() {
        let mut trail = three_hops();
        assert_eq!(trail.truncate(1), 2);
        assert_eq!((trail.hops().len(), trail.position(), trail.congestion_from(0)), (1, 1, 0));
        assert_eq!(trail.leave(Way::Detour), 1);
        assert!(trail.is_detour() && trail.hops().is_empty());
        assert_eq!(trail.turned_at_host(), Trail::default());
    }

    #[test]
    fn wrong_headers_are_refused_with_what_is_wrong() {
        let mut bytes = [0; Trail::BYTES_MAX];
        let length = three_hops().encode(&mut bytes).expect("there is room");
        assert_eq!(length, 12 + 3 * 8);
        let refusal = |at: usize, value: u8| {
            let mut bytes = bytes;
            bytes[at] = value;
            Trail::decode(&bytes[..length]).expect_err("it is wrong").to_string()
        };
        assert!(refusal(0, 25).contains("hops of the trail is 0x19"));
        assert!(refusal(0, 4).contains("44 are needed"));
        assert!(refusal(1, 4).contains("position"));
        assert!(refusal(2, 3).contains("way"));
        assert!(refusal(4, 0b1000).contains("marks"));
        assert!(Trail::decode(&bytes[..11]).is_err());
        assert_eq!(three_hops().encode(&mut [0; 35]), None);
    }

    #[test]
    fn what_was_cut_off_makes_no_difference() {
        let (mut cut, mut short) = (three_hops(), Trail::default());
        cut.truncate(1);
        short.pass_out(hop(10, 110, 10_000), false).expect("there is room");
        short.limit = cut.limit;
        assert_eq!(cut, short);
        cut.pass_out(hop(7, 7, 7), false).expect("there is room");
        assert_ne!(cut, short);
    }

    proptest! {
        #[test]
        fn a_copy_is_the_same_whatever_lay_there_before(length in 0..=HOPS_MAX as u16, before in 0..=HOPS_MAX as u16, back in 0usize..25) {
            let of_length = |length: u16, port: u16| {
                let mut trail = Trail::default();
                (0..length).for_each(|vertex| trail.pass_out(hop(vertex, port, 9), vertex % 3 == 0).expect("there is room"));
                trail.turned_at_target(u32::from(port))
            };
            let (mut trail, mut place) = (of_length(length, 5), of_length(before, 6));
            (0..back.min(usize::from(length))).for_each(|at| trail.pass_back(Port(at as u16), true));
            place.become_copy_of(&trail);
            prop_assert_eq!(place, trail);
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error_and_a_header_is_written_as_it_was_read(
            mut bytes in prop::collection::vec(any::<u8>(), 0..250), hops in 0u8..30, position in 0u8..30, flags in 0u8..3, limit in 0u8..30,
        ) {
            for (byte, value) in bytes.iter_mut().zip([hops, position, flags, limit, 0, 0, 0, 0]) {
                *byte = value;
            }
            if let Ok(trail) = Trail::decode(&bytes) {
                let mut again = [0; Trail::BYTES_MAX];
                let length = trail.encode(&mut again).expect("there is room");
                prop_assert_eq!(&again[..length], &bytes[..length]);
            }
        }

        #[test]
        fn every_header_survives_the_wire(
            hops in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u32>(), any::<bool>()), 0..=HOPS_MAX),
            latency in any::<u32>(), back in 0usize..25,
        ) {
            let mut trail = Trail::default();
            for (vertex, port, time_ns, is_marked) in &hops {
                trail.pass_out(hop(*vertex, *port, *time_ns), *is_marked).expect("there is room");
            }
            let mut trail = trail.turned_at_target(latency);
            (0..back.min(hops.len())).for_each(|at| trail.pass_back(Port(at as u16), false));
            let mut bytes = [0xff; Trail::BYTES_MAX];
            trail.encode(&mut bytes).expect("there is room");
            prop_assert_eq!(Trail::decode(&bytes), Ok(trail));
        }
    }
}
