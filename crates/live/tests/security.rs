//! Who may come in: hosts that prove themselves by secrets, and by keys of TLS; everyone else is
//! refused with a line that says why.

mod support;

use live::{Extent, Host, HostError, Proof, RemoteDisk, RunError, Server, ServerOptions, StartError, Stopper};
use nvme::auth::{GroupId, HashId, Secret};
use nvme::initiator::{Credentials, InitiatorConfig};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use support::*;

const HOST: &str = "nqn.2026-11.io.rackweave:one";
const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const OTHER: &str = "DHHC-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:";

fn credentials(host: &str, controller: Option<&str>) -> Credentials {
    Credentials {
        host: Secret::parse(host).expect("a secret"),
        controller: controller.map(|text| Secret::parse(text).expect("a secret")),
        entropy: live::entropy().expect("the system has some"),
        hashes: HashId::ALL.to_vec(),
        groups: GroupId::ALL.to_vec(),
    }
}

fn by_secret(host: &str, controller: Option<&str>) -> Proof {
    Proof { credentials: Some(credentials(host, controller)), tls: None }
}

fn enter(target: &Running, config: InitiatorConfig, proof: &Proof) -> Result<RemoteDisk, HostError> {
    RemoteDisk::open(Host::connect_with(&target.address, config, proof)?, 1)
}

/// Why a host does not get in.
fn refusal(target: &Running, proof: &Proof) -> String {
    enter(target, config("one"), proof).err().expect("it may not").to_string()
}

fn uses(mut disk: RemoteDisk) {
    let (extent, data) = (Extent { start: 3, blocks: 600 }, pattern(3, 1, 600 * 512));
    disk.write(extent, data.clone(), true).expect("it is taken");
    assert!(disk.read(extent).expect("it is there") == data);
    disk.disconnect().expect("it ends in order");
}

fn with_host(keys: &str) -> String {
    format!("[[host]]\nnqn = '{HOST}'\n{keys}\n[[subsystem]]\nhosts = ['{HOST}']\nnamespace = [{{ size = '4MiB' }}]\n")
}

fn start_error(text: &str) -> String {
    match Server::start(&plan(text), ServerOptions::default()) {
        Err(error @ (StartError::File { .. } | StartError::Plan(_))) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it starts"),
    }
}

#[test]
fn a_host_with_a_secret_is_let_in_by_it_alone() {
    let target = Running::start(&with_host(&format!("dhchap_secret = '{SECRET}'")));
    uses(enter(&target, config("one"), &by_secret(SECRET, None)).expect("it has the secret"));
    let refused = refusal(&target, &by_secret(OTHER, None));
    assert!(refused.contains("authentication failed: the response is wrong"), "{refused}");
    let refused = refusal(&target, &Proof::default());
    assert!(refused.contains("the target asks for a secret"), "{refused}");
    let refused = refusal(&target, &by_secret(SECRET, Some(SECRET)));
    assert!(refused.contains("authentication failed"), "the target has no secret of its own: {refused}");
    target.stop();
}

#[test]
fn both_sides_prove_themselves_over_an_exchange_of_diffie_and_hellman() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("it is written");
    let keys = format!("dhchap_secret_file = '{}'\ndhchap_controller_secret = '{OTHER}'", file.display());
    let text = with_host(&keys) + "[dhchap]\nhashes = ['sha384']\ngroups = ['ffdhe3072']\n";
    let target = Running::start(&text);
    uses(enter(&target, config("one"), &by_secret(SECRET, Some(OTHER))).expect("both are who they say"));
    let refused = refusal(&target, &by_secret(SECRET, Some(SECRET)));
    assert!(refused.contains("the target has not the secret"), "{refused}");
    target.stop();
}

