//! Do time series tell the truth, and leave everything else as it is?

use base::{Operation, Span, Time};
use record::{Outcome, Place, Row, Series, SeriesPlace, SeriesRow, Sink, SinkError, Summary, summary_json};
use sim::drive::Unobserved;
use std::collections::{BTreeMap, BTreeSet};

/// What a run has told.
#[derive(Default)]
struct Seen {
    rows: Vec<Row>,
    series: Vec<SeriesRow>,
}

impl Sink for Seen {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        self.rows.push(*row);
        Ok(())
    }
    fn series(&mut self, rows: &[SeriesRow]) -> Result<(), SinkError> {
        self.series.extend_from_slice(rows);
        Ok(())
    }
}

impl Seen {
    /// A line: times with values.
    fn line(&self, metric: Series, place: SeriesPlace) -> Vec<(Time, f64)> {
        let of_line = |row: &&SeriesRow| row.metric == metric && row.place == place;
        self.series.iter().filter(of_line).map(|row| (row.at, row.value)).collect()
    }
    fn total(&self, metric: Series) -> Vec<(Time, f64)> {
        self.line(metric, SeriesPlace::Total)
    }
    fn sum(&self, metric: Series) -> f64 {
        self.total(metric).iter().map(|(_, value)| value).sum()
    }
    fn has(&self, metric: Series) -> bool {
        self.series.iter().any(|row| row.metric == metric)
    }
    fn highest(&self, metric: Series) -> f64 {
        self.series.iter().filter(|row| row.metric == metric).map(|row| row.value).fold(0.0, f64::max)
    }
}

fn play(text: &str, interval: Option<&str>) -> (Seen, Summary) {
    let series = interval.map_or(String::new(), |interval| format!("[record]\nseries = \"{interval}\"\n"));
    let experiment = plan::parse("series.toml", &format!("{text}\n{series}"), &plan::NoFiles, &[]);
    let experiment = experiment.unwrap_or_else(|errors| panic!("{errors}"));
    let plan = experiment.points(None).remove(0).plan;
    let mut seen = Seen::default();
    let outcomes = sim::run(&plan, &sim::RunOptions::default(), &mut seen, &mut Unobserved);
    (seen, outcomes.unwrap_or_else(|error| panic!("{error}")).summary)
}

