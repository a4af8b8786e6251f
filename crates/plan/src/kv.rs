//! Plans of the key-value store for Redis clients: its door, its flash and memory, and limits.
//!
//! A file of its own, as that of the [live target](crate::target).

use crate::document::Node;
use crate::error::{PlanErrors, Problem, Problems};
use crate::jbof::PLAIN_FABRIC;
use crate::quantity::Quantity;
use crate::scalio::ProtocolName;
use crate::table::table;
use crate::target::resolve::Resolver;
use crate::target::{LogFormatName, LogLevelName, Records, RecordsFile, SecretSource};
use base::{Bytes, Span};
use nvme::Nqn;
use serde_json::Value as Json;

/// Sectors of a device are so long.
const SECTOR: u64 = 512;
/// Zones that a store needs at least: four in reserve, two in transit, and some for data.
pub const ZONES_MIN: u64 = 12;
/// Bytes of the longest value: that of Redis.
const VALUE_MAX: u64 = 512 << 20;
/// Bytes of a key and of headers beside a value in its page, rounded up.
const BESIDE_VALUE: u64 = 12 << 10;

/// The configuration of a key-value store.
#[derive(Clone, Debug, PartialEq)]
pub struct KvPlan {
    /// Where clients come in, `ADDRESS:PORT`.
    pub listen: String,
    /// What clients prove themselves by; `None` where everybody is let in.
    pub password: Option<SecretSource>,
    /// What is missing of password and TLS is meant to be.
    pub insecure: bool,
    /// The certificate of TLS, and those between it and its root; `None` without TLS.
    pub tls_certificate: Option<String>,
    /// Its private key.
    pub tls_key: Option<String>,
    /// Roots of the certificates that clients must have.
    pub tls_clients: Option<String>,
    /// Where metrics and health are served over HTTP, `ADDRESS:PORT`.
    pub metrics: Option<String>,
    /// Which messages are logged.
    pub log: LogLevelName,
    /// How they are written.
    pub log_format: LogFormatName,
    /// The Unix socket of the JBOF, if it is a process of its own on this machine.
    pub jbof_socket: Option<String>,
    /// `ADDRESS:PORT` of the JBOF, if it is a process of its own.
    pub jbof_address: Option<String>,
    /// The file of the secret that door and JBOF have in common.
    pub jbof_secret_file: Option<String>,
    /// The provider of libfabric by which the door accesses the JBOF's memory.
    pub jbof_fabric: Option<String>,
    /// The target by which the door reads the JBOF's flash.
    pub jbof_flash: Option<JbofFlash>,
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
    /// Threads that serve connections.
    pub loops: u32,
    /// What clients may use.
    pub limits: KvLimits,
    /// Which operations leave a row.
    pub records: Option<Records>,
}

/// A namespace of an NVMe/TCP target with the file of a JBOF, and how a door is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JbofFlash {
    /// Where the target is, `ADDRESS:PORT`.
    pub address: String,
    /// NVMe qualified name of its subsystem.
    pub subsystem: String,
    /// The namespace.
    pub namespace: u32,
    /// The name that the door gives.
    pub host: String,
    /// The file of the door's secret of DH-HMAC-CHAP.
    pub dhchap_secret_file: Option<String>,
    /// The file of the target's.
    pub dhchap_controller_secret_file: Option<String>,
    /// The file of the key of TLS.
    pub tls_key_file: Option<String>,
    /// A target that takes longer for a read is away.
    pub timeout: Span,
}

/// What clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLimits {
    /// Connections at a time.
    pub connections: u32,
    /// Arguments of a command, its name among them.
    pub arguments: u32,
    /// Bytes of a command.
    pub request: Bytes,
    /// Values of one answer.
    pub reply: Bytes,
    /// What all clients together may hold of commands and answers.
    pub memory: Bytes,
    /// Answers that wait for a client before nothing more is read from it.
    pub backlog: Bytes,
    /// How long a client may take to prove itself.
    pub handshake: Span,
    /// How long a client may take over the rest of a command, or leave answers unread.
    pub stall: Span,
    /// Commands whose outcome takes so long are in the slow log.
    pub slow_after: Span,
    /// Commands of the slow log.
    pub slow_commands: u32,
}

