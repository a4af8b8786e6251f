//! Is the twin's model right: closed formulas of a rack whose links and roles have known times.
//! Damaged journals are errors or differences, never a panic.

mod common;

use base::{NodeId, Seed, Span, Time};
use blox::Page;
use common::{Live, noted, page_of, read, write};
use plan::rack::Rack;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use volumes::journal::Beginning;
use volumes::twin::{
    Fit, Host, Journals, Kind, Life, Link, Load, Machine, Model, PageAsk, Pause, Request, Requests, Simulated, Times,
    TwinError, first_lives, planned_load, simulate,
};

const DOOR: NodeId = NodeId(2);

/// Two servers with a disk, whose pages take `read` to be read.
fn two(read: Span) -> Rack {
    let text = format!(
        "[[storage]]\nname = 'a'\nlisten = '127.0.0.1:7010'\n[storage.flash]\nread = '{read}'\n\
         [[storage]]\nname = 'b'\nlisten = '127.0.0.1:7011'\n[storage.flash]\nread = '{read}'\n\
         [[volume]]\nname = 'v'\nsize = '4MiB'\nreplicas = ['a', 'b']\n\
         [[door]]\nname = 'd'\nlisten = '127.0.0.1:7020'\nconfig = 't.toml'\n"
    );
    plan::rack::parse("rack.toml", &text).expect("a rack")
}

/// All roles of a rack, from the start on, for three seconds.
fn lives(rack: &Rack) -> Vec<Life> {
    first_lives(rack).into_iter().map(|life| Life { end: Time::secs(3), ..life }).collect()
}

/// Every link takes `link`; packets, requests and packets after a wake-up occupy any role for so
/// long.
fn model(link: Span, [packet, ask, turn]: [Span; 3]) -> Model {
    let ns = |span: Span| span.as_ps() / 1_000;
    let ends = Kind::ALL.into_iter().flat_map(|from| Kind::ALL.map(|to| (from, to)));
    let links = ends.map(|(from, to)| Link { from, to, least_ns: ns(link), packets: 1, lost: 0 }).collect();
    let times = |span| Times::from(vec![ns(span)]);
    let host = Host {
        wake_ns: [(); 4].map(|()| times(Span::ZERO)),
        packet_ns: [(); 4].map(|()| times(packet)),
        ask_ns: [(); 2].map(|()| times(ask)),
        turn_ns: [(); 2].map(|()| times(turn)),
        leave_ns: [(); 2].map(|()| times(Span::ZERO)),
        late_ns: times(Span::ZERO),
        rest_ns: Default::default(),
    };
    let hosts = Kind::ALL.into_iter().map(|kind| (kind, host.clone())).collect();
    Model { links, hosts, ..Model::default() }
}

/// Pages that are asked for at these times.
fn load(asks: &[(Time, u64, bool)]) -> Load {
    let page = |(at, page, is_write): &(Time, u64, bool)| PageAsk {
        at: *at,
        door: DOOR,
        volume: 0,
        page: Page(*page),
        is_write: *is_write,
        ended: 0,
        soon: None,
    };
    Load { pages: asks.iter().map(page).collect(), ..Load::default() }
}

fn simulated(flash: Span, model: &Model, load: &Load) -> Simulated {
    let rack = two(flash);
    simulate(&rack, &lives(&rack), load, model, Seed(1)).expect("it can be simulated")
}

/// A timer fires a nanosecond after its time at the earliest.
const TIMER: Span = Span::ns(1);
/// A page on a channel of the emulated flash, which has 1 Tb/s.
const CHANNEL: Span = Span::ps(32_768);

#[test]
fn a_read_takes_four_links_and_the_flash_and_a_write_to_two_servers_eight_links() {
    let (link, flash) = (Span::us(7), Span::us(100));
    let load = load(&[(Time::ms(1_000), 3, false), (Time::ms(1_500), 3, true), (Time::ms(2_000), 3, false)]);
    let done = simulated(flash, &model(link, [Span::ZERO; 3]), &load);
    let times: Vec<_> = done.requests.all().iter().map(|request| request.total().expect("it ends")).collect();
    assert_eq!(times, [link * 4, link * 8, link * 4 + flash + CHANNEL + TIMER], "never written, written, and read");
    let spans: Vec<_> = done.requests.all().iter().map(|request| request.spans().expect("it ends")).collect();
    assert_eq!([spans[1].out, spans[1].server, spans[1].back], [link * 2, link * 4, link * 2]);
    assert_eq!([spans[2].out, spans[2].server, spans[2].back], [link * 2, flash + CHANNEL + TIMER, link * 2]);
    assert_eq!(done.open, 0);
}

