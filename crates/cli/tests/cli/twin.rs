//! The twin of a rack of processes: what it says, and which files it refuses.

use crate::rack::Rack;
use crate::support::{Home, free, volume_target};
use serde_json::Value;
use std::fs;

/// A rack with a small disk, and the address of its door, which has two loops.
fn rack() -> (Rack, String) {
    let [switch, control, a, b, door, host] = free();
    let flash = "flash = { size = '16MiB', channels = 2, pages_per_block = 16, read = '50us' }";
    let file = format!(
        "folder = 'state'\njournal = 'journal'\nswitch.listen = '{switch}'\ncontrol.listen = '{control}'\n\
         [[storage]]\nname = 'a'\nlisten = '{a}'\n{flash}\n[[storage]]\nname = 'b'\nlisten = '{b}'\n{flash}\n\
         [[volume]]\nname = 'disk'\nsize = '2MiB'\nreplicas = ['a', 'b']\n\
         [[door]]\nname = 'door'\nlisten = '{door}'\nconfig = 'target.toml'\n"
    );
    let target = format!("loops = 2\n{}", volume_target("door", &host, "nqn.2026-11.io.rackweave:twin"));
    (Rack::of(&file).with("target.toml", &target), host)
}

#[test]
fn a_rack_of_processes_has_a_twin_that_decides_the_same() {
    let (rack, host) = rack();
    rack.run("up");
    rack.0.run(&format!("disk {host} verify --overwrite --bytes 1MiB"));
    rack.run("down");
    let said = rack.0.run("twin rack.toml --out twin --json");
    let report: Value = serde_json::from_str(&said).expect("an object");
    let roles = report["roles"].as_array().expect("a list");
    assert_eq!(roles.len(), 5, "{said}");
    for role in roles {
        assert_eq!((role["differences"].as_u64(), role["is_whole"].as_bool()), (Some(0), Some(true)), "{role}");
        assert!(role["decisions"].as_u64() > Some(0), "{role}");
    }
    let comparison = &report["comparison"];
    assert!(comparison["requests"].as_u64() >= Some(512), "256 pages are written and read: {said}");
    // A simulation of a machine that kept roles waiting for seconds may lose some.
    assert_eq!(comparison["failed"][0], 0, "{said}");
    for name in ["index.html", "twin.json", "model.json"] {
        assert!(!rack.0.text(&format!("twin/{name}")).is_empty(), "{name}");
    }
    let again = rack.0.run("twin rack.toml --model twin/model.json");
    assert!(again.contains("Times, live and twin: "), "{again}");
    // The same seed and the same journals. A file does not say when its times were.
    let of_journals = rack.0.run("twin rack.toml --calibration journal");
    assert_eq!(of_journals, rack.0.run("twin rack.toml"));
    assert_ne!(of_journals, again);

    compares_with_another(&rack);
    refuses(&rack);
}

/// Each of two hosts at once is served by one of the door's loops.
#[test]
fn two_loops_of_a_door_reach_one_volume_and_decide_the_same_in_the_twin() {
    let (rack, host) = rack();
    rack.run("up");
    std::thread::scope(|scope| {
        for half in ["0B", "512KiB"] {
            let verify = format!("disk {host} verify --overwrite --bytes 512KiB --at {half}");
            let (home, name) = (&rack.0, format!("--host nqn.2026-11.io.rackweave:{half}"));
            scope.spawn(move || home.run(&format!("{verify} {name}")));
        }
    });
    rack.run("down");
    let said = rack.0.run("twin rack.toml --json");
    let report: Value = serde_json::from_str(&said).expect("an object");
    assert!(report["comparison"]["requests"].as_u64() >= Some(512), "256 pages are written and read: {said}");
    let differences = |role: &Value| role["differences"].as_u64();
    assert!(report["roles"].as_array().expect("a list").iter().all(|role| differences(role) == Some(0)), "{said}");
}

