//! From what is written of a machine with devices to a plan: defaults that depend on the design, ranges, and combinations.

use super::file::{AskersFile, ByName, SoftwareFile, TaskFile, TaskName};
use super::{Askers, Machine, Nic, SDirect, Task};
use crate::blox::Flash;
use crate::blox::file::IoFile;
use crate::blox::resolve::addresses_of;
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::quantity::Plain;
use crate::resolve::Resolver;
use base::{Bytes, Span};
use hardware::ssd::presets::DriveConfig;
use hardware::ssd::{DriveError, SolidStateConfig};
use sdirect::baseline::stack::{Notice, StackConfig};
use workload::storage::{Addresses, Assignment, Config, Mix};

/// What a kind of software costs unless the file says otherwise.
struct Costs {
    cores: u32,
    submission: Span,
    doorbell: Span,
    completion: Span,
    batch: u32,
    notice: Notice,
}

/// Yang, Minturn and Hady (FAST'12, section 3) on an interrupt-driven read of 4 KiB: 4.4 us of the kernel's own, of which a context switch is
/// 1.4 us; the split of the rest is ours. No coalescing: Linux leaves feature 08h as it is.
const LINUX: Costs = Costs {
    cores: 4,
    submission: Span::ns(1_500),
    doorbell: Span::ns(100),
    completion: Span::ns(700),
    batch: 1,
    notice: Notice::Interrupt {
        handler: Span::ns(700),
        context_switch: Span::ns(1_400),
        threshold: 1,
        time: Span::us(100),
    },
};
/// Ours: SPDK's own overhead is some hundred nanoseconds a command (Yang et al., CloudCom'17, Figure 5). The paper's batch is "large" and not given; 128
/// fill a queue of usual depth.
const SPDK: Costs = Costs {
    cores: 1,
    submission: Span::ns(200),
    doorbell: Span::ns(100),
    completion: Span::ns(200),
    batch: 128,
    notice: Notice::Poll { look: Span::ns(100) },
};

