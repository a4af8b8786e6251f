//! Tests of bisection and link load against formulas and bounds.

mod common;

use base::Rate;
use common::{any_config, bare, built, mesh, torus, with_endpoints};
use proptest::prelude::*;
use topology::{Failures, Kind, Method, VertexId};

#[test]
fn the_torus_of_the_paper_halves_at_26_cables() {
    let graph = built(&torus(&[3, 3, 3]));
    let by_formula = graph.bisection();
    assert_eq!(
        (by_formula.capacity, by_formula.cables, by_formula.method),
        (Rate::gbps(2_600), 26, Method::ClosedForm)
    );
    let searched = graph.bisection_of(&graph.nodes());
    assert_eq!((searched.capacity, searched.cables, searched.method), (Rate::gbps(2_600), 26, Method::Searched));
    assert_eq!(searched.half.len(), 13);
    assert!(searched.at_least <= searched.capacity);
}

#[test]
fn the_search_finds_the_formula_on_512_nodes() {
    for config in [torus(&[8, 8, 8]), mesh(&[8, 8, 8]), torus(&[32, 16]), bare(Kind::Ring { nodes: 512 })] {
        let graph = built(&config);
        let (by_formula, searched) = (graph.bisection(), graph.bisection_of(&graph.nodes()));
        assert_eq!(searched.cables, by_formula.cables, "{}", config.kind);
    }
}

#[test]
fn the_lower_bound_is_exact_for_an_even_torus() {
    let graph = built(&torus(&[4, 4, 4]));
    let searched = graph.bisection_of(&graph.nodes());
    let short_by = searched.capacity.as_bps() - searched.at_least.as_bps();
    assert_eq!(searched.cables, 32);
    assert!(short_by < 10_000, "{short_by} b/s of {}", searched.capacity);
}

#[test]
fn a_failed_cable_is_missing_from_the_bisection() {
    let graph = built(&bare(Kind::Ring { nodes: 12 }));
    let cut = graph.without(&Failures::of_links([topology::LinkId(3)]));
    let bisection = cut.bisection();
    assert_eq!((bisection.cables, bisection.method), (1, Method::Enumerated(462)));
    let parted = cut.without(&Failures::of_links([topology::LinkId(9)])).bisection();
    assert_eq!((parted.capacity, parted.cables), (Rate::bps(0), 0), "six and six are parted already");
}

#[test]
fn switches_stand_on_whichever_side_is_cheaper() {
    // Twelve targets on two switches: the cables of six are the cut, wherever the switches are.
    let graph = built(&with_endpoints(Kind::RedundantSwitches { switches: 2 }, 12, 0));
    let bisection = graph.bisection_of(&graph.nodes());
    assert_eq!((bisection.cables, bisection.method), (12, Method::Enumerated(462)));
}

#[test]
fn one_node_has_no_bisection_to_speak_of() {
    let graph = built(&with_endpoints(Kind::SingleSwitch, 1, 0));
    assert_eq!(graph.bisection_of(&graph.nodes()).capacity, Rate::bps(0));
    assert_eq!(graph.bisection().capacity, Rate::bps(0));
}

#[test]
fn uniform_traffic_loads_a_torus_evenly() {
    let graph = built(&torus(&[3, 3, 3]));
    // 27 * 54 hops over 162 channels.
    assert!(graph.channel_loads(&graph.nodes()).iter().all(|load| (load - 9.0).abs() < 1e-9));
}

#[test]
fn a_chain_carries_most_in_its_middle() {
    let graph = built(&bare(Kind::DaisyChain { nodes: 6 }));
    let loads = graph.channel_loads(&graph.nodes());
    assert_eq!(loads.chunks(2).map(|both| both[0]).collect::<Vec<_>>(), [5.0, 8.0, 9.0, 8.0, 5.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn formulas_are_what_enumeration_finds(config in any_config()) {
        let graph = built(&config);
        let nodes = graph.nodes();
        if nodes.len() <= 10 && let Some(cables) = config.closed_form().bisection_cables {
            let found = graph.bisection_of(&nodes);
            prop_assert!(matches!(found.method, Method::Enumerated(_)));
            prop_assert_eq!(found.cables, cables, "{}", config.kind);
            prop_assert_eq!(found.capacity, Rate::gbps(100 * cables), "{}", config.kind);
        }
    }

    #[test]
    fn no_search_beats_a_formula_and_no_bound_exceeds_it(config in any_config()) {
        let graph = built(&config);
        let found = graph.bisection_of(&graph.nodes());
        prop_assert!(found.at_least <= found.capacity);
        if let Some(cables) = config.closed_form().bisection_cables {
            prop_assert!(found.cables >= cables, "{}: {} < {cables}", config.kind, found.cables);
            prop_assert!(found.at_least <= Rate::gbps(100 * cables), "{}", config.kind);
        }
    }

    #[test]
    fn loads_sum_to_all_distances(config in any_config()) {
        let graph = built(&config);
        let nodes = graph.nodes();
        let sum = graph.distance_summary(&nodes).sum as f64;
        prop_assert!((graph.channel_loads(&nodes).iter().sum::<f64>() - sum).abs() < 1e-6 * (sum + 1.0));
    }

    #[test]
    fn the_half_is_half(config in any_config()) {
        let graph = built(&config);
        let nodes = graph.nodes();
        let half = graph.bisection_of(&nodes).half;
        prop_assert_eq!(half.len(), nodes.len() / 2);
        prop_assert!(half.is_sorted() && half.iter().all(|vertex| nodes.contains(vertex)));
    }
}

#[test]
fn a_slow_link_counts_for_less() {
    let mut builder = topology::Builder::new();
    let ids: Vec<VertexId> =
        (0..4).map(|index| builder.vertex(topology::VertexKind::Adapter, format!("a{index}"), 2)).collect();
    for (index, gigabits) in [100, 25, 100, 10].into_iter().enumerate() {
        builder.cable([ids[index], ids[(index + 1) % 4]], Rate::gbps(gigabits), base::Length::m(1));
    }
    let bisection = builder.finish().unwrap().bisection();
    assert_eq!((bisection.capacity, bisection.cables), (Rate::gbps(35), 2));
}
