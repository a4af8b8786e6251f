//! The part of a simulation that is the same for every design: the clock, the workload, the
//! records, the end of a run.
//!
//! A [`Rig`] puts programs into models. It is handed requests and its own events, schedules further
//! events, and says which requests have ended; everything else is done here, once.

use crate::sampler::{Probe, Sampler};
use crate::slab::Slab;
use base::{Bytes, Operation, Request, Span, Time};
use hardware::{Dram, DramConfig};
use history::StoreHistory;
use kernel::{EventQueue, Prefetcher, Soon};
use record::metric::Meter;
use record::{
    Audit, Backlog, Keep, Keeper, Ledger, Outcome, Place, Pool, Row, RunFacts, RunIdentity, Sink, SinkError, SpanKind,
    Spans, Summarizer, Summary, Transient,
};
use std::collections::BTreeMap;
use workload::{Arrival, Source};

/// A request that has ended, as its rig reports it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What was handed to [`Rig::issue`].
    pub ticket: Ticket,
    /// How it ended.
    pub outcome: Outcome,
    /// When the source took it up.
    pub start: Time,
    /// When it ended. Now, or up to a fixed pipeline delay ahead of the event that settled it.
    pub end: Time,
    /// The part of the time until `end` that is added up and does not pass: a closed loop goes on
    /// before it.
    pub label: Span,
    /// Where the time from `intended` to `end` went: opened at `intended`.
    pub ledger: Ledger,
}

impl Ended {
    /// Where the time of the request went.
    pub fn spans(&self) -> Spans {
        self.ledger.clone().settle(self.end).spans
    }
}

/// The driver's handle on a request in flight: a small number that is used again after the request
/// has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// What a rig may do while it handles something.
pub struct Context<'a, E> {
    pub(crate) queue: &'a mut EventQueue<Event<E>>,
    pub(crate) ended: &'a mut Vec<Ended>,
    /// The present.
    pub now: Time,
    /// Whether the spans of the request that is issued are kept in their order.
    pub(crate) keeps_spans: bool,
    /// The latency below which the spans of a request that ends are not kept.
    pub(crate) least_kept: Span,
}

/// An event of the driver or of the rig.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<E> {
    /// The workload's arrival in this slot of the driver's table is due.
    Arrival(u32),
    /// Something of the rig's own.
    Rig(E),
}

impl<E: Copy> Context<'_, E> {
    /// Schedules `event` at `at`, not before now.
    pub fn at(&mut self, at: Time, event: E) {
        self.queue.push(at, Event::Rig(event));
    }
    /// Schedules `event` after `span`.
    pub fn after(&mut self, span: Span, event: E) {
        self.at(self.now + span, event);
    }
    /// The ledger of the request that is issued, which begins now.
    #[inline]
    pub fn open_ledger(&self) -> Ledger {
        Ledger::open(self.now, self.keeps_spans)
    }
    /// Reports the end of a request. Exactly once a ticket.
    #[inline]
    pub fn end(&mut self, ended: Ended) {
        self.ended.push(ended);
    }
}

