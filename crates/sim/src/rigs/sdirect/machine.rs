//! The machine as models: PCIe tree, devices, memory. It says when things are where; programs
//! decide what happens.

use super::BuildError;
use base::{Bytes, Seed, Span, Time};
use hardware::ssd::{Command, CommandKind, Done, HostLink, Pattern, Precondition, SolidState};
use hardware::{Dram, DramConfig, PcieDirection, PcieLinkConfig, PciePlace, PcieTraffic, PcieTree};
use plan::blox::FlashState;
use plan::sdirect::SDirect;
use sdirect::DeviceOperation;

/// A submission queue entry, a completion queue entry, a doorbell (NVMe Base Specification 2.0,
/// figures 86 and 91; 3.1.4).
const SUBMISSION: Bytes = Bytes::new(64);
const COMPLETION: Bytes = Bytes::new(16);
const DOORBELL: Bytes = Bytes::new(4);
/// What a device moves at a time.
pub const CHUNK: u32 = 4_096;

/// Where a queue pair or a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// On the NIC.
    Nic,
    /// In the host's memory.
    Memory,
}

/// Where a leg begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Device,
    Nic,
    Root,
}

/// A part of data's way that is booked when they get there: booking the whole way at its begin
/// would have others wait for what is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// Over PCIe, by writes or completions.
    Move(End, End),
    /// A read request over PCIe, for data the other way.
    Ask(End, End),
    /// Into or out of the host's memory.
    Memory,
}

/// Data of a read, from the device to where its giver takes them.
pub const fn read_way(buffers: Home, giver_is_nic: bool) -> &'static [Leg] {
    use End::{Device, Nic, Root};
    use Leg::{Ask, Memory, Move};
    match (buffers, giver_is_nic) {
        (Home::Nic, _) => &[Move(Device, Nic)],
        (Home::Memory, false) => &[Move(Device, Root), Memory],
        (Home::Memory, true) => &[Move(Device, Root), Memory, Ask(Nic, Root), Memory, Move(Root, Nic)],
    }
}

/// Data of a write, from where its giver has them to the device.
pub const fn write_way(buffers: Home, giver_is_nic: bool) -> &'static [Leg] {
    use End::{Device, Nic, Root};
    use Leg::{Memory, Move};
    match (buffers, giver_is_nic) {
        (Home::Nic, _) => &[Move(Nic, Device)],
        (Home::Memory, false) => &[Memory, Move(Root, Device)],
        (Home::Memory, true) => &[Move(Nic, Root), Memory, Memory, Move(Root, Device)],
    }
}

/// From the NIC's port into the host's memory, and back.
pub const INTO_MEMORY: &[Leg] = &[Leg::Move(End::Nic, End::Root), Leg::Memory];
pub const OUT_OF_MEMORY: &[Leg] = &[Leg::Ask(End::Nic, End::Root), Leg::Memory, Leg::Move(End::Root, End::Nic)];

struct Device {
    place: PciePlace,
    drive: SolidState,
    /// When its controller can begin the next command.
    free_at: Time,
}

/// The machine.
pub struct Machine {
    tree: PcieTree,
    switch: PciePlace,
    nic: PciePlace,
    devices: Vec<Device>,
    gap: Span,
    memory: Dram,
    memory_bytes: u64,
}

impl Machine {
    /// A machine as planned, all its devices in the same state.
    pub fn new(sdirect: &SDirect, seed: Seed) -> Result<Machine, BuildError> {
        let plan = &sdirect.machine;
        let link = |rate| PcieLinkConfig {
            rate,
            payload_max: plan.payload_max,
            read_max: plan.read_max,
            overhead: plan.packet_overhead,
            latency: plan.link_latency,
        };
        let mut tree = PcieTree::new();
        let switch = tree.add(PcieTree::ROOT, link(plan.root_link)).map_err(BuildError::of)?;
        let nic = tree.add(switch, link(plan.nic_link)).map_err(BuildError::of)?;
        let drive = drive(sdirect, seed)?;
        let mut devices = Vec::new();
        for _ in 0..plan.devices {
            let place = tree.add(switch, link(plan.device_link)).map_err(BuildError::of)?;
            devices.push(Device { place, drive: drive.clone(), free_at: Time::ZERO });
        }
        let config = DramConfig { latency: plan.memory_latency, bandwidth: Some(plan.memory_bandwidth) };
        let gap = Span::secs(1) / u64::from(plan.commands_per_second);
        Ok(Machine { tree, switch, nic, devices, gap, memory: Dram::new(config), memory_bytes: 0 })
    }

    fn place(&self, home: Home) -> PciePlace {
        match home {
            Home::Nic => self.nic,
            Home::Memory => PcieTree::ROOT,
        }
    }

