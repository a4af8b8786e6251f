//! Every design on a small rack.

use plan::{DesignName, Plan};

/// The plan of a design on its rack.
pub fn plan(design: &str, rack: &str) -> Plan {
    let text = format!("title = 'small'\ndesign.name = '{design}'\n{rack}\n");
    let experiment =
        plan::parse("small.toml", &text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    experiment.points(None).remove(0).plan
}

const MESSAGES: &str = "fabric = { nodes = 8, rate = '100Gbps' }\nworkload = { load = 0.6 }\n\
    run = { requests = 2000, warm_up_requests = 0 }";
const VOLUMES: &str = "rack = { servers = 2, clients = 2 }\nvssd = { per_ssd = 1, capacity = '64MiB' }\n\
    flash.pages_per_block = 64\nio.write_share = 0.5\nrun = { requests = 2000, warm_up_requests = 0 }";
const SAN: &str = "fabric = { kind = 'single-switch', hosts = 2, targets = 2 }\n\
    drives = { per_target = 1, capacity = '256MiB' }\nio = { write_share = 0.5, depth = 4 }\n\
    run = { requests = 2000, warm_up_requests = 0 }";
const DEVICES: &str = "machine.blocks_per_plane = 16\nio = { depth = 4, write_share = 0.5 }\n\
    run = { requests = 2000, warm_up_requests = 0 }";
const PAIRS: &str = "store = { devices = 2, clients = 8, client_nodes = 2, keys = 4000, cached_keys = 400 }\n\
    io = { profile = 'ycsb-a', depth = 2 }\nrun = { requests = 2000, warm_up_requests = 0 }";
const BARE: &str = "store = { devices = 2, clients = 2, client_nodes = 1 }\nio.depth = 2\n\
    run = { requests = 2000, warm_up_requests = 0 }";

/// Every design that is no rival of EDM's, and a rack for it.
const RACKS: [(&str, &[&str]); 5] = [
    (VOLUMES, &["rackblox", "vdc", "rackblox-software"]),
    (SAN, &["san-plain", "san"]),
    (DEVICES, &["s-direct", "linux", "spdk", "target-offload"]),
    (PAIRS, &["scalio", "leed", "leed-ditto"]),
    (BARE, &["nvme-of", "nvme-of-offload"]),
];

/// Every design, behind its rack.
pub fn all() -> Vec<(&'static str, String)> {
    let messages = [DesignName::Edm].iter().chain(DesignName::RIVALS).map(|design| (MESSAGES, design.word()));
    let others = RACKS.into_iter().flat_map(|(rack, all)| all.iter().map(move |design| (rack, design.to_string())));
    messages.chain(others).collect()
}
