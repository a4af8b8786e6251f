//! Distance-vector routing (paper, 3.2): stores every neighbour's distances per port, and the
//! nearest ports to requested vertices.
//!
//! A port is *up* (its neighbour is one hop away, and its distances count), *silent* (up, but a
//! forwarding neighbour has sent no advertisement for the hold time: nothing counts), or *down*.
//!
//! A change of a best distance or of the neighbour on that path triggers an advertisement, at most
//! once per gap. A full advertisement is sent once a period. Distances at or above the bound are
//! infinite, so that two disconnected parts stop counting there.

use super::Neighbour;
use crate::id::Port;
use base::{Span, Time};
use topology::VertexId;

/// The distances of one neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// By vertex, in hops. At or above the bound of the network: unreachable.
    pub distances: Box<[u16]>,
}

/// The distance that a neighbour is sent for paths that lead through itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Horizon {
    /// Infinity: split horizon with poisoned reverse.
    PoisonedReverse,
    /// The best path that does not begin with the neighbour. Not in the paper: gives every hop an
    /// alternative path at once, and more candidates.
    BestOther,
}

/// Parameters of the distance vector. The paper gives none, but recovers within 0.5 to 2 ms (5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistanceConfig {
    /// The distance of an unreachable vertex. More than the longest path that must be found.
    pub infinity: u16,
    /// Period of full advertisements; [`Span::MAX`]: never.
    pub period: Span,
    /// Time without advertisements after which a neighbour counts as gone; several periods, or
    /// [`Span::MAX`].
    pub hold: Span,
    /// Minimum time between two advertisements.
    pub trigger_gap: Span,
    /// Ports kept for each vertex (the paper's K), at least 1.
    pub candidates: u16,
    /// The advertised distances of paths through the neighbour itself.
    pub horizon: Horizon,
}

/// A port that leads to a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Distance in hops.
    pub distance: u16,
    /// The port.
    pub port: Port,
}

#[derive(Clone, Debug)]
struct PortState {
    neighbour: Neighbour,
    is_up: bool,
    heard: Time,
}

/// The distances of a vertex.
#[derive(Clone, Debug)]
pub struct DistanceVector {
    here: VertexId,
    config: DistanceConfig,
    vertices: usize,
    ports: Vec<PortState>,
    /// By vertex, then by port: the advertised distance; `config.infinity` if none.
    told: Told,
    /// By port: a copy of the neighbour's vertex, stored densely.
    peers: Vec<VertexId>,
    /// By vertex: the nearest port, ties by port, or [`NOWHERE`].
    best: Vec<u16>,
    /// The nearest ports to requested vertices.
    nearest: Nearest,
    next_period: Time,
    triggered: Option<Time>,
    told_at: Option<Time>,
    lost: Vec<VertexId>,
}

/// Not a port: there are fewer.
const NOWHERE: u16 = u16::MAX;

/// Distances, in the narrowest type that their bound allows: a large network has many.
#[derive(Clone, Debug)]
enum Told {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl Told {
    fn new(infinity: u16, count: usize) -> Told {
        match u8::try_from(infinity) {
            Ok(infinity) => Told::Narrow(vec![infinity; count]),
            Err(_) => Told::Wide(vec![infinity; count]),
        }
    }

    #[inline]
    fn get(&self, place: usize) -> Option<u16> {
        match self {
            Told::Narrow(told) => told.get(place).copied().map(u16::from),
            Told::Wide(told) => told.get(place).copied(),
        }
    }

    /// Sets a distance, which is at most the bound.
    fn set(&mut self, place: usize, distance: u16) {
        match self {
            Told::Narrow(told) => told[place] = distance as u8,
            Told::Wide(told) => told[place] = distance,
        }
    }
}

/// The nearest ports to some vertices.
#[derive(Clone, Debug)]
struct Nearest {
    /// Number of ports kept for each vertex.
    kept: usize,
    /// By vertex: its row plus 1, or 0 without one.
    rows: Vec<u16>,
    /// By row: the number of known ports.
    known: Vec<u16>,
    /// By row, then by rank: nearest first, ties by port. Unused entries are infinite.
    candidates: Vec<Candidate>,
}

impl Nearest {
    fn row(&self, vertex: VertexId) -> Option<usize> {
        self.rows.get(vertex.index()).and_then(|row| row.checked_sub(1)).map(usize::from)
    }

    #[inline]
    fn of(&self, vertex: VertexId) -> &[Candidate] {
        let Some(row) = self.row(vertex) else { return &[] };
        &self.candidates[row * self.kept..][..usize::from(self.known[row])]
    }

    /// Adds a row for a vertex.
    fn add(&mut self, vertex: VertexId) -> usize {
        let row = self.known.len();
        self.known.push(0);
        self.candidates.resize((row + 1) * self.kept, Candidate::default());
        // A vertex needs no path to itself, so the number of rows fits into 16 bits.
        self.rows[vertex.index()] = row as u16 + 1;
        row
    }