table! {
    /// A key-value store for Redis clients, on flash.
    #[schemars(title = "Rackweave key-value store")]
    KvFile => KvPlan {
        /// Where clients come in: an address and a TCP port. 6379 is the one of Redis.
        listen: String = "127.0.0.1:6379".into(),
        /// The password that clients give with AUTH or HELLO.
        password: String [length from 1],
        /// The file whose first line is the password.
        password_file: String [length from 1] where [without password],
        /// Serve without a password, or without TLS at another address than a loopback one.
        insecure: bool = false,
        /// File of the certificate for TLS 1.2 and later, and of those between it and its root, in
        /// PEM.
        tls_certificate: String [length from 1],
        /// File of its private key, in PEM.
        tls_key: String [length from 1],
        /// File of the roots of certificates that clients must have, in PEM.
        tls_clients: String [length from 1],
        /// Serve `/metrics` (Prometheus) and `/healthz` at this address, such as "127.0.0.1:9430".
        metrics: String,
        /// Which messages are logged.
        log: LogLevelName = LogLevelName::Info,
        /// How they are written.
        log_format: LogFormatName = LogFormatName::Text,
        /// The Unix socket of a JBOF (`rackweave jbof`), which has memory and flash of the store.
        /// The door shares the memory and reads the flash itself. Without it and `jbof_address`,
        /// memory and flash are in the door's process.
        jbof_socket: String [length from 1] where [without jbof_address],
        /// A JBOF over TCP: an address or a name, and a port.
        jbof_address: String [length from 1],
        /// The file whose first line, of 32 letters at least, the JBOF knows too: what they say is
        /// encrypted and authenticated with it.
        jbof_secret_file: String [length from 1] where [given jbof_socket | jbof_address],
        /// The provider of libfabric by which the door accesses the JBOF's memory itself: the
        /// `fabric_provider` of the JBOF. The rest goes over `jbof_address`. What libfabric carries
        /// is not encrypted.
        jbof_fabric: String [length from 1] where [given jbof_address],
        /// An NVMe/TCP target that serves the JBOF's file. The door reads the flash by it, and no
        /// process of the store works for a read. Without, the JBOF reads the flash for the door.
        jbof_flash: JbofFlashFile where [given jbof_address],
        /// The file of the flash, or a block device. A file is made if it is not there. One that is
        /// there has to be a store with the same `size`, `zone` and `blocks`, or empty.
        path: String [length from 1] where [without jbof_socket | jbof_address; needed] => String::new(),
        /// Size of the flash: at least 12 zones. A sixth to a third of it is needed for compaction.
        size: Quantity<Bytes> where [without jbof_socket | jbof_address] = Bytes::new(1 << 30),
        /// Size of a zone, the unit in which space is won back.
        zone: Quantity<Bytes> ["112KiB" to "8GiB"] where [without jbof_socket | jbof_address] = Bytes::new(16 << 20),
        /// Blocks of the index. A block lists up to 945 keys, and about 15 are best.
        blocks: u32 [1 to 16_777_216] where [without jbof_socket | jbof_address] = 65_536,
        /// Slots of a block, each of which caches a value of up to 64 bytes. A slot takes 112 bytes
        /// of memory.
        slots: u32 [0 to 64] where [without jbof_socket | jbof_address] = 8,
        /// The longest value, up to 512 MiB. With its key it may take a ninth of a zone at most.
        value: Quantity<Bytes> where [without jbof_socket | jbof_address] = Bytes::new(1 << 20),
        /// Answer an update only when it survives a loss of power. Without, it survives the end of
        /// the process alone.
        flush: bool where [without jbof_socket | jbof_address] = true,
        /// Take the room of the whole file at the start, and keep it, so that nothing else fills
        /// the file system under the store. Without, the file takes room as it is written.
        reserve: bool where [without jbof_socket | jbof_address] = false,
        /// How doors and helper keep the slots in memory right. With `"paper"` a door that pauses
        /// past its lease can bring old values back: for study alone.
        protocol: ProtocolName where [without jbof_socket | jbof_address] = ProtocolName::Linearizable,
        /// Threads that serve connections. Each connection stays on one. With two or more, the JBOF
        /// has a thread of its own.
        loops: u32 [1 to 64] = 1,
        /// What clients may use.
        limits: KvLimitsFile => KvLimitsFile::default().resolve(),
        /// Keep a row an operation, in the columns of the simulator.
        records: RecordsFile,
    } as {
        listen, password: secret, insecure, tls_certificate, tls_key, tls_clients, metrics, log, log_format, jbof_socket,
        jbof_address, jbof_secret_file, jbof_fabric, jbof_flash, path, size, zone, blocks, slots, value, flush, reserve,
        protocol, loops, limits, records,
    } from {
        let secret = SecretSource::of(password, password_file);
    } to {
        let (password, password_file) = SecretSource::keys(secret);
    }
}

