//! Drives without a store, behind an NVMe over Fabrics target: on the box's cores, or in its
//! adapter (2.2).
//!
//! The target handles a read twice, on its way to the drive and back. On cores each half takes the
//! next core; in the adapter no core takes part.

use crate::{Extent, RequestId, SECTOR_BYTES};
use base::{Program, Time};
use slab::Slab;

/// Where the target runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On this number of cores.
    Cores(u32),
    /// In the adapter.
    Adapter,
}

/// The unit that handles one half of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// This core, behind its other work.
    Core(u32),
    /// The adapter's own target.
    Adapter,
}

/// Inputs of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetIn {
    /// The command of a read has arrived.
    Command {
        /// The caller's identifier of the read.
        request: RequestId,
        /// The device.
        device: u32,
        /// The sectors.
        extent: Extent,
    },
    /// The device has read.
    Read {
        /// The target's identifier of the read.
        slot: u32,
    },
}

/// Decisions of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetOut {
    /// `unit` hands the command to the device.
    Submit {
        /// The target's identifier of the read.
        slot: u32,
        /// The unit.
        unit: Unit,
        /// The device.
        device: u32,
        /// The sectors.
        extent: Extent,
    },
    /// `unit` completes the command; then the answer leaves.
    Answer {
        /// The caller's identifier of the read.
        request: RequestId,
        /// The unit.
        unit: Unit,
        /// Length in bytes.
        bytes: u32,
    },
}

/// A target.
#[derive(Clone, Debug)]
pub struct Target {
    placement: Placement,
    next_core: u32,
    reads: Slab<(RequestId, Extent)>,
}

impl Target {
    /// A target without commands.
    pub fn new(placement: Placement) -> Target {
        Target { placement, next_core: 0, reads: Slab::new() }
    }

    /// The unit of the next half of a read.
    fn unit(&mut self) -> Unit {
        match self.placement {
            Placement::Adapter => Unit::Adapter,
            Placement::Cores(count) => {
                let core = self.next_core;
                self.next_core = (core + 1) % count;
                Unit::Core(core)
            }
        }
    }
}

impl Program for Target {
    type In = TargetIn;
    type Out = TargetOut;

    fn on(&mut self, _: Time, input: TargetIn, out: &mut Vec<TargetOut>) {
        match input {
            TargetIn::Command { request, device, extent } => {
                let slot = self.reads.insert((request, extent)) as u32;
                out.push(TargetOut::Submit { slot, unit: self.unit(), device, extent });
            }
            TargetIn::Read { slot } => {
                let Some((request, extent)) = self.reads.try_remove(slot as usize) else { return };
                out.push(TargetOut::Answer { request, unit: self.unit(), bytes: extent.sectors * SECTOR_BYTES });
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn on_wakeup(&mut self, _: Time, _: &mut Vec<TargetOut>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { sector: 8, sectors: 2 };

    fn tell(target: &mut Target, input: TargetIn) -> TargetOut {
        let mut out = Vec::new();
        target.on(Time::ZERO, input, &mut out);
        assert_eq!(out.len(), 1, "{out:?}");
        out[0]
    }

    fn command(request: u64) -> TargetIn {
        TargetIn::Command { request: RequestId(request), device: 3, extent: EXTENT }
    }

    #[test]
    fn each_half_of_a_read_takes_the_next_core() {
        let mut target = Target::new(Placement::Cores(3));
        let submit = |slot, core| TargetOut::Submit { slot, unit: Unit::Core(core), device: 3, extent: EXTENT };
        let answer = |request, core| {
            let bytes = 2 * SECTOR_BYTES;
            TargetOut::Answer { request: RequestId(request), unit: Unit::Core(core), bytes }
        };
        assert_eq!(tell(&mut target, command(70)), submit(0, 0));
        assert_eq!(tell(&mut target, command(71)), submit(1, 1));
        assert_eq!(tell(&mut target, TargetIn::Read { slot: 1 }), answer(71, 2));
        assert_eq!(tell(&mut target, TargetIn::Read { slot: 0 }), answer(70, 0));
    }

    #[test]
    fn in_the_adapter_no_core_takes_part_and_a_read_ends_once() {
        let mut target = Target::new(Placement::Adapter);
        let submit = TargetOut::Submit { slot: 0, unit: Unit::Adapter, device: 3, extent: EXTENT };
        assert_eq!(tell(&mut target, command(5)), submit);
        let answer = TargetOut::Answer { request: RequestId(5), unit: Unit::Adapter, bytes: 2 * SECTOR_BYTES };
        assert_eq!(tell(&mut target, TargetIn::Read { slot: 0 }), answer);
        let mut out = Vec::new();
        target.on(Time::ZERO, TargetIn::Read { slot: 0 }, &mut out);
        assert_eq!(out, []);
    }
}
