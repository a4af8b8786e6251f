//! The formats of which every line is a request with the same columns.

use super::{Decode, Recorded, named};
use crate::block_trace::text::{Names, address, columns, decimal_ps, length, whole};
use crate::block_trace::{Format, SECTOR};
use crate::file::Reason;
use crate::problem::SIZE_MAX;
use base::Operation::{Read, Write};

type Said = Result<Option<Recorded>, Reason>;

const SYSTOR_COLUMNS: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

pub(super) fn mqsim(line: &str) -> Said {
    let allowed = "5: time_ns device first_sector sectors type";
    let fields = columns::<5>(line, line.split_ascii_whitespace(), allowed)?;
    let ticks: u64 = whole("time_ns", fields[0], 0, u64::MAX)?;
    ascii(u128::from(ticks) * u128::from(Format::Mqsim.tick_ps()), fields)
}

pub(super) fn disksim(line: &str) -> Said {
    let allowed = "5: time_ms device first_sector sectors flags";
    let fields = columns::<5>(line, line.split_ascii_whitespace(), allowed)?;
    if !fields[0].contains('.') {
        let allowed = "a decimal number of milliseconds with its point (MQSim's nanoseconds have none)".into();
        return Err(Reason::Value { field: "time_ms", got: fields[0].into(), allowed });
    }
    ascii(decimal_ps("time_ms", fields[0], Format::Disksim.tick_ps())?, fields)
}

/// What MQSim and DiskSim share.
fn ascii(time_ps: u128, [_, device, first_sector, sectors, kind]: [&str; 5]) -> Said {
    let device = whole("device", device, 0, u32::MAX)?;
    let operation = named("type", kind, &[("0", Write), ("1", Read)], "0 (write) or 1 (read)")?;
    let (address, bytes) = sectors_in_bytes(("first_sector", first_sector), ("sectors", sectors))?;
    Ok(Some(Recorded { time_ps, device, operation, address, bytes }))
}

fn sectors_in_bytes(first: (&'static str, &str), count: (&'static str, &str)) -> Result<(u64, u64), Reason> {
    let sectors = whole(count.0, count.1, 1, SIZE_MAX.count() / SECTOR.count())?;
    let first = whole(first.0, first.1, 0, u64::MAX / SECTOR.count() - sectors)?;
    Ok((first * SECTOR.count(), sectors * SECTOR.count()))
}

/// Sizes are in bytes and addresses in sectors.
pub(super) fn spc(line: &str) -> Said {
    let [asu, sector, size, kind, time] = columns(line, line.split(','), "5: asu,sector,bytes,opcode,seconds")?;
    let device = whole("asu", asu, 0, u32::MAX)?;
    let bytes = length("bytes", size)?;
    let sector = whole("sector", sector, 0, (u64::MAX - bytes) / SECTOR.count())?;
    let names = [("R", Read), ("r", Read), ("W", Write), ("w", Write)];
    let operation = named("opcode", kind, &names, "R or W")?;
    let time_ps = decimal_ps("seconds", time, Format::Spc.tick_ps())?;
    Ok(Some(Recorded { time_ps, device, operation, address: sector * SECTOR.count(), bytes }))
}

/// A header may occur anywhere, so that files of one hour each can be concatenated.
pub(super) fn systor(line: &str) -> Said {
    if line.trim_start_matches('\u{feff}').split(',').map(str::trim).eq(SYSTOR_COLUMNS.split(',')) {
        return Ok(None);
    }
    let allowed = format!("6: {SYSTOR_COLUMNS}");
    let [time, _response, kind, lun, offset, size] = columns(line, line.split(','), &allowed)?;
    let time_ps = decimal_ps("Timestamp", time, Format::Systor.tick_ps())?;
    if kind.is_empty() {
        return Ok(None);
    }
    let operation = named("IOType", kind, &[("R", Read), ("W", Write)], "R, W or nothing")?;
    let device = whole("LUN", lun, 0, u32::MAX)?;
    let bytes = length("Size", size)?;
    Ok(Some(Recorded { time_ps, device, operation, address: address("Offset", offset, bytes)?, bytes }))
}

pub(super) fn alibaba(line: &str) -> Said {
    let allowed = "5: device,opcode,offset,length,microseconds";
    let [device, kind, offset, size, time] = columns(line, line.split(','), allowed)?;
    let device = whole("device", device, 0, u32::MAX)?;
    let operation = named("opcode", kind, &[("R", Read), ("W", Write)], "R or W")?;
    let bytes = length("length", size)?;
    let address = address("offset", offset, bytes)?;
    let ticks: u64 = whole("microseconds", time, 0, u64::MAX)?;
    let time_ps = u128::from(ticks) * u128::from(Format::Alibaba.tick_ps());
    Ok(Some(Recorded { time_ps, device, operation, address, bytes }))
}

pub(super) fn tencent(line: &str) -> Said {
    let allowed = "5: seconds,sector,sectors,type,volume";
    let [time, sector, sectors, kind, volume] = columns(line, line.split(','), allowed)?;
    let ticks: u64 = whole("seconds", time, 0, u64::MAX)?;
    let (address, bytes) = sectors_in_bytes(("sector", sector), ("sectors", sectors))?;
    let operation = named("type", kind, &[("0", Read), ("1", Write)], "0 (read) or 1 (write)")?;
    let device = whole("volume", volume, 0, u32::MAX)?;
    let time_ps = u128::from(ticks) * u128::from(Format::Tencent.tick_ps());
    Ok(Some(Recorded { time_ps, device, operation, address, bytes }))
}

/// Devices are called `host.disk`.
pub(super) struct Msr {
    pub names: Names,
}

impl Decode for Msr {
    fn line(&mut self, line: &str) -> Said {
        let allowed = "7: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
        let [time, host, disk, kind, offset, size, _response] = columns(line, line.split(','), allowed)?;
        let ticks: u64 = whole("Timestamp", time, 0, u64::MAX)?;
        let _disk: u32 = whole("DiskNumber", disk, 0, u32::MAX)?;
        let operation = named("Type", kind, &[("Read", Read), ("Write", Write)], "Read or Write")?;
        let bytes = length("Size", size)?;
        let address = address("Offset", offset, bytes)?;
        let device = self.names.number(&format!("{host}.{disk}"))?;
        let time_ps = u128::from(ticks) * u128::from(Format::Msr.tick_ps());
        Ok(Some(Recorded { time_ps, device, operation, address, bytes }))
    }

    fn device_name(&self, device: u32) -> Option<&str> {
        self.names.name(device)
    }
}