/// A small run of each scene, with the interval of its series and metrics that it has beside those
/// of every run.
const SCENES: [(&str, &str, &str, &[Series]); 10] = [
    (
        "edm",
        "title = 't'\ndesign.name = 'edm'\nfabric = { nodes = 8, rate = '100Gbps' }\nworkload.load = 0.8\n\
         run = { requests = 3000, warm_up = '0s' }",
        "100ns",
        &[Series::PortQueueBytes, Series::DemandsWaiting, Series::GrantedBytes],
    ),
    (
        "edm with frames",
        "title = 't'\ndesign.name = 'edm'\nfabric = { nodes = 8, rate = '100Gbps' }\nworkload.load = 0.3\n\
         background.stream = [{ name = 'bulk', load = 0.5, frame = '1518B' }]\n\
         run = { requests = 3000, warm_up = '0s' }",
        "100ns",
        &[Series::PortQueueBytes, Series::HostQueueBytes, Series::DemandsWaiting],
    ),
    (
        "dctcp",
        "title = 't'\ndesign.name = 'dctcp'\nfabric = { nodes = 8, rate = '100Gbps' }\n\
         workload = { load = 0.8, size = '4KiB' }\nrun = { requests = 3000, warm_up = '0s' }",
        "1us",
        &[Series::PortQueueBytes, Series::PortQueuePackets, Series::WindowBytes],
    ),
    (
        "dcqcn",
        "title = 't'\ndesign.name = 'dcqcn'\nfabric = { nodes = 8, rate = '100Gbps' }\n\
         workload = { load = 0.8, size = '64KiB' }\nrun = { requests = 2000, warm_up = '0s' }",
        "1us",
        &[Series::PortQueueBytes, Series::PortQueuePackets, Series::SendRate],
    ),
    (
        "san",
        "title = 't'\ndesign.name = 'san'\n[fabric]\nkind = 'torus'\ndimensions = [2, 2]\nhosts = 4\nrate = '100Gbps'\n\
         [drives]\nper_target = 1\nmodel = 'quick'\n[io]\nsize = '4KiB'\nwrite_share = 0.3\ndepth = 16\n\
         [run]\nrequests = 3000\nwarm_up = '0s'",
        "2us",
        &[
            Series::PortQueueBytes,
            Series::PortQueuePackets,
            Series::ReservedRate,
            Series::HostWaiting,
            Series::TargetCommands,
            Series::DriveCommands,
            Series::CreditLeft,
            Series::GimbalCredits,
        ],
    ),
    (
        "san with windows",
        "title = 't'\ndesign.name = 'san-plain'\n[fabric]\nkind = 'torus'\ndimensions = [2, 2]\nhosts = 4\n\
         rate = '100Gbps'\n[drives]\nper_target = 1\nmodel = 'quick'\n[io]\nsize = '16KiB'\nwrite_share = 0.5\n\
         depth = 8\n[run]\nrequests = 1500\nwarm_up = '0s'",
        "2us",
        &[Series::PortQueueBytes, Series::WindowBytes, Series::TargetWindowBytes, Series::DriveCommands],
    ),
    (
        "volumes",
        "title = 't'\ndesign.name = 'rackblox'\n[rack]\nservers = 3\nclients = 4\n[vssd]\nper_ssd = 2\n\
         capacity = '256MiB'\n[flash]\nstate = 'used'\n[io]\nwrite_share = 0.9\ndepth = 16\n\
         [run]\nrequests = 6000\nwarm_up = '0s'",
        "100us",
        &[
            Series::PortQueueBytes,
            Series::PortQueuePackets,
            Series::ServerRequests,
            Series::FreeBlocks,
            Series::FreeBlocksOfDie,
            Series::Collecting,
        ],
    ),
    (
        "devices",
        "title = 't'\ndesign.name = 's-direct'\nmachine = { devices = 2, preset = 'p3700' }\n\
         task = { kind = 'read-write', bytes = '4KiB' }\nio = { write_share = 0.3, depth = 16 }\n\
         run = { requests = 3000, warm_up = '0s' }",
        "10us",
        &[Series::DriveCommands, Series::NicBytes, Series::FreeBlocks, Series::Collecting],
    ),
    (
        "key-value",
        "title = 't'\ndesign.name = 'scalio'\n[store]\ndevices = 2\nclients = 8\nclient_nodes = 2\nkeys = 10000\n\
         cached_keys = 2000\n[io]\nwrite_share = 0.3\naddresses = 'zipfian'\ntheta = 0.99\ndepth = 3\n\
         [run]\nrequests = 5000\nwarm_up = '0s'",
        "10us",
        &[Series::CacheHits, Series::CacheMisses, Series::CoreBacklog, Series::DriveCommands],
    ),
    (
        "leed",
        "title = 't'\ndesign.name = 'leed'\n[store]\ndevices = 2\nclients = 8\nclient_nodes = 2\nkeys = 10000\n\
         [io]\nwrite_share = 0.3\ndepth = 8\n[run]\nrequests = 3000\nwarm_up = '0s'",
        "10us",
        &[Series::TokenCalls, Series::TokensTaken, Series::CoreBacklog, Series::DriveCommands],
    ),
];

#[test]
fn every_scene_has_its_series_and_is_the_same_run_as_without() {
    for (name, text, interval, expected) in SCENES {
        let (without, plain) = play(text, None);
        let (seen, summary) = play(text, Some(interval));
        assert!(without.series.is_empty(), "{name}");
        assert_eq!(without.rows, seen.rows, "{name}");
        assert_eq!(summary_json(&plain), summary_json(&summary), "{name}");
        let every = [Series::RequestsBegun, Series::RequestsEnded, Series::RequestsOutstanding, Series::FinishedBytes];
        for metric in every.iter().chain(&[Series::ReceivedBytes, Series::TargetBytes]).chain(expected) {
            assert!(seen.has(*metric), "{name} has no {metric:?}");
        }
    }
}

