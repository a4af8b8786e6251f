//! What a store counts, for people (INFO) and for Prometheus.

use crate::frames::Tally;
use crate::transport::FlashCounts;
use derive_more::Add;
use runtime::metrics::{Latencies, Latency, Number, counter, gauge, text, text_with};
use scalio::ClientCounters;
use std::fmt::Write;

/// What the loop counts.
#[derive(Clone, Copy, Debug, Default, Add)]
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
    /// How long commands took that read keys.
    pub reads: Latency,
    /// How long those took that write keys.
    pub writes: Latency,
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
    /// Whether the JBOF is there.
    pub is_there: bool,
    /// Reads of flash by a target of NVMe/TCP.
    pub flash: FlashCounts,
    /// Of the JBOF.
    pub jbof: Tally,
    /// Rows of records that were dropped.
    pub rows_dropped: u64,
}

impl Snapshot {
    fn numbers(&self) -> Vec<Number> {
        let (counts, client, flash) = (&self.counts, &self.client, &self.flash);
        let mut all = vec![
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
            counter("shared", "Reads of a key that another read of it answered.", client.shared),
            counter("foreign", "Reads of flash whose place was used again.", client.foreign),
            counter("corrupt", CORRUPT, client.corrupt + self.jbof.helper.corrupt),
            counter("flash_reads", "Reads of flash that a target of NVMe/TCP answered.", flash.reads),
            counter("flash_returned", "Reads for which the JBOF was asked instead.", flash.returned),
            gauge("flash_away", "Loops that miss the target of the flash.", flash.away),
            counter("record_rows_dropped", ROWS_DROPPED, self.rows_dropped),
        ];
        all.extend(of_jbof(&self.jbof));
        all.extend([
            gauge("connections", "Open connections.", self.connections),
            gauge("held_bytes", "Commands and answers that connections hold.", self.held_bytes),
            gauge("jbof_there", "Whether the JBOF can be reached: 1 or 0.", self.is_there.into()),
        ]);
        all
    }

    /// As INFO prints it.
    pub fn info(&self) -> String {
        let mut page = format!("# Server\r\nserver:rackweave\r\nversion:{}\r\n", env!("CARGO_PKG_VERSION"));
        page += "redis_mode:standalone\r\nrole:master\r\n# Store\r\n";
        for Number { name, value, .. } in self.numbers() {
            write!(page, "{name}:{value}\r\n").expect("a text takes all");
        }
        page + &format!("# Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n", self.jbof.keys)
    }

    /// In OpenMetrics' text format.
    pub fn text(self) -> String {
        let help = "Time from the turn in which a command was taken until its outcome was known.";
        let Counts { reads, writes, .. } = self.counts;
        text_with("rackweave_kv", &self.numbers(), Some(Latencies { help, reads, writes }))
    }
}

const ROWS_DROPPED: &str = "Rows of records dropped before they were written.";
const CORRUPT: &str = "Reads of flash whose checksum did not agree.";

fn of_jbof(tally: &Tally) -> [Number; 10] {
    let helper = &tally.helper;
    [
        counter("updates", "Updates committed.", helper.updates),
        counter("groups", "Groups of updates committed.", helper.groups),
        counter("invalidations", "Slots taken away by updates.", helper.invalidations),
        counter("sectors_written", "Sectors of 512 B written for updates.", helper.sectors_written),
        counter("sectors_moved", "Sectors of 512 B written by compaction.", helper.sectors_moved),
        counter("zones_reclaimed", "Zones won back by compaction.", helper.zones_reclaimed),
        gauge("keys", "Keys that are listed; some may have expired.", tally.keys),
        gauge("live_bytes", "Bytes of use on flash.", tally.live_bytes),
        gauge("capacity_bytes", "Bytes of use that flash can have.", tally.capacity_bytes),
        gauge("memory_bytes", "Registered memory.", tally.memory_bytes),
    ]
}

/// What a JBOF in a process of its own counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct JbofCounts {
    /// Doors accepted.
    pub accepted: u64,
    /// Doors refused at the limit.
    pub refused: u64,
    /// Doors closed since they said what they may not.
    pub wrong: u64,
    /// Verbs executed for doors.
    pub verbs: u64,
    /// Reads of flash for doors.
    pub reads: u64,
    /// Requests to the helper.
    pub requests: u64,
}

/// All values of a JBOF at one moment.
#[derive(Clone, Copy, Debug)]
pub struct JbofSnapshot {
    /// Of the loop.
    pub counts: JbofCounts,
    /// Open connections of doors.
    pub doors: u64,
    /// Of memory, flash and helper.
    pub tally: Tally,
    /// Rows of records that were dropped.
    pub rows_dropped: u64,
}

impl JbofSnapshot {
    /// In OpenMetrics' text format.
    pub fn text(self) -> String {
        let JbofSnapshot { counts, doors, tally, rows_dropped } = self;
        let mut all = vec![
            counter("doors_accepted", "Doors accepted.", counts.accepted),
            counter("doors_refused", "Doors refused at the limit.", counts.refused),
            counter("doors_wrong", "Doors closed since they said what they may not.", counts.wrong),
            counter("verbs", "Verbs executed for doors that do not share the memory.", counts.verbs),
            counter("reads", "Reads of flash for such doors.", counts.reads),
            counter("requests", "Requests to the helper.", counts.requests),
            counter("corrupt", CORRUPT, tally.helper.corrupt),
            counter("record_rows_dropped", ROWS_DROPPED, rows_dropped),
            gauge("doors", "Open connections of doors.", doors),
        ];
        all.extend(of_jbof(&tally));
        text("rackweave_jbof", &all)
    }
}
