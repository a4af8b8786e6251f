//! One register's values and their zones.

use crate::operation::{Action, Operation, RegisterId, Violation, Why};
use base::Time;

/// An instant, in picoseconds plus one: zero is before everything, where the initial value was
/// written.
type Instant = u64;
const BEFORE_ALL: Instant = 0;
const NEVER: Instant = Instant::MAX;

/// An operation of a cluster: the value and the register are the cluster's.
#[derive(Clone, Copy)]
struct Interval {
    id: u64,
    invoked: Instant,
    responded: Instant,
}

/// A value, its write and those of its reads that bound the zone.
struct Cluster {
    value: u64,
    /// `None` until the write is recorded: a read may be answered first.
    write: Option<Interval>,
    /// The read with the first response and the read with the last invocation.
    reads: Option<(Interval, Interval)>,
}

impl Cluster {
    fn new(value: u64) -> Cluster {
        Cluster { value, write: None, reads: None }
    }
    fn add_read(&mut self, read: Interval) {
        let (first, last) = self.reads.get_or_insert((read, read));
        if read.responded < first.responded {
            *first = read;
        }
        if read.invoked > last.invoked {
            *last = read;
        }
    }
    /// The operation with the first response.
    fn first(&self) -> (Action, Interval) {
        let read = self.reads.map(|(first, _)| (Action::Read, first));
        let write = self.write.map(|write| (Action::Write, write));
        [write, read]
            .into_iter()
            .flatten()
            .min_by_key(|(_, interval)| interval.responded)
            .expect("a cluster has an operation")
    }
    /// The operation with the last invocation.
    fn last(&self) -> (Action, Interval) {
        let read = self.reads.map(|(_, last)| (Action::Read, last));
        let write = self.write.map(|write| (Action::Write, write));
        [write, read]
            .into_iter()
            .flatten()
            .max_by_key(|(_, interval)| interval.invoked)
            .expect("a cluster has an operation")
    }
    fn zone(&self) -> Zone {
        Zone { first: self.first().1.responded, last: self.last().1.invoked }
    }
}

#[derive(Clone, Copy)]
struct Zone {
    /// First response.
    first: Instant,
    /// Last invocation.
    last: Instant,
}

impl Zone {
    fn is_forward(self) -> bool {
        self.first < self.last
    }
}

pub struct Register {
    /// By value. Values of a run mostly grow, so a new one is appended.
    clusters: Vec<Cluster>,
}

