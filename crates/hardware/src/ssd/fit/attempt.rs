//! The way to a fit: the best drive with all parameters free, what the points allow of each, and
//! then which are fitted and which are held.

use super::determine::{Doubt, Sensitivity};
use super::model::Bench;
use super::parameter::ladder_of_dies;
use super::profile::{Profile, Profiler, RISE_95, Range};
use super::search::{Search, UsedPoint};
use super::{
    ASIDE, Best, DIES_MARGIN, Fit, FitError, FitPoint, FitRequest, FittedParameter, FittedPoint, Free,
    KNOWN_WITHIN_MAX, Outcome, Parameter,
};
use crate::ssd::drive::SolidStateConfig;
use std::collections::BTreeMap;

/// How often a profile may find a better place before that is an end. Ours.
const BETTER_MAX: usize = 3;
/// Number of counts of dies that are tried beyond the best one on each side while the points cannot
/// distinguish them. Ours: each takes as long as a fit.
const LIKE_MAX: usize = 2;
/// A range is wide if half of it exceeds this many standard deviations of [`KNOWN_WITHIN_MAX`].
const OF_95_PERCENT: f64 = 1.96;

/// The way to a fit: which parameters are still free, and why the others are not.
pub(super) struct Attempt<'a> {
    request: &'a FitRequest,
    used: Vec<UsedPoint>,
    free: Vec<Parameter>,
    held: Vec<(Parameter, String)>,
    ranges: BTreeMap<Parameter, Range>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(request: &'a FitRequest) -> Result<Attempt<'a>, FitError> {
        let free = match &request.free {
            Free::Determined => Parameter::ALL.to_vec(),
            Free::These(these) => Parameter::ALL.into_iter().filter(|parameter| these.contains(parameter)).collect(),
        };
        let held = Parameter::ALL.into_iter().filter(|parameter| !free.contains(parameter));
        let held = held.map(|parameter| (parameter, "not asked for".to_owned())).collect();
        let used = used_points(request)?;
        Ok(Attempt { request, used, free, held, ranges: BTreeMap::new() })
    }
    /// Fits all together and sees what the points allow. Then gives up what is not determined, and
    /// fits again until all that is left is.
    pub(super) fn settle(&mut self) -> Result<Best, FitError> {
        for parameter in self.free.clone() {
            if let Some(reason) = self.request.out_of_question(parameter) {
                self.give_up(parameter, reason.into())?;
            }
        }
        let mut best = self.joint()?;
        while let Some((doubtful, reason)) = self.doubtful(&best)? {
            let start = self.held_at(doubtful, &best);
            self.give_up(doubtful, reason)?;
            best = self.search(&start, false)?;
        }
        Ok(best)
    }
    pub(super) fn finish(&self, best: Best) -> Result<Fit, FitError> {
        let bench = self.bench(&best.config, self.request.points.iter())?;
        let points = self.request.points.iter().zip(&self.request.is_used).map(|(point, is_used)| {
            let model_iops = bench.iops(&best.config, point.load)?;
            Ok(FittedPoint { point: point.clone(), is_used: *is_used, model_iops })
        });
        let points = points.collect::<Result<Vec<_>, FitError>>()?;
        Ok(Fit {
            parameters: Parameter::ALL.map(|parameter| self.told(parameter, &best)).into(),
            points,
            config: best.config,
        })
    }

    /// The best drive with all of the free parameters, and their ranges. Dies that do nearly as
    /// well as the best count are given up, and the others' ranges have what they have with any of
    /// those.
    fn joint(&mut self) -> Result<Best, FitError> {
        let mut best = match self.free.contains(&Parameter::Dies) {
            true => self.count_dies()?,
            false => vec![self.search(&self.request.start, true)?],
        };
        for _ in 0..BETTER_MAX {
            match self.ranges_of(&best)? {
                Ok(ranges) => {
                    self.ranges.extend(ranges);
                    break;
                }
                Err(better) => best = vec![self.search(&better, false)?],
            }
        }
        let own = self.request.start.geometry.dies_per_channel;
        let at_start = best.iter().position(|best| best.config.geometry.dies_per_channel == own);
        if best.len() > 1 {
            let reason = same_with_other_dies(&best, self.request.point_error);
            self.give_up(Parameter::Dies, reason)?;
        }
        // The preset's number of dies, if the points allow it.
        Ok(best.swap_remove(at_start.filter(|_| best.len() > 1).unwrap_or(0)))
    }
    /// Searches the ladder of dies for the best count, with the others fitted at each. The best
    /// comes first, then neighbours that the points cannot distinguish from it.
    fn count_dies(&mut self) -> Result<Vec<Best>, FitError> {
        let (ladder, first) = ladder_of_dies(self.request.start.geometry.dies_per_channel);
        let mut tried: BTreeMap<usize, Best> = BTreeMap::new();
        tried.insert(first, self.search(&self.request.start, true)?);
        let mut best = first;
        loop {
            let around = best.saturating_sub(1)..=(best + 1).min(ladder.len() - 1);
            for place in around.clone() {
                self.try_dies(&mut tried, &ladder, place, best)?;
            }
            let squares = |place: &usize| tried[place].squares;
            match around.min_by(|one, other| squares(one).total_cmp(&squares(other))) {
                Some(next) if squares(&next) < squares(&best) => best = next,
                _ => break,
            }
        }
        let bound = tried[&best].squares + DIES_MARGIN * self.excess(&tried[&best]);
        for is_up in [false, true] {
            let mut place = best;
            for _ in 0..LIKE_MAX {
                let Some(next) = neighbour(place, is_up, ladder.len()) else { break };
                self.try_dies(&mut tried, &ladder, next, place)?;
                if tried[&next].squares > bound {
                    break;
                }
                place = next;
            }
        }
        let mut like: Vec<Best> = tried.into_values().filter(|tried| tried.squares <= bound).collect();
        like.sort_by(|one, other| one.squares.total_cmp(&other.squares));
        Ok(like)
    }
    fn try_dies(
        &self,
        tried: &mut BTreeMap<usize, Best>,
        ladder: &[u32],
        place: usize,
        near: usize,
    ) -> Result<(), FitError> {
        if !tried.contains_key(&place) {
            let mut config = tried[&near].config.clone();
            config.geometry.dies_per_channel = ladder[place];
            tried.insert(place, self.search(&config, false)?);
        }
        Ok(())
    }
    /// What the points allow of each parameter, over all of these drives, the best of which comes
    /// first. Or a drive that does better than that.
    fn ranges_of(&self, drives: &[Best]) -> Result<Result<BTreeMap<Parameter, Range>, SolidStateConfig>, FitError> {
        let mut ranges: BTreeMap<Parameter, Range> = BTreeMap::new();
        let own: Vec<u32> = drives.iter().map(|drive| drive.config.geometry.dies_per_channel).collect();
        let mut add = |parameter, range: Range| {
            let wider = ranges.get(&parameter).map_or(range, |known| known.with(range));
            ranges.insert(parameter, wider);
        };
        // The best, and those with the least and the most dies.
        let outer = |drive: &&Best| {
            let dies = drive.config.geometry.dies_per_channel;
            dies == own[0] || own.iter().min() == Some(&dies) || own.iter().max() == Some(&dies)
        };
        for drive in drives.iter().filter(outer) {
            let free = self.continuous();
            let bench = self.bench(&drive.config, self.points())?;
            let search = self.searching(&bench, &free);
            let behind = drive.squares - drives[0].squares;
            let profiler = Profiler {
                search,
                best: &drive.config,
                squares: search.squares(&drive.config)?,
                rise: (RISE_95 * self.excess(&drives[0]) - behind).max(0.0),
            };
            for (index, parameter) in free.iter().enumerate() {
                match profiler.of(index)? {
                    Profile::Better(config) => return Ok(Err(*config)),
                    Profile::Range(range) => add(*parameter, range),
                }
            }
            if self.free.contains(&Parameter::Dies) {
                let dies = f64::from(drive.config.geometry.dies_per_channel);
                add(Parameter::Dies, Range { low: dies, high: dies, is_open_below: false, is_open_above: false });
            }
        }
        Ok(Ok(ranges))
    }
    /// By how much more than their errors the points are off, as squares: 1 when they are not.
    fn excess(&self, best: &Best) -> f64 {
        let spare = self.used.len().saturating_sub(self.free.len()).max(1);
        (best.squares / spare as f64).max(1.0)
    }
    /// The best drive from `start`, on a bench made there; then on one made where that has led.
    fn search(&self, start: &SolidStateConfig, is_wide: bool) -> Result<Best, FitError> {
        let free = self.continuous();
        let near = self.searching(&self.bench(start, self.points())?, &free).best(start, is_wide)?;
        self.searching(&self.bench(&near.config, self.points())?, &free).again(&near.config)
    }
    fn searching<'b>(&'b self, bench: &'b Bench, free: &'b [Parameter]) -> Search<'b> {
        Search { origin: &self.request.start, free, points: &self.used, bench }
    }
    /// How the points answer to each parameter at the best place, by steps to both sides.
    fn sensitivity(&self, best: &Best, free: &[Parameter]) -> Result<Sensitivity, FitError> {
        let bench = self.bench(&best.config, self.points())?;
        let search = self.searching(&bench, free);
        let answers = |parameter: &Parameter| {
            let aside = |step: f64| {
                let mut config = best.config.clone();
                parameter.moved(&mut config, &best.config, step);
                search.residuals(&config)
            };
            let (up, down) = (aside(ASIDE)?, aside(-ASIDE)?);
            Ok(up.iter().zip(down).map(|(up, down)| (up - down) / (2.0 * ASIDE)).collect())
        };
        let columns = free.iter().map(answers).collect::<Result<Vec<_>, FitError>>()?;
        let weights = free.iter().map(|parameter| parameter.step(&best.config, &self.request.start).exp().min(1.0));
        Ok(Sensitivity::new(columns, weights.collect()))
    }
    /// The parameter to give up next, and why: one that hardly matters near the best place, or that
    /// others replace there, or of which the points allow too much further away.
    fn doubtful(&self, best: &Best) -> Result<Option<(Parameter, String)>, FitError> {
        let free = self.continuous();
        // Answers are in units of the points' errors.
        if let Some((index, doubt)) = self.sensitivity(best, &free)?.doubt(1.0) {
            return Ok(Some((free[index], self.explain(free[index], doubt))));
        }
        // A parameter requested by name is fitted, with its range, however wide.
        if matches!(self.request.free, Free::These(_)) {
            return Ok(None);
        }
        let Ok(ranges) = self.ranges_of(std::slice::from_ref(best))? else { return Ok(None) };
        let wide = free.iter().rev().find(|parameter| self.is_wide(**parameter, ranges.get(parameter), best));
        Ok(wide.map(|parameter| {
            let reason = format!("the points that are used do not identify it (at an error of {})", self.error());
            (*parameter, reason)
        }))
    }
    fn is_wide(&self, parameter: Parameter, range: Option<&Range>, best: &Best) -> bool {
        let Some(range) = range else { return false };
        let size = parameter.value(&best.config).max(parameter.value(&self.request.start));
        range.is_open_above || (range.high - range.low) / 2.0 > OF_95_PERCENT * KNOWN_WITHIN_MAX * size
    }
    /// The drive with a parameter back at its start, or where it is if the points do not allow its
    /// start.
    fn held_at(&self, parameter: Parameter, best: &Best) -> SolidStateConfig {
        let start = parameter.value(&self.request.start);
        match self.ranges.get(&parameter) {
            Some(range) if !range.contains(start) => best.config.clone(),
            _ => parameter.with_value_of(&best.config, &self.request.start),
        }
    }
    fn explain(&self, parameter: Parameter, doubt: Doubt) -> String {
        let others = self.continuous().into_iter().filter(|other| *other != parameter);
        let names: Vec<String> = others.map(|other| other.to_string()).collect();
        let what = match doubt {
            Doubt::NoInfluence => "hardly depend on it".to_owned(),
            Doubt::SameAsOthers => format!("cannot distinguish it from {}", names.join(", ")),
        };
        format!("at an error of {} a point, the points that are used {what}", self.error())
    }
    fn error(&self) -> String {
        format!("{:.1} %", self.request.point_error * 100.0)
    }
    fn give_up(&mut self, parameter: Parameter, reason: String) -> Result<(), FitError> {
        if matches!(self.request.free, Free::These(_)) {
            return Err(FitError::NotDetermined { parameter, reason });
        }
        self.free.retain(|free| *free != parameter);
        self.held.push((parameter, reason));
        if !self.free.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> =
            self.held.iter().map(|(parameter, reason)| format!("{parameter}: {reason}")).collect();
        Err(FitError::NothingDetermined { reasons: reasons.join("; ") })
    }
    fn continuous(&self) -> Vec<Parameter> {
        self.free.iter().copied().filter(|parameter| *parameter != Parameter::Dies).collect()
    }
    fn told(&self, parameter: Parameter, best: &Best) -> FittedParameter {
        let held = self.held.iter().find(|(held, _)| *held == parameter);
        FittedParameter {
            parameter,
            start: parameter.value(&self.request.start),
            value: parameter.value(&best.config),
            range: self.ranges.get(&parameter).copied(),
            outcome: held.map_or(Outcome::Fitted, |(_, reason)| Outcome::Held(reason.clone())),
        }
    }
    fn points(&self) -> impl Iterator<Item = &FitPoint> {
        self.used.iter().map(|used| &used.point)
    }
    fn bench<'b>(
        &self,
        config: &SolidStateConfig,
        points: impl Iterator<Item = &'b FitPoint>,
    ) -> Result<Bench, FitError> {
        bench(self.request, config, points)
    }
}

