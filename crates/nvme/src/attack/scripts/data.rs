//! Transfers: data that nobody asked for, outside of what was asked for, damaged, or far too many.

use super::{BOTH, PLAIN, asked, asked_bytes, attack, open_write, queues, read, under, write};
use crate::attack::VerdictKind::{Accepted, Hung};
use crate::attack::{Attack, Damage, DataChange, Expectation, Step, Victim, rules};
use crate::pdu::FatalStatus;
use crate::{Sgl, Sqe};

const ANY: &[FatalStatus] = &[];
const OUT_OF_RANGE: &[FatalStatus] = &[FatalStatus::OutOfRange, FatalStatus::InvalidField];
/// The one write of most scripts.
const ID: u16 = 0x0101;

pub(super) fn scripts(victim: &Victim) -> Vec<Attack> {
    let mut all = under(rules::TRANSFER, ranges(victim));
    all.extend(under(rules::TRANSFER, tags(victim)));
    all.extend(strangers(victim));
    all.extend(under(rules::DATA_DIGEST, digests(victim)));
    all.extend(under(rules::DESCRIPTOR, lengths(victim)));
    all.extend(under(rules::IN_CAPSULE, places(victim)));
    all.extend(under(rules::DESCRIPTOR, kinds(victim)));
    all
}

/// A write is asked for its data and gets these.
fn answering(
    victim: &Victim,
    name: &'static str,
    about: &'static str,
    change: DataChange,
    allowed: &'static [FatalStatus],
) -> Attack {
    let end = vec![Step::Data(1, change), Step::Expect(1, Expectation::Terminates(allowed))];
    asked(victim, attack(name, about, [queues(PLAIN), open_write(victim, ID), end]))
}

fn ranges(victim: &Victim) -> Vec<Attack> {
    const COUNTED: &str = "no rule makes a controller check LAST: the bytes of an R2T are counted";
    let change = DataChange::default;
    let whole = asked_bytes(victim);
    let about = "H2CData outside of what the R2T asked for (CVE-2023-6356, CVE-2026-22998)";
    let far = DataChange { offset: 0xffff_fe00, length: Some(512), ..change() };
    let behind = DataChange { offset: whole, length: Some(512), ..change() };
    let skipped = DataChange { offset: 512, length: Some(512), ..change() };
    let more = DataChange { length: Some(whole + 512), ..change() };
    let claims = |claimed: u32| DataChange { length: Some(512), claimed, ..change() };
    vec![
        answering(victim, "data-offset-that-wraps", about, far, OUT_OF_RANGE),
        answering(victim, "data-behind-the-transfer", about, behind, OUT_OF_RANGE),
        answering(victim, "data-that-skip", about, skipped, OUT_OF_RANGE),
        answering(victim, "more-data-than-asked", about, more, ANY),
        answering(victim, "data-claim-more-than-they-carry", about, claims(512), ANY),
        answering(victim, "data-claim-4-gib", about, claims(0u32.wrapping_sub(513)), ANY),
        answering(victim, "data-claim-nothing", about, claims(0u32.wrapping_sub(512)), ANY),
        answering(
            victim,
            "last-too-early",
            "LAST before the last byte of the R2T",
            DataChange { length: Some(512), flips_last: true, ..change() },
            ANY,
        )
        .allows(Hung, COUNTED),
        answering(
            victim,
            "last-missing",
            "no LAST with the last byte of the R2T",
            DataChange { flips_last: true, ..change() },
            ANY,
        )
        .allows(Accepted, COUNTED),
    ]
}

