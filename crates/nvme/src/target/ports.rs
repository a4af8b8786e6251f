//! The ports of a target, as the discovery log lists them.

use crate::log::TransportSecurity;
use crate::target::PortId;
use crate::target::config::PortConfig;

/// All ports.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) all: Vec<PortConfig>,
    /// Counts changes of the discovery log (GENCTR).
    pub(super) generation: u64,
}

impl Ports {
    pub(super) fn new(all: Vec<PortConfig>) -> Self {
        Ports { all, generation: 1 }
    }

    pub(super) fn contain(&self, id: PortId) -> bool {
        self.all.iter().any(|port| port.id == id)
    }

    /// Whether a port takes hosts without TLS.
    pub(super) fn is_plain(&self, id: PortId) -> bool {
        self.all.iter().any(|port| port.id == id && port.security == TransportSecurity::None)
    }
}
