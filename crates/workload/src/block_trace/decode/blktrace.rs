//! What `blkparse` prints by default: `major,minor cpu sequence seconds.nanoseconds pid action rwbs
//! sector + sectors [process]` (blkparse(1), "DEFAULT OUTPUT").

use super::{Decode, Recorded};
use crate::block_trace::text::{Names, columns, decimal_ps, whole};
use crate::block_trace::{Format, SECTOR};
use crate::file::Reason;
use crate::problem::SIZE_MAX;
use base::Operation;

/// The trace actions of blkparse(1).
const ACTIONS: [&str; 17] = ["A", "B", "C", "D", "F", "G", "I", "M", "P", "Q", "R", "S", "T", "U", "UT", "X", "m"];
/// The letters of its RWBS field: read, write, discard, erase, flush or forced access, ahead, sync,
/// meta, none, barrier, verify.
const LETTERS: &str = "RWDEFASMNBV";

pub(super) struct Blktrace {
    /// The action whose lines are requests.
    action: &'static str,
    names: Names,
    /// A summary per CPU and in total follows the events.
    is_in_summary: bool,
}

impl Blktrace {
    pub(super) fn new(action: &'static str) -> Blktrace {
        Blktrace { action, names: Names::default(), is_in_summary: false }
    }
}

impl Decode for Blktrace {
    fn line(&mut self, line: &str) -> Result<Option<Recorded>, Reason> {
        self.is_in_summary |= line.starts_with("CPU") || line.starts_with("Total (");
        if self.is_in_summary {
            return Ok(None);
        }
        let mut split = line.split_ascii_whitespace();
        let event = columns::<6>(
            line,
            &mut split,
            "6: device cpu sequence seconds pid action, and what belongs to the action",
        )?;
        let [device, _cpu, _sequence, time, _pid, action] = event;
        check_device(device)?;
        let time_ps = decimal_ps("time", time, Format::Blktrace.tick_ps())?;
        if !ACTIONS.contains(&action) {
            let allowed = format!("one of {}", ACTIONS.join(" "));
            return Err(Reason::Value { field: "action", got: action.into(), allowed });
        }
        if action != self.action {
            return Ok(None);
        }
        let allowed = "rwbs sector + sectors behind the action";
        let [rwbs] = columns(line, &mut split, allowed)?;
        let Some(operation) = operation(rwbs)? else { return Ok(None) };
        let [sector, plus, sectors] = columns(line, &mut split, allowed)?;
        if plus != "+" {
            return Err(Reason::Value { field: "+", got: plus.into(), allowed: "a plus sign".into() });
        }
        // A flush that is written as an empty write.
        if sectors == "0" && rwbs.contains('F') {
            return Ok(None);
        }
        let sectors = whole("sectors", sectors, 1, SIZE_MAX.count() / SECTOR.count())?;
        let sector = whole("sector", sector, 0, u64::MAX / SECTOR.count() - sectors)?;
        let (address, bytes) = (sector * SECTOR.count(), sectors * SECTOR.count());
        Ok(Some(Recorded { time_ps, device: self.names.number(device)?, operation, address, bytes }))
    }

    fn device_name(&self, device: u32) -> Option<&str> {
        self.names.name(device)
    }
}

fn check_device(text: &str) -> Result<(), Reason> {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    match text.split_once(',') {
        Some((major, minor)) if is_number(major) && is_number(minor) => Ok(()),
        _ => Err(Reason::Value { field: "device", got: text.into(), allowed: "two numbers, as in 8,0".into() }),
    }
}

/// `None` for what neither reads nor writes data: discards, flushes, notes.
fn operation(rwbs: &str) -> Result<Option<Operation>, Reason> {
    if rwbs.is_empty() || !rwbs.chars().all(|letter| LETTERS.contains(letter)) {
        let allowed = format!("made of the letters {LETTERS}");
        return Err(Reason::Value { field: "rwbs", got: rwbs.into(), allowed });
    }
    if rwbs.contains('D') {
        return Ok(None);
    }
    let is_read = rwbs.contains('R').then_some(Operation::Read);
    Ok(is_read.or_else(|| rwbs.contains('W').then_some(Operation::Write)))
}
