//! Tests of files of custom graphs: round trips, and the location of errors.

mod common;

use common::{any_config, built, with_endpoints};
use proptest::prelude::*;
use topology::{Builder, Failures, Graph, Kind, VertexId, file};

fn text(graph: &Graph) -> String {
    let mut bytes = Vec::new();
    file::write(graph, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn refused(text: &str) -> String {
    file::read("my.toml", text.as_bytes()).unwrap_err().to_string()
}

const PAIR: &str = r#"
[[vertex]]
name = "a0"
kind = "adapter"
ports = 2

[[vertex]]
name = "a1"
kind = "adapter"
ports = 2

[[link]]
ends = ["a0", "a1"]
medium = "cable"
rate = "100Gbps"
length = "2m"
"#;

#[test]
fn a_file_becomes_a_graph() {
    let graph = file::read("my.toml", PAIR.as_bytes()).unwrap();
    assert_eq!((graph.vertices().len(), graph.links().len()), (2, 1));
    assert_eq!(graph.named("a1"), Some(VertexId(1)));
    assert_eq!(graph.distances_from(VertexId(0)).to(VertexId(1)), Some(1));
    assert!(graph.config().is_none());
}

#[test]
fn what_is_wrong_is_named_with_file_line_and_value() {
    let with = |from: &str, to: &str| {
        assert!(PAIR.contains(from), "{from}");
        refused(&PAIR.replacen(from, to, 1))
    };
    assert_eq!(
        with(r#"ends = ["a0", "a1"]"#, r#"ends = ["a0", "a7"]"#),
        "my.toml:13: `a7` is not the name of a vertex"
    );
    assert_eq!(with("ports = 2", "ports = 0"), "my.toml:3: adapter a0 has 1 cables but 0 ports");
    assert_eq!(with("\"a1\"\nkind", "\"a0\"\nkind"), "my.toml:8: vertices 0 and 1 are both named `a0`");
    assert_eq!(with(r#"["a0", "a1"]"#, r#"["a0", "a0"]"#), "my.toml:12: link 0 joins a0 to itself");
    assert_eq!(
        with("100Gbps", "0Gbps"),
        "my.toml:12: link 0 between a0 and a1 has a rate of 0bps, it must be more than 0bps and at most 8Tbps"
    );
    assert_eq!(
        with("\"100Gbps\"", "100"),
        "my.toml:15: `100` has no unit: write it with one of bps, Kbps, Mbps, Gbps, Tbps"
    );
    assert_eq!(with("2m", "2s"), "my.toml:16: `2s` has the unit `s`; allowed are mm, cm, m, km");
    assert_eq!(
        with("\"a0\"\nkind", "\"a 0\"\nkind"),
        "my.toml:3: name `a 0` is not 1 to 64 bytes of visible characters"
    );
    assert_eq!(with("\"cable\"", "\"board\""), "my.toml:16: a board of 2m, its length must be 0mm");
    let board =
        with("\"cable\"\nrate = \"100Gbps\"\nlength = \"2m\"", "\"board\"\nrate = \"100Gbps\"\nlength = \"0mm\"");
    assert_eq!(
        board,
        "my.toml:12: link 0 is a board between adapter a0 and adapter a1, it must join a host or target with an adapter"
    );
}

#[test]
fn keys_and_words_that_are_not_of_the_format_are_refused_at_their_line() {
    let starts = |text: String, wanted: &str| {
        let error = refused(&text);
        assert!(error.starts_with(wanted), "{error}");
    };
    starts(PAIR.replacen("ports = 2", "ports = 2\nradix = 3", 1), "my.toml:6: unknown field `radix`");
    starts(PAIR.replacen("kind = \"adapter\"", "kind = \"router\"", 1), "my.toml:4: unknown variant `router`");
    starts(PAIR.replacen("ports = 2", "", 1), "my.toml:2: missing field `ports`");
    starts(PAIR.replacen("length = \"2m\"", "", 1), "my.toml:12: missing field `length`");
    starts(PAIR.replacen("ports = 2", "ports = -1", 1), "my.toml:5: ");
    starts(PAIR.replacen("ports = 2", "ports = 2.5", 1), "my.toml:5: ");
    starts(PAIR.replacen("[\"a0\", \"a1\"]", "[\"a0\"]", 1), "my.toml:13: 1 ends, a link has 2");
    starts(PAIR.replacen("[\"a0\", \"a1\"]", "[\"a0\", \"a1\", \"a0\"]", 1), "my.toml:13: 3 ends, a link has 2");
    starts(PAIR.replacen("\"a0\"", "\"a0", 1), "my.toml:3: ");
    starts(format!("speed = 3\n{PAIR}"), "my.toml:1: unknown field `speed`");
}

#[test]
fn a_part_that_hangs_in_the_air_is_named() {
    let lonely = format!("{PAIR}\n[[vertex]]\nname = \"a2\"\nkind = \"adapter\"\nports = 2\n");
    assert_eq!(refused(&lonely), "my.toml:19: disconnected: 2 of 3 vertices are reached from a0, a2 is not");
    assert_eq!(refused(""), "my.toml:1: vertices: 0 is outside 1..=65536");
}

#[test]
fn adapters_that_only_a_host_joins_are_not_joined() {
    let bridge = PAIR.replace(
        "[[link]]\nends = [\"a0\", \"a1\"]",
        "[[vertex]]\nname = \"h\"\nkind = \"host\"\nports = 2\n[[link]]\nends = [\"h\", \"a1\"]\nmedium = \"cable\"\nrate = \"1Gbps\"\nlength = \"1m\"\n[[link]]\nends = [\"a0\", \"h\"]",
    );
    assert_eq!(refused(&bridge), "my.toml:8: disconnected: 2 of 3 vertices are reached from a0, a1 is not");
}

#[test]
fn bytes_that_are_no_text_and_readers_that_fail_are_errors() {
    let error = file::read("my.toml", &b"[[vertex]]\nname = \"\xff\""[..]).unwrap_err();
    assert_eq!(error.to_string(), "my.toml:2: is not UTF-8 text");
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    assert_eq!(file::read("my.toml", Broken).unwrap_err().to_string(), "my.toml:1: cannot be read: the disk is gone");
    let endless = std::io::repeat(b' ');
    assert_eq!(file::read("my.toml", endless).unwrap_err().to_string(), "my.toml:1: is longer than 134217728 bytes");
}

fn same_parts(one: &Graph, other: &Graph) -> bool {
    one.vertices() == other.vertices() && one.links() == other.links()
}

#[test]
fn boards_and_failures_survive_a_round_trip_as_parts() {
    let graph = built(&with_endpoints(Kind::Torus { dimensions: vec![3, 3] }, 9, 3));
    let cut = graph.without(&Failures::of_vertices([VertexId(4)]));
    let read = file::read("x", text(&cut).as_bytes()).unwrap();
    assert!(same_parts(&read, &graph));
    assert!(read.is_whole());
}

#[test]
fn odd_names_are_quoted() {
    let mut builder = Builder::new();
    builder.vertex(topology::VertexKind::Switch, "\"q\\=[x]#ü", 1);
    let graph = builder.finish().unwrap();
    assert!(same_parts(&file::read("x", text(&graph).as_bytes()).unwrap(), &graph));
}

proptest! {
    #[test]
    fn every_kind_survives_a_round_trip(config in any_config()) {
        let graph = built(&config);
        let read = file::read("x", text(&graph).as_bytes()).unwrap();
        prop_assert!(same_parts(&read, &graph));
        prop_assert_eq!(text(&read), text(&graph));
        prop_assert_eq!(read.distance_table(), graph.distance_table());
    }

    #[test]
    fn a_file_that_was_damaged_is_refused_or_still_a_network(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = PAIR.as_bytes().to_vec();
        let position = position.index(bytes.len());
        bytes[position] = byte;
        if let Ok(graph) = file::read("x", &bytes[..]) {
            prop_assert!(graph.joins(&graph.nodes()));
        }
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused_or_still_a_network(length in 0..PAIR.len()) {
        if let Ok(graph) = file::read("x", &PAIR.as_bytes()[..length]) {
            prop_assert!(graph.joins(&graph.nodes()));
        }
    }
}
