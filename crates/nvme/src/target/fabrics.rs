//! Fabrics commands: Connect, properties, authentication, Disconnect.

use crate::pdu::Limits;
use crate::property::Configuration;
use crate::queue::{QueueShape, TargetQueue};
use crate::target::authentication::AuthenticationEvent;
use crate::target::connection::{ADMIN_IN_CAPSULE, Connection, Stage};
use crate::target::controller::{Controller, Guest, Role};
use crate::target::flight::Own;
use crate::target::group::{Elsewhere, Member};
use crate::target::io::IoOperation;
use crate::target::notice::{AuthenticationFault, CloseReason, Notice};
use crate::target::properties::{self, ControllerEvent};
use crate::target::subsystem::Subsystem;
use crate::target::{PortId, Target, TargetLimits, Tolerated};
use crate::transfer::Tags;
use crate::{CodecError, Connect, ConnectAttributes, ConnectData, ConnectRefusal, ConnectReply, Fabrics, Nqn, Status};
use base::Span;

/// Offsets in the entry of Connect (Base 2.0, 6.3).
const OFFSET_QUEUE: u16 = 42;
const OFFSET_SIZE: u16 = 44;
/// Bit 1 of Connect's AUTHREQ: in-band authentication is required now (ATR).
const ASK_IN_BAND: u16 = 1 << 1;
/// Admin commands at a time that every host may have beside its event requests: Linux asks for a
/// queue of 32.
const ADMIN_COMMANDS: u32 = 32;

/// The name of a host that gives none.
const NAMELESS: &str = "nqn.2026-11.io.rackweave:host-without-a-name";

/// Why Connect is refused.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    status: Status,
    result: u64,
}

/// A field of the entry or of the data is wrong.
fn invalid(offset: u16, is_in_data: bool) -> Refusal {
    let status = Status::CONNECT_INVALID_PARAMETERS.without_retry();
    Refusal { status, result: ConnectRefusal { offset, is_in_data }.encode() }
}

fn bare(status: Status) -> Refusal {
    Refusal { status, result: 0 }
}

impl Guest {
    /// The host that `data` names, at the subsystem that it names, if it may connect by `port`.
    fn of(data: &ConnectData, port: PortId, subsystems: &[Subsystem]) -> Result<Guest, Refusal> {
        let role = if data.subsystem == Nqn::discovery() {
            Role::Discovery
        } else {
            let is_it = |known: &Subsystem| known.config.name == data.subsystem && known.config.ports.contains(&port);
            let found = subsystems.iter().position(is_it);
            let found = found.ok_or(invalid(ConnectData::OFFSET_SUBSYSTEM, true))?;
            if !subsystems[found].config.hosts.allows(&data.host) {
                return Err(bare(Status::CONNECT_INVALID_HOST.without_retry()));
            }
            Role::Storage(found)
        };
        Ok(Guest { role, port, host: data.host, host_id: data.host_id })
    }
}

impl Controller {
    /// Takes a connection of `port` as the I/O queue that `connect` asks for.
    fn take_queue(
        &mut self,
        index: u32,
        port: PortId,
        connect: &Connect,
        limits: &TargetLimits,
    ) -> Result<(), Refusal> {
        if self.port != port {
            return Err(invalid(ConnectData::OFFSET_CONTROLLER, true));
        }
        if connect.size_minus_one == 0 {
            return Err(invalid(OFFSET_SIZE, false));
        }
        if connect.queue > limits.io_queues_max {
            return Err(invalid(OFFSET_QUEUE, false));
        }
        let queue = usize::from(connect.queue);
        if !self.is_ready() || self.queues.get(queue).is_some_and(Option::is_some) {
            return Err(bare(Status::COMMAND_SEQUENCE.without_retry()));
        }
        self.queues.resize(self.queues.len().max(queue + 1), None);
        self.queues[queue] = Some(index);
        Ok(())
    }
}

