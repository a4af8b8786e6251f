//! Does it repeat: programs of live stores decide the same in the replay of their journals, and a
//! journal that was changed tells where.

mod common;

use base::{Seed, Span};
use common::away::{RunningJbof, door, role_config, ways};
use common::{Client, Frame, Running, bulk, config, jbof, ok, with};
use kv::journal::{Beginning, ClientEntry, Entry, Part, Put, Reader, ServerEntry, Take, Writer};
use kv::twin::{Answered, Answers, Journals, Model, Replayed, Seen, Site, TwinError, simulate};
use kv::{Config, Journal};
use proptest::test_runner::{Config as Runs, TestRunner};
use runtime::clock::Clock;
use scalio::{ClientOut, Length, MemoryOperation, Outcome, ServerOut};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

/// A place for the journals of a role.
fn noted(folder: &Path, role: &str) -> Option<Journal> {
    Some(Journal { folder: folder.join("journal"), role: role.into() })
}

/// Stores, reads from flash and from slots, overwrites, forgets, and lets keys expire.
fn play(client: &mut Client, round: usize) {
    for number in 0..60_usize {
        let short = format!("k{number}");
        let long = format!("a name that is digested, {number}");
        let value = vec![round as u8; [8, 64, 65, 3_000][number % 4]];
        assert_eq!(client.ask(&[b"SET", short.as_bytes(), &value]), ok());
        assert_eq!(client.ask(&[b"SET", long.as_bytes(), &value, b"EX", b"1000"]), ok());
        for _ in 0..3 {
            assert_eq!(client.ask(&[b"GET", short.as_bytes()]), bulk(&value));
            assert_eq!(client.ask(&[b"GET", long.as_bytes()]), bulk(&value));
        }
        assert_eq!(client.ask(&[b"SETNX", short.as_bytes(), b"x"]), Frame::Integer(0));
        client.ask(&[b"TTL", long.as_bytes()]);
        client.ask(&[b"EXISTS", short.as_bytes(), b"nobody"]);
    }
    client.say("SCAN 0 COUNT 100");
    client.say("PERSIST k3");
    client.say("GETDEL k4");
    client.say("DEL k5 k6 nobody");
    client.say("MGET k1 k2 k4 k7");
}

/// Two clients at a time, one pipelined.
fn crowd(store: &Running) {
    let mut one = store.client();
    let mut other = store.client();
    for round in 0..4 {
        for number in 0..50 {
            let value = vec![7; 20 + number];
            other.send(&[b"SET", format!("p{}", number % 20).as_bytes(), &value]);
            other.send(&[b"GET", format!("p{}", number % 10).as_bytes()]);
            other.send(&[b"GET", format!("k{number}").as_bytes()]);
        }
        play(&mut one, round);
        (0..150).for_each(|_| drop(other.reply().expect("it answers")));
    }
}

/// Replays all journals of a folder's roles.
fn replayed(folder: &Path) -> Vec<Replayed> {
    let journals = Journals::open(&["store", "jbof"], &folder.join("journal")).expect("they are there");
    journals.replay(&[]).expect("they are read").replayed
}

/// All programs ended in order, decided the same, and were these.
fn are_equal(folder: &Path, names: &[&str]) {
    let all = replayed(folder);
    assert_eq!(all.iter().map(|one| &*one.name).collect::<Vec<_>>(), names);
    for one in &all {
        assert!(one.is_whole && !one.is_cut, "{one:?}");
        assert!(!one.differs(), "{one:?}");
        assert!(one.decisions > 500 || names.len() > 3, "{one:?}");
    }
    assert!(all.iter().map(|one| one.decisions).sum::<u64>() > 5_000, "{all:?}");
}

#[test]
fn a_store_with_its_jbof_inside_decides_the_same_again_after_restarts_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config { journal: noted(folder.path(), "store"), ..config(folder.path()) };
    for _ in 0..2 {
        crowd(&Running::start(config.clone()));
    }
    are_equal(folder.path(), &["store.helper", "store.helper", "store.loop-0", "store.loop-0"]);
    let all = replayed(folder.path());
    assert!(all[2].numbers["hits"] > 400 && all[2].numbers["misses"] > 400, "{:?}", all[2].numbers);
}

