//! Scalio's cache protocol, and every broken variant of it, for the model checker Stateright.

pub mod catalog;
pub mod client;
pub mod judge;
pub mod model;
mod ours;
mod paper;
pub mod scenario;
pub mod server;
pub mod state;
pub mod trace;
pub mod variant;
