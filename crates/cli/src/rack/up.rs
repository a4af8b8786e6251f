//! `rackweave rack up`: starts what does not run.

use super::netns::{self, Network};
use super::process::{Started, end};
use super::status::{State, state_of, table};
use super::{Kind, Role, Site, page, stages};
use crate::failure::{Failure, failed_at, print};
use base::Span;
use campaign::terminal::say;
use ipnet::IpNet;
use runtime::room::{free_bytes, hole_bytes};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often roles are asked whether they are ready.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a role that this command started may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is shown of the log of a role that failed.
const LINES_SHOWN: usize = 20;
/// Bytes of a log in which those lines are searched.
const TAIL_BYTES: u64 = 16 << 10;
/// Bytes of a log in which a role has said that it is ready.
const GREETING_BYTES: u64 = 1 << 20;

/// Starts every chosen role that does not run, and waits until all are ready. With `netns` each is
/// in a network namespace of its own, as it is when an earlier command has asked for that.
pub fn up(
    site: &Site,
    only: &[String],
    wait: Duration,
    netns: Option<IpNet>,
    delay: Option<Span>,
) -> Result<(), Failure> {
    let mut roles = site.chosen(only)?;
    roles.iter_mut().try_for_each(Role::complete)?;
    let _lock = site.lock()?;
    let network = Network::of(site, netns, delay, &roles)?;
    let mut new = Vec::new();
    for stage in stages(&roles) {
        if let Err(failure) = start_stage(site, network.as_ref(), stage, wait, &mut new) {
            withdraw(site, &mut new)?;
            return Err(failure);
        }
    }
    new.iter().for_each(|new| warn(&site.log(&new.name), new.started.log_begin, &new.name));
    warn_of_room(&site.rack.folder);
    print(&greeting(site, &roles)?)
}

/// Shows what a role has warned of since it started.
fn warn(log: &Path, begin: u64, name: &str) {
    let said = greeting_of(log, begin);
    const MARKS: [&str; 3] = [" WARN ", "\"WARN\"", "warning: "];
    let warnings = said.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark)));
    warnings.for_each(|line| say(format_args!("{name}: {line}")));
}

/// Each role knows of its own files. Those of the rack's folder are on one file system.
fn warn_of_room(folder: &Path) {
    let Ok(free) = File::open(folder).and_then(|folder| free_bytes(&folder)) else { return };
    let wanted = holes_below(folder);
    if wanted > free {
        let [wanted, free] = [wanted, free].map(|bytes| bytes >> 20);
        let folder = folder.display();
        say(format_args!("warning: {folder}: its files may need {wanted} MiB more, and {free} MiB of disk are free"));
    }
}

/// Bytes of files in a folder that take no room yet.
fn holes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let holes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { holes_below(&entry.path()) } else { hole_bytes(about.len(), &about) })
    });
    holes.sum()
}

/// A role that this command has started.
struct New {
    name: String,
    started: Started,
    child: Child,
}

fn start_stage(
    site: &Site,
    network: Option<&Network>,
    stage: &[Role],
    wait: Duration,
    new: &mut Vec<New>,
) -> Result<(), Failure> {
    for role in stage {
        match site.started(&role.name)?.filter(Started::is_alive) {
            Some(started) => print(&format!("{} already runs as process {}\n", role.name, started.pid))?,
            None => new.push(start(site, network, role)?),
        }
    }
    let until = Instant::now() + wait;
    stage.iter().try_for_each(|role| wait_for(site, network, role, until, wait, new))
}

/// Starts the process of a role, with its log as output.
fn start(site: &Site, network: Option<&Network>, role: &Role) -> Result<New, Failure> {
    // An address of a namespace that is not there yet answers nobody, which takes seconds.
    network.map(|network| network.join(site, role)).transpose()?;
    if let Some(address) = role.metrics.as_ref().filter(|address| page::is_healthy(address)) {
        let reason = format!("{}: another process serves http://{address}/healthz already", role.name);
        return Err(Failure::NotReady(reason));
    }
    let path = site.log(&role.name);
    let log = File::options().create(true).append(true).open(&path).map_err(failed_at(&path))?;
    let log_begin = log.metadata().map_err(failed_at(&path))?.len();
    let program = std::env::current_exe().map_err(|error| Failure::Failed(format!("the program itself: {error}")))?;
    let mut command = match network {
        None => Command::new(&program),
        Some(_) => netns::command(site, &role.name, &program),
    };
    command.args(["rack", "role", "--own-session"]).arg(&site.file).arg(&role.name);
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed_at(&path))?).stderr(log);
    let mut child = command.spawn().map_err(failed_at(&program))?;
    let noted = Started::of(child.id(), log_begin, &site.file)
        .and_then(|started| started.write(&site.pid_file(&role.name)).map(|()| started));
    match noted {
        Ok(started) => Ok(New { name: role.name.clone(), started, child }),
        // Nobody would find it again.
        Err(failure) => {
            let _ = child.kill().and_then(|()| child.wait());
            Err(failure)
        }
    }
}