#[test]
fn who_comes_to_a_role_that_is_kept_waiting_waits_too() {
    const SWITCH: u32 = 4;
    let (link, begin) = (Span::us(7), Time::ms(1_013));
    let at_ns = |time: Time| time.as_ps() / 1_000;
    let asks = load(&[(begin, 3, false), (begin + Span::ms(9), 3, false)]);
    let mut model = model(link, [Span::ZERO; 3]);
    // Of no role of this rack, too.
    let pause = |node| Pause { at_ns: at_ns(begin), took_ns: 5_000_000, node };
    model.pauses = vec![pause(SWITCH), pause(SWITCH + 1)];
    let done = simulated(Span::us(100), &model, &asks);
    let times: Vec<_> = done.requests.all().iter().map(|request| request.total().expect("it ends")).collect();
    assert_eq!(times, [Span::ms(5) + link * 3, link * 4], "of the first link nothing is left when the switch goes on");
}

#[test]
fn what_occupies_roles_delays_what_they_send_and_what_comes_behind_it() {
    let (link, flash) = (Span::us(7), Span::us(100));
    let [packet, ask, turn] = [Span::us(2), Span::us(3), Span::us(5)];
    // Between two heartbeats.
    let at = Time::ms(1_013);
    let mut model = model(link, [packet, ask, turn]);
    // Not in the way of what leaves, but of what comes behind it.
    let leave = Span::us(4);
    for host in model.hosts.values_mut() {
        host.leave_ns = [(); 2].map(|()| Times::from(vec![4_000]));
    }
    let written = [(Time::ms(500), 3, true), (Time::ms(600), 4, true)];
    let one = simulated(flash, &model, &load(&[&written[..], &[(at, 3, false)]].concat()));
    let alone = link * 4 + ask + packet * 2 + flash + CHANNEL + TIMER + turn;
    assert_eq!(one.requests.all()[2].total(), Some(alone));
    // What the door is asked together leaves together. A call gives the switch one packet at first.
    let two = simulated(flash, &model, &load(&[&written[..], &[(at, 3, false), (at, 4, false)]].concat()));
    let out = |place: usize| two.requests.all()[place].spans().expect("it ends").out;
    assert_eq!(out(2), ask * 2 + link * 2 + packet);
    assert_eq!(out(3), ask * 2 + link * 2 + packet * 2 + leave);
    // The next one gives it two, which leave together.
    let three = [(at, 3, false), (at, 4, false), (at, 5, false)];
    let three = simulated(flash, &model, &load(&[&written[..], &three].concat()));
    let out = |place: usize| three.requests.all()[place].spans().expect("it ends").out;
    assert_eq!(out(3), ask * 3 + link * 2 + packet * 3 + leave);
    assert_eq!(out(4), out(3) + packet, "the server is occupied by the one before");
}

/// A model of a run with reads, when packets took 2 us, and then writes, when they took 20 us.
#[test]
fn times_are_those_of_moments_at_which_as_much_was_asked() {
    const COUNT: u64 = 20;
    let link = Span::us(7);
    let packets_of = |span| model(link, [span, Span::ZERO, Span::ZERO]);
    let mut mixed = packets_of(Span::ZERO);
    let mut times = Times::default();
    for at in 0..2_400 {
        let is_write = at >= 1_200;
        times.note(Time::ms(at), Span::us(if is_write { 20 } else { 2 }));
        // Between both loads more is asked: a time is drawn of those around it, of both loads.
        if (1_000..1_400).contains(&at) || at % 10 == 0 {
            mixed.loads.note(Time::ms(at), usize::from(is_write));
        }
    }
    let times = times.settled();
    mixed.hosts.values_mut().for_each(|host| host.packet_ns = [(); 4].map(|()| times.clone()));
    let at = |begin, place| Time::ms(begin) + Span::ms(10) * place;
    let reads = (0..COUNT).map(|page| (at(1_000, page), page, false));
    let asks: Vec<_> = reads.chain((0..COUNT).map(|page| (at(2_000, page), page, true))).collect();
    let totals = |model: &Model| -> Vec<Span> {
        let done = simulated(Span::us(100), model, &load(&asks));
        done.requests.all().iter().map(|request| request.total().expect("it ends")).collect()
    };
    let [reads, writes] = [2, 20].map(|us| totals(&packets_of(Span::us(us))));
    let split = COUNT as usize;
    assert_eq!(totals(&mixed), [&reads[..split], &writes[split..]].concat());
    assert_eq!(reads[0], link * 4 + Span::us(2) * 3, "never written: two packets of the switch, one of the server");
}

