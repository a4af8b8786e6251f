//! Memory of a JBOF on another machine that this thread reaches itself, by libfabric.
//!
//! What a read brings was there while it was under way: memory of a process that has ended is
//! nobody's, and the key of its life is none of the next one's.

use crate::frames::Welcome;
use crate::order::{Order, VerbId};
use crate::transport::Arrival;
use base::{Span, Time};
use fabric::{Done as Ended, Entry, FabricError, Initiator, Place};
use scalio::{Done, RequestId, Verb, memory_words};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Verbs under way at a time.
const ENTRIES: usize = 256;
/// How long the first read may take.
const FIRST: Duration = Duration::from_secs(5);
/// Memory in which no verb ends for so long is lost. Its JBOF says on its socket that it is there.
const SILENCE: Span = Span::secs(10);

/// The memory of a JBOF.
pub struct Far {
    initiator: Initiator,
    order: Order,
    /// Which verbs the entries are.
    verbs: Vec<Option<VerbId>>,
    done: Vec<(Entry, Ended)>,
    /// When a verb ended last, or the first of them was posted.
    moved: Time,
}

fn failed(error: FabricError) -> io::Error {
    io::Error::other(error.to_string())
}

impl Far {
    /// Reaches the memory, and reads of it once.
    ///
    /// # Errors
    /// When libfabric is missing, the JBOF has another provider than `provider`, or the memory is
    /// not reached.
    pub fn open(provider: &str, place: Place, welcome: &Welcome) -> io::Result<Far> {
        if place.provider != provider {
            let reason = format!("the JBOF has the provider {:?}, and this door {provider:?}", place.provider);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let block_bytes = memory_words(1, welcome.slots) * size_of::<u64>();
        let mut initiator = Initiator::open(place, ENTRIES, block_bytes).map_err(failed)?;
        reach(&mut initiator)?;
        let order = Order::new(block_bytes, initiator.orders_reads());
        Ok(Far { initiator, order, verbs: vec![None; ENTRIES], done: Vec::new(), moved: Time::ZERO })
    }

    /// A file that is readable when there may be something to take.
    pub fn file(&self) -> RawFd {
        self.initiator.fd().as_raw_fd()
    }

    /// Posts verbs on one block.
    ///
    /// # Errors
    /// When libfabric refuses one.
    pub fn post(&mut self, now: Time, request: Option<RequestId>, verbs: Vec<Verb>) -> Result<(), FabricError> {
        if self.order.is_empty() {
            self.moved = now;
        }
        self.order.post(request, verbs);
        self.issue()
    }

    /// Issues what may be, as far as there is room.
    fn issue(&mut self) -> Result<(), FabricError> {
        while let Some((id, verb)) = self.order.next() {
            let entry = match verb {
                Verb::Read { at, bytes } => self.initiator.read(*at, *bytes),
                Verb::Write { at, data } => self.initiator.write(*at, data),
                Verb::Swap { at, expected, new } => self.initiator.swap(*at, *expected, *new),
                Verb::Bits { at, mask, bits } => self.initiator.set_bits(*at, *mask, *bits),
            }?;
            let Some(entry) = entry else { break };
            self.verbs[entry] = Some(id);
            self.order.issued();
        }
        Ok(())
    }

    /// Takes what has ended, and issues what waited for it.
    ///
    /// # Errors
    /// When a verb has failed, or none ends: the memory is of no more use.
    pub fn take(&mut self, now: Time, arrived: &mut VecDeque<Arrival>) -> Result<(), String> {
        loop {
            let taken = self.initiator.take(&mut self.done);
            taken.map_err(|error| error.to_string())?;
            if self.done.is_empty() {
                break;
            }
            self.moved = now;
            for (entry, ended) in self.done.drain(..) {
                let Some(id) = self.verbs.get_mut(entry).and_then(Option::take) else { continue };
                let result = match ended {
                    Ended::Read(bytes) => Done::Read(bytes),
                    Ended::Written => Done::Written,
                    Ended::Found(word) => Done::Found(word),
                };
                let answer = self.order.ended(id, result);
                arrived.extend(answer.map(|(request, results)| Arrival::Verbs { request, results }));
            }
            self.issue().map_err(|error| error.to_string())?;
        }
        if !self.order.is_empty() && now.saturating_since(self.moved) > SILENCE {
            return Err("its memory does not answer".into());
        }
        self.issue().map_err(|error| error.to_string())
    }

    /// Whether the thread may wait for events: nothing is there to take, and nothing waits for
    /// room.
    pub fn may_sleep(&mut self) -> bool {
        self.order.next().is_none() && self.initiator.may_sleep()
    }
}

/// Reads the first word, so that the connection stands.
fn reach(initiator: &mut Initiator) -> io::Result<()> {
    let begin = Instant::now();
    let (mut entry, mut done) = (None, Vec::new());
    while done.is_empty() {
        if begin.elapsed() > FIRST {
            let reason = "the JBOF's memory is not reached by libfabric: is its port open?";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        if entry.is_none() {
            entry = initiator.read(0, size_of::<u64>()).map_err(failed)?;
        }
        initiator.take(&mut done).map_err(failed)?;
        if done.is_empty() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}
