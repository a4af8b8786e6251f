//! The physical coding sublayer of EDM as a codec: 66-bit blocks in, 66-bit blocks out, no clock
//! and no wire.
//!
//! Read in this order: [`block`] (what 66 bits mean), [`memory`] (messages, notifications and
//! grants as blocks), [`frame`] (ordinary Ethernet frames as blocks), [`multiplex`] (both on one
//! line, and apart again), [`timing`] (how long a block takes) and [`mux_model`] (the same
//! multiplexer by item instead of by block, for the simulator).

mod bits;
pub mod block;
pub mod frame;
mod header;
mod line;
pub mod memory;
pub mod multiplex;
pub mod mux_model;
mod sequence;
pub mod timing;
