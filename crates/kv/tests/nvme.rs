//! Flash that doors read by NVMe/TCP: no code of the store is on the path, what is out of date is
//! read again, and a target that is away, wrong or closed to the door is told.

mod common;

use base::Span;
use common::away::{RunningJbof, Way, door, has_fabric, role_config};
use common::target::{DOOR, Relay, RunningTarget, SUBSYSTEM, announced, target_file};
use common::{Client, Running, bulk, jbof, ok};
use kv::{Config, FlashPeer, JbofConfig, JbofPlace, Store};
use live::{Extent, Host, HostError, RemoteDisk, host_id_of};
use nvme::Nqn;
use nvme::initiator::InitiatorConfig;
use std::time::{Duration, Instant};

const SECRET: Option<&str> = Some("a secret that nobody else knows");
const LONG: usize = 20_000;

/// A door with another way to the flash.
fn with_flash(config: Config, change: impl FnOnce(&mut FlashPeer)) -> Config {
    let JbofPlace::Away(mut peer) = config.jbof else { panic!("it is away") };
    change(peer.flash.as_mut().expect("it has a target"));
    Config { jbof: JbofPlace::Away(peer), ..config }
}

fn value(number: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(number | 1)).collect()
}

#[test]
fn no_code_of_the_store_is_on_the_path_of_a_read_of_flash() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), SECRET));
    let mut config = door(folder.path(), Way::Nvme, role.address, SECRET);
    let is_far = has_fabric();
    if let (JbofPlace::Away(peer), true) = (&mut config.jbof, is_far) {
        peer.fabric = Some("tcp".into());
    }
    let store = Running::start(config);
    let mut client = store.client();
    let length = |number: u8| [10, 100, 4096, LONG][usize::from(number % 4)];
    for number in 0..40 {
        assert_eq!(client.ask(&[b"SET", format!("k{number}").as_bytes(), &value(number, length(number))]), ok());
    }
    for number in 0..40 {
        assert_eq!(client.ask(&[b"GET", format!("k{number}").as_bytes()]), bulk(value(number, length(number))));
    }
    assert_eq!(client.number("flash_returned"), 0);
    assert!(client.number("flash_reads") >= 80, "a segment and a record each");
    drop(store);
    let [verbs, reads, requests] = role.end();
    assert_eq!((reads, requests), (0, 40), "it was asked for updates alone");
    assert_eq!(verbs == 0, is_far, "{verbs} verbs");
}

/// Another reader finds the same bytes: the file itself, and a host that knows nothing of a store.
#[test]
fn the_namespace_is_the_file_and_takes_no_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let store = Running::start(door(folder.path(), Way::Nvme, role.address, None));
    let record = value(7, 20_000);
    assert_eq!(store.client().ask(&[b"SET", b"a", &record]), ok());
    let [host, subsystem] = [DOOR, SUBSYSTEM].map(|name| Nqn::new(name).expect("a name"));
    let address = announced(folder.path()).expect("there is a target").to_string();
    let host = Host::connect(&address, InitiatorConfig::new(host, host_id_of(&host), subsystem)).expect("it is let in");
    let mut disk = RemoteDisk::open(host, 1).expect("it is there");
    let file = || std::fs::read(folder.path().join("flash")).expect("it is there");
    let before = file();
    assert_eq!((disk.block_bytes(), disk.blocks()), (4096, before.len() as u64 / 4096));
    let most = disk.transfer_blocks_max();
    let mut found = Vec::new();
    for start in (0..disk.blocks()).step_by(most as usize) {
        let blocks = (disk.blocks() - start).min(most.into()) as u32;
        found.extend(disk.read(Extent { start, blocks }).expect("it is inside"));
    }
    assert!(found == before, "the namespace is not the file");
    assert!(found.windows(record.len()).any(|bytes| bytes == record), "the record is not there");
    for durable in [false, true] {
        let refused = disk.write(Extent { start: 2, blocks: 1 }, vec![9; 4096], durable);
        let Err(HostError::Command { status, .. }) = refused else { panic!("{refused:?}") };
        assert!(status.to_string().to_lowercase().contains("write protected"), "{status}");
    }
    assert!(file() == before, "a write has changed the file");
}

/// Overwrites `a`, and others, until so many zones were won back.
fn recycle(client: &mut Client, zones: u64) {
    let until = Instant::now() + Duration::from_secs(60);
    let from = client.number("zones_reclaimed");
    while client.number("zones_reclaimed") < from + zones {
        assert!(Instant::now() < until, "nothing is won back");
        assert_eq!(client.ask(&[b"SET", b"a", &value(2, 10_000)]), ok());
        for number in 0..30u8 {
            assert_eq!(client.ask(&[b"SET", &[b'w', number % 5], &value(number, 100)]), ok());
        }
    }
}

