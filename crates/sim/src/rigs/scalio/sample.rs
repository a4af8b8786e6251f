//! The state of a key-value store for series.

use super::programs::Programs;
use super::{InFlight, ScalioRig};
use crate::sampler::Probe;
use base::Time;
use record::Series;

impl ScalioRig {
    pub(super) fn sample_state(&self, now: Time, probe: &mut Probe) {
        if self.has_cache() {
            probe.put(Series::CacheHits, self.counts.hits as f64);
            probe.put(Series::CacheMisses, (self.counts.gets - self.counts.hits) as f64);
        }
        probe.put_cores(now, &self.hardware.cpu);
        let mut under_way = vec![0_u32; self.store.devices.len()];
        for device in self.in_flight.iter().filter_map(|(_, packet)| packet.at_drive(now)) {
            under_way[device as usize] += 1;
        }
        probe.put_each(Series::DriveCommands, 0, under_way.into_iter().map(f64::from));
        if let Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } = &self.programs {
            probe.put_each(Series::TokenCalls, 0, servers.iter().map(|server| server.tokens().1 as f64));
            probe.put_each(Series::TokensTaken, 0, servers.iter().map(|server| f64::from(server.tokens().0)));
        }
        if let Some(fabric) = &self.fabric {
            fabric.sample(now, probe);
        }
    }

    fn has_cache(&self) -> bool {
        self.plan.ditto.is_some() || self.plan.options.is_some_and(|options| options.cache)
    }
}

impl InFlight {
    /// The drive that has a command at `now`, if one has.
    fn at_drive(&self, now: Time) -> Option<u32> {
        match self {
            InFlight::Io { device, done, .. } | InFlight::Offloaded { device, done, .. } => {
                (now <= done.end).then_some(*device)
            }
            InFlight::Bare(read) => read.at_drive(now),
            _ => None,
        }
    }
}
