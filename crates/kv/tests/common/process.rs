//! A store in a process of its own, which can be killed, paused and kept from writing.
#![allow(dead_code, reason = "not every test needs all of it")]

use crate::common::{config, with};
use kv::{Config, Store};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Names the folder of the store that the other process serves.
const FOLDER: &str = "RACKWEAVE_KV_TEST_FOLDER";
/// Set where all keys share one block of two slots.
const CROWDED: &str = "RACKWEAVE_KV_TEST_CROWDED";

/// A store with flushes.
pub fn config_in(folder: &Path) -> Config {
    with(config(folder), |jbof| {
        (jbof.flush, jbof.value_bytes_max) = (true, 32 << 10);
        if std::env::var_os(CROWDED).is_some() {
            (jbof.blocks, jbof.slots) = (1, 2);
        }
    })
}

/// No test of its own: the process that is killed.
#[test]
#[ignore = "the other process of the tests beside it"]
fn serve() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut store = Store::start(config_in(folder.as_ref()), false).unwrap_or_else(|error| panic!("{error}"));
    println!("\nat {}", store.address().expect("it is bound"));
    store.run().expect("it is killed before");
}

/// The process, and where it listens.
pub struct Process {
    child: Child,
    /// Of its door.
    pub address: SocketAddr,
}

impl Process {
    /// A store of a folder.
    pub fn start(folder: &Path) -> Process {
        Process::by(Command::new(std::env::current_exe().expect("there is a program")), folder)
    }

    /// One block, so that every key is in the way of every other.
    pub fn crowded(folder: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("there is a program"));
        command.env(CROWDED, "1");
        Process::by(command, folder)
    }

    /// One whose writes from a place of a file on fail (EFBIG), as on a drive that takes no more.
    pub fn with_writes_up_to(kibibytes: u32, folder: &Path) -> Process {
        let mut command = Command::new("bash");
        // A limit of the file's size raises a signal, which would end the process.
        let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(std::env::current_exe().expect("there is a program"));
        Process::by(command, folder)
    }

    fn by(mut command: Command, folder: &Path) -> Process {
        let serve = concat!(module_path!(), "::serve");
        // The name of a test has no crate.
        let (_, serve) = serve.split_once("::").expect("a module of a crate");
        command.args(["--ignored", "--exact", serve, "--nocapture"]).env(FOLDER, folder);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut lines = output.lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("at ").map(str::to_owned)).expect("it says where");
        Process { child, address: address.parse().expect("an address") }
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("there is kill").success(), "{name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
