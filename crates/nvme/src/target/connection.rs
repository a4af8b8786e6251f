//! A connection: its state, input and output.

use crate::Status;
use crate::outgoing::Outgoing;
use crate::pdu::{ControllerData, Framing, Header, Limits, Reader, Receiver};
use crate::queue::{QueueShape, TargetQueue};
use crate::target::authentication::Authentication;
use crate::target::clock::Clock;
use crate::target::executor::Executor;
use crate::target::flight::{Flight, Transfer};
use crate::target::notice::{CloseReason, Notice, Observer, Tolerated};
use crate::target::{BlockRange, Channel, ConnectionId, PortId, TargetLimits};
use crate::transfer::{Tags, TargetRead};
use base::{Span, Time};
use std::collections::VecDeque;

/// In-capsule data of fabrics and admin commands (NVMe/TCP Transport 1.0, 3.4), and of any command
/// before Connect.
pub(super) const ADMIN_IN_CAPSULE: u32 = 8192;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Awaits ICReq.
    Initialize,
    /// Awaits Connect.
    Connect,
    /// A queue of a controller.
    Queue {
        /// The controller.
        controller: u16,
        /// The queue.
        queue: u16,
    },
    /// Another member of the group gets it.
    Leaving,
    /// It closes when its output is sent.
    Closing(CloseReason),
}

/// Destination of the data of the PDU that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// They are dropped.
    Discard,
    /// Of a capsule, for this command.
    Capsule { slot: u32 },
    /// Of H2CData, for this command, from this byte on.
    Data { slot: u32, offset: u32 },
}

