//! A range of seeds, as it is written on the command line.

use std::str::FromStr;

/// The greatest seed that an experiment file can hold.
pub const SEED_MAX: u64 = i64::MAX as u64;
/// The most seeds at a time: a slip of the finger is not to start a million runs.
const COUNT_MAX: u64 = 10_000;

/// At least one seed, none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// Some seeds, which need not follow each other.
    ///
    /// # Errors
    /// When there is none, one is there twice, or a file cannot hold one.
    pub fn of(mut seeds: Vec<u64>) -> Result<Seeds, SeedsError> {
        let text = format!("{seeds:?}");
        seeds.sort_unstable();
        let is_twice = seeds.windows(2).any(|pair| pair[0] == pair[1]);
        match seeds.last() {
            None => Err(SeedsError::Empty(text)),
            Some(last) if *last > SEED_MAX || is_twice => Err(SeedsError::List(text)),
            Some(_) if seeds.len() as u64 > COUNT_MAX => Err(SeedsError::Many(text)),
            Some(_) => Ok(Seeds(seeds)),
        }
    }

    /// All of them, rising.
    pub fn list(&self) -> &[u64] {
        &self.0
    }
}

/// Why a text is no range of seeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeedsError {
    /// Not of the form.
    #[error("`{0}` is no range of seeds; allowed are A..B (A to B-1) and A..=B (A to B), with 0 to {SEED_MAX}")]
    Form(String),
    /// One twice, or too great.
    #[error("{0} is no list of seeds: each is there once, from 0 to {SEED_MAX}")]
    List(String),
    /// No seed in it.
    #[error("`{0}` has no seed in it; A..B ends before B, A..=B with it")]
    Empty(String),
    /// Too many.
    #[error("`{0}` has more than {COUNT_MAX} seeds")]
    Many(String),
}

impl FromStr for Seeds {
    type Err = SeedsError;
    fn from_str(text: &str) -> Result<Seeds, SeedsError> {
        let form = || SeedsError::Form(text.into());
        let number = |text: &str| text.parse().ok().filter(|seed| *seed <= SEED_MAX).ok_or_else(form);
        let (first, end) = text.split_once("..").ok_or_else(form)?;
        let (first, end): (u64, u64) = match end.strip_prefix('=') {
            Some(last) => (number(first)?, number(last)? + 1),
            None => (number(first)?, number(end)?),
        };
        match end.saturating_sub(first) {
            0 => Err(SeedsError::Empty(text.into())),
            count if count > COUNT_MAX => Err(SeedsError::Many(text.into())),
            _ => Ok(Seeds((first..end).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_as_in_rust() {
        assert_eq!("1..4".parse(), Ok(Seeds(vec![1, 2, 3])));
        assert_eq!("1..=4".parse(), Ok(Seeds(vec![1, 2, 3, 4])));
        assert_eq!("7..=7".parse(), Ok(Seeds(vec![7])));
        assert_eq!(format!("{SEED_MAX}..={SEED_MAX}").parse(), Ok(Seeds(vec![SEED_MAX])));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let refused = |text: &str| text.parse::<Seeds>().unwrap_err();
        for text in ["", "3", "1-3", "a..b", "-1..2", "1..", "0..9223372036854775808"] {
            assert_eq!(refused(text), SeedsError::Form(text.into()));
        }
        assert_eq!(refused("4..4"), SeedsError::Empty("4..4".into()));
        assert_eq!(refused("4..=3"), SeedsError::Empty("4..=3".into()));
        assert_eq!(refused("0..10001"), SeedsError::Many("0..10001".into()));
    }
}
