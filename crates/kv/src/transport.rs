//! What carries a client's operations to the JBOF and brings the answers.

use crate::frames::{Tally, Welcome};
use base::Time;
use bytes::Bytes;
use derive_more::Add;
use scalio::{Done, Extent, Reply, Request, RequestId, Verb};

/// A connection of one client to the JBOFs of a store. Reads, writes and compare-and-swaps of
/// memory, and reads of flash, are one-sided: what serves them knows nothing of the store. Requests
/// go to the helper, [`scalio::Server`].
pub trait Transport: Send {
    /// Posts verbs, which are executed in their order, and after those posted before. `request` is
    /// for the answer; without, nobody waits for one.
    fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>);
    /// Reads sectors of a device.
    fn read(&mut self, request: RequestId, device: u32, extent: Extent);
    /// Sends a request to the helper of a device. Requests arrive in their order.
    fn send(&mut self, now: Time, device: u32, request: Request<Bytes>);
    /// The next answer that is there.
    fn next(&mut self) -> Option<Arrival>;
    /// Takes up what threads and sockets have done, and what is due.
    fn turn(&mut self, now: Time);
    /// Sends what was posted, read and sent, as far as it waits.
    fn flush(&mut self) {}
    /// The loop ends in order.
    fn end(&mut self) {}
    /// Something has happened at its socket.
    fn on_event(&mut self) {}
    /// When it wants its next turn at the latest.
    fn due(&self, now: Time) -> Option<Time>;
    /// The numbers of the JBOF.
    fn tally(&self) -> Tally;
    /// What it has read of flash by a target of NVMe/TCP.
    fn flash(&self) -> FlashCounts {
        FlashCounts::default()
    }
}

/// Reads of flash by a target of NVMe/TCP, of one client or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Add)]
pub struct FlashCounts {
    /// Reads that it has answered.
    pub reads: u64,
    /// Reads for which the JBOF was asked instead.
    pub returned: u64,
    /// Clients that miss their target.
    pub away: u64,
}

/// An answer.
#[derive(Debug)]
pub enum Arrival {
    /// Of verbs, one result each.
    Verbs {
        /// The request.
        request: RequestId,
        /// The results.
        results: Vec<Done>,
    },
    /// Of a read of flash.
    Read {
        /// The request.
        request: RequestId,
        /// What is there; `None` where the device failed.
        bytes: Option<Vec<u8>>,
    },
    /// Of the helper.
    Reply(Reply<Bytes>),
    /// A JBOF, which knows nothing of what was asked before, and the loop's time when it said its
    /// own.
    Met(Welcome, Time),
    /// The JBOF is away: nothing that was asked has an answer.
    Lost,
    /// The JBOF's time.
    Time(Time),
}
