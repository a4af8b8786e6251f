//! A live rack whose switch forwards in the kernel. Each role is in a network namespace of its own,
//! behind a pair of virtual Ethernet.

mod common;

use base::{Bytes, Seed, Span, Time};
use common::{PAGE, TIMEOUT, rack, wait_until};
use history::{Action, History, Operation};
use nix::sched::{CloneFlags, setns};
use plan::rack::{Rack, Xdp, XdpModeName};
use runtime::storage::Storage as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;
use volumes::{Door, Running, Start, StartError, Stop, Volume, control, storage, switch};

const ROLES: [&str; 5] = ["switch", "control", "s0", "s1", "door"];
/// The switch in [`ROLES`].
const SWITCH: usize = 0;
const PAGES: u64 = 64;
const CLIENTS: u64 = 4;

fn object() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/xdp/switch.bpf.o")
}

/// Namespaces of roles, joined by a bridge that has an address too.
struct Net {
    name: String,
    /// The first three numbers of all addresses.
    front: String,
}

fn run(line: &str) -> bool {
    let mut words = line.split(' ');
    let said = Command::new(words.next().expect("a program")).args(words).output();
    said.is_ok_and(|said| said.status.success())
}

impl Net {
    /// One, or what is missing. `sums` says whether senders compute checksums by themselves.
    fn make(sums: bool) -> Result<Net, &'static str> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = (std::process::id() * 3 + NEXT.fetch_add(1, Ordering::Relaxed)) % 16_000;
        let (name, front) = (format!("rwx{number}"), format!("10.{}.{}", 192 + number / 250, number % 250));
        if !object().exists() {
            return Err("no target/xdp/switch.bpf.o: `make xdp` compiles it");
        }
        let net = Net { name, front };
        let Net { name, front } = &net;
        let bridge = run(&format!("ip link add {name} mtu 9000 type bridge"))
            && run(&format!("ip addr add {front}.254/24 dev {name}"))
            && run(&format!("ip link set {name} up"));
        if !bridge || !(0..ROLES.len()).all(|role| net.join(role, sums)) {
            return Err("network namespaces, veth and bridges need root, iproute2 and ethtool");
        }
        Ok(net)
    }

    fn join(&self, role: usize, sums: bool) -> bool {
        let (Net { name, front }, space) = (self, self.space(role));
        run(&format!("ip netns add {space}"))
            && run(&format!("ip link add {name}{role} mtu 9000 type veth peer name eth0 mtu 9000 netns {space}"))
            && run(&format!("ip link set {name}{role} master {name} up"))
            && run(&format!("ip -netns {space} addr add {front}.{}/24 dev eth0", role + 1))
            && run(&format!("ip -netns {space} link set lo up"))
            && run(&format!("ip -netns {space} link set eth0 up"))
            && (!sums || run(&format!("ip netns exec {space} ethtool -K eth0 tx off")))
    }

    fn space(&self, role: usize) -> String {
        format!("{}-{}", self.name, ROLES[role])
    }

    /// Lets this thread, and those that it starts, be in the namespace of a role.
    fn enter(&self, role: usize) {
        let space = File::open(Path::new("/run/netns").join(self.space(role))).expect("it was made");
        setns(space, CloneFlags::CLONE_NEWNET).expect("we are root");
    }

    fn address(&self, role: usize, port: u16) -> SocketAddr {
        format!("{}.{}:{port}", self.front, role + 1).parse().expect("an address")
    }

    /// A rack whose roles have their addresses here. Its flash collects soon.
    fn rack(&self, folder: &Path) -> Rack {
        let mut rack = rack(folder, 2, PAGES);
        let at = |role| self.address(role, 7_000);
        (rack.switch.listen, rack.control.listen) = (at(SWITCH), at(1));
        rack.switch.metrics = Some(self.address(SWITCH, 9_500));
        rack.switch.xdp = Some(Xdp { interface: "eth0".into(), object: object(), mode: XdpModeName::Generic });
        for (server, role) in rack.storage.iter_mut().zip(2..) {
            (server.listen, server.room) = (at(role), 0);
            let flash = &mut server.flash;
            (flash.size, flash.channels) = (Bytes::kib(512), 1);
            (flash.program, flash.erase) = (Span::us(50), Span::ms(3));
        }
        rack.doors[0].listen = at(4);
        rack
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for role in 0..ROLES.len() {
            run(&format!("ip netns delete {}", self.space(role)));
            run(&format!("ip link delete {}{role}", self.name));
        }
        run(&format!("ip link delete {}", self.name));
    }
}

