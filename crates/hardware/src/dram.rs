//! Memory behind a controller: a fixed access latency and a bandwidth.

use base::{Bytes, Rate, Span, Time};
use serde::Serialize;

/// Configuration of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DramConfig {
    /// From the request at the controller to the first byte. Zero leaves memory out of a fabric
    /// measurement.
    pub latency: Span,
    /// All channels together; `None` is unlimited.
    pub bandwidth: Option<Rate>,
}

/// One node's memory. Accesses are pipelined: the latency overlaps, the data bus does not.
#[derive(Clone, Copy, Debug)]
pub struct Dram {
    config: DramConfig,
    bus_free_at: Time,
}

impl Dram {
    /// An idle memory.
    pub fn new(config: DramConfig) -> Dram {
        Dram { config, bus_free_at: Time::ZERO }
    }
    /// Starts an access of `size` and returns when its last byte is there.
    pub fn submit(&mut self, now: Time, size: Bytes) -> Time {
        let ready = now + self.config.latency;
        let Some(bandwidth) = self.config.bandwidth else { return ready };
        self.bus_free_at = self.bus_free_at.max(ready) + bandwidth.span_of(size);
        self.bus_free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_overlaps_and_the_bus_does_not() {
        let config = DramConfig { latency: Span::ns(50), bandwidth: Some(Rate::gbps(512)) };
        let mut dram = Dram::new(config);
        assert_eq!(dram.submit(Time::ZERO, Bytes::new(64)), Time::ns(51));
        assert_eq!(dram.submit(Time::ZERO, Bytes::new(64)), Time::ns(52));
        assert_eq!(dram.submit(Time::ns(100), Bytes::new(64)), Time::ns(151));
    }

    #[test]
    fn no_bandwidth_limit_means_latency_alone() {
        let mut dram = Dram::new(DramConfig { latency: Span::ns(50), bandwidth: None });
        assert_eq!(dram.submit(Time::ns(1), Bytes::kib(64)), Time::ns(51));
    }
}
