//! What the gates show while one request passes alone, cycle by cycle. It is counted for Table 1,
//! written as VCD for a viewer of waves, and drawn as WaveDrom for the page about the gates.

use crate::system::{Access, Descrambler, End, Probe, Request, System, Variant};
use edm::pcs::block::{Block, Content};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The node that makes the request.
pub const READER: usize = 0;
/// The node whose memory it is for.
pub const MEMORY: usize = 1;
/// Where the memory node has the data.
pub const THERE: u64 = 8192;
/// Where the compute node has them.
pub const HERE: u64 = 4096;

/// Cycles that are played, from the one in which the host takes the request.
const CYCLES: usize = 200;
/// Cycles of a line, while it is idle, until its descrambler is in step.
const WARM_UP: usize = 20;
/// A clock of 2.56 ns in the unit of the VCD file, 10 ps.
const CLOCK: u64 = 256;

/// First and last cycle in which a probe shows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// All that was seen of one request.
#[derive(Debug, Default)]
pub struct Wave {
    /// The host takes the request.
    taken: Vec<bool>,
    /// The host answers it.
    answered: Vec<bool>,
    probes: BTreeMap<(usize, u8), Vec<bool>>,
    /// Blocks without the scrambler, by node and direction (true: to the switch).
    lines: BTreeMap<(usize, bool), Vec<Block>>,
    ends: Vec<(End, u64)>,
    written: Option<u64>,
}

impl Wave {
    /// Plays one access alone in a system of two nodes.
    ///
    /// # Panics
    /// If an assertion of the gates fails, or a line carries what is no block.
    pub fn of(access: Access) -> (Wave, System) {
        Wave::of_variant(Variant::Two, access)
    }

    /// The same in another system of two nodes. Of two networks, the lines are the primary's.
    ///
    /// # Panics
    /// As [`Wave::of`].
    pub fn of_variant(variant: Variant, access: Access) -> (Wave, System) {
        let mut system = System::new(variant);
        system.fill(READER, HERE, &pattern(1));
        system.fill(MEMORY, THERE, &pattern(2));
        let mut descramblers: BTreeMap<(usize, bool), Descrambler> = BTreeMap::new();
        let mut wave = Wave::default();
        for _ in 0..WARM_UP {
            system.drive();
            lines(&system, &mut descramblers);
            system.step();
        }
        system.submit(READER, Request { target: MEMORY as u32, access, there: THERE, here: HERE, tag: 7 });
        for cycle in 0..CYCLES {
            system.drive();
            wave.taken.push(system.taken(READER).is_some());
            for (line, bits) in lines(&system, &mut descramblers) {
                wave.lines.entry(line).or_default().push(Block::from_bits(bits).expect("a block on the line"));
            }
            wave.look(&system, cycle as u64);
            system.step();
        }
        (wave, system)
    }

    fn look(&mut self, system: &System, cycle: u64) {
        for node in [READER, MEMORY] {
            for probe in Probe::ALL {
                self.probes.entry((node, probe as u8)).or_default().push(system.probe(node, probe));
            }
            self.ends.extend(system.ends(node).map(|(end, _)| (end, cycle)));
            if system.written(node) {
                self.written = Some(cycle);
            }
        }
        self.answered.push(system.ends(READER).next().is_some());
    }

    /// When a probe shows something.
    ///
    /// # Panics
    /// If it shows nothing.
    pub fn at(&self, node: usize, probe: Probe) -> Seen {
        let shown = &self.probes[&(node, probe as u8)];
        let place = |found: Option<usize>| found.unwrap_or_else(|| panic!("{probe:?} of node {node} shows nothing"));
        let (first, last) = (shown.iter().position(|set| *set), shown.iter().rposition(|set| *set));
        Seen { first: place(first) as u64, last: place(last) as u64 }
    }

    /// In which cycles a probe shows something.
    pub fn shown(&self, node: usize, probe: Probe) -> &[bool] {
        &self.probes[&(node, probe as u8)]
    }

    /// How the request ended, and in which cycle.
    pub fn ends(&self) -> &[(End, u64)] {
        &self.ends
    }

    /// The cycle in which a write was whole.
    pub fn written(&self) -> Option<u64> {
        self.written
    }

    /// The cycle after the last one in which anything happens.
    fn length(&self) -> usize {
        let probes = self.probes.values().filter_map(|shown| shown.iter().rposition(|set| *set));
        let lines = self.lines.values().filter_map(|blocks| blocks.iter().rposition(|block| *block != Block::IDLE));
        probes.chain(lines).max().map_or(1, |last| last + 2)
    }

