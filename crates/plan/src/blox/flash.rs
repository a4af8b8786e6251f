//! What the drives of a plan are made of.

use super::file::PresetName;
use super::{Blox, Flash, OwnNumbers, PAGE, VictimName};
use base::{Bytes, Seed, Span};
use hardware::ssd::presets::{DriveConfig, p_ssd, preset};
use hardware::ssd::{DirectConfig, Geometry, SolidStateConfig, Timing, VictimPolicy};

impl PresetName {
    /// The preset of `hardware` with this name.
    pub fn drive(self) -> DriveConfig {
        let name = match self {
            PresetName::PSsd => "p-ssd",
            PresetName::IntelDc => "intel-dc",
            PresetName::Optane => "optane",
            PresetName::Samsung970Pro => "970-pro",
            PresetName::Pm9a3 => "pm9a3",
            PresetName::P3700 => "p3700",
            PresetName::TlcGen4 => "tlc-gen4",
        };
        let preset = preset(name).expect("every preset of a file is one of hardware's");
        (preset.config)(Seed(0))
    }
}

impl VictimName {
    /// The policy of `hardware` with this name.
    pub fn policy(self) -> VictimPolicy {
        match self {
            VictimName::Greedy => VictimPolicy::Greedy,
            VictimName::CostBenefit => VictimPolicy::CostBenefit,
            VictimName::Fifo => VictimPolicy::Fifo,
            VictimName::Random => VictimPolicy::Random,
        }
    }
}

impl Flash {
    /// The whole drive, which manages itself: for scenes whose drives are not divided. `None` for a
    /// medium that is written in place.
    pub fn whole(&self) -> Option<SolidStateConfig> {
        let DriveConfig::SolidState(mut config) = self.preset.drive() else { return None };
        self.own.put_into(&mut config);
        put(&mut config.geometry.pages_per_block, self.pages_per_block);
        put(&mut config.timing.suspension, self.suspension);
        config.collection.victim = self.victim.policy();
        config.collection.hot_cold = self.hot_cold;
        Some(config)
    }
    /// The medium that is written in place, if the preset is one.
    pub fn direct(&self) -> Option<DirectConfig> {
        match self.preset.drive() {
            DriveConfig::Direct(config) => Some(config),
            DriveConfig::SolidState(_) => None,
        }
    }

    /// The drive's parts, with the plan's own pages of a block and mapped by pages of a request. A
    /// medium that is written in place has no channels that belong to anyone: it takes the counts
    /// of the paper's drive, so that plans stay comparable.
    pub fn geometry(&self) -> Geometry {
        let geometry = self.solid_state().geometry;
        Geometry { pages_per_block: self.pages_per_block.unwrap_or(geometry.pages_per_block), unit: PAGE, ..geometry }
    }

    /// How long they take.
    pub fn timing(&self) -> Timing {
        let timing = self.solid_state().timing;
        Timing { suspension: self.suspension.unwrap_or(timing.suspension), ..timing }
    }

    /// Controller and host link of a read and of a write of one page, beside the flash.
    pub fn overhead(&self) -> [Span; 2] {
        let SolidStateConfig { firmware, link, .. } = self.solid_state();
        let moved = link.command + link.rate.span_of(PAGE);
        [firmware.read, firmware.write].map(|cost| cost.command + cost.per_4_kib + moved)
    }

    /// An erase block's data.
    pub fn block_bytes(&self) -> Bytes {
        self.geometry().block_bytes()
    }

    /// Kinds of pages, each with times of its own; none where the medium is written in place.
    pub fn kinds_of_pages(&self) -> usize {
        match self.preset.drive() {
            DriveConfig::SolidState(config) => config.timing.pages.len(),
            DriveConfig::Direct(_) => 0,
        }
    }

    fn solid_state(&self) -> SolidStateConfig {
        match self.preset.drive() {
            DriveConfig::SolidState(mut config) => {
                self.own.put_into(&mut config);
                config
            }
            DriveConfig::Direct(_) => p_ssd(Seed(0)),
        }
    }
}

impl OwnNumbers {
    /// Puts what is given in the place of a preset's numbers.
    fn put_into(&self, config: &mut SolidStateConfig) {
        put(&mut config.geometry.dies_per_channel, self.dies_per_channel);
        put(&mut config.timing.erase, self.erase);
        put(&mut config.timing.channel, self.channel);
        put(&mut config.firmware.read.command, self.read_firmware);
        put(&mut config.firmware.write.command, self.write_firmware);
        let pages = &mut config.timing.pages;
        pages.iter_mut().zip(self.read.iter().flatten()).for_each(|(page, read)| page.read = *read);
        pages.iter_mut().zip(self.program.iter().flatten()).for_each(|(page, program)| page.program = *program);
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Blox {
    /// The geometry of every drive: the preset's, with as many blocks as its virtual drives have.
    pub fn geometry(&self) -> Geometry {
        let geometry = self.flash.geometry();
        let dies = u64::from(self.vssd.channels * geometry.dies_per_channel);
        let own = self.vssd.capacity.count() / (self.flash.block_bytes().count() * dies);
        let blocks = u32::try_from(own * u64::from(self.vssd.group)).unwrap_or(u32::MAX);
        Geometry { planes_per_die: 1, blocks_per_plane: blocks, ..geometry }
    }

    /// What a snapshot of the rack's drives must have been made with, by name.
    pub fn snapshot_shape(&self) -> Vec<(String, u64)> {
        let (geometry, rack, vssd) = (self.geometry(), &self.rack, &self.vssd);
        let numbers = [
            ("servers", rack.servers.into()),
            ("ssds", rack.ssds.into()),
            ("remote replicas", u64::from(rack.remote_replica)),
            ("vSSDs an SSD", vssd.per_ssd.into()),
            ("channels of a vSSD", vssd.channels.into()),
            ("vSSDs of a group", vssd.group.into()),
            ("channels", geometry.channels.into()),
            ("dies a channel", geometry.dies_per_channel.into()),
            ("blocks a die", geometry.blocks_per_die().into()),
            ("pages a block", geometry.pages_per_block.into()),
            ("bytes a page", geometry.page.count()),
            ("pages of data a vSSD", self.io.working_set_blocks),
            ("pages a vSSD that swaps need", self.region_units() - self.io.working_set_blocks),
            ("hot and cold apart", u64::from(self.flash.hot_cold)),
        ];
        numbers.map(|(name, value)| (name.to_owned(), value)).into()
    }
}
