//! Memory behind a controller: a fixed access latency and a bandwidth.

use base::{Bytes, Operation, Rate, Span, Time};
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

impl DramConfig {
    /// Whether an access takes any time.
    pub fn takes_time(&self) -> bool {
        self.latency > Span::ZERO || self.bandwidth.is_some()
    }
    /// The time of a lone access of `size`.
    pub fn access(&self, size: Bytes) -> Span {
        self.latency + self.bandwidth.map_or(Span::ZERO, |bandwidth| bandwidth.span_of(size))
    }
}

/// Which accesses of memory a remote request takes at its two ends, besides the access of a remote
/// read to the target's memory. One definition for every design: each is one access of the whole
/// data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RemoteAccess {
    /// A write ends when the target's memory has taken its data, as a local write does. Otherwise
    /// it ends when its last byte is at the memory controller.
    pub stores_writes: bool,
    /// The data of a write are read from the source's memory. Otherwise they are in a buffer of the
    /// NIC.
    pub fetches_writes: bool,
    /// A read ends when the source's memory has taken its data. Otherwise it ends at the
    /// application.
    pub stores_reads: bool,
}

impl RemoteAccess {
    /// Whether `operation` reads the source's memory before its data can be sent.
    pub fn fetches(&self, operation: Operation) -> bool {
        operation == Operation::Write && self.fetches_writes
    }
    /// Whether `operation` ends with an access of the memory at the receiver of its data.
    pub fn stores(&self, operation: Operation) -> bool {
        match operation {
            Operation::Write => self.stores_writes,
            Operation::Read => self.stores_reads,
            Operation::ReadModifyWrite => false,
        }
    }
    /// The same in a memory that may take no time: then no access is worth an event.
    pub fn in_memory(self, memory: &DramConfig) -> RemoteAccess {
        if memory.takes_time() { self } else { RemoteAccess::default() }
    }
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
