//! The programs themselves (crate `scalio`: client, server, layouts as bytes) under schedules by
//! chance, with everything going wrong.
//!
//! The model says that the protocol is right, these worlds that the programs are the protocol. What
//! clients saw is judged by `history::StoreHistory`.

mod device;
mod ledger;
mod memory;
mod world;

use base::{Seed, Stream};
use scalio::Protocol;
use std::ops::Range;
use world::World;

/// Chances in 1000, of each step unless said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Of each message: lost.
    pub lose: u64,
    /// Of each message: it comes again.
    pub double: u64,
    /// A client sleeps through several leases.
    pub sleep: u64,
    /// A client dies.
    pub death: u64,
    /// A server restarts.
    pub crash: u64,
}

/// What kind of world.
#[derive(Clone, Copy, Debug)]
struct Kind {
    protocol: Protocol,
    blocks: u32,
    slots: u8,
    devices: u32,
    clients: u16,
    keys: u8,
    /// Operations of all clients together.
    operations: u32,
    volatile_cache: bool,
    group_updates: u32,
    faults: Faults,
    /// Operations of a client at once at most.
    depth: usize,
    /// Whether most operations are reads, of which those that wait share an answer.
    reads_share: bool,
}

/// Worlds of one sort, and what must be found in them.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The mishap.
    pub name: &'static str,
    /// The scenario.
    pub protocol: Protocol,
    /// Frequency of the mishap.
    pub faults: Faults,
    /// Whether it is the paper's protocol, which has to be caught.
    pub is_flawed: bool,
    /// Whether each client has many reads of few keys, and those that wait share an answer.
    pub reads_share: bool,
}

const NETWORK: Faults = Faults { lose: 50, double: 50, sleep: 0, death: 0, crash: 0 };

/// Ours where nothing but torn reads and delays happens, then with everything else; the paper's,
/// with its lease and without.
pub const SETTINGS: [Setting; 7] = [
    ours("torn reads and delays", Faults { lose: 0, double: 0, ..NETWORK }),
    ours("messages lost and doubled", NETWORK),
    ours("clients sleep and die", Faults { sleep: 2, death: 1, ..NETWORK }),
    ours("servers crash", Faults { sleep: 1, crash: 1, ..NETWORK }),
    Setting {
        reads_share: true,
        ..ours("reads that share", Faults { lose: 0, double: 0, sleep: 1, death: 1, crash: 0 })
    },
    paper("the paper's lease", true, Faults { lose: 0, double: 0, sleep: 2, ..NETWORK }),
    paper("the paper's protocol, torn reads", false, Faults { lose: 0, double: 0, ..NETWORK }),
];

const fn ours(name: &'static str, faults: Faults) -> Setting {
    Setting { name, protocol: Protocol::Linearizable, faults, is_flawed: false, reads_share: false }
}
const fn paper(name: &'static str, lease: bool, faults: Faults) -> Setting {
    Setting { name, protocol: Protocol::Paper { lease }, faults, is_flawed: true, reads_share: false }
}

/// What all worlds of a setting came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// The first that went wrong, and how.
    pub wrong: Option<String>,
    /// Operations of all worlds.
    pub operations: u64,
    /// Reads that were answered from the cache.
    pub hits: u64,
    /// Reads that another read of their client answered.
    pub shared: u64,
    /// Restarts of servers.
    pub crashes: u32,
    /// Zones that compaction won back.
    pub zones_reclaimed: u64,
    /// Segments that groups got from memory.
    pub handed_over: u64,
}

/// Runs the worlds with these numbers, until one fails.
pub fn explore(setting: &Setting, worlds: Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in worlds {
        let mut random = Seed(seed).stream(setting.name);
        let kind = kind(&mut random, setting);
        let mut world = World::new(kind, seed);
        world.play();
        tally.operations += u64::from(kind.operations);
        tally.hits += world.hits();
        tally.shared += world.shared();
        tally.crashes += world.crashes;
        tally.zones_reclaimed += world.zones_reclaimed();
        tally.handed_over += world.handed_over();
        if let Some(wrong) = world.ledger.verdict() {
            tally.wrong = Some(format!("{kind:?}, world {seed}: {wrong}"));
            break;
        }
    }
    tally
}

fn kind(random: &mut Stream, setting: &Setting) -> Kind {
    Kind {
        protocol: setting.protocol,
        blocks: 1 + random.below(2) as u32,
        slots: random.below(4) as u8,
        devices: 1 + random.below(2) as u32,
        clients: 3 + random.below(2) as u16,
        keys: 1 + random.below(if setting.reads_share { 2 } else { 4 }) as u8,
        operations: 30 + random.below(if setting.reads_share { 200 } else { 60 }) as u32,
        volatile_cache: random.below(2) == 0,
        group_updates: 1 + random.below(4) as u32,
        faults: setting.faults,
        depth: if setting.reads_share { 6 } else { 2 },
        reads_share: setting.reads_share,
    }
}
