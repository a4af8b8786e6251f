//! `rackweave kv`: serves a key-value store to Redis clients until a signal stops it.

use crate::arguments::KvArguments;
use crate::failure::{Failure, bad_input, print};
use crate::load;
use crate::target::{log_as, refused};
use kv::{Config, Limits, Store, TlsFiles};
use plan::kv::{KvPlan, parse};
use plan::target::SecretSource;
use std::path::Path;

/// Serves what the file names.
pub fn kv(arguments: &KvArguments) -> Result<(), Failure> {
    let plan = plan_in(&arguments.config)?;
    let config = config_of(&plan)?;
    if arguments.check {
        return print("the file is right\n");
    }
    log_as(plan.log, plan.log_format);
    let mut store = Store::start(config, true).map_err(refused)?;
    let file = arguments.config.clone();
    let again = move || plan_in(&file).and_then(|plan| config_of(&plan)).map_err(|failure| failure.to_string());
    store.reload_with(Box::new(again));
    let address = store.address().map_err(|error| Failure::Failed(error.to_string()))?;
    let (host, port) = (address.ip(), address.port());
    print(&format!("{} keys in {}\nlistening at {host}, port {port}\n", store.keys(), plan.path))?;
    print(&format!("with Redis's client: redis-cli -h {host} -p {port}\n"))?;
    store.run().map_err(|error| Failure::Failed(error.to_string()))
}

fn plan_in(file: &Path) -> Result<KvPlan, Failure> {
    let text = load::text_of(file)?;
    parse(&file.display().to_string(), &text).map_err(bad_input)
}

fn config_of(plan: &KvPlan) -> Result<Config, Failure> {
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
        path: plan.path.clone().into(),
        zones: plan.zones(),
        zone_sectors: (plan.zone.count() / 512) as u32,
        blocks: plan.blocks,
        slots: plan.slots as u8,
        value_bytes_max: plan.value.count() as u32,
        flush: plan.flush,
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

fn password_in(line: &str) -> Result<String, &'static str> {
    if line.is_empty() { Err("its first line has no password") } else { Ok(line.to_owned()) }
}
