//! Job files as stories.

use super::*;
use crate::generator::Arrival;
use crate::outbox::play;
use base::{Bytes, NodeId, Operation, Seed, Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn read(text: &str) -> JobFile {
    read_job_file("jobs.fio", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    read_job_file("jobs.fio", text.as_bytes()).unwrap_err().to_string()
}

/// Every file is a volume of 1 MiB; volumes are the nodes from 10 on.
fn config(text: &str) -> PlayConfig {
    let file = read(text);
    let count = file.files().len() as u32;
    let volumes = (0..count).map(|index| Volume { node: NodeId(10 + index), capacity: Bytes::new(1 << 20) }).collect();
    PlayConfig { file, hosts: 4, volumes, requests: None, duration: None }
}

/// Everything that is asked when each request takes `served`.
fn played(text: &str, served: Span) -> Vec<Arrival> {
    played_with(&config(text), served)
}

fn played_with(config: &PlayConfig, served: Span) -> Vec<Arrival> {
    let mut seen = Vec::new();
    play(&mut Player::new(config, Seed(1)), |_| served, |arrival| seen.push(*arrival), 2_000_000);
    seen
}

fn share_of_reads(arrivals: &[Arrival]) -> f64 {
    let reads = arrivals.iter().filter(|arrival| arrival.request.operation == Operation::Read).count();
    reads as f64 / arrivals.len() as f64
}

fn pages(arrivals: &[Arrival]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.request.address / 4096).collect()
}

const SERVED: Span = Span::us(10);

#[test]
fn a_job_file_is_read_as_it_is() {
    let file = read(
        "; fio's example\n[global]\nioengine=libaio\ndirect=1\nbs=8k,32k\nrw=randrw # mixed\nrwmixread=70\n\n\
         [fast]\nfilename=/dev/a:/dev/b\\:1\niodepth=16\nnumjobs=2\nsize=20%\noffset=64k\nruntime=5m\ntime_based\n\
         [global]\niodepth=4\n[slow]\nstonewall\nrate_iops=100,50\nbssplit=4k/10:64k/50:32k/40\nrandom_distribution=zipf:1.2\n",
    );
    let [fast, slow] = &file.jobs[..] else { panic!("two jobs") };
    assert_eq!((fast.depth, fast.threads, fast.mixture), (16, 2, Mixture::Mixed { read_percent: 70 }));
    assert_eq!(fast.files, ["/dev/a", "/dev/b:1"]);
    assert_eq!(fast.sizes, [BlockSizes::One { bytes: 8192 }, BlockSizes::One { bytes: 32_768 }]);
    assert_eq!((fast.size, fast.offset), (Some(Amount::Percent(20)), Amount::Bytes(65_536)));
    assert_eq!((fast.runtime, fast.is_time_based, fast.is_walled), (Some(Span::secs(300)), true, false));
    assert_eq!((slow.depth, slow.is_walled), (4, true));
    assert_eq!(slow.rates.map(|rate| rate.ios_per_second), [Some(100), Some(50)]);
    assert_eq!((slow.sizes[0].least(), slow.sizes[1].most()), (4096, 65_536));
    assert_eq!(file.files(), ["/dev/a", "/dev/b:1", "slow.0.0"]);
    assert_eq!(file.notes[0], "jobs.fio:4: `direct` concerns fio's own machinery and changes nothing here");
}

#[test]
fn what_is_not_supported_is_an_error_that_names_option_file_and_line() {
    let option = |line: &str| error(&format!("[job]\nrw=read\n{line}\n"));
    assert_eq!(option("zonemode=zbd"), "jobs.fio:3: option `zonemode` is not supported: it would be ignored silently");
    assert_eq!(option("rw=trim"), "jobs.fio:3: option `rw` has the value `trim`: there is no trim here");
    assert_eq!(
        option("fsync=32"),
        "jobs.fio:3: option `fsync` is not supported with the value `32`: there is no such operation here"
    );
    assert_eq!(
        option("ioengine=net"),
        "jobs.fio:3: option `ioengine` has the value `net`, which is no engine for block storage that is known here"
    );
    assert_eq!(option("iodepth=0"), "jobs.fio:3: option `iodepth` has the value `0`, allowed is 1 to 1048576");
    assert_eq!(option("rwmixread=101"), "jobs.fio:3: option `rwmixread` has the value `101`, allowed is 0 to 100");
    assert_eq!(
        option("size=$mb_memory"),
        "jobs.fio:3: option `size` has the value `$mb_memory`: variables and arithmetic are not supported"
    );
    assert_eq!(option("time_based"), "jobs.fio:3: option `time_based` needs a `runtime`");
    assert_eq!(option("nrfiles=4"), "jobs.fio:3: option `nrfiles` has the value `4`, allowed is 1 to 1");
    assert_eq!(error("rw=read\n"), "jobs.fio:1: `rw=read` is an option before the first [section]");
    assert_eq!(error("[job\n"), "jobs.fio:1: `[job` is no section: [name] is expected");
    assert_eq!(error("[a]\n[a]\n"), "jobs.fio:2: `[a]` is the name of two jobs");
    assert_eq!(error("[global]\nbs=4k\n"), "jobs.fio:1: the file holds no data");
    let global = error("[global]\nbs=0\n[job]\n");
    assert_eq!(global, "jobs.fio:2: option `bs` has the value `0`, allowed is 1 to 1099511627776");
}

#[test]
fn the_later_of_two_mixes_counts_and_an_engine_that_waits_has_a_depth_of_one() {
    let mixture = |text: &str| read(&format!("[job]\nrw=rw\n{text}")).jobs[0].mixture;
    assert_eq!(mixture("rwmixread=70\nrwmixwrite=40\n"), Mixture::Mixed { read_percent: 60 });
    assert_eq!(mixture("rwmixwrite=40\nrwmixread=70\n"), Mixture::Mixed { read_percent: 70 });
    let psync = read("[job]\niodepth=32\n");
    assert_eq!(psync.jobs[0].depth, 1);
    let note = "jobs.fio: [job]: iodepth 32 is 1, since the engine (psync, fio's default) waits for each I/O";
    assert_eq!(psync.notes, [note]);
    assert_eq!(read("[job]\nioengine=io_uring\niodepth=32\n").jobs[0].depth, 32);
}

#[test]
fn a_sequential_job_reads_its_file_once_from_end_to_end() {
    let arrivals = played("[job]\nrw=read\nioengine=libaio\niodepth=4\nsize=64k\noffset=8k\n", SERVED);
    assert_eq!(pages(&arrivals), (2..18).collect::<Vec<_>>());
    assert!(arrivals.iter().all(|arrival| arrival.request.bytes == Bytes::new(4096)));
    // Four at once, and as many rounds as it takes.
    let times: Vec<Time> = arrivals.iter().map(|arrival| arrival.at).collect();
    assert_eq!((times[3], times[4], times[15]), (Time::ZERO, Time::us(10), Time::us(30)));
}

#[test]
fn holes_are_left_out_and_runs_follow_a_random_block() {
    let holes = played("[job]\nrw=read:4k\nsize=32k\n", SERVED);
    assert_eq!(pages(&holes), [0, 2, 4, 6]);
    let runs = pages(&played("[job]\nrw=randread:8\nsize=1m\nnumber_ios=64\n", SERVED));
    for run in runs.chunks(8) {
        let expected: Vec<u64> = (run[0]..).take(8).collect();
        let wraps = run[0] + 8 > 256;
        assert!(wraps || run == expected, "{run:?}");
    }
}

#[test]
fn random_io_covers_every_block_once_a_pass_unless_there_is_no_map() {
    let once: BTreeSet<u64> = pages(&played("[job]\nrw=randread\n", SERVED)).into_iter().collect();
    assert_eq!(once.len(), 256);
    let twice = pages(&played("[job]\nrw=randwrite\nloops=2\n", SERVED));
    let mut counts = BTreeMap::new();
    twice.iter().for_each(|page| *counts.entry(page).or_insert(0) += 1);
    assert!(counts.len() == 256 && counts.values().all(|count| *count == 2));
    assert_ne!(twice[..256], twice[256..], "each pass has its own order");
    let free: BTreeSet<u64> = pages(&played("[job]\nrw=randread\nnorandommap\n", SERVED)).into_iter().collect();
    // 256 draws with replacement leave about 1/e of the blocks out.
    assert!((140..185).contains(&free.len()), "{}", free.len());
}

#[test]
fn mixes_and_splits_have_their_shares() {
    let text = "[job]\nrw=randrw\nrwmixread=70\nnorandommap\nio_size=200m\nbssplit=4k/50:16k/50,4k/90:8k/10\n";
    let arrivals = played(text, SERVED);
    assert!((share_of_reads(&arrivals) - 0.7).abs() < 0.01);
    let share = |operation, bytes| {
        let of: Vec<_> = arrivals.iter().filter(|arrival| arrival.request.operation == operation).collect();
        of.iter().filter(|arrival| arrival.request.bytes == Bytes::new(bytes)).count() as f64 / of.len() as f64
    };
    assert!((share(Operation::Read, 16_384) - 0.5).abs() < 0.015);
    assert!((share(Operation::Write, 8_192) - 0.1).abs() < 0.015);
    assert_eq!(share(Operation::Write, 16_384), 0.0);
    let total: u64 = arrivals.iter().map(|arrival| arrival.request.bytes.count()).sum();
    assert!((200 << 20..(200 << 20) + 16_384).contains(&total), "{total}");
}

#[test]
fn a_range_gives_multiples_of_its_least_size() {
    let arrivals = played("[job]\nrw=randread\nbsrange=4k-16k\nio_size=16m\n", SERVED);
    let sizes: BTreeSet<u64> = arrivals.iter().map(|arrival| arrival.request.bytes.count()).collect();
    assert_eq!(sizes, BTreeSet::from([4096, 8192, 12_288, 16_384]));
}

#[test]
fn a_rate_is_kept_while_the_depth_allows_it_and_caught_up_with() {
    let text = "[job]\nrw=randread\nnorandommap\nioengine=libaio\niodepth=8\nrate_iops=1000\nruntime=1\ntime_based\n";
    let calm = played(text, SERVED);
    assert_eq!(calm.len(), 1000);
    assert!(calm.windows(2).all(|pair| pair[1].at - pair[0].at == Span::ms(1)));
    // Eight in flight for 20 ms each are 400 a second.
    let slow = played(text, Span::ms(20));
    assert!((slow.len() as i64 - 400).abs() <= 8, "{}", slow.len());
    let poisson = played(&format!("{text}rate_process=poisson\n"), SERVED);
    assert!((900..1100).contains(&poisson.len()), "{}", poisson.len());
}

#[test]
fn reads_and_writes_have_rates_of_their_own() {
    let text = "[job]\nrw=write\nbs=64k\nrate=1m,6400k\nioengine=libaio\niodepth=4\nruntime=1\ntime_based\n";
    assert_eq!(played(text, SERVED).len(), 100, "6,400 KiB a second are 100 writes of 64 KiB");
}

#[test]
fn time_ends_a_job_and_a_time_based_one_goes_round_until_then() {
    let runtime = "runtime=5ms\n";
    let once = played(&format!("[job]\nrw=read\nsize=64k\n{runtime}"), SERVED);
    assert_eq!(once.len(), 16);
    let round = played(&format!("[job]\nrw=read\nsize=64k\n{runtime}time_based\n"), SERVED);
    assert_eq!(round.len(), 500);
    assert_eq!(pages(&round)[14..18], [14, 15, 0, 1]);
    let cut = played(&format!("[job]\nrw=read\n{runtime}"), Span::ms(1));
    assert_eq!(cut.len(), 5, "at 0, 1, 2, 3 and 4 ms; the end itself is too late");
    let ramp = played(&format!("[job]\nrw=read\nramp_time=1ms\ntime_based\n{runtime}"), SERVED);
    assert_eq!(ramp.len(), 600);
}

#[test]
fn a_job_behind_a_wall_waits_for_all_before_it_and_the_next_goes_with_it() {
    let text = "[global]\nsize=40k\n[a]\n[b]\nsize=80k\nfilename=a\n[c]\nstonewall\nfilename=a\nnumjobs=2\n[d]\nstartdelay=1ms\nfilename=a\n";
    let arrivals = played(text, SERVED);
    let starts: Vec<Time> = arrivals.iter().map(|arrival| arrival.at).collect();
    // Without a wall: a and b, 10 and 20 reads of 10 us each.
    assert_eq!(starts.iter().filter(|at| **at < Time::us(200)).count(), 30);
    assert_eq!(starts.iter().filter(|at| **at == Time::us(200)).count(), 2, "both threads of c");
    assert_eq!(starts.iter().filter(|at| **at >= Time::us(1200)).count(), 10, "d comes with c, and waits by itself");
    assert_eq!(starts.len(), 60);
}

#[test]
fn threads_are_dealt_to_hosts_and_have_files_or_offsets_of_their_own() {
    let own = played("[job]\nnumjobs=6\nsize=4k\n", SERVED);
    let places: Vec<(u32, u32)> =
        own.iter().map(|arrival| (arrival.request.source.0, arrival.request.target.0)).collect();
    assert_eq!(places, [(0, 10), (1, 11), (2, 12), (3, 13), (0, 14), (1, 15)]);
    let shared = played("[job]\nnumjobs=3\nfilename=x\nsize=4k\noffset_increment=64k\n", SERVED);
    let places: Vec<(u32, u64)> =
        shared.iter().map(|arrival| (arrival.request.target.0, arrival.request.address)).collect();
    assert_eq!(places, [(10, 0), (10, 65_536), (10, 131_072)]);
}

#[test]
fn files_are_taken_in_turn_at_random_or_one_after_the_other() {
    let targets = |order: &str| -> Vec<u32> {
        let text = format!("[job]\nfilename=x:y:z\nsize=48k\nfile_service_type={order}\n");
        played(&text, SERVED).iter().map(|arrival| arrival.request.target.0 - 10).collect()
    };
    assert_eq!(targets("roundrobin"), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(targets("sequential"), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let random = targets("random");
    assert!(random.len() == 12 && random != targets("roundrobin") && random.contains(&2));
}

#[test]
fn what_does_not_fit_the_volume_is_a_problem_that_names_the_job() {
    let problems = |text: &str| config(text).problems().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(problems("[job]\nsize=1m\n"), [""; 0]);
    assert_eq!(problems("[job]\nsize=2m\n")[0], "jobs[job].offset + size: 2097152 is outside 0..=1048576");
    assert_eq!(problems("[job]\nsize=1m\noffset=4k\n")[0], "jobs[job].offset + size: 1052672 is outside 0..=1048576");
    assert_eq!(problems("[job]\nsize=4k\nbs=8k\n")[0], "jobs[job].size of a file: 4096 is outside 8192..=1048576");
    let mut few = config("[job]\nsize=4k\n");
    few.volumes.clear();
    assert_eq!(few.problems()[0].to_string(), "volumes: 0 is outside 1..=1");
}

#[test]
fn limits_from_outside_end_the_jobs_too() {
    let requests = PlayConfig { requests: Some(7), ..config("[job]\nrw=randread\n") };
    assert_eq!(played_with(&requests, SERVED).len(), 7);
    let duration = PlayConfig { duration: Some(Span::us(50)), ..config("[job]\nrw=randread\n") };
    assert_eq!(played_with(&duration, SERVED).len(), 5);
}

#[test]
fn the_same_seed_asks_the_same_and_a_seed_of_the_job_changes_that_job_alone() {
    let text = |seed: &str| format!("[a]\nrw=randrw\nnumber_ios=50\n[b]\nrw=randrw\nnumber_ios=50\n{seed}");
    let of = |arrivals: &[Arrival], node| {
        arrivals
            .iter()
            .filter(|each| each.request.target.0 == node)
            .map(|each| each.request.address)
            .collect::<Vec<_>>()
    };
    let (first, again, other) =
        (played(&text(""), SERVED), played(&text(""), SERVED), played(&text("randseed=7\n"), SERVED));
    assert_eq!(first, again);
    assert_eq!(of(&first, 10), of(&other, 10));
    assert_ne!(of(&first, 11), of(&other, 11));
}

fn any_job() -> impl Strategy<Value = String> {
    let pattern =
        prop::sample::select(vec!["read", "write", "randread", "randwrite", "rw", "randrw", "read:4k", "randread:3"]);
    let sizes = prop::sample::select(vec!["bs=4k", "bs=8k,4k", "bsrange=4k-32k", "bssplit=4k/60:12k/", "bs=512"]);
    let law = prop::sample::select(vec!["random", "zipf:1.1", "pareto:0.3", "normal:20", "zoned:60/10:40/90"]);
    (pattern, sizes, law, 1u32..9, 1u32..4, 0u32..3, 1u32..200, any::<bool>()).prop_map(
        |(pattern, sizes, law, depth, threads, offset, ios, wall)| {
            let wall = if wall { "stonewall\n" } else { "" };
            format!(
                "rw={pattern}\n{sizes}\nrandom_distribution={law}\nioengine=libaio\ndirect=1\niodepth={depth}\nnumjobs={threads}\n\
                 offset={}k\nsize=100k\noffset_increment=100k\nio_size=10m\nnumber_ios={ios}\n{wall}",
                offset * 100
            )
        },
    )
}

proptest! {
    #[test]
    fn whatever_the_jobs_depth_and_region_hold_and_every_io_is_asked(jobs in proptest::collection::vec(any_job(), 1..4), served_us in 1u64..100) {
        let text: String = jobs.iter().enumerate().map(|(index, job)| format!("[job{index}]\nfilename=file{index}\n{job}")).collect();
        let config = config(&text);
        let mut in_flight: BTreeMap<u32, BTreeSet<(Time, u64)>> = BTreeMap::new();
        let mut count = 0;
        let mut player = Player::new(&config, Seed(3));
        let mut stream = Seed(4).stream("served");
        let mut wrong = None;
        let mut ends = BTreeMap::new();
        let mut served = |arrival: &Arrival| {
            let span = Span::us(1 + stream.below(served_us));
            ends.insert(arrival.request.id, arrival.at + span);
            let job = arrival.request.target.0;
            let live = in_flight.entry(job).or_default();
            live.retain(|(end, _)| *end > arrival.at);
            live.insert((arrival.at + span, arrival.request.id.0));
            let limit = &config.file.jobs[(job - 10) as usize];
            if live.len() as u32 > limit.depth * limit.threads {
                wrong = Some(live.len());
            }
            span
        };
        play(&mut player, &mut served, |arrival| {
            count += 1;
            assert!(arrival.request.address + arrival.request.bytes.count() <= 1 << 20);
        }, 100_000);
        let asked: u64 = config.file.jobs.iter().map(|job| u64::from(job.threads) * job.number_ios.unwrap_or(0)).sum();
        let has_hole = |job: &Job| matches!(job.order, Order::Sequential { hole } if hole > 0);
        prop_assert!(count == asked || config.file.jobs.iter().any(has_hole), "{} of {}", count, asked);
        prop_assert_eq!(wrong, None);
    }

    #[test]
    fn no_text_panics(text in "(\\[[a-z]{0,3}\\]\n|[a-z_]{0,8}=?[0-9a-z%:,/-]{0,8}\n){0,6}") {
        let _ = read_job_file("any", text.as_bytes());
    }

    #[test]
    fn no_value_of_an_option_panics(
        key in prop::sample::select(vec!["rw", "bs", "bsrange", "bssplit", "size", "runtime", "startdelay", "random_distribution", "filename", "rate", "iodepth"]),
        value in "[0-9a-z%:,./-]{0,12}",
    ) {
        let text = format!("[job]\n{key}={value}\n");
        if let Ok(file) = read_job_file("any", text.as_bytes()) {
            let volumes = file.files().iter().map(|_| Volume { node: NodeId(9), capacity: Bytes::new(1 << 20) }).collect();
            let config = PlayConfig { file, hosts: 1, volumes, requests: Some(100), duration: None };
            if config.problems().is_empty() {
                play(&mut Player::new(&config, Seed(1)), |_| Span::us(1), |_| {}, 300);
            }
        }
    }
}
