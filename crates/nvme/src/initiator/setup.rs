//! From a connection to queues that take commands, as a Linux host does it, and back.

use crate::feature::{EventMask, FeatureId, QueueCounts};
use crate::identify::{ControllerKind, IDENTIFY_BYTES, IdentifyController, IdentifyId, SglSupport};
use crate::initiator::link::Link;
use crate::initiator::{Action, HostEvent, Initiator, InitiatorError, Payload, Purpose, State, Tolerance};
use crate::property::{Capabilities, Configuration, ControllerStatus, PropertyId, Shutdown, ShutdownState};
use crate::{
    Admin, Body, Command, Connect, ConnectAttributes, ConnectData, ConnectReply, Fabrics, Identify, Nqn, SetFeatures,
    Status,
};
use base::{Span, Time};

/// Time between two reads of a controller's state: our own.
const POLL: Span = Span::ms(10);

/// The steps of connecting, in order. All but Connect are on the admin queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// On any queue: the next step of its authentication.
    Connect,
    Negotiated,
    Challenged,
    Replied,
    Succeeded,
    Confirmed,
    Capabilities,
    Enable,
    AwaitReady,
    Identify,
    QueueCount,
    Events,
    ShutDown,
    AwaitShutDown,
}

/// Properties read so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) controller_id: u16,
    pub(super) capabilities: Option<Capabilities>,
    pub(super) controller: Option<Box<IdentifyController>>,
    /// `None` while unknown or without a limit.
    pub(super) transfer_bytes_max: Option<u32>,
    /// I/O queues that are wanted, and those that are connected.
    pub(super) io_queues: u16,
    pub(super) connected: u16,
    /// When the controller has to be ready.
    pub(super) ready_by: Option<Time>,
}

/// CC of a controller that can what `capabilities` say: the NVM command set where it has it, its
/// smallest page.
fn configuration(capabilities: Option<Capabilities>, shutdown: Shutdown) -> u64 {
    let (sets, page) = capabilities.map_or((1, 0), |known| (known.command_sets, known.page_min));
    // CAP.CSS: bit 0 NVM, bit 6 several, bit 7 none but admin; CC.CSS names them 0, 6 and 7.
    let command_set = match sets {
        sets if sets & 1 != 0 => 0,
        sets if sets & 1 << 6 != 0 => 6,
        sets if sets & 1 << 7 != 0 => 7,
        _ => 0,
    };
    let all = Configuration { enable: true, command_set, page, arbitration: 0, shutdown, sqe_size: 6, cqe_size: 4 };
    all.encode().into()
}

fn get(property: PropertyId) -> Fabrics {
    Fabrics::PropertyGet { offset: property.code(), size: property.size() }
}

fn set_configuration(value: u64) -> Fabrics {
    let property = PropertyId::Configuration;
    Fabrics::PropertySet { offset: property.code(), size: property.size(), value }
}

fn set_feature(feature: FeatureId, value: u32) -> Body {
    let arguments = [value, 0, 0, 0, 0];
    Body::Admin(Admin::SetFeatures(SetFeatures { feature: feature.code(), save: false, arguments }))
}

impl Initiator {
    /// A connection's parameters are agreed on: binds it to its queue.
    pub(super) fn connect_queue(&mut self, queue: u16) {
        let config = &self.config;
        let entries = if queue == 0 { config.admin_entries.max(2) } else { self.io_entries() };
        let attributes =
            if config.flow_control { ConnectAttributes::empty() } else { ConnectAttributes::NO_FLOW_CONTROL };
        let keep_alive_ms = if queue == 0 { config.keep_alive_ms } else { 0 };
        let connect = Connect { queue, size_minus_one: entries - 1, attributes, keep_alive_ms };
        let controller = if queue == 0 { ConnectData::DYNAMIC } else { self.setup.controller_id };
        let (host_id, subsystem, host) = (config.host_id, config.subsystem, config.host);
        let data = ConnectData { host_id, controller, subsystem, host };
        let payload = Payload::ToController(data.encode().to_vec());
        self.send(queue, Body::Fabrics(Fabrics::Connect(connect)), payload, Purpose::Step(Step::Connect));
    }

