//! The file of a key-value store.

use crate::support::Home;
use crate::support::target::Target;
use record::{Row, read_parts};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Instant;

#[test]
fn nobody_is_let_in_by_default() {
    let home = Home::new().with("right.toml", "path = 'f'\ninsecure = true\n").with("wrong.toml", "path = 'f'\n");
    assert_eq!(home.say("kv --check --config right.toml").code, Some(0));
    home.say("kv --config wrong.toml").refused(2, &["insecure = true", "password"]);
    assert!(!home.path("f").exists());
}

#[test]
fn without_tls_it_serves_others_than_this_machine_only_where_that_is_meant() {
    let with = |lines: &str| {
        let home = Home::new().with("kv.toml", &format!("path = 'f'\npassword = 'p'\n{lines}\n"));
        home.say("kv --check --config kv.toml")
    };
    with("listen = '0.0.0.0:6379'").refused(2, &["tls_certificate", "insecure = true"]);
    assert_eq!(with("listen = '[::1]:6379'").code, Some(0));
    assert_eq!(with("listen = '0.0.0.0:6379'\ninsecure = true").code, Some(0));
    assert_eq!(with("listen = '0.0.0.0:6379'\ntls_certificate = 'c'\ntls_key = 'k'").code, Some(0));
    with("tls_key = 'k'").refused(2, &["tls_certificate", "a certificate and its key"]);
    with("tls_certificate = 'k'").refused(2, &["tls_key"]);
}

/// What the store answers to a line.
fn told(store: &Target, lines: &str) -> String {
    let mut stream = TcpStream::connect(&store.address).expect("it listens");
    stream.write_all(lines.as_bytes()).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("it answers and closes");
    all
}

#[test]
fn sighup_takes_password_and_limits_anew_all_or_nothing() {
    let file = "path = 'f'\nsize = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\n\
        listen = '127.0.0.1:0'\nloops = 2\n";
    let home = Home::new().with("kv.toml", &format!("{file}password = 'one'\n"));
    let store = Target::store(&home, "--config kv.toml");
    // While this one is with the first loop, others come to the second.
    let held = TcpStream::connect(&store.address).expect("it listens");
    assert_eq!(told(&store, "AUTH one\r\nSET a 1\r\n"), "+OK\r\n+OK\r\n");
    fs::write(home.path("kv.toml"), format!("{file}password = 'two'\nlimits.arguments = 8\n")).expect("a disk");
    assert!(store.reload().contains("the file was read anew"));
    assert!(told(&store, "AUTH one\r\n").starts_with("-WRONGPASS"));
    assert_eq!(told(&store, "AUTH two\r\nGET a\r\n"), "+OK\r\n$1\r\n1\r\n");
    drop(held);
    assert!(told(&store, "AUTH two\r\nMGET 1 2 3 4 5 6 7 8 9\r\n").contains("-ERR Protocol error"));
    // One that is wrong changes nothing, and one that needs a restart says so.
    fs::write(home.path("kv.toml"), "password = 'three'\n").expect("a disk");
    assert!(store.reload().contains("nothing was changed"));
    assert!(told(&store, "AUTH two\r\n").starts_with("+OK"));
    fs::write(home.path("kv.toml"), format!("{file}password = 'four'\nflush = false\n")).expect("a disk");
    assert!(store.reload().contains("needs a restart"));
    assert!(told(&store, "AUTH four\r\n").starts_with("+OK"));
}

/// All rows in a folder of records.
fn rows(folder: &Path) -> Vec<Row> {
    let parts = fs::read_dir(folder).expect("it is there").flatten().map(|part| part.path());
    let mut parts: Vec<_> = parts.filter(|part| part.extension().is_some_and(|kind| kind == "parquet")).collect();
    parts.sort();
    let open = |part: std::path::PathBuf| (part.display().to_string(), fs::File::open(part).expect("it opens"));
    read_parts(parts.into_iter().map(open)).expect("each part is whole")
}

