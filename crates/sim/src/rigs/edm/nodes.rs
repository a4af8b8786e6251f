//! The nodes of a rack.

use super::memories::Fetches;
use crate::rigs::seat::Alarm;
use base::Time;
use edm::Host;
use edm::mirror::Mirror;
use hardware::Dram;

/// One node.
pub struct Node {
    pub host: Host,
    pub memory: Dram,
    /// Reads of it for its own writes.
    pub fetches: Fetches,
    /// Present when there are two planes.
    pub mirror: Option<Mirror>,
}

/// What is looked at each time that anything happens at a node: apart from the [`Node`], so that
/// those of a rack stay in the cache.
#[derive(Clone, Copy)]
pub struct Pace {
    /// When the uplinks are free: those of all living planes are busy alike. Shared links have
    /// their own books.
    pub uplink_free_at: Time,
    pub transmit: Alarm,
    pub timer: Alarm,
    pub up: bool,
}

pub const IDLE: Pace = Pace { uplink_free_at: Time::ZERO, transmit: Alarm::OFF, timer: Alarm::OFF, up: true };
