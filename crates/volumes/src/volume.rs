//! Replicated disks: [`blox::Client`] on a thread, and what a block device reads and writes of it.

use crate::configs;
use crate::journal::{End, State};
use crate::role::{self, Carrier, Role, Running, Setup, Start, Stop};
use base::{NodeId, Operation, Program, Time};
use blox::{Client, ClientIn, ClientOut, ClientOutcome, PAGE_BYTES, Packet, Page, Refusal, Tag, Value};
use bytes::Bytes;
use mio::Waker;
use plan::rack::Rack;
use runtime::error::StartError;
use runtime::metrics::{Number, counter, gauge};
use runtime::storage::{Leave, Storage};
use rustc_hash::FxHashMap;
use std::io;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

const PAGE: u64 = PAGE_BYTES as u64;
/// Values of doors of different nodes differ in their last byte.
const NODES: u64 = 256;

/// A page that somebody wants read or written.
pub(crate) struct Ask {
    pub volume: u32,
    pub page: Page,
    /// What to write; a read has none.
    pub data: Option<Bytes>,
    /// The place of the page in its request.
    pub place: usize,
    /// Whether its host has gone.
    pub is_left: Option<Arc<AtomicBool>>,
    pub answer: Sender<(usize, io::Result<Bytes>)>,
}

/// A door to the volumes of a rack: one node of it.
pub struct Door {
    asks: Mutex<Sender<Ask>>,
    waker: Arc<Waker>,
    /// Hosts have gone since the thread looked last.
    left: Arc<AtomicBool>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// One volume, as a disk of whole pages.
pub struct Volume {
    door: Arc<Door>,
    volume: u32,
    bytes: u64,
    /// For one request: whether its host has gone.
    is_left: Option<Arc<AtomicBool>>,
}

/// The place of a name; an error that says which there are.
pub(crate) fn place_of<'a>(
    what: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    name: &str,
) -> Result<usize, StartError> {
    names.clone().position(|other| other == name).ok_or_else(|| {
        let all: Vec<&str> = names.collect();
        StartError::plan(format!("the rack has no {what} `{name}`; it has {}", all.join(", ")))
    })
}

impl Door {
    /// Opens a door of a rack by its name, and starts its thread.
    ///
    /// # Errors
    /// When the rack has no such door, or its address is taken.
    pub fn open(rack: &Rack, name: &str) -> Result<Arc<Door>, StartError> {
        let place = place_of("door", rack.doors.iter().map(|door| &*door.name), name)?;
        // An answer to an earlier life must not look like one to this: tags and values count from
        // the clock.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2);
        let node = configs::door_node(rack, place);
        let (asks, asked) = channel();
        let role = DoorRole::new(rack, place, start, asked)?;
        let left = role.left.clone();
        let mut waker_of = None;
        let state = State::Door { door: place, start };
        let setup = Setup { name: "door", rack, node, metrics: None, start: Start::Thread, state, rows: None };
        let running: Running = role::start(setup, |waker| {
            waker_of = Some(waker);
            role
        })?;
        let stop = running.stopper();
        let run = move || {
            if let Err(error) = running.run() {
                tracing::error!(%error, "the door to the rack has ended");
            }
        };
        let thread = std::thread::Builder::new().name("rack-door".into()).spawn(run);
        let thread = thread.map_err(StartError::system("a thread"))?;
        let waker = waker_of.expect("the role was made");
        Ok(Arc::new(Door { asks: Mutex::new(asks), waker, left, stop, thread: Some(thread) }))
    }

    /// A volume by its name.
    ///
    /// # Errors
    /// When the rack has none of that name.
    pub fn volume(self: &Arc<Door>, rack: &Rack, name: &str) -> Result<Volume, StartError> {
        let place = place_of("volume", rack.volumes.iter().map(|volume| &*volume.name), name)?;
        let bytes = rack.volumes[place].size.count();
        Ok(Volume { door: self.clone(), volume: place as u32, bytes, is_left: None })
    }

