//! Connect, and what else all queues of a fabric understand.

use crate::log::TransportSecurity;
use crate::pdu::Limits;
use crate::queue::{QueueShape, TargetQueue};
use crate::target::config::PortConfig;
use crate::target::connection::{ADMIN_IN_CAPSULE, Stage};
use crate::target::controller::{Guest, Role};
use crate::target::notice::{CloseReason, Notice};
use crate::target::{Target, Tolerated};
use crate::transfer::Tags;
use crate::{CodecError, Connect, ConnectAttributes, ConnectData, ConnectRefusal, ConnectReply, Fabrics, Nqn, Status};
use base::Span;

/// Offsets in the entry of Connect (Base 2.0, 6.3).
const OFFSET_QUEUE: u16 = 42;
const OFFSET_SIZE: u16 = 44;
/// Bit 1 of what Connect's answer says of authentication: in-band, now (ATR).
const ASK_IN_BAND: u16 = 1 << 1;
/// Admin commands at a time that every host may have beside its event requests: Linux asks for a
/// queue of 32.
const ADMIN_COMMANDS: u32 = 32;

/// What a host is called that gives no name.
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

impl Target {
    pub(super) fn on_fabrics(&mut self, index: u32, slot: u32, fabrics: Fabrics) {
        match fabrics {
            Fabrics::Connect(connect) => self.on_connect(index, slot, connect),
            Fabrics::PropertyGet { offset, size } => self.on_property_get(index, slot, offset, size),
            Fabrics::PropertySet { offset, size, value } => self.on_property_set(index, slot, offset, size, value),
            Fabrics::Disconnect => {
                self.finish(slot, Status::SUCCESS, 0);
                self.close(index, CloseReason::Disconnected);
            }
            Fabrics::AuthenticationSend { .. } => self.on_authentication_send(index, slot),
            Fabrics::AuthenticationReceive { .. } => self.on_authentication_receive(index, slot),
        }
    }

    fn on_connect(&mut self, index: u32, slot: u32, connect: Connect) {
        let connected = self.connect_data(index, slot).and_then(|data| self.check_channel(index, &data).map(|()| data));
        let connected = connected.and_then(|data| match connect.queue {
            0 => self.connect_admin(index, &connect, &data),
            _ => self.connect_io(index, &connect, &data),
        });
        match connected {
            Ok(controller) => {
                self.open_queue(index, slot, &connect, controller);
                let is_asked = self.connections[index].authentication.is_some();
                let authentication = if is_asked { ASK_IN_BAND } else { 0 };
                self.finish(slot, Status::SUCCESS, ConnectReply { controller, authentication }.encode());
            }
            Err(refusal) => self.finish(slot, refusal.status, refusal.result),
        }
    }

    /// Connect's data. A host without a name gets one that says so, with which it comes in where
    /// all hosts may.
    fn connect_data(&mut self, index: u32, slot: u32) -> Result<ConnectData, Refusal> {
        let buffer = &mut self.flights[slot].buffer;
        let place = buffer.get_mut(usize::from(ConnectData::OFFSET_HOST)..ConnectData::BYTES);
        let is_nameless = place.is_some_and(|name| {
            let is_empty = name[0] == 0;
            if is_empty {
                name[..NAMELESS.len()].copy_from_slice(NAMELESS.as_bytes());
                name[NAMELESS.len()..].fill(0);
            }
            is_empty
        });
        if is_nameless && !self.tolerates(index, Tolerated::NoName) {
            return Err(invalid(ConnectData::OFFSET_HOST, true));
        }
        ConnectData::decode(&self.flights[slot].buffer).map_err(refused_field)
    }

