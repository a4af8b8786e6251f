//! Prints a plan as the file of all its values.

use super::file::{ClientsFile, MachineFile, NicFile, SoftwareFile, TaskFile};
use super::{SDirect, TaskName};
use crate::blox::file::IoFile;
use crate::blox::print::{flash_of, write_places_and_times};
use crate::file::ExperimentFile;
use crate::print::written_run;

/// The file that says all of `sdirect`, save title, seed and design.
pub(crate) fn file_of(sdirect: &SDirect) -> ExperimentFile {
    ExperimentFile {
        machine: Some(MachineFile::of(&sdirect.machine)),
        flash: sdirect.flash.as_ref().map(flash_of),
        nic: sdirect.nic.as_ref().map(NicFile::of),
        software: sdirect.software.as_ref().map(SoftwareFile::of),
        clients: Some(ClientsFile::of(&sdirect.clients)),
        task: Some(TaskFile::of(&sdirect.task)),
        io: Some(io_of(sdirect)),
        run: Some(written_run(sdirect.io.requests, sdirect.io.duration, sdirect.run)),
        ..ExperimentFile::default()
    }
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
