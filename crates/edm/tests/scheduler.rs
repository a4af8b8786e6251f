//! Does the matching hold what 3.1 of the paper promises? Against a literal, slow model of it, over
//! random schedules.

mod model;

use base::{Bytes, Clock, NodeId, Rate, Span, Time};
use edm::pcs::memory as encoded;
use edm::scheduler::{Demand, DemandKind, Match, Refused, Scheduler};
use edm::{Body, Config, Matching, Message, MessageId, Ordering, Place, Policy, Tag};
use model::Model;
use proptest::prelude::*;

fn config() -> Config {
    Config { scheduler_clock: Clock::mhz(3_000), ..Config::TESTBED }
}

fn place(nodes: u32) -> Place {
    Place { nodes, rate: Rate::gbps(100) }
}

fn write(source: u32, target: u32, bytes: u32) -> Demand {
    demand(source, target, bytes, DemandKind::Write { batch: 1 })
}

/// What `target` reads from `source`.
fn answer(source: u32, target: u32, bytes: u32) -> Demand {
    let body = Body::ReadRequest { address: 0, bytes };
    let request = Message { source: NodeId(target), target: NodeId(source), id: MessageId(0), body };
    demand(source, target, bytes, DemandKind::Response { request })
}

fn demand(source: u32, target: u32, bytes: u32, kind: DemandKind) -> Demand {
    let id = id(bytes, matches!(kind, DemandKind::Write { .. }));
    Demand { source: NodeId(source), target: NodeId(target), id, bytes, kind, tag: Tag(0) }
}

/// One of few, with the top bit of writes.
fn id(number: u32, is_write: bool) -> MessageId {
    MessageId((number % 4) as u8 | if is_write { 0x80 } else { 0 })
}

/// A grant and when it is issued.
#[derive(Clone, Copy, Debug)]
struct Issued {
    at: Time,
    made: Match,
}

/// Runs every round that starts no later than `until`.
fn run_until(scheduler: &mut Scheduler, until: Time, issued: &mut Vec<Issued>) {
    let mut made = Vec::new();
    while let Some(start) = scheduler.next_iteration().filter(|start| *start <= until) {
        scheduler.iterate(start, &mut made);
        let at = start + scheduler.round();
        issued.extend(made.drain(..).map(|made| Issued { at, made }));
    }
}

/// One step of a random schedule.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Insert(Demand),
    /// Blocks on the uplink of a node besides its chunks.
    Book(u32, u64),
    Disable(u32),
    /// Source, target, id.
    Withdraw(NodeId, NodeId, MessageId),
}

fn sizes() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..=8, Just(64u32), 200u32..300, Just(512u32), 1u32..3_000]
}

fn demands(nodes: u32) -> impl Strategy<Value = Demand> {
    let pair = (0..nodes, 1..nodes).prop_map(move |(source, distance)| (source, (source + distance) % nodes));
    (pair, sizes(), 0u8..5).prop_map(|((source, target), bytes, kind)| match kind {
        0 | 1 => write(source, target, bytes),
        2 => demand(source, target, bytes.min(256), DemandKind::Write { batch: (bytes % 16 + 1) as u8 }),
        _ => answer(source, target, bytes),
    })
}

fn steps(nodes: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => prop_oneof![1u64..2_000, 1_000u64..40_000].prop_map(Step::Wait),
        8 => demands(nodes).prop_map(Step::Insert),
        1 => (0..nodes, 1u64..4).prop_map(|(node, blocks)| Step::Book(node, blocks)),
    ];
    prop::collection::vec(step, 1..120)
}

/// The same with withdrawals, of the first of a channel or of something else.
fn steps_and_withdrawals(nodes: u32) -> impl Strategy<Value = Vec<Step>> {
    let withdrawal = (0..nodes, 0..nodes + 1, 0u32..4, any::<bool>()).prop_map(|(source, target, number, is_write)| {
        Step::Withdraw(NodeId(source), NodeId(target), id(number, is_write))
    });
    let withdrawals = prop::collection::vec(prop::option::of(withdrawal), 120);
    (steps(nodes), withdrawals).prop_map(|(steps, withdrawals)| {
        steps.into_iter().zip(withdrawals).flat_map(|(step, withdrawal)| [Some(step), withdrawal]).flatten().collect()
    })
}

