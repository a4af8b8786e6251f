//! Table 1 of the paper by counting cycles: an unloaded read and write of 64 B through two hosts
//! and the switch in gates.

use rtl_harness::system::{Access, End, Probe};
use rtl_harness::wave::{HERE, MEMORY, READER, Seen, THERE, Wave, pattern};

/// A stage: its name, and the cycles that Table 1 and the text give it.
fn check(stages: &[(&str, u64, u64)]) -> u64 {
    for (name, got, expected) in stages {
        eprintln!("  {got:>2}  {name}");
        assert_eq!(got, expected, "{name}");
    }
    stages.iter().map(|(_, got, _)| got).sum()
}

#[test]
fn a_read_takes_42_cycles() {
    let (wave, mut system) = Wave::of(Access::Read { bytes: 64 });
    let at = |node, probe| wave.at(node, probe);
    // Each crossing is two cycles out of one port and two into the next.
    let stages = [
        ("compute node: make the RREQ", at(READER, Probe::HostOut).first, 2),
        ("two crossings", at(READER, Probe::PortIn).first - at(READER, Probe::HostOut).first, 4),
        ("switch: identify", at(READER, Probe::Demand).first - at(READER, Probe::PortIn).last, 1),
        ("switch: insert and match", at(MEMORY, Probe::Grant).first - at(READER, Probe::Demand).first, 2 + 3),
        ("switch: emit", at(MEMORY, Probe::PortOut).first - at(MEMORY, Probe::Grant).first, 1),
        ("two crossings", at(MEMORY, Probe::HostIn).first - at(MEMORY, Probe::PortOut).first, 4),
        ("memory node: take the RREQ", at(MEMORY, Probe::Queued).first - at(MEMORY, Probe::HostIn).last, 3),
        ("memory node: grant queue", at(MEMORY, Probe::Dequeued).first - at(MEMORY, Probe::Queued).first, 4),
        ("memory node: make the RRES", at(MEMORY, Probe::HostOut).first - at(MEMORY, Probe::Dequeued).first, 3),
        ("two crossings", at(MEMORY, Probe::PortIn).first - at(MEMORY, Probe::HostOut).first, 4),
        ("switch: forward", at(READER, Probe::PortOut).first - at(MEMORY, Probe::PortIn).first, 4),
        ("two crossings", at(READER, Probe::HostIn).first - at(READER, Probe::PortOut).first, 4),
        ("compute node: take the RRES", at(READER, Probe::MemoryWrite).first - at(READER, Probe::HostIn).first, 3),
    ];
    assert_eq!(check(&stages), 42, "Table 1: 107.52 ns of cycles of 2.56 ns");
    assert_eq!(299_520, 42 * 2_560 + 8 * 19_000 + 4 * 10_000, "ps, with PMA, PMD and fibre");
    // An RREQ is two blocks, of which the switch and the memory node wait for the second; an RRES
    // nine.
    let data = at(READER, Probe::MemoryWrite);
    assert_eq!((data.first, data.last), (42 + 2, 42 + 2 + 8));
    assert_eq!(wave.ends(), [(End::Answered, data.last)]);
    assert_eq!(system.dump(READER, HERE, 64), pattern(2));
    assert_eq!(system.wrong(), Default::default());
}

#[test]
fn a_write_takes_41_cycles() {
    let (wave, mut system) = Wave::of(Access::Write { bytes: 64 });
    let at = |node, probe| wave.at(node, probe);
    // The /N/ and the data leave the host at different times; the data are the last ten blocks.
    let data_out = at(READER, Probe::HostOut).last - 9;
    let data_in = at(READER, Probe::PortIn).last - 9;
    let stages = [
        ("compute node: make the /N/", at(READER, Probe::HostOut).first, 2),
        ("two crossings", at(READER, Probe::PortIn).first - at(READER, Probe::HostOut).first, 4),
        ("switch: identify", at(READER, Probe::Demand).first - at(READER, Probe::PortIn).first, 1),
        ("switch: insert and match", at(READER, Probe::Grant).first - at(READER, Probe::Demand).first, 2 + 3),
        ("switch: make the /G/", at(READER, Probe::PortOut).first - at(READER, Probe::Grant).first, 1),
        ("two crossings", at(READER, Probe::HostIn).first - at(READER, Probe::PortOut).first, 4),
        ("compute node: take the /G/", at(READER, Probe::Queued).first - at(READER, Probe::HostIn).first, 2),
        ("compute node: grant queue", at(READER, Probe::Dequeued).first - at(READER, Probe::Queued).first, 4),
        ("compute node: make the WREQ", data_out - at(READER, Probe::Dequeued).first, 3),
        ("two crossings", data_in - data_out, 4),
        ("switch: forward", at(MEMORY, Probe::PortOut).first - data_in, 4),
        ("two crossings", at(MEMORY, Probe::HostIn).first - at(MEMORY, Probe::PortOut).first, 4),
        // The first block has one byte of the address, the second the rest and the first data.
        ("memory node: take the WREQ", at(MEMORY, Probe::MemoryWrite).first - at(MEMORY, Probe::HostIn).first - 1, 3),
    ];
    assert_eq!(check(&stages), 41, "Table 1: 104.96 ns of cycles of 2.56 ns");
    assert_eq!(296_960, 41 * 2_560 + 8 * 19_000 + 4 * 10_000, "ps, with PMA, PMD and fibre");
    assert_eq!(at(MEMORY, Probe::MemoryWrite), Seen { first: 41 + 1, last: 41 + 9 });
    assert_eq!(wave.written(), Some(41 + 9));
    assert_eq!(system.dump(MEMORY, THERE, 64), pattern(1));
    assert_eq!(system.wrong(), Default::default());
}
