//! The ISR header (paper, 4.3, Figure 10): the entries that hops wrote into a packet, and the rest
//! of its path.
//!
//! A hop on the outward path writes its identifier, the time, and a mark if its queue is long. It
//! also writes *the ingress port of the packet*, by which the answer has to leave. On the return
//! path each hop sends the answer to that port and replaces the entry with the ingress port of the
//! answer. The host can thus send the write's data along the same path. Each entry holds the one
//! port of the next direction, so hops need no per-I/O state. The paper's header has identifiers
//! only, which cannot distinguish two cables between the same two adapters.

use crate::id::Port;
use nvme::CodecError;
use topology::VertexId;

/// Most hops that a header can count. No route of a network has more.
pub const HOPS_MAX: usize = u16::MAX as usize;

/// The entry of one hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailHop {
    /// The hop's vertex.
    pub vertex: u32,
    /// When the last outward packet passed, in nanoseconds, wrapping.
    pub time_ns: u32,
    /// The egress port at this hop of a packet in the opposite direction.
    pub port: u16,
    /// Whether the hop's queue exceeded the threshold.
    pub is_marked: bool,
}

/// Whether an answer returns along the path of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// It does, or the packet is no answer.
    #[default]
    Kept,
    /// It did, until a failure.
    Detour,
    /// It never did: the network routes answers independently.
    Free,
}

/// The header. In outward packets, `position` is the number of hops passed; in answers, the number
/// of hops ahead. The memory order is fixed, so that the used part is adjacent to the rest of the
/// packet.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Trail {
    pub(crate) drive_latency_ns: u32,
    pub(crate) length: u16,
    pub(crate) position: u16,
    /// Maximum number of hops of the whole path, set by the first hop that routes the packet; 0
    /// until then.
    pub(crate) limit: u16,
    pub(crate) way: Way,
    /// The hops, if there are at most [`HOPS_NEAR`]. Entries from `length` on are stale.
    pub(crate) near: [TrailHop; HOPS_NEAR],
    /// The hops, if there are more.
    far: Vec<TrailHop>,
}

impl PartialEq for Trail {
    fn eq(&self, other: &Trail) -> bool {
        let rest = |trail: &Trail| (trail.drive_latency_ns, trail.position, trail.limit, trail.way);
        self.hops() == other.hops() && rest(self) == rest(other)
    }
}

impl Eq for Trail {}

/// Trails up to this length take no memory of their own; all trails of an 8 x 8 x 8 torus do.
pub(crate) const HOPS_NEAR: usize = 16;
/// Most trails are no longer than this: copying this many hops is faster than a copy of variable
/// length.
const HOPS_USUAL: usize = 6;

