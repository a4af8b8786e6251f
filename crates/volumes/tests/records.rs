//! Records of storage servers, read as those of simulated runs are.

mod common;

use base::{Operation, Span};
use common::{Live, free_addresses, page_of, rack, read, write};
use plan::rack::Rack;
use plan::target::Records;
use record::{Outcome, Row, SpanKind, read_part};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Instant;

const PAGES: u64 = 64;
const FLASH: Span = Span::us(300);

/// Every request, of servers with slow flash and metrics.
fn recorded(folder: &Path) -> Rack {
    let mut rack = rack(folder, 2, PAGES);
    let folder = folder.join("rows").display().to_string();
    rack.records = Some(Records { folder, sample: 1, tail: Span::secs(1) });
    for (server, address) in rack.storage.iter_mut().zip(free_addresses(2)) {
        (server.flash.read, server.metrics) = (FLASH, Some(address));
    }
    rack
}

/// The rows of all starts of a server. One without requests leaves its folder to the next.
fn rows(folder: &Path, server: usize, operation: Operation) -> Vec<Row> {
    let starts = (1..=2).map(|start| folder.join(format!("rows/s{server}.{start}/part-00000.parquet")));
    let parts = starts.filter_map(|path| File::open(path).ok());
    let rows = parts.flat_map(|part| read_part("part", &part).expect("it is whole").rows);
    rows.filter(|row| row.operation == operation).collect()
}

/// A counter of a server.
fn counter(address: SocketAddr, name: &str) -> u64 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").expect("it is asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let line = format!("rackweave_storage_{name}_total ");
    let found = text.lines().find_map(|told| told.strip_prefix(&line)).unwrap_or_else(|| panic!("{name}: {text}"));
    found.parse().expect("a number")
}

#[test]
fn each_request_of_a_door_is_a_row_at_the_server_that_answers_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = recorded(folder.path());
    let live = Live::up(rack.clone());
    let volume = live.volume();
    (0..PAGES).for_each(|page| write(&volume, page, 1));
    drop((volume, live));
    // What was in memory is on flash now.
    let live = Live::up(rack.clone());
    let volume = live.volume();
    let begin = Instant::now();
    (0..PAGES).for_each(|page| assert_eq!(read(&volume, page), page_of(page, 1)));
    let elapsed = Span::ps(begin.elapsed().as_nanos() as u64 * 1_000);
    let addresses = rack.storage.iter().filter_map(|server| server.metrics);
    let counted: Vec<u64> = addresses
        .map(|address| {
            assert_eq!(counter(address, "record_rows_dropped"), 0);
            counter(address, "reads")
        })
        .collect();
    drop((volume, live));
    let written: Vec<Row> = (0..2).flat_map(|server| rows(folder.path(), server, Operation::Write)).collect();
    let done = |row: &&Row| row.outcome == Outcome::Finished;
    assert!(written.iter().filter(done).count() as u64 >= PAGES, "each was answered once at least");
    assert!(written.iter().filter(done).all(|row| row.spans.get(SpanKind::Replication) > Span::ZERO));
    let reads = [0, 1].map(|server| rows(folder.path(), server, Operation::Read));
    let answered = |rows: &[Row]| rows.iter().filter(|row| row.outcome == Outcome::Finished).count() as u64;
    assert_eq!(reads.iter().map(|rows| answered(rows)).collect::<Vec<_>>(), counted);
    assert!(written.iter().chain(&reads.concat()).all(|row| row.adds_up() && row.bytes.count() == 4_096));
    // One that came before the server's lease has no answer, and its door asks again.
    let all: Vec<Row> = reads.concat().into_iter().filter(|row| row.outcome == Outcome::Finished).collect();
    for page in 0..PAGES {
        let row = all.iter().find(|row| row.address == page * 4_096).expect("each page was read");
        assert!(row.spans.get(SpanKind::Flash) >= FLASH, "page {page}: {row:?}");
    }
    if counted.iter().sum::<u64>() == PAGES {
        // One page after the other, and no door asked twice.
        let sum = all.iter().fold(Span::ZERO, |sum, row| sum + row.latency());
        assert!(sum >= FLASH * PAGES && sum <= elapsed, "{sum:?} of {elapsed:?}");
    }
}
