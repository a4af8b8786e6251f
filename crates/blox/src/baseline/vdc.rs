//! Virtual datacenters (Angel et al., "End-to-end performance isolation through virtual
//! datacenters", OSDI'14; RackBlox, 4.1): a controller measures the demand of every flow and
//! assigns each a rate, which its client enforces with a token bucket.
//!
//! From the VDC paper: the central controller, virtual request cost, periodic measurement of
//! demand, max-min fair rates over several resources, enforcement at the hosts. RackBlox publishes
//! neither its period nor its costs, so both are named parameters. Ours: one tenant per flow;
//! capacities are given, not estimated; a flow is one client's requests to one volume; unused
//! capacity is distributed equally on top, so that a flow that starts or grows is not limited to
//! its last period's demand.

use super::ControllerOut;
use super::fair::{Problem, Usage};
use crate::id::VssdId;
use crate::packet::{Body, ControlMessage, Packet};
use base::{Bytes, NodeId, Program, Rate, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What the controller knows of its rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VdcConfig {
    /// The controller's own address.
    pub node: NodeId,
    /// Clients have the addresses below this; reports from others are refused.
    pub clients: u32,
    /// Rates are computed from the demand of this long, this often. Not zero.
    pub period: Span,
    /// Cost units of a write at a device; a read costs one. Not zero.
    pub write_cost: u32,
    /// What a message with a page takes on a link.
    pub page_message: Bytes,
    /// The links of this rack's servers. Any other server is in another rack.
    pub links: Vec<Link>,
    /// The devices of this rack. A vSSD that is on none has no limit of its own.
    pub devices: Vec<Device>,
    /// The volumes of this rack.
    pub volumes: Vec<Volume>,
}

/// A server's link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The owner.
    pub server: NodeId,
    /// In each direction.
    pub rate: Rate,
}

/// What serves one hardware-isolated vSSD, or several that share channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Cost units that it can serve a second.
    pub units_per_second: u64,
    /// The vSSDs on it.
    pub vssds: Vec<VssdId>,
}

/// A replicated volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its replicas by rank: the first serves reads and coordinates writes, which go on to the
    /// others.
    pub replicas: Vec<(NodeId, VssdId)>,
}

/// Reason why a controller cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VdcConfigError {
    /// There would be no end of reports.
    #[error("controller: a period of 0; it must be longer")]
    NoPeriod,
    /// A write that costs nothing would have no limit.
    #[error("controller: a write costs 0 units; 1 or more are allowed")]
    FreeWrites,
    /// Capacity would count twice.
    #[error("controller: vSSD {} is on two devices", .0.0)]
    OnTwoDevices(VssdId),
    /// Requests to it would be ambiguous.
    #[error("controller: vSSD {} is in two places of the volumes", .0.0)]
    InTwoVolumes(VssdId),
    /// Capacity would be ambiguous.
    #[error("controller: server {} has two links", .0.0)]
    TwoLinks(NodeId),
    /// Nobody could serve it.
    #[error("controller: volume {0} has no replica")]
    NoReplica(usize),
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Controller {
    config: VdcConfig,
    /// Which volume a vSSD is a replica of.
    volume_of: BTreeMap<VssdId, usize>,
    resources: Resources,
    flows: BTreeMap<FlowKey, Flow>,
    period_began: Time,
    period_ends: Time,
    refused: u64,
}

/// A client, and the vSSD that it names in its reports.
type FlowKey = (NodeId, VssdId);

#[derive(Clone, Debug)]
struct Flow {
    volume: usize,
    /// Demand in this period.
    asked: Mix,
    /// As last seen; it says what a unit of the flow's rate takes of each resource.
    mix: Mix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mix {
    reads: u64,
    writes: u64,
}

const NOTHING: Mix = Mix { reads: 0, writes: 0 };
/// Assumed for a flow without requests so far.
const ONE_READ: Mix = Mix { reads: 1, writes: 0 };

impl Mix {
    fn units(self, write_cost: u32) -> u64 {
        self.reads + self.writes * u64::from(write_cost)
    }
}

impl Controller {
    /// A controller whose first period begins at the start of the run.
    pub fn new(config: VdcConfig) -> Result<Controller, VdcConfigError> {
        check(&config)?;
        let volumes = config.volumes.iter().enumerate();
        let volume_of =
            volumes.flat_map(|(index, volume)| volume.replicas.iter().map(move |(_, vssd)| (*vssd, index))).collect();
        let resources = Resources::new(&config);
        let period_ends = Time::ZERO + config.period;
        Ok(Controller {
            config,
            volume_of,
            resources,
            flows: BTreeMap::new(),
            period_began: Time::ZERO,
            period_ends,
            refused: 0,
        })
    }

