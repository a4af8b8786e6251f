//! Prints a plan as the file of all its values.

use super::file::{
    AddressesName, AssignmentName, CollectionFile, ControllerFile, EmulateFile, FlashFile, IoArrivalsName, IoFile,
    MembershipFile, RackFile, SchedulerFile, SteadyFile, SwapFile, VssdFile,
};
use super::{BlockReplay, Blox, Flash, FlashState};
use crate::file::ExperimentFile;
use crate::print::{fault_of, written_run};
use crate::quantity::{Plain, Quantity};
use crate::table::{part, variants};
use base::Bytes;
use workload::block_trace::{Devices, Tolerance};
use workload::storage::{Addresses, Arrivals, Assignment, Config, Mix};

/// The file that says all of `blox`, save title, seed and design.
pub(crate) fn file_of(blox: &Blox) -> ExperimentFile {
    ExperimentFile {
        rack: Some(rack_of(blox)),
        emulate: Some(EmulateFile::of(&blox.emulate)),
        flash: Some(flash_of(&blox.flash)),
        vssd: Some(VssdFile::of(&blox.vssd)),
        scheduler: Some(SchedulerFile::of(&blox.scheduler)),
        collection: Some(CollectionFile::of(&blox.collection)),
        controller: Some(ControllerFile::of(&blox.controller)),
        membership: Some(MembershipFile::of(&blox.membership)),
        io: Some(io_of(blox)),
        run: Some(written_run(blox.io.requests, blox.io.duration, blox.run)),
        swap: (!blox.swaps.is_empty()).then(|| blox.swaps.iter().map(SwapFile::of).collect()),
        fault: (!blox.faults.is_empty()).then(|| blox.faults.iter().map(fault_of).collect()),
        ..ExperimentFile::default()
    }
}

fn rack_of(blox: &Blox) -> RackFile {
    let recorded = blox.recorded_network.as_ref();
    RackFile {
        network_file: recorded.map(|recorded| recorded.file.clone()),
        network_unit: recorded.and_then(|recorded| recorded.unit).map(Quantity),
        network_digest: recorded.map(|recorded| recorded.digest.clone()),
        ..RackFile::of(&blox.rack)
    }
}

/// The table of drives, with what says what they hold.
pub(crate) fn flash_of(flash: &Flash) -> FlashFile {
    let mut file = FlashFile::of(flash);
    match &flash.state {
        FlashState::Fragmented(steady) => file.steady = Some(SteadyFile::of(steady)),
        FlashState::Snapshot(snapshot) => {
            (file.snapshot, file.snapshot_digest) = (Some(snapshot.file.clone()), Some(snapshot.digest.clone()));
        }
        FlashState::Clean | FlashState::Filled | FlashState::Used => {}
    }
    file
}

fn io_of(blox: &Blox) -> IoFile {
    let io = &blox.io;
    let mut file = IoFile {
        check_history: Some(blox.check_history),
        requests_per_second: blox.requests_per_second,
        ..IoFile::default()
    };
    if let Some(replay) = &blox.replay {
        write_replay(replay, &mut file);
        return file;
    }
    write_io(io, &mut file);
    file.assignment = Some(match io.assignment {
        Assignment::All => AssignmentName::All,
        Assignment::RoundRobin | Assignment::Fixed { .. } => AssignmentName::RoundRobin,
    });
    file
}

variants! {
    IoFile.addresses: AddressesName => Addresses by address_law, write_addresses {
        Uniform,
        Zipfian { theta },
        ScrambledZipfian { theta },
        Latest { theta },
        Sequential,
    }
}

variants! {
    IoFile.arrivals: IoArrivalsName => Arrivals by arrivals_of(gap: f64), write_arrivals {
        Closed { depth, think },
        Poisson [mean_gap_ps: gap],
        Deterministic [gap_ps: gap],
    }
}

part! {
    IoFile => Tolerance by tolerance(volume: Option<Bytes>), write_tolerance {
        { beyond, skip_bad, inversions } [volume: volume]
    }
}

/// Operations, addresses and arrivals.
pub(crate) fn write_io(io: &Config, file: &mut IoFile) {
    write_mix(&io.mix, file);
    write_places_and_times(io, file);
}

/// Where and when.
pub(crate) fn write_places_and_times(io: &Config, file: &mut IoFile) {
    file.write_addresses(&io.addresses);
    file.write_arrivals(&io.arrivals);
}

pub(crate) fn write_replay(replay: &BlockReplay, file: &mut IoFile) {
    file.trace = Some(replay.file.clone());
    file.trace_digest = Some(replay.digest.clone());
    file.time_scale = Some(replay.config.time_scale);
    file.write_tolerance(&replay.tolerance);
    file.format = Some(Plain::written(replay.format));
    if let Devices::Striped { stripe } = replay.config.devices {
        file.stripe = Some(Quantity(stripe));
    }
}

/// A mix that is a profile's is named as such: only profiles have scans, insertions and pairs.
fn write_mix(mix: &Mix, file: &mut IoFile) {
    if let Some(profile) = workload::storage::PROFILES.iter().find(|profile| profile.mix() == *mix) {
        file.profile = Some(profile.name.into());
        return;
    }
    file.write_share = Some(mix.write_share());
    if let Mix::Runs { write_run, .. } = mix {
        file.write_run = Some(*write_run);
    }
}