    fn ask(&self, asks: impl Iterator<Item = Ask>) -> io::Result<()> {
        let sender = self.asks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the door to the rack is closed");
        asks.into_iter().try_for_each(|ask| sender.send(ask).map_err(gone))?;
        self.waker.wake()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Volume {
    /// The pages of a range; an error unless it is whole pages inside the volume.
    fn pages(&self, at: u64, bytes: u64) -> io::Result<std::ops::Range<u64>> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.bytes);
        match end {
            Some(end) if at.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE) => Ok(at / PAGE..end / PAGE),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a volume takes whole pages of 4 KiB")),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the range ends beyond the volume")),
        }
    }

    /// Carries out all pages of a request, and waits for them.
    fn request(
        &self,
        pages: std::ops::Range<u64>,
        data: impl Fn(usize) -> Option<Bytes>,
        mut take: impl FnMut(usize, Bytes),
    ) -> io::Result<()> {
        let (answer, answers) = channel();
        let count = (pages.end - pages.start) as usize;
        let ask = |(place, page)| Ask {
            volume: self.volume,
            page: Page(page),
            data: data(place),
            place,
            is_left: self.is_left.clone(),
            answer: answer.clone(),
        };
        self.door.ask(pages.enumerate().map(ask))?;
        drop(answer);
        let mut done = 0;
        let mut failed = None;
        while let Ok((place, result)) = answers.recv() {
            done += 1;
            match result {
                Ok(page) => take(place, page),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None if done < count => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the door to the rack is closed")),
            None => Ok(()),
        }
    }
}

impl Storage for Volume {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let pages = self.pages(at, buffer.len() as u64)?;
        self.request(
            pages,
            |_| None,
            |place, page| {
                buffer[place * PAGE as usize..][..PAGE as usize].copy_from_slice(&page);
            },
        )
    }

    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let pages = self.pages(at, data.len() as u64)?;
        let data = Bytes::copy_from_slice(data);
        let page = |place: usize| Some(data.slice(place * PAGE as usize..(place + 1) * PAGE as usize));
        self.request(pages, page, |_, _| {})
    }

    fn zero(&self, at: u64, bytes: u64, _: bool) -> io::Result<()> {
        let zeros = Bytes::from(vec![0; PAGE as usize]);
        self.request(self.pages(at, bytes)?, |_| Some(zeros.clone()), |_, _| {})
    }

    /// The room stays: pages read as before.
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.pages(at, bytes).map(|_| ())
    }

    /// A write that was answered is in the memory of every live replica, and survives the loss of
    /// all but one; it waits for no disk.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// What a host that has gone has asked for is not sent to servers again: by another door it may
    /// have done it, and written since.
    fn leavable(&self) -> Option<(Arc<dyn Storage>, Leave)> {
        let is_left = Arc::new(AtomicBool::new(false));
        let door = self.door.clone();
        let leave = Box::new({
            let is_left = is_left.clone();
            move || {
                is_left.store(true, Release);
                door.left.store(true, Release);
                // It fails only when the door is closed.
                let _ = door.waker.wake();
            }
        });
        let one = Volume { door: self.door.clone(), volume: self.volume, bytes: self.bytes, is_left: Some(is_left) };
        Some((Arc::new(one), leave))
    }

    fn resize(&self, _: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a volume keeps the size that the rack's file gives it"))
    }
}

fn is_left(flag: &Option<Arc<AtomicBool>>) -> bool {
    flag.as_ref().is_some_and(|flag| flag.load(Acquire))
}

fn its_host_has_gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "its host has gone")
}

/// A request under way.
struct Open {
    place: usize,
    answer: Sender<(usize, io::Result<Bytes>)>,
    /// Whether its host has gone.
    is_left: Option<Arc<AtomicBool>>,
    /// What it writes.
    data: Option<(Value, Bytes)>,
}

pub(crate) struct DoorRole {
    program: Client,
    asked: Receiver<Ask>,
    /// Hosts have gone since it looked last.
    left: Arc<AtomicBool>,
    switch: NodeId,
    open: FxHashMap<Tag, Open>,
    /// Pages that may still be sent.
    data: FxHashMap<Value, Bytes>,
    next_tag: u64,
    next_value: u64,
    out: Vec<ClientOut>,
    failed: u64,
}

impl DoorRole {
    /// The door at `place` of the rack's file. `start` tells it from its other starts: tags and
    /// values count from it, and it rises.
    pub fn new(rack: &Rack, place: usize, start: u64, asked: Receiver<Ask>) -> Result<DoorRole, StartError> {
        // In units of a millisecond or so.
        let life = NonZero::new((start >> 20) as u32).unwrap_or(NonZero::<u32>::MIN);
        let node = u64::from(configs::door_node(rack, place).0);
        Ok(DoorRole {
            program: Client::new(configs::client(rack, place, life)).map_err(StartError::plan)?,
            asked,
            left: Arc::default(),
            switch: configs::switch_node(rack),
            open: FxHashMap::default(),
            data: FxHashMap::default(),
            next_tag: start,
            next_value: start / NODES * NODES + node % NODES,
            out: Vec::new(),
            failed: 0,
        })
    }

