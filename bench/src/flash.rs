//! One whole drive: requests a CPU second under garbage collection, and the memory of half a terabyte.
//!
//! To compare: MQSim executes 38 k to 104 k requests a CPU second for one device, in 2.1 GB for 512 GB (measured once on such a machine; not run
//! here). Ours beside it: the same drive when nothing has to be collected.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use base::{Bytes, Seed, Stream, Time};
use hardware::ssd::{
    Command, CommandKind, Geometry, Pattern, Precondition, SolidState, SolidStateConfig, Steady, presets,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Flash of 512 GB: P-SSD's geometry (16 channels of 8 dies of 4 planes, 256 pages of 16 KiB a block) with fewer blocks.
const PHYSICAL: Bytes = Bytes::new(512_000_000_000);
/// Spare space of the share that the user sees: a datacenter drive's, with which random writes are amplified about 2.5 times.
const OVER_PROVISIONING: f64 = 0.28;
/// Requests outstanding.
const DEPTH: usize = 64;
const REQUESTS: u32 = 1_000_000;

/// A drive of 512 GB whose pages are mapped whole.
fn config() -> SolidStateConfig {
    let config = presets::p_ssd(Seed(1));
    let geometry = Geometry { unit: config.geometry.page, ..config.geometry };
    let config = SolidStateConfig { geometry, over_provisioning: OVER_PROVISIONING, ..config };
    let plane = config.geometry.physical_bytes().count() / u64::from(config.geometry.blocks_per_plane);
    config.with_blocks_per_plane((PHYSICAL.count() / plane) as u32)
}

/// The drive, full of data that were overwritten at random until its write amplification was steady.
fn used() -> SolidState {
    let mut drive = SolidState::new(config()).expect("the configuration is a preset's");
    let steady = Steady { window: 0.1, windows: 3, tolerance: 0.05, windows_max: 40 };
    let state = Precondition { fill: 1.0, pattern: Pattern::Fragmented(steady) };
    drive.precondition(state).unwrap_or_else(|error| panic!("{error}"));
    drive
}

/// A drive under a closed loop of single-page requests at random addresses.
struct Load {
    drive: SolidState,
    addresses: Stream,
    /// When the last request of each slot ends.
    ends: [Time; DEPTH],
    now: Time,
}

impl Load {
    fn new() -> Load {
        Load { drive: used(), addresses: Seed(7).stream("addresses"), ends: [Time::ZERO; DEPTH], now: Time::ZERO }
    }

    /// CPU seconds of some requests.
    fn play(&mut self, kind: CommandKind) -> f64 {
        let bytes = self.drive.config().geometry.unit;
        let pages = self.drive.capacity().count() / bytes.count();
        cpu_seconds(|| {
            for request in 0..REQUESTS as usize {
                let slot = request % DEPTH;
                self.now = self.now.max(self.ends[slot]);
                let address = self.addresses.below(pages) * bytes.count();
                let done = self.drive.submit(self.now, Command { kind, address, bytes });
                self.ends[slot] = done.expect("the address is the drive's").end;
            }
        })
    }
}

/// Random writes under collection, beside random reads of the same drive.
pub fn benchmarks() -> Vec<Group> {
    let load = Rc::new(RefCell::new(None));
    let contender = |key: &str, kind: CommandKind| {
        let load = Rc::clone(&load);
        let run = move || f64::from(REQUESTS) / load.borrow_mut().get_or_insert_with(Load::new).play(kind);
        Contender { key: key.to_owned(), run: Box::new(run) }
    };
    let contenders = vec![
        contender("flash.requests_per_cpu_s", CommandKind::Write),
        contender("flash.reads_per_cpu_s", CommandKind::Read),
    ];
    vec![Group { better: Better::Higher, rounds: 3, contenders }]
}

/// What a process of its own needs for the drive, and how hard the drive has to collect.
pub fn memory_child() {
    let mut load = Load::new();
    load.drive.restart_report();
    load.play(CommandKind::Write);
    let amplification = load.drive.report().write_amplification.unwrap_or(1.0);
    println!("flash.write_amplification {amplification}");
    println!("flash.over_provisioning {OVER_PROVISIONING}");
}
