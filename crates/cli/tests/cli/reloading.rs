//! SIGHUP: what is served becomes what the file says, all of it or nothing.

use crate::support::target::Target;
use crate::support::{Home, free};
use live::{Extent, Host, HostError, Proof, RemoteDisk};
use nvme::feature::Event;
use nvme::initiator::{HostEvent, InitiatorConfig, Payload};
use nvme::{Body, DatasetManagement, DatasetUse, HostId, Io, Nqn};
use runtime::room::hole_bytes;
use std::fs;
use std::time::Duration;

const A: &str = "nqn.2026-11.org.example:a";
const B: &str = "nqn.2026-11.org.example:b";
const ONE: &str = "nqn.2026-11.org.example:host1";
const TWO: &str = "nqn.2026-11.org.example:host2";

const PORT: &str = "[[port]]\naddress = '127.0.0.1:0'\n";

/// A target that serves what `text` says, at a free port.
fn serve(text: &str) -> (Home, Target) {
    let home = Home::new().with("target.toml", &(PORT.to_owned() + text));
    let target = Target::start(&home, "--config target.toml");
    (home, target)
}

/// Gives it another file; what it logs of it.
fn reload(home: &Home, target: &Target, text: &str) -> String {
    fs::write(home.path("target.toml"), text).expect("a disk");
    target.reload()
}

fn config(host: &str, subsystem: &str) -> InitiatorConfig {
    let host_id = HostId([host.len() as u8 ^ host.as_bytes()[host.len() - 1]; 16]);
    InitiatorConfig::new(Nqn::new(host).expect("a name"), host_id, Nqn::new(subsystem).expect("a name"))
}

fn connect(address: &str, host: &str, subsystem: &str) -> Result<RemoteDisk, HostError> {
    RemoteDisk::open(Host::connect(address, config(host, subsystem))?, 1)
}

fn reads(disk: &mut RemoteDisk) -> bool {
    disk.read(Extent { start: 0, blocks: 1 }).is_ok()
}

/// The next thing that a host is told.
fn notice(host: &mut Host) -> Event {
    loop {
        match host.next_event_within(Duration::from_secs(60)).expect("it goes on") {
            Some(HostEvent::Notice(event)) => return event,
            Some(_) => {}
            None => panic!("nothing is told"),
        }
    }
}

/// Names that the discovery log has for a host, each with its TCP port.
fn told(address: &str, host: &str) -> Vec<(String, String)> {
    let entries = live::discover(address, config(host, A), &Proof::default()).expect("it answers");
    let storage = entries.into_iter().filter(|entry| entry.subsystem != Nqn::discovery());
    storage.map(|entry| (entry.subsystem.as_str().to_owned(), entry.service.as_str().to_owned())).collect()
}

/// Sizes of the namespaces of a subsystem, in MiB, by their numbers.
fn sizes(home: &Home, address: &str, subsystem: &str) -> Vec<(u64, u64)> {
    let text = home.run(&format!("disk {address} --nqn {subsystem} identify --json"));
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{text}"));
    let disks = json["namespaces"].as_array().expect("a list");
    disks.iter().map(|disk| (number(&disk["id"]), number(&disk["bytes"]) >> 20)).collect()
}

/// The host needs the first MiB no more.
fn trim(disk: &mut RemoteDisk) {
    let mut range = vec![0; 16];
    range[4..8].copy_from_slice(&2048u32.to_le_bytes());
    let manage = DatasetManagement { ranges_minus_one: 0, intent: DatasetUse::DEALLOCATE };
    let body = Body::Io(Io::DatasetManagement(manage));
    let answer = disk.host().call(1, 1, body, Payload::ToController(range)).expect("it answers");
    assert!(answer.status.is_success());
}

fn subsystem(name: &str, keys: &str) -> String {
    format!("[[subsystem]]\nnqn = '{name}'\n{keys}\n")
}

#[test]
fn a_subsystem_that_is_taken_out_is_served_no_more_and_put_back_admits_its_new_hosts_alone() {
    let disk = "namespace = [{ size = '1MiB' }]";
    let both = PORT.to_owned() + &subsystem(A, disk) + &subsystem(B, disk);
    let (home, target) = serve(&(subsystem(A, disk) + &subsystem(B, disk)));
    let mut of_a = connect(&target.address, ONE, A).expect("it is let in");
    let mut of_b = connect(&target.address, ONE, B).expect("it is let in");

    let said = reload(&home, &target, &(PORT.to_owned() + &subsystem(B, disk)));
    assert!(said.contains(&format!("subsystem {A} removed")) && said.contains("changes=1"), "{said}");
    assert!(!reads(&mut of_a) && reads(&mut of_b));
    assert!(connect(&target.address, ONE, A).is_err());
    assert_eq!(told(&target.address, ONE).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), [B]);

    let listed = format!("hosts = ['{TWO}']\n{disk}");
    let said = reload(&home, &target, &(PORT.to_owned() + &subsystem(A, &listed) + &subsystem(B, disk)));
    assert!(said.contains(&format!("subsystem {A} added")), "{said}");
    assert!(connect(&target.address, ONE, A).is_err(), "the list of before holds no more");
    assert!(connect(&target.address, TWO, A).is_ok() && reads(&mut of_b));

    let said = reload(&home, &target, &both);
    assert!(said.contains(&format!("hosts of {A} changed")), "{said}");
    assert!(connect(&target.address, ONE, A).is_ok());
    assert!(reload(&home, &target, &both).contains("changes=0"));
}

