//! A JBOF of its own in this process, and doors to it.
#![allow(dead_code, reason = "not every test needs all of it")]

use super::config;
use super::target::{RunningTarget, flash_of};
use base::Span;
use kv::{
    Config, FabricPlace, JbofConfig, JbofPlace, JbofRole, JbofRoleConfig, Peer, PeerAddress, RunError, Secret, Stopper,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// How a door reaches the JBOF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over TCP.
    Tcp,
    /// Over a Unix socket, with memory and flash shared.
    Shared,
    /// Over TCP, with the memory accessed by libfabric.
    Fabric,
    /// Over TCP, with the flash read by NVMe/TCP.
    Nvme,
}

/// Whether libfabric is there. In CI it has to be.
pub fn has_fabric() -> bool {
    match fabric::Library::open() {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            eprintln!("SKIPPED, the memory by libfabric: {error}");
            false
        }
    }
}

/// Every way that this machine has.
pub fn ways() -> Vec<Way> {
    [Way::Tcp, Way::Shared, Way::Nvme].into_iter().chain(has_fabric().then_some(Way::Fabric)).collect()
}

/// Where the Unix socket of a folder's JBOF is.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("jbof.sock")
}

/// A JBOF that listens in every way.
pub fn role_config(folder: &Path, jbof: JbofConfig, secret: Option<&str>) -> JbofRoleConfig {
    JbofRoleConfig {
        listen: vec![PeerAddress::Tcp("127.0.0.1:0".into()), PeerAddress::Unix(socket(folder))],
        secret: secret.map(|text| Secret(text.into())),
        fabric: has_fabric().then(|| FabricPlace { provider: "tcp".into(), address: "127.0.0.1:0".into() }),
        metrics: None,
        silence: Span::secs(30),
        jbof,
        records: None,
        journal: None,
    }
}

/// A door to a JBOF.
pub fn door(folder: &Path, way: Way, address: SocketAddr, secret: Option<&str>) -> Config {
    let address = match way {
        Way::Tcp | Way::Fabric | Way::Nvme => PeerAddress::Tcp(address.to_string()),
        Way::Shared => PeerAddress::Unix(socket(folder)),
    };
    let secret = secret.map(|text| Secret(text.into()));
    let fabric = (way == Way::Fabric).then(|| "tcp".into());
    let flash = (way == Way::Nvme).then(|| Box::new(flash_of(folder)));
    Config { jbof: JbofPlace::Away(Peer { address, secret, fabric, flash }), ..config(folder) }
}

/// A JBOF on a thread, and a target of its flash; dropped, both end.
pub struct RunningJbof {
    /// Where doors come in over TCP.
    pub address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<[u64; 3], RunError>>>,
    /// Its flash for doors.
    target: Option<RunningTarget>,
}

impl RunningJbof {
    /// Starts it.
    pub fn start(config: JbofRoleConfig) -> RunningJbof {
        let flash = config.jbof.path.clone();
        let mut role = JbofRole::start(config, false).unwrap_or_else(|error| panic!("{error}"));
        let target = RunningTarget::start(&flash);
        let (address, stopper) = (role.address().expect("it listens over TCP"), role.stopper());
        let thread = std::thread::spawn(move || role.run().map(|()| role.counted()));
        RunningJbof { address, stopper, thread: Some(thread), target: Some(target) }
    }
}

impl RunningJbof {
    /// Ends the target of its flash.
    pub fn without_target(&mut self) {
        self.target = None;
    }

    /// Starts another one for the same doors.
    pub fn with_target(&mut self, flash: &Path) {
        self.target = Some(RunningTarget::start(flash));
    }

    /// Ends it. Returns verbs, reads and requests that it did for doors.
    pub fn end(mut self) -> [u64; 3] {
        self.stopper.stop();
        let thread = self.thread.take().expect("it was started");
        thread.join().expect("it does not panic").expect("it runs")
    }
}

impl Drop for RunningJbof {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.iter().for_each(|ended| assert!(matches!(ended, Ok(Ok(_))), "it runs, and does not panic"));
        }
    }
}
