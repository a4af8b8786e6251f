//! Plans of a JBOF in a process of its own: where doors come in, its flash, and its memory.

use crate::document::Node;
use crate::error::{PlanErrors, Problem, Problems};
use crate::kv::{check_flash, check_provider, is_loopback};
use crate::quantity::Quantity;
use crate::scalio::ProtocolName;
use crate::table::table;
use crate::target::resolve::Resolver;
use crate::target::{LogFormatName, LogLevelName, Records, RecordsFile};
use base::Bytes;
use serde_json::Value as Json;

/// The configuration of a JBOF.
#[derive(Clone, Debug, PartialEq)]
pub struct JbofPlan {
    /// The Unix socket for doors of this machine.
    pub socket: Option<String>,
    /// Where doors come in over TCP, `ADDRESS:PORT`.
    pub listen: Option<String>,
    /// The file of the secret that doors know too.
    pub secret_file: Option<String>,
    /// Where doors access the memory by libfabric, `ADDRESS:PORT`.
    pub fabric: Option<String>,
    /// The provider of libfabric.
    pub fabric_provider: String,
    /// A missing secret is meant.
    pub insecure: bool,
    /// Where metrics and health are served over HTTP, `ADDRESS:PORT`.
    pub metrics: Option<String>,
    /// Which messages are logged.
    pub log: LogLevelName,
    /// How they are written.
    pub log_format: LogFormatName,
    /// The file of the flash.
    pub path: String,
    /// Size of the flash.
    pub size: Bytes,
    /// Size of a zone.
    pub zone: Bytes,
    /// Blocks of the index.
    pub blocks: u32,
    /// Slots of a block.
    pub slots: u32,
    /// Bytes of the longest value.
    pub value: Bytes,
    /// Whether an update is answered after a flush of the file.
    pub flush: bool,
    /// Whether the file has all its room from the start.
    pub reserve: bool,
    /// How doors and helper keep the slots in memory right.
    pub protocol: ProtocolName,
    /// Which requests of doors leave a row.
    pub records: Option<Records>,
}

table! {
    /// Memory and flash of a key-value store, for doors in other processes (`rackweave kv`).
    #[schemars(title = "Rackweave JBOF")]
    JbofFile => JbofPlan {
        /// A Unix socket for doors of this machine, which the owner alone may use. They share the
        /// memory and read the flash themselves.
        socket: String [length from 1],
        /// Where doors come in over TCP: an address and a port. The JBOF executes their verbs.
        listen: String,
        /// The file whose first line, of 32 letters at least, doors know too: what passes is
        /// encrypted and authenticated with it.
        secret_file: String [length from 1],
        /// Where doors that came in at `listen` access the memory by libfabric: an address of this
        /// machine that they reach, and a port; 0 for a free one. What libfabric carries is not
        /// encrypted.
        fabric: String where [given listen],
        /// The provider of libfabric: `tcp` on any machine, `verbs` with a card for RDMA, or
        /// another one that connects endpoints and has compare-and-swaps of 64 bits.
        fabric_provider: String [length from 1] where [given fabric] = "tcp".into(),
        /// Listen at another address than a loopback one without a `secret_file`.
        insecure: bool = false,
        /// Serve `/metrics` (Prometheus) and `/healthz` at this address, such as "127.0.0.1:9440".
        metrics: String,
        /// Which messages are logged.
        log: LogLevelName = LogLevelName::Info,
        /// How they are written.
        log_format: LogFormatName = LogFormatName::Text,
        /// The file of the flash, made if it is not there, or a block device. It is that of a store
        /// with the JBOF inside as well, with the same `size`, `zone` and `blocks`.
        path: String [length from 1] where [needed] => String::new(),
        /// Size of the flash: at least 12 zones. Compaction needs a sixth to a third of it.
        size: Quantity<Bytes> = Bytes::new(1 << 30),
        /// Size of a zone, the unit in which space is won back.
        zone: Quantity<Bytes> ["112KiB" to "8GiB"] = Bytes::new(16 << 20),
        /// Blocks of the index, each for up to 945 keys; about 15 are best.
        blocks: u32 [1 to 16_777_216] = 65_536,
        /// Slots of a block. Each takes 112 bytes of memory and caches a value of up to 64 bytes.
        slots: u32 [0 to 64] = 8,
        /// The longest value. With its key it may take a ninth of a zone.
        value: Quantity<Bytes> = Bytes::new(1 << 20),
        /// Answer an update only when it survives a loss of power.
        flush: bool = true,
        /// Take the room of the whole file at the start, and keep it, so that nothing else fills
        /// the file system under the store. Without, the file takes room as it is written.
        reserve: bool = false,
        /// How doors and helper keep the slots in memory right. With `"paper"` a door that pauses
        /// past its lease can bring old values back: for study alone.
        protocol: ProtocolName = ProtocolName::Linearizable,
        /// Keep a row a request of a door, in the columns of the simulator.
        records: RecordsFile,
    }
}

