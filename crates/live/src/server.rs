//! The live target: its loops, each in a thread, and everything that they share.

use crate::backend::Backends;
use crate::clock::Clock;
use crate::common::Common;
use crate::doors::Doors;
use crate::error::{RunError, StartError};
use crate::in_use::InUse;
use crate::listen::listen_unless_in_use;
use crate::machine::{JournalSink, Machine};
use crate::records::Recorder;
use crate::secrets::{Secrets, random};
use crate::serving::{Front, Loop, LoopParts, PORTS, Seat, WAKER};
use crate::setup::{OpenStorage, OpenedByName, Preparation, Prepared};
use crate::state::{SharedState, State};
use crate::stream::Security;
use mio::net::TcpListener;
use mio::{Poll, Waker};
use nvme::target::{Member, Target, TargetConfig};
use plan::target::{Backend, TargetPlan};
use runtime::stopper::Stopper;
use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::thread;

/// Reads the plan again, or returns the reason why it cannot.
pub type Reload = Box<dyn FnMut() -> Result<TargetPlan, String> + Send>;

/// Options of a server.
#[derive(Default)]
pub struct ServerOptions<'a> {
    /// Handle SIGTERM and SIGINT (an orderly shutdown; the second ends the process) and SIGHUP
    /// (`reload`). A process has one such server.
    pub signals: bool,
    /// Source of a new plan.
    pub reload: Option<Reload>,
    /// Makes a storage in place of the plan's own, for tests of power loss.
    pub storage: Option<OpenStorage<'a>>,
    /// Sink of a journal of the target's inputs and decisions, for [`nvme::journal::replay`] with
    /// [`Server::config`]. Buffer it. The configuration then cannot change, and no notices are
    /// logged.
    pub journal: Option<JournalSink>,
}

/// A running target.
pub struct Server {
    first: Loop,
    others: Vec<Loop>,
    config: TargetConfig,
}

impl Server {
    /// Opens everything that `plan` names and listens. [`Self::run`] serves the hosts that connect.
    ///
    /// # Errors
    /// When something of the plan cannot be opened. Then nothing is served, and no file was created
    /// or has grown.
    pub fn start(plan: &TargetPlan, options: ServerOptions<'_>) -> Result<Server, StartError> {
        Server::open(plan, options, &InUse::Refused)
    }

    /// Checks that [`Self::start`] would succeed. Returns resources that it needs and another
    /// process holds: ports, images, the state. Nothing is left of the attempt.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn check(plan: &TargetPlan) -> Result<Vec<StartError>, StartError> {
        let in_use = InUse::noted();
        Server::open(plan, ServerOptions::default(), &in_use).map(drop)?;
        Ok(in_use.into_all())
    }

    fn open(plan: &TargetPlan, options: ServerOptions<'_>, in_use: &InUse) -> Result<Server, StartError> {
        let ServerOptions { signals, reload, storage, journal } = options;
        if plan.loops > 1 && journal.is_some() {
            return Err(StartError::Plan("loops: a journal has the inputs of one loop alone".into()));
        }
        let mut queues = Vec::new();
        for _ in 0..plan.loops {
            queues.push(event_queue().map_err(StartError::system("the event queue"))?);
        }
        let wakers: Vec<Arc<Waker>> = queues.iter().map(|(_, waker)| waker.clone()).collect();
        let clock = Clock::start();
        let (poll, waker) = &queues[0];
        let storage = storage.unwrap_or(&|_| None);
        let ready = Ready::open(plan, poll, (clock, waker.clone()), (storage, journal), in_use)?;
        let Ready { plan, doors, config, target, backends, opened, security, secrets, state, metrics } = ready;
        let records = plan.records.as_ref().filter(|_| in_use.is_refused());
        let recorder = records.map(|records| Recorder::start(records, &plan)).transpose()?;
        let (common, secrets) = (Arc::new(Common::new(&wakers, plan.busy_poll)), Arc::new(secrets));
        let mut front = Some(Front { doors, opened, security, reload, metrics, signals });
        let of_others: Vec<Backends> = wakers[1..].iter().map(|waker| backends.for_loop(waker.clone())).collect();
        let mut targets = vec![target];
        for own in (1..plan.loops as u16).map(Member) {
            targets.push(member(&config, own, plan.loops)?);
        }
        let machines = targets.into_iter().zip(std::iter::once(backends).chain(of_others));
        let mut loops = Vec::new();
        for (own, ((poll, waker), (target, backends))) in (0..).map(Member).zip(queues.into_iter().zip(machines)) {
            let (plan, state, secrets, recorder) = (plan.clone(), state.clone(), secrets.clone(), recorder.clone());
            let seat = Seat { own, common: common.clone(), poll, waker, clock };
            loops.push(Loop::new(seat, LoopParts { plan, target, backends, state, secrets, recorder }, front.take())?);
        }
        let mut first = loops.remove(0);
        first.ends_with(loops.iter().map(Loop::stopper).collect());
        loops.iter_mut().for_each(|other| other.ends_with(vec![first.stopper()]));
        Ok(Server { first, others: loops, config })
    }

    /// Returns the addresses of its ports, in the order of the plan.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.first.doors.addresses()
    }

    /// Returns the plan with all generated names.
    pub fn plan(&self) -> &TargetPlan {
        &self.first.plan
    }

    /// Returns the target's configuration at the start, namespaces included.
    pub fn config(&self) -> &TargetConfig {
        &self.config
    }

    /// Returns a handle that ends [`Self::run`].
    pub fn stopper(&self) -> Stopper {
        self.first.stopper()
    }

    /// Serves until a shutdown is requested. Then it completes what backends are doing, and syncs.
    ///
    /// # Errors
    /// When an event queue fails, the system has no more threads, or the last sync fails.
    pub fn run(&mut self) -> Result<(), RunError> {
        let Server { first, others, .. } = self;
        let served = thread::scope(|scope| {
            // A loop that ends, for whatever reason, ends the first, and that one ends all.
            let all = others.iter().map(Loop::stopper).chain([first.stopper()]).collect();
            let all_end = Ends(all);
            let mut threads = Vec::new();
            for (number, other) in (1..).zip(others) {
                let ends = Ends(vec![first.stopper()]);
                let work = move || {
                    let _ends = ends;
                    other.run()
                };
                let thread = thread::Builder::new().name(format!("loop-{number}")).spawn_scoped(scope, work);
                threads.push(thread.map_err(RunError::in_("starting a thread"))?);
            }
            let served = first.run();
            drop(all_end);
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ended.fold(served, Result::and)
        });
        served.and(first.sync_all())
    }
}

