//! Configuration of a store.

use base::Span;
use bytes::Bytes;
use nvme::Nqn;
use nvme::tls::TlsKey;
use runtime::records::Records;
use scalio::Protocol;
use std::fmt;
use std::path::PathBuf;

/// A store with its door.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Where clients come in, `ADDRESS:PORT`; port 0 takes a free one.
    pub listen: String,
    /// What clients prove themselves by; without, everybody is let in.
    pub password: Option<Bytes>,
    /// Certificate and key of TLS; without, the door is plain.
    pub tls: Option<TlsFiles>,
    /// Where metrics and health are served over HTTP, `ADDRESS:PORT`.
    pub metrics: Option<String>,
    /// Where memory and flash are.
    pub jbof: JbofPlace,
    /// Threads that serve connections, at least one. Each connection stays on one.
    pub loops: usize,
    /// What clients may use.
    pub limits: Limits,
    /// Which operations leave a row, and where.
    pub records: Option<Records>,
    /// Where its programs note what they do.
    pub journal: Option<Journal>,
}

/// Where programs of a role note what comes in and what they decide, for its twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The folder.
    pub folder: PathBuf,
    /// The name of the role in the rack's file.
    pub role: String,
}

/// Where memory, flash and helper of a store are.
#[derive(Clone, Debug, PartialEq)]
pub enum JbofPlace {
    /// In the process of the door.
    Inside(JbofConfig),
    /// In a process of its own, [`JbofRole`](crate::JbofRole).
    Away(Peer),
}

impl Default for JbofPlace {
    fn default() -> JbofPlace {
        JbofPlace::Inside(JbofConfig::default())
    }
}

/// A JBOF: its flash and its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JbofConfig {
    /// The file of the flash.
    pub path: PathBuf,
    /// Zones of the flash, at least 12.
    pub zones: u32,
    /// Sectors of 512 B of a zone.
    pub zone_sectors: u32,
    /// Blocks of the index.
    pub blocks: u32,
    /// Slots of a block.
    pub slots: u8,
    /// Bytes of the longest value.
    pub value_bytes_max: u32,
    /// Whether an update is answered after a flush of the file.
    pub flush: bool,
    /// Whether the file has all its room from the start, and keeps it.
    pub reserve: bool,
    /// How doors and helper keep the slots in memory right.
    pub protocol: Protocol,
}

/// How doors reach a JBOF, and it them.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Where the JBOF is.
    pub address: PeerAddress,
    /// What both know, and nobody else: frames are encrypted and authenticated with it.
    pub secret: Option<Secret>,
    /// The provider of libfabric by which the door accesses the memory itself; the rest goes over
    /// the address. For [`PeerAddress::Tcp`].
    pub fabric: Option<String>,
    /// The target by which the door reads the flash itself. For [`PeerAddress::Tcp`].
    pub flash: Option<Box<FlashPeer>>,
}

/// A namespace of an NVMe/TCP target with the file of a JBOF's flash, and how a door is let in.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashPeer {
    /// Where the target is, `ADDRESS:PORT`.
    pub address: String,
    /// Its subsystem.
    pub subsystem: Nqn,
    /// The namespace.
    pub namespace: u32,
    /// The name that the door gives.
    pub host: Nqn,
    /// The door's secret of DH-HMAC-CHAP.
    pub dhchap: Option<nvme::auth::Secret>,
    /// The target's, without which it is refused.
    pub controller: Option<nvme::auth::Secret>,
    /// The key of TLS; without, connections are plain.
    pub tls: Option<TlsKey>,
    /// A target that takes longer for a read is away.
    pub timeout: Span,
}

/// An address of a JBOF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// A Unix socket of this machine. Its doors share the memory, and read the flash themselves.
    Unix(PathBuf),
    /// `ADDRESS:PORT` of TCP.
    Tcp(String),
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Unix(path) => write!(f, "{}", path.display()),
            PeerAddress::Tcp(address) => f.write_str(address),
        }
    }
}

/// A secret, which is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A JBOF in a process of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct JbofRoleConfig {
    /// Where doors come in, at least one.
    pub listen: Vec<PeerAddress>,
    /// What they prove themselves by; without, everybody is let in.
    pub secret: Option<Secret>,
    /// Where doors access the memory by libfabric.
    pub fabric: Option<FabricPlace>,
    /// Where metrics and health are served over HTTP, `ADDRESS:PORT`.
    pub metrics: Option<String>,
    /// A door that says nothing for so long is gone. One that is there asks twice a second whether
    /// the JBOF is.
    pub silence: Span,
    /// Its flash and its memory.
    pub jbof: JbofConfig,
    /// Which requests of doors leave a row, and where.
    pub records: Option<Records>,
    /// Where its helper notes what it does.
    pub journal: Option<Journal>,
}

/// An endpoint of libfabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricPlace {
    /// The provider: `tcp`, `verbs`, or the name of another one.
    pub provider: String,
    /// Where it is, `ADDRESS:PORT`; port 0 takes a free one. Doors are told over the addresses at
    /// which the JBOF listens.
    pub address: String,
}

/// Files of TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the door, and those between it and its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Roots of the certificates that clients must have; without, they need none.
    pub clients: Option<PathBuf>,
}

/// What clients may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Arguments of a command, its name among them.
    pub arguments: usize,
    /// Bytes of a command.
    pub request: usize,
    /// Bytes of the values of one answer.
    pub reply: usize,
    /// Bytes that all clients together may hold of commands and answers.
    pub memory: usize,
    /// Bytes of answers that wait for a client before nothing more is read from it.
    pub backlog: usize,
    /// How long a client may take to prove itself.
    pub handshake: Span,
    /// How long a client may take over the rest of a command, or leave answers unread.
    pub stall: Span,
    /// Commands whose outcome takes so long are in the slow log.
    pub slow_after: Span,
    /// Commands of the slow log; 0: there is none.
    pub slow_commands: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1_000,
            arguments: 4_096,
            request: 16 << 20,
            reply: 64 << 20,
            memory: 1 << 30,
            backlog: 1 << 20,
            handshake: Span::secs(10),
            stall: Span::secs(60),
            slow_after: Span::ms(10),
            slow_commands: 128,
        }
    }
}