/// A read that is on its way while its place is used again brings foreign bytes, or damaged ones.
/// The door sees it and begins anew: at first for the segment, then for the record.
#[test]
fn a_zone_that_is_used_again_between_lookup_and_read_is_noticed() {
    for reads_before in [0, 1] {
        let folder = tempfile::tempdir().expect("a folder");
        // Each update writes a segment anew, and small zones are soon full.
        let inside = JbofConfig { blocks: 2, zone_sectors: 256, value_bytes_max: 12 << 10, ..jbof(folder.path()) };
        let role = RunningJbof::start(role_config(folder.path(), inside, None));
        let relay = Relay::start(folder.path(), announced(folder.path()).expect("there is a target"));
        let slow = |flash: &mut FlashPeer| flash.timeout = Span::secs(60);
        let store = Running::start(with_flash(door(folder.path(), Way::Nvme, role.address, None), slow));
        let other = Running::start(door(folder.path(), Way::Tcp, role.address, None));
        let (mut client, mut others) = (store.client(), other.client());
        // The first zone has the mark of the start, and is not used again.
        recycle(&mut others, 12);
        // Segments may be used again by records, whose bytes are no segment at all.
        for round in 0.. {
            assert_eq!(others.ask(&[b"SET", b"a", &value(4, 10_000)]), ok());
            relay.let_pass(Some(reads_before));
            client.send(&[b"GET", b"a"]);
            relay.wait_for_one();
            recycle(&mut others, 8 + round % 5);
            relay.let_pass(None);
            assert!(client.reply() == Some(bulk(value(2, 10_000))), "{reads_before} reads before: another value");
            let [foreign, corrupt] = ["foreign", "corrupt"].map(|name| client.number(name));
            assert!(foreign + corrupt > round, "{reads_before} reads before: nothing was out of date");
            if foreign >= 2 {
                eprintln!("{reads_before} reads before: {foreign} foreign, {corrupt} corrupt");
                break;
            }
            assert!(round < 20, "{reads_before} reads before: none was foreign");
        }
        assert_eq!(client.number("flash_returned"), 0);
    }
}

/// More reads than the queue of the target has entries: some are on their way, and some wait.
#[test]
fn reads_that_are_under_way_when_the_target_is_lost_are_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let relay = Relay::start(folder.path(), announced(folder.path()).expect("there is a target"));
    let slow = |flash: &mut FlashPeer| flash.timeout = Span::secs(60);
    let store = Running::start(with_flash(door(folder.path(), Way::Nvme, role.address, None), slow));
    let mut clients = [store.client(), store.client()];
    let name = |number: u8| format!("key {number}").into_bytes();
    for number in 0..200 {
        assert_eq!(clients[0].ask(&[b"SET", &name(number), &value(number, 300)]), ok());
    }
    relay.let_pass(Some(0));
    for client in &mut clients {
        (0..200).for_each(|number| client.send(&[b"GET", &name(number)]));
    }
    relay.wait_for_one();
    // All of them have begun.
    std::thread::sleep(Duration::from_millis(300));
    relay.cut();
    for client in &mut clients {
        for number in 0..200 {
            assert_eq!(client.reply(), Some(bulk(value(number, 300))), "{number}");
        }
    }
    let returned = clients[0].number("flash_returned");
    assert!(returned > 128, "{returned} reads were given to the JBOF");
    relay.let_pass(None);
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn without_its_target_a_door_asks_the_jbof_and_finds_the_target_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let store = Running::start(door(folder.path(), Way::Nvme, role.address, None));
    let mut client = store.client();
    assert_eq!(client.ask(&[b"SET", b"a", &value(1, LONG)]), ok());
    assert_eq!(client.ask(&[b"GET", b"a"]), bulk(value(1, LONG)));
    assert_eq!((client.number("flash_away"), client.number("flash_returned")), (0, 0));
    role.without_target();
    for _ in 0..3 {
        assert_eq!(client.ask(&[b"GET", b"a"]), bulk(value(1, LONG)));
    }
    wait_until("nobody misses the target", || client.number("flash_away") == 1);
    assert!(client.number("flash_returned") > 0);
    role.with_target(&folder.path().join("flash"));
    wait_until("the target is not found", || client.number("flash_away") == 0);
    let before = client.number("flash_reads");
    assert_eq!(client.ask(&[b"GET", b"a"]), bulk(value(1, LONG)));
    assert!(client.number("flash_reads") > before);
    assert_eq!(client.number("jbof_there"), 1);
}

