//! Who may come in: hosts that prove themselves by secrets, and by keys of TLS; everyone else is refused with a line that says why.

mod support;

use live::{Extent, Host, HostError, Proof, RemoteDisk, Server, ServerOptions, StartError};
use nvme::auth::{GroupId, HashId, Secret};
use nvme::initiator::{Credentials, InitiatorConfig};
use std::path::Path;
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
