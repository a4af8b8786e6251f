//! `rackweave attack`: known faults of targets, tried on one.

mod report;

use crate::arguments::{AttackArguments, ConnectionArguments, ProofArguments};
use crate::describe::print_json;
use crate::disk::{config, log_to_standard_error};
use crate::failure::{Failure, bad_input, failed_at, print};
use base::Span;
use campaign::terminal::say;
use live::{Host, HostError, RemoteDisk, namespaces, play};
use nvme::attack::{Attack, Capacity, Verdict, VerdictClass, Victim, scripts, step_timeout};
use report::{Shown, report};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Lone commands that tell how quick a target is.
const CALIBRATION: u32 = 8;
/// Seconds that an ordinary command may take before the attacks.
const ORDINARY_S: u64 = 30;

/// Plays them one after the other.
pub fn attack(arguments: &AttackArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.explain {
        return explain(name);
    }
    let Some(address) = arguments.address.as_deref().filter(|_| !arguments.list) else { return list(arguments) };
    log_to_standard_error();
    let expected = arguments.expect.as_deref().map(expectations).transpose()?;
    let (victim, round_trip) = victim(address, arguments)?;
    let step_timeout = arguments.step_timeout.map_or_else(|| step_timeout(round_trip), Span::secs);
    let chosen = chosen(arguments, &victim)?;
    let all = play_all(address, &chosen, victim, step_timeout, !arguments.json)?;
    if arguments.json {
        print_json(&all)?;
    }
    if let Some(file) = &arguments.report {
        let text = report(file, address, &all).map_err(|error| Failure::Failed(error.to_string()))?;
        fs::write(file, text).map_err(failed_at(file))?;
    }
    match expected {
        Some(expected) => compare(&expected, &all),
        None => summary(&all, chosen.len()),
    }
}

fn play_all(
    address: &str,
    chosen: &[Attack],
    victim: Victim,
    step_timeout: Span,
    prints: bool,
) -> Result<Vec<Shown>, Failure> {
    let mut all = Vec::new();
    for attack in chosen {
        let began = Instant::now();
        let verdict = play(address, attack, victim, step_timeout).map_err(failed)?;
        if prints {
            print(&format!("{:<44} {verdict}\n", attack.name))?;
        }
        let is_over = matches!(verdict, Verdict::Died(_));
        all.push(Shown::new(attack, &verdict, began.elapsed()));
        if is_over {
            break;
        }
    }
    Ok(all)
}

/// Number of verdicts of each class.
fn counts(all: &[Shown]) -> String {
    let counts = VerdictClass::ALL.iter().filter_map(|class| {
        let count = all.iter().filter(|shown| shown.class == class.name()).count();
        (count > 0).then(|| format!("{count} {}", class.name()))
    });
    counts.collect::<Vec<String>>().join(", ")
}

fn summary(all: &[Shown], chosen: usize) -> Result<(), Failure> {
    let unsound: Vec<&str> = all.iter().filter(|shown| !shown.sound).map(|shown| shown.name).collect();
    let left = match chosen - all.len() {
        0 => String::new(),
        left => format!("; {left} were not tried, since the target is gone"),
    };
    let counts = counts(all);
    if unsound.is_empty() && left.is_empty() {
        say(format_args!("{} attacks: {counts}", all.len()));
        return Ok(());
    }
    let names = unsound.join(", ");
    Err(Failure::Failed(format!("{} of {} attacks found a fault ({counts}): {names}{left}", unsound.len(), all.len())))
}

/// The expected verdict of each attack, and the reason; `sound` where the file does not name it.
type Expectations = BTreeMap<String, Expected>;

/// A row of that file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    verdict: String,
    /// For people: which sentence of a specification it is about.
    #[serde(rename = "why")]
    _why: String,
}

fn expectations(file: &Path) -> Result<Expectations, Failure> {
    let text = fs::read_to_string(file).map_err(|error| bad_input(format!("{}: {error}", file.display())))?;
    let rows: Expectations =
        toml::from_str(&text).map_err(|error| bad_input(format!("{}: {error}", file.display())))?;
    let is_known = |name: &str| VerdictClass::ALL.iter().any(|class| class.name() == name);
    let names: Vec<&str> = scripts(&nobody()).iter().map(|attack| attack.name).collect();
    for (name, row) in &rows {
        let problem = if !names.contains(&name.as_str()) {
            "no attack is called so"
        } else if !is_known(&row.verdict) {
            "its verdict is none of sound, allowed, not applicable, fault, died, not played"
        } else {
            continue;
        };
        return Err(bad_input(format!("{}: {name}: {problem}", file.display())));
    }
    Ok(rows)
}

