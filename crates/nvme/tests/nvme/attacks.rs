//! The attack suite against our own target.

use crate::common::*;
use base::{Span, Time};
use nvme::attack::{
    Action, Attack, Call, Capacity, Expectation, LINKS, Leeway, Player, Rule, Step, Verdict, VerdictClass, VerdictKind,
    Victim, scripts, step_timeout,
};
use nvme::pdu::{Digests, Framing, Header, InitializeResponse};
use nvme::target::{ConnectionId, Target, TargetConfig};
use nvme::{Cqe, HostId, Sqe, Status};

fn victim() -> Victim {
    let limits = limits();
    let capacity = Capacity {
        in_capsule_bytes: limits.in_capsule_bytes,
        transfer_bytes_max: Some(4096 << limits.transfer_shift),
        events_max: limits.events_max,
        namespaces: 1024,
    };
    Victim { subsystem: subsystem(), host: host(9), host_id: HostId([9; 16]), namespace: 1, block_bytes: 512, capacity }
}

/// A target, and a script that is played against it.
struct Stage {
    now: Time,
    target: Target,
    disks: Disks,
    links: [Option<ConnectionId>; LINKS],
    player: Player,
}

impl Stage {
    /// Sockets are opened and closed as the player says. Whether any was.
    fn act(&mut self) -> bool {
        let Some(action) = self.player.next_action() else { return false };
        match action {
            Action::Open(link) => {
                self.links[link] = Some(self.target.accept(self.now, PORT).unwrap());
                self.player.opened(self.now, link);
            }
            Action::Drop(link) => {
                if let Some(connection) = self.links[link].take() {
                    self.target.closed(self.now, connection);
                }
            }
        }
        true
    }

    /// Bytes of a connection go to and fro, `portion` at a time. Whether any did.
    fn carry(&mut self, link: usize, portion: usize) -> bool {
        let Some(connection) = self.links[link] else { return false };
        let bytes: Vec<u8> = self.player.transmit(link).iter().copied().take(portion).collect();
        let taken = if bytes.is_empty() { 0 } else { self.target.receive(self.now, connection, &bytes) };
        if taken > 0 {
            self.player.transmitted(link, taken);
        }
        while let Some(request) = self.target.next_io() {
            let tag = request.tag;
            self.target.complete(self.now, tag, self.disks.carry_out(request));
        }
        let bytes: Vec<u8> = self.target.transmit(connection).flatten().copied().take(portion).collect();
        if !bytes.is_empty() {
            self.player.receive(self.now, link, &bytes);
            self.target.transmitted(connection, bytes.len());
        }
        let is_over = self.target.should_close(connection).is_some();
        if is_over {
            self.target.closed(self.now, connection);
            self.player.closed(self.now, link);
            self.links[link] = None;
        }
        taken > 0 || !bytes.is_empty() || is_over
    }
}

/// Plays a script over connections in memory that move `portion` bytes at a time.
fn play(attack: &Attack, portion: usize) -> Verdict {
    play_on(TargetConfig { is_strict: true, ..config() }, attack, portion)
}

fn play_on(config: TargetConfig, attack: &Attack, portion: usize) -> Verdict {
    let now = Time::secs(1);
    let (target, player) = (Target::new(config).unwrap(), Player::new(now, attack, victim(), Span::secs(2)));
    let mut stage = Stage { now, target, disks: Disks::default(), links: [None; LINKS], player };
    while stage.player.verdict().is_none() {
        let acted = stage.act();
        let moved = (0..LINKS).fold(acted, |moved, link| stage.carry(link, portion) | moved);
        if !moved {
            stage.now = stage.player.next_wakeup().unwrap();
            stage.player.on_wakeup(stage.now);
        }
    }
    stage.player.verdict().unwrap().clone()
}

/// What a target that is not strict takes, because hosts in use send it.
const TOLERATED: [&str; 2] = ["connect-without-a-name", "queue-of-another-host-id"];

