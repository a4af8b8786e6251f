//! Resolves the tables of a machine with devices to a plan: defaults that depend on the design,
//! ranges, and combinations.

use super::file::{ByName, TaskFile, TaskName, Usual};
use super::{Clients, Machine, Nic, SDirect, Task};
use crate::blox::Flash;
use crate::blox::file::{AddressesName, IoFile};
use crate::blox::resolve::addresses_of;
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::quantity::Plain;
use crate::resolve::Resolver;
use base::{Bytes, Span};
use hardware::ssd::presets::DriveConfig;
use hardware::ssd::{DriveError, SolidStateConfig};
use sdirect::baseline::stack::StackConfig;
use workload::storage::{Addresses, Assignment, Config, Mix};

impl Resolver<'_> {
    /// Reads all parts even if one is wrong, so that every error is reported at once.
    pub(crate) fn sdirect(&mut self, file: &ExperimentFile, design: DesignName) -> Option<SDirect> {
        let machine_file = file.machine.clone().unwrap_or_default();
        let own_preset = machine_file.preset;
        let mut machine = machine_file.resolve();
        let flash = self.whole_flash(file.flash.as_ref(), "machine", (own_preset, machine.preset));
        if let Some(flash) = &flash {
            machine.preset = flash.preset;
        }
        let drive = drive(&machine, flash.as_ref());
        self.check_machine(&machine, drive.as_ref());
        let clients = file.clients.clone().unwrap_or_default().resolve();
        let (nic, software) = self.logic(file, design, &machine);
        let task = self.task(&file.task.clone().unwrap_or_default(), design, &machine, &clients);
        let run_file = file.run.clone().unwrap_or_default();
        let io_file = file.io.clone().unwrap_or_default();
        self.refuse_idle_keys(design, &[("io.addresses", AddressesName::Uniform.word().into())]);
        let duration = run_file.duration.map(Plain::plain);
        let capacity = drive.as_ref().map_or(Bytes::ZERO, capacity_of);
        let io = self.device_io(&io_file, (&machine, capacity), &clients, task, (run_file.requests, duration));
        let run = self.run(&run_file, false);
        self.problems.is_empty().then_some(SDirect {
            design,
            machine,
            flash,
            nic,
            software,
            clients,
            task,
            io,
            requests_per_second: io_file.requests_per_second,
            run,
        })
    }

    fn check_machine(&mut self, machine: &Machine, drive: Option<&SolidStateConfig>) {
        if let DriveConfig::Direct(_) = machine.preset.drive() {
            self.conflict("machine.preset", "a machine's devices are flash here; this preset is written in place");
        }
        self.check_spare(drive);
    }

    /// A device that collection cannot keep going is refused here, and not found crawling in a run.
    fn check_spare(&mut self, drive: Option<&SolidStateConfig>) {
        let Some(drive) = drive.filter(|_| self.sound(&["flash"])) else { return };
        match drive.check() {
            Err(DriveError::Config { field, reason }) => self.conflict(&format!("machine.{field}"), reason),
            Err(error) => self.conflict("machine.preset", error.to_string()),
            Ok(()) => {}
        }
    }

    /// The NIC's logic or the machine's software, whichever the design has.
    fn logic(
        &mut self,
        file: &ExperimentFile,
        design: DesignName,
        machine: &Machine,
    ) -> (Option<Nic>, Option<StackConfig>) {
        if matches!(design, DesignName::Linux | DesignName::Spdk) {
            let usual = Usual { is_linux: design == DesignName::Linux, devices: machine.devices as u16 };
            return (None, Some(file.software.clone().unwrap_or_default().resolve(usual)));
        }
        let nic = file.nic.clone().unwrap_or_default().resolve();
        self.check_nic(&nic);
        (Some(nic), None)
    }

    fn check_nic(&mut self, nic: &Nic) {
        let unit = 4_096;
        if nic.transfer_max == Bytes::ZERO
            || !nic.transfer_max.count().is_multiple_of(unit)
            || nic.transfer_max > Bytes::kib(1 << 20)
        {
            let allowed = "a multiple of 4KiB up to 1GiB";
            self.report("nic.transfer_max", Problem::out_of_range(nic.transfer_max, allowed));
        }
        if nic.fifo < nic.transfer_max {
            let reason = format!("a FIFO of {} does not hold a transfer of {}", nic.fifo, nic.transfer_max);
            self.conflict("nic.fifo", reason);
        }
    }

    fn task(&mut self, file: &TaskFile, design: DesignName, machine: &Machine, clients: &Clients) -> Task {
        let is_nic = design == DesignName::SDirect;
        let task = file.resolve(is_nic);
        let Task { kind, moved_by, .. } = task;
        let moves = matches!(kind, TaskName::Copy | TaskName::Replicate);
        if (moves && moved_by == ByName::Nic || kind == TaskName::AddWrite) && !is_nic {
            let reason = format!("the design {} has no commands between devices", design.word());
            self.conflict("task.kind", reason);
        }
        if moves && moved_by == ByName::Client && !clients.remote && self.sound(&["clients"]) {
            self.conflict("task.moved_by", "data go through a client only with clients.remote = true");
        }
        let needs = if moves { task.targets + 1 } else { 1 };
        if machine.devices < needs && self.sound(&["machine"]) {
            self.conflict("task.kind", format!("{needs} devices are needed, and the machine has {}", machine.devices));
        }
        if !task.bytes.count().is_multiple_of(4_096) || task.bytes == Bytes::ZERO || task.bytes > Bytes::kib(1 << 20) {
            self.report("task.bytes", Problem::out_of_range(task.bytes, "a multiple of 4KiB up to 1GiB"));
        }
        task
    }

    fn device_io(
        &mut self,
        file: &IoFile,
        (machine, capacity): (&Machine, Bytes),
        clients: &Clients,
        task: Task,
        (requests, duration): (Option<u64>, Option<Span>),
    ) -> Config {
        if file.write_share.is_some() && task.kind != TaskName::ReadWrite && self.sound(&["task"]) {
            self.conflict("io.write_share", "`write_share` is valid only with task.kind = read-write");
        }
        let share = if task.kind == TaskName::ReadWrite { file.write_share.unwrap_or(0.0) } else { 1.0 };
        let blocks = capacity.count() / task.bytes.count().max(1);
        if blocks < 2 && self.sound(&["machine", "flash", "task"]) {
            let reason = format!("a device of {capacity} does not hold two of {}", task.bytes);
            self.conflict("task.bytes", reason);
        }
        let io = Config {
            clients: clients.count,
            volumes: machine.devices,
            assignment: Assignment::All,
            block: task.bytes,
            working_set_blocks: self.working_set(machine, task, blocks),
            mix: Mix::with_write_share(share),
            addresses: file.addresses.map_or(Addresses::Uniform, |_| addresses_of(file, Addresses::Uniform)),
            arrivals: self.io_arrivals(file, clients.count),
            requests,
            duration,
        };
        if self.sound(&["machine", "flash", "clients", "task", "io", "run"]) {
            self.impossible("io", io.problems());
        }
        io
    }

    /// Reads find data only in what was written; what is written may go anywhere, save the last
    /// block, which add_write reaches into.
    fn working_set(&mut self, machine: &Machine, task: Task, blocks: u64) -> u64 {
        let written = (blocks as f64 * machine.filled) as u64;
        match task.kind {
            TaskName::ReadWrite | TaskName::Copy | TaskName::Replicate if written > 0 => written,
            _ => blocks.saturating_sub(1).max(1),
        }
    }
}

impl SDirect {
    /// What a device offers: its blocks less the preset's spare ones.
    pub fn capacity(&self) -> Bytes {
        self.drive().as_ref().map_or(Bytes::ZERO, capacity_of)
    }

    /// A device's configuration, its own link left to the machine's tree. `None` for media that are
    /// no flash, which `plan` refuses.
    pub fn drive(&self) -> Option<SolidStateConfig> {
        drive(&self.machine, self.flash.as_ref())
    }
}

fn drive(machine: &Machine, flash: Option<&Flash>) -> Option<SolidStateConfig> {
    let whole = match (flash, machine.preset.drive()) {
        (Some(flash), _) => flash.whole(),
        (None, DriveConfig::SolidState(config)) => Some(config),
        (None, DriveConfig::Direct(_)) => None,
    };
    whole.map(|config| config.with_blocks_per_plane(machine.blocks_per_plane))
}

fn capacity_of(drive: &SolidStateConfig) -> Bytes {
    drive.geometry.unit * drive.logical_units()
}