#[test]
fn loops_and_the_helper_of_a_store_decide_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config { loops: 3, journal: noted(folder.path(), "store"), ..config(folder.path()) };
    crowd(&Running::start(config));
    are_equal(folder.path(), &["store.helper", "store.loop-0", "store.loop-1", "store.loop-2"]);
}

#[test]
fn doors_and_a_jbof_of_its_own_decide_the_same_again_however_they_speak() {
    for way in ways() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut role = role_config(folder.path(), jbof(folder.path()), None);
        role.journal = noted(folder.path(), "jbof");
        let role = RunningJbof::start(role);
        let door = Config { journal: noted(folder.path(), "store"), ..door(folder.path(), way, role.address, None) };
        crowd(&Running::start(door));
        role.end();
        are_equal(folder.path(), &["jbof.helper", "store.loop-0"]);
    }
}

#[test]
fn a_helper_that_wins_zones_back_decides_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let small =
        with(config(folder.path()), |jbof| (jbof.zones, jbof.zone_sectors, jbof.value_bytes_max) = (16, 256, 8 << 10));
    let store = Running::start(Config { journal: noted(folder.path(), "store"), ..small });
    let mut client = store.client();
    for number in 0..2_000 {
        let value = vec![number as u8; 3_000];
        assert_eq!(client.ask(&[b"SET", format!("k{}", number % 150).as_bytes(), &value]), ok());
    }
    assert!(client.number("zones_reclaimed") > 10);
    drop((client, store));
    are_equal(folder.path(), &["store.helper", "store.loop-0"]);
}

/// A small store that has lived, with its journals in the folder.
fn lived(folder: &Path) {
    let store = Running::start(Config { journal: noted(folder, "store"), ..config(folder) });
    crowd(&store);
}

/// The entries of a journal, and what became of each as `change` has it.
fn changed<I: Put + Take, O: Put + Take>(
    from: &Path,
    (to, part): (&Path, Part),
    mut change: impl FnMut(&mut Entry<I, O>),
) {
    fs::create_dir_all(to).expect("a disk");
    let mut journal = Reader::open(from).expect("it is there");
    let place = Journal { folder: to.into(), role: "store".into() };
    let mut writer = Writer::begin(&place, part, Clock::start()).expect("a disk");
    while let Some(mut entry) = journal.next::<I, O>().expect("it is whole") {
        change(&mut entry);
        writer.write(&entry);
    }
}

/// The journals of a folder, replayed.
fn told(folder: &Path) -> Result<Vec<Replayed>, TwinError> {
    Journals::open(&["store"], folder).and_then(|journals| journals.replay(&[])).map(|told| told.replayed)
}

#[test]
fn one_changed_decision_of_a_client_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let from = folder.path().join("journal/store.loop-0.1.journal");
    // As it is, then with another slot taken, and with a hit that finds nothing.
    type Change = fn(&mut ClientOut<Length>) -> bool;
    let slot: Change = |out| match out {
        ClientOut::Memory { operation: MemoryOperation::Swap { slot, .. }, .. } => {
            *slot ^= 1;
            true
        }
        _ => false,
    };
    let found: Change = |out| match out {
        ClientOut::Done { outcome: Outcome::Value(value @ Some(_)), .. } => value.take().is_some(),
        _ => false,
    };
    for (number, change) in [|_: &mut ClientOut<Length>| false, slot, found].into_iter().enumerate() {
        let to = folder.path().join(format!("changed-{number}"));
        let (mut inputs, mut seen, mut place) = (0, 0, None);
        changed(&from, (&to, Part::Loop(0)), |entry: &mut ClientEntry<Length>| match entry {
            Entry::Decided(out) => {
                seen += 1;
                if place.is_none() && seen > 700 && change(out) {
                    place = Some(inputs);
                }
            }
            Entry::Turn { .. } | Entry::Rested { .. } | Entry::Finished { .. } => {}
            _ => inputs += 1,
        });
        let [one] = &told(&to).expect("it is read")[..] else { panic!("one journal") };
        let first = one.first.as_ref().map(|first| first.input);
        assert_eq!((first, one.differences), (place, u64::from(number > 0)), "{one:?}");
        assert_eq!(one.differs(), number > 0);
        let first = one.first.as_ref().map(|first| (first.live != first.twin, first.at_ns > 0));
        assert!(first.is_none_or(|told| told == (true, true)), "{one:?}");
    }
}