#[test]
fn what_is_counted_sums_to_the_records_exactly() {
    for (name, text, interval, _) in SCENES {
        let (seen, summary) = play(text, Some(interval));
        let finished = || seen.rows.iter().filter(|row| row.outcome == Outcome::Finished);
        let bytes: u64 = finished().map(|row| row.bytes.count()).sum();
        assert_eq!(seen.sum(Series::FinishedBytes), bytes as f64, "{name}");
        assert_eq!(seen.sum(Series::RequestsBegun), summary.counts.offered as f64, "{name}");
        let ended = summary.counts.offered - summary.counts.in_flight_at_end - summary.counts.unavailable;
        assert_eq!(seen.sum(Series::RequestsEnded), ended as f64, "{name}");
        // By node, from the rows alone.
        for (metric, place) in [
            (Series::ReceivedBytes, Place::Host as fn(u32) -> Place),
            (Series::TargetBytes, Place::Target as fn(u32) -> Place),
        ] {
            let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
            for row in finished() {
                let receives = metric == Series::ReceivedBytes && row.operation != Operation::Write;
                *nodes.entry(if receives { row.source.0 } else { row.target.0 }).or_default() += row.bytes.count();
            }
            for (node, bytes) in nodes {
                let line = seen.line(metric, SeriesPlace::At(place(node)));
                let sum: f64 = line.iter().map(|(_, value)| value).sum();
                assert_eq!(sum, bytes as f64, "{name} {metric:?} {node}");
            }
        }
    }
}

/// `load.achieved_gbps` counts the bytes that finished up to the last intended start, which is
/// before the first sample but that of time 0.
#[test]
fn the_integral_of_throughput_is_what_the_summary_says_was_delivered() {
    for (name, text, _, _) in SCENES {
        let (first, _) = play(text, None);
        let window = first.rows.iter().map(|row| row.intended).max().unwrap_or_default();
        let (seen, summary) = play(text, Some(&format!("{}ps", window.as_ps() + 1)));
        let bytes = summary.load.achieved_gbps * window.as_ps() as f64 / 1e3 / 8.0;
        let line = seen.total(Series::FinishedBytes);
        assert_eq!(line[1].0, window + Span::ps(1), "{name}");
        assert_eq!(line[0].1 + line[1].1, bytes.round(), "{name}");
        assert!(bytes > 0.0 && (bytes - bytes.round()).abs() < 1e-3, "{name}: {bytes}");
    }
}

/// One after the other: a request begins when the one before ends, at a multiple of its latency.
const ALTERNATING: &str = "title = 't'\ndesign.name = 'edm'\nfabric = { nodes = 2, rate = '100Gbps' }\n\
    workload = { arrivals = 'closed', depth = 1, pattern = 'incast', sources = 1, read_fraction = 0.0 }\n\
    run = { requests = 5, warm_up = '0s' }";

#[test]
fn a_sample_shows_what_was_before_the_events_of_its_time() {
    let (first, _) = play(ALTERNATING, None);
    let latency = first.rows[0].end.as_ps();
    let ends: Vec<u64> = first.rows.iter().map(|row| row.end.as_ps()).collect();
    assert_eq!(ends, [1, 2, 3, 4, 5].map(|k| k * latency), "the requests follow each other");
    let (seen, _) = play(ALTERNATING, Some(&format!("{latency}ps")));
    let values = |metric| seen.total(metric).into_iter().map(|(at, value)| (at.as_ps(), value)).collect::<Vec<_>>();
    let times = [0, latency, 2 * latency, 3 * latency, 4 * latency, 5 * latency, 5 * latency + 1];
    let at = |values: [f64; 7]| times.into_iter().zip(values).collect::<Vec<_>>();
    // At time 0 nothing has begun. At the end of a request it has not ended, and the next has not
    // begun: both show in the next sample.
    assert_eq!(values(Series::RequestsBegun), at([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]));
    assert_eq!(values(Series::RequestsEnded), at([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]));
    assert_eq!(values(Series::RequestsOutstanding), at([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]));
    assert_eq!(values(Series::FinishedBytes), at([0.0, 0.0, 64.0, 64.0, 64.0, 64.0, 64.0]));
}

