//! One whole drive: requests per CPU second under garbage collection, and the memory for half a
//! terabyte.
//!
//! For comparison: MQSim executes 38 k to 104 k requests per CPU second for one device, in 2.1 GB
//! for 512 GB (measured once on such a machine; not run here). The other contenders are the same
//! drive without garbage collection, because it is new or only read.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use base::{Bytes, Seed, Stream, Time};
use hardware::ssd::{
    Command, CommandKind, Geometry, Pattern, Precondition, SolidState, SolidStateConfig, Steady, presets,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Flash of 512 GB: P-SSD's geometry (16 channels of 8 dies of 4 planes, 256 pages of 16 KiB per
/// block) with fewer blocks.
const PHYSICAL: Bytes = Bytes::new(512_000_000_000);
/// Spare space relative to the user-visible space: that of a datacenter drive, with which random
/// writes are amplified about 2.5 times.
const OVER_PROVISIONING: f64 = 0.28;
/// Outstanding requests.
const DEPTH: usize = 64;
const REQUESTS: usize = 1_000_000;

/// Returns the configuration of a drive of 512 GB that maps whole pages.
fn config() -> SolidStateConfig {
    let config = presets::p_ssd(Seed(1));
    let geometry = Geometry { unit: config.geometry.page, ..config.geometry };
    let config = SolidStateConfig { geometry, over_provisioning: OVER_PROVISIONING, ..config };
    let plane = config.geometry.physical_bytes().count() / u64::from(config.geometry.blocks_per_plane);
    config.with_blocks_per_plane((PHYSICAL.count() / plane) as u32)
}

fn fresh() -> SolidState {
    SolidState::new(config()).expect("the configuration is a preset's")
}

/// Returns the drive, full of data that were overwritten at random until its write amplification
/// was steady.
fn used() -> SolidState {
    let mut drive = fresh();
    let steady = Steady { window: 0.1, windows: 3, tolerance: 0.05, windows_max: 40 };
    let state = Precondition { fill: 1.0, pattern: Pattern::Fragmented(steady) };
    drive.precondition(state).unwrap_or_else(|error| panic!("{error}"));
    drive
}

/// A drive under a closed loop of single-page requests to random addresses.
struct Load {
    drive: SolidState,
    addresses: Stream,
    /// The end of the last request of each slot.
    ends: [Time; DEPTH],
    slot: usize,
    now: Time,
}

impl Load {
    fn new(drive: SolidState) -> Load {
        let addresses = Seed(7).stream("addresses");
        Load { drive, addresses, ends: [Time::ZERO; DEPTH], slot: 0, now: Time::ZERO }
    }

    /// Executes [`REQUESTS`] requests. Returns their CPU seconds.
    fn play(&mut self, kind: CommandKind) -> f64 {
        cpu_seconds(|| {
            for _ in 0..REQUESTS {
                let command = self.draw(kind);
                self.submit(command);
            }
        })
    }

    fn draw(&mut self, kind: CommandKind) -> Command {
        let bytes = self.drive.config().geometry.unit;
        let pages = self.drive.capacity().count() / bytes.count();
        Command { kind, address: self.addresses.below(pages) * bytes.count(), bytes }
    }

    fn submit(&mut self, command: Command) {
        self.now = self.now.max(self.ends[self.slot]);
        let done = self.drive.submit(self.now, command);
        self.ends[self.slot] = done.expect("the address is the drive's").end;
        self.slot = (self.slot + 1) % DEPTH;
    }
}

/// A load that is created at its first use.
type Shared = Rc<RefCell<Option<Load>>>;

/// Returns random writes with garbage collection, random writes to a new drive, and random reads.
pub fn benchmarks() -> Vec<Group> {
    let (on_used, on_fresh) = (Shared::default(), Shared::default());
    let contender = |key: &str, load: &Shared, drive: fn() -> SolidState, kind: CommandKind| {
        let load = Rc::clone(load);
        let run = move || REQUESTS as f64 / load.borrow_mut().get_or_insert_with(|| Load::new(drive())).play(kind);
        Contender { key: key.to_owned(), run: Box::new(run) }
    };
    let contenders = vec![
        contender("flash.requests_per_cpu_s", &on_used, used, CommandKind::Write),
        contender("flash.writes_without_collection_per_cpu_s", &on_fresh, fresh, CommandKind::Write),
        contender("flash.reads_per_cpu_s", &on_used, used, CommandKind::Read),
    ];
    vec![Group { better: Better::Higher, rounds: 3, contenders }]
}

/// Runs the drive in a separate process, to measure its memory; prints its write amplification.
pub fn memory_child() {
    let mut load = Load::new(used());
    load.drive.restart_report();
    load.play(CommandKind::Write);
    let amplification = load.drive.report().write_amplification.unwrap_or(1.0);
    println!("flash.write_amplification {amplification}");
    println!("flash.over_provisioning {OVER_PROVISIONING}");
}
