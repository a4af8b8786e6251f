//! A target in a thread of its own and hosts that use it, all on the loopback.
#![allow(dead_code, reason = "each test file uses a part of it")]

use live::storage::Storage;
use live::{Host, HostError, RemoteDisk, RunError, Server, ServerOptions, Stopper};
use nvme::initiator::InitiatorConfig;
use nvme::{HostId, Nqn};
use plan::target::{TargetPlan, parse};
use std::io::Write;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub const NQN: &str = "nqn.2026-11.io.rackweave:disk";

/// A running target.
pub struct Running {
    pub address: String,
    pub metrics: Option<String>,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Running {
    pub fn start(text: &str) -> Running {
        Running::start_on(text, None)
    }

    /// Every namespace lies in `storage`, if there is one.
    pub fn start_on(text: &str, storage: Option<Arc<dyn Storage>>) -> Running {
        Running::start_with(text, move |_| storage.clone())
    }

    /// Namespaces lie where `storage_of` says, by their numbers, or else where the plan says.
    pub fn start_with(text: &str, storage_of: impl Fn(u32) -> Option<Arc<dyn Storage>> + Send + 'static) -> Running {
        let plan = plan(text);
        let (sender, receiver) = std::sync::mpsc::channel();
        let metrics = plan.metrics.clone();
        let thread = std::thread::spawn(move || {
            let open = |namespace: &plan::target::Namespace| storage_of(namespace.id);
            let options = ServerOptions { storage: Some(&open), ..ServerOptions::default() };
            let mut server = Server::start(&plan, options).expect("it starts");
            sender.send((server.addresses()[0].to_string(), server.stopper())).expect("somebody waits");
            server.run()
        });
        let (address, stopper) = receiver.recv().expect("it starts");
        Running { address, metrics, stopper, thread: Some(thread) }
    }

    /// An orderly end.
    pub fn stop(mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        ended.expect("it was running").expect("it does not panic").expect("it ends in order");
    }

    /// An end that does not succeed; nothing of the target is left afterwards.
    pub fn die(mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        let ended = ended.expect("it was running").expect("it does not panic");
        assert!(ended.is_err(), "its storage is gone");
    }

    pub fn host(&self, config: InitiatorConfig) -> Result<Host, HostError> {
        Host::connect(&self.address, config)
    }

    pub fn disk(&self) -> RemoteDisk {
        self.disk_as(config("one"), 1)
    }

    pub fn disk_as(&self, config: InitiatorConfig, namespace: u32) -> RemoteDisk {
        let host = self.host(config).expect("it is let in");
        RemoteDisk::open(host, namespace).expect("it is there")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// What the process has logged.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Collects the log lines of this process.
    pub fn start() -> Log {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
        log
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("nobody panics")).into_owned()
    }
}

/// Loops of a target. The suites run with more than one in programs of their own.
pub fn loops() -> u32 {
    match env!("CARGO_CRATE_NAME") {
        "two_loops" => 2,
        "three_loops" => 3,
        _ => 1,
    }
}

/// The plan of `text`, at a free port unless it says where. A subsystem without a name is [`NQN`].
pub fn plan(text: &str) -> TargetPlan {
    let port = if text.contains("[[port]]") { "" } else { "port = [{ address = '127.0.0.1:0' }]\n" };
    let mut plan = parse("test", &format!("loops = {}\n{port}{text}", loops())).expect("the plan is right");
    plan.subsystems[0].nqn.get_or_insert_with(|| NQN.into());
    plan
}

/// A host by its name.
pub fn config(name: &str) -> InitiatorConfig {
    let mut host_id = [7; 16];
    host_id.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
    let host = Nqn::new(&format!("nqn.2026-11.io.rackweave:{name}")).expect("a name");
    InitiatorConfig::new(host, HostId(host_id), Nqn::new(NQN).expect("a name"))
}

/// Data that tell their place and version, so that none is taken for another.
pub fn pattern(block: u64, version: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|word| base::mix(block << 32 ^ version << 16 ^ word));
    words.flat_map(u64::to_le_bytes).collect()
}

/// What is served at a path of the metrics' address.
pub fn http(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

/// A number of the metrics.
pub fn metric(address: &str, name: &str) -> u64 {
    let text = http(address, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
}

/// A port of the loopback that nobody has, below those that the system hands out (ip(7)): nobody is
/// given it before it is bound.
pub fn free_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() * 61 % 20_000) as u16;
    let mut all = (0..2_000).map(|_| format!("127.0.0.1:{}", first + NEXT.fetch_add(1, Ordering::Relaxed)));
    all.find(|address| std::net::TcpListener::bind(address).is_ok()).expect("a free port")
}