#[test]
fn ports_come_and_go_and_with_them_who_came_by_them() {
    let disk = subsystem(A, "namespace = [{ size = '1MiB' }]");
    let (home, target) = serve(&disk);
    let mut by_first = connect(&target.address, ONE, A).expect("it is let in");
    let [second] = free();
    let taken = std::net::TcpListener::bind(&second).expect("it is free");
    let service = second.rsplit_once(':').expect("a port").1.to_owned();
    let port = format!("[[port]]\naddress = '{second}'\n");

    // Taken by somebody else: nothing changes.
    let said = reload(&home, &target, &(PORT.to_owned() + &port + &disk));
    assert!(said.contains("nothing was changed") && said.contains("is in use"), "{said}");
    assert_eq!(told(&target.address, ONE).len(), 1);
    drop(taken);

    let said = reload(&home, &target, &(PORT.to_owned() + &port + &disk));
    assert!(said.contains(&format!("port 127.0.0.1:{service} added")), "{said}");
    let mut by_second = connect(&second, TWO, A).expect("it is let in there");
    assert_eq!(told(&second, ONE).len(), 2);
    assert!(reads(&mut by_first));

    let said = reload(&home, &target, &(port + &disk));
    assert!(said.contains(" removed") && said.contains(&format!("ports of {A} changed")), "{said}");
    assert!(!reads(&mut by_first) && reads(&mut by_second));
    assert!(std::net::TcpStream::connect(&target.address).is_err(), "nobody listens there");
    assert_eq!(told(&second, ONE), [(A.to_owned(), service)]);
}

#[test]
fn a_file_with_anything_that_cannot_be_changes_nothing_at_all() {
    let of = |first: &str, flash: &str, third: &str, file: &str, more: &str| {
        let namespaces = format!(
            "namespace = [{{ size = '{first}' }}, {{ backend = 'flash', size = '{flash}' }}, {{ size = '{third}' }}, \
             {{ backend = 'file', path = 'disk', size = '{file}' }}{more}]"
        );
        PORT.to_owned() + &subsystem(A, &namespaces)
    };
    let before = of("2MiB", "16MiB", "2MiB", "2MiB", "");
    let (home, target) = serve(before.strip_prefix(PORT).expect("it begins so"));
    let unchanged = |what: &str| {
        assert_eq!(sizes(&home, &target.address, A), [(1, 2), (2, 16), (3, 2), (4, 2)], "{what}");
        assert_eq!(fs::metadata(home.path("disk")).expect("it is there").len(), 2 << 20, "{what}");
        assert!(!home.path("new").exists() && !home.path("new.rackweave").exists(), "{what}");
    };
    let new = ", { backend = 'file', path = 'new', size = '1MiB' }";
    for (what, text) in [
        ("an emulated drive keeps its size", of("4MiB", "32MiB", "1MiB", "4MiB", new)),
        ("it is not there", of("4MiB", "16MiB", "1MiB", "4MiB", ", { backend = 'file', path = 'absent' }")),
        ("both serve it", of("4MiB", "16MiB", "1MiB", "4MiB", ", { backend = 'file', path = 'disk' }")),
        ("cannot have", of("4MiB", "16MiB", "1MiB", "8388608TiB", new)),
        ("cannot listen at", of("4MiB", "16MiB", "1MiB", "4MiB", new) + "[[port]]\naddress = '192.0.2.1:1'\n"),
        ("unknown key `siz`", of("4MiB", "16MiB", "1MiB", "4MiB", ", { siz = '1MiB' }")),
        (
            "No such file",
            of("4MiB", "16MiB", "1MiB", "4MiB", new)
                + &format!("hosts = ['{ONE}']\n[[host]]\nnqn = '{ONE}'\ndhchap_secret_file = 'none'\n"),
        ),
    ] {
        let said = reload(&home, &target, &text);
        assert!(said.contains("nothing was changed") && said.contains(what), "{what}: {said}");
        unchanged(what);
    }
    let said = reload(&home, &target, &of("4MiB", "16MiB", "1MiB", "4MiB", new));
    for (number, blocks) in [(1, 8192), (3, 2048), (4, 8192)] {
        assert!(said.contains(&format!("namespace {number} of {A} resized to {blocks} blocks")), "{said}");
    }
    assert_eq!(sizes(&home, &target.address, A), [(1, 4), (2, 16), (3, 1), (4, 4), (5, 1)]);
    assert!(home.path("new").exists() && home.path("new.rackweave").exists());
}

