//! Distance-vector routing (paper, 3.2): every neighbour's distances are kept per port, and the best few ports to each vertex.
//!
//! States of a port: *up* (its neighbour is one hop away, and what it told counts), *silent* (up, but a forwarding neighbour has not
//! been heard for the hold time: nothing counts), *down*. Any change of a best distance or of the neighbour that it leads to is told
//! at once, but not more often than the gap; everything is told once a period. Distances at or over the bound are infinite, so that two
//! parts that have lost each other stop counting there.

use super::Neighbour;
use crate::id::Port;
use base::{Span, Time};
use topology::VertexId;

/// One neighbour's distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// By vertex, in hops. At or over the bound of the network: no way.
    pub distances: Box<[u16]>,
}

/// What a neighbour is told about ways that lead through itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Horizon {
    /// That there are none: split horizon with poisoned reverse.
    PoisonedReverse,
    /// The best way that does not begin with it. Ours: gives every hop a second way at once, and more candidates.
    BestOther,
}

/// Parameters of the distance vector. The paper gives none but recovers within 0.5 to 2 ms (5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistanceConfig {
    /// This many hops are no way. More than the longest way that ever has to be found.
    pub infinity: u16,
    /// Between advertisements without cause; [`Span::MAX`]: never.
    pub period: Span,
    /// A neighbour that was not heard this long is gone; several periods, or [`Span::MAX`].
    pub hold: Span,
    /// Between any two advertisements at least.
    pub trigger_gap: Span,
    /// Ports that are kept for each vertex (the paper's K), from 1.
    pub candidates: u16,
    /// What neighbours are told about ways through themselves.
    pub horizon: Horizon,
}

/// A port that leads to a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// In hops.
    pub distance: u16,
    /// Which port.
    pub port: Port,
}

#[derive(Clone, Debug)]
struct PortState {
    neighbour: Neighbour,
    is_up: bool,
    heard: Time,
}

/// The distances of one place.
#[derive(Clone, Debug)]
pub struct DistanceVector {
    here: VertexId,
    config: DistanceConfig,
    vertices: usize,
    ports: Vec<PortState>,
    /// By vertex, then port: what the neighbour told; `config.infinity` for nothing.
    told: Vec<u16>,
    /// By port: the vertex there, once more, close together.
    peers: Vec<VertexId>,
    /// By vertex: how many candidates there are.
    known: Vec<u16>,
    /// By vertex, then rank: the nearest ports, ties by port. Unused places are infinite.
    candidates: Vec<Candidate>,
    next_period: Time,
    triggered: Option<Time>,
    told_at: Option<Time>,
    lost: Vec<VertexId>,
}

impl DistanceVector {
    /// The distances of `here` when all links are up and nobody has told anything yet.
    pub fn new(here: VertexId, vertices: usize, neighbours: Vec<Neighbour>, config: &DistanceConfig) -> DistanceVector {
        assert!(config.candidates > 0 && config.infinity > 1, "a way has a port and a hop");
        let none = Candidate { distance: config.infinity, port: Port(0) };
        let mut distances = DistanceVector {
            here,
            config: *config,
            vertices,
            told: vec![config.infinity; vertices * neighbours.len()],
            peers: neighbours.iter().map(|neighbour| neighbour.vertex).collect(),
            known: vec![0; vertices],
            candidates: vec![none; vertices * usize::from(config.candidates)],
            ports: neighbours
                .into_iter()
                .map(|neighbour| PortState { neighbour, is_up: false, heard: Time::ZERO })
                .collect(),
            next_period: Time::ZERO.checked_add(config.period).unwrap_or(Time::MAX),
            triggered: None,
            told_at: None,
            lost: Vec::new(),
        };
        (0..distances.ports.len()).for_each(|port| distances.link_up(Time::ZERO, Port(port as u16)));
        distances
    }

    /// The nearest ports to `vertex`, nearest first, ties by port; ports that lead nowhere are not among them.
    pub fn candidates(&self, vertex: VertexId) -> &[Candidate] {
        let first = vertex.index() * usize::from(self.config.candidates);
        self.known.get(vertex.index()).map_or(&[], |known| &self.candidates[first..first + usize::from(*known)])
    }