fn configs() -> impl Strategy<Value = Config> {
    let orders = prop_oneof![Just(Ordering::None), Just(Ordering::Channel), Just(Ordering::Pair)];
    let matchings = prop_oneof![Just(Matching::Continuous), Just(Matching::Slotted)];
    (any::<bool>(), orders, matchings, 1u32..4, 0u32..7, 1u8..4, any::<bool>()).prop_map(
        |(fcfs, ordering, matching, iterations_per_round, look_ahead_cycles, active_per_pair, asic)| Config {
            policy: if fcfs { Policy::Fcfs } else { Policy::Srpt },
            ordering,
            matching,
            iterations_per_round,
            look_ahead_cycles,
            active_per_pair,
            scheduler_clock: if asic { Clock::mhz(3_000) } else { Clock::hz(390_625_000) },
            ..config()
        },
    )
}

/// A scheduler and whatever it granted, over one schedule.
struct Played {
    scheduler: Scheduler,
    issued: Vec<Issued>,
    accepted: Vec<Demand>,
}

/// Plays `steps` to the end, with tags that count the demands.
fn play(config: Config, nodes: u32, steps: &[Step]) -> Played {
    let mut played =
        Played { scheduler: Scheduler::new(config, place(nodes)), issued: Vec::new(), accepted: Vec::new() };
    let mut now = Time::ZERO;
    for step in steps {
        match *step {
            Step::Wait(picoseconds) => now += Span::ps(picoseconds),
            Step::Book(node, blocks) => played.scheduler.book_uplink(now, NodeId(node), blocks),
            Step::Disable(port) => played.scheduler.disable(NodeId(port), &mut Vec::new()),
            Step::Withdraw(source, target, id) => {
                played.scheduler.withdraw(now, source, target, id);
            }
            Step::Insert(demand) => {
                let demand = Demand { tag: Tag(played.accepted.len() as u32), ..demand };
                if played.scheduler.insert(now, demand).is_ok() {
                    played.accepted.push(demand);
                }
            }
        }
        run_until(&mut played.scheduler, now, &mut played.issued);
    }
    run_until(&mut played.scheduler, Time::MAX, &mut played.issued);
    played
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The grants, the refusals and the moments at which there is something to match are those of
    /// the literal model.
    #[test]
    fn it_grants_what_a_literal_priority_pim_grants(config in configs(), (nodes, steps) in (2u32..7).prop_flat_map(|n| (Just(n), steps_and_withdrawals(n)))) {
        let mut scheduler = Scheduler::new(config, place(nodes));
        let mut model = Model::new(config, place(nodes));
        let mut now = Time::ZERO;
        let last = Step::Wait(1 << 40);
        for (number, step) in steps.iter().chain([&last]).enumerate() {
            match *step {
                Step::Wait(picoseconds) => {
                    let until = now + Span::ps(picoseconds);
                    while let Some(start) = scheduler.next_iteration().filter(|start| *start <= until) {
                        // It never sleeps through a moment at which the model would find a pair.
                        let must_start = model.earliest_start(now);
                        prop_assert!(must_start.is_none_or(|at| start <= at), "{start:?} is after {must_start:?}");
                        let mut made = Vec::new();
                        scheduler.iterate(start, &mut made);
                        now = now.max(start);
                        prop_assert_eq!(made, model.round(start));
                    }
                    if scheduler.next_iteration().is_none() {
                        prop_assert_eq!(model.waiting(), 0, "it sleeps while demands wait");
                    }
                    now = until;
                }
                Step::Insert(demand) => {
                    let demand = Demand { tag: Tag(number as u32), ..demand };
                    prop_assert_eq!(scheduler.insert(now, demand), model.insert(demand));
                }
                Step::Book(node, blocks) => {
                    scheduler.book_uplink(now, NodeId(node), blocks);
                    model.book_uplink(now, NodeId(node), blocks);
                }
                Step::Withdraw(source, target, id) => {
                    prop_assert_eq!(scheduler.withdraw(now, source, target, id), model.withdraw(source, target, id));
                }
                Step::Disable(_) => {}
            }
        }
        prop_assert_eq!(model.waiting(), 0);
    }

    /// A port takes part in one circuit at a time, in each direction; the next may start so much
    /// earlier that its grant is on the way while the last blocks pass.
    #[test]
    fn a_matching_is_a_matching(config in configs(), (nodes, steps) in (2u32..7).prop_flat_map(|n| (Just(n), steps_and_withdrawals(n)))) {
        let place = place(nodes);
        let look_ahead = config.scheduler_clock.cycles(u64::from(config.look_ahead_cycles));
        let mut free = vec![[Time::ZERO; 2]; nodes as usize];
        let played = play(config, nodes, &steps);
        for Issued { at, made } in &played.issued {
            let (source, target) = (made.demand.source.index(), made.demand.target.index());
            let both_free = free[source][0].max(free[target][1]);
            prop_assert!(*at + look_ahead >= both_free, "{made:?} at {at:?} overlaps a circuit until {both_free:?}");
            let until = (*at).max(both_free) + place.blocks(made.blocks);
            (free[source][0], free[target][1]) = (until, until);
        }
        // In one round no port is matched twice unless the chunk itself is shorter than the
        // look-ahead.
        let least = place.blocks(2);
        if config.iterations_per_round == 1 && look_ahead < least {
            for pair in played.issued.chunk_by(|a, b| a.at == b.at) {
                let mut sources: Vec<_> = pair.iter().map(|issued| issued.made.demand.source).collect();
                let mut targets: Vec<_> = pair.iter().map(|issued| issued.made.demand.target).collect();
                sources.sort();
                targets.sort();
                prop_assert!(sources.windows(2).all(|two| two[0] != two[1]));
                prop_assert!(targets.windows(2).all(|two| two[0] != two[1]));
            }
        }
    }

    /// Every accepted demand is granted to its last byte, in chunks, and in order within its
    /// channel, whatever the policy (unless it is told to keep no order at all).
    #[test]
    fn every_demand_is_granted_whole_and_in_order(config in configs(), (nodes, steps) in (2u32..7).prop_flat_map(|n| (Just(n), steps(n)))) {
        let played = play(config, nodes, &steps);
        let mut granted = vec![0u32; played.accepted.len()];
        let mut at_work = std::collections::BTreeMap::new();
        for Issued { made, .. } in &played.issued {
            let Match { demand, bytes, first, last, .. } = made;
            let so_far = &mut granted[demand.tag.0 as usize];
            prop_assert_eq!(*first, *so_far == 0);
            *so_far += bytes;
            prop_assert!(*bytes > 0 && u64::from(*bytes) <= config.chunk.count());
            prop_assert_eq!(*last, *so_far == demand.bytes);
            let is_write = matches!(demand.kind, DemandKind::Write { .. });
            if config.ordering == Ordering::None {
                continue;
            }
            let channel = at_work.entry((demand.source, demand.target, is_write)).or_insert((demand.tag, true));
            let (before, finished) = *channel;
            prop_assert!(before == demand.tag || (finished && before < demand.tag), "{demand:?} overtakes {before:?}");
            *channel = (demand.tag, *last);
        }
        for (demand, granted) in played.accepted.iter().zip(granted) {
            prop_assert_eq!(demand.bytes, granted);
        }
    }

    /// Ordering `Pair`: the first grant of a write is later than the forwarding of every earlier
    /// read of the same pair.
    #[test]
    fn a_write_never_overtakes_an_earlier_read_of_its_pair(config in configs(), (nodes, steps) in (2u32..4).prop_flat_map(|n| (Just(n), steps(n)))) {
        let config = Config { ordering: Ordering::Pair, ..config };
        let played = play(config, nodes, &steps);
        let first_grant = |tag: Tag| played.issued.iter().position(|issued| issued.made.demand.tag == tag);
        for write in played.accepted.iter().filter(|demand| matches!(demand.kind, DemandKind::Write { .. })) {
            for read in played.accepted.iter().filter(|demand| matches!(demand.kind, DemandKind::Response { .. })) {
                if (read.target, read.source) == (write.source, write.target) && read.tag < write.tag {
                    prop_assert!(first_grant(read.tag) < first_grant(write.tag), "{write:?} overtook {read:?}");
                }
            }
        }
    }

    /// Disabling ports at any time forgets exactly their demands and leaves the others to be
    /// granted whole.
    #[test]
    fn a_disabled_port_takes_only_its_own_demands_along(config in configs(), before in steps(5), after in steps(5), port in 0u32..5) {
        let mut scheduler = Scheduler::new(config, place(5));
        let (mut left, mut issued, mut now) = (std::collections::BTreeMap::new(), Vec::new(), Time::ZERO);
        let mut forgotten = Vec::new();
        for (number, step) in before.iter().chain([&Step::Disable(port)]).chain(&after).enumerate() {
            match *step {
                Step::Wait(picoseconds) => now += Span::ps(picoseconds),
                Step::Book(..) | Step::Withdraw(..) => {}
                Step::Disable(port) => scheduler.disable(NodeId(port), &mut forgotten),
                Step::Insert(demand) => {
                    let demand = Demand { tag: Tag(number as u32), ..demand };
                    let touches = demand.source == NodeId(port) || demand.target == NodeId(port);
                    match scheduler.insert(now, demand) {
                        Ok(()) => { left.insert(demand.tag, demand); }
                        Err(Refused::PortDisabled { port: named }) => prop_assert!(touches && named == NodeId(port)),
                        Err(other) => {
                            let full = matches!(other, Refused::PairFull { .. });
                            prop_assert!(full, "{other}");
                        }
                    }
                }
            }
            run_until(&mut scheduler, now, &mut issued);
        }
        run_until(&mut scheduler, Time::MAX, &mut issued);
        for Issued { made, .. } in issued.iter().filter(|issued| issued.made.last) {
            prop_assert!(left.remove(&made.demand.tag).is_some(), "granted twice");
        }
        for tag in forgotten {
            let demand = left.remove(&tag).expect("only what waits is forgotten, and once");
            prop_assert!(demand.source == NodeId(port) || demand.target == NodeId(port));
        }
        prop_assert!(left.is_empty(), "{left:?} was neither granted nor forgotten");
        for node in 0..5 {
            prop_assert_eq!(scheduler.waiting(NodeId(node)), 0);
        }
    }

    /// 3.1.2: no queue is longer than X a source, for each of the two things that data can be for.
    #[test]
    fn a_notification_queue_holds_at_most_x_a_source(config in configs(), (nodes, steps) in (2u32..7).prop_flat_map(|n| (Just(n), steps(n)))) {
        let played = play(config, nodes, &steps);
        let sources = nodes - 1;
        prop_assert!(played.scheduler.longest_queue() <= 2 * u32::from(config.active_per_pair) * sources);
    }

    /// With no new arrivals, and chunks so long that nothing becomes free meanwhile, iterations go
    /// on until no waiting demand has both of its ports free.
    #[test]
    fn iterations_reach_a_maximal_matching(config in configs(), demands in prop::collection::vec(demands(12), 1..200)) {
        let config = Config { chunk: Bytes::new(60_000), matching: Matching::Continuous, ..config };
        let mut scheduler = Scheduler::new(config, place(12));
        let mut waiting = Vec::new();
        for demand in demands {
            let demand = Demand { bytes: 60_000, kind: DemandKind::Write { batch: 1 }, ..demand };
            if scheduler.insert(Time::ZERO, demand).is_ok() {
                waiting.push((demand.source, demand.target));
            }
        }
        let mut issued = Vec::new();
        run_until(&mut scheduler, Time::us(2), &mut issued);
        let sources: Vec<_> = issued.iter().map(|issued| issued.made.demand.source).collect();
        let targets: Vec<_> = issued.iter().map(|issued| issued.made.demand.target).collect();
        for (source, target) in waiting {
            prop_assert!(sources.contains(&source) || targets.contains(&target), "{source:?} and {target:?} stay idle");
        }
        // Each iteration but the last matches at least one more of twelve ports.
        prop_assert!(scheduler.iterations() <= 12 * 2 + 2, "{} iterations", scheduler.iterations());
    }
}

