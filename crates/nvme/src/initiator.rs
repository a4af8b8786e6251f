//! The host's side: one association with a subsystem, an admin queue and I/O queues, as a state
//! machine without I/O. Every queue is a connection of its own, named by the queue's number.
//!
//! | kind of call | calls |
//! | --- | --- |
//! | sockets | [`Initiator::next_action`] says which to open and close; [`Initiator::opened`], [`Initiator::receive`], [`Initiator::transmit`] and [`Initiator::transmitted`], [`Initiator::closed`] |
//! | commands | [`Initiator::submit`] after [`HostEvent::Ready`]; [`Initiator::next_event`] |
//! | time | [`Initiator::next_wakeup`], [`Initiator::on_wakeup`] |
//!
//! The controller is not trusted. A violation of the protocol ends the association with
//! [`HostEvent::Failed`], and every submitted command is reported as completed, once.

mod authentication;
mod link;
mod setup;
mod tolerance;

pub use authentication::Credentials;
pub use tolerance::Tolerance;

use crate::auth::FailureReason;
use crate::feature::Event;
use crate::identify::IdentifyController;
use crate::outgoing::Slices;
use crate::pdu::{Digests, PduError};
use crate::property::Capabilities;
use crate::queue::QueueError;
use crate::{Body, CodecError, Command, HostId, Nqn, Status};
use authentication::Proving;
use base::{Span, Time};
use link::{Done, Link};
use setup::Step;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Parameters of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorConfig {
    /// The host's name.
    pub host: Nqn,
    /// Its identifier.
    pub host_id: HostId,
    /// The subsystem, or [`Nqn::discovery`].
    pub subsystem: Nqn,
    /// Requested digests. A controller may do without them (NVMe/TCP Transport 1.0, 3.6.2.3), and
    /// is then refused.
    pub digests: Digests,
    /// Alignment of data from the controller, in dwords less one; at most 31.
    pub alignment: u8,
    /// R2Ts of a command that may be open, less one.
    pub ready_max_minus_one: u32,
    /// Submission queue flow control; without it success may be reported by a flag.
    pub flow_control: bool,
    /// Entries of the admin queue: 2 and up.
    pub admin_entries: u16,
    /// Requested I/O queues; the controller may grant fewer. None for a discovery controller.
    pub io_queues: u16,
    /// Entries of an I/O queue: 2 and up; fewer where the controller has fewer.
    pub io_entries: u16,
    /// Event requests to keep outstanding; fewer if the controller supports fewer.
    pub event_requests: u16,
    /// Keep-alive timeout, ms; 0 for none. A controller that has no keep-alive is sent none.
    pub keep_alive_ms: u32,
    /// Longest transfer that [`Initiator::submit`] takes, bytes; less where the controller takes
    /// less.
    pub transfer_bytes_max: u32,
    /// Longest time of a command, and of each step of connecting.
    pub timeout: Span,
}

impl InitiatorConfig {
    /// A host with one I/O queue of 64 entries, transfers of up to 1 MiB, a keep-alive of 15 s and
    /// a timeout of 60 s, without digests.
    pub fn new(host: Nqn, host_id: HostId, subsystem: Nqn) -> InitiatorConfig {
        InitiatorConfig {
            host,
            host_id,
            subsystem,
            digests: Digests { header: false, data: false },
            alignment: 0,
            ready_max_minus_one: 0,
            flow_control: true,
            admin_entries: 32,
            io_queues: 1,
            io_entries: 64,
            event_requests: 1,
            keep_alive_ms: 15_000,
            transfer_bytes_max: 1 << 20,
            timeout: Span::secs(60),
        }
    }
}

/// A connection to open or to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection for this queue, then call [`Initiator::opened`].
    Open(u16),
    /// Close this queue's connection when nothing waits to be sent; no call has to follow.
    Close(u16),
}

/// Names a command that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Data of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// None.
    None,
    /// These go to the controller.
    ToController(Vec<u8>),
    /// Bytes that it will receive.
    ToHost(u32),
}

