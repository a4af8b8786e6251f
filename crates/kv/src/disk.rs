//! The flash of a JBOF on another machine that a door reads itself, by NVMe/TCP: no process of the
//! store works for a read.
//!
//! The target serves the JBOF's file as a namespace. What it sends is checked like all that is read
//! of flash. While it is away, and where it fails, the JBOF is asked as without it.

use crate::attempts::{Attempts, Looked};
use crate::config::FlashPeer;
use crate::frames::Welcome;
use crate::pieces::{Ended, PieceId, Pieces};
use crate::remote::read_bytes_max;
use crate::superblock::{Found, SUPERBLOCK_BYTES, decode};
use crate::transport::Arrival;
use live::{Extent as Blocks, Host, HostError, Proof, RemoteDisk, entropy, host_id_of};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, Waker};
use nvme::auth::{GroupId, HashId};
use nvme::feature::Event;
use nvme::initiator::{Credentials, HostEvent, InitiatorConfig, Ticket};
use scalio::{Extent, RequestId, SECTOR_BYTES};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// Entries of the I/O queue: reads under way.
const ENTRIES: u16 = 128;
/// The one I/O queue.
const QUEUE: u16 = 1;
/// Keep-alive timeout, ms: as a Linux host requests.
const KEEP_ALIVE_MS: u32 = 5_000;
/// Interval between attempts to reach a target that is away.
const AGAIN: Duration = Duration::from_millis(250);

/// A connection to the target.
pub struct Disk {
    disk: RemoteDisk,
    pieces: Pieces,
    tickets: BTreeMap<Ticket, PieceId>,
}

fn wrong(reason: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
}

impl Disk {
    /// Connects, and looks whether it is the flash of the JBOF that sent `welcome`.
    ///
    /// # Errors
    /// When no target answers, lets the door in, and has this flash.
    pub fn open(peer: &FlashPeer, welcome: &Welcome) -> io::Result<Disk> {
        let proof = Proof { credentials: credentials(peer)?, tls: peer.tls.clone() };
        let config = InitiatorConfig {
            flow_control: false,
            io_entries: ENTRIES,
            keep_alive_ms: KEEP_ALIVE_MS,
            timeout: peer.timeout,
            ..InitiatorConfig::new(peer.host, host_id_of(&peer.host), peer.subsystem)
        };
        let host = Host::connect_with(&peer.address, config, &proof).map_err(wrong)?;
        let mut disk = RemoteDisk::open(host, peer.namespace).map_err(wrong)?;
        check(&mut disk, welcome)?;
        let pieces = Pieces::new(disk.block_bytes(), disk.transfer_blocks_max());
        Ok(Disk { disk, pieces, tickets: BTreeMap::new() })
    }

    /// Issues commands, as far as the queue has room.
    fn issue(&mut self) -> Result<(), HostError> {
        while let Some((id, blocks)) = self.pieces.next() {
            if self.disk.host().initiator().room(QUEUE) == 0 {
                break;
            }
            self.tickets.insert(self.disk.submit_read(QUEUE, blocks)?, id);
            self.pieces.issued();
        }
        self.disk.host().flush()
    }

    /// Takes what has come.
    fn take(&mut self, ended: &mut Vec<Ended>) -> Result<(), HostError> {
        let turned = self.disk.host().turn();
        loop {
            match self.disk.host().take_event()? {
                Some(HostEvent::Completed { ticket, status, data, .. }) => {
                    let Some(piece) = self.tickets.remove(&ticket) else { continue };
                    if !status.is_success() {
                        tracing::warn!(%status, "a read of flash has failed at its target");
                    }
                    ended.extend(self.pieces.ended(piece, status.is_success().then_some(data)));
                }
                // It may have another file now.
                Some(HostEvent::Notice(Event::NAMESPACE_CHANGED)) => self.disk.host().disable(),
                Some(_) => {}
                None => break,
            }
        }
        turned?;
        self.issue()
    }
}

/// What the door proves itself by.
fn credentials(peer: &FlashPeer) -> io::Result<Option<Credentials>> {
    let Some(host) = peer.dhchap.clone() else { return Ok(None) };
    let (hashes, groups) = (HashId::ALL.to_vec(), GroupId::ALL.to_vec());
    Ok(Some(Credentials { host, controller: peer.controller.clone(), entropy: entropy()?, hashes, groups }))
}

/// Whether a disk is the flash of the JBOF that sent `welcome`: nobody guesses its seal.
fn check(disk: &mut RemoteDisk, welcome: &Welcome) -> io::Result<()> {
    let block_bytes = disk.block_bytes();
    let blocks = SUPERBLOCK_BYTES.div_ceil(block_bytes) as u32;
    let head = disk.read(Blocks { start: 0, blocks }).map_err(wrong)?;
    let shape = match decode(head.get(..SUPERBLOCK_BYTES as usize).unwrap_or(&[])) {
        Found::Store { shape, seal } if seal == welcome.seal && shape.blocks == welcome.blocks => shape,
        Found::Store { .. } => return Err(wrong("the namespace is the flash of another store")),
        Found::New | Found::Earlier | Found::Foreign => return Err(wrong("the namespace is no store's flash")),
    };
    let sectors = u64::from(shape.zones) * u64::from(shape.zone_sectors);
    let needed = (SUPERBLOCK_BYTES + sectors * u64::from(SECTOR_BYTES)).div_ceil(block_bytes);
    if disk.blocks() < needed {
        let got = disk.blocks();
        return Err(wrong(format!("the namespace has {got} blocks of {block_bytes} B, and the store {needed}")));
    }
    Ok(())
}