/// 3.1.3: the number of iterations to a maximal matching grows like log N, not like N.
#[test]
fn a_full_demand_matrix_is_matched_in_few_iterations() {
    let mut means = Vec::new();
    for nodes in [16u32, 64, 256] {
        let mut total = 0;
        for seed in 0..8u32 {
            // Random priorities: with equal ones every target would ask the same source.
            let mut random = base::Seed(u64::from(seed)).stream("demands");
            let mut scheduler = Scheduler::new(Config { chunk: Bytes::new(60_000), ..config() }, place(nodes));
            for source in 0..nodes {
                for target in (0..nodes).filter(|target| *target != source) {
                    let bytes = 60_000 + random.below(1 << 20) as u32;
                    scheduler.insert(Time::ZERO, write(source, target, bytes)).unwrap();
                }
            }
            let mut issued = Vec::new();
            run_until(&mut scheduler, Time::us(2), &mut issued);
            assert!(issued.len() as u32 >= nodes - 1, "{} of {nodes} ports matched", issued.len());
            total += scheduler.iterations();
        }
        means.push(total as f64 / 8.0);
    }
    for (mean, nodes) in means.iter().zip([16f64, 64.0, 256.0]) {
        assert!(*mean <= 2.0 * nodes.log2() + 2.0, "{means:?} iterations at 16, 64 and 256 ports");
    }
}

