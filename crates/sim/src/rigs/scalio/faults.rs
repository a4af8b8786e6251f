//! Clients and the box stop and come back.
//!
//! A client that stops hears nothing until it goes on, and then everything at once, in order: a
//! paused process. One that never goes on is dead. A box that stops loses its memory, the work of
//! its cores and the writes of its drives. Of these writes some may be complete, and the rest is
//! missing. When it returns, its servers read their logs, and no client reaches a block before its
//! server has set it.

use super::asks::{Owner, Sent};
use super::build::server_config;
use super::inputs::ToClient;
use super::programs::Programs;
use super::{IoWork, Now, ScalioRig};
use crate::rigs::seat::Seat;
use base::{NodeId, Span, Stream};
use plan::FaultKind;
use scalio::{FlashOperation, MemoryOperation, Server, Token};

/// After so long without an acknowledgement an adapter gives up and says so. Ours: some retries of
/// a reliable connection.
pub const GIVE_UP: Span = Span::us(500);

/// A client's place.
#[derive(Clone, Debug, Default)]
struct ClientState {
    is_stopped: bool,
    /// What came meanwhile.
    held: Vec<(Owner, (Sent, ToClient))>,
    is_woken: bool,
}

/// The clients and the box: who has stopped.
#[derive(Clone, Debug)]
pub struct Liveness {
    clients: Vec<ClientState>,
    /// Whether the box has stopped.
    pub is_down: bool,
    /// Times that the box stopped: what was on its way then is of another life.
    pub life: u32,
    /// Blocks that no server has set since; none when it has never stopped.
    unset: Vec<bool>,
    /// Which writes survive.
    stream: Stream,
    lost: u64,
}

impl Liveness {
    /// So many clients and the box, up for the first time.
    pub fn new(clients: usize, stream: Stream) -> Liveness {
        let clients = vec![ClientState::default(); clients];
        Liveness { clients, is_down: false, life: 0, unset: Vec::new(), stream, lost: 0 }
    }

    /// Whether nobody reaches a block now; its server does, and sets it.
    pub fn is_unreachable(&mut self, block: u32, operation: &MemoryOperation<Token>) -> bool {
        if self.is_down {
            return true;
        }
        let Some(unset) = self.unset.get_mut(block as usize) else { return false };
        if matches!(operation, MemoryOperation::Reset { .. }) {
            *unset = false;
        }
        *unset
    }

    /// Writes that a stop has lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl ScalioRig {
    pub(super) fn fault(&mut self, place: u32, context: Now<'_, '_>) {
        let (node, goes_down) = match self.plan.faults[place as usize].kind {
            FaultKind::NodeDown { node } => (node, true),
            FaultKind::NodeUp { node } => (node, false),
            other => unreachable!("the plan has no {other:?} here"),
        };
        match (node == NodeId(self.plan.store.clients), goes_down) {
            (true, true) => self.stop_box(),
            (true, false) => self.start_box(context),
            (false, true) => self.state.clients[node.index()].is_stopped = true,
            (false, false) => self.start_client(node.0, context),
        }
    }

    /// What a client is told, unless it has stopped: then it is told later.
    pub(super) fn unless_stopped(
        &mut self,
        client: u32,
        owner: Owner,
        input: Option<(Sent, ToClient)>,
    ) -> Option<Option<(Sent, ToClient)>> {
        let state = &mut self.state.clients[client as usize];
        if !state.is_stopped {
            return Some(input);
        }
        match input {
            Some(input) => state.held.push((owner, input)),
            None => state.is_woken = true,
        }
        None
    }

    fn start_client(&mut self, client: u32, context: Now<'_, '_>) {
        let state = std::mem::take(&mut self.state.clients[client as usize]);
        for (owner, input) in state.held {
            self.run_client(client, owner, Some(input), context);
        }
        if state.is_woken {
            self.run_client(client, Owner::NOBODY, None, context);
        }
    }

    fn stop_box(&mut self) {
        self.state.is_down = true;
        self.state.life += 1;
    }

    fn start_box(&mut self, context: Now<'_, '_>) {
        if !std::mem::replace(&mut self.state.is_down, false) {
            return;
        }
        self.state.unset = vec![true; self.store.blocks as usize];
        let devices = self.plan.store.devices;
        let configs: Vec<_> = (0..devices)
            .map(|device| server_config(&self.plan, self.store.blocks, device, &self.store.preloaded))
            .collect();
        let mut begun: Vec<(u32, Vec<scalio::ServerOut<Token>>)> = Vec::new();
        if let Programs::Scalio { servers, .. } = &mut self.programs {
            servers.clear();
            for (device, config) in (0u32..).zip(configs) {
                let mut out = Vec::new();
                servers.push(Seat::new(Server::recover(config, &mut out)));
                begun.push((device, out));
            }
        }
        begun.into_iter().for_each(|(device, mut out)| self.obey_server(device, 0, &mut out, context));
    }

    /// A write that was on its way when the box stopped may be there, whole, or not at all.
    pub(super) fn io_is_lost(&mut self, device: u32, work: IoWork) {
        let IoWork::Operation(FlashOperation::Write { extent, content }) = work else { return };
        if self.state.stream.below(2) == 0 {
            self.store.devices[device as usize].put(extent.sector, content);
        } else {
            self.state.lost += 1;
        }
    }
}
