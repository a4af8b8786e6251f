//! DH-HMAC-CHAP: who proves itself is let in, everyone else waits outside.

use crate::common::raw::Raw;
use crate::common::*;
use base::Span;
use nvme::auth::*;
use nvme::initiator::*;
use nvme::log::TransportSecurity;
use nvme::target::*;
use nvme::*;
use std::collections::BTreeMap;

const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

fn guarded() -> World {
    let secret = Secret::parse(SECRET).unwrap();
    let secrets = HostSecrets { host: secret.clone(), controller: Some(secret) };
    let hosts = BTreeMap::from([(host(9), secrets)]);
    let mut config = config();
    config.subsystems[0].authentication = Some(taking(hosts));
    World::new(config)
}

fn taking(hosts: BTreeMap<Nqn, HostSecrets>) -> AuthenticationConfig {
    AuthenticationConfig {
        entropy: Entropy::new([3; 32]),
        hosts,
        hashes: HashId::ALL.to_vec(),
        groups: GroupId::ALL.to_vec(),
        exponent_cost_per_second: 200,
    }
}

fn connected(world: &mut World) -> Raw {
    let mut raw = Raw::open(world);
    raw.greet(world);
    let completion = raw.connect(world, 0, 31, 0xffff);
    assert_eq!(ConnectReply::decode(completion.result).authentication, 2, "authentication is asked for");
    raw
}

fn say(raw: &mut Raw, world: &mut World, id: u16, message: &Message) -> Status {
    let bytes = message.encode();
    let length = bytes.len() as u32;
    let body = Fabrics::AuthenticationSend { protocol: PROTOCOL, specific: SPECIFIC, length };
    let command = Command { data: Sgl::InCapsule { offset: 0, length }, ..Command::new(id, Body::Fabrics(body)) };
    raw.command(world, command, &bytes);
    raw.completion(world, id).unwrap().status
}

fn hear(raw: &mut Raw, world: &mut World, id: u16) -> Option<Message> {
    let length = 1024;
    let body = Fabrics::AuthenticationReceive { protocol: PROTOCOL, specific: SPECIFIC, length };
    let command = Command { data: Sgl::Transport { length }, ..Command::new(id, Body::Fabrics(body)) };
    raw.pdus.clear();
    raw.command(world, command, &[]);
    let is_heard = raw.completion(world, id).unwrap().status.is_success();
    is_heard.then(|| Message::decode(&raw.pdus[0].data).unwrap())
}

fn negotiate() -> Message {
    let hashes = vec![HashId::Sha384, HashId::Sha256];
    Message::Negotiate { transaction: 5, wants_channel: false, hashes, groups: vec![GroupId::Null] }
}

fn question(challenge: &[u8], sequence: u32) -> (Vec<u8>, u32) {
    (challenge.to_vec(), sequence)
}

fn answer(speaker: Speaker, (challenge, sequence): &(Vec<u8>, u32)) -> Vec<u8> {
    let (host, subsystem) = (host(9), subsystem());
    let asked = Question {
        hash: HashId::Sha384,
        challenge,
        sequence: *sequence,
        transaction: 5,
        host: host.as_str(),
        subsystem: subsystem.as_str(),
    };
    respond(&Secret::parse(SECRET).unwrap(), speaker, &asked)
}

fn challenged(raw: &mut Raw, world: &mut World) -> (Vec<u8>, u32) {
    assert!(say(raw, world, 10, &negotiate()).is_success());
    match hear(raw, world, 11) {
        Some(Message::Challenge { transaction: 5, hash: HashId::Sha384, sequence, challenge, .. }) => {
            question(&challenge, sequence)
        }
        other => panic!("{other:?}"),
    }
}

/// Whether properties may be read, which every host does next.
fn is_let_in(raw: &mut Raw, world: &mut World) -> bool {
    let get = Body::Fabrics(Fabrics::PropertyGet { offset: 0, size: PropertySize::Eight });
    raw.command(world, Command::new(90, get), &[]);
    let status = raw.completion(world, 90).unwrap().status;
    assert!(status.is_success() || status == Status::AUTHENTICATION_REQUIRED.without_retry());
    status.is_success()
}

/// The keep-alive timeout is a second, and each message of the host takes longer.
#[test]
fn a_slow_authentication_is_not_ended_by_the_keep_alive_timer() {
    let mut world = guarded();
    let mut raw = Raw::open(&mut world);
    raw.greet(&mut world);
    let data = ConnectData { host_id: HostId([9; 16]), controller: 0xffff, subsystem: subsystem(), host: host(9) };
    assert!(raw.connect_as(&mut world, (0, 31, 1000), &data.encode()).status.is_success());
    let wait = |world: &mut World| {
        world.now += Span::ms(1500);
        world.target.on_wakeup(world.now);
        assert_eq!(world.target.gauges().controllers, 1);
    };
    wait(&mut world);
    let asked = challenged(&mut raw, &mut world);
    wait(&mut world);
    let response = answer(Speaker::Host, &asked);
    let reply = Message::Reply { transaction: 5, response, challenge: None, public: Vec::new() };
    assert!(say(&mut raw, &mut world, 12, &reply).is_success());
    wait(&mut world);
    assert!(matches!(hear(&mut raw, &mut world, 13), Some(Message::Success1 { .. })));
    assert!(is_let_in(&mut raw, &mut world));
}

