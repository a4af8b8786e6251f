//! The generator as a host drives it.

use base::{Bytes, NodeId, Operation, Request, RequestId, Seed, Span, Stream, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use workload::{Arrival, Arrivals, Class, Config, Generator, Pattern, SizeDistribution, Source, TraceMessage, profile};

fn class(operation: Operation, weight: f64, bytes: u64) -> Class {
    Class { operation, weight, size: SizeDistribution::Constant { bytes: Bytes::new(bytes) } }
}

/// Eight nodes, all to all, half reads half writes of 64 bytes, Poisson with a mean gap of 1 us.
fn config() -> Config {
    Config {
        nodes: 8,
        pattern: Pattern::AllToAll,
        local_fraction: 0.0,
        mix: vec![class(Operation::Read, 1.0, 64), class(Operation::Write, 1.0, 64)],
        arrivals: Arrivals::Poisson { mean_gap_ps: 1e6 },
        requests: Some(10_000),
        duration: None,
    }
}

/// Every arrival of an open loop or a trace, each taken when it is handed out.
fn play(config: &Config, seed: u64) -> Vec<Arrival> {
    let mut generator = Generator::new(config, Seed(seed));
    let mut taken = Vec::new();
    generator.start(&mut taken);
    while let Some(next) = taken.last().and_then(|last| generator.after_arrival(last)) {
        taken.push(next);
    }
    assert_eq!(generator.made(), taken.len() as u64);
    taken
}

fn times(arrivals: &[Arrival]) -> Vec<Time> {
    arrivals.iter().map(|arrival| arrival.at).collect()
}

fn open_loops() -> [Arrivals; 3] {
    [
        Arrivals::Poisson { mean_gap_ps: 1e6 },
        Arrivals::Deterministic { gap_ps: 1e6 },
        Arrivals::OnOff { mean_gap_ps: 5e5, on: Span::us(10), off: Span::us(10) },
    ]
}

mod limits {
    use super::*;

    #[test]
    fn exactly_the_earliest_requests_are_made_and_numbered_in_order_of_time() {
        for arrivals in open_loops() {
            let limited = play(&Config { arrivals: arrivals.clone(), ..config() }, 1);
            assert_eq!(limited.len(), 10_000);
            assert!(limited.is_sorted_by_key(|arrival| arrival.at));
            assert!(limited.iter().map(|arrival| arrival.request.id).eq((0..10_000).map(RequestId)));
            let longer = play(&Config { arrivals, requests: Some(11_000), ..config() }, 1);
            assert_eq!(limited, longer[..10_000]);
        }
    }

    #[test]
    fn the_duration_keeps_every_request_that_starts_before_it_and_no_other() {
        for arrivals in open_loops() {
            let all = play(&Config { arrivals: arrivals.clone(), ..config() }, 1);
            let last = all[5_000].at;
            let until =
                |end| Config { arrivals: arrivals.clone(), duration: Some(Span::ps(end)), requests: None, ..config() };
            let before = all.partition_point(|arrival| arrival.at < last);
            assert_eq!(play(&until(last.as_ps()), 1), all[..before]);
            let with_it = all.partition_point(|arrival| arrival.at <= last);
            assert_eq!(play(&until(last.as_ps() + 1), 1), all[..with_it]);
        }
    }

    #[test]
    fn whichever_limit_comes_first_ends_the_run() {
        let short = Config { duration: Some(Span::us(100)), ..config() };
        assert!(play(&short, 1).len() < 1_200);
        assert_eq!(play(&Config { requests: Some(100), ..short }, 1).len(), 100);
    }

    #[test]
    fn an_exhausted_workload_stays_exhausted() {
        let mut generator = Generator::new(&Config { requests: Some(1), ..config() }, Seed(1));
        let mut first = Vec::new();
        generator.start(&mut first);
        assert_eq!(generator.after_arrival(&first[0]), None);
        assert_eq!(generator.after_arrival(&first[0]), None);
        assert_eq!(generator.after_end(Time::us(1), &first[0].request), None);
    }
}

mod rates {
    use super::*;

    #[test]
    fn the_mean_load_is_the_configured_one() {
        let requests = Some(400_000);
        for (arrivals, tolerance) in open_loops().into_iter().zip([0.01, 0.0001, 0.05]) {
            let taken = play(&Config { nodes: 144, arrivals: arrivals.clone(), requests, ..config() }, 3);
            let per_us = taken.len() as f64 / taken.last().unwrap().at.as_secs_f64() / 1e6;
            assert!((per_us / 144.0 - 1.0).abs() < tolerance, "{per_us} {arrivals:?}");
        }
    }

    #[test]
    fn every_node_has_its_share_and_every_target_too() {
        let taken = play(&Config { requests: Some(80_000), ..config() }, 3);
        let mut pairs: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
        for Arrival { request, .. } in &taken {
            *pairs.entry((request.source, request.target)).or_default() += 1;
        }
        assert_eq!(pairs.len(), 8 * 7);
        // Binomial with mean 1429 and standard deviation 37.5: four of them to each side.
        assert!(pairs.values().all(|count| (1_279..1_579).contains(count)), "{pairs:?}");
    }

    #[test]
    fn gaps_of_one_node_are_independent_of_the_next() {
        let taken = play(&Config { nodes: 2, requests: Some(200_000), ..config() }, 3);
        let own: Vec<f64> =
            taken.iter().filter(|a| a.request.source == NodeId(0)).map(|a| a.at.as_ps() as f64).collect();
        let gaps: Vec<f64> = own.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let product = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((product / mean.powi(2)).abs() < 0.015, "the serial correlation is none: {product}");
    }

    #[test]
    fn the_mix_has_its_shares() {
        let mix =
            vec![class(Operation::Read, 3.0, 64), class(Operation::Write, 1.0, 4096), class(Operation::Write, 0.0, 1)];
        let taken = play(&Config { mix, ..config() }, 3);
        let reads = taken.iter().filter(|arrival| arrival.request.operation == Operation::Read).count();
        assert!((7_300..7_700).contains(&reads), "{reads}");
        let size = |operation| if operation == Operation::Read { Bytes::new(64) } else { Bytes::new(4096) };
        assert!(taken.iter().all(|arrival| arrival.request.bytes == size(arrival.request.operation)));
    }

    #[test]
    fn a_request_is_as_large_whatever_it_asks_and_of_whom() {
        let sizes = || SizeDistribution::Table { entries: vec![(Bytes::new(64), 1.0), (Bytes::new(4096), 1.0)] };
        let of = |operation| Class { operation, weight: 1.0, size: sizes() };
        let taken = play(&Config { mix: vec![of(Operation::Read), of(Operation::Write)], ..config() }, 3);
        let large_share = |keep: &dyn Fn(&Request) -> bool| {
            let kept: Vec<&Request> =
                taken.iter().map(|arrival| &arrival.request).filter(|request| keep(request)).collect();
            kept.iter().filter(|request| request.bytes == Bytes::new(4096)).count() as f64 / kept.len() as f64
        };
        // 5,000 requests on each side: a standard deviation of 0.007.
        assert!((large_share(&|request| request.operation == Operation::Read) - 0.5).abs() < 0.03);
        assert!((large_share(&|request| request.target.0 < 4) - 0.5).abs() < 0.03);
        assert!((large_share(&|request| request.source.0 < 4) - 0.5).abs() < 0.03);
    }
}

mod seeds {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_requests_and_another_seed_others() {
        for arrivals in open_loops() {
            let config = Config { arrivals, ..config() };
            assert_eq!(play(&config, 1), play(&config, 1));
            assert_ne!(play(&config, 1), play(&config, 2));
        }
    }

    #[test]
    fn other_sizes_and_another_mix_shift_neither_times_nor_targets() {
        let plain = play(&config(), 1);
        let mix = vec![Class { operation: Operation::Write, weight: 2.0, size: profile("hadoop").unwrap() }];
        let other = play(&Config { mix, ..config() }, 1);
        assert_eq!(times(&plain), times(&other));
        let targets = |arrivals: &[Arrival]| arrivals.iter().map(|arrival| arrival.request.target).collect::<Vec<_>>();
        assert_eq!(targets(&plain), targets(&other));
        assert!(other.iter().any(|arrival| arrival.request.bytes > Bytes::new(5840)));
    }

    #[test]
    fn one_node_more_shifts_none_of_the_others_times() {
        let of_first_eight = |nodes| {
            let taken = play(&Config { nodes, duration: Some(Span::us(500)), requests: None, ..config() }, 1);
            let own = taken.into_iter().filter(|arrival| arrival.request.source.0 < 8);
            own.map(|arrival| (arrival.at, arrival.request.source)).collect::<Vec<_>>()
        };
        assert_eq!(of_first_eight(8), of_first_eight(9));
    }
}

mod patterns {
    use super::*;

    fn pairs(pattern: Pattern) -> BTreeMap<u32, Vec<u32>> {
        let mut pairs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for Arrival { request, .. } in play(&Config { pattern, ..config() }, 1) {
            let targets = pairs.entry(request.source.0).or_default();
            if !targets.contains(&request.target.0) {
                targets.push(request.target.0);
            }
        }
        pairs.values_mut().for_each(|targets| targets.sort_unstable());
        pairs
    }

    #[test]
    fn in_a_role_split_compute_nodes_ask_memory_nodes() {
        let pairs = pairs(Pattern::RoleSplit { compute: 3 });
        assert!(pairs.keys().eq(&[0, 1, 2]));
        assert!(pairs.values().all(|targets| *targets == [3, 4, 5, 6, 7]), "{pairs:?}");
    }

    #[test]
    fn in_an_incast_the_first_sources_ask_one() {
        let pairs = pairs(Pattern::Incast { target: NodeId(1), sources: 3 });
        assert!(pairs.keys().eq(&[0, 2, 3]));
        assert!(pairs.values().all(|targets| *targets == [1]), "{pairs:?}");
    }

    #[test]
    fn in_a_permutation_each_asks_one_and_is_asked_by_one() {
        let pairs = pairs(Pattern::Permutation);
        assert!(pairs.keys().copied().eq(0..8));
        let mut targets: Vec<u32> = pairs.values().flatten().copied().collect();
        targets.sort_unstable();
        assert!(targets.into_iter().eq(0..8), "{pairs:?}");
        assert!(pairs.iter().all(|(source, targets)| *source != targets[0]));
    }
}

mod closed_loop {
    use super::*;

    /// A design that answers after a random latency. Checks on every step that no node has more
    /// than `depth` requests out.
    struct Bench {
        generator: Generator,
        latency: Stream,
        /// Starts (false) and ends (true), by time.
        events: BinaryHeap<Reverse<(Time, bool, RequestId)>>,
        requests: BTreeMap<RequestId, Request>,
        out: BTreeMap<NodeId, u32>,
        /// Starts and ends of all requests of node 0.
        log: Vec<(Time, bool)>,
    }

    impl Bench {
        fn new(config: &Config) -> Bench {
            let mut bench = Bench {
                generator: Generator::new(config, Seed(4)),
                latency: Seed(4).stream("test/latency"),
                events: BinaryHeap::new(),
                requests: BTreeMap::new(),
                out: BTreeMap::new(),
                log: Vec::new(),
            };
            let mut first = Vec::new();
            bench.generator.start(&mut first);
            first.into_iter().for_each(|arrival| bench.plan(arrival));
            bench
        }

        fn plan(&mut self, arrival: Arrival) {
            self.requests.insert(arrival.request.id, arrival.request);
            self.events.push(Reverse((arrival.at, false, arrival.request.id)));
        }

        fn run(&mut self, depth: u32) {
            while let Some(Reverse((now, is_end, id))) = self.events.pop() {
                let request = self.requests[&id];
                if request.source == NodeId(0) {
                    self.log.push((now, is_end));
                }
                if is_end {
                    self.end(now, &request)
                } else {
                    self.begin(now, &request)
                }
                assert!(self.out[&request.source] <= depth);
            }
        }

        fn begin(&mut self, now: Time, request: &Request) {
            *self.out.entry(request.source).or_default() += 1;
            let latency = Span::ps(1 + self.latency.below(5_000_000));
            self.events.push(Reverse((now + latency, true, request.id)));
            assert_eq!(self.generator.after_arrival(&Arrival { at: now, request: *request }), None);
        }

        fn end(&mut self, now: Time, request: &Request) {
            *self.out.get_mut(&request.source).unwrap() -= 1;
            if let Some(next) = self.generator.after_end(now, request) {
                assert_eq!(next.request.source, request.source);
                self.plan(next);
            }
        }
    }

    fn closed(depth: u32, think: Span) -> Config {
        Config { arrivals: Arrivals::Closed { depth, think }, ..config() }
    }

    #[test]
    fn no_node_ever_has_more_than_its_depth_outstanding_and_the_limit_is_exact() {
        for (depth, think) in [(1, Span::ZERO), (4, Span::us(2)), (32, Span::ZERO)] {
            let mut bench = Bench::new(&closed(depth, think));
            assert_eq!(bench.requests.len() as u32, 8 * depth);
            bench.run(depth);
            assert_eq!(bench.requests.len(), 10_000);
            assert!(bench.requests.keys().copied().eq((0..10_000).map(RequestId)));
        }
    }

    #[test]
    fn the_next_request_comes_after_the_think_time() {
        let mut bench = Bench::new(&closed(1, Span::us(3)));
        bench.run(1);
        let ends_and_starts = bench.log[1..].chunks_exact(2);
        assert!(ends_and_starts.len() > 1_000);
        for pair in ends_and_starts {
            assert!(pair[0].1 && !pair[1].1, "an end, then a start");
            assert_eq!(pair[1].0 - pair[0].0, Span::us(3));
        }
    }

    #[test]
    fn a_limit_below_the_first_round_goes_once_around() {
        let mut out = Vec::new();
        Generator::new(&Config { requests: Some(10), ..closed(4, Span::ZERO) }, Seed(1)).start(&mut out);
        let sources: Vec<u32> = out.iter().map(|arrival| arrival.request.source.0).collect();
        assert_eq!(sources, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
    }

    #[test]
    fn nothing_starts_at_or_after_the_end_of_the_duration() {
        let config = Config { duration: Some(Span::us(10)), ..closed(1, Span::us(1)) };
        let mut generator = Generator::new(&config, Seed(1));
        let mut out = Vec::new();
        generator.start(&mut out);
        let last = Time::ps(Span::us(9).as_ps() - 1);
        assert_eq!(generator.after_end(last, &out[0].request).map(|next| next.at), Some(last + Span::us(1)));
        assert_eq!(generator.after_end(Time::us(9), &out[1].request), None);
        assert_eq!(generator.after_end(Time::MAX, &out[2].request), None);
    }
}

mod traces {
    use super::*;

    fn message(at: u64, source: u32, target: u32) -> TraceMessage {
        let (source, target) = (NodeId(source), NodeId(target));
        TraceMessage { at: Time::ns(at), operation: Operation::Write, source, target, bytes: Bytes::new(at + 1) }
    }

    fn traced() -> Config {
        let messages = vec![message(0, 1, 0), message(5, 0, 2), message(5, 2, 0), message(9, 1, 2)];
        let arrivals = Arrivals::Trace { messages };
        Config { nodes: 3, mix: Vec::new(), arrivals, requests: None, ..config() }
    }

    #[test]
    fn a_trace_is_played_as_it_is_and_ends_by_itself() {
        let taken = play(&traced(), 1);
        let facts: Vec<_> =
            taken.iter().map(|a| (a.at, a.request.id.0, a.request.source.0, a.request.bytes.count())).collect();
        assert_eq!(
            facts,
            [(Time::ZERO, 0, 1, 1), (Time::ns(5), 1, 0, 6), (Time::ns(5), 2, 2, 6), (Time::ns(9), 3, 1, 10)]
        );
    }

    #[test]
    fn both_limits_cut_it() {
        assert_eq!(play(&Config { requests: Some(2), ..traced() }, 1).len(), 2);
        assert_eq!(play(&Config { duration: Some(Span::ns(5)), ..traced() }, 1).len(), 1);
        assert_eq!(play(&Config { duration: Some(Span::ps(5_001)), ..traced() }, 1).len(), 3);
    }

    #[test]
    fn a_bad_trace_is_refused_by_name() {
        let messages = vec![message(5, 1, 1), message(4, 0, 3)];
        let problems = Config { arrivals: Arrivals::Trace { messages }, ..traced() }.problems();
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "arrivals.messages[0]: node 1 sends to itself; source and target must differ",
                "arrivals.messages[1].target: 3 is outside 0..=2",
                "arrivals.messages[1].at (ps): 4000 comes after 5000, values must not fall",
            ]
        );
    }
}