/// Both sides of the edge at which a busy port may be granted again: `l/B` less the look-ahead.
#[test]
fn a_port_is_matched_again_at_l_over_b_less_the_look_ahead_and_not_a_picosecond_earlier() {
    for look_ahead_cycles in [0, 1, 3, 6] {
        let config = Config { look_ahead_cycles, ..config() };
        let mut scheduler = Scheduler::new(config, place(3));
        scheduler.insert(Time::ns(5), write(0, 1, 256)).unwrap();
        let mut issued = Vec::new();
        run_until(&mut scheduler, Time::ns(6), &mut issued);
        let busy_until = issued[0].at + place(3).blocks(encoded::write_blocks(256));
        let look_ahead = config.scheduler_clock.cycles(u64::from(look_ahead_cycles));
        let edge = busy_until - look_ahead - scheduler.round();
        for next in [write(0, 2, 64), write(2, 1, 64)] {
            let mut early = scheduler.clone();
            early.insert(Time::ns(7), next).unwrap();
            assert_eq!(early.next_iteration(), Some(edge));
            let mut legal = early.clone();
            let mut made = Vec::new();
            early.iterate(edge - Span::ps(1), &mut made);
            assert_eq!(made, [], "blocked at l/B - 1 ps");
            assert_eq!(
                early.next_iteration(),
                Some((edge - Span::ps(1)) + early.round()),
                "and no sooner than a round later"
            );
            legal.iterate(edge, &mut made);
            assert_eq!(made.len(), 1, "eligible at l/B");
        }
    }
}