#[test]
fn our_target_refuses_every_attack_and_goes_on_serving() {
    let all = scripts(&victim());
    assert!(all.len() > 90, "{} scripts", all.len());
    for portion in [usize::MAX, 7] {
        let failed: Vec<String> = all
            .iter()
            .map(|attack| (attack, play(attack, portion)))
            .filter(|(_, verdict)| verdict.class() != VerdictClass::Sound)
            .map(|(attack, verdict)| format!("{}: {verdict}", attack.name))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

#[test]
fn our_target_takes_what_hosts_in_use_send_and_no_more() {
    for attack in scripts(&victim()) {
        let verdict = play_on(config(), &attack, usize::MAX);
        let class = if TOLERATED.contains(&attack.name) { VerdictClass::Allowed } else { VerdictClass::Sound };
        assert_eq!(verdict.class(), class, "{}: {verdict}", attack.name);
    }
}

#[test]
fn scripts_have_names_of_their_own() {
    let mut names: Vec<&str> = scripts(&victim()).iter().map(|attack| attack.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')));
}

fn legal(expectation: Expectation) -> Attack {
    let entry = Sqe { opcode: 0x18, id: 7.into(), ..Sqe::default() };
    let calls = [Call::ConnectAdmin, Call::Enable].map(|call| Step::Call(0, call));
    let mut steps = vec![Step::Open(0), Step::Hello(0, Digests::default())];
    steps.extend(calls);
    steps.push(Step::Entry(0, Box::new(entry), Vec::new()));
    steps.push(Step::Expect(0, expectation));
    attack("legal", steps)
}

const RULE: &Rule = &Rule { source: "nowhere", text: "nothing" };

fn attack(name: &'static str, steps: Vec<Step>) -> Attack {
    Attack { name, about: "", rule: RULE, leeway: Vec::new(), barred: None, steps }
}

/// What the suite says of targets that are not sound: here ours, of which the wrong thing is
/// expected.
#[test]
fn a_target_that_takes_what_it_must_not_or_waits_or_refuses_is_told_apart() {
    assert_eq!(play(&legal(Expectation::Succeeds(7)), 100), Verdict::Refused);
    assert!(matches!(play(&legal(Expectation::Refuses(7)), 100), Verdict::Accepted(_)));
    assert!(matches!(play(&legal(Expectation::Terminates(&[])), 100), Verdict::Accepted(_)));
    assert!(matches!(play(&legal(Expectation::Answers(8)), 100), Verdict::Hung(_)));
    let mut ending = legal(Expectation::Answers(7));
    ending.steps.insert(4, Step::Send(0, vec![0xff; 8]));
    assert!(matches!(play(&ending, 100), Verdict::RefusedWrongly(_)));
}

#[test]
fn a_target_that_answers_twice_or_is_gone_at_the_end_is_told_apart() {
    let now = Time::secs(1);
    let silent = attack("nothing", Vec::new());
    let mut player = Player::new(now, &silent, victim(), Span::secs(2));
    assert_eq!(player.next_action(), Some(Action::Open(LINKS - 1)));
    player.closed(now, LINKS - 1);
    assert!(matches!(player.verdict(), Some(Verdict::Died(_))));
    let waits = attack("waits", vec![Step::Open(0), Step::Expect(0, Expectation::Answers(7))]);
    let mut player = Player::new(now, &waits, victim(), Span::secs(2));
    player.opened(now, 0);
    let response = Header::Response(Cqe { result: 0, sq_head: 0, sq_id: 0, id: 9, status: Status::SUCCESS });
    let initialize = InitializeResponse { alignment: 0, digests: Digests::default(), host_data_max: 4096 };
    let mut said = Vec::new();
    Framing::INITIAL.write(&Header::InitializeResponse(initialize), &[], &mut said);
    Framing::INITIAL.write(&response, &[], &mut said);
    player.receive(now, 0, &said);
    assert_eq!(player.verdict(), None);
    player.receive(now, 0, &said[128..]);
    // The ordinary host has still to come; where it fails the target has died, and the report says
    // of what.
    assert_eq!(player.verdict(), None);
    player.closed(now, LINKS - 1);
    let before = "no connection; before that: accepted wrongly: command 0x9 was completed twice";
    assert_eq!(player.verdict(), Some(&Verdict::Died(before.into())));
}

#[test]
fn what_a_specification_allows_is_no_fault() {
    let leeway = |kind| vec![Leeway { kind, why: "it may" }];
    for (kind, expectation) in [
        (VerdictKind::Accepted, Expectation::Refuses(7)),
        (VerdictKind::Hung, Expectation::Answers(8)),
        (VerdictKind::Accepted, Expectation::Terminates(&[])),
    ] {
        let strict = legal(expectation);
        assert_eq!(play(&strict, 100).class(), VerdictClass::Fault, "{expectation:?}");
        let lenient = Attack { leeway: leeway(kind), ..strict };
        let verdict = play(&lenient, 100);
        assert!(matches!(&verdict, Verdict::Allowed(why) if why.starts_with("it may (")), "{verdict}");
    }
    let barred = Attack { barred: Some("no room"), ..legal(Expectation::Refuses(7)) };
    assert_eq!(play(&barred, 100), Verdict::NotApplicable("no room".into()));
}

/// Linux's nvmet asks by R2T only for what does not fit into a capsule, and SPDK's capsules are of
/// 4 KiB: ordinary writes of scripts are larger.
#[test]
fn writes_that_have_to_be_asked_for_do_not_fit_into_a_capsule() {
    for in_capsule_bytes in [0, 4096, 8192, 16 << 10, 64 << 10] {
        let capacity = Capacity { in_capsule_bytes, transfer_bytes_max: None, ..victim().capacity };
        let asked: Vec<Attack> = scripts(&Victim { capacity, ..victim() });
        let asked: Vec<&Attack> = asked
            .iter()
            .filter(|attack| attack.steps.iter().any(|step| matches!(step, Step::AwaitReady(..))))
            .collect();
        assert!(asked.len() > 15);
        for attack in asked {
            assert_eq!(attack.barred, None, "{}", attack.name);
            let length = attack.steps.iter().find_map(|step| match step {
                Step::Entry(1, entry, _) => Some(u32::from_le_bytes(entry.data[8..12].try_into().unwrap())),
                _ => None,
            });
            assert!(length > Some(in_capsule_bytes), "{}: {length:?} bytes", attack.name);
        }
    }
    let small = Capacity { in_capsule_bytes: 8192, transfer_bytes_max: Some(8192), ..victim().capacity };
    let barred = scripts(&Victim { capacity: small, ..victim() });
    let barred = barred.iter().find(|attack| attack.name == "data-twice").unwrap();
    assert!(barred.barred.is_some(), "no write is longer than a capsule");
}

#[test]
fn a_slow_target_has_fifty_times_its_round_trip() {
    assert_eq!(step_timeout(Span::us(80)), Span::secs(3));
    assert_eq!(step_timeout(Span::ms(200)), Span::secs(10));
    assert_eq!(step_timeout(Span::secs(9)), Span::secs(60));
}

#[test]
fn every_attack_says_what_it_sends_and_what_is_demanded() {
    for attack in scripts(&victim()) {
        assert!(attack.rule.source.starts_with("NV"), "{}", attack.name);
        assert!(attack.rule.text.len() > 40 && !attack.sends().is_empty(), "{}", attack.name);
        assert_eq!(attack.about.contains("CVE-"), !attack.origins().is_empty(), "{}", attack.name);
    }
}

#[test]
fn a_target_without_digests_is_not_blamed_for_them() {
    let now = Time::secs(1);
    let digests = Digests { header: true, data: true };
    let mut player =
        Player::new(now, &attack("digests", vec![Step::Open(0), Step::Hello(0, digests)]), victim(), Span::secs(2));
    player.opened(now, 0);
    let initialize = InitializeResponse { alignment: 0, digests: Digests::default(), host_data_max: 4096 };
    let mut said = Vec::new();
    Framing::INITIAL.write(&Header::InitializeResponse(initialize), &[], &mut said);
    player.receive(now, 0, &said);
    // The ordinary host at the end.
    player.closed(now, LINKS - 1);
    assert!(matches!(player.verdict(), Some(Verdict::Died(what)) if what.contains("not applicable")));
}
