//! Arguments of the commands of live disks: `target`, `disk`, `attack`.

use base::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `rackweave target`
#[derive(Debug, Args)]
pub struct TargetArguments {
    /// The configuration (TOML; `rackweave schema target` explains every key). SIGHUP reads it anew
    #[arg(long, value_name = "FILE", conflicts_with = "TargetFlags")]
    pub config: Option<PathBuf>,
    /// Open everything as if to serve it, say whether that would do, and leave no trace
    #[arg(long)]
    pub check: bool,
    /// The configuration, without a file.
    #[command(flatten)]
    pub flags: TargetFlags,
}

/// `rackweave kv`, `rackweave jbof`
#[derive(Debug, Args)]
pub struct KvArguments {
    /// The configuration (TOML; `rackweave schema kv` or `jbof` explains every key)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Say whether the file is right, and leave no trace
    #[arg(long)]
    pub check: bool,
    /// Note what its programs are told and decide in this folder, for `rackweave twin`
    #[arg(long, value_name = "FOLDER", requires = "role")]
    pub journal: Option<PathBuf>,
    /// The name of the role in the rack's file, which its journals get
    #[arg(long, value_name = "NAME", requires = "journal")]
    pub role: Option<String>,
}

/// One disk, without a file. What is not given is as in an empty file.
#[derive(Debug, Args)]
#[group(multiple = true)]
pub struct TargetFlags {
    /// Listen here; may be repeated. 127.0.0.1:4420 when not given
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<String>,
    /// Backend of the data: ram, null, file or flash. `file` when there is a path, else `ram`
    #[arg(long, value_name = "KIND")]
    pub backend: Option<String>,
    /// Size of the disk, such as 1GiB
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Bytes of a block, such as 4KiB
    #[arg(long, value_name = "SIZE")]
    pub block: Option<String>,
    /// The file or block device of the data
    #[arg(long, value_name = "FILE")]
    pub path: Option<String>,
    /// Read and write the file around the page cache
    #[arg(long)]
    pub direct: bool,
    /// The emulated drive of `--backend flash`, such as tlc-gen4 or optane
    #[arg(long, value_name = "NAME")]
    pub drive: Option<String>,
    /// The name of the subsystem
    #[arg(long, value_name = "NQN")]
    pub nqn: Option<String>,
    /// Let this host in and no other; may be repeated
    #[arg(long = "host", value_name = "NQN")]
    pub hosts: Vec<String>,
    /// The folder of what has to outlive a restart
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
    /// Serve /metrics and /healthz here
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<String>,
    /// Which messages are logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
}