fn compare(expected: &Expectations, all: &[Shown]) -> Result<(), Failure> {
    let differing: Vec<String> = all
        .iter()
        .filter_map(|shown| {
            let wanted = expected.get(shown.name).map_or(VerdictClass::Sound.name(), |row| &row.verdict);
            let differs = wanted != shown.class;
            differs.then(|| format!("{}: expected {wanted}, got {}", shown.name, shown.verdict))
        })
        .collect();
    let counts = counts(all);
    if differing.is_empty() {
        say(format_args!("{} attacks, all as expected: {counts}", all.len()));
        return Ok(());
    }
    let (few, all) = (differing.len(), all.len());
    Err(Failure::Failed(format!("{few} of {all} attacks differ from what is expected:\n{}", differing.join("\n"))))
}

fn failed(error: HostError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Inputs of the scripts, and the longest time of a lone command: an ordinary host finds it out.
fn victim(address: &str, arguments: &AttackArguments) -> Result<(Victim, Span), Failure> {
    let connection = ConnectionArguments {
        nqn: arguments.nqn.clone(),
        host: arguments.host.clone(),
        namespace: arguments.namespace,
        header_digest: false,
        data_digest: false,
        timeout: arguments.step_timeout.unwrap_or_default().max(ORDINARY_S),
        proof: ProofArguments::default(),
    };
    let config = config(address, &connection)?;
    let mut host = Host::connect(address, config).map_err(failed)?;
    let round_trip = round_trip(&mut host)?;
    let disk = RemoteDisk::open(host, arguments.namespace).map_err(failed)?;
    let least = u64::from(Victim::BLOCKS_MIN);
    if disk.blocks() < least {
        return Err(bad_input(format!("the disk has {} blocks, and the attacks need {least}", disk.blocks())));
    }
    let capacity = disk.capacity().ok_or_else(|| Failure::Failed("the controller does not describe itself".into()))?;
    let block_bytes = disk.block_bytes() as u32;
    disk.disconnect().map_err(failed)?;
    let (subsystem, host, host_id) = (config.subsystem, config.host, config.host_id);
    let victim = Victim { subsystem, host, host_id, namespace: arguments.namespace, block_bytes, capacity };
    Ok((victim, round_trip))
}

/// The slowest of some lone commands.
fn round_trip(host: &mut Host) -> Result<Span, Failure> {
    let mut slowest = Span::ZERO;
    for _ in 0..CALIBRATION {
        let began = Instant::now();
        namespaces(host).map_err(failed)?;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        slowest = slowest.max(Span::us(micros.min(60_000_000)));
    }
    Ok(slowest)
}

fn chosen(arguments: &AttackArguments, victim: &Victim) -> Result<Vec<Attack>, Failure> {
    let wanted = arguments.only.as_deref().unwrap_or_default();
    let chosen: Vec<Attack> = scripts(victim).into_iter().filter(|attack| attack.name.contains(wanted)).collect();
    if chosen.is_empty() {
        return Err(bad_input(format!("no attack is called {wanted}; `--list` shows all")));
    }
    Ok(chosen)
}

/// A target without answers yet: a capsule of 8 KiB and no other limits.
fn nobody() -> Victim {
    let nqn = nvme::Nqn::discovery();
    let capacity =
        Capacity { in_capsule_bytes: 8192, transfer_bytes_max: Some(1 << 20), events_max: 4, namespaces: 1024 };
    Victim { subsystem: nqn, host: nqn, host_id: nvme::HostId([1; 16]), namespace: 1, block_bytes: 512, capacity }
}

/// Shows them.
fn list(arguments: &AttackArguments) -> Result<(), Failure> {
    let chosen = chosen(arguments, &nobody())?;
    if arguments.json {
        return print_json(&chosen.iter().map(report::Explained::new).collect::<Vec<_>>());
    }
    let text: String = chosen.iter().map(|attack| format!("{}\n    {}\n", attack.name, attack.about)).collect();
    print(&text)
}

fn explain(name: &str) -> Result<(), Failure> {
    let all = scripts(&nobody());
    match all.iter().find(|attack| attack.name == name) {
        Some(attack) => print(&report::explanation(attack)),
        None => Err(bad_input(format!("no attack is called {name}; `--list` shows all"))),
    }
}