    /// Hops to `vertex`; `None` when there is no way.
    pub fn distance(&self, vertex: VertexId) -> Option<u16> {
        if vertex == self.here {
            return Some(0);
        }
        self.candidates(vertex).first().map(|candidate| candidate.distance)
    }

    /// Hops to `vertex` by `port`; `None` when there is no way.
    pub fn distance_by(&self, vertex: VertexId, port: Port) -> Option<u16> {
        let told = *self.told.get(vertex.index() * self.ports.len() + port.index())?;
        (told + 1 < self.config.infinity).then_some(told + 1)
    }

    /// What is at the other end of a port; `None` when there is no such port.
    pub fn neighbour(&self, port: Port) -> Option<&Neighbour> {
        self.ports.get(port.index()).map(|state| &state.neighbour)
    }

    /// The vertex at the other end of a port; `None` when there is no such port.
    pub fn peer(&self, port: Port) -> Option<VertexId> {
        self.peers.get(port.index()).copied()
    }

    /// How many ports there are.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Whether the link of a port is up; a port that does not exist is not.
    pub fn is_up(&self, port: Port) -> bool {
        self.ports.get(port.index()).is_some_and(|state| state.is_up)
    }

    /// The link of a port has gone.
    pub fn link_down(&mut self, now: Time, port: Port) {
        if self.is_up(port) {
            self.ports[port.index()].is_up = false;
            self.forget(now, port);
        }
    }

    /// The link of a port is there (again).
    pub fn link_up(&mut self, now: Time, port: Port) {
        let Some(state) = self.ports.get_mut(port.index()).filter(|state| !state.is_up) else { return };
        (state.is_up, state.heard) = (true, now);
        let vertex = state.neighbour.vertex;
        self.set(vertex, port, 0);
        self.rank(now, vertex);
        self.trigger(now);
    }

    /// A neighbour tells its distances. Vertices that it leaves out have no way; what is too much is passed over.
    pub fn on_advertisement(&mut self, now: Time, port: Port, advertisement: &Advertisement) {
        if !self.is_up(port) || !self.ports[port.index()].neighbour.forwards {
            return;
        }
        self.ports[port.index()].heard = now;
        for index in 0..self.vertices {
            let told = advertisement.distances.get(index).copied().unwrap_or(self.config.infinity);
            if self.set(VertexId(index as u32), port, told) {
                self.rank(now, VertexId(index as u32));
            }
        }
    }

    /// Appends what is to be told at `now`.
    pub fn poll(&mut self, now: Time, tell: impl FnMut(Port, Advertisement)) {
        let is_period = now >= self.next_period;
        if is_period {
            self.next_period = now.checked_add(self.config.period).unwrap_or(Time::MAX);
            self.age(now);
        }
        if is_period || self.triggered.is_some_and(|at| at <= now) {
            self.tell(now, tell);
        }
    }

    /// As [`poll`](Self::poll), but whatever is to be told is told now; whether anything was.
    pub fn flush(&mut self, now: Time, tell: impl FnMut(Port, Advertisement)) -> bool {
        let is_due = self.triggered.is_some();
        if is_due {
            self.tell(now, tell);
        }
        is_due
    }

    fn tell(&mut self, now: Time, mut tell: impl FnMut(Port, Advertisement)) {
        (self.triggered, self.told_at) = (None, Some(now));
        for (index, state) in self.ports.iter().enumerate() {
            if state.is_up && state.neighbour.listens {
                tell(Port(index as u16), self.advertisement(state.neighbour.vertex));
            }
        }
    }

    /// When [`poll`](Self::poll) is next to be called.
    pub fn next_wakeup(&self) -> Option<Time> {
        let next = self.triggered.unwrap_or(Time::MAX).min(self.next_period);
        (next < Time::MAX).then_some(next)
    }