/// Stops loops when it is dropped.
struct Ends(Vec<Stopper>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(Stopper::stop);
    }
}

/// The machine of a loop behind the first.
fn member(config: &TargetConfig, own: Member, loops: u32) -> Result<Machine, StartError> {
    let mut target = Target::new(config.clone()).map_err(StartError::plan)?;
    target.join(own, loops as u16);
    Ok(Machine::Alone(Box::new(target)))
}

/// The open resources of a plan.
struct Ready {
    plan: TargetPlan,
    doors: Doors,
    config: TargetConfig,
    target: Machine,
    backends: Backends,
    opened: OpenedByName,
    security: Security,
    secrets: Secrets,
    state: SharedState,
    metrics: Option<TcpListener>,
}

impl Ready {
    fn open(
        plan: &TargetPlan,
        poll: &Poll,
        (clock, waker): (Clock, Arc<Waker>),
        (storage, journal): (OpenStorage<'_>, Option<JournalSink>),
        in_use: &InUse,
    ) -> Result<Ready, StartError> {
        let mut doors = Doors::new(PORTS);
        let next = doors.prepare(plan, poll.registry(), in_use)?;
        let ports = doors.numbers(&next);
        doors.change(next);
        let state = Arc::new(Mutex::new(State::open(plan.state.as_deref(), in_use)?));
        let mut backends = Backends::new(clock, waker, state.clone(), plan.loops > 1)?;
        let secrets = Secrets::open(plan)?;
        let mut security = Security::new();
        let acceptors = security.prepare(plan, &ports)?;
        let nothing = OpenedByName::new();
        let mut preparation = Preparation::new(&mut backends, &state, &nothing, storage, &secrets, in_use);
        let Prepared { plan, config, opened } = preparation.prepare(plan, None, &ports)?;
        let mut target = Machine::new(config.clone(), journal).map_err(StartError::plan)?;
        if let Some(target) = target.managed() {
            target.join(Member::FIRST, plan.loops as u16);
        }
        number_controllers(&mut target, &plan)?;
        plan.records.as_ref().map_or(Ok(()), Recorder::check)?;
        let addresses = || plan.ports.iter().map(|port| port.address.as_str());
        let metrics =
            plan.metrics.as_deref().map(|text| listen_unless_in_use(text, addresses(), in_use)).transpose()?;
        preparation.end(in_use.is_refused()).map_err(StartError::system("identities cannot be saved"))?;
        security.change(acceptors, &plan, &secrets);
        Ok(Ready { plan, doors, config, target, backends, opened, security, secrets, state, metrics })
    }
}

/// The event queue, and the waker for other threads.
fn event_queue() -> io::Result<(Poll, Arc<Waker>)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    Ok((poll, waker))
}

/// Another target may serve a shared file, or a volume of a rack, under the same name. Random first
/// numbers of controllers make a collision unlikely.
fn number_controllers(target: &mut Machine, plan: &TargetPlan) -> Result<(), StartError> {
    let mut disks = plan.subsystems.iter().flat_map(|subsystem| &subsystem.namespaces);
    let is_shared = disks.any(|disk| disk.shared || matches!(disk.backend, Backend::Volume { .. }));
    if let Some(target) = target.managed().filter(|_| is_shared) {
        let last = random().map_err(StartError::system("random numbers"))?;
        target.number_controllers_after(u16::from_be_bytes(last));
    }
    Ok(())
}
