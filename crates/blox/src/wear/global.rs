//! The balancer between the servers of a rack (RackBlox, 3.6).

use super::{LookOut, SsdPlace, SsdWear, Swap, WearError, place_of_largest};

/// How the servers of a rack are balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalConfig {
    /// Days between two checks: 56 in the paper, as a swap between servers crosses the network.
    pub period_days: u32,
    /// Maximum drives of either server that one check exchanges. The paper does not give it.
    pub pairs: u32,
}

/// Decides which drives of two servers exchange what they hold.
#[derive(Clone, Debug)]
pub struct GlobalBalancer {
    config: GlobalConfig,
    look_out: LookOut,
}

impl GlobalBalancer {
    /// Of a rack. Fails without a period or pairs.
    pub fn new(config: GlobalConfig) -> Result<GlobalBalancer, WearError> {
        config.check()?;
        Ok(GlobalBalancer { config, look_out: LookOut::new(config.period_days) })
    }
    /// Checks the drives of each server, if a period has passed since the last check. The server
    /// with the largest mean wear moves the contents of its fastest wearing drives to the server
    /// whose drives wear most slowly in the mean, in exchange for those that wear slowest there.
    /// Pairs without gain are skipped; all are if it is the same server.
    pub fn check(&mut self, day: u32, servers: &[Vec<SsdWear>]) -> Vec<Swap> {
        if !self.look_out.is_due(day) {
            return Vec::new();
        }
        let worn = place_of_largest(servers.iter().map(|ssds| mean(ssds, |ssd| ssd.erases)));
        let resting = place_of_largest(servers.iter().map(|ssds| -mean(ssds, |ssd| ssd.erases_per_day)));
        match worn.zip(resting) {
            Some((worn, resting)) if worn != resting => self.pairs(servers, worn, resting),
            _ => Vec::new(),
        }
    }

    fn pairs(&self, servers: &[Vec<SsdWear>], worn: usize, resting: usize) -> Vec<Swap> {
        let rate = |server: usize, ssd: usize| servers[server][ssd].erases_per_day;
        let slowest_of_resting = by_rate(&servers[resting]);
        let fastest_of_worn = by_rate(&servers[worn]).into_iter().rev();
        let pairs = fastest_of_worn.zip(slowest_of_resting).take(self.config.pairs as usize);
        let gains = pairs.filter(|(fast, slow)| rate(worn, *fast) > rate(resting, *slow));
        gains.map(|(fast, slow)| Swap { worn: place(worn, fast), resting: place(resting, slow) }).collect()
    }
}

impl GlobalConfig {
    pub(super) fn check(&self) -> Result<(), WearError> {
        WearError::check(self.period_days > 0, "period_days", 0, "at least a day is needed")?;
        WearError::check(self.pairs > 0, "pairs", 0, "at least one is needed")
    }
}

fn place(server: usize, ssd: usize) -> SsdPlace {
    SsdPlace { server: server as u32, ssd: ssd as u32 }
}

fn mean(ssds: &[SsdWear], of: impl Fn(&SsdWear) -> f64) -> f64 {
    ssds.iter().map(of).sum::<f64>() / ssds.len().max(1) as f64
}

/// The places of drives, the slowest first.
fn by_rate(ssds: &[SsdWear]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..ssds.len()).collect();
    places.sort_by(|one, other| ssds[*one].erases_per_day.total_cmp(&ssds[*other].erases_per_day));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer(pairs: u32) -> GlobalBalancer {
        GlobalBalancer::new(GlobalConfig { period_days: 56, pairs }).expect("these numbers are allowed")
    }

    fn server(pairs: &[(f64, f64)]) -> Vec<SsdWear> {
        pairs
            .iter()
            .map(|(erases, erases_per_day)| SsdWear { erases: *erases, erases_per_day: *erases_per_day })
            .collect()
    }

    fn swap(worn: (usize, usize), resting: (usize, usize)) -> Swap {
        Swap { worn: place(worn.0, worn.1), resting: place(resting.0, resting.1) }
    }

    /// Server 1 is worn most in the mean (but has not the most worn drive), server 2 wears slowest.
    fn rack() -> Vec<Vec<SsdWear>> {
        vec![
            server(&[(90.0, 1.0), (10.0, 9.0)]),
            server(&[(60.0, 3.0), (70.0, 8.0)]),
            server(&[(50.0, 4.0), (40.0, 2.0)]),
        ]
    }

    #[test]
    fn the_fastest_drive_of_the_most_worn_server_meets_the_slowest_of_the_slowest() {
        assert_eq!(balancer(1).check(56, &rack()), [swap((1, 1), (2, 1))]);
    }

    #[test]
    fn pairs_that_would_gain_nothing_are_left_out() {
        // The second pair would be 3.0 a day for 4.0 a day.
        assert_eq!(balancer(2).check(56, &rack()), [swap((1, 1), (2, 1))]);
    }

    #[test]
    fn a_rack_waits_eight_weeks_between_looks() {
        let mut balancer = balancer(1);
        assert_eq!(balancer.check(55, &rack()), []);
        assert_eq!(balancer.check(56, &rack()).len(), 1);
        assert_eq!(balancer.check(111, &rack()), []);
        assert_eq!(balancer.check(112, &rack()).len(), 1);
    }

    #[test]
    fn a_server_that_rests_already_is_left_alone() {
        let rack = [server(&[(90.0, 1.0)]), server(&[(80.0, 2.0)])];
        assert_eq!(balancer(1).check(56, &rack), []);
        assert_eq!(balancer(1).check(56, &[]), []);
    }

    #[test]
    fn a_balancer_without_a_period_or_pairs_is_refused() {
        let refused = |period_days, pairs| GlobalBalancer::new(GlobalConfig { period_days, pairs }).is_err();
        assert!(refused(0, 1) && refused(56, 0) && !refused(56, 1));
    }
}
