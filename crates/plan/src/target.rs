//! Plans of the live target: ports, disks, the hosts that may access them, and limits.
//!
//! A file of its own, not an experiment: [`parse`] checks it against [`schema()`] in the same way,
//! and nothing in it is left to choose afterwards. An empty file is one RAM disk of 1 GiB at
//! 127.0.0.1:4420.

mod file;
pub(crate) mod resolve;

use crate::document::Node;
use crate::error::{PlanErrors, Problems};
use crate::idle::forget_idle_keys;
use base::{Bytes, Span};
pub(crate) use file::RecordsFile;
pub use file::{
    AccessName, BackendName, GroupName, HashName, IoName, LogFormatName, LogLevelName, TlsDerivationName, TlsName,
};
use serde_json::Value as Json;

/// The configuration of the live target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPlan {
    /// The folder of what has to outlive a restart: identities and reservations. Without one,
    /// identities lie beside files, and reservations are lost.
    pub state: Option<String>,
    /// Where metrics and health are served over HTTP, `ADDRESS:PORT`.
    pub metrics: Option<String>,
    /// Which messages are logged.
    pub log: LogLevelName,
    /// How they are written.
    pub log_format: LogFormatName,
    /// The longest time of polling before the target sleeps, where sleeps have been short.
    pub busy_poll: Span,
    /// Threads that serve connections, 1 to 64.
    pub loops: u32,
    /// Refuse what is against the specification, even where hosts in use do it.
    pub strict: bool,
    /// Where hosts come in; never empty. The first is number 1.
    pub ports: Vec<Port>,
    /// What hosts prove themselves by.
    pub hosts: Vec<HostKeys>,
    /// How they prove themselves by secrets.
    pub dhchap: Dhchap,
    /// What hosts find; never empty.
    pub subsystems: Vec<Subsystem>,
    /// What peers may use.
    pub limits: Limits,
    /// A row a request, if wanted.
    pub records: Option<Records>,
}

/// Where hosts come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Where to listen, `ADDRESS:PORT`.
    pub address: String,
    /// What the discovery log says instead of `address`, `ADDRESS:PORT`: where a host reaches a
    /// target that listens everywhere.
    pub advertised: Option<String>,
    /// Whether connections have to be secured.
    pub tls: TlsName,
}

/// A secret, or where it is. Its text never shows in messages.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the file of the target itself.
    Text(String),
    /// In a file of its own.
    File(String),
}

impl SecretSource {
    /// From the key of the text and that of the file.
    pub(crate) fn of(text: Option<String>, file: Option<String>) -> Option<SecretSource> {
        text.map(SecretSource::Text).or(file.map(SecretSource::File))
    }
    /// The inverse of [`of`](SecretSource::of).
    pub(crate) fn keys(source: Option<SecretSource>) -> (Option<String>, Option<String>) {
        match source {
            None => (None, None),
            Some(SecretSource::Text(text)) => (Some(text), None),
            Some(SecretSource::File(path)) => (None, Some(path)),
        }
    }
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SecretSource::Text(_) => formatter.write_str("Text(..)"),
            SecretSource::File(path) => write!(formatter, "File({path:?})"),
        }
    }
}

/// What a host proves itself by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostKeys {
    /// Its NVMe qualified name.
    pub nqn: String,
    /// Its secret of DH-HMAC-CHAP, without which it is not let in.
    pub dhchap: Option<SecretSource>,
    /// The target's, for hosts that request it.
    pub dhchap_controller: Option<SecretSource>,
    /// Its key of TLS.
    pub tls: Option<SecretSource>,
    /// How it derives others from that.
    pub tls_derivation: TlsDerivationName,
}

/// How hosts prove themselves by secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhchap {
    /// Hash functions that are taken; never empty.
    pub hashes: Vec<HashName>,
    /// Groups of Diffie and Hellman that are taken, the preferred first; never empty.
    pub groups: Vec<GroupName>,
    /// What exponentiations for strangers may cost a second, in such of 2,048 bits.
    pub stranger_cost: u32,
}

/// A subsystem: the disks that a host sees after one Connect.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsystem {
    /// NVMe qualified name; `None` to have the live host make one.
    pub nqn: Option<String>,
    /// Serial number; `None` to have the live host make one.
    pub serial: Option<String>,
    /// Model.
    pub model: String,
    /// Names of the hosts that may use it; `None` for all.
    pub hosts: Option<Vec<String>>,
    /// Numbers of the ports by which it is reached.
    pub ports: Vec<u16>,
    /// Its disks.
    pub namespaces: Vec<Namespace>,
    /// How groups are reached by ports, where that is not optimized.
    pub paths: Vec<Path>,
}

/// How the namespaces of a group are reached by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The number of the port.
    pub port: u16,
    /// The group.
    pub group: u32,
    /// Access of the path to its disks.
    pub access: AccessName,
}

