//! Priority PIM as 3.1.2 of the paper words it, with the busy timers of 3.1.1, slow and without any
//! bookkeeping of its own: a list of demands, from which every queue and array is made anew in
//! every cycle.

use base::{NodeId, Span, Time};
use edm::pcs::memory as encoded;
use edm::scheduler::{Demand, DemandKind, Match, Refused};
use edm::{Config, MessageId, Ordering, Place, Policy};

#[derive(Clone, Copy, Debug)]
struct Waiting {
    demand: Demand,
    remaining: u32,
    arrival: u64,
    started: bool,
}

impl Waiting {
    fn is_write(&self) -> bool {
        matches!(self.demand.kind, DemandKind::Write { .. })
    }
    fn priority(&self, policy: Policy) -> (u64, u64) {
        match policy {
            Policy::Srpt => (u64::from(self.remaining), self.arrival),
            Policy::Fcfs => (self.arrival, 0),
        }
    }
    fn chunk(&self, config: &Config) -> u32 {
        self.remaining.min(config.chunk.count() as u32)
    }
    /// Blocks of the next chunk, and of the grant for it on the source's downlink.
    fn blocks(&self, config: &Config) -> (u64, u64) {
        let bytes = self.chunk(config);
        match self.demand.kind {
            DemandKind::Response { request } if !self.started => {
                (encoded::response_blocks(bytes), encoded::message_blocks(&request.body))
            }
            DemandKind::Response { .. } => (encoded::response_blocks(bytes), 1),
            DemandKind::Write { batch: 1 } => (encoded::write_blocks(bytes), 1),
            // /MS/ and /MT/ of each message, and whole blocks of payload: one a message may be
            // partly filled.
            DemandKind::Write { batch } => (u64::from(bytes).div_ceil(8) + 3 * u64::from(batch) - 1, 1),
        }
    }
}

/// The model. Same interface as the scheduler, but it does not know when to wake up.
pub struct Model {
    config: Config,
    place: Place,
    waiting: Vec<Waiting>,
    arrivals: u64,
    source_free_at: Vec<Time>,
    target_free_at: Vec<Time>,
    round: Span,
    /// Rounds start at its multiples, if there is one.
    slot: Option<Span>,
    look_ahead: Span,
    round_end: Time,
    /// Grants in a row past the best demand of each target.
    passed_over: Vec<u32>,
}

impl Model {
    pub fn new(config: Config, place: Place) -> Model {
        let free = vec![Time::ZERO; place.nodes as usize];
        Model {
            config,
            place,
            waiting: Vec::new(),
            arrivals: 0,
            source_free_at: free.clone(),
            target_free_at: free,
            round: config.scheduler_clock.cycles(3 * u64::from(config.iterations_per_round)),
            slot: edm::budget::slot(&config, &place),
            look_ahead: config.scheduler_clock.cycles(u64::from(config.look_ahead_cycles)),
            round_end: Time::ZERO,
            passed_over: vec![0; place.nodes as usize],
        }
    }
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
    pub fn insert(&mut self, demand: Demand) -> Result<(), Refused> {
        let Demand { source, target, .. } = demand;
        let limit = self.config.active_per_pair;
        let new = Waiting { demand, remaining: demand.bytes, arrival: self.arrivals, started: false };
        let same = |other: &&Waiting| {
            (other.demand.source, other.demand.target, other.is_write()) == (source, target, new.is_write())
        };
        if self.waiting.iter().filter(same).count() >= usize::from(limit) {
            return Err(Refused::PairFull { source_port: source, target, limit });
        }
        self.arrivals += 1;
        self.waiting.push(new);
        Ok(())
    }

    /// Whether the demand was the first of its channel (and, of a response, sent on), and is gone
    /// now.
    pub fn withdraw(&mut self, source: NodeId, target: NodeId, id: MessageId) -> bool {
        let is_write = id.0 & 0x80 != 0;
        let channel =
            self.waiting.iter().enumerate().filter(|(_, one)| {
                (one.demand.source, one.demand.target, one.is_write()) == (source, target, is_write)
            });
        let first = channel.min_by_key(|(_, one)| match self.config.ordering {
            Ordering::None => one.priority(self.config.policy),
            Ordering::Channel | Ordering::Pair => (one.arrival, 0),
        });
        let found = first.filter(|(_, one)| one.demand.id == id && (is_write || one.started)).map(|(index, _)| index);
        found.map(|index| self.waiting.remove(index)).is_some()
    }

    pub fn book_uplink(&mut self, now: Time, source: NodeId, blocks: u64) {
        if self.source_free_at[source.index()] > now {
            self.source_free_at[source.index()] += self.place.blocks(blocks);
        }
    }

