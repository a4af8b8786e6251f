//! Does the protocol hold: what clients of a group of replicas see is linearizable, whatever fails,
//! and what fails heals.

use crate::hermes_world::{Mistake, Plan, World};

const CALM: Plan =
    Plan { seed: 0, loss_percent: 0, crashes: 0, partitions: 0, costs_data: false, mistake: Mistake::None };

fn assert_lawful_and_whole(plan: Plan) -> World {
    let world = World::play(plan);
    if let Err(violation) = world.history.check() {
        panic!("{plan:?}: {violation}");
    }
    assert_eq!(world.stray, None, "{plan:?}");
    if let Some(why) = world.unhealed() {
        panic!("{plan:?}: the rack is not whole again: {why}");
    }
    world
}

#[test]
fn replicas_agree_while_nothing_fails() {
    for seed in 0..20 {
        let world = assert_lawful_and_whole(Plan { seed, ..CALM });
        assert_eq!(world.epochs, 1, "nobody was suspected");
        assert!(world.reads_answered > 200 && world.writes_answered > 100, "clients were served");
    }
}

#[test]
fn replicas_agree_when_messages_are_lost_doubled_and_reordered() {
    (0..80).for_each(|seed| drop(assert_lawful_and_whole(Plan { seed, loss_percent: 8, ..CALM })));
}

#[test]
fn replicas_agree_when_servers_die_and_come_back_empty() {
    let worlds: Vec<World> =
        (0..120).map(|seed| assert_lawful_and_whole(Plan { seed, loss_percent: 3, crashes: 3, ..CALM })).collect();
    assert!(worlds.iter().filter(|world| world.epochs > 4).count() > 60, "most runs rebuild replicas");
}

#[test]
fn replicas_agree_when_servers_are_cut_off_and_return() {
    (0..120).for_each(|seed| drop(assert_lawful_and_whole(Plan { seed, loss_percent: 3, partitions: 3, ..CALM })));
}

#[test]
fn replicas_agree_when_everything_happens() {
    let plan = Plan { loss_percent: 6, crashes: 2, partitions: 3, ..CALM };
    (0..250).for_each(|seed| drop(assert_lawful_and_whole(Plan { seed, ..plan })));
}

#[test]
fn a_replica_is_rebuilt_from_its_peers_alone() {
    let plan = Plan { crashes: 1, costs_data: true, ..CALM };
    (0..100).for_each(|seed| drop(assert_lawful_and_whole(Plan { seed, ..plan })));
}

/// The tests can fail: a rack with the mistake shows it to its clients.
#[test]
fn each_mistake_that_an_implementation_could_make_is_caught() {
    let mistakes = [
        Mistake::ValidateAny,
        Mistake::ServeInvalid,
        Mistake::NoSecondLook,
        Mistake::NoLease,
        Mistake::HastyAcknowledgement,
        Mistake::TrustStale,
    ];
    for mistake in mistakes {
        let plan = Plan { loss_percent: 6, crashes: 1, partitions: 3, mistake, ..CALM };
        let mut worlds = (0..200).map(|seed| World::play(Plan { seed, ..plan }));
        assert!(worlds.any(|world| world.history.check().is_err()), "{mistake:?} was not caught");
    }
}
