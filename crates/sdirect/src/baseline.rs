//! What S-Direct is compared with: software on the host's cores.

pub mod stack;
pub mod target;
