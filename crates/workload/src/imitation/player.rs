//! Plays a [`Shape`].

use super::{EXTENT, ImitationConfig, Shape};
use crate::generator::{Arrival, Source};
use crate::limits::Limits;
use crate::permutation::Permutation;
use crate::problem::{Checker, NODES_MAX, Problem, SIZE_MAX};
use crate::storage::Zipfian;
use base::{Bytes, NodeId, Operation, Request, Seed, Stream, Time};

/// The unit of addresses.
const BLOCK: u64 = 4096;
/// Scatters popular extents.
const SCATTER_KEY: u64 = 0x517c_c1b7_2722_0a95;

impl ImitationConfig {
    /// What is impossible about it, in the order of its fields.
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Checker::default();
        self.shape.check(&mut check);
        check.range("clients", u64::from(self.clients), 1, u64::from(NODES_MAX) - 1);
        let volumes_max = u64::from(NODES_MAX).saturating_sub(u64::from(self.clients)).max(1);
        check.range("volumes", u64::from(self.volumes), 1, volumes_max);
        let least = self.shape.sizes().max().unwrap_or(0).max(EXTENT.count());
        check.range("capacity", self.capacity.count(), least, 1 << 60);
        let is_positive = self.time_scale > 0.0 && self.time_scale.is_finite();
        check.number("time_scale", self.time_scale, "a positive, finite number", is_positive);
        if self.requests.is_none() && self.duration.is_none() {
            check.add(Problem::NoEnd);
        }
        check.problems()
    }
}

impl Shape {
    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.reads.iter().chain(&self.writes).map(|(bytes, _)| bytes.count())
    }

    fn check(&self, check: &mut Checker) {
        let share = |share: f64| (0.0..=1.0).contains(&share);
        check.number("shape.read_share", self.read_share, "between 0 and 1", share(self.read_share));
        for (field, sizes) in [("shape.reads", &self.reads), ("shape.writes", &self.writes)] {
            check.weights(field, sizes.iter().map(|(_, weight)| *weight));
            sizes.iter().for_each(|(bytes, _)| check.range(field, bytes.count(), 1, SIZE_MAX.count()));
        }
        check.number("shape.sequential_share", self.sequential_share, "between 0 and 1", share(self.sequential_share));
        let rate = self.requests_per_second;
        check.number("shape.requests_per_second", rate, "a positive number up to 1e12", rate > 0.0 && rate <= 1e12);
        let variation = self.gap_variation;
        check.number("shape.gap_variation", variation, "between 1 and 1000", (1.0..=1e3).contains(&variation));
        let is_exponent = self.theta > 0.0 && self.theta < 1.0;
        check.number("shape.theta", self.theta, "between 0 and 1, both excluded", is_exponent);
    }
}

/// Plays an [`ImitationConfig`]: an open loop in which every request draws gap, client, volume,
/// direction, size and place from a stream of its own (`workload/imitation/...`).
#[derive(Clone, Debug)]
pub struct Imitator {
    config: ImitationConfig,
    phases: Phases,
    zipfian: Zipfian,
    scatter: Permutation,
    extents: u64,
    /// Where the last request on each volume has ended.
    ends: Vec<u64>,
    now_ps: f64,
    limits: Limits,
    gaps: Stream,
    nodes: Stream,
    sizes: Stream,
    places: Stream,
}

/// Two phases with balanced means: each makes up half of all time.
#[derive(Clone, Copy, Debug)]
struct Phases {
    /// How likely a gap is a short one.
    short: f64,
    short_ps: f64,
    long_ps: f64,
}

impl Phases {
    fn new(mean_ps: f64, variation: f64) -> Phases {
        let square = variation * variation;
        let short = (1.0 + ((square - 1.0) / (square + 1.0)).sqrt()) / 2.0;
        Phases { short, short_ps: mean_ps / (2.0 * short), long_ps: mean_ps / (2.0 * (1.0 - short)) }
    }

    fn draw(self, stream: &mut Stream) -> f64 {
        let mean = if stream.unit() < self.short { self.short_ps } else { self.long_ps };
        stream.exponential(mean)
    }
}

