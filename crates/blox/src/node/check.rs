//! Whether a configuration makes a storage server.

use super::interface::{NodeConfig, NodeError, VssdConfig};
use crate::collect::CollectionConfig;
use base::Span;
use std::collections::BTreeSet;

/// Everything that can be said without a device; the first fault found.
pub(super) fn check(config: &NodeConfig) -> Result<(), NodeError> {
    check_cache(config)?;
    check_collection(&config.collection)?;
    check_spans(config)?;
    at_least_one("device_depth", u64::from(config.device_depth))?;
    at_least_one("replication.fetch_window", config.replication.fetch_window as u64)?;
    if let Some(borrow) = config.borrow {
        at_least_one("borrow.group_blocks", u64::from(borrow.group_blocks))?;
        at_least_one("borrow.keep_blocks", u64::from(borrow.keep_blocks))?;
    }
    let mut names = BTreeSet::new();
    for vssd in &config.vssds {
        check_vssd(vssd)?;
        at_least_one("vssd.epoch", u64::from(vssd.epoch))?;
        if !names.insert(vssd.id) {
            return Err(NodeError::Twice(vssd.id));
        }
        if !vssd.replicas.contains(&Some((config.id, vssd.id))) {
            return Err(NodeError::NotAReplica { vssd: vssd.id, server: config.id });
        }
    }
    Ok(())
}

/// One vSSD for itself.
pub(super) fn check_vssd(vssd: &VssdConfig) -> Result<(), NodeError> {
    at_least_one("vssd.pages", vssd.pages)?;
    at_least_one("vssd.streams", u64::from(vssd.streams))?;
    if let Some(isolation) = vssd.isolation {
        at_least_one("vssd.isolation.per_second", isolation.per_second)?;
        at_least_one("vssd.isolation.burst", isolation.burst)?;
    }
    Ok(())
}

fn check_cache(config: &NodeConfig) -> Result<(), NodeError> {
    let pages = u64::from(config.cache.pages);
    at_least_one("cache.pages", pages)?;
    in_range("cache.flush_above", u64::from(config.cache.flush_above), 0, pages - 1)
}

fn check_collection(collection: &CollectionConfig) -> Result<(), NodeError> {
    let CollectionConfig { regular_ppm, soft_ppm, stop_ppm, .. } = *collection;
    if regular_ppm <= soft_ppm && soft_ppm <= stop_ppm && stop_ppm <= 1_000_000 {
        return Ok(());
    }
    Err(NodeError::Thresholds { regular_ppm, soft_ppm, stop_ppm })
}

fn check_spans(config: &NodeConfig) -> Result<(), NodeError> {
    positive("collection.check_period", config.collection.check_period)?;
    positive("collection.answer_timeout", config.collection.answer_timeout)?;
    positive("replication.retransmit", config.replication.retransmit)?;
    positive("replication.replay", config.replication.replay)?;
    let Some(control) = config.control else { return Ok(()) };
    positive("control.heartbeat", control.heartbeat)?;
    if control.lease <= control.heartbeat {
        return Err(NodeError::Lease { lease: control.lease, heartbeat: control.heartbeat });
    }
    Ok(())
}

fn positive(field: &'static str, span: Span) -> Result<(), NodeError> {
    at_least_one(field, span.as_ps())
}

fn at_least_one(field: &'static str, got: u64) -> Result<(), NodeError> {
    in_range(field, got, 1, u64::MAX)
}

fn in_range(field: &'static str, got: u64, min: u64, max: u64) -> Result<(), NodeError> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(NodeError::OutOfRange { field, got, min, max }) }
}