/// One memory is held from request to request; what lies in two pieces of it goes another way.
#[test]
fn a_ram_disk_that_has_grown_is_written_and_read_across_the_seam() {
    let of = |size: &str| subsystem(A, &format!("namespace = [{{ size = '{size}' }}]"));
    let (home, target) = serve(&of("64KiB"));
    reload(&home, &target, &(PORT.to_owned() + &of("128KiB")));
    let mut disk = connect(&target.address, ONE, A).expect("it is let in");
    let seam = (64 << 10) / 512;
    let bytes: Vec<u8> = (0..4096u32).map(|place| (place % 251) as u8).collect();
    for start in [seam - 8, seam - 4, seam, seam - 1] {
        let extent = Extent { start, blocks: 8 };
        disk.write(extent, bytes.clone(), false).expect("it is inside");
        assert_eq!(disk.read(extent).expect("it is inside"), bytes, "{start}");
    }
    assert!(disk.read(Extent { start: 2 * seam - 4, blocks: 8 }).is_err(), "beyond the end");
}

#[test]
fn hosts_that_stay_are_told_of_namespaces_and_discovery() {
    let (home, target) = serve(&subsystem(A, "namespace = [{ size = '1MiB' }]"));
    let mut host = Host::connect(&target.address, config(ONE, A)).expect("it is let in");
    let finder = InitiatorConfig { io_queues: 0, ..config(TWO, Nqn::discovery().as_str()) };
    let mut finder = Host::connect(&target.address, finder).expect("it is let in");
    let both = subsystem(A, "namespace = [{ size = '1MiB' }, { size = '1MiB' }]") + &subsystem(B, "");
    reload(&home, &target, &(PORT.to_owned() + &both));
    assert_eq!(notice(&mut host), Event::NAMESPACE_CHANGED);
    assert_eq!(notice(&mut finder), Event::DISCOVERY_CHANGED);
}

#[test]
fn what_of_a_namespace_changes_under_its_number_is_served_as_the_file_says() {
    let keys = |block: &str, more: &str| {
        subsystem(
            A,
            &format!("namespace = [{{ backend = 'file', path = 'disk', size = '1MiB', block = '{block}'{more} }}]"),
        )
    };
    let (home, target) = serve(&keys("512B", ""));
    let write = |address: &str| home.say(&format!("disk {address} write --from target.toml")).code;
    assert_eq!(write(&target.address), Some(0));
    let said = reload(&home, &target, &(PORT.to_owned() + &keys("4KiB", "")));
    assert!(said.contains(&format!("namespace 1 of {A} replaced")), "{said}");
    assert_eq!(write(&target.address), Some(0));
    let said = reload(&home, &target, &(PORT.to_owned() + &keys("4KiB", ", read_only = true")));
    assert!(said.contains(&format!("namespace 1 of {A}")), "{said}");
    assert_ne!(write(&target.address), Some(0), "nobody writes it now");
    let other = keys("4KiB", "").replace("'disk'", "'other'");
    assert!(reload(&home, &target, &(PORT.to_owned() + &other)).contains("replaced"));
    assert_eq!(write(&target.address), Some(0));
    // The first file is free again, soon: what was underway ends first.
    let is_free = || home.run("target --check --listen 127.0.0.1:0 --path disk") == "it can be served\n";
    assert!((0..1_000).any(|_| is_free() || {
        std::thread::sleep(Duration::from_millis(20));
        false
    }));
    let said = reload(&home, &target, &(PORT.to_owned() + &other + "[limits]\ncontrollers = 9\n"));
    assert!(said.contains("changes=0"), "{said}");
    target.logs("need a restart keys=\"limits\"");
}