#[test]
fn a_host_that_knows_the_secret_is_let_in_and_not_before() {
    let mut world = guarded();
    let mut raw = connected(&mut world);
    let asked = challenged(&mut raw, &mut world);
    let reply =
        Message::Reply { transaction: 5, response: answer(Speaker::Host, &asked), challenge: None, public: Vec::new() };
    assert!(say(&mut raw, &mut world, 12, &reply).is_success());
    let end = hear(&mut raw, &mut world, 13);
    assert_eq!(end, Some(Message::Success1 { transaction: 5, hash: HashId::Sha384, response: None }));
    assert!(is_let_in(&mut raw, &mut world));
    world.now += Span::secs(20);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(raw.connection), None);
}

#[test]
fn nothing_else_is_carried_out_before() {
    let mut world = guarded();
    let mut raw = connected(&mut world);
    assert!(!is_let_in(&mut raw, &mut world));
    assert_eq!(hear(&mut raw, &mut world, 20), None, "there is nothing to fetch");
}

#[test]
fn a_host_that_asks_is_told_who_we_are() {
    let mut world = guarded();
    let mut raw = connected(&mut world);
    let asked = challenged(&mut raw, &mut world);
    let ours = question(&[0x77; 48], 9);
    let response = answer(Speaker::Host, &asked);
    let reply = Message::Reply { transaction: 5, response, challenge: Some(ours.clone()), public: Vec::new() };
    assert!(say(&mut raw, &mut world, 12, &reply).is_success());
    let Some(Message::Success1 { response, .. }) = hear(&mut raw, &mut world, 13) else { panic!("no success") };
    assert_eq!(response, Some(answer(Speaker::Controller, &ours)));
    assert!(say(&mut raw, &mut world, 14, &Message::Success2 { transaction: 5 }).is_success());
    assert!(is_let_in(&mut raw, &mut world));
}

#[test]
fn a_wrong_response_a_reflected_challenge_and_a_strange_message_are_told_and_end_the_connection() {
    for case in 0..3 {
        let mut world = guarded();
        let mut raw = connected(&mut world);
        let asked = challenged(&mut raw, &mut world);
        let response = answer(Speaker::Host, &asked);
        let said = match case {
            0 => Message::Reply { transaction: 5, response: vec![0; 48], challenge: None, public: Vec::new() },
            1 => Message::Reply { transaction: 5, response, challenge: Some(asked), public: Vec::new() },
            _ => Message::Success2 { transaction: 5 },
        };
        assert!(say(&mut raw, &mut world, 12, &said).is_success());
        let expected = if case == 2 { FailureReason::IncorrectMessage } else { FailureReason::Failed };
        let told = hear(&mut raw, &mut world, 13);
        assert_eq!(told, Some(Message::Failure { transaction: 5, is_from_controller: true, reason: expected }));
        assert_eq!(world.target.should_close(raw.connection), Some(CloseReason::Authentication));
        assert_eq!(world.target.gauges().controllers, 0);
    }
}

#[test]
fn challenges_are_never_the_same_and_others_with_other_entropy() {
    let mut world = guarded();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut raw = connected(&mut world);
        seen.push(challenged(&mut raw, &mut world).0);
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_host_that_does_not_authenticate_in_time_is_closed() {
    let mut world = guarded();
    let raw = connected(&mut world);
    world.now += Span::secs(5);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(raw.connection), Some(CloseReason::Authentication));
}

#[test]
fn a_host_that_has_not_authenticated_makes_room_with_its_controller_and_one_that_has_does_not() {
    let mut world = guarded();
    let mut proven = connected(&mut world);
    let response = answer(Speaker::Host, &challenged(&mut proven, &mut world));
    let reply = Message::Reply { transaction: 5, response, challenge: None, public: Vec::new() };
    assert!(say(&mut proven, &mut world, 12, &reply).is_success());
    assert!(matches!(hear(&mut proven, &mut world, 13), Some(Message::Success1 { .. })));
    assert!(is_let_in(&mut proven, &mut world));
    let unproven = connected(&mut world);
    (0..6).for_each(|_| _ = Raw::open(&mut world));
    assert_eq!((world.target.gauges().controllers, world.target.gauges().connections), (2, 8));
    Raw::open(&mut world);
    assert_eq!(world.target.should_close(unproven.connection), Some(CloseReason::Displaced));
    assert_eq!(world.target.gauges().controllers, 1);
    (0..20).for_each(|_| _ = Raw::open(&mut world));
    assert_eq!(world.target.should_close(proven.connection), None);
    assert_eq!(world.target.gauges().controllers, 1);
}

