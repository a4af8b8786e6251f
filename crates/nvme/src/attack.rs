//! Attacks on an NVMe/TCP target: scripts of what a hostile host sends, and of how a conforming
//! target reacts. Pure: the caller moves the bytes and keeps time.
//!
//! The faults are those that were found in targets in use (CVE numbers stand with the scripts) and
//! those that the specification names. Every script ends with an ordinary host on a new connection:
//! a target that does not serve it any more has died.
//!
//! What a specification leaves open is no fault: an attack has its [`Leeway`], and one that a
//! target gives no chance to try is not applicable.
//!
//! [`scripts`] lists them; [`Player`] plays one: open and close what [`Player::next_action`] says,
//! carry bytes between [`Player::transmit`] and [`Player::receive`], until [`Player::verdict`].

mod player;
mod rules;
mod scripts;
mod verdict;

pub use player::{Action, Player};
pub use rules::Rule;
pub use scripts::scripts;
pub use verdict::{Leeway, Verdict, VerdictClass, VerdictKind};

use crate::identify::IdentifyController;
use crate::pdu::{Digests, FatalStatus};
use crate::{HostId, Nqn, Sqe};
use base::Span;

/// Properties of the target under attack.
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
    /// Capabilities of its controller.
    pub capacity: Capacity,
}

/// Capabilities of a controller, as it reports them. Scripts keep within them where they are to be
/// accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Data in a capsule of an I/O queue, bytes (IOCCSZ).
    pub in_capsule_bytes: u32,
    /// Longest transfer, bytes; `None` for any (MDTS).
    pub transfer_bytes_max: Option<u32>,
    /// Asynchronous event requests at a time (AERL).
    pub events_max: u16,
    /// Highest namespace (NN).
    pub namespaces: u32,
}

impl Capacity {
    /// Reads them from Identify; the smallest page is 4 KiB times two to the `page_min`.
    pub fn of(controller: &IdentifyController, page_min: u8) -> Self {
        let shift = 12 + u32::from(page_min) + u32::from(controller.transfer_max);
        Capacity {
            in_capsule_bytes: u32::try_from(controller.in_capsule_bytes()).unwrap_or(u32::MAX),
            transfer_bytes_max: (controller.transfer_max > 0 && shift < 32).then(|| 1 << shift),
            events_max: u16::from(controller.events_minus_one) + 1,
            namespaces: controller.namespaces,
        }
    }
}

impl Victim {
    /// Blocks that scripts use.
    pub const BLOCKS_MIN: u32 = 256;

    /// Blocks of a write that does not fit into a capsule, so that every target asks for its data;
    /// `None` where a namespace or MDTS leaves no such write.
    fn asked_blocks(&self) -> Option<u32> {
        let blocks = (self.capacity.in_capsule_bytes / self.block_bytes + 1).max(8);
        let fits = self.capacity.transfer_bytes_max.is_none_or(|most| blocks.saturating_mul(self.block_bytes) <= most);
        (fits && blocks <= Self::BLOCKS_MIN).then_some(blocks)
    }
}

/// How long a target may take for an answer before it hangs, where a lone command took
/// `round_trip`: fifty times as long, and 3 s at least, for a target does more for some commands
/// than for others; a minute at most.
pub fn step_timeout(round_trip: Span) -> Span {
    (round_trip * 50).clamp(Span::secs(3), Span::secs(60))
}

/// A connection of a script: a small number.
pub type LinkId = usize;

/// Connections that a script may have; the last is that of the ordinary host at the end.
pub const LINKS: usize = 4;

/// One step of a script. A step that waits for an answer ends when it arrives.
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
    /// From now on this host is used.
    Disguise(Nqn, HostId),
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
    /// As above, where it is the attack itself that the R2T has to come.
    MustReady(LinkId, u16),
    /// Brings the data of this command where an R2T asks for them, and goes on where an answer
    /// comes at once: both are ordinary.
    ServeIfAsked(LinkId, u16),
    /// Sends H2CData for the last R2T, changed.
    Data(LinkId, DataChange),
    /// Waits for the reaction of a conforming target.
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
        /// The controller.
        admin: LinkId,
        /// Which queue.
        queue: u16,
        /// Entries, less one.
        size_minus_one: u16,
    },
    /// Identify controller.
    Identify,
}

