//! Plays a [`Config`].

use super::address::Picker;
use super::{Action, Arrivals, Class, Config, Mix};
use crate::generator::{Arrival, Source};
use crate::limits::Limits;
use crate::open::{Gaps, Ticker, Tournament};
use crate::size::cumulative;
use base::{Bytes, NodeId, Operation, Request, RequestId, Seed, Span, Stream, Time};
use std::collections::BTreeSet;

/// Runs a [`Config`]: requests are numbered from zero in the order in which they are issued.
///
/// In an open loop that is the order of their intended starts over all clients, and arrivals are
/// issued one at a time. In a closed loop it is every client's first request, then every client's
/// second and so on up to the depth; from then on the end of a request triggers the next. The write
/// of a [`Action::ReadThenWrite`] is issued when its read ends, without thinking time, in either
/// loop; both count towards the limit on requests.
#[derive(Clone, Debug)]
pub struct Generator {
    schedule: Schedule,
    maker: Maker,
    limits: Limits,
    seconds: Seconds,
}

/// Where arrivals come from.
#[derive(Clone, Debug)]
enum Schedule {
    /// Every client's clock runs by itself.
    Open { gaps: Gaps, tickers: Vec<Ticker>, tournament: Tournament },
    /// An action's end makes the next one.
    Closed { clients: u32, depth: u32, think: Span },
}

/// The second halves of [`Action::ReadThenWrite`].
#[derive(Clone, Debug, Default)]
struct Seconds {
    /// Reads in flight that a write follows.
    owed: BTreeSet<RequestId>,
    /// Such writes that were handed out and have not come back as arrivals.
    made: BTreeSet<RequestId>,
}

impl Generator {
    /// A generator of `config`. `seed` decides every draw.
    ///
    /// # Panics
    /// If `config` has [`problems`](Config::problems). Check external configurations first.
    pub fn new(config: &Config, seed: Seed) -> Generator {
        let problems = config.problems();
        assert!(problems.is_empty(), "the load was not checked: {}", problems[0]);
        Generator {
            schedule: Schedule::new(config, seed),
            maker: Maker::new(config, seed),
            limits: Limits::new(config.requests, config.duration),
            seconds: Seconds::default(),
        }
    }

    /// Returns how many requests were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    fn make(&mut self, at: Time, client: u32) -> Option<Arrival> {
        let id = self.limits.admit(at)?;
        let (request, is_followed) = self.maker.make(id, client);
        if is_followed {
            self.seconds.owed.insert(id);
        }
        Some(Arrival { at, request })
    }

    fn next_open(&mut self) -> Option<Arrival> {
        let Schedule::Open { gaps, tickers, tournament } = &mut self.schedule else { return None };
        let (at, client) = tournament.earliest();
        tournament.set(client, tickers[client.index()].next(gaps));
        self.make(at, client.0)
    }

    /// The write that follows `read`.
    fn second(&mut self, now: Time, read: &Request) -> Option<Arrival> {
        let id = self.limits.admit(now)?;
        self.seconds.made.insert(id);
        Some(Arrival { at: now, request: Request { id, operation: Operation::Write, ..*read } })
    }
}

impl Source for Generator {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        let Schedule::Closed { clients, depth, .. } = self.schedule else {
            out.extend(self.next_open());
            return;
        };
        let slots = (0..depth).flat_map(|_round| 0..clients);
        out.extend(slots.map_while(|client| self.make(Time::ZERO, client)));
    }

    fn after_arrival(&mut self, taken: &Arrival) -> Option<Arrival> {
        // A second half is no tick of a client's clock.
        if self.seconds.made.remove(&taken.request.id) { None } else { self.next_open() }
    }

    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        if self.seconds.owed.remove(&finished.id) {
            return self.second(now, finished);
        }
        let Schedule::Closed { think, .. } = &self.schedule else { return None };
        let at = now.checked_add(*think)?;
        self.make(at, finished.source.0)
    }

    fn awaits_an_end(&self, now: Time) -> bool {
        matches!(self.schedule, Schedule::Closed { .. }) && self.limits.is_open(now)
    }
}

impl Schedule {
    fn new(config: &Config, seed: Seed) -> Schedule {
        let gaps = match config.arrivals {
            Arrivals::Poisson { mean_gap_ps } => Gaps::Poisson { mean: mean_gap_ps },
            Arrivals::Deterministic { gap_ps } => Gaps::Equal { gap: gap_ps },
            Arrivals::Closed { depth, think } => return Schedule::Closed { clients: config.clients, depth, think },
        };
        let mut tickers: Vec<Ticker> = (0..config.clients).map(|client| Ticker::new(NodeId(client), seed)).collect();
        let firsts: Vec<Time> = tickers.iter_mut().map(|ticker| ticker.first(&gaps)).collect();
        Schedule::Open { gaps, tickers, tournament: Tournament::new(&firsts) }
    }
}

