//! What a store counts, for people (INFO) and for Prometheus.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use scalio::{ClientCounters, ServerCounters};
use std::fmt::{Error, Write};

/// What the loop counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused at the limit.
    pub refused: u64,
    /// Connections ended because they were too slow.
    pub too_slow: u64,
    /// Connections ended because all together held too much memory.
    pub evicted: u64,
    /// Commands taken.
    pub commands: u64,
}

/// All values at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Of the loop.
    pub counts: Counts,
    /// Open connections.
    pub connections: u64,
    /// Bytes that they hold of commands and answers.
    pub held_bytes: u64,
    /// Of the client.
    pub client: ClientCounters,
    /// Of the helper.
    pub helper: ServerCounters,
    /// Keys that are listed.
    pub keys: u64,
    /// Bytes of use on flash.
    pub live_bytes: u64,
    /// Bytes that these may be.
    pub capacity_bytes: u64,
    /// Bytes of registered memory.
    pub memory_bytes: u64,
}

/// Kind, name, description and value.
type Number = (MetricType, &'static str, &'static str, u64);

impl Snapshot {
    fn numbers(&self) -> [Number; 24] {
        use MetricType::{Counter, Gauge};
        let (counts, client, helper) = (&self.counts, &self.client, &self.helper);
        [
            (Counter, "connections_accepted", "Connections accepted.", counts.accepted),
            (Counter, "connections_refused", "Connections refused at the limit.", counts.refused),
            (Counter, "connections_too_slow", "Connections ended because they were too slow.", counts.too_slow),
            (Counter, "connections_evicted", "Connections ended for want of memory.", counts.evicted),
            (Counter, "commands", "Commands taken.", counts.commands),
            (Counter, "hits", "Reads of a key that a slot of the index answered.", client.hits),
            (Counter, "misses", "Reads of a key that flash answered.", client.misses),
            (Counter, "fills", "Slots filled.", client.fills),
            (Counter, "evictions", "Fills begun anew since their slot was taken away.", client.evictions),
            (Counter, "waits", "Polls of a slot that was being filled.", client.waits),
            (Counter, "foreign", "Reads of flash whose place was used again.", client.foreign),
            (Counter, "corrupt", "Reads of flash whose checksum did not agree.", client.corrupt + helper.corrupt),
            (Counter, "updates", "Updates committed.", helper.updates),
            (Counter, "groups", "Groups of updates committed.", helper.groups),
            (Counter, "invalidations", "Slots taken away by updates.", helper.invalidations),
            (Counter, "sectors_written", "Sectors of 512 B written for updates.", helper.sectors_written),
            (Counter, "sectors_moved", "Sectors of 512 B written by compaction.", helper.sectors_moved),
            (Counter, "zones_reclaimed", "Zones won back by compaction.", helper.zones_reclaimed),
            (Gauge, "connections", "Open connections.", self.connections),
            (Gauge, "held_bytes", "Commands and answers that connections hold.", self.held_bytes),
            (Gauge, "keys", "Keys that are listed; some may have expired.", self.keys),
            (Gauge, "live_bytes", "Bytes of use on flash.", self.live_bytes),
            (Gauge, "capacity_bytes", "Bytes of use that flash can have.", self.capacity_bytes),
            (Gauge, "memory_bytes", "Registered memory.", self.memory_bytes),
        ]
    }

    /// As INFO prints it.
    pub fn info(&self) -> String {
        let mut text = format!("# Server\r\nserver:rackweave\r\nversion:{}\r\n", env!("CARGO_PKG_VERSION"));
        text += "redis_mode:standalone\r\nrole:master\r\n# Store\r\n";
        for (_, name, _, value) in self.numbers() {
            write!(text, "{name}:{value}\r\n").expect("a text takes all");
        }
        text + &format!("# Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n", self.keys)
    }

    /// In OpenMetrics' text format.
    pub fn text(self) -> String {
        let mut registry = Registry::with_prefix("rackweave_kv");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text takes all");
        text
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (kind, name, help, value) in self.numbers() {
            let metric = encoder.encode_descriptor(name, help, None, kind)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value).encode(metric)?,
            }
        }
        Ok(())
    }
}
