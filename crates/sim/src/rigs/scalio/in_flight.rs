//! What is on its way.

use super::asks::{Owner, Sent, Submitted};
use super::bare::BareRead;
use super::inputs::{ToClient, ToServer};
use super::remote::{RemoteOperation, Touched};
use super::server_hardware::Worked;
use base::Time;
use hardware::ssd::Done;
use scalio::baseline::ditto::PoolRequest;
use scalio::{FlashAnswer, FlashOperation, MemoryOperation, RequestId, Token};

/// Something on its way.
pub enum InFlight {
    /// An operation on the index, at the box's adapter.
    Verb(RemoteOperation),
    /// The same at the logic of EDM, at its client.
    Submission(RemoteOperation),
    /// Its answer, at its client, on its way since then.
    Answer { owner: Owner, client: u32, request: RequestId, touched: Touched, since: Time },
    /// An operation on Ditto's pool, likewise.
    PoolVerb { owner: Owner, client: u32, request: Option<RequestId>, operation: PoolRequest<Token>, since: Time },
    /// An offloaded read, likewise.
    Offload {
        owner: Owner,
        client: u32,
        request: RequestId,
        device: u32,
        operation: FlashOperation<Token>,
        since: Time,
    },
    /// The same when its drive is done.
    Offloaded {
        owner: Owner,
        client: u32,
        request: RequestId,
        device: u32,
        operation: FlashOperation<Token>,
        /// In the adapter's target, from when to when.
        submitted: Worked,
        done: Done,
        life: u32,
    },
    /// A message to a server, at the box's adapter, on its way since then.
    Message { owner: Owner, client: u32, device: u32, input: ToServer, since: Time },
    /// The same when a core has received it, which it was `seen` for.
    Received { owner: Owner, device: u32, input: ToServer, life: u32, since: Time, seen: Time, worked: Worked },
    /// A client asks for a chunk of the pool, at the box's adapter.
    AskChunk { client: u32 },
    /// A server's I/O, when its drive is done.
    Io { owner: Owner, device: u32, request: RequestId, work: IoWork, submitted: Submitted, done: Done, life: u32 },
    /// The same when a core has completed it, for which it waited since then.
    IoDone {
        owner: Owner,
        device: u32,
        request: RequestId,
        answer: FlashAnswer<Token>,
        life: u32,
        since: Time,
        worked: Worked,
    },
    /// A server's operations on the index, when a core does them.
    Local { device: u32, operations: Vec<(RequestId, u32, MemoryOperation<Token>)>, life: u32 },
    /// Something for a client's program.
    ToClient { owner: Owner, client: u32, input: ToClient, sent: Sent },
    /// A read of a drive without a store.
    Bare(BareRead),
}

/// What a server's I/O is.
pub enum IoWork {
    /// An operation.
    Operation(FlashOperation<Token>),
    /// LEED's compaction writes several things at once.
    Run(Vec<(u64, scalio::Content<Token>)>),
}
