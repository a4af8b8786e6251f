//! One file a design: programs put into hardware models. A rig decides nothing.

pub mod edm;
pub mod packet;
pub mod rivals;
