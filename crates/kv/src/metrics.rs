//! What a store counts, for people (INFO) and for Prometheus.

use runtime::metrics::{Number, counter, gauge, text};
use scalio::{ClientCounters, ServerCounters};
use std::fmt::Write;

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
    /// Commands that were slow.
    pub slow: u64,
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

impl Snapshot {
    fn numbers(&self) -> [Number; 25] {
        let (counts, client, helper) = (&self.counts, &self.client, &self.helper);
        [
            counter("connections_accepted", "Connections accepted.", counts.accepted),
            counter("connections_refused", "Connections refused at the limit.", counts.refused),
            counter("connections_too_slow", "Connections ended because they were too slow.", counts.too_slow),
            counter("connections_evicted", "Connections ended for want of memory.", counts.evicted),
            counter("commands", "Commands taken.", counts.commands),
            counter("slow_commands", "Commands that took `limits.slow_after` or longer.", counts.slow),
            counter("hits", "Reads of a key that a slot of the index answered.", client.hits),
            counter("misses", "Reads of a key that flash answered.", client.misses),
            counter("fills", "Slots filled.", client.fills),
            counter("evictions", "Fills begun anew since their slot was taken away.", client.evictions),
            counter("waits", "Polls of a slot that was being filled.", client.waits),
            counter("foreign", "Reads of flash whose place was used again.", client.foreign),
            counter("corrupt", "Reads of flash whose checksum did not agree.", client.corrupt + helper.corrupt),
            counter("updates", "Updates committed.", helper.updates),
            counter("groups", "Groups of updates committed.", helper.groups),
            counter("invalidations", "Slots taken away by updates.", helper.invalidations),
            counter("sectors_written", "Sectors of 512 B written for updates.", helper.sectors_written),
            counter("sectors_moved", "Sectors of 512 B written by compaction.", helper.sectors_moved),
            counter("zones_reclaimed", "Zones won back by compaction.", helper.zones_reclaimed),
            gauge("connections", "Open connections.", self.connections),
            gauge("held_bytes", "Commands and answers that connections hold.", self.held_bytes),
            gauge("keys", "Keys that are listed; some may have expired.", self.keys),
            gauge("live_bytes", "Bytes of use on flash.", self.live_bytes),
            gauge("capacity_bytes", "Bytes of use that flash can have.", self.capacity_bytes),
            gauge("memory_bytes", "Registered memory.", self.memory_bytes),
        ]
    }

    /// As INFO prints it.
    pub fn info(&self) -> String {
        let mut page = format!("# Server\r\nserver:rackweave\r\nversion:{}\r\n", env!("CARGO_PKG_VERSION"));
        page += "redis_mode:standalone\r\nrole:master\r\n# Store\r\n";
        for Number { name, value, .. } in self.numbers() {
            write!(page, "{name}:{value}\r\n").expect("a text takes all");
        }
        page + &format!("# Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n", self.keys)
    }

    /// In OpenMetrics' text format.
    pub fn text(self) -> String {
        text("rackweave_kv", &self.numbers())
    }
}
