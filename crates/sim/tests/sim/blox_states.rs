//! What drives hold when a run begins: each state is what its name says, and a snapshot is the
//! state that it was made of.

use crate::blox_support::{Change, plan, plan_from, play, played, rack};
use base::Seed;
use hardware::ssd::{VictimPolicy, uniform_amplification};
use plan::Files;
use plan::blox::{Collection, CoordinationName, PAGE};
use record::SpanKind;
use sim::precondition;
use std::io::{BufRead, Cursor};

/// A file in memory, whatever it is called.
struct Only(Vec<u8>);

impl Files for Only {
    fn open(&self, _: &str) -> std::io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

fn saved(changes: &[Change<'_>]) -> Vec<u8> {
    let plan = plan(changes);
    let prepared = precondition(rack(&plan), Seed(plan.seed)).expect("drives can be prepared");
    let mut bytes = Vec::new();
    prepared.archive.save(&mut bytes).expect("memory can be written");
    bytes
}

#[test]
fn a_run_from_a_snapshot_is_the_run_that_prepares_its_drives_itself() {
    for state in ["filled", "used", "fragmented"] {
        let state = [("flash.state", state), ("rack.remote_replica", "true"), ("vssd.data", "0.5")];
        let thresholds = [("collection.stop", "0.3"), ("collection.soft", "0.28")];
        let both = [state.as_slice(), &thresholds].concat();
        let snapshot = saved(&both);
        let from = [&both[1..], &[("flash.snapshot", "drives.snapshot")]].concat();
        let from = play(&plan_from(&Only(snapshot.clone()), "", &from)).all_finished();
        assert_eq!(from.bytes(), played(&both).bytes(), "{state:?}");
        assert_eq!(saved(&both), snapshot, "the same plan gives the same bytes");
    }
}

#[test]
fn each_state_holds_what_it_says() {
    let prepared = |state: &str| {
        let plan = plan(&[("flash.state", state)]);
        let vssds = precondition(rack(&plan), Seed(1)).expect("drives can be prepared").vssds;
        assert_eq!(vssds.len(), 2);
        vssds[1].clone()
    };
    let pages = rack(&plan(&[])).io.working_set_blocks;
    assert_eq!(pages, (16 << 20) * 4 / 10 / PAGE.count());
    let (clean, filled) = (prepared("clean"), prepared("filled"));
    let (used, fragmented) = (prepared("used"), prepared("fragmented"));
    assert_eq!((clean.pages, clean.free, clean.wear.max), (0, 1.0, 0));
    assert_eq!([filled.pages, used.pages, fragmented.pages], [pages; 3]);
    // 128 blocks, of which 0.4 hold data; dies hold what they fill at the time.
    assert!((0.52..0.6).contains(&filled.free) && filled.wear.max == 0, "{filled:?}");
    assert!((used.free / filled.free - 0.5).abs() < 0.02 && used.wear.max == 0, "{used:?}");
    // Between what collection begins with and what it ends with.
    assert!((0.34..0.4).contains(&fragmented.free) && fragmented.wear.max > 1, "{fragmented:?}");
    assert!(fragmented.windows.len() >= 3 && fragmented.windows.iter().skip(2).all(|value| *value > 1.0));
}

/// A rack that only writes, on prepared drives. Compares write amplification of the last windows of
/// the preparation, of the run, and of the closed form with the free space that collection keeps on
/// average.
fn amplifications(changes: &[Change<'_>]) -> [f64; 3] {
    let writes = [
        ("flash.state", "fragmented"),
        ("flash.steady", "{ tolerance = 0.04 }"),
        ("flash.dies_per_channel", "2"),
        ("vssd.capacity", "'64MiB'"),
        ("collection.check_period", "'1ms'"),
        ("collection.background", "false"),
        ("io.write_share", "1.0"),
        ("io.check_history", "false"),
        // Not more than collection keeps up with.
        ("io.think", "'20ms'"),
        ("io.depth", "2"),
        ("run.requests", "30000"),
    ];
    let plan = plan(&[writes.as_slice(), changes].concat());
    let blox = rack(&plan);
    let windows = &precondition(blox, Seed(plan.seed)).expect("drives can be prepared").vssds[0].windows;
    let prepared = windows.iter().rev().take(3).sum::<f64>() / 3.0;
    let run = play(&plan).outcomes.summary.metrics["write_amplification"];
    let geometry = blox.geometry();
    let dies = f64::from(blox.vssd.channels * geometry.dies_per_channel);
    let blocks = dies * f64::from(geometry.blocks_per_die());
    let Collection { soft, regular, stop, coordination, .. } = blox.collection;
    let begin = if coordination == CoordinationName::Switch { soft } else { regular };
    let kept = blocks * (begin + stop) / 2.0;
    // Of each die's two open blocks half is empty.
    let holds = (blocks - kept - dies) * f64::from(geometry.units_per_block());
    let ratio = holds / blox.io.working_set_blocks as f64;
    let victims = VictimPolicy::Greedy;
    let closed = uniform_amplification(victims, ratio, geometry.units_per_block()).expect("a closed form");
    [prepared, run, closed]
}

#[test]
fn a_run_starts_in_the_state_that_it_keeps() {
    for changes in [&[][..], &[("design.name", "vdc")]] {
        let [prepared, run, closed] = amplifications(changes);
        assert!((run / prepared - 1.0).abs() < 0.03, "{run} in the run, {prepared} in preparation");
        assert!((prepared / closed - 1.0).abs() < 0.05, "{prepared} in preparation, closed form {closed}");
        assert!((run / closed - 1.0).abs() < 0.05, "{run} in the run, closed form {closed}");
    }
}

#[test]
fn reads_of_clean_drives_need_no_flash() {
    let clean = played(&[("flash.state", "clean"), ("io.write_share", "0.0")]).all_finished();
    assert!(clean.rows.iter().all(|row| row.spans.get(SpanKind::FlashWait) == base::Span::ZERO));
    let warnings = &clean.outcomes.summary.warnings;
    assert!(warnings.iter().any(|warning| warning.contains("drives hold nothing")), "{warnings:?}");
}

#[test]
fn drives_that_do_not_become_steady_are_an_error_and_no_endless_run() {
    let never = [("flash.state", "fragmented"), ("flash.steady", "{ tolerance = 0.000001, windows_max = 5 }")];
    let plan = plan(&never);
    let error = precondition(rack(&plan), Seed(1)).unwrap_err().to_string();
    assert!(error.contains("not steady after 5 windows"), "{error}");
}
