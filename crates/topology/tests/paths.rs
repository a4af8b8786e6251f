//! Tests that paths are valid, shortest ones are shortest, and routes are those of T27.

mod common;

use common::{any_config, bare, built, mesh, torus, with_endpoints};
use proptest::prelude::*;
use std::collections::BTreeSet;
use topology::{Failures, Graph, Kind, Path, RouteError, VertexId};

fn assert_is_path(graph: &Graph, path: &Path, source: VertexId, target: VertexId) {
    assert_eq!((path.vertices[0], path.end()), (source, target));
    assert_eq!(path.vertices.len(), path.channels.len() + 1);
    for (pair, channel) in path.vertices.windows(2).zip(&path.channels) {
        assert_eq!([graph.source(*channel), graph.target(*channel)], pair);
        assert!(graph.link_works(channel.link()));
    }
    let inner = path.vertices.iter().skip(1).take(path.hops().saturating_sub(1));
    assert!(inner.into_iter().all(|vertex| graph.vertex(*vertex).kind.forwards()));
    assert_eq!(path.vertices.iter().collect::<BTreeSet<_>>().len(), path.vertices.len(), "no vertex twice");
}

#[test]
fn shortest_paths_of_a_mesh_are_the_ways_to_choose_steps() {
    let graph = built(&mesh(&[4, 3]));
    // Three steps right and two down: 5 over 2.
    assert_eq!(graph.count_minimal_paths(VertexId(0), VertexId(11)), 10);
    assert_eq!(graph.minimal_paths(VertexId(0), VertexId(11)).count(), 10);
}

#[test]
fn opposite_corners_of_a_torus_double_the_ways_of_every_even_dimension() {
    let graph = built(&torus(&[8, 8, 8]));
    let far = graph.grid().unwrap().vertex(&[4, 4, 4]);
    // 12! / (4! 4! 4!) orders, and two ways round in each dimension.
    assert_eq!(graph.count_minimal_paths(VertexId(0), far), 34_650 * 8);
    assert_eq!(graph.minimal_paths(VertexId(0), far).take(1_000).collect::<BTreeSet<_>>().len(), 1_000);
}

#[test]
fn a_bundle_multiplies_paths() {
    let mut config = bare(Kind::DaisyChain { nodes: 41 });
    config.cabling.fabric_cables = 16;
    let graph = built(&config);
    assert_eq!(graph.count_minimal_paths(VertexId(0), VertexId(31)), 1 << 124);
    assert_eq!(graph.count_minimal_paths(VertexId(0), VertexId(40)), u128::MAX, "2^160 does not fit");
}

#[test]
fn nobody_goes_through_a_host() {
    let mut config = with_endpoints(Kind::RedundantSwitches { switches: 2 }, 2, 2);
    config.ports.switch = 4;
    let graph = built(&config);
    let (first, second) = (VertexId(0), VertexId(1));
    assert_eq!(graph.distances_from(graph.named("t0").unwrap()).to(graph.named("h1").unwrap()), Some(2));
    let without_first = graph.without(&Failures::of_vertices([first]));
    assert!(without_first.joins(&without_first.nodes()));
    let both = graph.without(&Failures::of_vertices([first, second]));
    assert!(!both.joins(&both.nodes()));
    assert_eq!(both.distance_summary(&both.nodes()).unreached_pairs, 12);
}

/// The rule of `design/kernel.md`: dimension order x, y, z, the shorter way round, the positive way
/// on a tie, node = (z*K + y)*K + x.
fn t27_route(k: u32, source: u32, target: u32) -> Vec<u32> {
    let mut at = [source % k, source / k % k, source / k / k];
    let to = [target % k, target / k % k, target / k / k];
    let mut route = vec![source];
    for dimension in 0..3 {
        while at[dimension] != to[dimension] {
            let up = (to[dimension] + k - at[dimension]) % k;
            at[dimension] = (at[dimension] + if up <= k - up { 1 } else { k - 1 }) % k;
            route.push((at[2] * k + at[1]) * k + at[0]);
        }
    }
    route
}

