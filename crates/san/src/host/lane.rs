//! A session as its host keeps it.

use super::io::IoPlace;
use super::{HostConfig, HostSession, HostSessions};
use crate::id::{DriveId, SessionId};
use base::Time;
use nvme::queue::{HostQueue, QueueError, QueueShape};
use prefetch_index::prefetch_index;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::slice;
use topology::VertexId;

/// The sessions of a host. One takes memory when it is first used: of a large network most never
/// are.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    plan: HostSessions,
    credit_initial: u32,
    /// By place: where the session lies among those that were used, counted from 1; 0 while it was
    /// not.
    seats: Vec<u32>,
    used: Vec<Session>,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) drive: DriveId,
    pub(super) target: VertexId,
    /// Place in the configuration.
    pub(super) place: u32,
    /// I/Os that may be outstanding.
    pub(super) credit: u32,
    /// Commands that are out or backed off, over all lanes.
    pub(super) outstanding: u32,
    pub(super) waiting: VecDeque<IoPlace>,
}

/// The lanes of all sessions that were used. In one table, so that what a packet is about to need
/// is told by its session alone, without a look at that.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Session by session, and of each by uplink.
    lanes: Vec<Lane>,
    uplinks: usize,
    shape: QueueShape,
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

impl Sessions {
    /// Those that a host may have.
    pub(super) fn new(config: &HostConfig) -> Sessions {
        let seats = vec![0; config.sessions.len()];
        Sessions { plan: config.sessions.clone(), credit_initial: config.credit_initial, seats, used: Vec::new() }
    }

    /// The session at a place, which is used from now on, and whether it is so for the first time.
    pub(super) fn meet(&mut self, place: u32) -> (u32, bool) {
        let seat = &mut self.seats[place as usize];
        if *seat > 0 {
            return (*seat - 1, false);
        }
        let HostSession { id, drive, target } = self.plan.get(place);
        let credit = self.credit_initial;
        self.used.push(Session { id, drive, target, place, credit, outstanding: 0, waiting: VecDeque::new() });
        *seat = self.used.len() as u32;
        (*seat - 1, true)
    }

    /// The session with a drive, if it was ever used.
    #[inline]
    pub(super) fn with(&self, drive: DriveId) -> Option<u32> {
        self.at(self.plan.place_of(drive)?)
    }

    /// The session at a place, if it was ever used.
    #[inline]
    pub(super) fn at(&self, place: u32) -> Option<u32> {
        self.seats.get(place as usize)?.checked_sub(1)
    }

    /// Those that were used, in the order of their places.
    pub(super) fn in_order(&self) -> Vec<u32> {
        self.seats.iter().filter_map(|seat| seat.checked_sub(1)).collect()
    }

    /// Something of a session will be asked for soon.
    #[inline]
    pub(super) fn foresee(&self, session: u32) {
        prefetch_index(&self.used, session as usize);
    }
}

/// By number among those that were used.
impl Index<u32> for Sessions {
    type Output = Session;
    fn index(&self, session: u32) -> &Session {
        &self.used[session as usize]
    }
}

impl IndexMut<u32> for Sessions {
    fn index_mut(&mut self, session: u32) -> &mut Session {
        &mut self.used[session as usize]
    }
}

impl Lanes {
    /// Of no session yet.
    pub(super) fn new(uplinks: usize, config: &HostConfig) -> Result<Self, QueueError> {
        // Without flow control of the submission queue, as hosts over TCP ask for: responses need
        // no head of it.
        let shape = QueueShape::new(1, config.queue_entries.saturating_sub(1), false)?;
        Ok(Lanes { lanes: Vec::new(), uplinks, shape })
    }

    /// Those of a further session, all of their first association.
    pub(super) fn add(&mut self) {
        let shape = self.shape;
        let lane =
            || Lane { queue: HostQueue::new(shape), generation: 0, suspect_until: Time::ZERO, reset: None, resets: 0 };
        self.lanes.extend((0..self.uplinks).map(|_| lane()));
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
