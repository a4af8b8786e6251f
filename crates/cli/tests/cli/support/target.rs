//! A running `rackweave target`, with what it says and logs.

use super::Home;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(60);

/// It is killed when the test is over.
pub struct Target {
    pub child: Child,
    pub address: String,
    /// What it said when it started.
    pub said: String,
    log: Arc<Mutex<String>>,
}

impl Target {
    /// Starts it with these options, and waits until it has said how to connect.
    pub fn start(home: &Home, options: &str) -> Target {
        Target::begin(home.command(&format!("target {options}")), "on a Linux host")
    }

    /// The same of a key-value store.
    pub fn store(home: &Home, options: &str) -> Target {
        Target::begin(home.command(&format!("kv {options}")), "with Redis's client")
    }

    /// The same of a JBOF at an address.
    pub fn jbof(home: &Home, options: &str) -> Target {
        Target::begin(home.command(&format!("jbof {options}")), "listening at")
    }

    /// The same of any role, in the place of a shell that has run `before`.
    pub fn after(before: &str, home: &Home, command: &str, last: &str) -> Target {
        let whole = home.command(command);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before} && exec \"$@\""), "sh"]).arg(whole.get_program());
        shell.args(whole.get_args()).current_dir(home.path("."));
        Target::begin(shell, last)
    }

    fn begin(mut command: Command, last: &str) -> Target {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let log = Arc::<Mutex<String>>::default();
        gather(child.stderr.take().expect("it is piped"), log.clone());
        let mut said = String::new();
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok) {
            said += &(line.clone() + "\n");
            if line.starts_with(last) {
                break;
            }
        }
        let address = said.lines().find_map(|line| {
            let (host, port) = line.strip_prefix("listening at ")?.split_once(", port ")?;
            Some(format!("{host}:{port}"))
        });
        let address = address.unwrap_or_else(|| panic!("it listens: {said}{}", log.lock().expect("nobody panics")));
        Target { child, address, said, log }
    }

    /// What it is called, as the line to connect says.
    pub fn name(&self) -> String {
        let name = self.said.lines().find_map(|line| Some(line.split_once(" -n ")?.1.split(' ').next()?.to_owned()));
        name.unwrap_or_else(|| panic!("{}", self.said))
    }

    /// All that it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("nobody panics").clone()
    }

    /// Waits until it has logged these words.
    pub fn logs(&self, words: &str) {
        let until = Instant::now() + TIMEOUT;
        while !self.log().contains(words) {
            assert!(Instant::now() < until, "{words} is not in\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGHUP; returns what it logs of it.
    pub fn reload(&self) -> String {
        let begin = self.log().len();
        let sent = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status();
        assert!(sent.expect("there is kill").success());
        let until = Instant::now() + TIMEOUT;
        loop {
            let said = self.log()[begin..].to_owned();
            // Up to the end of that line.
            let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if whole.contains("the file was read anew") || whole.contains("nothing was changed") {
                return said;
            }
            assert!(Instant::now() < until, "no answer to SIGHUP: {said}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM; returns how it ended.
    pub fn end(&mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.expect("there is kill").success());
        self.child.wait().expect("it runs")
    }

    /// SIGKILL: nothing in the process hears of it.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it runs");
    }

    /// Resident memory, bytes (proc(5)).
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gather(mut stderr: ChildStderr, log: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut room = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut room) {
            log.lock().expect("nobody panics").push_str(&String::from_utf8_lossy(&room[..count]));
        }
    });
}
