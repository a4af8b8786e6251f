//! PDUs that are wrong in themselves, or come when they may not.

use super::{BOTH, PLAIN, admin, attack, capsule, greeted, initialize, patched, pdu, queues, under};
use crate::attack::VerdictKind::{Accepted, Hung};
use crate::attack::{Attack, Damage, Expectation, Step, rules};
use crate::identify::IDENTIFY_BYTES;
use crate::pdu::{FatalStatus, HEADER_BYTES_MAX, Header, HostData, Termination};
use crate::{Admin, Body, Command, Identify, Sgl, Sqe};

const FIELD: &[FatalStatus] = &[FatalStatus::InvalidField];
/// What names a wrong length, or a wrong type: specifications leave the choice between two.
const FIELD_OR_SEQUENCE: &[FatalStatus] = &[FatalStatus::InvalidField, FatalStatus::Sequence];
const ANY: &[FatalStatus] = &[];

pub(super) fn scripts() -> Vec<Attack> {
    let mut all = under(rules::INITIALIZATION, initialization());
    all.extend(types());
    all.extend(under(rules::HEADER, lengths()));
    all.extend(under(rules::HEADER_DIGEST, digests()));
    all.extend(splits());
    all
}

fn identify(id: u16) -> Sqe {
    let asked = Identify { structure: 1, controller: 0, specific_id: 0, command_set: 0 };
    let data = Sgl::Transport { length: IDENTIFY_BYTES as u32 };
    Command { data, ..Command::new(id, Body::Admin(Admin::Identify(asked))) }.encode()
}

fn data_from_host() -> Vec<u8> {
    let data = HostData { command: 1, tag: 0, offset: 0, length: 512, is_last: true };
    pdu(&Header::HostData(data), &[0; 512])
}

/// NVM Express Base 2.0, 1.5 (reserved): what a receiver may do with bits that mean nothing.
const RESERVED: &str = "a receiver need not check reserved bits (Base 2.0, 1.5)";

/// Opens a connection, sends bytes, waits for its end.
fn opening(name: &'static str, about: &'static str, bytes: Vec<u8>, allowed: &'static [FatalStatus]) -> Attack {
    attack(name, about, [vec![Step::Open(0), Step::Send(0, bytes), Step::Expect(0, Expectation::Terminates(allowed))]])
}

/// As above, on an admin queue.
fn at_work(name: &'static str, about: &'static str, bytes: Vec<u8>, allowed: &'static [FatalStatus]) -> Attack {
    let end = vec![Step::Send(0, bytes), Step::Expect(0, Expectation::Terminates(allowed))];
    attack(name, about, [admin(0, PLAIN), end])
}

fn initialization() -> Vec<Attack> {
    const UNSUPPORTED: &[FatalStatus] = &[FatalStatus::Unsupported, FatalStatus::InvalidField];
    let twice = [initialize(0), initialize(0)].concat();
    let with_type = |kind: u8| patched(initialize(0), 0, &[kind]);
    vec![
        opening(
            "command-before-initialization",
            "a capsule as the first PDU",
            capsule(identify(1), &[]),
            FIELD_OR_SEQUENCE,
        ),
        opening("data-before-initialization", "H2CData as the first PDU", data_from_host(), FIELD_OR_SEQUENCE),
        opening("initialization-twice-at-once", "two ICReq in one segment (CVE-2026-89969)", twice, FIELD_OR_SEQUENCE),
        at_work("initialization-again", "ICReq on a queue at work (CVE-2026-89969)", initialize(0), FIELD_OR_SEQUENCE),
        opening("initialization-of-a-later-version", "PFV 1", patched(initialize(0), 8, &[1, 0]), UNSUPPORTED),
        opening("alignment-beyond-its-field", "HPDA 255", patched(initialize(0), 10, &[255]), FIELD),
        opening("digests-that-do-not-exist", "DGST FFh", patched(initialize(0), 11, &[255]), UNSUPPORTED)
            .allows(Accepted, RESERVED),
        opening("initialization-of-no-length", "PLEN 0 in ICReq", patched(initialize(0), 4, &[0; 4]), FIELD),
        opening("initialization-of-4-gib", "PLEN FFFFFFFFh in ICReq", patched(initialize(0), 4, &[255; 4]), FIELD),
        opening("initialization-with-a-short-header", "HLEN 8 in ICReq", patched(initialize(0), 2, &[8]), FIELD),
        opening("response-as-first-pdu", "ICResp from the host", with_type(1), FIELD_OR_SEQUENCE),
        opening("type-that-does-not-exist", "PDU type FFh", with_type(255), FIELD_OR_SEQUENCE),
        opening("noise", "128 bytes of AAh", vec![0xaa; HEADER_BYTES_MAX], ANY),
    ]
}

