//! Packets on their legs, by place. Packets are large: each is written once, where it then lies
//! until it has gone.

use super::wires::{Fate, Leaving};
use prefetch_index::prefetch_index;
use san::Packet;
use std::ops::{Index, IndexMut};
use std::slice;

/// A packet on a leg. In this order, and from the start of a cache line on: nearly all of a packet
/// that is used is in the first two.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Its link, and the times of its transmission.
    pub leaving: Leaving,
    /// What travels.
    pub packet: Packet,
}

/// Grows to the most packets that were ever on legs and allocates nothing after that.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    places: Vec<Flight>,
    free: Vec<u32>,
    highest: usize,
}

impl Flights {
    /// None yet.
    pub fn new() -> Flights {
        Flights::default()
    }

    /// A packet begins; returns its place.
    pub fn insert(&mut self, packet: &Packet, leaving: Leaving) -> u32 {
        self.highest = self.highest.max(self.count() + 1);
        let Some(place) = self.free.pop() else {
            self.places.push(Flight { leaving, packet: packet.clone() });
            return self.places.len() as u32 - 1;
        };
        let flight = &mut self.places[place as usize];
        flight.leaving = leaving;
        flight.packet.become_copy_of(packet);
        place
    }

    /// A packet has arrived for good, or is lost.
    pub fn discard(&mut self, place: u32) {
        self[place].leaving.fate = Fate::Gone;
        self.free.push(place);
    }

    /// All that are on legs, in the order of their places.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flight> {
        self.places.iter_mut().filter(|flight| matches!(flight.leaving.fate, Fate::Arrives | Fate::Lost))
    }

    /// What is in a place, if anything is on its leg there.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&Flight> {
        self.places.get(place as usize).filter(|flight| flight.is_there())
    }

    /// Prefetches the two cache lines of a packet that most packets use.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        let Some(flight) = self.places.get(place as usize) else { return };
        prefetch_index(slice::from_ref(&flight.leaving), 0);
        prefetch_index(slice::from_ref(&flight.packet.trail), 0);
    }

    /// The most that ever were at a time, or since [`restart_highest`](Flights::restart_highest).
    pub fn highest(&self) -> usize {
        self.highest
    }

    /// Takes the most from now on.
    pub fn restart_highest(&mut self) {
        self.highest = self.count();
    }

    fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl Flight {
    fn is_there(&self) -> bool {
        self.leaving.fate != Fate::Gone
    }
}

impl Index<u32> for Flights {
    type Output = Flight;
    fn index(&self, place: u32) -> &Flight {
        let flight = &self.places[place as usize];
        assert!(flight.is_there(), "a packet was asked for after its end");
        flight
    }
}

impl IndexMut<u32> for Flights {
    fn index_mut(&mut self, place: u32) -> &mut Flight {
        let flight = &mut self.places[place as usize];
        assert!(flight.is_there(), "a packet was asked for after its end");
        flight
    }
}
