//! Tests of every kind of network against known properties.

mod common;

use base::{Length, Rate};
use common::{any_config, bare, built, mesh, torus, with_endpoints};
use petgraph::graph::UnGraph;
use proptest::prelude::*;
use topology::{Config, Graph, Kind, Placement, VertexId, VertexKind};

fn degrees(graph: &Graph, kind: VertexKind) -> Vec<usize> {
    let mut degrees: Vec<usize> = graph.of_kind(kind).map(|vertex| graph.degree(vertex)).collect();
    degrees.sort();
    degrees.dedup();
    degrees
}

#[test]
fn the_torus_of_the_paper_has_27_nodes_81_cables_and_a_mean_distance_of_54_over_26() {
    let graph = built(&torus(&[3, 3, 3]));
    assert_eq!((graph.vertices().len(), graph.links().len(), graph.channel_count()), (27, 81, 162));
    assert_eq!(degrees(&graph, VertexKind::Adapter), [6]);
    let distances = graph.distance_summary(&graph.nodes());
    assert_eq!((distances.diameter, distances.sum, distances.pairs), (3, 27 * 54, 27 * 26));
}

#[test]
fn the_torus_of_the_testbed_gives_each_of_its_four_nodes_four_cables() {
    let graph = built(&torus(&[2, 2]));
    assert_eq!((graph.vertices().len(), graph.links().len()), (4, 8));
    assert_eq!(degrees(&graph, VertexKind::Adapter), [4]);
    assert_eq!(graph.channels_between(VertexId(0), VertexId(1)).count(), 2);
}

#[test]
fn the_dual_ring_of_the_testbed_gives_each_of_its_four_nodes_three_cables() {
    let graph = built(&bare(Kind::DualRing { nodes: 4 }));
    assert_eq!(degrees(&graph, VertexKind::Adapter), [3]);
    assert_eq!(graph.links().len(), 6);
}

#[test]
fn the_dragonfly_of_27_nodes_has_full_groups_and_one_cable_between_any_two() {
    let graph = built(&bare(Kind::Dragonfly { routers: 3, global_cables: 3, groups: 9 }));
    assert_eq!((graph.vertices().len(), graph.links().len()), (27, 9 * 3 + 9 * 8 / 2));
    // Nine global ports per group, of which eight are used: two routers use three, the last two.
    assert_eq!(degrees(&graph, VertexKind::Adapter), [4, 5]);
    assert!(graph.distance_summary(&graph.nodes()).diameter <= 3);
    let group = |vertex: VertexId| vertex.0 / 3;
    for (one, other) in (0..9).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let joins = graph.links().iter().filter(|link| {
            let groups = link.ends.map(|end| group(end.vertex));
            groups == [one, other] || groups == [other, one]
        });
        assert_eq!(joins.count(), 1, "groups {one} and {other}");
    }
}

#[test]
fn a_dragonfly_of_the_largest_size_uses_every_port() {
    let graph = built(&bare(Kind::Dragonfly { routers: 4, global_cables: 2, groups: 9 }));
    assert_eq!(degrees(&graph, VertexKind::Adapter), [5]);
    let distances = graph.distance_summary(&graph.nodes());
    assert_eq!(distances.diameter, 3);
}

#[test]
fn a_three_layer_fat_tree_is_that_of_al_fares() {
    let graph = built(&with_endpoints(Kind::FatTree { radix: 4, layers: 3 }, 8, 8));
    assert_eq!(graph.of_kind(VertexKind::Switch).count(), 20);
    assert_eq!(degrees(&graph, VertexKind::Switch), [4]);
    let (first, last) = (graph.named("t0").unwrap(), graph.named("h7").unwrap());
    assert_eq!(graph.distances_from(first).to(last), Some(6));
    assert_eq!(graph.count_minimal_paths(first, last), 4, "one a core switch");
    assert_eq!(graph.count_minimal_paths(first, graph.named("t2").unwrap()), 2, "one an aggregation switch");
}

#[test]
fn every_size_of_the_issue_has_its_closed_form() {
    for config in
        [torus(&[8, 8, 8]), mesh(&[8, 8, 8]), bare(Kind::Ring { nodes: 512 }), bare(Kind::DaisyChain { nodes: 512 })]
    {
        assert_matches_closed_form(&config);
    }
    let torus = torus(&[8, 8, 8]).closed_form();
    assert_eq!((torus.nodes, torus.cables), (512, 1536));
    assert_eq!((torus.diameter, torus.bisection_cables), (Some(12), Some(128)));
    assert_eq!(torus.distance_sum, Some(512 * 3 * 16 * 64));
}

