//! Scalio's cache protocol, and every broken variant of it, for the model checker Stateright.
//!
//! A step is one operation on remote memory or flash, of a client or of the server, or one mishap;
//! any order of them is explored. Reads of a block can be torn. `docs/concepts/one-sided-caches.md`
//! has the results. Read `scenario` and `variant` first, then `ours` and `server`; `paper` is the
//! paper's client, `judge` defines linearizability, `model` connects them, `catalog` lists the
//! explored cases.

pub mod catalog;
mod client;
pub mod explore;
mod fold;
mod judge;
mod model;
mod ours;
pub mod page;
mod paper;
pub mod programs;
mod reduced;
pub mod scenario;
mod server;
mod state;
pub mod sweep;
pub mod trace;
pub mod variant;

pub use state::Fault;
