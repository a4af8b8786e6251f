//! A store in a process of its own, which can be killed, paused and kept from writing.
#![allow(dead_code, reason = "not every test needs all of it")]

use crate::common::away::{Way, door, role_config};
use crate::common::target::{server, target_file};
use crate::common::{config, with};
use kv::{Config, JbofPlace, JbofRole, PeerAddress, Store};
use scalio::Protocol;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Names the folder of the store that the other process serves.
const FOLDER: &str = "RACKWEAVE_KV_TEST_FOLDER";
/// Set where all keys share one block of two slots, and there are two loops.
const CROWDED: &str = "RACKWEAVE_KV_TEST_CROWDED";
/// Set where doors and helper speak the paper's protocol.
const PAPER: &str = "RACKWEAVE_KV_TEST_PAPER";
/// What the other process is, if not a whole store: `jbof`, `target`, `tcp`, `shared`, `fabric`,
/// `nvme`.
const PART: &str = "RACKWEAVE_KV_TEST_PART";
/// Where the JBOF listens over TCP, where that is known.
const AT: &str = "RACKWEAVE_KV_TEST_AT";

/// Room of a small disk that is given back later, MiB.
const BALLAST: u32 = 18;

/// A store with flushes.
pub fn config_in(folder: &Path) -> Config {
    let is_crowded = std::env::var_os(CROWDED).is_some();
    let config = with(config(folder), |jbof| {
        (jbof.flush, jbof.value_bytes_max) = (true, 32 << 10);
        if is_crowded {
            (jbof.blocks, jbof.slots) = (1, 2);
        }
        if std::env::var_os(PAPER).is_some() {
            jbof.protocol = Protocol::Paper { lease: true };
        }
    });
    Config { loops: if is_crowded { 2 } else { 1 }, ..config }
}

/// No test of its own: the process that is killed.
#[test]
#[ignore = "the other process of the tests beside it"]
fn serve() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let at = std::env::var(AT).unwrap_or("127.0.0.1:0".into());
    let config = match std::env::var(PART).as_deref() {
        Ok("jbof") => return serve_jbof(folder, at),
        Ok("target") => return serve_flash(folder, &at),
        Ok(part) => door(folder, way_of(part), at.parse().expect("an address"), None),
        Err(_) => config_in(folder),
    };
    let mut store = Store::start(config, false).unwrap_or_else(|error| panic!("{error}"));
    println!("\nat {}", store.address().expect("it is bound"));
    store.run().expect("it is killed before");
}

fn way_of(part: &str) -> Way {
    match part {
        "tcp" => Way::Tcp,
        "fabric" => Way::Fabric,
        "nvme" => Way::Nvme,
        _ => Way::Shared,
    }
}

fn serve_jbof(folder: &Path, at: String) {
    let JbofPlace::Inside(jbof) = config_in(folder).jbof else { panic!("it is inside") };
    let mut config = role_config(folder, jbof, None);
    config.listen[0] = PeerAddress::Tcp(at);
    let mut role = JbofRole::start(config, false).unwrap_or_else(|error| panic!("{error}"));
    println!("\nat {}", role.address().expect("it is bound"));
    role.run().expect("it is killed before");
}

fn serve_flash(folder: &Path, at: &str) {
    let mut target = server(&target_file(&folder.join("flash"), at, ""));
    println!("\nat {}", target.addresses()[0]);
    target.run().expect("it is killed before");
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

    /// The JBOF of a store whose keys are all in each other's way; at `at`, if it was there before.
    pub fn jbof(folder: &Path, at: Option<SocketAddr>) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("there is a program"));
        command.env(CROWDED, "1").env(PART, "jbof");
        if let Some(at) = at {
            command.env(AT, at.to_string());
        }
        Process::by(command, folder)
    }

    /// The same, by the paper's protocol.
    pub fn paper_jbof(folder: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("there is a program"));
        command.env(CROWDED, "1").env(PART, "jbof").env(PAPER, "1");
        Process::by(command, folder)
    }

    /// A target of the flash of the JBOF; at `at`, if it was there before.
    pub fn target(folder: &Path, at: Option<SocketAddr>) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("there is a program"));
        command.env(PART, "target");
        if let Some(at) = at {
            command.env(AT, at.to_string());
        }
        Process::by(command, folder)
    }

    /// A door to it.
    pub fn door(folder: &Path, way: Way, at: SocketAddr) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("there is a program"));
        let part = match way {
            Way::Tcp => "tcp",
            Way::Shared => "shared",
            Way::Fabric => "fabric",
            Way::Nvme => "nvme",
        };
        command.env(PART, part).env(AT, at.to_string());
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

    /// One on a file system of its own that is nearly full: `free` MiB are left beside a file
    /// `ballast`. `None` where the system mounts none for it; in CI it has to.
    pub fn on_a_small_disk(free: u32, folder: &Path) -> Option<Process> {
        let mount = format!("mount -t tmpfs -o size={}m tmpfs \"${FOLDER}\"", free + BALLAST);
        let script = format!("{mount} && head -c {BALLAST}M /dev/zero > \"${FOLDER}/ballast\" && exec \"$0\" \"$@\"");
        let with = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "bash", "-c", script]).env(FOLDER, folder);
            command
        };
        let tried = with(&mount).status();
        if !tried.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CI").is_none(), "no file system can be mounted");
            eprintln!("SKIPPED: no file system can be mounted");
            return None;
        }
        let mut command = with(&script);
        command.arg(std::env::current_exe().expect("there is a program"));
        Some(Process::by(command, folder))
    }

    /// Has the ballast of its file system go.
    pub fn drop_ballast(&self, folder: &Path) {
        let inside = folder.join("ballast");
        let seen = Path::new("/proc").join(self.child.id().to_string()).join("root");
        let file = seen.join(inside.strip_prefix("/").expect("an absolute path"));
        std::fs::remove_file(file).expect("it is there");
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

    /// Kills it, and only then makes another one.
    pub fn replace(&mut self, another: impl FnOnce() -> Process) {
        self.end();
        *self = another();
    }

    /// Stops it for a while.
    pub fn pause(&self, time: Duration) {
        self.signal("STOP");
        sleep(time);
        self.signal("CONT");
    }

    fn end(&mut self) {
        // SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("there is kill").success(), "{name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
