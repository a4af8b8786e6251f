//! One file a design: programs put into hardware models. A rig decides nothing.

pub mod blox;
pub mod edm;
mod messages;
pub mod packet;
pub mod rivals;
pub mod san;
pub mod scalio;
pub mod sdirect;
mod seat;
mod wear_facts;