/// What the scheduler itself puts on a downlink keeps that port busy: one block for /G/, two for a
/// forwarded RREQ.
#[test]
fn a_grant_takes_its_place_on_the_downlink_of_its_source() {
    for (first, blocks) in
        [(write(0, 1, 64), encoded::GRANT_BLOCKS), (answer(0, 1, 64), encoded::read_request_blocks(64))]
    {
        let config = Config { look_ahead_cycles: 0, ..config() };
        let slow = Place { nodes: 3, rate: Rate::gbps(25) };
        let mut scheduler = Scheduler::new(config, slow);
        scheduler.insert(Time::ZERO, first).unwrap();
        let mut issued = Vec::new();
        run_until(&mut scheduler, Time::ZERO, &mut issued);
        scheduler.insert(Time::ZERO, write(2, 0, 64)).unwrap();
        run_until(&mut scheduler, Time::MAX, &mut issued);
        assert_eq!(issued[1].at.saturating_since(issued[0].at), slow.blocks(blocks));
    }
}

#[test]
fn every_broken_rule_is_refused_by_its_name_and_changes_nothing() {
    let mut scheduler = Scheduler::new(Config { active_per_pair: 2, ..config() }, place(4));
    let untouched = format!("{scheduler:?}");
    let (zero, one, four) = (NodeId(0), NodeId(1), NodeId(4));
    let nobody = |source_port, target| Err(Refused::NoSuchPort { source_port, target, nodes: 4 });
    assert_eq!(scheduler.insert(Time::ZERO, write(4, 1, 64)), nobody(four, one));
    assert_eq!(scheduler.insert(Time::ZERO, write(1, 4, 64)), nobody(one, four));
    assert_eq!(scheduler.insert(Time::ZERO, write(1, 1, 64)), nobody(one, one));
    assert_eq!(scheduler.insert(Time::ZERO, write(0, 1, 0)), Err(Refused::Empty));
    assert_eq!(format!("{scheduler:?}"), untouched);
    for _ in 0..2 {
        scheduler.insert(Time::ZERO, write(0, 1, 64)).unwrap();
        scheduler.insert(Time::ZERO, answer(0, 1, 64)).unwrap();
    }
    let full = Err(Refused::PairFull { source_port: zero, target: one, limit: 2 });
    let before = format!("{scheduler:?}");
    assert_eq!(scheduler.insert(Time::ZERO, write(0, 1, 64)), full);
    assert_eq!(scheduler.insert(Time::ZERO, answer(0, 1, 64)), full);
    assert_eq!(format!("{scheduler:?}"), before);
    assert_eq!(scheduler.insert(Time::ZERO, write(1, 0, 64)), Ok(()), "the other direction is another pair");
    // A notification is active until its last grant.
    run_until(&mut scheduler, Time::ns(1), &mut Vec::new());
    assert_eq!(scheduler.waiting(one), 3);
    assert_eq!(
        scheduler.insert(Time::ns(2), write(0, 1, 64)).is_ok() as u8
            + scheduler.insert(Time::ns(2), answer(0, 1, 64)).is_ok() as u8,
        1
    );
    scheduler.disable(one, &mut Vec::new());
    assert_eq!(scheduler.insert(Time::ns(3), write(0, 1, 64)), Err(Refused::PortDisabled { port: one }));
    assert_eq!(scheduler.insert(Time::ns(3), write(1, 2, 64)), Err(Refused::PortDisabled { port: one }));
    assert_eq!(scheduler.insert(Time::ns(3), write(2, 3, 64)), Ok(()));
}

