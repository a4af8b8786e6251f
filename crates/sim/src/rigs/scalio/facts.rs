//! Metrics of these designs alone.

use super::ScalioRig;
use super::asks::Ask;
use super::programs::Programs;
use super::torn_reads::TornReads;
use crate::rigs::seat::Seat;
use base::{Operation, Time};
use record::metric::{self, Meter};
use scalio::baseline::{ditto, leed};
use scalio::{Client, ClientCounters, Outcome, Server, ServerCounters, Source, Token};

/// Commands a second of one device, of which shares are given.
const DEVICE_IOPS: f64 = 500_000.0;

/// Counters of the rig beside those of its programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// GETs that have ended.
    pub gets: u64,
    /// Those of them that the cache has answered.
    pub hits: u64,
    /// PUTs that have ended.
    pub puts: u64,
    /// Requests that a server has rejected.
    pub refused: u64,
    /// Writes that may have happened or not.
    pub unknown: u64,
    /// Requests that no server has answered.
    pub unavailable: u64,
    /// Compare-and-swaps.
    pub swaps: u64,
    /// Those of them that have found another value.
    pub swaps_failed: u64,
    /// One-sided operations.
    pub verbs: u64,
    /// Reads of flash by the adapter's target.
    pub offloaded_reads: u64,
    /// Time of the last step.
    pub last: Time,
}

impl Counts {
    /// A request has ended.
    pub fn end(&mut self, ask: &Ask, outcome: &Outcome<Token>, source: Source) {
        let is_get = ask.asked.operation == Operation::Read;
        self.gets += u64::from(is_get);
        self.puts += u64::from(!is_get);
        self.hits += u64::from(is_get && source == Source::Cache);
        match outcome {
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Unknown => self.unknown += 1,
            Outcome::Unavailable => self.unavailable += 1,
            _ => {}
        }
    }
}

/// What rates and costs of a run are over.
struct Run {
    seconds: f64,
    operations: f64,
}

impl ScalioRig {
    pub(super) fn facts(&self, now: Time, meter: &mut Meter) {
        let counts = &self.counts;
        let (gets, puts) = (counts.gets as f64, counts.puts as f64);
        let run = Run { seconds: self.counts.last.saturating_since(Time::ZERO).as_secs_f64(), operations: gets + puts };
        meter.count(metric::gets, gets);
        meter.count(metric::puts, puts);
        meter.ratio(metric::cache_hit_ratio, counts.hits as f64, gets);
        meter.ratio(metric::absorbed_ratio, counts.hits as f64, run.operations);
        meter.count(metric::requests_refused, counts.refused as f64);
        meter.count(metric::requests_unknown, counts.unknown as f64);
        meter.count(metric::gets_unavailable, counts.unavailable as f64);
        meter.count(metric::writes_lost_in_crashes, self.state.lost() as f64);
        self.drives(&run, puts, meter);
        self.remote(&run, meter);
        self.cores(&run, meter);
        self.programs_counted(meter);
        if let Some(fabric) = &self.fabric {
            fabric.measure(now, meter);
        }
    }

