//! What only this rig can tell of a run.

use super::BloxRig;
use crate::rigs::wear_facts::facts_of_endurance;
use base::Span;
use blox::{Body, JobKind, NodeCounters, Packet, ReturnPredictor, VssdId};
use hardware::ssd::FtlCounters;
use record::Summary;
use std::collections::BTreeMap;

/// RackBlox, 3.4: a prediction within so much of the truth counts as right.
const CLOSE: Span = Span::us(25);

impl BloxRig {
    /// Whether a server collects garbage in one of its vSSDs now, and whether the switch has granted that. For probes; servers count from 0, those of
    /// the other rack last.
    pub fn is_collecting(&self, server: usize, vssd: VssdId) -> (bool, bool) {
        (self.servers[server].is_collecting(vssd), self.switch.is_collecting(vssd))
    }

    /// The share of a vSSD's blocks that is free now. For probes.
    pub fn free_share(&self, server: usize, vssd: VssdId) -> f64 {
        let (flash, region) = self.drives[server].region(vssd);
        flash.free_ratio(region).unwrap_or(0.0)
    }

    /// A request has reached a server: what the server's predictor learns from it, ours does too.
    pub(super) fn learn(&mut self, packet: &Packet) {
        let kind = match packet.body {
            Body::Read { .. } => JobKind::Read,
            Body::Write { .. } => JobKind::Write,
            _ => return,
        };
        let window = self.plan.scheduler.window as usize;
        let place = packet.vssd.index();
        if self.predictors.len() <= place {
            self.predictors.resize(place + 1, None);
        }
        let predictor = self.predictors[place].get_or_insert_with(|| ReturnPredictor::new(window));
        predictor.on_packet(kind, packet.latency_ns);
    }

    /// An answer has come back: how far off the prediction is that a server would have made for it.
    pub(super) fn judge(&mut self, answer: &Packet, back: Span) {
        let kind = match answer.body {
            Body::ReadReply { .. } => JobKind::Read,
            Body::WriteReply { .. } => JobKind::Write,
            _ => return,
        };
        let Some(Some(predictor)) = self.predictors.get(answer.vssd.index()) else { return };
        let predicted = predictor.predict(kind);
        self.counts.predictions += 1;
        self.counts.predictions_close += u64::from(predicted.max(back) - predicted.min(back) <= CLOSE);
    }

    pub(super) fn facts(&self, out: &mut BTreeMap<String, f64>) {
        self.facts_of_network(out);
        self.facts_of_servers(out);
        self.facts_of_flash(out);
        self.facts_of_swaps(out);
        if let Some(history) = &self.history {
            out.insert("history_operations".into(), history.operations() as f64);
        }
    }

    fn facts_of_network(&self, out: &mut BTreeMap<String, f64>) {
        let counters = self.switch.counters();
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let table = blox::table_bytes(1 << 16).replica.count() as f64;
        for (name, value) in [
            ("predictions_within_25us_fraction", share(self.counts.predictions_close, self.counts.predictions)),
            ("reads_redirected_by_switch", counters.redirected as f64),
            ("reads_rescued_by_switch", counters.rescued as f64),
            ("soft_requests_accepted", counters.soft_accepted as f64),
            ("soft_requests_delayed", counters.soft_delayed as f64),
            ("regular_requests", counters.regular as f64),
            ("background_collections", counters.background as f64),
            ("switch_recirculations", counters.recirculated as f64),
            ("switch_malformed_packets", counters.malformed as f64),
            ("switch_table_64ki_bytes", table),
            ("packets_sent", self.counts.sent as f64),
            ("packets_lost_at_dead_places", self.counts.lost as f64),
            ("background_frames", self.counts.background_sent as f64),
            ("writes_indeterminate", self.counts.indeterminate as f64),
        ] {
            out.insert(name.into(), value);
        }
    }

