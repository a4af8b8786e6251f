//! Reads block traces, line by line.

use super::{Beyond, BlockRequest, BlockTrace, SECTOR, Tolerance};
use crate::file::{FileError, Lines, Reason, is_silent};
use crate::problem::SIZE_MAX;
use base::{Operation, Time};
use std::io::BufRead;
use std::str::FromStr;

const COLUMNS: &str = "5: time_ns device first_sector sectors type";
/// How many of the skipped lines are kept to be shown.
const SKIPPED_SHOWN_MAX: usize = 10;
/// The most nanoseconds that [`Time`] can hold.
const NANOSECONDS_MAX: u64 = u64::MAX / 1_000;

/// Reads a block trace, whose lines are such as `938513000 4 264719034 16 0`. Times count from the first good line and must not
/// fall; blank lines and lines that begin with `#` are passed over. `name` goes into errors.
///
/// The last line need not end in a newline, as those of published traces do not: its last column is one character, so
/// that a line that was cut off has too few columns.
///
/// # Errors
/// The first bad line after the `skip_bad` that are tolerated, and why; a file that cannot be read or has no good line.
pub fn read_block_trace(name: &str, tolerance: &Tolerance, reader: impl BufRead) -> Result<BlockTrace, FileError> {
    let mut lines = Lines::new(name, reader);
    let mut trace = Reader { tolerance, first_ns: None, requests: Vec::new() };
    let (mut skipped, mut skipped_first) = (0, Vec::new());
    loop {
        let error = match lines.next() {
            Ok(None) => break,
            Ok(Some(line)) if is_silent(line.text) => continue,
            Ok(Some(line)) => match trace.take(line.text) {
                Ok(()) => continue,
                Err(reason) => lines.error(reason),
            },
            Err(error) => error,
        };
        if skipped == tolerance.skip_bad || !is_of_one_line(&error.reason) {
            return Err(error);
        }
        skipped += 1;
        if skipped_first.len() < SKIPPED_SHOWN_MAX {
            skipped_first.push(error.to_string());
        }
    }
    if trace.requests.is_empty() {
        return Err(lines.error(Reason::Empty));
    }
    Ok(BlockTrace { requests: trace.requests, skipped, skipped_first })
}

/// Whether reading can go on behind it. After a line that is too long it cannot: its rest would look like a line.
fn is_of_one_line(reason: &Reason) -> bool {
    !matches!(reason, Reason::Read(_) | Reason::TooLong)
}

/// The requests so far.
struct Reader<'a> {
    tolerance: &'a Tolerance,
    first_ns: Option<u64>,
    requests: Vec<BlockRequest>,
}

impl Reader<'_> {
    fn take(&mut self, line: &str) -> Result<(), Reason> {
        let [time, device, first_sector, sectors, kind] = split(line)?;
        let time_ns: u64 = whole("time_ns", time, 0, u64::MAX)?;
        let at = self.since_first(time_ns)?;
        let device = whole("device", device, 0, u32::MAX)?;
        let operation = operation(kind)?;
        let sectors = whole("sectors", sectors, 1, SIZE_MAX.count() / SECTOR.count())?;
        let first_sector = whole("first_sector", first_sector, 0, u64::MAX / SECTOR.count() - sectors)?;
        let address = self.placed(first_sector, sectors)? * SECTOR.count();
        self.first_ns.get_or_insert(time_ns);
        self.requests.push(BlockRequest { at, device, operation, address, bytes: SECTOR * sectors });
        Ok(())
    }

    fn since_first(&self, time_ns: u64) -> Result<Time, Reason> {
        let Some(first_ns) = self.first_ns else { return Ok(Time::ZERO) };
        let last = self.requests.last().map_or(Time::ZERO, |last| last.at);
        let last_ns = first_ns + last.as_ps() / 1_000;
        if time_ns < last_ns {
            let (field, got, before) = ("time_ns", time_ns.to_string(), last_ns.to_string());
            return Err(Reason::Falls { field, got, before });
        }
        let since = time_ns - first_ns;
        if since > NANOSECONDS_MAX {
            let allowed = format!("within {NANOSECONDS_MAX} ns of the first");
            return Err(Reason::Value { field: "time_ns", got: time_ns.to_string(), allowed });
        }
        Ok(Time::ns(since))
    }

    /// The first sector, as [`Tolerance`] places it.
    fn placed(&self, first_sector: u64, sectors: u64) -> Result<u64, Reason> {
        let Some(volume) = self.tolerance.volume else { return Ok(first_sector) };
        let volume = volume.count() / SECTOR.count();
        if first_sector + sectors <= volume {
            return Ok(first_sector);
        }
        match self.tolerance.beyond {
            Beyond::Fold if sectors <= volume => Ok((first_sector % volume).min(volume - sectors)),
            _ => Err(Reason::Value {
                field: "first_sector",
                got: format!("{first_sector} + {sectors}"),
                allowed: format!("within the volume of {volume} sectors"),
            }),
        }
    }
}

