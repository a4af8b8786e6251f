//! Requests to memory and flash whose answers are to come.

use crate::RequestId;
use slab::Slab;

/// What each answer is for.
#[derive(Clone, Debug)]
pub(super) struct Asked<T> {
    open: Slab<(u32, T)>,
    serial: u32,
}

impl<T> Default for Asked<T> {
    fn default() -> Asked<T> {
        Asked { open: Slab::new(), serial: 0 }
    }
}

impl<T> Asked<T> {
    /// A name for a request.
    pub fn ask(&mut self, purpose: T) -> RequestId {
        self.serial = self.serial.wrapping_add(1);
        let index = self.open.insert((self.serial, purpose));
        RequestId(u64::from(self.serial) << 32 | index as u64)
    }
    /// What a request was for; `None` where it was answered before.
    pub fn answered(&mut self, request: RequestId) -> Option<T> {
        let (serial, index) = ((request.0 >> 32) as u32, (request.0 & 0xffff_ffff) as usize);
        let known = self.open.get(index).is_some_and(|(open, _)| *open == serial);
        known.then(|| self.open.remove(index).1)
    }
}
