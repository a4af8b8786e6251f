//! Plays a job file.

use super::job::{Amount, Job, JobFile};
use super::thread::{Io, Pace, Region, Thread};
use crate::generator::{Arrival, Source};
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::problem::{Checker, NODES_MAX, Problem};
use base::{Bytes, NodeId, Request, RequestId, Seed, Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// How a job file is played. Threads, counted over all jobs, are dealt to the hosts, which are the
/// nodes `0..hosts`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayConfig {
    /// The jobs.
    pub file: JobFile,
    /// Number of hosts.
    pub hosts: u32,
    /// What each of [`JobFile::files`] is, in their order.
    pub volumes: Vec<Volume>,
    /// The load ends after this many requests, or when the jobs do...
    pub requests: Option<u64>,
    /// ...or with the last request before this time.
    pub duration: Option<Span>,
}

/// Meaning of a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// The node that holds it.
    pub node: NodeId,
    /// How large it is.
    pub capacity: Bytes,
}

impl PlayConfig {
    /// What is impossible about it; fields of jobs are named `jobs[name].option`.
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Checker::default();
        check.range("hosts", u64::from(self.hosts), 1, u64::from(NODES_MAX) - 1);
        let files = self.file.files();
        check.range("volumes", self.volumes.len() as u64, files.len() as u64, files.len() as u64);
        if self.volumes.len() == files.len() {
            self.check_regions(&files, &mut check);
        }
        check.problems()
    }

    fn check_regions(&self, files: &[String], check: &mut Checker) {
        for job in &self.file.jobs {
            let Some(last) = job.threads.checked_sub(1) else {
                check.range(format!("jobs[{}].numjobs", job.name), 0, 1, u64::from(u32::MAX));
                continue;
            };
            for thread in [0, last] {
                for (placed, capacity) in self.regions(files, job, thread) {
                    let end = placed.start.saturating_add(placed.length);
                    check.range(format!("jobs[{}].offset + size", job.name), end, 0, capacity);
                    let largest = job.directions().iter().map(|each| job.sizes[*each].most()).max().unwrap_or(0);
                    check.range(format!("jobs[{}].size of a file", job.name), placed.length, largest, capacity);
                }
            }
        }
    }

    /// The place of a thread's requests, with the capacity of each volume.
    fn regions(&self, files: &[String], job: &Job, thread: u32) -> Vec<(Region, u64)> {
        let names = job.files_of(thread);
        let count = names.len() as u64;
        let volumes = names.iter().filter_map(|name| files.iter().position(|each| each == name));
        volumes.map(|index| self.region(self.volumes[index], job, thread, count)).collect()
    }

    fn region(&self, volume: Volume, job: &Job, thread: u32, files: u64) -> (Region, u64) {
        let capacity = volume.capacity.count();
        let grid = job.directions().iter().map(|each| job.sizes[*each].least()).min().unwrap_or(1);
        let start = |amount: Amount| match amount {
            Amount::Bytes(bytes) => bytes,
            // "The generated offset will be aligned to the minimum blocksize", upwards.
            Amount::Percent(_) => amount.of(capacity).next_multiple_of(grid),
        };
        let start = start(job.offset).saturating_add(start(job.offset_increment).saturating_mul(u64::from(thread)));
        let length = match job.size {
            None => capacity.saturating_sub(start),
            Some(Amount::Bytes(bytes)) => bytes / files,
            Some(percent) => percent.of(capacity),
        };
        (Region { target: volume.node, start, length }, capacity)
    }
}