#[test]
fn routes_of_a_torus_are_those_of_t27() {
    for k in [2, 3, 4, 5] {
        let graph = built(&torus(&[k, k, k]));
        for (source, target) in (0..k * k * k).flat_map(|source| (0..k * k * k).map(move |target| (source, target))) {
            let path = graph.dimension_order_route(VertexId(source), VertexId(target)).unwrap();
            assert_is_path(&graph, &path, VertexId(source), VertexId(target));
            assert_eq!(path.vertices.iter().map(|vertex| vertex.0).collect::<Vec<_>>(), t27_route(k, source, target));
        }
    }
}

#[test]
fn t27_moves_the_packets_and_hops_that_its_page_says() {
    // `design/kernel.md`: T27 of 10 ms has 1,428,223 packets and 2,966,303 link hops.
    let graph = built(&torus(&[3, 3, 3]));
    let sum: u32 = (1..27).map(|node| graph.distances_from(VertexId(0)).to(VertexId(node)).unwrap()).sum();
    let rate = 60e9 * 6.0 / f64::from(sum);
    let interval = (4096.0 * 8.0 * 1e12 / rate).floor() as u64;
    let pairs = (0..27).flat_map(|one| (0..27).map(move |other| (one, other))).filter(|(one, other)| one != other);
    let (mut packets, mut hops) = (0, 0);
    for (flow, (source, target)) in pairs.enumerate() {
        let first = (flow as u64 * 7919 * interval / (27 * 26)) % interval;
        let sent = (10_000_000_000 - first).div_ceil(interval);
        packets += sent;
        hops += sent * graph.dimension_order_route(VertexId(source), VertexId(target)).unwrap().hops() as u64;
    }
    assert_eq!((packets, hops), (1_428_223, 2_966_303));
}

#[test]
fn on_a_dimension_of_two_up_and_down_are_different_cables() {
    let graph = built(&torus(&[2, 2]));
    let there = graph.dimension_order_route(VertexId(0), VertexId(1)).unwrap();
    let back = graph.dimension_order_route(VertexId(1), VertexId(0)).unwrap();
    assert_ne!(there.channels[0].link(), back.channels[0].link(), "both go up");
}

#[test]
fn there_is_no_dimension_order_off_the_grid_or_over_a_gap() {
    let star = built(&with_endpoints(Kind::SingleSwitch, 2, 2));
    assert_eq!(star.dimension_order_route(VertexId(1), VertexId(2)), Err(RouteError::NotAGrid));
    let graph = built(&with_endpoints(Kind::Ring { nodes: 4 }, 4, 0));
    let off = graph.dimension_order_route(VertexId(0), graph.named("t1").unwrap());
    assert_eq!(
        off.unwrap_err().to_string(),
        "t1 is no place of the grid, the route must be between two of its adapters"
    );
    let cable = graph.channels_between(VertexId(1), VertexId(2)).next().unwrap().link();
    let cut = graph.without(&Failures::of_links([cable]));
    let broken = cut.dimension_order_route(VertexId(0), VertexId(2)).unwrap_err();
    assert_eq!(broken.to_string(), "no working cable from a1 to a2 on the dimension-order route");
}

#[test]
fn failures_keep_ids_and_can_be_read_back() {
    let graph = built(&torus(&[3, 3, 3]));
    let failures = Failures { links: [topology::LinkId(7)].into(), vertices: [VertexId(13)].into() };
    let cut = graph.without(&failures);
    assert_eq!((cut.degree(VertexId(13)), cut.nodes().len()), (0, 26));
    assert_eq!(cut.failures().vertices, failures.vertices);
    assert_eq!(cut.failures().links.len(), 7, "the six of the adapter and one more");
    assert_eq!(graph.without(&cut.failures()), cut);
    assert_eq!(graph.without(&Failures::default()), graph);
    assert_eq!(cut.distances_from(VertexId(13)).to(VertexId(0)), None);
}

#[test]
fn a_node_of_a_torus_has_a_disjoint_path_for_each_of_its_ports() {
    let graph = built(&torus(&[3, 3, 3]));
    let paths = graph.disjoint_paths(VertexId(0), VertexId(26));
    assert_eq!(paths.len(), 6);
    let one_less = graph.without(&Failures::of_links([paths[0].channels[0].link()]));
    assert_eq!(one_less.disjoint_paths(VertexId(0), VertexId(26)).len(), 5);
}