impl Resolver<'_> {
    /// All parts are read even when one is wrong, so that every mistake is reported at once.
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
        let askers = self.askers(&file.askers.clone().unwrap_or_default());
        let (nic, software) = self.logic(file, design, &machine);
        let task = self.task(&file.task.clone().unwrap_or_default(), design, &machine, &askers);
        let run_file = file.run.clone().unwrap_or_default();
        let io_file = file.io.clone().unwrap_or_default();
        let duration = run_file.duration.map(Plain::plain);
        let capacity = drive.as_ref().map_or(Bytes::ZERO, capacity_of);
        let io = self.device_io(&io_file, (&machine, capacity), &askers, task, (run_file.requests, duration));
        let run = self.run(&run_file, false);
        self.problems.is_empty().then_some(SDirect {
            design,
            machine,
            flash,
            nic,
            software,
            askers,
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

    fn askers(&mut self, file: &AskersFile) -> Askers {
        let askers = file.resolve();
        if !askers.remote {
            for key in ["rate", "delay", "packet", "header", "loss_percent", "timeout", "attempts"] {
                self.refuse_key(&format!("askers.{key}"), &format!("`{key}` goes only with askers.remote = true"));
            }
        }
        askers
    }

    /// The NIC's logic or the machine's software, whichever the design has.
    fn logic(
        &mut self,
        file: &ExperimentFile,
        design: DesignName,
        machine: &Machine,
    ) -> (Option<Nic>, Option<StackConfig>) {
        let costs = match design {
            DesignName::Linux => LINUX,
            DesignName::Spdk => SPDK,
            _ => {
                self.foreign_tables(&["software"], design);
                let nic = file.nic.clone().unwrap_or_default().resolve();
                self.check_nic(&nic);
                return (Some(nic), None);
            }
        };
        self.foreign_tables(&["nic"], design);
        let software = file.software.clone().unwrap_or_default();
        (None, Some(self.software(&software, design, &costs, machine)))
    }

    fn check_nic(&mut self, nic: &Nic) {
        let unit = 4_096;
        if nic.piece == Bytes::ZERO || !nic.piece.count().is_multiple_of(unit) || nic.piece > Bytes::kib(1 << 20) {
            let allowed = "a multiple of 4KiB up to 1GiB";
            self.report("nic.piece", Problem::out_of_range(nic.piece, allowed));
        }
        if nic.fifo < nic.piece {
            let reason = format!("a FIFO of {} does not hold a piece of {}", nic.fifo, nic.piece);
            self.conflict("nic.fifo", reason);
        }
    }

    fn software(&mut self, file: &SoftwareFile, design: DesignName, costs: &Costs, machine: &Machine) -> StackConfig {
        let stray: &[&str] = match costs.notice {
            Notice::Interrupt { .. } => &["look"],
            Notice::Poll { .. } => &["interrupt", "context_switch", "coalesce", "coalesce_time"],
        };
        for key in stray {
            self.refuse_key(
                &format!("software.{key}"),
                &format!("`{key}` does not go with the design {}", design.word()),
            );
        }
        StackConfig {
            cores: file.cores.unwrap_or(costs.cores * machine.devices),
            devices: machine.devices as u16,
            queue_depth: file.queue_depth() as u16,
            submission: file.submission.map_or(costs.submission, Plain::plain),
            doorbell: file.doorbell.map_or(costs.doorbell, Plain::plain),
            completion: file.completion.map_or(costs.completion, Plain::plain),
            batch: file.batch.unwrap_or(costs.batch),
            batch_time: file.batch_time(),
            notice: notice(file, costs.notice),
        }
    }

    fn task(&mut self, file: &TaskFile, design: DesignName, machine: &Machine, askers: &Askers) -> Task {
        let is_nic = design == DesignName::SDirect;
        let mut task = file.resolve(is_nic);
        let Task { kind, by, .. } = task;
        if kind != TaskName::Replicate {
            task.targets = 1;
        }
        let moves = matches!(kind, TaskName::Copy | TaskName::Replicate);
        if file.by.is_some() && !moves {
            self.conflict("task.by", "`by` goes only with kind = copy and kind = replicate");
        }
        if file.targets.is_some() && kind != TaskName::Replicate {
            self.conflict("task.targets", "`targets` goes only with kind = replicate");
        }
        if (moves && by == ByName::Nic || kind == TaskName::AddWrite) && !is_nic {
            let reason = format!("the design {} has no commands between devices", design.word());
            self.conflict("task.kind", reason);
        }
        if moves && by == ByName::Client && !askers.remote && self.sound(&["askers"]) {
            self.conflict("task.by", "data go through a client only with askers.remote = true");
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
        askers: &Askers,
        task: Task,
        (requests, duration): (Option<u64>, Option<Span>),
    ) -> Config {
        if file.write_share.is_some() && task.kind != TaskName::ReadWrite && self.sound(&["task"]) {
            self.conflict("io.write_share", "`write_share` goes only with task.kind = read-write");
        }
        self.check_theta(file, false);
        let share = if task.kind == TaskName::ReadWrite { file.write_share.unwrap_or(0.0) } else { 1.0 };
        let blocks = capacity.count() / task.bytes.count().max(1);
        if blocks < 2 && self.sound(&["machine", "flash", "task"]) {
            let reason = format!("a device of {capacity} does not hold two of {}", task.bytes);
            self.conflict("task.bytes", reason);
        }
        let io = Config {
            clients: askers.count,
            volumes: machine.devices,
            assignment: Assignment::All,
            block: task.bytes,
            working_set_blocks: self.working_set(machine, task, blocks),
            mix: Mix::with_write_share(share),
            addresses: file.addresses.map_or(Addresses::Uniform, |_| addresses_of(file, Addresses::Uniform)),
            arrivals: self.io_arrivals(file, askers.count),
            requests,
            duration,
        };
        if self.sound(&["machine", "flash", "askers", "task", "io", "run"]) {
            io.problems().into_iter().for_each(|problem| self.conflict("io", problem.to_string()));
        }
        io
    }

    /// Reads find data only in what was written; what is written may go anywhere, save the last block, which add_write reaches into.
    fn working_set(&mut self, machine: &Machine, task: Task, blocks: u64) -> u64 {
        let written = (blocks as f64 * machine.filled) as u64;
        match task.kind {
            TaskName::ReadWrite | TaskName::Copy | TaskName::Replicate if written > 0 => written,
            _ => blocks.saturating_sub(1).max(1),
        }
    }
}

fn notice(file: &SoftwareFile, defaults: Notice) -> Notice {
    match defaults {
        Notice::Interrupt { handler, context_switch, threshold, time } => Notice::Interrupt {
            handler: file.interrupt.map_or(handler, Plain::plain),
            context_switch: file.context_switch.map_or(context_switch, Plain::plain),
            threshold: file.coalesce.unwrap_or(threshold),
            time: file.coalesce_time.map_or(time, Plain::plain),
        },
        Notice::Poll { look } => Notice::Poll { look: file.look.map_or(look, Plain::plain) },
    }
}

impl SDirect {
    /// What a device offers: its blocks less the preset's spare ones.
    pub fn capacity(&self) -> Bytes {
        self.drive().as_ref().map_or(Bytes::ZERO, capacity_of)
    }

    /// A device's configuration, its own link left to the machine's tree. `None` for media that are no flash, which `spec` refuses.
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