impl Imitator {
    /// A player of `config`. `seed` decides every draw.
    ///
    /// # Panics
    /// If `config` has [`problems`](ImitationConfig::problems). Check external configurations
    /// first.
    pub fn new(config: ImitationConfig, seed: Seed) -> Imitator {
        let problems = config.problems();
        assert!(problems.is_empty(), "the imitation was not checked: {}", problems[0]);
        let extents = config.capacity.count() / EXTENT.count();
        let mean_ps = 1e12 / config.shape.requests_per_second * config.time_scale;
        let stream = |purpose: &str| seed.stream(&format!("workload/imitation/{purpose}"));
        Imitator {
            phases: Phases::new(mean_ps, config.shape.gap_variation),
            zipfian: Zipfian::new(extents, config.shape.theta),
            scatter: Permutation::new(extents, SCATTER_KEY),
            extents,
            ends: vec![u64::MAX; config.volumes as usize],
            now_ps: 0.0,
            limits: Limits::new(config.requests, config.duration),
            gaps: stream("gaps"),
            nodes: stream("nodes"),
            sizes: stream("sizes"),
            places: stream("places"),
            config,
        }
    }

    /// Returns how many requests were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    fn next(&mut self) -> Option<Arrival> {
        self.now_ps += self.phases.draw(&mut self.gaps);
        // Whole picoseconds up to 2^53, an hour and more behind that still below a nanosecond.
        let at = Time::ps(self.now_ps as u64);
        let id = self.limits.admit(at)?;
        let client = self.nodes.below(u64::from(self.config.clients)) as u32;
        let volume = self.nodes.below(u64::from(self.config.volumes)) as u32;
        let (operation, bytes) = self.draw_size();
        let address = self.draw_address(volume, bytes.count());
        let (source, target) = (NodeId(client), NodeId(self.config.clients + volume));
        Some(Arrival { at, request: Request { id, operation, source, target, address, bytes } })
    }

    fn draw_size(&mut self) -> (Operation, Bytes) {
        let shape = &self.config.shape;
        let is_read = self.sizes.unit() < shape.read_share;
        let (operation, sizes) =
            if is_read { (Operation::Read, &shape.reads) } else { (Operation::Write, &shape.writes) };
        let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        let mut rest = self.sizes.unit() * total;
        let drawn = sizes.iter().find(|(_, weight)| {
            rest -= weight;
            rest < 0.0
        });
        let (bytes, _) = drawn.or(sizes.last()).expect("there are sizes, as was checked");
        (operation, *bytes)
    }

    fn draw_address(&mut self, volume: u32, bytes: u64) -> u64 {
        let capacity = self.config.capacity.count();
        let end = self.ends[volume as usize];
        let follows = self.places.unit() < self.config.shape.sequential_share;
        let draw = self.places.unit();
        let block = self.places.below(EXTENT.count() / BLOCK);
        // Each volume has hot places of its own.
        let rank = (self.zipfian.rank(draw) + u64::from(volume)) % self.extents;
        let fits = end <= capacity && bytes <= capacity - end;
        let place = self.scatter.at(rank) * EXTENT.count() + block * BLOCK;
        let address = if follows && fits { end } else { place.min((capacity - bytes) / BLOCK * BLOCK) };
        self.ends[volume as usize] = address + bytes;
        address
    }
}

