//! Live and simulated requests, side by side.

use serde::Serialize;
use std::collections::BTreeMap;
use volumes::twin::{Request, Requests, Simulated, Told};

/// Counters by role.
type Numbers = BTreeMap<String, BTreeMap<String, u64>>;

/// What is compared.
pub struct Side<'a> {
    requests: &'a Requests,
    numbers: Numbers,
    open: u64,
}

impl<'a> Side<'a> {
    /// What was live: roles with all of their lives.
    pub fn live(told: &'a Told) -> Side<'a> {
        let mut numbers = Numbers::new();
        for role in &told.replayed {
            let all = numbers.entry(role.name.clone()).or_default();
            role.numbers.iter().for_each(|(name, value)| *all.entry(name.clone()).or_default() += value);
        }
        Side { requests: &told.requests, numbers, open: 0 }
    }

    /// What was simulated.
    pub fn simulated(of: &'a Simulated) -> Side<'a> {
        Side { requests: &of.requests, numbers: of.numbers.clone(), open: of.open }
    }
}

/// Points of a drawn distribution.
const POINTS: usize = 200;

/// The percentiles of a table.
pub const PERCENTILES: [(&str, f64); 3] = [("P50", 0.5), ("P90", 0.9), ("P99", 0.99)];

/// All of it.
#[derive(Serialize)]
pub struct Comparison {
    /// Requests for pages, live.
    pub requests: u64,
    /// Those without a good end, live and simulated.
    pub failed: [u64; 2],
    /// Those that the simulation left open.
    pub open: u64,
    /// Time by operation and span.
    pub times: Vec<Times>,
    /// Counters of roles in all their lives, live and simulated.
    pub counters: Vec<Counter>,
    /// Reads that the same server answered in both, of those that ended well in both.
    pub same_server: [u64; 2],
    /// Reads that another server answered than they were sent to: in both, live only, simulated
    /// only.
    pub redirected: [u64; 3],
}

/// The times of one span.
#[derive(Serialize)]
pub struct Times {
    /// `reads`, `writes`, or what stores are asked.
    pub operation: &'static str,
    /// `total`, or a part of it.
    pub span: &'static str,
    /// How many there are, live and simulated.
    pub count: [u64; 2],
    /// Percentiles in nanoseconds, live and simulated.
    pub percentiles: BTreeMap<&'static str, [u64; 2]>,
    /// Evenly spaced in the distribution, in nanoseconds.
    #[serde(skip)]
    pub drawn: [Vec<u64>; 2],
}

/// A counter of a role.
#[derive(Serialize)]
pub struct Counter {
    /// The role.
    pub role: String,
    /// The counter.
    pub name: String,
    /// Live.
    pub live: u64,
    /// Simulated.
    pub twin: u64,
}

/// What counters say of decisions; the others count packets and pages.
const DECISIONS: [&str; 13] = [
    "redirected",
    "rescued",
    "soft_accepted",
    "soft_delayed",
    "regular",
    "background",
    "finished",
    "collections",
    "flushes",
    "waits_for_room",
    "retried",
    "suspected",
    "rebuilt",
];

impl Comparison {
    /// Of a live rack and its simulation, or of two simulations.
    pub fn of(live: &Side<'_>, twin: &Side<'_>) -> Comparison {
        let both = [live.requests, twin.requests];
        let failed = both.map(|requests| requests.all().iter().filter(|one| one.total().is_none()).count() as u64);
        let mut comparison = Comparison {
            requests: live.requests.all().len() as u64,
            failed,
            open: twin.open,
            times: times(both),
            counters: counters(&live.numbers, &twin.numbers),
            same_server: [0; 2],
            redirected: [0; 3],
        };
        comparison.pair(live.requests, twin.requests);
        comparison
    }

    /// Compares requests one by one: the doors had them in the same order.
    fn pair(&mut self, live: &Requests, twin: &Requests) {
        let [live, twin] = [live, twin].map(by_door);
        for (door, live) in &live {
            let twins = twin.get(door).map(Vec::as_slice).unwrap_or_default();
            for (live, twin) in live.iter().zip(twins).filter(|(live, _)| !live.is_write) {
                let (Some(one), Some(other)) = (live.served, twin.served) else { continue };
                self.same_server[1] += 1;
                self.same_server[0] += u64::from(one.server == other.server);
                match (live.is_redirected(), twin.is_redirected()) {
                    (true, true) => self.redirected[0] += 1,
                    (true, false) => self.redirected[1] += 1,
                    (false, true) => self.redirected[2] += 1,
                    (false, false) => {}
                }
            }
        }
    }
}

fn by_door(requests: &Requests) -> BTreeMap<u32, Vec<&Request>> {
    let mut doors: BTreeMap<u32, Vec<&Request>> = BTreeMap::new();
    requests.all().iter().for_each(|request| doors.entry(request.door.0).or_default().push(request));
    doors
}

/// The rising times of each operation and span, in nanoseconds, where there are some.
pub fn sorted_times(requests: &[&Request]) -> Vec<(&'static str, &'static str, Vec<u64>)> {
    type Part = fn(&Request) -> Option<base::Span>;
    const PARTS: [(&str, Part); 4] = [
        ("total", Request::total),
        ("to the server", |request| request.spans().map(|spans| spans.out)),
        ("in the server", |request| request.spans().map(|spans| spans.server)),
        ("back", |request| request.spans().map(|spans| spans.back)),
    ];
    let mut all = Vec::new();
    for (operation, is_write) in [("reads", false), ("writes", true)] {
        for (span, part) in PARTS {
            let those = requests.iter().filter(|request| request.is_write == is_write);
            let mut times: Vec<u64> = those.filter_map(|one| part(one)).map(|time| time.as_ps() / 1_000).collect();
            times.sort_unstable();
            if !times.is_empty() {
                all.push((operation, span, times));
            }
        }
    }
    all
}

/// Those that both have.
fn times(both: [&Requests; 2]) -> Vec<Times> {
    let [left, right] = both.map(|requests| sorted_times(&requests.all().iter().collect::<Vec<_>>()));
    let mut all = Vec::new();
    for (operation, span, left) in left {
        let right = right.iter().find(|(other, part, _)| (*other, *part) == (operation, span));
        all.extend(right.map(|(_, _, right)| Times::of(operation, span, &[left, right.clone()])));
    }
    all
}

/// Points of a distribution, evenly spaced in it.
pub fn drawn(sorted: &[u64]) -> Vec<u64> {
    let shares = (0..POINTS).map(|point| (point as f64 + 0.5) / POINTS as f64);
    shares.map(|share| percentile(sorted, share)).collect()
}

/// Whether a counter says what a role has decided.
pub fn is_decision(name: &str) -> bool {
    DECISIONS.contains(&name)
}

impl Times {
    /// Of two sides, which both have some, rising.
    pub fn of(operation: &'static str, span: &'static str, sorted: &[Vec<u64>; 2]) -> Times {
        let at = |share: f64| [0, 1].map(|side: usize| percentile(&sorted[side], share));
        let percentiles = PERCENTILES.iter().map(|(name, share)| (*name, at(*share))).collect();
        let drawn = sorted.each_ref().map(|sorted| drawn(sorted));
        let count = [0, 1].map(|side: usize| sorted[side].len() as u64);
        Times { operation, span, count, percentiles, drawn }
    }

    /// How far the twin's percentile is from the live one, as a part of that; none of zero.
    pub fn error(&self, percentile: &str) -> Option<f64> {
        let [live, twin] = self.percentiles[percentile];
        (live > 0).then(|| twin as f64 / live as f64 - 1.0)
    }
}

/// The smallest time that this share of all times does not exceed.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn counters(live: &Numbers, twin: &Numbers) -> Vec<Counter> {
    let value = |of: &Numbers, role: &str, name: &str| of.get(role).and_then(|its| its.get(name)).copied();
    let mut all = Vec::new();
    for role in live.keys() {
        for name in DECISIONS {
            let [live, twin] = [live, twin].map(|of| value(of, role, name).unwrap_or_default());
            if live > 0 || twin > 0 {
                all.push(Counter { role: role.clone(), name: name.into(), live, twin });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times: Vec<u64> = (1..=100).collect();
        assert_eq!([0.0, 0.5, 0.9, 0.99, 1.0].map(|share| percentile(&times, share)), [1, 50, 90, 99, 100]);
        assert_eq!([0.5, 0.51].map(|share| percentile(&[7, 9], share)), [7, 9]);
    }

    #[test]
    fn an_error_is_a_part_of_the_live_time() {
        let times = Times::of("reads", "total", &[vec![100], vec![115]]);
        assert!(times.error("P50").is_some_and(|error| (error - 0.15).abs() < 1e-9));
        assert_eq!(Times::of("reads", "back", &[vec![0], vec![7]]).error("P50"), None);
        assert_eq!(times.drawn[0].len(), POINTS);
    }
}