/// Roles on threads, each in its namespace. Dropping it ends them.
struct Live<'a> {
    net: &'a Net,
    rack: Rack,
    roles: Vec<(usize, Stop, JoinHandle<()>)>,
}

impl<'a> Live<'a> {
    fn up(net: &'a Net, folder: &Path) -> Live<'a> {
        let mut live = Live { net, rack: net.rack(folder), roles: Vec::new() };
        [1, SWITCH, 2, 3].into_iter().for_each(|role| live.start(role));
        live
    }

    fn start(&mut self, role: usize) {
        let (told, hears) = mpsc::channel();
        let (rack, space) = (self.rack.clone(), Net { name: self.net.name.clone(), front: self.net.front.clone() });
        let space = std::mem::ManuallyDrop::new(space);
        let thread = std::thread::spawn(move || {
            space.enter(role);
            let running: Result<Running, StartError> = match role {
                SWITCH => switch::start(&rack, Start::Thread),
                1 => control::start(&rack, Start::Thread),
                server => storage::start(&rack, server - 2, Start::Thread),
            };
            let running = running.unwrap_or_else(|error| panic!("{}: {error}", ROLES[role]));
            told.send(running.stopper()).expect("it is heard");
            running.run().expect("it runs");
        });
        self.roles.push((role, hears.recv().expect("it starts"), thread));
    }

    fn stop(&mut self, role: usize) {
        let place = self.roles.iter().position(|(one, ..)| *one == role).expect("it runs");
        let (_, stop, thread) = self.roles.remove(place);
        stop.stop();
        thread.join().expect("it ends");
    }

    fn volume(&self) -> Volume {
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| {
                self.net.enter(4);
                Door::open(&self.rack, "door").expect("it opens").volume(&self.rack, "disk").expect("it is there")
            });
            opened.join().expect("it opens")
        })
    }

    /// A counter of the switch.
    fn count(&self, name: &str) -> u64 {
        let address = self.net.address(SWITCH, 9_500);
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).expect("the switch answers");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n").expect("it is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it comes");
        let front = format!("rackweave_switch_{name}_total ");
        let line = text.lines().find_map(|line| line.strip_prefix(&front));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        while let Some((role, ..)) = self.roles.last() {
            let role = *role;
            self.stop(role);
        }
    }
}

/// Clients that read and write the same pages, and what they saw.
struct Clients<'a> {
    volume: &'a Volume,
    start: Instant,
    next: AtomicU64,
    history: Mutex<History>,
}

impl Clients<'_> {
    fn now(&self) -> Time {
        Time::ps(self.start.elapsed().as_nanos() as u64 * 1_000)
    }

    /// One client's operations, until it has had enough.
    fn run(&self, client: u64, is_enough: impl Fn(u64) -> bool) {
        for turn in (0..).take_while(|turn| !is_enough(*turn)) {
            let draw = Seed(client).child(&turn.to_string()).0;
            let (page, id) = (draw % PAGES, self.next.fetch_add(1, Ordering::Relaxed) + 1);
            let invoked = self.now();
            let (action, value) = if draw >> 32 & 1 == 0 {
                self.volume.write(page * PAGE as u64, &id.to_le_bytes().repeat(PAGE / 8)).expect("it is written");
                (Action::Write, id)
            } else {
                let mut data = vec![1; PAGE];
                self.volume.read(page * PAGE as u64, &mut data).expect("it is read");
                let value = u64::from_le_bytes(data[..8].try_into().expect("eight"));
                assert!(data.chunks(8).all(|word| word == value.to_le_bytes()), "page {page} is torn: {value}");
                (Action::Read, value)
            };
            let responded = Some(self.now());
            let operation = Operation { id, register: (0, page), action, value, invoked, responded };
            self.history.lock().expect("nobody panics with it").record(operation);
        }
    }

    fn operations(&self) -> u64 {
        self.history.lock().expect("nobody panics with it").operations()
    }
}

