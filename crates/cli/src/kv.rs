//! `rackweave kv`: serves a key-value store to Redis clients until a signal stops it. `rackweave
//! jbof`: memory and flash of one, in a process of its own.

use crate::arguments::KvArguments;
use crate::failure::{Failure, bad_input, print};
use crate::load;
use crate::target::{log_as, refused};
use base::{Bytes, Span};
use campaign::terminal::say;
use kv::{
    Config, FabricPlace, FlashPeer, JbofConfig, JbofPlace, JbofRole, JbofRoleConfig, Journal, Limits, Peer,
    PeerAddress, Protocol, Records, Secret, Store, TlsFiles,
};
use nvme::Nqn;
use nvme::tls::TlsKey;
use plan::jbof::JbofPlan;
use plan::kv::{JbofFlash, KvPlan, parse};
use plan::scalio::ProtocolName;
use plan::target::SecretSource;
use std::path::Path;

/// Serves what the file names.
pub fn kv(arguments: &KvArguments) -> Result<(), Failure> {
    let plan = plan_in(&arguments.config)?;
    let config = config_of(&plan, journal_of(arguments))?;
    warn_of(plan.protocol);
    if arguments.check {
        return print("the file is right\n");
    }
    log_as(plan.log, plan.log_format);
    let mut store = Store::start(config, true).map_err(refused)?;
    let (file, journal) = (arguments.config.clone(), journal_of(arguments));
    let again = move || {
        let config = plan_in(&file).and_then(|plan| config_of(&plan, journal.clone()));
        config.map_err(|failure| failure.to_string())
    };
    store.reload_with(Box::new(again));
    let address = store.address().map_err(|error| Failure::Failed(error.to_string()))?;
    let (host, port) = (address.ip(), address.port());
    let there = plan.jbof_socket.as_ref().or(plan.jbof_address.as_ref());
    let place = there.map_or_else(|| format!("in {}", plan.path), |jbof| format!("in the JBOF at {jbof}"));
    print(&format!("{} keys {place}\nlistening at {host}, port {port}\n", store.keys()))?;
    print(&format!("with Redis's client: redis-cli -h {host} -p {port}\n"))?;
    store.run().map_err(|error| Failure::Failed(error.to_string()))
}

/// Where the role's programs note what they do.
fn journal_of(arguments: &KvArguments) -> Option<Journal> {
    let (folder, role) = arguments.journal.clone().zip(arguments.role.clone())?;
    Some(Journal { folder, role })
}

fn plan_in(file: &Path) -> Result<KvPlan, Failure> {
    let text = load::text_of(file)?;
    parse(&file.display().to_string(), &text).map_err(bad_input)
}

fn config_of(plan: &KvPlan, journal: Option<Journal>) -> Result<Config, Failure> {
    let password = match &plan.password {
        None => None,
        Some(SecretSource::Text(text)) => Some(text.clone()),
        Some(SecretSource::File(path)) => Some(live::secret_in(path.as_ref(), password_in).map_err(refused)?),
    };
    let limits = &plan.limits;
    Ok(Config {
        listen: plan.listen.clone(),
        password: password.map(|text| text.into_bytes().into()),
        tls: plan.tls_certificate.as_ref().zip(plan.tls_key.as_ref()).map(|(certificate, key)| TlsFiles {
            certificate: certificate.into(),
            key: key.into(),
            clients: plan.tls_clients.as_ref().map(Into::into),
        }),
        metrics: plan.metrics.clone(),
        jbof: place_of(plan)?,
        loops: plan.loops as usize,
        records: plan.records.as_ref().map(records_of),
        journal,
        limits: Limits {
            connections: limits.connections as usize,
            arguments: limits.arguments as usize,
            request: limits.request.count() as usize,
            reply: limits.reply.count() as usize,
            memory: limits.memory.count() as usize,
            backlog: limits.backlog.count() as usize,
            handshake: limits.handshake,
            stall: limits.stall,
            slow_after: limits.slow_after,
            slow_commands: limits.slow_commands as usize,
        },
    })
}

/// Where memory and flash of a store are.
fn place_of(plan: &KvPlan) -> Result<JbofPlace, Failure> {
    let address = match (&plan.jbof_socket, &plan.jbof_address) {
        (Some(path), _) => PeerAddress::Unix(path.into()),
        (None, Some(address)) => PeerAddress::Tcp(address.clone()),
        (None, None) => {
            let sizes = [plan.size, plan.zone, plan.value];
            return Ok(JbofPlace::Inside(flash_of(
                &plan.path,
                sizes,
                [plan.blocks, plan.slots],
                [plan.flush, plan.reserve],
                plan.protocol,
            )));
        }
    };
    let secret = secret_of(plan.jbof_secret_file.as_ref())?;
    let flash = plan.jbof_flash.as_ref().map(target_of).transpose()?.map(Box::new);
    Ok(JbofPlace::Away(Peer { address, secret, fabric: plan.jbof_fabric.clone(), flash }))
}