table! {
    /// An NVMe/TCP target that serves the JBOF's file, and how the door is let in.
    JbofFlashFile => JbofFlash {
        /// Where the target is: an address or a name, and a port. 4420 is the one of NVMe over TCP.
        address: String where [needed] => String::new(),
        /// NVMe qualified name of its subsystem.
        subsystem: String where [needed] => String::new(),
        /// The namespace with the JBOF's file, all of it.
        namespace: u32 [1 to 4_294_967_294_u32] = 1,
        /// The NVMe qualified name that the door gives.
        host: String = "nqn.2026-11.io.rackweave:door".into(),
        /// The file of the door's secret of DH-HMAC-CHAP, as `nvme gen-dhchap-key` prints it.
        dhchap_secret_file: String [length from 1],
        /// The file of the target's secret. With it, a target that does not prove itself is
        /// refused.
        dhchap_controller_secret_file: String [length from 1] where [given dhchap_secret_file],
        /// The file of the key of TLS, as `nvme gen-tls-key` prints it. With it, connections are
        /// encrypted and authenticated.
        tls_key_file: String [length from 1],
        /// A target that takes longer for a read, or for a step of connecting, is away.
        timeout: Quantity<Span> ["100ms" to "1min"] = Span::secs(2),
    }
}

table! {
    /// What clients may use.
    KvLimitsFile => KvLimits {
        /// Connections at a time. Beyond it who has longest owed a password or TLS makes room.
        /// Where there is none, the new one is told so and closed.
        connections: u32 [1 to 100_000] = 1_000,
        /// Arguments of a command, its name among them.
        arguments: u32 [8 to 1_048_576] = 4_096,
        /// Bytes of a command.
        request: Quantity<Bytes> ["16KiB" to "1GiB"] = Bytes::new(16 << 20),
        /// Values of one answer. A connection has as many operations under way as values of the
        /// greatest length fit, 256 at most.
        reply: Quantity<Bytes> ["16KiB" to "4GiB"] = Bytes::new(64 << 20),
        /// What all clients together may hold of commands and answers. Beyond it the connection
        /// that holds the most is closed.
        memory: Quantity<Bytes> ["1MiB" to "1TiB"] = Bytes::new(1 << 30),
        /// Answers that wait for a client before nothing more is read from it. A single answer may
        /// be longer, by the commands that were under way.
        backlog: Quantity<Bytes> ["4KiB" to "1GiB"] = Bytes::new(1 << 20),
        /// How long a client may take to give the password.
        handshake: Quantity<Span> ["100ms" to "1h"] = Span::secs(10),
        /// How long a client may take over the rest of a command that it has begun, or leave
        /// answers unread.
        stall: Quantity<Span> ["100ms" to "1h"] = Span::secs(60),
        /// A command whose outcome is known only after so long is in the slow log (SLOWLOG). It
        /// counts from when the command was taken, and with the waiting for those before it.
        slow_after: Quantity<Span> ["0s" to "1h"] = Span::ms(10),
        /// Commands that the slow log keeps, the latest; 0 for none.
        slow_commands: u32 [0 to 4_096] = 128,
    }
}

/// Reads and checks the file of a key-value store. `name` is for messages.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of
/// range, impossible combinations.
pub fn parse(name: &str, text: &str) -> Result<KvPlan, PlanErrors> {
    let mut problems = Problems::new(name, None);
    let document = Node::parse(text, &mut problems);
    problems.finish()?;
    let (file, mut resolver): (KvFile, _) = Resolver::begin(name, &document, &schema())?;
    let plan = file.resolve();
    check_door(&mut resolver, &plan);
    check_flash(&mut resolver, plan.size, plan.zone, plan.value);
    check_limits(&mut resolver, &plan);
    resolver.finish().map(|()| plan)
}

