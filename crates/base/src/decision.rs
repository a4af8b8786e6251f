//! Decisions that a policy of a user's own may take in place of a design's.

use std::fmt::Debug;

/// What is known when something has to be decided. It is a copy: a policy changes nothing.
pub trait Decision: Copy + Debug + Send + 'static {
    /// What a policy answers.
    type Answer: Copy + Debug + Send;
    /// The decision's name, in options and messages.
    const NAME: &'static str;
    /// The answer in place of one that failed, until the run ends.
    const NEUTRAL: Self::Answer;
}

/// A policy: takes decisions of one kind. Equal input must give equal output, or runs do not
/// repeat.
pub trait Decide<D: Decision>: Debug + Send + Sync {
    /// Decides for this situation.
    fn decide(&self, situation: &D) -> D::Answer;
}