    fn act(&mut self, wire: &mut dyn Carrier, page: Option<(&Packet, &Bytes)>) {
        for action in std::mem::take(&mut self.out) {
            match action {
                ClientOut::Send(packet) => {
                    let data = packet.body.value().and_then(|value| self.data.get(&value));
                    debug_assert_eq!(packet.body.value().is_some(), data.is_some());
                    wire.send(self.switch, &packet, data);
                }
                ClientOut::Done { tag, outcome, .. } => {
                    wire.ended(tag, End::of(outcome));
                    self.done(tag, outcome, page);
                }
            }
        }
    }

    /// A request is over, and its page is sent no more.
    fn close(&mut self, tag: Tag) -> Option<Open> {
        let open = self.open.remove(&tag)?;
        open.data.iter().for_each(|(value, _)| drop(self.data.remove(value)));
        Some(open)
    }

    fn done(&mut self, tag: Tag, outcome: ClientOutcome, page: Option<(&Packet, &Bytes)>) {
        let Some(open) = self.close(tag) else { return };
        let result = match outcome {
            ClientOutcome::Written => Ok(Bytes::new()),
            ClientOutcome::Read(value) => {
                let came = page.filter(|(packet, _)| packet.body.value() == Some(value));
                came.map(|(_, data)| data.clone()).ok_or_else(|| io::Error::other("a page came without its data"))
            }
            ClientOutcome::Failed(Refusal::OutOfRange) => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the page is beyond the volume"))
            }
            ClientOutcome::Failed(Refusal::Lost) => {
                Err(io::Error::other("no replica has a sound copy of the page: it is lost until it is written"))
            }
            ClientOutcome::Failed(why) => Err(io::Error::other(format!("every replica refuses: {why:?}"))),
            ClientOutcome::Indeterminate | ClientOutcome::Unanswered => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no replica has answered"))
            }
        };
        if let Err(error) = &result {
            self.failed += 1;
            tracing::error!(%error, "a page of a volume failed");
        }
        // Who asked may be gone.
        let _ = open.answer.send((open.place, result));
    }
}

impl Role for DoorRole {
    fn on_packet(&mut self, now: Time, packet: Packet, data: &Bytes, wire: &mut dyn Carrier) {
        self.program.on(now, ClientIn::Packet(packet), &mut self.out);
        self.act(wire, Some((&packet, data)));
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.program.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time, wire: &mut dyn Carrier) {
        self.program.on_wakeup(now, &mut self.out);
        self.act(wire, None);
    }

    fn on_waker(&mut self, now: Time, wire: &mut dyn Carrier) {
        while let Ok(Ask { volume, page, data, place, is_left: left, answer }) = self.asked.try_recv() {
            if is_left(&left) {
                let _ = answer.send((place, Err(its_host_has_gone())));
                continue;
            }
            wire.asked(now, volume, page, data.is_some());
            let tag = Tag(self.next_tag);
            self.next_tag += 1;
            let operation = if data.is_some() { Operation::Write } else { Operation::Read };
            let data = data.map(|data| {
                self.next_value += NODES;
                (Value(self.next_value), data)
            });
            let value = data.as_ref().map_or(Value(0), |(value, _)| *value);
            self.data.extend(data.clone());
            self.open.insert(tag, Open { place, answer, is_left: left, data });
            self.program.on(now, ClientIn::Issue { tag, operation, vssd_group: volume, page, value }, &mut self.out);
        }
        self.act(wire, None);
        if self.left.swap(false, Acquire) {
            let left = self.open.iter().filter(|(_, open)| is_left(&open.is_left));
            let mut left: Vec<Tag> = left.map(|(tag, _)| *tag).collect();
            left.sort();
            left.into_iter().for_each(|tag| self.leave(now, tag, wire));
        }
    }

    fn leave(&mut self, now: Time, tag: Tag, wire: &mut dyn Carrier) {
        wire.left(now, tag);
        if let Some(open) = self.close(tag) {
            let _ = open.answer.send((open.place, Err(its_host_has_gone())));
        }
        self.program.on(now, ClientIn::Leave(tag), &mut self.out);
        self.act(wire, None);
    }

    fn numbers(&self) -> Vec<Number> {
        let counts = self.program.counters();
        vec![
            counter("sent", "Requests sent, each attempt.", counts.sent),
            counter("retried", "Attempts after the first.", counts.retried),
            counter("timeouts", "Attempts that were not answered in time.", counts.timeouts),
            counter("ignored", "Answers to what had ended.", counts.ignored),
            counter("failed", "Pages that failed.", self.failed),
            counter("left", "Pages whose hosts went before the answer came.", counts.left),
            gauge("open", "Requests under way.", self.open.len() as u64),
        ]
    }
}