impl Source for Imitator {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        out.extend(self.next());
    }

    fn after_arrival(&mut self, _taken: &Arrival) -> Option<Arrival> {
        self.next()
    }

    fn after_end(&mut self, _now: Time, _finished: &Request) -> Option<Arrival> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{IMITATIONS, Imitation, imitation};
    use super::*;
    use crate::block_trace::{BlockRequest, Inspection, Report};
    use crate::storage::zeta;
    use std::collections::BTreeMap;

    const REQUESTS: u64 = 200_000;

    fn config(imitation: &Imitation) -> ImitationConfig {
        ImitationConfig {
            shape: imitation.shape(),
            clients: 8,
            volumes: 27,
            capacity: Bytes::new(1 << 32),
            time_scale: 1.0,
            requests: Some(REQUESTS),
            duration: None,
        }
    }

    fn played(config: ImitationConfig) -> Vec<Arrival> {
        let mut imitator = Imitator::new(config, Seed(1));
        let mut played = Vec::new();
        imitator.start(&mut played);
        while let Some(next) = played.last().and_then(|last| imitator.after_arrival(last)) {
            played.push(next);
        }
        played
    }

    fn report(arrivals: &[Arrival]) -> Report {
        let mut inspection = Inspection::default();
        for Arrival { at, request } in arrivals {
            let Request { operation, target, address, bytes, .. } = *request;
            inspection.add(&BlockRequest { at: *at, device: target.0, operation, address, bytes });
        }
        inspection.report(|_| None)
    }

    fn close(name: &str, what: &str, got: f64, wanted: f64, relative: f64) {
        assert!((got / wanted - 1.0).abs() < relative, "{name}: {what} is {got}, it should be {wanted}");
    }

    #[test]
    fn each_imitation_has_the_statistics_of_its_table() {
        for each in &IMITATIONS {
            let report = report(&played(config(each)));
            let mean = |table: &[(u64, f64)]| table.iter().map(|(bytes, weight)| *bytes as f64 * weight).sum::<f64>();
            close(each.name, "share of reads", report.read_share, each.read_share, 0.01);
            close(each.name, "mean read", report.reads.mean_bytes, mean(each.reads), 0.01);
            close(each.name, "mean write", report.writes.mean_bytes, mean(each.writes), 0.01);
            // Popular blocks follow each other by chance, too.
            let chance = report.sequential_share - each.sequential_share;
            assert!((-0.001..0.002).contains(&chance), "{}: {chance}", each.name);
            close(each.name, "rate", report.requests_per_second, each.requests_per_second, 0.02);
            close(each.name, "variation", report.gap_variation, each.gap_variation, 0.03);
            assert!(report.end_bytes <= 1 << 32);
        }
    }

    #[test]
    fn the_tables_say_what_their_sources_print() {
        let mean = |sizes: &[(u64, f64)]| sizes.iter().map(|(bytes, weight)| *bytes as f64 * weight).sum::<f64>();
        let oltp = imitation("oltp-like").unwrap();
        close(oltp.name, "mean size", mean(oltp.writes), 4.38 * 1024.0, 0.001);
        let websearch = imitation("websearch-like").unwrap();
        close(websearch.name, "mean read", mean(websearch.reads), 15_419.7, 0.001);
        let tpcc = imitation("tpcc-like").unwrap();
        close(tpcc.name, "mean read", mean(tpcc.reads), 8_289.23, 0.02);
        for each in &IMITATIONS {
            for sizes in [each.reads, each.writes] {
                assert!((sizes.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9, "{}", each.name);
            }
        }
        assert_eq!(imitation("oltp"), None, "an imitation says that it is one");
    }

    #[test]
    fn load_is_scaled_by_a_factor_on_time_and_nothing_else_changes() {
        let calm = played(config(&IMITATIONS[0]));
        let fast = played(ImitationConfig { time_scale: 0.001, ..config(&IMITATIONS[0]) });
        assert!(calm.iter().zip(&fast).all(|(calm, fast)| calm.request == fast.request));
        let ratio = calm.last().unwrap().at.as_secs_f64() / fast.last().unwrap().at.as_secs_f64();
        assert!((ratio - 1000.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn the_most_popular_extents_have_their_share() {
        let mut extents: BTreeMap<u64, u64> = BTreeMap::new();
        let small = ImitationConfig { volumes: 1, capacity: EXTENT * 1000, ..config(&IMITATIONS[0]) };
        for Arrival { request, .. } in played(small) {
            *extents.entry(request.address / EXTENT.count()).or_default() += 1;
        }
        let mut counts: Vec<u64> = extents.into_values().collect();
        counts.sort_unstable();
        let top = counts.iter().rev().take(10).sum::<u64>() as f64 / REQUESTS as f64;
        // All ranks but the first two are drawn from a smooth approximation, which favours the
        // first ones by some percent.
        close("oltp-like", "share of the first ten", top, zeta(10, 0.9) / zeta(1000, 0.9), 0.06);
    }

    #[test]
    fn what_is_impossible_is_named() {
        let good = config(&IMITATIONS[0]);
        assert_eq!(good.problems(), []);
        let smooth = Shape { gap_variation: 0.5, ..good.shape.clone() };
        let problems = ImitationConfig { shape: smooth, capacity: Bytes::new(100), requests: None, ..good }.problems();
        let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(texts[0], "shape.gap_variation: 0.5 is not between 1 and 1000");
        assert_eq!(texts[1], "capacity: 100 is outside 65536..=1152921504606846976");
        assert_eq!(texts.len(), 3);
    }
}
