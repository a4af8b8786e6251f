//! `rackweave target`, `disk` and `attack`: the program as its users meet it, on the loopback.

use crate::support::Home;
use crate::support::target::Target;
use std::fs;

#[test]
fn a_killed_target_comes_back_with_the_same_disk_and_what_was_flushed() {
    let home = Home::new().with("noise", &"rackweave".repeat(10_000));
    let options = "--listen 127.0.0.1:0 --path disk --size 16MiB --state state";
    let first = Target::start(&home, options);
    let identity = home.run(&format!("disk {} identify --json", first.address));
    home.run(&format!("disk {} write --from noise --at 1MiB", first.address));
    first.kill();
    let second = Target::start(&home, options);
    let uuid = |text: &str| -> serde_json::Value {
        let shown: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        shown["namespaces"][0]["uuid"].clone()
    };
    let again = home.run(&format!("disk {} identify --json", second.address));
    assert_eq!(uuid(&again), uuid(&identity));
    home.run(&format!("disk {} read --at 1MiB --bytes 90112B --out back", second.address));
    let (noise, back) =
        (fs::read(home.path("noise")).expect("it is there"), fs::read(home.path("back")).expect("it was made"));
    assert_eq!(back[..noise.len()], noise);
    assert!(back[noise.len()..].iter().all(|byte| *byte == 0), "the last block is filled up");
}

