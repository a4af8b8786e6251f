//! Algorithm 1 of the paper: the destination of reads while a replica collects, and grants of
//! collection.
//!
//! Two things differ, both because of the tables' restrictions (see [`tables`](super::tables)).
//!
//! * **The race.** In the paper a soft request reads its replica's bit in the destination table on
//!   its first pass and sets its own there on its second. Two replicas' requests can both read
//!   before either has set, and both be accepted. Here a request first sets its own bit in the
//!   destination table, and then reads its replica's in the same array, on its second pass: the
//!   second reader sees the first. An accepted request is recirculated once, as in the paper; a
//!   delayed one twice, to clear its bit again.
//! * **Order.** Clearing has to change both arrays for one reason that only one of them knows, so
//!   it takes two passes, also for `finish`: the first locks the entry. Requests for a locked entry
//!   recirculate until it is free. Those of one vSSD are thus served one after another, and a late
//!   pass of one cannot undo the next.
//!
//! Two requests that see each other would both be delayed, repeatedly if both servers check at the
//! same moments. So the lower number waits a few rounds for the higher to withdraw.
//!
//! More than two replicas in a rack form a ring in the replica table; a request visits one replica
//! per pass.

use super::DropReason;
use super::tables::{Phase, Register, Tables};
use crate::VssdId;
use crate::own::{Candidate, ReadPath};
use crate::packet::{CollectionNote, Packet, REPLICAS_MAX};
use base::NodeId;

/// How far a packet has come that needs several passes. It travels with the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// Nothing has been done for it.
    Arrived,
    /// A soft request that holds its entry in [`Phase::Asking`].
    Checking {
        /// The replica to check.
        at: VssdId,
        /// How many replicas may follow: a table of a broken ring must not hold a packet forever.
        hops: u8,
        /// How often it may still wait for a higher number to withdraw.
        waits: u8,
    },
    /// Holds its entry in [`Phase::Releasing`], to clear both bits.
    Clearing,
    /// Holds its entry in [`Phase::Releasing`], to replace it; what its phase was, and becomes
    /// again if it stays the same vSSD.
    Replacing(Phase),
}

/// What a pass has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The packet is forwarded to its address.
    Forward,
    /// A read is redirected to another replica.
    Redirect {
        /// The replica's server.
        server: NodeId,
        /// The replica.
        replica: VssdId,
    },
    /// The packet returns to its sender with this note.
    Answer(CollectionNote),
    /// One more pass.
    Again(Progress),
    /// The packet has done its work.
    Consumed,
    /// No table was changed.
    Refused(DropReason),
}

/// Replicas of a vSSD beside itself.
const HOPS: u8 = REPLICAS_MAX as u8 - 1;

/// A pair needs two rounds: the higher number checks one pass after it has set its bit and clears
/// it one pass later. Each further replica adds the same.
const WAITS: u8 = 2 * HOPS;

/// One pass of a `gc_op`.
pub(super) fn collection(tables: &mut Tables, packet: &Packet, note: CollectionNote, progress: Progress) -> Verdict {
    match progress {
        Progress::Checking { at, hops, waits } => check(tables, packet.vssd, at, hops, waits),
        Progress::Clearing => clear(tables, packet.vssd, note),
        Progress::Arrived | Progress::Replacing(_) => begin(tables, packet, note),
    }
}

fn begin(tables: &mut Tables, packet: &Packet, note: CollectionNote) -> Verdict {
    if !tables.holds(packet.vssd) {
        return Verdict::Refused(DropReason::OutsideTables);
    }
    match note {
        CollectionNote::Soft => ask(tables, packet),
        CollectionNote::Regular | CollectionNote::Background => grant(tables, packet),
        CollectionNote::Finish => finish(tables, packet),
        CollectionNote::Accept | CollectionNote::Delay => Verdict::Refused(DropReason::NotARequest),
    }
}

