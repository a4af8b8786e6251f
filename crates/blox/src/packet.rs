//! What travels between clients, the switch, storage servers and controllers.

mod codec;

pub use codec::{CodecError, PAGE_BYTES, RACKBLOX_PORT, decode, decode_datagram, encode, encode_datagram};

use crate::id::{Origin, Page, Tag, Value, VssdId, WriteId};
use base::{NodeId, Span};
use std::num::NonZero;

/// One packet. Its header is the paper's (3.3, Figure 6): operation, vSSD and the network time so
/// far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The vSSD that it is about; of no meaning in heartbeats and controller messages.
    pub vssd: VssdId,
    /// LAT: nanoseconds that this packet has spent in networks so far, as stamped in transit;
    /// saturates.
    pub latency_ns: u32,
    /// The sender.
    pub source: NodeId,
    /// The destination; the switch may change it.
    pub target: NodeId,
    /// The content.
    pub body: Body,
}

/// What a packet says. The first five are Table 1 of the paper, the others are what it leaves to
/// the implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// `create_vssd`: a server registers a new vSSD.
    Create {
        /// The server that hosts it.
        server: NodeId,
        /// Its replica in this rack.
        replica: VssdId,
        /// The server that hosts the replica.
        replica_server: NodeId,
    },
    /// `del_vssd`.
    Delete,
    /// `write`: a client's write of one page.
    Write {
        /// The client's number for it.
        tag: Tag,
        /// The page.
        page: Page,
        /// The value to write.
        value: Value,
        /// What a client that may send it again says besides.
        session: Option<Session>,
    },
    /// `read`: a client's read of one page.
    Read {
        /// The client's number for it.
        tag: Tag,
        /// The page.
        page: Page,
    },
    /// `gc_op`.
    Collection(CollectionNote),
    /// The answer to a read.
    ReadReply {
        /// The client's number.
        tag: Tag,
        /// What was read, if it was served.
        value: Result<Value, Refusal>,
    },
    /// The answer to a write.
    WriteReply {
        /// The client's number.
        tag: Tag,
        /// Whether it was done.
        done: Result<(), Refusal>,
    },
    /// A message between replicas.
    Replica(ReplicaMessage),
    /// A server says that it lives.
    Heartbeat {
        /// The server's starts in the upper 32 bits, its beats since the last one in the lower
        /// (`Lease::beat`): it only rises, and a restart shows.
        beat: u64,
    },
    /// A message of the control plane to a server.
    Control(ControlMessage),
    /// Traffic that is not RackBlox's and only takes room on links (4.5.2: the higher-priority
    /// traffic of the priority arm). It carries no RackBlox header: vSSD and latency are 0, and
    /// nobody stamps it.
    Background {
        /// UDP payload; at most what a jumbo frame holds (8,972 B).
        bytes: u32,
        /// Class selector, 0 to 7, 7 the most urgent (RFC 2474, 4.2.2.2).
        priority: u8,
    },
}

impl Body {
    /// What stands for the page of data that it carries, if it carries one.
    pub fn value(&self) -> Option<Value> {
        match self {
            Body::Write { value, .. }
            | Body::ReadReply { value: Ok(value), .. }
            | Body::Replica(ReplicaMessage::Invalidate { value, .. } | ReplicaMessage::Fetched { value, .. }) => {
                Some(*value)
            }
            _ => None,
        }
    }
}

/// What a client says in each copy of a write that it may send again
/// ([`ClientConfig::resend`](crate::ClientConfig::resend)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Which of the client's lives.
    pub life: NonZero<u32>,
    /// The oldest write of the volume that it has open; not after this one.
    pub oldest: Tag,
    /// The epoch of the volume that it knew when it sent the first copy; 0 for none.
    pub epoch: u32,
    /// Whether there was an earlier copy.
    pub again: bool,
}

impl Session {
    /// The write of a packet from `client` with that tag.
    pub fn origin(&self, client: NodeId, tag: Tag) -> Origin {
        Origin { id: WriteId { client, life: self.life, tag }, oldest: self.oldest }
    }
}

/// The `gc` byte of a `gc_op` packet (3.5.1), with the wire value of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CollectionNote {
    /// Would like to collect; may be delayed.
    Soft = 0,
    /// Must collect; is never denied.
    Regular = 1,
    /// Collects in idle time, without a request.
    Background = 2,
    /// The switch's yes.
    Accept = 3,
    /// The switch's not now.
    Delay = 4,
    /// Has finished.
    Finish = 5,
}

/// Reason why a server does not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// It has no such vSSD.
    UnknownVssd = 1,
    /// The page lies beyond the vSSD.
    OutOfRange = 2,
    /// The replica is being rebuilt, and its data may be old.
    Stale = 3,
    /// The vSSD can no longer hold its data.
    WornOut = 4,
    /// It remembers so many writes of a client that has older ones open that it takes no new one.
    Full = 5,
    /// No replica has a sound copy of the page.
    Lost = 6,
}

