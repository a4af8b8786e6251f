//! What only these designs can tell, and whether what clients saw is linearizable.

use super::looks::Looks;
use super::programs::Programs;
use super::{ScalioRig, asks};
use base::{Operation, Time};
use history::{Action, History, StoreAction, StoreAnswer, StoreHistory, StoreOperation};
use record::Summary;
use scalio::baseline::ditto;
use scalio::{Client, ClientCounters, Outcome, Server, ServerCounters, Token};
use std::collections::BTreeMap;

/// A GET that finds nothing has this for a value, which nobody writes: the keys of a run are all there.
const NOTHING: u64 = u64::MAX;

impl ScalioRig {
    pub(super) fn facts(&self, out: &mut BTreeMap<String, f64>) {
        let mut add = |name: &str, value: f64| {
            out.insert(name.to_string(), value);
        };
        let counts = &self.counts;
        let (gets, puts) = (counts.gets as f64, counts.puts as f64);
        let operations = (gets + puts).max(1.0);
        let commands = self.devices.iter().map(super::flash::Device::commands);
        let (reads, writes) = commands.fold((0u64, 0u64), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        add("gets", gets);
        add("puts", puts);
        add("cache_hit_ratio", counts.hits as f64 / gets.max(1.0));
        add("absorbed_ratio", counts.hits as f64 / operations);
        add("ssd_reads_per_operation", reads as f64 / operations);
        add("ssd_writes_per_operation", writes as f64 / operations);
        add("ssd_writes_per_update", writes as f64 / puts.max(1.0));
        add("ssd_ios_per_operation", (reads + writes) as f64 / operations);
        let seconds = self.last.saturating_since(Time::ZERO).as_secs_f64().max(1e-12);
        add("ssd_iops", (reads + writes) as f64 / seconds);
        add(
            "ssd_iops_of_peak_ratio",
            (reads + writes) as f64 / seconds / (f64::from(self.plan.store.devices) * 500_000.0),
        );
        let written = self.devices.iter().map(|device| device.written().count()).sum::<u64>() as f64;
        let capacity = self.devices.iter().map(|device| device.capacity().count()).sum::<u64>() as f64;
        add("device_written_bytes", written);
        add("device_drive_writes_per_day", written / capacity.max(1.0) * 86_400.0 / seconds);
        add("requests_refused", counts.refused as f64);
        add("requests_unknown", counts.unknown as f64);
        add("gets_unavailable", counts.unavailable as f64);
        add("writes_lost_in_crashes", self.state.lost() as f64);
        self.remote(seconds, operations, out);
        self.cores(seconds, operations, out);
        self.programs_counted(out);
        if let Some(fabric) = &self.fabric {
            fabric.facts(out);
        }
    }

    /// What clients asked of memory and flash themselves.
    fn remote(&self, seconds: f64, operations: f64, out: &mut BTreeMap<String, f64>) {
        let counts = &self.counts;
        let mut add = |name: &str, value: f64| {
            out.insert(name.to_string(), value);
        };
        add("adapter_messages_per_second", self.plant.adapter.messages() as f64 / seconds);
        add(
            "adapter_used_ratio",
            self.plant.adapter.messages() as f64 / seconds / self.plan.rdma.adapter.messages_per_second as f64,
        );
        add("verbs_per_operation", counts.verbs as f64 / operations);
        add("swaps_per_operation", counts.swaps as f64 / operations);
        add("torn_reads", self.looks.as_ref().map_or(0, Looks::torn) as f64);
        add("swaps_failed", counts.swaps_failed as f64);
        add("offloaded_reads_per_operation", counts.offloaded_reads as f64 / operations);
    }

    /// Busy shares: a percent is that of one core, as the paper counts.
    fn cores(&self, seconds: f64, operations: f64, out: &mut BTreeMap<String, f64>) {
        let busy = self.plant.cpu.busy();
        let of =
            |names: &[&str]| names.iter().filter_map(|name| busy.get(name)).map(|span| span.as_secs_f64()).sum::<f64>();
        let flash = of(&["submit", "complete", "memory", "batch"]);
        let all = self.plant.cpu.busy_total().as_secs_f64();
        let mut add = |name: &str, value: f64| {
            out.insert(name.to_string(), value);
        };
        add("server_cpu_percent", 100.0 * all / seconds);
        add("flash_cores_percent", 100.0 * flash / seconds);
        add("network_cores_percent", 100.0 * of(&["receive", "send"]) / seconds);
        add("target_percent", 100.0 * of(&["target"]) / seconds);
        add("server_cpu_ns_per_operation", 1e9 * all / operations);
        for (name, span) in busy {
            add(&format!("server_cpu_{name}_s"), span.as_secs_f64());
        }
    }

    fn programs_counted(&self, out: &mut BTreeMap<String, f64>) {
        match &self.programs {
            Programs::Scalio { clients, servers } => {
                clients_counted(clients, out);
                servers_counted(servers, out);
            }
            Programs::Leed { servers, .. } => leed_counted(servers, out),
            Programs::Ditto { clients, servers } => {
                leed_counted(servers, out);
                let mut add = |name: &str, of: fn(&ditto::Counters) -> u64| {
                    let sum = clients.iter().map(|client| of(client.counters())).sum::<u64>();
                    out.insert(name.to_string(), sum as f64);
                };
                add("fills", |counters| counters.fills);
                add("evictions", |counters| counters.evictions);
                add("restarts_lost_race", |counters| counters.lost_races);
            }
            Programs::Bare => {}
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
    pub fn judge(&mut self, summary: &mut Summary) {
        let open: Vec<asks::Ask> = self.asks.open().cloned().collect();
        for ask in open.iter().filter(|ask| ask.asked.operation != Operation::Read) {
            self.note(ask, Said::put(ask));
        }
        let Some(histories) = &self.histories else { return };
        let violations: Vec<_> = histories.values().filter_map(|history| history.check().err()).collect();
        summary.extra.insert("keys_checked".into(), histories.len() as f64);
        summary.extra.insert("history_violations".into(), violations.len() as f64);
        if let Some(first) = violations.first() {
            let count = violations.len();
            summary
                .warnings
                .push(format!("what clients saw of {count} keys is not linearizable; the first of them: {first}"));
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

fn clients_counted(clients: &[Client<Token>], out: &mut BTreeMap<String, f64>) {
    let mut add = |name: &str, of: fn(&ClientCounters) -> u64| {
        let sum = clients.iter().map(|client| of(&client.counters())).sum::<u64>();
        out.insert(name.to_string(), sum as f64);
    };
    add("bypasses", |counters| counters.bypasses);
    add("waits", |counters| counters.waits);
    add("restarts_lost_race", |counters| counters.lost_races);
    add("restarts_evicted", |counters| counters.evictions);
    add("restarts_tie", |counters| counters.ties);
    add("restarts_torn", |counters| counters.torn);
    add("restarts_foreign", |counters| counters.foreign);
    add("reads_corrupt", |counters| counters.corrupt);
    add("fills", |counters| counters.fills);
    add("requests_repeated", |counters| counters.repeats);
}

fn servers_counted(servers: &[Server<Token>], out: &mut BTreeMap<String, f64>) {
    let sum = |of: fn(&ServerCounters) -> u64| servers.iter().map(|server| of(&server.counters())).sum::<u64>() as f64;
    let (updates, groups) = (sum(|counters| counters.updates), sum(|counters| counters.groups));
    let named = [
        ("updates", updates),
        ("groups", groups),
        ("updates_per_group", updates / groups.max(1.0)),
        ("invalidations", sum(|counters| counters.invalidations)),
        ("invalidation_retries", sum(|counters| counters.invalidation_retries)),
        ("zones_reclaimed", sum(|counters| counters.zones_reclaimed)),
    ];
    out.extend(named.map(|(name, value)| (name.to_string(), value)));
}

fn leed_counted(servers: &[scalio::baseline::leed::Server<Token>], out: &mut BTreeMap<String, f64>) {
    let waiting = servers.iter().map(|server| server.counters().waiting_max).max().unwrap_or(0);
    out.insert("tokens_waiting_max".into(), waiting as f64);
    let reclaimed: u64 = servers.iter().map(|server| server.counters().reclaimed_sectors).sum();
    out.insert("sectors_reclaimed".into(), reclaimed as f64);
}
