//! From a plan to the server.

use super::Server;
use super::software::Software;
use crate::rigs::blox::BuildError;
use crate::rigs::seat::Seat;
use base::Bytes;
use plan::sdirect::{Nic, SDirect};
use sdirect::{Engine, EngineConfig, Geometry};

/// The server of a plan.
pub(super) fn server(plan: &SDirect) -> Result<Server, BuildError> {
    if let Some(config) = plan.software {
        return Ok(Server::Software(Box::new(Software::new(config))));
    }
    let nic = plan.nic.ok_or_else(|| BuildError("a plan without software has a NIC's logic".into()))?;
    let engine = Engine::new(engine_config(plan, &nic)).map_err(BuildError::of)?;
    Ok(Server::Engine(Box::new(Seat::new(engine))))
}

fn engine_config(plan: &SDirect, nic: &Nic) -> EngineConfig {
    let geometry = Geometry { capacity: plan.capacity(), block: Bytes::kib(4) };
    EngineConfig {
        devices: vec![geometry; plan.machine.devices as usize],
        queue_depth: nic.queue_depth as u16,
        piece: nic.transfer_max.count() as u32,
        fifo: nic.fifo.count(),
        packet: plan.clients.packet.count() as u32,
        commands_max: nic.commands_max as usize,
        targets_max: plan.machine.devices.max(1) as usize,
        // A client that waits for so many answers has forgotten none of them.
        remembered: nic.commands_max as usize,
        grant_timeout: nic.grant_timeout,
        grants_max: nic.grants_max,
    }
}