/// Waits until a role is ready. One that was about to end when it was looked at is started anew.
fn wait_for(
    site: &Site,
    network: Option<&Network>,
    role: &Role,
    until: Instant,
    wait: Duration,
    new: &mut Vec<New>,
) -> Result<(), Failure> {
    loop {
        match state_of(site, role)? {
            State::Ready => return Ok(()),
            State::Dead | State::NotStarted if new.iter().all(|one| one.name != role.name) => {
                new.push(start(site, network, role)?);
            }
            State::Dead | State::NotStarted => return Err(not_ready(site, role, "it has ended")),
            State::Starting | State::Silent if Instant::now() < until => std::thread::sleep(PAUSE),
            State::Starting | State::Silent => {
                return Err(not_ready(site, role, &format!("it was not ready within {} s", wait.as_secs())));
            }
        }
    }
}

fn not_ready(site: &Site, role: &Role, what: &str) -> Failure {
    let path = site.log(&role.name);
    let begin = site.started(&role.name).ok().flatten().map_or(0, |started| started.log_begin);
    let said = match last_lines(&path, begin) {
        Ok(lines) if lines.is_empty() => "it said nothing".into(),
        Ok(lines) => format!("it said at last:\n{lines}"),
        Err(error) => error.to_string(),
    };
    Failure::NotReady(format!("{}: {what}; {}: {said}", role.name, path.display()))
}

/// Ends what this command has started, in reverse order.
fn withdraw(site: &Site, new: &mut [New]) -> Result<(), Failure> {
    for New { name, started, child } in new.iter_mut().rev() {
        end(std::slice::from_ref(started), PATIENCE).map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        let _ = child.wait();
        let path = site.pid_file(name);
        std::fs::remove_file(&path).map_err(failed_at(&path))?;
    }
    Ok(())
}

/// What runs, and how programs connect to it.
fn greeting(site: &Site, roles: &[Role]) -> Result<String, Failure> {
    let mut table = table(["role", "process", "address", "to connect"]);
    for role in roles {
        let Some(started) = site.started(&role.name)? else { continue };
        let said = greeting_of(&site.log(&role.name), started.log_begin);
        let address = said.lines().find_map(listening_at).or_else(|| role.address.clone()).unwrap_or_default();
        let mark = if role.kind == Kind::Store { "with Redis's client: " } else { "on a Linux host, as root: " };
        let how: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix(mark)).collect();
        table.add_row([&role.name, &started.pid.to_string(), &address, &how.join("\n")]);
    }
    Ok(format!("{table}\n"))
}

/// The address in a line of a door or a store.
fn listening_at(line: &str) -> Option<String> {
    let (host, port) = line.strip_prefix("listening at ")?.split_once(", port ")?;
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Whether a role has said in its log that it is ready: doors and stores by where they listen.
pub fn has_said_ready(log: &Path, begin: u64) -> bool {
    greeting_of(log, begin).lines().any(|line| line.starts_with("ready") || line.starts_with("listening at "))
}

/// The first that a process has said; nothing where that cannot be read.
fn greeting_of(log: &Path, begin: u64) -> String {
    part(log, begin, GREETING_BYTES).unwrap_or_default()
}

/// The last lines of a log behind `begin`.
fn last_lines(log: &Path, begin: u64) -> Result<String, Failure> {
    let length = log.metadata().map_err(failed_at(log))?.len();
    let text = part(log, begin.max(length.saturating_sub(TAIL_BYTES)), TAIL_BYTES).map_err(failed_at(log))?;
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n"))
}

fn part(log: &Path, begin: u64, length: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_by_its_own_words_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("a.log");
        let before = "listening at 127.0.0.1, port 1\n";
        for (said, is_ready) in [("", false), ("not ready\n", false), ("ready for packets\n", true), (before, true)] {
            std::fs::write(&log, format!("{before}{said}")).expect("a disk");
            assert_eq!(has_said_ready(&log, before.len() as u64), is_ready, "{said}");
        }
        assert!(!has_said_ready(&folder.path().join("none"), 0));
    }

    #[test]
    fn the_last_lines_are_those_of_this_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("a.log");
        std::fs::write(&log, "old\nnew 1\nnew 2\n").expect("a disk");
        assert_eq!(last_lines(&log, 4).expect("it is there"), "new 1\nnew 2");
        let many: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&log, many).expect("a disk");
        let last = last_lines(&log, 0).expect("it is there");
        assert!(last.starts_with("line 9980\n") && last.ends_with("line 9999"), "{last}");
    }

    #[test]
    fn addresses_come_from_what_a_door_says() {
        assert_eq!(listening_at("listening at ::1, port 7").as_deref(), Some("[::1]:7"));
        assert_eq!(listening_at("listening at 127.0.0.1, port 7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(listening_at("3 keys in f"), None);
    }
}