fn types() -> Vec<Attack> {
    let with_type = |kind: u8| patched(data_from_host(), 0, &[kind]);
    let end = Termination { status: FatalStatus::Sequence, information: 0, data_length: 0 };
    let termination = pdu(&Header::HostTermination(end), &[]);
    let behind = [termination.clone(), capsule(identify(1), &[])].concat();
    vec![
        at_work("response-from-the-host", "CapsuleResp to the controller", with_type(5), FIELD_OR_SEQUENCE)
            .under(rules::SEQUENCE),
        at_work("controller-data-from-the-host", "C2HData to the controller", with_type(7), FIELD_OR_SEQUENCE)
            .under(rules::SEQUENCE),
        at_work("r2t-from-the-host", "R2T to the controller", with_type(9), FIELD_OR_SEQUENCE).under(rules::SEQUENCE),
        at_work("reserved-type", "PDU type 08h", with_type(8), FIELD_OR_SEQUENCE).under(rules::SEQUENCE),
        at_work("termination-and-more", "a command behind H2CTermReq", behind, ANY).under(rules::TERMINATION),
        at_work("termination-of-no-kind", "FES 0", patched(termination, 8, &[0, 0]), ANY).under(rules::TERMINATION),
        attack(
            "data-before-connect",
            "H2CData before Connect (CVE-2023-6536)",
            [greeted(0, PLAIN), vec![Step::Send(0, data_from_host()), Step::Expect(0, Expectation::Terminates(ANY))]],
        )
        .under(rules::TRANSFER),
    ]
}

fn lengths() -> Vec<Attack> {
    let good = || capsule(identify(1), &[]);
    let with = |at: usize, patch: &[u8]| patched(good(), at, patch);
    let about = "HLEN, PDO and PLEN that do not fit each other";
    let data_with = |at: usize, patch: &[u8]| patched(data_from_host(), at, patch);
    const MORE: &str = "PLEN announces bytes that have not come yet";
    vec![
        at_work("header-length-0", about, with(2, &[0]), FIELD),
        at_work("header-length-71", about, with(2, &[71]), FIELD),
        at_work("header-length-255", about, with(2, &[255]), FIELD),
        at_work("length-0", about, with(4, &[0; 4]), FIELD),
        at_work("length-below-the-header", about, with(4, &[71, 0, 0, 0]), FIELD),
        at_work("length-of-4-gib", about, with(4, &[255; 4]), FIELD).allows(Hung, MORE),
        at_work("length-one-byte-too-long", about, with(4, &[73, 0, 0, 0]), FIELD).allows(Hung, MORE),
        at_work("data-offset-0", about, data_with(3, &[0]), ANY),
        at_work("data-offset-inside-the-header", about, data_with(3, &[8]), FIELD),
        at_work("data-offset-beyond-the-pdu", about, data_with(3, &[252]), ANY),
        at_work("data-offset-unaligned", about, data_with(3, &[25]), FIELD),
        at_work("data-length-unlike-the-pdu", "DATAL that PLEN does not carry", data_with(16, &[0, 1, 0, 0]), ANY),
        at_work("data-length-0", "H2CData without data", patched(pdu(&empty_data(), &[]), 3, &[24]), ANY),
        at_work("capsule-of-16-mib", "in-capsule data far beyond IOCCSZ", with(4, &[0, 0, 0, 1]), ANY)
            .allows(Hung, MORE),
    ]
}

fn empty_data() -> Header {
    Header::HostData(HostData { command: 1, tag: 0, offset: 0, length: 0, is_last: true })
}

fn digests() -> Vec<Attack> {
    let entry = Box::new(identify(1));
    let wrong = vec![
        Step::Damaged(0, entry.clone(), Vec::new(), Damage::Header),
        Step::Expect(0, Expectation::Terminates(&[FatalStatus::HeaderDigest])),
    ];
    // Header digests agreed on, and capsules that say they have none: two, so that a target which
    // reads on for a digest finds bytes.
    let without = vec![
        Step::Send(0, [capsule(*entry, &[]), capsule(identify(2), &[])].concat()),
        Step::Expect(0, Expectation::Terminates(ANY)),
    ];
    vec![
        attack("header-digest-wrong", "a header digest that does not fit", [admin(0, BOTH), wrong]),
        attack("header-digest-missing", "no digest where one was agreed on", [admin(0, BOTH), without]),
    ]
}

fn splits() -> Vec<Attack> {
    const IDS: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let segment: Vec<u8> = IDS.iter().flat_map(|id| capsule(identify(*id), &[])).collect();
    let answers = || IDS.iter().map(|id| Step::Expect(0, Expectation::Succeeds(*id))).collect::<Vec<_>>();
    let half = capsule(identify(1), &[])[..40].to_vec();
    vec![
        attack(
            "byte-by-byte",
            "legal commands, each byte a segment of its own",
            [admin(0, PLAIN), vec![Step::Trickle(0, segment.clone())], answers()],
        ),
        attack(
            "many-pdus-in-a-segment",
            "legal commands, all in one segment",
            [admin(0, PLAIN), vec![Step::Send(0, segment)], answers()],
        ),
        attack(
            "half-a-pdu",
            "a connection that is lost inside a capsule",
            [queues(PLAIN), vec![Step::Send(1, half), Step::Drop(1), Step::Drop(0)]],
        )
        .under(rules::LOSS),
    ]
}
