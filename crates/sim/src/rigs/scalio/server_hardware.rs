//! Adapters, cores and the target in the adapter.

use base::{Bytes, Span, Time};
use hardware::{Cpu, RdmaAdapter, TargetOffload, Verb};
use plan::scalio::{Cores, Rdma, Scalio};
use scalio::CoreMap;

/// All of them.
pub struct ServerHardware {
    rdma: Rdma,
    cores: Cores,
    clients: Vec<RdmaAdapter>,
    /// The box's.
    pub adapter: RdmaAdapter,
    pub offload: TargetOffload,
    pub cpu: Cpu,
    map: CoreMap,
}

/// A piece of work of a core: from when to when.
pub type Worked = (Time, Time);

impl ServerHardware {
    /// The plan's.
    pub fn new(plan: &Scalio) -> ServerHardware {
        let adapter = RdmaAdapter::new(plan.rdma.adapter);
        ServerHardware {
            rdma: plan.rdma,
            cores: plan.cores,
            clients: vec![adapter.clone(); plan.store.client_nodes as usize],
            adapter,
            offload: TargetOffload::new(plan.rdma.offload),
            cpu: Cpu::new(plan.cores.count),
            map: CoreMap { network: plan.cores.network, flash: plan.cores.flash },
        }
    }

    /// A client's message; when all of it is at the box's adapter.
    pub fn post(&mut self, now: Time, client: u32, bytes: u32) -> Time {
        let node = client as usize % self.clients.len();
        self.clients[node].post(now, size(bytes))
    }

    /// A verb that has come to the box's adapter; when its client sees the answer.
    pub fn serve(&mut self, now: Time, verb: Verb, bytes: u32) -> Time {
        self.adapter.serve(now, verb, size(bytes)) + self.seen()
    }

    /// Reads that have come together and are carried out one after the other, each when the memory
    /// has answered the one before; when their client sees the last answer.
    pub fn serve_in_order(&mut self, now: Time, reads: &[u32]) -> Time {
        let adapter = &mut self.adapter;
        let last = reads.iter().map(|bytes| adapter.serve(now, Verb::Read, size(*bytes))).max();
        let waits = self.memory_read() * (reads.len() as u64).saturating_sub(1);
        last.unwrap_or(now) + waits + self.seen()
    }

    /// What the adapter sends of itself; when its client sees it.
    pub fn forward(&mut self, now: Time, bytes: u32) -> Time {
        self.adapter.forward(now, size(bytes)) + self.seen()
    }

    /// A core's answer that is ready at `ready`; when its client sees it.
    pub fn answer(&mut self, now: Time, ready: Time, bytes: u32) -> Time {
        let sent = self.adapter.post(now, size(bytes));
        sent + ready.saturating_since(now) + self.seen()
    }

    /// From the adapter of a client's machine to the client.
    fn seen(&self) -> Span {
        self.rdma.adapter.processing + self.rdma.adapter.memory_write
    }

    /// How long an adapter waits for its host's memory.
    pub fn memory_read(&self) -> Span {
        self.rdma.adapter.memory_read
    }

    /// The core of the network that serves a client receives its request.
    pub fn receive(&mut self, now: Time, client: u32) -> Worked {
        self.cpu.run(now, self.network_core(client), "receive", self.cores.receive)
    }

    /// The same sends an answer.
    pub fn send(&mut self, now: Time, client: u32) -> Worked {
        self.cpu.run(now, self.network_core(client), "send", self.cores.send)
    }

    /// The core that serves a device submits an I/O.
    pub fn submit(&mut self, now: Time, device: u32) -> Worked {
        self.cpu.run(now, self.flash_core(device), "submit", self.cores.submit)
    }

    /// The same completes one.
    pub fn complete(&mut self, now: Time, device: u32) -> Worked {
        self.cpu.run(now, self.flash_core(device), "complete", self.cores.complete)
    }

    /// The same does so many operations on the index.
    pub fn memory(&mut self, now: Time, device: u32, operations: u64) -> Worked {
        self.cpu.run(now, self.flash_core(device), "memory", self.cores.memory * operations)
    }

    /// The same forms a group.
    pub fn group(&mut self, now: Time, device: u32) -> Worked {
        self.cpu.run(now, self.flash_core(device), "batch", self.cores.batch)
    }

    /// Half of what a target in software does for an I/O.
    pub fn target_half(&mut self, now: Time, core: u32) -> Worked {
        self.cpu.run(now, core as usize, "target", self.cores.target / 2)
    }

    /// The core of control gives out room.
    pub fn control(&mut self, now: Time) -> Worked {
        self.cpu.run(now, CoreMap::CONTROL as usize, "control", self.cores.receive + self.cores.send)
    }

    fn network_core(&self, client: u32) -> usize {
        self.map.network(client) as usize
    }

    fn flash_core(&self, device: u32) -> usize {
        self.map.flash(device) as usize
    }

    /// How long each direction of each port was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        out.push(self.adapter.port_busy());
        out.extend(self.clients.iter().map(RdmaAdapter::port_busy));
    }
}

fn size(bytes: u32) -> Bytes {
    Bytes::new(u64::from(bytes))
}
