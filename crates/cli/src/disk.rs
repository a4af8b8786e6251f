//! `rackweave disk`: uses a disk of an NVMe/TCP target.

mod bench;
mod offload;

use crate::arguments::{ConnectionArguments, DiskArguments, DiskVerb, ProofArguments};
use crate::describe::print_json;
use crate::failure::{Failure, bad_input, failed_at, print};
use base::{Bytes, Seed, Span};
use campaign::terminal::say;
use live::{Extent, Host, HostError, Proof, RemoteDisk, discover, host_id_of, secret_in};
use nvme::Nqn;
use nvme::auth::{GroupId, HashId, Secret};
use nvme::identify::NamespaceName;
use nvme::initiator::{Credentials, InitiatorConfig};
use nvme::log::SubsystemKind;
use nvme::pdu::Digests;
use nvme::tls::TlsKey;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Entries of the admin queue: as a Linux host requests.
const ADMIN_ENTRIES: u16 = 32;
/// Entries of an I/O queue: as a Linux host requests.
const IO_ENTRIES: u16 = 128;
/// Longest transfer: what most targets take.
const TRANSFER_BYTES: u32 = 1 << 20;
/// Keep-alive timeout: as a Linux host requests.
const KEEP_ALIVE_MS: u32 = 5_000;

