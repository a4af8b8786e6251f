//! Resolves the tables of a key-value store to a plan: defaults that depend on the design, ranges,
//! and combinations.

use super::file::ScalioFile;
use super::fixed::{SECTOR, SLOT_VALUE_MAX};
use super::{Cores, Options, Scalio, Store};
use crate::blox::PresetName;
use crate::blox::file::{IoArrivalsName, IoFile};
use crate::blox::resolve::addresses_of;
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::file::{ExperimentFile, FaultFile, FaultName};
use crate::kv;
use crate::plan::Fault;
use crate::quantity::Plain;
use crate::resolve::Resolver;
use base::{Bytes, Span};
use workload::storage::{Addresses, Arrivals, Assignment, Config, Mix};

/// Requests that a client keeps outstanding unless the file says otherwise: 160 clients then come
/// to about the 512 of the paper's artifact.
const DEPTH: u32 = 3;
/// I/Os that a reader of an NVMe-oF target keeps outstanding: enough for all SSDs to be busy
/// (paper, Figure 6: fio at its maximum).
const FLASH_DEPTH: u32 = 8;
const FLASH_BLOCK: Bytes = Bytes::kib(4);
/// Blocks of an SSD that readers of an NVMe-oF target address: 16 GiB.
const BARE_BLOCKS: u64 = 4 << 20;

