//! The SAN: the CPU time per packet and hop, against the same load on the standard library's heap.
//! Also commands per CPU second of a whole switchless network with all traffic control enabled,
//! against the same network without any.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use crate::torus_load::{Agenda, Delivered, Due, TorusLoad};
use base::Time;
use kernel::EventQueue;
use plan::{NoFiles, Plan, parse};
use record::Discard;
use sim::drive::Unobserved;
use sim::{RunOptions, run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A torus under constant-rate flows between all pairs, with the expected results. The results are
/// those of `design/kernel.md`, which other simulators gave too.
#[derive(Clone, Copy)]
struct Work {
    key: &'static str,
    side: u32,
    until: Time,
    packets: u64,
    hops: u64,
    /// The sum of arrival times, if simulators agree on it.
    sum: Option<u64>,
    rounds: usize,
}

const WORKS: [Work; 2] = [
    Work {
        key: "san.t27_ns_per_hop",
        side: 3,
        until: Time::ms(10),
        packets: 1_428_223,
        hops: 2_966_303,
        sum: Some(0x0019_6132_e0d2_fa93),
        rounds: 5,
    },
    Work {
        key: "san.t512_ns_per_hop",
        side: 8,
        until: Time::ms(1),
        packets: 935_669,
        hops: 5_624_972,
        sum: None,
        rounds: 3,
    },
];

/// The usual event queue of the standard library: time, then a sequence number for ties, then the
/// event.
#[derive(Default)]
struct Heap {
    entries: BinaryHeap<Reverse<(Time, u64, Due)>>,
    sequence: u64,
}

impl Agenda for Heap {
    #[inline]
    fn push(&mut self, at: Time, event: Due) {
        self.entries.push(Reverse((at, self.sequence, event)));
        self.sequence += 1;
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, Due)> {
        self.entries.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

impl Work {
    /// Asserts the expected results: figures of other work would be useless.
    fn check(&self, delivered: Delivered) {
        let right = Delivered { packets: self.packets, hops: self.hops, sum: self.sum.unwrap_or(delivered.sum) };
        assert_eq!(delivered, right, "{} was not the work that it is called", self.key);
    }
    /// Creates a contender: nanoseconds of CPU time per hop.
    fn contender<A: Agenda + 'static>(self, key: String) -> Contender {
        let load = TorusLoad::new(self.side).expect("a whole torus has all its routes");
        let run = move || {
            let mut delivered = Delivered::default();
            let seconds = cpu_seconds(|| delivered = load.run::<A>(self.until));
            self.check(delivered);
            seconds * 1e9 / self.hops as f64
        };
        Contender { key, run: Box::new(run) }
    }
    fn group(self) -> Group {
        let ours = self.contender::<EventQueue<Due>>(self.key.to_owned());
        let theirs = self.contender::<Heap>(format!("{}.binaryheap", self.key));
        Group { better: Better::Lower, rounds: self.rounds, contenders: vec![ours, theirs] }
    }
}

/// Commands of 4 KiB, 70 % of them reads, in a closed loop on a torus of 27 nodes with a drive and
/// a client each.
const COMMANDS: u32 = 300_000;

fn plan(design: &str) -> Plan {
    let text = format!(
        "title = \"bench\"\ndesign.name = \"{design}\"\nfabric.kind = \"torus\"\nfabric.dimensions = [3, 3, 3]\nfabric.hosts = 27\n\
         drives.per_target = 1\ndrives.model = \"quick\"\nio.depth = 64\nio.write_share = 0.3\nrun.requests = {COMMANDS}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn commands() -> Group {
    let contenders = [("san", "san.commands_per_cpu_s"), ("san-plain", "san_plain.commands_per_cpu_s")];
    let contenders = contenders.map(|(design, key)| {
        let plan = plan(design);
        let run = move || {
            let seconds = cpu_seconds(|| {
                let outcomes = run(&plan, &RunOptions::default(), &mut Discard, &mut Unobserved);
                let finished = outcomes.expect("the network can be built").summary.counts.finished;
                assert_eq!(finished, u64::from(COMMANDS), "every command is served");
            });
            f64::from(COMMANDS) / seconds
        };
        Contender { key: key.to_owned(), run: Box::new(run) }
    });
    // More turns than elsewhere: cache misses dominate the cost of a command, and other processes
    // take memory bandwidth for seconds at a time.
    Group { better: Better::Higher, rounds: 9, contenders: contenders.into() }
}

/// Simulates a million commands in a cubic torus with a host and a drive at every node; each host
/// accesses every drive.
pub fn memory_child(side: u32) {
    let nodes = side.pow(3);
    let text = format!(
        "title = \"bench\"\ndesign.name = \"san\"\nfabric.kind = \"torus\"\nfabric.dimensions = [{side}, {side}, {side}]\n\
         fabric.hosts = {nodes}\ndrives.per_target = 1\ndrives.model = \"quick\"\nio.depth = 16\nio.write_share = 0.3\n\
         run.requests = 1000000\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = experiment.points(None).remove(0).plan;
    let outcomes = run(&plan, &RunOptions::default(), &mut Discard, &mut Unobserved);
    let finished = outcomes.expect("the network can be built").summary.counts.finished;
    assert_eq!(finished, 1_000_000, "every command is served");
}

/// Returns the hops of two tori, and a whole network.
pub fn benchmarks() -> Vec<Group> {
    WORKS.map(Work::group).into_iter().chain([commands()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_deliver_the_same_packets_at_the_same_times() {
        let load = TorusLoad::new(4).expect("a whole torus");
        let ours = load.run::<EventQueue<Due>>(Time::us(200));
        assert_eq!(load.run::<Heap>(Time::us(200)), ours);
        assert!(ours.hops > 10_000, "{ours:?}");
    }

    #[test]
    #[should_panic(expected = "was not the work")]
    fn a_wrong_sum_gives_no_figure() {
        let [t27, _] = WORKS;
        t27.check(Delivered { packets: t27.packets, hops: t27.hops, sum: 1 });
    }
}