/// A design inside its hardware models.
pub trait Rig {
    /// The rig's own events: small and plain, the queue copies them.
    type Event: Copy;
    /// Called once, at time zero, before anything else.
    fn start(&mut self, _context: &mut Context<'_, Self::Event>) {}
    /// The workload wants `request` to start now (`intended` in an open loop is now, and never
    /// later).
    fn issue(&mut self, ticket: Ticket, request: &Request, intended: Time, context: &mut Context<'_, Self::Event>);
    /// One of its own events is due.
    fn on(&mut self, event: Self::Event, context: &mut Context<'_, Self::Event>);
    /// Whether it wants to be told of its events before they are due. That costs a little each
    /// time.
    const PREFETCHES: bool = false;
    /// One of its own events is due soon: a large rig fetches what it will need from memory, and
    /// says which request the event may end, if it knows. Nothing else comes of it.
    #[inline]
    fn prefetch(&self, _soon: Soon, _event: Self::Event) -> Option<Ticket> {
        None
    }
    /// The same for a request that will be issued soon.
    #[inline]
    fn prefetch_request(&self, _request: &Request) {}
    /// The same while the request waits for its time.
    #[inline]
    fn prefetch_issue(&self, _soon: Soon, _request: &Request) {}
    /// The end-to-end time of such a request alone in this network; `None` where no formula gives
    /// it.
    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span>;
    /// How long each direction of each link was busy so far: the driver takes differences for
    /// utilisation.
    fn link_busy(&self, out: &mut Vec<Span>);
    /// Packets or messages that full buffers dropped so far.
    fn dropped_packets(&self) -> u64;
    /// Reads what this design counts: totals since its beginning, and since
    /// [`end_warm_up`](Rig::end_warm_up) extremes and statistics.
    fn measure(&self, now: Time, meter: &mut Meter);
    /// The warm-up ends now: extremes and statistics begin anew.
    fn end_warm_up(&mut self, _now: Time) {}
    /// Reports the present state for a series: queues, free blocks, credits. Changes nothing.
    fn sample(&self, _now: Time, _probe: &mut Probe) {}
}

/// When a run is measured and when it is given up.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// What is not measured.
    pub warm_up: WarmUp,
    /// How long after the last arrival unfinished requests are waited for.
    pub drain: Span,
    /// Every node's own memory, for requests whose target is their source.
    pub memory: DramConfig,
    /// The load that the plan asked for, for the summary.
    pub planned_load: Option<f64>,
    /// When something breaks for the first time.
    pub first_fault: Option<Time>,
    /// Of which requests the spans are kept in their order.
    pub spans: Keep,
    /// From one sample of the state to the next; `None` takes none.
    pub series: Option<Span>,
}

/// The part of a run that is simulated and recorded but not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Requests intended before this much time has passed.
    Time(Span),
    /// The first so many requests.
    Requests(u64),
}

impl Limits {
    fn is_warm_up(&self, request: &Request, intended: Time) -> bool {
        match self.warm_up {
            WarmUp::Time(span) => intended < Time::ZERO + span,
            WarmUp::Requests(count) => request.id.0 < count,
        }
    }
}

impl WarmUp {
    /// Whether all of the run is measured.
    fn is_none(self) -> bool {
        matches!(self, WarmUp::Time(Span::ZERO) | WarmUp::Requests(0))
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// Requests handed to the design.
    pub offered: u64,
    /// Requests that have ended.
    pub ended: u64,
    /// Events executed.
    pub events: u64,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    Continue,
    /// It stops here and is summarised as partial.
    Stop,
}

/// Told from time to time how far a run is; can stop it.
pub trait Observer {
    /// Called every few thousand events.
    fn progress(&mut self, progress: &Progress) -> Flow;
}

/// Lets every run go to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _: &Progress) -> Flow {
        Flow::Continue
    }
}

/// Events between two calls of the observer: about a millisecond of CPU time.
const EVENTS_BETWEEN_REPORTS: u64 = 1 << 14;

/// A closed loop in which nothing ends for so long has stalled. No queue, collection, timeout or
/// fault of any model takes longer; a longer `drain_limit` takes its place.
const STALLED_AFTER: Span = Span::secs(10);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Everything has ended, or what has not was waited for as long as the drain limit says.
    Complete,
    /// The observer stopped it.
    Stopped,
    /// A closed loop waits for requests that do not end.
    Stalled,
}

/// A request that the design has. One cache line in its slab: thousands are in flight, and each is
/// needed once.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct InFlight {
    request: Request,
    intended: Time,
}

const _: () = assert!(size_of::<Option<InFlight>>() == 64);

