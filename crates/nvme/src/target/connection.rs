//! One connection: how far it is, what it is reading, what it has to send.

use crate::outgoing::Outgoing;
use crate::pdu::{Framing, Limits, Reader, Receiver};
use crate::queue::{QueueShape, TargetQueue};
use crate::target::authentication::Authentication;
use crate::target::notice::CloseReason;
use crate::target::{Channel, ConnectionId, PortId, TargetLimits};
use crate::transfer::Tags;
use base::Time;
use std::collections::VecDeque;

/// In-capsule data of fabrics and admin commands (NVMe/TCP Transport 1.0, 3.4): also before Connect
/// has said which queue it is.
pub(super) const ADMIN_IN_CAPSULE: u32 = 8192;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// ICReq has to come.
    Initialize,
    /// Connect has to come.
    Connect,
    /// A queue of a controller.
    Queue {
        /// The controller.
        controller: u16,
        /// The queue.
        queue: u16,
    },
    /// It ends; what is left is sent.
    Closing(CloseReason),
}

/// What to do with the data of the PDU that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// Nobody wants them.
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
    /// Whose it is, where it is secured.
    pub(super) channel: Option<Channel>,
    pub(super) reader: Reader,
    /// How what is sent is framed.
    pub(super) framing: Framing,
    /// R2Ts of a command that may be open: the host's limit and ours.
    pub(super) ready_open_max: u32,
    pub(super) incoming: Incoming,
    /// Commands of the queue by their id. Before Connect a queue of two, so that there is one way
    /// to count commands.
    pub(super) queue: TargetQueue<u32>,
    /// How the host proves itself, if it has to.
    pub(super) authentication: Option<Box<Authentication>>,
    /// Commands that are carried out at a time.
    pub(super) commands_max: u32,
    /// Flow control is off: success may be a flag of the last data.
    pub(super) may_flag_success: bool,
    pub(super) tags: Tags<u32>,
    /// Commands that wait for the budget, in order.
    pub(super) parked: VecDeque<u32>,
    /// What the last command was to the next.
    pub(super) fused: Fused,
    /// What was tolerated so far, a bit each.
    pub(super) tolerated: u8,
    /// Bytes of data that commands and answers hold.
    pub(super) charged: u64,
    pub(super) out: Outgoing,
    /// When the handshake, or the silence, has lasted too long.
    pub(super) deadline: Option<Time>,
    /// When the host has left what waits for it for too long.
    pub(super) stall: Option<Time>,
    /// Whether it stands in the list of those that have something for the caller.
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

    /// The queue that it carries: 0 until Connect says another.
    pub(super) fn queue_id(&self) -> u16 {
        match self.stage {
            Stage::Queue { queue, .. } => queue,
            _ => 0,
        }
    }

    /// The controller whose queue it carries.
    pub(super) fn controller(&self) -> Option<u16> {
        match self.stage {
            Stage::Queue { controller, .. } => Some(controller),
            _ => None,
        }
    }

    /// Whether the host has yet to prove who it is.
    pub(super) fn has_to_prove(&self) -> bool {
        self.authentication.as_ref().is_some_and(|state| !state.is_proven())
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// Whether bytes of the host are taken.
    pub(super) fn takes_input(&self, limits: &TargetLimits) -> bool {
        !self.is_closing() && self.out.waiting_bytes() < limits.backlog_bytes_max
    }
}

/// All of them, by index; a place changes its count with every use.
#[derive(Debug, Default)]
pub(super) struct Connections {
    places: Vec<Option<Box<Connection>>>,
    use_counts: Vec<u32>,
    free: Vec<u32>,
}

impl Connections {
    pub(super) fn open(&mut self, port: PortId, limits: &TargetLimits) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.use_counts.push(0);
            (self.places.len() - 1) as u32
        });
        let id = ConnectionId { index, use_count: self.use_counts[index as usize] };
        self.places[index as usize] = Some(Box::new(Connection::new(id, port, limits)));
        index
    }

    pub(super) fn close(&mut self, index: u32) -> Option<Box<Connection>> {
        let connection = self.places[index as usize].take()?;
        self.use_counts[index as usize] = self.use_counts[index as usize].wrapping_add(1);
        self.free.push(index);
        Some(connection)
    }

    /// The index of a connection that is there.
    pub(super) fn find(&self, id: ConnectionId) -> Option<u32> {
        let place = self.places.get(id.index as usize)?.as_ref()?;
        (place.id == id).then_some(id.index)
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        let there = self.places.iter().enumerate();
        there.filter_map(|(index, place)| place.as_deref().map(|connection| (index as u32, connection)))
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