    fn io_entries(&self) -> u16 {
        let most = self.setup.capabilities.map_or(u16::MAX, |known| known.queue_size_max_minus_one.saturating_add(1));
        // MAXCMD 0 is not reported.
        let taken = self.setup.controller.as_ref().map_or(0, |known| known.commands_max);
        let taken = if taken == 0 { u16::MAX } else { taken };
        self.config.io_entries.min(most).min(taken).max(2)
    }

    /// Sends the command of a queue's step.
    pub(super) fn send_step(&mut self, queue: u16, body: Body, payload: Payload, step: Step) {
        self.send(queue, body, payload, Purpose::Step(step));
    }

    fn send(&mut self, queue: u16, body: Body, payload: Payload, purpose: Purpose) {
        let deadline = if purpose == Purpose::EventRequest { None } else { self.now.checked_add(self.config.timeout) };
        let Some(link) = self.links.get_mut(usize::from(queue)) else { return };
        if let Err(error) = link.send(Command::new(0, body), payload, purpose, deadline) {
            self.fail(InitiatorError::Queue { queue, error });
        }
    }

    /// Sends the command of a step.
    pub(super) fn take_step(&mut self, step: Step) {
        let (body, payload) = match step {
            Step::Connect | Step::Negotiated | Step::Challenged | Step::Replied | Step::Succeeded | Step::Confirmed => {
                return;
            }
            Step::Capabilities => (Body::Fabrics(get(PropertyId::Capabilities)), Payload::None),
            Step::Enable => (Body::Fabrics(self.configured(Shutdown::None)), Payload::None),
            Step::AwaitReady | Step::AwaitShutDown => (Body::Fabrics(get(PropertyId::Status)), Payload::None),
            Step::Identify => {
                let structure = IdentifyId::Controller.code();
                let asked = Identify { structure, controller: 0, specific_id: 0, command_set: 0 };
                (Body::Admin(Admin::Identify(asked)), Payload::ToHost(IDENTIFY_BYTES as u32))
            }
            Step::QueueCount => {
                let wanted = self.config.io_queues.max(1) - 1;
                let counts = QueueCounts { submission_minus_one: wanted, completion_minus_one: wanted };
                (set_feature(FeatureId::NumberOfQueues, counts.encode()), Payload::None)
            }
            Step::Events => (set_feature(FeatureId::AsynchronousEvents, self.event_mask().bits()), Payload::None),
            Step::ShutDown => (Body::Fabrics(self.configured(Shutdown::Normal)), Payload::None),
        };
        self.send(0, body, payload, Purpose::Step(step));
    }

    fn configured(&self, shutdown: Shutdown) -> Fabrics {
        set_configuration(configuration(self.setup.capabilities, shutdown))
    }

    /// All events that the controller supports.
    fn event_mask(&self) -> EventMask {
        self.setup.controller.as_ref().map_or(EventMask::empty(), |controller| controller.events)
    }

    /// A step was answered.
    pub(super) fn on_step(&mut self, queue: u16, step: Step, status: Status, result: u64, data: &[u8]) {
        if self.state == State::Over {
            return;
        }
        match step {
            _ if status.is_success() => {}
            Step::Events => {
                self.tolerate(Tolerance::NoEventMask);
                return self.after_events();
            }
            Step::ShutDown => {
                self.tolerate(Tolerance::NoShutdown);
                return self.become_shut_down();
            }
            _ => return self.fail(InitiatorError::Refused { what: name(step), status }),
        }
        if let Err(error) = self.after(queue, step, result, data) {
            self.fail(error);
        }
    }