/// `rackweave disk`
#[derive(Debug, Args)]
pub struct DiskArguments {
    /// Address of the target
    #[arg(value_name = "ADDRESS:PORT")]
    pub address: String,
    /// The operation; `identify` when not given
    #[command(subcommand)]
    pub verb: Option<DiskVerb>,
    /// The target, and the identity of the host.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// The target, and the identity of the host.
#[derive(Debug, Args)]
pub struct ConnectionArguments {
    /// The subsystem. By default the only one of the target's discovery log
    #[arg(long, value_name = "NQN", global = true)]
    pub nqn: Option<String>,
    /// The name that this host gives
    #[arg(long, value_name = "NQN", global = true, default_value = "nqn.2026-11.io.rackweave:host")]
    pub host: String,
    /// The namespace
    #[arg(long, value_name = "N", global = true, default_value_t = 1)]
    pub namespace: u32,
    /// Protect headers by digests
    #[arg(long, global = true)]
    pub header_digest: bool,
    /// Protect data by digests
    #[arg(long, global = true)]
    pub data_digest: bool,
    /// Seconds that an answer may take
    #[arg(long, value_name = "S", global = true, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Credentials of this host.
    #[command(flatten)]
    pub proof: ProofArguments,
}

/// Credentials of a host.
#[derive(Debug, Default, Args)]
pub struct ProofArguments {
    /// The file of this host's secret (DH-HMAC-CHAP), as `nvme gen-dhchap-key` prints it
    #[arg(long, value_name = "FILE", global = true)]
    pub dhchap_secret_file: Option<PathBuf>,
    /// The secret itself. Other users of this machine can see it: prefer the file
    #[arg(long, value_name = "SECRET", global = true, conflicts_with = "dhchap_secret_file")]
    pub dhchap_secret: Option<String>,
    /// The file of the target's secret: with it a target that does not prove itself is refused
    #[arg(long, value_name = "FILE", global = true)]
    pub dhchap_ctrl_secret_file: Option<PathBuf>,
    /// The secret itself, as above
    #[arg(long, value_name = "SECRET", global = true, conflicts_with = "dhchap_ctrl_secret_file")]
    pub dhchap_ctrl_secret: Option<String>,
    /// Secure connections by TLS 1.3 with the key in this file, as `nvme gen-tls-key` prints it
    #[arg(long, value_name = "FILE", global = true, visible_alias = "tls-psk")]
    pub tls_key_file: Option<PathBuf>,
}

/// Operations on a disk.
#[derive(Debug, Subcommand)]
pub enum DiskVerb {
    /// Show the controller and its disks
    Identify {
        /// Print an object for programs
        #[arg(long)]
        json: bool,
    },
    /// Copy a part of the disk to a file or the standard output
    Read {
        /// First byte: a multiple of a block
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        at: Bytes,
        /// Length; to the end of the disk when not given
        #[arg(long, value_name = "SIZE")]
        bytes: Option<Bytes>,
        /// The file to make. The standard output when not given
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Copy a file or the standard input onto the disk, and flush
    Write {
        /// First byte: a multiple of a block
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        at: Bytes,
        /// The file; its last block is filled up with zeros. The standard input when not given
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Write noise, flush, read it back on a new connection and compare: overwrites that part of
    /// the disk
    Verify {
        /// First byte: a multiple of a block
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        at: Bytes,
        /// Length; to the end of the disk when not given
        #[arg(long, value_name = "SIZE")]
        bytes: Option<Bytes>,
        /// Decides the noise
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Yes, what is there may be lost
        #[arg(long, required = true)]
        overwrite: bool,
    },
    /// Let the target copy a part of the disk to several places by itself (MultiCast of S-Direct),
    /// and flush
    Cast {
        /// First byte: a multiple of a block
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        at: Bytes,
        /// Length; to the end of the disk when not given
        #[arg(long, value_name = "SIZE")]
        bytes: Option<Bytes>,
        /// A namespace and its first byte that is written, such as 2:1MiB; may be repeated
        #[arg(long, value_name = "N:SIZE", required = true, value_parser = place)]
        to: Vec<(u32, Bytes)>,
    },
    /// Let the target add two 64-bit little-endian words of the disk (add_write of S-Direct): the
    /// sum takes the place of the second, and is printed
    Add {
        /// First byte of the first: a multiple of 8
        #[arg(long, value_name = "SIZE")]
        first: Bytes,
        /// First byte of the second: a multiple of 8
        #[arg(long, value_name = "SIZE")]
        second: Bytes,
    },
    /// Measure requests a second and latency
    Bench(BenchArguments),
}

/// A namespace and a byte of it.
fn place(text: &str) -> Result<(u32, Bytes), String> {
    let (namespace, at) = text.split_once(':').ok_or("a namespace and a place are needed, such as 2:1MiB")?;
    let namespace = namespace.parse().map_err(|_| format!("{namespace} is not the number of a namespace"))?;
    Ok((namespace, at.parse().map_err(|error| format!("{error}"))?))
}

/// Which requests are measured.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The operation
    #[arg(long, value_enum, default_value_t = BenchLoad::RandomRead)]
    pub load: BenchLoad,
    /// Bytes of a request
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub block: Bytes,
    /// Requests that are underway at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// How long
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Decides which blocks
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// With writes: yes, what is there may be lost
    #[arg(long)]
    pub overwrite: bool,
    /// Print an object for programs
    #[arg(long)]
    pub json: bool,
}

/// Kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchLoad {
    /// Reads one behind the other
    Read,
    /// Writes one behind the other
    Write,
    /// Reads anywhere
    RandomRead,
    /// Writes anywhere
    RandomWrite,
}

/// `rackweave attack`
#[derive(Debug, Args)]
pub struct AttackArguments {
    /// Address of the target: one of yours, which may lose its data
    #[arg(value_name = "ADDRESS:PORT", required_unless_present_any = ["list", "explain"])]
    pub address: Option<String>,
    /// The subsystem. By default the only one of the target's discovery log
    #[arg(long, value_name = "NQN")]
    pub nqn: Option<String>,
    /// The name that this host gives
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.io.rackweave:attacker")]
    pub host: String,
    /// The namespace: at least 256 blocks, of which the first are overwritten
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub namespace: u32,
    /// Only attacks whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Seconds after which a target that says nothing hangs. Fifty times what a lone command takes,
    /// and 3 at least, when not given
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub step_timeout: Option<u64>,
    /// Show the attacks and do nothing
    #[arg(long)]
    pub list: bool,
    /// Show what an attack sends, what a specification demands, and which published fault it stems
    /// from; do nothing
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub explain: Option<String>,
    /// Write a report to this file: JSON, or JUnit XML where the name ends in `.xml`
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Compare with the verdicts that this file (TOML) expects, and fail where they differ instead
    /// of at a fault
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Print a list of objects for programs
    #[arg(long)]
    pub json: bool,
}
