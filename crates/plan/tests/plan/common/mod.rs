//! What the tests share: a small experiment to change, and files in memory.

#![allow(dead_code, reason = "each test binary uses a part")]

use plan::{DesignName, Experiment, Files, Plan, parse};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Cursor};
use std::sync::LazyLock;

/// The least that makes a plan, one key a line.
pub const SMALL: &str = r#"title = "small"
[fabric]
nodes = 144
rate = "100Gbps"
[design]
name = "edm"
[workload]
load = 0.5
[run]
requests = 100000
"#;

/// EDM and every rival that is registered, as a file names it.
pub static DESIGNS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let rivals = DesignName::RIVALS.iter().map(|design| design.word());
    [DesignName::Edm.word()].into_iter().chain(rivals).collect()
});

/// Files by name, in memory.
#[derive(Default)]
pub struct Memory(BTreeMap<String, String>);

impl Memory {
    pub fn with(mut self, name: &str, text: &str) -> Memory {
        self.0.insert(name.into(), text.into());
        self
    }
}

impl Files for Memory {
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        let text = self.0.get(relative).cloned().ok_or_else(missing)?;
        Ok(Box::new(Cursor::new(text)))
    }
}

pub fn files() -> Memory {
    Memory::default()
        .with("sizes.txt", "# size 1 probability\n1 1 0.0\n1 1 0.5\n10 1 1.0\n")
        .with("falling.txt", "4 1 0.0\n3 1 1.0\n")
        .with("inverted.csv", "time,source,target,operation,bytes\n10ns,0,1,read,64\n0ns,2,3,write,4096\n")
        .with("messages.csv", "time,source,target,operation,bytes\n0ns,0,1,read,64\n10ns,2,3,write,4096\n")
}

pub fn experiment(text: &str) -> Experiment {
    parse("small.toml", text, &files(), &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// The only plan of a file without a sweep.
pub fn plan(text: &str) -> Plan {
    let mut points = experiment(text).points(None);
    assert_eq!(points.len(), 1);
    points.remove(0).plan
}

/// Every message about a file, one a line.
pub fn complaints(text: &str) -> Vec<String> {
    let errors = parse("small.toml", text, &files(), &[]).expect_err("the file should be refused");
    errors.iter().map(ToString::to_string).collect()
}

/// The only message about a file.
pub fn complaint(text: &str) -> String {
    let all = complaints(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].clone()
}

/// [`SMALL`] with one line replaced. Fails when the line is not there.
pub fn with(line: &str, replacement: &str) -> String {
    let whole = format!("{line}\n");
    assert!(SMALL.contains(&whole), "{line} is not in the small experiment");
    SMALL.replacen(&whole, &format!("{replacement}\n"), 1)
}

/// The only message about a file, without the place that it begins with.
pub fn reason(text: &str) -> String {
    let said = complaint(text);
    said.split_once(": ").unwrap_or_else(|| panic!("{said}")).1.to_string()
}

/// Asserts that each file is refused with a place and these words.
pub fn all_are_refused(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        let said = complaint(text);
        assert!(said.contains(expected) && said.starts_with("small.toml:"), "{text}\n{said}");
    }
}
