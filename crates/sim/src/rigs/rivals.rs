//! EDM's packet-switched rivals in their rigs. Each is a file here: its programs, and the closed
//! form of a lone request. Its function has the rival's key in [`plan::rivals!`].

mod cxl;
mod dcqcn;
mod dctcp;
mod fastpass;
mod lone;
mod pfabric;
mod receiver_driven;
mod uncontrolled;

pub use cxl::*;
pub use dcqcn::dcqcn;
pub use dctcp::dctcp;
pub use fastpass::*;
pub use pfabric::pfabric;
pub use receiver_driven::*;
pub use uncontrolled::*;

use super::packet::PacketRigConfig;
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::Stage;
use plan::{Messages, Packet, Protocol};

/// Plays `rival` under the load of `plan`.
pub(crate) fn play(plan: &Messages, rival: &Packet, stage: Stage<'_>) -> Result<Played, RunError> {
    let network = PacketRigConfig::of(plan, rival, stage.seed(), stage.options.wire_check);
    macro_rules! play {
        ($( $(#[$doc:meta])* $rival:ident $key:ident : $file:ident of $config:ident; )*) => {
            match &rival.protocol { $(
                Protocol::$rival(config) => stage.play_messages(plan, &mut $key(config, &network)),
            )* }
        };
    }
    plan::rivals!(play)
}
