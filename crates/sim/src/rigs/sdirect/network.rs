//! Links of clients and NIC, and what is lost between them.

use base::{Bytes, Seed, Span, Stream, Time};
use hardware::Link;
use plan::sdirect::Clients;

/// The network of a machine and those who ask it.
pub struct Network {
    plan: Clients,
    /// Of each client, to and from the network.
    clients: Vec<[Link; 2]>,
    /// Of the NIC, from and to the network.
    nic: [Link; 2],
    losses: Stream,
    lost: u64,
    bytes: u64,
}

impl Network {
    /// A network without traffic.
    pub fn new(plan: &Clients, seed: Seed) -> Network {
        let link = Link::new(plan.rate);
        Network {
            plan: *plan,
            clients: vec![[link; 2]; plan.count as usize],
            nic: [link; 2],
            losses: seed.stream("network/losses"),
            lost: 0,
            bytes: 0,
        }
    }

    /// A packet of a client: when the NIC has it, unless it is lost.
    pub fn send_to_nic(&mut self, now: Time, client: u32, data: u32) -> Option<Time> {
        let size = self.size(data);
        let left = self.clients[client as usize][0].submit(now, size).1;
        if self.is_lost() {
            return None;
        }
        Some(self.nic[0].submit(left + self.plan.delay, size).1)
    }

    /// A packet of the NIC: when its port is free again, and when the client has it, unless it is
    /// lost.
    pub fn send_to_client(&mut self, now: Time, client: u32, data: u32) -> (Time, Option<Time>) {
        let size = self.size(data);
        let left = self.nic[1].submit(now, size).1;
        if self.is_lost() {
            return (left, None);
        }
        (left, Some(self.clients[client as usize][1].submit(left + self.plan.delay, size).1))
    }

    /// Cuts data into what packets carry.
    pub fn packets(&self, bytes: u32) -> impl Iterator<Item = u32> + use<> {
        let most = self.plan.packet.count() as u32;
        (0..bytes.div_ceil(most)).map(move |index| most.min(bytes - index * most))
    }

    fn size(&mut self, data: u32) -> Bytes {
        let size = self.plan.header + Bytes::new(u64::from(data));
        self.bytes += size.count();
        size
    }

    fn is_lost(&mut self) -> bool {
        let percent = self.plan.loss_percent;
        let is_lost = percent > 0.0 && self.losses.unit() * 100.0 < percent;
        self.lost += u64::from(is_lost);
        is_lost
    }

    /// Packets that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that were sent, headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long each direction of each link was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        let links = self.clients.iter().chain([&self.nic]).flatten();
        out.extend(links.map(Link::busy));
    }
}
