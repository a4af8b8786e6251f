//! Drives of all targets: whole models or quick ones, behind one face.

use super::config::{DriveModel, SanBuildError};
use base::{Bytes, Operation, Span, Time};
use hardware::ssd::{Command, CommandKind, Done, DriveError, QuickDrive, SolidState};

/// One drive.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "quick drives are used by the thousand, whole ones by the dozen")]
enum Medium {
    Whole(Box<SolidState>),
    Quick(QuickDrive),
}

/// All drives, by number.
#[derive(Clone, Debug)]
pub(super) struct Drives {
    media: Vec<Medium>,
    /// By drive: whether it answers.
    is_up: Vec<bool>,
    /// By drive: time that commands spent in it, and how many.
    inside: Vec<(Span, u64)>,
    /// Asked of all drives together: bytes read and written.
    moved: [u64; 2],
    refused: u64,
}

impl Drives {
    /// So many equal drives, each prepared alike.
    pub fn new(model: &DriveModel, count: usize) -> Result<Drives, SanBuildError> {
        let medium = medium(model)?;
        Ok(Drives {
            media: vec![medium; count],
            is_up: vec![true; count],
            inside: vec![(Span::ZERO, 0); count],
            moved: [0; 2],
            refused: 0,
        })
    }

    /// Books an I/O. A range that the drive does not have is served at its start: workloads are
    /// checked against the capacity before.
    pub fn submit(&mut self, now: Time, drive: usize, operation: Operation, address: u64, bytes: u32) -> Done {
        let kind = match operation {
            Operation::Read => CommandKind::Read,
            Operation::Write | Operation::ReadModifyWrite => CommandKind::Write,
        };
        let command = Command { kind, address, bytes: Bytes::new(u64::from(bytes)) };
        let done = self.book(now, drive, command).unwrap_or_else(|_| {
            self.refused += 1;
            Done { end: now, wait: Span::ZERO, collection_wait: Span::ZERO, service: Span::ZERO }
        });
        let (time, count) = &mut self.inside[drive];
        *time += done.total();
        *count += 1;
        self.moved[usize::from(kind == CommandKind::Write)] += u64::from(bytes);
        done
    }
    fn book(&mut self, now: Time, drive: usize, command: Command) -> Result<Done, DriveError> {
        match &mut self.media[drive] {
            Medium::Whole(drive) => drive.submit(now, command),
            Medium::Quick(drive) => drive.submit(now, command),
        }
    }

    /// Whether a drive answers.
    pub fn is_up(&self, drive: usize) -> bool {
        self.is_up[drive]
    }
    /// Fails or mends a drive.
    pub fn set_up(&mut self, drive: usize, is_up: bool) {
        self.is_up[drive] = is_up;
    }
    /// The whole models among them.
    pub fn whole(&self) -> impl Iterator<Item = &SolidState> {
        self.media.iter().filter_map(|medium| match medium {
            Medium::Whole(drive) => Some(&**drive),
            Medium::Quick(_) => None,
        })
    }
    /// How many there are.
    pub fn count(&self) -> usize {
        self.media.len()
    }
    /// Starts new reports of the whole models.
    pub fn restart_reports(&mut self) {
        for medium in &mut self.media {
            if let Medium::Whole(drive) = medium {
                drive.restart_report();
            }
        }
    }
    /// By drive: time that commands have spent inside, and how many.
    pub fn inside(&self) -> &[(Span, u64)] {
        &self.inside
    }
    /// Bytes read and written by hosts.
    pub fn moved(&self) -> [u64; 2] {
        self.moved
    }
    /// Commands beyond a drive's end.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

fn medium(model: &DriveModel) -> Result<Medium, SanBuildError> {
    let refuse = |reason: String| SanBuildError::Drive { reason };
    match model {
        DriveModel::Quick(config) => {
            Ok(Medium::Quick(QuickDrive::new(*config).map_err(|error| refuse(error.to_string()))?))
        }
        DriveModel::Whole { config, precondition } => {
            let mut drive = SolidState::new((**config).clone()).map_err(|error| refuse(error.to_string()))?;
            if let Some(state) = precondition {
                drive.precondition(*state).map_err(|error| refuse(error.to_string()))?;
            }
            Ok(Medium::Whole(Box::new(drive)))
        }
    }
}