#[test]
fn records_of_a_store_are_whole_after_sigterm_and_up_to_the_last_part_after_sigkill() {
    /// Rows of a part.
    const PART: usize = 16_384;
    let file = "path = 'f'\nsize = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\nflush = false\n\
        listen = '127.0.0.1:0'\ninsecure = true\n";
    let with = |folder: &str| format!("{file}records = {{ folder = '{folder}', sample = 1 }}\n");
    let home = Home::new().with("one.toml", &with("one")).with("two.toml", &with("two"));
    let mut store = Target::store(&home, "--config one.toml");
    let lines = "GET a\r\n".repeat(100);
    assert_eq!(told(&store, &lines), "$-1\r\n".repeat(100));
    assert_eq!(store.end().code(), Some(0), "{}", store.log());
    assert_eq!(rows(&home.path("one/door.1")).len(), 100);
    let store = Target::store(&home, "--config two.toml");
    let lines = format!("SET a 1\r\n{}", "GET a\r\n".repeat(PART + 100));
    assert_eq!(told(&store, &lines), format!("+OK\r\n{}", "$1\r\n1\r\n".repeat(PART + 100)));
    while !home.path("two/door.1/part-00000.parquet").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    store.kill();
    let killed = rows(&home.path("two/door.1"));
    // A part ends after a minute too, on a machine that is so slow.
    assert!((1..=PART + 101).contains(&killed.len()), "{}", killed.len());
    assert!(killed.iter().zip(0..).all(|(row, number)| row.adds_up() && row.request.0 == number));
    let mut store = Target::store(&home, "--config two.toml");
    assert_eq!(told(&store, "GET a\r\n"), "$1\r\n1\r\n");
    assert_eq!(store.end().code(), Some(0), "{}", store.log());
    assert_eq!([rows(&home.path("two/door.1")).len(), rows(&home.path("two/door.2")).len()], [killed.len(), 1]);
}

/// Libraries that Debian's libfabric brings end a process with code 1 at SIGTERM.
#[test]
fn roles_that_have_opened_libfabric_end_in_order() {
    let sizes = "size = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\n";
    let jbof = format!("path = 'f'\n{sizes}listen = '127.0.0.1:0'\nfabric = '127.0.0.1:0'\n");
    let wrong = format!("{jbof}fabric_provider = 'nothing'\n");
    let home = Home::new().with("jbof.toml", &jbof).with("wrong.toml", &wrong);
    assert_eq!(home.say("jbof --config jbof.toml --check").code, Some(0));
    let said = home.say("jbof --config wrong.toml");
    if said.err.contains("libfabric cannot be opened") {
        assert!(said.err.contains("apt-get install libfabric1") && std::env::var_os("CI").is_none(), "{}", said.err);
        return eprintln!("SKIPPED: {}", said.err);
    }
    assert!(said.err.contains("no provider"), "{}", said.err);
    let mut jbof = Target::jbof(&home, "--config jbof.toml");
    let kv =
        format!("jbof_address = '{}'\njbof_fabric = 'tcp'\nlisten = '127.0.0.1:0'\ninsecure = true\n", jbof.address);
    fs::write(home.path("kv.toml"), kv).expect("a disk");
    let mut store = Target::store(&home, "--config kv.toml");
    assert_eq!(told(&store, "SET a 1\r\nGET a\r\n"), "+OK\r\n$1\r\n1\r\n");
    for (name, role) in [("door", &mut store), ("JBOF", &mut jbof)] {
        assert_eq!(role.end().code(), Some(0), "{name}: {}", role.log());
        role.logs("shutting down");
    }
}