/// Reads and writes all to all, every node in both roles and every queue full. With one queue for
/// both classes of an ordered pair this stands still: a write of A to B waits for A's earlier read
/// of B, whose answer is behind a write of B to A, which waits for B's earlier read of A, whose
/// answer is behind the write of A to B.
#[test]
fn reads_and_writes_in_both_roles_never_wait_for_each_other_in_a_circle() {
    for policy in [Policy::Srpt, Policy::Fcfs] {
        let config = Config { policy, ordering: Ordering::Pair, ..config() };
        let nodes = 6;
        let mut scheduler = Scheduler::new(config, place(nodes));
        let (mut issued, mut accepted) = (Vec::new(), 0);
        for turn in 0..30u64 {
            let now = Time::ns(10 * turn);
            for source in 0..nodes {
                for target in (0..nodes).filter(|target| *target != source) {
                    accepted += usize::from(scheduler.insert(now, answer(source, target, 700)).is_ok());
                    accepted += usize::from(scheduler.insert(now, write(source, target, 700)).is_ok());
                }
            }
            run_until(&mut scheduler, now, &mut issued);
        }
        run_until(&mut scheduler, Time::MAX, &mut issued);
        assert_eq!(issued.iter().filter(|issued| issued.made.last).count(), accepted);
        assert!((0..nodes).all(|node| scheduler.waiting(NodeId(node)) == 0));
    }
}

/// Demands of each pair are replaced as soon as they are granted: every port is wanted all the
/// time, by everybody. `refill` says which pairs are; returns when the victim, which asks once at
/// `since`, is granted, if it is by `end`.
fn grant_of_victim(
    config: Config,
    nodes: u32,
    victim: Demand,
    since: Time,
    end: Time,
    refill: impl Fn(u32, u32) -> Option<u32>,
) -> Option<Time> {
    let mut scheduler = Scheduler::new(config, place(nodes));
    let mut issued: Vec<Issued> = Vec::new();
    let mut asked = false;
    let mut now = Time::ZERO;
    while now < end {
        for source in 0..nodes {
            for target in (0..nodes).filter(|target| *target != source) {
                if let Some(bytes) = refill(source, target) {
                    while scheduler.insert(now, write(source, target, bytes)).is_ok() {}
                }
            }
        }
        if !asked && now >= since {
            asked = true;
            scheduler.insert(now, Demand { tag: Tag(1), ..victim }).unwrap();
        }
        now = scheduler.next_iteration().expect("demands wait").max(now);
        issued.clear();
        run_until(&mut scheduler, now, &mut issued);
        if let Some(granted) = issued.iter().find(|issued| issued.made.demand.tag == Tag(1)) {
            return Some(granted.at);
        }
    }
    None
}

/// SRPT starves by design: a long message loses against an endless supply of short ones for the
/// same port.
#[test]
fn srpt_lets_short_messages_starve_a_long_one_and_fcfs_does_not() {
    let shorts = |source: u32, target: u32| (target == 0 && source != 1).then_some(64);
    let (since, end) = (Time::us(1), Time::us(400));
    let granted = |policy| {
        let config = Config { policy, ..config() };
        grant_of_victim(config, 4, write(1, 0, 4096), since, end, shorts)
    };
    assert_eq!(granted(Policy::Srpt), None);
    // At most X demands of each of the two others are older.
    let chunk = place(4).blocks(encoded::write_blocks(64));
    let bound = since + (chunk + config().scheduler_clock.cycles(3)) * (2 * 3 + 2);
    assert!(granted(Policy::Fcfs).is_some_and(|at| at <= bound));
}

/// A source and a target that are always wanted, with chunks that end at different times, are
/// hardly ever free together: a matching that only looks at ports that are free lets the one demand
/// between them wait for ever. It must not.
#[test]
fn fcfs_serves_a_demand_between_two_ports_that_everybody_else_keeps_busy() {
    let sizes: [fn(u32, u32) -> u32; 3] =
        [|_, _| 256, |source, target| 64 + 8 * ((source * 7 + target * 3) % 20), |source, _| 200 + 56 * source.min(1)];
    for (nodes, look_ahead_cycles) in [(3, 0), (3, 3), (6, 0), (6, 3), (10, 3)] {
        let config = Config { policy: Policy::Fcfs, look_ahead_cycles, ..config() };
        let chunk = place(nodes).blocks(encoded::write_blocks(256) + 1) + config.scheduler_clock.cycles(6);
        let full_queue = u64::from(3 * nodes);
        for (size, shift) in sizes.iter().flat_map(|size| (0..12).map(move |shift| (size, shift))) {
            let refill = |source, target| ((source, target) != (0, 1)).then(|| size(source, target));
            let since = Time::ps(1_000_000 + 3_203 * shift);
            let end = since + chunk * full_queue * full_queue;
            let granted = grant_of_victim(config, nodes, write(0, 1, 256), since, end, refill);
            assert!(granted.is_some(), "starved among {nodes} nodes");
        }
    }
}