impl Resolver<'_> {
    /// Reads all parts even if one is wrong, so that every error is reported at once.
    pub(crate) fn scalio(&mut self, file: &ExperimentFile, design: DesignName) -> Option<Scalio> {
        let store = file.store.clone().unwrap_or_default().resolve();
        self.check_store(&store, design);
        let flash = self.whole_flash(file.flash.as_ref(), "store", (None, PresetName::Samsung970Pro));
        let rdma = file.rdma.clone().unwrap_or_default().resolve();
        let is_scalio = design == DesignName::Scalio;
        let carrier = is_scalio.then(|| file.carrier.clone().unwrap_or_default().resolve());
        let cores = file.cores.clone().unwrap_or_default().resolve();
        self.check_cores(&cores);
        let options = is_scalio.then(|| self.scalio_options(&file.scalio.clone().unwrap_or_default()));
        let has_leed = matches!(design, DesignName::Leed | DesignName::LeedDitto);
        let leed = has_leed.then(|| file.leed.clone().unwrap_or_default().resolve(store.keys / store.devices));
        let has_ditto = design == DesignName::LeedDitto;
        let ditto = has_ditto.then(|| file.ditto.clone().unwrap_or_default().resolve());
        let run_file = file.run.clone().unwrap_or_default();
        let io_file = file.io.clone().unwrap_or_default();
        let end = (run_file.requests, run_file.duration.map(Plain::plain));
        let io = self.store_io(&io_file, &store, design, end);
        let run = self.run(&run_file, false);
        let faults = self.store_faults(file.fault.as_deref().unwrap_or_default(), &store, design);
        self.problems.is_empty().then_some(Scalio {
            design,
            store,
            flash,
            rdma,
            carrier,
            cores,
            options,
            leed,
            ditto,
            io,
            requests_per_second: io_file.requests_per_second,
            check_history: io_file.check_history(),
            run,
            faults,
        })
    }

    fn check_store(&mut self, store: &Store, design: DesignName) {
        if store.client_nodes > store.clients {
            let reason = format!("{} clients cannot be on {} machines", store.clients, store.client_nodes);
            self.conflict("store.client_nodes", reason);
        }
        if design == DesignName::Scalio {
            self.check_log(store);
        } else if !store.has_short_values() {
            let allowed = format!("8B to {SLOT_VALUE_MAX} with the design {}", design.word());
            self.report("store.value", Problem::out_of_range(store.value, allowed));
        }
    }

    /// Zones are as those of the live store.
    fn check_log(&mut self, store: &Store) {
        let zone = Bytes::new(u64::from(store.zone_sectors()) * SECTOR);
        if store.zone.is_some_and(|zone| !zone.count().is_multiple_of(4_096)) {
            self.report("store.zone", Problem::out_of_range(zone, "a multiple of 4KiB"));
        }
        if !kv::fits_zone(store.value, zone) {
            let allowed = format!("a ninth of a zone of {zone} (`store.zone`) less 12KiB at most");
            self.report("store.value", Problem::out_of_range(store.value, allowed));
        }
        if let Some(size) = store.size.filter(|size| !kv::is_whole(*size, zone)) {
            let allowed = format!("whole zones of {zone} (`store.zone`), from 12 to 1048576 of them, up to 8TiB");
            self.report("store.size", Problem::out_of_range(size, allowed));
        }
    }

    fn check_cores(&mut self, cores: &Cores) {
        let Cores { count, network, flash, .. } = *cores;
        if network + flash > count.saturating_sub(1) {
            let reason =
                format!("{network} cores for the network, {flash} for SSDs and one of control are more than {count}");
            self.conflict("cores.count", reason);
        }
    }

    fn scalio_options(&mut self, file: &ScalioFile) -> Options {
        let options = file.resolve();
        if !options.batching && (file.batch.is_some() || file.idle_flush.is_some()) {
            self.conflict("scalio.batching", "`batch` and `idle_flush` are not valid with batching = false");
        }
        options
    }

    fn store_io(
        &mut self,
        file: &IoFile,
        store: &Store,
        design: DesignName,
        (requests, duration): (Option<u64>, Option<Span>),
    ) -> Config {
        let bare = design.is_bare_flash();
        let (mix, by_profile) =
            if bare { (Mix::with_write_share(0.0), Addresses::Uniform) } else { self.pairs_mix(file) };
        let block = if bare { FLASH_BLOCK } else { store.value };
        let io = Config {
            clients: store.clients,
            volumes: if bare { store.devices } else { 1 },
            assignment: Assignment::All,
            block,
            working_set_blocks: if bare { BARE_BLOCKS } else { u64::from(store.keys) },
            mix,
            addresses: popular(file, by_profile),
            arrivals: self.store_arrivals(file, store, if bare { FLASH_DEPTH } else { DEPTH }),
            requests,
            duration,
        };
        if self.sound(&["store", "io", "run"]) {
            self.impossible("io", io.problems());
        }
        io
    }

    /// The mix of operations, and the default distribution of keys. YCSB scatters popular items
    /// over its keys by hashing them; the store hashes keys itself, and the paper's hit ratios are
    /// those of a law over its 20 million keys, not over YCSB's ten billion items.
    fn pairs_mix(&mut self, file: &IoFile) -> (Mix, Addresses) {
        if file.profile.as_deref() == Some("ycsb-e") {
            self.conflict("io.profile", "ycsb-e scans, and the store has no order of keys");
        }
        let (mix, addresses) = self.io_mix(file);
        match addresses {
            Addresses::ScrambledZipfian { theta } => (mix, Addresses::Zipfian { theta }),
            other => (mix, other),
        }
    }

    fn store_arrivals(&mut self, file: &IoFile, store: &Store, depth: u32) -> Arrivals {
        let is_closed = matches!(file.arrivals, None | Some(IoArrivalsName::Closed));
        let file = IoFile { depth: file.depth.or(is_closed.then_some(depth)), ..file.clone() };
        self.io_arrivals(&file, store.clients)
    }

    fn store_faults(&mut self, files: &[FaultFile], store: &Store, design: DesignName) -> Vec<Fault> {
        if !files.is_empty() && design != DesignName::Scalio {
            self.conflict("fault", format!("faults are not modelled with the design {}", design.word()));
        }
        self.rack_faults(files, ("store", store.clients + 1), |_, _, file| {
            let is_of_node = matches!(file.kind?, FaultName::NodeDown | FaultName::NodeUp);
            (!is_of_node).then_some("clients and the JBOF stop and come back: node-down, node-up")
        })
    }
}

/// A constant without a law is that of the law over the store's keys.
fn popular(file: &IoFile, by_profile: Addresses) -> Addresses {
    match (file.theta.filter(|_| file.addresses.is_none()), by_profile) {
        (Some(theta), Addresses::Latest { .. }) => Addresses::Latest { theta },
        (Some(theta), _) => Addresses::Zipfian { theta },
        (None, _) => addresses_of(file, by_profile),
    }
}