/// The next place on a ladder, if there is one.
fn neighbour(place: usize, is_up: bool, places: usize) -> Option<usize> {
    if is_up { Some(place + 1).filter(|next| *next < places) } else { place.checked_sub(1) }
}

fn bench<'b>(
    request: &FitRequest,
    config: &SolidStateConfig,
    points: impl Iterator<Item = &'b FitPoint>,
) -> Result<Bench, FitError> {
    let loads: Vec<_> = points.map(|point| point.load).collect();
    Bench::at(config, &loads, request.state, request.seed)
}

/// The points that are used, each with its error: that of the measurement, and what is left of the
/// model's own.
fn used_points(request: &FitRequest) -> Result<Vec<UsedPoint>, FitError> {
    let bench = bench(request, &request.start, request.used())?;
    let used = request.used().map(|point| {
        let error = request.point_error.hypot(bench.error(point.load));
        UsedPoint { point: point.clone(), error }
    });
    Ok(used.collect())
}

fn same_with_other_dies(like: &[Best], error: f64) -> String {
    let mut counts: Vec<u32> = like.iter().map(|best| best.config.geometry.dies_per_channel).collect();
    counts.sort_unstable();
    let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
    let counts = counts.join(", ");
    format!("at an error of {:.1} % a point, the points fit about as well with {counts} dies", error * 100.0)
}