#[test]
fn a_host_without_a_secret_is_not_asked() {
    let mut world = guarded();
    world.join(initiator(1), PORT);
    assert!(world.is_ready(0));
}

const OTHER: &str = "DHHC-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:";

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

fn credentials(host: &str, controller: Option<&str>) -> Credentials {
    Credentials {
        host: secret(host),
        controller: controller.map(secret),
        entropy: Entropy::new([9; 32]),
        hashes: vec![HashId::Sha512, HashId::Sha256],
        groups: GroupId::ALL.to_vec(),
    }
}

fn joined(world: &mut World, credentials: Credentials) -> usize {
    world.join_as(Initiator::new(initiator(9)).with_credentials(credentials), PORT)
}

fn notices(world: &mut World) -> Vec<String> {
    std::iter::from_fn(|| world.target.next_notice()).map(|notice| notice.to_string()).collect()
}

fn failure(world: &World, guest: usize) -> String {
    let failed = world.guests[guest].events.iter().find_map(|event| match event {
        HostEvent::Failed(error) => Some(error.to_string()),
        _ => None,
    });
    failed.expect("the host has failed")
}

#[test]
fn a_host_and_a_target_that_know_the_secrets_get_on_in_every_group_and_hash() {
    for group in GroupId::ALL {
        for hash in HashId::ALL {
            let mut world = guarded();
            let only = Credentials { hashes: vec![*hash], groups: vec![*group], ..credentials(SECRET, Some(SECRET)) };
            let guest = joined(&mut world, only);
            assert!(world.is_ready(guest), "{} with {}", group.name(), hash.name());
        }
    }
}

#[test]
fn a_wrong_secret_is_refused_on_both_sides_with_the_reason() {
    let mut world = guarded();
    let guest = joined(&mut world, credentials(OTHER, None));
    assert!(failure(&world, guest).contains("the secrets differ"), "{}", failure(&world, guest));
    let told = notices(&mut world);
    let expected = format!("host {} did not authenticate to {}: the response is wrong", host(9), subsystem());
    assert!(told.iter().any(|line| line.starts_with(&expected)), "{told:?}");
    assert_eq!(world.target.counters().authentications_failed, 1);
    assert_eq!(world.target.gauges().controllers, 0);
}

#[test]
fn a_target_with_the_wrong_secret_is_refused_by_the_host() {
    let mut world = guarded();
    let guest = joined(&mut world, credentials(SECRET, Some(OTHER)));
    assert!(failure(&world, guest).contains("the target has not the secret"));
}

#[test]
fn a_target_that_does_not_ask_is_refused_by_a_host_that_wants_to_be_sure() {
    let mut world = World::new(config());
    let guest = joined(&mut world, credentials(SECRET, Some(SECRET)));
    assert!(failure(&world, guest).contains("does not prove itself"));
    let guest = joined(&mut world, credentials(SECRET, None));
    assert!(world.is_ready(guest), "a host that only has a secret goes on as Linux does");
}

#[test]
fn a_host_without_a_secret_is_told_that_it_needs_one() {
    let mut world = guarded();
    let guest = world.join(initiator(9), PORT);
    assert!(failure(&world, guest).contains("the target asks for a secret"));
}

#[test]
fn a_target_takes_no_group_and_hash_but_its_own() {
    for (groups, hashes, reason) in [
        (vec![GroupId::Ffdhe2048], HashId::ALL.to_vec(), "no Diffie-Hellman group in common"),
        (GroupId::ALL.to_vec(), vec![HashId::Sha384], "no hash function in common"),
    ] {
        let mut config = config();
        let secrets = HostSecrets { host: secret(SECRET), controller: None };
        let strict = AuthenticationConfig { groups, hashes, ..taking(BTreeMap::from([(host(9), secrets)])) };
        config.subsystems[0].authentication = Some(strict);
        let mut world = World::new(config);
        let guest = joined(&mut world, Credentials { groups: vec![GroupId::Null], ..credentials(SECRET, None) });
        assert!(failure(&world, guest).contains(reason), "{}", failure(&world, guest));
    }
}

