//! The switch's buffer by ingress port, and the rules for pausing and resuming ports (802.1Qbb;
//! SIGCOMM'15, 4).

use crate::config::{Dcqcn, Pause};
use crate::framing::roce_wire;
use base::{Bytes, NodeId};

/// The share of every ingress port in the buffer, in wire bytes.
#[derive(Clone, Debug)]
pub struct Buffer {
    ports: Vec<Ingress>,
    used: u64,
    rule: Pause,
    /// Total number of bytes that all ports may still receive while paused.
    headroom: u64,
    /// A port resumes this far below a dynamic threshold: two full packets (SIGCOMM'15, 4).
    hysteresis: u64,
    /// Ports paused by a dynamic threshold, in the order of pausing.
    waiting: Vec<NodeId>,
}

/// Data in the switch from one ingress port.
#[derive(Clone, Debug)]
struct Ingress {
    used: u64,
    highest: u64,
    paused: bool,
    /// Bytes that it may still receive while paused.
    headroom: u64,
}

impl Buffer {
    /// Creates an empty buffer. `headrooms` are those of the ingress ports, in order: the bytes
    /// that each may still receive while paused.
    pub fn new(config: &Dcqcn, headrooms: impl IntoIterator<Item = Bytes>) -> Buffer {
        let port = |headroom: Bytes| Ingress { used: 0, highest: 0, paused: false, headroom: headroom.count() };
        let ports: Vec<Ingress> = headrooms.into_iter().map(port).collect();
        Buffer {
            headroom: ports.iter().map(|port| port.headroom).sum(),
            ports,
            used: 0,
            rule: config.pause,
            hysteresis: 2 * u64::from(roce_wire(config.mtu.count() as u32, true)),
            waiting: Vec::new(),
        }
    }
    /// Returns the highest number of buffered bytes of `port`.
    pub fn highest(&self, port: NodeId) -> Bytes {
        Bytes::new(self.ports[port.index()].highest)
    }
    /// Restarts the highest fill levels at the present ones.
    pub fn restart_highest(&mut self) {
        self.ports.iter_mut().for_each(|port| port.highest = port.used);
    }

    /// Returns whether `port` is paused.
    pub fn is_paused(&self, port: NodeId) -> bool {
        self.ports[port.index()].paused
    }
    /// Returns whether `wire` more bytes from `from` fit. They always do if the headroom is right
    /// and the neighbour obeys. A static threshold bounds each port, a dynamic one their sum.
    pub fn has_room(&self, from: NodeId, wire: u64) -> bool {
        let ingress = &self.ports[from.index()];
        let (used, room) = match self.rule {
            Pause::Static { above, .. } => (ingress.used, above.count() + ingress.headroom),
            Pause::Dynamic { shared, .. } => (self.used, shared.count() + self.headroom),
        };
        used + wire <= room
    }

    /// Adds `wire` bytes received on `from`. Returns whether that port has to be paused now.
    pub fn charge(&mut self, from: NodeId, wire: u64) -> bool {
        self.used += wire;
        let ingress = &mut self.ports[from.index()];
        ingress.used += wire;
        ingress.highest = ingress.highest.max(ingress.used);
        let threshold = self.threshold();
        let ingress = &mut self.ports[from.index()];
        if ingress.paused || ingress.used <= threshold {
            return false;
        }
        ingress.paused = true;
        if let Pause::Dynamic { .. } = self.rule {
            self.waiting.push(from);
        }
        true
    }
    /// Clears the pause of `port`: its neighbour no longer knows of it.
    pub fn forget_pause(&mut self, port: NodeId) {
        self.ports[port.index()].paused = false;
        self.waiting.retain(|other| *other != port);
    }
    /// Removes `wire` bytes received on `from`. Call [`Self::next_to_resume`] until it returns
    /// `None`.
    pub fn release(&mut self, from: NodeId, wire: u64) {
        self.used -= wire;
        self.ports[from.index()].used -= wire;
    }
    /// Resumes and returns a port, after data of `from` have left: `from` itself or, with a shared
    /// buffer, any paused port.
    pub fn next_to_resume(&mut self, from: NodeId) -> Option<NodeId> {
        let port = match self.rule {
            Pause::Static { below, .. } => {
                let ingress = &self.ports[from.index()];
                (ingress.paused && ingress.used < below.count()).then_some(from)?
            }
            Pause::Dynamic { .. } => {
                let place = self.waiting.iter().position(|port| self.may_go_on(*port))?;
                self.waiting.remove(place)
            }
        };
        self.ports[port.index()].paused = false;
        Some(port)
    }

