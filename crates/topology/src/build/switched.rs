//! Fabrics of switches.

use super::{Edge, Fabric, even, in_range};
use crate::error::BuildError;
use crate::graph::{VERTICES_MAX, VertexId, VertexKind};

/// Maximum layers of a fat tree: with 4-port switches, 16 layers already exceed [`VERTICES_MAX`].
const LAYERS_MAX: u64 = 16;

impl Fabric<'_> {
    pub(super) fn switches(&mut self, count: u32) -> Result<Edge, BuildError> {
        Ok(Edge::All(self.add(VertexKind::Switch, 0, count)))
    }

    pub(super) fn redundant(&mut self, switches: u32) -> Result<Edge, BuildError> {
        in_range("switches", u64::from(switches), 2, VERTICES_MAX as u64)?;
        self.switches(switches)
    }

    pub(super) fn leaf_spine(&mut self, leaves: u32, spines: u32, endpoints: u32) -> Result<Edge, BuildError> {
        in_range("leaves", u64::from(leaves), 1, VERTICES_MAX as u64)?;
        in_range("spines", u64::from(spines), 1, VERTICES_MAX as u64)?;
        self.check_joins(u64::from(leaves) * u64::from(spines))?;
        let lower = self.add(VertexKind::Switch, 0, leaves);
        let upper = self.add(VertexKind::Switch, leaves, spines);
        for leaf in &lower {
            for spine in &upper {
                self.join([*leaf, *spine], self.config.cabling.lengths.near);
            }
        }
        Ok(Edge::One(lower, endpoints))
    }

    /// Switches of a layer below the top are numbered by `layers - 1` digits of base `radix / 2`,
    /// except that the first digit, the pod, has base `radix`. Layer `l` may change digit `l`
    /// (counted from the last) on the way up; the topmost layer joins all pods.
    pub(super) fn fat_tree(&mut self, radix: u32, layers: u32) -> Result<Edge, BuildError> {
        in_range("radix", u64::from(radix), 2, VERTICES_MAX as u64)?;
        even("radix", radix)?;
        in_range("layers", u64::from(layers), 1, LAYERS_MAX)?;
        let half = radix / 2;
        let top = u64::from(half).saturating_pow(layers - 1);
        let all = top.saturating_mul(2 * u64::from(layers) - 1);
        in_range("switches of the tree", all, 1, VERTICES_MAX as u64)?;
        self.check_joins(2 * top * u64::from(half) * u64::from(layers - 1))?;
        let top = top as u32;
        if layers == 1 {
            return Ok(Edge::One(self.add(VertexKind::Switch, 0, 1), radix));
        }
        let lower: Vec<_> =
            (0..layers - 1).map(|layer| self.add(VertexKind::Switch, layer * 2 * top, 2 * top)).collect();
        let upper = self.add(VertexKind::Switch, (layers - 1) * 2 * top, top);
        for (layer, pair) in lower.windows(2).enumerate() {
            self.layer(&pair[0], &pair[1], half, half.pow(layer as u32));
        }
        self.topmost(&lower[layers as usize - 2], &upper, half, layers);
        Ok(Edge::One(lower.into_iter().next().expect("a tree of two layers has a lowest one"), half))
    }

    /// Joins two layers below the top: the switches of both that agree in every digit except the
    /// one with this `weight`.
    fn layer(&mut self, lower: &[VertexId], upper: &[VertexId], half: u32, weight: u32) {
        for (index, switch) in lower.iter().enumerate() {
            let digit = index as u32 / weight % half;
            let rest = index as u32 - digit * weight;
            for up in 0..half {
                let above = upper[(rest + up * weight) as usize];
                self.join([*switch, above], self.config.cabling.lengths.near);
            }
        }
    }

    /// Joins the last layer below the top to the top: switch `s` of each pod to `half` top switches
    /// of its own, the same in every pod.
    fn topmost(&mut self, lower: &[VertexId], upper: &[VertexId], half: u32, layers: u32) {
        let lengths = &self.config.cabling.lengths;
        let length = if layers > 2 { lengths.far } else { lengths.near };
        let in_pod = upper.len() / half as usize;
        for (index, switch) in lower.iter().enumerate() {
            for up in 0..half as usize {
                self.join([*switch, upper[index % in_pod * half as usize + up]], length);
            }
        }
    }
}