#[test]
fn one_changed_decision_of_a_helper_is_named_with_both() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let to = folder.path().join("changed");
    let mut is_changed = false;
    let from = folder.path().join("journal/store.helper.1.journal");
    changed(&from, (&to, Part::Helper), |entry: &mut ServerEntry<Length>| {
        if let Entry::Decided(ServerOut::Memory { operation: MemoryOperation::Publish { segment }, .. }) = entry
            && !std::mem::replace(&mut is_changed, true)
        {
            segment.extent.sector += 1;
        }
    });
    let [one] = &told(&to).expect("it is read")[..] else { panic!("one journal") };
    assert!(is_changed && one.differences == 1 && one.counters.is_empty(), "{one:?}");
    let first = one.first.as_ref().expect("it is told");
    assert!(first.live.contains("Publish") && first.twin.contains("Publish") && first.live != first.twin, "{first:?}");
}

#[test]
fn an_input_that_another_journal_had_changes_what_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let (to, mut number) = (folder.path().join("changed"), 0);
    let from = folder.path().join("journal/store.loop-0.1.journal");
    // A compare-and-swap that found something else: the client would have looked again.
    changed(&from, (&to, Part::Loop(0)), |entry: &mut ClientEntry<Length>| {
        use scalio::{ClientIn, MemoryAnswer};
        if let Entry::Input { input: ClientIn::Memory { answer: MemoryAnswer::Found(word), .. }, .. } = entry {
            number += 1;
            word.0 ^= u64::from(number == 5);
        }
    });
    let [one] = &told(&to).expect("it is read")[..] else { panic!("one journal") };
    assert!(number > 5 && one.differs() && one.first.is_some(), "{one:?}");
}

/// What becomes of a journal with these bytes: differences, or none where it is an error.
fn differences(to: &Path, name: &str, bytes: &[u8]) -> Option<u64> {
    fs::write(to.join(name), bytes).expect("a disk");
    let all = told(to).ok()?;
    Some(all.iter().map(|one| one.differences + one.counters.len() as u64 + u64::from(!one.is_whole)).sum())
}

#[test]
fn damaged_journals_are_errors_or_differ_and_nothing_falls_over() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    for name in ["store.loop-0.1.journal", "store.helper.1.journal"] {
        let whole = fs::read(folder.path().join("journal").join(name)).expect("it is there");
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(differences(place.path(), name, &whole), Some(0));
        let noticed = Cell::new(0);
        let mut runner = TestRunner::new(Runs { cases: 60, ..Runs::default() });
        let result = runner.run(&(0..whole.len(), 0..8_u32), |(at, bit)| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            noticed.set(noticed.get() + u32::from(differences(place.path(), name, &bytes) != Some(0)));
            proptest::prop_assert_ne!(differences(place.path(), name, &whole[..at]), Some(0), "cut at {}", at);
            Ok(())
        });
        result.expect("none falls over, and none that is cut passes for whole");
        // Some bits tell slots and times that decide nothing.
        assert!(noticed.get() > 20, "{} of 60 flipped bits were noticed in {name}", noticed.get());
    }
}

