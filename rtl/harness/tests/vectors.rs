//! The gates do what the golden vectors say that `crates/edm` has written. The model is not asked
//! then: another implementation can be held against the same files. Those of a line are written by
//! `crates/edm/tests/vectors.rs`. Those of a scheduler and of a switch are written here, since
//! their cycles are in the harness; so are those of a host, which have none.

#[path = "common/hosts.rs"]
mod hosts;
#[path = "common/outside.rs"]
mod outside;

use base::{Seed, Stream};
use edm::Modify;
use edm::pcs::multiplex::Policy;
use hosts::Hosts;
use outside::{Outside, Peers};
use rtl_harness::host;
use rtl_harness::line::replay;
use rtl_harness::scheduler::{self, Action, Step, Variant};
use rtl_harness::switch;
use rtl_harness::system;

/// Steps of a scheduler's vectors.
const STEPS: usize = 400;
/// Cycles of a switch's.
const SWITCH_CYCLES: u64 = 700;
/// Steps of a host's, before all that is open is ended.
const HOST_STEPS: u32 = 120;

fn step(variant: Variant, random: &mut Stream) -> Step {
    let ports = u64::from(variant.ports());
    // Mostly a few ports, so that they contend; now and then a number that is no port.
    let peer = match random.below(13) {
        0 => random.below(512),
        1..7 => random.below(ports.min(3)),
        _ => random.below(ports),
    } as u32;
    let bytes = match random.below(8) {
        0 => 0,
        1..5 => 1 + random.below(64),
        5 | 6 => 1 + random.below(600),
        _ => 1 + random.below(3_000),
    } as u32;
    let action = match random.below(200) {
        0 => Action::Down,
        1..70 => Action::Write { target: peer, bytes, batch: if bytes.is_multiple_of(7) { 5 } else { 1 } },
        70..120 => Action::Read { memory: peer, bytes },
        120..130 => Action::Modify { memory: peer, modify: Modify::FetchAndAdd { addend: 1 } },
        130..165 => Action::Withdraw { channel: random.below(256) as u8, place: (random.below(5) / 4) as u8 },
        _ => Action::Uplink { blocks: random.below(16) as u8 },
    };
    Step { gap: random.below(5) as u8, port: random.below(ports) as u32, action }
}

