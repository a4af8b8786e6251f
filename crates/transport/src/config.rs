//! Parameters of the rivals. Plain structs with all fields mandatory; defaults and checks are in
//! `plan`.

use base::{Bytes, Span};
use serde::Serialize;

/// DCTCP (SIGCOMM'10): ECN-marked windows over drop-tail output queues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dctcp {
    /// Maximum payload of a segment, bytes.
    pub mss: Bytes,
    /// Marking threshold K of an output queue, in wire bytes.
    pub mark_above: Bytes,
    /// Capacity of an output queue; packets that do not fit are dropped.
    pub queue: Bytes,
    /// Gain g of the marked fraction's moving average.
    pub gain: f64,
    /// Window of a new connection, in segments.
    pub initial_window: u32,
    /// Minimum retransmission timeout.
    pub timeout_min: Span,
    /// Whether receivers report data received beyond a gap (RFC 2018) and senders use the reports
    /// (RFC 6675).
    pub selective: bool,
    /// Connections per direction between two hosts: 1 to
    /// [`CONNECTIONS_MAX`](crate::dctcp::CONNECTIONS_MAX).
    pub connections: u32,
}

/// RoCEv2 with DCQCN (SIGCOMM'15) over priority flow control (802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dcqcn {
    /// Maximum payload of a packet.
    pub mtu: Bytes,
    /// Queue length up to which no packets are marked (K_min).
    pub mark_from: Bytes,
    /// Queue length above which all packets are marked (K_max).
    pub mark_all: Bytes,
    /// Marking probability just below K_max (P_max).
    pub mark_probability: f64,
    /// The rule for pausing ingress ports of the switch.
    pub pause: Pause,
    /// The reaction of a flow to notifications.
    pub reaction: Reaction,
    /// Gain g of alpha.
    pub gain: f64,
    /// Minimum rate after a cut, in bits per second.
    pub rate_min_bps: u64,
    /// Minimum time between two congestion notifications of a flow.
    pub notification_interval: Span,
    /// Time without a notification after which alpha decays.
    pub alpha_timer: Span,
    /// Rate-increase timer.
    pub increase_timer: Span,
    /// Rounds of fast recovery (F).
    pub fast_recovery_rounds: u32,
    /// Additive step, in bits per second.
    pub additive_bps: u64,
    /// Hyper step, in bits per second.
    pub hyper_bps: u64,
}

impl Dcqcn {
    /// What DCQCN's paper prints for 40 Gb/s (SIGCOMM'15, Figure 14, sections 3.1 and 4). The
    /// shared buffer is what its 12 MB leave beside 22.4 KB for each of eight classes at 32 ports.
    pub const PUBLISHED: Dcqcn = Dcqcn {
        mtu: Bytes::new(1024),
        mark_from: Bytes::new(5_000),
        mark_all: Bytes::new(200_000),
        mark_probability: 0.01,
        pause: Pause::Dynamic { shared: Bytes::new(6_265_600), share: 1.0 },
        reaction: Reaction::AtOnce { increase_bytes: Bytes::new(10_000_000) },
        gain: 1.0 / 256.0,
        rate_min_bps: 100_000_000,
        notification_interval: Span::us(50),
        alpha_timer: Span::us(55),
        increase_timer: Span::us(55),
        fast_recovery_rounds: 5,
        additive_bps: 40_000_000,
        hyper_bps: 200_000_000,
    };
}

/// The rule for pausing ingress ports of a switch (802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Pause {
    /// At a fixed number of bytes.
    Static {
        /// Bytes of one ingress port in the switch above which it is paused (XOFF).
        above: Bytes,
        /// Bytes of one ingress port below which it is resumed (XON).
        below: Bytes,
    },
    /// Above a share of the free part of a buffer that all ports share (SIGCOMM'15, 4). A port is
    /// resumed two full packets below that, or when no data of it are left.
    Dynamic {
        /// The buffer, without the headroom for packets in flight when a port is paused.
        shared: Bytes,
        /// The share.
        share: f64,
    },
}

/// The reaction of a DCQCN flow to congestion notifications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Reaction {
    /// As published: each notification cuts the rate and raises alpha; a timer and a byte counter
    /// raise the rate.
    AtOnce {
        /// Rate-increase byte counter.
        increase_bytes: Bytes,
    },
    /// Like the vendor's adapters, according to the simulator of HPCC (SIGCOMM'19). Alpha changes
    /// once per alpha timer. The rate is cut at most once per period, and only the timer raises it.
    /// The target is kept during consecutive cuts.
    Periodic {
        /// Time between two checks for a notification.
        cut_interval: Span,
    },
}

/// pFabric (SIGCOMM'13): tiny priority queues, minimal rate control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pfabric {
    /// Maximum payload of a segment, bytes.
    pub mss: Bytes,
    /// Capacity of an output queue in wire bytes (about two bandwidth-delay products).
    pub queue: Bytes,
    /// Initial and maximum window, in segments (about a bandwidth-delay product).
    pub window: u32,
    /// Retransmission timeout (about three round trips).
    pub timeout: Span,
    /// The limit on the data of a flow in flight.
    pub control: RateControl,
}

/// The limit on the data of a pFabric flow in flight, and its detection of losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum RateControl {
    /// pFabric's own (SIGCOMM'13, 4.2).
    Minimal {
        /// Consecutive timeouts after which a flow enters probe mode.
        probe_after: u32,
    },
    /// Each flow is a connection of DCTCP (EDM, ASPLOS'25, 4.3: pFabric on top of DCTCP). The
    /// segment, queue, initial window and minimum timeout equal those of [`Pfabric`].
    Dctcp(Dctcp),
}

/// An idealised receiver-driven protocol (Homa, pHost, NDP, ExpressPass at their best). Receivers
/// learn of messages instantly, and pull the one with the least remaining bytes, with one credit
/// per packet at line rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceiverDriven {
    /// Maximum payload of a packet.
    pub mtu: Bytes,
    /// Payload that a receiver may have credited and not received. One round trip of it fills the
    /// link from one idle sender; more allows it to credit others while one is busy
    /// (overcommitment).
    pub outstanding: Bytes,
}

/// A lossless fabric with PCIe-like, hop-by-hop credits (CXL).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CreditBased {
    /// Payload of a flit.
    pub flit_payload: Bytes,
    /// Size of a flit with its header and CRC, wire bytes.
    pub flit_wire: Bytes,
    /// Input buffer of a switch port, in flits for each of its two virtual channels: the credits of
    /// its peer.
    pub switch_buffer_flits: u32,
    /// Input buffer of a device, in flits for each of its two virtual channels.
    pub device_buffer_flits: u32,
}

/// Fastpass (SIGCOMM'14): an arbiter node assigns a time slot to every packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fastpass {
    /// Payload of one time slot.
    pub slot_payload: Bytes,
    /// Time slots that the arbiter plans together: 1 to [`BATCH_MAX`](crate::fastpass::BATCH_MAX).
    pub batch: u32,
    /// Time without an answer after which an endpoint repeats a demand.
    pub timeout: Span,
}