    fn after(&mut self, queue: u16, step: Step, result: u64, data: &[u8]) -> Result<(), InitiatorError> {
        match step {
            Step::Connect => {
                let reply = ConnectReply::decode(result);
                if queue == 0 {
                    self.setup.controller_id = reply.controller;
                }
                if self.begin_authentication(queue, reply.authentication)? {
                    self.after_connect(queue);
                }
            }
            Step::Negotiated | Step::Challenged | Step::Replied | Step::Succeeded | Step::Confirmed => {
                if self.go_on_authenticating(queue, step, data)? {
                    self.after_connect(queue);
                }
            }
            Step::Capabilities => {
                let capabilities = Capabilities::decode(result)?;
                let span = Span::ms(u64::from(capabilities.ready_timeout_500_ms.max(1)) * 500);
                self.setup.ready_by = self.now.checked_add(span);
                self.setup.capabilities = Some(capabilities);
                self.take_step(Step::Enable);
            }
            Step::Enable => self.take_step(Step::AwaitReady),
            Step::AwaitReady => self.on_status(ControllerStatus::decode(result as u32)?)?,
            Step::Identify => self.on_identified(data)?,
            Step::QueueCount => self.on_queue_count(result as u32),
            Step::Events => self.after_events(),
            Step::ShutDown => self.take_step(Step::AwaitShutDown),
            Step::AwaitShutDown => self.on_shutdown(ControllerStatus::decode(result as u32)?),
        }
        Ok(())
    }

    /// A queue is connected, and its host is known.
    fn after_connect(&mut self, queue: u16) {
        if queue == 0 {
            self.take_step(Step::Capabilities);
        } else {
            self.on_queue_connected();
        }
    }

    fn on_status(&mut self, status: ControllerStatus) -> Result<(), InitiatorError> {
        if status.fatal {
            return Err(InitiatorError::Unusable("it reports a fatal status"));
        }
        if status.ready {
            self.take_step(Step::Identify);
        } else if self.setup.ready_by.is_some_and(|by| by <= self.now) {
            return Err(InitiatorError::Unusable("it does not become ready"));
        } else {
            self.poll = self.now.checked_add(POLL).map(|time| (time, Step::AwaitReady));
        }
        Ok(())
    }

    fn on_identified(&mut self, data: &[u8]) -> Result<(), InitiatorError> {
        let controller = IdentifyController::decode(data)?;
        let odd = self.odd(&controller)?;
        odd.into_iter().for_each(|what| self.tolerate(what));
        // MDTS counts in the smallest page, 4 KiB times a power of two; what passes 4 GiB is no
        // limit.
        let page = self.setup.capabilities.map_or(0, |known| known.page_min);
        let shift = 12 + u32::from(page) + u32::from(controller.transfer_max);
        let has_limit = controller.transfer_max > 0 && shift < 32;
        self.setup.transfer_bytes_max = has_limit.then(|| 1 << shift);
        self.setup.controller = Some(Box::new(controller));
        self.start_keep_alive();
        if is_discovery(&self.config.subsystem, &controller) || self.config.io_queues == 0 {
            self.choose_events();
        } else {
            self.take_step(Step::QueueCount);
        }
        Ok(())
    }

    /// Events are enabled if any are requested.
    fn choose_events(&mut self) {
        if self.config.event_requests > 0 { self.take_step(Step::Events) } else { self.after_events() }
    }

    /// What of a controller is otherwise than Linux, the strictest of hosts, insists on; an error
    /// where it cannot be used so.
    fn odd(&self, controller: &IdentifyController) -> Result<Vec<Tolerance>, InitiatorError> {
        let is_discovery = is_discovery(&self.config.subsystem, controller);
        let is_other = controller.controller != self.setup.controller_id;
        // I/O queues go to the controller that Connect named: one that calls itself otherwise may
        // be another's.
        if is_other && !is_discovery && controller.controller != 0 {
            return Err(InitiatorError::Unusable("its CNTLID is not the one of Connect"));
        }
        let has_sgls = controller.sgls.intersects(SglSupport::ANY_ALIGNMENT | SglSupport::DWORD_ALIGNMENT);
        let small = controller.command_capsule_16 < 4 || controller.response_capsule_16 < 1;
        let found = [
            (is_other, Tolerance::OtherControllerId),
            (self.config.keep_alive_ms > 0 && controller.keep_alive_100_ms == 0, Tolerance::NoKeepAlive),
            (!has_sgls, Tolerance::NoSgls),
            // Reserved of discovery controllers.
            (!is_discovery && (small || controller.in_capsule_offset_16 != 0), Tolerance::NoCapsuleData),
        ];
        Ok(found.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect())
    }

