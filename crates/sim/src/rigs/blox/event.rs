//! Events of the rig.

/// An event of the rig.
#[derive(Clone, Copy, Debug)]
pub enum BloxEvent {
    /// A packet is at the switch.
    AtSwitch(u32),
    /// A packet is at a node.
    AtNode(u32),
    /// A link from the switch can take the next packet, and one waits for it.
    PortsIdle,
    /// A drive has done something for a server.
    Done(u32),
    /// A program wants to run.
    Wake(Who),
    /// Something breaks or comes back.
    Fault(u32),
    /// The next background frame for a server.
    Background(u32),
    /// Two drives begin to exchange what they hold.
    Swap(u32),
    /// The carrier of swaps of a server wants to run.
    Carrier(u32),
}

/// Whose program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A client's.
    Client(u32),
    /// The switch's.
    Switch,
    /// The control plane's.
    Control,
    /// The rivals' controller's.
    Controller,
    /// A storage server's, by its place among all.
    Server(u32),
}