/// Why libfabric at an address of a network is insecure, also with a secret.
pub(crate) const PLAIN_FABRIC: &str = "libfabric carries everything in plain, also the key of the memory: at this \
                                       address others can read along and change it; `insecure = true` says it is meant";

/// Reads and checks the file of a JBOF. `name` is for messages.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of
/// range, impossible combinations.
pub fn parse(name: &str, text: &str) -> Result<JbofPlan, PlanErrors> {
    let mut problems = Problems::new(name, None);
    let document = Node::parse(text, &mut problems);
    problems.finish()?;
    let (file, mut resolver): (JbofFile, _) = Resolver::begin(name, &document, &schema())?;
    let plan = file.resolve();
    if plan.socket.is_none() && plan.listen.is_none() {
        let why = "doors come in by a `socket`, or at an address (`listen`), or both";
        resolver.report("", Problem::missing("socket", why));
    }
    for (key, address) in [("listen", &plan.listen), ("fabric", &plan.fabric)] {
        let Some(address) = address else { continue };
        resolver.address(key, address);
        if is_loopback(address) || plan.insecure {
            continue;
        }
        if plan.secret_file.is_none() {
            let why = "at this address others could read and change everything; `insecure = true` says it is meant";
            resolver.report(key, Problem::missing("secret_file", why));
        } else if key == "fabric" {
            resolver.report(key, Problem::missing("insecure", PLAIN_FABRIC));
        }
    }
    if let Some(fabric) = &plan.fabric {
        let is_one = !["0.0.0.0:", "[::]:"].iter().any(|every| fabric.starts_with(every));
        let allowed = "one address of this machine: doors are told to connect to it";
        resolver.expect("fabric", is_one, format!("`{fabric}`"), allowed);
    }
    check_provider(&mut resolver, "fabric_provider", &plan.fabric_provider);
    plan.metrics.iter().for_each(|address| resolver.address("metrics", address));
    check_flash(&mut resolver, plan.size, plan.zone, plan.value);
    resolver.finish().map(|()| plan)
}

/// The JSON Schema (draft 2020-12) of the file: every key with its description, allowed values,
/// unit and default.
pub fn schema() -> Json {
    crate::schema::schema_of::<JbofFile>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("jbof.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_path_and_a_way_in_are_all_that_a_file_needs() {
        let plan = parse("", "path = 'flash'\nsocket = 's'\n").expect("it is right");
        assert_eq!(
            (plan.size, plan.zone, plan.blocks, plan.flush),
            (Bytes::new(1 << 30), Bytes::new(16 << 20), 65_536, true)
        );
        parse("", "path = 'flash'\nlisten = '127.0.0.1:9441'\n").expect("it is right");
        assert!(refused("path = 'flash'\n").contains("socket"));
        assert!(refused("socket = 's'\n").contains("path"));
    }

    #[test]
    fn strangers_are_not_let_in_by_default() {
        assert!(refused("path = 'f'\nlisten = '0.0.0.0:9441'\n").contains("secret_file"));
        for more in ["insecure = true", "secret_file = 's'"] {
            parse("", &format!("path = 'f'\nlisten = '0.0.0.0:9441'\n{more}\n")).expect("it is right");
        }
    }

    #[test]
    fn memory_by_libfabric_needs_a_way_in_and_an_address_that_doors_can_use() {
        let with = |lines: &str| parse("jbof.toml", &format!("path = 'f'\n{lines}\n"));
        let plan = with("listen = '127.0.0.1:9441'\nfabric = '127.0.0.1:0'").expect("it is right");
        assert_eq!((plan.fabric.as_deref(), &*plan.fabric_provider), (Some("127.0.0.1:0"), "tcp"));
        let wrong = |lines: &str| with(lines).expect_err("it is wrong").to_string();
        assert!(wrong("socket = 's'\nfabric = '127.0.0.1:0'").contains("listen"));
        assert!(wrong("listen = '127.0.0.1:1'\nfabric_provider = 'tcp'").contains("fabric"));
        assert!(wrong("listen = '127.0.0.1:1'\nfabric = '10.0.0.5:1'").contains("secret_file"));
        assert!(wrong("listen = '127.0.0.1:1'\nfabric = '0.0.0.0:1'\nsecret_file = 's'").contains("one address"));
        // A secret does not encrypt it.
        let far = "listen = '127.0.0.1:1'\nfabric = '10.0.0.5:1'\nsecret_file = 's'";
        assert!(wrong(far).contains("insecure") && with(&format!("{far}\ninsecure = true")).is_ok());
        assert!(wrong("listen = '127.0.0.1:1'\nfabric = '127.0.0.1:1'\nfabric_provider = 'a b'").contains("verbs"));
    }

    #[test]
    fn sizes_are_those_of_a_store() {
        let with = |line: &str| refused(&format!("path = 'f'\nsocket = 's'\n{line}\n"));
        assert!(with("size = '100MiB'").contains("zones of 16MiB"));
        assert!(with("value = '16MiB'").contains("a ninth of `zone`"));
        assert!(with("listen = 'here'").contains("here"));
    }
}