#[test]
fn textbook_bisections_come_out() {
    let of = |config: Config| config.closed_form().bisection_cables;
    assert_eq!(of(mesh(&[4, 4])), Some(4));
    assert_eq!(of(torus(&[4, 4])), Some(8));
    assert_eq!(of(torus(&[3, 3, 3])), Some(26));
    assert_eq!(of(mesh(&[2, 2, 2, 2])), Some(8), "a hypercube of 16");
    assert_eq!(of(bare(Kind::Ring { nodes: 9 })), Some(2));
    assert_eq!(of(bare(Kind::DaisyChain { nodes: 9 })), Some(1));
    assert_eq!(of(bare(Kind::FullMesh { nodes: 7 })), Some(12));
    assert_eq!(of(with_endpoints(Kind::SingleSwitch, 3, 4)), Some(3));
    assert_eq!(of(with_endpoints(Kind::FatTree { radix: 8, layers: 2 }, 16, 16)), Some(16));
    let three_to_one = Kind::LeafSpine { leaves: 4, spines: 2, endpoints_per_leaf: 6 };
    assert_eq!(of(with_endpoints(three_to_one, 12, 12)), Some(4));
}

fn assert_matches_closed_form(config: &Config) {
    let (graph, closed) = (built(config), config.closed_form());
    let nodes = graph.nodes();
    let distances = graph.distance_summary(&nodes);
    assert_eq!(graph.of_kind(VertexKind::Switch).count() as u64, closed.switches, "{}", config.kind);
    assert_eq!(graph.bill().cable_count(), closed.cables, "{}", config.kind);
    assert_eq!(nodes.len() as u64, closed.nodes, "{}", config.kind);
    assert_eq!(distances.diameter, closed.diameter.unwrap_or(distances.diameter), "{}", config.kind);
    assert_eq!(distances.sum, closed.distance_sum.unwrap_or(distances.sum), "{}", config.kind);
    let is_dragonfly = matches!(config.kind, Kind::Dragonfly { .. });
    assert_eq!(closed.diameter.is_none() || closed.distance_sum.is_none(), is_dragonfly, "{}", config.kind);
}

