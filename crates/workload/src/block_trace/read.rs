//! Reads block traces, line by line.

use super::decode::{Decode, Recorded, decoder};
use super::text::in_ticks;
use super::{Beyond, BlockRequest, BlockTrace, Format, SECTOR, Tolerance};
use crate::file::{FileError, Lines, Reason, is_silent};
use base::{Bytes, Time};
use std::collections::BTreeMap;
use std::io::BufRead;

/// How many of the skipped lines are kept to be shown.
const SKIPPED_SHOWN_MAX: usize = 10;
/// The most requests that a trace in memory may have: 40 bytes each.
pub const REQUESTS_MAX: u64 = 1 << 23;

/// Reads a complete block trace in MQSim's format, such as `938513000 4 264719034 16 0`. Times
/// count from the first request. Small decreases are sorted (see
/// [`Inversions`](super::Inversions)); blank lines and lines that begin with `#` are skipped.
/// Errors contain `name`.
///
/// # Errors
/// The first bad line after the `skip_bad` tolerated ones, with its reason; a file that cannot be
/// read, has no good line or more than [`REQUESTS_MAX`] of them.
pub fn read_block_trace(name: &str, tolerance: &Tolerance, reader: impl BufRead) -> Result<BlockTrace, FileError> {
    BlockReader::new(name, Format::Mqsim, *tolerance, reader).collect(None)
}

/// Hands out the requests of a trace one by one, in constant memory.
pub struct BlockReader<'a, R> {
    lines: Lines<'a, R>,
    format: Format,
    decoder: Box<dyn Decode>,
    tolerance: Tolerance,
    /// The earliest request.
    first_ps: Option<u128>,
    /// The latest so far.
    last_ps: u128,
    requests: u64,
    passed_over: u64,
    skipped: u64,
    skipped_first: Vec<String>,
    inverted: u64,
    /// Requests that an earlier one may still follow, by time, then by line.
    held: BTreeMap<(u128, u64), Recorded>,
    is_over: bool,
}

impl<'a, R: BufRead> BlockReader<'a, R> {
    /// A reader of plain text in `format`. Errors contain `name`.
    pub fn new(name: &'a str, format: Format, tolerance: Tolerance, reader: R) -> Self {
        BlockReader {
            lines: Lines::new(name, reader),
            format,
            decoder: decoder(format),
            tolerance,
            first_ps: None,
            last_ps: 0,
            requests: 0,
            passed_over: 0,
            skipped: 0,
            skipped_first: Vec::new(),
            inverted: 0,
            held: BTreeMap::new(),
            is_over: false,
        }
    }

    /// The next request, or `None` behind the last one.
    ///
    /// # Errors
    /// A bad line that is one too many, and why; a file that cannot be read on, or has no request
    /// at all. There is nothing to be had behind an error.
    #[allow(clippy::should_implement_trait, reason = "an iterator of results would go on behind an error")]
    pub fn next(&mut self) -> Result<Option<BlockRequest>, FileError> {
        loop {
            if let Some(request) = self.ripe() {
                return Ok(Some(request));
            }
            if self.is_over {
                return Ok(None);
            }
            let error = match self.next_line() {
                Ok(Line::More) => continue,
                Ok(Line::End) if self.requests == 0 => return Err(self.lines.error(Reason::Empty)),
                Ok(Line::End) => {
                    self.is_over = true;
                    continue;
                }
                Err(error) => error,
            };
            if self.skipped == self.tolerance.skip_bad || !is_of_one_line(&error.reason) {
                return Err(error);
            }
            self.skip(&error);
        }
    }

    /// The rest of the trace in memory, or its first requests.
    ///
    /// # Errors
    /// As [`next`](BlockReader::next); and a trace of more than [`REQUESTS_MAX`] requests, unless
    /// fewer are requested.
    pub fn collect(mut self, first: Option<u64>) -> Result<BlockTrace, FileError> {
        let mut requests = Vec::new();
        while first.is_none_or(|first| (requests.len() as u64) < first) {
            let Some(request) = self.next()? else { break };
            if requests.len() as u64 == REQUESTS_MAX {
                return Err(self.lines.error(Reason::TooMany { limit: REQUESTS_MAX }));
            }
            requests.push(request);
        }
        let BlockReader { skipped, skipped_first, inverted, .. } = self;
        Ok(BlockTrace { requests, skipped, skipped_first, inverted })
    }

