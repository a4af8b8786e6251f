//! The design of a point: its own table's keys over their defaults, its stack, and what cannot be.

use super::{RATES, Resolver};
use crate::design_file::{DesignFile, DesignName};
use crate::error::Problem;
use crate::ground::Ground;
use crate::plan::{Design, Edm, Fabric, Packet, Protocol};
use crate::stack::stack_of;
use base::Bytes;

/// The largest switch of the paper (EDM, 4.1), and what the node field of its control blocks can
/// name.
const EDM_NODES_MAX: u64 = 512;
/// Payload of a jumbo frame.
pub(crate) const MTU_MAX: u64 = 9_000;
/// Far more than any switch port has, and far from overflow.
pub(crate) const BUFFER_MAX: u64 = 1 << 40;

impl Resolver<'_> {
    /// The design on `fabric`. Where that is not known, what is wrong on the slowest rack and on
    /// the fastest alike.
    pub(super) fn design_on(&mut self, file: &DesignFile, fabric: &Fabric) -> Option<Design> {
        if self.sound(&["fabric"]) {
            return self.design(file, fabric);
        }
        let known = self.problems.errors().len();
        let [(design, slowest), (_, fastest)] = [*RATES.start(), *RATES.end()].map(|rate| {
            let design = self.design(file, &Fabric { rate, ..*fabric });
            (design, self.problems.split_off(known))
        });
        self.problems.extend(slowest.into_iter().filter(|error| fastest.contains(error)));
        design
    }

    pub(super) fn design(&mut self, file: &DesignFile, fabric: &Fabric) -> Option<Design> {
        let name = file.name?;
        let stack_name = file.stack();
        let stack = stack_of(name, stack_name, fabric.transceiver);
        let ground = Ground { rate: fabric.rate, propagation: fabric.propagation, stack };
        if name == DesignName::Edm {
            return Some(Design::Edm(self.edm(file, fabric, &ground)));
        }
        let protocol = Protocol::of(name, file, &ground)?;
        // Their defaults depend on the rack and on presets.
        let table = serde_json::to_value(protocol.table()).expect("a table can be written in JSON");
        self.refuse_idle_keys(name, &[("design", table)]);
        protocol.check(self);
        Some(Design::Packet(Packet { protocol, stack_name, stack }))
    }

    fn edm(&mut self, file: &DesignFile, fabric: &Fabric, ground: &Ground) -> Edm {
        let table = file.edm.clone().unwrap_or_default();
        let mut edm = table.resolve(ground);
        if table.batch.is_none() {
            edm.config.batch = edm.config.chunk;
        }
        if table.iterations.is_none() && edm.config.matching == edm::Matching::Slotted {
            edm.config.iterations_per_round = fabric.nodes.max(2).next_power_of_two().ilog2();
        }
        if u64::from(fabric.nodes) > EDM_NODES_MAX && self.sound(&["fabric"]) {
            let allowed = format!("2..={EDM_NODES_MAX} with design edm");
            self.report("fabric.nodes", Problem::out_of_range(fabric.nodes, allowed));
        }
        let edm::Config { batch, chunk, .. } = edm.config;
        if batch > chunk {
            let reason = format!("a batch of {batch} is more than a chunk of {chunk}: one grant must cover it");
            self.conflict("design.edm.batch", reason);
        }
        edm
    }

    pub(crate) fn bytes(&mut self, key: &str, table: &str, got: Bytes, allowed: std::ops::RangeInclusive<u64>) {
        if !allowed.contains(&got.count()) {
            let range = format!("{}..={}", Bytes::new(*allowed.start()), Bytes::new(*allowed.end()));
            self.report(&format!("{table}.{key}"), Problem::out_of_range(got, range));
        }
    }
}

impl Design {
    /// The design's name.
    pub fn name(&self) -> DesignName {
        match self {
            Design::Edm(_) => DesignName::Edm,
            Design::Packet(packet) => packet.protocol.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::SceneName;
    use crate::schema::schema;

    /// Every design that a file may name.
    fn designs() -> Vec<DesignName> {
        let words = schema()["$defs"]["DesignName"]["oneOf"].as_array().expect("designs are words").clone();
        words.iter().map(|word| serde_json::from_value(word["const"].clone()).expect("a word is a design")).collect()
    }

    #[test]
    fn a_design_is_a_rival_of_edm_or_none_and_every_rival_stands_on_a_stack() {
        for design in designs() {
            let ground = Ground::shown(design);
            let is_rival = design.scene() == SceneName::Messages && design != DesignName::Edm;
            let protocol = Protocol::of(design, &DesignFile::default(), &ground);
            assert_eq!(protocol.map(|protocol| protocol.name()), is_rival.then_some(design));
            assert_eq!(ground.stack.host_pass() > ground.stack.transceiver, is_rival, "{design:?}");
        }
    }
}