    fn drives(&self, run: &Run, puts: f64, meter: &mut Meter) {
        let commands = self.store.devices.iter().map(super::flash::Device::commands);
        let (reads, writes) = commands.fold((0u64, 0u64), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        let ios = (reads + writes) as f64;
        meter.ratio(metric::ssd_reads_per_operation, reads as f64, run.operations);
        meter.ratio(metric::ssd_writes_per_operation, writes as f64, run.operations);
        meter.ratio(metric::ssd_writes_per_update, writes as f64, puts);
        meter.ratio(metric::ssd_ios_per_operation, ios, run.operations);
        meter.ratio(metric::ssd_iops, ios, run.seconds);
        let peak = f64::from(self.plan.store.devices) * DEVICE_IOPS;
        meter.ratio(metric::ssd_iops_of_peak_ratio, ios, run.seconds * peak);
        let written = self.store.devices.iter().map(|device| device.written().count()).sum::<u64>() as f64;
        let capacity = self.store.devices.iter().map(|device| device.capacity().count()).sum::<u64>() as f64;
        meter.count(metric::device_written_bytes, written);
        let pace = metric::device_drive_writes_per_day;
        let (written, seconds) = (meter.grown(pace, 0, written), meter.grown(pace, 1, run.seconds));
        let a_day = if seconds > 0.0 { written / capacity.max(1.0) * 86_400.0 / seconds } else { 0.0 };
        meter.put(pace, a_day);
    }

    /// What clients asked of memory and flash themselves.
    fn remote(&self, run: &Run, meter: &mut Meter) {
        let (counts, messages) = (&self.counts, self.hardware.adapter.messages() as f64);
        let most = self.plan.rdma.adapter.messages_per_second as f64;
        meter.ratio(metric::adapter_messages_per_second, messages, run.seconds);
        meter.ratio(metric::adapter_used_ratio, messages, run.seconds * most);
        meter.ratio(metric::verbs_per_operation, counts.verbs as f64, run.operations);
        meter.ratio(metric::swaps_per_operation, counts.swaps as f64, run.operations);
        meter.count(metric::torn_reads, self.store.torn_reads.as_ref().map_or(0, TornReads::torn) as f64);
        meter.count(metric::swaps_failed, counts.swaps_failed as f64);
        let offloaded = counts.offloaded_reads as f64;
        meter.ratio(metric::offloaded_reads_per_operation, offloaded, run.operations);
    }

    /// Busy shares: a percent is that of one core, as the paper counts.
    fn cores(&self, run: &Run, meter: &mut Meter) {
        let busy = self.hardware.cpu.busy();
        let of =
            |names: &[&str]| names.iter().filter_map(|name| busy.get(name)).map(|span| span.as_secs_f64()).sum::<f64>();
        let all = self.hardware.cpu.busy_total().as_secs_f64();
        for (metric, busy_s) in [
            (metric::server_cpu_percent, all),
            (metric::flash_cores_percent, of(&["submit", "complete", "memory", "batch"])),
            (metric::network_cores_percent, of(&["receive", "send"])),
            (metric::target_percent, of(&["target"])),
        ] {
            meter.ratio(metric, 100.0 * busy_s, run.seconds);
        }
        meter.ratio(metric::server_cpu_ns_per_operation, 1e9 * all, run.operations);
        for (work, span) in busy {
            meter.count(metric::server_cpu_work_s.at(&[work]), span.as_secs_f64());
        }
    }

    fn programs_counted(&self, meter: &mut Meter) {
        match &self.programs {
            Programs::Scalio { clients, servers } => {
                clients_counted(clients, meter);
                servers_counted(servers, meter);
            }
            Programs::Leed { servers, .. } => leed_counted(servers, meter),
            Programs::Ditto { clients, servers } => {
                leed_counted(servers, meter);
                let mut count = |metric, of: fn(&ditto::Counters) -> u64| {
                    let sum = clients.iter().map(|client| of(client.counters())).sum::<u64>();
                    meter.count(metric, sum as f64);
                };
                count(metric::fills, |counters| counters.fills);
                count(metric::evictions, |counters| counters.evictions);
                count(metric::restarts_lost_race, |counters| counters.lost_races);
            }
            Programs::Bare(_) => {}
        }
    }
}

fn clients_counted(clients: &[Seat<Client<Token>>], meter: &mut Meter) {
    let mut count = |metric, of: fn(&ClientCounters) -> u64| {
        let sum = clients.iter().map(|client| of(&client.counters())).sum::<u64>();
        meter.count(metric, sum as f64);
    };
    count(metric::bypasses, |counters| counters.bypasses);
    count(metric::reads_shared, |counters| counters.shared);
    count(metric::waits, |counters| counters.waits);
    count(metric::restarts_lost_race, |counters| counters.lost_races);
    count(metric::restarts_evicted, |counters| counters.evictions);
    count(metric::restarts_tie, |counters| counters.ties);
    count(metric::restarts_torn, |counters| counters.torn);
    count(metric::restarts_foreign, |counters| counters.foreign);
    count(metric::reads_corrupt, |counters| counters.corrupt);
    count(metric::fills, |counters| counters.fills);
    count(metric::requests_repeated, |counters| counters.repeats);
}

fn servers_counted(servers: &[Seat<Server<Token>>], meter: &mut Meter) {
    let sum = |of: fn(&ServerCounters) -> u64| servers.iter().map(|server| of(&server.counters())).sum::<u64>() as f64;
    let (updates, groups) = (sum(|counters| counters.updates), sum(|counters| counters.groups));
    meter.count(metric::updates, updates);
    meter.count(metric::groups, groups);
    meter.ratio(metric::updates_per_group, updates, groups);
    meter.count(metric::invalidations, sum(|counters| counters.invalidations));
    meter.count(metric::invalidation_retries, sum(|counters| counters.invalidation_retries));
    meter.count(metric::zones_reclaimed, sum(|counters| counters.zones_reclaimed));
    meter.count(metric::segments_handed_over, sum(|counters| counters.handed_over));
}

fn leed_counted(servers: &[Seat<leed::Server<Token>>], meter: &mut Meter) {
    let waiting = servers.iter().map(|server| server.counters().waiting_max).max().unwrap_or(0);
    meter.put(metric::tokens_waiting_max, waiting as f64);
    let sum = |of: fn(&leed::ServerCounters) -> u64| servers.iter().map(|server| of(server.counters())).sum::<u64>();
    meter.count(metric::sectors_reclaimed, sum(|counters| counters.reclaimed_sectors) as f64);
    meter.count(metric::segments_handed_over, sum(|counters| counters.handed_over) as f64);
}