#[test]
fn a_terminated_target_ends_in_order() {
    let home = Home::new();
    let mut target = Target::start(&home, "--listen 127.0.0.1:0 --size 16MiB");
    home.run(&format!("disk {} verify --overwrite --bytes 1MiB", target.address));
    let said = std::process::Command::new("kill").args(["-TERM", &target.child.id().to_string()]).status();
    assert!(said.expect("there is kill").success());
    assert_eq!(target.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn every_known_attack_is_refused_and_leaves_a_target_that_serves() {
    let file = "strict = true\nport = [{ address = '127.0.0.1:0' }]\n[[subsystem]]\nnamespace = [{ size = '16MiB' }]\n";
    let home = Home::new().with("strict.toml", file);
    let target = Target::start(&home, "--config strict.toml");
    // A target that has no turn for a while does not hang.
    let said = home.say(&format!("attack {} --step-timeout 20", target.address));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.lines().count() > 20, "{}", said.out);
    assert!(said.out.lines().all(|line| line.ends_with(" sound") || line.contains(" allowed: ")), "{}", said.out);
    home.run(&format!("disk {} verify --overwrite --bytes 1MiB", target.address));
}

#[test]
fn attacks_are_listed_and_explained_without_a_target() {
    let home = Home::new();
    let listed = home.run("attack --list");
    let names: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(names.len() > 100 && names.contains(&"data-twice"), "{listed}");
    assert_eq!(home.run("attack --list --only data-twice").lines().count(), 2);
    let explained = home.run("attack --explain data-twice");
    for part in
        ["finished TTAG", "NVMe/TCP Transport 1.0, 3.3.2", "stems from: CVE-2023-6536", "H2CData for the last R2T"]
    {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    home.say("attack --explain nothing").refused(2, &["no attack is called nothing"]);
    home.say("attack").refused(2, &["ADDRESS:PORT"]);
}

#[test]
fn attacks_are_reported_and_compared_with_what_is_expected() {
    let table = "log-offset-beyond = { verdict = 'fault', why = 'an example' }\n";
    let home =
        Home::new().with("wrong.toml", table).with("right.toml", "").with("typo.toml", &table.replace("fault", "falt"));
    let target = Target::start(&home, "--listen 127.0.0.1:0 --size 16MiB");
    let attack = format!("attack {} --step-timeout 20 --only log-", target.address);
    home.run(&format!("{attack} --expect right.toml --report report.json"));
    let report = fs::read_to_string(home.path("report.json")).expect("it was written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let first = &report[0];
    assert_eq!((&first["name"], &first["class"]), (&"log-offset-that-wraps".into(), &"sound".into()));
    assert!(first["source"].as_str().is_some_and(|source| source.contains("5.16")), "{first}");
    home.run(&format!("{attack} --report report.xml"));
    let report = fs::read_to_string(home.path("report.xml")).expect("it was written");
    assert!(
        report.contains("<testcase name=\"log-offset-that-wraps\"") && report.contains("failures=\"0\""),
        "{report}"
    );
    home.say(&format!("{attack} --expect wrong.toml")).refused(1, &["log-offset-beyond: expected fault, got sound"]);
    home.say(&format!("{attack} --expect typo.toml"))
        .refused(2, &["typo.toml: log-offset-beyond: its verdict is none of"]);
}

#[test]
fn a_target_with_64_connections_stays_small() {
    const MOST: u64 = 64 << 20;
    let home = Home::new();
    let target = Target::start(&home, "--listen 127.0.0.1:0 --backend null --size 1GiB");
    let connections: Vec<_> =
        (0..60).map(|_| std::net::TcpStream::connect(&target.address).expect("it listens")).collect();
    // Two hosts at work beside them, with large transfers: two connections each.
    for _ in 0..2 {
        home.run(&format!("disk {} bench --block 1MiB --depth 16 --seconds 1", target.address));
    }
    let resident = target.resident();
    assert!(resident < MOST, "{resident} bytes with {} connections", connections.len());
}

#[test]
fn what_cannot_be_served_is_told_with_what_would_be_right() {
    let home = Home::new().with("wrong.toml", "[[subsystem]]\nnamspace = []\n").with("folder/file", "");
    home.say("target --config wrong.toml")
        .refused(2, &["wrong.toml:2:1", "unknown key `namspace`, did you mean `namespace`?"]);
    home.say("target --size 1000").refused(2, &["`1000` has no unit"]);
    home.say("target --path absent").refused(2, &["absent: it is not there; with a `size` it is made"]);
    home.say("target --path folder --size 1MiB").refused(2, &["folder: "]);
    let target = Target::start(&home, "--listen 127.0.0.1:0 --size 1MiB");
    let process = target.child.id().to_string();
    home.say(&format!("target --listen {}", target.address))
        .refused(2, &["is in use by process", &process, "(rackweave)"]);
    home.say("disk 127.0.0.1:1").refused(1, &["127.0.0.1:1", "is the target running, and at this port?"]);
    home.say(&format!("disk {} write --from wrong.toml --at 100B", target.address))
        .refused(2, &["--at 100B: not a multiple"]);
    home.say(&format!("disk {} bench --load write", target.address)).refused(2, &["--overwrite"]);
    home.say(&format!("disk {} --nqn nqn.2026-11.io.rackweave:nothing", target.address))
        .refused(1, &["Connect was refused"]);
}

#[test]
fn check_prints_a_file_of_a_target_with_every_default() {
    let home = Home::new().with("a.toml", "[[subsystem]]\nnamespace = [{ size = '1MiB' }]\n");
    let printed = home.run("check a.toml");
    assert!(printed.contains("address = \"127.0.0.1:4420\"") && printed.contains("queue_entries = 128"), "{printed}");
    let schema: serde_json::Value = serde_json::from_str(&home.run("schema target")).expect("it is JSON");
    assert_eq!(schema["title"], "Rackweave target");
}

#[test]
fn the_shipped_example_is_right() {
    let home = Home::new().with("target.toml", include_str!("../../../../examples/target.toml"));
    home.run("check target.toml");
}

/// The unit's check finds a secret that the service could not read, and its secrets are where
/// systemd puts them.
#[test]
fn the_shipped_unit_checks_all_that_it_starts_with() {
    let unit = include_str!("../../../../examples/systemd/rackweave-target.service");
    let line = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("{key}"));
    let check = line("ExecStartPre=/usr/local/bin/rackweave ").replace("/etc/rackweave/", "");
    let (name, _) = line("#LoadCredential=").split_once(':').expect("a name and a path");
    let credential = format!("/run/credentials/rackweave-target.service/{name}");
    assert!(unit.contains(&format!("\"{credential}\"")));
    assert!(
        include_str!("../../../../docs/guide/live-target.md")
            .contains(&format!("dhchap_secret_file = \"{credential}\""))
    );
    let host = "nqn.2026-11.org.example:host";
    let text = |secret: &str| {
        format!(
            "port = [{{ address = '127.0.0.1:0' }}]\n[[host]]\nnqn = '{host}'\ndhchap_secret_file = '{secret}'\n[[subsystem]]\nhosts = ['{host}']\n"
        )
    };
    let home = Home::new().with("target.toml", &text(&credential));
    home.say(&check).refused(2, &[&credential, "No such file"]);
    let home = home
        .with("secret", "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:")
        .with("target.toml", &text("secret"));
    home.run(&check);
}