/// Addresses, and who is let in how.
fn check_door(resolver: &mut Resolver<'_>, plan: &KvPlan) {
    resolver.address("listen", &plan.listen);
    plan.metrics.iter().for_each(|address| resolver.address("metrics", address));
    for (name, other, file, its) in [
        ("tls_certificate", "tls_key", &plan.tls_certificate, &plan.tls_key),
        ("tls_key", "tls_certificate", &plan.tls_key, &plan.tls_certificate),
        ("tls_clients", "tls_certificate", &plan.tls_clients, &plan.tls_certificate),
    ] {
        if file.is_some() && its.is_none() {
            resolver.report(name, Problem::missing(other, "TLS needs a certificate and its key"));
        }
    }
    if plan.tls_certificate.is_none() && !is_loopback(&plan.listen) && !plan.insecure {
        let why = "at this address others can read along without TLS; `insecure = true` says it is meant";
        resolver.report("listen", Problem::missing("tls_certificate", why));
    }
    if let Some(address) = &plan.jbof_address {
        resolver.address("jbof_address", address);
        if plan.jbof_secret_file.is_none() && !is_loopback(address) && !plan.insecure {
            let why =
                "at this address others can read along and change what passes; `insecure = true` says it is meant";
            resolver.report("jbof_address", Problem::missing("jbof_secret_file", why));
        } else if plan.jbof_fabric.is_some() && !is_loopback(address) && !plan.insecure {
            resolver.report("jbof_fabric", Problem::missing("insecure", PLAIN_FABRIC));
        }
    }
    plan.jbof_fabric.iter().for_each(|provider| check_provider(resolver, "jbof_fabric", provider));
    plan.jbof_flash.iter().for_each(|flash| check_target(resolver, flash, plan.insecure));
    if plan.password.is_none() && !plan.insecure {
        let why = "clients need a `password` (or `password_file`), or `insecure = true` lets everybody in";
        resolver.report("", Problem::missing("password", why));
    }
}

/// The target of the flash.
fn check_target(resolver: &mut Resolver<'_>, flash: &JbofFlash, is_meant: bool) {
    for (key, name) in [("address", &flash.address), ("subsystem", &flash.subsystem)] {
        if name.is_empty() {
            resolver.report("jbof_flash", Problem::missing(key, "where the JBOF's file is served"));
        }
    }
    for (key, name) in [("subsystem", &flash.subsystem), ("host", &flash.host)] {
        if let (Err(error), false) = (Nqn::new(name), key == "subsystem" && name.is_empty()) {
            let problem = format!("`{name}` is no NVMe qualified name: {error}");
            resolver.report(&format!("jbof_flash.{key}"), Problem::Conflict(problem));
        }
    }
    if !flash.address.is_empty() {
        resolver.address("jbof_flash.address", &flash.address);
    }
    if flash.tls_key_file.is_none() && !is_loopback(&flash.address) && !is_meant {
        let why = "at this address others can read along and change what passes; `insecure = true` says it is meant";
        resolver.report("jbof_flash.address", Problem::missing("tls_key_file", why));
    }
}

/// The name of a provider of libfabric.
pub(crate) fn check_provider(resolver: &mut Resolver<'_>, key: &str, provider: &str) {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-;".contains(&byte);
    let is_name = provider.len() <= 64 && provider.bytes().all(is_letter);
    resolver.expect(key, is_name, format!("`{provider}`"), "a provider of libfabric, such as tcp or verbs");
}

/// What a flash can be, and the longest value on it.
pub(crate) fn check_flash(resolver: &mut Resolver<'_>, whole: Bytes, zone_size: Bytes, longest: Bytes) {
    resolver.expect("zone", zone_size.count().is_multiple_of(4096), zone_size, "a multiple of 4KiB");
    let allowed = format!("whole zones of {} (`zone`), from 12 to 1048576 of them, up to 8TiB", zone_size);
    resolver.expect("size", is_whole(whole, zone_size), whole, &allowed);
    let allowed = "at least 1B, and at most 512MiB and a ninth of `zone` less 12KiB";
    resolver.expect("value", fits_zone(longest, zone_size), longest, allowed);
}