impl Trail {
    /// Bytes that each hop adds to the header on the wire.
    pub const HOP_BYTES: u32 = 8;
    /// Returns the hops so far, starting at the host.
    pub fn hops(&self) -> &[TrailHop] {
        let length = usize::from(self.length);
        if length <= HOPS_NEAR { &self.near[..length] } else { &self.far }
    }
    fn hops_mut(&mut self) -> &mut [TrailHop] {
        let length = usize::from(self.length);
        if length <= HOPS_NEAR { &mut self.near[..length] } else { &mut self.far }
    }
    /// Returns the number of hops passed by an outward packet, or of hops ahead of an answer.
    pub fn position(&self) -> usize {
        usize::from(self.position)
    }
    /// Returns the time from the arrival of the request's last packet at the target to the
    /// departure of this answer, nanoseconds.
    pub fn drive_latency_ns(&self) -> u32 {
        self.drive_latency_ns
    }
    /// Returns whether an answer has left its request's path because of a failure.
    pub fn is_detour(&self) -> bool {
        self.way == Way::Detour
    }
    /// Returns whether an answer takes another path than its request, after a failure or always.
    /// The hops are then those of the other path, from the hop at which the answer left. They are
    /// useless for returning packets and for learning delays.
    pub fn has_left(&self) -> bool {
        self.way != Way::Kept
    }
    /// Counts the marks of the hops from `index` on: the congestion level of that part of the path.
    pub fn congestion_from(&self, index: usize) -> u32 {
        self.hops().iter().skip(index).filter(|hop| hop.is_marked).count() as u32
    }
    /// Returns, for the target, the header of an answer to the packet with this header (the command
    /// of a read, the last data of a write). The answer leaves `drive_latency_ns` after that packet
    /// arrived.
    pub fn turned_at_target(mut self, drive_latency_ns: u32) -> Trail {
        self.turn_at_target(drive_latency_ns);
        self
    }
    /// Does the same as [`turned_at_target`](Self::turned_at_target) in place.
    pub(crate) fn turn_at_target(&mut self, drive_latency_ns: u32) {
        self.position = self.length;
        self.drive_latency_ns = drive_latency_ns;
    }
    /// Returns, for the host, the header of data that follow a ready-to-transfer with this header.
    pub fn turned_at_host(self) -> Trail {
        if self.has_left() {
            return Trail::default();
        }
        let mut trail = Trail { position: 0, drive_latency_ns: 0, ..self };
        trail.hops_mut().iter_mut().for_each(|hop| hop.is_marked = false);
        trail
    }
    /// As `*self = *other`, without the stale entries.
    #[inline]
    pub(crate) fn become_copy_of(&mut self, other: &Trail) {
        (self.drive_latency_ns, self.way) = (other.drive_latency_ns, other.way);
        (self.length, self.position, self.limit) = (other.length, other.position, other.limit);
        if usize::from(other.length) <= HOPS_USUAL {
            self.near[..HOPS_USUAL].copy_from_slice(&other.near[..HOPS_USUAL]);
        } else if usize::from(other.length) <= HOPS_NEAR {
            self.near = other.near;
        } else {
            self.far.clone_from(&other.far);
        }
    }
    /// Whether `vertex` is among the hops.
    pub fn has_visited(&self, vertex: VertexId) -> bool {
        self.hops().iter().any(|hop| hop.vertex == vertex.0)
    }

    /// Returns the maximum number of links that a route from here may have. The first caller sets
    /// the limit of the whole path to `allowed` links from here, and to no more than fit into the
    /// header.
    pub(crate) fn links_left(&mut self, allowed: u16) -> u16 {
        if self.limit == 0 {
            self.limit = allowed.saturating_add(self.position);
        }
        self.limit.saturating_sub(self.position)
    }
    /// Returns the next hop of an outward packet, if its path is known.
    pub(crate) fn ahead(&self) -> Option<&TrailHop> {
        self.hops().get(self.position())
    }
    /// Returns the next hop of an answer.
    pub(crate) fn behind(&self) -> Option<&TrailHop> {
        self.hops().get(self.position().checked_sub(1)?)
    }
    /// Writes a hop at the present position, and advances. An existing entry (of a path that is
    /// followed) is overwritten. Returns `None` without a change if the trail is full.
    pub(crate) fn pass_out(&mut self, hop: TrailHop, is_marked: bool) -> Option<()> {
        let hop = TrailHop { is_marked, ..hop };
        let position = self.position();
        if position < usize::from(self.length) {
            self.hops_mut()[position] = hop;
        } else {
            self.lengthen(hop)?;
        }
        self.position += 1;
        Some(())
    }
    fn lengthen(&mut self, hop: TrailHop) -> Option<()> {
        let length = usize::from(self.length);
        self.length = self.length.checked_add(1)?;
        if length < HOPS_NEAR {
            self.near[length] = hop;
            return Some(());
        }
        if length == HOPS_NEAR {
            self.far.clear();
            self.far.extend_from_slice(&self.near);
        }
        self.far.push(hop);
        Some(())
    }
    /// Passes the next hop of an answer, and records there the egress port for later data.
    pub(crate) fn pass_back(&mut self, port: Port, is_marked: bool) {
        debug_assert!(self.position > 0, "who passes back has looked behind");
        self.position -= 1;
        let position = self.position();
        let hop = &mut self.hops_mut()[position];
        hop.port = port.0;
        hop.is_marked |= is_marked;
    }
    /// Removes all hops from `position` on. Returns the number of removed hops.
    pub(crate) fn truncate(&mut self, position: usize) -> usize {
        let length = usize::from(self.length);
        let cut = length.saturating_sub(position);
        let kept = length - cut;
        if length > HOPS_NEAR {
            self.far.truncate(kept);
            if kept <= HOPS_NEAR {
                self.near[..kept].copy_from_slice(&self.far);
            }
        }
        self.length = kept as u16;
        self.position = self.position.min(self.length);
        cut
    }
    /// Leaves the path of the request: from here on the hops are those of another path. Returns the
    /// number of removed hops.
    pub(crate) fn leave(&mut self, way: Way) -> usize {
        (self.way, self.limit) = (way, 0);
        self.truncate(0)
    }
}

