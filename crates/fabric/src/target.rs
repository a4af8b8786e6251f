//! The end whose memory others read and write.

use crate::abi;
use crate::end::{End, Where};
use crate::library::FabricError;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// Where registered memory is, for an [`Initiator`](crate::Initiator).
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The provider, such as `tcp`; both ends have the same.
    pub provider: String,
    /// Format of the address, a number of libfabric.
    pub format: u32,
    /// The address of the endpoint.
    pub address: Vec<u8>,
    /// The key of the memory. Who knows it may read and write all of it.
    pub key: u64,
    /// What the first byte of the memory is called.
    pub base: u64,
}

impl fmt::Debug for Place {
    /// Without the key, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("provider", &self.provider).field("address", &self.address).finish()
    }
}

/// Registered memory. Providers without hardware access it in [`Self::turn`] alone.
pub struct Target<M: Deref<Target = [AtomicU64]>> {
    end: End,
    place: Place,
    /// Dropped when nobody reaches it any more.
    memory: Option<Box<M>>,
    done: Vec<usize>,
}

impl<M: Deref<Target = [AtomicU64]>> Target<M> {
    /// Registers memory at an address of this machine; port 0 takes a free one. `key` is its key
    /// where the provider leaves the choice to us: random, so that nobody knows it unless told.
    ///
    /// # Errors
    /// When the library is missing or does not have the provider here, or the port is taken.
    #[expect(unsafe_code, reason = "the memory that is registered")]
    pub fn open(provider: &str, address: SocketAddr, memory: M, key: u64) -> Result<Target<M>, FabricError> {
        let mut end = End::open(provider, &Where::Here(address))?;
        let lack = |lack| FabricError::Unable { provider: provider.to_owned(), lack };
        let chooses = !end.wants(abi::MR_PROV_KEY);
        if chooses && end.key_bytes() < size_of::<u64>() {
            return Err(lack("has keys of less than 8 bytes, which others can guess"));
        }
        let memory = Box::new(memory);
        let words: &[AtomicU64] = &memory;
        let (first, bytes) = (words.as_ptr().cast_mut(), size_of_val(words));
        let access = abi::REMOTE_READ | abi::REMOTE_WRITE;
        // SAFETY: `memory` is not moved, changed or dropped before the end is closed. Its words are
        // atomics: others change them at any time.
        let key = unsafe { end.register(first.cast(), bytes, access, key) }?;
        let base = if end.wants(abi::MR_VIRT_ADDR) { first.addr() as u64 } else { 0 };
        let place = Place { provider: provider.to_owned(), format: end.format(), address: end.address()?, key, base };
        Ok(Target { end, place, memory: Some(memory), done: Vec::new() })
    }

    /// Where the memory is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Has the provider work: it accepts connections, and accesses the memory for others.
    ///
    /// # Errors
    /// When its queue fails.
    pub fn turn(&mut self) -> Result<(), FabricError> {
        self.done.clear();
        self.end.take(&mut self.done)
    }

    /// Whether a thread may wait for [`Self::fd`]. Asked after [`Self::turn`].
    pub fn may_sleep(&mut self) -> bool {
        self.end.may_sleep()
    }

    /// A file that is readable when there is something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.end.fd()
    }
}

impl<M: Deref<Target = [AtomicU64]>> Drop for Target<M> {
    fn drop(&mut self) {
        let memory = self.memory.take();
        if !self.end.close() {
            // Others might still reach it.
            std::mem::forget(memory);
        }
    }
}
