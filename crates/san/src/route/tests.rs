//! Tests of distances against breadth-first search, and of port selection.

use super::*;
use crate::testing::{distances, network, routes, torus};
use crate::trail::TrailHop;
use base::Stream;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use topology::{Channel, Failures, Graph, Kind, LinkId, VertexId};

/// Distance vectors of all vertices, joined by links with delays.
struct Net<'a> {
    graph: &'a Graph,
    vectors: Vec<Option<DistanceVector>>,
    /// Advertisements in flight by arrival and number: the receiver, its port, and the channel.
    under_way: BTreeMap<(Time, u64), (VertexId, Port, Channel, Advertisement)>,
    broken: BTreeSet<LinkId>,
    delays: Stream,
    sent: u64,
    now: Time,
}

impl<'a> Net<'a> {
    fn new(graph: &'a Graph, config: &DistanceConfig, seed: u64) -> Net<'a> {
        let vector = |vertex: VertexId| {
            let forwards = graph.vertex(vertex).kind.forwards();
            let vertices = graph.vertices().len();
            forwards.then(|| DistanceVector::new(vertex, vertices, neighbours(graph, vertex, false), config))
        };
        Net {
            graph,
            vectors: graph.vertex_ids().map(vector).collect(),
            under_way: BTreeMap::new(),
            broken: BTreeSet::new(),
            delays: base::Seed(seed).stream("delays"),
            sent: 0,
            now: Time::ZERO,
        }
    }

    /// Emits the advertisements of all vertices that are due.
    fn poll(&mut self) {
        for (index, vector) in self.vectors.iter_mut().enumerate() {
            let Some(vector) = vector else { continue };
            vector.poll(self.now, |port, advertisement| {
                let from = VertexId(index as u32);
                let channel = self.graph.hops(from)[port.index()].channel;
                let (to, by) = peer(self.graph, from, port).expect("it is a port");
                let arrival = self.now + Span::ns(500 + self.delays.below(3_000));
                self.under_way.insert((arrival, self.sent), (to, by, channel, advertisement));
                self.sent += 1;
            });
        }
    }

    /// Runs until no advertisement is due before `until`. Returns the highest finite distance seen.
    fn run(&mut self, until: Time) -> u16 {
        let mut highest = 0;
        loop {
            self.poll();
            let due = self.vectors.iter().flatten().filter_map(DistanceVector::next_wakeup).min();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = [due, arrival].into_iter().flatten().min().filter(|next| *next <= until) else { break };
            self.now = next;
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= next) {
                let (to, by, channel, advertisement) = entry.remove();
                if !self.broken.contains(&channel.link()) {
                    let vector = self.vectors[to.index()].as_mut().expect("only hops listen");
                    vector.on_advertisement(next, by, &advertisement);
                    highest = highest.max(self.highest(to));
                }
            }
        }
        self.now = until;
        highest
    }

    fn highest(&self, at: VertexId) -> u16 {
        let vector = self.vectors[at.index()].as_ref().expect("it is a hop");
        self.graph.vertex_ids().filter_map(|to| vector.distance(to)).max().unwrap_or(0)
    }

    /// Fails or restores a link; both ends are notified.
    fn toggle(&mut self, link: LinkId) {
        let is_up = self.broken.remove(&link);
        if !is_up {
            self.broken.insert(link);
        }
        for channel in [link.forward(), link.backward()] {
            let vertex = self.graph.source(channel);
            let port =
                self.graph.hops(vertex).iter().position(|hop| hop.channel == channel).expect("it has the channel");
            let Some(vector) = &mut self.vectors[vertex.index()] else { continue };
            let port = Port(port as u16);
            if is_up { vector.link_up(self.now, port) } else { vector.link_down(self.now, port) }
        }
    }

