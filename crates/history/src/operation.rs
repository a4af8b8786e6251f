//! Operations, and what can be wrong with them.

use base::Time;
use std::fmt;

/// A register: for storage, a volume and a page of it.
pub type RegisterId = (u64, u64);

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Puts the value into the register. No two writes of a register share a value.
    Write,
    /// Finds the value in the register.
    Read,
}

/// One operation as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The caller's number for it, for messages.
    pub id: u64,
    /// On what.
    pub register: RegisterId,
    /// The operation.
    pub action: Action,
    /// What was written or read.
    pub value: u64,
    /// Time of the invocation.
    pub invoked: Time,
    /// Time at which the client was answered; `None` if it never was.
    pub responded: Option<Time>,
}

/// Reason why a register is not linearizable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Two writes share a value: an error of the recorder.
    WrittenTwice,
    /// A read returned what nobody wrote, or what had been overwritten before the last
    /// [`settle`](crate::History::settle).
    NeverWritten,
    /// A read ended before the write of its value began.
    FutureRead,
    /// Two values were each seen after the other: first and last sight of the one, then of the
    /// other.
    Interleaved,
    /// A value came and went while another was seen before and after: a stale read, a lost write,
    /// or old after new.
    Stale,
}

/// A register that is not linearizable, and operations that show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("register {register:?} is not linearizable ({why}):{}", Listed(operations))]
pub struct Violation {
    /// The register.
    pub register: RegisterId,
    /// The violated rule.
    pub why: Why,
    /// No order of these is right.
    pub operations: Vec<Operation>,
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Why::WrittenTwice => "a value was written twice",
            Why::NeverWritten => "a value was read that nobody wrote, or that was overwritten long before",
            Why::FutureRead => "a value was read before it was written",
            Why::Interleaved => "two values were each seen after the other",
            Why::Stale => "a value was seen again after another had replaced it",
        })
    }
}

struct Listed<'a>(&'a [Operation]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Operation { id, action, value, invoked, responded, .. } in self.0 {
            let verb = if *action == Action::Write { "wrote" } else { "read" };
            write!(formatter, " [operation {id} {verb} {value} from {} ps", invoked.as_ps())?;
            match responded {
                Some(responded) => write!(formatter, " to {} ps]", responded.as_ps())?,
                None => write!(formatter, ", never answered]")?,
            }
        }
        Ok(())
    }
}
