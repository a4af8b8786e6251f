//! The data path of a live rack's switch in the kernel (XDP).
//!
//! `bpf/switch.bpf.c` forwards sound packets of reads, writes, their answers and messages between
//! replicas. [`Express`] loads it and fills its tables: where nodes are, and which reads go to
//! another replica. The role decides both. Every packet that the tables do not cover goes to the
//! role's socket, so a table that lacks an entry makes packets slower and never wrong.

use aya::maps::{HashMap, MapData, MapError, PerCpuArray};
use aya::programs::links::{FdLink, LinkError};
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp, XdpMode};
use aya::{Ebpf, EbpfError, EbpfLoader};
use base::NodeId;
use blox::VssdId;
use std::net::SocketAddrV4;
use std::time::Duration;

const PROGRAM: &str = "rack_switch";
/// What the kernel says of a packet (`enum xdp_action` of linux/bpf.h).
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// Address of an interface in its network (IEEE 802, 48 bits).
pub type Station = [u8; 6];

/// What a program is loaded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// What all datagrams of the rack begin with.
    pub tag: [u8; 8],
    /// Where the role's socket is.
    pub address: SocketAddrV4,
    /// Of the interface.
    pub station: Station,
    /// Reads for nodes below may be redirected ([`blox::SwitchConfig::nodes`]).
    pub inside: u32,
    /// Reads of so many vSSDs may be redirected at a time.
    pub redirects: u32,
}

/// Where a node of the rack is: behind the interface, without a router between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Where it receives packets.
    pub address: SocketAddrV4,
    /// Of its interface.
    pub station: Station,
}

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the network stack, behind any driver.
    Generic,
    /// In the driver, before the kernel has memory of its own for a packet.
    Native,
}

/// What became of packets for the switch, since the program was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Forwarded in the kernel.
    pub forwarded: u64,
    /// Those of them that were redirected to another replica.
    pub redirected: u64,
    /// Passed to the role: not of the data path.
    pub control: u64,
    /// Passed: not exactly one packet of this rack in one frame.
    pub unsound: u64,
    /// Passed: where the node is, was not known.
    pub unknown: u64,
    /// Passed: the sender left the checksum to a card that the packet did not go through.
    pub unsummed: u64,
}

/// Why the kernel does not take the program, or an entry of its tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressError {
    /// The object file, or a map of it.
    #[error("the program cannot be loaded: {}{}", chain(.0), advice(.0))]
    Load(#[from] EbpfError),
    /// The kernel's verifier, or the interface.
    #[error("the kernel does not take the program: {}{}", chain(.0), advice(.0))]
    Program(#[from] ProgramError),
    /// The object has another program, or other maps.
    #[error("the object has no {0}: `make xdp` compiles the right one")]
    Other(&'static str),
    /// The attachment would outlive this process.
    #[error("the kernel has no links for XDP: Linux 5.18 or newer is needed")]
    NoLinks(#[source] LinkError),
    /// A table.
    #[error("the kernel's table {table}: {}", chain(.reason))]
    Table {
        /// Its name.
        table: &'static str,
        /// The kernel's reason.
        reason: MapError,
    },
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }
    text
}

/// What helps where the process lacks rights.
fn advice(error: &dyn std::error::Error) -> &'static str {
    let text = chain(error);
    let is_denied = ["Operation not permitted", "Permission denied"].iter().any(|words| text.contains(words));
    if is_denied { "; it needs the capabilities CAP_BPF and CAP_NET_ADMIN, or root" } else { "" }
}

/// What the program does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame goes on to the role, unchanged.
    Pass,
    /// It is sent.
    Send,
    /// Something that the program never says.
    Other(u32),
}

/// A run of the program over a frame, without a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it did.
    pub verdict: Verdict,
    /// The frame behind it.
    pub frame: Vec<u8>,
    /// Time of one run, the mean of all.
    pub mean: Duration,
}

/// The program in the kernel. Without this value the kernel has it no longer: it ends with its
/// process, however that ends.
pub struct Express {
    ebpf: Ebpf,
    nodes: HashMap<MapData, u32, [u8; 16]>,
    redirects: HashMap<MapData, u32, [u8; 8]>,
    counts: PerCpuArray<MapData, u64>,
    link: Option<FdLink>,
}