fn compares_with_another(rack: &Rack) {
    let file = rack.0.text("rack.toml");
    // Flash that takes 20 ms more: so do reads.
    fs::write(rack.0.path("slow.toml"), file.replace("read = '50us'", "read = '20050us'")).expect("a disk");
    let what_if = rack.0.run("twin rack.toml --with slow.toml --json");
    let what_if: Value = serde_json::from_str(&what_if).expect("an object");
    let times = what_if["comparison"]["times"].as_array().expect("a list");
    let reads = times.iter().find(|one| one["span"] == "in the server" && one["operation"] == "reads");
    let [one, other] = [0, 1].map(|side: usize| reads.expect("there are")["percentiles"]["P50"][side].as_u64());
    assert!(other >= one.map(|one| one + 15_000_000), "{one:?} and {other:?} ns");
    fs::write(rack.0.path("small.toml"), file.replace("size = '2MiB'", "size = '1MiB'")).expect("a disk");
    rack.0.say("twin rack.toml --with small.toml").refused(2, &["small.toml", "no volume may be smaller"]);
}

/// Files that are wrong, or lack something.
fn refuses(rack: &Rack) {
    let file = rack.0.text("rack.toml");
    fs::write(rack.0.path("rack.toml"), file.replace("read = '50us'", "read = '60us'")).expect("a disk");
    rack.0.say("twin rack.toml").refused(2, &["the rack's file has changed since"]);
    fs::write(rack.0.path("rack.toml"), file.replace("journal = 'journal'\n", "")).expect("a disk");
    rack.0.say("twin rack.toml").refused(2, &["its roles write no journals", "journal = \"FOLDER\""]);
    fs::write(rack.0.path("rack.toml"), &file).expect("a disk");
    fs::write(rack.0.path("bad.json"), "{}").expect("a disk");
    rack.0.say("twin rack.toml --model bad.json").refused(2, &["bad.json", "missing field"]);
    fs::remove_file(rack.0.path("journal/a.1.journal")).expect("it is there");
    let lacking = rack.0.say("twin rack.toml");
    assert_eq!(lacking.code, Some(0), "{lacking:?}");
    assert!(lacking.err.contains("not simulated: `a` has no journal"), "{lacking:?}");
}

#[test]
fn a_decision_that_differs_is_an_error() {
    let (rack, host) = rack();
    rack.run("up");
    rack.0.run(&format!("disk {host} verify --overwrite --bytes 64KiB"));
    rack.run("down");
    // A door that says it began with another tag: it would have sent others.
    let path = rack.0.path("journal/door.1.journal");
    let bytes = fs::read(&path).expect("it is there");
    let place = bytes.windows(8).position(|part| part == b"\"start\":").expect("it says so") + 8;
    let mut changed = bytes;
    // The second digit: the number stays as long and in range.
    changed[place + 1] = if changed[place + 1] == b'1' { b'2' } else { b'1' };
    fs::write(&path, changed).expect("a disk");
    rack.0.say("twin rack.toml").refused(1, &["decisions differ in the replay of door"]);
}