mod problems {
    use super::*;

    fn told(change: impl Fn(&mut Config)) -> Vec<String> {
        let mut config = config();
        change(&mut config);
        config.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_workload_has_none_up_to_its_edges() {
        assert_eq!(told(|_| ()), [""; 0]);
        assert_eq!(told(|config| config.nodes = 2), [""; 0]);
        assert_eq!(told(|config| config.pattern = Pattern::RoleSplit { compute: 7 }), [""; 0]);
        assert_eq!(told(|config| config.pattern = Pattern::Incast { target: NodeId(7), sources: 7 }), [""; 0]);
        let on_off = |on| Arrivals::OnOff { mean_gap_ps: 1e6, on, off: Span::ZERO };
        assert_eq!(told(|config| config.arrivals = on_off(Span::ns(1))), [""; 0]);
    }

    #[test]
    fn nobody_to_ask_or_to_be_asked_is_refused() {
        assert_eq!(told(|config| config.nodes = 1), ["nodes: 1 is outside 2..=1048576"]);
        assert_eq!(
            told(|config| config.pattern = Pattern::RoleSplit { compute: 0 }),
            ["pattern.compute: 0 is outside 1..=7"]
        );
        assert_eq!(
            told(|config| config.pattern = Pattern::RoleSplit { compute: 8 }),
            ["pattern.compute: 8 is outside 1..=7"]
        );
        let incast =
            |target, sources| told(|config| config.pattern = Pattern::Incast { target: NodeId(target), sources });
        assert_eq!(incast(8, 1), ["pattern.target: 8 is outside 0..=7"]);
        assert_eq!(incast(0, 0), ["pattern.sources: 0 is outside 1..=7"]);
        assert_eq!(incast(0, 8), ["pattern.sources: 8 is outside 1..=7"]);
    }

    #[test]
    fn a_mix_or_a_table_without_sense_is_refused() {
        assert_eq!(told(|config| config.mix.clear()), ["mix: is empty, at least one entry is needed"]);
        let weight = |weight| told(|config| config.mix[1].weight = weight);
        assert_eq!(weight(-1.0)[0], "mix[1].weight: -1 is not a finite number of 0 or more");
        assert_eq!(weight(f64::NAN), ["mix[1].weight: NaN is not a finite number of 0 or more"]);
        let zero = told(|config| config.mix.iter_mut().for_each(|class| class.weight = 0.0));
        assert_eq!(zero, ["mix: all weights are 0, at least one must be positive"]);
        let sizes = |size: SizeDistribution| told(|config| config.mix[0].size = size.clone());
        assert_eq!(
            sizes(SizeDistribution::Constant { bytes: Bytes::ZERO }),
            ["mix[0].size.bytes: 0 is outside 1..=1099511627776"]
        );
        assert_eq!(
            sizes(SizeDistribution::Table { entries: vec![] }),
            ["mix[0].size.entries: is empty, at least one entry is needed"]
        );
        let cdf = |points: &[(f64, f64)]| sizes(SizeDistribution::Cdf { name: "x".into(), points: points.to_vec() });
        assert_eq!(cdf(&[]), ["mix[0].size.points: is empty, at least one entry is needed"]);
        assert_eq!(
            cdf(&[(2.0, 0.5), (1.0, 1.0)]),
            ["mix[0].size.points[1].bytes: 1 comes after 2, values must not fall"]
        );
        assert_eq!(cdf(&[(2.0, 0.5)]), ["mix[0].size.points[0].probability: 0.5 is not 1, as the last must be"]);
        assert_eq!(
            cdf(&[(0.0, 1.0)]),
            ["mix[0].size.points[0].bytes: 0 is not a size up to 1TiB, above 0 where the probability is"]
        );
    }

    #[test]
    fn gaps_depths_and_ends_without_sense_are_refused() {
        let gap = |mean_gap_ps| told(|config| config.arrivals = Arrivals::Poisson { mean_gap_ps });
        for (bad, text) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            assert_eq!(
                gap(bad),
                [format!("arrivals.mean_gap_ps: {text} is not a positive, finite number of picoseconds")]
            );
        }
        let closed = Arrivals::Closed { depth: 0, think: Span::ZERO };
        assert_eq!(told(|config| config.arrivals = closed.clone()), ["arrivals.depth: 0 is outside 1..=1048576"]);
        let on_off = Arrivals::OnOff { mean_gap_ps: 1e6, on: Span::ps(999), off: Span::ZERO };
        assert_eq!(
            told(|config| config.arrivals = on_off.clone()),
            ["arrivals.on: 999ps is too short, allowed is 1ns or more"]
        );
        assert_eq!(
            told(|config| config.requests = None),
            ["requests, duration: neither is given, one of them must end the run"]
        );
        assert_eq!(told(|config| config.requests = Some(0))[0], "requests: 0 is outside 1..=18446744073709551615");
        assert_eq!(
            told(|config| config.duration = Some(Span::ZERO)),
            ["duration: 0ps is too short, allowed is 1ps or more"]
        );
    }
}