    /// What may compete: the oldest demand (without order: the best) of each source, target and
    /// class, unless it is a write behind a read of the pair that has not been sent on.
    fn heads(&self) -> Vec<Waiting> {
        let before = |other: &Waiting, one: &Waiting| match self.config.ordering {
            Ordering::None => other.priority(self.config.policy) < one.priority(self.config.policy),
            Ordering::Channel | Ordering::Pair => other.arrival < one.arrival,
        };
        let oldest = |one: &&Waiting| {
            !self.waiting.iter().any(|other| {
                before(other, one)
                    && other.is_write() == one.is_write()
                    && (other.demand.source, other.demand.target) == (one.demand.source, one.demand.target)
            })
        };
        let in_order = |one: &&Waiting| {
            self.config.ordering != Ordering::Pair
                || !one.is_write()
                || !self.waiting.iter().any(|read| {
                    !read.is_write()
                        && !read.started
                        && read.arrival < one.arrival
                        && (read.demand.target, read.demand.source) == (one.demand.source, one.demand.target)
                })
        };
        self.waiting.iter().filter(oldest).filter(in_order).copied().collect()
    }

    /// Heads by priority, best first: a notification queue if cut to one target, an array if cut to
    /// one source.
    fn sorted(&self, keep: impl Fn(&Demand) -> bool) -> Vec<Waiting> {
        let mut heads: Vec<Waiting> = self.heads().into_iter().filter(|head| keep(&head.demand)).collect();
        heads.sort_by_key(|head| head.priority(self.config.policy));
        heads
    }

    /// A target's queue; under FCFS its oldest demand alone after X*N grants past it.
    fn queue(&self, target: NodeId) -> Vec<Waiting> {
        let mut queue = self.sorted(|demand| demand.target == target);
        let passes_max = u32::from(self.config.active_per_pair) * self.place.nodes;
        if self.config.policy == Policy::Fcfs && self.passed_over[target.index()] >= passes_max {
            queue.truncate(1);
        }
        queue
    }

    /// The earliest start of a round, neither before `now` nor before the end of the last one, that
    /// would match something.
    pub fn earliest_start(&self, now: Time) -> Option<Time> {
        let free_at = |head: Waiting| {
            self.source_free_at[head.demand.source.index()].max(self.target_free_at[head.demand.target.index()])
        };
        let at = (0..self.place.nodes).flat_map(|target| self.queue(NodeId(target))).map(free_at).min()?;
        let free = Time::ps(at.as_ps().saturating_sub((self.round + self.look_ahead).as_ps()));
        let start = free.max(now).max(self.round_end);
        Some(self.slot.map_or(start, |slot| Time::ps(start.as_ps().next_multiple_of(slot.as_ps()))))
    }

    pub fn round(&mut self, start: Time) -> Vec<Match> {
        let issue_at = start + self.round;
        let made = (0..self.config.iterations_per_round).flat_map(|_| self.iteration(issue_at)).collect();
        self.round_end = issue_at;
        made
    }

    fn iteration(&mut self, issue_at: Time) -> Vec<Match> {
        let soon = issue_at + self.look_ahead;
        let nodes = self.place.nodes;
        // Cycle 1: each free target asks the source of its best demand with a free source.
        let queues: Vec<Vec<Waiting>> = (0..nodes).map(|target| self.queue(NodeId(target))).collect();
        let asked: Vec<Option<u64>> = (0..nodes)
            .map(|target| {
                let free = |head: &&Waiting| self.source_free_at[head.demand.source.index()] <= soon;
                let best = queues[target as usize].iter().find(free);
                best.filter(|_| self.target_free_at[target as usize] <= soon).map(|head| head.arrival)
            })
            .collect();
        let is_best = |arrival| queues.iter().any(|queue| queue.first().is_some_and(|head| head.arrival == arrival));
        // Cycle 2: each source has an array in order of priority, a boolean an index, and a
        // priority encoder.
        let mut granted: Vec<(usize, u64)> = (0..nodes)
            .filter_map(|source| {
                let array = self.sorted(|demand| demand.source == NodeId(source));
                let asks: Vec<bool> = array.iter().map(|head| asked.contains(&Some(head.arrival))).collect();
                let first_asking = asked.iter().position(|one| array.iter().any(|head| Some(head.arrival) == *one));
                asks.iter().position(|set| *set).map(|best| (first_asking.unwrap(), array[best].arrival))
            })
            .collect();
        // Cycle 3: both are marked busy. All at once; where a control block of one is booked on a
        // port of another, the one with the lower asking port is first.
        granted.sort();
        granted.into_iter().map(|(_, arrival)| self.mark_busy(arrival, is_best(arrival), issue_at)).collect()
    }

    fn mark_busy(&mut self, arrival: u64, is_best: bool, issue_at: Time) -> Match {
        let index = self.waiting.iter().position(|waiting| waiting.arrival == arrival).unwrap();
        let before = self.waiting[index];
        let (source, target) = (before.demand.source.index(), before.demand.target.index());
        self.passed_over[target] = if is_best { 0 } else { self.passed_over[target] + 1 };
        let (blocks, grant_blocks) = before.blocks(&self.config);
        let from = issue_at.max(self.source_free_at[source]).max(self.target_free_at[target]);
        self.source_free_at[source] = from + self.place.blocks(blocks);
        self.target_free_at[target] = from + self.place.blocks(blocks);
        self.target_free_at[source] = self.target_free_at[source].max(issue_at) + self.place.blocks(grant_blocks);
        let bytes = before.chunk(&self.config);
        self.waiting[index].remaining -= bytes;
        self.waiting[index].started = true;
        let last = bytes == before.remaining;
        if last {
            self.waiting.remove(index);
        }
        Match { demand: before.demand, bytes, blocks, first: !before.started, last }
    }
}