/// Only a vSSD's own server speaks for it. Gives its replica.
fn admit(replica: Register<u32>, server: Register<u32>, packet: &Packet) -> Result<VssdId, DropReason> {
    let replica = replica.replica_of(packet.vssd).ok_or(DropReason::UnknownVssd)?;
    if server.server_of(packet.vssd) == Some(packet.source) { Ok(replica) } else { Err(DropReason::NotItsServer) }
}

fn ask(tables: &mut Tables, packet: &Packet) -> Verdict {
    let pass = tables.pass();
    let replica = match admit(pass.replica, pass.server, packet) {
        Ok(replica) => replica,
        Err(reason) => return Verdict::Refused(reason),
    };
    // In every phase but idle this bit is set already, or about to be overwritten by the packet
    // that holds the lock.
    pass.collecting.write(packet.vssd, true);
    let alone = replica == packet.vssd;
    let to = if alone { Phase::Granted } else { Phase::Asking };
    match pass.phase.step(packet.vssd, &[Phase::Idle], to) {
        Phase::Idle if !alone => Verdict::Again(Progress::Checking { at: replica, hops: HOPS, waits: WAITS }),
        // A repeated request, whose first answer was lost, finds its own grant.
        Phase::Idle | Phase::Granted => Verdict::Answer(CollectionNote::Accept),
        Phase::Asking | Phase::Releasing => Verdict::Again(Progress::Arrived),
    }
}

fn grant(tables: &mut Tables, packet: &Packet) -> Verdict {
    let pass = tables.pass();
    if let Err(reason) = admit(pass.replica, pass.server, packet) {
        return Verdict::Refused(reason);
    }
    pass.collecting.write(packet.vssd, true);
    match pass.phase.step(packet.vssd, &[Phase::Idle], Phase::Granted) {
        Phase::Idle | Phase::Granted => Verdict::Answer(CollectionNote::Accept),
        Phase::Asking | Phase::Releasing => Verdict::Again(Progress::Arrived),
    }
}

fn finish(tables: &mut Tables, packet: &Packet) -> Verdict {
    let pass = tables.pass();
    if let Err(reason) = admit(pass.replica, pass.server, packet) {
        return Verdict::Refused(reason);
    }
    match pass.phase.step(packet.vssd, &[Phase::Granted], Phase::Releasing) {
        Phase::Idle => Verdict::Answer(CollectionNote::Finish),
        Phase::Granted => Verdict::Again(Progress::Clearing),
        Phase::Asking | Phase::Releasing => Verdict::Again(Progress::Arrived),
    }
}

/// Checks one replica for a request that holds its entry in asking, and advances the request.
fn check(tables: &mut Tables, vssd: VssdId, at: VssdId, hops: u8, waits: u8) -> Verdict {
    let pass = tables.pass();
    let next = pass.replica.replica_of(at).filter(|next| *next != vssd && hops > 1);
    let is_free = !pass.collecting.read(at);
    match (is_free, next) {
        (true, None) => {
            end_asking(pass.phase, vssd, Phase::Granted);
            Verdict::Answer(CollectionNote::Accept)
        }
        (true, Some(next)) => Verdict::Again(Progress::Checking { at: next, hops: hops - 1, waits }),
        (false, _) if waits > 0 && vssd < at => Verdict::Again(Progress::Checking { at, hops, waits: waits - 1 }),
        (false, _) => {
            end_asking(pass.phase, vssd, Phase::Releasing);
            Verdict::Again(Progress::Clearing)
        }
    }
}

fn end_asking(phase: Register<Phase>, vssd: VssdId, to: Phase) {
    let held = phase.step(vssd, &[Phase::Asking], to);
    debug_assert_eq!(held, Phase::Asking, "only the packet that asks ends the asking");
}

