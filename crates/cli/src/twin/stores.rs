//! The stores of a rack as experiments of the design scalio: each JBOF with the doors that reach
//! it.
//!
//! The programs get the configuration that the live roles give them; what is between them is that
//! of simulated hardware. A door of the JBOF's machine has no network to it, and memory and flash
//! at their own speed.

use crate::failure::{Failure, bad_input, failed_at};
use crate::load;
use base::Bytes;
use campaign::terminal::say;
use kv::{ATTEMPTS_MAX, COMPACT_BELOW, GROUP_UPDATES, GROUPS, LEASE, REPLY_TIMEOUT, RESERVE_ZONES, RETRY, SENDS_MAX};
use plan::kv::KvPlan;
use plan::rack::{Configured, Rack, StoreLoad};
use plan::scalio::{ProtocolName, fixed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

const _: () = assert!(RESERVE_ZONES == fixed::RESERVE_ZONES && ATTEMPTS_MAX == fixed::READS_OF_A_GET);

/// Latency and bandwidth of memory that a door maps: those of `carrier`, DDR4-3200.
const MEMORY: (&str, &str) = ("80ns", "204800Mbps");
/// More than anybody asks of memory of the own machine.
const UNBOUNDED: i64 = 1_000_000_000_000;

/// A JBOF that is simulated with its doors.
pub struct Site {
    /// The name of its results: the JBOF's, or that of the store that has it inside.
    pub name: String,
    /// The experiment, as a file.
    pub text: String,
}

/// Flash and memory of a JBOF.
#[derive(Clone, Copy)]
struct Shape {
    size: Bytes,
    zone: Bytes,
    value: Bytes,
    blocks: u32,
    slots: u32,
    flush: bool,
    protocol: ProtocolName,
}

/// A store with a load: a door.
struct Door<'a> {
    store: &'a Configured,
    load: &'a StoreLoad,
    loops: u32,
    /// Whether there is a network between it and its JBOF.
    is_away: bool,
}

