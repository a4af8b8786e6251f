//! Verdicts on attacks.

/// Something that a specification lets a target do where others refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leeway {
    /// The target's reaction.
    pub kind: VerdictKind,
    /// Why it may.
    pub why: &'static str,
}

/// Kinds of outcomes that are a fault unless a [`Leeway`] allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// [`Verdict::Accepted`].
    Accepted,
    /// [`Verdict::RefusedWrongly`].
    RefusedWrongly,
    /// [`Verdict::Hung`].
    Hung,
}

/// A verdict, without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictClass {
    /// The target did what most conforming targets do.
    Sound,
    /// It did something else that a specification allows.
    Allowed,
    /// It gives no chance to try.
    NotApplicable,
    /// It broke a rule.
    Fault,
    /// It serves nobody any more.
    Died,
    /// Nothing is known.
    NotPlayed,
}

impl VerdictClass {
    /// Every one, best first.
    pub const ALL: [VerdictClass; 6] = [
        VerdictClass::Sound,
        VerdictClass::Allowed,
        VerdictClass::NotApplicable,
        VerdictClass::Fault,
        VerdictClass::Died,
        VerdictClass::NotPlayed,
    ];

    /// The name in reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            VerdictClass::Sound => "sound",
            VerdictClass::Allowed => "allowed",
            VerdictClass::NotApplicable => "not applicable",
            VerdictClass::Fault => "fault",
            VerdictClass::Died => "died",
            VerdictClass::NotPlayed => "not played",
        }
    }

    /// Whether the target is to blame for nothing.
    pub fn is_good(self) -> bool {
        matches!(self, VerdictClass::Sound | VerdictClass::Allowed | VerdictClass::NotApplicable)
    }
}

/// The outcome of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target reacted as a conforming target does.
    Refused,
    /// The target reacted in a permitted way: which, and why it is permitted.
    Allowed(String),
    /// The target gives no chance to try: why.
    NotApplicable(String),
    /// The target accepted what it must refuse.
    Accepted(String),
    /// The target refused legal input, or in an illegal way.
    RefusedWrongly(String),
    /// The target did nothing in time.
    Hung(String),
    /// The target no longer serves an ordinary host.
    Died(String),
    /// An ordinary step before the attack did not succeed: nothing is known.
    NotPlayed(String),
}

impl Verdict {
    /// The kind of the verdict.
    pub fn class(&self) -> VerdictClass {
        match self {
            Verdict::Refused => VerdictClass::Sound,
            Verdict::Allowed(_) => VerdictClass::Allowed,
            Verdict::NotApplicable(_) => VerdictClass::NotApplicable,
            Verdict::Accepted(_) | Verdict::RefusedWrongly(_) | Verdict::Hung(_) => VerdictClass::Fault,
            Verdict::Died(_) => VerdictClass::Died,
            Verdict::NotPlayed(_) => VerdictClass::NotPlayed,
        }
    }

    /// As it is where a target may do some things that are faults elsewhere.
    pub(super) fn within(self, leeway: &[Leeway]) -> Self {
        let kind = match &self {
            Verdict::Accepted(_) => VerdictKind::Accepted,
            Verdict::RefusedWrongly(_) => VerdictKind::RefusedWrongly,
            Verdict::Hung(_) => VerdictKind::Hung,
            _ => return self,
        };
        match leeway.iter().find(|leeway| leeway.kind == kind) {
            Some(leeway) => Verdict::Allowed(format!("{} ({self})", leeway.why)),
            None => self,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Refused => formatter.write_str("sound"),
            Verdict::Allowed(what) => write!(formatter, "allowed: {what}"),
            Verdict::NotApplicable(why) => write!(formatter, "not applicable: {why}"),
            Verdict::Accepted(what) => write!(formatter, "accepted wrongly: {what}"),
            Verdict::RefusedWrongly(what) => write!(formatter, "refused wrongly: {what}"),
            Verdict::Hung(what) => write!(formatter, "hung: {what}"),
            Verdict::Died(what) => write!(formatter, "died: {what}"),
            Verdict::NotPlayed(what) => write!(formatter, "not played: {what}"),
        }
    }
}
