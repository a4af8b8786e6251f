//! One-sided access to memory of another process by libfabric: a [`Target`] registers it, and an
//! [`Initiator`] reads, writes and compares-and-swaps it.
//!
//! libfabric is opened when it is wanted ([`Library::open`]): a build needs none of it, and a
//! program that does not ask for it loads nothing. Beside `mapped`, this is the only crate of the
//! house with `unsafe`. `abi` has the layouts, `library` the exported functions, `end` the objects
//! that both ends have.
//!
//! What the [`Initiator`] promises:
//!
//! - A read of aligned words finds each of them whole, as some write or swap has left it.
//! - A swap is atomic, also beside processors of the target.
//! - A write is there for everybody when it is done.
//! - Operations are executed in any order, if the next one does not wait for the end of one.

mod abi;
mod end;
mod initiator;
mod library;
mod target;

pub use initiator::{Done, Entry, Initiator};
pub use library::{FabricError, Library};
pub use target::{Place, Target};
