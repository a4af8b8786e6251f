//! What many peers do at once leaves a few lines in the log, not one each.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::{Log, Running};

const SILENT: u64 = 60;
const WRONG: u64 = 200;
/// Lines that may come before they are one a second.
const AT_ONCE: u64 = 10;

/// Counts the log lines with these words, and the connections that they stand for.
fn told_of(log: &Log, words: &str) -> (u64, u64) {
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
    let left_out = |line: &str| -> u64 {
        let (_, number) = line.split_once("left_out=").expect("each line says how many were left out");
        number.split_whitespace().next().expect("a number").parse().expect("a number")
    };
    let told = |line: &&str| left_out(line) + u64::from(line.contains("peer="));
    (lines.len() as u64, lines.iter().map(told).sum())
}

/// Waits until all are told of, by few lines.
fn all_in_few_lines(log: &Log, words: &str, all: u64, start: Instant) {
    let until = Instant::now() + Duration::from_secs(60);
    while told_of(log, words).1 < all && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (lines, told) = told_of(log, words);
    assert_eq!(told, all);
    let seconds = start.elapsed().as_secs();
    assert!(lines <= AT_ONCE + 1 + seconds, "{lines} lines in {seconds} s");
}

#[test]
fn silent_and_wrong_connections_are_told_of_in_few_lines_and_all_of_them_in_the_end() {
    let log = Log::start();
    let target = Running::start("[limits]\nhandshake = '300ms'\n");
    let start = Instant::now();
    let all: Vec<TcpStream> = (0..SILENT).map(|_| TcpStream::connect(&target.address).expect("it listens")).collect();
    for mut stream in all {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        assert_eq!(stream.read(&mut [0; 1]).expect("the target ends it"), 0);
    }
    all_in_few_lines(&log, "no Connect came in time", SILENT, start);
    let start = Instant::now();
    for _ in 0..WRONG {
        let mut stream = TcpStream::connect(&target.address).expect("it listens");
        stream.write_all(&[0xff; 128]).expect("it is open");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    all_in_few_lines(&log, "protocol", WRONG, start);
    target.stop();
}
