//! Files as they come: packed or not, with or without a named format.

use super::decode::decoder;
use super::{BlockReader, Format, Tolerance};
use crate::file::{FileError, Reason, is_silent};
use crate::trace::HEADER;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// What [`open_block_trace`] gives.
pub type OpenReader<'a> = BlockReader<'a, Box<dyn BufRead + 'a>>;

/// RFC 1952, 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes of a file from which the format is detected.
const SAMPLE_BYTES: u64 = 1 << 16;
/// And how many lines.
const SAMPLE_LINES: usize = 32;
/// The issued requests of blktrace must be requested by name: the queued ones look the same.
const TOLD: [Format; 9] = [
    Format::Mqsim,
    Format::Disksim,
    Format::Spc,
    Format::Systor,
    Format::Msr,
    Format::Alibaba,
    Format::Tencent,
    Format::Blktrace,
    Format::FioIolog,
];

/// Opens a trace, which may be compressed with gzip. Detects its format from its first lines if it
/// is not given. Errors contain `name`.
///
/// # Errors
/// A file that cannot be read, or whose format cannot be detected.
pub fn open_block_trace<'a>(
    name: &'a str,
    format: Option<Format>,
    tolerance: Tolerance,
    reader: impl BufRead + 'a,
) -> Result<OpenReader<'a>, FileError> {
    let at_first_line = |reason| FileError { file: name.into(), line: 1, reason };
    let mut reader = unpacked(reader).map_err(|error| at_first_line(Reason::Read(error)))?;
    let first = first_bytes(&mut reader, HEADER.len() as u64).map_err(|error| at_first_line(Reason::Read(error)))?;
    if first == HEADER.as_bytes() {
        return Err(at_first_line(Reason::Messages));
    }
    reader = Box::new(Cursor::new(first).chain(reader));
    let format = match format {
        Some(format) => format,
        None => {
            let sample = first_bytes(&mut reader, SAMPLE_BYTES);
            let sample = sample.map_err(|error| at_first_line(Reason::Read(error)))?;
            let told = told(&sample, tolerance.skip_bad).map_err(at_first_line)?;
            reader = Box::new(Cursor::new(sample).chain(reader));
            told
        }
    };
    Ok(BlockReader::new(name, format, tolerance, reader))
}

/// What is taken off the front, as far as there is so much.
fn first_bytes(reader: &mut impl BufRead, count: u64) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    reader.take(count).read_to_end(&mut first)?;
    Ok(first)
}

fn unpacked<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let first = first_bytes(&mut reader, GZIP_MAGIC.len() as u64)?;
    let is_packed = first == GZIP_MAGIC;
    let whole = Cursor::new(first).chain(reader);
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(whole))) } else { Box::new(whole) })
}

/// The one format that the first lines fit.
fn told(sample: &[u8], skip_bad: u64) -> Result<Format, Reason> {
    let text = String::from_utf8_lossy(sample);
    let lines: Vec<&str> = whole_lines(&text, sample.len()).map(str::trim).filter(|line| !is_silent(line)).collect();
    let lines = &lines[..lines.len().min(SAMPLE_LINES)];
    let Some(first) = lines.first() else { return Err(Reason::Empty) };
    let fitting: Vec<Format> = TOLD.into_iter().filter(|format| fits(*format, lines, skip_bad)).collect();
    let why = match fitting[..] {
        [format] => return Ok(format),
        [] => "which fits none".into(),
        _ => format!("which fits {}", fitting.iter().map(|format| format.name()).collect::<Vec<_>>().join(" and ")),
    };
    Err(Reason::Format { got: (*first).into(), why, allowed: Format::names() })
}

/// All lines but the last one of a sample that was cut.
fn whole_lines(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let is_cut = length as u64 == SAMPLE_BYTES;
    let end = if is_cut { text.rfind('\n').unwrap_or(text.len()) } else { text.len() };
    text[..end].lines()
}

fn fits(format: Format, lines: &[&str], skip_bad: u64) -> bool {
    let mut decoder = decoder(format);
    let (mut good, mut bad) = (0, 0);
    for line in lines {
        match decoder.line(line) {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    good > bad && bad <= skip_bad
}