#[test]
fn networks_have_the_disjoint_paths_that_textbooks_give_them() {
    let count = |config: &topology::Config, source: &str, target: &str| {
        let graph = built(config);
        graph.disjoint_paths(graph.named(source).unwrap(), graph.named(target).unwrap()).len()
    };
    assert_eq!(count(&bare(Kind::DaisyChain { nodes: 5 }), "a0", "a4"), 1);
    assert_eq!(count(&bare(Kind::Ring { nodes: 5 }), "a0", "a2"), 2);
    assert_eq!(count(&bare(Kind::DualRing { nodes: 8 }), "a0", "a6"), 3);
    assert_eq!(count(&bare(Kind::FullMesh { nodes: 6 }), "a0", "a3"), 5);
    assert_eq!(count(&with_endpoints(Kind::RedundantSwitches { switches: 3 }, 2, 2), "t0", "h1"), 3);
    assert_eq!(count(&with_endpoints(Kind::FatTree { radix: 4, layers: 3 }, 8, 8), "t0", "h7"), 1);
    assert_eq!(count(&with_endpoints(Kind::FatTree { radix: 4, layers: 3 }, 8, 8), "s0", "s7"), 2);
}

proptest! {
    #[test]
    fn all_minimal_paths_are_there_once_and_minimal(config in any_config(), ends in any::<[prop::sample::Index; 2]>()) {
        let graph = built(&config);
        let [source, target] = ends.map(|end| *end.get(&graph.nodes()));
        let distance = graph.distances_from(source).to(target).unwrap();
        let paths: Vec<_> = graph.minimal_paths(source, target).take(500).collect();
        prop_assert_eq!(paths.len() as u128, graph.count_minimal_paths(source, target).min(500));
        prop_assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len());
        for path in &paths {
            assert_is_path(&graph, path, source, target);
            assert_is_path(&graph, &path.reversed(), target, source);
            prop_assert_eq!(path.hops() as u32, distance);
        }
    }

    #[test]
    fn distances_and_counts_are_the_same_both_ways(config in any_config(), ends in any::<[prop::sample::Index; 2]>()) {
        let graph = built(&config);
        let [source, target] = ends.map(|end| *end.get(&graph.nodes()));
        prop_assert_eq!(graph.distances_from(source).to(target), graph.distances_from(target).to(source));
        prop_assert_eq!(graph.count_minimal_paths(source, target), graph.count_minimal_paths(target, source));
        prop_assert_eq!(graph.disjoint_paths(source, target).len(), graph.disjoint_paths(target, source).len());
    }

    #[test]
    fn disjoint_paths_share_no_link_and_survive_one_failure_less_than_there_are(
        config in any_config(), ends in any::<[prop::sample::Index; 2]>(),
    ) {
        let graph = built(&config);
        let [source, target] = ends.map(|end| *end.get(&graph.nodes()));
        prop_assume!(source != target);
        let paths = graph.disjoint_paths(source, target);
        paths.iter().for_each(|path| assert_is_path(&graph, path, source, target));
        let links: Vec<_> = paths.iter().flat_map(|path| path.channels.iter().map(|channel| channel.link())).collect();
        prop_assert_eq!(links.iter().collect::<BTreeSet<_>>().len(), links.len());
        let less = graph.without(&Failures::of_links(paths.iter().skip(1).map(|path| path.channels[0].link())));
        prop_assert!(less.joins(&[source, target]), "{} paths survive {} failures", paths.len(), paths.len() - 1);
    }

    #[test]
    fn a_dimension_order_route_is_a_shortest_path_of_every_grid(
        sizes in prop::collection::vec(2u32..6, 1..4), wraps in any::<bool>(), ends in any::<[prop::sample::Index; 2]>(),
    ) {
        let graph = built(&if wraps { torus(&sizes) } else { mesh(&sizes) });
        let [source, target] = ends.map(|end| *end.get(&graph.nodes()));
        let route = graph.dimension_order_route(source, target).unwrap();
        assert_is_path(&graph, &route, source, target);
        prop_assert_eq!(Some(route.hops() as u32), graph.distances_from(source).to(target));
        let grid = graph.grid().unwrap();
        prop_assert_eq!(grid.vertex(&grid.coordinates(source)), source);
    }
}