impl Connection {
    /// Becomes a queue of `controller`. Connect, of this identifier and flight, is its first
    /// command.
    fn become_queue(&mut self, controller: u16, connect: &Connect, (id, slot): (u16, u32), limits: &TargetLimits) {
        let has_flow_control = !connect.attributes.contains(ConnectAttributes::NO_FLOW_CONTROL);
        let shape = QueueShape::new(connect.queue, connect.size_minus_one, has_flow_control);
        self.queue = TargetQueue::new(shape.expect("a size of 0 was refused"));
        self.queue.receive(id, slot).expect("an empty queue takes a command");
        let (commands, in_capsule_max) = match connect.queue {
            0 => (ADMIN_COMMANDS + u32::from(limits.events_max), ADMIN_IN_CAPSULE),
            _ => (u32::from(limits.queue_entries_max), limits.in_capsule_bytes),
        };
        self.commands_max = commands;
        self.may_flag_success = !has_flow_control;
        self.tags = Tags::new((commands * self.ready_open_max).min(Tags::<u32>::CAPACITY_MAX.into()) as u16);
        self.reader.set_limits(Limits { in_capsule_max, data_max: limits.host_data_max });
        (self.stage, self.deadline) = (Stage::Queue { controller, queue: connect.queue }, None);
    }
}

/// A keep-alive timeout rounded up to the granularity (Base 2.0, 3.9); zero for none.
pub(super) fn keep_alive_span(milliseconds: u32, limits: &TargetLimits) -> Span {
    let step = u64::from(limits.keep_alive_100_ms) * 100;
    Span::ms(u64::from(milliseconds).div_ceil(step) * step)
}

impl Target {
    pub(super) fn on_fabrics(&mut self, index: u32, slot: u32, fabrics: Fabrics) {
        match fabrics {
            Fabrics::Connect(connect) => self.on_connect(index, slot, connect, None),
            Fabrics::PropertyGet { offset, size } => {
                let limits = &self.limits;
                let controller = self.connections[index].controller().and_then(|id| self.controllers.get(id));
                match controller.and_then(|controller| controller.property(offset, size, limits)) {
                    Some(value) => self.finish(slot, Status::SUCCESS, value),
                    None => self.finish(slot, properties::INVALID, 0),
                }
            }
            Fabrics::PropertySet { offset, size, value } => match properties::wanted(offset, size, value) {
                Some(wanted) => {
                    self.configure(index, wanted);
                    self.finish(slot, Status::SUCCESS, 0);
                }
                None => self.finish(slot, properties::INVALID, 0),
            },
            Fabrics::Disconnect => {
                self.finish(slot, Status::SUCCESS, 0);
                self.close(index, CloseReason::Disconnected);
            }
            Fabrics::AuthenticationSend { .. } => self.on_authentication_send(index, slot),
            Fabrics::AuthenticationReceive { .. } => self.on_authentication_receive(index, slot),
        }
    }

    /// Carries out Connect, or has another member of the group do it. `decided` is the controller
    /// where the first member has decided.
    pub(super) fn on_connect(&mut self, index: u32, slot: u32, connect: Connect, decided: Option<u16>) {
        let data = self.connect_data(index, slot).and_then(|data| self.check_channel(index, &data).map(|()| data));
        let seated = data.and_then(|data| self.seat(index, &connect, &data, decided).map(|seat| (data, seat)));
        let connected = seated.and_then(|(data, (member, id))| match (connect.queue, id) {
            _ if member != self.group.own => Ok(Err((member, id))),
            (0, Some(id)) => self.connect_admin(index, id, &connect, &data).map(Ok),
            _ => self.connect_io(index, &connect, &data).map(Ok),
        });
        match connected {
            Ok(Ok(controller)) => {
                self.open_queue(index, slot, &connect, controller);
                let is_asked = self.connections[index].authentication.is_some();
                let authentication = if is_asked { ASK_IN_BAND } else { 0 };
                self.finish(slot, Status::SUCCESS, ConnectReply { controller, authentication }.encode());
            }
            Ok(Err((member, id))) => self.hand_over(index, slot, (member, id), connect),
            Err(refusal) => {
                let unused = decided.filter(|_| connect.queue == 0);
                unused.into_iter().for_each(|id| self.tell_ended(id));
                self.finish(slot, refusal.status, refusal.result);
            }
        }
    }

