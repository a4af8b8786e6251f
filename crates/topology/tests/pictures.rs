//! Tests that pictures show everything, and that equal graphs give equal bytes.

mod common;

use common::{any_config, built, documented, with_endpoints};
use proptest::prelude::*;
use topology::{Failures, Graph, Kind, VertexId, file, picture};

fn svg(graph: &Graph) -> String {
    let mut bytes = Vec::new();
    picture::write(graph, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the number behind ` name="` in each element that `opens`.
fn attributes(svg: &str, opens: &str, name: &str) -> Vec<f64> {
    let key = format!(" {name}=\"");
    let elements = svg.split(opens).skip(1).map(|rest| rest.split('>').next().unwrap());
    elements.map(|element| element.split(&key).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()).collect()
}

proptest! {
    #[test]
    fn every_vertex_and_every_link_is_drawn_inside_the_picture(config in any_config()) {
        let graph = built(&config);
        let svg = svg(&graph);
        for vertex in graph.vertices() {
            prop_assert!(svg.contains(&format!("\n{}\n</text>", vertex.name)) || svg.contains(&format!(">{}</text>", vertex.name)), "{}", vertex.name);
        }
        prop_assert_eq!(svg.matches("<path ").count(), graph.links().len());
        let (width, height) = (attributes(&svg, "<svg", "width")[0], attributes(&svg, "<svg", "height")[0]);
        prop_assert!(attributes(&svg, "<text", "x").iter().all(|x| (0.0..=width).contains(x)));
        prop_assert!(attributes(&svg, "<text", "y").iter().all(|y| (0.0..=height).contains(y)));
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn no_vertex_covers_another(config in any_config()) {
        let graph = built(&config);
        let svg = svg(&graph);
        let places = centres(&svg);
        prop_assert_eq!(places.len(), graph.vertices().len());
        for (index, one) in places.iter().enumerate() {
            for other in &places[index + 1..] {
                prop_assert!((one.0 - other.0).hypot(one.1 - other.1) >= 20.0, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn the_same_graph_gives_the_same_bytes(config in any_config()) {
        prop_assert_eq!(svg(&built(&config)), svg(&built(&config)));
    }
}

/// Returns the positions of the labels of vertices: centred texts.
fn centres(svg: &str) -> Vec<(f64, f64)> {
    let labels = svg.split("<text").skip(1).filter(|text| text.contains("text-anchor=\"middle\""));
    let number = |text: &str, key: &str| text.split(key).nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    labels.map(|text| (number(text, " x=\""), number(text, " y=\""))).collect()
}

#[test]
fn what_has_failed_is_struck_out() {
    let graph = built(&with_endpoints(Kind::Torus { dimensions: vec![3, 3] }, 9, 2));
    let cut = graph.without(&Failures::of_vertices([VertexId(4)]));
    assert_eq!(svg(&graph).matches("<line").count(), 0);
    assert_eq!(svg(&cut).matches("<line").count(), 1);
    assert_eq!(svg(&cut).matches("stroke-dasharray=\"2 4\"").count(), 5, "four cables and the board");
}

#[test]
fn names_cannot_break_out_of_the_picture() {
    let mut builder = topology::Builder::new();
    builder.vertex(topology::VertexKind::Switch, "<a&\">", 1);
    let svg = svg(&builder.finish().unwrap());
    assert!(svg.contains("\n&lt;a&amp;\"&gt;\n") && !svg.contains("<a&"), "{svg}");
}

#[test]
fn a_custom_graph_has_a_picture_too() {
    let graph = built(&with_endpoints(Kind::LeafSpine { leaves: 2, spines: 2, endpoints_per_leaf: 2 }, 2, 2));
    let mut bytes = Vec::new();
    file::write(&graph, &mut bytes).unwrap();
    let custom = file::read("x", &bytes[..]).unwrap();
    assert!(svg(&custom).contains("custom network: 8 cables of 100Gbps"));
    assert_eq!(svg(&custom).matches("<path ").count(), 8);
}

/// The committed file of a documented picture.
macro_rules! committed {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../docs/images/topologies/", $name, ".svg")))),*]
    };
}

#[test]
fn the_pictures_of_the_documents_are_what_is_drawn_now() {
    let files = committed![
        "single-switch",
        "redundant-switches",
        "leaf-spine",
        "fat-tree",
        "daisy-chain",
        "ring",
        "dual-ring",
        "mesh",
        "torus-2x2",
        "torus-3x3x3",
        "full-mesh",
        "dragonfly"
    ];
    assert_eq!(files.map(|(name, _)| name).to_vec(), documented().iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for ((name, file), (_, config)) in files.iter().zip(documented()) {
        assert_eq!(
            *file,
            svg(&built(&config)),
            "draw docs/images/topologies/{name}.svg again: examples/pictures.rs says how"
        );
    }
}