    /// Writes every probe and line as VCD.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_vcd(&self, out: impl Write) -> io::Result<()> {
        let mut vcd = vcd::Writer::new(out);
        vcd.timescale(10, vcd::TimescaleUnit::PS)?;
        vcd.add_module("edm_system")?;
        let clock = vcd.add_wire(1, "clk")?;
        let mut bits = Vec::new();
        for (name, shown) in [("taken", &self.taken), ("answered", &self.answered)] {
            bits.push((vcd.add_wire(1, &format!("node{READER}_{name}"))?, shown));
        }
        for ((node, probe), shown) in &self.probes {
            bits.push((vcd.add_wire(1, &format!("node{node}_{}", Probe::ALL[*probe as usize].name()))?, shown));
        }
        let mut blocks = Vec::new();
        for ((node, up), line) in &self.lines {
            let name = format!("node{node}_{}", if *up { "up" } else { "down" });
            let wire = vcd.add_wire(66, &name)?;
            blocks.push((wire, vcd.add_var(vcd::VarType::String, 1, &format!("{name}_block"), None)?, line));
        }
        vcd.upscope()?;
        vcd.enddefinitions()?;
        for cycle in 0..self.length() {
            vcd.timestamp(cycle as u64 * CLOCK)?;
            vcd.change_scalar(clock, true)?;
            for (wire, shown) in &bits {
                if cycle == 0 || shown[cycle] != shown[cycle - 1] {
                    vcd.change_scalar(*wire, shown[cycle])?;
                }
            }
            for (wire, name, line) in &blocks {
                if cycle == 0 || line[cycle] != line[cycle - 1] {
                    let word = line[cycle].to_bits();
                    vcd.change_vector(*wire, (0..66).rev().map(|bit| (word >> bit & 1 == 1).into()))?;
                    vcd.change_string(*name, name_of(line[cycle]))?;
                }
            }
            vcd.timestamp(cycle as u64 * CLOCK + CLOCK / 2)?;
            vcd.change_scalar(clock, false)?;
        }
        vcd.timestamp(self.length() as u64 * CLOCK)
    }

    /// The text of [`wavedrom`](Self::wavedrom), as the file beside the page has it.
    pub fn picture(&self) -> String {
        format!("{:#}\n", self.wavedrom())
    }

    /// The way of a read as a picture in the language of WaveDrom: one lane a stage, in the order in
    /// which the request and its answer pass them.
    fn wavedrom(&self) -> Value {
        let cycles = self.length();
        let bit = |name: &str, shown: &[bool]| json!({ "name": name, "wave": wave_of(&shown[..cycles], |set| if *set { '1' } else { '0' }) });
        let probe = |name: &str, node, probe: Probe| bit(name, &self.probes[&(node, probe as u8)]);
        let line = |name: &str, node, up| {
            let blocks = &self.lines[&(node, up)][..cycles];
            let busy = blocks.iter().filter(|block| **block != Block::IDLE);
            let data: Vec<&str> = busy.map(|block| name_of(*block)).collect();
            let is_idle: Vec<bool> = blocks.iter().map(|block| *block == Block::IDLE).collect();
            // Each block is one of its own, even if it has the bits of the last one.
            let wave = wave_of(&is_idle, |_| 'z');
            let wave: String =
                wave.chars().zip(&is_idle).map(|(letter, idle)| if *idle { letter } else { '=' }).collect();
            json!({ "name": name, "wave": wave, "data": data })
        };
        json!({
            "signal": [
                [
                    "compute node",
                    bit("request of the application", &self.taken),
                    probe("RREQ to its port", READER, Probe::HostOut),
                    line("line to the switch", READER, true),
                ],
                [
                    "switch",
                    probe("RREQ out of its port", READER, Probe::PortIn),
                    probe("demand to the scheduler", READER, Probe::Demand),
                    probe("grant", MEMORY, Probe::Grant),
                    probe("RREQ to the other port", MEMORY, Probe::PortOut),
                    line("line to the memory node", MEMORY, false),
                ],
                [
                    "memory node",
                    probe("RREQ out of its port", MEMORY, Probe::HostIn),
                    probe("into the grant queue", MEMORY, Probe::Queued),
                    probe("out of the grant queue", MEMORY, Probe::Dequeued),
                    probe("RRES to its port", MEMORY, Probe::HostOut),
                    line("line to the switch", MEMORY, true),
                ],
                [
                    "switch",
                    probe("RRES out of its port", MEMORY, Probe::PortIn),
                    probe("RRES to the other port", READER, Probe::PortOut),
                    line("line to the compute node", READER, false),
                ],
                [
                    "compute node",
                    probe("RRES out of its port", READER, Probe::HostIn),
                    probe("write of its memory", READER, Probe::MemoryWrite),
                    bit("answer to the application", &self.answered),
                ],
            ],
            "head": { "tick": 0 },
            "config": { "skin": "narrow" },
        })
    }
}

/// The data of a node: 64 bytes.
pub fn pattern(seed: u8) -> Vec<u8> {
    (0..64u8).map(|index| index.wrapping_mul(37).wrapping_add(seed)).collect()
}

/// What is on each line in this cycle, without the scrambler.
fn lines(system: &System, descramblers: &mut BTreeMap<(usize, bool), Descrambler>) -> Vec<((usize, bool), u128)> {
    let all = [(READER, true), (READER, false), (MEMORY, true), (MEMORY, false)];
    let mut clear = |(node, up)| descramblers.entry((node, up)).or_default().push(system.line(node, up));
    all.map(|line| (line, clear(line))).to_vec()
}

/// One letter a cycle; a dot where nothing changes.
fn wave_of<T: PartialEq>(shown: &[T], letter: impl Fn(&T) -> char) -> String {
    let changes = |cycle: usize| cycle == 0 || shown[cycle] != shown[cycle - 1];
    shown.iter().enumerate().map(|(cycle, value)| if changes(cycle) { letter(value) } else { '.' }).collect()
}

/// A short name, without the slashes of the paper. There are no frames here, so data is /MD/.
fn name_of(block: Block) -> &'static str {
    match block.content() {
        Ok(Content::Data(_)) => "MD",
        Ok(content) => content.name().trim_matches('/'),
        Err(_) => "?",
    }
}
