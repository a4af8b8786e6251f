//! fio's I/O logs (fio's HOWTO, "Trace file format").
//!
//! Version 2 has times only through `wait` lines: "wait for offset microseconds. Everything below
//! 100 is discarded. The time is relative to the previous wait statement"; so the waits are added
//! up. Version 3 begins every line with a time. The HOWTO does not give its unit; fio's `log_io_u`
//! writes microseconds.

use super::{Decode, Recorded};
use crate::block_trace::Format;
use crate::block_trace::text::{Names, address, columns, length, whole};
use crate::file::Reason;
use base::Operation;

/// Shorter waits are discarded, as fio does.
const WAIT_US_MIN: u64 = 100;
const HEADERS: [&str; 2] = ["fio version 2 iolog", "fio version 3 iolog"];

#[derive(Default)]
pub(super) struct Iolog {
    version: Option<Version>,
    names: Names,
    /// The of the files are open.
    open: Vec<bool>,
    waited_us: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl Decode for Iolog {
    fn line(&mut self, line: &str) -> Result<Option<Recorded>, Reason> {
        let mut split = line.split_ascii_whitespace();
        let time_us = match self.version {
            None => return self.header(line),
            Some(Version::Two) => self.waited_us,
            Some(Version::Three) => {
                let [time] = columns(line, &mut split, "3 or 5: timestamp filename action [offset length]")?;
                whole("timestamp", time, 0, u64::MAX)?
            }
        };
        let [file, action] = columns(line, &mut split, "2 or 4: filename action [offset length]")?;
        match action {
            "add" => self.add(file),
            "open" | "close" => self.set_open(file, action == "open"),
            "wait" => self.wait(line, split),
            "sync" | "datasync" | "trim" => self.opened(file).map(|_| None),
            "read" => self.request(line, split, file, time_us, Operation::Read),
            "write" => self.request(line, split, file, time_us, Operation::Write),
            _ => {
                let allowed = "one of add, open, close, wait, read, write, sync, datasync, trim".into();
                Err(Reason::Value { field: "action", got: action.into(), allowed })
            }
        }
    }

    fn device_name(&self, device: u32) -> Option<&str> {
        self.names.name(device)
    }
}

impl Iolog {
    fn header(&mut self, line: &str) -> Result<Option<Recorded>, Reason> {
        let line = line.trim_start_matches('\u{feff}');
        self.version = match HEADERS.iter().position(|header| *header == line) {
            Some(0) => Some(Version::Two),
            Some(_) => Some(Version::Three),
            None => {
                let allowed = "fio version 2 iolog` or `fio version 3 iolog";
                return Err(Reason::Header { got: line.into(), allowed });
            }
        };
        Ok(None)
    }

    fn add(&mut self, file: &str) -> Result<Option<Recorded>, Reason> {
        let number = self.names.number(file)? as usize;
        if self.open.len() <= number {
            self.open.push(false);
        }
        Ok(None)
    }

    fn set_open(&mut self, file: &str, is_open: bool) -> Result<Option<Recorded>, Reason> {
        let number = self.names.known(file).ok_or_else(|| unknown(file, "that was added before"))?;
        self.open[number as usize] = is_open;
        Ok(None)
    }

    fn opened(&self, file: &str) -> Result<u32, Reason> {
        let number = self.names.known(file).filter(|number| self.open[*number as usize]);
        number.ok_or_else(|| unknown(file, "that was added and opened before"))
    }

    fn wait<'a>(&mut self, line: &str, split: impl Iterator<Item = &'a str>) -> Result<Option<Recorded>, Reason> {
        if self.version == Some(Version::Three) {
            let allowed = "allowed in version 3, which has timestamps".into();
            return Err(Reason::Value { field: "action", got: "wait".into(), allowed });
        }
        let [wait] = columns(line, split, "4: filename wait microseconds 0")?;
        let wait = whole("wait", wait, 0, u64::MAX - self.waited_us)?;
        if wait >= WAIT_US_MIN {
            self.waited_us += wait;
        }
        Ok(None)
    }

    fn request<'a>(
        &self,
        line: &str,
        split: impl Iterator<Item = &'a str>,
        file: &str,
        time_us: u64,
        operation: Operation,
    ) -> Result<Option<Recorded>, Reason> {
        let device = self.opened(file)?;
        let [offset, size] = columns(line, split, "4: filename action offset length, in version 3 behind a timestamp")?;
        let bytes = length("length", size)?;
        let address = address("offset", offset, bytes)?;
        let time_ps = u128::from(time_us) * u128::from(Format::FioIolog.tick_ps());
        Ok(Some(Recorded { time_ps, device, operation, address, bytes }))
    }
}

fn unknown(file: &str, allowed: &str) -> Reason {
    Reason::Value { field: "filename", got: file.into(), allowed: format!("a file {allowed}") }
}