    /// The format that is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns how many bad lines were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The first few of them, and what is wrong with each.
    pub fn skipped_first(&self) -> &[String] {
        &self.skipped_first
    }

    /// Returns how many requests came behind a later one so far, and were put in order.
    pub fn inverted(&self) -> u64 {
        self.inverted
    }

    /// Returns how many good lines were neither a read nor a write: headers, other events, flushes,
    /// trims.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// How the trace calls a device, where it has names for them.
    pub fn device_name(&self, device: u32) -> Option<&str> {
        self.decoder.device_name(device)
    }

    fn next_line(&mut self) -> Result<Line, FileError> {
        let Some(line) = self.lines.next()? else { return Ok(Line::End) };
        if is_silent(line.text) {
            return Ok(Line::More);
        }
        let said = match line.is_whole || self.format.may_lack_last_newline() {
            true => self.decoder.line(line.text),
            false => Err(Reason::Truncated { got: line.text.into() }),
        };
        match said.and_then(|recorded| recorded.map(|recorded| self.hold(recorded)).transpose()) {
            Ok(Some(())) => {}
            Ok(None) => self.passed_over += 1,
            Err(reason) => return Err(self.lines.error(reason)),
        }
        Ok(Line::More)
    }

    fn skip(&mut self, error: &FileError) {
        self.skipped += 1;
        if self.skipped_first.len() < SKIPPED_SHOWN_MAX {
            self.skipped_first.push(error.to_string());
        }
    }

    /// Takes a request in, to be handed out when none can come before it.
    fn hold(&mut self, recorded: Recorded) -> Result<(), Reason> {
        let time_ps = recorded.time_ps;
        self.check_time(time_ps)?;
        let address = self.tolerance.placed(recorded.address, recorded.bytes)?;
        self.first_ps = Some(self.first_ps.map_or(time_ps, |first| first.min(time_ps)));
        self.inverted += u64::from(time_ps < self.last_ps);
        self.last_ps = self.last_ps.max(time_ps);
        self.held.insert((time_ps, self.requests), Recorded { address, ..recorded });
        self.requests += 1;
        Ok(())
    }

    /// By how much a request may come behind a later one.
    fn inversion_max_ps(&self) -> u128 {
        self.tolerance.inversions.longest().as_ps().into()
    }

    /// The earliest request that is held, if none can come before it.
    fn ripe(&mut self) -> Option<BlockRequest> {
        let ((time_ps, _), _) = self.held.first_key_value()?;
        if !self.is_over && time_ps + self.inversion_max_ps() > self.last_ps {
            return None;
        }
        let (_, Recorded { time_ps, device, operation, address, bytes }) = self.held.pop_first()?;
        // `check_time` has seen to it that it fits.
        let at = Time::ps(u64::try_from(time_ps - self.first_ps?).ok()?);
        Some(BlockRequest { at, device, operation, address, bytes: Bytes::new(bytes) })
    }

    fn check_time(&self, time_ps: u128) -> Result<(), Reason> {
        let Some(first_ps) = self.first_ps else { return Ok(()) };
        let shown = |ps| in_ticks(ps, self.format.tick_ps());
        if time_ps + self.inversion_max_ps() < self.last_ps {
            return Err(Reason::Falls { field: "time", got: shown(time_ps), before: shown(self.last_ps) });
        }
        // A first request that is still to come may be earlier by an inversion.
        let latest = first_ps + u128::from(u64::MAX) - self.inversion_max_ps();
        if time_ps > latest {
            let allowed = format!("within 213 days of the first, {}", shown(first_ps));
            return Err(Reason::Value { field: "time", got: shown(time_ps), allowed });
        }
        Ok(())
    }
}

/// What reading a line came to.
enum Line {
    /// There may be more.
    More,
    End,
}

/// Returns whether reading can continue after it. After a line that is too long it cannot: its rest
/// would look like a line.
fn is_of_one_line(reason: &Reason) -> bool {
    !matches!(reason, Reason::Read(_) | Reason::TooLong)
}

