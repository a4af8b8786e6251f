//! The written form of a live target, and its defaults. All of them are ours.

use super::{Backend, Dhchap, HostKeys, Limits, Namespace, Path, Port, Records, SecretSource, Subsystem, TargetPlan};
use crate::file::words;
use crate::quantity::{Limit, Quantity};
use crate::table::table;
use base::{Bytes, Span};

/// Of a disk whose file does not decide.
const SIZE: Bytes = Bytes::new(1 << 30);

words! {
    /// Which messages are logged.
    LogLevelName {
        /// What went wrong on this side.
        Error,
        /// And what peers did wrong.
        Warn,
        /// And connections.
        Info,
        /// And every admin command.
        Debug,
        /// And everything.
        Trace,
    }
}

words! {
    /// How messages are written.
    LogFormatName {
        /// A line each, for people.
        Text,
        /// An object each, for programs.
        Json,
    }
}

words! {
    /// What holds the data of a namespace.
    BackendName {
        /// Memory of this process: gone when it ends.
        Ram,
        /// Nothing: writes go nowhere, reads are zeros. For measuring.
        Null,
        /// A file or block device.
        File,
        /// An emulated flash drive: the times of a preset over data in memory, or in a file.
        Flash,
        /// A replicated volume of a live rack, docs/reference/rack.md.
        Volume,
    }
}

words! {
    /// How a file is read and written.
    IoName {
        /// Read by io_uring where the kernel has it and written by threads, which is the quickest;
        /// all by threads elsewhere.
        Auto,
        /// Read and written by io_uring: the target does not start where the kernel refuses it.
        Uring,
        /// Read and written by threads.
        Threads,
    }
}

words! {
    /// Whether connections are secured.
    TlsName {
        /// Not.
        Off,
        /// By TLS 1.3 with a pre-shared key; others are refused.
        Required,
    }
}

words! {
    /// How keys of TLS are derived from the configured one.
    TlsDerivationName {
        /// As the host's identity shows; as the specification says where it does not show it.
        Any,
        /// As the specification says (TCP Transport 1.1, 3.6.1).
        Specification,
        /// As libnvme before 1.16 does, that of Debian 13 among them.
        Libnvme,
    }
}

words! {
    /// Hash functions of DH-HMAC-CHAP.
    HashName {
        /// SHA-256.
        Sha256,
        /// SHA-384.
        Sha384,
        /// SHA-512.
        Sha512,
    }
}

words! {
    /// Groups of Diffie and Hellman (RFC 7919).
    GroupName {
        /// None: responses depend on challenge and secret alone.
        Null,
        /// 2,048 bits.
        Ffdhe2048,
        /// 3,072 bits.
        Ffdhe3072,
        /// 4,096 bits.
        Ffdhe4096,
        /// 6,144 bits.
        Ffdhe6144,
        /// 8,192 bits.
        Ffdhe8192,
    }
}

words! {
    /// How a group of namespaces is reached by a port (asymmetric namespace access).
    AccessName {
        /// In the best way.
        Optimized,
        /// In a way that costs more; hosts prefer others.
        NonOptimized,
        /// Not at present.
        Inaccessible,
        /// Never again.
        PersistentLoss,
        /// Between two of the others.
        Change,
    }
}

