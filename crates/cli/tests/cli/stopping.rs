//! Runs that do not come to their end: what is left of them can be read.

use crate::support::{Home, LONG, SMALL};
use record::Summary;
use std::process::Command;

fn long() -> Home {
    Home::new().with("a.toml", &SMALL.replace("400", &format!("{LONG}\nwarm_up_requests = 0")))
}

const PART: &str = "out/seed-1/records/part-00002.parquet";

#[test]
fn a_killed_run_leaves_whole_parts() {
    let home = long();
    let running = home.start("run a.toml --out out --rows-per-part 1000", PART);
    running.signal("KILL");
    assert_eq!(running.end().code, None);
    let rows = home.rows("out/seed-1/records");
    assert!(rows.len() >= 3000 && rows.len().is_multiple_of(1000), "{}", rows.len());
    assert!(rows.iter().all(|row| row.adds_up()));
}

#[test]
fn ctrl_c_leaves_a_partial_result_that_says_so() {
    for signal in ["INT", "TERM"] {
        let home = long();
        let running = home.start("run a.toml --out out --rows-per-part 1000", PART);
        running.signal(signal);
        let said = running.end();
        said.refused(130, &["interrupted: what was finished is in out"]);
        let (summary, rows) = (home.summary("out/summary.json"), home.rows("out/seed-1/records"));
        assert!(summary.partial && said.out.contains("the run was cut short"), "{said:?}");
        assert_eq!(summary.counts.issued, rows.len() as u64, "every request has its row");
        assert!(home.path("out/seed-1/latency.all.hdr").exists());
    }
}

#[test]
fn seeds_that_were_not_reached_are_told() {
    let home = long();
    // More seeds than any machine has cores for.
    let running = home.start("run a.toml --out out --long --seeds 1..=2000", "out/seed-1/records");
    running.signal("INT");
    let said = running.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    let Summary { seeds, partial, warnings, .. } = home.summary("out/summary.json");
    let told = format!("{} of 2000 seeds were not run", 2000 - seeds.len());
    assert!(partial && seeds[0] == 1 && warnings.contains(&told), "{warnings:?}");
}

#[test]
fn a_full_disk_is_named_and_the_parts_before_it_stay() {
    let home = long();
    let disk = home.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&disk).output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        println!("skipped: no right to mount a small disk; the unit test of parts covers the writer");
        return;
    }
    let said = home.say("run a.toml --out disk/out --rows-per-part 1000");
    let rows = std::panic::catch_unwind(|| home.rows("disk/out/seed-1/records"));
    Command::new("umount").arg(&disk).status().unwrap();
    said.refused(1, &["disk/out/seed-1/records/part-000", "No space left on device"]);
    let rows = rows.expect("the parts can be read");
    assert!(!rows.is_empty() && rows.len().is_multiple_of(1000), "{}", rows.len());
}