/// How H2CData differ from the last R2T.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataChange {
    /// Added to the tag.
    pub tag: u16,
    /// Added to the command's id.
    pub command: u16,
    /// Added to the offset.
    pub offset: u32,
    /// Bytes; `None` for all requested bytes.
    pub length: Option<u32>,
    /// Added to DATAL; the number of data bytes stays.
    pub claimed: u32,
    /// LAST is wrong.
    pub flips_last: bool,
    /// The data's digest is wrong.
    pub is_damaged: bool,
}

/// The reaction of a conforming target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Ends the connection, by a termination with one of these or without a word.
    Terminates(&'static [FatalStatus]),
    /// Answers the command with a failure.
    Fails(u16),
    /// Answers with a failure, or ends the connection.
    Refuses(u16),
    /// Answers with any status: the input is legal.
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
    /// The violation, and the targets that it broke.
    pub about: &'static str,
    /// The demand of a specification.
    pub rule: &'static Rule,
    /// What a target may do instead.
    pub leeway: Vec<Leeway>,
    /// Why it cannot be tried on this victim.
    pub barred: Option<&'static str>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Attack {
    /// The published faults that it stems from, as their numbers; empty where it stems from the
    /// rule alone.
    pub fn origins(&self) -> Vec<&'static str> {
        let words = self.about.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
        words.filter(|word| word.starts_with("CVE-")).collect()
    }

    /// What the host sends, a line per step.
    pub fn sends(&self) -> Vec<String> {
        self.steps.iter().map(Step::to_string).collect()
    }

    fn allows(mut self, kind: VerdictKind, why: &'static str) -> Self {
        self.leeway.push(Leeway { kind, why });
        self
    }

    fn under(mut self, rule: &'static Rule) -> Self {
        self.rule = rule;
        self
    }

    fn barred_unless(mut self, holds: bool, why: &'static str) -> Self {
        self.barred = self.barred.or((!holds).then_some(why));
        self
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Open(link) => write!(formatter, "{link}: opens a connection"),
            Step::Hello(link, digests) => write!(formatter, "{link}: ICReq, {digests:?}; ICResp has to come"),
            Step::Call(link, call) => write!(formatter, "{link}: {call:?}; success has to come"),
            Step::RefusedCall(link, call) => write!(formatter, "{link}: {call:?}; a refusal has to come"),
            Step::Disguise(host, _) => write!(formatter, "from now on as {host}"),
            Step::Send(link, bytes) => write!(formatter, "{link}: {} bytes: {}", bytes.len(), beginning(bytes)),
            Step::Trickle(link, bytes) => write!(formatter, "{link}: {} bytes, one at a time", bytes.len()),
            Step::Entry(link, entry, data) => {
                let (opcode, id, inside) = (entry.opcode, entry.id.get(), data.len());
                write!(formatter, "{link}: command {id:#06x}, opcode {opcode:02x}h, {inside} bytes in the capsule")
            }
            Step::Damaged(link, entry, _, damage) => {
                write!(formatter, "{link}: command {:#06x} with a wrong digest: {damage:?}", entry.id.get())
            }
            Step::AwaitReady(link, id) | Step::MustReady(link, id) => {
                write!(formatter, "{link}: the R2T of command {id:#06x} has to come")
            }
            Step::ServeIfAsked(link, id) => write!(formatter, "{link}: data of command {id:#06x}, if an R2T comes"),
            Step::Data(link, change) if *change == DataChange::default() => {
                write!(formatter, "{link}: H2CData for the last R2T")
            }
            Step::Data(link, change) => write!(formatter, "{link}: H2CData for the last R2T, changed: {change:?}"),
            Step::Expect(link, expectation) => write!(formatter, "{link}: a sound target: {expectation:?}"),
            Step::Drop(link) => write!(formatter, "{link}: is closed without a word"),
        }
    }
}

/// The first bytes in hexadecimal digits.
fn beginning(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ") + if bytes.len() > 24 { " ..." } else { "" }
}