/// Bytes before the hops.
const FIXED_BYTES: usize = 12;

/// The bit of a hop's port that holds the mark.
const MARK: u16 = 1 << 15;
/// Maximum number of ports of a hop.
pub const PORTS_MAX: usize = MARK as usize;

/// The encoding, little-endian like all of NVMe: count (2 bytes), position (2), maximum of hops of
/// the path (2; 0 if not set), way (1; 0 kept, 1 detour, 2 free), reserved (1), drive latency (4).
/// Then for each hop: vertex (2), port (2; its upper bit is the ECN bit of the hop), time (4).
/// Figure 10 of the paper shows the fields but no widths; these are our choice.
impl Trail {
    /// Returns the size of this header on the wire, bytes.
    pub fn wire_bytes(&self) -> usize {
        FIXED_BYTES + usize::from(self.length) * Trail::HOP_BYTES as usize
    }

    /// Encodes the header at the front of `bytes`. Returns its length, or `None` without a change
    /// if `bytes` is too short.
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let bytes = bytes.get_mut(..self.wire_bytes())?;
        let (fixed, hops) = bytes.split_at_mut(FIXED_BYTES);
        for (place, count) in fixed.chunks_exact_mut(2).zip([self.length, self.position, self.limit]) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        fixed[6..8].copy_from_slice(&[self.way as u8, 0]);
        fixed[8..].copy_from_slice(&self.drive_latency_ns.to_le_bytes());
        for (hop, bytes) in self.hops().iter().zip(hops.chunks_exact_mut(Trail::HOP_BYTES as usize)) {
            let mark = if hop.is_marked { MARK } else { 0 };
            bytes[..2].copy_from_slice(&(hop.vertex as u16).to_le_bytes());
            bytes[2..4].copy_from_slice(&(hop.port | mark).to_le_bytes());
            bytes[4..].copy_from_slice(&hop.time_ns.to_le_bytes());
        }
        Some(self.wire_bytes())
    }

    /// Decodes a header from the front of `bytes`, which may be longer.
    ///
    /// # Errors
    ///
    /// When bytes are missing, the position is behind the last hop, the way is none of the three,
    /// or the reserved byte is not zero.
    pub fn decode(bytes: &[u8]) -> Result<Trail, CodecError> {
        let fixed: &[u8; FIXED_BYTES] = leading(bytes)?;
        let [length, position, limit] = [0, 2, 4].map(|at| u16_at(fixed, at));
        let [way, nothing] = [fixed[6], fixed[7]];
        check("position in the trail", u32::from(position), position <= length, "at most the number of hops")?;
        let known = [Way::Kept, Way::Detour, Way::Free].get(usize::from(way)).copied();
        check("way of the trail", u32::from(way), known.is_some(), "0 to 2")?;
        check("reserved byte of the trail", u32::from(nothing), nothing == 0, "0")?;
        let needed = FIXED_BYTES + usize::from(length) * Trail::HOP_BYTES as usize;
        let part = "the hops of the trail";
        let hops = bytes.get(FIXED_BYTES..needed).ok_or(CodecError::Short { part, got: bytes.len(), needed })?;
        let mut trail = Trail { way: known.unwrap_or_default(), limit, ..Trail::default() };
        for bytes in hops.chunks_exact(Trail::HOP_BYTES as usize) {
            let [vertex, port] = [0, 2].map(|at| u16_at(bytes, at));
            let (vertex, time_ns) = (u32::from(vertex), u32_at(bytes, 4));
            let hop = TrailHop { vertex, time_ns, port: port & !MARK, is_marked: port & MARK != 0 };
            check("hops of the trail", u32::from(length), trail.lengthen(hop).is_some(), "at most 65535")?;
        }
        (trail.position, trail.drive_latency_ns) = (position, u32_at(fixed, 8));
        Ok(trail)
    }
}

