//! How many files a process may have open. Each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a role may open beside its connections.
const OTHERS: u64 = 256;

/// Raises the limit of open files as far as the system lets this process, which is far beyond what
/// most systems begin with, 1,024. Warns where `connections` need more, and returns whether they
/// have what they need.
pub fn allow_connections(connections: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let Some(maximum) = limit.maximum else { return true };
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, ..limit };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
    let has_room = connections.saturating_add(OTHERS) <= maximum;
    if !has_room {
        tracing::warn!(connections, files = maximum, "fewer connections than configured: see `ulimit -Hn`");
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
        let before = getrlimit(Resource::Nofile);
        let maximum = before.maximum.expect("systems have one");
        let lower = Rlimit { current: Some(maximum / 2), ..before };
        setrlimit(Resource::Nofile, lower).expect("it may be lowered");
        assert!(allow_connections(maximum - OTHERS));
        assert_eq!(getrlimit(Resource::Nofile).current, Some(maximum));
        assert!(!allow_connections(maximum - OTHERS + 1));
        setrlimit(Resource::Nofile, before).expect("it was so");
    }
}
