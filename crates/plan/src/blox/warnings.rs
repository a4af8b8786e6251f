//! Warnings about plans of a rack of volumes.

use super::{Blox, CoordinationName, FlashState, NetworkName};
use crate::warnings::{measured, of_trace};
use base::Span;
use workload::storage::Arrivals;

/// A run should contain some checks of the free blocks.
const CHECKS_MIN: u64 = 3;

impl Blox {
    /// Values that are legal but probably unintended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        measured(self.run.warm_up, self.io.requests, &mut out);
        self.checks(&mut out);
        self.network(&mut out);
        self.overload(&mut out);
        self.skipped(&mut out);
        self.client_wait_max(&mut out);
        self.recirculation(&mut out);
        self.clean(&mut out);
        out
    }

    fn clean(&self, out: &mut Vec<String>) {
        if self.flash.state == FlashState::Clean && self.io.mix.write_share() < 1.0 {
            out.push("the drives hold nothing: reads of pages that were never written need no flash".into());
        }
    }

    fn checks(&self, out: &mut Vec<String>) {
        let period = self.collection.check_period;
        if let Some(duration) = self.io.duration.filter(|duration| *duration < period * CHECKS_MIN) {
            out.push(format!(
                "a run of {duration} has fewer than {CHECKS_MIN} checks of the free blocks, one every {period}: little garbage is collected"
            ));
        }
    }

    fn network(&self, out: &mut Vec<String>) {
        if self.scheduler.coordinated && self.rack.network == NetworkName::None && self.recorded_network.is_none() {
            out.push("without network delays (rack.network) coordinated I/O scheduling has nothing to weigh".into());
        }
    }

    fn client_wait_max(&self, out: &mut Vec<String>) {
        let (limit, client_wait_max) = (self.run.drain_limit, self.membership.client_wait_max());
        if limit < client_wait_max {
            out.push(format!(
                "drain_limit = {limit} is shorter than a client's wait of up to {client_wait_max} for a dead server: the run may end before its requests"
            ));
        }
    }

    /// An accepted soft request passes the switch twice, a delayed one three times.
    fn recirculation(&self, out: &mut Vec<String>) {
        let (pass, wait) = (self.rack.recirculation, self.collection.retry_after);
        if self.collection.coordination == CoordinationName::Switch && wait <= pass * 2 {
            out.push(format!(
                "answers to soft requests come too late: a pass through the switch takes {pass}, and retry_after = {wait}"
            ));
        }
    }

    fn skipped(&self, out: &mut Vec<String>) {
        let Some(replay) = &self.replay else { return };
        of_trace(&replay.trace, out);
    }

    /// The flash's share of writes alone, before any garbage collection.
    fn overload(&self, out: &mut Vec<String>) {
        let Some(offered) = self.requests_per_second else { return };
        if matches!(self.io.arrivals, Arrivals::Closed { .. }) {
            return;
        }
        let writes = offered * self.io.mix.write_share() / f64::from(self.io.volumes);
        let possible = self.writes_per_second();
        if writes > possible {
            out.push(format!(
                "each volume is offered {writes:.0} writes a second, and its flash programs {possible:.0} at most: queues grow for as long as requests arrive"
            ));
        }
    }

    /// Pages of 4 KiB that the dies of a virtual drive can program in a second, without collecting
    /// garbage.
    pub fn writes_per_second(&self) -> f64 {
        let (geometry, timing) = (self.flash.geometry(), self.flash.timing());
        let program: Span = timing.pages.iter().map(|page| page.program).sum();
        let mean_ps = program.as_ps() as f64 / timing.pages.len() as f64;
        let dies = f64::from(self.vssd.channels * geometry.dies_per_channel) / f64::from(self.vssd.group);
        dies * (geometry.page.count() as f64 / super::PAGE.count() as f64) * 1e12 / mean_ps
    }

    /// Pages of 4 KiB that the channels of a virtual drive can transfer in a second.
    pub fn reads_per_second(&self) -> f64 {
        let transfer = self.flash.timing().channel.span_of(super::PAGE);
        f64::from(self.vssd.channels) / f64::from(self.vssd.group) * 1e12 / transfer.as_ps() as f64
    }
}
