//! What hosts ask of a rack when it is simulated.

use super::{Checks, Rack};
use crate::error::Problem;
use crate::file::words;
use crate::table::table;

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

table! {
    /// What a host asks of a volume by a door, page by page, when `rackweave run` simulates the
    /// rack.
    LoadFile {
        /// The door's name.
        door: String [length from 1] where [needed],
        /// The volume's name.
        volume: String [length from 1] where [needed],
        /// Which pages follow each other.
        order: OrderName = OrderName::Random,
        /// The share of reads; the rest are writes.
        reads: f64 [0.0 to 1.0] = 1.0,
        /// Requests that are open at a time.
        depth: u32 [1 to 65_536] where [without rate] = 1,
        /// Requests a second on average, at random times, however many are open.
        rate: f64 [0.001 to 1_000_000_000.0],
        /// Requests, for a page of 4 KiB each.
        requests: u64 [1 to 5_000_000] = 10_000,
        /// Write every page of the volume first. Its requests are not measured.
        fill: bool = false,
    }
}

impl Checks<'_> {
    /// The loads. Where doors or volumes are wrong it reports nothing.
    pub(super) fn loads(&mut self, rack: &Rack) -> Vec<Load> {
        let mut loads: Vec<Load> = Vec::new();
        for (at, file) in self.file.load.clone().unwrap_or_default().into_iter().enumerate() {
            let (Some(door), Some(volume)) = (&file.door, &file.volume) else { continue };
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
}