#[test]
fn a_file_without_a_secret_is_told_with_its_path_and_not_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    let text = with_host(&format!("dhchap_secret_file = '{}'", file.display()));
    assert!(start_error(&text).contains("secret: dhchap_secret of host nqn.2026-11.io.rackweave:one: No such file"));
    std::fs::write(&file, "hunter2\n").expect("it is written");
    let told = start_error(&text);
    assert!(told.contains("a secret has the form DHHC-1") && !told.contains("hunter2"), "{told}");
    std::fs::write(&file, SECRET.replace("AAEC", "AAED")).expect("it is written");
    assert!(start_error(&text).contains("the checksum of the secret is wrong"));
    assert!(live::secret_in(Path::new("/dev/null"), Secret::parse).is_err());
}

/// A target that reads its plan anew at SIGHUP: the only one of this process.
fn reloadable(text: &Arc<Mutex<String>>) -> (String, Stopper, JoinHandle<Result<(), RunError>>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let text = text.clone();
    let thread = std::thread::spawn(move || {
        let first = plan(&text.lock().expect("nobody panics"));
        let reload: live::Reload = Box::new(move || Ok(plan(&text.lock().expect("nobody panics"))));
        let options = ServerOptions { signals: true, reload: Some(reload), ..ServerOptions::default() };
        let mut server = Server::start(&first, options).expect("it starts");
        sender.send((server.addresses()[0].to_string(), server.stopper())).expect("somebody waits");
        server.run()
    });
    let (address, stopper) = receiver.recv().expect("it starts");
    (address, stopper, thread)
}

fn hang_up() {
    let sent = std::process::Command::new("kill").args(["-HUP", &std::process::id().to_string()]).status();
    assert!(sent.expect("there is such a program").success());
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} never came");
}

