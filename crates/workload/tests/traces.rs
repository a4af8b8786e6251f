//! Every format of recorded loads: what its lines mean, what is refused, and how it is told.

use base::{Bytes, Operation, Time};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;
use workload::FileError;
use workload::block_trace::{
    Beyond, BlockRequest, BlockTrace, Format, Inspection, Inversions, Report, Tolerance, open_block_trace,
};

const STRICT: Tolerance =
    Tolerance { volume: None, beyond: Beyond::Refuse, skip_bad: 0, inversions: Inversions::Refuse };

/// A small file of each format, which all say the same: at 0 device A reads 8 KiB from byte 4096,
/// 1.5 ms later device B writes 512 bytes at byte 1024, and 98.5 ms later A reads 4 KiB at 0.
const SAME: [(Format, &str); 9] = [
    (Format::Mqsim, "7000000 1 8 16 1\n8500000 2 2 1 0\n107000000 1 0 8 1\n"),
    (Format::Disksim, "7.000000 1 8 16 1\n8.5000 2 2 1 0\n107.0 1 0 8 1\n"),
    (Format::Spc, "1,8,8192,r,0.007\n2,2,512,W,0.008500\n1,0,4096,R,0.107\n"),
    (
        Format::Systor,
        "Timestamp,Response,IOType,LUN,Offset,Size\n1455592199.507000000,0.1,R,1,4096,8192\n\
         1455592199.508500000,0.1,W,2,1024,512\n1455592199.509,0.0,,2,,\n1455592199.607000000,0.1,R,1,0,4096\n",
    ),
    (
        Format::Msr,
        "128166372003070000,usr,0,Read,4096,8192,41286\n128166372003085000,usr,1,Write,1024,512,41286\n\
         128166372004070000,usr,0,Read,0,4096,0\n",
    ),
    (Format::Alibaba, "1,R,4096,8192,1577808000007000\n2,W,1024,512,1577808000008500\n1,R,0,4096,1577808000107000\n"),
    (
        Format::Blktrace,
        "  8,0    3        1     0.007000000   697  Q   R 8 + 16 [fio]\n\
         \u{20} 8,0    3        2     0.007100000   697  G   R 8 + 16 [fio]\n\
         \u{20} 8,0    3        3     0.007200000   697  P   N [fio]\n\
         \u{20} 8,0    0        0     0.007300000     0  m   N cfq workload slice:300\n\
         \u{20} 8,16   3        4     0.008500000   697  Q  WS 2 + 1 [fio]\n\
         \u{20} 8,16   3        5     0.008600000   697  Q FWS 0 + 0 [fio]\n\
         \u{20} 8,16   3        6     0.008700000   697  Q   D 0 + 8 [fio]\n\
         \u{20} 8,0    3        7     0.107000000   697  Q  RA 0 + 8 [fio]\n\
         CPU3 (8,0):\n Reads Queued:           2,       12KiB\t Writes Queued:           0,        0KiB\n",
    ),
    (
        Format::FioIolog,
        "fio version 2 iolog\n/dev/a add\n/dev/b add\n/dev/a open\n/dev/b open\n/dev/a wait 7000 0\n/dev/a read 4096 8192\n\
         /dev/a wait 99 0\n/dev/a wait 1500 0\n/dev/b write 1024 512\n/dev/b sync 0 0\n/dev/b trim 0 4096\n/dev/a wait 98500 0\n\
         /dev/a read 0 4096\n/dev/a close\n",
    ),
    (
        Format::FioIolog,
        "fio version 3 iolog\n0 /dev/a add\n0 /dev/b add\n1 /dev/a open\n1 /dev/b open\n7000 /dev/a read 4096 8192\n\
         8500 /dev/b write 1024 512\n8600 /dev/b datasync 0 0\n107000 /dev/a read 0 4096\n107001 /dev/a close\n",
    ),
];

/// Tencent's times are whole seconds.
const TENCENT: &str = "1538323200,8,16,0,1\n1538323200,2,1,1,2\n1538323207,0,8,0,1\n";

fn read_as(format: Option<Format>, tolerance: Tolerance, text: &[u8]) -> Result<(Format, BlockTrace), FileError> {
    let reader = open_block_trace("small", format, tolerance, text)?;
    let format = reader.format();
    Ok((format, reader.collect(None)?))
}