#[test]
fn a_journal_that_breaks_off_is_replayed_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let from = folder.path().join("journal/store.loop-0.1.journal");
    let bytes = fs::read(&from).expect("it is there");
    fs::write(&from, &bytes[..bytes.len() * 2 / 3]).expect("a disk");
    let all = replayed(folder.path());
    assert!(all[0].is_whole && !all[1].is_whole && !all[1].differs(), "{all:?}");
    assert!(all[1].decisions > 1_000, "{all:?}");
}

#[test]
fn journals_of_other_roles_and_files_that_are_none_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let place = folder.path().join("journal");
    let foreign = Journals::open(&["another"], &place).expect_err("it is refused").to_string();
    assert!(foreign.contains("the rack has no store and no JBOF `store`"), "{foreign}");
    fs::write(place.join("odd.1.journal"), b"RW").expect("a disk");
    let odd = Journals::open(&["store"], &place).expect_err("it is refused").to_string();
    assert!(odd.contains("odd.1.journal, byte 0: it does not begin as a journal"), "{odd}");
    // A journal of volumes is another command's.
    fs::write(place.join("odd.1.journal"), b"RWROLE02 and more").expect("a disk");
    assert_eq!(replayed(folder.path()).len(), 2);
}

#[test]
fn a_journal_has_no_values_and_its_owner_alone_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { journal: noted(folder.path(), "store"), ..config(folder.path()) });
    let mut client = store.client();
    for key in [&b"short"[..], b"a name that is digested"] {
        for value in [&b"a secret value"[..], &b"a secret value".repeat(50)] {
            assert_eq!(client.ask(&[b"SET", key, value]), ok());
            (0..2).for_each(|_| assert_eq!(client.ask(&[b"GET", key]), bulk(value)));
        }
    }
    drop((client, store));
    let holds = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    for entry in fs::read_dir(folder.path().join("journal")).expect("it is there") {
        let path = entry.expect("it is there").path();
        let bytes = fs::read(&path).expect("it is there");
        assert!(holds(&bytes, b"short") && !holds(&bytes, b"secret") && !holds(&bytes, b"digested"), "{path:?}");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
}

/// What the journals of a folder's store say together.
fn seen(folder: &Path) -> Seen {
    let site = Site { jbof: "store".into(), doors: vec!["store".into()] };
    let journals = Journals::open(&["store"], &folder.join("journal")).expect("they are there");
    journals.replay(&[site]).expect("they are read").sites.remove(0)
}

#[test]
fn a_live_store_is_simulated_with_what_its_door_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    let seen = seen(folder.path());
    let model = seen.model();
    let twin = simulate(&seen, &model, Seed(1)).expect("it can be simulated");
    let count = |requests: &kv::twin::Requests, of| requests.all().iter().filter(|one| one.answered == of).count();
    assert_eq!((seen.requests.open(), twin.requests.open()), (0, 0));
    assert_eq!(twin.requests.all().len(), seen.requests.all().len());
    assert_eq!(count(&twin.requests, Answered::Helper), count(&seen.requests, Answered::Helper));
    for requests in [&seen.requests, &twin.requests] {
        for one in requests.all() {
            assert!(one.verbs + one.flash <= one.total(), "{one:?}");
            let parts = one.helper.map(|parts| parts[0] + parts[1] + parts[2]);
            assert_eq!(parts, (one.answered == Answered::Helper).then_some(one.total()), "{one:?}");
        }
    }
    let again = simulate(&seen, &model, Seed(1)).expect("it can be simulated");
    assert_eq!(again.requests.all(), twin.requests.all(), "the same seed");
    let other = simulate(&seen, &model, Seed(2)).expect("it can be simulated");
    assert_ne!(other.requests.all(), twin.requests.all(), "another one");
}

#[test]
fn simulated_operations_take_their_verbs_their_flash_and_their_ways() {
    // A helper in the thread of the loop is told at once. An answer leaves when it is dealt with.
    take(1, (Span::ZERO, Span::us(5)));
    take(2, (Span::us(10), Span::us(25)));
}

/// An answer that always takes so long.
fn later(us: u64) -> Answers {
    Answers { at_once: 0, later: 1, later_ns: vec![us * 1_000].into() }
}

