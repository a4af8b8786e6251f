//! Porcupine, from `tools/porcupine`: built by Go where there is one.

use history::{StoreHistory, StoreVerdict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Built once for all tests of a program.
static PORCUPINE: LazyLock<Option<Porcupine>> = LazyLock::new(Porcupine::build);

/// Our verdict, with which Porcupine agrees, where it is there and has one in a minute a key.
pub fn verdict(history: &StoreHistory, steps_max: u64) -> StoreVerdict {
    let ours = history.check(steps_max);
    let Some(theirs) = PORCUPINE.as_ref().map(|porcupine| porcupine.opinion(history)) else { return ours };
    let agrees = match &ours {
        StoreVerdict::Linearizable => theirs == Opinion::Linearizable,
        StoreVerdict::Illegal { key, .. } => theirs == Opinion::Illegal(key.to_string()),
        StoreVerdict::Unknown { .. } => true,
    };
    match theirs {
        Opinion::Unknown => eprintln!("Porcupine had no time for a verdict: ours is {ours:?}"),
        _ => assert!(agrees, "we say {ours:?}, and Porcupine {theirs:?}"),
    }
    ours
}

/// The program.
struct Porcupine(PathBuf);

/// What it says.
#[derive(Debug, PartialEq, Eq)]
enum Opinion {
    Linearizable,
    /// The key.
    Illegal(String),
    Unknown,
}

impl Porcupine {
    /// Builds it. `None`, with a line that says so: there is no Go. In CI that is a failure.
    fn build() -> Option<Porcupine> {
        let has_go =
            Command::new("go").arg("version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
        if !has_go {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI has no Go: tools/setup-test.sh installs it");
            eprintln!("SKIPPED: no Go, so Porcupine is not asked");
            return None;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/porcupine");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("porcupine");
        let built = Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(folder).status();
        assert!(built.expect("Go runs").success(), "Porcupine is not built: are its modules to be had?");
        Some(Porcupine(program))
    }

    /// Asks it.
    fn opinion(&self, history: &StoreHistory) -> Opinion {
        let mut child =
            Command::new(&self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Porcupine runs");
        let mut lines = Vec::new();
        history.write_json_lines(&mut lines).expect("a Vec takes everything");
        child.stdin.take().expect("its input is a pipe").write_all(&lines).expect("it reads its input to the end");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8(output.stdout).expect("it prints text");
        match output.status.code() {
            Some(0) => Opinion::Linearizable,
            Some(1) => Opinion::Illegal(said.trim().trim_start_matches("illegal: key ").trim_matches('"').to_owned()),
            Some(2) => Opinion::Unknown,
            other => panic!("Porcupine ended with {other:?}: {said}"),
        }
    }
}
