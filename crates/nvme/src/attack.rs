//! Attacks on an NVMe/TCP target: named scripts of what a hostile host sends, and what a sound target does about it. Pure: whoever plays them
//! moves the bytes and keeps time.
//!
//! The faults are those that were found in targets in use (CVE numbers stand with the scripts) and those that the specification names. Every
//! script ends with an ordinary host on a new connection: a target that does not serve it any more has died.
//!
//! [`scripts`] lists them; [`Player`] plays one: open and close what [`Player::next_action`] says, carry bytes between
//! [`Player::transmit`] and [`Player::receive`], until [`Player::verdict`].

mod player;
mod scripts;

pub use player::{Action, Player};
pub use scripts::scripts;

use crate::pdu::{Digests, FatalStatus};
use crate::{HostId, Nqn, Sqe};

/// What an attacker has to know of its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The subsystem to connect to.
    pub subsystem: Nqn,
    /// A host that may.
    pub host: Nqn,
    /// Its identifier.
    pub host_id: HostId,
    /// A namespace of at least 256 blocks. Its first blocks are overwritten.
    pub namespace: u32,
    /// Bytes of its blocks.
    pub block_bytes: u32,
}

/// A connection of a script: a small number.
pub type LinkId = usize;

/// Connections that a script may have; the last is that of the ordinary host at the end.
pub const LINKS: usize = 4;

/// One step of a script. Steps are taken one after the other; those that wait for an answer go on when it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Opens a connection.
    Open(LinkId),
    /// Sends an ordinary ICReq with these digests, waits for ICResp.
    Hello(LinkId, Digests),
    /// Sends an ordinary command, waits for its success.
    Call(LinkId, Call),
    /// As above, and waits for its failure or the end of the connection.
    RefusedCall(LinkId, Call),
    /// From now on this host identifier is used.
    Disguise(HostId),
    /// Sends bytes as they are.
    Send(LinkId, Vec<u8>),
    /// Sends bytes one at a time.
    Trickle(LinkId, Vec<u8>),
    /// Sends an entry in a sound capsule with these data.
    Entry(LinkId, Box<Sqe>, Vec<u8>),
    /// As above, with the last byte of the header's digest wrong, or of the data's.
    Damaged(LinkId, Box<Sqe>, Vec<u8>, Damage),
    /// Waits for an R2T of this command.
    AwaitReady(LinkId, u16),
    /// Sends H2CData for the last R2T, changed.
    Data(LinkId, DataChange),
    /// Waits for what a sound target does.
    Expect(LinkId, Expectation),
    /// Closes a connection without a word.
    Drop(LinkId),
}

/// Which digest is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// That of the header.
    Header,
    /// That of the data.
    Data,
}

/// An ordinary command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Connect to the admin queue.
    ConnectAdmin,
    /// Sets CC.EN, waits for CSTS.RDY.
    Enable,
    /// Connect to an I/O queue of the controller that this link has.
    ConnectIo {
        /// Whose controller.
        admin: LinkId,
        /// Which queue.
        queue: u16,
        /// Entries, less one.
        size_minus_one: u16,
    },
    /// Identify controller.
    Identify,
}

/// How H2CData differ from what the last R2T asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataChange {
    /// Added to the tag.
    pub tag: u16,
    /// Added to the command's id.
    pub command: u16,
    /// Added to the offset.
    pub offset: u32,
    /// Bytes; `None` for all that were asked for.
    pub length: Option<u32>,
    /// Added to DATAL, whose data stay as many as they are.
    pub claimed: u32,
    /// LAST is not what it should be.
    pub flips_last: bool,
    /// The data's digest is wrong.
    pub is_damaged: bool,
}

/// What a sound target does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Ends the connection, by a termination with one of these or without a word.
    Terminates(&'static [FatalStatus]),
    /// Answers the command with a failure.
    Fails(u16),
    /// Answers with a failure, or ends the connection.
    Refuses(u16),
    /// Answers, whatever it says: the input is legal.
    Answers(u16),
    /// Answers with success.
    Succeeds(u16),
    /// Answers one of these at least with a failure, or ends the connection.
    RefusesOneOf(&'static [u16]),
    /// Answers Connect with a failure, or ends the connection. The Connect of this id.
    RefusesConnect(u16),
}

/// A script.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// Its name: words joined by hyphens.
    pub name: &'static str,
    /// What is wrong in it, and where targets fell.
    pub about: &'static str,
    /// What happens.
    pub steps: Vec<Step>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target did what a sound target does.
    Refused,
    /// The target took what it must not take.
    Accepted(String),
    /// The target refused what is legal.
    RefusedWrongly(String),
    /// The target did nothing in time.
    Hung(String),
    /// The target does not serve an ordinary host any more.
    Died(String),
    /// An ordinary step before the attack did not succeed: nothing is known.
    NotPlayed(String),
}

impl Verdict {
    /// Whether the target is sound in this.
    pub fn is_sound(&self) -> bool {
        *self == Verdict::Refused
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Refused => formatter.write_str("refused properly"),
            Verdict::Accepted(what) => write!(formatter, "accepted wrongly: {what}"),
            Verdict::RefusedWrongly(what) => write!(formatter, "refused wrongly: {what}"),
            Verdict::Hung(what) => write!(formatter, "hung: {what}"),
            Verdict::Died(what) => write!(formatter, "died: {what}"),
            Verdict::NotPlayed(what) => write!(formatter, "not played: {what}"),
        }
    }
}
