//! A JBOF: registered memory, flash in a file, and the helper. Verbs and reads of flash are carried
//! out as they come; the helper is asked about updates alone.

use crate::config::{JbofConfig, Journal};
use crate::flash::{Ended, Flash, Job};
use crate::frames::{Tally, Welcome};
use crate::journal::{Part, Writer};
use crate::noted::NotedHelper;
use crate::superblock::{Found, SUPERBLOCK_BYTES, Shape, decode, encode};
use crate::transport::{Arrival, Transport};
use base::{Program, Span, Time};
use bytes::Bytes;
use mapped::Mapped;
use mio::Waker;
use runtime::clock::Clock;
use runtime::error::StartError;
use runtime::in_use::InUse;
use runtime::secret::random;
use runtime::storage::{DiskFile, Hold, Storage};
use scalio::layout::Seal;
use scalio::{
    ClientId, Done, ENTRY_BYTES, Extent, RegisteredMemory, Request, RequestId, SECTOR_BYTES, Server, ServerConfig,
    ServerIn, ServerOut, Verb, answer, memory_words, verbs,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Updates of a group at most. Those that come while a group is on its way to flash are the next.
pub const GROUP_UPDATES: u32 = 256;
/// Groups under way at most.
pub const GROUPS: u32 = 4;
/// Zones that only compaction may take.
pub const RESERVE_ZONES: u32 = 4;
/// Compaction begins when fewer zones than this are free.
pub const COMPACT_BELOW: u32 = 6;

/// The memory, the flash and the helper.
pub struct Jbof {
    config: JbofConfig,
    /// Second of the store's clock at the helper's time zero.
    start_second: u32,
    memory: RegisteredMemory<Mapped>,
    memory_file: OwnedFd,
    flash: Flash,
    helper: NotedHelper,
    arrived: VecDeque<Arrival>,
    ended: Vec<Ended>,
    out: Vec<ServerOut<Bytes>>,
}

/// Why a file is refused that is none of ours.
const NO_STORE: &str = "it is no store, or its first bytes are damaged: not touched";

/// The helper's configuration.
fn server_config(config: &JbofConfig, start_second: u32) -> ServerConfig {
    ServerConfig {
        device: 0,
        devices: 1,
        blocks: config.blocks,
        protocol: config.protocol,
        group_updates: GROUP_UPDATES,
        group_wait: Span::ZERO,
        groups_max: GROUPS,
        zones: config.zones,
        zone_sectors: config.zone_sectors,
        reserve_zones: RESERVE_ZONES,
        compact_below: COMPACT_BELOW,
        volatile_cache: config.flush,
        value_bytes_max: config.value_bytes_max + ENTRY_BYTES,
        start_second,
        hand_over: true,
    }
}

/// Opens the file of a store, or makes it.
fn open(config: &JbofConfig) -> Result<(DiskFile, Seal), StartError> {
    let shape = Shape { blocks: config.blocks, zones: config.zones, zone_sectors: config.zone_sectors };
    let size = u64::from(shape.zones) * u64::from(shape.zone_sectors) * u64::from(SECTOR_BYTES);
    let fail = |error| StartError::file(&config.path, error);
    refuse_cut(config, SUPERBLOCK_BYTES + size)?;
    let size = Some(SUPERBLOCK_BYTES + size);
    let file = DiskFile::try_open(&config.path, size, false, false, Hold::Ever, &InUse::Refused)?;
    let mut head = vec![0; SUPERBLOCK_BYTES as usize];
    file.read(0, &mut head).map_err(fail)?;
    let seal = match decode(&head) {
        Found::Store { shape: found, seal } if found == shape => seal,
        Found::Store { shape: found, .. } => {
            let reason = format!("it is a store of {found:?}, and {shape:?} is wanted: these cannot change");
            return Err(StartError::file(&config.path, reason));
        }
        Found::Earlier => {
            let reason = "it is a store of an earlier version, which this one does not read: not touched; \
                          copy its keys with the earlier version to a new store";
            return Err(StartError::file(&config.path, reason));
        }
        Found::Foreign => return Err(StartError::file(&config.path, NO_STORE)),
        Found::New => {
            refuse_data(&file)?;
            let seal = Seal(u32::from_le_bytes(random().map_err(StartError::system("random bytes"))?));
            file.write(0, &encode(&shape, seal)).and_then(|()| file.sync()).map_err(fail)?;
            seal
        }
    };
    if config.reserve {
        file.reserve(false).map_err(fail)?;
    }
    file.keep();
    Ok((file, seal))
}

/// Some file systems and volume managers leave the first block of a device empty. Their marks are
/// in the first MiB or the last one.
fn refuse_data(file: &DiskFile) -> Result<(), StartError> {
    const LOOKED_AT: u64 = 1 << 20;
    let fail = |error| StartError::file(file.path(), error);
    let mut bytes = vec![0; LOOKED_AT.min(file.bytes()) as usize];
    for at in [0, file.bytes() - bytes.len() as u64] {
        file.read(at, &mut bytes).map_err(fail)?;
        if let Some(found) = bytes.iter().position(|byte| *byte != 0) {
            let reason = format!(
                "it is no store, and there are data at byte {}. Not touched; where they are not needed, \
                 zero the first and the last MiB of its {} bytes for this store",
                at + found as u64,
                file.bytes()
            );
            return Err(StartError::file(file.path(), reason));
        }
    }
    Ok(())
}

/// A store whose file was cut short has lost records: grown again, it would serve without them, and
/// not say so.
fn refuse_cut(config: &JbofConfig, wanted: u64) -> Result<(), StartError> {
    let fail = |error| StartError::file(&config.path, error);
    let file = match File::open(&config.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(fail)?,
    };
    let (about, mut head) = (file.metadata().map_err(fail)?, Vec::new());
    if !about.is_file() || about.len() >= wanted {
        return Ok(());
    }
    file.take(SUPERBLOCK_BYTES).read_to_end(&mut head).map_err(fail)?;
    match decode(&head) {
        Found::New => Ok(()),
        Found::Foreign => Err(StartError::file(&config.path, NO_STORE)),
        Found::Store { .. } | Found::Earlier => {
            let reason = format!(
                "it has {} bytes, and its store {wanted}: it was cut short, and what is missing is lost. Not touched; \
                 take a copy of it, or make it as long to serve what is left",
                about.len()
            );
            Err(StartError::file(&config.path, reason))
        }
    }
}

impl Jbof {
    /// Opens the store; it recovers what is there while it takes turns, until
    /// [`recovered`].
    ///
    /// # Errors
    /// When the file cannot be used, or is not the store that the configuration names.
    pub fn start(config: &JbofConfig, start_second: u32, waker: Arc<Waker>) -> Result<Jbof, StartError> {
        let (file, seal) = open(config)?;
        let flash = Flash::start(file, seal, waker).map_err(StartError::system("threads for the flash"))?;
        let words = memory_words(config.blocks, config.slots);
        let (memory, memory_file) =
            Mapped::create("rackweave-jbof", words).map_err(StartError::system("registered memory"))?;
        let memory = RegisteredMemory::of(memory);
        let mut out = Vec::new();
        let helper = NotedHelper::new(Server::recover(server_config(config, start_second), &mut out));
        let (arrived, ended) = (VecDeque::new(), Vec::new());
        let mut jbof =
            Jbof { config: config.clone(), start_second, memory, memory_file, flash, helper, arrived, ended, out };
        jbof.carry(Time::ZERO);
        jbof.flash.flush();
        Ok(jbof)
    }

    /// What a client has to know of it.
    pub fn welcome(&self, client: ClientId, now: Time) -> Welcome {
        Welcome {
            client,
            epoch: self.helper.epoch(),
            blocks: self.config.blocks,
            slots: self.config.slots,
            value_bytes_max: self.config.value_bytes_max,
            seal: self.flash.seal(),
            start_second: self.start_second,
            now,
            protocol: self.config.protocol,
            shares: false,
        }
    }
    /// Executes verbs in their order.
    pub fn execute(&self, verbs: &[Verb]) -> Vec<Done> {
        verbs.iter().map(|verb| self.memory.execute(verb)).collect()
    }
    /// Has the helper forget a client that is gone.
    pub fn forget(&mut self, client: ClientId) {
        self.helper.forget(client);
    }
    /// Its memory once more.
    ///
    /// # Errors
    /// When the system does not map it.
    pub fn memory(&self) -> io::Result<Mapped> {
        Mapped::open(&self.memory_file)
    }
    /// The files of memory and flash, for doors of this machine. That of the flash is for reading
    /// alone, and does not hold its lock.
    ///
    /// # Errors
    /// When the system does not open the flash once more.
    pub fn files(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.memory_file.try_clone()?, self.flash.for_reading()?.into()])
    }

    /// Carries out what the helper decides.
    fn carry(&mut self, now: Time) {
        while !self.out.is_empty() {
            for out in std::mem::take(&mut self.out) {
                match out {
                    ServerOut::Memory { request, block, operation } => {
                        let verbs = verbs(block, self.config.slots, &operation);
                        let input =
                            ServerIn::Memory { request, answer: answer(self.config.protocol, &self.execute(&verbs)) };
                        self.helper.tell(now, input, &mut self.out);
                    }
                    ServerOut::Flash { request, operation } => self.flash.submit(Job::Helper { request, operation }),
                    ServerOut::Reply(reply) => self.arrived.push_back(Arrival::Reply(reply)),
                }
            }
        }
    }
}