fn take(loops: usize, ways: (Span, Span)) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { loops, journal: noted(folder.path(), "store"), ..config(folder.path()) });
    let mut client = store.client();
    for _ in 0..2 {
        for key in 0..50 {
            let key = format!("k{key}");
            assert_eq!(client.ask(&[b"SET", key.as_bytes(), b"value"]), ok());
            (0..2).for_each(|_| assert_eq!(client.ask(&[b"GET", key.as_bytes()]), bulk(b"value")));
        }
    }
    drop((client, store));
    let seen = seen(folder.path());
    let answers =
        [("verbs", 3), ("segment of", 100), ("record of", 200), ("helper:reads, up to", 50), ("helper:write of", 40)];
    let answers = answers.map(|(name, us)| (name.to_owned(), later(us))).into();
    let takes_ns =
        [("helper: written", 0), ("helper: written, others follow", 0), ("helper: written, with an answer", 5)];
    let takes_ns = takes_ns.map(|(name, us)| (name.to_owned(), vec![us * 1_000].into())).into();
    let model = Model { answers, takes_ns, ways_ns: [vec![10_000].into(), vec![20_000].into()], ..Model::default() };
    let twin = simulate(&seen, &model, Seed(1)).expect("it can be simulated");
    let (mut flash, mut slots, mut updates) = (0, 0, 0);
    for one in twin.requests.all() {
        match one.answered {
            // A block, a compare-and-swap and a check, the segment, the record.
            Answered::Flash => {
                flash += 1;
                assert_eq!((one.total(), one.verbs, one.flash), (Span::us(309), Span::us(9), Span::us(300)));
            }
            Answered::Slot => {
                slots += 1;
                assert_eq!((one.total(), one.flash), (Span::us(3), Span::ZERO));
            }
            // The page is written meanwhile. A segment that is not there yet is not read.
            Answered::Helper => {
                updates += 1;
                let [forth, helper, back] = one.helper.expect("its helper was seen");
                let expected = if updates > 50 { &[90][..] } else { &[40, 90] };
                assert!(expected.iter().any(|us| Span::us(*us) == helper), "{one:?}");
                assert_eq!((forth, back), ways);
            }
        }
    }
    assert_eq!((flash, slots, updates), (100, 100, 100));
}

/// A pipeline of four: updates leave when the loop has taken all, and a helper begins with each. It
/// reads four segments one after another, and writes each as soon as it is there.
#[test]
fn a_pipeline_leaves_as_one_and_its_segments_are_read_one_after_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { loops: 2, journal: noted(folder.path(), "store"), ..config(folder.path()) });
    let mut client = store.client();
    for _ in 0..2 {
        let all: String = (0..4).map(|key| format!("*3\r\n$3\r\nSET\r\n$2\r\nk{key}\r\n$5\r\nvalue\r\n")).collect();
        client.stream.write_all(all.as_bytes()).expect("it is read");
        (0..4).for_each(|_| assert_eq!(client.reply(), Some(ok())));
    }
    drop((client, store));
    let seen = seen(folder.path());
    let answers = [("helper:reads, up to", 160), ("helper:write of", 40)];
    let takes = [
        ("loop: update, others follow", 1),
        ("loop: update, last of up to 4", 30),
        ("helper: request, others follow", 2),
        ("helper: request, last of up to 2", 5),
        ("helper: request, last of up to 4", 5),
    ];
    let model = Model {
        answers: answers.map(|(name, us)| (name.to_owned(), later(us))).into(),
        takes_ns: takes.map(|(name, us)| (name.to_owned(), vec![us * 1_000].into())).into(),
        ways_ns: [vec![10_000].into(), vec![20_000].into()],
        piece_bytes: 20,
        ..Model::default()
    };
    let together = (0..4).map(|place| {
        // The way is behind what the loop takes for this one and for those that follow; that of the
        // helper, for those before.
        let forth = (3 - place) + 30 + 10 + 2 * place;
        let begun = (3 - place) * 2 + 5;
        [forth, begun + 40 * (place + 1) + 40, 20]
    });
    assert_eq!(parts(&seen, &model), together.collect::<Vec<_>>());
    // Where a turn takes two of a door, the others wait for the next one.
    let model = Model { piece_bytes: 10, ..model };
    let in_two = [[43, 7 + 80 + 40, 20], [48, 7 + 80 + 40, 20], [44, 5 + 160 + 40, 20], [49, 5 + 160 + 40, 20]];
    assert_eq!(parts(&seen, &model), in_two);
}