    /// Returns the present limit of a port.
    fn threshold(&self) -> u64 {
        match self.rule {
            Pause::Static { above, .. } => above.count(),
            Pause::Dynamic { shared, share } => (shared.count().saturating_sub(self.used) as f64 * share) as u64,
        }
    }
    fn may_go_on(&self, port: NodeId) -> bool {
        let used = self.ports[port.index()].used;
        used == 0 || used + self.hysteresis <= self.threshold()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcqcn::testing::config;

    const HEADROOM: Bytes = Bytes::new(22_400);
    /// SIGCOMM'15, 4: 12 MB, minus headroom for eight classes at each of 32 ports.
    const SHARED: u64 = 12_000_000 - 8 * 32 * 22_400;

    fn dynamic(ports: u32, shared: u64, share: f64) -> Buffer {
        let pause = Pause::Dynamic { shared: Bytes::new(shared), share };
        Buffer::new(&Dcqcn { pause, ..config() }, vec![HEADROOM; ports as usize])
    }

    /// Fills ports 0 to `count` round robin, a byte each, until all of them are paused. Returns the
    /// bytes of each.
    fn filled(buffer: &mut Buffer, count: u32) -> Vec<u64> {
        let mut open: Vec<NodeId> = (0..count).map(NodeId).collect();
        while !open.is_empty() {
            open.retain(|port| !buffer.charge(*port, 1));
        }
        buffer.ports[..count as usize].iter().map(|ingress| ingress.used).collect()
    }

    /// Choudhury and Hahne (1998): k queues that compete for a buffer S, with thresholds of a times
    /// its free part, hold a S / (1 + k a) each.
    #[test]
    fn ports_that_compete_hold_the_share_of_the_formula() {
        for (ports, share) in [(1, 1.0), (2, 1.0), (8, 1.0), (1, 0.125), (8, 0.125), (5, 4.0)] {
            let held = filled(&mut dynamic(32, 1_000_000, share), ports);
            let each = share * 1e6 / (1.0 + f64::from(ports) * share);
            assert!(
                held.iter().all(|used| (*used as f64 - each).abs() <= 12.0),
                "{ports} at {share}: {held:?}, {each}"
            );
        }
    }

    /// SIGCOMM'15, 4: with beta = 8 marks precede pauses as long as the mark is below 21.75 KB.
    /// This is for eight classes, in each of which one ingress port has filled that much of all 32
    /// egress queues.
    #[test]
    fn the_published_bound_of_the_mark_follows_from_beta() {
        let held = filled(&mut dynamic(32, SHARED, 8.0 / 8.0), 8);
        let mark = held[0] as f64 / 32.0;
        assert!((mark - 21_750.0).abs() < 10.0, "{mark}");
    }

    #[test]
    fn a_static_threshold_pauses_past_its_last_byte_and_resumes_below_the_other() {
        let pause = Pause::Static { above: Bytes::new(1_000), below: Bytes::new(400) };
        let mut buffer = Buffer::new(&Dcqcn { pause, ..config() }, [HEADROOM; 2]);
        assert!(!buffer.charge(NodeId(0), 1_000));
        assert!(buffer.charge(NodeId(0), 1));
        assert!(!buffer.charge(NodeId(0), 1), "it is paused already");
        buffer.release(NodeId(0), 602);
        assert_eq!(buffer.next_to_resume(NodeId(0)), None);
        buffer.release(NodeId(0), 1);
        assert_eq!((buffer.next_to_resume(NodeId(0)), buffer.next_to_resume(NodeId(0))), (Some(NodeId(0)), None));
        assert_eq!(buffer.highest(NodeId(0)), Bytes::new(1_002));
        buffer.restart_highest();
        assert_eq!(buffer.highest(NodeId(0)), Bytes::new(399), "what it holds now");
    }

    #[test]
    fn a_port_goes_on_when_others_have_made_room() {
        let mut buffer = dynamic(2, 100_000, 1.0);
        assert!(!buffer.charge(NodeId(0), 45_000));
        assert!(buffer.charge(NodeId(1), 30_000), "25 KB are free");
        buffer.release(NodeId(0), 7_000);
        assert_eq!(buffer.next_to_resume(NodeId(0)), None, "32 KB are free: two packets less is not 30");
        buffer.release(NodeId(0), 1_000);
        assert_eq!(buffer.next_to_resume(NodeId(0)), Some(NodeId(1)));
        assert_eq!(buffer.next_to_resume(NodeId(0)), None);
    }

    #[test]
    fn a_port_without_data_goes_on_however_full_the_buffer_is() {
        let mut buffer = dynamic(2, 10_000, 1.0);
        assert!(buffer.charge(NodeId(0), 11_000));
        assert!(buffer.charge(NodeId(1), 100));
        buffer.release(NodeId(1), 100);
        assert_eq!(buffer.next_to_resume(NodeId(1)), Some(NodeId(1)));
    }

    #[test]
    fn a_port_has_room_for_its_own_headroom_above_the_threshold_and_no_byte_more() {
        let pause = Pause::Static { above: Bytes::new(1_000), below: Bytes::new(400) };
        let mut buffer = Buffer::new(&Dcqcn { pause, ..config() }, [50, 70].map(Bytes::new));
        for (port, room) in [(NodeId(0), 1_050), (NodeId(1), 1_070)] {
            assert!(buffer.has_room(port, room) && !buffer.has_room(port, room + 1));
        }
        buffer.charge(NodeId(0), 1_000);
        assert!(buffer.has_room(NodeId(0), 50) && !buffer.has_room(NodeId(0), 51));
        let mut shared = dynamic(2, 1_000, 1.0);
        shared.charge(NodeId(0), 900);
        let left = 100 + 2 * HEADROOM.count();
        assert!(shared.has_room(NodeId(1), left) && !shared.has_room(NodeId(1), left + 1));
    }

    #[test]
    fn a_port_whose_pause_was_forgotten_is_paused_anew_by_its_next_byte() {
        let mut buffer = dynamic(2, 10_000, 1.0);
        assert!(buffer.charge(NodeId(0), 6_000) && buffer.is_paused(NodeId(0)));
        buffer.forget_pause(NodeId(0));
        assert!(!buffer.is_paused(NodeId(0)));
        assert_eq!(buffer.next_to_resume(NodeId(0)), None);
        assert!(buffer.charge(NodeId(0), 1));
    }
}
