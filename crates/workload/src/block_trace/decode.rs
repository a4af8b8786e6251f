//! What a line says, format by format.

mod blktrace;
mod columns;
mod iolog;

use super::Format;
use super::text::Names;
use crate::file::Reason;
use base::Operation;

/// A request as a line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// In picoseconds since the trace's own origin.
    pub time_ps: u128,
    pub device: u32,
    pub operation: Operation,
    pub address: u64,
    pub bytes: u64,
}

/// What becomes of the lines of one file, in order.
pub(super) trait Decode {
    /// The request in `line`; `None` if it is no read or write and need not be one: a header,
    /// another event, a flush, a trim.
    fn line(&mut self, line: &str) -> Result<Option<Recorded>, Reason>;

    /// Whether the format names its devices, and how this one is called.
    fn device_name(&self, _device: u32) -> Option<&str> {
        None
    }
}

/// The decoder of a format, at the beginning of a file.
pub(super) fn decoder(format: Format) -> Box<dyn Decode> {
    match format {
        Format::Mqsim => Box::new(columns::mqsim),
        Format::Disksim => Box::new(columns::disksim),
        Format::Spc => Box::new(columns::spc),
        Format::Systor => Box::new(columns::systor),
        Format::Alibaba => Box::new(columns::alibaba),
        Format::Tencent => Box::new(columns::tencent),
        Format::Msr => Box::new(columns::Msr { names: Names::default() }),
        Format::Blktrace => Box::new(blktrace::Blktrace::new("Q")),
        Format::BlktraceIssued => Box::new(blktrace::Blktrace::new("D")),
        Format::FioIolog => Box::new(iolog::Iolog::default()),
    }
}

/// Formats with self-contained lines.
impl<F: Fn(&str) -> Result<Option<Recorded>, Reason>> Decode for F {
    fn line(&mut self, line: &str) -> Result<Option<Recorded>, Reason> {
        self(line)
    }
}

/// An operation by one of its names.
fn named(
    field: &'static str,
    text: &str,
    names: &[(&str, Operation)],
    allowed: &'static str,
) -> Result<Operation, Reason> {
    let found = names.iter().find(|(name, _)| *name == text);
    let unknown = || Reason::Value { field, got: text.into(), allowed: allowed.into() };
    found.map(|(_, operation)| *operation).ok_or_else(unknown)
}