/// Every JBOF whose stores have loads.
///
/// # Errors
/// When a file of a store or a JBOF is wrong, they do not fit together, or it cannot be simulated.
pub fn sites(rack: &Rack, base: &Path) -> Result<Vec<Site>, Failure> {
    let jbofs = rack.jbofs.iter().map(|jbof| Jbof::read(jbof, base)).collect::<Result<Vec<_>, _>>()?;
    let mut doors: BTreeMap<String, (Shape, PathBuf, Vec<Door<'_>>)> = BTreeMap::new();
    for (at, store) in rack.stores.iter().enumerate() {
        let Some(load) = rack.store_loads.iter().find(|load| load.store == at) else {
            say(format_args!("warning: `{}` is not simulated: no `[[load]]` has it", store.name));
            continue;
        };
        let plan = plan::kv::parse(&store.config.display().to_string(), &load::text_of(&store.config)?);
        let plan = plan.map_err(bad_input)?;
        let (name, shape, file) = match reached(&plan, store, &jbofs, base)? {
            None => (store.name.clone(), Shape::inside(&plan), store.config.clone()),
            Some(jbof) => (jbof.name.clone(), jbof.shape, jbof.file.clone()),
        };
        if load.value > shape.value {
            let (value, most, file) = (load.value, shape.value, file.display());
            let place = format!("the `[[load]]` of `{}`: values of {value}", store.name);
            return Err(bad_input(format!("{place}; {file} allows {most} (`value`)")));
        }
        let is_away = plan.jbof_address.is_some();
        let door = Door { store, load, loops: plan.loops, is_away };
        doors.entry(name).or_insert((shape, file, Vec::new())).2.push(door);
    }
    let site = |(name, (shape, file, doors)): (String, (Shape, PathBuf, Vec<Door<'_>>))| {
        let text = experiment(&name, shape, &file, &doors)?;
        Ok(Site { name, text })
    };
    doors.into_iter().map(site).collect()
}

/// Each JBOF of a rack with the stores that reach it, for their twin.
///
/// # Errors
/// When a file of a store or a JBOF is wrong, or they do not fit together.
pub fn twin_sites(rack: &Rack, file: &Path) -> Result<Vec<kv::twin::Site>, Failure> {
    let whole = std::path::absolute(file).map_err(failed_at(file))?;
    let base = whole.parent().unwrap_or(Path::new("/"));
    let jbofs = rack.jbofs.iter().map(|jbof| Jbof::read(jbof, base)).collect::<Result<Vec<_>, _>>()?;
    let mut doors: BTreeMap<String, Vec<String>> = jbofs.iter().map(|jbof| (jbof.name.clone(), Vec::new())).collect();
    for store in &rack.stores {
        let plan = plan::kv::parse(&store.config.display().to_string(), &load::text_of(&store.config)?);
        let jbof = reached(&plan.map_err(bad_input)?, store, &jbofs, base)?;
        let jbof = jbof.map_or(&store.name, |jbof| &jbof.name);
        doors.entry(jbof.clone()).or_default().push(store.name.clone());
    }
    Ok(doors.into_iter().map(|(jbof, doors)| kv::twin::Site { jbof, doors }).collect())
}

/// A JBOF of the rack.
struct Jbof {
    name: String,
    file: PathBuf,
    shape: Shape,
    socket: Option<PathBuf>,
    listen: Option<String>,
}

impl Jbof {
    fn read(jbof: &Configured, base: &Path) -> Result<Jbof, Failure> {
        let plan = plan::jbof::parse(&jbof.config.display().to_string(), &load::text_of(&jbof.config)?);
        let plan = plan.map_err(bad_input)?;
        let shape = Shape {
            size: plan.size,
            zone: plan.zone,
            value: plan.value,
            blocks: plan.blocks,
            slots: plan.slots,
            flush: plan.flush,
            protocol: plan.protocol,
        };
        let socket = plan.socket.map(|path| base.join(path));
        Ok(Jbof { name: jbof.name.clone(), file: jbof.config.clone(), shape, socket, listen: plan.listen })
    }

    /// Whether doors that ask for `address` come here. One that listens at every address of its
    /// machine is known by its port.
    fn listens_at(&self, address: &str) -> bool {
        let Some(listen) = &self.listen else { return false };
        let every = ["0.0.0.0:", "[::]:"].iter().find_map(|every| listen.strip_prefix(every));
        every.map_or(listen == address, |port| address.rsplit_once(':').is_some_and(|(_, other)| other == port))
    }
}

impl Shape {
    fn inside(plan: &KvPlan) -> Shape {
        let KvPlan { size, zone, value, blocks, slots, flush, protocol, .. } = *plan;
        Shape { size, zone, value, blocks, slots, flush, protocol }
    }
}

/// The JBOF that a store's file names; `None` where it is inside.
fn reached<'a>(plan: &KvPlan, store: &Configured, jbofs: &'a [Jbof], base: &Path) -> Result<Option<&'a Jbof>, Failure> {
    let (key, said, found) = match (&plan.jbof_socket, &plan.jbof_address) {
        (Some(path), _) => {
            let socket = base.join(path);
            ("jbof_socket", path, jbofs.iter().find(|jbof| jbof.socket.as_ref() == Some(&socket)))
        }
        (None, Some(address)) => ("jbof_address", address, jbofs.iter().find(|jbof| jbof.listens_at(address))),
        (None, None) => return Ok(None),
    };
    let file = store.config.display();
    found.map(Some).ok_or_else(|| bad_input(format!("{file}: {key}: no `[[jbof]]` of the rack listens at {said}")))
}