/// Why stores with these configurations do not start.
fn refused(configs: Vec<Config>) -> Vec<String> {
    let start = |config| match Store::start(config, false) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = configs.into_iter().map(|config| scope.spawn(move || start(config))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

#[test]
fn a_target_with_another_flash_or_none_is_refused_with_the_reason() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [folder, other] = [folders[0].path(), folders[1].path()];
    let role = RunningJbof::start(role_config(folder, jbof(folder), None));
    let _another = RunningJbof::start(role_config(other, jbof(other), None));
    let [blank, short] = ["blank", "short"].map(|name| other.join(name));
    std::fs::write(&blank, vec![0; 1 << 20]).expect("there is room");
    std::fs::copy(folder.join("flash"), &short).expect("there is room");
    std::fs::File::options().write(true).open(&short).and_then(|file| file.set_len(1 << 20)).expect("it is cut");
    let targets = [blank, short].map(|path| RunningTarget::of(&target_file(&path, "127.0.0.1:0", "")));
    let elsewhere = announced(other).expect("there is a target");
    let at = |address| move |flash: &mut FlashPeer| flash.address = format!("{address}");
    let here = || door(folder, Way::Nvme, role.address, None);
    let told = refused(vec![
        with_flash(here(), at(elsewhere)),
        with_flash(here(), at(targets[0].address)),
        with_flash(here(), at(targets[1].address)),
        with_flash(here(), |flash| flash.namespace = 2),
        with_flash(here(), |flash| flash.subsystem = Nqn::new("nqn.2026-11.io.rackweave:none").expect("a name")),
    ]);
    let reasons = [
        "the flash of another store",
        "no store's flash",
        "256 blocks of 4096 B, and the store 4097",
        "the namespace cannot be read",
        "connect",
    ];
    for (told, reason) in told.iter().zip(reasons) {
        assert!(told.contains(reason) && told.contains("its flash, by the target at"), "{reason}: {told}");
    }
}

/// Secrets and keys as `nvme gen-dhchap-key` and `nvme gen-tls-key` print them.
#[cfg(feature = "tls")]
const SECRETS: [&str; 3] = [
    "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "DHHC-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
    "DHHC-1:00:AgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICGrMmyA:",
];
#[cfg(feature = "tls")]
const KEYS: [&str; 2] = [
    "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:",
    "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
];

#[cfg(feature = "tls")]
#[test]
fn door_and_target_prove_themselves_over_tls() {
    use nvme::auth::Secret;
    use nvme::tls::TlsKey;
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), SECRET));
    let file = target_file(&folder.path().join("flash"), "127.0.0.1:0", ", tls = 'required'");
    let [door_secret, target_secret, another] = SECRETS;
    let keys = format!(
        "host = [{{ nqn = '{DOOR}', dhchap_secret = '{door_secret}', dhchap_controller_secret = '{target_secret}', \
         tls_key = '{}' }}]\n",
        KEYS[0]
    );
    let target =
        RunningTarget::of(&(keys + &file.replace("[[subsystem]]", &format!("[[subsystem]]\nhosts = ['{DOOR}']"))));
    let secret = |text| Some(Secret::parse(text).expect("a secret"));
    let key = |text| Some(TlsKey::parse(text).expect("a key"));
    let proved = |change: &dyn Fn(&mut FlashPeer)| {
        with_flash(door(folder.path(), Way::Nvme, role.address, SECRET), |flash| {
            flash.address = target.address.to_string();
            (flash.dhchap, flash.controller, flash.tls) = (secret(door_secret), secret(target_secret), key(KEYS[0]));
            change(flash);
        })
    };
    let store = Running::start(proved(&|_| {}));
    let mut client = store.client();
    assert_eq!(client.ask(&[b"SET", b"a", &value(1, LONG)]), ok());
    assert_eq!(client.ask(&[b"GET", b"a"]), bulk(value(1, LONG)));
    assert!(client.number("flash_reads") >= 2 && client.number("flash_returned") == 0);
    let told = refused(vec![
        proved(&|flash| flash.tls = None),
        proved(&|flash| flash.tls = key(KEYS[1])),
        proved(&|flash| flash.dhchap = secret(another)),
        proved(&|flash| flash.dhchap = None),
        proved(&|flash| flash.controller = secret(another)),
        proved(&|flash| flash.host = Nqn::new("nqn.2026-11.io.rackweave:stranger").expect("a name")),
    ]);
    let reasons = ["", "TLS", "authentication failed", "authenticat", "authentication failed", "TLS"];
    for (told, reason) in told.iter().zip(reasons) {
        assert!(told.contains("its flash, by the target at") && told.contains(reason), "{reason}: {told}");
    }
}