/// A write waits for a read of its pair. Once another grant of the iteration has sent the read on,
/// the write is the oldest of its target's queue. The target's own grant did not pass it over.
#[test]
fn a_demand_that_enters_a_queue_after_the_request_has_not_been_passed_over() {
    let config = Config { policy: Policy::Fcfs, active_per_pair: 1, ..config() };
    let mut scheduler = Scheduler::new(config, place(3));
    let mut issued = Vec::new();
    // Port 0 is busy for long.
    scheduler.insert(Time::ZERO, write(0, 1, 8)).unwrap();
    let now = Time::ZERO + scheduler.round();
    run_until(&mut scheduler, now, &mut issued);
    scheduler.book_uplink(now, NodeId(0), 10_000);
    // Grants of one iteration: the read of port 0 at port 2, and the first chunk of port 1's write.
    for demand in [answer(2, 0, 8), write(0, 2, 8), write(1, 2, 10 * 256)] {
        scheduler.insert(now, demand).unwrap();
    }
    run_until(&mut scheduler, Time::MAX, &mut issued);
    let sources: Vec<u32> = issued.iter().map(|issued| issued.made.demand.source.0).collect();
    // X times N chunks pass over the write of port 0; then it is the only candidate.
    assert_eq!(sources, [&[0, 2, 1][..], &[1; 3], &[0], &[1; 6]].concat());
}

fn slotted() -> Config {
    Config { matching: Matching::Slotted, iterations_per_round: 3, ..config() }
}

/// 3.1.3: a slot lets a chunk of 256 B and a grant pass (34 + 1 blocks of 0.64 ns), and is never
/// shorter than the round that forms the next matching.
#[test]
fn a_slot_is_a_chunk_and_its_grant_or_a_round_if_that_is_longer() {
    let chunk = place(4).blocks(encoded::write_blocks(256) + encoded::GRANT_BLOCKS);
    assert_eq!(edm::budget::slot(&slotted(), &place(4)), Some(chunk));
    let long = Config { iterations_per_round: 64, ..slotted() };
    assert_eq!(edm::budget::slot(&long, &place(4)), Some(long.scheduler_clock.cycles(3 * 64)));
    assert_eq!(edm::budget::slot(&config(), &place(4)), None);
}

/// Two long transfers half a chunk out of phase. A short message from the source of one to the
/// target of the other, the most urgent of all, finds the two free together at once or never.
#[test]
fn slots_serve_a_short_message_that_transfers_out_of_phase_hold_up() {
    let (chunks, asked) = (100, Time::ns(200));
    let chunk = place(4).blocks(encoded::write_blocks(256));
    let granted = |config: Config| {
        let mut scheduler = Scheduler::new(config, place(4));
        let mut issued = Vec::new();
        scheduler.insert(Time::ZERO, write(0, 1, chunks * 256)).unwrap();
        run_until(&mut scheduler, Time::ZERO + chunk / 2, &mut issued);
        scheduler.insert(Time::ZERO + chunk / 2, write(2, 3, chunks * 256)).unwrap();
        run_until(&mut scheduler, asked, &mut issued);
        scheduler.insert(asked, Demand { tag: Tag(1), ..write(0, 3, 64) }).unwrap();
        run_until(&mut scheduler, Time::MAX, &mut issued);
        issued.iter().find(|issued| issued.made.demand.tag == Tag(1)).expect("it is served").at
    };
    assert!(granted(config()) > Time::ZERO + chunk * u64::from(chunks - 1), "only when a transfer is over");
    let slot = edm::budget::slot(&slotted(), &place(4)).expect("it has slots");
    let next = asked.as_ps().next_multiple_of(slot.as_ps());
    assert_eq!(granted(slotted()), Time::ps(next) + Scheduler::new(slotted(), place(4)).round());
}

