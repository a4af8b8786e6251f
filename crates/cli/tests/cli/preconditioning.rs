//! `rackweave precondition`: from an experiment to a file of prepared drives, and from that to a
//! run.

use crate::support::{Home, SMALL, SWEEP};
use std::fs;

const RACK: &str = "title = 'prepared'\ndesign.name = 'rackblox'\n[rack]\nservers = 2\nclients = 2\nremote_replica = false\n\
    [vssd]\nper_ssd = 1\ncapacity = '32MiB'\n[run]\nrequests = 300\n[flash]\npages_per_block = 8\n";

/// A home with an experiment that fragments its drives, one that takes them from `drives.snapshot`,
/// and that file.
fn home() -> Home {
    let home = Home::new()
        .with("rack.toml", &format!("{RACK}state = 'fragmented'\n"))
        .with("from.toml", &format!("{RACK}snapshot = 'drives.snapshot'\n"));
    let said = home.run("precondition rack.toml --out drives.snapshot");
    assert!(said.contains("vSSDs      2,") && said.contains("steady     write amplification of vSSD 0"), "{said}");
    home
}

#[test]
fn a_run_begins_with_drives_that_were_prepared_before() {
    let home = home();
    home.run("run rack.toml --out prepared");
    home.run("run from.toml --out taken");
    assert_eq!(home.rows("prepared/seed-1/records"), home.rows("taken/seed-1/records"));
    let printed: toml::Table = home.run("check from.toml").parse().unwrap();
    assert_eq!(printed["flash"]["snapshot_digest"].as_str().map(str::len), Some(64));
    home.run("precondition rack.toml --out again.snapshot");
    home.run("precondition rack.toml --seed 2 --out other.snapshot");
    let bytes = |name: &str| fs::read(home.path(name)).unwrap();
    assert_eq!(bytes("drives.snapshot"), bytes("again.snapshot"), "the same seed gives the same bytes");
    assert_ne!(bytes("drives.snapshot"), bytes("other.snapshot"));
}

#[test]
fn drives_of_another_shape_and_damaged_files_are_refused_and_nothing_is_written() {
    let home = home();
    home.say("run from.toml --set flash.pages_per_block=16")
        .refused(2, &["flash.snapshot: `drives.snapshot` was made of other drives", "pages a block: 8 there, 16 here"]);
    home.say("run from.toml --set vssd.data=0.3").refused(2, &["pages of data a vSSD: 3276 there, 2457 here"]);
    home.say("run from.toml --set flash.snapshot_digest=00").refused(2, &["it is another snapshot"]);
    let whole = fs::read(home.path("drives.snapshot")).unwrap();
    fs::write(home.path("drives.snapshot"), &whole[..whole.len() / 2]).unwrap();
    home.say("run from.toml").refused(2, &["flash.snapshot", "drives.snapshot", "too early"]);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(home.path("drives.snapshot"), damaged).unwrap();
    home.say("run from.toml").refused(2, &["flash.snapshot", "damaged"]);
    fs::write(home.path("drives.snapshot"), "title = 'no snapshot'").unwrap();
    home.say("run from.toml").refused(2, &["it is no snapshot of flash"]);
    fs::remove_file(home.path("drives.snapshot")).unwrap();
    home.say("run from.toml").refused(2, &["flash.snapshot", "No such file"]);
    assert_eq!(home.entries("."), ["from.toml", "rack.toml"]);
}

#[test]
fn what_has_no_drives_to_prepare_is_refused() {
    let home = home().with("edm.toml", SMALL).with("sweep.toml", &format!("{SMALL}{SWEEP}"));
    home.say("precondition edm.toml --out x").refused(2, &["the design edm has no drives"]);
    home.say("precondition sweep.toml --out x").refused(2, &["a sweep of 4 points"]);
    home.say("precondition from.toml --out x").refused(2, &["flash.snapshot", "prepared already"]);
    let optane = home.with("optane.toml", &RACK.replace("[flash]\n", "[flash]\npreset = 'optane'\n"));
    optane.say("precondition optane.toml --out x").refused(2, &["flash.preset = optane is written in place"]);
    assert!(!optane.path("x").exists());
}
