//! Rejects impossible configurations, with their numbers.

use super::{ControlConfig, ControlError};
use crate::id::VssdId;
use crate::packet::REPLICAS_MAX;
use base::{NodeId, Span};
use std::collections::BTreeSet;

pub fn check(config: &ControlConfig) -> Result<(), ControlError> {
    check_times(config)?;
    let (vssd_step, groups) = (config.vssd_step, config.groups.len());
    if vssd_step != 1 && (vssd_step as usize) < groups.max(1) {
        return Err(ControlError::VssdStep { vssd_step, groups });
    }
    let mut vssds = BTreeSet::new();
    for (group, replicas) in config.groups.iter().enumerate() {
        check_group(config, group, replicas)?;
        for (_, vssd) in replicas {
            if vssd.0 >= config.next_vssd || !vssds.insert(*vssd) {
                return Err(ControlError::VssdTaken { group, vssd: *vssd, next_vssd: config.next_vssd });
            }
        }
    }
    Ok(())
}

fn check_times(config: &ControlConfig) -> Result<(), ControlError> {
    let ControlConfig { lease, beat, misses, patience, resend, .. } = *config;
    if lease <= beat || beat == Span::ZERO || resend == Span::ZERO {
        return Err(ControlError::LeaseTooShort { lease, beat, resend });
    }
    if lease >= beat * u64::from(misses) {
        return Err(ControlError::LeaseTooLong { lease, beat, misses });
    }
    if patience < beat * u64::from(misses) {
        return Err(ControlError::Patience { patience, beat, misses });
    }
    Ok(())
}

fn check_group(config: &ControlConfig, group: usize, replicas: &[(NodeId, VssdId)]) -> Result<(), ControlError> {
    let servers: BTreeSet<NodeId> = replicas.iter().map(|(node, _)| *node).collect();
    if replicas.is_empty() || replicas.len() >= REPLICAS_MAX || servers.len() < replicas.len() {
        return Err(ControlError::Replicas { group, got: replicas.len(), servers: servers.len() });
    }
    let is_known = |node: &NodeId| config.servers.iter().any(|place| place.node == *node);
    match servers.iter().find(|node| !is_known(node)) {
        Some(node) => Err(ControlError::UnknownServer { group, node: *node }),
        None => Ok(()),
    }
}