/// The file of a JBOF and its doors.
fn experiment(name: &str, shape: Shape, file: &Path, doors: &[Door<'_>]) -> Result<String, Failure> {
    let first = &doors[0];
    for other in doors {
        let alike = StoreLoad { store: first.load.store, ..other.load.clone() } == *first.load;
        if !alike || other.loops != first.loops || other.is_away != first.is_away {
            let names = format!("`{}` and `{}`", first.store.name, other.store.name);
            let why = "are doors of one JBOF, and simulated with one load and one way to it: their `[[load]]`, \
                       their `loops`, and whether they have `jbof_address`, must be the same";
            return Err(bad_input(format!("{names} {why}")));
        }
    }
    let (load, loops) = (first.load, first.loops);
    if load.rate.is_none() && !load.depth.is_multiple_of(loops) {
        let why = format!("`depth` of {} is no multiple of its {loops} `loops`", load.depth);
        return Err(bad_input(format!("the `[[load]]` of `{}`: {why}", first.store.name)));
    }
    let slots = shape.slots.max(1);
    let cached = u64::from(shape.blocks) * u64::from(slots);
    if cached > CACHED_MAX {
        let said = format!("{} blocks (`blocks`) of {slots} `slots`", shape.blocks);
        return Err(bad_input(format!("{}: {said}: {CACHED_MAX} slots at most are simulated", file.display())));
    }
    let count = doors.len() as u32;
    let mut tables = vec![
        ("design", Table::from_iter([("name".into(), "scalio".into())])),
        ("store", store_table(shape, load, (count * loops, count), cached)),
        ("scalio", scalio_table(shape, slots)),
        ("io", io_table(load, count, loops)),
        ("run", Table::from_iter([("requests".into(), number(load.requests * u64::from(count)))])),
    ];
    if !first.is_away {
        tables.push(("rdma", near_table()));
    }
    let mut whole = Table::from_iter([("title".into(), Value::from(format!("The store {name} of a rack")))]);
    whole.extend(tables.into_iter().map(|(name, table)| (name.to_owned(), Value::Table(table))));
    Ok(whole.to_string())
}

/// Slots of an index at most, as `store.cached_keys` has it.
const CACHED_MAX: u64 = 200_000_000;

fn store_table(shape: Shape, load: &StoreLoad, (clients, nodes): (u32, u32), cached: u64) -> Table {
    Table::from_iter([
        ("devices".into(), number(1_u32)),
        ("clients".into(), number(clients)),
        ("client_nodes".into(), number(nodes)),
        ("keys".into(), number(load.keys)),
        ("value".into(), bytes(load.value)),
        ("cached_keys".into(), number(cached)),
        // A live store begins with empty slots.
        ("warmed".into(), 0.0.into()),
        ("zone".into(), bytes(shape.zone)),
        ("size".into(), bytes(shape.size)),
    ])
}

fn scalio_table(shape: Shape, slots: u32) -> Table {
    let protocol = match shape.protocol {
        ProtocolName::Linearizable => "linearizable",
        ProtocolName::Paper => "paper",
    };
    // The paper's protocol has no such key, nor do its clients share.
    let share = (shape.protocol == ProtocolName::Linearizable).then(|| ("share_waits".into(), true.into()));
    Table::from_iter(share.into_iter().chain([
        ("protocol".into(), protocol.into()),
        ("cache".into(), (shape.slots > 0).into()),
        ("slots".into(), number(slots)),
        ("batch".into(), number(GROUP_UPDATES)),
        ("idle_flush".into(), "0ps".into()),
        ("groups".into(), number(GROUPS)),
        ("compact_below".into(), number(COMPACT_BELOW)),
        ("lease".into(), LEASE.to_string().into()),
        ("retry".into(), RETRY.to_string().into()),
        ("timeout".into(), REPLY_TIMEOUT.to_string().into()),
        ("attempts".into(), number(SENDS_MAX)),
        ("volatile_cache".into(), shape.flush.into()),
    ]))
}

fn io_table(load: &StoreLoad, doors: u32, loops: u32) -> Table {
    let mut table = Table::from_iter([("write_share".into(), Value::from(1.0 - load.reads))]);
    let mut put = |key: &str, value: Value| drop(table.insert(key.into(), value));
    match load.theta {
        None => put("addresses", "uniform".into()),
        Some(theta) => {
            put("addresses", "zipfian".into());
            put("theta", theta.into());
        }
    }
    match load.rate {
        None => put("depth", number(load.depth / loops)),
        Some(rate) => {
            put("arrivals", "poisson".into());
            put("requests_per_second", (rate * f64::from(doors)).into());
        }
    }
    table
}

/// Memory and flash of the own machine: no adapter, no network.
fn near_table() -> Table {
    let (latency, bandwidth) = MEMORY;
    let none = ["post", "processing", "wire", "memory_write", "offload_submission", "offload_completion"];
    let counts = ["messages_per_second", "swaps_per_second", "offload_commands_per_second"];
    let mut table = Table::from_iter([
        ("rate".into(), bandwidth.into()),
        ("memory_read".into(), latency.into()),
        ("header".into(), "0B".into()),
    ]);
    table.extend(none.map(|key| (key.into(), "0ps".into())));
    table.extend(counts.map(|key| (key.into(), UNBOUNDED.into())));
    table
}

fn number(number: impl Into<u64>) -> Value {
    Value::Integer(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

fn bytes(bytes: Bytes) -> Value {
    format!("{}B", bytes.count()).into()
}