fn leading<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], CodecError> {
    bytes.first_chunk().ok_or(CodecError::Short { part: "the trail", got: bytes.len(), needed: N })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
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
        TrailHop { vertex: u32::from(vertex), port, time_ns, is_marked: false }
    }

    /// Builds a trail of three hops out, the second marked.
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
        for vertex in [12_u16, 11, 10] {
            let behind = *trail.behind().expect("hops are left");
            assert_eq!((behind.vertex, behind.port), (u32::from(vertex), vertex + 100));
            trail.pass_back(Port(vertex + 200), false);
        }
        assert_eq!(trail.behind(), None);
        let mut trail = trail.turned_at_host();
        for vertex in 10..13_u16 {
            let ahead = *trail.ahead().expect("the way is known");
            assert_eq!((ahead.vertex, ahead.port), (u32::from(vertex), vertex + 200));
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
        assert_eq!(trail.links_left(99), 99, "another way");
    }

    #[test]
    fn a_full_trail_takes_no_hop_more() {
        let mut trail = Trail::default();
        assert!((0..HOPS_MAX).all(|_| trail.pass_out(hop(7, 0, 0), true).is_some()));
        let full = trail.clone();
        assert_eq!(trail.pass_out(hop(99, 0, 0), true), None);
        assert_eq!(trail, full);
    }

    /// Once, a trail had at most 24 hops. 16 are stored inline; marks were once bits of a 32-bit
    /// word.
    #[test]
    fn a_way_of_any_length_is_kept_with_its_marks_and_shortened() {
        for length in [15, 16, 17, 24, 25, 32, 33, 300] {
            let mut trail = Trail::default();
            (0..length).for_each(|vertex| trail.pass_out(hop(vertex, 1, 0), vertex % 2 == 0).expect("there is room"));
            assert!((0..length).zip(trail.hops()).all(|(vertex, hop)| hop.vertex == u32::from(vertex)));
            assert_eq!(trail.hops().len(), usize::from(length));
            assert_eq!(trail.congestion_from(usize::from(length) - 2), 1, "one of the last two");
            for kept in [usize::from(length) - 1, 16, 3] {
                trail.truncate(kept);
                let left: Vec<u32> = trail.hops().iter().map(|hop| hop.vertex).collect();
                assert_eq!(left, (0..kept.min(usize::from(length) - 1) as u32).collect::<Vec<_>>());
            }
        }
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
        let mut bytes = [0; 100];
        let length = three_hops().encode(&mut bytes).expect("there is room");
        assert_eq!(length, 12 + 3 * 8);
        let refusal = |at: usize, value: u8| {
            let mut bytes = bytes;
            bytes[at] = value;
            Trail::decode(&bytes[..length]).expect_err("it is wrong").to_string()
        };
        assert!(refusal(0, 4).contains("44 are needed"));
        assert!(refusal(1, 1).contains("2084 are needed"));
        assert!(refusal(2, 4).contains("position"));
        assert!(refusal(6, 3).contains("way"));
        assert!(refusal(7, 1).contains("reserved"));
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
        fn a_copy_is_the_same_whatever_lay_there_before(length in 0..40u16, before in 0..40u16, back in 0usize..40) {
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
            mut bytes in prop::collection::vec(any::<u8>(), 0..350), hops in 0u8..50, position in 0u8..50, flags in 0u8..3, limit in 0u8..50,
        ) {
            for (byte, value) in bytes.iter_mut().zip([hops, 0, position, 0, limit, 0, flags, 0]) {
                *byte = value;
            }
            if let Ok(trail) = Trail::decode(&bytes) {
                let mut again = [0; 500];
                let length = trail.encode(&mut again).expect("there is room");
                prop_assert_eq!(&again[..length], &bytes[..length]);
            }
        }

        #[test]
        fn every_header_survives_the_wire(
            hops in prop::collection::vec((any::<u16>(), 0..1u16 << 15, any::<u32>(), any::<bool>()), 0..50),
            latency in any::<u32>(), back in 0usize..50,
        ) {
            let mut trail = Trail::default();
            for (vertex, port, time_ns, is_marked) in &hops {
                trail.pass_out(hop(*vertex, *port, *time_ns), *is_marked).expect("there is room");
            }
            let mut trail = trail.turned_at_target(latency);
            (0..back.min(hops.len())).for_each(|at| trail.pass_back(Port(at as u16), false));
            let mut bytes = [0xff; 500];
            trail.encode(&mut bytes).expect("there is room");
            prop_assert_eq!(Trail::decode(&bytes), Ok(trail));
        }
    }
}
