//! A queue pair on the NIC: which of its command slots are taken.

/// Slots of one device, by command identifier.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    uses: Vec<Option<T>>,
    free: Vec<u16>,
}

impl<T> Slots<T> {
    pub(crate) fn new(depth: u16) -> Slots<T> {
        Slots { uses: (0..depth).map(|_| None).collect(), free: (0..depth).rev().collect() }
    }
    /// Takes a free slot.
    pub(crate) fn take(&mut self, item: T) -> Option<u16> {
        let slot = self.free.pop()?;
        self.uses[slot as usize] = Some(item);
        Some(slot)
    }
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }
    /// What a slot is taken for. A device may name any slot.
    pub(crate) fn get(&self, slot: u16) -> Option<&T> {
        self.uses.get(slot as usize)?.as_ref()
    }
    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u16) -> Option<T> {
        let item = self.uses.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(item)
    }
    /// Slots that are taken.
    pub(crate) fn taken(&self) -> Vec<u16> {
        (0..self.uses.len() as u16).filter(|slot| self.uses[*slot as usize].is_some()).collect()
    }
}
