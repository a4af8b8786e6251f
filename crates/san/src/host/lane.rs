//! A session as its host keeps it.

use super::io::IoPlace;
use super::{HostConfig, HostSession};
use crate::id::{DriveId, SessionId};
use base::Time;
use nvme::queue::{HostQueue, QueueError, QueueShape};
use prefetch_index::prefetch_index;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::slice;
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
}

/// The lanes of all sessions. In one table, so that what a packet is about to need is told by its session alone, without a look at that.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Session by session, and of each by uplink.
    lanes: Vec<Lane>,
    uplinks: usize,
}

/// An uplink's association. From the start of a cache line on: it has two.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Lane {
    pub(super) queue: HostQueue<IoPlace>,
    pub(super) generation: u8,
    /// Passed over until then.
    pub(super) suspect_until: Time,
    /// The reset of the associations before this one, while it is not confirmed.
    pub(super) reset: Option<Box<Reset>>,
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
    pub(super) fn new(session: HostSession, config: &HostConfig) -> Self {
        let HostSession { id, drive, target } = session;
        Session { id, drive, target, credit: config.credit_initial, outstanding: 0, waiting: VecDeque::new() }
    }
}

impl Lanes {
    /// Of so many sessions, all of their first association.
    pub(super) fn new(sessions: usize, uplinks: usize, config: &HostConfig) -> Result<Self, QueueError> {
        // Without flow control of the submission queue, as hosts over TCP ask for: responses need no head of it.
        let shape = QueueShape::new(1, config.queue_entries.saturating_sub(1), false)?;
        let lane =
            || Lane { queue: HostQueue::new(shape), generation: 0, suspect_until: Time::ZERO, reset: None, resets: 0 };
        Ok(Lanes { lanes: (0..sessions * uplinks).map(|_| lane()).collect(), uplinks })
    }

    /// Those of a session.
    pub(super) fn of(&self, session: u32) -> &[Lane] {
        let first = session as usize * self.uplinks;
        &self.lanes[first..first + self.uplinks]
    }

    /// A lane, if there is one for such an uplink.
    pub(super) fn get(&self, session: u32, lane: u8) -> Option<&Lane> {
        self.lanes.get(self.place(session, usize::from(lane))?)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, session: u32, lane: u8) -> Option<&mut Lane> {
        let place = self.place(session, usize::from(lane))?;
        self.lanes.get_mut(place)
    }

    /// It will be asked for soon.
    #[inline]
    pub(super) fn foresee(&self, session: u32, lane: u8) {
        if let Some(lane) = self.get(session, lane) {
            prefetch_index(slice::from_ref(lane), 0);
            prefetch_index(slice::from_ref(&lane.queue), 0);
        }
    }

    /// Where it is in the table.
    pub(super) fn place(&self, session: u32, lane: usize) -> Option<usize> {
        (lane < self.uplinks).then(|| session as usize * self.uplinks + lane)
    }
}

/// By place of the session, and uplink.
impl Index<(u32, usize)> for Lanes {
    type Output = Lane;
    fn index(&self, (session, lane): (u32, usize)) -> &Lane {
        &self.of(session)[lane]
    }
}

impl IndexMut<(u32, usize)> for Lanes {
    fn index_mut(&mut self, (session, lane): (u32, usize)) -> &mut Lane {
        let first = session as usize * self.uplinks;
        &mut self.lanes[first..first + self.uplinks][lane]
    }
}