#[test]
fn a_rack_that_nobody_has_started_is_simulated() {
    let (rack, _) = rack();
    let home = &rack.0;
    let load = "[[load]]\ndoor = 'door'\nvolume = 'disk'\nreads = 0.5\ndepth = 4\nrequests = 3_000\nfill = true\n";
    let file = home.text("rack.toml");
    home.say("run rack.toml").refused(2, &["rack.toml", "[[load]]"]);
    assert_eq!(home.run("check rack.toml"), "the file is right\n");
    fs::write(home.path("wrong.toml"), format!("{file}[[load]]\ndoor = 'none'\nvolume = 'disk'\n")).expect("a disk");
    home.say("check wrong.toml").refused(2, &["wrong.toml", "load.0.door"]);
    fs::write(home.path("rack.toml"), format!("{file}{load}")).expect("a disk");
    let said = home.run("run rack.toml --out one");
    assert!(said.contains("3000 pages in ") && said.contains("in the server"), "{said}");
    home.run("run rack.toml --out two");
    home.run("run rack.toml --out other --seed 2");
    let [one, two, other] = ["one", "two", "other"].map(|name| home.text(&format!("{name}/run.json")));
    assert_eq!(one, two, "the same seed gives the same bytes");
    assert_ne!(one, other.replace("\"seed\": 2", "\"seed\": 1"));
    let report: Value = serde_json::from_str(&one).expect("an object");
    assert_eq!((&report["requests"], &report["failed"], &report["open"]), (&3_000.into(), &0.into(), &0.into()));
    assert!(home.text("one/index.html").contains("reads: in the server"));
    let part = fs::File::open(home.path("one/seed-1/records/part-00000.parquet")).expect("it was written");
    let rows = record::read_part("part", &part).expect("it is whole").rows;
    // 512 pages are filled first.
    assert_eq!((rows.len(), rows.iter().filter(|row| row.measured).count()), (3_512, 3_000));
    assert!(rows.iter().all(|row| row.adds_up() && row.outcome == record::Outcome::Finished));
    let mean = |operation| {
        let all = rows.iter().filter(|row| row.measured && row.operation == operation);
        let all: Vec<u64> = all.map(|row| row.latency().as_ps() / 1_000).collect();
        all.iter().sum::<u64>() / all.len() as u64
    };
    let told = report["times"].as_array().expect("a list").iter();
    let told = told.filter(|times| times["span"] == "total").map(|times| times["mean_ns"].as_u64());
    let means = [base::Operation::Read, base::Operation::Write].map(|operation| Some(mean(operation)));
    assert_eq!(told.collect::<Vec<_>>(), means);
    // Links and roles of a twin.
    fs::write(home.path("rack.toml"), format!("model = 'one/model.json'\n{file}{load}")).expect("a disk");
    home.run("run rack.toml --out three");
    assert_eq!(one, home.text("three/run.json"));
    fs::write(home.path("rack.toml"), format!("model = 'none.json'\n{file}{load}")).expect("a disk");
    home.say("run rack.toml --out four").refused(2, &["none.json"]);
    for option in ["--scale quick", "--set a=1", "--seeds 1..3", "--wire", "--history", "--spans all", "--format csv"] {
        home.say(&format!("run rack.toml --out five {option}"))
            .refused(2, &[option.split(' ').next().expect("a word")]);
    }
    assert!(!home.path("four").exists() && !home.path("five").exists(), "a refused run leaves nothing");
}

/// A rack with a store that has its JBOF inside, and two doors of another JBOF.
fn stores() -> crate::support::Home {
    let sizes = "size = '96MiB'\nzone = '8MiB'\nblocks = 4096\nslots = 4\nvalue = '512KiB'\n";
    let door = "jbof_socket = 'j.sock'\ninsecure = true\n";
    let rack = "[[jbof]]\nname = 'jbof'\nconfig = 'jbof.toml'\n\
        [[store]]\nname = 'alone'\nconfig = 'kv.toml'\n[[store]]\nname = 'a'\nconfig = 'door.toml'\n\
        [[store]]\nname = 'b'\nconfig = 'door.toml'\n\
        [[load]]\nstore = 'alone'\nkeys = 1000\nvalue = '4KiB'\nreads = 0.9\ndepth = 4\nrequests = 2000\n";
    crate::support::Home::new()
        .with("rack.toml", rack)
        .with("kv.toml", &format!("path = 'f'\ninsecure = true\nflush = false\n{sizes}"))
        .with("jbof.toml", &format!("path = 'g'\nsocket = 'j.sock'\n{sizes}"))
        .with("door.toml", door)
}

/// A load of one of the two doors.
fn load(store: &str, more: &str) -> String {
    format!("[[load]]\nstore = '{store}'\nkeys = 500\ntheta = 0.9\nrate = 2000.0\nrequests = 1000\n{more}\n")
}