prop_compose! {
    fn any_open_loop()(
        nodes in 2..40u32, pattern in 0..4u32, share in 0.0..1.0f64, loop_kind in 0..3usize, seed in any::<u64>(),
    ) -> (Config, u64) {
        let some = 1 + (share * f64::from(nodes - 1)) as u32;
        let pattern = match pattern {
            0 => Pattern::AllToAll,
            1 => Pattern::RoleSplit { compute: some },
            2 => Pattern::Incast { target: NodeId(some - 1), sources: some },
            _ => Pattern::Permutation,
        };
        (Config { nodes, pattern, arrivals: open_loops()[loop_kind].clone(), requests: Some(500), ..config() }, seed)
    }
}

proptest! {
    #[test]
    fn every_request_of_any_open_loop_is_sound((config, seed) in any_open_loop()) {
        prop_assert_eq!(config.problems(), []);
        let asking = config.pattern.asking_nodes(config.nodes);
        let taken = play(&config, seed);
        prop_assert_eq!(taken.len(), 500);
        prop_assert!(taken.is_sorted_by_key(|arrival| arrival.at));
        for Arrival { request, .. } in taken {
            prop_assert!(asking.contains(&request.source));
            prop_assert!(request.target.0 < config.nodes && request.target != request.source);
        }
    }
}
