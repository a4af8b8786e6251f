//! Who asks a storage network, and what the key-value stores among them measure.

use base::Seed;
use plan::san::SanLoad;
use record::metric::{self, Meter};
use std::sync::Arc;
use workload::Source;
use workload::block_trace::Replay;
use workload::fio::Player;
use workload::imitation::Imitator;
use workload::lsm::{KindSummary, Lsm, Operations};
use workload::storage::Generator;

/// The load of a plan.
pub(super) enum SanSource {
    /// Key-value stores on log-structured trees.
    Stores(Box<Lsm>),
    /// What asks for I/Os itself.
    Ios(Box<dyn Source>),
}

impl SanSource {
    /// That of a plan, whose every draw follows from `seed`.
    pub fn new(load: &SanLoad, seed: Seed) -> SanSource {
        let source: Box<dyn Source> = match load {
            SanLoad::Stores(config) => return SanSource::Stores(Box::new(Lsm::new(config, seed))),
            SanLoad::Requests { config, .. } => Box::new(Generator::new(config, seed)),
            SanLoad::Mixed { play, .. } | SanLoad::Jobs { play, .. } => Box::new(Player::new(play, seed)),
            SanLoad::Trace(replay) => Box::new(Replay::new(replay.config.clone(), (*replay.trace).clone())),
            SanLoad::Imitation { config, .. } => Box::new(Imitator::new(config.clone(), seed)),
        };
        SanSource::Ios(source)
    }

    /// To be driven.
    pub fn as_mut(&mut self) -> &mut dyn Source {
        match self {
            SanSource::Stores(stores) => &mut **stores,
            SanSource::Ios(source) => &mut **source,
        }
    }

    /// Reads what became of key-value requests, if there are any.
    pub fn measure(&self, meter: &mut Meter) {
        if let SanSource::Stores(stores) = self {
            facts_of_stores(stores.operations(), meter);
        }
    }
}

/// What is behind the warm-up of the stores, which counts key-value requests.
fn facts_of_stores(operations: &Operations, meter: &mut Meter) {
    meter.put(metric::key_value_requests_per_s, operations.per_second());
    meter.put(metric::key_value_write_amplification, operations.write_amplification());
    meter.count(metric::key_value_write_stalls, operations.stalls() as f64);
    let kinds = workload::lsm::Kind::ALL.map(|kind| (kind.name(), operations.of(kind)));
    for (name, of) in kinds.into_iter().chain([("request", operations.all())]) {
        let KindSummary { count, mean, took_ns, ios } = of;
        meter.count(metric::key_value_kinds.at(&[&name]), count as f64);
        meter.put(metric::key_value_kind_ios.at(&[&name]), ios);
        meter.put(metric::key_value_kind_mean_ns.at(&[&name]), mean.as_ns_f64());
        let took = Arc::new(took_ns);
        for (family, quantile) in [
            (metric::key_value_kind_p50_ns, 0.5),
            (metric::key_value_kind_p99_ns, 0.99),
            (metric::key_value_kind_p999_ns, 0.999),
        ] {
            meter.percentile(family.at(&[&name]), quantile, &took, 1.0);
        }
    }
}
