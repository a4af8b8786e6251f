//! Is every instant of a request claimed by one span, in every rig and in every shipped experiment?

use crate::racks;

use base::Span;
use plan::{Files, Plan, Scale};
use record::{Outcome, Row, Sink, SinkError, SpanKind};
use sim::drive::{Flow, Observer, Progress};
use sim::{RunOptions, run};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What a run's rows say of its spans.
#[derive(Default)]
struct Audit {
    finished: u64,
    /// The first request of which some time is unattributed.
    gap: Option<Row>,
}

impl Sink for Audit {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        if row.outcome == Outcome::Finished {
            self.finished += 1;
            if row.spans.get(SpanKind::Unattributed) > Span::ZERO {
                self.gap.get_or_insert(*row);
            }
        }
        Ok(())
    }
}

/// Stops after so many events.
struct EventLimit(u64);

impl Observer for EventLimit {
    fn progress(&mut self, progress: &Progress) -> Flow {
        if progress.events < self.0 { Flow::Continue } else { Flow::Stop }
    }
}

/// What is wrong with the spans of a plan's first events; how many requests have finished.
fn audit(plan: &Plan, events: u64) -> (Vec<String>, u64) {
    let mut audit = Audit::default();
    let outcomes = run(plan, &RunOptions::default(), &mut audit, &mut EventLimit(events)).expect("a sound plan");
    let warnings = outcomes.summary.warnings.into_iter().filter(|warning| warning.starts_with("spans: "));
    let gap = audit.gap.map(|row| {
        let spans: Vec<_> = row.spans.iter().filter(|(_, span)| *span > Span::ZERO).collect();
        format!("request {} has gaps: {spans:?}", row.request.0)
    });
    (warnings.chain(gap).collect(), audit.finished)
}

#[test]
fn every_rig_claims_every_instant_of_its_requests_once() {
    let mut wrong = Vec::new();
    for (rack, design) in racks::all() {
        let (found, finished) = audit(&racks::plan(&design, rack), u64::MAX);
        assert!(finished > 1_000, "{design}: {finished} requests have finished");
        wrong.extend(found.into_iter().map(|found| format!("{design}: {found}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Losses make parts of one request overlap: a repeat goes while an answer, or what acknowledges
/// it, is still under way. No instant is claimed twice, and less than 0.1 % by nothing.
#[test]
fn a_san_that_loses_packets_warns_of_no_spans() {
    for transport in ["tcp", "dctcp"] {
        let rack = format!(
            "wire.transport = '{transport}'\n\
             fabric = {{ kind = 'single-switch', hosts = 2, targets = 16 }}\n\
             drives = {{ per_target = 1, model = 'quick' }}\n\
             io = {{ write_share = 0.3, depth = 128, size = '128KiB' }}\n\
             run = {{ requests = 2000, warm_up_requests = 0 }}"
        );
        let (wrong, finished) = audit(&racks::plan("san-plain", &rack), u64::MAX);
        let warnings: Vec<_> = wrong.into_iter().filter(|wrong| wrong.starts_with("spans: ")).collect();
        assert!(finished == 2_000 && warnings.is_empty(), "{transport}: {finished} {warnings:?}");
    }
}

/// The files beside an experiment.
struct Beside(PathBuf);

impl Files for Beside {
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::new(File::open(self.0.join(relative))?)))
    }
}

/// Every experiment file that is shipped, in order.
fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut entries: Vec<_> = entries.collect();
        entries.sort();
        entries
    };
    let is_experiment = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("experiment") && name.ends_with(".toml")
    };
    let figures = folders(&root).into_iter().flat_map(|room| folders(&room));
    figures.flat_map(|figure| folders(&figure)).filter(is_experiment).collect()
}

/// The beginning of some points of every shipped experiment.
fn play_shipped(points: usize, events: u64) {
    let (mut wrong, mut played) = (Vec::new(), 0);
    for path in shipped() {
        let text = fs::read_to_string(&path).expect("a file that was listed");
        let name = path.to_string_lossy();
        let files = Beside(path.parent().expect("a file lies in a folder").to_owned());
        let experiment = plan::parse(&name, &text, &files, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let all = experiment.points(Some(Scale::Quick));
        let step = all.len().div_ceil(points).max(1);
        for point in all.iter().step_by(step) {
            let (found, _) = audit(&point.plan, events);
            wrong.extend(found.into_iter().map(|found| format!("{name} {:?}: {found}", point.labels)));
            played += 1;
        }
    }
    assert!(played > 50, "{played} points");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shipped_experiments_claim_every_instant_once() {
    play_shipped(2, 60_000);
}

#[test]
#[ignore = "minutes"]
fn every_point_of_shipped_experiments_claims_every_instant_once() {
    play_shipped(usize::MAX, 2_000_000);
}