    fn assert_shortest(&self) {
        let graph = self.graph.without(&Failures::of_links(self.broken.iter().copied()));
        for (index, vector) in self.vectors.iter().enumerate() {
            let Some(vector) = vector else { continue };
            let true_distances = graph.distances_from(VertexId(index as u32));
            for to in graph.vertex_ids() {
                let found = vector.distance(to).map(u32::from);
                assert_eq!(found, true_distances.to(to), "from {index} to {}", to.0);
            }
        }
    }
}

fn kinds() -> impl Strategy<Value = Graph> {
    let kind = prop_oneof![
        Just(Kind::Torus { dimensions: vec![3, 3] }),
        Just(Kind::Torus { dimensions: vec![2, 2] }),
        Just(Kind::Ring { nodes: 7 }),
        Just(Kind::DualRing { nodes: 8 }),
        Just(Kind::DaisyChain { nodes: 5 }),
        Just(Kind::Dragonfly { routers: 3, global_cables: 1, groups: 4 }),
    ];
    let switched = prop_oneof![
        Just(Kind::RedundantSwitches { switches: 2 }),
        Just(Kind::LeafSpine { leaves: 3, spines: 2, endpoints_per_leaf: 4 }),
    ];
    prop_oneof![
        kind.prop_map(|kind| {
            let adapters = network(kind.clone(), 0, 0).vertices().len() as u32;
            network(kind, 2, adapters)
        }),
        switched.prop_map(|kind| network(kind, 4, 4)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn after_any_failures_and_joins_all_distances_are_the_shortest(
        graph in kinds(), seed in any::<u64>(), is_poisoned in any::<bool>(),
        changes in prop::collection::vec((any::<u32>(), 0u64..60), 0..12),
    ) {
        let horizon = if is_poisoned { Horizon::PoisonedReverse } else { Horizon::BestOther };
        let mut net = Net::new(&graph, &DistanceConfig { horizon, ..distances() }, seed);
        for (link, gap_us) in changes {
            net.run(net.now + Span::us(gap_us));
            net.toggle(LinkId(link % graph.links().len() as u32));
        }
        let highest = net.run(Time::secs(1));
        net.assert_shortest();
        prop_assert!(highest < distances().infinity);
    }
}

#[test]
fn two_halves_that_lose_each_other_count_no_further_than_the_bound() {
    let graph = torus(1);
    let mut net = Net::new(&graph, &distances(), 3);
    net.run(Time::ms(1));
    let around: Vec<LinkId> = graph.hops(VertexId(4)).iter().map(|hop| hop.channel.link()).collect();
    let told = net.sent;
    around.into_iter().for_each(|link| net.toggle(link));
    let highest = net.run(Time::ms(100));
    net.assert_shortest();
    assert!(highest < distances().infinity);
    let rounds = (net.sent - told) / graph.channel_count() as u64;
    assert!(rounds <= u64::from(distances().infinity), "{rounds} rounds of telling");
}

#[test]
fn news_of_a_failed_link_goes_round_in_less_than_the_milliseconds_that_the_paper_recovers_in() {
    let graph = torus(1);
    let mut net = Net::new(&graph, &distances(), 3);
    net.run(Time::ms(1));
    net.toggle(LinkId(0));
    net.run(Time::ms(1) + Span::us(200));
    net.assert_shortest();
}

#[test]
fn a_neighbour_that_falls_silent_is_gone_after_the_hold_time_and_back_when_heard() {
    let graph = torus(1);
    let config = DistanceConfig { period: Span::us(100), hold: Span::us(250), infinity: 12, ..distances() };
    let mut net = Net::new(&graph, &config, 3);
    net.run(Time::us(200));
    let silent = VertexId(4);
    let kept = net.vectors[silent.index()].take().expect("it is a hop");
    // A vertex that is removed receives nothing either.
    net.vectors[silent.index()] = None;
    let asked = VertexId(0);
    let distance =
        |net: &Net, to: u32| net.vectors[asked.index()].as_ref().expect("it is a hop").distance(VertexId(to));
    assert_eq!(distance(&net, 4), Some(2));
    net.deaf_run(Time::ms(1));
    assert_eq!((distance(&net, 4), distance(&net, 13)), (None, None), "neither it nor its target is there");
    assert_eq!(distance(&net, 8), Some(2), "others are reached around it");
    net.vectors[silent.index()] = Some(kept);
    net.run(Time::ms(2));
    net.assert_shortest();
}

impl Net<'_> {
    /// As `run`, but packets to vertices without a vector are lost.
    fn deaf_run(&mut self, until: Time) {
        while self.now < until {
            self.poll();
            self.under_way.retain(|_, (to, ..)| self.vectors[to.index()].is_some());
            self.run((self.now + Span::ns(400)).min(until));
        }
    }
}

#[test]
fn a_neighbour_is_told_of_no_way_that_leads_through_it_but_of_another_one_if_asked_for() {
    let graph = network(Kind::Ring { nodes: 5 }, 0, 0);
    let told = |horizon| {
        let mut vectors: Vec<DistanceVector> = graph
            .vertex_ids()
            .map(|vertex| {
                DistanceVector::new(
                    vertex,
                    5,
                    neighbours(&graph, vertex, false),
                    &DistanceConfig { horizon, ..distances() },
                )
            })
            .collect();
        converge(&mut vectors.iter_mut().map(Some).collect::<Vec<_>>(), &graph, Time::ZERO);
        // What 1 has advertised to 0 about 4, which is 0's other neighbour.
        let port = graph.hops(VertexId(0)).iter().position(|hop| hop.to == VertexId(1)).expect("a neighbour");
        vectors[0].distance_by(VertexId(4), Port(port as u16))
    };
    assert_eq!(told(Horizon::PoisonedReverse), None);
    assert_eq!(told(Horizon::BestOther), Some(4));
}

/// Returns the router of `here` in a converged network.
fn router(graph: &Graph, here: u32, config: &RouteConfig) -> Router {
    routers(graph, config).swap_remove(here as usize).expect("it is a hop")
}

/// Returns the routers of all hops of a converged network.
fn routers(graph: &Graph, config: &RouteConfig) -> Vec<Option<Router>> {
    let vertices = graph.vertices().len();
    let mut routers: Vec<Option<Router>> = graph
        .vertex_ids()
        .map(|vertex| {
            let forwards = graph.vertex(vertex).kind.forwards();
            forwards.then(|| Router::new(vertex, vertices, neighbours(graph, vertex, false), config))
        })
        .collect();
    let mut distances: Vec<_> = routers.iter_mut().map(|router| router.as_mut().map(Router::distances_mut)).collect();
    converge(&mut distances, graph, Time::ZERO);
    routers
}

/// Returns the trail of a packet that has passed these vertices.
fn trail(vertices: &[u16]) -> Trail {
    let mut trail = Trail::default();
    for vertex in vertices {
        trail.pass_out(TrailHop { vertex: u32::from(*vertex), ..TrailHop::default() }, false).expect("there is room");
    }
    trail
}

fn choose(router: &mut Router, destination: VertexId, trail: &Trail) -> Option<Port> {
    router.choose(Time::ZERO, destination, Tag::default(), &mut trail.clone())
}

/// Builds a ring of five. From adapter 0 the target behind adapter 2 is 3 hops away by adapter 1,
/// and 4 by adapter 4.
fn ring() -> (Graph, VertexId, [Port; 2]) {
    let graph = network(Kind::Ring { nodes: 5 }, 1, 5);
    let port =
        |to| Port(graph.hops(VertexId(0)).iter().position(|hop| hop.to == VertexId(to)).expect("a neighbour") as u16);
    let ports = [port(1), port(4)];
    (graph, VertexId(7), ports)
}

#[test]
fn isr_takes_a_faster_longer_way_and_the_printed_algorithm_never_does() {
    let (graph, target, [near, far]) = ring();
    for (policy, expected) in [(Policy::Isr, far), (Policy::IsrAsPrinted, near)] {
        let mut router = router(&graph, 0, &routes(policy));
        router.learn(Time::ZERO, near, target, 0, 9_000);
        router.learn(Time::ZERO, far, target, 0, 4_000);
        assert_eq!(choose(&mut router, target, &Trail::default()), Some(expected), "{policy:?}");
    }
}

#[test]
fn the_printed_algorithm_can_even_keep_a_way_that_is_slower_and_no_shorter() {
    let graph = network(Kind::Ring { nodes: 4 }, 0, 4);
    let target = VertexId(6);
    for (policy, expected) in [(Policy::Isr, Port(1)), (Policy::IsrAsPrinted, Port(0))] {
        let mut router = router(&graph, 0, &routes(policy));
        assert_eq!([0, 1].map(|port| router.distances().distance_by(target, Port(port))), [Some(3), Some(3)]);
        router.learn(Time::ZERO, Port(0), target, 0, 9_000);
        router.learn(Time::ZERO, Port(1), target, 0, 4_000);
        assert_eq!(choose(&mut router, target, &Trail::default()), Some(expected), "{policy:?}");
    }
}

#[test]
fn equal_delays_go_the_shorter_way_and_of_the_shortest_what_was_never_tried_is_tried() {
    let (graph, target, [near, far]) = ring();
    let mut router = router(&graph, 0, &routes(Policy::Isr));
    [near, far].iter().for_each(|port| router.learn(Time::ZERO, *port, target, 0, 3_000));
    assert_eq!(choose(&mut router, target, &Trail::default()), Some(near));
    let graph = network(Kind::Ring { nodes: 4 }, 0, 4);
    let mut router = self::router(&graph, 0, &routes(Policy::Isr));
    router.learn(Time::ZERO, Port(0), VertexId(6), 0, 1);
    assert_eq!(choose(&mut router, VertexId(6), &Trail::default()), Some(Port(1)));
}

#[test]
fn a_longer_way_is_tried_by_one_io_and_only_when_the_best_known_one_is_congested() {
    let (graph, target, [near, far]) = ring();
    let mut router = router(&graph, 0, &routes(Policy::Isr));
    let choose = |router: &mut Router, now| router.choose(now, target, Tag::default(), &mut Trail::default());
    assert_eq!(choose(&mut router, Time::ZERO), Some(near), "nothing known of either");
    router.learn(Time::ZERO, near, target, 0, 9_000);
    assert_eq!(choose(&mut router, Time::ZERO), Some(near), "no congestion");
    router.learn(Time::ZERO, near, target, 1, 9_000);
    assert_eq!(choose(&mut router, Time::us(1)), Some(far), "congestion");
    assert_eq!(choose(&mut router, Time::us(1)), Some(near), "one is enough until it has told");
    router.learn(Time::us(2), far, target, 0, 5_000);
    assert_eq!(choose(&mut router, Time::us(3)), Some(far), "it was faster");
    router.learn(Time::ms(3), near, target, 0, 9_000);
    assert_eq!(choose(&mut router, Time::ms(3)), Some(near), "that was long ago");
}

#[test]
fn no_way_is_longer_than_the_stretch_while_a_shorter_one_is_free() {
    let (graph, target, [near, far]) = ring();
    let mut router = router(&graph, 0, &RouteConfig { stretch_max: 0, ..routes(Policy::Isr) });
    router.learn(Time::ZERO, near, target, 0, 9_000);
    router.learn(Time::ZERO, far, target, 0, 1_000);
    assert_eq!(choose(&mut router, target, &Trail::default()), Some(near));
    assert_eq!(choose(&mut router, target, &trail(&[1])), Some(far), "better than nowhere");
}

#[test]
fn what_the_hops_before_have_wasted_is_no_longer_to_be_had() {
    let (graph, target, [near, far]) = ring();
    let mut router = router(&graph, 0, &routes(Policy::Isr));
    router.learn(Time::ZERO, near, target, 0, 9_000);
    router.learn(Time::ZERO, far, target, 0, 1_000);
    for (allowed, expected) in [(5, far), (4, near)] {
        let mut trail = Trail::default();
        trail.links_left(allowed);
        trail.pass_out(TrailHop { vertex: 99, ..TrailHop::default() }, false).expect("there is room");
        assert_eq!(choose(&mut router, target, &trail), Some(expected), "{allowed} in all, one gone");
    }
}

/// Returns the vertices on the path of a command from the hop `from`, up to the target or the first
/// hop without a route.
fn way(graph: &Graph, routers: &mut [Option<Router>], now: Time, from: VertexId, target: VertexId) -> Vec<VertexId> {
    let (mut here, mut trail, mut way) = (from, Trail::default(), vec![from]);
    while let Some(router) = &mut routers[here.index()] {
        let Some(port) = router.choose(now, target, Tag::default(), &mut trail) else { break };
        let hop = TrailHop { vertex: here.0, ..TrailHop::default() };
        trail.pass_out(hop, false).expect("no way is longer than the header");
        here = graph.hops(here)[port.index()].to;
        way.push(here);
    }
    way
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_was_learnt_every_way_arrives_within_the_stretch_and_meets_no_hop_twice(
        graph in kinds(), stretch_max in 0u16..3, is_poisoned in any::<bool>(), candidates in 2u16..7,
        learnt in prop::collection::vec((any::<u32>(), any::<u16>(), any::<u32>(), 0u32..3, 1u32..90_000, 0u64..900), 0..200),
        ways in prop::collection::vec((any::<u32>(), any::<u32>(), 0u64..3), 1..40),
    ) {
        let horizon = if is_poisoned { Horizon::PoisonedReverse } else { Horizon::BestOther };
        let distance = DistanceConfig { horizon, candidates, ..distances() };
        let mut routers = routers(&graph, &RouteConfig { stretch_max, distance, ..routes(Policy::Isr) });
        let pick = |kind: fn(topology::VertexKind) -> bool, number: u32| {
            let all: Vec<_> = graph.vertex_ids().filter(|vertex| kind(graph.vertex(*vertex).kind)).collect();
            all[number as usize % all.len()]
        };
        for (at, port, about, level, delay_ns, us) in learnt {
            let at = pick(topology::VertexKind::forwards, at);
            let port = Port(port % graph.hops(at).len() as u16);
            let target = pick(|kind| kind == topology::VertexKind::Target, about);
            routers[at.index()].as_mut().expect("it is a hop").learn(Time::us(us), port, target, level, delay_ns);
        }
        for (from, to, ms) in ways {
            let from = pick(topology::VertexKind::forwards, from);
            let target = pick(|kind| kind == topology::VertexKind::Target, to);
            let mut way = way(&graph, &mut routers, Time::ms(ms), from, target);
            let shortest = graph.distances_from(from).to(target).expect("the network is whole");
            prop_assert_eq!(way.last(), Some(&target));
            prop_assert!(way.len() as u32 - 1 <= shortest + u32::from(stretch_max), "{:?}, shortest {}", way, shortest);
            way.sort();
            prop_assert!(way.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}

#[test]
fn nobody_sends_to_a_hop_of_the_trail_and_a_dead_end_is_none() {
    let (graph, target, [near, far]) = ring();
    for policy in [Policy::Isr, Policy::IsrAsPrinted, Policy::ShortestPath, Policy::Ecmp(EcmpHash::Io)] {
        let mut router = router(&graph, 0, &routes(policy));
        assert_eq!(choose(&mut router, target, &trail(&[4])), Some(near), "{policy:?}");
        assert_eq!(choose(&mut router, target, &trail(&[1])), Some(far), "{policy:?}");
        assert_eq!(choose(&mut router, target, &trail(&[4, 1])), None, "{policy:?}");
        assert_eq!(choose(&mut router, VertexId(9_999), &Trail::default()), None, "{policy:?}");
    }
}

#[test]
fn a_target_next_door_is_not_passed_by_however_slow_it_was() {
    let (graph, ..) = ring();
    let own = VertexId(5);
    let mut router = router(&graph, 0, &routes(Policy::Isr));
    let board = choose(&mut router, own, &Trail::default()).expect("it is next door");
    router.learn(Time::ZERO, board, own, 3, 50_000_000);
    assert_eq!(choose(&mut router, own, &Trail::default()), Some(board));
}

#[test]
fn equal_cost_multipath_keeps_a_session_on_one_way_and_spreads_ios() {
    let graph = torus(0);
    let target = VertexId(9 + 4);
    let ports = |hash| {
        let mut router = router(&graph, 0, &routes(Policy::Ecmp(hash)));
        let mut taken: BTreeMap<Port, u32> = BTreeMap::new();
        for command in 0..400 {
            let tag = Tag { command, ..Tag::default() };
            let port = router.choose(Time::ZERO, target, tag, &mut Trail::default()).expect("there are ways");
            *taken.entry(port).or_default() += 1;
            assert_eq!(router.distances().distance_by(target, port), router.distances().distance(target));
        }
        taken
    };
    assert_eq!(ports(EcmpHash::Session).len(), 1);
    let spread = ports(EcmpHash::Io);
    assert!(spread.len() == 2 && spread.values().all(|count| *count > 150), "{spread:?}");
}

#[test]
fn a_way_that_failed_is_not_offered_and_when_it_is_back_it_counts_as_untried() {
    let (graph, target, [near, far]) = ring();
    let mut router = router(&graph, 0, &routes(Policy::Isr));
    router.learn(Time::ZERO, near, target, 0, 9_000);
    router.link_down(Time::us(1), near);
    assert_eq!(choose(&mut router, target, &Trail::default()), Some(far));
    assert!(!router.distances_mut().drain_lost().any(|lost| lost == target), "there is another way");
    router.link_up(Time::us(2), near);
    assert_eq!(router.delays().estimate(0, target, near), 0);
}

/// A host or adapter with four cables to 1 and one to 2: every session keeps to one cable, sessions
/// spread as balls in four bins, and those of a dead cable move to the others.
#[test]
fn a_session_uses_one_link_of_a_team_by_hash_and_another_one_when_that_is_down() {
    let neighbour =
        |vertex| Neighbour { vertex: VertexId(vertex), forwards: true, listens: true, rate: base::Rate::gbps(100) };
    let around = vec![neighbour(1), neighbour(2), neighbour(1), neighbour(1), neighbour(1)];
    let config = RouteConfig { teams: true, ..routes(Policy::Isr) };
    let mut router = Router::new(VertexId(0), 4, around.clone(), &config);
    let choose = |router: &mut Router, session: u32, command: u16| {
        let tag = Tag { session: crate::SessionId(session), command, attempt: 0 };
        router.choose(Time::ZERO, VertexId(1), tag, &mut Trail::default()).expect("there is a cable")
    };
    let mut counts = [0_u32; 5];
    for session in 0..1_000 {
        let port = choose(&mut router, session, 0);
        assert!((1..9).all(|command| choose(&mut router, session, command) == port), "session {session}");
        counts[port.index()] += 1;
    }
    // 250 expected, with a deviation of 13.7.
    assert_eq!(counts[1], 0, "that leads elsewhere");
    assert!([0, 2, 3, 4].iter().all(|port| (195..=305).contains(&counts[*port])), "{counts:?}");
    router.link_down(Time::ZERO, Port(2));
    let moved = (0..1_000).map(|session| choose(&mut router, session, 0));
    assert!(moved.into_iter().all(|port| [0, 3, 4].contains(&port.index())));
    let mut alone = Router::new(VertexId(0), 4, around, &routes(Policy::Isr));
    alone.learn(Time::ZERO, Port(4), VertexId(1), 0, 1);
    let chosen: std::collections::BTreeSet<_> = (0..50).map(|session| choose(&mut alone, session, 0)).collect();
    assert_eq!(chosen.len(), 1, "without teams the policy chooses");
}