/// Whether a flash is so many zones as a store can have.
pub(crate) fn is_whole(whole: Bytes, zone_size: Bytes) -> bool {
    let (zone, size) = (zone_size.count(), whole.count());
    let zones = size.checked_div(zone).unwrap_or(0);
    zones >= ZONES_MIN && zones * zone == size && zones <= 1 << 20 && size / SECTOR <= 1 << 34
}

/// Whether zones of this size can hold such values.
pub(crate) fn fits_zone(longest: Bytes, zone_size: Bytes) -> bool {
    let value = longest.count();
    (1..=VALUE_MAX).contains(&value) && (value + BESIDE_VALUE) * 9 <= zone_size.count()
}

fn check_limits(resolver: &mut Resolver<'_>, plan: &KvPlan) {
    let is_room = plan.limits.request.count() >= plan.value.count() + BESIDE_VALUE;
    resolver.expect("limits.request", is_room, plan.limits.request, "at least `value` and 12KiB more");
    let reply = plan.limits.reply.count();
    resolver.expect("limits.reply", reply >= plan.value.count(), plan.limits.reply, "at least `value`");
    // A command is in memory twice while it grows there.
    let least = 2 * plan.limits.request.count() + reply;
    resolver.expect(
        "limits.memory",
        plan.limits.memory.count() >= least,
        plan.limits.memory,
        "at least twice `request`, and `reply`",
    );
}

/// Whether only this machine reaches an address.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_v4 = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    host == "[::1]" || host == "localhost" || is_v4 && host.starts_with("127.")
}

