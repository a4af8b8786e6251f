//! A rack of processes: started, watched, killed, started again and ended.

use crate::support::{Home, Said, free, volume_target};
use runtime::room::free_bytes;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A store of a few megabytes.
const STORE: &str = "path = 'f'\nsize = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\ninsecure = true\n";
/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A rack in a folder of its own, and its first file. Nothing of it runs when the test is over,
/// however it ends.
pub struct Rack(pub Home, String);

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = fs::write(self.0.path("rack.toml"), &self.1);
        let _ = self.0.command("rack down rack.toml").output();
    }
}

impl Rack {
    /// One with these roles.
    pub fn of(file: &str) -> Rack {
        Rack(Home::new().with("rack.toml", file), file.into())
    }

    pub fn with(self, name: &str, text: &str) -> Rack {
        fs::write(self.0.path(name), text).expect("a disk");
        self
    }

    /// Runs a command. `up` may wait for longer than users do: this machine may have other work.
    fn say(&self, verb: &str) -> Said {
        let (verb, options) = verb.split_once(' ').unwrap_or((verb, ""));
        let wait = if verb == "up" && !options.contains("--wait") { "--wait 60" } else { "" };
        self.0.say(&format!("rack {verb} rack.toml {options} {wait}"))
    }

    /// Runs a command that has to succeed.
    pub fn run(&self, verb: &str) -> String {
        let said = self.say(verb);
        assert_eq!(said.code, Some(0), "{verb}: {said:?}");
        said.out
    }

    /// Waits until the states of all roles are these; exit code and roles of `status` then. A role
    /// that has no turn for two seconds is silent, though nothing is wrong with it.
    fn status_once(&self, states: &[&str]) -> (Option<i32>, Vec<Value>) {
        let until = Instant::now() + TIMEOUT;
        loop {
            let (code, roles) = self.status();
            if roles.iter().map(|role| role["state"].as_str().unwrap_or_default()).eq(states.iter().copied()) {
                return (code, roles);
            }
            assert!(Instant::now() < until, "the states are not {states:?}: {roles:?}");
        }
    }

    /// Exit code and roles of `status`.
    fn status(&self) -> (Option<i32>, Vec<Value>) {
        let said = self.say("status --json");
        let roles: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (said.code, roles.as_array().expect("a list").clone())
    }

    fn pid(&self, name: &str) -> u32 {
        let text = self.0.text(&format!("state/{name}.pid"));
        text.lines().next().and_then(|line| line.parse().ok()).expect("a number")
    }

    /// Files of processes that are there.
    fn pid_files(&self) -> Vec<String> {
        self.0.entries("state").into_iter().filter(|name| name.contains(".pid")).collect()
    }
}

/// The state of a process in /proc, unless it is gone. `Z` has ended and was not reaped.
fn process_state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn runs(pid: u32) -> bool {
    process_state(pid).is_some_and(|state| state != 'Z')
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.expect("there is kill").success());
}