    fn on_queue_count(&mut self, granted: u32) {
        let granted = QueueCounts::decode(granted);
        let least = granted.submission_minus_one.min(granted.completion_minus_one).saturating_add(1);
        self.setup.io_queues = self.config.io_queues.min(least);
        self.choose_events();
    }

    /// Event requests are put, I/O queues are opened.
    fn after_events(&mut self) {
        let taken = self.setup.controller.as_ref().map_or(0, |known| u16::from(known.events_minus_one) + 1);
        for _ in 0..self.config.event_requests.min(taken) {
            self.request_event();
        }
        let in_capsule = self.setup.controller.as_ref().filter(|_| !self.tolerated.contains(&Tolerance::NoCapsuleData));
        let in_capsule = in_capsule.map_or(0, |known| known.in_capsule_bytes());
        let entries = u32::from(self.io_entries());
        for queue in 1..=self.setup.io_queues {
            let mut link = Link::new(queue, entries, &self.config);
            link.set_in_capsule_max(u32::try_from(in_capsule).unwrap_or(u32::MAX));
            self.links.push(link);
            self.actions.push_back(Action::Open(queue));
        }
        if self.setup.io_queues == 0 {
            self.become_ready();
        }
    }

    fn on_queue_connected(&mut self) {
        self.setup.connected += 1;
        if self.setup.connected == self.setup.io_queues {
            self.become_ready();
        }
    }

    fn become_ready(&mut self) {
        self.state = State::Ready;
        self.events.push_back(HostEvent::Ready { io_queues: self.setup.io_queues });
    }

    pub(super) fn request_event(&mut self) {
        self.send(0, Body::Admin(Admin::AsynchronousEvent), Payload::None, Purpose::EventRequest);
    }

    /// Half of the timeout, so that one that is late does not end the association.
    fn start_keep_alive(&mut self) {
        if self.config.keep_alive_ms > 0 && !self.tolerated.contains(&Tolerance::NoKeepAlive) {
            self.next_keep_alive = self.now.checked_add(Span::ms(u64::from(self.config.keep_alive_ms).div_ceil(2)));
        }
    }

    pub(super) fn keep_alive(&mut self) {
        self.start_keep_alive();
        self.send(0, Body::Admin(Admin::KeepAlive), Payload::None, Purpose::KeepAlive);
    }

    pub(super) fn become_shut_down(&mut self) {
        self.end();
        self.events.push_back(HostEvent::ShutDown);
    }

    fn on_shutdown(&mut self, status: ControllerStatus) {
        if status.shutdown == ShutdownState::Complete {
            self.become_shut_down();
        } else if self.shut_down_by.is_some_and(|by| by <= self.now) {
            self.fail(InitiatorError::Unusable("its shutdown does not end"));
        } else {
            self.poll = self.now.checked_add(POLL).map(|time| (time, Step::AwaitShutDown));
        }
    }
}

/// By its name, or as it calls itself under another.
fn is_discovery(subsystem: &Nqn, controller: &IdentifyController) -> bool {
    *subsystem == Nqn::discovery() || controller.kind == ControllerKind::Discovery
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Connect => "Connect",
        Step::Negotiated | Step::Challenged | Step::Replied | Step::Succeeded | Step::Confirmed => "authentication",
        Step::Capabilities => "reading CAP",
        Step::Enable => "setting CC.EN",
        Step::AwaitReady | Step::AwaitShutDown => "reading CSTS",
        Step::Identify => "Identify controller",
        Step::QueueCount => "Set Features 07h",
        Step::Events => "Set Features 0Bh",
        Step::ShutDown => "setting CC.SHN",
    }
}
