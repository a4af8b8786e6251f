//! Whose identity a disk has: its own, that of no other disk, and the same one tomorrow.

use crate::support::Home;
use crate::support::target::Target;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

/// What a host knows a disk by.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    subsystem: String,
    serial: String,
    uuid: String,
}

fn shown(home: &Home, target: &Target) -> Shown {
    let text = home.run(&format!("disk {} identify --json", target.address));
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_else(|| panic!("{text}")).to_owned();
    let uuid = word(&json["namespaces"][0]["uuid"]);
    Shown { subsystem: target.name(), serial: word(&json["serial"]), uuid }
}

fn serve(home: &Home, options: &str) -> (Target, Shown) {
    let target = Target::start(home, &format!("--listen 127.0.0.1:0 {options}"));
    let shown = shown(home, &target);
    (target, shown)
}

#[test]
fn two_targets_without_any_option_have_nothing_in_common() {
    let home = Home::new();
    for options in [["--path a --size 1MiB", "--path b --size 1MiB"], ["--size 1MiB", "--size 1MiB"]] {
        let (one, first) = serve(&home, options[0]);
        let (two, second) = serve(&home, options[1]);
        assert!(first.subsystem.starts_with("nqn.2014-08.org.nvmexpress:uuid:"), "{first:?}");
        assert_ne!(first.subsystem, second.subsystem);
        assert_ne!(first.serial, second.serial);
        assert_ne!(first.uuid, second.uuid);
        drop((one, two));
    }
}

#[test]
fn a_name_that_two_targets_share_does_not_make_their_disks_one() {
    let home = Home::new();
    let (_one, first) = serve(&home, "--nqn nqn.2026-11.org.example:same --path a --size 1MiB");
    let (_two, second) = serve(&home, "--nqn nqn.2026-11.org.example:same --path b --size 1MiB");
    assert_ne!(first.uuid, second.uuid);
    assert_ne!(first.serial, second.serial);
}

#[test]
fn a_file_keeps_its_identity_and_takes_it_along() {
    let home = Home::new();
    let (target, first) = serve(&home, "--path disk --size 1MiB");
    target.kill();
    assert_eq!(serve(&home, "--path disk").1, first);
    fs::create_dir(home.path("elsewhere")).expect("a disk");
    for name in ["disk", "disk.rackweave"] {
        fs::rename(home.path(name), home.path("elsewhere").join(name)).expect("a disk");
    }
    let (moved, same) = serve(&home, "--path elsewhere/disk");
    assert_eq!(same, first);
    assert!(!moved.log().contains("identity"), "{}", moved.log());
    moved.kill();
    fs::remove_file(home.path("elsewhere/disk.rackweave")).expect("it is there");
    assert_ne!(serve(&home, "--path elsewhere/disk").1.uuid, first.uuid);
}

#[test]
fn a_copy_with_its_identity_is_warned_of_and_one_without_gets_its_own() {
    let home = Home::new();
    let (original, first) = serve(&home, "--path disk --size 1MiB");
    fs::copy(home.path("disk"), home.path("copy")).expect("a disk");
    fs::copy(home.path("disk.rackweave"), home.path("copy.rackweave")).expect("a disk");
    for _ in 0..2 {
        let (copy, same) = serve(&home, "--path copy");
        assert_eq!(same.uuid, first.uuid, "nobody changes it behind the user's back");
        copy.logs("this identity is there twice");
        copy.logs("copy.rackweave to give the copy its own");
    }
    fs::remove_file(home.path("copy.rackweave")).expect("it is there");
    let (copy, own) = serve(&home, "--path copy");
    assert_ne!(own.uuid, first.uuid);
    assert!(!copy.log().contains("twice"), "{}", copy.log());
    drop(original);
}

#[test]
fn two_disks_of_one_target_with_one_identity_are_warned_of() {
    let uuid = "5d2f1c1e-7a0b-4a53-9f0e-0242ac120002";
    let subsystem =
        |name: &str| format!("[[subsystem]]\nnqn = '{name}'\nnamespace = [{{ size = '1MiB', uuid = '{uuid}' }}]\n");
    let port = "port = [{ address = '127.0.0.1:0' }]\n";
    let home = Home::new()
        .with(
            "two.toml",
            &format!("{port}{}{}", subsystem("nqn.2026-11.org.example:a"), subsystem("nqn.2026-11.org.example:b")),
        )
        .with(
            "one.toml",
            &format!("{port}[[subsystem]]\nnamespace = [{{ uuid = '{uuid}' }}, {{ uuid = '{uuid}' }}]\n"),
        );
    Target::start(&home, "--config two.toml").logs("have one identity: a host that sees both takes them for one disk");
    home.say("target --config one.toml").refused(2, &["the UUID 5d2f1c1e7a0b4a539f0e0242ac120002", "is there twice"]);
}