fn asked(done: &Simulated) -> Vec<Time> {
    done.requests.all().iter().map(|request| request.asked).collect()
}

#[test]
fn a_host_that_waited_for_an_end_waits_for_it_again() {
    let (at, later) = (Time::ms(1_013), Time::ms(1_113));
    let after = |link: Span, load: &Load| simulated(Span::us(100), &model(link, [Span::ZERO; 3]), load);
    let mut load = load(&[(at, 3, false), (at, 4, false), (at, 5, false), (later, 6, false)]);
    // The second one comes when the first has ended, and the third 2 us after the second has.
    for (place, soon) in [(1, Span::ZERO), (2, Span::us(2))] {
        (load.pages[place].ended, load.pages[place].soon) = (place as u64, Some(soon));
    }
    let done = after(Span::us(7), &load);
    assert_eq!(asked(&done), [at, at + Span::us(28), at + Span::us(58), later]);
    let seen = Load::of(&done.requests);
    let waits: Vec<_> = seen.pages.iter().map(|page| (page.ended, page.soon)).collect();
    assert_eq!(waits, [(0, None), (1, Some(Span::ZERO)), (2, Some(Span::us(2))), (3, None)]);
    // Of a slower rack each is asked later, and the last at its time.
    assert_eq!(asked(&after(Span::us(9), &seen)), [at, at + Span::us(36), at + Span::us(74), later]);
    // One so slow that the third ends behind that time.
    let slow = Span::ms(10);
    assert_eq!(asked(&after(slow, &seen))[3], at + slow * 12 + Span::us(2));
}

/// All roles on one machine with so many processors, of which others have so much for each request.
fn shared(model: Model, processors: u32, others: Span) -> Model {
    let others_ns = Times::from(vec![others.as_ps() / 1_000]);
    Model { machines: vec![Machine { processors, nodes: (0..5).collect(), others_ns }], ..model }
}

#[test]
fn roles_of_a_machine_share_its_processors() {
    let (link, [packet, ask, turn]) = (Span::us(7), [Span::us(2), Span::us(3), Span::us(5)]);
    let (busy, wake) = (Span::us(17), Span::us(4));
    // Between two heartbeats.
    let asks = load(&[(Time::ms(1_013), 3, false)]);
    let total = |processors, change: fn(&mut Host, Times)| {
        let mut model = shared(model(link, [packet, ask, turn]), processors, Span::ZERO);
        for host in model.hosts.values_mut() {
            host.wake_ns = [(); 4].map(|()| Times::from(vec![wake.as_ps() / 1_000]));
            change(host, Times::from(vec![busy.as_ps() / 1_000]));
        }
        simulated(Span::us(100), &model, &asks).requests.all()[0].total().expect("it ends")
    };
    // Switch, server, switch and door wake up when the packet comes.
    // The server answers in its turn.
    let alone = ask + packet * 3 + turn;
    let leaves: fn(&mut Host, Times) = |host, times| host.leave_ns = [(); 2].map(|()| times.clone());
    let rests: fn(&mut Host, Times) = |host, times| host.rest_ns = [(); 2].map(|()| times.clone());
    for change in [leaves, rests] {
        assert_eq!(total(0, change), alone + (link + wake) * 4, "not known: nobody waits");
        assert_eq!(total(2, change), alone + (link + wake) * 4, "the sender has one, the receiver the other");
        assert_eq!(total(1, change), alone + busy * 4, "it is there and awake when the sender is done");
    }
}