#[test]
fn strangers_cannot_have_the_target_exponentiate_for_ever() {
    let mut world = guarded();
    let secrets = HostSecrets { host: secret(SECRET), controller: None };
    let few = AuthenticationConfig { exponent_cost_per_second: 20, ..taking(BTreeMap::from([(host(9), secrets)])) };
    world.target.set_authentication(world.now, subsystem(), Some(few)).unwrap();
    let offer = Message::Negotiate {
        transaction: 5,
        wants_channel: false,
        hashes: HashId::ALL.to_vec(),
        groups: vec![GroupId::Ffdhe4096],
    };
    let statuses: Vec<Status> = (0..3)
        .map(|_| {
            let mut raw = connected(&mut world);
            say(&mut raw, &mut world, 10, &offer)
        })
        .collect();
    let busy = Status::INTERRUPTED;
    assert_eq!(statuses, [Status::SUCCESS, Status::SUCCESS, busy], "20 a second, 12 an exchange");
    world.now += Span::secs(2);
    let mut raw = connected(&mut world);
    assert!(say(&mut raw, &mut world, 10, &offer).is_success());
}

fn proven(world: &mut World) -> Raw {
    let mut raw = connected(world);
    prove(&mut raw, world, 10);
    assert!(is_let_in(&mut raw, world));
    raw
}

fn prove(raw: &mut Raw, world: &mut World, id: u16) {
    let asked = challenged(raw, world);
    let response = answer(Speaker::Host, &asked);
    let reply = Message::Reply { transaction: 5, response, challenge: None, public: Vec::new() };
    assert!(say(raw, world, id + 2, &reply).is_success());
    assert!(matches!(hear(raw, world, id + 3), Some(Message::Success1 { .. })));
}

#[test]
fn a_host_may_prove_itself_anew_and_is_served_meanwhile() {
    let mut world = guarded();
    let mut raw = proven(&mut world);
    assert!(say(&mut raw, &mut world, 30, &negotiate()).is_success());
    assert!(is_let_in(&mut raw, &mut world));
    let challenge = hear(&mut raw, &mut world, 31);
    assert!(matches!(challenge, Some(Message::Challenge { .. })));
    let wrong = Message::Reply { transaction: 5, response: vec![0; 48], challenge: None, public: Vec::new() };
    assert!(say(&mut raw, &mut world, 32, &wrong).is_success());
    assert!(!is_let_in(&mut raw, &mut world), "what it proved before does not count any more");
    world.now += Span::secs(5);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(raw.connection), Some(CloseReason::Authentication));

    let mut again = proven(&mut world);
    prove(&mut again, &mut world, 40);
    assert!(is_let_in(&mut again, &mut world));
}

#[test]
fn another_secret_ends_who_came_in_by_the_old_one_and_the_same_secret_nobody() {
    let mut world = guarded();
    let mut raw = proven(&mut world);
    let taken = |text: &str, controller| {
        let secrets = HostSecrets { host: secret(text), controller };
        Some(taking(BTreeMap::from([
            (host(9), secrets),
            (host(8), HostSecrets { host: secret(OTHER), controller: None }),
        ])))
    };
    world.target.set_authentication(world.now, subsystem(), taken(SECRET, Some(secret(SECRET)))).unwrap();
    assert!(is_let_in(&mut raw, &mut world), "it is the secret of before");
    world.target.set_authentication(world.now, subsystem(), taken(OTHER, None)).unwrap();
    assert_eq!(world.target.should_close(raw.connection), Some(CloseReason::Replaced));
    let guest = joined(&mut world, credentials(SECRET, None));
    assert!(failure(&world, guest).contains("the secrets differ"));
    let guest = joined(&mut world, credentials(OTHER, None));
    assert!(world.is_ready(guest));
}

#[test]
fn a_host_that_came_in_without_a_secret_and_now_has_one_has_to_come_again() {
    let mut world = World::connected(config(), initiator(9));
    let secrets = HostSecrets { host: secret(SECRET), controller: None };
    let config = taking(BTreeMap::from([(host(9), secrets)]));
    world.target.set_authentication(world.now, subsystem(), Some(config)).unwrap();
    assert_eq!(world.target.gauges().controllers, 0);
}

#[test]
fn a_secured_port_takes_only_whom_its_key_names() {
    let mut config = config();
    config.ports[0].security = TransportSecurity::Tls13;
    let mut world = World::new(config);
    let (mine, ours) = (host(9), subsystem());
    let other = Nqn::new("nqn.2014-08.org.rackweave:other").unwrap();
    for (channel, is_in) in [
        (None, false),
        (Some(Channel { host: host(8), subsystem: ours }), false),
        (Some(Channel { host: mine, subsystem: other }), false),
        (Some(Channel { host: mine, subsystem: ours }), true),
    ] {
        let mut raw = Raw::open(&mut world);
        if let Some(channel) = channel {
            world.target.secured(world.now, raw.connection, channel);
        }
        raw.greet(&mut world);
        let status = raw.connect(&mut world, 0, 31, 0xffff).status;
        let refused = Status::CONNECT_INVALID_HOST.without_retry();
        assert_eq!(status, if is_in { Status::SUCCESS } else { refused }, "{channel:?}");
    }
}