#[test]
fn a_reload_changes_secrets_for_who_comes_and_ends_who_is_no_longer_allowed() {
    let text = Arc::new(Mutex::new(with_host(&format!("dhchap_secret = '{SECRET}'"))));
    let (address, stopper, thread) = reloadable(&text);
    let enter = |secret: &str| Host::connect_with(&address, config("one"), &by_secret(secret, None));
    let mut disk = RemoteDisk::open(enter(SECRET).expect("it has the secret"), 1).expect("it is there");
    assert!(enter(OTHER).is_err());

    *text.lock().expect("nobody panics") = with_host(&format!("dhchap_secret = '{OTHER}'"));
    hang_up();
    until("the other secret", || enter(OTHER).is_ok());
    assert!(enter(SECRET).is_err());
    until("the end of who came in by the old one", || disk.read(Extent { start: 0, blocks: 1 }).is_err());
    let mut disk = RemoteDisk::open(enter(OTHER).expect("it has the secret"), 1).expect("it is there");
    let larger = with_host(&format!("dhchap_secret = '{OTHER}'")).replace("4MiB", "8MiB");
    *text.lock().expect("nobody panics") = larger;
    hang_up();
    let blocks = || RemoteDisk::open(enter(OTHER).expect("it has the secret"), 1).expect("it is there").blocks();
    until("the larger disk", || blocks() == 16384);
    disk.read(Extent { start: 0, blocks: 1 }).expect("whose secret stays stays in");

    *text.lock().expect("nobody panics") =
        with_host(&format!("dhchap_secret = '{OTHER}'")).replace(HOST, "nqn.2026-11.io.rackweave:two");
    hang_up();
    until("the end of the host", || disk.read(Extent { start: 0, blocks: 1 }).is_err());
    assert!(enter(OTHER).is_err());
    stopper.stop();
    thread.join().expect("it does not panic").expect("it ends in order");
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use nvme::log::{SubsystemKind, TransportSecurity};
    use nvme::tls::{Derivation, IdentityVersion, TlsKey};
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::process::{Child, Command, Stdio};
    use std::sync::OnceLock;

    const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    /// A key of bytes 01h to 20h, its CRC-32 behind it.
    const WRONG: &str = "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:";
    /// Of 48 bytes, by libnvme's own test (test/psk.c).
    const LONG: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";
    /// A key of bytes 01h to 30h.
    const LONG_WRONG: &str =
        "NVMeTLSkey-1:02:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw==:";
    const NAMED: &str = "nqn.2026-11.io.rackweave:disk";
    const SUITE_256: &str = "TLS_AES_128_GCM_SHA256";
    const SUITE_384: &str = "TLS_AES_256_GCM_SHA384";

    fn log() -> &'static Log {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(Log::start)
    }

    /// Waits for the line that says this.
    fn is_logged(words: &str) {
        for _ in 0..3000 {
            if log().text().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{words} is not in\n{}", log().text());
    }

    fn secured(more: &str) -> Running {
        secured_by(KEY, more)
    }

    fn secured_by(key: &str, more: &str) -> Running {
        log();
        let port = "[[port]]\naddress = '127.0.0.1:0'\ntls = 'required'\n";
        Running::start(&(port.to_owned() + &with_host(&format!("tls_key = '{key}'\n{more}"))))
    }

    fn by_key(key: &str) -> Proof {
        Proof { credentials: None, tls: Some(TlsKey::parse(key).expect("a key")) }
    }

    /// What a peer gets that sends `bytes`, until the target closes.
    fn answer_to(target: &Running, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&target.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream.write_all(bytes).expect("it reads");
        let mut answer = Vec::new();
        // A reset says the same as an end.
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn a_host_with_the_key_reads_and_writes_and_one_with_another_does_not() {
        let target = secured("");
        uses(enter(&target, config("one"), &by_key(KEY)).expect("it has the key"));
        let refused = refusal(&target, &by_key(WRONG));
        assert!(refused.starts_with("the TLS handshake failed"), "{refused}");
        is_logged("TLS handshake failed");
        is_logged("unknown identity `NVMe1R01 nqn.2026-11.io.rackweave:one");
        is_logged("its digest is of another key");
        let strange = enter(&target, config("tls-stranger"), &by_key(KEY)).err().expect("nobody knows it").to_string();
        assert!(strange.starts_with("the TLS handshake failed"), "{strange}");
        is_logged("unknown identity `NVMe1R01 nqn.2026-11.io.rackweave:tls-stranger");
        is_logged("there is no `tls_key` of this host");
        target.stop();
    }

    #[test]
    fn a_key_of_48_bytes_is_as_good_as_one_of_32_and_each_is_refused_for_the_other() {
        let target = secured_by(LONG, "");
        uses(enter(&target, config("one"), &by_key(LONG)).expect("it has the key"));
        let (other, short) = (refusal(&target, &by_key(LONG_WRONG)), refusal(&target, &by_key(KEY)));
        assert!(other.starts_with("the TLS handshake failed") && short.starts_with("the TLS handshake failed"));
        is_logged("unknown identity `NVMe1R02 nqn.2026-11.io.rackweave:one");
        is_logged("it is of a key of another length");
        target.stop();
        let target = secured("");
        assert!(refusal(&target, &by_key(LONG)).starts_with("the TLS handshake failed"));
        target.stop();
    }

    #[test]
    fn secret_and_key_are_both_asked_for_where_both_are_there() {
        let target = secured(&format!("dhchap_secret = '{SECRET}'"));
        let both = Proof { tls: by_key(KEY).tls, ..by_secret(SECRET, None) };
        uses(enter(&target, config("one"), &both).expect("it has both"));
        assert!(refusal(&target, &by_key(KEY)).contains("the target asks for a secret"));
        target.stop();
    }

    #[test]
    fn discovery_goes_over_tls_and_tells_of_it() {
        let target = secured("");
        let entries = live::discover(&target.address, config("one"), &by_key(KEY)).expect("it has the key");
        let disk = entries.iter().find(|entry| entry.kind == SubsystemKind::Nvm).expect("it may use it");
        assert_eq!((disk.tcp_security(), disk.requirements & 3), (Some(TransportSecurity::Tls13), 1));
        target.stop();
    }

    #[test]
    fn a_host_without_tls_is_refused_by_a_port_that_wants_it_and_the_other_way_round() {
        let target = secured("");
        let request = [&[0u8, 0, 128, 0, 128, 0, 0, 0][..], &[0; 120]].concat();
        answer_to(&target, &request);
        is_logged("no pre-shared key was offered: wrong version number");
        let refused = refusal(&target, &Proof::default());
        assert!(refused.contains("the connection was lost") || refused.contains("broke the protocol"), "{refused}");
        target.stop();

        let plain = Running::start(&with_host(""));
        let refused = refusal(&plain, &by_key(KEY));
        assert!(refused.starts_with("the TLS handshake failed"), "{refused}");
        is_logged("connection ended (TLS at a port without?)");
        plain.stop();
    }

    #[test]
    fn a_handshake_that_stalls_ends_in_time_and_a_flood_of_them_leaves_hosts_alone() {
        log();
        let port = "[[port]]\naddress = '127.0.0.1:0'\ntls = 'required'\n";
        let limits = "[limits]\nconnections = 100\nhandshake = '4s'\n";
        let target = Running::start(&(port.to_owned() + &with_host(&format!("tls_key = '{KEY}'")) + limits));
        let mut disk = enter(&target, config("one"), &by_key(KEY)).expect("it has the key");
        // The beginning of a record of 256 bytes that never comes.
        let stalled: Vec<TcpStream> = (0..60)
            .map(|_| {
                let mut stream = TcpStream::connect(&target.address).expect("it listens");
                stream.write_all(&[0x16, 0x03, 0x01, 0x01, 0x00, 0x01]).expect("it reads");
                stream
            })
            .collect();
        let data = pattern(9, 1, 4096);
        disk.write(Extent { start: 0, blocks: 8 }, data.clone(), true).expect("it is taken meanwhile");
        for mut stream in stalled {
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest);
            assert!(
                !matches!(&ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
                "it was not closed"
            );
        }
        is_logged("no Connect came in time");
        assert!(disk.read(Extent { start: 0, blocks: 8 }).expect("it is there") == data);
        disk.disconnect().expect("it ends in order");
        target.stop();
    }

    /// The program `openssl` with these arguments; `None` where there is none.
    fn openssl(arguments: &[&str]) -> Option<Child> {
        let mut command = Command::new("openssl");
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().ok();
        if child.is_none() {
            println!("SKIPPED: there is no program openssl");
        }
        child
    }

    /// The first 128 bytes that it prints; none where it ends before.
    fn printed(child: &mut Child) -> Vec<u8> {
        let mut output = child.stdout.take().expect("it was asked for");
        let mut answer = vec![0; 128];
        let got = output.read_exact(&mut answer).map(|()| answer).unwrap_or_default();
        let _ = child.kill();
        let _ = child.wait();
        got
    }

    /// What `openssl s_client` with these arguments is answered to `input`.
    fn client(target: &Running, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        let mut child = openssl(&[&["s_client", "-quiet", "-connect", &target.address], arguments].concat())?;
        let mut pipe = child.stdin.take().expect("it was asked for");
        let _ = pipe.write_all(input);
        Some(printed(&mut child))
    }

    /// The first PDU of NVMe/TCP.
    fn request() -> Vec<u8> {
        [&[0u8, 0, 128, 0, 128, 0, 0, 0][..], &[0; 120]].concat()
    }

    /// A session of OpenSSL in a file: its `-psk` knows SHA-256 alone.
    fn session(folder: &Path, suite: &str, key: &str, more: &[u8]) -> String {
        let part = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
        let key: Vec<u8> =
            (0..key.len() / 2).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).expect("hex")).collect();
        let code = [0x13, if suite == SUITE_256 { 1 } else { 2 }];
        let parts = [part(2, &[1]), part(2, &[3, 4]), part(4, &code), part(4, &[]), part(4, &key), more.to_vec()];
        let der = part(0x30, &parts.concat());
        let file = folder.join(format!("{}-{}", suite, more.len()));
        let lines: Vec<String> = der.chunks(48).map(|line| STANDARD.encode(line)).collect();
        let name = "SSL SESSION PARAMETERS";
        std::fs::write(&file, format!("-----BEGIN {name}-----\n{}\n-----END {name}-----\n", lines.join("\n")))
            .expect("a folder");
        file.display().to_string()
    }

    /// What a host's TLS library is given by `key`.
    fn psk(key: &str, how: Derivation, version: IdentityVersion) -> (String, String) {
        let name = |text: &str| nvme::Nqn::new(text).expect("a name");
        let key = TlsKey::parse(key).expect("a key");
        let psk = key.pre_shared(how, version, name(HOST), name(NAMED)).expect("the names are short");
        (psk.identity, psk.key.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A program that is not ours secures a connection by the same key, and NVMe/TCP's first PDU is
    /// answered through it.
    #[test]
    fn another_implementation_of_tls_is_answered_if_it_has_the_key() {
        let target = secured("");
        for version in IdentityVersion::ALL {
            let (identity, hex) = psk(KEY, Derivation::Specification, *version);
            let wrong = hex.replace(&hex[..2], "00");
            let ask =
                |key: &str, more: &str| client(&target, &["-psk", key, "-psk_identity", &identity, more], &request());
            let Some(answer) = ask(&hex, "-tls1_3") else { return };
            assert_eq!(answer[..4], [1, 0, 128, 0], "{version:?}: an ICResp");
            assert_eq!(ask(&wrong, "-tls1_3"), Some(Vec::new()), "another key under the same name");
            is_logged("is another on the other side");
            assert_eq!(ask(&hex, "-tls1_2"), Some(Vec::new()), "an older version");
            is_logged("unsupported protocol");
        }
        target.stop();
    }

    /// libnvme 1.13 derives keys its own way. An identity with a digest of a bound key shows it;
    /// else `tls_derivation` says it.
    #[test]
    fn a_host_with_an_old_libnvme_is_let_in_by_its_identity_or_by_the_key_that_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for (key, suite) in [(KEY, SUITE_256), (LONG, SUITE_384)] {
            let told = secured_by(key, "tls_derivation = 'libnvme'");
            let untold = secured_by(key, "");
            for version in IdentityVersion::ALL {
                let (identity, hex) = psk(key, Derivation::Libnvme, *version);
                let session = session(folder.path(), suite, &hex, &[]);
                let arguments = ["-psk_session", &session, "-psk_identity", &identity, "-tls1_3"];
                let is_let_in = |target| client(target, &arguments, &request()).map(|answer| !answer.is_empty());
                let Some(is_in) = is_let_in(&told) else { return };
                assert!(is_in, "{suite} {version:?}");
                assert_eq!(is_let_in(&untold), Some(*version == IdentityVersion::Digest), "{suite} {version:?}");
            }
            for target in [told, untold] {
                target.stop();
            }
        }
        is_logged("or was derived otherwise (see `tls_derivation`)");
    }

    /// Whatever a client has besides, and in whatever order, the suite is the one of the key's
    /// hash.
    #[test]
    fn the_suite_goes_with_the_key_whichever_the_client_likes_best() {
        const CHACHA: &str = "TLS_CHACHA20_POLY1305_SHA256";
        let folder = tempfile::tempdir().expect("a folder");
        for (key, suite) in [(KEY, SUITE_256), (LONG, SUITE_384)] {
            let target = secured_by(key, "");
            let (identity, hex) = psk(key, Derivation::Specification, IdentityVersion::Digest);
            let session = session(folder.path(), suite, &hex, &[]);
            let both = format!("{SUITE_256}:{SUITE_384}");
            let back = format!("{SUITE_384}:{SUITE_256}");
            for offers in [SUITE_256, SUITE_384, &both, &back, CHACHA, &format!("{CHACHA}:{both}")] {
                let arguments =
                    ["-psk_session", &session, "-psk_identity", &identity, "-ciphersuites", offers, "-tls1_3"];
                let Some(answer) = client(&target, &arguments, &request()) else { return };
                assert_eq!(!answer.is_empty(), offers.contains(suite), "{suite} of {offers}");
            }
            is_logged(&format!("goes with {suite}, which the host does not offer"));
            target.stop();
        }
    }

    /// GnuTLS before 3.8.11 does so, and tlshd with it; `s_client -psk` does too.
    #[test]
    fn a_long_key_that_is_proved_by_the_short_hash_is_refused_with_the_cause() {
        let target = secured_by(LONG, "");
        let (identity, hex) = psk(LONG, Derivation::Specification, IdentityVersion::Names);
        let arguments = ["-psk", &hex, "-psk_identity", &identity, "-tls1_3"];
        let Some(answer) = client(&target, &arguments, &request()) else { return };
        assert!(answer.is_empty(), "{answer:?}");
        is_logged(
            "`NVMe0R02 nqn.2026-11.io.rackweave:one nqn.2026-11.io.rackweave:disk`: its key is proved by another hash",
        );
        target.stop();
    }

    /// A ticket of elsewhere is an identity too, and stands before the key's.
    #[test]
    fn a_key_is_found_behind_an_identity_that_nobody_knows() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = secured_by(LONG, "");
        let (identity, hex) = psk(LONG, Derivation::Specification, IdentityVersion::Digest);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later").as_secs();
        let now = [&[0xa1, 6, 2, 4][..], &(now as u32).to_be_bytes()].concat();
        let hour = [2, 2, 0x0e, 0x10];
        let ticket = [&now[..], &[0xa2, 4], &hour, &[0xa9, 4], &hour, &[0xaa, 4, 4, 2, 1, 2]].concat();
        let ticket = session(folder.path(), SUITE_256, &hex[..64], &ticket);
        let session = session(folder.path(), SUITE_384, &hex, &[]);
        let arguments = ["-sess_in", &ticket, "-psk_session", &session, "-psk_identity", &identity, "-tls1_3"];
        let Some(answer) = client(&target, &arguments, &request()) else { return };
        assert!(!answer.is_empty());
        target.stop();
    }

    /// What our host writes first arrives at a server that is not ours.
    #[test]
    fn our_host_is_understood_by_another_implementation_of_tls() {
        let folder = tempfile::tempdir().expect("a folder");
        for (key, suite) in [(KEY, SUITE_256), (LONG, SUITE_384)] {
            let (identity, hex) = psk(key, Derivation::Specification, IdentityVersion::Digest);
            let session = session(folder.path(), suite, &hex, &[]);
            let address = free_address();
            let shown = ["-psk_session", &session, "-psk_identity", &identity];
            let server = ["s_server", "-quiet", "-nocert", "-tls1_3", "-accept", &address];
            let Some(mut server) = openssl(&[&server[..], &shown].concat()) else { return };
            let host = std::thread::spawn(move || {
                let until = std::time::Instant::now() + Duration::from_secs(60);
                loop {
                    match Host::connect_with(&address, config("one"), &by_key(key)) {
                        // It is about to listen.
                        Err(HostError::Connect { .. }) if std::time::Instant::now() < until => {
                            std::thread::sleep(Duration::from_millis(20));
                        }
                        ended => return ended.err().expect("it is no target").to_string(),
                    }
                }
            });
            let got = printed(&mut server);
            let ended = host.join().expect("it does not panic");
            assert_eq!(got.get(..3), Some(&[0, 0, 128][..]), "{suite}: an ICReq; {ended}");
            assert!(!ended.contains("TLS"), "{ended}");
        }
    }

    #[test]
    fn a_host_without_a_key_and_a_suite_of_ours_is_told_which_are_spoken() {
        let target = secured("");
        let arguments = ["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "-tls1_3"];
        let Some(answer) = client(&target, &arguments, &request()) else { return };
        assert!(answer.is_empty(), "{answer:?}");
        is_logged("no shared cipher: only TLS_AES_256_GCM_SHA384 and TLS_AES_128_GCM_SHA256 are spoken");
        target.stop();
    }
}