/// One run of one rig.
struct Drive<'a, R: Rig> {
    rig: &'a mut R,
    source: &'a mut dyn Source,
    limits: &'a Limits,
    queue: EventQueue<Event<R::Event>>,
    in_flight: Slab<InFlight>,
    expected: Expected,
    ended: Vec<Ended>,
    recorder: Recorder<'a>,
    sampler: Sampler,
    window: Window,
    progress: Progress,
    own_memory: Vec<Dram>,
}

/// Requests that the workload has announced.
#[derive(Default)]
struct Expected {
    arrivals: Slab<Arrival>,
    /// When the last one arrived.
    last: Time,
    /// Whether arrivals have ended, as far as is known: the end of a request may still bring one.
    is_exhausted: bool,
}

/// Where rows go.
struct Recorder<'a> {
    sink: &'a mut dyn Sink,
    summarizer: Summarizer,
    keeper: Keeper,
    audit: Audit,
    /// The latest end of a row.
    stopped_at: Time,
    unloaded: UnloadedCache,
}

/// The measured part of a run.
#[derive(Default)]
struct Window {
    meter: Meter,
    /// Whether the warm-up is over.
    is_open: bool,
    /// What measured arrivals of an open loop find underway.
    backlog: Option<Backlog>,
    busy_at_warm_up: Option<(Time, Vec<Span>)>,
    busy_at_end: Option<(Time, Vec<Span>)>,
}

/// The last answer of [`Rig::unloaded`] for each operation: sizes repeat.
#[derive(Default)]
struct UnloadedCache([Option<(Bytes, Option<Span>)>; 3]);

impl UnloadedCache {
    fn get<R: Rig>(&mut self, rig: &R, request: &Request) -> Option<Span> {
        let slot = &mut self.0[request.operation as usize];
        match slot {
            Some((bytes, span)) if *bytes == request.bytes => *span,
            _ => slot.insert((request.bytes, rig.unloaded(request.operation, request.bytes))).1,
        }
    }
}

/// What a run leaves besides its rows.
pub struct Outcomes {
    /// The numbers.
    pub summary: Summary,
    /// The latency histograms, as [`Summarizer::histograms`] gives them.
    pub histograms: BTreeMap<String, Vec<u8>>,
    /// The same for percentiles over several seeds.
    pub pool: Pool,
    /// What of it is a transient, if it was measured from the beginning.
    pub transient: Transient,
    /// What clients of a key-value store asked and saw, if it was to be kept.
    pub history: Option<StoreHistory>,
}

/// A run that has ended. Judges add to its metrics before it is finished.
pub struct Played {
    /// The readings of its metrics.
    pub meter: Meter,
    /// Operations of clients of a key-value store and their answers, if they were kept.
    pub history: Option<StoreHistory>,
    counted: Counted,
}

/// What a run has counted beside its metrics.
enum Counted {
    Requests {
        facts: Box<RunFacts>,
        summarizer: Box<Summarizer>,
    },
    /// A run without requests.
    Nothing(Box<Summary>),
}

impl Played {
    /// A run without requests, whose summary lacks only its metrics.
    pub(crate) fn without_requests(summary: Summary, meter: Meter) -> Played {
        Played { meter, history: None, counted: Counted::Nothing(Box::new(summary)) }
    }

    /// Requests that the workload intended.
    pub fn offered(&self) -> u64 {
        match &self.counted {
            Counted::Requests { facts, .. } => facts.offered,
            Counted::Nothing(_) => 0,
        }
    }

    /// Summarises the run.
    pub fn finish(self) -> Outcomes {
        let Played { meter, history, counted } = self;
        let percentiles = Pool::default().with_percentiles(&meter);
        let (metrics, warnings) = meter.finish();
        let (mut summary, histograms, mut pool, transient) = match counted {
            Counted::Requests { facts, summarizer } => {
                let summary = summarizer.finish(&RunFacts { metrics, ..*facts });
                (summary, summarizer.histograms(), summarizer.pool(), summarizer.transient())
            }
            Counted::Nothing(summary) => {
                (Summary { metrics, ..*summary }, BTreeMap::new(), Pool::default(), Transient::Unknown)
            }
        };
        pool.add(&percentiles);
        summary.warnings.extend(warnings);
        Outcomes { summary, histograms, pool, transient, history }
    }
}