#[test]
fn strangers_that_take_all_files_of_a_jbof_do_not_keep_a_door_out() {
    const FILES: u64 = 64;
    let sizes = "size = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\n";
    let home = Home::new().with("jbof.toml", &format!("path = 'f'\n{sizes}listen = '127.0.0.1:0'\n"));
    let fewer = format!("ulimit -Sn {FILES}");
    let jbof = Target::after(&fewer, &home, "jbof --config jbof.toml", "listening at");
    let process = Pid::from_child(&jbof.child);
    let fewer = Rlimit { current: Some(FILES), maximum: Some(FILES) };
    let had = prlimit(Some(process), Resource::Nofile, fewer).expect("it is ours");
    assert_eq!(had.current, had.maximum, "it has raised what it began with");
    let strangers: Vec<_> = (0..2 * FILES).map(|_| TcpStream::connect(&jbof.address).expect("it listens")).collect();
    let door = format!("jbof_address = '{}'\nlisten = '127.0.0.1:0'\ninsecure = true\n", jbof.address);
    fs::write(home.path("kv.toml"), door).expect("a disk");
    let store = Target::store(&home, "--config kv.toml");
    assert_eq!(told(&store, "SET a 1\r\n"), "+OK\r\n", "{}", jbof.log());
    drop(strangers);
}

#[test]
fn a_role_goes_on_where_its_log_has_no_room() {
    let file = "path = 'f'\nsize = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\n\
        listen = '127.0.0.1:0'\ninsecure = true\nlog = 'debug'\n";
    let home = Home::new().with("kv.toml", file);
    let mut store = Target::after("exec 2> /dev/full", &home, "kv --config kv.toml", "with Redis's client");
    assert_eq!(told(&store, "SET a 1\r\n"), "+OK\r\n");
    assert_eq!(told(&store, "GET a\r\n"), "$1\r\n1\r\n");
    assert_eq!(store.end().code(), Some(0));
    // Nor does the end depend on it.
    let wrong = home.command("kv --config none.toml").stderr(fs::File::create("/dev/full").expect("Linux")).status();
    assert_eq!(wrong.expect("it starts").code(), Some(2));
}

#[test]
fn strangers_fill_no_log() {
    const WRONG: usize = 200;
    let sizes = "size = '16MiB'\nzone = '1MiB'\nvalue = '64KiB'\nblocks = 16\nlisten = '127.0.0.1:0'\n";
    let home = Home::new().with("jbof.toml", &format!("path = 'j'\n{sizes}"));
    let home = home.with("kv.toml", &format!("path = 'f'\npassword = 'p'\n{sizes}"));
    let begin = Instant::now();
    let store = Target::store(&home, "--config kv.toml");
    let jbof = Target::jbof(&home, "--config jbof.toml");
    for _ in 0..WRONG {
        assert!(told(&store, &"AUTH wrong\r\n".repeat(9)).starts_with("-WRONGPASS"));
        told(&jbof, &"GET / HTTP/1.1\r\n".repeat(9));
    }
    for (role, words) in [(store, "connection closed"), (jbof, "a door was closed")] {
        let lines = role.log().matches(words).count() as u64;
        assert!((1..=11 + begin.elapsed().as_secs()).contains(&lines), "{lines}: {}", role.log());
    }
}

#[test]
fn every_example_is_a_store() {
    let secret = "a secret that is long enough for a key\n";
    let key = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:\n";
    let home = Home::new().with("store.password", "secret\n").with("jbof.secret", secret).with("door.key", key);
    let mut found = [0; 3];
    for name in ["docs/guide/redis.md", "docs/reference/kv.md"] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = fs::read_to_string(page).expect("it is there");
        for example in text.split("```toml fragment\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let begins = |keys: &[&str]| example.lines().any(|line| keys.iter().any(|key| line.starts_with(key)));
            if begins(&["[[subsystem]]"]) {
                // Its check would listen at the addresses, and open a file that a JBOF has made.
                plan::target::parse(name, example).unwrap_or_else(|error| panic!("{example}\n{error}"));
                found[2] += 1;
                continue;
            }
            let is_jbof = begins(&["socket", "secret_file", "# jbof.toml"]);
            found[usize::from(is_jbof)] += 1;
            let command = if is_jbof { "jbof" } else { "kv" };
            fs::write(home.path("example.toml"), example).expect("the home can be written");
            let said = home.say(&format!("{command} --check --config example.toml"));
            assert_eq!(said.code, Some(0), "{name}:\n{example}\n{}", said.err);
        }
    }
    assert_eq!(found, [11, 3, 2]);
}
