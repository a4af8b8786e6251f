//! What an experiment is about decides which of its tables and keys mean something. All others are refused, by one list.

use crate::design_file::DesignName;
use crate::error::Problem;
use crate::resolve::Resolver;
use crate::soundness::is_below;
use SceneName::{Devices, Messages, Pairs, San, Volumes, Wear};

/// What a design is about, and so which part of the program reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SceneName {
    /// Messages between nodes around a switch.
    Messages,
    /// Volumes on storage servers.
    Volumes,
    /// Volumes that wear over years, without requests.
    Wear,
    /// Hosts and drives on a topology.
    San,
    /// The devices of a machine.
    Devices,
    /// A key-value store on a box of SSDs, or the box without a store.
    Pairs,
}

/// Tables and keys that do not go with every scene, and those that they go with. The rest of a table goes where the table goes.
const GOES_WITH: [(&str, &[SceneName]); 77] = [
    ("fabric", &[Messages, San]),
    ("memory", &[Messages]),
    ("workload", &[Messages]),
    ("background", &[Messages]),
    ("design.stack", &[Messages]),
    ("rack", &[Volumes]),
    ("flash", &[Volumes, San, Devices, Pairs]),
    ("flash.pages_per_block", &[Volumes, Devices]),
    ("flash.erase", &[Volumes, San, Devices]),
    ("flash.suspension_overhead", &[Volumes, San, Devices]),
    ("flash.suspension_limit", &[Volumes, San, Devices]),
    ("flash.victim", &[Volumes, San, Devices]),
    ("flash.hot_cold", &[Volumes, San, Devices]),
    ("flash.state", &[Volumes, Devices]),
    ("flash.steady", &[Volumes, Devices]),
    ("flash.snapshot", &[Volumes]),
    ("flash.snapshot_digest", &[Volumes]),
    ("fit", &[Volumes, San, Devices, Pairs]),
    ("vssd", &[Volumes]),
    ("scheduler", &[Volumes]),
    ("collection", &[Volumes]),
    ("controller", &[Volumes]),
    ("membership", &[Volumes]),
    ("swap", &[Volumes]),
    ("wear", &[Wear]),
    ("lsm", &[San]),
    ("drives", &[San]),
    ("routing", &[San]),
    ("reservation", &[San]),
    ("scheduling", &[San]),
    ("gimbal", &[San]),
    ("check", &[San]),
    ("host", &[San]),
    ("target", &[San]),
    ("wire", &[San]),
    ("prices", &[San]),
    ("machine", &[Devices]),
    ("nic", &[Devices]),
    ("software", &[Devices]),
    ("askers", &[Devices]),
    ("task", &[Devices]),
    ("store", &[Pairs]),
    ("verbs", &[Pairs]),
    ("carrier", &[Pairs]),
    ("cores", &[Pairs]),
    ("scalio", &[Pairs]),
    ("leed", &[Pairs]),
    ("ditto", &[Pairs]),
    ("run", &[Messages, Volumes, San, Devices, Pairs]),
    ("fault", &[Messages, Volumes, San, Pairs]),
    ("io", &[Volumes, San, Devices, Pairs]),
    ("io.profile", &[Volumes, San, Pairs]),
    ("io.write_share", &[Volumes, San, Devices, Pairs]),
    ("io.write_run", &[Volumes, San]),
    ("io.addresses", &[Volumes, San, Devices, Pairs]),
    ("io.theta", &[Volumes, San, Devices, Pairs]),
    ("io.arrivals", &[Volumes, San, Devices, Pairs]),
    ("io.depth", &[Volumes, San, Devices, Pairs]),
    ("io.think", &[Volumes, San, Devices, Pairs]),
    ("io.requests_per_second", &[Volumes, San, Devices, Pairs]),
    ("io.assignment", &[Volumes, San]),
    ("io.size", &[San]),
    ("io.sizes", &[San]),
    ("io.footprint", &[San]),
    ("io.drive", &[San]),
    ("io.job", &[San]),
    ("io.job_digest", &[San]),
    ("io.imitation", &[San]),
    ("io.trace", &[Volumes, San]),
    ("io.trace_digest", &[Volumes, San]),
    ("io.format", &[Volumes, San]),
    ("io.stripe", &[Volumes, San]),
    ("io.time_scale", &[Volumes, San]),
    ("io.beyond", &[Volumes, San]),
    ("io.skip_bad", &[Volumes, San]),
    ("io.inversions", &[Volumes, San]),
    ("io.check_history", &[Volumes, Pairs]),
];