#[test]
fn others_have_processors_behind_each_request() {
    let (link, [packet, ask]) = (Span::us(7), [Span::us(2), Span::us(3)]);
    let (each, soon) = (Span::us(10), Span::us(5));
    let model = shared(model(link, [packet, ask, Span::ZERO]), 1, each * 3);
    let mut asks = load(&[(Time::ms(1_013), 3, false), (Time::ms(1_013), 4, false)]);
    (asks.pages[1].ended, asks.pages[1].soon) = (1, Some(soon));
    let done = simulated(Span::us(100), &model, &asks);
    let total = |place: usize| done.requests.all()[place].total().expect("it ends");
    assert_eq!(total(0), ask + packet * 3 + link * 4);
    // The door waits for the first of the others, then switch and server for the next two.
    let door = packet + each - soon + ask;
    assert_eq!(total(1), door + each + packet + each + packet + link + packet + link);
}

#[test]
fn the_same_seed_gives_the_same_requests_and_another_one_others() {
    let mut model = model(Span::us(7), [Span::us(2); 3]);
    model
        .hosts
        .values_mut()
        .for_each(|host| host.wake_ns[3] = (0..500).map(|place| place * 97).collect::<Vec<_>>().into());
    let asks: Vec<_> = (0..50).map(|page| (Time::secs(1) + Span::ms(5) * page, page, page % 3 == 0)).collect();
    let run = |seed| {
        let rack = two(Span::us(100));
        let run = simulate(&rack, &lives(&rack), &load(&asks), &model, Seed(seed)).expect("it runs");
        run.requests.all().to_vec()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_model_without_links_is_no_model() {
    let asks = load(&[(Time::secs(1), 3, false)]);
    let rack = two(Span::ZERO);
    let empty = simulate(&rack, &lives(&rack), &asks, &Model::default(), Seed(1));
    assert!(matches!(empty, Err(TwinError::Lacking(_))));
    let mut long = model(Span::us(1), [Span::ZERO; 3]);
    assert!(long.is_sound());
    long.links[0].least_ns = u64::MAX;
    assert!(!long.is_sound());
}

/// A short run of a live rack with journals in `folder`.
fn lived(folder: &Path) -> Rack {
    let live = Live::up(noted(folder, 2, 64));
    let volume = live.volume();
    for page in 0..64 {
        write(&volume, page, 1);
        assert_eq!(read(&volume, page), page_of(page, 1));
    }
    drop(volume);
    let rack = live.rack.clone();
    drop(live);
    rack
}

#[test]
fn a_live_rack_is_simulated_with_what_its_doors_were_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = lived(folder.path());
    let journals = Journals::open(&rack, &folder.path().join("journal")).expect("they are there");
    let told = journals.replay(&rack).expect("they are read");
    let lives = journals.lives(&rack, &told).expect("each lived once");
    let model = told.fit.clone().model();
    let twin = simulate(&rack, &lives, &Load::of(&told.requests), &model, Seed(1)).expect("it can be simulated");
    assert_eq!((twin.open, told.requests.all().len()), (0, 128));
    for requests in [&told.requests, &twin.requests] {
        assert!(requests.all().iter().all(|request| request.spans().is_some()), "all end, and are seen everywhere");
    }
    assert_eq!(twin.numbers["s0"]["writes"] + twin.numbers["s1"]["writes"], 64);
    // Nothing is lost on loopback but what comes before its receiver is there, or after it ended.
    assert!(model.links.iter().all(|link| link.lost * 10 <= link.packets + 100), "{:?}", model.links);
    let changed = Rack { volumes: Vec::new(), ..rack };
    let other = Journals::open(&changed, &folder.path().join("journal"));
    assert!(matches!(other, Err(TwinError::Foreign { .. })), "another version of the rack's file");
}

/// A server on another machine, whose clock is three hours ahead, has the times of the first.
#[test]
fn a_server_on_another_machine_is_simulated_by_one_clock() {
    const AHEAD_NS: u64 = 3 * 3_600_000_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let rack = lived(folder.path());
    let journal = folder.path().join("journal");
    let spans = |journals: &Journals| -> Vec<_> {
        let told = journals.replay(&rack).expect("they are read");
        told.requests.all().iter().map(|request| request.spans().expect("it was seen everywhere")).collect()
    };
    let open = || Journals::open(&rack, &journal).expect("they are there");
    let (here, none) = (spans(&open()), open().within());
    assert_eq!(none, Some(Span::ZERO), "one machine");
    let path = journal.join("s1.1.journal");
    let bytes = fs::read(&path).expect("it is there");
    let (front, rest) = bytes.split_at(12);
    let (document, entries) = rest.split_at(u32::from_le_bytes(front[8..].try_into().expect("four bytes")) as usize);
    let mut beginning: Beginning = serde_json::from_slice(document).expect("a document");
    (beginning.boot, beginning.clock_ns) = ("another".into(), beginning.clock_ns + AHEAD_NS);
    let document = serde_json::to_vec(&beginning).expect("numbers and names make a text");
    let length = (document.len() as u32).to_le_bytes();
    fs::write(&path, [&front[..8], &length, &document, entries].concat()).expect("a disk");
    let within = open().within().expect("packets there and back tell");
    assert!(within > Span::ZERO && within < Span::ms(50), "{within:?}");
    for (one, other) in here.iter().zip(spans(&open())) {
        // The rate of the other clock is known to a millionth or so.
        let is_near = |one: Span, other: Span| one.as_ps().abs_diff(other.as_ps()) <= within.as_ps() + 1_000_000;
        let are_near =
            is_near(one.out, other.out) && is_near(one.server, other.server) && is_near(one.back, other.back);
        assert!(are_near, "{one:?} {other:?} within {within:?}");
    }
    let told = open().replay(&rack).expect("they are read");
    let lives = open().lives(&rack, &told).expect("each lived once");
    let twin = simulate(&rack, &lives, &Load::of(&told.requests), &told.fit.model(), Seed(1)).expect("it runs");
    assert_eq!(twin.open, 0);
}

/// Decisions that differ in the replay of a journal with these bytes; none where it is an error.
fn differences(rack: &Rack, folder: &Path, bytes: &[u8]) -> Option<u64> {
    fs::write(folder.join("switch.1.journal"), bytes).expect("a disk");
    let told = Journals::open(rack, folder).and_then(|journals| journals.replay(rack)).ok()?;
    let _: (Fit, Requests) = (told.fit, told.requests);
    Some(told.replayed.iter().map(|role| role.differences + u64::from(!role.is_whole)).sum())
}

#[test]
fn damaged_journals_are_errors_or_differ_and_nothing_falls_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = lived(folder.path());
    let whole = fs::read(folder.path().join("journal/switch.1.journal")).expect("it is there");
    let place = tempfile::tempdir().expect("a folder");
    assert_eq!(differences(&rack, place.path(), &whole), Some(0));
    let noticed = Cell::new(0);
    let flips = (0..whole.len(), 0..8_u32);
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let result = runner.run(&flips, |(at, bit)| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        noticed.set(noticed.get() + u32::from(differences(&rack, place.path(), &bytes) != Some(0)));
        let cut = differences(&rack, place.path(), &whole[..at]);
        proptest::prop_assert_ne!(cut, Some(0), "cut at {}", at);
        Ok(())
    });
    result.expect("none falls over, and none that is cut passes for whole");
    // Some bits tell times and packets that the switch forwards to nobody.
    let noticed = noticed.get();
    assert!(noticed > 200, "{noticed} of 400 flipped bits were noticed");
}