    /// The member that carries out a Connect, and the controller, if it is known. The first member
    /// decides, and gives a new controller its number.
    fn seat(
        &mut self,
        index: u32,
        connect: &Connect,
        data: &ConnectData,
        decided: Option<u16>,
    ) -> Result<(Member, Option<u16>), Refusal> {
        let own = self.group.own;
        if decided.is_some() {
            return Ok((own, decided));
        }
        if !self.group.is_first() {
            return Ok((Member::FIRST, None));
        }
        if connect.queue != 0 {
            let is_elsewhere = self.group.elsewhere.contains_key(&data.controller);
            let member = if is_elsewhere { self.group.member_of(data.controller) } else { own };
            return Ok((member, Some(data.controller)));
        }
        let guest = self.guest(index, connect, data)?;
        // No host locks the others out.
        let (host, limits) = (data.host, &self.limits);
        let most = limits.controllers_per_host_max;
        if self.controllers.count_of(&host) + self.group.count_of(&host) >= usize::from(most) {
            self.observer.notice(Notice::Crowded { host, subsystem: data.subsystem, most });
            return Err(bare(Status::CONNECT_BUSY));
        }
        let count = self.controllers.count() + self.group.elsewhere.len();
        let (group, has_room) = (&self.group, count < usize::from(limits.controllers_max));
        let member = group.least(self.controllers.count());
        let is_free = |id| group.member_of(id) == member && !group.elsewhere.contains_key(&id);
        let id = has_room.then(|| self.controllers.next_id(is_free)).flatten();
        let id = id.ok_or(bare(Status::CONNECT_BUSY))?;
        let subsystem = matches!(guest.role, Role::Storage(_)).then_some(data.subsystem);
        self.group.opened(id, Elsewhere { host, host_id: data.host_id, subsystem });
        Ok((member, Some(id)))
    }

    /// Connect's data. A host without a name gets one that says so, with which it may connect where
    /// all hosts may.
    fn connect_data(&mut self, index: u32, slot: u32) -> Result<ConnectData, Refusal> {
        let buffer = &mut self.io.flights[slot].buffer;
        let place = buffer.get_mut(usize::from(ConnectData::OFFSET_HOST)..ConnectData::BYTES);
        if let Some(name) = place.filter(|name| name[0] == 0) {
            if !self.connections.tolerates(index, Tolerated::NoName, &mut self.observer) {
                return Err(invalid(ConnectData::OFFSET_HOST, true));
            }
            name[..NAMELESS.len()].copy_from_slice(NAMELESS.as_bytes());
            name[NAMELESS.len()..].fill(0);
        }
        ConnectData::decode(&self.io.flights[slot].buffer).map_err(refused_field)
    }

    /// A pre-shared key proves one host's name for one subsystem, and no other on this connection.
    /// A port with TLS takes no host without a key.
    fn check_channel(&mut self, index: u32, data: &ConnectData) -> Result<(), Refusal> {
        let place = &self.connections[index];
        let is_right = match place.channel {
            Some(channel) => (channel.host, channel.subsystem) == (data.host, data.subsystem),
            None => self.ports.is_plain(place.port),
        };
        if is_right {
            return Ok(());
        }
        let status = Status::CONNECT_INVALID_HOST.without_retry();
        self.observer.notice(Notice::NotAllowed { host: data.host, subsystem: data.subsystem, status });
        Err(bare(status))
    }

    /// The host of a Connect that asks for a controller, if it may have one.
    fn guest(&mut self, index: u32, connect: &Connect, data: &ConnectData) -> Result<Guest, Refusal> {
        let (host, subsystem) = (data.host, data.subsystem);
        let guest = Guest::of(data, self.connections[index].port, &self.subsystems);
        let guest = guest.inspect_err(|refusal| {
            self.observer.notice(Notice::NotAllowed { host, subsystem, status: refusal.status });
        })?;
        if connect.size_minus_one == 0 {
            return Err(invalid(OFFSET_SIZE, false));
        }
        if data.controller != ConnectData::DYNAMIC {
            return Err(invalid(ConnectData::OFFSET_CONTROLLER, true));
        }
        Ok(guest)
    }

