//! What many peers do at once leaves a few lines in the log, not one each.

mod support;

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::{Log, Running};

const SILENT: u64 = 60;

/// Counts the log lines about silent connections, and the connections that they stand for.
fn silent(log: &Log) -> (usize, u64) {
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("no Connect came in time")).collect();
    let left_out = |line: &str| -> u64 {
        let (_, number) = line.split_once("left_out=").expect("each line says how many were left out");
        number.split_whitespace().next().expect("a number").parse().expect("a number")
    };
    let told = |line: &&str| left_out(line) + u64::from(line.contains("peer="));
    (lines.len(), lines.iter().map(told).sum())
}

#[test]
fn silent_connections_are_told_of_once_a_second_and_all_of_them_in_the_end() {
    let log = Log::start();
    let target = Running::start("[limits]\nhandshake = '300ms'\n");
    let start = Instant::now();
    let all: Vec<TcpStream> = (0..SILENT).map(|_| TcpStream::connect(&target.address).expect("it listens")).collect();
    for mut stream in all {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        assert_eq!(stream.read(&mut [0; 1]).expect("the target ends it"), 0);
    }
    let until = Instant::now() + Duration::from_secs(60);
    while silent(&log).1 < SILENT && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (lines, told) = silent(&log);
    assert_eq!(told, SILENT);
    let seconds = start.elapsed().as_secs();
    assert!(lines as u64 <= 2 + seconds, "{lines} lines in {seconds} s");
    target.stop();
}