    /// Who opened a secured connection has proved one host's name for one subsystem, and may use no
    /// other on it. A port that has to be secured takes nobody who has not.
    fn check_channel(&mut self, index: u32, data: &ConnectData) -> Result<(), Refusal> {
        let place = &self.connections[index];
        let is_plain = |port: &PortConfig| port.id == place.port && port.security == TransportSecurity::None;
        let is_right = match place.channel {
            Some(channel) => (channel.host, channel.subsystem) == (data.host, data.subsystem),
            None => self.ports.iter().any(is_plain),
        };
        if is_right {
            return Ok(());
        }
        let status = Status::CONNECT_INVALID_HOST.without_retry();
        self.notice(Notice::NotAllowed { host: data.host, subsystem: data.subsystem, status });
        Err(bare(status))
    }

    /// A host asks for a controller.
    fn connect_admin(&mut self, index: u32, connect: &Connect, data: &ConnectData) -> Result<u16, Refusal> {
        let guest = self.guest(index, data).inspect_err(|refusal| {
            let (host, subsystem, status) = (data.host, data.subsystem, refusal.status);
            self.notice(Notice::NotAllowed { host, subsystem, status });
        })?;
        if connect.size_minus_one == 0 {
            return Err(invalid(OFFSET_SIZE, false));
        }
        if data.controller != ConnectData::DYNAMIC {
            return Err(invalid(ConnectData::OFFSET_CONTROLLER, true));
        }
        self.check_crowd(data)?;
        let keep_alive = self.keep_alive_span(connect.keep_alive_ms);
        let opened = self.controllers.open(guest, index, &self.limits);
        let controller = opened.ok_or(bare(Status::CONNECT_BUSY))?;
        controller.keep_alive = keep_alive;
        controller.keep_alive(self.now);
        let (id, deadline) = (controller.id, controller.keep_alive_deadline);
        self.wake_by(deadline);
        let (connection, host_id) = (self.connections[index].id, data.host_id);
        let (host, subsystem) = (data.host, data.subsystem);
        self.notice(Notice::Connected { connection, host, host_id, subsystem, controller: id });
        Ok(id)
    }

    /// No host locks the others out.
    fn check_crowd(&mut self, data: &ConnectData) -> Result<(), Refusal> {
        let most = self.limits.controllers_per_host_max;
        if self.controllers.count_of(&data.host) < usize::from(most) {
            return Ok(());
        }
        self.notice(Notice::Crowded { host: data.host, subsystem: data.subsystem, most });
        Err(bare(Status::CONNECT_BUSY))
    }

    /// Who asks, if it may.
    fn guest(&self, index: u32, data: &ConnectData) -> Result<Guest, Refusal> {
        let port = self.connections[index].port;
        let role = if data.subsystem == Nqn::discovery() {
            Role::Discovery
        } else {
            let is_it = |at: &usize| {
                let config = &self.subsystems[*at].config;
                config.name == data.subsystem && config.ports.contains(&port)
            };
            let found = (0..self.subsystems.len()).find(is_it);
            let found = found.ok_or(invalid(ConnectData::OFFSET_SUBSYSTEM, true))?;
            if !self.subsystems[found].config.hosts.allows(&data.host) {
                return Err(bare(Status::CONNECT_INVALID_HOST.without_retry()));
            }
            Role::Storage(found)
        };
        Ok(Guest { role, port, host: data.host, host_id: data.host_id })
    }

    /// A timeout rounded up to our granularity (Base 2.0, 3.9); zero for none.
    pub(super) fn keep_alive_span(&self, milliseconds: u32) -> Span {
        let step = u64::from(self.limits.keep_alive_100_ms) * 100;
        Span::ms(u64::from(milliseconds).div_ceil(step) * step)
    }

    /// That an I/O queue is of the host whose controller it names.
    fn check_host(&mut self, index: u32, data: &ConnectData) -> Result<(), Refusal> {
        let controller = self.controllers.get(data.controller);
        let controller = controller.ok_or(invalid(ConnectData::OFFSET_CONTROLLER, true))?;
        let (is_host, is_id) = (controller.host == data.host, controller.host_id == data.host_id);
        if is_host && (is_id || self.tolerates(index, Tolerated::OtherHostId)) {
            return Ok(());
        }
        Err(bare(Status::CONNECT_INVALID_HOST.without_retry()))
    }