/// Fills in operation, volume and address of a request.
#[derive(Clone, Debug)]
struct Maker {
    block: Bytes,
    clients: Vec<Client>,
    actions: Actions,
    picker: Picker,
}

/// One client's volumes and streams.
#[derive(Clone, Debug)]
struct Client {
    volumes: Vec<u32>,
    is_writing: bool,
    volume: Stream,
    action: Stream,
    address: Stream,
    length: Stream,
}

impl Maker {
    fn new(config: &Config, seed: Seed) -> Maker {
        let actions = Actions::new(&config.mix);
        let client = |client| Client::new(client, config.volumes_of(client), &actions, seed);
        let clients = (0..config.clients).map(client).collect();
        Maker { block: config.block, clients, actions, picker: Picker::new(config) }
    }

    /// A request, and whether the write of the same block follows it.
    fn make(&mut self, id: RequestId, client: u32) -> (Request, bool) {
        let target = self.clients.len() as u32;
        let draws = &mut self.clients[client as usize];
        let volume = draws.volumes[(draws.volume.unit() * draws.volumes.len() as f64) as usize];
        let action = self.actions.next(&mut draws.is_writing, draws.action.unit());
        let draw = draws.address.unit();
        let block = match action {
            Action::Insert => self.picker.insert(volume),
            _ => self.picker.pick(volume, draw),
        };
        let blocks = match action {
            Action::Scan { blocks_max } => self.picker.clip(block, 1 + draws.length.below(u64::from(blocks_max))),
            _ => 1,
        };
        let request = Request {
            id,
            operation: first_operation(action),
            source: NodeId(client),
            target: NodeId(target + volume),
            address: block * self.block.count(),
            bytes: self.block * blocks,
        };
        (request, action == Action::ReadThenWrite)
    }
}

impl Client {
    fn new(client: u32, volumes: Vec<u32>, actions: &Actions, seed: Seed) -> Client {
        let stream = |purpose: &str| seed.stream(&format!("workload/node/{client}/{purpose}"));
        let mut action = stream("action");
        let is_writing = actions.begins_with_writes(&mut action);
        let (volume, address, length) = (stream("volume"), stream("address"), stream("length"));
        Client { volumes, is_writing, volume, action, address, length }
    }
}

fn first_operation(action: Action) -> Operation {
    match action {
        Action::Read | Action::Scan { .. } | Action::ReadThenWrite => Operation::Read,
        Action::Write | Action::Insert => Operation::Write,
    }
}

/// A [`Mix`] made ready for drawing.
#[derive(Clone, Debug)]
enum Actions {
    Independent { until: Vec<f64>, classes: Vec<Class> },
    Runs { write_share: f64, leave_writes: f64, leave_reads: f64 },
}

impl Actions {
    fn new(mix: &Mix) -> Actions {
        match mix {
            Mix::Independent { classes } => Actions::Independent {
                until: cumulative(classes.iter().map(|class| class.weight)),
                classes: classes.clone(),
            },
            Mix::Runs { write_share, write_run } => Actions::Runs {
                write_share: *write_share,
                leave_writes: 1.0 / write_run,
                leave_reads: write_share / (1.0 - write_share) / write_run,
            },
        }
    }

    /// Returns whether a client's first request is a write, in the steady state of [`Mix::Runs`].
    fn begins_with_writes(&self, stream: &mut Stream) -> bool {
        match self {
            Actions::Independent { .. } => false,
            Actions::Runs { write_share, .. } => stream.unit() < *write_share,
        }
    }

    /// The next action, by one draw from `[0, 1)`; `is_writing` says which kind of run the client
    /// is in.
    fn next(&self, is_writing: &mut bool, draw: f64) -> Action {
        match self {
            Actions::Independent { until, classes } => classes[until.partition_point(|until| *until <= draw)].action,
            Actions::Runs { leave_writes, leave_reads, .. } => {
                let action = if *is_writing { Action::Write } else { Action::Read };
                *is_writing ^= draw < if *is_writing { *leave_writes } else { *leave_reads };
                action
            }
        }
    }
}

#[cfg(test)]
mod tests;