/// An event of the association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// All queues are connected.
    Ready {
        /// I/O queues: 1 to this.
        io_queues: u16,
    },
    /// A command is over.
    Completed {
        /// The command.
        ticket: Ticket,
        /// Its status.
        status: Status,
        /// Dwords 0 and 1 of the completion.
        result: u64,
        /// The data of a read, or the buffer of a write.
        data: Vec<u8>,
    },
    /// The controller reports an asynchronous event.
    Notice(Event),
    /// The controller deviates from what most controllers do, and is used all the same. Reported
    /// once for each kind.
    Tolerated(Tolerance),
    /// The controller was shut down in order.
    ShutDown,
    /// The association is over. All commands were reported as completed before.
    Failed(InitiatorError),
}

/// Why an association ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InitiatorError {
    /// The controller broke the rules of PDUs and transfers.
    #[error("queue {queue}: the controller broke the protocol: {error}")]
    Protocol {
        /// On which queue.
        queue: u16,
        /// The violation.
        error: PduError,
    },
    /// The controller broke the rules of queues.
    #[error("queue {queue}: {error}")]
    Queue {
        /// On which queue.
        queue: u16,
        /// The violation.
        error: QueueError,
    },
    /// The controller ended the connection.
    #[error("queue {queue}: the controller ended the connection: {status:?}")]
    Terminated {
        /// Which queue.
        queue: u16,
        /// The received value.
        status: crate::pdu::FatalStatus,
    },
    /// The connection was lost.
    #[error("queue {queue}: the connection was lost")]
    Closed {
        /// Which queue.
        queue: u16,
    },
    /// A command of connecting was refused.
    #[error("{what} was refused: {status}")]
    Refused {
        /// The command.
        what: &'static str,
        /// Its status.
        status: Status,
    },
    /// One side rejects the other's authentication.
    #[error("authentication failed: {0}")]
    NotAuthenticated(FailureReason),
    /// An authentication cannot be carried out.
    #[error("authentication failed: {0}")]
    Authentication(&'static str),
    /// The controller reports properties that cannot be used.
    #[error("the controller cannot be used: {0}")]
    Unusable(&'static str),
    /// A structure of the controller cannot be read.
    #[error("an answer of the controller cannot be decoded: {0}")]
    Codec(#[from] CodecError),
    /// Nothing arrived in time.
    #[error("queue {queue}: no answer in time")]
    Timeout {
        /// On which queue.
        queue: u16,
    },
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// There is no association (any more).
    #[error("not connected")]
    NotConnected,
    /// No such queue.
    #[error("there is no queue {0}")]
    Queue(u16),
    /// The queue is full: wait for a completion.
    #[error("the queue is full")]
    Full,
    /// More data than a transfer may carry.
    #[error("{got} bytes are more than the {most} of a transfer")]
    TooLong {
        /// The number of bytes.
        got: usize,
        /// The limit.
        most: u32,
    },
}

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A step of connecting or shutting down.
    Step(Step),
    /// The user's.
    User(Ticket),
    /// A request for events.
    EventRequest,
    /// Keep alive.
    KeepAlive,
}

/// State of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Queues are being connected.
    Connecting,
    /// Commands are accepted.
    Ready,
    /// The controller is being shut down.
    ShuttingDown,
    /// Over.
    Over,
}

/// One association.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    credentials: Option<Box<Credentials>>,
    /// Queues whose authentication is in progress.
    proving: BTreeMap<u16, Proving>,
    state: State,
    links: Vec<Link>,
    actions: VecDeque<Action>,
    events: VecDeque<HostEvent>,
    setup: setup::Found,
    next_ticket: u64,
    now: Time,
    next_keep_alive: Option<Time>,
    /// When the controller's state is looked at again.
    poll: Option<(Time, Step)>,
    /// When a shutdown has to be over.
    shut_down_by: Option<Time>,
    tolerated: BTreeSet<Tolerance>,
}

