//! `rackweave target`: serves disks until a signal stops it.

use crate::arguments::{TargetArguments, TargetFlags};
use crate::failure::{Failure, bad_input, print};
use crate::load;
use live::{Server, ServerOptions, StartError};
use nvme::target::PortConfig;
use plan::target::{LogFormatName, LogLevelName, TargetPlan, TlsName, is_target_file, parse};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use tracing::Level;

/// Serves what the file or the flags name.
pub fn target(arguments: &TargetArguments) -> Result<(), Failure> {
    let plan = match &arguments.config {
        Some(file) => plan_in(file).map_err(bad_input)?,
        None => plan_of_flags(&arguments.flags)?,
    };
    log_as(plan.log, plan.log_format);
    if arguments.check {
        let in_use = Server::check(&plan).map_err(refused)?;
        return print(&verdict(&in_use));
    }
    let reload = arguments.config.clone().map(|file| Box::new(move || plan_in(&file)) as live::Reload);
    let options = ServerOptions { signals: true, reload, ..ServerOptions::default() };
    let mut server = Server::start(&plan, options).map_err(refused)?;
    let addresses: Vec<(String, u16)> =
        server.addresses().iter().map(|address| (address.ip().to_string(), address.port())).collect();
    print(&greeting(server.plan(), &server.config().ports, &addresses))?;
    server.run().map_err(|error| Failure::Failed(error.to_string()))
}

/// The results of a check; `in_use` are resources of another process.
fn verdict(in_use: &[StartError]) -> String {
    let warnings: String = in_use.iter().map(|error| format!("warning: {error}\n")).collect();
    let when = if in_use.is_empty() { "" } else { ", once others no longer use what it needs" };
    format!("{warnings}it can be served{when}\n")
}

/// The plan of a file, if it is one of a live target and not an experiment.
pub fn plan_of_file(file: &Path) -> Result<Option<TargetPlan>, Failure> {
    let text = load::text_of(file)?;
    if !is_target_file(&text) {
        return Ok(None);
    }
    parse(&file.display().to_string(), &text).map(Some).map_err(bad_input)
}

fn plan_in(file: &PathBuf) -> Result<TargetPlan, String> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    parse(&name, &text).map_err(|error| error.to_string())
}

/// The flags as the file that says the same, so that both are checked alike.
fn plan_of_flags(flags: &TargetFlags) -> Result<TargetPlan, Failure> {
    let put = |table: &mut Table, key: &str, value: &Option<String>| {
        if let Some(value) = value {
            table.insert(key.into(), value.as_str().into());
        }
    };
    let mut namespace = Table::new();
    for (key, value) in [
        ("backend", &flags.backend),
        ("size", &flags.size),
        ("block", &flags.block),
        ("path", &flags.path),
        ("drive", &flags.drive),
    ] {
        put(&mut namespace, key, value);
    }
    if flags.path.is_some() && flags.backend.is_none() {
        namespace.insert("backend".into(), "file".into());
    }
    if flags.direct {
        namespace.insert("direct".into(), true.into());
    }
    let mut subsystem = Table::from_iter([("namespace".into(), Value::Array(vec![namespace.into()]))]);
    put(&mut subsystem, "nqn", &flags.nqn);
    if !flags.hosts.is_empty() {
        subsystem.insert("hosts".into(), flags.hosts.clone().into());
    }
    let mut file = Table::from_iter([("subsystem".into(), Value::Array(vec![subsystem.into()]))]);
    for (key, value) in [("state", &flags.state), ("metrics", &flags.metrics), ("log", &flags.log)] {
        put(&mut file, key, value);
    }
    if !flags.listen.is_empty() {
        let port = |address: &String| Value::Table(Table::from_iter([("address".into(), address.as_str().into())]));
        file.insert("port".into(), Value::Array(flags.listen.iter().map(port).collect()));
    }
    parse("the options", &file.to_string()).map_err(bad_input)
}

/// Logs go to the standard error, so that the standard output has the results alone.
pub fn log_as(level: LogLevelName, format: LogFormatName) {
    let level = match level {
        LogLevelName::Error => Level::ERROR,
        LogLevelName::Warn => Level::WARN,
        LogLevelName::Info => Level::INFO,
        LogLevelName::Debug => Level::DEBUG,
        LogLevelName::Trace => Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    // It would say so there too, and panic where that has no room.
    let subscriber = subscriber.log_internal_errors(false);
    match format {
        LogFormatName::Text => subscriber.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormatName::Json => subscriber.json().init(),
    }
}

/// Errors that the user can correct are bad input; the rest are failures.
pub fn refused(error: StartError) -> Failure {
    match error {
        StartError::System { .. } => Failure::Failed(error.to_string()),
        _ => bad_input(error),
    }
}

/// What is served, and how a Linux host comes by it: by the address that hosts are told, which need
/// not be the one where we listen.
fn greeting(plan: &TargetPlan, told: &[PortConfig], addresses: &[(String, u16)]) -> String {
    let mut text = String::new();
    for subsystem in &plan.subsystems {
        let who = subsystem.hosts.as_ref().map_or("any host".into(), |hosts| format!("{} hosts by name", hosts.len()));
        text += &format!("{}: {} disks for {who}\n", subsystem.name(), subsystem.namespaces.len());
    }
    for (host, port) in addresses {
        text += &format!("listening at {host}, port {port}\n");
    }
    for subsystem in &plan.subsystems {
        let Some(number) = subsystem.ports.first().map(|number| usize::from(*number) - 1) else { continue };
        let (host, service) = (told[number].address.as_str(), told[number].service.as_str());
        let is_anywhere = ["0.0.0.0", "::"].contains(&host);
        let host = if is_anywhere { "ADDRESS" } else { host };
        let tls = if plan.ports[number].tls == TlsName::Required { " --tls" } else { "" };
        text += "on a Linux host, as root: ";
        text += &format!("nvme connect -t tcp -a {host} -s {service} -n {}{tls}", subsystem.name());
        text += if is_anywhere { " (ADDRESS is one of this machine's)\n" } else { "\n" };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: TargetFlags,
    }

    fn plan(line: &str) -> Result<TargetPlan, Failure> {
        plan_of_flags(&Line::parse_from(["target"].into_iter().chain(line.split_whitespace())).flags)
    }

    #[test]
    fn without_flags_it_is_the_plan_of_an_empty_file() {
        assert_eq!(plan("").expect("it is right"), TargetPlan::standard());
    }

    #[test]
    fn flags_say_what_a_file_says() {
        let text = "state = 's'\nport = [{ address = '[::1]:1' }, { address = '[::1]:2' }]\n[[subsystem]]\nhosts = ['a', 'b']\n\
            [[subsystem.namespace]]\nbackend = 'file'\npath = 'x'\ndirect = true\nsize = '1MiB'\n";
        let flags = "--state s --listen [::1]:1 --listen [::1]:2 --host a --host b --path x --direct --size 1MiB";
        assert_eq!(plan(flags).expect("it is right"), parse("", text).expect("it is right"));
    }

    #[test]
    fn a_wrong_value_is_told_with_what_is_allowed() {
        let error = plan("--size 1").expect_err("it has no unit").to_string();
        assert!(error.contains("`1` has no unit: write it with one of B, KB, KiB"), "{error}");
    }
}
