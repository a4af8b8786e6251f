//! The model of years, see [`WearModel`].

mod config;
mod load;
mod report;
#[cfg(test)]
mod tests;

pub use config::{Assignment, DriveFlash, Replacement, WearArm, WearConfig, WearWorkload};
pub use report::{Lifetime, SwapCounts, WearReport, WearSample, WearSnapshot};

use super::{GlobalBalancer, LocalBalancer, RateMeter, SsdPlace, SsdWear, Swap, WearError};
use load::Load;

/// A rack's wear over years, a day a step (RackBlox, 4.6, Figures 22 and 23).
///
/// Each vSSD writes at a rate of its own; a drive's blocks are erased as often as the writes of its
/// vSSDs, times their write amplification, fill them; and the balancers, [`LocalBalancer`] and
/// [`GlobalBalancer`], decide about swaps from the wear and rates so far. Inside a drive wear is
/// even, as its own wear levelling sees to that (4.6). A test of the simulator holds this model
/// against whole translation layers.
#[derive(Clone, Debug)]
pub struct WearModel {
    config: WearConfig,
    locals: Vec<LocalBalancer>,
    global: Option<GlobalBalancer>,
    /// All drives, server by server.
    drives: Vec<Drive>,
    contents: Vec<Load>,
    swaps: SwapCounts,
    samples: Vec<WearSample>,
    snapshots: Vec<WearSnapshot>,
}

/// A drive, or the one that has replaced it.
#[derive(Clone, Debug)]
struct Drive {
    erases: f64,
    swap_erases: f64,
    meter: RateMeter,
    /// The contents lie on it.
    content: usize,
}

impl WearModel {
    /// A rack of unworn drives. Fails when a number is not allowed.
    pub fn new(config: WearConfig) -> Result<WearModel, WearError> {
        config.check()?;
        let contents = load::contents(&config);
        let drive = |content| Drive::new(&config, content);
        Ok(WearModel {
            locals: local_balancers(&config)?,
            global: (config.arm == WearArm::LocalAndGlobal).then(|| GlobalBalancer::new(config.global)).transpose()?,
            drives: (0..contents.len()).map(drive).collect(),
            contents,
            swaps: SwapCounts { local: vec![0; config.servers as usize], global: 0, global_looks: 0 },
            samples: Vec::new(),
            snapshots: Vec::new(),
            config,
        })
    }
    /// Plays all days.
    pub fn run(self) -> WearReport {
        self.run_while(|_| true)
    }
    /// Simulates days as long as `goes_on`, which is called before each with its number; the report
    /// covers the simulated days.
    pub fn run_while(mut self, mut goes_on: impl FnMut(u32) -> bool) -> WearReport {
        for day in 1..=self.config.days {
            if !goes_on(day) {
                break;
            }
            self.replace(day);
            self.wear(day);
            self.swap_locally(day);
            self.swap_globally(day);
            self.observe(day);
        }
        let lifetime = self.lifetime();
        WearReport {
            arm: self.config.arm,
            samples: self.samples,
            snapshots: self.snapshots,
            swaps: self.swaps,
            lifetime,
        }
    }

    /// What a drive holds comes back from replicas onto a new one.
    fn replace(&mut self, day: u32) {
        for each in self.config.replacements.iter().filter(|each| each.day == day) {
            let index = self.index(each.place);
            self.drives[index] = Drive::new(&self.config, self.drives[index].content);
        }
    }
    fn wear(&mut self, day: u32) {
        let step = load::Step::of(&self.config, day);
        self.contents.iter_mut().for_each(|load| load.on_day(&self.config, step));
        for drive in &mut self.drives {
            drive.wear(self.contents[drive.content].erases(step));
        }
    }
    fn swap_locally(&mut self, day: u32) {
        for server in 0..self.locals.len() {
            let known = self.known(server);
            if let Some(swap) = self.locals[server].check(day, &known) {
                self.exchange(swap);
                self.swaps.local[server] += 1;
            }
        }
    }
    fn swap_globally(&mut self, day: u32) {
        let Some(mut global) = self.global.take() else { return };
        let rack: Vec<Vec<SsdWear>> = (0..self.config.servers as usize).map(|server| self.known(server)).collect();
        let swaps = global.check(day, &rack);
        self.swaps.global += swaps.len() as u32;
        self.swaps.global_looks += u32::from(!swaps.is_empty());
        swaps.into_iter().for_each(|swap| self.exchange(swap));
        self.global = Some(global);
    }
    /// All vSSDs of two drives change places, and each drive is written once.
    fn exchange(&mut self, swap: Swap) {
        let (worn, resting) = (self.index(swap.worn), self.index(swap.resting));
        let content = self.drives[worn].content;
        self.drives[worn].content = self.drives[resting].content;
        self.drives[resting].content = content;
        for index in [worn, resting] {
            self.drives[index].erases += self.config.erases_per_swap;
            self.drives[index].swap_erases += self.config.erases_per_swap;
        }
    }
    fn observe(&mut self, day: u32) {
        let swaps = self.swaps.local_total() + self.swaps.global;
        self.samples.push(WearSample::of(day, &self.drives, self.config.ssds as usize, swaps));
        if day.is_multiple_of(self.config.snapshot_days) || day == self.config.days {
            let erases = self.drives.iter().map(|drive| drive.erases).collect();
            self.snapshots.push(WearSnapshot { day, erases });
        }
    }
    fn lifetime(&self) -> Lifetime {
        let most_looks = self.swaps.local.iter().max().copied().unwrap_or(0) + self.swaps.global;
        Lifetime::of(
            &self.drives,
            f64::from(self.config.flash.endurance),
            f64::from(most_looks) * self.config.erases_per_swap,
        )
    }
    fn known(&self, server: usize) -> Vec<SsdWear> {
        let ssds = self.config.ssds as usize;
        self.drives[server * ssds..(server + 1) * ssds].iter().map(Drive::known).collect()
    }
    fn index(&self, place: SsdPlace) -> usize {
        (place.server * self.config.ssds + place.ssd) as usize
    }
}

impl Drive {
    fn new(config: &WearConfig, content: usize) -> Drive {
        Drive { erases: 0.0, swap_erases: 0.0, meter: RateMeter::new(config.rate_window_days), content }
    }
    fn wear(&mut self, erases: f64) {
        self.erases += erases;
        self.meter.on_day(erases);
    }
    fn known(&self) -> SsdWear {
        SsdWear { erases: self.erases, erases_per_day: self.meter.erases_per_day() }
    }
}

fn local_balancers(config: &WearConfig) -> Result<Vec<LocalBalancer>, WearError> {
    let servers = if config.arm == WearArm::NoSwap { 0 } else { config.servers };
    (0..servers).map(|server| LocalBalancer::new(config.local, server)).collect()
}
