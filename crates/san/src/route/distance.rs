//! Distance-vector routing (paper, 3.2): every neighbour's distances are kept per port, and the
//! best few ports to each vertex.
//!
//! States of a port: *up* (its neighbour is one hop away, and what it told counts), *silent* (up,
//! but a forwarding neighbour has not been heard for the hold time: nothing counts), *down*. Any
//! change of a best distance or of the neighbour that it leads to is told at once, but not more
//! often than the gap; everything is told once a period. Distances at or over the bound are
//! infinite, so that two parts that have lost each other stop counting there.

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
    /// The best way that does not begin with it. Ours: gives every hop a second way at once, and
    /// more candidates.
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
    told: Told,
    /// By port: the vertex there, once more, close together.
    peers: Vec<VertexId>,
    /// By vertex: the nearest port, ties by port, or [`NOWHERE`].
    best: Vec<u16>,
    /// The nearest ports to those vertices that somebody has asked for.
    nearest: Nearest,
    next_period: Time,
    triggered: Option<Time>,
    told_at: Option<Time>,
    lost: Vec<VertexId>,
}

/// No port is called so: there are fewer.
const NOWHERE: u16 = u16::MAX;

/// Distances, as narrow as their bound allows: a large network has many.
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

    /// At most the bound.
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
    /// How many are kept for each.
    kept: usize,
    /// By vertex: its row, counted from 1; 0 of those without one.
    rows: Vec<u16>,
    /// By row: how many there are.
    known: Vec<u16>,
    /// By row, then rank: nearest first, ties by port. Unused places are infinite.
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

    /// A row for a vertex that had none.
    fn add(&mut self, vertex: VertexId) -> usize {
        let row = self.known.len();
        self.known.push(0);
        self.candidates.resize((row + 1) * self.kept, Candidate::default());
        // A vertex asks for no way to itself, so that there are fewer rows than 16 bits count.
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
    /// The distances of `here` when all links are up and nobody has told anything yet.
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

    /// The nearest ports to `vertex`, nearest first, ties by port; ports that lead nowhere are not
    /// among them. Of a vertex that was [`prepare`](Self::prepare)d.
    #[inline]
    pub fn candidates(&self, vertex: VertexId) -> &[Candidate] {
        self.nearest.of(vertex)
    }

    /// Hops to `vertex`; `None` when there is no way.
    pub fn distance(&self, vertex: VertexId) -> Option<u16> {
        if vertex == self.here {
            return Some(0);
        }
        self.best(vertex).map(|(distance, _)| distance)
    }

    /// Hops to `vertex` by `port`; `None` when there is no way.
    pub fn distance_by(&self, vertex: VertexId, port: Port) -> Option<u16> {
        let told = self.told.get(vertex.index() * self.ports.len() + port.index())?;
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
        self.set(now, vertex, port, 0);
        self.trigger(now);
    }

    /// A neighbour tells its distances. Vertices that it leaves out have no way; what is too much
    /// is passed over.
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
            self.set(now, vertex, port, self.config.infinity);
        }
    }

    /// Notes what a neighbour told, at most infinite. Where it is news the nearest ports are found
    /// anew, and it is told when the best way has changed.
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

    /// Hops to a vertex, and the neighbour to which the best way leads.
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

/// Puts `candidate` where it belongs in a sorted list of fixed length; the farthest falls out.
/// Equal distances stay in order of coming.
fn insert(nearest: &mut [Candidate], candidate: Candidate) {
    let Some(at) = nearest.iter().position(|other| candidate.distance < other.distance) else { return };
    nearest[at..].rotate_right(1);
    nearest[at] = candidate;
}
