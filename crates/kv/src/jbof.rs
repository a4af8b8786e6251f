//! A JBOF: registered memory, flash in a file, and the helper. Verbs and reads of flash are carried
//! out as they come; the helper is asked about updates alone.

use crate::config::Config;
use crate::flash::{Ended, Flash, Job};
use crate::superblock::{Found, SUPERBLOCK_BYTES, Shape, decode, encode};
use crate::transport::{Arrival, Transport};
use base::{Program, Span, Time};
use bytes::Bytes;
use mio::Waker;
use runtime::error::StartError;
use runtime::secret::random;
use runtime::storage::{DiskFile, Storage};
use scalio::layout::Seal;
use scalio::{
    Done, ENTRY_BYTES, Extent, Protocol, RegisteredMemory, Request, RequestId, SECTOR_BYTES, Server, ServerConfig,
    ServerIn, ServerOut, Verb, answer, verbs,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Updates of a group at most. Those that come while a group is on its way to flash are the next.
const GROUP_UPDATES: u32 = 256;
/// Groups under way at most.
const GROUPS: u32 = 4;
/// Zones that only compaction may take.
const RESERVE_ZONES: u32 = 4;
/// Compaction begins when fewer zones than this are free.
const COMPACT_BELOW: u32 = 6;

/// The memory, the flash and the helper.
pub struct Jbof {
    slots: u8,
    memory: RegisteredMemory,
    flash: Flash,
    helper: Server<Bytes>,
    arrived: VecDeque<Arrival>,
    ended: Vec<Ended>,
    out: Vec<ServerOut<Bytes>>,
}

/// The helper's configuration.
fn server_config(config: &Config, start_second: u32) -> ServerConfig {
    ServerConfig {
        device: 0,
        devices: 1,
        blocks: config.blocks,
        protocol: Protocol::Linearizable,
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
fn open(config: &Config) -> Result<(DiskFile, Seal), StartError> {
    let shape = Shape { blocks: config.blocks, zones: config.zones, zone_sectors: config.zone_sectors };
    let size = u64::from(shape.zones) * u64::from(shape.zone_sectors) * u64::from(SECTOR_BYTES);
    let file = DiskFile::open(&config.path, Some(SUPERBLOCK_BYTES + size), false, false)?;
    let fail = |error| StartError::file(&config.path, error);
    let mut head = vec![0; SUPERBLOCK_BYTES as usize];
    file.read(0, &mut head).map_err(fail)?;
    let seal = match decode(&head) {
        Found::Store { shape: found, seal } if found == shape => seal,
        Found::Store { shape: found, .. } => {
            let reason = format!("it is a store of {found:?}, and {shape:?} is wanted: these cannot change");
            return Err(StartError::file(&config.path, reason));
        }
        Found::Foreign => {
            return Err(StartError::file(&config.path, "it is no store, or its first bytes are damaged: not touched"));
        }
        Found::New => {
            let seal = Seal(u32::from_le_bytes(random().map_err(StartError::system("random bytes"))?));
            file.write(0, &encode(&shape, seal)).and_then(|()| file.sync()).map_err(fail)?;
            seal
        }
    };
    Ok((file, seal))
}

impl Jbof {
    /// Opens the store; it recovers what is there while [`Self::turn`] is called, until
    /// [`Self::recovered`].
    ///
    /// # Errors
    /// When the file cannot be used, or is not the store that the configuration names.
    pub fn start(config: &Config, start_second: u32, waker: Arc<Waker>) -> Result<Jbof, StartError> {
        let (file, seal) = open(config)?;
        let flash = Flash::start(file, seal, waker).map_err(StartError::system("threads for the flash"))?;
        let memory = RegisteredMemory::new(config.blocks, config.slots);
        let mut out = Vec::new();
        let helper = Server::recover(server_config(config, start_second), &mut out);
        let (arrived, ended) = (VecDeque::new(), Vec::new());
        let mut jbof = Jbof { slots: config.slots, memory, flash, helper, arrived, ended, out };
        jbof.carry(Time::ZERO);
        Ok(jbof)
    }

    /// `None` while it recovers, then whether it could.
    pub fn recovered(&self) -> Option<bool> {
        self.helper.recovered()
    }
    /// The helper.
    pub fn helper(&self) -> &Server<Bytes> {
        &self.helper
    }
    /// The secret of its checksums on flash, which its clients need.
    pub fn seal(&self) -> Seal {
        self.flash.seal()
    }
    /// Bytes of registered memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes()
    }
    /// When the helper wants to be called next.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.helper.next_wakeup()
    }

    /// Takes up what threads have done, and what is due.
    pub fn turn(&mut self, now: Time) {
        let mut ended = std::mem::take(&mut self.ended);
        self.flash.take(&mut ended);
        for ended in ended.drain(..) {
            match ended {
                Ended::Read { request, bytes } => self.arrived.push_back(Arrival::Read { request, bytes }),
                Ended::Helper { request, answer } => {
                    self.helper.on(now, ServerIn::Flash { request, answer }, &mut self.out);
                    self.carry(now);
                }
            }
        }
        self.ended = ended;
        if self.helper.next_wakeup().is_some_and(|due| due <= now) {
            self.helper.on_wakeup(now, &mut self.out);
            self.carry(now);
        }
    }

    /// Carries out what the helper decides.
    fn carry(&mut self, now: Time) {
        while !self.out.is_empty() {
            for out in std::mem::take(&mut self.out) {
                match out {
                    ServerOut::Memory { request, block, operation } => {
                        let verbs = verbs(block, self.slots, &operation);
                        let results: Vec<Done> = verbs.iter().map(|verb| self.memory.execute(verb)).collect();
                        let input = ServerIn::Memory { request, answer: answer(&results) };
                        self.helper.on(now, input, &mut self.out);
                    }
                    ServerOut::Flash { request, operation } => self.flash.submit(Job::Helper { request, operation }),
                    ServerOut::Reply(reply) => self.arrived.push_back(Arrival::Reply(reply)),
                }
            }
        }
    }
}

/// Within one process: verbs take effect at once.
impl Transport for Jbof {
    fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>) {
        let results = verbs.iter().map(|verb| self.memory.execute(verb)).collect();
        self.arrived.extend(request.map(|request| Arrival::Verbs { request, results }));
    }

    fn read(&mut self, request: RequestId, _: u32, extent: Extent) {
        match self.flash.read_cached(extent) {
            Some(bytes) => self.arrived.push_back(Arrival::Read { request, bytes: Some(bytes) }),
            None => self.flash.submit(Job::Read { request, extent }),
        }
    }

    fn send(&mut self, now: Time, _: u32, request: Request<Bytes>) {
        self.helper.on(now, ServerIn::Request(request), &mut self.out);
        self.carry(now);
    }

    fn next(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }
}
