//! Processes of roles: started, found again by another command, and ended.
//!
//! A number of a process is used again. The file NAME.pid therefore has the time of its start too,
//! and signals go to a file descriptor of the process that was compared with both.

use crate::failure::{Failure, failed_at};
use procfs::process::{Process, Stat};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process that a role was started as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since the boot (proc(5)).
    start: u64,
    /// That boot.
    boot: String,
    /// Length of its log at the start: the rest is its own.
    pub log_begin: u64,
    /// The file of the rack that it belongs to.
    pub rack: PathBuf,
}

/// What a process takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// When it started, in seconds of Unix.
    pub since_s: u64,
    /// Processor time, in seconds.
    pub cpu_s: f64,
    /// Resident memory.
    pub memory_bytes: u64,
}

impl Started {
    /// Describes a process that runs.
    pub fn of(pid: u32, log_begin: u64, rack: &Path) -> Result<Started, Failure> {
        let pid = i32::try_from(pid).map_err(|error| Failure::Failed(error.to_string()))?;
        let wrong = |error: procfs::ProcError| Failure::Failed(format!("/proc/{pid}: {error}"));
        let stat = Process::new(pid).and_then(|process| process.stat()).map_err(wrong)?;
        Ok(Started { pid, start: stat.starttime, boot: boot().map_err(wrong)?, log_begin, rack: rack.into() })
    }

    /// Reads the file of a process, if it is there.
    pub fn read(path: &Path) -> Result<Option<Started>, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed_at(path)(error)),
        };
        let started = parse(&text).ok_or_else(|| {
            let allowed =
                "needed are lines with PROCESS, START, BOOT, LENGTH OF THE LOG and RACK. Remove it if no role runs";
            Failure::Failed(format!("{}: this is not what `rackweave rack up` writes; {allowed}", path.display()))
        })?;
        Ok(Some(started))
    }

    /// Writes its file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let Started { pid, start, boot, log_begin, rack } = self;
        let rack = rack.display();
        let new = path.with_extension("pid.new");
        fs::write(&new, format!("{pid}\n{start}\n{boot}\n{log_begin}\n{rack}\n")).map_err(failed_at(&new))?;
        fs::rename(&new, path).map_err(failed_at(path))
    }

    /// The process, unless it has ended. One that its parent has not reaped yet has ended.
    fn stat(&self) -> Option<Stat> {
        let stat = Process::new(self.pid).and_then(|process| process.stat()).ok()?;
        let is_it = stat.starttime == self.start && boot().is_ok_and(|boot| boot == self.boot);
        (is_it && !['Z', 'X'].contains(&stat.state)).then_some(stat)
    }

    /// Whether it runs.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some()
    }

    /// What it takes; `None` when it has ended.
    pub fn usage(&self) -> Option<Usage> {
        let (stat, ticks) = (self.stat()?, procfs::ticks_per_second());
        Some(Usage {
            since_s: procfs::boot_time_secs().ok()? + stat.starttime / ticks,
            cpu_s: (stat.utime + stat.stime) as f64 / ticks as f64,
            memory_bytes: stat.rss * procfs::page_size(),
        })
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the system refuses it. A process that has ended is none.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.handle() {
            Some(process) => match pidfd_send_signal(process, signal) {
                Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
                Err(error) => Err(error.into()),
            },
            None => Ok(()),
        }
    }

    /// Waits until it has ended; returns whether it has by `until`.
    pub fn ends_by(&self, until: Instant) -> bool {
        let Some(process) = self.handle() else { return true };
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        // A signal that interrupts the wait leads to the same question.
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left));
        !self.is_alive()
    }

    /// A descriptor of this very process: it was compared after it was opened.
    fn handle(&self) -> Option<OwnedFd> {
        let process = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        self.is_alive().then_some(process)
    }
}

fn boot() -> procfs::ProcResult<String> {
    procfs::sys::kernel::random::boot_id().map(|id| id.trim().to_owned())
}

fn parse(text: &str) -> Option<Started> {
    let mut lines = text.lines();
    let pid = lines.next()?.parse().ok().filter(|pid| *pid > 0)?;
    let start = lines.next()?.parse().ok()?;
    let boot = lines.next().filter(|boot| !boot.is_empty())?.to_owned();
    let log_begin = lines.next()?.parse().ok()?;
    Some(Started { pid, start, boot, log_begin, rack: lines.next()?.into() })
}

/// Ends processes: SIGTERM to all, and SIGKILL to those that still run after `patience`. Returns
/// for each whether it had to be killed.
pub fn end(all: &[Started], patience: Duration) -> io::Result<Vec<bool>> {
    all.iter().try_for_each(|process| process.signal(Signal::TERM))?;
    let until = Instant::now() + patience;
    let killed: Vec<bool> = all.iter().map(|process| !process.ends_by(until)).collect();
    for (process, _) in all.iter().zip(&killed).filter(|(_, killed)| **killed) {
        process.signal(Signal::KILL)?;
        process.ends_by(Instant::now() + patience);
    }
    Ok(killed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().expect("there is sleep")
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_the_role() {
        let mut child = sleeper();
        let right = Started::of(child.id(), 7, Path::new("/r")).expect("it runs");
        assert!(right.is_alive());
        let older = Started { start: right.start - 1, ..right.clone() };
        let before_boot = Started { boot: "another".into(), ..right.clone() };
        for other in [older, before_boot] {
            assert!(!other.is_alive() && other.usage().is_none());
            assert_eq!(end(&[other], Duration::ZERO).expect("nothing was done"), [false]);
        }
        assert!(right.is_alive(), "the others' signals were for nobody");
        assert_eq!(end(std::slice::from_ref(&right), Duration::from_secs(10)).expect("it is ours"), [false]);
        // It has ended though it was not reaped.
        assert!(!right.is_alive());
        child.wait().expect("it has ended");
    }

    #[test]
    fn who_does_not_hear_sigterm_is_killed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' TERM; echo; sleep 60 >/dev/null 2>&1 & wait; wait"]).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let started = Started::of(child.id(), 0, Path::new("/r")).expect("it runs");
        child.stdout.take().expect("it is piped").read_exact(&mut [0]).expect("it is deaf from now on");
        assert_eq!(end(std::slice::from_ref(&started), Duration::from_millis(200)).expect("it is ours"), [true]);
        assert!(!started.is_alive());
        child.wait().expect("it has ended");
    }

    #[test]
    fn its_file_reads_back_and_nonsense_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pid");
        assert_eq!(Started::read(&path).expect("it is not there"), None);
        let started = Started::of(std::process::id(), 42, Path::new("/a b/rack.toml")).expect("it runs");
        started.write(&path).expect("a disk");
        assert_eq!(Started::read(&path).expect("it is right"), Some(started));
        for wrong in ["", "1\n", "0\n1\nboot\n1\n/r\n", "-5\n1\nboot\n1\n/r\n", "1\n2\n\n3\n/r\n", "1\n2\nboot\n3\n"] {
            fs::write(&path, wrong).expect("a disk");
            let error = Started::read(&path).expect_err("it is wrong").to_string();
            assert!(error.contains("a.pid") && error.contains("START"), "{error}");
        }
    }
}
