//! A store: its loops, and its JBOF where that is in this process.
//!
//! Connections stay on one loop. With one loop, the JBOF is a part of it. With more, it has a
//! thread of its own ([`crate::near`]), or is in another process.

use crate::common::Common;
use crate::config::{Config, JbofConfig, JbofPlace, Journal, Peer};
use crate::frames::Welcome;
use crate::jbof::{Jbof, recovered};
use crate::near::NearJbof;
use crate::reader::this_second;
use crate::remote::{Link, Remote};
use crate::serving::{Front, JBOF, Loop, Reload, Seat, WAKER};
use crate::socket::Acceptor;
use crate::transport::Transport;
use mio::{Poll, Registry, Waker};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::records::Recorder;
use runtime::stopper::Stopper;
use scalio::ClientId;
use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// How long a store waits for a JBOF in another process when it starts.
const JBOF_WAIT: Duration = Duration::from_secs(10);
/// Loops of a store at most.
pub const LOOPS_MAX: usize = 64;

/// A way to a JBOF, and what the JBOF is like.
type Way = (Box<dyn Transport>, Welcome);

/// A running store.
pub struct Store {
    first: Loop,
    others: Vec<Loop>,
    /// The JBOF in a thread of its own.
    jbof: Option<NearJbof>,
}

impl Store {
    /// Opens everything that `config` names, recovers what the file holds, and listens. With
    /// `signals`, SIGTERM and SIGINT end [`Self::run`], and SIGHUP reads the configuration anew
    /// ([`Self::reload_with`]); a process has one such store.
    ///
    /// # Errors
    /// When something cannot be opened, or the file is no store as the configuration says.
    pub fn start(config: Config, signals: bool) -> Result<Store, StartError> {
        if !(1..=LOOPS_MAX).contains(&config.loops) {
            return Err(StartError::plan(format!("a store has 1 to {LOOPS_MAX} loops")));
        }
        let system = StartError::system("the event queue");
        let clock = Clock::start();
        let (polls, wakers): (Vec<Poll>, Vec<Arc<Waker>>) =
            (0..config.loops).map(|_| events()).collect::<io::Result<Vec<_>>>().map_err(system)?.into_iter().unzip();
        let acceptor = Acceptor::new(config.tls.as_ref())?;
        let mut front = Some(Front::open(&polls[0], &config, signals)?);
        let jbof = match &config.jbof {
            JbofPlace::Inside(inside) if config.loops > 1 => {
                Some(NearJbof::start(inside, clock, &wakers, config.journal.as_ref())?)
            }
            _ => None,
        };
        let recorder = config.records.as_ref().map(|records| {
            let plan = format!("{:?}, {} loops", config.jbof, config.loops);
            Recorder::start(records, "door", &plan)
        });
        let common = Arc::new(Common::new(&wakers, recorder.transpose()?));
        let mut loops = Vec::new();
        for (number, (poll, waker)) in polls.into_iter().zip(wakers).enumerate() {
            let way = match (&jbof, &config.jbof) {
                (Some(near), _) => near.door(number)?,
                (None, JbofPlace::Inside(inside)) => {
                    inside_of(inside, config.journal.as_ref(), (clock, waker.clone()))?
                }
                (None, JbofPlace::Away(peer)) => reached(peer, poll.registry(), (waker.clone(), clock))?,
            };
            let seat = Seat { number, common: common.clone(), poll, waker, clock, acceptor: acceptor.clone() };
            loops.push(Loop::new(seat, &config, way, front.take())?);
        }
        let first = loops.remove(0);
        Ok(Store { first, others: loops, jbof })
    }

    /// Has SIGHUP read the configuration anew with `reload`.
    pub fn reload_with(&mut self, reload: Reload) {
        self.first.reload_with(reload);
    }

    /// Where clients come in.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.first.address().unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()))
    }

    /// Keys that it has, as far as it knows.
    pub fn keys(&self) -> u64 {
        self.first.keys()
    }

    /// Returns a handle that ends [`Self::run`].
    pub fn stopper(&self) -> Stopper {
        self.first.stopper()
    }

    /// Serves until an end is requested. What was acknowledged is on the flash already.
    ///
    /// # Errors
    /// When an event queue fails, or the system has no more threads.
    pub fn run(&mut self) -> Result<(), RunError> {
        let first = self.first.stopper();
        thread::scope(|scope| {
            // They end when the first one does, for whatever reason.
            let mut ends = Vec::new();
            let mut threads = Vec::new();
            for (number, other) in (1..).zip(&mut self.others) {
                ends.push(Ends(other.stopper()));
                threads.push(spawned(scope, format!("loop-{number}"), first.clone(), || other.run())?);
            }
            if let Some(jbof) = &mut self.jbof {
                ends.push(Ends(jbof.stopper()));
                threads.push(spawned(scope, "jbof".to_owned(), first.clone(), || jbof.run())?);
            }
            let served = self.first.run();
            drop(ends);
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ended.fold(served, Result::and)
        })
    }
}

/// Stops a loop when it is dropped.
struct Ends(Stopper);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A thread with a loop. When it ends, so does the first one.
fn spawned<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    first: Stopper,
    work: impl FnOnce() -> Result<(), RunError> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<(), RunError>>, RunError> {
    let work = move || {
        let _first = Ends(first);
        work()
    };
    thread::Builder::new().name(name).spawn_scoped(scope, work).map_err(RunError::in_("starting a thread"))
}

/// Events of a loop, and what wakes it.
fn events() -> io::Result<(Poll, Arc<Waker>)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    Ok((poll, Arc::new(waker)))
}

/// A JBOF in this process, when it has read its log.
fn inside_of(
    config: &JbofConfig,
    journal: Option<&Journal>,
    (clock, waker): (Clock, Arc<Waker>),
) -> Result<Way, StartError> {
    let jbof = recovered(Jbof::start(config, this_second(), waker)?, clock, config, journal)?;
    let welcome = jbof.welcome(ClientId(0), clock.now());
    Ok((Box::new(jbof), welcome))
}

/// A JBOF in another process, when it answers.
fn reached(peer: &Peer, registry: &Registry, (waker, clock): (Arc<Waker>, Clock)) -> Result<Way, StartError> {
    let begin = std::time::Instant::now();
    loop {
        match Link::open(peer).and_then(|link| link.with_flash(peer)) {
            Ok(link) => {
                let welcome = link.welcome;
                let remote = Remote::new(peer.clone(), link, registry, JBOF, (waker, clock));
                return Ok((Box::new(remote.map_err(StartError::system("the event queue"))?), welcome));
            }
            Err(error) if begin.elapsed() > JBOF_WAIT => {
                return Err(StartError::plan(format!("the JBOF at {} does not answer: {error}", peer.address)));
            }
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}
