//! What a hop is told and what it decides.

use crate::id::Port;
use crate::packet::Packet;
use crate::route::Advertisement;
use base::Time;

/// What may happen to a hop.
#[expect(clippy::large_enum_variant, reason = "nearly all are packets, and a box each would be an allocation a packet")]
#[derive(Clone, Debug)]
pub enum HopIn {
    /// A packet has come in whole (after the hop's own latency, which is the rig's).
    Packet {
        /// By which port.
        port: Port,
        /// The packet, with its trail of the hops passed so far.
        packet: Packet,
    },
    /// The time of a [`HopOut::Wake`] has come. Extra ones change nothing.
    PortFree(Port),
    /// A neighbour's distances.
    Advertisement {
        /// By which port.
        port: Port,
        /// The distances.
        advertisement: Advertisement,
    },
    /// The link of a port has gone.
    LinkDown(Port),
    /// The link of a port is there again.
    LinkUp(Port),
}

/// What a hop decides.
#[derive(Clone, Debug)]
pub enum HopOut {
    /// Begin to send now. The hop sends nothing more by this port until the frame has left at the
    /// port's rate, and keeps account of that itself: the rig tells nothing back unless a
    /// [`HopOut::Wake`] asks for it.
    Send {
        /// By which port.
        port: Port,
        /// The packet, with this hop in its trail.
        packet: Packet,
    },
    /// Call with [`HopIn::PortFree`] at `at`: something waits there. At most one call a port is
    /// needed at a time: an earlier `at` replaces a later one, and a rig that delivers both does no
    /// harm.
    Wake {
        /// Which port.
        port: Port,
        /// The earliest time at which the port can send.
        at: Time,
    },
    /// Tell the neighbour at `port` these distances.
    Advertise {
        /// By which port.
        port: Port,
        /// The distances.
        advertisement: Advertisement,
    },
    /// The packet ends here and is counted.
    Drop {
        /// The dropped packet.
        packet: Packet,
        /// The reason, for the counters.
        reason: DropReason,
    },
}

/// What has become of a packet that was handed to [`Hop::pass`](super::Hop::pass). It may have
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It is to be sent now, by this port: as [`HopOut::Send`].
    On(Port),
    /// The hop keeps it, and is to be called about that port then: as [`HopOut::Wake`].
    Waits(Port, Time),
    /// The hop keeps it and has asked already to be called; or it has ended, as the actions say.
    Over,
}

impl Passed {
    /// The action that it stands for, if there is one.
    pub(super) fn action(self, packet: &Packet) -> Option<HopOut> {
        match self {
            Passed::On(port) => Some(HopOut::Send { port, packet: packet.copied() }),
            Passed::Waits(port, at) => Some(HopOut::Wake { port, at }),
            Passed::Over => None,
        }
    }
}

/// Why a packet ended at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// No buffer left at the port.
    BufferFull,
    /// No way to the packet's end that it has not already been along. Commands are answered instead
    /// ([`crate::Outcome::Unreachable`]).
    NoRoute,
    /// It has been at [`crate::HOPS_MAX`] hops.
    TrailFull,
}