fn tags(victim: &Victim) -> Vec<Attack> {
    let change = DataChange::default;
    let case = |name, about, change| answering(victim, name, about, change, ANY);
    let again = vec![
        Step::Data(1, change()),
        Step::Expect(1, Expectation::Succeeds(ID)),
        Step::Data(1, change()),
        Step::Expect(1, Expectation::Terminates(ANY)),
    ];
    let unused = "H2CData with an unused TTAG (CVE-2023-6535)";
    let finished = "H2CData with a finished TTAG (CVE-2023-6536)";
    vec![
        case("tag-that-nobody-gave", unused, DataChange { tag: 7, ..change() }),
        case("tag-at-the-end", "TTAG far beyond any table", DataChange { tag: 0x7fff, ..change() }),
        case("data-for-another-command", "CCCID that is not the R2T's", DataChange { command: 1, ..change() })
            .allows(Accepted, "TTAG names the R2T, and no rule makes a controller check CCCID besides"),
        asked(victim, attack("data-twice", finished, [queues(PLAIN), open_write(victim, ID), again])),
    ]
}

fn strangers(victim: &Victim) -> Vec<Attack> {
    const UNSEARCHED: &str =
        "how many commands are searched for the id is the implementation's choice (Base 2.0, 4.2.3.1, 03h)";
    let length = victim.block_bytes;
    let read_entry = Box::new(read(victim, ID, 0, 1, Sgl::Transport { length }));
    let whole = asked_bytes(victim);
    let again = Box::new(write(victim, ID, 0, whole / length, Sgl::Transport { length: whole }));
    let unasked = DataChange { command: ID, ..DataChange::default() };
    let ended = || vec![Step::Data(1, unasked), Step::Expect(1, Expectation::Terminates(ANY))];
    let repeated = vec![Step::Entry(1, again, Vec::new()), Step::Expect(1, Expectation::Refuses(ID))];
    let gone = vec![Step::Drop(1), Step::Drop(0)];
    let reads = "H2CData for a command that reads (CVE-2026-23112)";
    let nobody = "H2CData on a queue without commands (CVE-2026-52989)";
    let lost = "the connection is lost while data are awaited";
    let twice = "a second command with the id of one that is outstanding";
    vec![
        attack("data-for-a-read", reads, [queues(PLAIN), vec![Step::Entry(1, read_entry, Vec::new())], ended()])
            .under(rules::TRANSFER),
        small_by_r2t(victim),
        attack("data-that-nobody-asked-for", nobody, [queues(PLAIN), ended()]).under(rules::TRANSFER),
        asked(victim, attack("reset-with-r2t-open", lost, [queues(PLAIN), open_write(victim, ID), gone]))
            .under(rules::LOSS),
        asked(victim, attack("id-in-use", twice, [queues(PLAIN), open_write(victim, ID), repeated]))
            .under(rules::COMMAND_ID)
            .allows(Hung, UNSEARCHED),
    ]
}

/// No attack: a host need not use capsules, and one that does not must be served. Linux's target
/// (6.1 to 6.12) never asks for data that would fit.
fn small_by_r2t(victim: &Victim) -> Attack {
    let length = victim.block_bytes;
    let entry = Box::new(write(victim, ID, 0, 1, Sgl::Transport { length }));
    let sends = vec![
        Step::Entry(1, entry, Vec::new()),
        Step::MustReady(1, ID),
        Step::Data(1, DataChange::default()),
        Step::Expect(1, Expectation::Succeeds(ID)),
    ];
    attack("small-write-apart", "a legal write of one block whose data are not in the capsule", [queues(PLAIN), sends])
        .under(rules::APART)
}