    /// A host gets the controller `id`.
    fn connect_admin(&mut self, index: u32, id: u16, connect: &Connect, data: &ConnectData) -> Result<u16, Refusal> {
        let (host, subsystem, host_id) = (data.host, data.subsystem, data.host_id);
        let guest = self.guest(index, connect, data)?;
        let controller = self.controllers.open(id, guest, index, &self.limits);
        let keep_alive = keep_alive_span(connect.keep_alive_ms, &self.limits);
        self.clock.wake_by(controller.set_keep_alive(keep_alive, self.clock.now()));
        let connection = self.connections[index].id;
        self.observer.notice(Notice::Connected { connection, host, host_id, subsystem, controller: id });
        Ok(id)
    }

    /// A host asks for an I/O queue of its controller.
    fn connect_io(&mut self, index: u32, connect: &Connect, data: &ConnectData) -> Result<u16, Refusal> {
        let controller = self.controllers.get_mut(data.controller);
        let controller = controller.ok_or(invalid(ConnectData::OFFSET_CONTROLLER, true))?;
        let is_id = controller.host_id == data.host_id;
        if controller.host != data.host
            || !(is_id || self.connections.tolerates(index, Tolerated::OtherHostId, &mut self.observer))
        {
            return Err(bare(Status::CONNECT_INVALID_HOST.without_retry()));
        }
        let subsystem = controller.subsystem().map(|at| self.subsystems[at].config.name);
        if subsystem != Some(data.subsystem) {
            return Err(invalid(ConnectData::OFFSET_SUBSYSTEM, true));
        }
        let place = &self.connections[index];
        controller.take_queue(index, place.port, connect, &self.limits)?;
        let (connection, entries) = (place.id, u32::from(connect.size_minus_one) + 1);
        let (controller, queue) = (data.controller, connect.queue);
        self.observer.notice(Notice::QueueConnected { connection, controller, queue, entries });
        Ok(controller)
    }

    /// The connection is a queue from now on.
    fn open_queue(&mut self, index: u32, slot: u32, connect: &Connect, id: u16) {
        let place = &mut self.connections[index];
        let command = self.io.flights[slot].command.id;
        place.become_queue(id, connect, (command, slot), &self.limits);
        let controller = self.controllers.get(id);
        let subsystem = controller.and_then(|known| known.subsystem()).map(|at| &self.subsystems[at]);
        let host = controller.map(|known| known.host);
        place.authentication = subsystem.zip(host).and_then(|(known, host)| known.authentication_of(&host));
        if place.authentication.is_some() {
            place.deadline = self.clock.deadline(self.limits.handshake);
        }
        self.refresh_idle(index);
    }

    fn configure(&mut self, index: u32, wanted: Configuration) {
        let is_set_tolerated = match wanted.command_set {
            properties::ALL_COMMAND_SETS if wanted.enable => {
                self.connections.tolerates(index, Tolerated::CommandSets, &mut self.observer)
            }
            set => set == 0,
        };
        let now = self.clock.now();
        let Some(controller) = self.controller_of(index) else { return };
        let id = controller.id;
        let events = controller.configure(wanted, is_set_tolerated && properties::fits(&wanted), now);
        events.into_iter().for_each(|event| self.on_controller_event(id, event));
    }

    fn on_controller_event(&mut self, id: u16, event: ControllerEvent) {
        match event {
            ControllerEvent::Enabled => {
                let deadline = self.controllers.get(id).and_then(|controller| controller.keep_alive_deadline);
                self.clock.wake_by(deadline);
            }
            ControllerEvent::Reset { queues, requests } => {
                queues.into_iter().for_each(|index| self.close(index, CloseReason::Reset));
                requests.into_iter().for_each(|slot| self.finish(slot, Status::ABORT_REQUESTED, 0));
            }
            ControllerEvent::ShutdownRequested => self.flush_for_shutdown(id),
        }
    }

    /// A shutdown is complete when everything that was written would survive a power loss.
    fn flush_for_shutdown(&mut self, id: u16) {
        let Some(controller) = self.controllers.get_mut(id) else { return };
        let subsystem = controller.subsystem().map(|at| &self.subsystems[at]);
        let backends = subsystem.map(Subsystem::volatile_backends).unwrap_or_default();
        if backends.is_empty() {
            return controller.shutdown_done();
        }
        let slot = self.io.flights.open_own(self.clock.now(), Own::Shutdown(id));
        backends.into_iter().for_each(|backend| self.io.request(slot, backend, 0, IoOperation::Flush));
    }

