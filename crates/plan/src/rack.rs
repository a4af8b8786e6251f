//! Plans of a live rack: its switch, its control plane, storage servers, volumes, and the doors and
//! stores that other programs connect to.
//!
//! A file of its own, as that of the [live target](crate::target). Doors and stores are configured
//! by files of theirs, which this one names.

mod flash;
mod load;
mod xdp;

use crate::document::Node;
use crate::error::{PlanErrors, Problem, Problems};
use crate::quantity::{Plain, Quantity};
use crate::table::table;
use crate::target::resolve::Resolver;
use crate::target::{LogFormatName, LogLevelName, Records, RecordsFile};
use base::{Bytes, Span};
pub use flash::Flash;
use flash::FlashFile;
use load::LoadFile;
pub use load::{Load, OrderName, StoreLoad};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use xdp::XdpFile;
pub use xdp::{Xdp, XdpModeName};

/// The unit of reads and writes of volumes, and a page of flash.
pub const PAGE: Bytes = Bytes::kib(4);
/// Most volumes of a rack.
pub const VOLUMES_MAX: usize = 4_096;
/// Longest name of a machine (RFC 1035).
const NAME_MAX: usize = 253;
/// Names of roles that a file cannot give to others.
const TAKEN: [&str; 2] = ["switch", "control"];

/// A whole rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Rack {
    /// Where logs, process numbers and emulated flash are; absolute.
    pub folder: PathBuf,
    /// Which messages the switch, the control plane and storage servers log.
    pub log: LogLevelName,
    /// How they are written.
    pub log_format: LogFormatName,
    /// The file of the secret that packets are sealed with. [`Rack::read`] makes it absolute.
    pub secret: Option<PathBuf>,
    /// The folder of journals, for `rackweave twin`. [`Rack::read`] makes it absolute.
    pub journal: Option<PathBuf>,
    /// Which requests of storage servers leave a row. Roles run in the folder of the file, at which
    /// a relative folder begins.
    pub records: Option<Records>,
    /// The switch. Without storage servers nothing needs it.
    pub switch: Switch,
    /// The control plane. Without storage servers nothing needs it.
    pub control: Control,
    /// The storage servers.
    pub storage: Vec<Storage>,
    /// The volumes that they hold.
    pub volumes: Vec<Volume>,
    /// NVMe/TCP targets.
    pub doors: Vec<Door>,
    /// JBOFs of key-value stores, in processes of their own.
    pub jbofs: Vec<Configured>,
    /// NVMe/TCP targets that have no volume, and start behind the JBOFs.
    pub targets: Vec<Configured>,
    /// Key-value stores.
    pub stores: Vec<Configured>,
    /// What `rackweave run` has hosts ask of volumes.
    pub loads: Vec<Load>,
    /// What it has clients ask of stores.
    pub store_loads: Vec<StoreLoad>,
    /// A model of links and roles for it, from a twin's `--out`. [`Rack::read`] makes it absolute.
    pub model: Option<PathBuf>,
}

/// The switch of a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Where it receives packets (UDP).
    pub listen: SocketAddr,
    /// Where others send them, a name or an IP address with a port, if that is not `listen`.
    pub address: Option<String>,
    /// Where metrics and health are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Whether it coordinates garbage collection and redirects reads (Algorithm 1).
    pub coordination: bool,
    /// The data path in the kernel, if it is wanted.
    pub xdp: Option<Xdp>,
}

/// The control plane of a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Where it receives packets (UDP).
    pub listen: SocketAddr,
    /// Where others send them, a name or an IP address with a port, if that is not `listen`.
    pub address: Option<String>,
    /// Where metrics and health are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Time between two heartbeats of a server.
    pub beat: Span,
    /// Missed heartbeats after which a server counts as dead.
    pub misses: u32,
    /// How long a server may be silent at most.
    pub patience: Span,
    /// How long an echo lets a server serve.
    pub lease: Span,
    /// Time after which an unanswered command is sent again.
    pub resend: Span,
    /// How long a server is dead before its replicas are made anew elsewhere.
    pub replace_after: Span,
}

/// A storage server.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// Its name.
    pub name: String,
    /// Where it receives packets (UDP).
    pub listen: SocketAddr,
    /// Where others send them, a name or an IP address with a port, if that is not `listen`.
    pub address: Option<String>,
    /// Where metrics and health are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// How many replicas lost elsewhere it takes in.
    pub room: u32,
    /// Its emulated flash.
    pub flash: Flash,
    /// Memory for writes of one replica that are not on flash yet.
    pub cache: Bytes,
    /// The period in which every page on flash is read once, to see whether it is sound.
    pub scrub: Span,
}