fn digests(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let small = Box::new(write(victim, ID, 0, 1, Sgl::InCapsule { offset: 0, length }));
    let fails = || Step::Expect(1, Expectation::Fails(ID));
    let about = "a data digest that does not fit: the command fails, once (CVE-2026-64534, CVE-2026-64535)";
    // Behind the failure the queue works on.
    let after = || {
        let next = Box::new(read(victim, ID + 1, 0, 1, Sgl::Transport { length }));
        vec![Step::Entry(1, next, Vec::new()), Step::Expect(1, Expectation::Succeeds(ID + 1))]
    };
    let first = DataChange { length: Some(512), is_damaged: true, ..DataChange::default() };
    let rest =
        DataChange { offset: 512, length: Some(asked_bytes(victim) - 512), flips_last: true, ..DataChange::default() };
    let two = vec![Step::Data(1, first), Step::Data(1, rest)];
    let damaged = |data: Vec<Step>| [queues(BOTH), open_write(victim, ID), data, vec![fails()], after()];
    let whole = DataChange { is_damaged: true, ..DataChange::default() };
    vec![
        attack(
            "data-digest-wrong-in-a-capsule",
            about,
            [queues(BOTH), vec![Step::Damaged(1, small, vec![0x5a; length as usize], Damage::Data), fails()], after()],
        )
        .barred_unless(victim.capacity.in_capsule_bytes >= length, "its capsules hold no block"),
        asked(victim, attack("data-digest-wrong-in-data", about, damaged(vec![Step::Data(1, whole)]))),
        asked(victim, attack("data-digest-wrong-in-the-first-of-two", about, damaged(two))),
    ]
}

/// A command whose descriptor is wrong, on a queue.
fn described(name: &'static str, about: &'static str, entry: Sqe, data: Vec<u8>) -> Attack {
    let sends = vec![Step::Entry(1, Box::new(entry), data), Step::ServeIfAsked(1, ID)];
    attack(name, about, [queues(PLAIN), sends, vec![Step::Expect(1, Expectation::Refuses(ID))]])
}

fn lengths(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let writes = |data| write(victim, ID, 0, 1, data);
    let reads = |data| read(victim, ID, 0, 1, data);
    let of = |length| Sgl::Transport { length };
    // Too long for a capsule, as all that a host sends apart.
    let whole = asked_bytes(victim);
    let shorter = write(victim, ID, 0, whole / length, of(whole - 4));
    let huge = "a descriptor of 4 GiB: nothing may be allocated for it (CVE-2026-80789)";
    let short = "a descriptor below NLB";
    let block = vec![0x5a; length as usize];
    vec![
        described("write-of-4-gib", huge, writes(of(u32::MAX)), Vec::new()),
        described("read-of-4-gib", huge, reads(of(u32::MAX)), Vec::new()),
        described("capsule-of-4-gib", huge, writes(Sgl::InCapsule { offset: 0, length: u32::MAX }), block),
        asked(victim, described("write-shorter-than-its-blocks", short, shorter, Vec::new())),
        described("read-shorter-than-its-blocks", short, reads(of(length - 4)), Vec::new()),
    ]
}

fn places(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let at = |offset| Sgl::InCapsule { offset, length };
    let writes = |data| write(victim, ID, 0, 1, data);
    let block = || vec![0x5a; length as usize];
    let has_room = victim.capacity.in_capsule_bytes >= length;
    let behind = "in-capsule data behind the capsule";
    let absent = "a descriptor of data that do not come";
    let entry = read(victim, ID, 0, 1, at(0));
    let all = vec![
        described("capsule-offset-beyond", behind, writes(at(64)), block()),
        described("capsule-offset-that-wraps", "an offset near 2^64", writes(at(u64::MAX - 8)), block()),
        described("capsule-without-data", absent, writes(at(0)), Vec::new()),
        described("read-into-the-capsule", "in-capsule data for a read", entry, block()),
    ];
    all.into_iter().map(|attack| attack.barred_unless(has_room, "its capsules hold no block")).collect()
}

fn kinds(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let about = "a descriptor that TCP does not know";
    let writes = |data| write(victim, ID, 0, 1, data);
    let entry = read(victim, ID, 0, 1, Sgl::Block { address: 4096, length });
    vec![
        described("keyed-descriptor", about, writes(Sgl::Keyed { address: 0, length, key: 1 }), Vec::new()),
        described("segment-descriptor", about, writes(Sgl::Segment { address: 4096, length: 16 }), Vec::new()),
        described("host-memory-descriptor", about, entry, Vec::new()),
        described("unknown-descriptor", about, writes(Sgl::Unknown([0xff; 16])), Vec::new()),
    ]
}