fn clients(volume: &Volume) -> Clients<'_> {
    Clients { volume, start: Instant::now(), next: AtomicU64::new(0), history: Mutex::default() }
}

#[test]
fn hosts_read_and_write_through_the_kernel_and_see_a_linear_history() {
    let net = match Net::make(true) {
        Err(missing) => return println!("SKIPPED: {missing}"),
        Ok(net) => net,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut live = Live::up(&net, folder.path());
    let volume = live.volume();
    let clients = clients(&volume);
    let is_redirected = Mutex::new(false);
    std::thread::scope(|scope| {
        let (clients, is_redirected) = (&clients, &is_redirected);
        let is_enough = |turn| turn > 300 && *is_redirected.lock().expect("nobody panics with it");
        for client in 0..CLIENTS {
            scope.spawn(move || clients.run(client, is_enough));
        }
        // A switch that was away has empty tables, and the kernel too.
        wait_until("hosts work", || clients.operations() > 200);
        live.stop(SWITCH);
        live.start(SWITCH);
        wait_until("reads are redirected in the kernel", || live.count("xdp_redirected") > 0);
        *is_redirected.lock().expect("nobody panics with it") = true;
    });
    let (done, before) = (clients.operations(), live.count("xdp_forwarded"));
    // With the tables filled: a read is two packets in the kernel, and none at the role.
    clients.run(7, |turn| turn == 200);
    let forwarded = live.count("xdp_forwarded") - before;
    println!("{done} operations; then 200 in {forwarded} packets that the kernel forwarded");
    assert!(forwarded >= 400, "200 operations are 400 packets at least: {forwarded}");
    assert_eq!(live.count("xdp_unsound"), 0);
    // One of 65,536 sound packets looks as if its checksum were left to a card, and some 4,000
    // packets come here.
    let unsummed = live.count("xdp_unsummed");
    assert!(unsummed <= 8, "checksums are computed here: {unsummed}");
    let history = clients.history.into_inner().expect("nobody panicked with it");
    history.check().unwrap_or_else(|violation| panic!("{violation}"));
}

#[test]
fn packets_whose_checksum_is_left_to_a_card_go_through_the_role() {
    let net = match Net::make(false) {
        Err(missing) => return println!("SKIPPED: {missing}"),
        Ok(net) => net,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let live = Live::up(&net, folder.path());
    let volume = live.volume();
    let clients = clients(&volume);
    clients.run(1, |turn| turn == 100);
    assert!(live.count("xdp_unsummed") > 100, "{}", live.count("xdp_unsummed"));
}

#[test]
fn a_data_path_that_cannot_be_is_refused_with_its_reason() {
    let net = match Net::make(true) {
        Err(missing) => return println!("SKIPPED: {missing}"),
        Ok(net) => net,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let good = net.rack(folder.path());
    let other = folder.path().join("other.o");
    std::fs::write(&other, "no object").expect("a disk");
    let refused = |xdp: Xdp| {
        let mut rack = good.clone();
        rack.switch.xdp = Some(xdp);
        switch::start(&rack, Start::Thread).err().map(|error| error.to_string()).unwrap_or_default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            net.enter(SWITCH);
            let xdp = good.switch.xdp.clone().expect("it is wanted");
            let says = |xdp: Xdp, words: &[&str]| {
                let error = refused(xdp);
                words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
            };
            says(Xdp { interface: "eth7".into(), ..xdp.clone() }, &["eth7", "there are", "eth0"]);
            says(Xdp { interface: "lo".into(), ..xdp.clone() }, &["lo", "127.0.0.1", &net.front]);
            says(Xdp { object: folder.path().join("none.o"), ..xdp.clone() }, &["none.o", "make xdp"]);
            says(Xdp { object: other.clone(), ..xdp.clone() }, &["cannot be loaded"]);
            // With jumbo frames it takes only a program that takes them in pieces.
            let native = Xdp { mode: XdpModeName::Native, ..xdp.clone() };
            assert_eq!(refused(native), "", "the driver takes it");
            let _first = switch::start(&good, Start::Thread).expect("it starts");
            says(xdp, &["eth0"]);
        });
    });
}
