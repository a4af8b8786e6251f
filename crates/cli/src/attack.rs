//! `rackweave attack`: known faults of targets, tried on one.

use crate::arguments::{AttackArguments, ConnectionArguments, ProofArguments};
use crate::describe::print_json;
use crate::disk::config;
use crate::failure::{Failure, bad_input, print};
use base::Span;
use live::{Host, HostError, RemoteDisk, play};
use nvme::attack::{Attack, Verdict, Victim, scripts};
use serde::Serialize;

/// Blocks that scripts use.
const BLOCKS_MIN: u64 = 256;

/// What became of one attack.
#[derive(Serialize)]
struct Shown {
    name: &'static str,
    about: &'static str,
    verdict: String,
    sound: bool,
}

/// Plays them one after the other.
pub fn attack(arguments: &AttackArguments) -> Result<(), Failure> {
    if arguments.list {
        return list(arguments);
    }
    let victim = victim(arguments)?;
    let chosen = chosen(arguments, &victim)?;
    let mut all = Vec::new();
    for attack in &chosen {
        let verdict = play(&arguments.address, attack, victim, Span::secs(arguments.patience)).map_err(failed)?;
        let is_over = matches!(verdict, Verdict::Died(_));
        if !arguments.json {
            print(&format!("{:<44} {verdict}\n", attack.name))?;
        }
        all.push(shown(attack, &verdict));
        if is_over {
            break;
        }
    }
    if arguments.json {
        print_json(&all)?;
    }
    summary(&all, chosen.len())
}

fn summary(all: &[Shown], chosen: usize) -> Result<(), Failure> {
    let unsound: Vec<&str> = all.iter().filter(|shown| !shown.sound).map(|shown| shown.name).collect();
    let left = match chosen - all.len() {
        0 => String::new(),
        left => format!("; {left} were not tried, since the target is gone"),
    };
    if unsound.is_empty() && left.is_empty() {
        eprintln!("{} attacks, all refused properly", all.len());
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{} of {} attacks found a fault: {}{left}",
        unsound.len(),
        all.len(),
        unsound.join(", ")
    )))
}

fn failed(error: HostError) -> Failure {
    Failure::Failed(error.to_string())
}

fn shown(attack: &Attack, verdict: &Verdict) -> Shown {
    Shown { name: attack.name, about: attack.about, verdict: verdict.to_string(), sound: verdict.is_sound() }
}

/// What the scripts need to know: an ordinary host finds it out.
fn victim(arguments: &AttackArguments) -> Result<Victim, Failure> {
    let connection = ConnectionArguments {
        nqn: arguments.nqn.clone(),
        host: arguments.host.clone(),
        namespace: arguments.namespace,
        header_digest: false,
        data_digest: false,
        timeout: arguments.patience.max(5),
        proof: ProofArguments::default(),
    };
    let config = config(&arguments.address, &connection)?;
    let host = Host::connect(&arguments.address, config).map_err(failed)?;
    let disk = RemoteDisk::open(host, arguments.namespace).map_err(failed)?;
    if disk.blocks() < BLOCKS_MIN {
        return Err(bad_input(format!("the disk has {} blocks, and the attacks need {BLOCKS_MIN}", disk.blocks())));
    }
    let block_bytes = disk.block_bytes() as u32;
    disk.disconnect().map_err(failed)?;
    let (subsystem, host, host_id) = (config.subsystem, config.host, config.host_id);
    Ok(Victim { subsystem, host, host_id, namespace: arguments.namespace, block_bytes })
}

fn chosen(arguments: &AttackArguments, victim: &Victim) -> Result<Vec<Attack>, Failure> {
    let wanted = arguments.only.as_deref().unwrap_or_default();
    let chosen: Vec<Attack> = scripts(victim).into_iter().filter(|attack| attack.name.contains(wanted)).collect();
    if chosen.is_empty() {
        return Err(bad_input(format!("no attack is called {wanted}; `--list` shows all")));
    }
    Ok(chosen)
}

/// Shows them for a victim that nobody has asked.
fn list(arguments: &AttackArguments) -> Result<(), Failure> {
    let nqn = nvme::Nqn::discovery();
    let victim = Victim { subsystem: nqn, host: nqn, host_id: nvme::HostId([1; 16]), namespace: 1, block_bytes: 512 };
    let text: String =
        chosen(arguments, &victim)?.iter().map(|attack| format!("{}\n    {}\n", attack.name, attack.about)).collect();
    print(&text)
}
