//! What hosts ask of a rack when it is simulated.

use super::{Checks, Rack};
use crate::error::Problem;
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::Bytes;

words! {
    /// Which pages follow each other.
    OrderName {
        /// Any, all alike.
        Random,
        /// One after the other, and the first after the last.
        Sequential,
    }
}

/// What a host asks of a volume by a door, in a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The place of the door in [`Rack::doors`].
    pub door: usize,
    /// The place of the volume in [`Rack::volumes`].
    pub volume: usize,
    /// Which pages follow each other.
    pub order: OrderName,
    /// The share of reads.
    pub reads: f64,
    /// Requests that are open at a time.
    pub depth: u32,
    /// Requests a second on average, however many are open.
    pub rate: Option<f64>,
    /// Requests for a page.
    pub requests: u64,
    /// Whether every page is written first.
    pub fill: bool,
}

/// What clients ask of a store, in a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreLoad {
    /// The place of the store in [`Rack::stores`].
    pub store: usize,
    /// The share of GETs; the rest are SETs.
    pub reads: f64,
    /// Operations that are open at a time.
    pub depth: u32,
    /// Operations a second on average, however many are open.
    pub rate: Option<f64>,
    /// Operations.
    pub requests: u64,
    /// Keys, all of which are there at first.
    pub keys: u32,
    /// Bytes of each value.
    pub value: Bytes,
    /// The exponent of a zipfian law; without, all keys are alike.
    pub theta: Option<f64>,
}

table! {
    /// What a host asks of a volume by a door, page by page, or what clients ask of a store, key by
    /// key, when `rackweave run` simulates the rack.
    LoadFile {
        /// The door's name.
        door: String [length from 1] where [without store; needed],
        /// The volume's name.
        volume: String [length from 1] where [without store; needed],
        /// The store's name, in place of `door` and `volume`.
        store: String [length from 1],
        /// Of a store: keys, all of which are there at first, and none in memory.
        keys: u32 [1 to 200_000_000] where [given store] = 100_000,
        /// Of a store: size of each value, up to the one that its JBOF allows.
        value: Quantity<Bytes> ["8B" to "512MiB"] where [given store] = Bytes::new(64),
        /// Of a store: the exponent of a zipfian law by which keys are chosen (YCSB: 0.99). All are
        /// alike when not given.
        theta: f64 [0.01 to 4.0] where [given store],
        /// Which pages follow each other.
        order: OrderName where [without store] = OrderName::Random,
        /// The share of reads; the rest are writes. Of a store those are GETs and SETs.
        reads: f64 [0.0 to 1.0] = 1.0,
        /// Requests that are open at a time.
        depth: u32 [1 to 65_536] where [without rate] = 1,
        /// Requests a second on average, at random times, however many are open.
        rate: f64 [0.001 to 1_000_000_000.0],
        /// Requests, for a page of 4 KiB or a key each.
        requests: u64 [1 to 5_000_000] = 10_000,
        /// Write every page of the volume first. Its requests are not measured.
        fill: bool where [without store] = false,
    }
}

impl Checks<'_> {
    /// The loads. Where doors or volumes are wrong it reports nothing.
    pub(super) fn loads(&mut self, rack: &Rack) -> Vec<Load> {
        let mut loads: Vec<Load> = Vec::new();
        for (at, file) in self.file.load.clone().unwrap_or_default().into_iter().enumerate() {
            let (Some(door), Some(volume), None) = (&file.door, &file.volume, &file.store) else { continue };
            let door = self.named(&format!("load.{at}.door"), door, rack.doors.iter().map(|one| &one.name));
            let volume = self.named(&format!("load.{at}.volume"), volume, rack.volumes.iter().map(|one| &one.name));
            let (Some(door), Some(volume)) = (door, volume) else { continue };
            if loads.iter().any(|other| other.door == door) {
                let reason =
                    format!("`{}` has a load already; each is a host with a door of its own", rack.doors[door].name);
                self.resolver.report(&format!("load.{at}.door"), Problem::Conflict(reason));
            }
            loads.push(Load {
                door,
                volume,
                order: file.order(),
                reads: file.reads(),
                depth: file.depth(),
                rate: file.rate,
                requests: file.requests(),
                fill: file.fill(),
            });
        }
        loads
    }

    /// The loads of stores, one each.
    pub(super) fn store_loads(&mut self, rack: &Rack) -> Vec<StoreLoad> {
        let mut loads: Vec<StoreLoad> = Vec::new();
        for (at, file) in self.file.load.clone().unwrap_or_default().into_iter().enumerate() {
            let Some(name) = &file.store else { continue };
            let key = format!("load.{at}.store");
            let Some(store) = self.named(&key, name, rack.stores.iter().map(|one| &one.name)) else { continue };
            if loads.iter().any(|other| other.store == store) {
                let reason = format!("`{name}` has a load already");
                self.resolver.report(&key, Problem::Conflict(reason));
            }
            loads.push(StoreLoad {
                store,
                reads: file.reads(),
                depth: file.depth(),
                rate: file.rate,
                requests: file.requests(),
                keys: file.keys(),
                value: file.value(),
                theta: file.theta,
            });
        }
        loads
    }
}