#[test]
fn the_gates_of_a_scheduler_do_what_the_golden_vectors_say() {
    let variants =
        [("x3-srpt", Variant::Four), ("x1", Variant::Three), ("x2-fcfs", Variant::FourFcfs), ("16", Variant::Sixteen)];
    for (name, variant) in variants {
        let mut random = Seed(21).stream(name);
        let steps: Vec<Step> = (0..STEPS).map(|_| step(variant, &mut random)).collect();
        let path = format!("{}/../vectors/scheduler-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = scheduler::vectors(variant, &steps);
        compare(&path, &text);
        scheduler::replay(variant, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
        sees_what_differs(variant, &text);
    }
}

/// Compares vectors with those that are kept.
fn compare(path: &str, now: &str) {
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::write(path, now).expect("a disk");
    }
    let kept = std::fs::read_to_string(path).expect("it is there");
    let differs = kept.lines().zip(now.lines()).position(|(kept, now)| kept != now);
    assert_eq!((differs, kept.len()), (None, now.len()), "{path}: the first cycle that differs");
}

/// Hosts that are honest, and such that are not.
#[test]
fn the_gates_of_a_switch_do_what_the_golden_vectors_say() {
    for (name, breaches) in [("honest", 0), ("broken", 40)] {
        let mut random = Seed(21).stream(name);
        let variant = switch::Variant::Three;
        let ports = variant.limits().ports;
        let step = |random: &mut Stream| {
            let numbers = (
                random.below(100 + breaches) as u8,
                random.below(1 << 32) as u32,
                random.below(1 << 32) as u32,
                random.below(u64::MAX),
            );
            (random.below(9) as u8, random.below(ports.into()) as u32, hosts::doing_of(ports, numbers))
        };
        let steps = (0..STEPS).map(|_| step(&mut random)).collect();
        let manners = (0..ports).map(|_| (0..30).map(|_| random.below(256) as u8).collect()).collect();
        let (plan, is_honest) = ((steps, manners), breaches == 0);
        let mut hosts = Hosts::new(variant, &plan, is_honest);
        let text =
            switch::vectors(
                variant,
                is_honest,
                |model| {
                    if model.now() < SWITCH_CYCLES { hosts.cycle(model) } else { None }
                },
            );
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        let path = format!("{}/../vectors/switch-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        compare(&path, &text);
        switch::replay(variant, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
        sees_what_of_a_switch_differs(variant, &text);
    }
}

/// One peer that the host asks for more than it may at a time, and two peers. Some of what comes is
/// for nobody. In the third file answers stay open, since a /G/ is lost.
#[test]
fn the_gates_of_a_host_do_what_the_golden_vectors_say() {
    let files = [
        ("two", system::Variant::Two, Peers::InTurn),
        ("three", system::Variant::Three, Peers::InTurn),
        ("lost", system::Variant::Three, Peers::Lossy),
    ];
    for (name, variant, peers) in files {
        let text = Outside::play(host::setting(variant), peers, Seed(21).stream(name), HOST_STEPS);
        let path = format!("{}/../vectors/host-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        compare(&path, &text);
        host::replay(variant, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let count = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        let begins = ["ask read", "ask write", "ask add", "hear", "say", "end answered", "end sent", "hold"];
        // Peers that lose grants ask more, and the host less.
        let least = if peers == Peers::Lossy { 1 } else { 3 };
        for begin in begins {
            assert!(count(begin) >= least, "{name}: {begin}: {}", count(begin));
        }
        sees_what_of_a_host_differs(variant, &text);
    }
}

/// Of the last line of each kind that a host is held to, one digit is wrong: the comparison sees it
/// in that step.
fn sees_what_of_a_host_differs(variant: system::Variant, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for begin in ["say", "end answered", "end sent", "count", "hold"] {
        let place = lines.iter().rposition(|line| line.starts_with(begin)).expect("there is one");
        let step = lines[..place].iter().filter(|line| **line == "rest").count();
        let mut wrong = lines[place].to_owned();
        let digit = wrong.pop().expect("a digit");
        wrong.push(if digit == '0' { '1' } else { '0' });
        let mut changed = lines.clone();
        changed[place] = &wrong;
        let error = host::replay(variant, &changed.join("\n")).expect_err("it differs");
        let seen = if begin == "hold" { "at ".to_owned() } else { format!("step {step}: the gates do") };
        assert!(error.starts_with(&seen), "{error}");
    }
    for wrong in ["ask read 1 0 0 0", "hear x", "tell 0", "fill 0 1", "hold 0 x"] {
        assert!(host::replay(variant, wrong).is_err_and(|error| error.contains("no vector")), "{wrong}");
    }
}

/// Of a cycle in which port 1 sends a block, one digit of what is expected is wrong: the comparison
/// sees it in that cycle.
fn sees_what_of_a_switch_differs(variant: switch::Variant, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    // 12 fields and a bar are before those of port 1: what comes in, a frame, and its line out.
    const LINE_OUT: usize = 13 + 2;
    let place = lines.iter().position(|line| fields(line)[LINE_OUT] != "-").expect("something is sent");
    for field in [LINE_OUT, LINE_OUT + 3, LINE_OUT + 6, fields(lines[place]).len() - 2] {
        let mut wrong = fields(lines[place]);
        let digit = wrong[field].pop().expect("a digit");
        wrong[field].push(if digit == '0' { '1' } else { '0' });
        let wrong = wrong.join(" ");
        let mut changed = lines.clone();
        changed[place] = &wrong;
        let error = switch::replay(variant, &changed.join("\n")).expect_err("it differs");
        assert!(error.starts_with(&format!("cycle {place}:")), "{error}");
    }
    for wrong in ["- - - - 0 0 0 0 0 0 0 0 | 0 0 0", "x - | - - | - - | 0 0 0"] {
        assert!(switch::replay(variant, wrong).is_err_and(|error| error.contains("no vector")), "{wrong}");
    }
}

/// Of a cycle with a grant, one bit of what is expected is wrong.
fn sees_what_differs(variant: Variant, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let granted = |line: &&str| line.split('|').nth(1).is_some_and(|grants| grants.contains(':'));
    let place = lines.iter().position(granted).expect("something is granted");
    let parts: Vec<&str> = lines[place].split('|').collect();
    for part in 1..4 {
        let mut wrong: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        let last = wrong[part].trim_end().len() - 1;
        let other = if &wrong[part][last..=last] == "0" { "1" } else { "0" };
        wrong[part].replace_range(last..=last, other);
        let wrong = wrong.join("|");
        let mut changed = lines.clone();
        changed[place] = &wrong;
        let error = scheduler::replay(variant, &changed.join("\n")).expect_err("it differs");
        assert!(error.starts_with(&format!("cycle {place}:")), "{error}");
    }
    assert!(scheduler::replay(variant, "7f:x | | 0000 | 0 0 0").is_err_and(|error| error.contains("no vector")));
}

#[test]
fn the_gates_of_a_line_do_what_the_golden_vectors_say() {
    for (name, policy) in [("fair", Policy::Fair), ("strict", Policy::Strict), ("whole", Policy::None)] {
        let path = format!("{}/../vectors/line-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("it is there");
        replay(policy, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
        // One bit of what is expected: the comparison sees it.
        let changed: Vec<String> = text.lines().map(str::to_owned).collect();
        let place = changed.len() / 2;
        let fields: Vec<&str> = changed[place].split(' ').collect();
        for field in [3, 6, 7] {
            let mut wrong: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            let digit = wrong[field].pop().expect("a digit");
            wrong[field].push(if digit == '0' { '1' } else { '0' });
            let mut lines = changed.clone();
            lines[place] = wrong.join(" ");
            let error = replay(policy, &lines.join("\n")).expect_err("it differs");
            assert!(error.starts_with(&format!("cycle {place}:")), "{error}");
        }
    }
}
