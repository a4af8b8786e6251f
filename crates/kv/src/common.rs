//! What the loops of a store have in common: connections that one gives to another, their number
//! and memory, what is counted, and the slow log.

use crate::config::Config;
use crate::metrics::Counts;
use crate::slowlog::SlowLog;
use crate::transport::FlashCounts;
use mio::Waker;
use mio::net::TcpStream;
use runtime::lock::lock;
use runtime::records::Recorder;
use scalio::ClientCounters;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What one loop is given by another.
pub enum Handed {
    /// A connection that the first one has accepted.
    Client(TcpStream, SocketAddr),
    /// The configuration as it was read anew.
    Config(Box<Config>),
    /// A client was refused, and this one's eldest stranger may make room for the next.
    Full,
}

/// What a loop has counted.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Of the loop.
    pub counts: Counts,
    /// Of the client of its JBOF.
    pub client: ClientCounters,
    /// Whether it reaches the JBOF.
    pub is_there: bool,
    /// Reads of flash by a target.
    pub flash: FlashCounts,
}

/// What others see of a loop.
struct Share {
    connections: AtomicUsize,
    held: AtomicUsize,
    part: Mutex<Part>,
    handed: Mutex<Vec<Handed>>,
    waker: Arc<Waker>,
}

/// What all loops share.
pub struct Common {
    shares: Box<[Share]>,
    connections: AtomicU64,
    /// The slow commands of all.
    pub slow: Mutex<SlowLog>,
    /// The records of all.
    pub recorder: Option<Recorder>,
}

impl Common {
    /// Of loops that these wake.
    pub fn new(wakers: &[Arc<Waker>], recorder: Option<Recorder>) -> Common {
        let (counts, client) = (Counts::default(), ClientCounters::default());
        let part = Part { counts, client, is_there: true, flash: FlashCounts::default() };
        let share = |waker: &Arc<Waker>| Share {
            connections: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            part: Mutex::new(part),
            handed: Mutex::default(),
            waker: waker.clone(),
        };
        let shares = wakers.iter().map(share).collect();
        Common { shares, connections: AtomicU64::new(0), slow: Mutex::default(), recorder }
    }

    /// The number of a new connection: which of all that there were.
    pub fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Connections of all loops.
    pub fn connections(&self) -> usize {
        self.shares.iter().map(|share| share.connections.load(Ordering::Relaxed)).sum()
    }

    /// The loop with the fewest connections. It gets one more.
    pub fn place(&self) -> usize {
        let count = |share: &Share| share.connections.load(Ordering::Relaxed);
        let place = (0..self.shares.len()).min_by_key(|at| count(&self.shares[*at])).unwrap_or(0);
        self.shares[place].connections.fetch_add(1, Ordering::Relaxed);
        place
    }

    /// A loop has lost a connection.
    pub fn left(&self, number: usize) {
        self.shares[number].connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Bytes that connections of all loops hold.
    pub fn held(&self) -> usize {
        self.shares.iter().map(|share| share.held.load(Ordering::Relaxed)).sum()
    }

    /// Those of a loop are so many now.
    pub fn holds(&self, number: usize, held: usize) {
        self.shares[number].held.store(held, Ordering::Relaxed);
    }

    /// The loop whose connections hold the most.
    pub fn heaviest(&self) -> usize {
        let held = |at: &usize| self.shares[*at].held.load(Ordering::Relaxed);
        (0..self.shares.len()).max_by_key(held).unwrap_or(0)
    }

    /// Gives something to a loop.
    pub fn hand(&self, number: usize, handed: Handed) {
        lock(&self.shares[number].handed).push(handed);
        self.wake(number);
    }

    /// Has a loop take a turn.
    pub fn wake(&self, number: usize) {
        // It fails only when the loop is gone.
        let _ = self.shares[number].waker.wake();
    }

    /// What a loop was given.
    pub fn handed(&self, number: usize) -> Vec<Handed> {
        std::mem::take(&mut lock(&self.shares[number].handed))
    }

    /// Whether there is more than one loop.
    pub fn is_shared(&self) -> bool {
        self.shares.len() > 1
    }

    /// All loops but one.
    pub fn others(&self, number: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.shares.len()).filter(move |at| *at != number)
    }

    /// Tells others what a loop has counted so far.
    pub fn publish(&self, number: usize, part: Part) {
        *lock(&self.shares[number].part) = part;
    }

    /// What all have counted; `own` is that of the loop `number`.
    pub fn sum(&self, number: usize, own: Part) -> Part {
        self.others(number).fold(own, |sum, other| {
            let part = *lock(&self.shares[other].part);
            Part {
                counts: sum.counts + part.counts,
                client: sum.client + part.client,
                is_there: sum.is_there && part.is_there,
                flash: sum.flash + part.flash,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Poll, Token};

    #[test]
    fn loops_get_connections_in_turn_and_are_counted_together() {
        let poll = Poll::new().expect("there are events");
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).expect("there are events"));
        let common = Common::new(&[waker.clone(), waker.clone(), waker], None);
        let places: Vec<usize> = (0..6).map(|_| common.place()).collect();
        assert_eq!((places, common.connections()), (vec![0, 1, 2, 0, 1, 2], 6));
        common.left(1);
        assert_eq!((common.connections(), common.place()), (5, 1));
        common.holds(0, 5);
        common.holds(2, 7);
        assert_eq!((common.held(), common.heaviest()), (12, 2));
        let part = |commands, hits, is_there| Part {
            counts: Counts { commands, ..Counts::default() },
            client: ClientCounters { hits, ..ClientCounters::default() },
            is_there,
            flash: FlashCounts { reads: commands, ..FlashCounts::default() },
        };
        common.publish(0, part(1, 10, true));
        common.publish(1, part(2, 20, true));
        // What the asking loop has published is behind what it knows.
        let sum = common.sum(0, part(4, 40, true));
        assert_eq!((sum.counts.commands, sum.client.hits, sum.is_there, sum.flash.reads), (6, 60, true, 6));
        common.publish(2, part(0, 0, false));
        assert!(!common.sum(0, part(4, 40, true)).is_there);
    }
}