/// A replicated volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its size, a multiple of [`PAGE`].
    pub size: Bytes,
    /// Places in [`Rack::storage`] of the servers that hold it: 1 to 3 different ones.
    pub replicas: Vec<usize>,
}

/// An NVMe/TCP target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Its name.
    pub name: String,
    /// Where it receives packets of the rack (UDP).
    pub listen: SocketAddr,
    /// Where others send them, a name or an IP address with a port, if that is not `listen`.
    pub address: Option<String>,
    /// The file for `rackweave target --config`; absolute.
    pub config: PathBuf,
}

/// A role with a file of its own: a JBOF, a target or a key-value store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// The file for `rackweave jbof`, `target` or `kv` and its `--config`; absolute.
    pub config: PathBuf,
}

/// Why there is no rack.
#[derive(Debug, thiserror::Error)]
pub enum RackError {
    /// Its file cannot be read.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// Its file is wrong.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
}

/// An IP address and a port, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(SocketAddr);

impl Address {
    /// The name of the format in schemas.
    pub(crate) const FORMAT: &'static str = "address";
    /// What an address looks like.
    pub(crate) const ALLOWED: &'static str = "an IP address and a port from 1, such as 127.0.0.1:7000 or [::1]:7000";

    /// Whether a text is an address. A name of a machine is none: a socket is bound to it.
    pub(crate) fn check(text: &str) -> Result<(), Problem> {
        let is_right = text.parse::<SocketAddr>().is_ok_and(|address| address.port() > 0);
        if is_right { Ok(()) } else { Err(Problem::out_of_range(format!("`{text}`"), Address::ALLOWED)) }
    }

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }
}

impl JsonSchema for Address {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        Address::FORMAT.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": Address::FORMAT, "examples": ["127.0.0.1:7000"] })
    }
}

impl Plain for Address {
    type Value = SocketAddr;
    fn plain(self) -> SocketAddr {
        self.0
    }
    fn written(value: SocketAddr) -> Address {
        Address(value)
    }
}

table! {
    /// A live rack: what `rackweave rack up` starts. Relative paths begin at the folder of this
    /// file.
    #[schemars(title = "Rackweave rack")]
    RackFile {
        /// The folder of logs, process numbers and emulated flash. It is made if it is not there.
        folder: String [length from 1] = "rack".into(),
        /// A file whose first line, of 32 letters at least, is the secret of the rack. Packets are
        /// encrypted and authenticated with it, and clocks of machines may differ by 30 s.
        secret_file: String [length from 1],
        /// Receive packets at other addresses than loopback ones without a `secret_file`.
        insecure: bool = false,
        /// A folder of journals: all roles note what comes in and what they do about it, without
        /// data, for `rackweave twin`. Those of stores and JBOFs have keys and no values.
        journal: String [length from 1],
        /// Have storage servers keep a row a request, in the columns of the simulator: each start
        /// of one in `NAME.N` in the folder. Doors, JBOFs and stores have `records` in their own
        /// files.
        records: RecordsFile where [given storage],
        /// Which messages the switch, the control plane and storage servers log.
        log: LogLevelName = LogLevelName::Info,
        /// How they are written.
        log_format: LogFormatName = LogFormatName::Text,
        /// The switch between doors and storage servers.
        switch: SwitchFile where [given storage],
        /// The control plane: it notices dead servers and replaces their replicas.
        control: ControlFile where [given storage],
        /// The storage servers.
        storage: Vec<StorageFile> [length 1 to 256],
        /// The volumes that they hold.
        volume: Vec<VolumeFile> [length 1 to VOLUMES_MAX] where [given storage],
        /// NVMe/TCP targets, by which hosts reach volumes.
        door: Vec<DoorFile> [length 1 to 64],
        /// JBOFs: memory and flash of key-value stores, in processes of their own.
        jbof: Vec<ConfiguredFile> [length 1 to 64],
        /// NVMe/TCP targets without volumes, such as the ones by which stores read the flash of a
        /// JBOF. They start behind the JBOFs, which make its file, and before the stores.
        target: Vec<ConfiguredFile> [length 1 to 64],
        /// Key-value stores for Redis clients.
        store: Vec<ConfiguredFile> [length 1 to 64],
        /// What hosts ask of volumes and clients of stores when `rackweave run` simulates the rack:
        /// one a door, and one a store.
        load: Vec<LoadFile> [length 1 to 64] where [given volume | store],
        /// The `model.json` of a twin of this rack or another one: links and roles of
        /// `rackweave run`. Without it they are those of simulated hardware.
        model: String [length from 1] where [given load],
    }
}