#[test]
fn a_file_whose_room_is_reserved_has_it_from_the_start_or_from_a_reload_on_and_keeps_it() {
    let of = |size: &str, more: &str| {
        subsystem(A, &format!("namespace = [{{ backend = 'file', path = 'disk', size = '{size}'{more} }}]"))
    };
    let reserved = ", reserve = true";
    let (home, target) = serve(&of("1MiB", ""));
    let holes = |bytes: u64| hole_bytes(bytes, &fs::metadata(home.path("disk")).expect("it is there"));
    let mut disk = connect(&target.address, ONE, A).expect("it is let in");
    let (all, whole) = (Extent { start: 0, blocks: 2048 }, 1 << 20);
    disk.write(all, vec![1; whole as usize], true).expect("it is inside");
    trim(&mut disk);
    assert!(holes(whole) > 0, "what nobody needs is given back");
    fs::write(home.path("check.toml"), PORT.to_owned() + &of("1MiB", reserved)).expect("a disk");
    assert_eq!(home.say("target --check --config check.toml").code, Some(0));
    assert!(holes(whole) > 0, "a check changes nothing");
    let said = reload(&home, &target, &(PORT.to_owned() + &of("1MiB", reserved)));
    assert!(!said.contains("nothing was changed") && !said.contains("replaced") && holes(whole) == 0, "{said}");
    trim(&mut disk);
    assert_eq!(holes(whole), 0);
    reload(&home, &target, &(PORT.to_owned() + &of("2MiB", reserved)));
    assert_eq!((sizes(&home, &target.address, A), holes(2 * whole)), (vec![(1, 2)], 0));
    let said = reload(&home, &target, &(PORT.to_owned() + &of("8TiB", reserved)));
    assert!(said.contains("nothing was changed") && said.contains("are to be reserved"), "{said}");
    assert_eq!(fs::metadata(home.path("disk")).expect("it is there").len(), 2 * whole);
    let fails = |more: &str| {
        let absent = format!("{more} }}, {{ backend = 'file', path = 'absent'");
        let said = reload(&home, &target, &(PORT.to_owned() + &of("2MiB", &absent)));
        assert!(said.contains("nothing was changed") && said.contains("it is not there"), "{said}");
    };
    fails("");
    trim(&mut disk);
    assert_eq!(holes(2 * whole), 0, "nothing was changed");
    reload(&home, &target, &(PORT.to_owned() + &of("2MiB", "")));
    fails(reserved);
    trim(&mut disk);
    assert!(holes(2 * whole) > 0);
    let other = of("1MiB", reserved).replace("'disk'", "'other'");
    reload(&home, &target, &(PORT.to_owned() + &other));
    assert_eq!(hole_bytes(whole, &fs::metadata(home.path("other")).expect("it was made")), 0);
}

#[cfg(feature = "tls")]
mod keys {
    use super::*;
    use nvme::tls::TlsKey;

    const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    const LONG: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

    /// A file with these hosts, each with its key.
    fn file(hosts: &[(&str, &str)]) -> String {
        let port = "[[port]]\naddress = '127.0.0.1:0'\ntls = 'required'\n";
        let host = |(host, key): &(&str, &str)| format!("[[host]]\nnqn = '{host}'\ntls_key = '{key}'\n");
        let hosts: String = hosts.iter().map(host).collect();
        port.to_owned()
            + &hosts
            + &subsystem(A, &format!("hosts = ['{ONE}', '{TWO}']\nnamespace = [{{ size = '1MiB' }}]"))
    }

    fn served(hosts: &[(&str, &str)]) -> (Home, Target) {
        let home = Home::new().with("target.toml", &file(hosts));
        let target = Target::start(&home, "--config target.toml");
        (home, target)
    }

    fn enter(address: &str, host: &str, key: &str) -> Result<RemoteDisk, HostError> {
        let proof = Proof { credentials: None, tls: Some(TlsKey::parse(key).expect("a key")) };
        RemoteDisk::open(Host::connect_with(address, config(host, A), &proof)?, 1)
    }

    #[test]
    fn a_host_without_its_key_is_out_at_once() {
        let (home, target) = served(&[(ONE, KEY), (TWO, KEY)]);
        let enter = |host: &str| enter(&target.address, host, KEY);
        let (mut one, mut two) = (enter(ONE).expect("it has a key"), enter(TWO).expect("it has a key"));
        reload(&home, &target, &file(&[(TWO, KEY)]));
        assert!(!reads(&mut one) && reads(&mut two));
        assert!(enter(ONE).is_err() && enter(TWO).is_ok());
    }

    #[test]
    fn a_host_with_another_key_has_to_come_again_with_that() {
        let (home, target) = served(&[(ONE, KEY), (TWO, LONG)]);
        let enter = |host: &str, key: &str| enter(&target.address, host, key);
        let (mut one, mut two) = (enter(ONE, KEY).expect("its key"), enter(TWO, LONG).expect("its key"));
        let said = reload(&home, &target, &file(&[(ONE, LONG), (TWO, LONG)]));
        assert!(said.contains(&format!("TLS key of {ONE} changed")) && said.contains("changes=1"), "{said}");
        assert!(!reads(&mut one) && reads(&mut two), "{}", target.log());
        target.logs(&format!("of host {ONE} is gone: its secret or key is another now"));
        assert!(enter(ONE, KEY).is_err() && enter(ONE, LONG).is_ok());
    }
}