impl Tolerance {
    /// Place of a request at `address`. Whole sectors of the volume count.
    fn placed(&self, address: u64, bytes: u64) -> Result<u64, Reason> {
        let Some(volume) = self.volume else { return Ok(address) };
        let volume = volume.count() - volume.count() % SECTOR.count();
        if address + bytes <= volume {
            return Ok(address);
        }
        match self.beyond {
            Beyond::Fold if bytes <= volume => Ok((address % volume).min(volume - bytes)),
            _ => Err(Reason::Value {
                field: "address",
                got: format!("{address} + {bytes}"),
                allowed: format!("within the device of {volume} bytes"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inversions;
    use super::*;
    use base::Operation;
    use proptest::prelude::*;

    const STRICT: Tolerance =
        Tolerance { volume: None, beyond: Beyond::Refuse, skip_bad: 0, inversions: Inversions::Refuse };

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
        let late = error("0 0 0 1 0\n18446744073709552 0 0 1 0\n");
        assert_eq!(late, "small.trace:2: time `18446744073709552` is not within 213 days of the first, 0");
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason_and_value() {
        let columns = "5: time_ns device first_sector sectors type";
        assert_eq!(error("1 0 0 1\n"), format!("small.trace:1: `1 0 0 1` has 4 columns, it must have {columns}"));
        assert_eq!(error("5 0 0 1 0\n4 0 0 1 0\n"), "small.trace:2: time 4 comes after 5, it must not fall");
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
    fn requests_that_come_behind_later_ones_are_put_in_order_and_counted() {
        let sort = Tolerance { inversions: Inversions::Sort, ..STRICT };
        let order = |text: &str| read(sort, text).map(|trace| (times_and_devices(&trace), trace.inverted));
        // By a tick; at the very start; several behind one; and of one time, in the order of lines.
        assert_eq!(order("5 0 0 1 0\n9 1 0 1 0\n8 2 0 1 0\n").unwrap(), (vec![(0, 0), (3, 2), (4, 1)], 1));
        assert_eq!(order("5 0 0 1 0\n4 1 0 1 0\n5 2 0 1 0\n").unwrap(), (vec![(0, 1), (1, 0), (1, 2)], 1));
        let limit = "1000000 0 0 1 0\n0 1 0 1 0\n500 2 0 1 0\n2000000 3 0 1 0\n";
        assert_eq!(order(limit).unwrap(), (vec![(0, 1), (500, 2), (1_000_000, 0), (2_000_000, 3)], 2));
        let beyond = order("1000001 0 0 1 0\n0 1 0 1 0\n").unwrap_err().to_string();
        assert_eq!(beyond, "small.trace:2: time 0 comes after 1000001, it must not fall");
        // A later line that is far on does not let an earlier one in behind what was handed out.
        let late = order("0 0 0 1 0\n3000000 1 0 1 0\n1999999 2 0 1 0\n").unwrap_err().to_string();
        assert!(late.contains("time 1999999 comes after 3000000"), "{late}");
    }

    fn times_and_devices(trace: &BlockTrace) -> Vec<(u64, u32)> {
        let pair = |request: &BlockRequest| (request.at.as_ps() / 1000, request.device);
        trace.requests.iter().map(pair).collect()
    }

    #[test]
    fn a_request_may_end_with_the_volume_and_not_beyond() {
        let volume = Tolerance { volume: Some(sectors(64)), ..STRICT };
        assert!(read(volume, "1 0 48 16 0\n").is_ok());
        let beyond = read(volume, "1 0 49 16 0\n").unwrap_err().to_string();
        assert_eq!(beyond, "small.trace:1: address `25088 + 8192` is not within the device of 32768 bytes");
    }

    #[test]
    fn folding_brings_a_request_back_and_refuses_only_what_is_larger_than_the_volume() {
        let fold = Tolerance { volume: Some(sectors(64)), beyond: Beyond::Fold, ..STRICT };
        let address = |text| read(fold, text).map(|trace| trace.requests[0].address / 512);
        assert_eq!(address("1 0 48 16 0\n").unwrap(), 48);
        assert_eq!(address("1 0 49 16 0\n").unwrap(), 48);
        assert_eq!(address("1 0 70 16 0\n").unwrap(), 6);
        let larger = address("1 0 0 65 0\n").unwrap_err().to_string();
        assert_eq!(larger, "small.trace:1: address `0 + 33280` is not within the device of 32768 bytes");
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
            let _ = read(Tolerance { volume: volume.map(Bytes::new), beyond: Beyond::Fold, skip_bad: 1, ..STRICT }, &line);
        }
    }
}