#[test]
fn a_closed_loop_has_its_depth_outstanding_at_every_moment() {
    let text = "title = 't'\ndesign.name = 'dctcp'\nfabric = { nodes = 6, rate = '100Gbps' }\n\
        workload = { arrivals = 'closed', depth = 7, size = '4KiB' }\nrun = { requests = 4000, warm_up = '0s' }";
    let (seen, _) = play(text, Some("333ns"));
    let last_begin = seen.rows.iter().map(|row| row.intended).max().unwrap_or_default();
    let line = seen.total(Series::RequestsOutstanding);
    let steady: Vec<_> = line.iter().filter(|(at, _)| *at > Time::ZERO && *at <= last_begin).collect();
    assert!(steady.len() > 100, "{}", steady.len());
    assert!(steady.iter().all(|(_, value)| *value == 42.0), "{steady:?}");
    assert_eq!(line.last().map(|(_, value)| *value), Some(0.0));
}

/// Little's law (Little, 1961): the mean number of requests in a system is their rate times their
/// mean time there.
#[test]
fn the_mean_outstanding_is_rate_times_latency() {
    let text = "title = 't'\ndesign.name = 'raw-ethernet'\nfabric = { nodes = 4, rate = '10Gbps' }\n\
        workload = { load = 0.8, size = '1500B', pattern = 'incast', read_fraction = 0.0 }\n\
        run = { requests = 20000, warm_up = '0s' }";
    let (seen, summary) = play(text, Some("500ns"));
    let end = seen.rows.iter().map(|row| row.end).max().unwrap_or_default();
    let line = seen.total(Series::RequestsOutstanding);
    let inside: Vec<f64> = line.iter().filter(|(at, _)| *at <= end).map(|(_, value)| *value).collect();
    let mean = inside.iter().sum::<f64>() / inside.len() as f64;
    let rate = summary.counts.offered as f64 / end.as_ps() as f64;
    let expected = rate * summary.latency_ns["all"].mean * 1e3;
    assert!(inside.len() > 40_000 && expected > 2.0, "{} samples, {expected}", inside.len());
    assert!((mean / expected - 1.0).abs() < 0.01, "{mean} instead of {expected}");
}

/// Three senders at line rate share the receiver's link: of each second, two of line rate stay in
/// the switch.
#[test]
fn a_queue_under_overload_grows_by_what_is_offered_beyond_its_link() {
    let text = "title = 't'\ndesign.name = 'raw-ethernet'\nfabric = { nodes = 4, rate = '10Gbps' }\n\
        workload = { load = 2.5, arrivals = 'deterministic', size = '1500B', pattern = 'incast', read_fraction = 0.0 }\n\
        run = { requests = 3000, warm_up = '0s' }";
    let (seen, _) = play(text, Some("10us"));
    let last_begin = seen.rows.iter().map(|row| row.intended).max().unwrap_or_default();
    let queue = seen.line(Series::PortQueueBytes, SeriesPlace::At(Place::Port(0)));
    let growing: Vec<_> = queue.iter().filter(|(at, _)| *at >= Time::us(50) && *at <= last_begin).collect();
    let (first, last) = (growing[0], growing[growing.len() - 1]);
    let seconds = last.0.saturating_since(first.0).as_secs_f64();
    let slope = (last.1 - first.1) / seconds;
    // Bytes on the wire count on both sides: a frame of 1,500 B is 1,538 B with preamble and gap.
    let expected = 1.5 * 10e9 / 8.0;
    assert!(growing.len() > 50 && (slope / expected - 1.0).abs() < 0.01, "{slope} instead of {expected}");
    let packets = seen.line(Series::PortQueuePackets, SeriesPlace::At(Place::Port(0)));
    for ((_, bytes), (_, packets)) in queue.iter().zip(&packets) {
        assert_eq!(*bytes, packets * 1_538.0);
    }
}