/// [`two`] with a load of its door.
fn loaded(load: &str) -> Rack {
    let text = format!(
        "[[storage]]\nname = 'a'\nlisten = '127.0.0.1:7010'\n[storage.flash]\nread = '100us'\nprogram = '400us'\n\
         [[storage]]\nname = 'b'\nlisten = '127.0.0.1:7011'\n[storage.flash]\nread = '100us'\nprogram = '400us'\n\
         [[volume]]\nname = 'v'\nsize = '4MiB'\nreplicas = ['a', 'b']\n\
         [[door]]\nname = 'd'\nlisten = '127.0.0.1:7020'\nconfig = 't.toml'\n\
         [[load]]\ndoor = 'd'\nvolume = 'v'\n{load}"
    );
    plan::rack::parse("rack.toml", &text).expect("a rack")
}

fn planned(rack: &Rack, seed: u64) -> Simulated {
    let load = planned_load(rack, Seed(seed));
    simulate(rack, &first_lives(rack), &load, &Model::of_hardware(), Seed(seed)).expect("it can be simulated")
}

/// Software of a host, a page on a link, a link, and one behind the switch.
const HARDWARE: [Span; 4] = [Span::us(1), Span::ns(670), Span::ns(10), Span::ns(610)];

#[test]
fn a_planned_read_of_an_idle_rack_takes_its_links_its_software_and_its_flash() {
    let [host, page, link, behind] = HARDWARE;
    // The door, to the server, which takes it and sends a page, and back.
    let empty = host + link + behind + host + (host + page) + link + behind;
    let done = planned(&loaded("requests = 50"), 1);
    // The next one is there when the answer comes, and waits until the door has taken that.
    let behind_another = host + page;
    assert_eq!(fastest_and_usual(done.requests.all()), (empty, empty + behind_another));
    assert_eq!((done.requests.all().len(), done.open, done.filled.is_empty()), (50, 0, true));
    // Filled, it is read from flash while the server's software is busy with the packet: the answer
    // is sent when the timer of the drive fires.
    let done = planned(&loaded("requests = 50\nfill = true"), 1);
    let filled = done.filled[&DOOR];
    assert_eq!((filled, done.requests.all().len()), (1_024, 1_024 + 50));
    let from_flash = empty - host + Span::us(100) + CHANNEL + TIMER;
    // Some were written so lately that they are in the server's memory.
    assert_eq!(fastest_and_usual(&done.requests.all()[filled..]).1, from_flash + behind_another);
}