table! {
    /// A live target for NVMe over TCP. An empty file is one RAM disk of 1 GiB at 127.0.0.1:4420.
    #[schemars(title = "Rackweave target")]
    TargetFile => TargetPlan {
        /// The folder of what has to outlive a restart: identities and reservations. It is made if
        /// it is not there. Without one, identities lie beside the files of namespaces, and
        /// reservations are lost.
        state: String [length from 1],
        /// Serve `/metrics` (Prometheus) and `/healthz` at this address, such as "127.0.0.1:9420".
        metrics: String,
        /// Which messages are logged.
        log: LogLevelName = LogLevelName::Info,
        /// How they are written.
        log_format: LogFormatName = LogFormatName::Text,
        /// How long to look for work before sleeping, at most 1ms, where sleeps have been about as
        /// short and no backend works: being woken costs more than a request, in virtual machines
        /// above all. The processor is busy meanwhile, and others may have it. "0us": never.
        busy_poll: Quantity<Span> [to "1ms"] = Span::us(50),
        /// Threads that serve connections. All queues of a host's controller are on one.
        loops: u32 [1 to 64] = 1,
        /// Refuse what is against the specification though hosts in use do it, for work on
        /// conformance: an empty HOSTNQN, CC.CSS = 6, identifiers of outstanding event requests, a
        /// HOSTID that differs between queues. Else it is let pass, and logged.
        strict: bool = false,
        /// Where hosts come in. The first is number 1. One at 127.0.0.1:4420 when not given.
        port: Vec<PortFile> [length 1 to 64] => vec![PortFile::default().resolve()],
        /// What hosts prove themselves by. A host that is not here needs no proof.
        host: Vec<HostFile> [length to 4096],
        /// How hosts prove themselves by secrets.
        dhchap: DhchapFile => DhchapFile::default().resolve(),
        /// What hosts find. One with a RAM disk of 1 GiB when not given.
        subsystem: Vec<SubsystemFile> [length 1 to 256] => vec![SubsystemFile::default().resolve()],
        /// What peers may use.
        limits: LimitsFile => LimitsFile::default().resolve(),
        /// Keep a row a request, in the columns of the simulator.
        records: RecordsFile,
    } as {
        state,
        metrics,
        log,
        log_format,
        busy_poll,
        loops,
        strict,
        ports: port,
        hosts,
        dhchap,
        subsystems,
        limits,
        records,
    } from {
        let hosts = host.unwrap_or_default();
        let mut subsystems = subsystem;
        for one in subsystems.iter_mut().filter(|one| one.ports.is_empty()) {
            one.ports = (1..=port.len() as u16).collect();
        }
    } to {
        let host = Some(hosts).filter(|all| !all.is_empty());
        let subsystem = subsystems;
    }
}

table! {
    /// Where hosts come in.
    PortFile => Port {
        /// Where to listen: an address and a TCP port. 4420 is the one of NVMe over TCP.
        address: String = "127.0.0.1:4420".into(),
        /// What the discovery log says instead, for a target that listens at 0.0.0.0 or behind a
        /// translation of addresses.
        advertised: String,
        /// Whether connections have to be secured by TLS 1.3, with the `tls_key` of the host.
        tls: TlsName = TlsName::Off,
    }
}

table! {
    /// Credentials of a host. Secrets are here or in files of their own, of which the first line
    /// counts, so that this file may be read by all.
    HostFile => HostKeys {
        /// The host's NVMe qualified name. `hosts` of a subsystem has to name it too.
        nqn: String where [needed] => String::new(),
        /// Its secret of DH-HMAC-CHAP as `nvme gen-dhchap-key` prints it. With one it is let in by
        /// that alone.
        dhchap_secret: String,
        /// The file that holds `dhchap_secret`.
        dhchap_secret_file: String [length from 1] where [without dhchap_secret],
        /// The secret of the target for this host, if the host requests authentication.
        dhchap_controller_secret: String,
        /// The file that holds `dhchap_controller_secret`.
        dhchap_controller_secret_file: String [length from 1] where [without dhchap_controller_secret],
        /// Its key of TLS as `nvme gen-tls-key` prints it, with SHA-256 or SHA-384.
        tls_key: String,
        /// The file that holds `tls_key`.
        tls_key_file: String [length from 1] where [without tls_key],
        /// How the host derives what it uses from `tls_key`. Where its identity does not show it
        /// (version 0, or a key of 00) it has to be said.
        tls_derivation: TlsDerivationName where [given tls_key | tls_key_file] = TlsDerivationName::Any,
    } as { nqn, dhchap, dhchap_controller, tls, tls_derivation } from {
        let dhchap = SecretSource::of(dhchap_secret, dhchap_secret_file);
        let dhchap_controller = SecretSource::of(dhchap_controller_secret, dhchap_controller_secret_file);
        let tls = SecretSource::of(tls_key, tls_key_file);
    } to {
        let (dhchap_secret, dhchap_secret_file) = SecretSource::keys(dhchap);
        let (dhchap_controller_secret, dhchap_controller_secret_file) = SecretSource::keys(dhchap_controller);
        let (tls_key, tls_key_file) = SecretSource::keys(tls);
    }
}

table! {
    /// How hosts prove themselves by secrets (DH-HMAC-CHAP).
    DhchapFile => Dhchap {
        /// Hash functions that are taken. All when not given.
        hashes: Vec<HashName> [length from 1] => vec![HashName::Sha256, HashName::Sha384, HashName::Sha512],
        /// Groups of Diffie and Hellman that are taken; the first that a host offers is used. All,
        /// the cheapest first, when not given.
        groups: Vec<GroupName> [length from 1] => {
            use GroupName::{Ffdhe2048, Ffdhe3072, Ffdhe4096, Ffdhe6144, Ffdhe8192, Null};
            vec![Null, Ffdhe2048, Ffdhe3072, Ffdhe4096, Ffdhe6144, Ffdhe8192]
        },
        /// Limit of the cost a second of exponentiations of failed authentications, in
        /// exponentiations of 2,048 bits: 3,072 bits cost 3, 4,096 bits 6, 6,144 bits 14, 8,192
        /// bits 28.
        stranger_cost: u32 [1 to 100_000] = 100,
    }
}