/// Plays `source` on `rig`, as [`play`] does, and says what that comes to.
pub fn drive<R: Rig>(
    rig: &mut R,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    identity: RunIdentity,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<Outcomes, SinkError> {
    play(rig, source, sink, identity, limits, observer).map(Played::finish)
}

/// Plays `source` on `rig` until every request has ended, the drain limit has passed, or the
/// observer stops it. Every request becomes exactly one row.
pub fn play<R: Rig>(
    rig: &mut R,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    identity: RunIdentity,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<Played, SinkError> {
    let mut drive = Drive {
        rig,
        source,
        limits,
        queue: EventQueue::new(),
        in_flight: Slab::new(),
        expected: Expected::default(),
        ended: Vec::new(),
        recorder: Recorder {
            sink,
            summarizer: summarizer(identity, limits),
            keeper: Keeper::new(limits.spans),
            audit: Audit::default(),
            stopped_at: Time::ZERO,
            unloaded: UnloadedCache::default(),
        },
        sampler: Sampler::new(limits.series),
        window: Window::default(),
        progress: Progress::default(),
        own_memory: Vec::new(),
    };
    drive.begin();
    let ending = drive.run(observer)?;
    drive.give_up_the_rest(ending)?;
    Ok(drive.finish(ending))
}

fn summarizer(identity: RunIdentity, limits: &Limits) -> Summarizer {
    let summarizer = match limits.warm_up {
        WarmUp::Time(span) => Summarizer::new(identity, Time::ZERO + span),
        WarmUp::Requests(_) => Summarizer::warming_up(identity),
    };
    match limits.first_fault {
        Some(at) => summarizer.with_first_fault(at),
        None => summarizer,
    }
}

/// Has what an event will need fetched from memory.
struct Prefetching<'a, R> {
    rig: &'a R,
    in_flight: &'a Slab<InFlight>,
    arrivals: &'a Slab<Arrival>,
}

impl<R: Rig> Prefetcher<Event<R::Event>> for Prefetching<'_, R> {
    #[inline(always)]
    fn prefetch(&self, soon: Soon, event: &Event<R::Event>) {
        match event {
            Event::Rig(event) => {
                if let Some(ticket) = self.rig.prefetch(soon, *event) {
                    self.in_flight.prefetch(ticket.0);
                }
            }
            Event::Arrival(slot) => {
                if let Some(arrival) = self.arrivals.get(*slot) {
                    self.rig.prefetch_issue(soon, &arrival.request);
                }
            }
        }
    }
}

impl Recorder<'_> {
    /// Settles the ledger of a request that has ended, and writes its row.
    #[inline]
    fn write<R: Rig>(
        &mut self,
        (rig, limits): (&R, &Limits),
        InFlight { request, intended }: InFlight,
        ended: &mut Ended,
    ) -> Result<(), SinkError> {
        let unloaded = self.unloaded(rig, limits, &request);
        let Ended { outcome, start, end, ref mut ledger, .. } = *ended;
        let settled = ledger.settle(end);
        let row = Row {
            request: request.id,
            operation: request.operation,
            source: request.source,
            target: request.target,
            address: request.address,
            bytes: request.bytes,
            outcome,
            intended,
            start,
            end,
            unloaded,
            measured: !limits.is_warm_up(&request, intended),
            spans: settled.spans,
        };
        self.stopped_at = self.stopped_at.max(row.end);
        self.audit.add(&settled, row.counts());
        self.summarizer.row(&row);
        self.sink.row(&row)?;
        self.keeper.take(&row, settled.entries, self.sink)
    }

    /// Zero if it is not known.
    fn unloaded<R: Rig>(&mut self, rig: &R, limits: &Limits, request: &Request) -> Span {
        if request.source == request.target {
            return Dram::new(limits.memory).submit(Time::ZERO, request.bytes).saturating_since(Time::ZERO);
        }
        self.unloaded.get(rig, request).unwrap_or(Span::ZERO)
    }
}

