//! Reads that are redirected now, for a data path that forwards packets beside the program.

use super::Switch;
use crate::VssdId;
use crate::packet::{Body, Packet};
use base::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A server, and the vSSD there that serves reads of another one.
pub type Redirect = (NodeId, VssdId);

/// What such a data path has been told.
#[derive(Clone, Debug, Default)]
pub struct Redirects {
    registered: BTreeSet<VssdId>,
    told: BTreeMap<VssdId, Redirect>,
}

impl Redirects {
    /// Returns what a packet, which `switch` has processed to its end, has changed: vSSDs whose
    /// reads go to another replica from now on, and `None` for those whose reads no longer do.
    pub fn after(&mut self, switch: &mut Switch, packet: &Packet) -> Vec<(VssdId, Option<Redirect>)> {
        match packet.body {
            Body::Create { .. } => drop(self.registered.insert(packet.vssd)),
            Body::Delete | Body::Collection(_) => {}
            _ => return Vec::new(),
        }
        self.registered.retain(|vssd| switch.is_registered(*vssd));
        let all = self.registered.iter();
        let now: BTreeMap<VssdId, Redirect> =
            all.filter_map(|vssd| Some((*vssd, switch.redirect_of(*vssd)?))).collect();
        let before = std::mem::replace(&mut self.told, now);
        let gone = before.keys().filter(|vssd| !self.told.contains_key(vssd)).map(|vssd| (*vssd, None));
        let new = self.told.iter().filter(|(vssd, to)| before.get(vssd) != Some(to));
        gone.chain(new.map(|(vssd, to)| (*vssd, Some(*to)))).collect()
    }
}