    /// The controller is gone, with all of its connections.
    pub(super) fn end_controller(&mut self, id: u16, reason: CloseReason) {
        let Some(controller) = self.controllers.end(id) else { return };
        self.observer.notice(Notice::ControllerGone { controller: id, host: controller.host, reason });
        self.tell_ended(id);
        for index in controller.queues.into_iter().flatten() {
            self.close(index, reason);
            // A host that is silent reads nothing either: its output would keep the connection.
            if reason == CloseReason::KeepAlive {
                self.connections.drop_output(index, &mut self.io);
            }
        }
    }

    /// Names of host and subsystem of a connection, and the subsystem's index.
    pub(super) fn names_of(&self, index: u32) -> Option<(Nqn, Nqn, usize)> {
        let controller = self.controllers.get(self.connections[index].controller()?)?;
        let at = controller.subsystem()?;
        Some((controller.host, self.subsystems[at].config.name, at))
    }

    fn on_authentication_send(&mut self, index: u32, slot: u32) {
        let Some((host, _, at)) = self.names_of(index) else { return };
        self.challenges += 1;
        let at_time = (self.clock.now(), self.challenges);
        let place = &mut self.connections[index];
        let Some(state) = &mut place.authentication else { return };
        let event = self.subsystems[at].hear(state, &self.io.flights[slot].buffer, host, at_time);
        let status = if event == AuthenticationEvent::Busy { Status::INTERRUPTED } else { Status::SUCCESS };
        self.on_authentication_event(index, event);
        self.finish(slot, status, 0);
        self.end_authentication(index, event);
    }

    /// The host fetches a message.
    fn on_authentication_receive(&mut self, index: u32, slot: u32) {
        let Some(state) = &mut self.connections[index].authentication else { return };
        let Some((message, event)) = state.give() else {
            return self.finish(slot, Status::COMMAND_SEQUENCE.without_retry(), 0);
        };
        let bytes = message.encode();
        if bytes.len() > self.io.flights[slot].buffer.len() {
            return self.finish(slot, Status::INVALID_FIELD.without_retry(), 0);
        }
        self.on_authentication_event(index, event);
        self.reply(slot, Ok(bytes));
        self.end_authentication(index, event);
    }

    /// Handles an event of an authentication, before the command that caused it is completed.
    fn on_authentication_event(&mut self, index: u32, event: AuthenticationEvent) {
        let Some((host, subsystem, at)) = self.names_of(index) else { return };
        let place = &mut self.connections[index];
        match event {
            AuthenticationEvent::Refused(reason) => {
                place.deadline = self.clock.deadline(self.limits.handshake);
                let why = AuthenticationFault::Refused(reason);
                self.observer.authentication_failed(place.id, (host, subsystem), why);
            }
            AuthenticationEvent::Passed => {
                let Some(state) = &mut place.authentication else { return };
                state.pass();
                self.subsystems[at].passed(state);
                place.deadline = None;
                self.refresh_idle(index);
            }
            AuthenticationEvent::Ended(_) | AuthenticationEvent::Continues | AuthenticationEvent::Busy => {}
        }
    }

    /// Closes the connection behind the answer of an authentication that has ended.
    fn end_authentication(&mut self, index: u32, event: AuthenticationEvent) {
        let AuthenticationEvent::Ended(reason) = event else { return };
        let place = &self.connections[index];
        let is_refused = place.authentication.as_ref().is_some_and(|state| state.is_refused());
        if let (Some((host, subsystem, _)), false) = (self.names_of(index), is_refused) {
            let why = AuthenticationFault::HostEnded(reason);
            self.observer.authentication_failed(place.id, (host, subsystem), why);
        }
        self.close(index, CloseReason::Authentication);
    }
}

/// The offset of a field of Connect's data.
fn refused_field(error: CodecError) -> Refusal {
    let offset = match error {
        CodecError::Field { field: "subsystem", .. } => ConnectData::OFFSET_SUBSYSTEM,
        CodecError::Field { field: "host", .. } => ConnectData::OFFSET_HOST,
        _ => 0,
    };
    invalid(offset, true)
}