#[test]
fn stores_of_a_rack_are_simulated_as_experiments_that_can_be_run_again() {
    let home = stores();
    let file = home.text("rack.toml");
    fs::write(home.path("rack.toml"), format!("{file}{}{}", load("a", ""), load("b", ""))).expect("a disk");
    let said = home.run("run rack.toml --out out --spans every:100");
    assert!(said.contains("design     scalio") && said.contains("latency    write"), "{said}");
    for (name, requests, clients) in [("alone", 2_000, 1), ("jbof", 2_000, 2)] {
        let summary: Value = serde_json::from_str(&home.text(&format!("out/{name}/summary.json"))).expect("an object");
        assert_eq!(summary["counts"]["finished"], requests, "{name}: {summary}");
        let plan: toml::Table = home.text(&format!("out/{name}/plan.toml")).parse().expect("it is TOML");
        assert_eq!(plan["store"]["clients"].as_integer(), Some(clients));
        assert_eq!((plan["store"]["size"].as_str(), plan["store"]["zone"].as_str()), (Some("96MiB"), Some("8MiB")));
        assert_eq!(plan["scalio"]["volatile_cache"].as_bool(), Some(name == "jbof"), "as `flush` has it");
        assert_eq!(plan["rdma"]["wire"].as_str(), Some("0ps"), "both are on their JBOF's machine");
        let part = fs::File::open(home.path(&format!("out/{name}/seed-1/records/part-00000.parquet"))).expect("rows");
        assert_eq!(record::read_part(name, &part).expect("it is whole").rows.len() as u64, requests);
        assert!(home.path(&format!("out/{name}/seed-1/spans/part-00000.parquet")).exists());
    }
    // What was played can be played again.
    home.run("run out/alone.toml --out again --spans every:100");
    assert_eq!(home.text("out/alone/summary.json"), home.text("again/summary.json"));
}

#[test]
fn loads_and_files_of_stores_that_do_not_fit_are_refused_with_their_place() {
    let home = stores();
    let file = home.text("rack.toml");
    let says = |more: &str, words: &[&str]| {
        fs::write(home.path("rack.toml"), format!("{file}{more}")).expect("a disk");
        home.say("run rack.toml --out out").refused(2, words);
        assert!(!home.path("out").exists());
    };
    says(&format!("{}{}", load("a", ""), load("b", "reads = 0.5")), &["`a` and `b`", "must be the same"]);
    says(&load("a", "value = '1MiB'"), &["the `[[load]]` of `a`", "1MiB", "jbof.toml allows 512KiB (`value`)"]);
    fs::write(home.path("door.toml"), "jbof_address = '127.0.0.1:9441'\ninsecure = true\n").expect("a disk");
    says(&load("a", ""), &["door.toml", "jbof_address", "no `[[jbof]]` of the rack listens at 127.0.0.1:9441"]);
    fs::write(home.path("kv.toml"), "path = 'f'\ninsecure = true\nloops = 3\n").expect("a disk");
    says("", &["the `[[load]]` of `alone`", "`depth` of 4 is no multiple of its 3 `loops`"]);
    fs::write(home.path("kv.toml"), "path = 'f'\ninsecure = true\nblocks = 16777216\nslots = 64\n").expect("a disk");
    says("", &["kv.toml", "16777216 blocks", "200000000 slots at most"]);
}

/// A rack of two stores: one with its JBOF inside, and a door of a JBOF of its own.
fn started_stores() -> (Rack, [String; 2]) {
    let [one, other] = free();
    let sizes = "size = '96MiB'\nzone = '8MiB'\nblocks = 4096\nslots = 4\nvalue = '512KiB'\nflush = false\n";
    let rack = "folder = 'state'\njournal = 'journal'\n[[jbof]]\nname = 'jbof'\nconfig = 'jbof.toml'\n\
        [[store]]\nname = 'alone'\nconfig = 'kv.toml'\n[[store]]\nname = 'door'\nconfig = 'door.toml'\n";
    let rack = Rack::of(rack)
        .with("kv.toml", &format!("listen = '{one}'\nloops = 2\npath = 'f'\ninsecure = true\n{sizes}"))
        .with("jbof.toml", &format!("path = 'g'\nsocket = 'j.sock'\n{sizes}"))
        .with("door.toml", &format!("listen = '{other}'\njbof_socket = 'j.sock'\ninsecure = true\n"));
    (rack, [one, other])
}