impl Express {
    /// Loads the program of an object file into the kernel, with empty tables.
    ///
    /// # Errors
    /// When the object is another one, or the kernel refuses it.
    pub fn load(object: &[u8], own: &Own) -> Result<Express, ExpressError> {
        let Own { tag, address, station, inside, redirects } = *own;
        let [a, b, c, d, e, f] = station;
        let (first, last) = ([a, b, c, d], [e, f]);
        let port = address.port().to_be_bytes();
        let mut ebpf = EbpfLoader::new()
            .override_global("rack_tag", &tag, true)
            .override_global("own_address", &address.ip().octets(), true)
            .override_global("own_port", &port, true)
            .override_global("own_station", &first, true)
            .override_global("own_station_end", &last, true)
            .override_global("inside", &inside, true)
            .map_max_entries("redirects", redirects)
            .load(object)?;
        let nodes = HashMap::try_from(taken(&mut ebpf, "nodes")?).map_err(table("nodes"))?;
        let redirects = HashMap::try_from(taken(&mut ebpf, "redirects")?).map_err(table("redirects"))?;
        let counts = PerCpuArray::try_from(taken(&mut ebpf, "counts")?).map_err(table("counts"))?;
        let mut express = Express { ebpf, nodes, redirects, counts, link: None };
        express.program_mut()?.load()?;
        Ok(express)
    }

    /// Attaches it to an interface of this network namespace.
    ///
    /// # Errors
    /// When there is no such interface, it has a program, or cannot have this one.
    pub fn attach(&mut self, interface: &str, mode: Mode) -> Result<(), ExpressError> {
        let mode = match mode {
            Mode::Generic => XdpMode::Skb,
            Mode::Native => XdpMode::Driver,
        };
        let program = self.program_mut()?;
        let id = program.attach(interface, mode)?;
        let link = program.take_link(id)?;
        self.link = Some(FdLink::try_from(link).map_err(ExpressError::NoLinks)?);
        Ok(())
    }

    /// Says where a node is; `None` if that is not known.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn set_node(&mut self, node: NodeId, place: Option<Neighbour>) -> Result<(), ExpressError> {
        let done = match place {
            Some(place) => self.nodes.insert(node.0, place.bytes(), 0),
            None => absent_too(self.nodes.remove(&node.0)),
        };
        done.map_err(table("nodes"))
    }

    /// Says which replica serves the reads of a vSSD now; `None` for itself.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn set_redirect(&mut self, vssd: VssdId, to: Option<(NodeId, VssdId)>) -> Result<(), ExpressError> {
        let done = match to {
            Some((server, replica)) => {
                let [a, b, c, d] = server.0.to_be_bytes();
                let [e, f, g, h] = replica.0.to_be_bytes();
                self.redirects.insert(vssd.0, [a, b, c, d, e, f, g, h], 0)
            }
            None => absent_too(self.redirects.remove(&vssd.0)),
        };
        done.map_err(table("redirects"))
    }

    /// What it has done so far, on all processors.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn counts(&self) -> Result<Counts, ExpressError> {
        let count = |place: u32| {
            let values = self.counts.get(&place, 0).map_err(table("counts"))?;
            Ok::<u64, ExpressError>(values.iter().sum())
        };
        Ok(Counts {
            forwarded: count(0)?,
            redirected: count(1)?,
            control: count(2)?,
            unsound: count(3)?,
            unknown: count(4)?,
            unsummed: count(5)?,
        })
    }

    /// Runs the program over a frame `repeat` times, each time over what the last one left.
    ///
    /// # Errors
    /// When the kernel takes no such frame: one of less than 14 B.
    pub fn run(&self, frame: &[u8], repeat: u32) -> Result<Ran, ExpressError> {
        let mut out = vec![0; frame.len()];
        let options =
            TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), repeat, ..TestRunOptions::new() };
        let ran = self.program()?.test_run(options)?;
        let verdict = match ran.return_value {
            XDP_PASS => Verdict::Pass,
            XDP_TX => Verdict::Send,
            other => Verdict::Other(other),
        };
        out.truncate(ran.data_size_out as usize);
        Ok(Ran { verdict, frame: out, mean: ran.duration })
    }

    fn program(&self) -> Result<&Xdp, ExpressError> {
        Ok(self.ebpf.program(PROGRAM).ok_or(ExpressError::Other("program `rack_switch`"))?.try_into()?)
    }

    fn program_mut(&mut self) -> Result<&mut Xdp, ExpressError> {
        Ok(self.ebpf.program_mut(PROGRAM).ok_or(ExpressError::Other("program `rack_switch`"))?.try_into()?)
    }
}

impl Neighbour {
    /// As `struct neighbour` has it.
    fn bytes(self) -> [u8; 16] {
        let [a, b, c, d, e, f] = self.station;
        let [w, x, y, z] = self.address.ip().octets();
        let [high, low] = self.address.port().to_be_bytes();
        [w, x, y, z, high, low, e, f, a, b, c, d, 0, 0, 0, 0]
    }
}

fn taken(ebpf: &mut Ebpf, name: &'static str) -> Result<aya::maps::Map, ExpressError> {
    ebpf.take_map(name).ok_or(ExpressError::Other("map of that name among `nodes`, `redirects` and `counts`"))
}

fn table(table: &'static str) -> impl Fn(MapError) -> ExpressError {
    move |reason| ExpressError::Table { table, reason }
}

/// To remove what is not there is no error.
fn absent_too(done: Result<(), MapError>) -> Result<(), MapError> {
    match done {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