    /// The doorbell reaches the device, which fetches the command.
    pub fn fetch_command(&mut self, now: Time, device: u16, queue: Home) -> Time {
        let (queue, place) = (self.place(queue), self.devices[device as usize].place);
        let rung = self.tree.transfer(now, queue, place, DOORBELL).1;
        let asked = self.tree.request(rung, place, queue, SUBMISSION);
        self.tree.transfer(asked, queue, place, SUBMISSION).1
    }

    /// When a device's controller begins a command that it has.
    pub fn begin(&mut self, now: Time, device: u16) -> Time {
        let device = &mut self.devices[device as usize];
        let start = device.free_at.max(now);
        device.free_at = start + self.gap;
        start
    }

    /// The flash's part of a command.
    pub fn access(&mut self, now: Time, device: u16, operation: DeviceOperation, address: u64, bytes: u32) -> Done {
        let kind = match operation {
            DeviceOperation::Read => CommandKind::Read,
            DeviceOperation::Write => CommandKind::Write,
        };
        let command = Command { kind, address, bytes: Bytes::new(u64::from(bytes)) };
        let done = self.devices[device as usize].drive.submit(now, command);
        done.expect("the plan keeps requests within the devices, and its flash lasts")
    }

    /// A device asks for data of a write: when its request is there.
    pub fn ask(&mut self, now: Time, device: u16, buffer: Home, bytes: u32) -> Time {
        let (from, to) = (self.devices[device as usize].place, self.place(buffer));
        self.tree.request(now, from, to, Bytes::new(u64::from(bytes)))
    }

    /// One leg of data on their way, to or from a device or not: when it is over.
    pub fn leg(&mut self, now: Time, leg: Leg, device: u16, bytes: u32) -> Time {
        let size = Bytes::new(u64::from(bytes));
        let place = |end| match end {
            End::Device => self.devices[device as usize].place,
            End::Nic => self.nic,
            End::Root => PcieTree::ROOT,
        };
        match leg {
            Leg::Move(from, to) => {
                let (from, to) = (place(from), place(to));
                self.tree.transfer(now, from, to, size).1
            }
            Leg::Ask(from, to) => {
                let (from, to) = (place(from), place(to));
                self.tree.request(now, from, to, size)
            }
            Leg::Memory => {
                self.memory_bytes += size.count();
                self.memory.submit(now, size)
            }
        }
    }

    /// A completion leaves a device: when it is in its queue.
    pub fn complete(&mut self, now: Time, device: u16, queue: Home) -> Time {
        let (from, to) = (self.devices[device as usize].place, self.place(queue));
        self.tree.transfer(now, from, to, COMPLETION).1
    }

    /// Data and queue entries that the host's memory has taken and given.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// What went between switch and root complex: up and down.
    pub fn root_traffic(&self) -> [PcieTraffic; 2] {
        [PcieDirection::Up, PcieDirection::Down].map(|direction| self.tree.traffic(self.switch, direction))
    }

    /// What went between NIC and switch: up and down.
    pub fn nic_traffic(&self) -> [PcieTraffic; 2] {
        [PcieDirection::Up, PcieDirection::Down].map(|direction| self.tree.traffic(self.nic, direction))
    }

    /// How long each direction of each link was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        for place in self.tree.places() {
            let directions = [PcieDirection::Up, PcieDirection::Down];
            out.extend(directions.map(|direction| self.tree.traffic(place, direction).busy));
        }
    }

    /// Starts new reports of the devices' flash.
    pub fn restart_reports(&mut self) {
        self.devices.iter_mut().for_each(|device| device.drive.restart_report());
    }

    /// The devices' flash.
    pub fn drives(&self) -> impl Iterator<Item = &SolidState> {
        self.devices.iter().map(|device| &device.drive)
    }
}

/// A device's flash. Its link is the tree's, so that its own takes no time.
fn drive(plan: &SDirect, seed: Seed) -> Result<SolidState, BuildError> {
    const NO_TIME: base::Rate = base::Rate::gbps(1_000_000);
    let mut config = plan.drive().ok_or_else(|| BuildError("the preset is no flash".into()))?;
    config.seed = seed.child("devices");
    config.link = HostLink { rate: NO_TIME, ..config.link };
    let mut drive = SolidState::new(config).map_err(BuildError::of)?;
    if plan.machine.filled > 0.0 {
        let pattern = match plan.flash.as_ref().map(|flash| &flash.state) {
            Some(FlashState::Fragmented(steady)) => Pattern::Fragmented(*steady),
            _ => Pattern::Sequential,
        };
        drive.precondition(Precondition { fill: plan.machine.filled, pattern }).map_err(BuildError::of)?;
        drive.restart_report();
    }
    Ok(drive)
}