impl Initiator {
    /// A host without connections; the first action opens the admin queue.
    pub fn new(config: InitiatorConfig) -> Self {
        Initiator {
            credentials: None,
            proving: BTreeMap::new(),
            state: State::Connecting,
            links: vec![Link::new(0, u32::from(config.admin_entries.max(2)), &config)],
            actions: VecDeque::from([Action::Open(0)]),
            events: VecDeque::new(),
            setup: setup::Found::default(),
            next_ticket: 0,
            now: Time::ZERO,
            next_keep_alive: None,
            poll: None,
            shut_down_by: None,
            tolerated: BTreeSet::new(),
            config,
        }
    }

    /// The next action on sockets.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The oldest event that was not fetched.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// A queue's connection is open.
    pub fn opened(&mut self, now: Time, queue: u16) {
        self.now = self.now.max(now);
        let (config, timeout) = (self.config, self.config.timeout);
        let now = self.now;
        if let Some(link) = self.links.get_mut(usize::from(queue)) {
            link.initialize(&config, now.checked_add(timeout));
        }
    }

    /// Takes bytes of a queue's connection, in any split; takes all of them.
    pub fn receive(&mut self, now: Time, queue: u16, bytes: &[u8]) {
        self.now = self.now.max(now);
        let mut done = Vec::new();
        let Some(link) = self.links.get_mut(usize::from(queue)).filter(|_| self.state != State::Over) else { return };
        let outcome = link.receive(bytes, &self.config, &mut done);
        let (is_initialized, tolerated) = (link.take_initialized(), link.take_tolerated());
        tolerated.into_iter().for_each(|what| self.tolerate(what));
        done.into_iter().for_each(|done| self.on_done(queue, done));
        match outcome {
            Err(error) => self.fail(error),
            Ok(()) if is_initialized => self.connect_queue(queue),
            Ok(()) => {}
        }
    }

