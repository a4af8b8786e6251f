//! What only these designs can tell, and whether what clients saw is linearizable.

use super::looks::Looks;
use super::programs::Programs;
use super::{ScalioRig, asks};
use base::{Operation, Time};
use history::{Action, History, StoreAction, StoreAnswer, StoreHistory, StoreOperation};
use record::metric::{self, Meter};
use scalio::baseline::ditto;
use scalio::{Client, ClientCounters, Outcome, Server, ServerCounters, Token};

/// A GET that finds nothing has this for a value, which nobody writes: the keys of a run are all there.
const NOTHING: u64 = u64::MAX;

/// Commands a second of one device, of which shares are given.
const DEVICE_IOPS: f64 = 500_000.0;

/// What rates and costs of a run are over.
struct Run {
    seconds: f64,
    operations: f64,
}

impl ScalioRig {
    pub(super) fn facts(&self, now: Time, meter: &mut Meter) {
        let counts = &self.counts;
        let (gets, puts) = (counts.gets as f64, counts.puts as f64);
        let run = Run { seconds: self.last.saturating_since(Time::ZERO).as_secs_f64(), operations: gets + puts };
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
        let commands = self.devices.iter().map(super::flash::Device::commands);
        let (reads, writes) = commands.fold((0u64, 0u64), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        let ios = (reads + writes) as f64;
        meter.ratio(metric::ssd_reads_per_operation, reads as f64, run.operations);
        meter.ratio(metric::ssd_writes_per_operation, writes as f64, run.operations);
        meter.ratio(metric::ssd_writes_per_update, writes as f64, puts);
        meter.ratio(metric::ssd_ios_per_operation, ios, run.operations);
        meter.ratio(metric::ssd_iops, ios, run.seconds);
        let peak = f64::from(self.plan.store.devices) * DEVICE_IOPS;
        meter.ratio(metric::ssd_iops_of_peak_ratio, ios, run.seconds * peak);
        let written = self.devices.iter().map(|device| device.written().count()).sum::<u64>() as f64;
        let capacity = self.devices.iter().map(|device| device.capacity().count()).sum::<u64>() as f64;
        meter.count(metric::device_written_bytes, written);
        let pace = metric::device_drive_writes_per_day;
        let (written, seconds) = (meter.grown(pace, 0, written), meter.grown(pace, 1, run.seconds));
        let a_day = if seconds > 0.0 { written / capacity.max(1.0) * 86_400.0 / seconds } else { 0.0 };
        meter.put(pace, a_day);
    }

    /// What clients asked of memory and flash themselves.
    fn remote(&self, run: &Run, meter: &mut Meter) {
        let (counts, messages) = (&self.counts, self.plant.adapter.messages() as f64);
        let most = self.plan.rdma.adapter.messages_per_second as f64;
        meter.ratio(metric::adapter_messages_per_second, messages, run.seconds);
        meter.ratio(metric::adapter_used_ratio, messages, run.seconds * most);
        meter.ratio(metric::verbs_per_operation, counts.verbs as f64, run.operations);
        meter.ratio(metric::swaps_per_operation, counts.swaps as f64, run.operations);
        meter.count(metric::torn_reads, self.looks.as_ref().map_or(0, Looks::torn) as f64);
        meter.count(metric::swaps_failed, counts.swaps_failed as f64);
        let offloaded = counts.offloaded_reads as f64;
        meter.ratio(metric::offloaded_reads_per_operation, offloaded, run.operations);
    }

    /// Busy shares: a percent is that of one core, as the paper counts.
    fn cores(&self, run: &Run, meter: &mut Meter) {
        let busy = self.plant.cpu.busy();
        let of =
            |names: &[&str]| names.iter().filter_map(|name| busy.get(name)).map(|span| span.as_secs_f64()).sum::<f64>();
        let all = self.plant.cpu.busy_total().as_secs_f64();
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

    /// Notes what an operation said, if somebody wants it known.
    pub(super) fn remember(&mut self, ask: &asks::Ask, outcome: &Outcome<Token>, now: Time) {
        let said = match outcome {
            Outcome::Value(value) => {
                let value = value.map(|value| value.id);
                Said { action: StoreAction::Get, answered: Some((now, StoreAnswer::Found(value))) }
            }
            Outcome::Stored => Said { answered: Some((now, StoreAnswer::Stored)), ..Said::put(ask) },
            Outcome::Unknown if ask.asked.operation != Operation::Read => Said::put(ask),
            _ => return,
        };
        self.note(ask, said);
    }

    fn note(&mut self, ask: &asks::Ask, said: Said) {
        if let Some(histories) = &mut self.histories {
            // A value that was there at first is named after its key.
            let history = histories.entry(ask.asked.key).or_insert_with(|| History::new(|(_, key)| key));
            history.record(said.on_register(ask));
        }
        if let Some(kept) = &mut self.kept {
            let Said { action, answered } = said;
            let (id, client, key) = (ask.asked.id, ask.asked.client.into(), ask.asked.key.into());
            kept.record(StoreOperation { id, client, key, action, invoked: ask.start, answered });
        }
    }

    /// Judges what clients saw, key by key. Writes that were never answered may have happened.
    pub fn judge(&mut self, meter: &mut Meter) {
        let open: Vec<asks::Ask> = self.asks.open().cloned().collect();
        for ask in open.iter().filter(|ask| ask.asked.operation != Operation::Read) {
            self.note(ask, Said::put(ask));
        }
        let Some(histories) = &self.histories else { return };
        let violations: Vec<_> = histories.values().filter_map(|history| history.check().err()).collect();
        meter.count(metric::keys_checked, histories.len() as f64);
        meter.count(metric::history_violations, violations.len() as f64);
        if let Some(first) = violations.first() {
            let count = violations.len();
            meter.warn(format!("what clients saw of {count} keys is not linearizable; the first of them: {first}"));
        }
    }

    /// What clients asked and saw, if it was kept.
    pub fn take_history(&mut self) -> Option<StoreHistory> {
        self.kept.take()
    }
}

/// What an operation did, and what it was told and when.
#[derive(Clone, Copy, Debug)]
struct Said {
    action: StoreAction,
    answered: Option<(Time, StoreAnswer)>,
}

impl Said {
    /// A PUT that was not answered.
    fn put(ask: &asks::Ask) -> Said {
        Said { action: StoreAction::Put(ask.asked.value), answered: None }
    }

    /// The same for the judge of registers.
    fn on_register(&self, ask: &asks::Ask) -> history::Operation {
        let (action, value) = match self.answered {
            Some((_, StoreAnswer::Found(value))) => (Action::Read, value.unwrap_or(NOTHING)),
            _ => (Action::Write, ask.asked.value),
        };
        let (id, register) = (ask.asked.id, (0, u64::from(ask.asked.key)));
        let responded = self.answered.map(|(at, _)| at);
        history::Operation { id, register, action, value, invoked: ask.start, responded }
    }
}

fn clients_counted(clients: &[Client<Token>], meter: &mut Meter) {
    let mut count = |metric, of: fn(&ClientCounters) -> u64| {
        let sum = clients.iter().map(|client| of(&client.counters())).sum::<u64>();
        meter.count(metric, sum as f64);
    };
    count(metric::bypasses, |counters| counters.bypasses);
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

fn servers_counted(servers: &[Server<Token>], meter: &mut Meter) {
    let sum = |of: fn(&ServerCounters) -> u64| servers.iter().map(|server| of(&server.counters())).sum::<u64>() as f64;
    let (updates, groups) = (sum(|counters| counters.updates), sum(|counters| counters.groups));
    meter.count(metric::updates, updates);
    meter.count(metric::groups, groups);
    meter.ratio(metric::updates_per_group, updates, groups);
    meter.count(metric::invalidations, sum(|counters| counters.invalidations));
    meter.count(metric::invalidation_retries, sum(|counters| counters.invalidation_retries));
    meter.count(metric::zones_reclaimed, sum(|counters| counters.zones_reclaimed));
}

fn leed_counted(servers: &[scalio::baseline::leed::Server<Token>], meter: &mut Meter) {
    let waiting = servers.iter().map(|server| server.counters().waiting_max).max().unwrap_or(0);
    meter.put(metric::tokens_waiting_max, waiting as f64);
    let reclaimed: u64 = servers.iter().map(|server| server.counters().reclaimed_sectors).sum();
    meter.count(metric::sectors_reclaimed, reclaimed as f64);
}
