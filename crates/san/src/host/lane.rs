//! The sessions and lanes of a host.

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
use transport::common::SmoothedRoundTrip;

/// The sessions of a host. A session takes memory at its first use: most of a large network's are
/// never used.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    plan: HostSessions,
    credit_initial: u32,
    /// By index of the configuration: the internal index plus 1, or 0 for an unused session.
    seats: Vec<u32>,
    used: Vec<Session>,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) drive: DriveId,
    pub(super) target: VertexId,
    /// Index in the configuration.
    pub(super) place: u32,
    /// Maximum number of outstanding I/Os.
    pub(super) credit: u32,
    /// Commands that are sent or backed off, over all lanes.
    pub(super) outstanding: u32,
    pub(super) waiting: VecDeque<IoPlace>,
    /// From sends to the ends of their I/Os.
    pub(super) round_trip: SmoothedRoundTrip,
}

/// The lanes of all used sessions. One table holds them, so that a lane is prefetched from the
/// session's index alone, without reading the session.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// By session, then by uplink.
    lanes: Vec<Lane>,
    uplinks: usize,
    shape: QueueShape,
}

/// The association of an uplink. Starts at a cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Lane {
    pub(super) queue: HostQueue<IoPlace>,
    pub(super) generation: u8,
    /// The lane is avoided until then.
    pub(super) suspect_until: Time,
    /// The unconfirmed reset of the associations before this one.
    pub(super) reset: Option<Box<Reset>>,
    /// Uses of the admin command, for its identifier.
    pub(super) resets: u16,
}

/// An unconfirmed reset.
#[derive(Clone, Debug)]
pub(super) struct Reset {
    /// The last association that it ends.
    pub(super) generation: u8,
    pub(super) command: u16,
    pub(super) send: u8,
    /// Writes that may be resent when it is confirmed.
    pub(super) held: Vec<IoPlace>,
}

impl Sessions {
    /// Creates the table of a host's sessions, none of them used.
    pub(super) fn new(config: &HostConfig) -> Sessions {
        let seats = vec![0; config.sessions.len()];
        Sessions { plan: config.sessions.clone(), credit_initial: config.credit_initial, seats, used: Vec::new() }
    }

    /// Returns the internal index of the session at `place` of the configuration, and whether this
    /// is its first use.
    pub(super) fn meet(&mut self, place: u32) -> (u32, bool) {
        let seat = &mut self.seats[place as usize];
        if *seat > 0 {
            return (*seat - 1, false);
        }
        let HostSession { id, drive, target } = self.plan.get(place);
        let credit = self.credit_initial;
        let (waiting, round_trip) = (VecDeque::new(), SmoothedRoundTrip::default());
        self.used.push(Session { id, drive, target, place, credit, outstanding: 0, waiting, round_trip });
        *seat = self.used.len() as u32;
        (*seat - 1, true)
    }

    /// Returns the session with a drive, if it was ever used.
    #[inline]
    pub(super) fn with(&self, drive: DriveId) -> Option<u32> {
        self.at(self.plan.place_of(drive)?)
    }

    /// Returns the session at `place` of the configuration, if it was ever used.
    #[inline]
    pub(super) fn at(&self, place: u32) -> Option<u32> {
        self.seats.get(place as usize)?.checked_sub(1)
    }

    /// Returns the I/Os that wait in all sessions, and those that credit lets them send.
    pub(super) fn waiting_and_credit(&self) -> (usize, u64) {
        let left = |session: &Session| u64::from(session.credit.saturating_sub(session.outstanding));
        let waiting = self.used.iter().map(|session| session.waiting.len()).sum();
        (waiting, self.used.iter().map(left).sum())
    }

    /// Returns the used sessions, in the order of the configuration.
    pub(super) fn in_order(&self) -> Vec<u32> {
        self.seats.iter().filter_map(|seat| seat.checked_sub(1)).collect()
    }

    /// Prefetches a session.
    #[inline]
    pub(super) fn prefetch(&self, session: u32) {
        prefetch_index(&self.used, session as usize);
    }
}

/// By internal index.
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
    /// Creates an empty table.
    pub(super) fn new(uplinks: usize, config: &HostConfig) -> Result<Self, QueueError> {
        // Without submission queue flow control, as hosts over TCP request: responses need no queue
        // head.
        let shape = QueueShape::new(1, config.queue_entries.saturating_sub(1), false)?;
        Ok(Lanes { lanes: Vec::new(), uplinks, shape })
    }

    /// Adds the lanes of a new session, all with their first association.
    pub(super) fn add(&mut self) {
        let shape = self.shape;
        let lane =
            || Lane { queue: HostQueue::new(shape), generation: 0, suspect_until: Time::ZERO, reset: None, resets: 0 };
        self.lanes.extend((0..self.uplinks).map(|_| lane()));
    }

    /// Returns the lanes of a session.
    pub(super) fn of(&self, session: u32) -> &[Lane] {
        let first = session as usize * self.uplinks;
        &self.lanes[first..first + self.uplinks]
    }

    /// Returns a lane, or `None` if the host has no such uplink.
    pub(super) fn get(&self, session: u32, lane: u8) -> Option<&Lane> {
        self.lanes.get(self.place(session, usize::from(lane))?)
    }

    /// Returns a mutable lane, or `None` if the host has no such uplink.
    pub(super) fn get_mut(&mut self, session: u32, lane: u8) -> Option<&mut Lane> {
        let place = self.place(session, usize::from(lane))?;
        self.lanes.get_mut(place)
    }

    /// Prefetches a lane.
    #[inline]
    pub(super) fn prefetch(&self, session: u32, lane: u8) {
        if let Some(lane) = self.get(session, lane) {
            prefetch_index(slice::from_ref(lane), 0);
            prefetch_index(slice::from_ref(&lane.queue), 0);
        }
    }

    /// Returns the index of a lane in the table.
    pub(super) fn place(&self, session: u32, lane: usize) -> Option<usize> {
        (lane < self.uplinks).then(|| session as usize * self.uplinks + lane)
    }
}

/// By internal index of the session, and uplink.
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