fn split(line: &str) -> Result<[&str; 5], Reason> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let got = columns.len();
    columns.try_into().map_err(|_| Reason::Columns { line: line.into(), got, allowed: COLUMNS.into() })
}

fn whole<N: FromStr + PartialOrd + std::fmt::Display>(
    field: &'static str,
    text: &str,
    min: N,
    max: N,
) -> Result<N, Reason> {
    match text.parse::<N>() {
        Ok(number) if (&min..=&max).contains(&&number) => Ok(number),
        _ => Err(Reason::Value { field, got: text.into(), allowed: format!("a whole number in {min}..={max}") }),
    }
}

fn operation(text: &str) -> Result<Operation, Reason> {
    match text {
        "0" => Ok(Operation::Write),
        "1" => Ok(Operation::Read),
        _ => Err(Reason::Value { field: "type", got: text.into(), allowed: "0 (write) or 1 (read)".into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;
    use proptest::prelude::*;

    const STRICT: Tolerance = Tolerance { volume: None, beyond: Beyond::Refuse, skip_bad: 0 };

    fn read(tolerance: Tolerance, text: &str) -> Result<BlockTrace, FileError> {
        read_block_trace("small.trace", &tolerance, text.as_bytes())
    }

    fn error(text: &str) -> String {
        read(STRICT, text).unwrap_err().to_string()
    }

    fn sectors(count: u64) -> Bytes {
        SECTOR * count
    }

    fn request(at_ns: u64, device: u32, operation: Operation, first_sector: u64, count: u64) -> BlockRequest {
        let address = first_sector * 512;
        BlockRequest { at: Time::ns(at_ns), device, operation, address, bytes: sectors(count) }
    }

    #[test]
    fn requests_are_read_with_times_from_the_first_line_on() {
        let trace = read(STRICT, "# recorded\n938513000 4 264719034 16 0\n\n938828000\t4  8 32 1").unwrap();
        let expected = [request(0, 4, Operation::Write, 264_719_034, 16), request(315_000, 4, Operation::Read, 8, 32)];
        assert_eq!((trace.requests, trace.skipped), (expected.to_vec(), 0));
    }

    #[test]
    fn times_in_nanoseconds_since_a_distant_epoch_are_no_obstacle() {
        let trace = read(STRICT, "1700000000000000000 0 0 1 0\n1700000000000000001 0 0 1 0\n").unwrap();
        assert_eq!(trace.requests[1].at, Time::ns(1));
        let late = error(&format!("0 0 0 1 0\n{} 0 0 1 0\n", NANOSECONDS_MAX + 1));
        assert_eq!(late, "small.trace:2: time_ns `18446744073709552` is not within 18446744073709551 ns of the first");
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason_and_value() {
        let columns = "5: time_ns device first_sector sectors type";
        assert_eq!(error("1 0 0 1\n"), format!("small.trace:1: `1 0 0 1` has 4 columns, it must have {columns}"));
        assert_eq!(
            error("1 0 0 1 0 0\n"),
            format!("small.trace:1: `1 0 0 1 0 0` has 6 columns, it must have {columns}")
        );
        assert_eq!(error("5 0 0 1 0\n4 0 0 1 0\n"), "small.trace:2: time_ns 4 comes after 5, it must not fall");
        assert_eq!(error("1 0 0 1 2\n"), "small.trace:1: type `2` is not 0 (write) or 1 (read)");
        assert_eq!(error("1 0 0 0 0\n"), "small.trace:1: sectors `0` is not a whole number in 1..=2147483648");
        assert_eq!(error("1 -1 0 1 0\n"), "small.trace:1: device `-1` is not a whole number in 0..=4294967295");
        assert_eq!(
            error("1.5 0 0 1 0\n"),
            "small.trace:1: time_ns `1.5` is not a whole number in 0..=18446744073709551615"
        );
        assert_eq!(
            error("1 0 36028797018963967 1 0\n"),
            "small.trace:1: first_sector `36028797018963967` is not a whole number in 0..=36028797018963966"
        );
        assert_eq!(error("# nothing\n"), "small.trace:1: the file holds no data");
    }

    #[test]
    fn a_request_may_end_with_the_volume_and_not_beyond() {
        let volume = Tolerance { volume: Some(sectors(64)), ..STRICT };
        assert!(read(volume, "1 0 48 16 0\n").is_ok());
        let beyond = read(volume, "1 0 49 16 0\n").unwrap_err().to_string();
        assert_eq!(beyond, "small.trace:1: first_sector `49 + 16` is not within the volume of 64 sectors");
    }

    #[test]
    fn folding_brings_a_request_back_and_refuses_only_what_is_larger_than_the_volume() {
        let fold = Tolerance { volume: Some(sectors(64)), beyond: Beyond::Fold, skip_bad: 0 };
        let address = |text| read(fold, text).map(|trace| trace.requests[0].address / 512);
        assert_eq!(address("1 0 48 16 0\n").unwrap(), 48);
        assert_eq!(address("1 0 49 16 0\n").unwrap(), 48);
        assert_eq!(address("1 0 70 16 0\n").unwrap(), 6);
        let larger = address("1 0 0 65 0\n").unwrap_err().to_string();
        assert_eq!(larger, "small.trace:1: first_sector `0 + 65` is not within the volume of 64 sectors");
    }

    #[test]
    fn as_many_bad_lines_as_allowed_are_skipped_counted_and_shown() {
        let text = "bad\n5 0 0 1 0\n4 0 0 1 0\n6 0 0 1 7\n7 0 0 1 1\n";
        let trace = read(Tolerance { skip_bad: 3, ..STRICT }, text).unwrap();
        assert_eq!((trace.requests.len(), trace.skipped), (2, 3));
        let places: Vec<_> = trace.skipped_first.iter().map(|shown| shown.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["small.trace:1", "small.trace:3", "small.trace:4"]);
        let fourth = read(Tolerance { skip_bad: 2, ..STRICT }, text).unwrap_err();
        assert_eq!(fourth.to_string(), "small.trace:4: type `7` is not 0 (write) or 1 (read)");
        let none_left = read(Tolerance { skip_bad: 9, ..STRICT }, "bad\n").unwrap_err().to_string();
        assert_eq!(none_left, "small.trace:1: the file holds no data");
    }

    #[test]
    fn a_line_without_end_is_refused_however_many_bad_ones_are_allowed() {
        let long = "1".repeat(10_000);
        let error = read(Tolerance { skip_bad: 9, ..STRICT }, &long).unwrap_err().to_string();
        assert_eq!(error, "small.trace:1: is longer than 4096 bytes");
    }

    /// `(name, lines, reads, devices)`, counted with awk.
    const PUBLISHED: [(&str, usize, usize, usize); 2] =
        [("tpcc-small.trace", 6_999, 4_381, 16), ("wsrch-small.trace", 24_783, 24_779, 6)];

    #[test]
    fn published_traces_are_read_whole_where_they_are_at_hand() {
        for (name, lines, reads, devices) in PUBLISHED {
            let path = format!("{}/../../../shared/data/traces/{name}", env!("CARGO_MANIFEST_DIR"));
            let Ok(file) = std::fs::File::open(&path) else { continue };
            let trace = read_block_trace(name, &STRICT, std::io::BufReader::new(file)).unwrap();
            let read = trace.requests.iter().filter(|request| request.operation == Operation::Read).count();
            assert_eq!((trace.requests.len(), read, trace.devices().len()), (lines, reads, devices), "{name}");
            assert!(trace.end() < Bytes::new(256 << 30), "{name}: {}", trace.end());
        }
    }

    proptest! {
        #[test]
        fn a_trace_cut_anywhere_is_refused_or_loses_whole_lines_only(
            lines in proptest::collection::vec((0u64..50, 0u32..20, 0u64..1 << 40, 1u64..1_000, 0u8..2), 1..6),
            cut in any::<proptest::sample::Index>(),
        ) {
            let mut at = 0;
            let text: String = lines.iter().map(|(gap, device, first, count, kind)| {
                at += gap;
                format!("{at} {device} {first} {count} {kind}\n")
            }).collect();
            let whole = read(STRICT, &text).unwrap().requests;
            if let Ok(part) = read(STRICT, &text[..cut.index(text.len())]) {
                prop_assert_eq!(&part.requests[..], &whole[..part.requests.len()]);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), skip_bad in 0u64..3) {
            let _ = read_block_trace("any", &Tolerance { skip_bad, ..STRICT }, bytes.as_slice());
        }

        #[test]
        fn no_line_of_numbers_panics(line in "([0-9]{1,20} ){4}[01]\n([0-9]{1,20} ){4}[01]", volume in proptest::option::of(any::<u64>())) {
            let _ = read(Tolerance { volume: volume.map(Bytes::new), beyond: Beyond::Fold, skip_bad: 1 }, &line);
        }
    }
}