/// Prints a target's deviations from specifications to the standard error.
pub fn log_to_standard_error() {
    tracing_subscriber::fmt()
        .without_time()
        .with_target(false)
        .with_writer(io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
}

/// Runs the selected command.
pub fn disk(arguments: &DiskArguments) -> Result<(), Failure> {
    log_to_standard_error();
    match arguments.verb.as_ref().unwrap_or(&DiskVerb::Identify { json: false }) {
        DiskVerb::Identify { json } => identify(arguments, *json),
        DiskVerb::Read { at, bytes, out } => read(arguments, *at, *bytes, out.as_ref()),
        DiskVerb::Write { at, from } => write(arguments, *at, from.as_ref()),
        DiskVerb::Verify { at, bytes, seed, .. } => verify(arguments, *at, *bytes, *seed),
        DiskVerb::Cast { at, bytes, to } => offload::cast(arguments, *at, *bytes, to),
        DiskVerb::Add { first, second } => offload::add(arguments, *first, *second),
        DiskVerb::Bench(load) => bench::bench(arguments, load),
    }
}

fn failed(error: HostError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Connection parameters of this host, for any subsystem.
pub fn host_config(connection: &ConnectionArguments) -> Result<InitiatorConfig, Failure> {
    let host = Nqn::new(&connection.host).map_err(|error| bad_input(format!("--host {}: {error}", connection.host)))?;
    Ok(InitiatorConfig {
        digests: Digests { header: connection.header_digest, data: connection.data_digest },
        flow_control: false,
        admin_entries: ADMIN_ENTRIES,
        io_entries: IO_ENTRIES,
        keep_alive_ms: KEEP_ALIVE_MS,
        transfer_bytes_max: TRANSFER_BYTES,
        timeout: Span::secs(connection.timeout),
        ..InitiatorConfig::new(host, host_id_of(&host), Nqn::discovery())
    })
}

/// As [`host_config`], with the subsystem that was named or the only one there is.
pub fn config(address: &str, connection: &ConnectionArguments) -> Result<InitiatorConfig, Failure> {
    let config = host_config(connection)?;
    let subsystem = match &connection.nqn {
        Some(name) => Nqn::new(name).map_err(|error| bad_input(format!("--nqn {name}: {error}")))?,
        None => the_only_subsystem(address, config, &proof(&connection.proof)?)?,
    };
    Ok(InitiatorConfig { subsystem, ..config })
}

/// Credentials of this host.
fn proof(arguments: &ProofArguments) -> Result<Proof, Failure> {
    let host = secret("--dhchap-secret", &arguments.dhchap_secret, arguments.dhchap_secret_file.as_ref())?;
    let controller =
        secret("--dhchap-ctrl-secret", &arguments.dhchap_ctrl_secret, arguments.dhchap_ctrl_secret_file.as_ref())?;
    let credentials = match (host, controller) {
        (None, None) => None,
        (None, Some(_)) => return Err(bad_input("--dhchap-ctrl-secret: is valid only with --dhchap-secret")),
        (Some(host), controller) => {
            let entropy = live::entropy().map_err(|error| Failure::Failed(format!("random numbers: {error}")))?;
            let (hashes, groups) = (HashId::ALL.to_vec(), GroupId::ALL.to_vec());
            Some(Credentials { host, controller, entropy, hashes, groups })
        }
    };
    let tls = arguments.tls_key_file.as_ref().map(|file| secret_in(file, TlsKey::parse)).transpose();
    Ok(Proof { credentials, tls: tls.map_err(bad_input)? })
}

fn secret(option: &str, text: &Option<String>, file: Option<&PathBuf>) -> Result<Option<Secret>, Failure> {
    match (text, file) {
        (Some(text), _) => Secret::parse(text).map(Some).map_err(|error| bad_input(format!("{option}: {error}"))),
        (None, Some(file)) => secret_in(file, Secret::parse).map(Some).map_err(bad_input),
        (None, None) => Ok(None),
    }
}

/// A host that has connected.
fn connected(address: &str, config: InitiatorConfig, connection: &ConnectionArguments) -> Result<Host, Failure> {
    Host::connect_with(address, config, &proof(&connection.proof)?).map_err(failed)
}

fn the_only_subsystem(address: &str, config: InitiatorConfig, proof: &Proof) -> Result<Nqn, Failure> {
    let entries = discover(address, config, proof).map_err(failed)?;
    let mut names: Vec<Nqn> =
        entries.iter().filter(|entry| entry.kind == SubsystemKind::Nvm).map(|entry| entry.subsystem).collect();
    names.sort();
    names.dedup();
    match names.as_slice() {
        [only] => Ok(*only),
        [] => Err(bad_input(format!("{address} has no subsystem for the host {}", config.host))),
        several => {
            let names: Vec<String> = several.iter().map(Nqn::to_string).collect();
            Err(bad_input(format!("{address} has several subsystems; choose by --nqn: {}", names.join(", "))))
        }
    }
}

fn open(arguments: &DiskArguments) -> Result<RemoteDisk, Failure> {
    let config = config(&arguments.address, &arguments.connection)?;
    let host = connected(&arguments.address, config, &arguments.connection)?;
    RemoteDisk::open(host, arguments.connection.namespace).map_err(failed)
}

#[derive(Serialize)]
struct Shown {
    subsystem: String,
    serial: String,
    model: String,
    firmware: String,
    controller: u16,
    transfer_bytes_max: u64,
    namespaces: Vec<ShownDisk>,
}

#[derive(Serialize)]
struct ShownDisk {
    id: u32,
    bytes: u64,
    block_bytes: u64,
    uuid: Option<String>,
}

fn identify(arguments: &DiskArguments, json: bool) -> Result<(), Failure> {
    let config = config(&arguments.address, &arguments.connection)?;
    let mut host = connected(&arguments.address, config, &arguments.connection)?;
    let ids = live::namespaces(&mut host).map_err(failed)?;
    host.disconnect().map_err(failed)?;
    let mut shown = None;
    let mut namespaces = Vec::new();
    for id in ids {
        let host = connected(&arguments.address, config, &arguments.connection)?;
        let disk = RemoteDisk::open(host, id).map_err(failed)?;
        namespaces.push(shown_disk(id, &disk));
        shown = disk.controller().map(|controller| shown_controller(&config, controller, &disk));
        disk.disconnect().map_err(failed)?;
    }
    let Some(shown) = shown else { return print(&format!("{}: no disks\n", config.subsystem)) };
    let shown = Shown { namespaces, ..shown };
    if json { print_json(&shown) } else { print(&text(&shown)) }
}

fn shown_controller(
    config: &InitiatorConfig,
    controller: &nvme::identify::IdentifyController,
    disk: &RemoteDisk,
) -> Shown {
    Shown {
        subsystem: config.subsystem.to_string(),
        serial: controller.serial.as_str().into(),
        model: controller.model.as_str().into(),
        firmware: controller.firmware.as_str().into(),
        controller: controller.controller,
        transfer_bytes_max: u64::from(disk.transfer_blocks_max()) * disk.block_bytes(),
        namespaces: Vec::new(),
    }
}

fn shown_disk(id: u32, disk: &RemoteDisk) -> ShownDisk {
    let uuid = disk.names().iter().find_map(|name| match name {
        NamespaceName::Uuid(bytes) => Some(uuid_text(bytes)),
        _ => None,
    });
    ShownDisk { id, bytes: disk.blocks().saturating_mul(disk.block_bytes()), block_bytes: disk.block_bytes(), uuid }
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*bytes));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn text(shown: &Shown) -> String {
    let Shown { subsystem, serial, model, firmware, controller, transfer_bytes_max, namespaces } = shown;
    let mut text = format!(
        "{subsystem}\n  model {model}, serial {serial}, firmware {firmware}, controller {controller}, up to {} a command\n",
        Bytes::new(*transfer_bytes_max)
    );
    for disk in namespaces {
        let (size, block) = (Bytes::new(disk.bytes), Bytes::new(disk.block_bytes));
        let uuid = disk.uuid.as_deref().unwrap_or("none");
        text += &format!("  disk {}: {size} in blocks of {block}, UUID {uuid}\n", disk.id);
    }
    text
}

/// A part of the disk as blocks: where it begins, and how many there are.
fn part(disk: &RemoteDisk, at: Bytes, bytes: Option<Bytes>) -> Result<(u64, u64), Failure> {
    let block = disk.block_bytes();
    let whole = disk.blocks().saturating_mul(block);
    let bytes = bytes.map_or(whole.saturating_sub(at.count()), Bytes::count);
    for (name, value) in [("--at", at.count()), ("--bytes", bytes)] {
        if !value.is_multiple_of(block) {
            let got = Bytes::new(value);
            return Err(bad_input(format!("{name} {got}: not a multiple of the disk's block, {}", Bytes::new(block))));
        }
    }
    if at.count().checked_add(bytes).is_none_or(|end| end > whole) {
        return Err(bad_input(format!(
            "{} from {at} on end behind the disk, which has {}",
            Bytes::new(bytes),
            Bytes::new(whole)
        )));
    }
    Ok((at.count() / block, bytes / block))
}

/// Pieces of at most one transfer.
fn pieces(disk: &RemoteDisk, start: u64, blocks: u64) -> impl Iterator<Item = Extent> + use<> {
    let most = u64::from(disk.transfer_blocks_max());
    (0..blocks.div_ceil(most))
        .map(move |index| Extent { start: start + index * most, blocks: most.min(blocks - index * most) as u32 })
}

fn read(arguments: &DiskArguments, at: Bytes, bytes: Option<Bytes>, out: Option<&PathBuf>) -> Result<(), Failure> {
    let mut disk = open(arguments)?;
    let (start, blocks) = part(&disk, at, bytes)?;
    let place = out.cloned().unwrap_or_else(|| "standard output".into());
    let mut sink: Box<dyn Write> = match out {
        Some(path) => Box::new(File::create_new(path).map_err(failed_at(path))?),
        None => Box::new(io::stdout()),
    };
    for extent in pieces(&disk, start, blocks) {
        let data = disk.read(extent).map_err(failed)?;
        sink.write_all(&data).map_err(failed_at(&place))?;
    }
    sink.flush().map_err(failed_at(&place))?;
    disk.disconnect().map_err(failed)
}

fn write(arguments: &DiskArguments, at: Bytes, from: Option<&PathBuf>) -> Result<(), Failure> {
    let mut disk = open(arguments)?;
    let (mut next, blocks) = part(&disk, at, None)?;
    let end = next + blocks;
    let place = from.cloned().unwrap_or_else(|| "standard input".into());
    let mut source: Box<dyn Read> = match from {
        Some(path) => Box::new(File::open(path).map_err(failed_at(path))?),
        None => Box::new(io::stdin()),
    };
    let block = disk.block_bytes() as usize;
    let most = disk.transfer_blocks_max() as usize * block;
    let mut total = 0;
    loop {
        let mut data = Vec::new();
        let count = source.by_ref().take(most as u64).read_to_end(&mut data).map_err(failed_at(&place))?;
        if count == 0 {
            break;
        }
        data.resize(count.next_multiple_of(block), 0);
        let extent = Extent { start: next, blocks: (data.len() / block) as u32 };
        if next + u64::from(extent.blocks) > end {
            disk.flush().map_err(failed)?;
            return Err(Failure::Failed(format!("the disk is full: {} were written", Bytes::new(total))));
        }
        next += u64::from(extent.blocks);
        total += count as u64;
        disk.write(extent, data, false).map_err(failed)?;
    }
    disk.flush().map_err(failed)?;
    disk.disconnect().map_err(failed)?;
    say(format_args!("{} written and flushed", Bytes::new(total)));
    Ok(())
}

/// The noise of a block: it depends on the address, so that misplaced data do not compare equal.
fn noise(seed: u64, extent: Extent, block: u64) -> Vec<u8> {
    let mut stream = Seed(seed).stream(&format!("disk/verify/{}", extent.start));
    let mut data = vec![0; (u64::from(extent.blocks) * block) as usize];
    data.chunks_mut(8).for_each(|word| word.copy_from_slice(&stream.below(u64::MAX).to_le_bytes()[..word.len()]));
    data
}

fn verify(arguments: &DiskArguments, at: Bytes, bytes: Option<Bytes>, seed: u64) -> Result<(), Failure> {
    let mut disk = open(arguments)?;
    let (start, blocks) = part(&disk, at, bytes)?;
    let block = disk.block_bytes();
    for extent in pieces(&disk, start, blocks) {
        disk.write(extent, noise(seed, extent, block), false).map_err(failed)?;
    }
    disk.flush().map_err(failed)?;
    disk.disconnect().map_err(failed)?;
    let mut disk = open(arguments)?;
    for extent in pieces(&disk, start, blocks) {
        let (got, expected) = (disk.read(extent).map_err(failed)?, noise(seed, extent, block));
        if let Some(at) = got.iter().zip(&expected).position(|(got, expected)| got != expected) {
            let at = extent.start * block + at as u64;
            return Err(Failure::Failed(format!("byte {at} is not what was written there")));
        }
    }
    disk.disconnect().map_err(failed)?;
    print(&format!("{} written, flushed, read back on a new connection: equal\n", Bytes::new(blocks * block)))
}
