//! From a plan of wear levelling back to the file that says all of it.

use super::Wear;
use super::file::WearFile;
use crate::design_file::{DesignFile, DesignName};
use crate::file::ExperimentFile;

/// The file that says all of `wear`, save title and seed.
pub(crate) fn file_of(wear: &Wear) -> ExperimentFile {
    ExperimentFile {
        design: Some(DesignFile { name: Some(DesignName::WearLevelling), ..DesignFile::default() }),
        wear: Some(WearFile::of(wear)),
        ..ExperimentFile::default()
    }
}