/// The order of writes of one page (Hermes): version first, node second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// How many writes came before.
    pub version: u32,
    /// The replica that coordinated it.
    pub node: NodeId,
}

/// A message between the replicas of a vSSD (Hermes). `epoch` is that of the sender's membership;
/// one of another epoch is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaMessage {
    /// INV: a new value; the page is invalid until it is validated.
    Invalidate {
        /// The page.
        page: Page,
        /// The write's place in the order.
        timestamp: Timestamp,
        /// The written value.
        value: Value,
        /// The sender's epoch.
        epoch: u32,
        /// Whose write it is, if it may be sent again.
        origin: Option<Origin>,
    },
    /// ACK of an INV.
    Acknowledge {
        /// The page.
        page: Page,
        /// The INV's timestamp.
        timestamp: Timestamp,
        /// The sender's epoch.
        epoch: u32,
    },
    /// VAL: every live replica has the value.
    Validate {
        /// The page.
        page: Page,
        /// The write's timestamp.
        timestamp: Timestamp,
        /// The sender's epoch.
        epoch: u32,
    },
    /// A replica under rebuild requests one page, or one whose own copy is rotten.
    Fetch {
        /// The page.
        page: Page,
        /// The last write of the page that it has heard of by [`ReplicaMessage::Remembered`].
        after: Option<WriteId>,
        /// The sender's epoch.
        epoch: u32,
    },
    /// The page as it is at a live replica.
    Fetched {
        /// The page.
        page: Page,
        /// Of its last write; version 0 when it was never written.
        timestamp: Timestamp,
        /// Its value; [`Value::ROTTEN`] where the sender has no sound copy.
        value: Value,
        /// The sender's epoch.
        epoch: u32,
    },
    /// The answer to a request for a page of which the sender remembers more writes: the first
    /// after the one that was named.
    Remembered {
        /// The page.
        page: Page,
        /// A write that is done.
        origin: Origin,
        /// How long its client has been silent.
        silence: Span,
        /// The sender's epoch.
        epoch: u32,
    },
    /// A replica asks whether its peers know a write that was sent again, or says that it does.
    Recall {
        /// The page.
        page: Page,
        /// The write.
        origin: Origin,
        /// Whether it is done, and no replica may do it once more.
        known: bool,
        /// Comes back with the answer.
        round: u32,
        /// The sender's epoch.
        epoch: u32,
    },
    /// The answer.
    Recalled {
        /// The page.
        page: Page,
        /// The write.
        id: WriteId,
        /// Whether it is done. If not, the sender does not know it and will not do it by itself.
        known: bool,
        /// Of the question.
        round: u32,
        /// The sender's epoch.
        epoch: u32,
    },
}

/// The most replicas of a vSSD: two in the rack, one elsewhere, and one that is being rebuilt
/// (3.5.1: any number; four keeps packets plain).
pub const REPLICAS_MAX: usize = 4;

/// An order of the control plane to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// The live replicas of the packet's vSSD from now on.
    Members {
        /// Counts up with every change.
        epoch: u32,
        /// `(server, vSSD there)`, in the order of their rank; unused places are `None`.
        replicas: [Option<(NodeId, VssdId)>; REPLICAS_MAX],
        /// The replica that must be brought up to date from the others before it serves, if there
        /// is one.
        stale: Option<(NodeId, VssdId)>,
    },
    /// A rebuilt replica reports to the control plane that it is up to date.
    UpToDate {
        /// The epoch of the order that it followed.
        epoch: u32,
    },
    /// A server's request for collection to the software controller, or its report that it has
    /// finished ([`CollectionNote`] as in `gc_op`).
    Ask(CollectionNote),
    /// The software controller's answer, with the replica that is free to serve reads meanwhile.
    Answer {
        /// [`CollectionNote::Accept`] or [`CollectionNote::Delay`].
        note: CollectionNote,
        /// Where reads may be sent.
        free: Option<(NodeId, VssdId)>,
    },
    /// A client reports the demand of a flow (its requests to the packet's vSSD) since its last
    /// report.
    Demand {
        /// Requests.
        requests: u32,
        /// How many of them were writes.
        writes: u32,
    },
    /// The controller's allocation for a flow until the next one.
    Rate {
        /// Cost units a second (a read costs one; a write what the controller says in its
        /// configuration), 0 for no limit.
        per_second: u32,
    },
    /// A heartbeat comes back to its server, with a longer lease than the configured one.
    Lease {
        /// The heartbeat's number.
        beat: u64,
        /// The lease, from when it was sent.
        span: Span,
    },
}
