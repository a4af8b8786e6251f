//! The design of a point: its own table's keys over their defaults, its stack, and what cannot be.

use super::{RATES, Resolver};
use crate::design_file::{
    CxlFile, DcqcnFile, DctcpFile, DesignFile, DesignName, FastpassFile, HardwareTcpFile, PfabricFile, RawEthernetFile, ReceiverDrivenFile,
    Rocev2File,
};
use crate::error::Problem;
use crate::ground::Ground;
use crate::plan::{Design, Edm, Fabric, Packet, Protocol};
use crate::stack::stack_of;
use base::Bytes;
use transport::config::{Pause, RateControl};

/// The largest switch of the paper (EDM, 4.1), and what the node field of its control blocks can name.
const EDM_NODES_MAX: u64 = 512;
/// Payload of a jumbo frame.
const MTU_MAX: u64 = 9_000;
/// Far more than any switch port has, and far from overflow.
pub(super) const BUFFER_MAX: u64 = 1 << 40;

impl Resolver<'_> {
    /// The design on `fabric`. Where that is not known, what is wrong on the slowest rack and on the
    /// fastest alike.
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
        let protocol = protocol_of(name, file, &ground)?;
        // Their defaults depend on the rack and on presets.
        let table = serde_json::to_value(protocol.table()).expect("a table can be written in JSON");
        self.refuse_idle_keys(name, &[("design", table)]);
        self.check_protocol(&protocol);
        Some(Design::Packet(Packet { protocol, stack_name, stack }))
    }

    fn edm(&mut self, file: &DesignFile, fabric: &Fabric, ground: &Ground) -> Edm {
        let table = file.edm.clone().unwrap_or_default();
        let mut edm = table.resolve(ground);
        if table.batch.is_none() {
            edm.config.batch = edm.config.chunk;
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

    /// What depends on other keys, or is by default as large as the rack makes it.
    fn check_protocol(&mut self, protocol: &Protocol) {
        let table = format!("design.{}", protocol.name().word());
        match protocol {
            Protocol::Dcqcn(config) => self.check_dcqcn(&table, config),
            Protocol::Pfabric(config) => {
                self.bytes("queue", &table, config.queue, 1..=BUFFER_MAX);
                if let RateControl::Dctcp(dctcp) = &config.control {
                    self.bytes("mark_above", &table, dctcp.mark_above, 0..=BUFFER_MAX);
                }
            }
            Protocol::ReceiverDriven(config) => {
                self.bytes("outstanding", &table, config.outstanding, config.mtu.count()..=BUFFER_MAX);
            }
            Protocol::Cxl(config) => {
                self.bytes("flit_wire", &table, config.flit_wire, config.flit_payload.count()..=MTU_MAX);
            }
            _ => {}
        }
    }

    /// What of DCQCN's parameters depends on each other.
    pub(crate) fn check_dcqcn(&mut self, table: &str, config: &transport::config::Dcqcn) {
        self.bytes("mark_from", table, config.mark_from, 0..=config.mark_all.count());
        if let Pause::Static { above, below } = config.pause {
            self.bytes("resume_below", table, below, 1..=above.count());
        }
    }

    fn bytes(&mut self, key: &str, table: &str, got: Bytes, allowed: std::ops::RangeInclusive<u64>) {
        if !allowed.contains(&got.count()) {
            let range = format!("{}..={}", Bytes::new(*allowed.start()), Bytes::new(*allowed.end()));
            self.report(&format!("{table}.{key}"), Problem::out_of_range(got, range));
        }
    }
}

/// The rival `name` with its parameters; `None` for designs that are none.
fn protocol_of(name: DesignName, file: &DesignFile, ground: &Ground) -> Option<Protocol> {
    macro_rules! resolved {
        ($table:ident) => {
            file.$table.clone().unwrap_or_default().resolve(ground)
        };
    }
    Some(match name {
        DesignName::Dctcp => Protocol::Dctcp(resolved!(dctcp)),
        DesignName::Dcqcn => Protocol::Dcqcn(file.dcqcn.clone().unwrap_or_default().parameters(ground)),
        DesignName::Pfabric => Protocol::Pfabric(resolved!(pfabric)),
        DesignName::ReceiverDriven => Protocol::ReceiverDriven(resolved!(receiver_driven)),
        DesignName::Cxl => Protocol::Cxl(resolved!(cxl)),
        DesignName::Fastpass => Protocol::Fastpass(resolved!(fastpass)),
        DesignName::RawEthernet => Protocol::RawEthernet(resolved!(raw_ethernet)),
        DesignName::Rocev2 => Protocol::Rocev2(resolved!(rocev2)),
        DesignName::HardwareTcp => Protocol::HardwareTcp(resolved!(hardware_tcp)),
        _ => return None,
    })
}

impl Protocol {
    /// The table of the design, with all of its parameters.
    pub(crate) fn table(&self) -> DesignFile {
        let mut file = DesignFile::default();
        match self {
            Protocol::Dctcp(config) => file.dctcp = Some(DctcpFile::of(config)),
            Protocol::Dcqcn(config) => file.dcqcn = Some(DcqcnFile { preset: None, ..DcqcnFile::of(config) }),
            Protocol::Pfabric(config) => file.pfabric = Some(PfabricFile::of(config)),
            Protocol::ReceiverDriven(config) => file.receiver_driven = Some(ReceiverDrivenFile::of(config)),
            Protocol::Cxl(config) => file.cxl = Some(CxlFile::of(config)),
            Protocol::Fastpass(config) => file.fastpass = Some(FastpassFile::of(config)),
            Protocol::RawEthernet(config) => file.raw_ethernet = Some(RawEthernetFile::of(config)),
            Protocol::Rocev2(config) => file.rocev2 = Some(Rocev2File::of(config)),
            Protocol::HardwareTcp(config) => file.hardware_tcp = Some(HardwareTcpFile::of(config)),
        }
        file
    }

    /// The name of the design and of its table.
    pub fn name(&self) -> DesignName {
        match self {
            Protocol::Dctcp(_) => DesignName::Dctcp,
            Protocol::Dcqcn(_) => DesignName::Dcqcn,
            Protocol::Pfabric(_) => DesignName::Pfabric,
            Protocol::ReceiverDriven(_) => DesignName::ReceiverDriven,
            Protocol::Cxl(_) => DesignName::Cxl,
            Protocol::Fastpass(_) => DesignName::Fastpass,
            Protocol::RawEthernet(_) => DesignName::RawEthernet,
            Protocol::Rocev2(_) => DesignName::Rocev2,
            Protocol::HardwareTcp(_) => DesignName::HardwareTcp,
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
            let protocol = protocol_of(design, &DesignFile::default(), &ground);
            assert_eq!(protocol.map(|protocol| protocol.name()), is_rival.then_some(design));
            assert_eq!(ground.stack.host_pass() > ground.stack.transceiver, is_rival, "{design:?}");
        }
    }
}