/// Stores keys and reads them, as any client of Redis does.
fn ask_store(address: &str) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let (mut said, mut expected) = (String::new(), String::new());
    for key in 0..200 {
        said += &format!("SET key{key} value{key}\r\nGET key{key}\r\nGET key{key}\r\n");
        let value = format!("value{key}");
        let bulk = format!("${}\r\n{value}\r\n", value.len());
        expected += &format!("+OK\r\n{bulk}{bulk}");
    }
    stream.write_all(said.as_bytes()).expect("it is read");
    let mut told = vec![0; expected.len()];
    stream.read_exact(&mut told).expect("it answers");
    assert_eq!(String::from_utf8_lossy(&told), expected);
}

/// A twin says the same each time. With a model of another run it draws other times.
fn draws_anew(place: &Home) {
    let again = place.run("twin rack.toml");
    assert!(again.contains("Decisions in the replay of each journal") && again.contains("GETs from flash"), "{again}");
    assert_eq!(again, place.run("twin rack.toml"));
    // Of another run, times of all of it are drawn from.
    let calibrated = place.run("twin rack.toml --calibration journal");
    assert_ne!(again, calibrated);
    let decisions = |text: &str| text.split("\n\n").next().map(str::to_owned);
    assert_eq!(decisions(&again), decisions(&calibrated));
}

#[test]
fn stores_of_processes_decide_the_same_in_their_twin() {
    let (rack, addresses) = started_stores();
    rack.run("up");
    addresses.iter().for_each(|address| ask_store(address));
    crate::rack::told(&addresses[0], "SCAN 0 COUNT 1\r\n");
    rack.run("down");
    let said = rack.0.run("twin rack.toml --out twin --json");
    let report: Value = serde_json::from_str(&said).expect("an object");
    let roles = report["roles"].as_array().expect("a list");
    let names: Vec<_> = roles.iter().map(|role| role["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["alone.helper", "alone.loop-0", "alone.loop-1", "door.loop-0", "jbof.helper"]);
    for role in roles {
        assert_eq!((role["differences"].as_u64(), role["is_whole"].as_bool()), (Some(0), Some(true)), "{role}");
    }
    let decisions = |name| roles.iter().find(|role| role["name"] == name).and_then(|role| role["decisions"].as_u64());
    // A SET is sent and answered; a GET reads its block at least, and is answered.
    assert!(decisions("door.loop-0") >= Some(1_200), "{said}");
    let sites = report["stores"].as_array().expect("a list");
    let asked: Vec<_> = sites.iter().map(|site| (&site["name"], &site["comparison"]["requests"])).collect();
    let each = serde_json::json!([600, 600]);
    assert_eq!(asked, [(&"alone".into(), &each), (&"jbof".into(), &each)], "{said}");
    let whole = rack.0.say("twin rack.toml");
    assert!(whole.err.contains("not simulated: 1 steps of SCAN at the doors of `alone`"), "{whole:?}");
    assert!(!whole.err.contains("`jbof`"), "{whole:?}");
    draws_anew(&rack.0);
    assert!(rack.0.text("twin/index.html").contains("jbof, updates: in the helper"));
    assert!(rack.0.text("twin/stores.json").contains("helper: request"));
    let path = rack.0.path("journal/door.loop-0.1.journal");
    let bytes = fs::read(&path).expect("it is there");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("a disk");
    let cut = rack.0.say("twin rack.toml");
    assert!(cut.code == Some(0) && cut.err.contains("no orderly end in journals of door.loop-0"), "{cut:?}");
    let file = rack.0.text("rack.toml");
    fs::write(rack.0.path("rack.toml"), file.replace("name = 'alone'", "name = 'other'")).expect("a disk");
    rack.0.say("twin rack.toml").refused(2, &["the rack has no store and no JBOF `alone`"]);
    fs::remove_dir_all(rack.0.path("journal")).expect("it is there");
    fs::create_dir(rack.0.path("journal")).expect("a disk");
    rack.0.say("twin rack.toml").refused(2, &["there are no journals"]);
}
