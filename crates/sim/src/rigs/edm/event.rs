//! Events of the rig.

use super::ports::Direction;
use base::NodeId;

/// The rig's own events.
#[derive(Clone, Copy, Debug)]
pub enum EdmEvent {
    /// A node may have something to send and its uplink free.
    Transmit(NodeId),
    /// A flight has passed the switch's receive pipeline.
    AtSwitch(u32),
    /// A flight has passed the receiver's pipeline.
    AtHost(u32),
    /// A granted flight's data are in the buffer of its host.
    Fetched(u32),
    /// The switches want to match.
    Match,
    /// A switch's grants reach the egress ports.
    Emit(u8),
    /// A node's timers are due.
    Timer(NodeId),
    /// The fault with this index.
    Fault(u32),
    /// A shared link may have sent something. A [`LinkId`](super::LinkId) in pieces, which fit into
    /// eight bytes with the rest.
    Link {
        /// The plane.
        plane: u8,
        /// Up or down.
        direction: Direction,
        /// Whose link.
        node: NodeId,
    },
    /// A background generator's frames have passed their MAC.
    Burst(u32),
    /// A frame is at its egress port in the switch.
    FrameAtEgress(u32),
}

const _: () = assert!(size_of::<crate::drive::Event<EdmEvent>>() == 8);