table! {
    /// The switch between doors and storage servers.
    SwitchFile => Switch {
        /// Where it receives packets (UDP). Others send here, or to `address` if there is one.
        listen: Address = Address::local(7_000),
        /// A name or an IP address with a port, at which others reach it: `"storage-0.rack:7000"`.
        /// Names are looked up every 2 s. `listen` may then be `"0.0.0.0:7000"` or `"[::]:7000"`.
        address: String [length from 1],
        /// Serve `/metrics` and `/healthz` at this address.
        metrics: Address,
        /// Coordinate garbage collection of replicas and redirect reads (RackBlox, Algorithm 1).
        /// Without, it only forwards, for comparison.
        coordination: bool = true,
        /// Forward reads, writes, their answers and messages between replicas in the kernel (XDP).
        /// `listen` is then an IPv4 address of the interface. The kernel cannot open sealed
        /// packets, and notes none: not with `secret_file` or `journal`.
        xdp: XdpFile,
    }
}

table! {
    /// The control plane.
    ControlFile => Control {
        /// Where it receives packets (UDP). Others send here, or to `address` if there is one.
        listen: Address = Address::local(7_001),
        /// A name or an IP address with a port, at which others reach it: `"storage-0.rack:7000"`.
        /// Names are looked up every 2 s. `listen` may then be `"0.0.0.0:7000"` or `"[::]:7000"`.
        address: String [length from 1],
        /// Serve `/metrics` and `/healthz` at this address.
        metrics: Address,
        /// Time between two heartbeats of a storage server.
        beat: Quantity<Span> ["1ms" to "1min"] = Span::ms(50),
        /// Missed heartbeats after which a server counts as dead.
        misses: u32 [2 to 10_000] = 6,
        /// The longest silence of a server that does not count as dead. The time begins with
        /// `misses` beats, grows to twice the longest silence after which a server was heard again,
        /// and falls slowly. `lease` grows with it.
        patience: Quantity<Span> ["1ms" to "1h"] = Span::secs(3),
        /// How long the echo of a heartbeat lets a server serve: longer than `beat`, shorter than
        /// `misses` beats.
        lease: Quantity<Span> ["1ms" to "1h"] = Span::ms(200),
        /// Time after which an unanswered command is sent again.
        resend: Quantity<Span> ["1ms" to "1min"] = Span::ms(50),
        /// How long a server is dead before its replicas are made anew on servers with `room`.
        replace_after: Quantity<Span> ["0s" to "24h"] = Span::secs(30),
    }
}

table! {
    /// A storage server.
    StorageFile => Storage {
        /// Its name, of letters, digits, `-` and `_`. No two roles have the same.
        name: String [length from 1] where [needed] => String::new(),
        /// Where it receives packets (UDP). Others send here, or to `address` if there is one.
        listen: Address where [needed] => Address::local(1),
        /// A name or an IP address with a port, at which others reach it: `"storage-0.rack:7000"`.
        /// Names are looked up every 2 s. `listen` may then be `"0.0.0.0:7000"` or `"[::]:7000"`.
        address: String [length from 1],
        /// Serve `/metrics` and `/healthz` at this address.
        metrics: Address,
        /// The most replicas lost on other servers that it takes in. It is lowered to the number of
        /// the rack's largest volumes that the flash has left; one that is given has to fit.
        room: u32 [0 to 1_024] = 2,
        /// Its emulated flash.
        flash: FlashFile => FlashFile::default().resolve(),
        /// Memory for writes that are not on flash yet, of each replica.
        cache: Quantity<Bytes> ["64KiB" to "64GiB"] = Bytes::new(16 << 20),
        /// The period in which every page on flash is read once, and compared with its checksum. A
        /// page that does not match is written anew from another replica.
        scrub: Quantity<Span> ["1s" to "1000h"] = Span::secs(86_400),
    }
}