/// The JSON Schema (draft 2020-12) of the file: every key with its description, allowed values,
/// unit and default.
pub fn schema() -> Json {
    crate::schema::schema_of::<KvFile>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("kv.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_path_and_a_way_in_are_all_that_a_file_needs() {
        let plan = parse("", "path = 'flash'\ninsecure = true\n").expect("it is right");
        assert_eq!((plan.size.count() / plan.zone.count(), plan.flush, plan.limits.connections), (64, true, 1_000));
        let plan = parse("", "path = 'flash'\npassword = 'p'\n").expect("it is right");
        assert_eq!(plan.password, Some(SecretSource::Text("p".into())));
        let missed = refused("insecure = true");
        assert!(missed.contains("`path` is missing: The file of the flash"), "{missed}");
    }

    #[test]
    fn memory_and_flash_are_here_or_in_a_jbof_and_not_in_both() {
        let plan = parse("", "jbof_socket = 'j.sock'\ninsecure = true\n").expect("it is right");
        assert_eq!((plan.jbof_socket.as_deref(), plan.jbof_address), (Some("j.sock"), None));
        parse("", "jbof_address = '127.0.0.1:9440'\ninsecure = true\n").expect("it is right");
        let with = |text: &str| refused(&format!("{text}\npassword = 'p'\n"));
        assert!(with("jbof_socket = 'j'\npath = 'flash'").contains("path"));
        assert!(with("jbof_socket = 'j'\nblocks = 7").contains("blocks"));
        assert!(with("jbof_socket = 'j'\njbof_address = '127.0.0.1:1'").contains("jbof_socket"));
        assert!(with("path = 'flash'\njbof_secret_file = 's'").contains("jbof_secret_file"));
        assert!(with("jbof_address = '10.0.0.1:9440'").contains("jbof_secret_file"));
        parse("", "jbof_address = '10.0.0.1:9440'\njbof_secret_file = 's'\npassword = 'p'\n").expect("it is sealed");
        assert!(with("jbof_address = 'nowhere'").contains("nowhere"));
        // A secret does not encrypt what libfabric carries.
        let plain = "jbof_address = '10.0.0.1:9440'\njbof_secret_file = 's'\njbof_fabric = 'tcp'\npassword = 'p'\n";
        assert!(refused(plain).contains("insecure = true"));
        parse("", &format!("{plain}insecure = true\n")).expect("it is meant");
        let far = "jbof_address = '127.0.0.1:9440'\ninsecure = true\njbof_fabric = ";
        assert_eq!(parse("", &format!("{far}'tcp'\n")).expect("it is right").jbof_fabric.as_deref(), Some("tcp"));
        assert!(refused(&format!("{far}'t 0'\n")).contains("such as tcp or verbs"));
        assert!(refused(&format!("{far}\"t\\u0000\"\n")).contains("such as tcp or verbs"));
        assert!(with("jbof_socket = 'j'\njbof_fabric = 'tcp'").contains("jbof_fabric"));
    }

    #[test]
    fn a_target_of_the_flash_is_secured_or_meant_to_be_open() {
        let with = |flash: &str, more: &str| {
            let text = format!("jbof_address = '127.0.0.1:9440'\npassword = 'p'\n{more}\n[jbof_flash]\n{flash}\n");
            parse("kv.toml", &text).map(|plan| plan.jbof_flash.expect("it is there")).map_err(|error| error.to_string())
        };
        let here = "address = '127.0.0.1:4420'\nsubsystem = 'nqn.2026-11.io.rackweave:flash'\n";
        let flash = with(here, "").expect("it is right");
        assert_eq!((flash.namespace, flash.timeout, flash.tls_key_file), (1, Span::secs(2), None));
        let wrong = |flash: &str| with(flash, "").expect_err("it is wrong");
        assert!(wrong("subsystem = 'nqn.2026-11.io.rackweave:flash'").contains("address"));
        assert!(wrong("address = '127.0.0.1:4420'").contains("subsystem"));
        assert!(wrong(&here.replace(":flash", ": flash")).contains("no NVMe qualified name"));
        assert!(wrong(&format!("{here}host = ''")).contains("jbof_flash.host"));
        assert!(wrong(&format!("{here}dhchap_controller_secret_file = 'c'")).contains("dhchap_controller_secret_file"));
        let there = here.replace("127.0.0.1", "10.0.0.5");
        assert!(wrong(&there).contains("tls_key_file"));
        assert!(wrong(&format!("{there}dhchap_secret_file = 's'")).contains("tls_key_file"), "it encrypts nothing");
        with(&format!("{there}tls_key_file = 'k'"), "").expect("it is sealed");
        with(&there, "insecure = true").expect("it is meant");
        assert!(refused("jbof_socket = 's'\npassword = 'p'\n[jbof_flash]\n").contains("jbof_flash"));
    }

    #[test]
    fn nobody_is_let_in_by_default() {
        let error = refused("path = 'flash'\n");
        assert!(error.contains("insecure = true"), "{error}");
        // With a password it says that a missing TLS is meant.
        let meant = parse("", "path = 'flash'\ninsecure = true\npassword = 'p'\nlisten = '0.0.0.0:6379'\n");
        assert!(meant.expect("it is right").password.is_some());
        let error = refused("path = 'flash'\npassword = 'p'\nlisten = '0.0.0.0:6379'\n");
        assert!(error.contains("tls_certificate"), "{error}");
    }

    #[test]
    fn sizes_that_cannot_be_are_told_with_what_can() {
        let with = |line: &str| refused(&format!("path = 'flash'\ninsecure = true\n{line}\n"));
        assert!(with("value = '16MiB'").contains("a ninth of `zone`"));
        assert!(with("size = '100MiB'").contains("zones of 16MiB"));
        // The smallest zone has room for a value: 112 KiB / 9 - 12 KiB.
        assert!(with("zone = '108KiB'").contains("112KiB"));
        let smallest = "zone = '112KiB'\nsize = '1344KiB'\nvalue =";
        parse("", &format!("path = 'flash'\ninsecure = true\n{smallest} '455B'\n")).expect("it fits");
        assert!(with(&format!("{smallest} '456B'")).contains("a ninth of `zone`"));
        assert!(with("value = '513MiB'\nzone = '8GiB'\nsize = '96GiB'").contains("512MiB"));
        assert!(with("limits.reply = '1000KiB'").contains("at least `value`"));
        assert!(with("limits.memory = '95MiB'").contains("twice `request`"));
        parse("", "path = 'f'\ninsecure = true\nlimits.memory = '96MiB'\nlimits.reply = '1MiB'\n").expect("both fit");
        assert!(with("blocks = 0").contains("1..=16777216"), "{}", with("blocks = 0"));
        assert!(with("pth = 1").contains("pth"));
    }
}