/// Microseconds to the helper, there, and back, of the last four updates.
fn parts(seen: &Seen, model: &Model) -> Vec<[u64; 3]> {
    let twin = simulate(seen, model, Seed(1)).expect("it can be simulated");
    let parts = |one: &kv::twin::Request| one.helper.expect("its helper was seen").map(|part| part.as_ps() / 1_000_000);
    twin.requests.all()[4..].iter().map(parts).collect()
}

/// A store with two loops, which one client has asked for something, one after the other.
fn asked_one_by_one(folder: &Path) -> Seen {
    let store = Running::start(Config { loops: 2, journal: noted(folder, "store"), ..config(folder) });
    let mut client = store.client();
    for key in 0..50 {
        assert_eq!(client.ask(&[b"SET", format!("k{key}").as_bytes(), b"value"]), ok());
    }
    drop((client, store));
    seen(folder)
}

/// Gaps between the end of an operation and the next one.
fn gaps(requests: &kv::twin::Requests) -> Vec<Span> {
    requests.all().windows(2).map(|two| two[1].asked.saturating_since(two[0].ended)).collect()
}

#[test]
fn a_host_that_waited_for_an_end_waits_for_it_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = asked_one_by_one(folder.path());
    let model = Model { ways_ns: [vec![5_000_000].into(), vec![20_000].into()], ..Model::default() };
    let twin = simulate(&seen, &model, Seed(1)).expect("it can be simulated");
    // Each takes 5 ms more, and the next comes as soon after it.
    let pairs: Vec<(Span, Span)> = gaps(&seen.requests).into_iter().zip(gaps(&twin.requests)).collect();
    let soon: Vec<_> = pairs.into_iter().filter(|(live, _)| *live <= Span::ms(1)).collect();
    assert!(soon.len() > 20 && soon.iter().all(|(live, twin)| live == twin), "{soon:?}");
}

/// Makes a journal one of another machine, whose clock is three hours ahead.
fn move_away(journal: &Path) {
    const AHEAD_NS: u64 = 3 * 3_600_000_000_000;
    let bytes = fs::read(journal).expect("it is there");
    let (front, rest) = bytes.split_at(12);
    let length = u32::from_le_bytes(front[8..].try_into().expect("four bytes")) as usize;
    let (document, entries) = rest.split_at(length);
    let mut beginning: Beginning = serde_json::from_slice(document).expect("a document");
    (beginning.boot, beginning.clock_ns) = ("another".into(), beginning.clock_ns + AHEAD_NS);
    let document = serde_json::to_vec(&beginning).expect("numbers and names make a text");
    let length = (document.len() as u32).to_le_bytes();
    fs::write(journal, [&front[..8], &length, &document, entries].concat()).expect("a disk");
}

