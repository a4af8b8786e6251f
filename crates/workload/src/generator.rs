//! Sources of requests, and their arrival times.

use crate::config::{Arrivals, Config, TraceMessage};
use crate::limits::Limits;
use crate::open::{Gaps, Ticker, Tournament};
use crate::size::Mix;
use crate::target::Targets;
use base::{NodeId, Request, RequestId, Seed, Span, Stream, Time};
use prefetch_index::prefetch_index;

/// A request and the time at which the workload wants it to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The intended start.
    pub at: Time,
    /// The request.
    pub request: Request,
}

/// A source of requests, as the hosts of Rackweave drive it.
///
/// Calling order: [`start`](Source::start) once; then, for each arrival when its time has come,
/// [`after_arrival`](Source::after_arrival), and for each request when it has ended,
/// [`after_end`](Source::after_end). What either returns lies not before the time of the call and
/// may belong to any node.
pub trait Source {
    /// Appends the first arrivals: the earliest of all in an open loop or a trace, `depth` a node
    /// in a closed loop.
    fn start(&mut self, out: &mut Vec<Arrival>);
    /// An open loop's or a trace's next arrival (of any node), now that `taken` has been handed to
    /// the design; `None` in a closed loop, or when the workload is exhausted.
    fn after_arrival(&mut self, taken: &Arrival) -> Option<Arrival>;
    /// What follows the end of `finished` at `now`: a closed loop's next arrival at its node, or,
    /// in any loop, the second half of an action of two requests (storage reads a block and then
    /// writes it). `None` if nothing does, or when exhausted.
    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival>;
    /// Returns whether the end of a request at `now` could still bring another one: a closed loop
    /// that is not at its limits. An open loop and a trace wait for nothing.
    fn awaits_an_end(&self, _now: Time) -> bool {
        false
    }
}

/// Runs a [`Config`].
///
/// Requests are numbered from zero in the order in which they are issued. In an open loop and in a
/// trace that is the order of their intended starts over all nodes (of equal starts, the lower node
/// first; in a trace, the earlier line). Arrivals are issued one at a time, so that the limit on
/// requests keeps exactly the earliest ones and load does not fade out node by node. In a closed
/// loop it is the order of the calls: at the start every client node's first request, then every
/// node's second and so on. From then on the end of a request triggers the next.
///
/// No arrival allocates, and none starts at or after the end of the duration.
#[derive(Clone, Debug)]
pub struct Generator {
    schedule: Schedule,
    maker: Maker,
    limits: Limits,
}

/// Where arrivals come from.
#[derive(Clone, Debug)]
enum Schedule {
    /// Every node's clock runs by itself.
    Open { gaps: Gaps, tickers: Vec<Ticker>, tournament: Tournament },
    /// A request's end makes the next one.
    Closed { asking: Vec<NodeId>, depth: u32, think: Span },
    /// The next line of a trace makes the next one.
    Trace { messages: Vec<TraceMessage>, next: usize },
}

impl Generator {
    /// A generator of `config`. `seed` decides every draw. A trace's messages are copied.
    ///
    /// # Panics
    /// If `config` has [`problems`](Config::problems). Check external configurations first.
    pub fn new(config: &Config, seed: Seed) -> Generator {
        let problems = config.problems();
        assert!(problems.is_empty(), "the workload was not checked: {}", problems[0]);
        Generator {
            schedule: Schedule::new(config, seed),
            maker: Maker::new(config, seed),
            limits: Limits::new(config.requests, config.duration),
        }
    }

    /// Returns how many requests were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    fn make(&mut self, at: Time, source: NodeId) -> Option<Arrival> {
        let id = self.limits.admit(at)?;
        Some(Arrival { at, request: self.maker.make(id, source) })
    }

    fn next_open_or_traced(&mut self) -> Option<Arrival> {
        match &mut self.schedule {
            Schedule::Open { gaps, tickers, tournament } => {
                let (at, source) = tournament.earliest();
                let id = self.limits.admit(at)?;
                tournament.set(source, tickers[source.index()].next(gaps));
                // Whose turn is next is known long before: a rack's streams are more than the
                // nearest cache holds.
                let (_, next) = tournament.earliest();
                prefetch_index(&*tickers, next.index());
                prefetch_index(&self.maker.nodes, next.index());
                Some(Arrival { at, request: self.maker.make(id, source) })
            }
            Schedule::Trace { messages, next } => {
                let message = messages.get(*next)?;
                let id = self.limits.admit(message.at)?;
                *next += 1;
                Some(message.arrival(id))
            }
            Schedule::Closed { .. } => None,
        }
    }
}