impl DesignName {
    /// What the design is about.
    pub(crate) fn scene(self) -> SceneName {
        match self {
            DesignName::Edm
            | DesignName::Dctcp
            | DesignName::Dcqcn
            | DesignName::Pfabric
            | DesignName::ReceiverDriven
            | DesignName::Cxl
            | DesignName::Fastpass
            | DesignName::RawEthernet
            | DesignName::Rocev2
            | DesignName::HardwareTcp => Messages,
            DesignName::Rackblox | DesignName::RackbloxSoftware | DesignName::Vdc => Volumes,
            DesignName::WearLevelling => Wear,
            DesignName::San | DesignName::SanPlain => San,
            DesignName::SDirect | DesignName::Linux | DesignName::Spdk | DesignName::TargetOffload => Devices,
            DesignName::Scalio
            | DesignName::Leed
            | DesignName::LeedDitto
            | DesignName::NvmeOf
            | DesignName::NvmeOfOffload => Pairs,
        }
    }
}

impl Resolver<'_> {
    /// Refuses what means nothing to the design; of a table that is refused, the table alone.
    pub(crate) fn refuse_what_means_nothing(&mut self, design: DesignName) {
        let strangers = GOES_WITH.iter().filter(|(_, scenes)| !scenes.contains(&design.scene()));
        let mut refused: Vec<&str> = Vec::new();
        for (path, _) in strangers {
            if self.document.at(path).is_some() && !refused.iter().any(|table| is_below(path, table)) {
                let key = path.rsplit('.').next().unwrap_or(path);
                self.conflict(path, format!("`{key}` does not go with the design {}", design.word()));
                refused.push(path);
            }
        }
    }

    /// Asks for tables that the design cannot do without.
    pub(crate) fn need_tables(&mut self, tables: &[&str], design: DesignName) {
        for table in tables {
            if self.document.at(table).is_none() && !self.soundness.is_broken(table) {
                self.soundness.mark(table);
                self.report("", Problem::missing(table, &format!("the design {} needs it", design.word())));
            }
        }
    }

    /// Refuses tables that mean nothing to this one of a scene's designs.
    pub(crate) fn foreign_tables(&mut self, tables: &[&str], design: DesignName) {
        for table in tables {
            self.refuse_key(table, &format!("`{table}` does not go with the design {}", design.word()));
        }
    }
}

/// Whether a table or a key means something in `scene`, as far as that is known of the whole scene.
pub(crate) fn goes_with(path: &str, scene: SceneName) -> bool {
    GOES_WITH.iter().all(|(listed, scenes)| *listed != path || scenes.contains(&scene))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema;
    use std::collections::BTreeSet;

    /// Tables that every experiment may have, whatever it is about; a `design`'s own tables are looked at with all points.
    const OF_ALL: [&str; 7] = ["title", "seed", "seeds", "files", "design", "sweep", "scale"];

    fn keys_of(schema: &serde_json::Value) -> BTreeSet<String> {
        schema["properties"].as_object().expect("a table has keys").keys().cloned().collect()
    }

    #[test]
    fn every_table_of_an_experiment_says_what_it_goes_with() {
        let listed = GOES_WITH.iter().map(|(path, _)| *path).filter(|path| !path.contains('.'));
        let listed: BTreeSet<String> = listed.chain(OF_ALL).map(str::to_owned).collect();
        assert_eq!(listed, keys_of(&schema()));
    }

    #[test]
    fn every_key_of_io_says_what_it_goes_with() {
        let listed = GOES_WITH.iter().filter_map(|(path, _)| path.strip_prefix("io."));
        let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
        assert_eq!(listed, keys_of(&schema()["$defs"]["IoFile"]));
    }

    #[test]
    fn nothing_is_listed_twice_or_goes_with_nothing() {
        let paths: BTreeSet<&str> = GOES_WITH.iter().map(|(path, _)| *path).collect();
        assert_eq!(paths.len(), GOES_WITH.len());
        assert!(GOES_WITH.iter().all(|(_, scenes)| !scenes.is_empty()));
    }

    #[test]
    fn a_key_is_below_its_table_and_not_below_one_whose_name_it_begins_with() {
        assert!(is_below("io.size", "io"));
        assert!(!is_below("io", "io") && !is_below("iota.size", "io"));
    }
}