/// The target of a JBOF's flash, with what the door proves itself by.
fn target_of(plan: &JbofFlash) -> Result<FlashPeer, Failure> {
    let name = |text: &str| Nqn::new(text).map_err(|error| bad_input(format!("jbof_flash: {text}: {error}")));
    let secret = |file: &Option<String>| {
        file.as_ref().map(|path| live::secret_in(path.as_ref(), nvme::auth::Secret::parse)).transpose().map_err(refused)
    };
    let tls = plan.tls_key_file.as_ref().map(|path| live::secret_in(path.as_ref(), TlsKey::parse));
    Ok(FlashPeer {
        address: plan.address.clone(),
        subsystem: name(&plan.subsystem)?,
        namespace: plan.namespace,
        host: name(&plan.host)?,
        dhchap: secret(&plan.dhchap_secret_file)?,
        controller: secret(&plan.dhchap_controller_secret_file)?,
        tls: tls.transpose().map_err(refused)?,
        timeout: plan.timeout,
    })
}

/// Serves memory and flash to doors.
pub fn jbof(arguments: &KvArguments) -> Result<(), Failure> {
    let text = load::text_of(&arguments.config)?;
    let plan = plan::jbof::parse(&arguments.config.display().to_string(), &text).map_err(bad_input)?;
    let config = jbof_config_of(&plan, journal_of(arguments))?;
    warn_of(plan.protocol);
    if arguments.check {
        return print("the file is right\n");
    }
    log_as(plan.log, plan.log_format);
    let mut role = JbofRole::start(config, true).map_err(refused)?;
    let tcp = role.address().map(|address| format!("listening at {}, port {}\n", address.ip(), address.port()));
    let socket = plan.socket.map(|path| format!("ready: doors of this machine come in by {path}\n"));
    print(&format!("{} keys in {}\n", role.keys(), plan.path))?;
    print(&[socket, tcp].into_iter().flatten().collect::<String>())?;
    role.run().map_err(|error| Failure::Failed(error.to_string()))
}

fn jbof_config_of(plan: &JbofPlan, journal: Option<Journal>) -> Result<JbofRoleConfig, Failure> {
    let socket = plan.socket.as_ref().map(|path| PeerAddress::Unix(path.into()));
    let tcp = plan.listen.as_ref().map(|address| PeerAddress::Tcp(address.clone()));
    Ok(JbofRoleConfig {
        listen: tcp.into_iter().chain(socket).collect(),
        secret: secret_of(plan.secret_file.as_ref())?,
        fabric: plan.fabric.clone().map(|address| FabricPlace { provider: plan.fabric_provider.clone(), address }),
        metrics: plan.metrics.clone(),
        silence: Span::secs(30),
        records: plan.records.as_ref().map(records_of),
        journal,
        jbof: flash_of(
            &plan.path,
            [plan.size, plan.zone, plan.value],
            [plan.blocks, plan.slots],
            [plan.flush, plan.reserve],
            plan.protocol,
        ),
    })
}

fn records_of(records: &plan::target::Records) -> Records {
    Records { folder: (&records.folder).into(), sample: records.sample.into(), tail: records.tail }
}

fn secret_of(file: Option<&String>) -> Result<Option<Secret>, Failure> {
    file.map(|path| live::long_secret_in(path.as_ref()).map(Secret).map_err(refused)).transpose()
}

/// Flash and memory, by path; size, zone and value; blocks and slots; flush and reserve; protocol.
fn flash_of(
    path: &str,
    [size, zone, value]: [Bytes; 3],
    [blocks, slots]: [u32; 2],
    [flush, reserve]: [bool; 2],
    protocol: ProtocolName,
) -> JbofConfig {
    JbofConfig {
        path: path.into(),
        zones: (size.count() / zone.count()) as u32,
        zone_sectors: (zone.count() / 512) as u32,
        blocks,
        slots: slots as u8,
        value_bytes_max: value.count() as u32,
        flush,
        reserve,
        protocol: match protocol {
            ProtocolName::Linearizable => Protocol::Linearizable,
            ProtocolName::Paper => Protocol::Paper { lease: true },
        },
    }
}

/// Warns of a store whose answers may be wrong.
fn warn_of(protocol: ProtocolName) {
    if protocol == ProtocolName::Paper {
        say("warning: protocol = \"paper\": a door that pauses past its lease can bring old values back; \
             use it for study alone");
    }
}

fn password_in(line: &str) -> Result<String, &'static str> {
    if line.is_empty() { Err("its first line has no password") } else { Ok(line.to_owned()) }
}
