//! The bytes behind the values of a program.
//!
//! The program is the authority: what it still holds is kept, and all else is dropped once the
//! table has doubled. So a value costs two looks in its life, however long it lives.

use blox::Value;
use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

/// Tables below this length are never swept.
const SWEPT_MIN: usize = 4_096;

/// Pages by their value. `Value(0)` is a page that was never written: zeros. So are the bytes of
/// [`Value::ROTTEN`], of which packets speak and which nobody reads.
pub struct Pages {
    pages: FxHashMap<Value, Bytes>,
    zeros: Bytes,
    sweep_at: usize,
}

impl Pages {
    /// An empty table.
    pub fn new() -> Pages {
        let zeros = Bytes::from(vec![0; blox::PAGE_BYTES as usize]);
        Pages { pages: FxHashMap::default(), zeros, sweep_at: SWEPT_MIN }
    }

    /// The bytes of a value. They stay those of the value that came first: it names one write.
    /// Returns whether it is the first.
    pub fn put(&mut self, value: Value, data: &[u8]) -> bool {
        if is_bare(value) || self.pages.contains_key(&value) {
            return false;
        }
        self.pages.insert(value, Bytes::copy_from_slice(data));
        true
    }

    /// The bytes of a value turned out not to be there.
    pub fn take_back(&mut self, value: Value) {
        self.pages.remove(&value);
    }

    /// The bytes of a value, if they are here.
    pub fn get(&self, value: Value) -> Option<Bytes> {
        if is_bare(value) { Some(self.zeros.clone()) } else { self.pages.get(&value).cloned() }
    }

    /// Whether a sweep is due.
    pub fn is_long(&self) -> bool {
        self.pages.len() >= self.sweep_at
    }

    /// Drops all but `held`.
    pub fn sweep(&mut self, held: impl Iterator<Item = Value>) {
        let held: FxHashSet<Value> = held.collect();
        self.pages.retain(|value, _| held.contains(value));
        self.sweep_at = (self.pages.len() * 2).max(SWEPT_MIN);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.len()
    }
}

fn is_bare(value: Value) -> bool {
    matches!(value, Value(0) | Value::ROTTEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_and_the_rest_goes_when_the_table_has_doubled() {
        let mut pages = Pages::new();
        for value in 1..=SWEPT_MIN as u64 {
            pages.put(Value(value), &[value as u8; 4_096]);
        }
        assert!(pages.is_long());
        pages.sweep([Value(7), Value(99_999)].into_iter());
        assert_eq!((pages.len(), pages.is_long()), (1, false));
        assert_eq!(pages.get(Value(7)).as_deref(), Some(&[7; 4_096][..]));
        assert_eq!(pages.get(Value(8)), None);
        assert_eq!(pages.get(Value(0)).as_deref(), Some(&[0; 4_096][..]), "never written");
    }
}