fn clear(tables: &mut Tables, vssd: VssdId, note: CollectionNote) -> Verdict {
    let pass = tables.pass();
    pass.collecting.write(vssd, false);
    pass.phase.write(vssd, Phase::Idle);
    Verdict::Answer(if note == CollectionNote::Finish { CollectionNote::Finish } else { CollectionNote::Delay })
}

/// One pass of `create_vssd` (`server` and replica given) or `del_vssd`.
///
/// A vSSD that is created again at the same server keeps its GC status: the control plane announces
/// a new replica this way, which must not hide that the vSSD collects.
pub(super) fn replace(tables: &mut Tables, vssd: VssdId, row: Option<Row>, progress: Progress) -> Verdict {
    let is_inside = tables.holds(vssd) && row.is_none_or(|row| tables.holds(row.replica));
    match progress {
        _ if !is_inside => Verdict::Refused(DropReason::OutsideTables),
        Progress::Replacing(phase) => write_row(tables, vssd, row, phase),
        _ => lock_row(tables, vssd, row),
    }
}

/// Content of a created vSSD's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its server.
    pub server: NodeId,
    /// Its replica in the rack, or itself.
    pub replica: VssdId,
}

fn lock_row(tables: &mut Tables, vssd: VssdId, row: Option<Row>) -> Verdict {
    let pass = tables.pass();
    let server = pass.server.server_of(vssd);
    let stays = server.is_some() && server == row.map(|row| row.server);
    match pass.phase.step(vssd, &[Phase::Idle, Phase::Granted], Phase::Releasing) {
        Phase::Asking | Phase::Releasing => Verdict::Again(Progress::Arrived),
        phase if stays => Verdict::Again(Progress::Replacing(phase)),
        _ => Verdict::Again(Progress::Replacing(Phase::Idle)),
    }
}

fn write_row(tables: &mut Tables, vssd: VssdId, row: Option<Row>, phase: Phase) -> Verdict {
    let pass = tables.pass();
    pass.replica.set(vssd, row.map(|row| row.replica.0));
    pass.server.set(vssd, row.map(|row| row.server.0));
    pass.collecting.write(vssd, phase == Phase::Granted);
    pass.phase.write(vssd, phase);
    Verdict::Consumed
}

/// Whether a read is redirected, by the paper.
///
/// It is while its vSSD collects and the replica does not (Lines 4 to 9). Regardless of
/// collection, it is also redirected when its server is unreachable and the replica's is reachable
/// (3.7: "On link failure, it redirects requests to replicas in the rack").
pub(super) fn redirects(path: &ReadPath) -> bool {
    let ReadPath { own, replica, .. } = path;
    replica.is_reachable && (own.is_collecting && !replica.is_collecting || !own.is_reachable)
}

/// A read, in its only pass: `decide` says whether the replica serves it. `is_up` and
/// `waiting_bytes` know of the link to a server, which the hardware keeps beside the tables.
pub(super) fn read(
    tables: &mut Tables,
    packet: &Packet,
    is_up: impl Fn(NodeId) -> bool,
    waiting_bytes: impl Fn(NodeId) -> u64,
    decide: impl FnOnce(ReadPath) -> bool,
) -> Verdict {
    if !tables.holds(packet.vssd) {
        return Verdict::Forward;
    }
    let pass = tables.pass();
    let Some(replica) = pass.replica.replica_of(packet.vssd) else {
        return Verdict::Forward;
    };
    let Some(server) = pass.server.server_of(replica) else {
        return Verdict::Forward;
    };
    let candidate = |vssd, server, is_collecting| Candidate {
        vssd,
        server,
        is_collecting,
        is_reachable: is_up(server),
        waiting_bytes: waiting_bytes(server),
    };
    let replica = candidate(replica, server, pass.collecting.read(replica));
    let own = candidate(packet.vssd, packet.target, pass.phase.read(packet.vssd) == Phase::Granted);
    match decide(ReadPath { own, replica, order: 0 }) {
        true => Verdict::Redirect { server, replica: replica.vssd },
        false => Verdict::Forward,
    }
}
