//! Names of open R2Ts.

use crate::pdu::PduError;
use crate::transfer::target_write::unknown_tag;

/// Transfer tags of a connection: each open one leads to the command it belongs to. The upper bits
/// of a tag change with every use of its place, so that data under a finished tag are refused
/// instead of taken for the next user's.
#[derive(Clone, Debug)]
pub struct Tags<T> {
    places: Vec<Place<T>>,
    free: Vec<u16>,
    /// Low bits of a tag that are its place.
    place_bits: u32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    tag: u16,
    user: Option<T>,
}

impl<T> Tags<T> {
    /// Most tags: at least one bit distinguishes uses.
    pub const CAPACITY_MAX: u16 = 1 << 15;

    /// Up to `capacity` open at a time, at most [`Self::CAPACITY_MAX`].
    pub fn new(capacity: u16) -> Self {
        let capacity = capacity.min(Self::CAPACITY_MAX);
        let places = (0..capacity).map(|tag| Place { tag, user: None }).collect();
        let place_bits = capacity.saturating_sub(1).checked_ilog2().map_or(0, |bits| bits + 1);
        Tags { places, free: (0..capacity).rev().collect(), place_bits }
    }

    /// A tag for `user`; `None`, and the user with it dropped, when all are open.
    pub fn open(&mut self, user: T) -> Option<u16> {
        let place = &mut self.places[usize::from(self.free.pop()?)];
        place.user = Some(user);
        Some(place.tag)
    }

    /// The user of `tag`; an error that ends the connection without one.
    pub fn find(&self, tag: u16) -> Result<&T, PduError> {
        let place = self.places.get(self.place(tag)).filter(|place| place.tag == tag);
        place.and_then(|place| place.user.as_ref()).ok_or(unknown_tag(tag))
    }

    /// Frees `tag` and returns its user; the error of [`Self::find`] without one.
    pub fn close(&mut self, tag: u16) -> Result<T, PduError> {
        let index = self.place(tag);
        let place = self.places.get_mut(index).filter(|place| place.tag == tag);
        let place = place.ok_or(unknown_tag(tag))?;
        let user = place.user.take().ok_or(unknown_tag(tag))?;
        place.tag = place.tag.wrapping_add(1 << self.place_bits);
        self.free.push(index as u16);
        Ok(user)
    }

    /// Returns the number of open tags.
    pub fn open_count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn place(&self, tag: u16) -> usize {
        usize::from(tag) & ((1 << self.place_bits) - 1)
    }
}