fn kill(pid: u32) {
    signal("-KILL", pid);
    let until = Instant::now() + TIMEOUT;
    while runs(pid) {
        assert!(Instant::now() < until, "{pid} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a store answers to a line.
pub fn told(address: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(line.as_bytes()).expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("it answers and closes");
    all
}

/// A rack with a door on memory and a store with metrics, and the addresses of door and store.
fn door_and_store() -> (Rack, [String; 2]) {
    let [inside, door, door_metrics, store, store_metrics] = free();
    let roles = format!(
        "folder = 'state'\n[[door]]\nname = 'door'\nlisten = '{inside}'\nconfig = 'target.toml'\n\
         [[store]]\nname = 'store'\nconfig = 'kv.toml'\n"
    );
    let target = format!(
        "metrics = '{door_metrics}'\n[[port]]\naddress = '{door}'\n[[subsystem]]\nnqn = 'nqn.2026-11.io.rackweave:rack'\n\
         [[subsystem.namespace]]\nsize = '16MiB'\n[[subsystem.namespace]]\nbackend = 'null'\nsize = '1GiB'\n"
    );
    let kv = format!("{STORE}listen = '{store}'\nmetrics = '{store_metrics}'\n");
    (Rack::of(&roles).with("target.toml", &target).with("kv.toml", &kv), [door, store])
}

#[test]
fn a_jbof_is_started_before_its_stores_and_again_under_them() {
    let [one, other, metrics] = free();
    let roles = "folder = 'state'\n[[store]]\nname = 'one'\nconfig = 'one.toml'\n[[store]]\nname = 'other'\n\
                 config = 'other.toml'\n[[jbof]]\nname = 'jbof'\nconfig = 'jbof.toml'\n";
    let jbof = format!(
        "path = 'flash'\nsize = '12MiB'\nzone = '1MiB'\nvalue = '64KiB'\nsocket = 'jbof.sock'\nmetrics = '{metrics}'\n"
    );
    let store = |listen: &str| format!("jbof_socket = 'jbof.sock'\ninsecure = true\nlisten = '{listen}'\n");
    let rack =
        Rack::of(roles).with("jbof.toml", &jbof).with("one.toml", &store(&one)).with("other.toml", &store(&other));
    rack.run("up");
    assert_eq!(told(&one, "SET a 1\r\n"), "+OK\r\n");
    assert_eq!(told(&other, "GET a\r\n"), "$1\r\n1\r\n");
    let said = rack.run("status");
    assert!(said.contains("keys 1, doors 2, requests 1, verbs 0"), "{said}");
    kill(rack.pid("jbof"));
    rack.run("up");
    let until = Instant::now() + Duration::from_secs(60);
    while told(&other, "GET a\r\n").starts_with("-LOADING") {
        assert!(Instant::now() < until, "the door does not find its JBOF again");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(told(&other, "GET a\r\n"), "$1\r\n1\r\n");
    // Without its JBOF a store is not ready, and says why.
    rack.run("down");
    fs::write(rack.0.path("rack.toml"), roles.split("[[jbof]]").next().expect("the stores")).expect("a disk");
    rack.say("up --only one --wait 60").refused(4, &["jbof.sock", "does not answer"]);
}

#[test]
fn the_target_of_a_flash_starts_between_its_jbof_and_the_store_that_reads_by_it() {
    let [jbof, target, store, target_metrics, store_metrics] = free();
    let role = |kind: &str, name: &str| format!("[[{kind}]]\nname = '{name}'\nconfig = '{name}.toml'\n");
    let roles = format!("folder = 'state'\n{}{}{}", role("store", "s"), role("target", "t"), role("jbof", "j"));
    let file = format!("path = 'flash'\nsize = '12MiB'\nzone = '1MiB'\nvalue = '64KiB'\nlisten = '{jbof}'\n");
    let disk = format!(
        "metrics = '{target_metrics}'\nport = [{{ address = '{target}' }}]\n[[subsystem]]\n\
         nqn = 'nqn.2026-11.io.rackweave:flash'\n[[subsystem.namespace]]\nbackend = 'file'\npath = 'flash'\n\
         read_only = true\nunlocked = true\n"
    );
    let door = format!(
        "jbof_address = '{jbof}'\ninsecure = true\nlisten = '{store}'\nmetrics = '{store_metrics}'\n[jbof_flash]\n\
         address = '{target}'\nsubsystem = 'nqn.2026-11.io.rackweave:flash'\n"
    );
    let rack = Rack::of(&roles).with("j.toml", &file).with("t.toml", &disk).with("s.toml", &door);
    for round in 0..2 {
        let out = rack.run("up");
        let order: Vec<usize> = ["j ", "t ", "s "]
            .map(|name| out.lines().position(|line| line.trim_start_matches('│').trim_start().starts_with(name)))
            .into_iter()
            .map(|at| at.unwrap_or_else(|| panic!("{out}")))
            .collect();
        assert!(order.is_sorted(), "{out}");
        if round == 0 {
            let value = "x".repeat(4_000);
            assert_eq!(told(&store, &format!("SET k {value}\r\n")), "+OK\r\n");
        }
        assert_eq!(told(&store, "GET k\r\n").len(), "$4000\r\n\r\n".len() + 4_000);
        let said = rack.run("status");
        assert!(said.lines().any(|line| line.contains('t') && line.contains("reads 3")), "{said}");
        rack.run("down");
    }
    let units = rack.run("units");
    let after = |name: &str| units.lines().find(|line| line.starts_with("After=") && line.ends_with(name));
    assert!(after(" rackweave-j.service rackweave-t.service").is_some(), "{units}");
}

#[test]
fn a_store_alone_is_a_rack() {
    let rack = Rack::of("folder = 'state'\n[[store]]\nname = 'store'\nconfig = 'kv.toml'\n")
        .with("kv.toml", &format!("{STORE}listen = '127.0.0.1:0'\n"));
    assert_eq!(rack.status().0, Some(4), "nothing was started");
    // From another folder.
    let file = rack.0.path("rack.toml");
    let up = Command::new(env!("CARGO_BIN_EXE_rackweave")).args(["rack", "up"]).arg(file).current_dir("/").output();
    let Said { code, out: said, err } = Said::of(up.expect("it starts"));
    assert_eq!(code, Some(0), "{err}");
    let how = said.lines().find(|line| line.contains("redis-cli -h 127.0.0.1 -p ")).expect("a line to connect");
    let address = format!("127.0.0.1:{}", how.rsplit(' ').find(|word| !word.is_empty()).expect("a port"));
    assert!(how.contains(&address) && how.contains(&rack.pid("store").to_string()), "{said}");
    assert_eq!(told(&address, "SET a 1\r\n"), "+OK\r\n");
    // It is in a session of its own, and in the folder of its file.
    let session = Command::new("ps").args(["-o", "sid=", "-p", &rack.pid("store").to_string()]).output();
    let session = String::from_utf8(session.expect("there is ps").stdout).expect("a number");
    assert_eq!(session.trim(), rack.pid("store").to_string());
    assert!(rack.0.path("f").exists());
    let (code, roles) = rack.status();
    assert_eq!((code, roles.len()), (Some(0), 1));
    assert_eq!(
        (&roles[0]["role"], &roles[0]["kind"], &roles[0]["state"]),
        (&"store".into(), &"store".into(), &"ready".into())
    );
    assert!(rack.run("status").contains("serves no metrics"));
    let pid = rack.pid("store");
    assert!(rack.run("down").contains("store ended"));
    assert!(!runs(pid) && rack.pid_files().is_empty());
    assert_eq!(rack.run("down"), "");
}

#[test]
fn up_after_a_kill_starts_only_the_dead() {
    let (rack, [_, store]) = door_and_store();
    rack.run("up");
    let before = ["door", "store"].map(|name| rack.pid(name));
    assert_eq!(told(&store, "SET a 1\r\n"), "+OK\r\n");
    kill(before[1]);
    assert_eq!(rack.status_once(&["ready", "dead"]).0, Some(4));
    rack.say("status").refused(4, &["1 of 2 roles: store"]);

    let said = rack.run("up");
    assert!(said.contains(&format!("door already runs as process {}", before[0])), "{said}");
    assert_eq!(rack.pid("door"), before[0]);
    assert_ne!(rack.pid("store"), before[1]);
    assert_eq!(told(&store, "GET a\r\n"), "$1\r\n1\r\n");
    assert_eq!(rack.status_once(&["ready"; 2]).0, Some(0));

    let after = ["door", "store"].map(|name| rack.pid(name));
    rack.run("down --only store");
    assert!(runs(after[0]) && !runs(after[1]));
    assert_eq!(rack.pid_files(), ["door.pid"]);
    rack.run("down");
    assert!(!runs(after[0]) && rack.pid_files().is_empty());
}

#[test]
fn status_says_what_each_role_does() {
    let (rack, [door, store]) = door_and_store();
    let said = rack.run("up");
    let (host, port) = door.split_once(':').expect("a port");
    let connect = format!("nvme connect -t tcp -a {host} -s {port} -n nqn.2026-11.io.rackweave:rack");
    assert!(said.contains(&connect) && said.contains("redis-cli"), "{said}");
    let before = ["door", "store"].map(|name| rack.pid(name));
    assert_eq!(told(&store, "SET a 1\r\n"), "+OK\r\n");

    let (code, roles) = rack.status_once(&["ready"; 2]);
    assert_eq!(code, Some(0), "{roles:?}");
    for (role, pid) in roles.iter().zip(before) {
        assert_eq!((&role["state"], &role["pid"]), (&"ready".into(), &pid.into()), "{role}");
        assert!(role["memory_bytes"].as_u64() > Some(1 << 20) && role["cpu_s"].as_f64() >= Some(0.0), "{role}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
        let since = role["since_unix_s"].as_u64().expect("a time");
        assert!(now.abs_diff(since) < 600, "{now} {role}");
    }
    assert_eq!(roles[1]["metrics"]["rackweave_kv_keys"], 1.0);
    assert_eq!(roles[1]["metrics"]["rackweave_kv_request_seconds_count"], 1.0, "one SET");
    assert!(roles[0]["metrics"].get("rackweave_target_commands_total").is_some(), "{}", roles[0]);
    let until = Instant::now() + TIMEOUT;
    loop {
        let Said { code, out: table, .. } = rack.say("status");
        if code == Some(0) && table.contains("keys 1, commands 1") && table.contains("connections 0") {
            break;
        }
        assert!(Instant::now() < until, "{table}");
    }

    // One that stands still is not ready, though it was.
    signal("-STOP", rack.pid("store"));
    let (code, roles) = rack.status();
    assert_eq!((code, roles[1]["state"].as_str()), (Some(4), Some("silent")));
    signal("-CONT", rack.pid("store"));
}

#[test]
fn only_starts_what_it_names() {
    let (rack, _) = door_and_store();
    rack.run("up --only door");
    assert_eq!(rack.pid_files(), ["door.pid"]);
    let (code, roles) = rack.status();
    assert_eq!((code, roles[1]["state"].as_str()), (Some(4), Some("not-started")));
    rack.say("up --only dor").refused(2, &["`dor`", "door, store"]);
    rack.say("down --only dor").refused(2, &["`dor`", "door, store"]);
}

/// A process that has nothing to do with a rack.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_number_that_another_process_has_now_is_not_killed() {
    let rack = Rack::of("folder = 'state'\n[[store]]\nname = 'store'\nconfig = 'kv.toml'\n")
        .with("kv.toml", &format!("{STORE}listen = '127.0.0.1:0'\n"));
    rack.run("up");
    let file = rack.0.text("state/store.pid");
    let first = rack.pid("store");
    kill(first);
    let foreign = Foreign(Command::new("sleep").arg("600").spawn().expect("there is sleep"));
    let stale = file.replacen(&first.to_string(), &foreign.0.id().to_string(), 1);
    fs::write(rack.0.path("state/store.pid"), &stale).expect("a disk");
    assert_eq!(rack.status().1[0]["state"], "dead");
    assert!(rack.run("down").contains("store had ended already"));
    assert!(runs(foreign.0.id()) && rack.pid_files().is_empty());
    // Nor does it keep the role from being started.
    fs::write(rack.0.path("state/store.pid"), &stale).expect("a disk");
    rack.run("up");
    assert!(runs(foreign.0.id()) && rack.pid("store") != foreign.0.id());
}

#[test]
fn why_a_role_does_not_start_is_told_and_what_was_started_is_ended() {
    let (rack, [_, store]) = door_and_store();
    let listener = TcpListener::bind(&store).expect("it is free");
    let said = rack.say("up");
    said.refused(4, &["store: it has ended", "state/store.log", &format!("{store} is in use")]);
    assert!(rack.pid_files().is_empty(), "{:?}", rack.pid_files());
    assert_eq!(rack.status().1[0]["state"], "not-started", "the door was ended");
    // One that ran before is left alone.
    rack.run("up --only door");
    let door = rack.pid("door");
    said.refused(4, &["store"]);
    assert_eq!(rack.say("up").code, Some(4));
    assert!(runs(door));
    drop(listener);
    rack.run("up");
    assert_eq!(rack.pid("door"), door);
}

#[test]
fn health_that_another_process_serves_is_not_taken_for_the_role() {
    let (rack, _) = door_and_store();
    rack.run("up --only store");
    let kv = rack.0.text("kv.toml");
    let metrics = kv.lines().find(|line| line.starts_with("metrics")).expect("an address").to_owned();
    let other = rack.0.text("target.toml").lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(rack.0.path("target.toml"), format!("{metrics}\n{other}")).expect("a disk");
    // A store that has no turn for two seconds is not seen there: then its address is in use.
    let until = Instant::now() + TIMEOUT;
    let said = loop {
        let said = rack.say("up --only door");
        if !said.err.contains("is in use") || Instant::now() > until {
            break said;
        }
    };
    said.refused(4, &["door: another process serves", "/healthz"]);
}

#[test]
fn a_role_that_stands_still_is_waited_for_and_not_longer() {
    let (rack, _) = door_and_store();
    rack.run("up");
    let pid = rack.pid("store");
    signal("-STOP", pid);
    rack.say("up --only store --wait 1").refused(4, &["store: it was not ready within 1 s"]);
    assert!(runs(pid), "it was not started by this command");
    signal("-CONT", pid);
    rack.run("up");
}

#[test]
fn what_roles_warn_of_is_shown_and_so_is_a_disk_that_may_get_full() {
    let (rack, [_, store]) = door_and_store();
    let text = format!("{STORE}listen = '{store}'\nprotocol = 'paper'\n");
    let rack = rack.with("kv.toml", &text);
    const OF_ROLE: &str = "store: warning: protocol = \"paper\"";
    const OF_ROOM: &str = "state: its files may need ";
    let told = || {
        let said = rack.say("up");
        assert_eq!(said.code, Some(0), "{said:?}");
        [OF_ROLE, OF_ROOM].map(|words| said.err.matches(words).count())
    };
    assert_eq!(told(), [1, 0]);
    let hole = fs::File::create(rack.0.path("state/hole")).expect("a disk");
    let free = free_bytes(&hole).expect("the system tells");
    hole.set_len(free / 2).expect("a hole takes no room");
    // What runs has warned before.
    assert_eq!(told(), [0, 0]);
    hole.set_len(2 * free + (1 << 30)).expect("a hole takes no room");
    assert_eq!(told(), [0, 1]);
}

#[test]
fn wrong_files_start_nothing() {
    let (rack, _) = door_and_store();
    fs::write(rack.0.path("kv.toml"), "path = 'f'\n").expect("a disk");
    rack.say("up").refused(2, &["kv.toml", "insecure = true"]);
    assert!(!rack.0.path("state").exists());
    rack.run("up --only door");
    // Where a file was broken since, the role is still watched and ended.
    fs::write(rack.0.path("target.toml"), "nonsense = 1\n").expect("a disk");
    let said = rack.say("status");
    assert!(said.out.contains("ready") && said.out.contains("unknown key `nonsense`"), "{said:?}");
    fs::write(rack.0.path("rack.toml"), "folder = 'state'\n[[stor]]\n").expect("a disk");
    rack.say("up").refused(2, &["rack.toml:2:3", "did you mean `store`"]);
    // A role that the file does not name any more is ended too.
    let pid = rack.pid("door");
    fs::write(rack.0.path("rack.toml"), "folder = 'state'\n[[store]]\nname = 'k'\nconfig = 'kv.toml'\n")
        .expect("a disk");
    assert!(rack.run("down").contains("door ended"));
    assert!(!runs(pid) && rack.pid_files().is_empty());
}

#[test]
fn racks_that_share_a_folder_do_not_end_each_other() {
    let (rack, _) = door_and_store();
    rack.run("up --only store");
    let pid = rack.pid("store");
    fs::copy(rack.0.path("rack.toml"), rack.0.path("same.toml")).expect("a disk");
    for verb in ["up", "status", "down"] {
        rack.0.say(&format!("rack {verb} same.toml")).refused(2, &["store.pid", "rack.toml", "a `folder` of its own"]);
    }
    let other = "folder = 'state'\n[[store]]\nname = 'k'\nconfig = 'kv.toml'\n";
    fs::write(rack.0.path("other.toml"), other).expect("a disk");
    rack.0.run("rack down other.toml");
    assert!(runs(pid));
}

#[test]
fn two_commands_do_not_start_and_end_at_the_same_time() {
    let (rack, _) = door_and_store();
    fs::create_dir(rack.0.path("state")).expect("a disk");
    let lock = fs::File::create(rack.0.path("state/rack.lock")).expect("a disk");
    lock.lock().expect("it is free");
    rack.say("up").refused(1, &["rack.lock", "works on this rack"]);
    rack.say("down").refused(1, &["rack.lock", "works on this rack"]);
    assert!(rack.pid_files().is_empty());
    drop(lock);
    rack.run("up");
}

#[test]
fn roles_of_volumes_are_started_before_doors() {
    let [inside, server, switch, control] = free();
    let rack = Rack::of(&format!(
        "folder = 'state'\nswitch.listen = '{switch}'\ncontrol.listen = '{control}'\n\
         [[storage]]\nname = 's1'\nlisten = '{server}'\n[[volume]]\nname = 'v'\nsize = '1MiB'\nreplicas = ['s1']\n\
         [[door]]\nname = 'door'\nlisten = '{inside}'\nconfig = 'target.toml'\n"
    ));
    let (_, roles) = rack.status();
    let names: Vec<&str> = roles.iter().filter_map(|role| role["role"].as_str()).collect();
    assert_eq!(names, ["control", "switch", "s1", "door"]);
}

/// Sends datagrams of nobody to these until it is told to end: of all lengths, the first 8 B those
/// of a sound one or not. Returns how many. It rests 10 ms after each burst: without a rest it took
/// both processors of a machine, and a disk of another rack there waited for more than its 60 s.
fn flood(addresses: &[String], tag: [u8; 8], is_over: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (mut sent, mut noise) = (0_u64, [0_u8; 1_400]);
    while !is_over.load(Ordering::Relaxed) {
        // Of a linear congruence: any noise will do.
        noise.iter_mut().fold(sent as u8, |last, byte| {
            *byte = last.wrapping_mul(141).wrapping_add(3);
            *byte
        });
        if sent % 2 == 0 {
            noise[..8].copy_from_slice(&tag);
        }
        let length = (sent * 37 % noise.len() as u64) as usize;
        // A buffer that is full is what a flood makes of it.
        addresses.iter().for_each(|address| drop(socket.send_to(&noise[..length], address)));
        sent += 1;
        if sent % 64 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    sent
}

/// The first bytes of what a role sends to another address than its own.
fn tag_of(rack: &Rack, switch: &str) -> [u8; 8] {
    let socket = UdpSocket::bind(switch).expect("the switch does not run yet");
    socket.set_read_timeout(Some(TIMEOUT)).expect("it is not zero");
    let mut said = Command::new(env!("CARGO_BIN_EXE_rackweave"));
    let role = said.args(["rack", "role", "rack.toml", "a"]).current_dir(rack.0.path("."));
    let mut role = role.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    let mut bytes = [0; 2_048];
    let got = socket.recv(&mut bytes);
    role.kill().and_then(|()| role.wait()).expect("it ends");
    assert!(got.expect("a server speaks of itself") > 8);
    *bytes.first_chunk().expect("it is longer")
}

/// A rack of two servers `a` and `b` with a replica each of a disk of 2 MiB. Where switch, control
/// plane, servers and door receive, where its host connects, and where the switch has its numbers.
fn mirrored() -> (Rack, [String; 5], [String; 2]) {
    let [switch, control, a, b, door, host, numbers] = free();
    let flash = "flash = { size = '16MiB', channels = 2, pages_per_block = 16 }";
    let rack = Rack::of(&format!(
        "folder = 'state'\nsecret_file = 'secret'\n[switch]\nlisten = '{switch}'\nmetrics = '{numbers}'\n\
         [control]\nlisten = '{control}'\n[[storage]]\nname = 'a'\nlisten = '{a}'\n{flash}\n\
         [[storage]]\nname = 'b'\nlisten = '{b}'\n{flash}\n\
         [[volume]]\nname = 'disk'\nsize = '2MiB'\nreplicas = ['a', 'b']\n\
         [[door]]\nname = 'door'\nlisten = '{door}'\nconfig = 'target.toml'\n"
    ));
    let target = volume_target("door", &host, "nqn.2026-11.io.rackweave:mirrored");
    let rack = rack.with("secret", &"s".repeat(32)).with("target.toml", &target);
    (rack, [switch, control, a, b, door], [host, numbers])
}

/// The roles of a mirrored rack that are not server `a`.
const OTHERS: [&str; 4] = ["control", "switch", "b", "door"];

#[test]
fn a_flood_of_datagrams_changes_nothing_and_is_counted() {
    let (rack, all, [host, _]) = mirrored();
    let tag = tag_of(&rack, &all[0]);
    rack.run("up");
    let pids = || ["a"].into_iter().chain(OTHERS).map(|name| rack.pid(name)).collect::<Vec<_>>();
    let (before, is_over) = (pids(), AtomicBool::new(false));
    let sent = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&all, tag, &is_over));
        let verified = rack.0.say(&format!("disk {host} verify --overwrite --bytes 512KiB"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        flood.join().expect("it does not panic")
    });
    let (_, roles) = rack.status_once(&["ready"; 5]);
    assert_eq!(before, pids());
    let switch = roles.iter().find(|role| role["role"] == "switch").expect("it is listed");
    let count = |name: &str| switch["metrics"][format!("rackweave_switch_datagrams_{name}_total")].as_f64();
    assert!(sent > 100 && count("foreign") > Some(0.0) && count("forged") > Some(0.0), "{sent} sent: {switch}");
}

/// A file system of 1 MiB in memory, until it is dropped.
struct Small(PathBuf);

impl Small {
    /// Mounts it, where the system lets us.
    fn mount(folder: PathBuf) -> Option<Small> {
        fs::create_dir_all(&folder).expect("a disk");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&folder).output();
        mounted.is_ok_and(|said| said.status.success()).then_some(Small(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_server_whose_disk_is_full_ends_and_its_peer_goes_on() {
    let (rack, _, [host, _]) = mirrored();
    let Some(_small) = Small::mount(rack.0.path("state/a.flash")) else {
        return println!("SKIPPED: a file system in memory needs root");
    };
    rack.run("up");
    let before = OTHERS.map(|name| rack.pid(name));
    rack.0.run(&format!("disk {host} verify --overwrite --bytes 2MiB"));
    let is_dead = |role: &Value| role["role"] == "a" && role["state"] == "dead";
    let until = Instant::now() + TIMEOUT;
    while !rack.status().1.iter().any(is_dead) {
        assert!(Instant::now() < until, "a server with a full disk goes on: {}", rack.0.text("state/a.log"));
    }
    let log = rack.0.text("state/a.log");
    assert!(log.contains("the server ends") && log.contains("No space left on device"), "{log}");
    assert_eq!(before, OTHERS.map(|name| rack.pid(name)));
    rack.0.run(&format!("disk {host} verify --overwrite --bytes 2MiB"));
}

#[test]
fn a_unit_for_each_role_is_one_for_systemd() {
    let (rack, _) = door_and_store();
    let units = rack.run("units");
    let parts: Vec<&str> = units.split("# /etc/systemd/system/").skip(1).collect();
    assert_eq!(parts.len(), 2);
    let file = rack.0.path("rack.toml");
    for (part, name) in parts.iter().zip(["door", "store"]) {
        let (title, unit) = part.split_once('\n').expect("lines");
        assert_eq!(title, format!("rackweave-{name}.service"));
        let start = format!("ExecStart=/usr/local/bin/rackweave rack role {} {name}\n", file.display());
        assert!(unit.contains(&start) && unit.contains("DynamicUser") == unit.contains("StateDirectory"), "{unit}");
    }
    assert!(parts[1].contains("After=network-online.target rackweave-door.service\n"), "{}", parts[1]);
    verify(&rack.0, &parts);
}

/// Has systemd check the units, where it is there.
fn verify(home: &Home, parts: &[&str]) {
    let folder = home.path("units");
    fs::create_dir(&folder).expect("a disk");
    let program = env!("CARGO_BIN_EXE_rackweave");
    let mut paths = Vec::new();
    for (name, unit) in parts.iter().filter_map(|part| part.split_once('\n')) {
        paths.push(folder.join(name));
        let here = unit.replace("/usr/local/bin/rackweave", program);
        fs::write(folder.join(name), here).expect("a disk");
    }
    let Ok(checked) = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&paths).output() else {
        return println!("SKIPPED: there is no systemd-analyze");
    };
    let said = Said::of(checked);
    let ours: Vec<&str> = said.err.lines().filter(|line| line.contains("rackweave-")).collect();
    assert!(ours.is_empty(), "{said:?}");
}

/// A page of a rack, served by a process of its own until the test is over.
struct Page(Child, String);

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Page {
    fn of(rack: &Rack) -> Page {
        let [address] = free();
        let child = rack.0.command(&format!("rack status rack.toml --listen {address}")).spawn().expect("it starts");
        let page = Page(child, address);
        let until = Instant::now() + TIMEOUT;
        while TcpStream::connect(&page.1).is_err() {
            assert!(Instant::now() < until, "nobody serves the page");
            std::thread::sleep(Duration::from_millis(20));
        }
        page
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("it answers and closes");
        all
    }

    /// Waits until the rows say this.
    fn says(&self, words: &[&str]) {
        let until = Instant::now() + TIMEOUT;
        loop {
            let rows = self.get("/rows");
            if words.iter().all(|word| rows.contains(word)) {
                return;
            }
            assert!(Instant::now() < until, "{words:?}: {rows}");
            std::thread::sleep(Duration::from_millis(600));
        }
    }
}

#[test]
fn a_page_shows_all_roles_while_it_is_open() {
    let (rack, [_, store]) = door_and_store();
    rack.say("status --listen 0.0.0.0:7099").refused(2, &["0.0.0.0:7099", "no password", "loopback"]);
    let page = Page::of(&rack);
    page.says(&["<th scope=\"row\">store</th><td class=\"wrong\">not started</td>"]);
    rack.run("up");
    page.says(&["<th scope=\"row\">store</th><td>ready</td>", "<th scope=\"row\">door</th><td>ready</td>", "keys: 0"]);
    assert_eq!(told(&store, "SET a 1\r\n"), "+OK\r\n");
    page.says(&["keys: 1", "commands/s: "]);
    let whole = page.get("/");
    assert!(whole.starts_with("HTTP/1.1 200") && whole.contains("text/html") && whole.contains("keys: 1"), "{whole}");
    assert!(whole.contains(&rack.0.path("rack.toml").display().to_string()) && !whole.contains("{rows}"), "{whole}");
    assert!(page.get("/../secret").starts_with("HTTP/1.1 404"));
    fs::write(rack.0.path("rack.toml"), "folder = 7\n").expect("a disk");
    page.says(&["<td class=\"wrong\"", "rack.toml", "folder"]);
    fs::write(rack.0.path("rack.toml"), &rack.1).expect("a disk");
    kill(rack.pid("store"));
    page.says(&[
        "<th scope=\"row\">store</th><td class=\"wrong\">dead</td>",
        "<th scope=\"row\">door</th><td>ready</td>",
    ]);
}

/// Namespaces of the rack whose tests use this network.
fn namespaces(rack: &Rack) -> Vec<String> {
    let network: Value = serde_json::from_str(&rack.0.text("state/network.json")).expect("what `up` has written");
    let tail = network["bridge"].as_str().and_then(|bridge| bridge.strip_prefix("rw")).expect("a name").to_owned();
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(&tail)).collect()
}

/// Whether this process may make what `--netns` makes.
fn makes_namespaces() -> bool {
    let id = std::process::id();
    let (space, bridge, veth) = (format!("rackweave-test-{id}"), format!("rwb{id}"), format!("rwv{id}"));
    let ip = |line: &str| {
        let said = Command::new("ip").args(line.split(' ')).output();
        said.is_ok_and(|said| said.status.success())
    };
    let can = ip(&format!("netns add {space}"))
        && ip(&format!("link add {bridge} type bridge"))
        && ip(&format!("link add {veth} mtu 9000 type veth peer name eth0 mtu 9000 netns {space}"))
        && ip(&format!("link set {veth} master {bridge} up"));
    for line in [format!("netns delete {space}"), format!("link delete {veth}"), format!("link delete {bridge}")] {
        let _ = ip(&line);
    }
    can
}

/// A rack with a disk whose roles have addresses in `net`.
fn rack_in(net: &str) -> Rack {
    let role = |table: &str, name: &str, host: u32| {
        format!("{table}\n{name}listen = '{net}.{host}:7000'\nmetrics = '{net}.{host}:9500'\n")
    };
    let tables = [
        role("[switch]", "", 1),
        role("[control]", "", 2),
        role("[[storage]]", "name = 's0'\n", 3),
        role("[[storage]]", "name = 's1'\n", 4),
    ];
    let rest = format!(
        "[[volume]]\nname = 'v'\nsize = '1MiB'\nreplicas = ['s0', 's1']\n\
         [[door]]\nname = 'door'\nlisten = '{net}.5:7000'\nconfig = 'target.toml'\n"
    );
    let target = format!(
        "metrics = '{net}.5:9500'\n[[port]]\naddress = '{net}.5:4420'\n[[subsystem]]\n\
         nqn = 'nqn.2026-11.io.rackweave:net'\n[[subsystem.namespace]]\nbackend = 'volume'\nrack = 'rack.toml'\n\
         door = 'door'\nvolume = 'v'\nblock = '4KiB'\n"
    );
    let file = format!("folder = 'state'\nsecret_file = 'secret'\n{}{rest}", tables.concat());
    Rack::of(&file).with("secret", &"s".repeat(32)).with("target.toml", &target)
}

#[test]
fn roles_in_namespaces_of_their_own_serve_a_disk() {
    if !makes_namespaces() {
        return println!(
            "SKIPPED: network namespaces, veth and bridges need root, iproute2 and a kernel that has them"
        );
    }
    let net = format!("10.{}.{}", 64 + std::process::id() / 250 % 128, std::process::id() % 250);
    let rack = rack_in(&net);
    rack.say("up --netns 192.0.2.1/24").refused(2, &["control", &format!("{net}.2:7000"), "192.0.2.0/24"]);
    let own = format!("--netns {net}.254/24");
    rack.run(&format!("up {own}"));
    assert_eq!(namespaces(&rack).len(), 5);
    let verify = format!("disk {net}.5:4420 verify --overwrite --bytes 512KiB");
    rack.0.run(&verify);
    // Who has died is started in its namespace again, without being told.
    kill(rack.pid("s0"));
    rack.run("up");
    rack.0.run(&verify);
    rack.say(&format!("up --netns {net}.253/24")).refused(2, &["network.json", &format!("{net}.254/24")]);
    rack.run("status --only s0 --only door");
    let tail = namespaces(&rack)[0].rsplit_once('-').expect("it ends with the rack").1.to_owned();
    rack.run("down");
    assert!(!rack.0.path("state/network.json").exists());
    let spaces = Command::new("ip").args(["netns"]).output().expect("there is ip").stdout;
    assert!(!String::from_utf8_lossy(&spaces).contains(&tail), "namespaces are left");
    let left = Command::new("ip").args(["route"]).output().expect("there is ip").stdout;
    assert!(!String::from_utf8_lossy(&left).contains(&net), "the bridge is gone");
}

#[test]
fn a_switch_in_a_namespace_forwards_in_the_kernel() {
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/xdp/switch.bpf.o");
    let has_ethtool = Command::new("ethtool").arg("--version").output().is_ok();
    if !makes_namespaces() || !object.exists() || !has_ethtool {
        return println!(
            "SKIPPED: XDP needs root, network namespaces, ethtool and target/xdp/switch.bpf.o (`make xdp`)"
        );
    }
    let net = format!("10.{}.{}", 64 + (std::process::id() + 1) / 250 % 128, (std::process::id() + 1) % 250);
    let rack = rack_in(&net);
    let text = rack.0.text("rack.toml").replace("secret_file = 'secret'", "insecure = true");
    let xdp = format!("[switch.xdp]\ninterface = 'eth0'\nobject = '{}'\n[control]\n", object.display());
    std::fs::write(rack.0.path("rack.toml"), text.replace("[control]\n", &xdp)).expect("a disk");
    rack.run(&format!("up --netns {net}.254/24"));
    rack.0.run(&format!("disk {net}.5:4420 verify --overwrite --bytes 512KiB"));
    let (_, roles) = rack.status();
    let role = roles.iter().find(|role| role["role"] == "switch").expect("it is listed");
    let count = |name: &str| role["metrics"][format!("rackweave_switch_xdp_{name}_total")].as_f64();
    // 128 blocks of 4 KiB, written and read: each is two packets at least.
    assert!(count("forwarded") > Some(512.0), "{roles:?}");
    assert_eq!([count("unsummed"), count("unsound")], [Some(0.0); 2], "{roles:?}");
    rack.run("down");
}

#[test]
fn the_example_is_a_rack() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("examples/rack.toml")).expect("it is there");
    let rack = Rack::of(&text);
    assert_eq!(rack.status().0, Some(4));
    let page = fs::read_to_string(root.join("docs/reference/rack.md")).expect("it is there");
    let mut found = 0;
    for example in page.split("```toml fragment\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        found += 1;
        fs::write(rack.0.path("rack.toml"), example).expect("a disk");
        assert_eq!(rack.status().0, Some(4), "{example}");
    }
    assert!(found > 0);
}