    fn fill(&mut self, row: usize, infinity: u16, all: impl Iterator<Item = Candidate>) {
        let nearest = &mut self.candidates[row * self.kept..][..self.kept];
        nearest.fill(Candidate { distance: infinity, port: Port(0) });
        all.for_each(|candidate| insert(nearest, candidate));
        self.known[row] = nearest.iter().take_while(|candidate| candidate.distance < infinity).count() as u16;
    }
}

impl DistanceVector {
    /// Creates the distances of `here` with all links up and no advertisements received.
    pub fn new(here: VertexId, vertices: usize, neighbours: Vec<Neighbour>, config: &DistanceConfig) -> DistanceVector {
        assert!(config.candidates > 0 && config.infinity > 1, "a way has a port and a hop");
        let kept = usize::from(config.candidates);
        let mut distances = DistanceVector {
            here,
            config: *config,
            vertices,
            told: Told::new(config.infinity, vertices * neighbours.len()),
            peers: neighbours.iter().map(|neighbour| neighbour.vertex).collect(),
            best: vec![NOWHERE; vertices],
            nearest: Nearest { kept, rows: vec![0; vertices], known: Vec::new(), candidates: Vec::new() },
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

    /// Keeps the nearest ports to `vertex` from now on.
    #[inline]
    pub fn prepare(&mut self, vertex: VertexId) {
        if self.nearest.rows.get(vertex.index()) == Some(&0) && vertex != self.here {
            let row = self.nearest.add(vertex);
            self.fill(row, vertex);
        }
    }

    /// Returns the nearest ports to `vertex`, nearest first, ties by port, without unreachable
    /// ones. The vertex must have been [`prepare`](Self::prepare)d.
    #[inline]
    pub fn candidates(&self, vertex: VertexId) -> &[Candidate] {
        self.nearest.of(vertex)
    }

    /// Returns the distance to `vertex` in hops, or `None` if it is unreachable.
    pub fn distance(&self, vertex: VertexId) -> Option<u16> {
        if vertex == self.here {
            return Some(0);
        }
        self.best(vertex).map(|(distance, _)| distance)
    }

    /// Returns the distance to `vertex` by `port` in hops, or `None` if it is unreachable.
    pub fn distance_by(&self, vertex: VertexId, port: Port) -> Option<u16> {
        let told = self.told.get(vertex.index() * self.ports.len() + port.index())?;
        (told + 1 < self.config.infinity).then_some(told + 1)
    }

    /// Returns the neighbour at a port, or `None` if there is no such port.
    pub fn neighbour(&self, port: Port) -> Option<&Neighbour> {
        self.ports.get(port.index()).map(|state| &state.neighbour)
    }

    /// Returns the vertex of the neighbour at a port, or `None` if there is no such port.
    pub fn peer(&self, port: Port) -> Option<VertexId> {
        self.peers.get(port.index()).copied()
    }

    /// Returns the number of ports.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Returns whether the link of a port is up; `false` for a port that does not exist.
    pub fn is_up(&self, port: Port) -> bool {
        self.ports.get(port.index()).is_some_and(|state| state.is_up)
    }

    /// Handles the failure of a port's link.
    pub fn link_down(&mut self, now: Time, port: Port) {
        if self.is_up(port) {
            self.ports[port.index()].is_up = false;
            self.forget(now, port);
        }
    }

    /// Handles the recovery of a port's link.
    pub fn link_up(&mut self, now: Time, port: Port) {
        let Some(state) = self.ports.get_mut(port.index()).filter(|state| !state.is_up) else { return };
        (state.is_up, state.heard) = (true, now);
        let vertex = state.neighbour.vertex;
        self.set(now, vertex, port, 0);
        self.trigger(now);
    }

    /// Stores a neighbour's distances. Vertices that it leaves out are unreachable; excess entries
    /// are ignored.
    pub fn on_advertisement(&mut self, now: Time, port: Port, advertisement: &Advertisement) {
        if !self.is_up(port) || !self.ports[port.index()].neighbour.forwards {
            return;
        }
        self.ports[port.index()].heard = now;
        for index in 0..self.vertices {
            let told = advertisement.distances.get(index).copied().unwrap_or(self.config.infinity);
            self.set(now, VertexId(index as u32), port, told);
        }
    }

    /// Emits the advertisements that are due at `now`.
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

    /// Emits any pending advertisement at once, unlike [`poll`](Self::poll). Returns whether there
    /// was one.
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

    /// Returns when [`poll`](Self::poll) is due.
    pub fn next_wakeup(&self) -> Option<Time> {
        let next = self.triggered.unwrap_or(Time::MAX).min(self.next_period);
        (next < Time::MAX).then_some(next)
    }

    /// Drains the vertices that became unreachable since the last call.
    pub fn drain_lost(&mut self) -> impl Iterator<Item = VertexId> {
        self.lost.drain(..)
    }

    /// Returns the advertisement for the neighbour `to`.
    fn advertisement(&self, to: VertexId) -> Advertisement {
        let distances = (0..self.vertices).map(|index| self.distance_without(VertexId(index as u32), to)).collect();
        Advertisement { distances }
    }

    fn distance_without(&self, vertex: VertexId, neighbour: VertexId) -> u16 {
        if vertex == self.here {
            return 0;
        }
        let leads_there = |port: Port| self.peers[port.index()] == neighbour;
        match (self.config.horizon, self.best(vertex)) {
            (_, None) => self.config.infinity,
            (_, Some((distance, first))) if first != neighbour => distance,
            (Horizon::PoisonedReverse, _) => self.config.infinity,
            (Horizon::BestOther, _) => {
                let others = (0..self.ports.len()).map(|port| Port(port as u16)).filter(|port| !leads_there(*port));
                others.filter_map(|port| self.distance_by(vertex, port)).min().unwrap_or(self.config.infinity)
            }
        }
    }

    /// Clears the distances of forwarding neighbours that were silent too long, until they send
    /// again.
    fn age(&mut self, now: Time) {
        for port in (0..self.ports.len()).map(|port| Port(port as u16)) {
            let state = &self.ports[port.index()];
            let is_silent = now.saturating_since(state.heard) > self.config.hold;
            if state.is_up && state.neighbour.forwards && is_silent {
                self.forget(now, port);
            }
        }
    }

    /// Clears the distances learned on `port`.
    fn forget(&mut self, now: Time, port: Port) {
        for vertex in (0..self.vertices as u32).map(VertexId) {
            self.set(now, vertex, port, self.config.infinity);
        }
    }

    /// Stores an advertised distance, capped at infinity. On a change, recomputes the nearest
    /// ports, and triggers an advertisement if the best path has changed.
    #[inline]
    fn set(&mut self, now: Time, vertex: VertexId, port: Port, told: u16) {
        let place = vertex.index() * self.ports.len() + port.index();
        let told = told.min(self.config.infinity);
        if self.told.get(place) != Some(told) {
            self.change(now, vertex, place, told);
        }
    }

    fn change(&mut self, now: Time, vertex: VertexId, place: usize, told: u16) {
        let before = self.best(vertex);
        self.told.set(place, told);
        self.best[vertex.index()] = self.nearest_port(vertex);
        if let Some(row) = self.nearest.row(vertex) {
            self.fill(row, vertex);
        }
        let after = self.best(vertex);
        if before != after {
            self.trigger(now);
        }
        if before.is_some() && after.is_none() {
            self.lost.push(vertex);
        }
    }

    fn nearest_port(&self, vertex: VertexId) -> u16 {
        let first = vertex.index() * self.ports.len();
        let (mut least, mut nearest) = (self.config.infinity - 1, NOWHERE);
        for port in 0..self.ports.len() {
            let told = self.told.get(first + port).unwrap_or(u16::MAX);
            if told < least {
                (least, nearest) = (told, port as u16);
            }
        }
        nearest
    }

    fn fill(&mut self, row: usize, vertex: VertexId) {
        let DistanceVector { told, ports, nearest, config, .. } = self;
        let first = vertex.index() * ports.len();
        let all = (0..ports.len()).map(|port| Candidate {
            distance: told.get(first + port).unwrap_or(u16::MAX).saturating_add(1),
            port: Port(port as u16),
        });
        nearest.fill(row, config.infinity, all);
    }

    /// Returns the distance to a vertex, and the neighbour on the best path.
    #[inline]
    fn best(&self, vertex: VertexId) -> Option<(u16, VertexId)> {
        let port = *self.best.get(vertex.index()).filter(|port| **port != NOWHERE)?;
        let told = self.told.get(vertex.index() * self.ports.len() + usize::from(port))?;
        Some((told + 1, self.peers[usize::from(port)]))
    }

    fn trigger(&mut self, now: Time) {
        if self.triggered.is_none() {
            let soonest = self.told_at.map_or(now, |at| at.checked_add(self.config.trigger_gap).unwrap_or(Time::MAX));
            self.triggered = Some(soonest.max(now));
        }
    }
}

/// Inserts `candidate` into a sorted list of fixed length; the farthest is dropped. Equal distances
/// keep the order of insertion.
fn insert(nearest: &mut [Candidate], candidate: Candidate) {
    let Some(at) = nearest.iter().position(|other| candidate.distance < other.distance) else { return };
    nearest[at..].rotate_right(1);
    nearest[at] = candidate;
}