    /// The output of a queue's connection, as slices in order.
    pub fn transmit(&self, queue: u16) -> Slices<'_> {
        self.links.get(usize::from(queue)).map_or_else(Slices::none, Link::transmit)
    }

    /// So many bytes of [`Self::transmit`] have left.
    pub fn transmitted(&mut self, queue: u16, bytes: usize) {
        if let Some(link) = self.links.get_mut(usize::from(queue)) {
            link.transmitted(bytes);
        }
    }

    /// A queue's connection is gone, or could not be opened.
    pub fn closed(&mut self, now: Time, queue: u16) {
        self.now = self.now.max(now);
        match self.state {
            // SPDK closes the connections of I/O queues as soon as CC.SHN is set, and others all of
            // them.
            State::ShuttingDown if queue == 0 => self.become_shut_down(),
            State::ShuttingDown => {}
            _ if usize::from(queue) < self.links.len() => self.fail(InitiatorError::Closed { queue }),
            _ => {}
        }
    }

    /// Sends a command by a queue (0 for admin commands); its id and descriptor are filled in here.
    /// An event reports its completion.
    pub fn submit(
        &mut self,
        now: Time,
        queue: u16,
        namespace: u32,
        body: Body,
        payload: Payload,
    ) -> Result<Ticket, SubmitError> {
        self.submit_as(now, queue, Command { namespace, ..Command::new(0, body) }, payload)
    }

    /// As [`Self::submit`], with everything that a command says but its id and descriptor: halves
    /// of fused pairs.
    pub fn submit_as(
        &mut self,
        now: Time,
        queue: u16,
        command: Command,
        payload: Payload,
    ) -> Result<Ticket, SubmitError> {
        self.now = self.now.max(now);
        if self.state != State::Ready {
            return Err(SubmitError::NotConnected);
        }
        let (got, most) = (payload.length(), self.transfer_bytes_max());
        if got > most as usize {
            return Err(SubmitError::TooLong { got, most });
        }
        let deadline = self.now.checked_add(self.config.timeout);
        let link = self.links.get_mut(usize::from(queue)).ok_or(SubmitError::Queue(queue))?;
        let ticket = Ticket(self.next_ticket);
        link.send(command, payload, Purpose::User(ticket), deadline).map_err(|_| SubmitError::Full)?;
        self.next_ticket += 1;
        Ok(ticket)
    }

    /// Commands that a queue accepts now.
    pub fn room(&self, queue: u16) -> u32 {
        self.links.get(usize::from(queue)).map_or(0, Link::room)
    }

    /// Longest transfer of the controller and of this host, bytes.
    pub fn transfer_bytes_max(&self) -> u32 {
        self.setup
            .transfer_bytes_max
            .map_or(self.config.transfer_bytes_max, |most| most.min(self.config.transfer_bytes_max))
    }

    /// The controller's description of itself, once it was read.
    pub fn controller(&self) -> Option<&IdentifyController> {
        self.setup.controller.as_deref()
    }

    /// Its properties, once they were read.
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.setup.capabilities.as_ref()
    }

    /// When to call [`Self::on_wakeup`] at the latest.
    pub fn next_wakeup(&self) -> Option<Time> {
        if self.state == State::Over {
            return None;
        }
        let links = self.links.iter().filter_map(Link::deadline);
        links.chain(self.next_keep_alive).chain(self.poll.map(|(time, _)| time)).min()
    }

    /// Time has passed.
    pub fn on_wakeup(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.state == State::Over {
            return;
        }
        let now = self.now;
        let late = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if let Some(link) = self.links.iter().find(|link| late(link.deadline())) {
            let queue = link.queue_id();
            return self.fail(InitiatorError::Timeout { queue });
        }
        if let Some((_, step)) = self.poll.filter(|(time, _)| *time <= self.now) {
            self.poll = None;
            self.take_step(step);
        }
        if late(self.next_keep_alive) {
            self.keep_alive();
        }
    }

    /// Ends the association in order: the controller is shut down, [`HostEvent::ShutDown`] follows.
    pub fn shut_down(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.state == State::Ready {
            self.state = State::ShuttingDown;
            self.shut_down_by = self.now.checked_add(self.config.timeout);
            self.take_step(Step::ShutDown);
        }
    }

    fn on_done(&mut self, queue: u16, done: Done) {
        let Done { purpose, status, result, data } = done;
        match purpose {
            Purpose::User(ticket) => self.events.push_back(HostEvent::Completed { ticket, status, result, data }),
            Purpose::KeepAlive => {}
            Purpose::EventRequest => self.on_event_request(status, result),
            Purpose::Step(step) => self.on_step(queue, step, status, result, &data),
        }
    }

    /// An event arrived: requests the next one.
    fn on_event_request(&mut self, status: Status, result: u64) {
        if !status.is_success() || self.state == State::Over {
            return;
        }
        if let Ok(event) = Event::decode(result as u32) {
            self.events.push_back(HostEvent::Notice(event));
        }
        self.request_event();
    }

    fn tolerate(&mut self, what: Tolerance) {
        if self.tolerated.insert(what) {
            self.events.push_back(HostEvent::Tolerated(what));
        }
    }

    /// Ends the association: every command is reported, connections are closed.
    fn fail(&mut self, error: InitiatorError) {
        if self.state == State::Over {
            return;
        }
        self.end();
        self.events.push_back(HostEvent::Failed(error));
    }

    fn end(&mut self) {
        self.state = State::Over;
        let mut abandoned = Vec::new();
        for link in &mut self.links {
            link.abandon(&mut abandoned);
            self.actions.push_back(Action::Close(link.queue_id()));
        }
        for done in abandoned {
            if let Purpose::User(ticket) = done.purpose {
                let Done { status, result, data, .. } = done;
                self.events.push_back(HostEvent::Completed { ticket, status, result, data });
            }
        }
    }
}

impl Payload {
    /// Bytes.
    pub fn length(&self) -> usize {
        match self {
            Payload::None => 0,
            Payload::ToController(data) => data.len(),
            Payload::ToHost(length) => *length as usize,
        }
    }
}