table! {
    /// A replicated volume.
    VolumeFile {
        /// Its name, of letters, digits, `-` and `_`. No two volumes have the same.
        name: String [length from 1] where [needed],
        /// Its size, a multiple of 4KiB. On each server all volumes have to fit into the flash,
        /// with the blocks that collection needs.
        size: Quantity<Bytes> ["4KiB" to "16TiB"] where [needed],
        /// Names of the storage servers that hold it, 1 to 3 different ones.
        replicas: Vec<String> [length 1 to 3] where [needed],
    }
}

table! {
    /// An NVMe/TCP target.
    DoorFile => Door {
        /// Its name, of letters, digits, `-` and `_`. No two roles have the same.
        name: String [length from 1] where [needed] => String::new(),
        /// Where it receives packets of the rack (UDP). Others send here, or to `address` if there
        /// is one.
        listen: Address where [needed] => Address::local(1),
        /// A name or an IP address with a port, at which others reach it: `"storage-0.rack:7000"`.
        /// Names are looked up every 2 s. `listen` may then be `"0.0.0.0:7000"` or `"[::]:7000"`.
        address: String [length from 1],
        /// Its configuration, as `rackweave target --config` reads it.
        config: String [length from 1] where [needed] => String::new(),
    } as { name, listen, address, config: file } from {
        let file = PathBuf::from(config);
    } to {
        let config = file.to_string_lossy().into_owned();
    }
}

table! {
    /// A role with a file of its own: a JBOF, a target or a key-value store.
    ConfiguredFile => Configured {
        /// Its name, of letters, digits, `-` and `_`. No two roles have the same.
        name: String [length from 1] where [needed] => String::new(),
        /// Its configuration, as `rackweave jbof --config`, `rackweave target --config` or
        /// `rackweave kv --config` reads it.
        config: String [length from 1] where [needed] => String::new(),
    } as { name, config: file } from {
        let file = PathBuf::from(config);
    } to {
        let config = file.to_string_lossy().into_owned();
    }
}

/// Reads and checks the file of a rack. `name` is for messages; paths stay as they are written.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of
/// range, impossible combinations.
pub fn parse(name: &str, text: &str) -> Result<Rack, PlanErrors> {
    let mut problems = Problems::new(name, None);
    let document = Node::parse(text, &mut problems);
    problems.finish()?;
    let (file, resolver): (RackFile, _) = Resolver::begin(name, &document, &schema())?;
    let mut checks = Checks { resolver, file: &file };
    let rack = checks.rack();
    checks.resolver.finish().map(|()| rack)
}

/// The JSON Schema (draft 2020-12) of the file: every key with its description, allowed values,
/// unit and default.
pub fn schema() -> Json {
    crate::schema::schema_of::<RackFile>()
}

/// Whether a text is the name of a machine and a port from 1.
fn is_name_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(name, port)| {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let is_name = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain);
        // What has digits alone is an IP address with a mistake.
        is_name
            && name.contains(|letter: char| letter.is_ascii_alphabetic())
            && port.parse().is_ok_and(|port: u16| port > 0)
    })
}

/// Where a role receives packets of the rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its table in the file.
    key: String,
    /// Where it receives packets.
    pub listen: SocketAddr,
    /// Where others send them: an IP address or a name, and a port.
    pub reached: String,
    has_address: bool,
}

impl Place {
    fn new(key: String, listen: SocketAddr, address: &Option<String>) -> Place {
        let reached = address.clone().unwrap_or_else(|| listen.to_string());
        Place { key, listen, reached, has_address: address.is_some() }
    }

    /// The key that says where others send.
    fn told(&self) -> String {
        format!("{}.{}", self.key, if self.has_address { "address" } else { "listen" })
    }
}

impl Rack {
    /// Roles with files of their own beside doors, by their table, in the order of their start.
    fn configured(&self) -> impl Iterator<Item = (&'static str, &[Configured])> {
        [("jbof", &self.jbofs[..]), ("target", &self.targets), ("store", &self.stores)].into_iter()
    }

    /// All places: those of the storage servers, of the doors, of the control plane and of the
    /// switch.
    pub fn places(&self) -> Vec<Place> {
        let storage = self.storage.iter().enumerate();
        let storage = storage.map(|(at, one)| Place::new(format!("storage.{at}"), one.listen, &one.address));
        let doors = self.doors.iter().enumerate();
        let doors = doors.map(|(at, one)| Place::new(format!("door.{at}"), one.listen, &one.address));
        let Rack { control, switch, .. } = self;
        let control = Place::new("control".into(), control.listen, &control.address);
        let switch = Place::new("switch".into(), switch.listen, &switch.address);
        storage.chain(doors).chain([control, switch]).collect()
    }

