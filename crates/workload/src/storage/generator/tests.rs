use super::*;
use crate::storage::{Addresses, Assignment, Profile, profile, scramble};
use proptest::prelude::*;

const BLOCK: u64 = 4096;

fn open() -> Config {
    Config {
        clients: 4,
        volumes: 2,
        assignment: Assignment::All,
        block: Bytes::new(BLOCK),
        working_set_blocks: 1_000,
        mix: Mix::with_write_share(0.3),
        addresses: Addresses::Uniform,
        arrivals: Arrivals::Poisson { mean_gap_ps: 1e6 },
        requests: Some(40_000),
        duration: None,
    }
}

fn closed(depth: u32, think: Span) -> Config {
    Config { arrivals: Arrivals::Closed { depth, think }, ..open() }
}

fn of(profile: &Profile) -> Config {
    Config { mix: profile.mix(), addresses: profile.addresses, ..open() }
}

/// Plays a load against storage that answers each request after `service`, as a host does: arrivals
/// in order of time.
fn play(config: &Config, seed: u64, service: Span) -> Vec<Arrival> {
    let mut generator = Generator::new(config, Seed(seed));
    let (mut arrivals, mut ends) = (Vec::new(), Vec::new());
    generator.start(&mut arrivals);
    let mut played = Vec::new();
    loop {
        let arrival = arrivals.iter().map(|each: &Arrival| (each.at, each.request.id)).min();
        let end = ends.iter().map(|(at, request): &(Time, Request)| (*at, request.id)).min();
        match (arrival, end) {
            (None, None) => return played,
            (Some(first), end) if end.is_none_or(|end| first <= end) => {
                let index = arrivals.iter().position(|each| each.request.id == first.1).unwrap();
                let taken = arrivals.swap_remove(index);
                arrivals.extend(generator.after_arrival(&taken));
                ends.push((taken.at + service, taken.request));
                played.push(taken);
            }
            (_, end) => {
                let index = ends.iter().position(|(_, request)| request.id == end.unwrap().1).unwrap();
                let (now, request) = ends.swap_remove(index);
                arrivals.extend(generator.after_end(now, &request));
            }
        }
    }
}

fn share(arrivals: &[Arrival], is: impl Fn(&Request) -> bool) -> f64 {
    arrivals.iter().filter(|arrival| is(&arrival.request)).count() as f64 / arrivals.len() as f64
}

fn is_write(request: &Request) -> bool {
    request.operation == Operation::Write
}

fn block(request: &Request) -> u64 {
    request.address / BLOCK
}