/// Whether the target is there.
enum State {
    Away(Attempts<Disk>),
    There(Box<Disk>),
}

/// The flash of one JBOF, by a target that is there or away.
pub struct Shelf {
    peer: FlashPeer,
    welcome: Welcome,
    /// Bytes of a read at most.
    bytes_max: usize,
    registry: Registry,
    token: Token,
    waker: Arc<Waker>,
    state: State,
    ended: Vec<Ended>,
}

impl Shelf {
    /// Takes over a connection, or begins to look for one. The loop tells what happens at `token`,
    /// and `waker` wakes it.
    ///
    /// # Errors
    /// When the system has no more events.
    pub fn new(
        (peer, welcome): (&FlashPeer, &Welcome),
        disk: Option<Disk>,
        (registry, token): (&Registry, Token),
        waker: &Arc<Waker>,
    ) -> io::Result<Shelf> {
        let mut shelf = Shelf {
            peer: peer.clone(),
            welcome: *welcome,
            bytes_max: read_bytes_max(welcome.value_bytes_max),
            registry: registry.try_clone()?,
            token,
            waker: waker.clone(),
            state: State::Away(attempts(peer, welcome, waker)),
            ended: Vec::new(),
        };
        disk.map_or(Ok(()), |disk| shelf.take_over(disk))?;
        Ok(shelf)
    }

    fn take_over(&mut self, mut disk: Disk) -> io::Result<()> {
        let file = disk.disk.host().as_raw_fd();
        self.registry.register(&mut SourceFd(&file), self.token, Interest::READABLE)?;
        self.state = State::There(Box::new(disk));
        Ok(())
    }

    /// Whether the target is there.
    pub fn is_there(&self) -> bool {
        matches!(self.state, State::There(_))
    }

    /// Takes a read, unless the JBOF has to be asked.
    pub fn read(&mut self, request: RequestId, extent: Extent) -> bool {
        let bytes = (extent.sectors as usize).saturating_mul(SECTOR_BYTES as usize);
        match &mut self.state {
            State::There(disk) if (1..=self.bytes_max).contains(&bytes) && extent.sector < 1 << 40 => {
                disk.pieces.add(request, extent);
                true
            }
            _ => false,
        }
    }

    /// Takes what the target has sent. Reads that the JBOF has to be asked for are `returned`.
    pub fn turn(&mut self, arrived: &mut VecDeque<Arrival>, returned: &mut Vec<(RequestId, Extent)>) {
        self.look();
        let State::There(disk) = &mut self.state else { return };
        let taken = disk.take(&mut self.ended);
        for Ended { request, extent, bytes } in self.ended.drain(..) {
            match bytes {
                Some(bytes) => arrived.push_back(Arrival::Read { request, bytes: Some(bytes) }),
                None => returned.push((request, extent)),
            }
        }
        self.after(taken, returned);
    }

    /// Sends what waits.
    pub fn flush(&mut self, returned: &mut Vec<(RequestId, Extent)>) {
        let State::There(disk) = &mut self.state else { return };
        if disk.pieces.next().is_some() {
            let sent = disk.issue();
            self.after(sent, returned);
        }
    }

    /// Looks for the target anew when its connection has ended.
    fn after(&mut self, outcome: Result<(), HostError>, returned: &mut Vec<(RequestId, Extent)>) {
        let (Err(why), State::There(disk)) = (outcome, &mut self.state) else { return };
        returned.extend(disk.pieces.take_back());
        let file = disk.disk.host().as_raw_fd();
        // The file closes in any case.
        let _ = self.registry.deregister(&mut SourceFd(&file));
        let target = &self.peer.address;
        tracing::warn!(%target, %why, "the target of the flash is away: the JBOF is asked for reads");
        self.state = State::Away(attempts(&self.peer, &self.welcome, &self.waker));
    }

    /// Whether a thread has reached the target.
    fn look(&mut self) {
        let State::Away(looking) = &self.state else { return };
        match looking.look() {
            Looked::NotYet => return,
            Looked::Ended => {}
            Looked::Found(disk) => match self.take_over(disk) {
                Ok(()) => return tracing::info!(target = self.peer.address, "the target of the flash is there"),
                Err(error) => tracing::error!(%error, "the connection to the flash cannot be used"),
            },
        }
        self.state = State::Away(attempts(&self.peer, &self.welcome, &self.waker));
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        if let State::There(disk) = &mut self.state {
            let file = disk.disk.host().as_raw_fd();
            let _ = self.registry.deregister(&mut SourceFd(&file));
        }
    }
}

fn attempts(peer: &FlashPeer, welcome: &Welcome, waker: &Arc<Waker>) -> Attempts<Disk> {
    let (of, welcome) = (peer.clone(), *welcome);
    let what = format!("the flash at {}", peer.address);
    Attempts::start(what, AGAIN, waker.clone(), move || Disk::open(&of, &welcome))
}
