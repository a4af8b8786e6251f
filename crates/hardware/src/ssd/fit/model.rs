//! Playing loads on a drive, in a closed loop.
//!
//! The drive is a smaller one of the same times, channels and dies: fewer and shorter blocks, so
//! that it is brought into its state a thousand times faster. What decides write amplification, the
//! ratio of spare to used space, stays, and so does the time of an erase for each page. A state is
//! made once and taken up by every drive that differs in times only.

use super::{ClosedLoad, FitError, WrittenState};
use crate::ssd::drive::{
    Command, CommandKind, DriveError, FlushPolicy, Pattern, Precondition, SolidState, SolidStateConfig, Steady,
};
use base::{Bytes, Seed, Span, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Blocks of a die and pages of a block of the smaller drive. Ours; with these a drive in steady
/// state writes as fast as the whole one within 6 % at 7 % over-provisioning and within 2 % at 28 %
/// (measured; a test holds 8 %).
const WRITTEN: Size = Size { blocks: 128, pages: 48 };
const READ: Size = Size { blocks: 20, pages: 12 };
/// The units of the smaller drive above which its blocks are shortened, and the least pages that a
/// block keeps. Ours.
const UNITS_MAX: u64 = 1 << 21;
const PAGES_MIN: u32 = 24;
/// A multiple of every number of kinds of pages up to four.
const PAGES_STEP: u32 = 12;
/// Units that are moved while a point is measured, and least and most commands. Ours.
const MEASURED_UNITS: u64 = 32_768;
const MEASURED_COMMANDS: (u64, u64) = (1_024, 8_192);
/// Most when some are writes: those are slower to play, and less random, for most of them wait for
/// programs.
const MEASURED_WRITES: u64 = 4_096;
/// Amplification counts as steady when three windows of a third of the drive agree within 5 %.
/// Ours.
const STEADY: Steady = Steady { window: 0.33, windows: 3, tolerance: 0.05, windows_max: 60 };

#[derive(Clone, Copy, Debug)]
struct Size {
    blocks: u32,
    pages: u32,
}

/// How often each load is played with other addresses, to free an answer of those that it drew.
/// Ours.
const DRAWS: u64 = 32;

/// Drives in the states in which the loads find them, for one geometry.
///
/// An answer hangs on the addresses that are drawn: by 1 % and more where commands wait for dies.
/// The addresses are the same for every drive, so that two drives differ by their own times alone.
/// That leaves one error in all answers to a load. [`at`](Bench::at) measures it near one drive, by
/// [`DRAWS`] other draws, and takes it out.
pub(super) struct Bench {
    reads: Option<Stage>,
    writes: Option<Stage>,
    seed: Seed,
    draws: Vec<Draw>,
}

/// What the addresses of a bench do to the answer to one load.
struct Draw {
    load: ClosedLoad,
    /// ln(answer / mean answer).
    shift: f64,
    /// Variance of ln(answer) over draws.
    variance: f64,
}

/// A smaller drive's data.
struct Stage {
    size: Size,
    over_provisioning: f64,
    snapshot: Vec<u8>,
}

impl Bench {
    /// Makes the states that these loads need, and measures what the addresses do near `config`.
    pub(super) fn at(
        config: &SolidStateConfig,
        loads: &[ClosedLoad],
        state: WrittenState,
        seed: Seed,
    ) -> Result<Bench, FitError> {
        let mut bench = Bench::new(config, loads, state, seed)?;
        let draws = loads.iter().map(|load| bench.draw(config, *load)).collect::<Result<_, DriveError>>();
        bench.draws = draws?;
        Ok(bench)
    }
    /// Makes the states that these loads need.
    pub(super) fn new(
        config: &SolidStateConfig,
        loads: &[ClosedLoad],
        state: WrittenState,
        seed: Seed,
    ) -> Result<Bench, FitError> {
        let reads = loads.iter().any(|load| !load.writes()).then(|| Stage::of_reads(config));
        let writes = loads.iter().any(ClosedLoad::writes).then(|| Stage::of_writes(config, state));
        Ok(Bench { reads: reads.transpose()?, writes: writes.transpose()?, seed, draws: Vec::new() })
    }
    /// Commands a second that a drive of this geometry answers under a load.
    pub(super) fn iops(&self, config: &SolidStateConfig, load: ClosedLoad) -> Result<f64, DriveError> {
        let shift = self.draw_of(load).map_or(0.0, |draw| draw.shift);
        Ok(self.play(config, load, self.seed)? * (-shift).exp())
    }
    /// Standard deviation of ln(answer) that is left when the addresses have been allowed for.
    pub(super) fn error(&self, load: ClosedLoad) -> f64 {
        self.draw_of(load).map_or(0.0, |draw| (draw.variance / DRAWS as f64).sqrt())
    }
    fn draw_of(&self, load: ClosedLoad) -> Option<&Draw> {
        self.draws.iter().find(|draw| draw.load == load)
    }
    fn draw(&self, config: &SolidStateConfig, load: ClosedLoad) -> Result<Draw, DriveError> {
        let of_seed = |seed| Ok(self.play(config, load, seed)?.ln());
        let others = (0..DRAWS).map(|number| of_seed(self.seed.child(&format!("draw/{number}"))));
        let others = others.collect::<Result<Vec<f64>, DriveError>>()?;
        let mean = others.iter().sum::<f64>() / DRAWS as f64;
        let variance = others.iter().map(|other| (other - mean).powi(2)).sum::<f64>() / (DRAWS - 1) as f64;
        Ok(Draw { load, shift: of_seed(self.seed)? - mean, variance })
    }
    fn play(&self, config: &SolidStateConfig, load: ClosedLoad, seed: Seed) -> Result<f64, DriveError> {
        let stage = if load.writes() { &self.writes } else { &self.reads };
        let mut drive = stage.as_ref().expect("a bench has a stage for each of its loads").drive(config)?;
        let name = format!("ssd/fit/{}/{}/{}", load.read_share, load.bytes.count(), load.depth);
        Loop::new(&drive, load, seed.stream(&name))?.play(&mut drive)
    }
}

impl Stage {
    fn of_reads(config: &SolidStateConfig) -> Result<Stage, FitError> {
        // Nothing is written: the space for collection need only be there.
        let over_provisioning = config.over_provisioning.max(0.5);
        let state = Precondition { fill: 1.0, pattern: Pattern::Sequential };
        Stage::filled(config, READ.within(config), over_provisioning, state)
    }
    fn of_writes(config: &SolidStateConfig, state: WrittenState) -> Result<Stage, FitError> {
        let size = WRITTEN.of_few_units(config).within(config);
        let (fill, pattern) = match state {
            WrittenState::Fresh => (0.0, Pattern::Sequential),
            WrittenState::Steady => (1.0, Pattern::Fragmented(STEADY)),
        };
        Stage::filled(config, size, config.over_provisioning, Precondition { fill, pattern })
    }
    fn filled(
        config: &SolidStateConfig,
        size: Size,
        over_provisioning: f64,
        state: Precondition,
    ) -> Result<Stage, FitError> {
        let mut stage = Stage { size, over_provisioning, snapshot: Vec::new() };
        let mut drive = SolidState::new(stage.smaller(config))?;
        drive.precondition(state)?;
        drive.save(&mut stage.snapshot).expect("memory takes all that is written");
        Ok(stage)
    }
    fn drive(&self, config: &SolidStateConfig) -> Result<SolidState, DriveError> {
        SolidState::restore(self.smaller(config), self.snapshot.as_slice())
    }
    fn smaller(&self, config: &SolidStateConfig) -> SolidStateConfig {
        let mut smaller = config.clone();
        smaller.geometry.planes_per_die = 1;
        smaller.geometry.blocks_per_plane = self.size.blocks;
        smaller.geometry.pages_per_block = self.size.pages;
        smaller.over_provisioning = self.over_provisioning;
        let share = f64::from(self.size.pages) / f64::from(config.geometry.pages_per_block);
        smaller.timing.erase = Span::from_ps_f64(config.timing.erase.as_ps() as f64 * share);
        smaller
    }
}

impl Size {
    /// With shorter blocks when there are many dies.
    fn of_few_units(self, config: &SolidStateConfig) -> Size {
        let geometry = &config.geometry;
        let of_each_page = u64::from(geometry.dies() * self.blocks * geometry.units_per_page());
        let pages = (UNITS_MAX / of_each_page).clamp(u64::from(PAGES_MIN), u64::from(self.pages)) as u32;
        Size { pages: pages / PAGES_STEP * PAGES_STEP, ..self }
    }
    /// No larger than the drive itself.
    fn within(self, config: &SolidStateConfig) -> Size {
        let geometry = &config.geometry;
        Size { blocks: self.blocks.min(geometry.blocks_per_die()), pages: self.pages.min(geometry.pages_per_block) }
    }
}

/// A closed loop.
struct Loop {
    load: ClosedLoad,
    places: u64,
    before: u64,
    measured: u64,
    stream: Stream,
}

impl Loop {
    fn new(drive: &SolidState, load: ClosedLoad, stream: Stream) -> Result<Loop, DriveError> {
        let places = drive.capacity().count() / load.bytes.count();
        if places == 0 {
            let (bytes, capacity) = (load.bytes.count(), drive.capacity().count());
            return Err(DriveError::Beyond { address: 0, bytes, capacity });
        }
        let units = load.bytes.count().div_ceil(drive.config().geometry.unit.count());
        let (least, most) = MEASURED_COMMANDS;
        let most = if load.writes() { MEASURED_WRITES } else { most };
        let measured = (MEASURED_UNITS / units).clamp(least, most);
        let before = 2 * u64::from(load.depth) + writes_before(drive, load);
        Ok(Loop { load, places, before, measured, stream })
    }
    /// Plays it and returns commands a second, from the end of the last command before to the end
    /// of the last that is measured.
    fn play(mut self, drive: &mut SolidState) -> Result<f64, DriveError> {
        let mut ends = BinaryHeap::from(vec![Reverse(Time::ZERO); self.load.depth as usize]);
        let mut begin = Time::ZERO;
        let mut now = Time::ZERO;
        for index in 0..=self.before + self.measured {
            let Reverse(end) = ends.pop().expect("as many commands are under way as begin");
            now = end;
            if index == self.before {
                begin = now;
            }
            let command = self.command();
            ends.push(Reverse(drive.submit(now, command)?.end));
        }
        Ok(self.measured as f64 / (now - begin).as_secs_f64())
    }
    fn command(&mut self) -> Command {
        let address = self.stream.below(self.places) * self.load.bytes.count();
        let kind = if self.stream.unit() < self.load.read_share { CommandKind::Read } else { CommandKind::Write };
        Command { kind, address, bytes: self.load.bytes }
    }
}

/// Commands until the write buffer is as full as it will be.
fn writes_before(drive: &SolidState, load: ClosedLoad) -> u64 {
    let buffer = drive.config().buffer;
    if !load.writes() || buffer.flush == FlushPolicy::Through {
        return 0;
    }
    let share = (1.0 - load.read_share).max(0.05);
    let filled = buffer.capacity.count() as f64 * 1.5 / (load.bytes.max(Bytes::new(1)).count() as f64 * share);
    filled as u64
}
