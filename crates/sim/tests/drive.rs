//! The part of a simulation that is the same for every design.

mod support;

use base::{Operation, Request, Span, Time};
use sim::rigs::edm::EdmRig;
use std::collections::BTreeMap;
use support::{Plain, Script, play, testbed};
use workload::{Arrival, Source};

/// Fixed requests, one of which is followed by another when it has ended: a storage block is read and then written.
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
    fn extra(&self, out: &mut BTreeMap<String, f64>) {
        out.insert("followed".into(), 1.0);
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

    // The first read ends long before the second one, which brings the write: 32 us of the uplink, beside which all else is short.
    assert_eq!(rows.iter().map(|row| row.request.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows[2].latency() > Span::us(32));
    assert!(summary.load.busiest_link > 0.9, "{}", summary.load.busiest_link);
    assert_eq!(summary.extra.get("followed"), Some(&1.0), "what only the load can tell");
}