#[test]
fn with_a_state_name_and_identity_are_kept_there_whatever_is_served() {
    let home = Home::new();
    let (target, first) = serve(&home, "--state state --path disk --size 1MiB");
    assert!(!home.path("disk.rackweave").exists());
    home.say("target --listen 127.0.0.1:0 --state state --size 1MiB")
        .refused(2, &["another target keeps its state there"]);
    target.kill();
    let (target, again) = serve(&home, "--state state --path disk");
    assert_eq!(again, first);
    target.kill();
    fs::rename(home.path("disk"), home.path("renamed")).expect("a disk");
    let (target, renamed) = serve(&home, "--state state --path renamed");
    assert_eq!(renamed, first);
    target.kill();
    let (target, other) = serve(&home, "--state state --path other --size 1MiB");
    assert_eq!((&other.subsystem, &other.serial), (&first.subsystem, &first.serial));
    assert_ne!(other.uuid, first.uuid, "it holds other data");
    target.kill();
    let (target, memory) = serve(&home, "--state state --size 1MiB");
    target.kill();
    let (_target, later) = serve(&home, "--state state --size 1MiB");
    assert_eq!(memory.subsystem, later.subsystem);
    assert_ne!(memory.uuid, later.uuid, "what was in memory is gone");
}

#[test]
fn one_file_is_served_once_unless_all_say_that_it_is_meant() {
    let file = |count: usize, keys: &str| {
        let subsystem = |number| {
            format!(
                "[[subsystem]]\nnqn = 'nqn.2026-11.org.example:{number}'\nnamespace = [{{ backend = 'file', path = 'disk', size = '1MiB'{keys} }}]\n"
            )
        };
        "port = [{ address = '127.0.0.1:0' }]\n".to_owned() + &(0..count).map(subsystem).collect::<String>()
    };
    let home = Home::new()
        .with("alone.toml", &file(1, ""))
        .with("both.toml", &file(2, ""))
        .with("shared.toml", &file(1, ", shared = true"))
        .with("both_shared.toml", &file(2, ", shared = true"));
    home.say("target --config both.toml")
        .refused(2, &["disk: namespace 1 of nqn.2026-11.org.example:0 and namespace 1 of", "`shared = true` on both"]);
    assert!(!home.path("disk").exists(), "what was refused leaves nothing");
    let alone = Target::start(&home, "--config alone.toml");
    for config in ["alone", "shared", "both_shared"] {
        home.say(&format!("target --config {config}.toml"))
            .refused(2, &["disk: another process has it open as a disk"]);
    }
    alone.kill();
    let (one, first) =
        (Target::start(&home, "--config shared.toml"), Target::start(&home, "--config both_shared.toml"));
    home.say("target --config alone.toml").refused(2, &["disk: another process has it open as a disk"]);
    let number = |target: &Target| {
        let text = home.run(&format!("disk {} --nqn nqn.2026-11.org.example:0 identify --json", target.address));
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON")["controller"].as_u64().expect("a number")
    };
    assert_ne!(number(&one), number(&first), "a host would refuse the second of one number");
    for subsystem in ["0", "1"] {
        let text =
            home.run(&format!("disk {} --nqn nqn.2026-11.org.example:{subsystem} identify --json", first.address));
        let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(json["namespaces"][0]["uuid"], serde_json::Value::from(shown(&home, &one).uuid));
    }
}

