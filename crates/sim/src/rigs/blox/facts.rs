//! What only this rig can tell of a run.

use super::BloxRig;
use crate::rigs::wear_facts::facts_of_endurance;
use base::{Span, Time};
use blox::{Body, JobKind, NodeCounters, Packet, ReturnPredictor, VssdId};
use record::metric::{self, Meter};

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

    pub(super) fn facts(&self, now: Time, meter: &mut Meter) {
        self.facts_of_network(meter);
        self.facts_of_servers(meter);
        self.facts_of_flash(meter);
        self.facts_of_channels(now, meter);
        self.facts_of_swaps(meter);
        if let Some(history) = &self.history {
            meter.count(metric::history_operations, history.operations() as f64);
        }
    }

    fn facts_of_network(&self, meter: &mut Meter) {
        let (counters, counts) = (self.switch.counters(), &self.counts);
        let (close, all) = (counts.predictions_close as f64, counts.predictions as f64);
        meter.ratio(metric::predictions_within_25us_fraction, close, all);
        for (metric, total) in [
            (metric::reads_redirected_by_switch, counters.redirected),
            (metric::reads_rescued_by_switch, counters.rescued),
            (metric::soft_requests_accepted, counters.soft_accepted),
            (metric::soft_requests_delayed, counters.soft_delayed),
            (metric::regular_requests, counters.regular),
            (metric::background_collections, counters.background),
            (metric::switch_recirculations, counters.recirculated),
            (metric::switch_malformed_packets, counters.malformed),
            (metric::packets_sent, counts.sent),
            (metric::packets_lost_at_dead_places, counts.lost),
            (metric::background_frames, counts.background_sent),
            (metric::writes_indeterminate, counts.indeterminate),
        ] {
            meter.count(metric, total as f64);
        }
        let table = blox::table_bytes(1 << 16).replica.count();
        meter.put(metric::switch_table_64ki_bytes, table as f64);
    }

    fn facts_of_servers(&self, meter: &mut Meter) {
        let sum = |field: fn(&NodeCounters) -> u64| -> u64 {
            self.servers.iter().map(|server| field(server.counters())).sum()
        };
        for (metric, total) in [
            (metric::reads_from_write_cache, sum(|counters| counters.reads_cached)),
            (metric::reads_from_flash, sum(|counters| counters.reads_device)),
            (metric::reads_redirected_by_servers, sum(|counters| counters.reads_redirected)),
            (metric::writes_that_waited_for_cache, sum(|counters| counters.waits_for_room)),
            (metric::writes_refused_by_flash, sum(|counters| counters.writes_refused)),
            (metric::requests_refused, sum(|counters| counters.refusals)),
            (metric::requests_left_unanswered, sum(|counters| counters.unanswered)),
            (metric::replicas_adopted, self.counts.adopted),
            (metric::replicas_not_adopted, self.counts.not_adopted),
            (metric::writes_to_worn_out_flash, self.counts.worn_out),
            (metric::blocks_lent, self.counts.lent),
            (metric::blocks_given_back, self.counts.given_back),
        ] {
            meter.count(metric, total as f64);
        }
    }

    /// Of the rack's own drives: what the other rack does shows in writes alone.
    fn facts_of_flash(&self, meter: &mut Meter) {
        let (mut host, mut programmed, mut collecting, mut steps, mut stalls) =
            (0_u64, 0_u64, Span::ZERO, 0_u64, 0_u64);
        let (mut erases, mut blocks, mut units) = (0, 0, 0);
        for drives in self.drives.iter().take(self.places.servers as usize) {
            for vssd in drives.vssds() {
                let (flash, region) = drives.region(vssd);
                let (Ok(layer), Ok(counters)) = (flash.layer_counters(region), flash.counters(region)) else {
                    continue;
                };
                erases += layer.erases;
                blocks += flash.layer(region).map_or(0, |layer| u64::from(layer.owned_blocks()));
                units += flash.layer(region).map_or(0, hardware::ssd::TranslationLayer::logical_units);
                host += layer.host_units;
                programmed += layer.host_units + layer.relocated_units + layer.padded_units;
                collecting += counters.collection_time;
                steps += counters.collection_steps;
                stalls += counters.stalls;
            }
        }
        let written = host as f64 - self.swapped_pages() as f64;
        let wear: Vec<_> = self.drives.iter().flat_map(super::drives::Drives::wear).collect();
        let most = wear.iter().map(|wear| wear.max).max().unwrap_or(0);
        let least = wear.iter().map(|wear| wear.min).min().unwrap_or(0);
        let amplification = meter.ratio_or(metric::write_amplification, programmed as f64, written, 1.0);
        facts_of_endurance(self.plan.flash.block_bytes() * blocks, spec::blox::PAGE * units, amplification, meter);
        meter.count(metric::erases, erases as f64);
        meter.count(metric::collection_steps, steps as f64);
        meter.count(metric::collection_flash_ms, collecting.as_ps() as f64 / 1e9);
        meter.count(metric::flash_write_stalls, stalls as f64);
        meter.put(metric::wear_erases_max, f64::from(most));
        meter.put(metric::wear_erases_spread, f64::from(most - least));
    }

    /// Judges the history, if it was kept. A violation is a warning as well.
    pub fn judge_history(&mut self, meter: &mut Meter) {
        self.record_open_writes();
        let Some(history) = &self.history else { return };
        let verdict = history.check();
        meter.count(metric::history_violations, f64::from(u8::from(verdict.is_err())));
        if let Err(violation) = verdict {
            meter.warn(format!("the history of operations is not linearizable: {violation}"));
        }
    }

    /// Writes that are still on their way may have taken effect.
    fn record_open_writes(&mut self) {
        let Some(history) = &mut self.history else { return };
        self.tracks.open_pages().for_each(|(tag, asked)| history.record(asked.in_history(tag, None)));
    }
}