table! {
    /// A subsystem: the disks that a host sees after one Connect.
    SubsystemFile => Subsystem {
        /// Its NVMe qualified name. May be left out when there is one subsystem alone: then one is
        /// made at random, kept in the folder of the state or with the first file, and printed at
        /// start.
        nqn: String,
        /// Serial number, at most 20 printable characters. Made at random and kept like the name
        /// when not given.
        serial: String [length from 1],
        /// Model, at most 40 printable characters.
        model: String [length from 1] = "Rackweave".into(),
        /// NVMe qualified names of the hosts that may use it. All hosts when not given. A name is
        /// no proof: give the host a secret or a key, see `host`.
        hosts: Vec<String>,
        /// Numbers of the ports by which it is reached. All when not given.
        ports: Vec<u16> [length from 1] => Vec::new(),
        /// Its disks. One in RAM when not given.
        namespace: Vec<NamespaceFile> => vec![NamespaceFile::default().resolve()],
        /// How groups are reached by ports, where that is not optimized.
        path: Vec<PathFile>,
    } as { nqn, serial, model, hosts, ports, namespaces, paths } from {
        let paths = path.unwrap_or_default();
        let mut namespaces = namespace;
        for (one, place) in namespaces.iter_mut().zip(1..).filter(|(one, _)| one.id == 0) {
            one.id = place;
        }
    } to {
        let path = Some(paths).filter(|all| !all.is_empty());
        let namespace = namespaces;
    }
}

table! {
    /// A namespace: one disk.
    NamespaceFile => Namespace {
        /// Its number. Its place in the list, from 1, when not given.
        id: u32 [1 to 1_024] => 0,
        /// What holds its data.
        backend: BackendName = BackendName::Ram,
        /// Its size: whole blocks. With `file` as much as the file has when not given, with
        /// `volume` what the rack's file says; 1 GiB otherwise.
        size: Quantity<Bytes>,
        /// Bytes of a block: a power of two from 512B to 64KiB. A `volume` needs 4KiB or more, and
        /// has that when not given; others have 512B.
        block: Quantity<Bytes> => if backend == BackendName::Volume { crate::rack::PAGE } else { Bytes::new(512) },
        /// With `file`: the file or block device. With `flash`: a file for the data. A file that is
        /// not there is made, of the given size.
        path: String [length from 1] where [backend = "file" | "flash"],
        /// Read and write around the page cache.
        direct: bool where [backend = "file"] = false,
        /// How the file is read and written.
        io: IoName where [backend = "file"] = IoName::Auto,
        /// Threads that read and write the file, and beside io_uring those for what is rare (zeros,
        /// copies, verification).
        threads: u32 [1 to 64] where [backend = "file"] = 4,
        /// The drive, a preset of docs/reference/flash.md.
        drive: String where [backend = "flash"] = "tlc-gen4".into(),
        /// Decides what the drive draws.
        seed: u64 [0 to 9_223_372_036_854_775_807_u64] where [backend = "flash"] = 1,
        /// The rack's file.
        rack: String [length from 1] where [backend = "volume"],
        /// The door of the rack that this target is.
        door: String [length from 1] where [backend = "volume"],
        /// The volume of the rack.
        volume: String [length from 1] where [backend = "volume"],
        /// Its UUID. When not given, made at random: once for a file, and kept in the folder of the
        /// state or beside the file; at every start otherwise.
        uuid: String,
        /// Its group of asymmetric access.
        group: u32 [1 to 1_024] = 1,
        /// Take all of the memory at the start, so that no first write waits for it.
        prefault: bool where [backend = "ram" | "flash"; without path] = false,
        /// Take the room of the whole file at the start, and keep it: deallocated blocks read as
        /// zeros, and nothing else can have their room. Not with `read_only`.
        reserve: bool where [given path] = false,
        /// Refuse writes.
        read_only: bool = false,
        /// Let other namespaces and targets that say so too serve the same file. Hosts then see one
        /// disk by several ways. Reservations are not shared.
        shared: bool where [backend = "file" | "flash"] = false,
        /// Read a file that another process has and changes, such as that of `rackweave jbof`. No
        /// lock is taken, and hosts see what is written to the file. Only with `read_only`.
        unlocked: bool where [backend = "file"] = false,
    } as { id, backend: medium, size: held, block, uuid, prefault, reserve, group, read_only, shared, unlocked } from {
        let is_sized = matches!(backend, BackendName::File | BackendName::Volume);
        let held = if is_sized { size } else { size.or(Some(SIZE)) };
        let medium = match backend {
            BackendName::Ram => Backend::Ram,
            BackendName::Null => Backend::Null,
            BackendName::File => Backend::File { path: path.unwrap_or_default(), direct, io, threads },
            BackendName::Flash => Backend::Flash { drive, seed, path },
            BackendName::Volume => Backend::Volume {
                rack: rack.unwrap_or_default(),
                door: door.unwrap_or_default(),
                volume: volume.unwrap_or_default(),
            },
        };
    } to {
        let (size, usual) = (held, NamespaceFile::default());
        let (mut path, mut direct, mut io, mut threads) = (None, usual.direct(), usual.io(), usual.threads());
        let (mut drive, mut seed) = (usual.drive(), usual.seed());
        let (mut rack, mut door, mut volume) = (None, None, None);
        let backend = match medium {
            Backend::Ram => BackendName::Ram,
            Backend::Null => BackendName::Null,
            Backend::File { path: of, direct: is_direct, io: by, threads: count } => {
                (path, direct, io, threads) = (Some(of), is_direct, by, count);
                BackendName::File
            }
            Backend::Flash { drive: preset, seed: draws, path: of } => {
                (drive, seed, path) = (preset, draws, of);
                BackendName::Flash
            }
            Backend::Volume { rack: of, door: by, volume: name } => {
                (rack, door, volume) = (Some(of), Some(by), Some(name));
                BackendName::Volume
            }
        };
    }
}

