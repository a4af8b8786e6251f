//! Parameters of the rivals. Plain structs with every field given; defaults and checks are in
//! `spec`.

use base::{Bytes, Span};
use serde::Serialize;

/// DCTCP (SIGCOMM'10): ECN-marked windows over drop-tail output queues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dctcp {
    /// Largest segment, payload bytes.
    pub mss: Bytes,
    /// Marking threshold K of an output queue, in wire bytes.
    pub mark_above: Bytes,
    /// An output queue's room; what does not fit is dropped.
    pub queue: Bytes,
    /// Gain g of the marked fraction's moving average.
    pub gain: f64,
    /// Window of a new connection, in segments.
    pub initial_window: u32,
    /// Least retransmission timeout.
    pub timeout_min: Span,
    /// Whether receivers acknowledge what came beyond a hole (RFC 2018) and senders use it (RFC
    /// 6675).
    pub selective: bool,
    /// Connections between two hosts each way: 1 to
    /// [`CONNECTIONS_MAX`](crate::dctcp::CONNECTIONS_MAX).
    pub connections: u32,
}

/// RoCEv2 with DCQCN (SIGCOMM'15) over priority flow control (802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dcqcn {
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// No marks below this queue (K_min).
    pub mark_from: Bytes,
    /// All marked above this queue (K_max).
    pub mark_all: Bytes,
    /// Marking probability just below K_max (P_max).
    pub mark_probability: f64,
    /// When the switch pauses an ingress port.
    pub pause: Pause,
    /// How a flow answers notifications.
    pub reaction: Reaction,
    /// Gain g of alpha.
    pub gain: f64,
    /// Lower bound of the rate after a cut, in bits per second.
    pub rate_min_bps: u64,
    /// Least time between two congestion notifications of a flow.
    pub notification_interval: Span,
    /// Alpha decays when no notification came for this long.
    pub alpha_timer: Span,
    /// Rate-increase timer.
    pub increase_timer: Span,
    /// Rounds of fast recovery (F).
    pub fast_recovery_rounds: u32,
    /// Additive step, in bits a second.
    pub additive_bps: u64,
    /// Hyper step, in bits a second.
    pub hyper_bps: u64,
}

/// When a switch pauses one of its ingress ports (802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Pause {
    /// At a fixed number of bytes.
    Static {
        /// Bytes of one ingress port in the switch above which it is paused (XOFF).
        above: Bytes,
        /// Bytes of one ingress port below which it may go on (XON).
        below: Bytes,
    },
    /// Above a share of what is free of a buffer that all ports share (SIGCOMM'15, 4). A port may
    /// go on two full packets below that, or when nothing of it is left.
    Dynamic {
        /// The buffer, without the headroom for packets in flight when a port is paused.
        shared: Bytes,
        /// The share.
        share: f64,
    },
}

/// How a flow of DCQCN answers notifications of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Reaction {
    /// As published: each notification cuts the rate and raises alpha; a timer and a counter of
    /// bytes raise the rate.
    AtOnce {
        /// Rate-increase byte counter.
        increase_bytes: Bytes,
    },
    /// As its vendor's adapters do, by the simulator of HPCC (SIGCOMM'19): alpha moves once an
    /// alpha timer, the rate is cut at most once a period, only the timer raises it, and the target
    /// stays while cuts follow each other.
    Periodic {
        /// Time between two checks for a notification.
        cut_interval: Span,
    },
}

/// pFabric (SIGCOMM'13): tiny priority queues, minimal rate control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pfabric {
    /// Largest segment, payload bytes.
    pub mss: Bytes,
    /// An output queue's room in wire bytes (about two bandwidth-delay products).
    pub queue: Bytes,
    /// Window, in segments (about a bandwidth-delay product): flows start at it.
    pub window: u32,
    /// Retransmission timeout (about three round trips).
    pub timeout: Span,
    /// What limits the data of a flow in flight.
    pub control: RateControl,
}

/// What limits the data of a pFabric flow in flight, and how it detects losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum RateControl {
    /// pFabric's own (SIGCOMM'13, 4.2).
    Minimal {
        /// Consecutive timeouts after which a flow enters probe mode.
        probe_after: u32,
    },
    /// Each flow is a connection of DCTCP (EDM, ASPLOS'25, 4.3: pFabric on top of DCTCP). Its
    /// segment, queue, first window and least timeout are those of [`Pfabric`], and say the same
    /// here.
    Dctcp(Dctcp),
}

/// An idealised receiver-driven protocol (Homa, pHost, NDP, ExpressPass at their best): receivers
/// learn of messages in no time, pull the one with the least remaining bytes, one credit a packet
/// at line rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceiverDriven {
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Payload that a receiver may have called for and not received. One round trip of it fills the
    /// link from one idle sender; more lets it call on others while one is busy (overcommitment).
    pub outstanding: Bytes,
}

/// A lossless fabric with PCIe-like, hop-by-hop credits (CXL).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CreditBased {
    /// Payload of a flit.
    pub flit_payload: Bytes,
    /// Flit with its header and CRC on the wire.
    pub flit_wire: Bytes,
    /// Input buffer of a switch port, in flits for each of its two virtual channels: the credits of
    /// its peer.
    pub switch_buffer_flits: u32,
    /// Input buffer of a device, in flits for each of its two virtual channels.
    pub device_buffer_flits: u32,
}

/// Fastpass (SIGCOMM'14): an arbiter node gives every packet a time slot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fastpass {
    /// Payload of one time slot.
    pub slot_payload: Bytes,
    /// Time slots that the arbiter plans together: 1 to [`BATCH_MAX`](crate::fastpass::BATCH_MAX).
    pub batch: u32,
    /// An endpoint that hears nothing of a demand for so long states it again.
    pub timeout: Span,
}
