//! Hermes (Katsarakis et al., ASPLOS'20): the replicas of a vSSD agree on each page, and each of
//! them may serve reads.
//!
//! A [`Replica`] decides; its host moves packets, the DRAM copy and the flash. Obligations of the
//! host:
//!
//! 1. A client's read: call [`read`](Replica::read) on arrival *and again when the device has
//!    answered*. Only `Serve` of the second call releases the value that was read (a write may have
//!    happened in between, and its value may have been flushed). `Wait` of either call means that
//!    [`ReplicaOut::ReadReady`] will bring the value; discard the one that was read.
//! 2. Before both calls, and before every answer, the server's [`Lease`](crate::Lease) must hold; a
//!    server without one is silent.
//! 3. Pass in a client's write, an [`Invalidate`](ReplicaMessage::Invalidate) or a
//!    [`Fetched`](ReplicaMessage::Fetched) only when the write cache has room for the page: outputs
//!    are in order, and an acknowledgement after an [`Apply`](ReplicaOut::Apply) guarantees that
//!    the copy exists.
//! 4. Pass a `Members` order of the control plane to [`members`](Replica::members); the answer to
//!    the control plane is [`ReplicaOut::UpToDate`].
//! 5. Answer [`Load`](ReplicaOut::Load) by [`loaded`](Replica::loaded), or by
//!    [`load_rotten`](Replica::load_rotten) where the device has no sound copy. Pass a read that
//!    meets such a page to [`rotten`](Replica::rotten), and what a scrub finds.
//! 6. Where clients may send writes again: [`judge`](Replica::judge) each before it is passed in,
//!    and [`recall`](Replica::recall) it if its verdict is `Doubtful`. While the host has a write
//!    that it has not passed in, and that is not being recalled, it hands on no
//!    [`Recall`](ReplicaMessage::Recall) of it.

mod flight;
mod rebuild;
mod recall;
mod repair;
mod replica;
mod table;
mod writes;

pub use recall::Verdict;
pub use replica::Replica;

use crate::id::{Page, Value, VssdId};
use crate::packet::{REPLICAS_MAX, Refusal, ReplicaMessage, Timestamp};
use base::{NodeId, Span};

/// The host's own number for a client's request, handed back with the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// Configuration of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// The server and the vSSD that this replica is.
    pub own: (NodeId, VssdId),
    /// Pages of the vSSD; messages about others are ignored and counted.
    pub pages: u64,
    /// After so long without an acknowledgement an INV, and without an answer a fetch, is sent
    /// again; then after twice as long, up to 16 times for an INV and 64 times for a fetch.
    pub retransmit: Span,
    /// A page that has been invalid for so long is replayed (Hermes: the message-loss timeout).
    pub replay: Span,
    /// Pages that a rebuild requests at a time.
    pub fetch_window: usize,
    /// How long the writes of a silent client are known. `None`: no client sends a write again.
    pub remember: Option<Span>,
}

/// Content of a replica's flash at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The same as at every other replica of the group (the start of a run).
    Original,
    /// Nothing that may be trusted: a new place for a lost replica, or a server that has restarted
    /// and has lost its DRAM.
    Lost,
}

/// The answer to a client's read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The page is valid.
    Serve,
    /// The page is being written; [`ReplicaOut::ReadReady`] will follow.
    Wait,
    /// Not here.
    Refuse(Refusal),
}

/// The answer to a client's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It is taken; [`ReplicaOut::WriteDone`] or [`ReplicaOut::Abandoned`] will follow (in `out`
    /// already where there is no peer).
    Taken,
    /// Not here.
    Refuse(Refusal),
}

/// An order of the control plane ([`ControlMessage::Members`](crate::ControlMessage::Members)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Counts up with every change.
    pub epoch: u32,
    /// The members, the stale one included: it takes part in writes and serves nobody.
    pub replicas: [Option<(NodeId, VssdId)>; REPLICAS_MAX],
    /// The stale member.
    pub stale: Option<(NodeId, VssdId)>,
}

/// What a replica wants done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaOut {
    /// Send to a peer.
    Send {
        /// Its server.
        to: NodeId,
        /// Its vSSD there.
        vssd: VssdId,
        /// The message.
        message: ReplicaMessage,
    },
    /// Put the value into the local DRAM copy, to be flushed. `Value(0)` (only of a rebuild): the
    /// page is as never written. [`Value::ROTTEN`] (so too): nobody has its data.
    Apply {
        /// The page.
        page: Page,
        /// The value.
        value: Value,
        /// Of the write.
        timestamp: Timestamp,
    },
    /// A client's write is at every live replica.
    WriteDone {
        /// The owner.
        ticket: Ticket,
    },
    /// A delayed read: answer it with this value, without cache or flash (the next write may have
    /// begun).
    ReadReady {
        /// The reader.
        ticket: Ticket,
        /// What it reads.
        value: Value,
    },
    /// Read the page from the cache or the flash and call [`Replica::loaded`].
    Load {
        /// The page.
        page: Page,
    },
    /// The replica left its group. A request that was not `started` may be refused; a write that
    /// was may yet take effect, so it must not be answered.
    Abandoned {
        /// The ticket.
        ticket: Ticket,
        /// Whether peers may have heard of it.
        started: bool,
    },
    /// A write that was [recalled](Replica::recall) is done (`is_done`), or no replica knows it:
    /// then it has to be passed in as a new one.
    Recalled {
        /// The owner.
        ticket: Ticket,
        /// Whether it is done.
        is_done: bool,
    },
    /// A delayed read: no replica has a sound copy of its page.
    Lost {
        /// The reader.
        ticket: Ticket,
    },
    /// Report to the control plane ([`ControlMessage::UpToDate`](crate::ControlMessage::UpToDate)):
    /// this epoch is adopted, all open writes are settled, and a stale replica has every page.
    UpToDate {
        /// The epoch.
        epoch: u32,
    },
}

/// What a replica does for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Serves.
    Serving,
    /// Takes part in writes and fetches what it has missed.
    Rebuilding,
    /// Has every page, and waits for the epoch in which it serves.
    Rebuilt,
    /// Is no member of its group, or does not know yet.
    Out,
}