table! {
    /// How the namespaces of a group are reached by a port.
    PathFile => Path {
        /// The number of the port.
        port: u16 [1 to 64] where [needed] => 1,
        /// The group.
        group: u32 [1 to 1_024] = 1,
        /// Access of hosts to it.
        access: AccessName where [needed] => AccessName::Optimized,
    }
}

table! {
    /// What peers may use. All of it is bound before memory is taken.
    LimitsFile => Limits {
        /// Connections at a time: admin and I/O queues of all hosts.
        connections: u32 [1 to 65_536] = 1_024,
        /// Controllers (associations of hosts) at a time.
        controllers: u16 [1 to 65_000] = 256,
        /// Controllers of one host, by its NQN, at a time.
        controllers_per_host: u16 [1 to 65_000] = 64,
        /// I/O queues of a controller.
        io_queues: u16 [1 to 1_024] = 64,
        /// Entries of an I/O queue.
        queue_entries: u32 [2 to 65_535] = 128,
        /// Longest transfer of a command: a power of two from 4KiB to 128MiB.
        transfer: Quantity<Bytes> = Bytes::kib(1_024),
        /// Longest data inside of a command's capsule: a multiple of 16 up to 64KiB.
        in_capsule: Quantity<Bytes> = Bytes::kib(8),
        /// Data that the commands of one connection hold at a time: at least `transfer`.
        connection_memory: Quantity<Bytes> = Bytes::kib(8 << 10),
        /// Answers that wait for a host before nothing more is read from it.
        backlog: Quantity<Bytes> ["4KiB" to "1GiB"] = Bytes::kib(2 << 10),
        /// Free buffers that are kept for later commands, of all connections together.
        pool: Quantity<Bytes> = Bytes::kib(16 << 10),
        /// How long a host may take until it has sent Connect.
        handshake: Quantity<Span> ["100ms" to "24h"] = Span::secs(10),
        /// How long a connection without keep-alive may be silent.
        idle: Limit<Quantity<Span>> = None,
        /// How long a host may leave answers unread.
        stall: Quantity<Span> ["100ms" to "24h"] = Span::secs(60),
    }
}

table! {
    /// Which requests leave a row in the records, in the columns of the simulator.
    RecordsFile => Records {
        /// The folder to make for them.
        folder: String [length from 1] where [needed] => String::new(),
        /// The inverse of the share of requests that are kept.
        sample: u32 [1 to 1_000_000_000] = 100,
        /// Every request that takes at least this long is kept besides.
        tail: Quantity<Span> = Span::ms(10),
    }
}