#[test]
fn an_image_is_for_its_owner_and_what_is_refused_leaves_no_file() {
    let home = Home::new().with("empty", "").with("short", "x");
    home.say("target --listen 127.0.0.1:0 --path disk --size 8388608TiB")
        .refused(2, &["disk: it cannot have", "bytes: "]);
    home.say("target --listen 127.0.0.1:0 --path disk --size 1MiB --metrics 192.0.2.1:1").refused(2, &["192.0.2.1:1"]);
    home.say("target --listen 127.0.0.1:0 --path short --size 1MiB --metrics 192.0.2.1:1").refused(2, &[]);
    home.say("target --listen 127.0.0.1:0 --path empty")
        .refused(2, &["empty: it is empty: give a `size`, such as 1GiB"]);
    home.say("target --listen 127.0.0.1:0 --path short").refused(2, &["short: it has 1 bytes, and a block has 512"]);
    home.say("target --check --listen 127.0.0.1:0 --path disk --size 1MiB --state deep/state").refused(0, &[]);
    for name in ["disk", "disk.rackweave", "disk.rackweave.new", "deep", "short.rackweave"] {
        assert!(!home.path(name).exists(), "{name}");
    }
    assert_eq!(home.text("short"), "x");
    serve(&home, "--path disk --size 1MiB").0.kill();
    let mode =
        File::open(home.path("disk")).and_then(|file| file.metadata()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_check_refuses_what_serving_refuses() {
    let host = "nqn.2026-11.org.example:host";
    let secret = |path: &str| {
        format!(
            "port = [{{ address = '127.0.0.1:0' }}]\n[[host]]\nnqn = '{host}'\ndhchap_secret_file = '{path}'\n[[subsystem]]\nhosts = ['{host}']\n"
        )
    };
    let home = Home::new()
        .with("absent.toml", &secret("absent"))
        .with("wrong.toml", &secret("wrong"))
        .with("wrong", "hunter2\n")
        .with("records.toml", "port = [{ address = '127.0.0.1:0' }]\n[records]\nfolder = 'state/rows'\n")
        .with("state", "a file");
    let taken = Target::start(&home, "--listen 127.0.0.1:0 --size 1MiB");
    let every = taken.address.replace("127.0.0.1", "0.0.0.0");
    let twice = format!("port = [{{ address = '{}' }}, {{ address = '{every}' }}]\n", taken.address);
    let home = home.with("twice.toml", &(twice + "[[subsystem]]\nnqn = 'nqn.2026-11.org.example:a'\n"));
    for (options, reason) in [
        ("--config absent.toml", "absent: dhchap_secret of host"),
        ("--config wrong.toml", "a secret has the form"),
        ("--config records.toml", "state/rows: "),
        ("--listen 127.0.0.1:0 --path nothing", "it is not there; with a `size` it is made"),
        ("--listen 127.0.0.1:0 --state state", "state: "),
        ("--config twice.toml", "is in use"),
    ] {
        home.say(&format!("target --check {options}")).refused(2, &[reason]);
        home.say(&format!("target {options}")).refused(2, &[reason]);
    }
    assert_eq!(home.run("target --check --listen 127.0.0.1:0 --size 1MiB"), "it can be served\n");
}

#[test]
fn a_check_beside_the_running_target_warns_of_what_is_in_use_and_changes_nothing() {
    let (disk, kept) = ("--size 1MiB --path disk", "--state state");
    let home = Home::new();
    let target = Target::start(&home, &format!("--listen 127.0.0.1:0 --metrics 127.0.0.1:0 {disk} {kept}"));
    let state = home.text("state/state.json");
    let larger = disk.replace("1MiB", "2MiB");
    let options = format!("--listen {} {larger} {kept}", target.address);
    let said = home.run(&format!("target --check {options}"));
    for words in [
        format!("warning: {} is in use by process {}", target.address, target.child.id()),
        "disk: another process has it open as a disk".into(),
        "warning: state: another target keeps its state there".into(),
        "it can be served, once others no longer use what it needs".into(),
    ] {
        assert!(said.contains(&words), "{words} is not in {said}");
    }
    assert_eq!(fs::metadata(home.path("disk")).expect("it is there").len(), 1 << 20, "it is another's");
    assert_eq!(home.text("state/state.json"), state);
    assert!(!home.path("state/state.json.new").exists());
    home.say(&format!("target {options}")).refused(2, &["is in use"]);
    home.say(&format!("target --listen 127.0.0.1:0 {disk}")).refused(2, &["another process has it open"]);
    home.say(&format!("target --check {options} --metrics 192.0.2.1:1")).refused(2, &["192.0.2.1:1"]);
}

#[test]
fn the_line_to_connect_has_the_address_that_hosts_are_told() {
    let line = |keys: &str| {
        let home = Home::new()
            .with("target.toml", &format!("port = [{{ {keys} }}]\n[[subsystem]]\nnqn = 'nqn.2026-11.org.example:a'\n"));
        Target::start(&home, "--config target.toml").said.lines().last().expect("it speaks").to_owned()
    };
    assert_eq!(
        line("address = '127.0.0.1:0', advertised = '192.0.2.10:4421'"),
        "on a Linux host, as root: nvme connect -t tcp -a 192.0.2.10 -s 4421 -n nqn.2026-11.org.example:a"
    );
    assert!(line("address = '0.0.0.0:0'").contains(" -a ADDRESS -s "));
}
