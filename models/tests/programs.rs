//! Does the protocol hold: the programs themselves, on real bytes, under schedules by chance with
//! everything going wrong.

use models::programs::{SETTINGS, Tally, explore};

fn play(name: &str, worlds: u64) -> Tally {
    let setting = SETTINGS.iter().find(|setting| setting.name == name).expect("the setting exists");
    let tally = explore(setting, 0..worlds);
    assert_eq!(tally.wrong.is_some(), setting.is_flawed, "{tally:?}");
    tally
}

#[test]
fn with_nothing_but_torn_reads_and_delays_every_history_is_linearizable() {
    let tally = play("torn reads and delays", 150);
    assert!(tally.hits > 500 && tally.zones_reclaimed > 20 && tally.handed_over > 500, "{tally:?}");
}

#[test]
fn with_messages_lost_and_doubled_every_history_is_linearizable() {
    play("messages lost and doubled", 150);
}

#[test]
fn with_clients_that_sleep_through_leases_or_die_at_any_step_every_history_is_linearizable() {
    play("clients sleep and die", 200);
}

#[test]
fn with_servers_that_crash_at_any_step_no_acknowledged_write_is_lost_and_no_deleted_key_comes_back() {
    let tally = play("servers crash", 200);
    assert!(tally.crashes > 60 && tally.handed_over > 100, "{tally:?}");
}

#[test]
fn of_reads_that_wait_and_share_an_answer_every_history_is_linearizable() {
    let tally = play("reads that share", 200);
    assert!(tally.shared > 200 && tally.hits > 5_000, "{tally:?}");
}

#[test]
fn the_paper_s_protocol_with_its_lease_is_caught() {
    let setting = SETTINGS.iter().find(|setting| setting.name == "the paper's lease").expect("it exists");
    // Torn reads catch it in other worlds.
    let mut wrongs = (0..300).filter_map(|world| explore(setting, world..world + 1).wrong);
    assert!(wrongs.any(|wrong| wrong.contains("not linearizable")));
}

#[test]
fn the_paper_s_protocol_is_caught_by_torn_reads_alone() {
    let tally = play("the paper's protocol, torn reads", 300);
    assert!(tally.wrong.is_some_and(|wrong| wrong.contains("not linearizable") || wrong.contains("foreign bytes")));
}
