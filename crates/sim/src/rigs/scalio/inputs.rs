//! Inputs of the programs, whatever the design.

use scalio::baseline::{ditto, leed};
use scalio::{ClientIn, FlashAnswer, MemoryAnswer, Operation, Reply, Request, RequestId, ServerIn, Token};

/// Something for a client's program.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// Its application wants something.
    Issue { ticket: u64, operation: Operation<Token> },
    /// An operation on the index is done.
    Memory { request: RequestId, answer: MemoryAnswer<Token> },
    /// An offloaded read is done.
    Flash { request: RequestId, answer: FlashAnswer<Token> },
    /// Scalio's server answers.
    Reply(Reply<Token>),
    /// LEED's server answers.
    Answer(leed::Answer<Token>),
    /// An operation on the pool is done.
    Pool { request: RequestId, answer: ditto::PoolAnswer<Token> },
    /// Room in the pool.
    Chunk(Option<u64>),
}

impl ToClient {
    pub fn memory(request: RequestId, answer: MemoryAnswer<Token>) -> ToClient {
        ToClient::Memory { request, answer }
    }
    pub fn flash(request: RequestId, answer: FlashAnswer<Token>) -> ToClient {
        ToClient::Flash { request, answer }
    }
    pub fn pool(request: RequestId, answer: ditto::PoolAnswer<Token>) -> ToClient {
        ToClient::Pool { request, answer }
    }
    pub fn chunk(chunk: Option<u64>) -> ToClient {
        ToClient::Chunk(chunk)
    }

    pub fn scalio(self) -> Option<ClientIn<Token>> {
        Some(match self {
            ToClient::Issue { ticket, operation } => ClientIn::Issue { ticket, operation },
            ToClient::Memory { request, answer } => ClientIn::Memory { request, answer },
            ToClient::Flash { request, answer } => ClientIn::Flash { request, answer },
            ToClient::Reply(reply) => ClientIn::Reply(reply),
            ToClient::Answer(_) | ToClient::Pool { .. } | ToClient::Chunk(_) => return None,
        })
    }

    pub fn leed(self) -> Option<leed::ClientIn<Token>> {
        Some(match self {
            ToClient::Issue { ticket, operation } => leed::ClientIn::Issue { ticket, operation },
            ToClient::Answer(answer) => leed::ClientIn::Answer(answer),
            _ => return None,
        })
    }

    pub fn ditto(self) -> Option<ditto::ClientIn<Token>> {
        Some(match self {
            ToClient::Issue { ticket, operation } => ditto::ClientIn::Issue { ticket, operation },
            ToClient::Answer(answer) => ditto::ClientIn::Answer(answer),
            ToClient::Pool { request, answer } => ditto::ClientIn::Pool { request, answer },
            ToClient::Chunk(chunk) => ditto::ClientIn::Chunk(chunk),
            ToClient::Memory { .. } | ToClient::Flash { .. } | ToClient::Reply(_) => return None,
        })
    }
}

/// Something for a server's program.
#[derive(Clone, Debug)]
pub enum ToServer {
    /// For Scalio's.
    Request(Request<Token>),
    /// For LEED's.
    Call(leed::Call<Token>),
    /// An operation on the index is done.
    Memory { request: RequestId, answer: MemoryAnswer<Token> },
    /// An I/O is done.
    Flash { request: RequestId, answer: FlashAnswer<Token> },
}

impl ToServer {
    pub fn memory(request: RequestId, answer: MemoryAnswer<Token>) -> ToServer {
        ToServer::Memory { request, answer }
    }

    pub fn scalio(self) -> Option<ServerIn<Token>> {
        Some(match self {
            ToServer::Request(request) => ServerIn::Request(request),
            ToServer::Memory { request, answer } => ServerIn::Memory { request, answer },
            ToServer::Flash { request, answer } => ServerIn::Flash { request, answer },
            ToServer::Call(_) => return None,
        })
    }

    pub fn leed(self) -> Option<leed::ServerIn<Token>> {
        Some(match self {
            ToServer::Call(call) => leed::ServerIn::Call(call),
            ToServer::Flash { request, answer } => leed::ServerIn::Flash { request, answer },
            ToServer::Request(_) | ToServer::Memory { .. } => return None,
        })
    }
}
