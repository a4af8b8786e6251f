//! From a plan of the room back to the file that says all of it.

use super::file::{AskersFile, MachineFile, NicFile, SoftwareFile, TaskFile};
use super::{Askers, SDirect, Task, TaskName};
use crate::blox::file::IoFile;
use crate::blox::print::{flash_of, write_places_and_times};
use crate::design_file::DesignFile;
use crate::file::ExperimentFile;
use crate::print::written_run;
use crate::quantity::Quantity;
use sdirect::baseline::stack::{Notice, StackConfig};

/// The file that says all of `sdirect`, save title and seed.
pub(crate) fn file_of(sdirect: &SDirect) -> ExperimentFile {
    ExperimentFile {
        design: Some(DesignFile { name: Some(sdirect.design), ..DesignFile::default() }),
        machine: Some(MachineFile::of(&sdirect.machine)),
        flash: sdirect.flash.as_ref().map(flash_of),
        nic: sdirect.nic.as_ref().map(NicFile::of),
        software: sdirect.software.as_ref().map(software_of),
        askers: Some(askers_of(&sdirect.askers)),
        task: Some(task_of(&sdirect.task)),
        io: Some(io_of(sdirect)),
        run: Some(written_run(sdirect.io.requests, sdirect.io.duration, sdirect.run)),
        ..ExperimentFile::default()
    }
}

fn software_of(stack: &StackConfig) -> SoftwareFile {
    let mut file = SoftwareFile {
        cores: Some(stack.cores),
        queue_depth: Some(u32::from(stack.queue_depth)),
        submission: Some(Quantity(stack.submission)),
        doorbell: Some(Quantity(stack.doorbell)),
        completion: Some(Quantity(stack.completion)),
        batch: Some(stack.batch),
        batch_time: Some(Quantity(stack.batch_time)),
        ..SoftwareFile::default()
    };
    match stack.notice {
        Notice::Interrupt { handler, context_switch, threshold, time } => {
            file.interrupt = Some(Quantity(handler));
            file.context_switch = Some(Quantity(context_switch));
            file.coalesce = Some(threshold);
            file.coalesce_time = Some(Quantity(time));
        }
        Notice::Poll { look } => file.look = Some(Quantity(look)),
    }
    file
}

/// Without a network nothing is said of it.
fn askers_of(askers: &Askers) -> AskersFile {
    if askers.remote {
        return AskersFile::of(askers);
    }
    AskersFile { count: Some(askers.count), remote: Some(false), ..AskersFile::default() }
}

fn task_of(task: &Task) -> TaskFile {
    let moves = matches!(task.kind, TaskName::Copy | TaskName::Replicate);
    let all = TaskFile::of(task);
    let is_replicated = task.kind == TaskName::Replicate;
    TaskFile { by: all.by.filter(|_| moves), targets: all.targets.filter(|_| is_replicated), ..all }
}

fn io_of(sdirect: &SDirect) -> IoFile {
    let io = &sdirect.io;
    let mut file = IoFile {
        write_share: (sdirect.task.kind == TaskName::ReadWrite).then(|| io.mix.write_share()),
        requests_per_second: sdirect.requests_per_second,
        ..IoFile::default()
    };
    write_places_and_times(io, &mut file);
    file
}
