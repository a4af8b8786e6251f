//! A session as its host keeps it.

use super::io::IoPlace;
use super::{HostConfig, HostSession};
use crate::id::{DriveId, SessionId};
use base::Time;
use nvme::queue::{HostQueue, QueueError, QueueShape};
use std::collections::VecDeque;
use topology::VertexId;

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) drive: DriveId,
    pub(super) target: VertexId,
    /// I/Os that may be outstanding.
    pub(super) credit: u32,
    /// Commands that are out or backed off, over all lanes.
    pub(super) outstanding: u32,
    pub(super) waiting: VecDeque<IoPlace>,
    /// By uplink.
    pub(super) lanes: Vec<Lane>,
}

/// An uplink's association.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) queue: HostQueue<IoPlace>,
    pub(super) generation: u8,
    /// Passed over until then.
    pub(super) suspect_until: Time,
    /// The reset of the associations before this one, while it is not confirmed.
    pub(super) reset: Option<Reset>,
    /// Uses of the admin command, for its identifier.
    pub(super) resets: u16,
}

/// A reset that is not confirmed.
#[derive(Clone, Debug)]
pub(super) struct Reset {
    /// The last association that is to end.
    pub(super) generation: u8,
    pub(super) command: u16,
    pub(super) send: u8,
    /// Writes that may be sent when it is confirmed.
    pub(super) held: Vec<IoPlace>,
}

impl Session {
    pub(super) fn new(session: HostSession, config: &HostConfig, ports: usize) -> Result<Self, QueueError> {
        let HostSession { id, drive, target } = session;
        // Without flow control of the submission queue, as hosts over TCP ask for: responses need no head of it.
        let shape = QueueShape::new(1, config.queue_entries.saturating_sub(1), false)?;
        let lane =
            || Lane { queue: HostQueue::new(shape), generation: 0, suspect_until: Time::ZERO, reset: None, resets: 0 };
        let lanes = (0..ports).map(|_| lane()).collect();
        Ok(Session {
            id,
            drive,
            target,
            credit: config.credit_initial,
            outstanding: 0,
            waiting: VecDeque::new(),
            lanes,
        })
    }
}