/// Whether the next command has to be the second half of a fused pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fused {
    /// No.
    None,
    /// Of this one.
    First(u32),
    /// Of one that has failed already.
    Failed,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) port: PortId,
    pub(super) stage: Stage,
    /// The peer's identity by TLS.
    pub(super) channel: Option<Channel>,
    pub(super) reader: Reader,
    /// Framing of the output.
    pub(super) framing: Framing,
    /// Most open R2Ts of a command, by the host's limit and ours.
    pub(super) ready_open_max: u32,
    pub(super) incoming: Incoming,
    /// Outstanding commands by identifier. Before Connect a queue of two, so that commands are
    /// counted in one way.
    pub(super) queue: TargetQueue<u32>,
    /// State of the host's authentication, if it has to authenticate.
    pub(super) authentication: Option<Box<Authentication>>,
    /// Most commands that are carried out at a time.
    pub(super) commands_max: u32,
    /// Flow control is off: the last data may report success by a flag.
    pub(super) may_flag_success: bool,
    pub(super) tags: Tags<u32>,
    /// Commands that wait for the budget, in order.
    pub(super) parked: VecDeque<u32>,
    /// Fused state of the last command.
    pub(super) fused: Fused,
    /// Deviations from the specification so far, a bit each.
    pub(super) tolerated: u8,
    /// Bytes of data that commands and output hold.
    pub(super) charged: u64,
    pub(super) out: Outgoing,
    /// Time by which the handshake has to be over, or the next input has to come.
    pub(super) deadline: Option<Time>,
    /// Time by which the host has to read something of its output.
    pub(super) stall: Option<Time>,
    /// Whether it is in the list of active connections.
    pub(super) is_active: bool,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, port: PortId, limits: &TargetLimits) -> Self {
        let read = Limits { in_capsule_max: ADMIN_IN_CAPSULE, data_max: limits.host_data_max };
        Connection {
            id,
            port,
            stage: Stage::Initialize,
            channel: None,
            reader: Reader::new(Receiver::Controller, read),
            framing: Framing::INITIAL,
            ready_open_max: 1,
            incoming: Incoming::Discard,
            queue: TargetQueue::new(QueueShape::new(0, 1, true).expect("two entries are a queue")),
            authentication: None,
            commands_max: 1,
            may_flag_success: false,
            tags: Tags::new(0),
            parked: VecDeque::new(),
            fused: Fused::None,
            tolerated: 0,
            charged: 0,
            out: Outgoing::default(),
            deadline: None,
            stall: None,
            is_active: false,
        }
    }

    /// The number of its queue: 0 until Connect.
    pub(super) fn queue_id(&self) -> u16 {
        match self.stage {
            Stage::Queue { queue, .. } => queue,
            _ => 0,
        }
    }

    /// The controller of its queue.
    pub(super) fn controller(&self) -> Option<u16> {
        match self.stage {
            Stage::Queue { controller, .. } => Some(controller),
            _ => None,
        }
    }

    /// Whether the host has yet to authenticate.
    pub(super) fn has_to_prove(&self) -> bool {
        self.authentication.as_ref().is_some_and(|state| !state.is_proven())
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// Whether its host has not said who it is, or has yet to prove it.
    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.stage, Stage::Initialize | Stage::Connect) || self.has_to_prove() && !self.is_closing()
    }

    /// Why it closes when its deadline passes.
    pub(super) fn late_reason(&self) -> CloseReason {
        match self.stage {
            Stage::Queue { .. } if self.has_to_prove() => CloseReason::Authentication,
            Stage::Queue { .. } => CloseReason::Idle,
            _ => CloseReason::Handshake,
        }
    }

    /// Starts the time in which the host has to read something of its output.
    fn start_stall(&mut self, span: Span, clock: &mut Clock) {
        if self.stall.is_none() && !self.out.is_empty() {
            self.stall = clock.deadline(span);
        }
    }

    /// Forgets all commands, and returns their flights.
    pub(super) fn abandon(&mut self) -> Vec<u32> {
        self.parked.clear();
        (self.fused, self.incoming) = (Fused::None, Incoming::Discard);
        self.queue.abandon().into_iter().map(|(_, slot)| slot).collect()
    }

    /// A first half that has ended fails the second one.
    pub(super) fn leave_fused(&mut self, slot: u32) {
        if self.fused == Fused::First(slot) {
            self.fused = Fused::Failed;
        }
    }

    /// Charges `length` bytes of a command's data to the budget, if it has room.
    pub(super) fn charge(&mut self, flight: &mut Flight, length: u32, budget: u64) -> bool {
        let length = u64::from(length);
        let fits = self.charged + length <= budget;
        if fits {
            self.charged += length;
            flight.charged = length;
        }
        fits
    }

    /// Completes a command. Data that it read are in its buffer.
    pub(super) fn answer(&mut self, flight: &mut Flight, status: Status, result: u64, data_max: u32) {
        let is_read = matches!(flight.transfer, Transfer::Out(_)) && status.is_success();
        let was_flagged = is_read && self.send_data(flight, result, data_max);
        self.respond(flight.command.id, status, result, was_flagged);
    }

    /// Completes a command; `was_flagged`: its last data have reported success.
    fn respond(&mut self, id: u16, status: Status, result: u64, was_flagged: bool) {
        if was_flagged {
            self.queue.complete_by_flag(id).expect("a command is answered once");
        } else {
            let (_, completion) = self.queue.complete(id, status, result).expect("a command is answered once");
            self.out.push(self.framing, &Header::Response(completion));
        }
    }

    /// Sends the data of a read. Returns whether the flag of the last data completes the command.
    fn send_data(&mut self, flight: &mut Flight, result: u64, data_max: u32) -> bool {
        let payload = std::mem::take(&mut flight.buffer);
        // The buffer goes with the data: its charge ends when they are sent.
        let charged = std::mem::take(&mut flight.charged);
        let may_flag = self.may_flag_success && result == 0;
        let mut read = TargetRead::new(flight.command.id, payload.len() as u32, data_max, may_flag);
        let pieces = std::iter::from_fn(|| read.next_data()).map(Header::ControllerData);
        if let Some(buffer) = self.out.push_data(self.framing, pieces, payload) {
            (flight.buffer, flight.charged) = (buffer, charged);
        }
        !read.needs_response()
    }

    /// Completes a read whose data are lent. Its charge ends when they are sent.
    pub(super) fn answer_lent(&mut self, flight: &mut Flight, (range, length): (BlockRange, u32)) {
        flight.charged = 0;
        let id = flight.command.id;
        let data = ControllerData { command: id, offset: 0, length, is_last: true, is_success: self.may_flag_success };
        self.out.push_lent(self.framing, &Header::ControllerData(data), range);
        self.respond(id, Status::SUCCESS, 0, self.may_flag_success);
    }

    /// Whether the target takes bytes of the host.
    pub(super) fn takes_input(&self, limits: &TargetLimits) -> bool {
        !self.is_closing() && self.stage != Stage::Leaving && self.out.waiting_bytes() < limits.backlog_bytes_max
    }
}

/// All connections by index. A reused index has another use count, so that an identifier never
/// names a later connection.
#[derive(Debug)]
pub(super) struct Connections {
    places: Vec<Option<Box<Connection>>>,
    use_counts: Vec<u32>,
    free: Vec<u32>,
    /// Connections that have output or have to be closed, each once.
    active: VecDeque<ConnectionId>,
    /// All strangers, and some that are none any more, in the order in which they came.
    strangers: VecDeque<ConnectionId>,
    /// Connections that made room for others and are not closed yet.
    pub(super) displaced: usize,
    /// Time in which a host has to read something of its output.
    stall: Span,
    /// Whether deviations from the specification are refused.
    is_strict: bool,
}

impl Connections {
    pub(super) fn new(limits: &TargetLimits, is_strict: bool) -> Self {
        let (places, use_counts, free) = (Vec::new(), Vec::new(), Vec::new());
        let (active, strangers) = (VecDeque::new(), VecDeque::new());
        Connections { places, use_counts, free, active, strangers, displaced: 0, stall: limits.stall, is_strict }
    }