    /// Messages that were not understood: of a kind that a controller does not take, or about
    /// unknown vSSDs or clients.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    pub(super) fn node(&self) -> NodeId {
        self.config.node
    }

    /// The replicas of the vSSD's volume in this rack, in order of their rank; none for an unknown
    /// vSSD.
    pub(super) fn replicas_here(&self, vssd: VssdId) -> impl Iterator<Item = (NodeId, VssdId)> {
        let volume = self.volume_of.get(&vssd).map(|index| &self.config.volumes[*index]);
        let replicas = volume.into_iter().flat_map(|volume| volume.replicas.iter().copied());
        replicas.filter(|(server, _)| self.config.links.iter().any(|link| link.server == *server))
    }

    fn on_demand(&mut self, client: NodeId, vssd: VssdId, requests: u32, writes: u32) {
        let volume = self.volume_of.get(&vssd).copied();
        let (Some(volume), Some(reads)) = (volume, requests.checked_sub(writes)) else { return self.refuse() };
        if client.0 >= self.config.clients {
            return self.refuse();
        }
        let flow = self.flows.entry((client, vssd)).or_insert(Flow { volume, asked: NOTHING, mix: ONE_READ });
        flow.asked.reads += u64::from(reads);
        flow.asked.writes += u64::from(writes);
    }

    /// Ends the period: new rates for all flows.
    fn allocate(&mut self, now: Time, out: &mut Vec<ControllerOut>) {
        let length = now - self.period_began;
        let write_cost = self.config.write_cost;
        let demands: Vec<u64> =
            self.flows.values().map(|flow| a_second(flow.asked.units(write_cost), length)).collect();
        for flow in self.flows.values_mut().filter(|flow| flow.asked != NOTHING) {
            flow.mix = std::mem::replace(&mut flow.asked, NOTHING);
        }
        let rates = self.rates(&demands);
        let node = self.config.node;
        out.extend(self.flows.keys().zip(rates).map(|(flow, rate)| send_rate(node, *flow, rate)));
    }

    /// Max-min fair over the demand; then the rest, equally.
    fn rates(&self, demands: &[u64]) -> Vec<u64> {
        let usages = self.flows.values().map(|flow| self.resources.usages(&self.config, flow)).collect();
        let problem = Problem { usages, capacities: self.resources.capacities.clone() };
        let asked_for = problem.raise(&vec![0; demands.len()], demands);
        problem.raise(&asked_for, &vec![u64::from(u32::MAX); demands.len()])
    }
}

impl Program for Controller {
    type In = Packet;
    type Out = ControllerOut;

    fn on(&mut self, now: Time, packet: Packet, out: &mut Vec<ControllerOut>) {
        self.on_wakeup(now, out);
        match packet.body {
            Body::Control(ControlMessage::Demand { requests, writes }) => {
                self.on_demand(packet.source, packet.vssd, requests, writes)
            }
            _ => self.refuse(),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.period_ends)
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ControllerOut>) {
        if now < self.period_ends {
            return;
        }
        self.allocate(now, out);
        self.period_began = now;
        self.period_ends = now + self.config.period;
    }
}

/// A count over `length` as a rate per second, rounded up so that any demand gets a nonzero rate.
fn a_second(units: u64, length: Span) -> u64 {
    let unit_seconds = u128::from(units) * u128::from(Span::secs(1).as_ps());
    let rate = unit_seconds.div_ceil(u128::from(length.as_ps().max(1)));
    u64::try_from(rate).unwrap_or(u64::MAX).min(u64::from(u32::MAX))
}