    /// Reads and checks the file at `path`. All paths in it become absolute.
    ///
    /// # Errors
    /// When it cannot be read, or everything that is wrong with it.
    pub fn read(path: &Path) -> Result<Rack, RackError> {
        let wrong = |reason| RackError::File { path: path.into(), reason };
        let text = fs::read_to_string(path).map_err(wrong)?;
        let mut rack = parse(&path.display().to_string(), &text)?;
        let whole = std::path::absolute(path).map_err(wrong)?;
        rack.begin_paths_at(whole.parent().unwrap_or(Path::new("/")));
        Ok(rack)
    }

    fn begin_paths_at(&mut self, base: &Path) {
        self.folder = base.join(&self.folder);
        self.secret
            .iter_mut()
            .chain(&mut self.journal)
            .chain(&mut self.model)
            .chain(self.switch.xdp.iter_mut().map(|xdp| &mut xdp.object))
            .for_each(|path| *path = base.join(&*path));
        for server in &mut self.storage {
            let usual = || self.folder.join(format!("{}.flash", server.name));
            server.flash.path = Some(server.flash.path.as_ref().map_or_else(usual, |path| base.join(path)));
        }
        let doors = self.doors.iter_mut().map(|door| &mut door.config);
        let configured = self.jbofs.iter_mut().chain(&mut self.targets).chain(&mut self.stores);
        for config in doors.chain(configured.map(|role| &mut role.config)) {
            *config = base.join(&*config);
        }
    }
}

/// Checks what the schema cannot say.
struct Checks<'a> {
    resolver: Resolver<'a>,
    file: &'a RackFile,
}