/// A demand that its source withdraws leaves as if it had been granted whole: a write before its
/// first grant too, a response between two. Any other is left alone.
#[test]
fn only_the_head_of_a_channel_is_withdrawn_and_the_next_one_competes() {
    for (is_write, started) in [(true, false), (true, true), (false, true)] {
        let mut scheduler = Scheduler::new(config(), place(3));
        let first = if is_write { write(0, 1, 100_000) } else { answer(0, 1, 100_000) };
        let second = Demand { id: MessageId(first.id.0 + 1), bytes: 64, ..first };
        for demand in [first, second] {
            scheduler.insert(Time::ZERO, demand).expect("there is room");
        }
        let mut issued = Vec::new();
        let now = Time::ns(100 * u64::from(started));
        if started {
            run_until(&mut scheduler, now, &mut issued);
        }
        let other_class = MessageId(first.id.0 ^ 0x80);
        let none = [(0, 1, second.id), (0, 1, other_class), (1, 0, first.id), (0, 2, first.id), (0, 9, first.id)];
        for (source, target, id) in none.into_iter().chain([(9, 1, first.id), (1, 1, first.id)]) {
            assert!(!scheduler.withdraw(now, NodeId(source), NodeId(target), id), "{source} to {target}: {id:?}");
        }
        assert_eq!(scheduler.waiting(NodeId(1)), 2);
        assert!(scheduler.withdraw(now, NodeId(0), NodeId(1), first.id));
        assert!(!scheduler.withdraw(now, NodeId(0), NodeId(1), first.id), "once is enough");
        let before = issued.len();
        run_until(&mut scheduler, Time::us(10), &mut issued);
        assert_eq!(before > 0, started);
        assert!(issued[..before].iter().all(|issued| issued.made.demand == first));
        assert!(matches!(&issued[before..], [Issued { made, .. }] if made.demand == second && made.last));
        assert_eq!(scheduler.waiting(NodeId(1)), 0);
    }
}

/// The memory node does not know of a read that waits in the switch, with its request: to withdraw
/// it is a lie. The read goes on, and holds back the later writes of its pair until it does.
#[test]
fn a_response_that_was_not_sent_on_is_not_withdrawn() {
    let mut scheduler = Scheduler::new(config(), place(3));
    // The memory node is busy for a while.
    scheduler.insert(Time::ZERO, write(1, 2, 256)).expect("there is room");
    let mut issued = Vec::new();
    run_until(&mut scheduler, Time::ps(1), &mut issued);
    let (read, write) = (answer(1, 0, 100_000), write(0, 1, 64));
    for demand in [read, write] {
        scheduler.insert(Time::ps(1), demand).expect("there is room");
    }
    run_until(&mut scheduler, Time::ns(2), &mut issued);
    assert_eq!(issued.len(), 1, "the write waits for the read, and the read for its source");
    assert!(!scheduler.withdraw(Time::ns(2), NodeId(1), NodeId(0), read.id));
    run_until(&mut scheduler, Time::ns(60), &mut issued);
    assert_eq!(issued[1].made.demand, read);
    assert!(issued.iter().any(|issued| issued.made.demand == write), "{issued:?}");
    assert!(scheduler.withdraw(Time::ns(60), NodeId(1), NodeId(0), read.id), "now it is sent on");
}

/// The demands of a dead port are gone: none is withdrawn.
#[test]
fn a_disabled_port_has_nothing_to_withdraw() {
    let mut scheduler = Scheduler::new(config(), place(3));
    let demand = write(0, 1, 1_000);
    scheduler.insert(Time::ZERO, demand).expect("there is room");
    scheduler.disable(NodeId(1), &mut Vec::new());
    assert!(!scheduler.withdraw(Time::ZERO, NodeId(0), NodeId(1), demand.id));
    assert!(scheduler.insert(Time::ZERO, demand).is_err());
}

/// Under FCFS a target that has passed over its oldest demand too often sleeps until that one's
/// source is free. When it is withdrawn, the next one is granted at once.
#[test]
fn a_target_that_waits_for_its_oldest_demand_goes_on_when_that_is_withdrawn() {
    let config = Config { policy: Policy::Fcfs, active_per_pair: 1, chunk: Bytes::new(60_000), ..config() };
    let mut scheduler = Scheduler::new(config, place(3));
    // Its source is busy for 5 us.
    let oldest = write(0, 2, 64);
    for demand in [write(0, 1, 60_000), oldest] {
        scheduler.insert(Time::ZERO, demand).expect("there is room");
    }
    let mut issued = Vec::new();
    let mut now = Time::ZERO;
    for granted in [2, 3, 4, 4] {
        scheduler.insert(now, write(1, 2, 64)).expect("there is room");
        now += Span::ns(100);
        run_until(&mut scheduler, now, &mut issued);
        assert_eq!(issued.len(), granted, "{issued:?}");
    }
    assert!(scheduler.withdraw(now, NodeId(0), NodeId(2), oldest.id));
    run_until(&mut scheduler, now + Span::ns(100), &mut issued);
    assert_eq!(issued.len(), 5, "{issued:?}");
}
