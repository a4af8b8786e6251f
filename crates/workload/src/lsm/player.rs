//! Plays an [`LsmConfig`].

use super::config::LsmConfig;
use super::instance::{Io, Purpose, Shared, Store};
use super::operations::Operations;
use super::tree::store_bytes;
use crate::generator::{Arrival, Source};
use crate::limits::Limits;
use crate::outbox::Outbox;
use base::{Bytes, NodeId, Request, RequestId, Seed, Time};
use std::collections::BTreeMap;

/// Plays an [`LsmConfig`]: every store has streams of its own (`workload/lsm/<store>/...`).
#[derive(Clone, Debug)]
pub struct Lsm {
    stores: Vec<Store>,
    /// Source and target of each store.
    places: Vec<(NodeId, NodeId)>,
    operations: Operations,
    left: u64,
    end: Time,
    outbox: Outbox<(usize, Io)>,
    in_flight: BTreeMap<RequestId, (usize, Purpose)>,
    limits: Limits,
    /// Kept for its memory.
    asked: Vec<(Time, Io)>,
}

impl Lsm {
    /// A player of `config`. `seed` decides every draw.
    ///
    /// # Panics
    /// If `config` has [`problems`](LsmConfig::problems). Check external configurations first.
    pub fn new(config: &LsmConfig, seed: Seed) -> Lsm {
        let problems = config.problems();
        assert!(problems.is_empty(), "the stores were not checked: {}", problems[0]);
        let size = store_bytes(config);
        let store = |index: u32| {
            let start = u64::from(index / config.volumes) * size;
            Store::new(config, start, seed.child(&format!("workload/lsm/{index}")))
        };
        let place = |index: u32| (NodeId(index % config.clients), NodeId(config.clients + index % config.volumes));
        Lsm {
            stores: (0..config.stores).map(store).collect(),
            places: (0..config.stores).map(place).collect(),
            operations: Operations::new(),
            left: config.operations.unwrap_or(u64::MAX),
            end: config.duration.map_or(Time::MAX, |span| Time::ZERO + span),
            outbox: Outbox::default(),
            in_flight: BTreeMap::new(),
            limits: Limits::new(None, config.duration),
            asked: Vec::new(),
        }
    }

    /// What became of key-value requests so far.
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Returns how many I/Os were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    fn with_store(&mut self, index: usize, act: impl FnOnce(&mut Store, &mut Shared<'_>)) {
        let Lsm { stores, operations, left, end, outbox, asked, .. } = self;
        act(&mut stores[index], &mut Shared { operations, left, end: *end, out: asked });
        asked.drain(..).for_each(|(at, io)| outbox.push(at, (index, io)));
    }

    fn pop(&mut self) -> Option<Arrival> {
        let (at, (store, io)) = self.outbox.pop()?;
        let id = self.limits.admit(at)?;
        self.in_flight.insert(id, (store, io.purpose));
        let (source, target) = self.places[store];
        let Io { operation, address, bytes, .. } = io;
        Some(Arrival { at, request: Request { id, operation, source, target, address, bytes: Bytes::new(bytes) } })
    }
}

impl Source for Lsm {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        for index in 0..self.stores.len() {
            self.with_store(index, Store::start);
        }
        out.extend(self.pop());
    }

    fn after_arrival(&mut self, _taken: &Arrival) -> Option<Arrival> {
        self.pop()
    }

    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        if let Some((index, purpose)) = self.in_flight.remove(&finished.id) {
            let bytes = finished.bytes.count();
            self.with_store(index, |store, shared| store.ended(purpose, bytes, now, shared));
        }
        self.pop()
    }

    fn awaits_an_end(&self, now: Time) -> bool {
        self.limits.is_open(now) && !self.in_flight.is_empty()
    }
}