/// A rate of 0 would say "no limit" on the wire, so the least is one unit a second.
fn send_rate(node: NodeId, (client, vssd): FlowKey, rate: u64) -> ControllerOut {
    let per_second = u32::try_from(rate).unwrap_or(u32::MAX).max(1);
    let body = Body::Control(ControlMessage::Rate { per_second });
    ControllerOut::Send(Packet { vssd, latency_ns: 0, source: node, target: client, body })
}

/// Numbers resources: devices, then links inward (bytes a second), then links outward.
#[derive(Clone, Debug)]
struct Resources {
    capacities: Vec<u64>,
    device_of: BTreeMap<VssdId, usize>,
    link_of: BTreeMap<NodeId, usize>,
    links: usize,
}

impl Resources {
    fn new(config: &VdcConfig) -> Resources {
        let devices = config.devices.iter().enumerate();
        let device_of =
            devices.flat_map(|(index, device)| device.vssds.iter().map(move |vssd| (*vssd, index))).collect();
        let link_of =
            config.links.iter().zip(config.devices.len()..).map(|(link, index)| (link.server, index)).collect();
        let link_capacities = || config.links.iter().map(|link| link.rate.bytes_in(Span::secs(1)).count());
        let device_capacities = config.devices.iter().map(|device| device.units_per_second);
        let capacities = device_capacities.chain(link_capacities()).chain(link_capacities()).collect();
        Resources { capacities, device_of, link_of, links: config.links.len() }
    }

    /// Resources of a flow with its mix of reads and writes. A write uses the first replica's
    /// inbound link, its outbound link to each of the others, and all drives; the answer to a read
    /// uses the outbound link.
    fn usages(&self, config: &VdcConfig, flow: &Flow) -> Vec<Usage> {
        let replicas = &config.volumes[flow.volume].replicas;
        let Mix { reads, writes } = flow.mix;
        let page = config.page_message.count();
        let mut amounts = BTreeMap::new();
        let mut add = |resource: Option<usize>, amount: u64| {
            if let Some(resource) = resource {
                *amounts.entry(resource).or_insert(0) += amount;
            }
        };
        for (rank, (server, vssd)) in replicas.iter().enumerate() {
            let read_here = if rank == 0 { reads } else { 0 };
            let inward = self.link_of.get(server).copied();
            add(self.device_of.get(vssd).copied(), Mix { reads: read_here, writes }.units(config.write_cost));
            add(inward, writes * page);
            if rank == 0 {
                let copies = replicas.len() as u64 - 1;
                add(inward.map(|link| link + self.links), (reads + writes * copies) * page);
            }
        }
        let units = flow.mix.units(config.write_cost);
        amounts.into_iter().map(|(resource, amount)| Usage::new(resource, amount, units)).collect()
    }
}

fn check(config: &VdcConfig) -> Result<(), VdcConfigError> {
    if config.period == Span::ZERO {
        return Err(VdcConfigError::NoPeriod);
    }
    if config.write_cost == 0 {
        return Err(VdcConfigError::FreeWrites);
    }
    if let Some(index) = config.volumes.iter().position(|volume| volume.replicas.is_empty()) {
        return Err(VdcConfigError::NoReplica(index));
    }
    let on_devices = config.devices.iter().flat_map(|device| device.vssds.iter().copied());
    let in_volumes = config.volumes.iter().flat_map(|volume| volume.replicas.iter().map(|(_, vssd)| *vssd));
    let servers = config.links.iter().map(|link| link.server);
    first_repeated(on_devices).map_or(Ok(()), |vssd| Err(VdcConfigError::OnTwoDevices(vssd)))?;
    first_repeated(in_volumes).map_or(Ok(()), |vssd| Err(VdcConfigError::InTwoVolumes(vssd)))?;
    first_repeated(servers).map_or(Ok(()), |server| Err(VdcConfigError::TwoLinks(server)))
}

fn first_repeated<T: Ord + Copy>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = BTreeSet::new();
    items.find(|item| !seen.insert(*item))
}

#[cfg(test)]
mod tests;