impl Checks<'_> {
    fn rack(&mut self) -> Rack {
        let RackFile { switch, control, storage, door, jbof, target, store, .. } = self.file.clone();
        let mut rack = Rack {
            folder: self.file.folder().into(),
            log: self.file.log(),
            log_format: self.file.log_format(),
            secret: self.file.secret_file.as_ref().map(PathBuf::from),
            journal: self.file.journal.as_ref().map(PathBuf::from),
            records: self.file.records.as_ref().map(RecordsFile::resolve),
            switch: switch.unwrap_or_default().resolve(),
            control: control.unwrap_or_default().resolve(),
            storage: storage.unwrap_or_default().plain(),
            volumes: Vec::new(),
            doors: door.unwrap_or_default().plain(),
            jbofs: jbof.unwrap_or_default().plain(),
            targets: target.unwrap_or_default().plain(),
            stores: store.unwrap_or_default().plain(),
            loads: Vec::new(),
            store_loads: Vec::new(),
            model: self.file.model.as_ref().map(PathBuf::from),
        };
        self.names(&rack);
        self.addresses(&rack);
        self.xdp(&rack);
        self.control(&rack.control);
        rack.storage.iter().enumerate().for_each(|(place, server)| self.flash(place, &server.flash));
        let left;
        (rack.volumes, left) = self.volumes(&rack.storage);
        self.room(&mut rack, &left);
        rack.loads = self.loads(&rack);
        rack.store_loads = self.store_loads(&rack);
        if rack.model.is_some() && rack.loads.is_empty() {
            let reason = "it is of volumes, and no `[[load]]` has one";
            self.resolver.report("model", Problem::Conflict(reason.into()));
        }
        let has_own_files = rack.configured().any(|(_, roles)| !roles.is_empty());
        if rack.storage.is_empty() && rack.doors.is_empty() && !has_own_files {
            let why = "a rack has a `[[storage]]`, `[[door]]`, `[[jbof]]`, `[[target]]` or `[[store]]` at least";
            self.resolver.report("", Problem::missing("store", why));
        }
        rack
    }

    fn names(&mut self, rack: &Rack) {
        let storage = rack.storage.iter().enumerate().map(|(at, one)| (format!("storage.{at}.name"), &one.name));
        let doors = rack.doors.iter().enumerate().map(|(at, one)| (format!("door.{at}.name"), &one.name));
        let configured = rack.configured().flat_map(|(key, roles)| {
            roles.iter().enumerate().map(move |(at, one)| (format!("{key}.{at}.name"), &one.name))
        });
        let mut taken: BTreeMap<String, String> =
            TAKEN.iter().map(|name| ((*name).into(), format!("the name of the {name}"))).collect();
        for (key, name) in storage.chain(doors).chain(configured) {
            self.name(&key, name, &mut taken);
        }
    }

    fn name(&mut self, key: &str, name: &str, taken: &mut BTreeMap<String, String>) {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let is_right = name.chars().all(is_plain) && name.len() <= 64 && !name.starts_with('-');
        let allowed = "letters, digits, `-` and `_`, 64 at most, and no `-` in front";
        self.resolver.expect(key, is_right, format!("`{name}`"), allowed);
        match taken.get(name) {
            Some(owner) if !name.is_empty() => {
                let reason = format!("`{name}` is taken: it is {owner}");
                self.resolver.report(key, Problem::Conflict(reason));
            }
            _ => drop(taken.insert(name.into(), format!("`{key}`"))),
        }
    }

    fn addresses(&mut self, rack: &Rack) {
        let mut places = rack.places();
        // Switch and control plane first: of two with one address, the other one is told.
        places.rotate_right(2);
        let unused = if rack.storage.is_empty() { 2 } else { 0 };
        let places = &places[unused..];
        let is_far = |place: &&Place| !place.listen.ip().is_loopback();
        if let Some(far) = places.iter().find(is_far) {
            for near in places.iter().filter(|place| !is_far(place)) {
                let allowed = format!("an address that reaches other machines, as `{}.listen` does", far.key);
                self.resolver.expect(&format!("{}.listen", near.key), near.has_address, near.listen, &allowed);
            }
        }
        let mut taken: BTreeMap<&str, String> = BTreeMap::new();
        for place in places {
            self.place(place, places[0].listen);
            self.take(&mut taken, &place.reached, place.told());
        }
        let metrics: Vec<(String, String)> = self.metrics(rack);
        for (key, address) in &metrics {
            self.take(&mut taken, address, key.clone());
        }
    }

    /// Where metrics are served, apart from those that listen at every address of their machine.
    fn metrics(&self, rack: &Rack) -> Vec<(String, String)> {
        let storage = rack.storage.iter().enumerate().map(|(at, one)| (format!("storage.{at}.metrics"), one.metrics));
        let all = storage
            .chain([("switch.metrics".into(), rack.switch.metrics), ("control.metrics".into(), rack.control.metrics)]);
        all.filter_map(|(key, address)| Some((key, address.filter(|one| !one.ip().is_unspecified())?.to_string())))
            .collect()
    }

    fn take<'a>(&mut self, taken: &mut BTreeMap<&'a str, String>, address: &'a str, key: String) {
        if let Some(owner) = taken.get(address) {
            let reason = format!("{address} is taken: it is `{owner}`, and each has an address of its own");
            return self.resolver.report(&key, Problem::Conflict(reason));
        }
        taken.insert(address, key);
    }

    /// Whether the others reach a role, and nobody else who should not.
    fn place(&mut self, place: &Place, first: SocketAddr) {
        let Place { key, listen, reached, has_address } = place;
        let ip = listen.ip();
        let own = format!("{key}.listen");
        let allowed = "an address that others can send to, or any with an `address` beside it";
        self.resolver.expect(&own, !ip.is_unspecified() || *has_address, listen, allowed);
        let allowed = format!("one of the same kind as {first}: all are IPv4, or all IPv6");
        self.resolver.expect(&own, listen.is_ipv4() == first.is_ipv4(), listen, &allowed);
        if *has_address {
            let key = format!("{key}.address");
            let is_right = match reached.parse::<SocketAddr>() {
                Ok(address) => address.port() > 0 && !address.ip().is_unspecified(),
                Err(_) => is_name_and_port(reached),
            };
            let example = "a name or an IP address, and a port from 1, such as storage-0.rack:7000";
            self.resolver.expect(&key, is_right, format!("`{reached}`"), example);
            let is_alike = reached.parse().is_ok_and(|address: SocketAddr| address.is_ipv4() != listen.is_ipv4());
            self.resolver.expect(&key, !is_alike, reached, &format!("one of the same kind as {listen}"));
        }
        if !ip.is_loopback() && !self.file.insecure() && self.file.secret_file.is_none() {
            let why = "without a secret, packets of the rack carry no authentication, and at this address others can \
                send them; `insecure = true` says it is meant";
            self.resolver.report(&own, Problem::missing("secret_file", why));
        }
    }

    /// As `blox::ControlConfig` demands it.
    fn control(&mut self, control: &Control) {
        let (least, most) = (control.beat, control.beat * u64::from(control.misses));
        let is_right = least < control.lease && control.lease < most;
        let allowed = format!("above {least} (`beat`), below {most} (`misses` beats)");
        let key = if self.file.control.as_ref().is_some_and(|file| file.lease.is_some()) {
            "control.lease"
        } else {
            "control.beat"
        };
        self.resolver.expect(key, is_right, format!("a lease of {}", control.lease), &allowed);
        let allowed = format!("at least {most} (`misses` beats)");
        self.resolver.expect("control.patience", control.patience >= most, control.patience, &allowed);
    }

    /// Replicas that are lost elsewhere have to fit too: the control plane does not ask again.
    fn room(&mut self, rack: &mut Rack, left: &[u64]) {
        let pages = rack.volumes.iter().map(|volume| volume.size.count() / PAGE.count()).max().unwrap_or(0);
        let given: Vec<bool> = self.file.storage.iter().flatten().map(|server| server.room.is_some()).collect();
        for (place, (server, (left, given))) in rack.storage.iter_mut().zip(left.iter().zip(given)).enumerate() {
            let fit = left / server.flash.blocks_for(pages);
            let allowed = format!("up to {fit}: so often the flash has room left for the largest volume");
            self.resolver.expect(
                &format!("storage.{place}.room"),
                !given || u64::from(server.room) <= fit,
                server.room,
                &allowed,
            );
            server.room = server.room.min(u32::try_from(fit).unwrap_or(u32::MAX));
        }
    }

    /// The volumes, whether they fit, and the blocks of each channel that each server has left.
    fn volumes(&mut self, storage: &[Storage]) -> (Vec<Volume>, Vec<u64>) {
        let mut free: Vec<u64> = storage.iter().map(|one| one.flash.blocks()).collect();
        let mut taken = BTreeMap::new();
        let mut volumes = Vec::new();
        for (at, file) in self.file.volume.clone().unwrap_or_default().into_iter().enumerate() {
            let (key, name) = (format!("volume.{at}"), file.name.unwrap_or_default());
            self.name(&format!("{key}.name"), &name, &mut taken);
            let size = file.size.map_or(PAGE, |size| size.0);
            let is_whole = size.count().is_multiple_of(PAGE.count());
            self.resolver.expect(&format!("{key}.size"), is_whole, size, "a multiple of 4KiB");
            let replicas = self.replicas(&key, &file.replicas.unwrap_or_default(), storage);
            for place in &replicas {
                let Storage { flash, name, .. } = &storage[*place];
                let (left, needed) = (free[*place], flash.blocks_for(size.count() / PAGE.count()));
                let allowed = format!("up to {}: what is left on `{name}`", flash.held_by(left));
                self.resolver.expect(&format!("{key}.size"), needed <= left, size, &allowed);
                free[*place] = left.saturating_sub(needed);
            }
            volumes.push(Volume { name, size, replicas });
        }
        (volumes, free)
    }

    /// The places of servers that exist. Where servers are wrong it reports nothing.
    fn replicas(&mut self, key: &str, names: &[String], storage: &[Storage]) -> Vec<usize> {
        let mut places = Vec::new();
        if !self.resolver.holds("storage") {
            return places;
        }
        for (at, name) in names.iter().enumerate() {
            let key = format!("{key}.replicas.{at}");
            match self.named(&key, name, storage.iter().map(|server| &server.name)) {
                Some(place) if places.contains(&place) => {
                    let reason = format!("`{name}` is named twice; replicas are on different servers");
                    self.resolver.report(&key, Problem::Conflict(reason));
                }
                place => places.extend(place),
            }
        }
        places
    }

    /// The place of a name; an error where it is none of `names`.
    fn named<'a>(&mut self, key: &str, name: &str, names: impl Iterator<Item = &'a String> + Clone) -> Option<usize> {
        let place = names.clone().position(|one| one == name);
        if place.is_none() {
            self.resolver.report(key, Problem::not_allowed(name, names.cloned().collect()));
        }
        place
    }
}

#[cfg(test)]
mod tests;