impl Register {
    pub fn new(initial: u64) -> Register {
        let write = Interval { id: 0, invoked: BEFORE_ALL, responded: BEFORE_ALL };
        Register { clusters: vec![Cluster { write: Some(write), ..Cluster::new(initial) }] }
    }
    pub fn values(&self) -> usize {
        self.clusters.len()
    }
    pub fn record(&mut self, operation: &Operation) -> Result<(), Violation> {
        let place = self.clusters.binary_search_by_key(&operation.value, |cluster| cluster.value);
        let place = place.unwrap_or_else(|place| {
            self.clusters.insert(place, Cluster::new(operation.value));
            place
        });
        let cluster = &mut self.clusters[place];
        let interval = interval(operation);
        if operation.action == Action::Read {
            cluster.add_read(interval);
            return Ok(());
        }
        match cluster.write.replace(interval) {
            None => Ok(()),
            Some(other) => {
                let other = explain(operation.register, operation.value, (Action::Write, other));
                Err(Violation {
                    register: operation.register,
                    why: Why::WrittenTwice,
                    operations: vec![other, *operation],
                })
            }
        }
    }
    pub fn check(&self, id: RegisterId) -> Result<(), Violation> {
        self.check_writes(id, NEVER)?;
        self.check_zones(id)
    }
    /// Judges what there is and drops superseded values.
    pub fn settle(&mut self, id: RegisterId, before: Time) -> Result<(), Violation> {
        let before = instant(before);
        self.check_writes(id, before)?;
        self.check_zones(id)?;
        self.forget(before);
        Ok(())
    }
    /// Every value that was read before `before` has a write, and none was read before its write.
    fn check_writes(&self, id: RegisterId, before: Instant) -> Result<(), Violation> {
        for cluster in &self.clusters {
            let Some((read, _)) = cluster.reads else { continue };
            let shown = explain(id, cluster.value, (Action::Read, read));
            match cluster.write {
                None if read.responded < before => {
                    return Err(Violation { register: id, why: Why::NeverWritten, operations: vec![shown] });
                }
                Some(write) if read.responded < write.invoked => {
                    let write = explain(id, cluster.value, (Action::Write, write));
                    return Err(Violation { register: id, why: Why::FutureRead, operations: vec![shown, write] });
                }
                _ => {}
            }
        }
        Ok(())
    }
    fn check_zones(&self, id: RegisterId) -> Result<(), Violation> {
        if self.clusters.len() < 2 {
            return Ok(());
        }
        let zones = self.clusters.iter().map(|cluster| (cluster.zone(), cluster));
        let (mut forward, backward): (Vec<_>, Vec<_>) = zones.partition(|(zone, _)| zone.is_forward());
        forward.sort_by_key(|(zone, _)| zone.first);
        for pair in forward.windows(2) {
            let [(earlier, one), (later, other)] = [pair[0], pair[1]];
            if later.first < earlier.last {
                return Err(conflict(id, Why::Interleaved, one, other));
            }
        }
        // The forward zones are apart: only the last that begins before a backward one can reach
        // beyond it.
        for (zone, cluster) in backward {
            let begun = forward.partition_point(|(other, _)| other.first < zone.last);
            let around = begun.checked_sub(1).map(|place| forward[place]);
            if let Some((_, around)) = around.filter(|(other, _)| zone.first < other.last) {
                return Err(conflict(id, Why::Stale, around, cluster));
            }
        }
        Ok(())
    }
    /// Drops values that were replaced and whose zone is past. Later operations have both ends
    /// after `before`, so they cannot conflict with such a zone. The exception is a read of the
    /// value itself, or of one that was replaced even earlier. Those values are gone too, so such a
    /// read has no write.
    fn forget(&mut self, before: Instant) {
        let mut latest = [(BEFORE_ALL, None); 2];
        for cluster in &self.clusters {
            let zone = cluster.zone();
            if zone.first < before && zone.last >= latest[1].0 {
                latest[1] = (zone.last, Some(cluster.value));
                latest.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
            }
        }
        self.clusters.retain(|cluster| {
            let zone = cluster.zone();
            let other = if latest[0].1 == Some(cluster.value) { latest[1] } else { latest[0] };
            let is_replaced = other.1.is_some() && other.0 > zone.first;
            !(is_replaced && zone.first < before && zone.last < before)
        });
        self.clusters.shrink_to(self.clusters.len() * 2);
    }
}

fn instant(time: Time) -> Instant {
    time.as_ps().saturating_add(1)
}

fn interval(operation: &Operation) -> Interval {
    let Operation { id, invoked, responded, .. } = *operation;
    Interval { id, invoked: instant(invoked), responded: responded.map_or(NEVER, instant) }
}

fn explain(register: RegisterId, value: u64, (action, interval): (Action, Interval)) -> Operation {
    let Interval { id, invoked, responded } = interval;
    let time = |instant: Instant| Time::ps(instant.saturating_sub(1));
    let responded = (responded != NEVER).then(|| time(responded));
    Operation { id, register, action, value, invoked: time(invoked), responded }
}

/// The ends of both zones.
fn conflict(id: RegisterId, why: Why, one: &Cluster, other: &Cluster) -> Violation {
    let ends = |cluster: &Cluster| [cluster.first(), cluster.last()].map(|end| explain(id, cluster.value, end));
    let mut operations = [ends(one), ends(other)].concat();
    operations.dedup();
    Violation { register: id, why, operations }
}