impl Amount {
    fn of(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Plays a [`PlayConfig`]: threads start together, those behind a wall when all before it are done.
#[derive(Clone, Debug)]
pub struct Player {
    /// By group, the last one first.
    waiting: Vec<Vec<Running>>,
    running: Vec<Running>,
    /// Of the running ones, how many are not done.
    active: usize,
    outbox: Outbox<(usize, Io)>,
    in_flight: BTreeMap<RequestId, usize>,
    limits: Limits,
}

/// A thread and its loop.
#[derive(Clone, Debug)]
struct Running {
    thread: Thread,
    pace: Option<Pace>,
    host: NodeId,
    job: Job,
    seed: Seed,
    /// Time of its last request at the latest.
    deadline: Time,
    /// Time of its previous request: requests are in order.
    last: Time,
    in_flight: u32,
    is_done: bool,
}

impl Player {
    /// A player of `config`. `seed` decides every draw: every thread has streams of its own,
    /// `workload/fio/<job>/<thread>/...`.
    ///
    /// # Panics
    /// If `config` has [`problems`](PlayConfig::problems). Check external configurations first.
    pub fn new(config: &PlayConfig, seed: Seed) -> Player {
        let problems = config.problems();
        assert!(problems.is_empty(), "the jobs were not checked: {}", problems[0]);
        let mut groups: Vec<Vec<Running>> = Vec::new();
        let files = config.file.files();
        let mut number = 0;
        for job in &config.file.jobs {
            if job.is_walled || groups.is_empty() {
                groups.push(Vec::new());
            }
            for thread in 0..job.threads {
                let host = NodeId(number % config.hosts);
                number = number.wrapping_add(1);
                let running = Running::new(config, &files, job, thread, host, seed);
                groups.last_mut().expect("a group was pushed").push(running);
            }
        }
        groups.reverse();
        Player {
            waiting: groups,
            running: Vec::new(),
            active: 0,
            outbox: Outbox::default(),
            in_flight: BTreeMap::new(),
            limits: Limits::new(config.requests, config.duration),
        }
    }

    /// Returns how many requests were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    /// Starts the next group, and those behind it if it has nothing to do.
    fn start_group(&mut self, now: Time) {
        while self.active == 0 {
            let Some(group) = self.waiting.pop() else { return };
            self.running = group;
            self.active = self.running.len();
            for index in 0..self.running.len() {
                self.running[index].start(now);
                self.fill(index, now);
            }
        }
    }

    /// Issues requests of a thread up to its depth.
    fn fill(&mut self, index: usize, now: Time) {
        let running = &mut self.running[index];
        while let Some((at, io)) = running.next(now) {
            self.outbox.push(at, (index, io));
        }
        if running.is_done && running.in_flight == 0 {
            self.active -= 1;
        }
    }

    fn pop(&mut self) -> Option<Arrival> {
        let (at, (index, io)) = self.outbox.pop()?;
        let id = self.limits.admit(at)?;
        self.in_flight.insert(id, index);
        let Io { operation, target, address, bytes } = io;
        let source = self.running[index].host;
        Some(Arrival { at, request: Request { id, operation, source, target, address, bytes: Bytes::new(bytes) } })
    }
}

impl Source for Player {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        self.start_group(Time::ZERO);
        out.extend(self.pop());
    }

    fn after_arrival(&mut self, _taken: &Arrival) -> Option<Arrival> {
        self.pop()
    }

    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        if let Some(index) = self.in_flight.remove(&finished.id) {
            self.running[index].in_flight -= 1;
            self.fill(index, now);
            self.start_group(now);
        }
        self.pop()
    }

    fn awaits_an_end(&self, now: Time) -> bool {
        self.limits.is_open(now) && self.running.iter().any(|job| !job.is_done && now < job.deadline)
    }
}

impl Running {
    fn new(config: &PlayConfig, files: &[String], job: &Job, thread: u32, host: NodeId, seed: Seed) -> Running {
        let mut seed = seed.child(&format!("workload/fio/{}/{thread}", job.name));
        if let Some(own) = job.random_seed {
            seed = seed.child(&own.to_string());
        }
        let regions: Vec<Region> = config.regions(files, job, thread).into_iter().map(|(region, _)| region).collect();
        let capacity: u64 = config.regions(files, job, thread).iter().map(|(_, capacity)| *capacity).sum();
        let io_bytes = job.io_size.map(|amount| amount.of(capacity));
        Running {
            thread: Thread::new(job, &regions, io_bytes, seed),
            pace: None,
            host,
            job: job.clone(),
            seed,
            deadline: Time::MAX,
            last: Time::ZERO,
            in_flight: 0,
            is_done: false,
        }
    }

    fn start(&mut self, now: Time) {
        let (least, most) = self.job.start_delay;
        let delay = least + Span::ps(self.seed.stream("delay").below((most - least).as_ps().saturating_add(1).max(1)));
        let start = now.checked_add(delay).unwrap_or(Time::MAX);
        let runtime = self.job.runtime.map(|runtime| Span::ps(runtime.as_ps().saturating_add(self.job.ramp.as_ps())));
        self.deadline = runtime.and_then(|runtime| start.checked_add(runtime)).unwrap_or(Time::MAX);
        self.last = start;
        self.pace = Some(Pace::new(&self.job, start, self.seed));
    }

    /// The next I/O if the depth allows one, and when it starts.
    fn next(&mut self, now: Time) -> Option<(Time, Io)> {
        if self.is_done || self.in_flight == self.job.depth {
            return None;
        }
        let next = self.thread.next();
        let due = next.as_ref().and_then(|io| self.pace.as_mut().map(|pace| pace.due(io)));
        let at = due.unwrap_or(now).max(now).max(self.last);
        match next {
            Some(io) if at < self.deadline => {
                self.last = at;
                self.in_flight += 1;
                Some((at, io))
            }
            _ => {
                self.is_done = true;
                None
            }
        }
    }
}
