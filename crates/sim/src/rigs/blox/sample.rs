//! The state of a rack of volumes for series.

use super::BloxRig;
use super::drives::Drives;
use crate::sampler::Probe;
use record::Series;

/// Free blocks of a drive.
#[derive(Clone, Copy, Default)]
struct Free {
    blocks: u32,
    /// Of the die with the fewest.
    fewest: Option<u32>,
    is_collecting: bool,
}

impl BloxRig {
    pub(super) fn sample_state(&self, probe: &mut Probe) {
        let ports: Vec<(u64, u32)> = self.programs.switch.waiting().collect();
        probe.put_each(Series::PortQueueBytes, 0, ports.iter().map(|(bytes, _)| *bytes as f64));
        probe.put_each(Series::PortQueuePackets, 0, ports.iter().map(|(_, packets)| f64::from(*packets)));
        let open = self.programs.servers.iter().map(|server| server.open_requests() as f64);
        probe.put_each(Series::ServerRequests, 0, open);
        if self.plan.flash.direct().is_none() {
            self.sample_flash(probe);
        }
    }

    /// Drives are numbered server by server, those of the other rack last.
    fn sample_flash(&self, probe: &mut Probe) {
        let numbered = self.devices.servers.iter().enumerate();
        let free: Vec<Free> = numbered.flat_map(|(server, drives)| self.free_of(server, drives)).collect();
        probe.put_each(Series::FreeBlocks, 0, free.iter().map(|free| f64::from(free.blocks)));
        let fewest = free.iter().map(|free| f64::from(free.fewest.unwrap_or(0)));
        probe.put_each(Series::FreeBlocksOfDie, 0, fewest);
        let collecting = free.iter().map(|free| f64::from(u8::from(free.is_collecting)));
        probe.put_each(Series::Collecting, 0, collecting);
    }

    fn free_of(&self, server: usize, drives: &Drives) -> Vec<Free> {
        let mut free = vec![Free::default(); drives.count()];
        for vssd in drives.vssds() {
            let (flash, region) = drives.region(vssd);
            let Ok(layer) = flash.layer(region) else { continue };
            let of_drive = &mut free[drives.channels(vssd).0];
            of_drive.blocks += layer.free_blocks();
            let fewest = layer.fewest_free_blocks();
            of_drive.fewest = Some(of_drive.fewest.map_or(fewest, |other| other.min(fewest)));
            of_drive.is_collecting |= self.programs.servers[server].is_collecting(vssd);
        }
        free
    }
}
