//! Policies of a user's own, in place of decisions of the designs.

use base::{Decide, Decision};
use blox::{CollectionCheck, QueuedJob, ReadPath};
use edm::Competitor;
use plan::DesignName;
use std::sync::Arc;

/// Policies of a user's own, where there are any.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Which demand wins in EDM's scheduler.
    pub edm: Option<Arc<dyn Decide<Competitor>>>,
    /// Decisions in a rack of RackBlox.
    pub blox: blox::Policies,
}

/// A decision that has a place in some designs.
pub trait Place: Decision {
    /// The designs.
    const DESIGNS: &'static [DesignName];

    /// Where its policy stands.
    fn of(policies: &mut Policies) -> &mut Option<Arc<dyn Decide<Self>>>;
}

impl Place for Competitor {
    const DESIGNS: &'static [DesignName] = &[DesignName::Edm];

    fn of(policies: &mut Policies) -> &mut Option<Arc<dyn Decide<Competitor>>> {
        &mut policies.edm
    }
}

/// The designs with storage servers of RackBlox.
const SERVERS: &[DesignName] = &[DesignName::Rackblox, DesignName::RackbloxSoftware, DesignName::Vdc];

impl Place for QueuedJob {
    const DESIGNS: &'static [DesignName] = SERVERS;

    fn of(policies: &mut Policies) -> &mut Option<Arc<dyn Decide<QueuedJob>>> {
        &mut policies.blox.order
    }
}

impl Place for CollectionCheck {
    const DESIGNS: &'static [DesignName] = SERVERS;

    fn of(policies: &mut Policies) -> &mut Option<Arc<dyn Decide<CollectionCheck>>> {
        &mut policies.blox.collect
    }
}

/// Only RackBlox's switch decides about reads.
impl Place for ReadPath {
    const DESIGNS: &'static [DesignName] = &[DesignName::Rackblox];

    fn of(policies: &mut Policies) -> &mut Option<Arc<dyn Decide<ReadPath>>> {
        &mut policies.blox.replica
    }
}