    /// A host asks for an I/O queue of its controller.
    fn connect_io(&mut self, index: u32, connect: &Connect, data: &ConnectData) -> Result<u16, Refusal> {
        let port = self.connections[index].port;
        self.check_host(index, data)?;
        let (limits, subsystems) = (&self.limits, &self.subsystems);
        let controller = self.controllers.get_mut(data.controller);
        let controller = controller.ok_or(invalid(ConnectData::OFFSET_CONTROLLER, true))?;
        let subsystem = controller.subsystem().map(|at| subsystems[at].config.name);
        if subsystem != Some(data.subsystem) {
            return Err(invalid(ConnectData::OFFSET_SUBSYSTEM, true));
        }
        if controller.port != port {
            return Err(invalid(ConnectData::OFFSET_CONTROLLER, true));
        }
        if connect.size_minus_one == 0 {
            return Err(invalid(OFFSET_SIZE, false));
        }
        if connect.queue > limits.io_queues_max {
            return Err(invalid(OFFSET_QUEUE, false));
        }
        let queue = usize::from(connect.queue);
        if !controller.is_ready() || controller.queues.get(queue).is_some_and(Option::is_some) {
            return Err(bare(Status::COMMAND_SEQUENCE.without_retry()));
        }
        controller.queues.resize(controller.queues.len().max(queue + 1), None);
        controller.queues[queue] = Some(index);
        let (connection, entries) = (self.connections[index].id, u32::from(connect.size_minus_one) + 1);
        self.notice(Notice::QueueConnected { connection, controller: data.controller, queue: connect.queue, entries });
        Ok(data.controller)
    }

    /// The connection is a queue from now on; Connect was its first command.
    fn open_queue(&mut self, index: u32, slot: u32, connect: &Connect, controller: u16) {
        let limits = self.limits;
        let asked = self.controllers.get(controller).and_then(|known| self.authentication_of(known));
        let place = &mut self.connections[index];
        let has_flow_control = !connect.attributes.contains(ConnectAttributes::NO_FLOW_CONTROL);
        let shape = QueueShape::new(connect.queue, connect.size_minus_one, has_flow_control);
        let id = self.flights[slot].command.id;
        place.queue = TargetQueue::new(shape.expect("a size of 0 was refused"));
        place.queue.receive(id, slot).expect("an empty queue takes a command");
        let (commands, in_capsule_max) = match connect.queue {
            0 => (ADMIN_COMMANDS + u32::from(limits.events_max), ADMIN_IN_CAPSULE),
            _ => (u32::from(limits.queue_entries_max), limits.in_capsule_bytes),
        };
        place.commands_max = commands;
        place.may_flag_success = !has_flow_control;
        place.tags = Tags::new((commands * place.ready_open_max).min(Tags::<u32>::CAPACITY_MAX.into()) as u16);
        place.reader.set_limits(Limits { in_capsule_max, data_max: limits.host_data_max });
        (place.stage, place.deadline) = (Stage::Queue { controller, queue: connect.queue }, None);
        place.authentication = asked;
        if place.authentication.is_some() {
            self.set_deadline(index, limits.handshake);
        }
        self.refresh_idle(index);
    }

    /// The controller is gone, with all of its connections.
    pub(super) fn end_controller(&mut self, id: u16, reason: CloseReason) {
        let Some(controller) = self.controllers.end(id) else { return };
        self.notice(Notice::ControllerGone { controller: id, host: controller.host, reason });
        for index in controller.queues.into_iter().flatten() {
            self.close(index, reason);
            // A host that is silent reads nothing either: what waits for it would keep the
            // connection.
            if reason == CloseReason::KeepAlive {
                self.drop_output(index);
            }
        }
    }
}

/// Where a field of Connect's data stands.
fn refused_field(error: CodecError) -> Refusal {
    let offset = match error {
        CodecError::Field { field: "subsystem", .. } => ConnectData::OFFSET_SUBSYSTEM,
        CodecError::Field { field: "host", .. } => ConnectData::OFFSET_HOST,
        _ => 0,
    };
    invalid(offset, true)
}