    /// Opens a connection, and returns its index.
    pub(super) fn open(&mut self, port: PortId, limits: &TargetLimits) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.use_counts.push(0);
            (self.places.len() - 1) as u32
        });
        let id = ConnectionId { index, use_count: self.use_counts[index as usize] };
        self.places[index as usize] = Some(Box::new(Connection::new(id, port, limits)));
        if self.strangers.len() >= 2 * self.places.len() {
            let mut strangers = std::mem::take(&mut self.strangers);
            strangers.retain(|id| self.is_stranger(*id));
            self.strangers = strangers;
        }
        self.strangers.push_back(id);
        index
    }

    fn is_stranger(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(Connection::is_stranger)
    }

    /// Takes out the stranger that came first.
    pub(super) fn next_stranger(&mut self) -> Option<u32> {
        loop {
            let id = self.strangers.pop_front()?;
            if self.is_stranger(id) {
                return Some(id.index);
            }
        }
    }

    /// Removes a connection, whose output is lost.
    pub(super) fn close(&mut self, index: u32, io: &mut Executor) {
        let Some(mut connection) = self.places[index as usize].take() else { return };
        self.displaced -= usize::from(connection.stage == Stage::Closing(CloseReason::Displaced));
        let freed = connection.out.clear(&mut io.pool);
        io.freed(freed);
        self.use_counts[index as usize] = self.use_counts[index as usize].wrapping_add(1);
        self.free.push(index);
    }

    /// Returns the index of `id`, or `None` if the connection is gone.
    pub(super) fn find(&self, id: ConnectionId) -> Option<u32> {
        let place = self.places.get(id.index as usize)?.as_ref()?;
        (place.id == id).then_some(id.index)
    }

    /// Returns the connection `id`, or `None` if it is gone.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.places.get(id.index as usize)?.as_deref().filter(|place| place.id == id)
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Those that count for the limit.
    pub(super) fn limited(&self) -> usize {
        self.count() - self.displaced
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        let open = self.places.iter().enumerate();
        open.filter_map(|(index, place)| place.as_deref().map(|connection| (index as u32, connection)))
    }

    /// The indexes of the connections that `is_it`.
    pub(super) fn indexes_of(&self, is_it: impl Fn(&Connection) -> bool) -> Vec<u32> {
        self.iter().filter(|(_, place)| is_it(place)).map(|(index, _)| index).collect()
    }

    /// The earliest deadline.
    pub(super) fn earliest_deadline(&self) -> Option<Time> {
        self.iter().flat_map(|(_, place)| [place.deadline, place.stall]).flatten().min()
    }

    /// Adds the connection to the active ones.
    pub(super) fn mark_active(&mut self, index: u32) {
        let id = self[index].id;
        if !std::mem::replace(&mut self[index].is_active, true) {
            self.active.push_back(id);
        }
    }

    /// A connection that has output or has to be closed; each once until it changes again.
    pub(super) fn next_active(&mut self) -> Option<ConnectionId> {
        loop {
            let id = self.active.pop_front()?;
            if let Some(index) = self.find(id) {
                self[index].is_active = false;
                return Some(id);
            }
        }
    }

    /// Appends a PDU without data to the output.
    pub(super) fn send(&mut self, index: u32, header: &Header, clock: &mut Clock) {
        let place = &mut self[index];
        place.out.push(place.framing, header);
        self.has_output(index, clock);
    }

    /// Something was appended to the output.
    pub(super) fn has_output(&mut self, index: u32, clock: &mut Clock) {
        let stall = self.stall;
        self[index].start_stall(stall, clock);
        self.mark_active(index);
    }

    /// The socket accepted `bytes` of the output. Returns whether that freed room for data.
    pub(super) fn transmitted(&mut self, index: u32, bytes: usize, io: &mut Executor, clock: &mut Clock) -> bool {
        let stall = self.stall;
        let place = &mut self[index];
        let freed = place.out.advance(bytes, &mut io.pool);
        place.charged -= freed.bytes;
        place.stall = None;
        place.start_stall(stall, clock);
        io.freed(freed);
        freed.bytes > 0
    }

    /// Whether a deviation from the specification is tolerated; reports each kind once a
    /// connection.
    pub(super) fn tolerates(&mut self, index: u32, what: Tolerated, observer: &mut Observer) -> bool {
        let is_strict = self.is_strict;
        let place = &mut self[index];
        if !is_strict && place.tolerated & what.bit() == 0 {
            place.tolerated |= what.bit();
            observer.notice(Notice::Tolerated { connection: place.id, what });
        }
        !is_strict
    }

    /// Drops the output: nothing of it will be sent.
    pub(super) fn drop_output(&mut self, index: u32, io: &mut Executor) {
        let place = &mut self[index];
        let freed = place.out.clear(&mut io.pool);
        (place.charged, place.stall) = (place.charged - freed.bytes, None);
        io.freed(freed);
        self.mark_active(index);
    }
}

impl std::ops::Index<u32> for Connections {
    type Output = Connection;
    fn index(&self, index: u32) -> &Connection {
        self.places[index as usize].as_ref().expect("an index is of a connection that is there")
    }
}

impl std::ops::IndexMut<u32> for Connections {
    fn index_mut(&mut self, index: u32) -> &mut Connection {
        self.places[index as usize].as_mut().expect("an index is of a connection that is there")
    }
}