fn error(format: Format, text: &str) -> String {
    read_as(Some(format), STRICT, text.as_bytes()).unwrap_err().to_string()
}

fn expected(first_device: u32, second_device: u32, times: [Time; 3]) -> Vec<BlockRequest> {
    let request = |at, device, operation, address, bytes| BlockRequest {
        at,
        device,
        operation,
        address,
        bytes: Bytes::new(bytes),
    };
    vec![
        request(times[0], first_device, Operation::Read, 4096, 8192),
        request(times[1], second_device, Operation::Write, 1024, 512),
        request(times[2], first_device, Operation::Read, 0, 4096),
    ]
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_load_reads_the_same_in_every_format_and_every_format_is_told() {
    let times = [Time::ZERO, Time::us(1_500), Time::ms(100)];
    for (format, text) in SAME {
        let has_names = matches!(format, Format::Msr | Format::Blktrace | Format::FioIolog);
        let devices = if has_names { (0, 1) } else { (1, 2) };
        let (told, trace) = read_as(None, STRICT, text.as_bytes()).unwrap();
        assert_eq!((told, trace.requests), (format, expected(devices.0, devices.1, times)), "{format}");
    }
    let (told, trace) = read_as(None, STRICT, TENCENT.as_bytes()).unwrap();
    let times = [Time::ZERO, Time::ZERO, Time::secs(7)];
    assert_eq!((told, trace.requests), (Format::Tencent, expected(1, 2, times)));
}

#[test]
fn line_ends_of_windows_trailing_fields_a_mark_at_the_start_and_gzip_change_nothing() {
    for (format, text) in SAME {
        let plain = read_as(Some(format), STRICT, text.as_bytes()).unwrap().1;
        let windows = text.replace('\n', "\r\n");
        assert_eq!(read_as(None, STRICT, windows.as_bytes()).unwrap().1, plain, "{format}");
        assert_eq!(read_as(None, STRICT, &packed(text.as_bytes())).unwrap().1, plain, "{format}");
    }
    for (format, separator) in [(Format::Spc, ","), (Format::Alibaba, ","), (Format::Msr, ","), (Format::Mqsim, " ")] {
        let text = SAME.iter().find(|(each, _)| *each == format).unwrap().1;
        let longer = text.replace('\n', &format!("{separator}17{separator}x\n"));
        let plain = read_as(Some(format), STRICT, text.as_bytes()).unwrap().1;
        assert_eq!(read_as(Some(format), STRICT, longer.as_bytes()).unwrap().1, plain, "{format}");
    }
    let marked = format!("\u{feff}{}", SAME[3].1);
    assert_eq!(read_as(None, STRICT, marked.as_bytes()).unwrap().1.requests.len(), 3);
}

#[test]
fn several_gzip_members_are_one_file_and_half_a_member_is_an_error() {
    let mut two = packed(b"1 0 0 1 0\n");
    two.extend(packed(b"2 0 0 1 0\n"));
    assert_eq!(read_as(Some(Format::Mqsim), STRICT, &two).unwrap().1.requests.len(), 2);
    let half = &packed(SAME[0].1.as_bytes())[..20];
    let error = read_as(Some(Format::Mqsim), STRICT, half).unwrap_err().to_string();
    assert!(error.starts_with("small:1: cannot be read: "), "{error}");
}

#[test]
fn an_unknown_opcode_is_named_in_every_format() {
    assert_eq!(error(Format::Mqsim, "1 0 0 1 2\n"), "small:1: type `2` is not 0 (write) or 1 (read)");
    assert_eq!(error(Format::Disksim, "1.0 0 0 1 3\n"), "small:1: type `3` is not 0 (write) or 1 (read)");
    assert_eq!(error(Format::Spc, "0,0,512,X,0.1\n"), "small:1: opcode `X` is not R or W");
    assert_eq!(error(Format::Systor, "1.0,0.1,T,0,0,512\n"), "small:1: IOType `T` is not R, W or nothing");
    assert_eq!(error(Format::Msr, "1,usr,0,read,0,512,1\n"), "small:1: Type `read` is not Read or Write");
    assert_eq!(error(Format::Alibaba, "0,D,0,512,1\n"), "small:1: opcode `D` is not R or W");
    assert_eq!(error(Format::Tencent, "1,0,1,2,9\n"), "small:1: type `2` is not 0 (read) or 1 (write)");
    let event = |action, rwbs| error(Format::Blktrace, &format!("8,0 0 1 0.1 1 {action} {rwbs} 0 + 8 [x]\n"));
    assert!(event("Z", "R").starts_with("small:1: action `Z` is not one of A B C D "));
    assert_eq!(event("Q", "K"), "small:1: rwbs `K` is not made of the letters RWDEFASMNBV");
    let log = error(Format::FioIolog, "fio version 2 iolog\n/a add\n/a open\n/a erase 0 1\n");
    assert!(log.starts_with("small:4: action `erase` is not one of add, open, close, wait, read"), "{log}");
}

#[test]
fn too_few_columns_are_named_with_what_must_be_there() {
    let columns = |format, text, names| {
        let got = text_columns(format, text);
        assert_eq!(
            error(format, &format!("{text}\n")),
            format!("small:1: `{text}` has {got} columns, it must have {names}")
        );
    };
    columns(Format::Spc, "0,0,512,R", "5: asu,sector,bytes,opcode,seconds");
    columns(Format::Systor, "1.0,0.1,R,0,0", "6: Timestamp,Response,IOType,LUN,Offset,Size");
    columns(Format::Msr, "1,usr,0,Read,0,512", "7: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime");
    columns(Format::Alibaba, "0,R,0,512", "5: device,opcode,offset,length,microseconds");
    columns(Format::Tencent, "1,0,1,0", "5: seconds,sector,sectors,type,volume");
    columns(Format::Disksim, "1.0 0 0 1", "5: time_ms device first_sector sectors flags");
}

fn text_columns(format: Format, text: &str) -> usize {
    if format == Format::Disksim { text.split(' ').count() } else { text.split(',').count() }
}

#[test]
fn units_and_numbers_that_are_not_the_formats_are_refused() {
    assert_eq!(
        error(Format::Disksim, "938513000 4 8 16 0\n"),
        "small:1: time_ms `938513000` is not a decimal number of milliseconds with its point (MQSim's nanoseconds have none)"
    );
    assert!(error(Format::Mqsim, "1.5 4 8 16 0\n").starts_with("small:1: time_ns `1.5` is not a whole number in "));
    assert!(error(Format::Alibaba, "0,R,0,512,1.5\n").starts_with("small:1: microseconds `1.5` is not a whole number"));
    assert_eq!(error(Format::Spc, "0,0,512,R,-0.1\n"), "small:1: seconds `-0.1` is not a non-negative decimal number");
    assert_eq!(
        error(Format::Msr, "-1,usr,0,Read,0,512,1\n"),
        "small:1: Timestamp `-1` is not a whole number in 0..=18446744073709551615"
    );
    assert!(error(Format::Systor, "1.0,0,R,0,0,0\n").starts_with("small:1: Size `0` is not a whole number in 1..="));
    assert!(error(Format::Spc, "0,0,+512,R,0\n").starts_with("small:1: bytes `+512` is not a whole number in 1..="));
    let end = format!("0,R,{},512,1\n", u64::MAX - 511);
    assert!(error(Format::Alibaba, &end).starts_with("small:1: offset `18446744073709551104` is not a whole number"));
}

#[test]
fn time_that_goes_back_is_refused_in_the_unit_of_the_file() {
    let back = |format, text| error(format, text);
    assert_eq!(
        back(Format::Spc, "0,0,512,R,1.5\n0,0,512,R,1.25\n"),
        "small:2: time 1.25 comes after 1.5, it must not fall"
    );
    assert_eq!(back(Format::Tencent, "9,0,1,0,1\n8,0,1,0,1\n"), "small:2: time 8 comes after 9, it must not fall");
    let log = "fio version 3 iolog\n0 /a add\n0 /a open\n70 /a read 0 1\n69 /a read 0 1\n";
    assert_eq!(back(Format::FioIolog, log), "small:5: time 69 comes after 70, it must not fall");
}

#[test]
fn a_log_of_fio_keeps_its_rules() {
    let log = |text: &str| error(Format::FioIolog, &format!("fio version 2 iolog\n{text}"));
    assert_eq!(log("/a read 0 1\n"), "small:2: filename `/a` is not a file that was added and opened before");
    assert_eq!(log("/a add\n/a read 0 1\n"), "small:3: filename `/a` is not a file that was added and opened before");
    assert_eq!(log("/a open\n"), "small:2: filename `/a` is not a file that was added before");
    assert_eq!(
        log("/a add\n/a open\n/a close\n/a read 0 1\n"),
        "small:5: filename `/a` is not a file that was added and opened before"
    );
    let third = error(Format::FioIolog, "fio version 3 iolog\n0 /a add\n0 /a wait 100 0\n");
    assert_eq!(third, "small:3: action `wait` is not allowed in version 3, which has timestamps");
    let header = error(Format::FioIolog, "fio version 1 iolog\n");
    assert_eq!(
        header,
        "small:1: the header is `fio version 1 iolog`, it must be `fio version 2 iolog` or `fio version 3 iolog`"
    );
}

#[test]
fn issued_requests_of_blktrace_are_those_of_action_d() {
    let text = "8,0 1 1 0.1 5 Q R 0 + 8 [x]\n8,0 1 2 0.2 5 Q R 8 + 8 [x]\n8,0 1 3 0.3 5 D R 0 + 16 [x]\n8,0 1 4 0.4 5 C R 0 + 16 [0]\n";
    let sizes = |format| {
        let requests = read_as(Some(format), STRICT, text.as_bytes()).unwrap().1.requests;
        requests.iter().map(|request| request.bytes.count()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(Format::Blktrace), [4096, 4096]);
    assert_eq!(sizes(Format::BlktraceIssued), [8192]);
}

#[test]
fn a_request_beyond_the_device_is_refused_or_folded_as_asked_in_every_format() {
    for (format, text) in SAME {
        let within = Tolerance { volume: Some(Bytes::new(12_288)), ..STRICT };
        assert!(read_as(Some(format), within, text.as_bytes()).is_ok(), "{format}: it ends with the device");
        let beyond = Tolerance { volume: Some(Bytes::new(12_288 - 512)), ..STRICT };
        let error = read_as(Some(format), beyond, text.as_bytes()).unwrap_err().to_string();
        assert!(error.ends_with("address `4096 + 8192` is not within the device of 11776 bytes"), "{format}: {error}");
        let folded = read_as(Some(format), Tolerance { beyond: Beyond::Fold, ..beyond }, text.as_bytes()).unwrap().1;
        assert_eq!(folded.requests[0].address, 11_776 - 8_192, "{format}");
    }
}

#[test]
fn bad_lines_are_skipped_counted_and_shown_and_one_too_many_is_an_error() {
    let text = "0,0,512,R,1.0\n0,0,512,Q,1.1\nnot a line\n0,0,512,W,1.2\n";
    let two = read_as(Some(Format::Spc), Tolerance { skip_bad: 2, ..STRICT }, text.as_bytes()).unwrap().1;
    assert_eq!((two.requests.len(), two.skipped), (2, 2));
    assert_eq!(two.skipped_first[0], "small:2: opcode `Q` is not R or W");
    let one = read_as(Some(Format::Spc), Tolerance { skip_bad: 1, ..STRICT }, text.as_bytes()).unwrap_err();
    assert_eq!(one.line, 3);
}

#[test]
fn a_last_line_without_an_end_may_be_cut_and_is_refused_where_that_could_not_be_seen() {
    assert_eq!(
        error(Format::Spc, "0,0,512,R,1.0\n0,0,512,R,1."),
        "small:2: `0,0,512,R,1.` does not end in a newline: the file is cut off"
    );
    assert!(read_as(Some(Format::Mqsim), STRICT, b"1 0 0 1 0\n2 0 0 1 1").is_ok());
}

#[test]
fn a_file_of_no_format_says_so_with_its_first_line_and_all_names() {
    let error = read_as(None, STRICT, b"# a list\napples,3\n").unwrap_err().to_string();
    let names = "mqsim, disksim, spc, systor, msr, alibaba, tencent, blktrace, blktrace-issued, fio-iolog";
    assert_eq!(
        error,
        format!("small:1: the format cannot be detected from `apples,3`, which fits none: name one of {names}")
    );
    assert_eq!(read_as(None, STRICT, b"\n# nothing\n").unwrap_err().to_string(), "small:1: the file holds no data");
    assert_eq!(
        "umass".parse::<Format>().unwrap_err().to_string(),
        format!("`umass` is no format of traces: allowed are {names}")
    );
}

#[test]
fn a_few_bad_lines_do_not_hide_the_format_when_they_may_be_skipped() {
    let text = "garbage\n0,0,512,R,1.0\n0,0,512,R,1.1\n";
    assert!(read_as(None, STRICT, text.as_bytes()).is_err());
    let (format, trace) = read_as(None, Tolerance { skip_bad: 1, ..STRICT }, text.as_bytes()).unwrap();
    assert_eq!((format, trace.skipped), (Format::Spc, 1));
}

#[test]
fn only_the_first_requests_are_kept_when_only_they_are_asked_for() {
    let first = |count| {
        let reader = open_block_trace("small", None, STRICT, SAME[0].1.as_bytes()).unwrap();
        reader.collect(Some(count)).unwrap().requests.len()
    };
    assert_eq!((first(0), first(2), first(9)), (0, 2, 3));
}

fn inspected(name: &str) -> Option<Report> {
    let path = format!("{}/../../../shared/data/traces/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(path).ok()?;
    let mut reader = open_block_trace(name, None, STRICT, std::io::BufReader::new(file)).unwrap();
    assert_eq!(reader.format(), Format::Mqsim);
    let mut inspection = Inspection::default();
    while let Some(request) = reader.next().unwrap() {
        inspection.add(&request);
    }
    Some(inspection.report(|_| None))
}

/// Counted with awk over the two real traces.
#[test]
fn real_traces_are_summed_up_as_another_program_does_where_they_are_at_hand() {
    let rows = [
        ("tpcc-small.trace", 6_999, 0.625_947, 8_289.23, 0.136_489, 0.012_430, 1.0692, 16),
        ("wsrch-small.trace", 24_783, 0.999_839, 15_419.7, 60.0552, 0.096_034, 1.331_68, 6),
    ];
    for (name, requests, read_share, mean_read, span_s, sequential, variation, devices) in rows {
        let Some(report) = inspected(name) else {
            eprintln!("skipped: {name} is not at hand");
            continue;
        };
        let close = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 1e-4, "{name}: {got} {wanted}");
        assert_eq!((report.requests, report.devices.len()), (requests, devices), "{name}");
        close(report.read_share, read_share);
        close(report.reads.mean_bytes, mean_read);
        close(report.span_s, span_s);
        close(report.sequential_share, sequential);
        close(report.gap_variation, variation);
    }
}

proptest! {
    #[test]
    fn no_bytes_panic_in_any_format(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), format in 0..Format::ALL.len(), skip_bad in 0u64..3,
    ) {
        let tolerance = Tolerance { skip_bad, ..STRICT };
        let _ = read_as(Some(Format::ALL[format]), tolerance, &bytes);
        let _ = read_as(None, tolerance, &bytes);
        let _ = read_as(None, tolerance, &[&[0x1f, 0x8b], &bytes[..]].concat());
    }

    #[test]
    fn a_file_cut_anywhere_loses_whole_lines_only(which in 0..SAME.len(), cut in any::<proptest::sample::Index>()) {
        let (format, text) = SAME[which];
        let whole = read_as(Some(format), STRICT, text.as_bytes()).unwrap().1.requests;
        if let Ok((_, part)) = read_as(Some(format), STRICT, &text.as_bytes()[..cut.index(text.len())]) {
            prop_assert_eq!(&part.requests[..], &whole[..part.requests.len()]);
        }
    }

    #[test]
    fn no_line_with_one_field_changed_panics(
        which in 0..SAME.len(), column in 0usize..7, value in "([0-9]{1,21}|-?[0-9]{1,3}\\.[0-9]{0,14}|[A-Za-z]{0,3})",
    ) {
        let (format, text) = SAME[which];
        let separator = if text.lines().last().unwrap().contains(',') { ',' } else { ' ' };
        let changed: String = text.lines().map(|line| {
            let mut fields: Vec<&str> = line.split(separator).collect();
            if column < fields.len() {
                fields[column] = &value;
            }
            fields.join(&separator.to_string()) + "\n"
        }).collect();
        let _ = read_as(Some(format), Tolerance { skip_bad: 5, volume: Some(Bytes::new(1 << 20)), beyond: Beyond::Fold, ..STRICT }, changed.as_bytes());
    }
}
