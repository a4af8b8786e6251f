//! A PCIe tree: root complex, switches, devices, and the links between them, with the overhead of
//! packets.
//!
//! A transfer occupies every link on its path, each for its own time. The links work concurrently,
//! a hop's latency apart, as switches cut through. A transfer thus ends with the slowest link, and
//! a fast shared link is occupied only for its own time. Bytes are counted per link and direction.

use crate::Link;
use base::{Bytes, Rate, Span, Time};

/// One link of the tree, both directions alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieLinkConfig {
    /// A direction's bytes after line coding: 985 MB/s a lane of generation 3.
    pub rate: Rate,
    /// Most data of a packet (Max_Payload_Size).
    pub payload_max: Bytes,
    /// Maximum data of one read request (Max_Read_Request_Size).
    pub read_max: Bytes,
    /// What a packet has beside its data: framing, sequence number, header, CRC, and its share of
    /// acknowledgements and credits.
    pub overhead: Bytes,
    /// From one end to the other, the receiver's forwarding included.
    pub latency: Span,
}

/// Reason why a tree cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PcieError {
    /// A rate or packet size of nothing.
    #[error("a PCIe link's {0} is 0")]
    Zero(&'static str),
    /// The upper end is no place of this tree.
    #[error("there is no place {0} in this PCIe tree")]
    NoPlace(u16),
}

/// A place of a tree: root complex, switch or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PciePlace(pub u16);

/// Which way along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcieDirection {
    /// Toward the root complex.
    Up,
    /// Away from it.
    Down,
}

/// What went one way over one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieTraffic {
    /// Data.
    pub data: Bytes,
    /// Data and what packets have beside it.
    pub wire: Bytes,
    /// How long the link was, or is booked to be, sending.
    pub busy: Span,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    link: Link,
    data: u64,
    wire: u64,
}

/// What leads from a place toward the root.
#[derive(Clone, Copy, Debug)]
struct Upward {
    parent: PciePlace,
    config: PcieLinkConfig,
    up: Lane,
    down: Lane,
}

/// A tree of links.
#[derive(Clone, Debug, Default)]
pub struct PcieTree {
    /// By place less one: the root has none.
    upward: Vec<Upward>,
}

impl PcieTree {
    /// The root complex, which every tree has.
    pub const ROOT: PciePlace = PciePlace(0);

    /// A root complex alone.
    pub fn new() -> PcieTree {
        PcieTree::default()
    }

    /// Puts a switch or device below `parent`.
    ///
    /// # Errors
    /// When the link's numbers are nothing, or `parent` is not in the tree.
    pub fn add(&mut self, parent: PciePlace, config: PcieLinkConfig) -> Result<PciePlace, PcieError> {
        let sizes = [
            ("rate", config.rate.as_bps()),
            ("payload_max", config.payload_max.count()),
            ("read_max", config.read_max.count()),
        ];
        if let Some((what, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(PcieError::Zero(what));
        }
        if parent.0 as usize > self.upward.len() {
            return Err(PcieError::NoPlace(parent.0));
        }
        let lane = Lane { link: Link::new(config.rate), data: 0, wire: 0 };
        self.upward.push(Upward { parent, config, up: lane, down: lane });
        Ok(PciePlace(self.upward.len() as u16))
    }

    /// Moves data, by posted writes or as the completions of a read: when the first and the last
    /// byte are there.
    pub fn transfer(&mut self, now: Time, from: PciePlace, to: PciePlace, data: Bytes) -> (Time, Time) {
        let packets = |config: &PcieLinkConfig| data.count().div_ceil(config.payload_max.count()).max(1);
        self.along(now, from, to, data.count(), packets)
    }

    /// Requests data: returns the arrival of the last request. The data then return by a
    /// [`transfer`](PcieTree::transfer) in the opposite direction.
    pub fn request(&mut self, now: Time, from: PciePlace, to: PciePlace, data: Bytes) -> Time {
        let packets = |config: &PcieLinkConfig| data.count().div_ceil(config.read_max.count()).max(1);
        self.along(now, from, to, 0, packets).1
    }

    /// What went over the link above `place`; nothing for the root, which has none.
    pub fn traffic(&self, place: PciePlace, direction: PcieDirection) -> PcieTraffic {
        let Some(upward) = place.0.checked_sub(1).and_then(|index| self.upward.get(index as usize)) else {
            return PcieTraffic::default();
        };
        let lane = match direction {
            PcieDirection::Up => &upward.up,
            PcieDirection::Down => &upward.down,
        };
        PcieTraffic { data: Bytes::new(lane.data), wire: Bytes::new(lane.wire), busy: lane.link.busy() }
    }

    /// Every place with a link above it.
    pub fn places(&self) -> impl Iterator<Item = PciePlace> + use<> {
        (1..=self.upward.len() as u16).map(PciePlace)
    }

    fn along(
        &mut self,
        now: Time,
        from: PciePlace,
        to: PciePlace,
        data: u64,
        packets: impl Fn(&PcieLinkConfig) -> u64,
    ) -> (Time, Time) {
        let (mut first, mut last) = (now, now);
        let meeting = self.meeting(from, to);
        let mut place = from;
        while place != meeting {
            let upward = &mut self.upward[place.0 as usize - 1];
            (first, last) = upward.up.pass(&upward.config, (first, last), data, packets(&upward.config));
            place = upward.parent;
        }
        for place in self.below(meeting, to) {
            let upward = &mut self.upward[place.0 as usize - 1];
            (first, last) = upward.down.pass(&upward.config, (first, last), data, packets(&upward.config));
        }
        (first, last)
    }

    /// The lowest place above both.
    fn meeting(&self, one: PciePlace, other: PciePlace) -> PciePlace {
        let above: Vec<_> = self.above(one).collect();
        self.above(other).find(|place| above.contains(place)).unwrap_or(PcieTree::ROOT)
    }

    /// A place, what is above it, and so on to the root.
    fn above(&self, place: PciePlace) -> impl Iterator<Item = PciePlace> + '_ {
        std::iter::successors(Some(place), |place| {
            place.0.checked_sub(1).map(|index| self.upward[index as usize].parent)
        })
    }

