//! The part of a simulation that is the same for every design.

use crate::support;

use crate::support::{Plain, Script, play, testbed};
use base::{Bytes, NodeId, Operation, Request, Seed, Span, Time};
use record::metric::Meter;
use record::{Ledger, Outcome, Place, RunIdentity, SpanKind, Summary};
use sim::drive::{Context, Ended, Limits, Rig, Ticket, Unobserved, drive};
use sim::rigs::edm::EdmRig;
use workload::{Arrival, Arrivals, Class, Generator, Pattern, SizeDistribution, Source};

/// Fixed requests, one of which is followed by another when it has ended: a storage block is read
/// and then written.
struct Followed {
    script: Script,
    read: u64,
    write: Request,
}

impl Source for Followed {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        self.script.start(out);
    }
    fn after_arrival(&mut self, taken: &Arrival) -> Option<Arrival> {
        self.script.after_arrival(taken)
    }
    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        (finished.id.0 == self.read).then_some(Arrival { at: now, request: self.write })
    }
}

#[test]
fn arrivals_have_not_ended_while_the_end_of_a_read_brings_a_write() {
    let asked: [Plain; 2] = [(Time::ns(1), 0, 1, Operation::Read, 8), (Time::ns(2), 0, 1, Operation::Read, 2_000)];
    let mut arrivals = Vec::new();
    Script::new(&[(Time::ZERO, 0, 1, Operation::Write, 100_000)]).start(&mut arrivals);
    let write = Request { id: base::RequestId(2), ..arrivals[0].request };
    let mut source = Followed { script: Script::new(&asked), read: 1, write };

    let (rows, summary) = play(&mut EdmRig::new(testbed()), &mut source);

    // The first read ends long before the second one, which brings the write: 32 us of the uplink,
    // beside which all else is short.
    assert_eq!(rows.iter().map(|row| row.request.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows[2].latency() > Span::us(32));
    assert!(summary.load.busiest_link > 0.9, "{}", summary.load.busiest_link);
}

/// Answers its first `answers` requests, each `after` it was issued, and no other.
struct Dying {
    answers: u64,
    after: Span,
    /// Something of its own happens so often, whether it answers or not.
    tick: Option<Span>,
}

#[derive(Clone, Copy)]
enum Happens {
    End(Ticket, Time),
    Tick,
}

impl Rig for Dying {
    type Event = Happens;
    fn start(&mut self, context: &mut Context<'_, Happens>) {
        self.tick.into_iter().for_each(|tick| context.after(tick, Happens::Tick));
    }
    fn issue(&mut self, ticket: Ticket, request: &Request, intended: Time, context: &mut Context<'_, Happens>) {
        if request.id.0 < self.answers {
            context.after(self.after, Happens::End(ticket, intended));
        }
    }
    fn on(&mut self, event: Happens, context: &mut Context<'_, Happens>) {
        let Happens::End(ticket, start) = event else { return self.start(context) };
        let mut ledger = Ledger::open(start, false);
        ledger.claim(SpanKind::Wait, start, context.now, Place::Nowhere);
        context.end(Ended { ticket, outcome: Outcome::Finished, start, end: context.now, label: Span::ZERO, ledger });
    }
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        Some(self.after)
    }
    fn link_busy(&self, _: &mut Vec<Span>) {}
    fn dropped_packets(&self) -> u64 {
        0
    }
    fn measure(&self, _: Time, _: &mut Meter) {}
}

/// A closed loop of two slots and ten requests on such a rig. The drain limit is 100 ms.
fn closed_loop(rig: Dying, duration: Option<Span>) -> Summary {
    closed_loop_with_a_fault(rig, duration, None)
}

fn closed_loop_with_a_fault(mut rig: Dying, duration: Option<Span>, first_fault: Option<Time>) -> Summary {
    let size = SizeDistribution::Constant { bytes: Bytes::new(64) };
    let config = workload::Config {
        nodes: 2,
        pattern: Pattern::Incast { target: NodeId(1), sources: 1 },
        mix: vec![Class { operation: Operation::Read, weight: 1.0, size }],
        local_fraction: 0.0,
        arrivals: Arrivals::Closed { depth: 2, think: Span::ZERO },
        requests: Some(10),
        duration,
    };
    let mut source = Generator::new(&config, Seed(1));
    let limits = Limits { first_fault, ..support::limits(Span::ZERO) };
    let played = drive(&mut rig, &mut source, &mut Vec::new(), RunIdentity::default(), &limits, &mut Unobserved);
    played.expect("a vector takes every row").summary
}

#[test]
fn a_closed_loop_whose_slots_all_wait_longer_than_the_drain_limit_goes_on() {
    for tick in [None, Some(Span::ms(1))] {
        let summary = closed_loop(Dying { answers: 10, after: Span::ms(150), tick }, None);
        // The last two are offered at 600 ms, and the drain limit of 100 ms counts from there.
        assert_eq!((summary.counts.offered, summary.counts.finished), (10, 8));
        assert!(!summary.partial, "{:?}", summary.warnings);
    }
}

#[test]
fn a_closed_loop_that_waits_for_ever_is_partial_and_says_so() {
    for (tick, stalled_at) in [(None, "150ms"), (Some(Span::ms(1)), "10150ms")] {
        let summary = closed_loop(Dying { answers: 2, after: Span::ms(150), tick }, None);
        assert_eq!((summary.counts.offered, summary.counts.finished), (4, 2));
        assert!(summary.partial);
        let said = format!(
            "the run stalled at {stalled_at}: the closed loop waits for 2 requests that do not end, and offered only 4"
        );
        assert!(summary.warnings.contains(&said), "{:?}", summary.warnings);
    }
}

#[test]
fn a_closed_loop_that_has_offered_all_of_its_load_is_whole_though_some_of_it_never_ends() {
    let by_number = closed_loop(Dying { answers: 9, after: Span::ms(1), tick: Some(Span::ms(1)) }, None);
    assert_eq!((by_number.counts.offered, by_number.counts.in_flight_at_end), (10, 1));
    assert!(!by_number.partial);
    let by_time = closed_loop(Dying { answers: 2, after: Span::ms(1), tick: Some(Span::ms(1)) }, Some(Span::ms(50)));
    assert_eq!((by_time.counts.offered, by_time.counts.in_flight_at_end), (4, 2));
    assert!(!by_time.partial, "{:?}", by_time.warnings);
}

#[test]
fn what_is_waited_for_in_vain_after_a_fault_is_unavailable_and_not_unfinished() {
    let dying = || Dying { answers: 9, after: Span::ms(1), tick: Some(Span::ms(1)) };
    let broken = closed_loop_with_a_fault(dying(), None, Some(Time::ms(3)));
    assert_eq!((broken.counts.unavailable, broken.counts.in_flight_at_end), (1, 0));
    // Two slots, a request a millisecond each: six ended before the fault or at it, of which two at
    // it.
    let availability = broken.availability.expect("something broke");
    assert_eq!((availability.requests, availability.unserved, availability.recovery_ns), (6, 1, None));
    assert_eq!(availability.fraction, 1.0 - 1.0 / 6.0);
    let after_the_end = closed_loop_with_a_fault(dying(), None, Some(Time::ZERO + Span::secs(1)));
    assert_eq!((after_the_end.counts.unavailable, after_the_end.counts.in_flight_at_end), (0, 1));
    assert_eq!((after_the_end.availability, closed_loop(dying(), None).availability), (None, None));
}
