//! Do metrics cover the window that they are declared for, in every rig?

use crate::racks;
use crate::support;

use crate::support::Script;
use base::{Bytes, Operation, Request, Span, Time};
use record::metric::{self, Form, Meter, Window};
use record::{Ledger, Outcome, Place, RunIdentity, SpanKind};
use sim::drive::{Context, Ended, Limits, Rig, Ticket, Unobserved, WarmUp, drive};
use sim::{RunOptions, run};
use std::collections::BTreeMap;

type Metrics = BTreeMap<String, f64>;

/// Answers each request after a microsecond, and counts. It has counted before the run.
#[derive(Default)]
struct Counting {
    prepared: u64,
    asked: u64,
    under_way: u64,
    under_way_max: u64,
}

impl Rig for Counting {
    type Event = Ticket;
    fn issue(&mut self, ticket: Ticket, _: &Request, _: Time, context: &mut Context<'_, Ticket>) {
        self.asked += 1;
        self.under_way += 1;
        self.under_way_max = self.under_way_max.max(self.under_way);
        context.after(Span::us(1), ticket);
    }
    fn on(&mut self, ticket: Ticket, context: &mut Context<'_, Ticket>) {
        self.under_way -= 1;
        let (start, end) = (context.now - Span::us(1), context.now);
        let mut ledger = Ledger::open(start, false);
        ledger.claim(SpanKind::Wait, start, end, Place::Nowhere);
        context.end(Ended { ticket, outcome: Outcome::Finished, start, end, label: Span::ZERO, ledger });
    }
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        Some(Span::us(1))
    }
    fn link_busy(&self, _: &mut Vec<Span>) {}
    fn dropped_packets(&self) -> u64 {
        0
    }
    fn measure(&self, now: Time, meter: &mut Meter) {
        let asked = (self.prepared + self.asked) as f64;
        meter.count(metric::gets, asked);
        meter.count(metric::keys_checked, asked);
        meter.ratio(metric::ssd_iops, asked, now.saturating_since(Time::ZERO).as_secs_f64());
        meter.put(metric::tokens_waiting_max, self.under_way_max as f64);
    }
    fn end_warm_up(&mut self, _: Time) {
        self.under_way_max = self.under_way;
    }
}

/// Six requests at once, then four of 10 us each that follow each other, from 20 us on.
fn counted(warm_up: WarmUp) -> Metrics {
    let at = |us: u64| (Time::us(us), 0, 1, Operation::Read, 64);
    let asked: Vec<_> = (0..6).map(|_| at(1)).chain((0..4).map(|number| at(20 + 10 * number))).collect();
    let limits = Limits { warm_up, ..support::limits(Span::ZERO) };
    let mut rig = Counting { prepared: 100, ..Counting::default() };
    let (mut source, mut rows) = (Script::new(&asked), Vec::new());
    let played = drive(&mut rig, &mut source, &mut rows, RunIdentity::default(), &limits, &mut Unobserved);
    played.expect("a vector takes every row").summary.metrics
}

fn expected(values: [(&str, f64); 4]) -> Metrics {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

#[test]
fn without_a_warm_up_metrics_cover_the_run_but_not_its_preparation() {
    let whole = [("gets", 10.0), ("keys_checked", 110.0), ("ssd_iops", 10.0 / 51e-6), ("tokens_waiting_max", 6.0)];
    for none in [WarmUp::Time(Span::ZERO), WarmUp::Requests(0)] {
        assert_eq!(counted(none), expected(whole));
    }
}

#[test]
fn a_warm_up_is_in_no_metric_but_those_of_the_whole_run() {
    // From 20 us to the end of the last request at 51 us.
    let rest = [("gets", 4.0), ("keys_checked", 110.0), ("ssd_iops", 4.0 / 31e-6), ("tokens_waiting_max", 1.0)];
    for six in [WarmUp::Time(Span::us(10)), WarmUp::Requests(6)] {
        let mut metrics = counted(six);
        let iops = metrics.get_mut("ssd_iops").expect("it is read");
        assert!((*iops / rest[2].1 - 1.0).abs() < 1e-9, "{iops}");
        *iops = rest[2].1;
        assert_eq!(metrics, expected(rest));
    }
}

#[test]
fn a_run_that_ends_in_its_warm_up_has_counted_nothing() {
    let nothing = counted(WarmUp::Requests(11));
    assert_eq!((nothing["gets"], nothing["ssd_iops"], nothing["keys_checked"]), (0.0, 0.0, 110.0));
}

/// A design's metrics on its rack, after a warm-up of so many of its 2,000 requests.
fn metrics_of(design: &str, rack: &str, warm_up: u64) -> Metrics {
    let rack = rack.replace("warm_up_requests = 0", &format!("warm_up_requests = {warm_up}"));
    let plan = racks::plan(design, &rack);
    let played = run(&plan, &RunOptions::default(), &mut record::Discard, &mut Unobserved);
    played.expect("a sound plan").summary.metrics
}

#[test]
fn in_every_design_metrics_cover_their_window() {
    for (rack, design) in racks::all() {
        let (whole, half) = (metrics_of(&design, rack, 0), metrics_of(&design, rack, 1_000));
        assert!(!whole.is_empty() && whole.keys().eq(half.keys()), "{design}: {whole:?} {half:?}");
        let mut fewer = 0;
        for (name, whole) in &whole {
            let metric = metric::find(name).unwrap_or_else(|| panic!("{design}: {name} is not declared"));
            let half = half[name];
            let context = format!("{design}: {name} is {whole} in the run and {half} in its second half");
            match (metric.window, metric.form) {
                // The largest of several means can be larger in a part of the run.
                (Window::Measured, Form::Highest) if name.ends_with("_fraction") => {}
                (Window::Measured, Form::Highest) if name == "drive_depth_max" => {}
                (Window::Measured, Form::Count | Form::Highest) => assert!(half <= *whole, "{context}"),
                (Window::Measured, _) => {}
                _ => assert_eq!(half, *whole, "{context}"),
            }
            if metric.form == Form::Count && metric.window == Window::Measured && *whole > 100.0 {
                assert!((0.1..1.0).contains(&(half / whole)), "{context}");
                fewer += 1;
            }
        }
        assert!(fewer > 0, "{design}: {whole:?}");
    }
}

/// What the last requests of a run find is less than what all of them did.
#[test]
fn extremes_begin_anew_after_the_warm_up() {
    for (design, names) in [
        (
            "edm",
            &["longest_notification_queue", "longest_data_wait_at_switch_ns", "longest_request_wait_at_switch_ns"][..],
        ),
        ("san", &["in_flight_packets_max", "hop_queue_max_bytes"]),
        ("s-direct", &["nic_memory_highest_bytes", "fifo_highest_ratio"]),
    ] {
        let (rack, _) = racks::all().into_iter().find(|(_, known)| known == design).expect("it has one");
        let (whole, last) = (metrics_of(design, rack, 0), metrics_of(design, rack, 1_999));
        for name in names {
            assert!(last[*name] < whole[*name], "{design}: {name} is {} and was {}", last[*name], whole[*name]);
        }
    }
}