impl<R: Rig> Drive<'_, R> {
    fn begin(&mut self) {
        // What was counted while drives were prepared is no part of the run.
        self.begin_window(Time::ZERO);
        let mut first = Vec::new();
        self.source.start(&mut first);
        self.window.backlog = (!self.source.awaits_an_end(Time::ZERO)).then(Backlog::default);
        for arrival in first {
            self.expect(arrival);
        }
        self.with_rig(Time::ZERO, false, |rig, context| rig.start(context));
    }

    /// Executes events until the run ends.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<Ending, SinkError> {
        while self.expected.arrivals.len() > 0 || self.live() > 0 {
            let Some((now, event)) = self.next_event() else { return Ok(self.ending_without_events()) };
            if self.expected.arrivals.len() == 0
                && now.saturating_since(self.expected.last) > self.limits.drain
                && let Some(ending) = self.ending_by_time(now)
            {
                return Ok(ending);
            }
            if self.sampler.is_due(now) {
                self.sample_until(now)?;
            }
            self.progress.events += 1;
            self.progress.now = now;
            match event {
                Event::Arrival(slot) => self.arrive(now, slot),
                Event::Rig(event) => self.with_rig(now, false, |rig, context| rig.on(event, context)),
            }
            self.settle(now)?;
            if self.progress.events.is_multiple_of(EVENTS_BETWEEN_REPORTS)
                && observer.progress(&self.progress) == Flow::Stop
            {
                self.recorder.stopped_at = self.recorder.stopped_at.max(now);
                return Ok(Ending::Stopped);
            }
        }
        Ok(Ending::Complete)
    }

    /// Takes the samples that are due before the events of `now`.
    #[cold]
    fn sample_until(&mut self, now: Time) -> Result<(), SinkError> {
        while self.sampler.is_due(now) {
            let (rig, at) = (&*self.rig, self.sampler.due());
            self.sampler.sample(|probe| rig.sample(at, probe), self.recorder.sink)?;
        }
        Ok(())
    }

    /// Takes the samples up to the end of the run, and one of its end.
    fn end_series(&mut self) -> Result<(), SinkError> {
        if !self.sampler.is_on() {
            return Ok(());
        }
        let stopped_at = self.recorder.stopped_at;
        self.sample_until(stopped_at)?;
        // A sample shows what was before its time: this one, all events of the run.
        let (rig, at) = (&*self.rig, stopped_at + Span::ps(1));
        self.sampler.finish(at, |probe| rig.sample(at, probe), self.recorder.sink)
    }

    /// Nothing can happen any more, and requests are open: a loop that waits for them has stalled.
    fn ending_without_events(&self) -> Ending {
        if self.source.awaits_an_end(self.progress.now) { Ending::Stalled } else { Ending::Complete }
    }

    /// The drain limit has passed since the last arrival. That ends a run whose load is exhausted;
    /// a closed loop that waits for its slots goes on until it counts as stalled.
    fn ending_by_time(&mut self, now: Time) -> Option<Ending> {
        let (limit, ending) = if self.source.awaits_an_end(now) {
            (self.limits.drain.max(STALLED_AFTER), Ending::Stalled)
        } else {
            (self.limits.drain, Ending::Complete)
        };
        if now.saturating_since(self.expected.last) <= limit {
            return None;
        }
        self.recorder.stopped_at = self.recorder.stopped_at.max(self.expected.last + limit);
        Some(ending)
    }

    #[inline(always)]
    fn next_event(&mut self) -> Option<(Time, Event<R::Event>)> {
        if !R::PREFETCHES {
            return self.queue.pop();
        }
        let prefetching =
            Prefetching { rig: &*self.rig, in_flight: &self.in_flight, arrivals: &self.expected.arrivals };
        self.queue.pop_prefetching(&prefetching)
    }

    fn live(&self) -> u64 {
        self.progress.offered - self.progress.ended
    }

    fn with_rig(&mut self, now: Time, keeps_spans: bool, act: impl FnOnce(&mut R, &mut Context<'_, R::Event>)) {
        let least_kept = self.recorder.keeper.least();
        let mut context = Context { queue: &mut self.queue, ended: &mut self.ended, now, keeps_spans, least_kept };
        act(self.rig, &mut context);
    }

    fn expect(&mut self, arrival: Arrival) {
        self.rig.prefetch_request(&arrival.request);
        let at = arrival.at;
        let slot = self.expected.arrivals.insert(arrival);
        self.expected.is_exhausted = false;
        self.queue.push_aside(at, Event::Arrival(slot));
    }

    fn arrive(&mut self, now: Time, slot: u32) {
        let arrival = self.expected.arrivals.remove(slot);
        self.expected.last = now;
        if !self.window.is_open && !self.limits.is_warm_up(&arrival.request, now) {
            self.window.busy_at_warm_up = Some((now, self.link_busy()));
            self.end_warm_up(now);
        }
        if let Some(next) = self.source.after_arrival(&arrival) {
            self.expect(next);
        }
        let underway = self.live();
        if let Some(backlog) = self.window.backlog.as_mut().filter(|_| self.window.is_open) {
            backlog.add(underway);
        }
        self.progress.offered += 1;
        self.sampler.begins();
        let ticket = Ticket(self.in_flight.insert(InFlight { request: arrival.request, intended: now }));
        let keeps_spans = self.recorder.keeper.wants(arrival.request.id);
        if arrival.request.source == arrival.request.target {
            return self.access_own_memory(now, ticket, &arrival.request, keeps_spans);
        }
        self.with_rig(now, keeps_spans, |rig, context| rig.issue(ticket, &arrival.request, now, context));
    }

    /// A request that no network carries ends when the node's memory has served it, at once as far
    /// as the rig is concerned.
    fn access_own_memory(&mut self, now: Time, ticket: Ticket, request: &Request, keeps_spans: bool) {
        let node = request.source.index();
        if self.own_memory.len() <= node {
            self.own_memory.resize(node + 1, Dram::new(self.limits.memory));
        }
        let end = self.own_memory[node].submit(now, request.bytes);
        let mut ledger = Ledger::open(now, keeps_spans);
        ledger.claim(SpanKind::Memory, now, end, Place::Memory(request.source.0));
        self.ended.push(Ended { ticket, outcome: Outcome::Finished, start: now, end, label: Span::ZERO, ledger });
    }

    fn end_warm_up(&mut self, now: Time) {
        self.window.is_open = true;
        if let WarmUp::Requests(_) = self.limits.warm_up {
            self.recorder.summarizer.begin(now);
        }
        if !self.limits.warm_up.is_none() {
            self.rig.end_warm_up(now);
            self.begin_window(now);
        }
    }

    /// Metrics count from now on.
    fn begin_window(&mut self, now: Time) {
        self.rig.measure(now, &mut self.window.meter);
        self.window.meter.begin_window();
    }

    /// Writes the rows of what has just ended and lets a closed loop go on.
    fn settle(&mut self, now: Time) -> Result<(), SinkError> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let mut ended = std::mem::take(&mut self.ended);
        for end in &mut ended {
            let open = self.in_flight.remove(end.ticket.0);
            self.progress.ended += 1;
            let ends_at = end.end - end.label;
            self.recorder.write((&*self.rig, self.limits), open, end)?;
            if self.sampler.is_on() {
                self.sampler.ends(end.end, &open.request, end.outcome);
            }
            match self.source.after_end(ends_at.max(now), &open.request) {
                Some(next) => self.expect(next),
                None if self.expected.arrivals.len() == 0 && !self.expected.is_exhausted => {
                    self.expected.is_exhausted = true;
                    self.window.busy_at_end = Some((now, self.link_busy()));
                }
                None => {}
            }
        }
        ended.clear();
        self.ended = ended;
        Ok(())
    }

    /// Requests without an end become rows too. Where their time went is not known.
    fn give_up_the_rest(&mut self, ending: Ending) -> Result<(), SinkError> {
        let stopped_at = self.recorder.stopped_at.max(self.progress.now);
        self.recorder.stopped_at = stopped_at;
        self.end_series()?;
        let is_broken = self.limits.first_fault.is_some_and(|at| at <= stopped_at);
        let outcome = if is_broken && ending != Ending::Stopped { Outcome::Unavailable } else { Outcome::Unfinished };
        let open: Vec<(u32, InFlight)> = self.in_flight.iter().map(|(ticket, open)| (ticket, *open)).collect();
        for (ticket, open) in open {
            let (ticket, start, end) = (Ticket(ticket), open.intended, stopped_at);
            let mut ended =
                Ended { ticket, outcome, start, end, label: Span::ZERO, ledger: Ledger::open(start, false) };
            self.recorder.write((&*self.rig, self.limits), open, &mut ended)?;
        }
        self.recorder.keeper.finish(self.recorder.sink)
    }

    fn link_busy(&self) -> Vec<Span> {
        let mut busy = Vec::new();
        self.rig.link_busy(&mut busy);
        busy
    }

    /// The busiest link's share of the time between the end of the warm-up and the end of arrivals.
    /// Links book ahead, so a saturated one may come out a little above one: it is one.
    fn busiest_link(&mut self) -> f64 {
        let (end, at_end) =
            self.window.busy_at_end.take().unwrap_or_else(|| (self.recorder.stopped_at, self.link_busy()));
        let (start, at_start) = self.window.busy_at_warm_up.take().unwrap_or((Time::ZERO, Vec::new()));
        let window = end.saturating_since(start);
        if window == Span::ZERO {
            return 0.0;
        }
        let before = at_start.into_iter().chain(std::iter::repeat(Span::ZERO));
        let used = at_end.into_iter().zip(before).map(|(after, before)| after - before).max();
        used.unwrap_or(Span::ZERO).ratio(window).min(1.0)
    }

    fn finish(mut self, ending: Ending) -> Played {
        // A run that stopped in its warm-up has measured nothing.
        if !self.window.is_open {
            self.end_warm_up(self.recorder.stopped_at);
        }
        self.rig.measure(self.recorder.stopped_at, &mut self.window.meter);
        let facts = RunFacts {
            offered: self.progress.offered,
            not_issued: 0,
            not_issued_bytes_in_window: Bytes::ZERO,
            dropped_packets: self.rig.dropped_packets(),
            window_end: self.expected.last,
            stopped_at: self.recorder.stopped_at,
            busiest_link: self.busiest_link(),
            events: self.progress.events,
            planned_load: self.limits.planned_load,
            backlog_growth: self.window.backlog.as_ref().and_then(Backlog::growth),
            metrics: BTreeMap::new(),
            audit: std::mem::take(&mut self.recorder.audit),
            partial: ending == Ending::Stopped,
            stalled: ending == Ending::Stalled,
        };
        if let Some(warning) = self.sampler.warning() {
            self.window.meter.warn(warning);
        }
        let counted = Counted::Requests { facts: Box::new(facts), summarizer: Box::new(self.recorder.summarizer) };
        Played { meter: self.window.meter, history: None, counted }
    }
}