#[test]
fn the_seed_decides_everything() {
    let of_seed = |seed| play(&open(), seed, Span::us(1));
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn an_open_loop_has_its_rate_whatever_the_answers_take() {
    for arrivals in [Arrivals::Poisson { mean_gap_ps: 1e6 }, Arrivals::Deterministic { gap_ps: 1e6 }] {
        let config = Config { arrivals, ..open() };
        let last = play(&config, 1, Span::us(50)).last().unwrap().at;
        // 10,000 gaps of 1 us at each client.
        assert!((9.8e-3..10.2e-3).contains(&last.as_secs_f64()), "{last}");
        assert_eq!(play(&config, 1, Span::ns(1)), play(&config, 1, Span::us(50)));
    }
}

#[test]
fn a_closed_loop_keeps_its_depth_and_thinks_between_an_answer_and_the_next_request() {
    let config = Config { requests: Some(100), ..closed(3, Span::us(2)) };
    let played = play(&config, 1, Span::us(8));
    for (index, arrival) in played.iter().enumerate() {
        assert_eq!(arrival.at, Time::us(10 * (index as u64 / 12)), "three a client, four clients, every 10 us");
    }
    assert_eq!(share(&played, |request| request.source == NodeId(3)), 0.25);
}

#[test]
fn requests_name_volumes_after_the_clients_and_blocks_inside_the_working_set() {
    let played = play(&open(), 1, Span::us(1));
    for Arrival { request, .. } in &played {
        assert!(request.source.0 < 4 && (4..6).contains(&request.target.0));
        assert_eq!((request.address % BLOCK, request.bytes), (0, Bytes::new(BLOCK)));
        assert!(block(request) < 1_000);
    }
    assert!(played.iter().any(|arrival| block(&arrival.request) == 0));
    assert!(played.iter().any(|arrival| block(&arrival.request) == 999));
    assert!((share(&played, is_write) - 0.3).abs() < 0.01);
    assert!((share(&played, |request| request.target == NodeId(5)) - 0.5).abs() < 0.01);
}

#[test]
fn volumes_are_dealt_to_clients_and_clients_to_volumes() {
    let with = |clients, volumes, assignment| {
        let config = Config { clients, volumes, assignment, ..open() };
        (0..clients).map(|client| config.volumes_of(client)).collect::<Vec<_>>()
    };
    assert_eq!(with(2, 5, Assignment::RoundRobin), [vec![0, 2, 4], vec![1, 3]]);
    assert_eq!(with(3, 2, Assignment::RoundRobin), [vec![0], vec![1], vec![0]]);
    assert_eq!(with(1, 2, Assignment::All), [vec![0, 1]]);
    let lists = vec![vec![1], vec![1, 0]];
    assert_eq!(with(2, 2, Assignment::Fixed { lists: lists.clone() }), lists);
}

#[test]
fn a_listed_client_asks_its_volumes_only() {
    let assignment = Assignment::Fixed { lists: vec![vec![0], vec![1], vec![0, 1], vec![1]] };
    for Arrival { request, .. } in play(&Config { assignment, ..open() }, 1, Span::us(1)) {
        let volume = request.target.0 - 4;
        assert!(
            request.source == NodeId(2) || volume == request.source.0 % 2 || request.source == NodeId(3) && volume == 1
        );
    }
}

#[test]
fn another_mix_leaves_times_volumes_and_addresses_as_they_were() {
    let without_operation = |write_share| -> Vec<_> {
        let config = Config { mix: Mix::with_write_share(write_share), ..open() };
        let played = play(&config, 1, Span::us(1));
        played.iter().map(|Arrival { at, request }| (*at, request.source, request.target, request.address)).collect()
    };
    assert_eq!(without_operation(0.0), without_operation(0.9));
}

#[test]
fn another_distribution_of_addresses_leaves_times_volumes_and_operations_as_they_were() {
    let without_address = |addresses| -> Vec<_> {
        let played = play(&Config { addresses, ..open() }, 1, Span::us(1));
        played.iter().map(|Arrival { at, request }| (*at, request.target, request.operation)).collect()
    };
    assert_eq!(without_address(Addresses::Uniform), without_address(Addresses::ScrambledZipfian { theta: 0.99 }));
    assert_eq!(without_address(Addresses::Sequential), without_address(Addresses::Latest { theta: 0.5 }));
}

#[test]
fn sequential_clients_sweep_through_each_volume_together() {
    let config = Config { addresses: Addresses::Sequential, working_set_blocks: 7, ..open() };
    let played = play(&config, 1, Span::us(1));
    for volume in [NodeId(4), NodeId(5)] {
        let blocks = played.iter().filter(|arrival| arrival.request.target == volume).map(|each| block(&each.request));
        assert!(blocks.zip((0..7).cycle()).all(|(block, expected)| block == expected));
    }
}

#[test]
fn zipfian_is_hottest_in_front_and_scrambled_zipfian_where_ycsb_puts_rank_zero() {
    let hottest = |addresses, block_of_rank_zero: u64, zeta: f64| {
        let played = play(&Config { addresses, ..open() }, 1, Span::us(1));
        let got = share(&played, |request| block(request) == block_of_rank_zero);
        // Each other rank shares its block with a probability of 1 in 1,000.
        assert!((got - 1.0 / zeta).abs() < 0.006, "{addresses:?}: {got}");
    };
    hottest(Addresses::Zipfian { theta: 0.99 }, 0, crate::storage::zeta(1_000, 0.99));
    hottest(Addresses::ScrambledZipfian { theta: 0.99 }, scramble(0) % 1_000, crate::storage::YCSB_ZETA);
}

#[test]
fn the_latest_blocks_are_read_most_and_insertions_move_on_block_by_block() {
    let config = Config { clients: 1, volumes: 1, ..of(profile("ycsb-d").unwrap()) };
    let mut newest = 999;
    let mut newest_reads = 0;
    let played = play(&config, 1, Span::us(1));
    for Arrival { request, .. } in &played {
        if is_write(request) {
            newest = (newest + 1) % 1_000;
            assert_eq!(block(request), newest);
        }
        newest_reads += u32::from(!is_write(request) && block(request) == newest);
    }
    let expected = 0.95 / crate::storage::zeta(1_000, 0.99);
    assert!((f64::from(newest_reads) / played.len() as f64 - expected).abs() < 0.01);
}

#[test]
fn scans_are_one_request_of_up_to_a_hundred_blocks_inside_the_working_set() {
    let played = play(&of(profile("ycsb-e").unwrap()), 1, Span::us(1));
    let mut longest = 0;
    for Arrival { request, .. } in played.iter().filter(|arrival| !is_write(&arrival.request)) {
        let blocks = request.bytes.count() / BLOCK;
        assert!(blocks >= 1 && block(request) + blocks <= 1_000);
        longest = longest.max(blocks);
    }
    assert_eq!(longest, 100);
}

#[test]
fn a_read_modify_write_is_a_read_and_when_it_has_ended_a_write_of_the_same_block() {
    let mix = Mix::Independent { classes: vec![Class { action: Action::ReadThenWrite, weight: 1.0 }] };
    for arrivals in [Arrivals::Closed { depth: 2, think: Span::us(3) }, Arrivals::Poisson { mean_gap_ps: 1e9 }] {
        let config = Config { clients: 1, arrivals, mix: mix.clone(), requests: Some(1_000), ..open() };
        let played = play(&config, 1, Span::us(5));
        assert_eq!(played.len(), 1_000);
        // The last reads' writes are over the limit.
        assert!((0.498..=0.5).contains(&share(&played, is_write)));
        for write in played.iter().filter(|arrival| is_write(&arrival.request)) {
            let read = played.iter().find(|read| {
                let place = |request: &Request| (request.target, request.address);
                read.at + Span::us(5) == write.at && place(&read.request) == place(&write.request)
            });
            assert_eq!(read.unwrap().request.operation, Operation::Read);
        }
    }
}

#[test]
fn read_modify_writes_do_not_change_the_pace_of_an_open_loop() {
    let reads = |mix| -> Vec<_> {
        let config = Config { mix, requests: None, duration: Some(Span::ms(1)), ..open() };
        let played = play(&config, 1, Span::us(1));
        played
            .iter()
            .filter(|arrival| !is_write(&arrival.request))
            .map(|read| (read.at, read.request.address))
            .collect()
    };
    let always = |action| Mix::Independent { classes: vec![Class { action, weight: 1.0 }] };
    assert_eq!(reads(always(Action::ReadThenWrite)), reads(always(Action::Read)));
}

#[test]
fn every_profile_plays_its_write_share() {
    for profile in &super::super::PROFILES {
        // Runs are long: their share settles slowly.
        let requests = if profile.write_run.is_some() { 400_000 } else { 40_000 };
        let played = play(&Config { requests: Some(requests), ..of(profile) }, 1, Span::us(1));
        let (got, published) = (share(&played, is_write), profile.mix().write_share());
        assert!((got - published).abs() < 0.025, "{}: {got} {published}", profile.name);
    }
}

#[test]
fn auction_mark_writes_and_reads_in_long_runs() {
    let played =
        play(&Config { clients: 1, requests: Some(400_000), ..of(profile("auction-mark").unwrap()) }, 1, Span::us(1));
    let changes = played.windows(2).filter(|pair| is_write(&pair[0].request) && !is_write(&pair[1].request)).count();
    let mean_run = played.iter().filter(|arrival| is_write(&arrival.request)).count() as f64 / changes as f64;
    assert!((mean_run / crate::storage::AUCTION_MARK_WRITE_RUN - 1.0).abs() < 0.1, "{mean_run}");
}

#[test]
#[should_panic(expected = "the load was not checked: working_set_blocks: 0")]
fn an_impossible_load_is_not_played() {
    Generator::new(&Config { working_set_blocks: 0, ..open() }, Seed(1));
}

proptest! {
    #[test]
    fn every_request_lies_in_its_volume_in_order_and_within_the_limits(
        clients in 1u32..5, volumes in 1u32..5, blocks in 1u64..50, profile in 0usize..11, seed in any::<u64>(), is_open in any::<bool>(),
    ) {
        let arrivals = if is_open { open().arrivals } else { Arrivals::Closed { depth: 3, think: Span::ZERO } };
        let assignment = Assignment::RoundRobin;
        let base = of(&super::super::PROFILES[profile]);
        let config = Config { clients, volumes, assignment, working_set_blocks: blocks, arrivals, requests: Some(200), ..base };
        let played = play(&config, seed, Span::us(7));
        prop_assert_eq!(played.len(), 200);
        prop_assert!(played.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let mut ids: Vec<u64> = played.iter().map(|arrival| arrival.request.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..200).collect::<Vec<_>>());
        for Arrival { request, .. } in &played {
            prop_assert!(request.source.0 < clients);
            prop_assert!((clients..clients + volumes).contains(&request.target.0));
            prop_assert!(request.address + request.bytes.count() <= config.working_set().count());
        }
    }
}
