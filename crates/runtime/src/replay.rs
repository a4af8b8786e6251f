//! What comes of a replay: decisions of a role, live and again, compared one by one.

use base::Time;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The first decision that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The input's place in the journal.
    pub input: u64,
    /// Its time by the role's clock, in nanoseconds.
    pub at_ns: u64,
    /// What the role did then.
    pub live: String,
    /// What it does now.
    pub twin: String,
}

/// What came of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replayed {
    /// The role.
    pub name: String,
    /// Inputs: what came to the role, and wake-ups.
    pub inputs: u64,
    /// Decisions: what the role did.
    pub decisions: u64,
    /// Inputs after which something else was done. After the first, more are no surprise.
    pub differences: u64,
    /// The first of them.
    pub first: Option<Difference>,
    /// Whether the journal breaks off within an entry.
    pub is_cut: bool,
    /// The role's counters at its end, where it ended in order and they differ: live, and here.
    pub counters: Vec<(String, u64, u64)>,
    /// Its counters at the end of the replay.
    #[serde(skip)]
    pub numbers: BTreeMap<String, u64>,
    /// Whether it ended in order.
    pub is_whole: bool,
    /// When its last input came, by the clock of the rack.
    #[serde(skip)]
    pub end: Time,
}

impl Replayed {
    /// Of a role of which nothing was seen.
    pub fn of(name: String) -> Replayed {
        Replayed { name, ..Replayed::default() }
    }

    /// Whether the role decided otherwise than live.
    pub fn differs(&self) -> bool {
        self.differences > 0 || !self.counters.is_empty()
    }

    /// Compares what was done about the last input, which came at `at`, and forgets it.
    pub fn compare<T: PartialEq + Debug>(&mut self, at: Time, live: &mut Vec<T>, twin: &mut Vec<T>) {
        self.decisions += live.len() as u64;
        if twin != live {
            self.differences += 1;
            let place = twin.iter().zip(&*live).take_while(|(twin, live)| twin == live).count();
            let told = |entries: &[T]| entries.get(place).map_or("nothing".into(), |entry| format!("{entry:?}"));
            let (input, at_ns) = (self.inputs, at.as_ps() / 1_000);
            self.first.get_or_insert_with(|| Difference { input, at_ns, live: told(live), twin: told(twin) });
        }
        twin.clear();
        live.clear();
    }

    /// Compares the last input's, after which the journal has no more. A role that was killed may
    /// have done more than its journal says.
    pub fn compare_last<T: PartialEq + Debug>(&mut self, at: Time, live: &mut Vec<T>, twin: &mut Vec<T>) {
        if !self.is_whole && twin.starts_with(live) {
            twin.truncate(live.len());
        }
        self.compare(at, live, twin);
    }

    /// The role has ended in order with these counters, and has others `here`.
    pub fn ended(&mut self, live: BTreeMap<String, u64>, here: &BTreeMap<String, u64>) {
        self.is_whole = true;
        let differ = live.into_iter().filter_map(|(name, live)| {
            let here = here.get(&name).copied().unwrap_or_default();
            (here != live).then_some((name, live, here))
        });
        self.counters = differ.collect();
    }
}