/// Small drives that collect all the time, by the servers' choice and by their own.
const COLLECTING: [(&str, &str, &str); 2] = [
    (
        "title = 't'\ndesign.name = 'rackblox'\nflash.pages_per_block = 8\nemulate.mode = 'delay'\n\
         rack = { servers = 2, clients = 2, network = 'none', remote_replica = false }\n\
         vssd = { per_ssd = 1, capacity = '16MiB', write_cache = '256KiB' }\n\
         collection = { check_period = '3ms', grain = 'die', regular = 0.0, background = false }\n\
         io = { addresses = 'uniform', write_share = 0.5, think = '1ms', depth = 2 }\n\
         run = { requests = 6000, warm_up = '0s' }",
        "200us",
        "erases",
    ),
    (
        "title = 't'\ndesign.name = 'san-plain'\n[fabric]\nkind = 'single-switch'\nhosts = 2\ntargets = 2\n\
         rate = '100Gbps'\n[drives]\nper_target = 1\ncapacity = '512MiB'\nstate = 'fragmented'\n[io]\nsize = '64KiB'\n\
         write_share = 1.0\ndepth = 8\n[run]\nrequests = 3000\nwarm_up = '0s'",
        "20us",
        "device_erases",
    ),
];

/// Sampled more often than a block can be erased, so that no collection hides between two samples.
#[test]
fn free_blocks_do_not_rise_between_two_collections() {
    for (text, interval, erases) in COLLECTING {
        let (seen, summary) = play(text, Some(interval));
        assert!(summary.metrics[erases] > 0.0, "{:#?}", summary.metrics);
        let of_drive = |row: &&SeriesRow| matches!(row.place, SeriesPlace::At(_));
        let free = seen.series.iter().filter(|row| row.metric == Series::FreeBlocks);
        let drives: BTreeSet<SeriesPlace> = free.clone().filter(of_drive).map(|row| row.place).collect();
        let (mut rises, mut falls) = (0, 0);
        for drive in &drives {
            let (free, collecting) = (seen.line(Series::FreeBlocks, *drive), seen.line(Series::Collecting, *drive));
            for (pair, is) in free.windows(2).zip(collecting.windows(2)) {
                let rose = pair[1].1 > pair[0].1;
                assert!(!rose || is[0].1 + is[1].1 > 0.0, "{drive}: {pair:?} without a collection");
                (rises, falls) = (rises + u32::from(rose), falls + u32::from(pair[1].1 < pair[0].1));
            }
        }
        assert!(drives.len() == 2 && rises > 0 && falls > 0, "{rises} rises, {falls} falls of {drives:?}");
        let sums = seen.total(Series::FreeBlocks);
        let mut sampled: BTreeMap<Time, f64> = BTreeMap::new();
        free.filter(of_drive).for_each(|row| *sampled.entry(row.at).or_default() += row.value);
        assert_eq!(sampled.into_iter().collect::<Vec<_>>(), sums);
    }
}