proptest! {
    #[test]
    fn every_kind_agrees_with_its_closed_form(config in any_config()) {
        assert_matches_closed_form(&config);
    }

    #[test]
    fn distances_agree_with_those_of_petgraph(config in any_config()) {
        let graph = built(&config);
        let other = UnGraph::<(), ()>::from_edges(graph.links().iter().map(|link| {
            (link.ends[0].vertex.0, link.ends[1].vertex.0)
        }));
        let table = graph.distance_table().unwrap();
        let is_switched = config.kind.is_switched();
        for from in graph.vertex_ids() {
            let found = petgraph::algo::dijkstra(&other, from.0.into(), None, |_| 1u32);
            for to in graph.vertex_ids() {
                // Petgraph would path through endpoints; this affects only redundant switches,
                // which nothing else joins.
                let detours = matches!(config.kind, Kind::RedundantSwitches { .. });
                if !(is_switched && detours) {
                    prop_assert_eq!(table.between(from, to), found.get(&petgraph::graph::NodeIndex::new(to.index())).copied());
                }
            }
        }
    }

    #[test]
    fn ports_are_numbered_from_nought_without_gaps(config in any_config()) {
        let graph = built(&config);
        for vertex in graph.vertex_ids() {
            let ports: Vec<_> = graph.hops(vertex).iter().map(|hop| graph.egress_port(hop.channel)).collect();
            prop_assert_eq!(ports, (0..graph.degree(vertex) as u32).map(Some).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_channel_and_its_reverse_are_one_link(config in any_config()) {
        let graph = built(&config);
        for vertex in graph.vertex_ids() {
            for hop in graph.hops(vertex) {
                prop_assert_eq!((graph.source(hop.channel), graph.target(hop.channel)), (vertex, hop.to));
                prop_assert_eq!(graph.target(hop.channel.reverse()), vertex);
                prop_assert!(graph.hops(hop.to).iter().any(|back| back.channel == hop.channel.reverse()));
            }
        }
    }
}

#[test]
fn targets_of_a_switchless_san_sit_behind_their_adapters_and_hosts_on_free_ports() {
    let mut config = with_endpoints(Kind::Torus { dimensions: vec![3, 3, 3] }, 27, 4);
    config.ports.adapter = 8;
    let graph = built(&config);
    let (target, host) = (graph.named("t5").unwrap(), graph.named("h3").unwrap());
    assert_eq!(graph.hops(target)[0].to, VertexId(5));
    assert_eq!(graph.egress_port(graph.hops(target)[0].channel), None);
    assert_eq!(graph.hops(host)[0].to, VertexId(1), "two free ports an adapter, filled from the first");
    config.endpoints.placement = Placement::Spread;
    let graph = built(&config);
    assert_eq!(graph.hops(graph.named("h3").unwrap())[0].to, VertexId(3));
    assert_eq!(graph.nodes().len(), 27, "distances and bandwidth are still those of the adapters");
}

#[test]
fn a_bill_counts_what_table_1_counts() {
    let mut config = with_endpoints(Kind::RedundantSwitches { switches: 2 }, 20, 0);
    (config.ports.endpoint, config.ports.switch, config.cabling.endpoint_cables) = (4, 64, 2);
    let bill = built(&config).bill();
    assert_eq!((bill.ports_used(VertexKind::Target), bill.ports_used(VertexKind::Switch)), (80, 80));
    assert_eq!(bill.ports[&VertexKind::Switch], 128);
    let bill = built(&torus(&[3, 3, 3])).bill();
    assert_eq!(bill.count(VertexKind::Adapter), 27);
    assert_eq!(bill.cables[&(Length::m(2), Rate::gbps(100))], 54);
    assert_eq!(bill.cables[&(Length::m(5), Rate::gbps(100))], 27);
    assert_eq!(bill.cable_length(), Length::m(54 * 2 + 27 * 5));
}

#[test]
fn impossible_parameters_are_refused_with_their_numbers() {
    let refused = |config: Config| config.build().unwrap_err().to_string();
    assert_eq!(refused(torus(&[4, 1, 3])), "dimension 2 of 4x1x3 is 1, each must be 2 or more");
    assert_eq!(refused(torus(&[])), "dimensions: 0 is outside 1..=32");
    assert_eq!(
        refused(torus(&[1 << 31, 1 << 31, 1 << 31])),
        "product of the dimensions: 18446744073709551615 is outside 2..=65536"
    );
    assert_eq!(refused(bare(Kind::Ring { nodes: 1 })), "nodes: 1 is outside 2..=65536");
    assert_eq!(refused(bare(Kind::DualRing { nodes: 7 })), "nodes: 7 is odd, it must be even");
    assert_eq!(refused(bare(Kind::FatTree { radix: 5, layers: 2 })), "radix: 5 is odd, it must be even");
    assert_eq!(
        refused(bare(Kind::FatTree { radix: 64, layers: 16 })),
        format!("switches of the tree: {} is outside 1..=65536", u64::MAX)
    );
    assert_eq!(
        refused(bare(Kind::FullMesh { nodes: 60_000 })),
        "cables of the fabric: 1799970000 is outside 0..=1048576"
    );
    let lone = Kind::Dragonfly { routers: 2, global_cables: 2, groups: 6 };
    assert_eq!(refused(bare(lone)), "groups: 6 is outside 2..=5");
    let tree = Kind::FatTree { radix: 4, layers: 2 };
    assert_eq!(
        refused(with_endpoints(tree, 5, 4)),
        "9 hosts and targets, but there is room for 8: 4 switches take 2 each"
    );
}

#[test]
fn a_port_more_than_the_radix_is_refused_and_the_radix_itself_is_not() {
    let mut config = torus(&[3, 3, 3]);
    config.ports.adapter = 6;
    assert!(config.build().is_ok());
    config.ports.adapter = 5;
    assert_eq!(config.build().unwrap_err().to_string(), "adapter a0 has 6 cables but 5 ports");
    config.ports.adapter = 6;
    config.endpoints.hosts = 1;
    let no_port = "1 hosts, but there is room for 0: 27 adapters with their free ports, 1 cables a host";
    assert_eq!(config.build().unwrap_err().to_string(), no_port);
}
