//! DH-HMAC-CHAP: who proves itself is let in, everyone else waits outside.

mod common;

use base::Span;
use common::raw::Raw;
use common::*;
use nvme::auth::*;
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
        exponent_cost_per_second: 20,
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
fn a_host_without_a_secret_is_not_asked() {
    let mut world = guarded();
    world.join(initiator(1), PORT);
    assert!(world.is_ready(0));
}
