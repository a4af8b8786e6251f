//! The picture of a read in the documents is what the gates do. `BLESS=1` writes its JSON;
//! `rtl/draw.py` makes the drawing from it.

use rtl_harness::system::{Access, Probe};
use rtl_harness::wave::{READER, Wave};
use std::path::PathBuf;

fn image(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../docs/images/gates", name].iter().collect()
}

fn text(name: &str) -> String {
    let path = image(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_picture_of_a_read_is_what_the_gates_do() {
    let picture = Wave::of(Access::Read { bytes: 64 }).0.picture();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(image("read.json"), &picture).expect("docs/images/gates is writable");
    }
    assert!(picture == text("read.json"), "docs/images/gates/read.json is stale: BLESS=1 writes it");
}

#[test]
fn the_drawing_is_made_from_the_picture() {
    let drawing = text("read.svg");
    let made_from = drawing.split_once("<desc>").and_then(|(_, rest)| rest.split_once("</desc>"));
    let made_from = made_from.expect("draw.py writes a description").0;
    assert!(made_from == text("read.json"), "read.svg is stale: rtl/draw.py docs/images/gates/read.json");
}

/// The VCD file, read by the library, shows the same as the wave.
#[test]
fn the_vcd_file_shows_what_the_probes_show() {
    let (wave, _) = Wave::of(Access::Read { bytes: 64 });
    let mut file = Vec::new();
    wave.write_vcd(&mut file).expect("memory takes all");
    let mut parser = vcd::Parser::new(&file[..]);
    let header = parser.parse_header().expect("a header");
    let code = |name: &str| header.find_var(&["edm_system", name]).unwrap_or_else(|| panic!("no {name}")).code;
    let (write, line) = (code("node0_memory_write"), code("node0_up_block"));
    let (mut now, mut writes, mut blocks) = (0, Vec::new(), Vec::new());
    for command in parser {
        match command.expect("a command") {
            vcd::Command::Timestamp(at) => now = at,
            vcd::Command::ChangeScalar(id, value) if id == write => writes.push((now / 256, value)),
            vcd::Command::ChangeString(id, value) if id == line => blocks.push((now / 256, value)),
            _ => {}
        }
    }
    let seen = wave.at(READER, Probe::MemoryWrite);
    assert_eq!(writes, [(0, vcd::Value::V0), (seen.first, vcd::Value::V1), (seen.last + 1, vcd::Value::V0)]);
    let out = wave.at(READER, Probe::HostOut).first + 2;
    let expected = [(0, "E"), (out, "MS"), (out + 1, "MT"), (out + 2, "E")];
    assert_eq!(blocks, expected.map(|(at, name)| (at, name.to_string())));
}