    fn facts_of_servers(&self, out: &mut BTreeMap<String, f64>) {
        let sum = |field: fn(&NodeCounters) -> u64| -> f64 {
            self.servers.iter().map(|server| field(server.counters())).sum::<u64>() as f64
        };
        for (name, value) in [
            ("reads_from_write_cache", sum(|counters| counters.reads_cached)),
            ("reads_from_flash", sum(|counters| counters.reads_device)),
            ("reads_redirected_by_servers", sum(|counters| counters.reads_redirected)),
            ("writes_that_waited_for_cache", sum(|counters| counters.waits_for_room)),
            ("writes_refused_by_flash", sum(|counters| counters.writes_refused)),
            ("requests_refused", sum(|counters| counters.refusals)),
            ("requests_left_unanswered", sum(|counters| counters.unanswered)),
            ("replicas_adopted", self.counts.adopted as f64),
            ("replicas_not_adopted", self.counts.not_adopted as f64),
            ("writes_to_worn_out_flash", self.counts.worn_out as f64),
            ("blocks_lent", self.counts.lent as f64),
            ("blocks_given_back", self.counts.given_back as f64),
        ] {
            out.insert(name.into(), value);
        }
    }

    /// Of the rack's own drives: what the other rack does shows in writes alone.
    fn facts_of_flash(&self, out: &mut BTreeMap<String, f64>) {
        let (mut host, mut programmed, mut collecting, mut steps, mut stalls) =
            (0_u64, 0_u64, Span::ZERO, 0_u64, 0_u64);
        let (mut erases, mut blocks, mut units) = (0, 0, 0);
        for (server, drives) in self.drives.iter().enumerate().take(self.places.servers as usize) {
            for vssd in drives.vssds() {
                let (flash, region) = drives.region(vssd);
                let (Ok(layer), Ok(counters)) = (flash.layer_counters(region), flash.counters(region)) else {
                    continue;
                };
                let before = self.written_before.get(&(server, vssd)).copied().unwrap_or_default();
                let programmed_by = |layer: &FtlCounters| layer.host_units + layer.relocated_units + layer.padded_units;
                erases += layer.erases - before.erases;
                blocks += flash.layer(region).map_or(0, |layer| u64::from(layer.owned_blocks()));
                units += flash.layer(region).map_or(0, hardware::ssd::TranslationLayer::logical_units);
                host += layer.host_units - before.host_units;
                programmed += programmed_by(&layer) - programmed_by(&before);
                collecting += counters.collection_time;
                steps += counters.collection_steps;
                stalls += counters.stalls;
            }
        }
        host = host.saturating_sub(self.swapped_pages());
        let wear: Vec<_> = self.drives.iter().flat_map(super::drives::Drives::wear).collect();
        let most = wear.iter().map(|wear| wear.max).max().unwrap_or(0);
        let least = wear.iter().map(|wear| wear.min).min().unwrap_or(0);
        let amplification = if host == 0 { 1.0 } else { programmed as f64 / host as f64 };
        facts_of_endurance(self.plan.flash.block_bytes() * blocks, spec::blox::PAGE * units, amplification, out);
        for (name, value) in [
            ("write_amplification", amplification),
            ("erases", erases as f64),
            ("collection_steps", steps as f64),
            ("collection_flash_ms", collecting.as_ps() as f64 / 1e9),
            ("flash_write_stalls", stalls as f64),
            ("wear_erases_max", f64::from(most)),
            ("wear_erases_spread", f64::from(most - least)),
        ] {
            out.insert(name.into(), value);
        }
    }

    /// Judges the history, if it was kept: its verdict goes into the summary, and a violation into the warnings as well.
    pub fn judge_history(&mut self, summary: &mut Summary) {
        self.record_open_writes();
        let Some(history) = &self.history else { return };
        let verdict = history.check();
        summary.extra.insert("history_violations".into(), f64::from(u8::from(verdict.is_err())));
        if let Err(violation) = verdict {
            summary.warnings.push(format!("the history of operations is not linearizable: {violation}"));
        }
    }

    /// Writes that are still on their way may have taken effect.
    fn record_open_writes(&mut self) {
        let Some(history) = &mut self.history else { return };
        self.tracks.open_pages().for_each(|(tag, asked)| history.record(asked.in_history(tag, None)));
    }
}