/// A heartbeat may be in the way of some.
fn fastest_and_usual(requests: &[Request]) -> (Span, Span) {
    let mut totals: Vec<Span> = requests.iter().filter_map(Request::total).collect();
    totals.sort_unstable();
    (totals[0], totals[totals.len() / 2])
}

#[test]
fn a_planned_load_is_what_its_file_says() {
    let rack = loaded("requests = 4_000\nreads = 0.25\nrate = 1000.0");
    let load = planned_load(&rack, Seed(7));
    let reads = load.pages.iter().filter(|page| !page.is_write).count();
    let last = load.pages.last().expect("they are many").at.saturating_since(Time::secs(1)).as_secs_f64();
    // A binomial and an Erlang distribution: six deviations are once in 10^9.
    assert!((reads as f64 - 1_000.0).abs() < 6.0 * 27.4, "{reads}");
    assert!((last - 4.0).abs() < 6.0 * 0.0633, "{last}");
    assert!(load.pages.iter().all(|page| (page.ended, page.soon) == (0, None)));
    assert_eq!(load, planned_load(&rack, Seed(7)));
    assert_ne!(load, planned_load(&rack, Seed(8)));
    let load = planned_load(&loaded("requests = 1_500\norder = 'sequential'\ndepth = 3"), Seed(7));
    assert!((0..).zip(&load.pages).all(|(at, page)| page.page == Page(at % 1_024)));
    assert!((0_u64..).zip(&load.pages).all(|(at, page)| page.ended == (at + 1).saturating_sub(3)));
    assert!(load.pages.iter().all(|page| page.soon == Some(Span::ZERO)));
}

/// Little's law: the times of all requests together are those of `depth` at a time.
#[test]
fn as_many_requests_are_open_as_the_file_says() {
    for depth in [1, 4, 16] {
        let done = planned(&loaded(&format!("requests = 2_000\ndepth = {depth}\nfill = true\nreads = 0.5")), 3);
        let requests = &done.requests.all()[done.filled[&DOOR]..];
        let total: f64 = requests.iter().filter_map(|one| one.total()).map(|span| span.as_secs_f64()).sum();
        let begin = requests[0].asked;
        let took = requests.iter().filter_map(|one| one.ended).map(|(at, _)| at.saturating_since(begin)).max();
        let open = total / took.expect("they end").as_secs_f64();
        // Fewer only at the end.
        assert!(open <= depth as f64 && open > depth as f64 * 0.97, "{open} of {depth}");
    }
}

#[test]
fn what_has_no_end_is_counted_and_ends_the_simulation() {
    // Nobody answers: the servers do not live.
    let rack = loaded("requests = 3");
    let mut lives = first_lives(&rack);
    lives.retain(|life| life.beginning.node > 1);
    let done = simulate(&rack, &lives, &planned_load(&rack, Seed(1)), &Model::of_hardware(), Seed(1)).expect("it ends");
    assert!(done.requests.all().iter().all(|request| request.total().is_none()));
    assert!(done.end < Time::secs(200), "{:?}", done.end);
}
