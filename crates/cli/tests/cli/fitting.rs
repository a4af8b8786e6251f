//! `rackweave fit`: from what fio wrote to a drive. The fixture is a run of fio 3.33 on a disk of
//! ours, without the fields that nobody reads.

use crate::support::{Home, Said};

const SWEEP: &str = include_str!("fixtures/fio-sweep.json");
/// Few parameters: the tests are about the command.
const FEW: &str = "--preset 970-pro --parameters array-read";

fn home() -> Home {
    Home::new().with("fio.json", SWEEP)
}

/// The fixture with a text replaced once.
fn said_of(from: &str, to: &str) -> Said {
    assert!(SWEEP.contains(from), "{from} is in the fixture");
    Home::new().with("fio.json", &SWEEP.replacen(from, to, 1)).say(&format!("fit fio.json {FEW}"))
}

#[test]
fn every_point_is_shown_with_its_error_and_whether_the_fit_has_used_it() {
    let out = home().run(&format!("fit fio.json {FEW}"));
    let uses: Vec<&str> = out
        .lines()
        .filter(|line| line.starts_with("qd"))
        .map(|line| if line.contains("held out") { "held out" } else { "used" })
        .collect();
    assert_eq!(uses, ["used", "held out", "used", "held out", "used", "used"]);
    assert!(out.lines().filter(|line| line.starts_with("qd")).all(|line| line.ends_with('%')), "{out}");
    assert!(out.contains("error on the 2 points that the fit did not use: mean "), "{out}");
    assert!(out.contains("program is held: not asked for"), "{out}");
}

#[test]
fn the_file_names_the_drive_the_program_and_the_digest_of_what_was_read_and_is_always_the_same() {
    let home = home();
    home.run(&format!("fit fio.json {FEW} --out a.toml"));
    home.run(&format!("fit fio.json {FEW} --out b.toml"));
    assert_eq!(home.text("a.toml"), home.text("b.toml"));
    let file: toml::Table = home.text("a.toml").parse().unwrap();
    assert_eq!(file["flash"]["preset"].as_str(), Some("970-pro"));
    assert_eq!(file["flash"]["program"], toml::Value::from(vec!["185us", "185us"]));
    assert_ne!(file["flash"]["read"], toml::Value::from(vec!["29760ns", "41760ns"]));
    assert_eq!(file["fit"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(file["fit"]["fitted"], toml::Value::from(vec!["array-read"]));
    assert_eq!(file["fit"]["held_out"], toml::Value::from(vec!["qd2", "qd8"]));
    // sha256sum of the fixture.
    assert_eq!(
        file["fit"]["input"][0]["sha256"].as_str(),
        Some("89f9f166d4c9ae86c928eb51fdf0d3658ca0124c126eff5a9d759cd459a5151b")
    );
}

/// A rack small enough that a run of it takes no time.
const RACK: &str = "title = 'fitted'\ndesign.name = 'rackblox'\n[rack]\nservers = 2\nclients = 2\nremote_replica = false\n\
    [vssd]\nper_ssd = 1\ncapacity = '1GiB'\n[run]\nrequests = 200\n";

#[test]
fn a_drive_that_was_fitted_can_be_pasted_into_an_experiment_and_runs() {
    let home = home();
    home.run("fit fio.json --preset 970-pro --out fitted.toml");
    let fitted = home.text("fitted.toml");
    let home = home.with("rack.toml", &format!("{RACK}{fitted}"));
    let printed: toml::Table = home.run("check rack.toml").parse().unwrap();
    let fitted: toml::Table = fitted.parse().unwrap();
    let flash = fitted["flash"].as_table().unwrap();
    assert!(flash.len() > 6, "{flash:?}");
    for (key, value) in flash {
        assert_eq!(printed["flash"][key], *value, "{key} is in the plan as the fit wrote it");
    }
    assert!(!printed.contains_key("fit"), "where numbers are from is no part of a plan");
    assert!(home.run("run rack.toml").contains("200 offered, 200 finished"));
}

#[test]
fn points_are_held_out_by_name_or_not_at_all() {
    let home = home();
    let named = home.run(&format!("fit fio.json {FEW} --hold-out qd16,qd32"));
    assert!(named.contains("error on the 2 points that the fit did not use") && named.contains("(qd32)"), "{named}");
    let none = home.run(&format!("fit fio.json {FEW} --hold-out none"));
    assert!(none.contains("no point was held out: nothing says how well the fit predicts"), "{none}");
    home.say("fit fio.json --hold-out qd3").refused(2, &["--hold-out qd3", "alternate", "qd1, qd2, qd4"]);
    home.say("fit fio.json --hold-out qd1,qd2,qd4,qd8,qd16,qd32").refused(2, &["no point is used: 6 were given"]);
}

#[test]
fn several_files_are_one_measurement_and_their_points_are_told_apart() {
    let home = home().with("again.json", SWEEP);
    let out = home.run(&format!("fit fio.json again.json {FEW} --hold-out qd1#2"));
    assert_eq!(out.lines().filter(|line| line.starts_with("qd")).count(), 12);
    assert!(out.contains("error on the 1 point that the fit did not use"), "{out}");
}

#[test]
fn mistakes_are_named_with_the_file_and_the_place_in_it() {
    said_of("\"error\": 0", "\"error\": 5").refused(2, &["fio.json: jobs[0] (qd1).error", "5"]);
    said_of("\"rw\": \"randread\"", "\"rw\": \"write\"").refused(2, &["global options.rw", "`write`", "randread"]);
    said_of("\"iodepth\": \"2\"", "\"iodepth\": \"20\"").refused(2, &["jobs[1] (qd2)", "20 were requested"]);
    said_of("\"jobs\": [", "\"jobs\": [,").refused(2, &["fio.json: line 4 column"]);
    let home = home();
    home.say("fit none.json").refused(2, &["none.json", "No such file"]);
    home.say("fit fio.json --preset 980").refused(2, &["--preset 980", "970-pro"]);
    home.say("fit fio.json --preset optane").refused(2, &["written in place"]);
    home.say("fit fio.json --parameters erase").refused(2, &["--parameters erase", "array-read"]);
    home.say("fit fio.json --parameters program")
        .refused(2, &["program cannot be fitted", "no point that is used writes"]);
    home.say("fit fio.json --point-error 0").refused(2, &["point_error"]);
    assert_eq!(home.entries("."), ["fio.json"], "nothing is written");
}

#[test]
fn what_may_have_come_from_the_page_cache_and_what_fits_badly_is_warned_of() {
    let said = said_of("\"direct\": \"1\"", "\"direct\": \"0\"");
    assert!(said.code == Some(0) && said.err.contains("page cache"), "{said:?}");
    assert!(said.err.contains("no good model of this drive"), "one number does not make this disk a 970 Pro: {said:?}");
}
