//! Inputs and outputs of a hop.

use crate::id::Port;
use crate::packet::Packet;
use crate::route::Advertisement;
use base::Time;

/// An input of a hop.
#[expect(clippy::large_enum_variant, reason = "nearly all are packets, and a box each would be an allocation a packet")]
#[derive(Clone, Debug)]
pub enum HopIn {
    /// A whole packet was received (after the hop's own latency, which the rig models).
    Packet {
        /// The ingress port.
        port: Port,
        /// The packet, with its trail of the hops passed so far.
        packet: Packet,
    },
    /// The time of a [`HopOut::Wake`] was reached. Extra calls have no effect.
    PortFree(Port),
    /// A neighbour's distance advertisement.
    Advertisement {
        /// The ingress port.
        port: Port,
        /// The distances.
        advertisement: Advertisement,
    },
    /// The link of a port went down.
    LinkDown(Port),
    /// The link of a port came up.
    LinkUp(Port),
}

/// An output of a hop.
#[derive(Clone, Debug)]
pub enum HopOut {
    /// Start sending now. The hop sends nothing more on this port until the frame has left at the
    /// port's rate, which it tracks itself. The rig reports nothing back unless a [`HopOut::Wake`]
    /// requests it.
    Send {
        /// The egress port.
        port: Port,
        /// The packet, with this hop in its trail.
        packet: Packet,
    },
    /// Requests a [`HopIn::PortFree`] at `at`: something waits there. At most one request per port
    /// is pending: an earlier `at` replaces a later one, and delivering both is harmless.
    Wake {
        /// The port.
        port: Port,
        /// The earliest time at which the port can send.
        at: Time,
    },
    /// Send these distances to the neighbour at `port`.
    Advertise {
        /// The egress port.
        port: Port,
        /// The distances.
        advertisement: Advertisement,
    },
    /// The packet is dropped and counted.
    Drop {
        /// The dropped packet.
        packet: Packet,
        /// The reason, for the counters.
        reason: DropReason,
    },
}

/// The result of [`Hop::pass`](super::Hop::pass) for a packet, which may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Send the packet now on this port, as with [`HopOut::Send`].
    On(Port),
    /// The hop keeps the packet, and requests a call about that port at that time, as with
    /// [`HopOut::Wake`].
    Waits(Port, Time),
    /// The hop keeps the packet and has already requested a call, or the packet has ended as the
    /// actions state.
    Over,
}

impl Passed {
    /// Returns the equivalent action, if there is one.
    pub(super) fn action(self, packet: &Packet) -> Option<HopOut> {
        match self {
            Passed::On(port) => Some(HopOut::Send { port, packet: packet.copied() }),
            Passed::Waits(port, at) => Some(HopOut::Wake { port, at }),
            Passed::Over => None,
        }
    }
}

/// The reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The port's buffer is full.
    BufferFull,
    /// No route to the packet's destination avoids the hops of its trail. Commands are answered
    /// instead ([`crate::Outcome::Unreachable`]).
    NoRoute,
    /// The trail has [`crate::HOPS_MAX`] hops.
    TrailFull,
}