/// A namespace: one disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Namespace {
    /// Its number, from 1.
    pub id: u32,
    /// What holds its data.
    pub backend: Backend,
    /// Its size; `None` for as much as the file or device has.
    pub size: Option<Bytes>,
    /// Bytes of a block: a power of two from 512 to 65,536.
    pub block: Bytes,
    /// Its UUID as text, if it is not to be made.
    pub uuid: Option<String>,
    /// Whether all of its memory is taken at the start.
    pub prefault: bool,
    /// Whether the room of its file is taken at the start, and kept.
    pub reserve: bool,
    /// Its group of asymmetric access.
    pub group: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether others may serve its file too.
    pub shared: bool,
    /// Whether its file is another process's, which changes it: no lock is taken.
    pub unlocked: bool,
}

/// What holds the data of a namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// Memory of this process.
    Ram,
    /// Nothing: writes go nowhere, reads are zeros.
    Null,
    /// A file or block device.
    File {
        /// Path of the file.
        path: String,
        /// Around the page cache.
        direct: bool,
        /// How it is read and written.
        io: IoName,
        /// Threads that read and write it, or do what is rare.
        threads: u32,
    },
    /// A replicated volume of a live rack.
    Volume {
        /// Path of the rack's file.
        rack: String,
        /// The rack's door that this target is.
        door: String,
        /// The volume's name.
        volume: String,
    },
    /// The time of an emulated flash drive over data in memory, or in a file.
    Flash {
        /// The drive's preset.
        drive: String,
        /// Decides what the drive draws.
        seed: u64,
        /// A file of the data, if they are not in memory.
        path: Option<String>,
    },
}

/// What peers may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: u32,
    /// Controllers (associations of hosts) at a time.
    pub controllers: u16,
    /// Controllers of one host at a time.
    pub controllers_per_host: u16,
    /// I/O queues of a controller.
    pub io_queues: u16,
    /// Entries of an I/O queue.
    pub queue_entries: u32,
    /// Longest transfer of a command: a power of two.
    pub transfer: Bytes,
    /// Longest data inside of a command's capsule.
    pub in_capsule: Bytes,
    /// Data that the commands of one connection hold at a time.
    pub connection_memory: Bytes,
    /// Answers that wait for a host before nothing more is read from it.
    pub backlog: Bytes,
    /// Free buffers that are kept for later commands.
    pub pool: Bytes,
    /// How long a host may take until it has sent Connect.
    pub handshake: Span,
    /// How long a connection without keep-alive may be silent; `None` for ever.
    pub idle: Option<Span>,
    /// How long a host may leave answers unread.
    pub stall: Span,
}

/// Which requests leave a row in the records, in the simulator's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// The folder to make.
    pub folder: String,
    /// The inverse of the share of requests that are kept.
    pub sample: u32,
    /// Every request that takes at least this long is kept besides.
    pub tail: Span,
}

/// Reads and checks the file of a live target. `name` is for messages.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of
/// range, impossible combinations.
pub fn parse(name: &str, text: &str) -> Result<TargetPlan, PlanErrors> {
    let mut problems = Problems::new(name, None);
    let document = Node::parse(text, &mut problems);
    problems.finish()?;
    resolve::resolve(name, &document)
}

/// Whether a file is one of a live target, not an experiment: it has a table that only targets
/// have, and neither title nor design.
pub fn is_target_file(text: &str) -> bool {
    let document = Node::parse(text, &mut Problems::new("", None));
    let has = |keys: &[&str]| keys.iter().any(|key| document.child(key).is_some());
    has(&["subsystem", "port", "limits", "records"]) && !has(&["title", "design"])
}

/// The bytes of a UUID as it is written, in the order of RFC 4122; `None` when it is no UUID.
pub fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let has_dashes = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let is_hexadecimal = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| has_dashes && is_hexadecimal);
    number.map(u128::to_be_bytes)
}

/// The JSON Schema (draft 2020-12) of the file: every key with its description, allowed values,
/// unit and default.
pub fn schema() -> Json {
    crate::schema::schema_of::<file::TargetFile>()
}

impl Subsystem {
    /// Its name; empty until the live host has made one.
    pub fn name(&self) -> &str {
        self.nqn.as_deref().unwrap_or_default()
    }
}

impl TargetPlan {
    /// The plan of an empty file.
    pub fn standard() -> TargetPlan {
        parse("", "").expect("an empty file is a target")
    }
    /// The same without the texts of secrets, to show to people.
    pub fn without_secrets(&self) -> TargetPlan {
        let hide = |source: &mut Option<SecretSource>| {
            if let Some(SecretSource::Text(text)) = source {
                *text = "(not shown)".into();
            }
        };
        let mut plan = self.clone();
        for host in &mut plan.hosts {
            [&mut host.dhchap, &mut host.dhchap_controller, &mut host.tls].into_iter().for_each(hide);
        }
        plan
    }
    /// The file of the whole plan, with the secrets in it.
    pub fn to_toml(&self) -> String {
        let mut whole = serde_json::to_value(file::TargetFile::of(self)).expect("every value can be written in JSON");
        forget_idle_keys(&schema(), &mut whole, None);
        let file: file::TargetFile = serde_json::from_value(whole).expect("a file without some of its keys is one");
        toml::to_string_pretty(&file).expect("a file of texts, numbers and tables is TOML")
    }
}

#[cfg(test)]
mod tests;
