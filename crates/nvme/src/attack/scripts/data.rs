//! Transfers: data that nobody asked for, outside of what was asked for, damaged, or far too many.

use super::{BOTH, PLAIN, attack, open_write, queues, read, write};
use crate::attack::{Attack, Damage, DataChange, Expectation, Step, Victim};
use crate::pdu::FatalStatus;
use crate::{Sgl, Sqe};

const ANY: &[FatalStatus] = &[];
const OUT_OF_RANGE: &[FatalStatus] = &[FatalStatus::OutOfRange, FatalStatus::InvalidField];
/// The one write of most scripts.
const ID: u16 = 0x0101;

pub(super) fn scripts(victim: &Victim) -> Vec<Attack> {
    let mut all = ranges(victim);
    all.extend(tags(victim));
    all.extend(digests(victim));
    all.extend(descriptors(victim));
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
    attack(name, about, [queues(PLAIN), open_write(victim, ID), end])
}

fn ranges(victim: &Victim) -> Vec<Attack> {
    let change = DataChange::default;
    let about = "H2CData outside of what the R2T asked for (CVE-2023-6356, CVE-2026-22998)";
    let far = DataChange { offset: 0xffff_fe00, length: Some(512), ..change() };
    let behind = DataChange { offset: 8 * victim.block_bytes, length: Some(512), ..change() };
    let skipped = DataChange { offset: 512, length: Some(512), ..change() };
    let more = DataChange { length: Some(8 * victim.block_bytes + 512), ..change() };
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
        ),
        answering(
            victim,
            "last-missing",
            "no LAST with the last byte of the R2T",
            DataChange { flips_last: true, ..change() },
            ANY,
        ),
    ]
}

fn tags(victim: &Victim) -> Vec<Attack> {
    let change = DataChange::default;
    let end = || Step::Expect(1, Expectation::Terminates(ANY));
    let length = victim.block_bytes;
    let read_entry = Box::new(read(victim, ID, 0, 1, Sgl::Transport { length }));
    let unasked = DataChange { command: ID, ..change() };
    let again =
        vec![Step::Data(1, change()), Step::Expect(1, Expectation::Succeeds(ID)), Step::Data(1, change()), end()];
    let gone = vec![Step::Drop(1), Step::Drop(0)];
    vec![
        answering(
            victim,
            "tag-that-nobody-gave",
            "H2CData with an unused TTAG (CVE-2023-6535)",
            DataChange { tag: 7, ..change() },
            ANY,
        ),
        answering(victim, "tag-at-the-end", "TTAG far beyond any table", DataChange { tag: 0x7fff, ..change() }, ANY),
        answering(
            victim,
            "data-for-another-command",
            "CCCID that is not the R2T's",
            DataChange { command: 1, ..change() },
            ANY,
        ),
        attack(
            "data-twice",
            "H2CData with a finished TTAG (CVE-2023-6536)",
            [queues(PLAIN), open_write(victim, ID), again],
        ),
        attack(
            "data-for-a-read",
            "H2CData for a command that reads (CVE-2026-23112)",
            [queues(PLAIN), vec![Step::Entry(1, read_entry, Vec::new()), Step::Data(1, unasked), end()]],
        ),
        attack(
            "data-that-nobody-asked-for",
            "H2CData on a queue without commands (CVE-2026-52989)",
            [queues(PLAIN), vec![Step::Data(1, unasked), end()]],
        ),
        attack(
            "reset-with-r2t-open",
            "the connection is lost while data are awaited",
            [queues(PLAIN), open_write(victim, ID), gone],
        ),
        attack(
            "id-in-use",
            "a second command with the id of one that is outstanding",
            [
                queues(PLAIN),
                open_write(victim, ID),
                vec![
                    Step::Entry(
                        1,
                        Box::new(write(victim, ID, 0, 8, Sgl::Transport { length: 8 * length })),
                        Vec::new(),
                    ),
                    Step::Expect(1, Expectation::Refuses(ID)),
                ],
            ],
        ),
    ]
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
    let rest = DataChange { offset: 512, length: Some(8 * length - 512), flips_last: true, ..DataChange::default() };
    let whole = DataChange { is_damaged: true, ..DataChange::default() };
    vec![
        attack(
            "data-digest-wrong-in-a-capsule",
            about,
            [queues(BOTH), vec![Step::Damaged(1, small, vec![0x5a; length as usize], Damage::Data), fails()], after()],
        ),
        attack(
            "data-digest-wrong-in-data",
            about,
            [queues(BOTH), open_write(victim, ID), vec![Step::Data(1, whole), fails()], after()],
        ),
        attack(
            "data-digest-wrong-in-the-first-of-two",
            about,
            [queues(BOTH), open_write(victim, ID), vec![Step::Data(1, first), Step::Data(1, rest), fails()], after()],
        ),
    ]
}

fn descriptors(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let case = |name, about, entry: Sqe, data: Vec<u8>| {
        let steps = vec![Step::Entry(1, Box::new(entry), data), Step::Expect(1, Expectation::Refuses(ID))];
        attack(name, about, [queues(PLAIN), steps])
    };
    let one_write = |data| write(victim, ID, 0, 1, data);
    let one_read = |data| read(victim, ID, 0, 1, data);
    let huge = "a descriptor of 4 GiB: nothing may be allocated for it (CVE-2026-80789)";
    let kinds = "a descriptor that TCP does not know";
    let block = || vec![0x5a; length as usize];
    vec![
        case("write-of-4-gib", huge, one_write(Sgl::Transport { length: u32::MAX }), Vec::new()),
        case("read-of-4-gib", huge, one_read(Sgl::Transport { length: u32::MAX }), Vec::new()),
        case("capsule-of-4-gib", huge, one_write(Sgl::InCapsule { offset: 0, length: u32::MAX }), block()),
        case(
            "capsule-offset-beyond",
            "in-capsule data behind the capsule",
            one_write(Sgl::InCapsule { offset: 64, length }),
            block(),
        ),
        case(
            "capsule-offset-that-wraps",
            "an offset near 2^64",
            one_write(Sgl::InCapsule { offset: u64::MAX - 8, length }),
            block(),
        ),
        case(
            "capsule-without-data",
            "a descriptor of data that do not come",
            one_write(Sgl::InCapsule { offset: 0, length }),
            Vec::new(),
        ),
        case(
            "read-into-the-capsule",
            "in-capsule data for a read",
            one_read(Sgl::InCapsule { offset: 0, length }),
            block(),
        ),
        case(
            "write-shorter-than-its-blocks",
            "a descriptor below NLB",
            one_write(Sgl::Transport { length: length - 4 }),
            Vec::new(),
        ),
        case(
            "read-shorter-than-its-blocks",
            "a descriptor below NLB",
            one_read(Sgl::Transport { length: length - 4 }),
            Vec::new(),
        ),
        case("keyed-descriptor", kinds, one_write(Sgl::Keyed { address: 0, length, key: 1 }), Vec::new()),
        case("segment-descriptor", kinds, one_write(Sgl::Segment { address: 4096, length: 16 }), Vec::new()),
        case("host-memory-descriptor", kinds, one_read(Sgl::Block { address: 4096, length }), Vec::new()),
        case("unknown-descriptor", kinds, one_write(Sgl::Unknown([0xff; 16])), Vec::new()),
    ]
}
