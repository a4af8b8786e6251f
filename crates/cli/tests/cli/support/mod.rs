//! What the tests share: a home of their own, small experiments, and the program.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod target;

use record::{Row, SpanRow, Summary, read_part, read_spans};
use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Few nodes and few requests, on EDM.
pub const SMALL: &str = r#"title = "small"
[fabric]
nodes = 8
rate = "100Gbps"
[design]
name = "edm"
[workload]
load = 0.5
[run]
requests = 400
"#;

/// As [`SMALL`], two loads by two designs.
pub const SWEEP: &str = r#"
[sweep]
design.name = ["edm", "cxl"]
"workload.load" = [0.2, 0.5]
"#;

/// More than any test waits for.
pub const LONG: &str = "1000000000";

/// Addresses of this machine that nobody uses, below those that the system hands out (ip(7)).
pub fn free<const N: usize>() -> [String; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() * 61 % 20_000) as u16;
    let is_free = |address: &String| TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok();
    [(); N].map(|()| {
        let mut all = (0..2_000).map(|_| format!("127.0.0.1:{}", first + NEXT.fetch_add(1, Ordering::Relaxed)));
        all.find(is_free).expect("a free port")
    })
}

/// The file of a target with volume `disk` of rack.toml behind `door`, for hosts at `port`.
pub fn volume_target(door: &str, port: &str, nqn: &str) -> String {
    format!(
        "[[port]]\naddress = '{port}'\n[[subsystem]]\nnqn = '{nqn}'\n\
         [[subsystem.namespace]]\nbackend = 'volume'\nrack = 'rack.toml'\ndoor = '{door}'\nvolume = 'disk'\n"
    )
}

/// A folder in which the program is run.
pub struct Home(TempDir);

/// What the program said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Panics unless it ended with `code`, and said `words` on its standard error.
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word}: {}", self.err);
        }
    }
}

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn with(self, name: &str, text: &str) -> Home {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    pub fn summary(&self, name: &str) -> Summary {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackweave"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn say(&self, line: &str) -> Said {
        Said::of(self.command(line).output().unwrap())
    }

    /// Runs the program, which must succeed; its standard output.
    pub fn run(&self, line: &str) -> String {
        let said = self.say(line);
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
        said.out
    }

    /// Starts the program and waits until `file` is there.
    pub fn start(&self, line: &str, file: &str) -> Running {
        let mut command = self.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.wait_while(file, || child.try_wait().unwrap().is_none());
        Running(child)
    }

    /// Waits until `file` is there.
    pub fn wait(&self, file: &str) {
        self.wait_while(file, || true);
    }

    fn wait_while(&self, file: &str, mut goes_on: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.path(file).exists() {
            assert!(goes_on(), "it has ended, and there is no {file}");
            assert!(Instant::now() < deadline, "there is no {file}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every file below a folder, by its path from there, with what is in it.
    pub fn files(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        collect(&self.path(name), &self.path(name), &mut files);
        files.sort();
        files
    }

    /// The names of the entries of a folder.
    pub fn entries(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The rows of the visible parts in a folder, every one of which must be whole.
    pub fn rows(&self, name: &str) -> Vec<Row> {
        let parts = self.entries(name).into_iter().filter(|part| !part.starts_with('.'));
        let read = |part: String| read_part(&part, &File::open(self.path(name).join(&part)).unwrap()).unwrap().rows;
        parts.flat_map(read).collect()
    }

    /// The same of spans.
    pub fn spans(&self, name: &str) -> Vec<SpanRow> {
        let parts = self.entries(name).into_iter().filter(|part| !part.starts_with('.'));
        let read = |part: String| read_spans(&part, &File::open(self.path(name).join(&part)).unwrap()).unwrap().rows;
        parts.flat_map(read).collect()
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.push((path.strip_prefix(root).unwrap().display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

/// The program, under way.
pub struct Running(Child);

impl Running {
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    pub fn end(self) -> Said {
        Said::of(self.0.wait_with_output().unwrap())
    }
}

/// A Python with the packages of the tests, if it is there. CI must have it.
pub fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(python.exists() || std::env::var("CI").is_err(), "the tests need target/python");
    python.exists().then_some(python)
}
