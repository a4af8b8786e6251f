//! Does the protocol hold: the programs themselves, on real bytes, under schedules by chance with everything going wrong.

mod world;

use base::{Seed, Stream};
use scalio::Protocol;
use world::judge::is_linearizable;
use world::{Faults, Kind, World};

fn kind(random: &mut Stream, protocol: Protocol, faults: Faults) -> Kind {
    Kind {
        protocol,
        blocks: 1 + random.below(2) as u32,
        slots: random.below(4) as u8,
        devices: 1 + random.below(2) as u32,
        clients: 3 + random.below(2) as u16,
        keys: 1 + random.below(4) as u8,
        // What was cut off by a crash may have happened or not, and the judge has to try both.
        operations: if faults.crash > 0 { 20 + random.below(25) } else { 30 + random.below(60) } as u32,
        volatile_cache: random.below(2) == 0,
        group_updates: 1 + random.below(4) as u32,
        faults,
    }
}

/// What went wrong, if anything did.
fn verdict(world: &World) -> Option<String> {
    let unordered = world.history.iter().find(|(_, events)| !is_linearizable(events));
    let unordered = unordered.map(|(key, events)| format!("{key:?} is not linearizable: {events:#?}"));
    world.violated.clone().or(unordered)
}

/// What all worlds of a test came to.
#[derive(Debug, Default)]
struct Tally {
    wrong: Option<String>,
    hits: u64,
    crashes: u32,
    zones_reclaimed: u64,
}

fn explore(name: &str, worlds: u64, protocol: Protocol, faults: Faults) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..worlds {
        let mut random = Seed(seed).stream(name);
        let kind = kind(&mut random, protocol, faults);
        let mut world = World::new(kind, seed);
        world.play();
        tally.hits += world.hits();
        tally.crashes += world.crashes;
        tally.zones_reclaimed += world.zones_reclaimed();
        if let Some(wrong) = verdict(&world) {
            tally.wrong = Some(format!("{kind:?}, seed {seed}: {wrong}"));
            break;
        }
    }
    tally
}

const NETWORK: Faults = Faults { lose: 50, double: 50, sleep: 0, death: 0, crash: 0 };

#[test]
fn with_nothing_but_torn_reads_and_delays_every_history_is_linearizable() {
    let tally = explore("calm", 150, Protocol::Linearizable, Faults::default());
    assert_eq!(tally.wrong, None);
    assert!(tally.hits > 500 && tally.zones_reclaimed > 20, "{tally:?}");
}

#[test]
fn with_messages_lost_and_doubled_every_history_is_linearizable() {
    assert_eq!(explore("network", 150, Protocol::Linearizable, NETWORK).wrong, None);
}

#[test]
fn with_clients_that_sleep_through_leases_or_die_at_any_step_every_history_is_linearizable() {
    let faults = Faults { sleep: 2, death: 1, ..NETWORK };
    assert_eq!(explore("clients", 200, Protocol::Linearizable, faults).wrong, None);
}

#[test]
fn with_servers_that_crash_at_any_step_no_acknowledged_write_is_lost_and_no_deleted_key_comes_back() {
    let faults = Faults { sleep: 1, death: 0, crash: 1, ..NETWORK };
    let tally = explore("servers", 200, Protocol::Linearizable, faults);
    assert_eq!(tally.wrong, None);
    assert!(tally.crashes > 60, "{tally:?}");
}

#[test]
fn the_paper_s_protocol_with_its_lease_is_caught() {
    let faults = Faults { sleep: 2, ..Faults::default() };
    let Tally { wrong, .. } = explore("paper", 300, Protocol::Paper { lease: true }, faults);
    assert!(wrong.is_some_and(|wrong| wrong.contains("not linearizable")));
}

#[test]
fn the_paper_s_protocol_is_caught_by_torn_reads_alone() {
    let Tally { wrong, .. } = explore("paper", 300, Protocol::Paper { lease: false }, Faults::default());
    assert!(wrong.is_some_and(|wrong| wrong.contains("not linearizable")));
}