    /// The vertices to which the last way was lost since this was last asked.
    pub fn drain_lost(&mut self) -> impl Iterator<Item = VertexId> {
        self.lost.drain(..)
    }

    /// What the neighbour `to` is told.
    fn advertisement(&self, to: VertexId) -> Advertisement {
        let distances = (0..self.vertices).map(|index| self.distance_without(VertexId(index as u32), to)).collect();
        Advertisement { distances }
    }

    fn distance_without(&self, vertex: VertexId, neighbour: VertexId) -> u16 {
        if vertex == self.here {
            return 0;
        }
        let leads_there = |port: Port| self.ports[port.index()].neighbour.vertex == neighbour;
        match (self.config.horizon, self.candidates(vertex).first()) {
            (_, None) => self.config.infinity,
            (_, Some(best)) if !leads_there(best.port) => best.distance,
            (Horizon::PoisonedReverse, _) => self.config.infinity,
            (Horizon::BestOther, _) => {
                let others = (0..self.ports.len()).map(|port| Port(port as u16)).filter(|port| !leads_there(*port));
                others.filter_map(|port| self.distance_by(vertex, port)).min().unwrap_or(self.config.infinity)
            }
        }
    }

    /// Takes forwarding neighbours that were silent too long for gone until they are heard again.
    fn age(&mut self, now: Time) {
        for port in (0..self.ports.len()).map(|port| Port(port as u16)) {
            let state = &self.ports[port.index()];
            let is_silent = now.saturating_since(state.heard) > self.config.hold;
            if state.is_up && state.neighbour.forwards && is_silent {
                self.forget(now, port);
            }
        }
    }

    /// Takes back all that was told at `port`.
    fn forget(&mut self, now: Time, port: Port) {
        for vertex in (0..self.vertices as u32).map(VertexId) {
            if self.set(vertex, port, self.config.infinity) {
                self.rank(now, vertex);
            }
        }
    }

    /// Notes what a neighbour told, at most infinite; whether that is news.
    fn set(&mut self, vertex: VertexId, port: Port, told: u16) -> bool {
        let place = &mut self.told[vertex.index() * self.ports.len() + port.index()];
        std::mem::replace(place, told.min(self.config.infinity)) != *place
    }

    /// Finds the nearest ports to `vertex` anew, and tells when the best way has changed.
    fn rank(&mut self, now: Time, vertex: VertexId) {
        let before = self.best(vertex);
        let (ports, kept) = (self.ports.len(), usize::from(self.config.candidates));
        let told = &self.told[vertex.index() * ports..][..ports];
        let nearest = &mut self.candidates[vertex.index() * kept..][..kept];
        nearest.fill(Candidate { distance: self.config.infinity, port: Port(0) });
        for (port, told) in told.iter().enumerate() {
            insert(nearest, Candidate { distance: told.saturating_add(1), port: Port(port as u16) });
        }
        self.known[vertex.index()] =
            nearest.iter().take_while(|candidate| candidate.distance < self.config.infinity).count() as u16;
        let after = self.best(vertex);
        if before != after {
            self.trigger(now);
        }
        if before.is_some() && after.is_none() {
            self.lost.push(vertex);
        }
    }

    fn best(&self, vertex: VertexId) -> Option<(u16, VertexId)> {
        let best = self.candidates(vertex).first()?;
        Some((best.distance, self.ports[best.port.index()].neighbour.vertex))
    }

    fn trigger(&mut self, now: Time) {
        if self.triggered.is_none() {
            let soonest = self.told_at.map_or(now, |at| at.checked_add(self.config.trigger_gap).unwrap_or(Time::MAX));
            self.triggered = Some(soonest.max(now));
        }
    }
}

/// Puts `candidate` where it belongs in a sorted list of fixed length; the farthest falls out. Equal distances stay in order of coming.
fn insert(nearest: &mut [Candidate], candidate: Candidate) {
    let Some(at) = nearest.iter().position(|other| candidate.distance < other.distance) else { return };
    nearest[at..].rotate_right(1);
    nearest[at] = candidate;
}
