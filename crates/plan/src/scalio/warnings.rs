//! What a reader must know about a key-value store before believing its numbers.

use super::fixed::SLOT_VALUE_MAX;
use super::{ProtocolName, Scalio};
use crate::warnings::measured;
use base::Span;
use workload::storage::Arrivals;

/// Operations whose history fits into the memory of a laptop: some 100 B each.
const REMEMBERED_MAX: u64 = 50_000_000;

impl Scalio {
    /// Values that are legal but probably unintended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        measured(self.run.warm_up, self.io.requests, &mut out);
        self.cache(&mut out);
        self.protocol(&mut out);
        self.history(&mut out);
        out
    }

    /// A cache for all keys, and one that starts empty and cannot be full before the run ends.
    fn cache(&self, out: &mut Vec<String>) {
        let (cached, keys) = (self.store.cached_keys, self.store.keys);
        if !self.has_cache() {
            return;
        }
        if !self.store.has_short_values() {
            let (value, most) = (self.store.value, SLOT_VALUE_MAX);
            out.push(format!("values of {value} are in no slot, which has room for {most}: every GET reads flash"));
            return;
        }
        if cached >= keys {
            out.push(format!("the cache has room for all {keys} keys: nothing is ever evicted"));
        }
        let empty = (f64::from(cached) * (1.0 - self.store.warmed)) as u64;
        if let Some(requests) = self.io.requests.filter(|requests| empty > *requests) {
            out.push(format!("{empty} places of the cache are empty, and {requests} requests cannot fill them: hit ratios are those of a cold cache"));
        }
    }

    fn has_cache(&self) -> bool {
        self.ditto.is_some() || self.options.is_some_and(|options| options.cache)
    }

    fn protocol(&self, out: &mut Vec<String>) {
        let Some(options) = self.options else { return };
        if options.protocol == ProtocolName::Paper && options.lease.is_some() {
            out.push("the paper's protocol with leases is not linearizable: a slow filler and its successor can both write a slot".into());
        }
        if options.protocol == ProtocolName::Paper && options.torn_reads {
            out.push(
                "the paper's protocol is not linearizable with torn reads: it cannot detect a mixture of two values"
                    .into(),
            );
        }
        let Arrivals::Closed { depth, .. } = self.io.arrivals else { return };
        let each = u64::from(self.store.clients) * u64::from(depth) / u64::from(self.store.devices);
        if options.batching && options.idle_flush > Span::ZERO && each < u64::from(options.batch) {
            let batch = options.batch;
            out.push(format!("{each} requests outstanding for each SSD cannot fill a group of {batch}: every group waits {} for more", options.idle_flush));
        }
    }

    fn history(&self, out: &mut Vec<String>) {
        if let Some(requests) = self.io.requests.filter(|requests| self.check_history && *requests > REMEMBERED_MAX) {
            out.push(format!("the history of {requests} operations is remembered, which takes some 100 B for each"));
        }
    }
}