impl Source for Generator {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        let Schedule::Closed { asking, depth, .. } = &self.schedule else {
            out.extend(self.next_open_or_traced());
            return;
        };
        for (_round, source) in (0..*depth).flat_map(|round| asking.iter().map(move |source| (round, source))) {
            let Some(id) = self.limits.admit(Time::ZERO) else { return };
            out.push(Arrival { at: Time::ZERO, request: self.maker.make(id, *source) });
        }
    }

    fn after_arrival(&mut self, _taken: &Arrival) -> Option<Arrival> {
        self.next_open_or_traced()
    }

    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        let Schedule::Closed { think, .. } = &self.schedule else { return None };
        let at = now.checked_add(*think)?;
        self.make(at, finished.source)
    }

    fn awaits_an_end(&self, now: Time) -> bool {
        matches!(self.schedule, Schedule::Closed { .. }) && self.limits.is_open(now)
    }
}

impl Schedule {
    fn new(config: &Config, seed: Seed) -> Schedule {
        match &config.arrivals {
            Arrivals::Closed { depth, think } => {
                Schedule::Closed { asking: config.pattern.asking_nodes(config.nodes), depth: *depth, think: *think }
            }
            Arrivals::Trace { messages } => Schedule::Trace { messages: messages.clone(), next: 0 },
            Arrivals::Poisson { .. } | Arrivals::Deterministic { .. } | Arrivals::OnOff { .. } => {
                let gaps = Gaps::new(&config.arrivals).expect("an open loop has gaps");
                Schedule::open(gaps, config, seed)
            }
        }
    }

    fn open(gaps: Gaps, config: &Config, seed: Seed) -> Schedule {
        let mut tickers: Vec<Ticker> = (0..config.nodes).map(|node| Ticker::new(NodeId(node), seed)).collect();
        let mut times = vec![Time::MAX; tickers.len()];
        for node in config.pattern.asking_nodes(config.nodes) {
            times[node.index()] = tickers[node.index()].first(&gaps);
        }
        Schedule::Open { gaps, tickers, tournament: Tournament::new(&times) }
    }
}

impl TraceMessage {
    fn arrival(&self, id: RequestId) -> Arrival {
        let TraceMessage { at, operation, source, target, bytes } = *self;
        Arrival { at, request: Request { id, operation, source, target, address: 0, bytes } }
    }
}

/// Fills in operation, size and target of a request.
#[derive(Clone, Debug)]
struct Maker {
    targets: Targets,
    mix: Mix,
    local_fraction: f64,
    nodes: Vec<Draws>,
}

/// One node's streams: one cache line, for another node's turn is next.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Draws {
    target: Stream,
    size: Stream,
    operation: Stream,
    local: Stream,
}

impl Maker {
    fn new(config: &Config, seed: Seed) -> Maker {
        Maker {
            targets: Targets::new(&config.pattern, config.nodes, seed),
            mix: Mix::new(&config.mix),
            local_fraction: config.local_fraction,
            nodes: (0..config.nodes).map(|node| Draws::new(node, seed)).collect(),
        }
    }

    fn make(&mut self, id: RequestId, source: NodeId) -> Request {
        let draws = &mut self.nodes[source.index()];
        let is_local = self.local_fraction > 0.0 && draws.local.unit() < self.local_fraction;
        let target = if is_local { source } else { self.targets.draw(source, &mut draws.target) };
        let (operation, bytes) = self.mix.at(draws.operation.unit(), draws.size.unit());
        Request { id, operation, source, target, address: 0, bytes }
    }
}

impl Draws {
    fn new(node: u32, seed: Seed) -> Draws {
        let stream = |purpose: &str| seed.stream(&format!("workload/node/{node}/{purpose}"));
        let (target, size, operation) = (stream("target"), stream("size"), stream("operation"));
        Draws { target, size, operation, local: stream("local") }
    }
}