    /// Places from below `top` down to `place`.
    fn below(&self, top: PciePlace, place: PciePlace) -> Vec<PciePlace> {
        let mut places: Vec<_> = self.above(place).take_while(|above| *above != top).collect();
        places.reverse();
        places
    }
}

impl Lane {
    /// Takes what comes between two moments, and says between which it is at the other end.
    fn pass(&mut self, config: &PcieLinkConfig, (first, last): (Time, Time), data: u64, packets: u64) -> (Time, Time) {
        let wire = data + packets * config.overhead.count();
        let (start, end) = self.link.submit(first, Bytes::new(wire));
        self.data += data;
        self.wire += wire;
        (start + config.latency, end.max(last) + config.latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: PcieLinkConfig = PcieLinkConfig {
        rate: Rate::gbps(8),
        payload_max: Bytes::new(256),
        read_max: Bytes::new(512),
        overhead: Bytes::new(26),
        latency: Span::ns(100),
    };
    const FAST: PcieLinkConfig = PcieLinkConfig { rate: Rate::gbps(32), ..SLOW };

    /// A switch below the root, two slow devices and a fast one below the switch.
    fn tree() -> (PcieTree, PciePlace, [PciePlace; 3]) {
        let mut tree = PcieTree::new();
        let switch = tree.add(PcieTree::ROOT, FAST).expect("a link");
        let devices = [SLOW, SLOW, FAST].map(|config| tree.add(switch, config).expect("a link"));
        (tree, switch, devices)
    }

    #[test]
    fn a_transfer_takes_the_slowest_links_time_and_every_links_latency() {
        let (mut tree, _, [device, ..]) = tree();
        // 4096 B in 16 packets of 26 B overhead: 4512 B, at 1 B/ns; two links of 100 ns.
        let (first, last) = tree.transfer(Time::ZERO, device, PcieTree::ROOT, Bytes::kib(4));
        assert_eq!((first, last), (Time::ns(200), Time::ns(4_712)));
        let asked = tree.request(Time::us(100), PcieTree::ROOT, device, Bytes::kib(4));
        // 8 requests of 26 B: 208 ns on the slow link.
        assert_eq!(asked, Time::us(100) + Span::ns(408));
    }

    #[test]
    fn peers_below_a_switch_leave_the_root_alone() {
        let (mut tree, switch, [one, other, _]) = tree();
        tree.transfer(Time::ZERO, one, other, Bytes::kib(4));
        assert_eq!(tree.traffic(switch, PcieDirection::Up), PcieTraffic::default());
        let expected = PcieTraffic { data: Bytes::kib(4), wire: Bytes::new(4_512), busy: Span::ns(4_512) };
        assert_eq!(tree.traffic(one, PcieDirection::Up), expected);
        assert_eq!(tree.traffic(other, PcieDirection::Down), expected);
        assert_eq!(tree.traffic(other, PcieDirection::Up), PcieTraffic::default());
    }

    #[test]
    fn two_slow_devices_share_a_fast_link_without_waiting() {
        let (mut tree, switch, [one, other, _]) = tree();
        let ends = [one, other].map(|device| tree.transfer(Time::ZERO, device, PcieTree::ROOT, Bytes::kib(4)).1);
        assert_eq!(ends, [Time::ns(4_712); 2]);
        assert_eq!(tree.traffic(switch, PcieDirection::Up).busy, Span::ns(2 * 1_128));
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate() {
        let (mut tree, _, [device, ..]) = tree();
        let mut last = Time::ZERO;
        for _ in 0..10 {
            last = tree.transfer(Time::ZERO, PcieTree::ROOT, device, Bytes::kib(4)).1;
        }
        assert_eq!(last, Time::ns(10 * 4_512 + 200));
    }

    #[test]
    fn what_cannot_be_a_link_is_an_error() {
        let mut tree = PcieTree::new();
        assert_eq!(tree.add(PciePlace(3), FAST), Err(PcieError::NoPlace(3)));
        assert_eq!(
            tree.add(PcieTree::ROOT, PcieLinkConfig { payload_max: Bytes::new(0), ..FAST }),
            Err(PcieError::Zero("payload_max"))
        );
        assert_eq!(
            tree.transfer(Time::us(1), PcieTree::ROOT, PcieTree::ROOT, Bytes::kib(4)),
            (Time::us(1), Time::us(1))
        );
    }
}