/// Waits until the helper has read its log. Its journal begins then, if it has one.
pub fn recovered(
    mut jbof: Jbof,
    clock: Clock,
    config: &JbofConfig,
    journal: Option<&Journal>,
) -> Result<Jbof, StartError> {
    loop {
        match jbof.helper.recovered() {
            Some(true) => {
                let journal = journal.map(|place| Writer::begin(place, Part::Helper, clock)).transpose()?;
                let has_begun = jbof.helper.begin(server_config(config, jbof.start_second), journal);
                assert!(has_begun, "a server of the same configuration knows what this one needs");
                return Ok(jbof);
            }
            Some(false) => {
                let reason = "a start reads and writes it, and that fails, as the log says. What is stored stays: \
                              where its file system is full, make room";
                return Err(StartError::file(&config.path, reason));
            }
            None => {
                std::thread::sleep(Duration::from_millis(1));
                jbof.turn(clock.now());
                jbof.flash.flush();
            }
        }
    }
}

/// Within one process: verbs take effect at once.
impl Transport for Jbof {
    fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>) {
        let results = self.execute(&verbs);
        self.arrived.extend(request.map(|request| Arrival::Verbs { request, results }));
    }

    fn read(&mut self, request: RequestId, _: u32, extent: Extent) {
        match self.flash.read_cached(extent) {
            Some(bytes) => self.arrived.push_back(Arrival::Read { request, bytes: Some(bytes) }),
            None => self.flash.submit(Job::Read { request, extent }),
        }
    }

    fn send(&mut self, now: Time, _: u32, request: Request<Bytes>) {
        self.helper.tell(now, ServerIn::Request(request), &mut self.out);
        self.carry(now);
    }

    fn next(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    fn turn(&mut self, now: Time) {
        let mut ended = std::mem::take(&mut self.ended);
        self.flash.take(&mut ended);
        for ended in ended.drain(..) {
            match ended {
                Ended::Read { request, bytes } => self.arrived.push_back(Arrival::Read { request, bytes }),
                Ended::Helper { request, answer } => {
                    self.helper.tell(now, ServerIn::Flash { request, answer }, &mut self.out);
                    self.carry(now);
                }
            }
        }
        self.ended = ended;
        self.helper.wake(now, &mut self.out);
        self.carry(now);
    }

    fn flush(&mut self) {
        self.flash.flush();
        self.helper.rest();
    }

    fn end(&mut self) {
        self.helper.finish();
    }

    fn due(&self, _: Time) -> Option<Time> {
        self.helper.next_wakeup()
    }

    fn tally(&self) -> Tally {
        Tally {
            keys: self.helper.keys(),
            live_bytes: self.helper.live_bytes(),
            capacity_bytes: self.helper.capacity_bytes(),
            memory_bytes: self.memory.bytes(),
            helper: self.helper.counters(),
        }
    }
}