#[test]
fn a_door_on_another_machine_is_simulated_by_one_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    let way = ways().into_iter().next().expect("there is one");
    let mut role = role_config(folder.path(), jbof(folder.path()), None);
    role.journal = noted(folder.path(), "jbof");
    let role = RunningJbof::start(role);
    let door = Config { journal: noted(folder.path(), "store"), ..door(folder.path(), way, role.address, None) };
    crowd(&Running::start(door));
    role.end();
    let told = || {
        let site = Site { jbof: "jbof".into(), doors: vec!["store".into()] };
        let journals = Journals::open(&["store", "jbof"], &folder.path().join("journal")).expect("they are there");
        journals.replay(&[site]).expect("they are read")
    };
    let here = told();
    assert_eq!(here.within, Some(Span::ZERO), "one machine");
    move_away(&folder.path().join("journal/store.loop-0.1.journal"));
    let apart = told();
    let within = apart.within.expect("updates and answers tell");
    assert!(within > Span::ZERO && within < Span::ms(50), "{within:?}");
    let (here, there) = (here.sites[0].requests.all(), apart.sites[0].requests.all());
    assert_eq!(here.len(), there.len());
    for (one, other) in here.iter().zip(there) {
        // The rate of the other clock is known to a millionth or so.
        assert!(one.total().as_ps().abs_diff(other.total().as_ps()) < 1_000_000, "{one:?} {other:?}");
        let off = |part: usize| Some(one.helper?[part].as_ps().abs_diff(other.helper?[part].as_ps()));
        assert!([0, 2].into_iter().filter_map(off).all(|off| off <= within.as_ps() + 1_000_000), "{one:?} {other:?}");
    }
    let seen = &apart.sites[0];
    let twin = simulate(seen, &seen.model(), Seed(1)).expect("it can be simulated");
    assert_eq!(twin.requests.all().len(), there.len());
}

/// A write takes 10 ms or 0.3 s by chance, which is long beside a round of SETs. Were those of a
/// row drawn one by one, not one of a group of eight would be fast.
#[test]
fn writes_of_a_row_end_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { journal: noted(folder.path(), "store"), ..config(folder.path()) });
    let mut client = store.client();
    for round in 0..4 {
        let set = |key| format!("*3\r\n$3\r\nSET\r\n$5\r\nk{round}-{key}\r\n$5\r\nvalue\r\n");
        let all: String = (10..74).map(set).collect();
        client.stream.write_all(all.as_bytes()).expect("it is read");
        (0..64).for_each(|_| assert_eq!(client.reply(), Some(ok())));
    }
    drop((client, store));
    let seen = seen(folder.path());
    let fitted = seen.model();
    let rows = fitted.answers.iter().filter(|(question, _)| question.starts_with("helper:write of"));
    let rows: u64 = rows.map(|(_, answers)| answers.at_once + answers.later).sum();
    // Each round writes some fifty segments, in five groups or so.
    assert!((4..=100).contains(&rows), "{rows} rows");
    let writes = Answers { at_once: 0, later: 2, later_ns: vec![10_000_000, 300_000_000].into() };
    let model = Model { answers: [("helper:write of".to_owned(), writes)].into(), ..Model::default() };
    let mut groups = [0; 2];
    for seed in 1..9 {
        let twin = simulate(&seen, &model, Seed(seed)).expect("it can be simulated");
        let mut together: BTreeMap<_, [usize; 2]> = BTreeMap::new();
        for one in twin.requests.all() {
            let [_, helper, _] = one.helper.expect("its helper was seen");
            together.entry(one.ended).or_default()[usize::from(helper > Span::ms(100))] += 1;
        }
        for (place, all) in groups.iter_mut().enumerate() {
            *all += together.values().filter(|counts| counts[place] >= 8).count();
        }
    }
    assert!(groups.iter().all(|count| *count > 0), "fast and slow groups: {groups:?}");
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path());
    lived(folder.path());
    let twice = simulate(&seen(folder.path()), &Model::default(), Seed(1));
    assert!(twice.is_err_and(|why| why.contains("the helper of `store` was started more than once")));
    fs::remove_file(folder.path().join("journal/store.helper.1.journal")).expect("it is there");
    let loops = simulate(&seen(folder.path()), &Model::default(), Seed(1));
    assert!(loops.is_err_and(|why| why.contains("`store.loop-0` was started more than once")));
    fs::remove_file(folder.path().join("journal/store.helper.2.journal")).expect("it is there");
    let none = simulate(&seen(folder.path()), &Model::default(), Seed(1));
    assert!(none.is_err_and(|why| why.contains("the helper of `store` has no journal")));
}
