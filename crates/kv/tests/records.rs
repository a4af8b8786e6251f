//! Records of doors and JBOFs, read as those of simulated runs are.

mod common;

use base::{Operation, Span};
use common::away::{RunningJbof, Way, door, role_config};
use common::{Running, bulk, config, jbof, ok};
use kv::{Config, Records};
use record::{Outcome, Row, SpanKind, read_part};
use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

/// Every request, in a folder of its own.
fn records(folder: &Path) -> Option<Records> {
    Some(Records { folder: folder.join("rows"), sample: 1, tail: Span::secs(1) })
}

/// All rows of a start, in the order of their parts.
fn rows(folder: &Path, start: &str) -> Vec<Row> {
    let mut parts: Vec<_> = fs::read_dir(folder.join("rows").join(start)).expect("it is there").flatten().collect();
    parts.sort_by_key(|part| part.file_name());
    let read = |part: &fs::DirEntry| {
        let path = part.path();
        read_part(&path.display().to_string(), &File::open(path).expect("it opens")).expect("it is whole").rows
    };
    parts.iter().flat_map(read).collect()
}

fn having(rows: &[Row], span: SpanKind) -> u64 {
    rows.iter().filter(|row| row.spans.get(span) > Span::ZERO).count() as u64
}

/// Keys of short and of long values, each read twice.
const KEYS: u64 = 40;

#[test]
fn each_operation_of_a_door_is_a_row_with_the_time_that_its_client_saw_at_most() {
    for loops in [1, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Running::start(Config { loops, records: records(folder.path()), ..config(folder.path()) });
        let mut client = store.client();
        let (begin, mut bytes) = (Instant::now(), 0);
        for key in 0..KEYS {
            let (name, value) = (format!("key {key}"), vec![7; if key % 2 == 0 { 30 } else { 9_000 }]);
            assert_eq!(client.ask(&[b"SET", name.as_bytes(), &value]), ok());
            for _ in 0..2 {
                assert_eq!(client.ask(&[b"GET", name.as_bytes()]), bulk(&value));
            }
            bytes += 3 * value.len() as u64;
        }
        let elapsed = Span::ps(begin.elapsed().as_nanos() as u64 * 1_000);
        let [hits, misses, updates, dropped] =
            ["hits", "misses", "updates", "record_rows_dropped"].map(|name| client.number(name));
        drop((client, store));
        let rows = rows(folder.path(), "door.1");
        assert_eq!(rows.len() as u64, 3 * KEYS, "INFO asks the store for nothing");
        assert_eq!(dropped, 0);
        assert!(rows.iter().all(|row| row.adds_up() && row.outcome == Outcome::Finished));
        let writes = rows.iter().filter(|row| row.operation == Operation::Write).count() as u64;
        let told = [having(&rows, SpanKind::Memory), having(&rows, SpanKind::Flash), writes];
        assert_eq!(told, [hits, misses, updates], "{loops} loops");
        assert!(hits >= KEYS / 2 && misses >= KEYS, "short values are cached, and long ones are not");
        assert_eq!(rows.iter().map(|row| row.bytes.count()).sum::<u64>(), bytes);
        // One client asks one thing after the other.
        let sum = rows.iter().fold(Span::ZERO, |sum, row| sum + row.latency());
        assert!(sum > Span::ZERO && sum <= elapsed, "{sum:?} of {elapsed:?}");
    }
}

#[test]
fn a_command_that_waits_for_another_one_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { records: records(folder.path()), ..config(folder.path()) });
    let mut client = store.client();
    client.send(&[b"SET", b"a", &[1; 9_000]]);
    client.send(&[b"GET", b"a"]);
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(client.reply(), Some(bulk([1; 9_000])));
    assert_eq!(client.say("GET nothing"), common::Frame::Null);
    drop((client, store));
    let rows = rows(folder.path(), "door.1");
    let [set, get, nothing] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(set.spans.get(SpanKind::Schedule), Span::ZERO);
    let waited = get.spans.get(SpanKind::Schedule);
    assert!(waited > Span::ZERO && waited <= set.latency(), "{waited:?} of {:?}", set.latency());
    assert_eq!((get.address, nothing.bytes.count()), (set.address, 0));
    assert_ne!(nothing.address, set.address);
}

#[test]
fn what_doors_ask_of_a_jbof_is_a_row_there_and_verbs_are_none() {
    for way in [Way::Tcp, Way::Shared] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut role = role_config(folder.path(), jbof(folder.path()), None);
        role.records = records(folder.path());
        let role = RunningJbof::start(role);
        let store = Running::start(door(folder.path(), way, role.address, None));
        let mut client = store.client();
        for key in 0..KEYS {
            let (name, value) = (format!("key {key}"), vec![7; 9_000]);
            assert_eq!(client.ask(&[b"SET", name.as_bytes(), &value]), ok());
            assert_eq!(client.ask(&[b"GET", name.as_bytes()]), bulk(&value));
        }
        drop((client, store));
        let [verbs, reads, requests] = role.end();
        let rows = rows(folder.path(), "jbof.1");
        let of = |kind| rows.iter().filter(|row| row.operation == kind).count() as u64;
        assert_eq!([of(Operation::Read), of(Operation::Write)], [reads, requests], "{way:?}");
        assert_eq!(requests, KEYS);
        assert_eq!(way == Way::Tcp, verbs > 0 && reads >= KEYS, "{way:?}");
        assert!(rows.iter().all(|row| row.adds_up() && row.outcome == Outcome::Finished));
        assert_eq!(having(&rows, SpanKind::StorageQueue), requests);
    }
}

#[test]
fn each_start_has_its_rows_in_a_folder_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    for start in 1..=3 {
        let mut role = role_config(folder.path(), jbof(folder.path()), None);
        role.records = records(folder.path());
        let role = RunningJbof::start(role);
        let door = door(folder.path(), Way::Tcp, role.address, None);
        let store = Running::start(Config { records: records(folder.path()), ..door });
        let mut client = store.client();
        for _ in 0..start {
            assert_eq!(client.ask(&[b"SET", b"a", b"b"]), ok());
        }
        drop((client, store));
        role.end();
    }
    for start in 1..=3 {
        assert_eq!(rows(folder.path(), &format!("door.{start}")).len(), start);
        let updates = rows(folder.path(), &format!("jbof.{start}"));
        assert_eq!(updates.iter().filter(|row| row.operation == Operation::Write).count(), start);
    }
}
