//! A JBOF in a thread of its own, for the loops of one process.
//!
//! Each loop maps its memory and reads its flash. Only requests to the helper go to the thread, all
//! those of a turn at once, and so do the replies.

use crate::alarm::Alarm;
use crate::config::{JbofConfig, Journal};
use crate::direct::Direct;
use crate::frames::{Tally, Welcome};
use crate::jbof::{Jbof, recovered};
use crate::reader::this_second;
use crate::transport::{Arrival, Transport};
use base::Time;
use bytes::Bytes;
use mapped::Mapped;
use mio::{Events, Poll, Token, Waker};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::lock::lock;
use runtime::stopper::Stopper;
use runtime::waiting;
use scalio::{ClientId, Extent, Reply, Request, RequestId, Verb};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex};

const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const EVENTS: usize = 16;

/// Replies to one loop.
struct Tray {
    replies: Mutex<Vec<Reply<Bytes>>>,
    waker: Arc<Waker>,
}

/// What goes between the loops and the JBOF's thread.
struct Desk {
    requests: Mutex<Vec<Request<Bytes>>>,
    /// As it was before the replies that are there.
    tally: Mutex<Tally>,
    waker: Arc<Waker>,
    trays: Box<[Tray]>,
}

/// The JBOF and its loop.
pub struct NearJbof {
    poll: Poll,
    alarm: Alarm,
    clock: Clock,
    stopper: Stopper,
    jbof: Jbof,
    desk: Arc<Desk>,
    /// Replies of a turn, by loop.
    replies: Vec<Vec<Reply<Bytes>>>,
}

impl NearJbof {
    /// Opens the flash, and recovers what is there. `wakers` are those of the loops.
    ///
    /// # Errors
    /// When something cannot be opened, or the file is no store as the configuration says.
    pub fn start(
        config: &JbofConfig,
        clock: Clock,
        wakers: &[Arc<Waker>],
        journal: Option<&Journal>,
    ) -> Result<NearJbof, StartError> {
        let system = StartError::system("the event queue");
        let poll = Poll::new().map_err(&system)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(&system)?);
        let alarm = Alarm::new(poll.registry(), TIMER)?;
        let jbof = recovered(Jbof::start(config, this_second(), waker.clone())?, clock, config, journal)?;
        let tray = |waker: &Arc<Waker>| Tray { replies: Mutex::default(), waker: waker.clone() };
        let desk = Arc::new(Desk {
            requests: Mutex::default(),
            tally: Mutex::new(jbof.tally()),
            waker: waker.clone(),
            trays: wakers.iter().map(tray).collect(),
        });
        let replies = wakers.iter().map(|_| Vec::new()).collect();
        Ok(NearJbof { poll, alarm, clock, stopper: Stopper::new(waker), jbof, desk, replies })
    }

    /// The way of a loop to it, and what the loop has to know.
    ///
    /// # Errors
    /// When the system has no more threads, files or memory.
    pub fn door(&self, number: usize) -> Result<(Box<dyn Transport>, Welcome), StartError> {
        let system = StartError::system("shared memory and flash");
        let welcome = self.jbof.welcome(ClientId(number as u16), self.clock.now());
        let [memory, flash] = self.jbof.files().map_err(&system)?;
        let memory = Mapped::open(&memory).map_err(&system)?;
        let waker = self.desk.trays[number].waker.clone();
        let direct = Direct::new(memory, File::from(flash), welcome.seal, waker).map_err(&system)?;
        let desk = self.desk.clone();
        let near = Near { desk, number, direct, arrived: VecDeque::new(), asks: Vec::new(), replies: Vec::new() };
        Ok((Box::new(near), welcome))
    }

    /// Returns a handle that ends [`Self::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Carries out what the loops ask until an end is requested.
    ///
    /// # Errors
    /// When the event queue fails.
    pub fn run(&mut self) -> Result<(), RunError> {
        let mut events = Events::with_capacity(EVENTS);
        let mut requests = Vec::new();
        while !self.stopper.is_asked() {
            let now = self.clock.now();
            self.alarm.set(now, self.jbof.due(now))?;
            waiting::sleep(&mut self.poll, &mut events, None)?;
            if events.iter().any(|event| event.token() == TIMER) {
                self.alarm.rang();
            }
            let now = self.clock.now();
            self.jbof.turn(now);
            std::mem::swap(&mut requests, &mut lock(&self.desk.requests));
            for request in requests.drain(..) {
                self.jbof.send(now, 0, request);
            }
            self.reply();
            self.jbof.flush();
        }
        self.jbof.end();
        Ok(())
    }

    /// Gives replies to the loops that they are for.
    fn reply(&mut self) {
        // A count of keys that is asked for after these replies includes them.
        *lock(&self.desk.tally) = self.jbof.tally();
        while let Some(arrival) = self.jbof.next() {
            if let Arrival::Reply(reply) = arrival
                && let Some(replies) = self.replies.get_mut(usize::from(reply.client.0))
            {
                replies.push(reply);
            }
        }
        for (replies, tray) in self.replies.iter_mut().zip(&self.desk.trays) {
            if !replies.is_empty() {
                lock(&tray.replies).append(replies);
                // It fails only when the loop is gone.
                let _ = tray.waker.wake();
            }
        }
    }
}

/// A loop's way to it.
struct Near {
    desk: Arc<Desk>,
    number: usize,
    direct: Direct,
    arrived: VecDeque<Arrival>,
    /// Requests of this turn.
    asks: Vec<Request<Bytes>>,
    replies: Vec<Reply<Bytes>>,
}

impl Transport for Near {
    fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>) {
        let results = self.direct.execute(&verbs);
        self.arrived.extend(request.map(|request| Arrival::Verbs { request, results }));
    }

    fn read(&mut self, request: RequestId, _: u32, extent: Extent) {
        self.direct.read(request, extent, &mut self.arrived);
    }

    fn send(&mut self, _: Time, _: u32, request: Request<Bytes>) {
        self.asks.push(request);
    }

    fn next(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    fn turn(&mut self, _: Time) {
        std::mem::swap(&mut self.replies, &mut lock(&self.desk.trays[self.number].replies));
        self.arrived.extend(self.replies.drain(..).map(Arrival::Reply));
        self.direct.take(&mut self.arrived);
    }

    fn flush(&mut self) {
        if self.asks.is_empty() {
            return;
        }
        let mut requests = lock(&self.desk.requests);
        // The thread takes all that are there when it wakes up.
        let is_first = requests.is_empty();
        requests.append(&mut self.asks);
        drop(requests);
        if is_first {
            // It fails only when the thread is gone, and with it the store ends.
            let _ = self.desk.waker.wake();
        }
    }

    fn due(&self, _: Time) -> Option<Time> {
        None
    }

    fn tally(&self) -> Tally {
        *lock(&self.desk.tally)
    }
}
