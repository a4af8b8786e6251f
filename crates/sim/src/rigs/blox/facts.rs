//! What only this rig can tell of a run.

use super::BloxRig;
use super::background::Background;
use crate::rigs::wear_facts::facts_of_endurance;
use base::{Span, Time};
use blox::{NodeCounters, VssdId};
use record::metric::{self, Meter};

/// Counters of the rig beside those of its programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost at dead places.
    pub lost: u64,
    /// Writes that may have happened or not.
    pub indeterminate: u64,
    /// Replicas that were adopted.
    pub adopted: u64,
    /// Replicas for which there was no room.
    pub not_adopted: u64,
    /// Writes to flash that is worn out.
    pub worn_out: u64,
    /// Blocks that a vSSD of a channel group had from another.
    pub lent: u64,
    /// Blocks that it gave back.
    pub given_back: u64,
}

impl BloxRig {
    /// Whether a server collects garbage in one of its vSSDs now, and whether the switch has
    /// granted that. For probes; servers count from 0, those of the other rack last.
    pub fn is_collecting(&self, server: usize, vssd: VssdId) -> (bool, bool) {
        (self.programs.servers[server].is_collecting(vssd), self.programs.switch.is_collecting(vssd))
    }

    /// The share of a vSSD's blocks that is free now. For probes.
    pub fn free_share(&self, server: usize, vssd: VssdId) -> f64 {
        let (flash, region) = self.devices[server].region(vssd);
        flash.free_ratio(region).unwrap_or(0.0)
    }

    pub(super) fn facts(&self, now: Time, meter: &mut Meter) {
        self.facts_of_network(meter);
        self.facts_of_servers(meter);
        self.facts_of_flash(meter);
        self.facts_of_channels(now, meter);
        self.facts_of_swaps(meter);
        self.judges.measure_history(meter);
    }

    fn facts_of_network(&self, meter: &mut Meter) {
        let (counters, counts) = (self.programs.switch.counters(), &self.counts);
        self.judges.measure(meter);
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
            (metric::background_frames, self.background.as_ref().map_or(0, Background::sent)),
            (metric::writes_indeterminate, counts.indeterminate),
        ] {
            meter.count(metric, total as f64);
        }
        let table = blox::table_bytes(super::configs::TABLE_ENTRIES).replica.count();
        meter.put(metric::switch_table_bytes, table as f64);
    }

    fn facts_of_servers(&self, meter: &mut Meter) {
        let sum = |field: fn(&NodeCounters) -> u64| -> u64 {
            self.programs.servers.iter().map(|server| field(server.counters())).sum()
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
        for drives in self.devices.servers.iter().take(self.places.servers as usize) {
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
        let wear: Vec<_> = self.devices.servers.iter().flat_map(super::drives::Drives::wear).collect();
        let most = wear.iter().map(|wear| wear.max).max().unwrap_or(0);
        let least = wear.iter().map(|wear| wear.min).min().unwrap_or(0);
        let amplification = meter.ratio_or(metric::write_amplification, programmed as f64, written, 1.0);
        facts_of_endurance(self.plan.flash.block_bytes() * blocks, plan::blox::PAGE * units, amplification, meter);
        meter.count(metric::erases, erases as f64);
        meter.count(metric::collection_steps, steps as f64);
        meter.count(metric::collection_flash_ms, collecting.as_ps() as f64 / 1e9);
        meter.count(metric::flash_write_stalls, stalls as f64);
        meter.put(metric::wear_erases_max, f64::from(most));
        meter.put(metric::wear_erases_spread, f64::from(most - least));
    }

    /// Judges the history, if it was kept. Writes that are still on their way may have taken
    /// effect.
    pub fn judge_history(&mut self, meter: &mut Meter) {
        self.tracks.open_pages().for_each(|(tag, asked)| self.judges.record(tag, asked, None));
        self.judges.check(meter);
    }
}