/// Other counters of the same runs see the same extremes, or greater ones between two samples.
#[test]
fn samples_stay_within_the_extremes_that_the_summary_has() {
    let (seen, summary) = play(SCENES[0].1, Some("100ns"));
    let most = summary.metrics["longest_notification_queue"];
    assert!(seen.highest(Series::DemandsWaiting) > 0.0);
    let places = seen.series.iter().filter(|row| row.metric == Series::DemandsWaiting);
    let sampled = places.filter(|row| row.place != SeriesPlace::Total).map(|row| row.value).fold(0.0, f64::max);
    assert!(sampled <= most, "{sampled} of at most {most}");
    let (seen, summary) = play(SCENES[1].1, Some("100ns"));
    let host = seen.line(Series::HostQueueBytes, SeriesPlace::Max);
    let sampled = host.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    assert!(sampled > 0.0 && sampled <= summary.metrics["background_longest_host_queue_bytes"], "{sampled}");
    let (seen, summary) = play(SCENES[4].1, Some("2us"));
    let ports = seen.line(Series::PortQueueBytes, SeriesPlace::Max);
    let sampled = ports.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let most = summary.metrics["hop_queue_max_bytes"] + summary.metrics.get("hop_held_max_bytes").unwrap_or(&0.0);
    assert!(sampled > 0.0 && sampled <= most, "{sampled} of at most {most}");
}

#[test]
fn cache_hits_and_misses_are_the_gets() {
    let (seen, summary) = play(SCENES[8].1, Some("10us"));
    let (hits, misses) = (seen.sum(Series::CacheHits), seen.sum(Series::CacheMisses));
    assert_eq!(hits + misses, summary.metrics["gets"]);
    assert!(hits > 0.0 && (hits / (hits + misses) - summary.metrics["cache_hit_ratio"]).abs() < 1e-12);
}

#[test]
fn wear_is_sampled_by_the_day_and_is_what_the_summary_says() {
    let text = "title = 't'\ndesign.name = 'wear-levelling'\nwear = { servers = 2, ssds = 4, days = 100 }";
    let (without, plain) = play(text, None);
    let (seen, summary) = play(text, Some("168h"));
    assert_eq!(summary_json(&plain), summary_json(&summary));
    assert!(without.series.is_empty() && seen.rows.is_empty());
    let days: Vec<u32> = seen.series.iter().filter(|row| row.metric == Series::ErasesMean).map(|row| row.day).collect();
    assert_eq!(days, [7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, 100]);
    let swaps = summary.metrics["local_swaps"] + summary.metrics["global_swaps"];
    assert!(swaps > 0.0);
    assert_eq!(seen.sum(Series::Swaps), swaps);
    let last = |metric, place| {
        let rows = seen.series.iter().filter(|row| row.day == 100 && row.metric == metric);
        rows.filter(|row| row.place == place).map(|row| row.value).collect::<Vec<f64>>()
    };
    let drives: Vec<f64> =
        (0..8).flat_map(|drive| last(Series::Erases, SeriesPlace::At(Place::Drive(drive)))).collect();
    assert_eq!(drives.len(), 8);
    let mean = drives.iter().sum::<f64>() / 8.0;
    assert!((mean - last(Series::ErasesMean, SeriesPlace::Total)[0]).abs() < 1e-9);
    assert_eq!(last(Series::Erases, SeriesPlace::Max), [drives.iter().copied().fold(0.0, f64::max)]);
    let worst = summary.metrics["used_max_lifetime_fraction"] * 30_000.0;
    assert!((worst - last(Series::Erases, SeriesPlace::Max)[0]).abs() < 1e-6, "{worst}");
}

#[test]
fn a_warm_up_that_is_found_is_sampled_once() {
    let text = "title = 't'\ndesign.name = 'edm'\nfabric = { nodes = 4, rate = '100Gbps' }\nworkload.load = 0.9\n\
        run = { requests = 20000, warm_up = 'auto' }";
    let (seen, _) = play(text, Some("1us"));
    let times: Vec<Time> = seen.total(Series::RequestsBegun).into_iter().map(|(at, _)| at).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "samples are in order, each once");
}

#[test]
fn two_runs_give_the_same_samples() {
    for (name, text, interval, _) in SCENES {
        assert!(play(text, Some(interval)).0.series == play(text, Some(interval)).0.series, "{name}");
    }
}
