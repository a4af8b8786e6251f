//! An NVMe/TCP target with the flash of a JBOF, and what is between it and its doors.
#![allow(dead_code, reason = "not every test needs all of it")]

use base::Span;
use kv::{FlashPeer, RunError, Stopper};
use live::{Server, ServerOptions};
use nvme::Nqn;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The subsystem of the flash.
pub const SUBSYSTEM: &str = "nqn.2026-11.io.rackweave:flash";
/// The name of doors.
pub const DOOR: &str = "nqn.2026-11.io.rackweave:door";

/// Where the target of a folder's flash is said to be.
fn note(folder: &Path) -> PathBuf {
    folder.join("target.address")
}

/// Says where doors find the target.
pub fn announce(folder: &Path, address: SocketAddr) {
    std::fs::write(note(folder), address.to_string()).expect("there is room");
}

/// Where it was last.
pub fn announced(folder: &Path) -> Option<SocketAddr> {
    Some(std::fs::read_to_string(note(folder)).ok()?.parse().expect("an address"))
}

/// A door's way to the target of a folder.
pub fn flash_of(folder: &Path) -> FlashPeer {
    let name = |text: &str| Nqn::new(text).expect("a name");
    FlashPeer {
        address: announced(folder).expect("there is a target").to_string(),
        subsystem: name(SUBSYSTEM),
        namespace: 1,
        host: name(DOOR),
        dhchap: None,
        controller: None,
        tls: None,
        timeout: Span::secs(2),
    }
}

/// The file of a target that listens at `at`. Long values take several commands.
pub fn target_file(flash: &Path, at: &str, more: &str) -> String {
    format!(
        "port = [{{ address = '{at}'{more} }}]\nlimits.transfer = '16KiB'\n\
         [[subsystem]]\nnqn = '{SUBSYSTEM}'\n\
         [[subsystem.namespace]]\nbackend = 'file'\npath = '{}'\nread_only = true\nunlocked = true\nblock = '4KiB'\n",
        flash.display()
    )
}

/// A target by the text of its file.
pub fn server(text: &str) -> Server {
    let plan = plan::target::parse("target.toml", text).unwrap_or_else(|error| panic!("{error}"));
    Server::start(&plan, ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A target on a thread; dropped, it ends.
pub struct RunningTarget {
    pub address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl RunningTarget {
    /// Serves `flash` to the doors of its folder, where it did before.
    pub fn start(flash: &Path) -> RunningTarget {
        let folder = flash.parent().expect("it is in a folder");
        let at = announced(folder).map_or("127.0.0.1:0".into(), |at| at.to_string());
        let target = RunningTarget::of(&target_file(flash, &at, ""));
        announce(folder, target.address);
        target
    }

    /// By the text of its file.
    pub fn of(text: &str) -> RunningTarget {
        let mut server = server(text);
        let (address, stopper) = (server.addresses()[0], server.stopper());
        RunningTarget { address, stopper, thread: Some(std::thread::spawn(move || server.run())) }
    }
}

impl Drop for RunningTarget {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.iter().for_each(|ended| assert!(matches!(ended, Ok(Ok(()))), "it runs, and does not panic"));
        }
    }
}

/// Bytes of a PDU's common header, and of a capsule with a command.
const HEADER: usize = 8;
/// The PDU of a command (NVMe/TCP Transport 1.0, 3.6.2).
const CAPSULE: u8 = 4;
/// A read of an I/O queue; on the admin queue it would be Get Log Page, which doors do not send.
const READ: u8 = 2;

#[derive(Default)]
struct Between {
    streams: Vec<TcpStream>,
    /// Reads that may pass; `None`: all.
    may_pass: Option<u32>,
    /// Reads that wait.
    held: u32,
}

/// Passes the bytes of doors on to a target, and can hold their reads and cut their connections.
pub struct Relay {
    pub address: SocketAddr,
    between: Arc<(Mutex<Between>, Condvar)>,
}

impl Relay {
    /// To a target; it announces itself to the doors of the folder.
    pub fn start(folder: &Path, target: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let between = Arc::<(Mutex<Between>, Condvar)>::default();
        let shared = between.clone();
        std::thread::spawn(move || {
            for door in listener.incoming().map_while(Result::ok) {
                // One that finds no target is closed.
                let Ok(there) = TcpStream::connect(target) else { continue };
                let both = [&door, &there].map(|stream| stream.try_clone().expect("there are files"));
                shared.0.lock().expect("nobody panics with it").streams.extend(both);
                let [door_again, there_again] =
                    [&door, &there].map(|stream| stream.try_clone().expect("there are files"));
                let of_it = shared.clone();
                std::thread::spawn(move || requests(door, there, &of_it));
                std::thread::spawn(move || answers(there_again, door_again));
            }
        });
        announce(folder, address);
        Relay { address, between }
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for stream in self.between.0.lock().expect("nobody panics with it").streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets so many reads pass, and holds those behind them; `None` lets all pass.
    pub fn let_pass(&self, reads: Option<u32>) {
        self.between.0.lock().expect("nobody panics with it").may_pass = reads;
        self.between.1.notify_all();
    }

    /// Returns when a read is held.
    pub fn wait_for_one(&self) {
        let between = self.between.0.lock().expect("nobody panics with it");
        let limit = Duration::from_secs(60);
        let waited = self.between.1.wait_timeout_while(between, limit, |between| between.held == 0);
        assert!(!waited.expect("nobody panics with it").1.timed_out(), "no read comes");
    }
}

/// Passes whole PDUs, reads only when they may pass.
fn requests(mut door: TcpStream, mut there: TcpStream, (between, changed): &(Mutex<Between>, Condvar)) -> Option<()> {
    loop {
        let mut pdu = vec![0; HEADER];
        let read = door.read_exact(&mut pdu);
        if read.is_err() {
            let _ = there.shutdown(Shutdown::Both);
            return None;
        }
        let length = u32::from_le_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]) as usize;
        pdu.resize(length, 0);
        door.read_exact(&mut pdu[HEADER..]).ok()?;
        if pdu[0] == CAPSULE && pdu[HEADER] == READ {
            let mut held = between.lock().expect("nobody panics with it");
            held.held += 1;
            changed.notify_all();
            let mut passes = changed.wait_while(held, |between| between.may_pass == Some(0)).expect("nobody panics");
            passes.held -= 1;
            passes.may_pass = passes.may_pass.map(|left| left - 1);
        }
        there.write_all(&pdu).ok()?;
    }
}

fn answers(mut there: TcpStream, mut door: TcpStream) {
    let _ = std::io::copy(&mut there, &mut door);
    let _ = door.shutdown(Shutdown::Both);
}
