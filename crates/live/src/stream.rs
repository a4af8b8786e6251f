//! A connection as bytes: a plain socket, or TLS over one.

use crate::error::StartError;
use crate::secrets::Secrets;
use crate::tls::{Acceptor, Keys, Session};
use mio::net::TcpStream;
use nvme::target::{Channel, PortId};
use plan::target::{Port, TargetPlan, TlsName};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

/// A connection. It reads and writes the bytes of NVMe/TCP.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<Session>),
}

impl Stream {
    /// The socket, to wait for.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Secured(session) => session.socket(),
        }
    }

    /// Returns the peer's identity from a handshake, once.
    pub(crate) fn take_channel(&mut self) -> Option<Channel> {
        match self {
            Stream::Plain(_) => None,
            Stream::Secured(session) => session.take_channel(),
        }
    }

    /// Whether reading reports something although the socket has no more bytes.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Stream::Secured(session) if session.has_ended())
    }

    /// Whether bytes can be sent; continues a pending handshake. An error is the reason why it
    /// failed.
    pub(crate) fn is_ready(&mut self) -> Result<bool, String> {
        match self {
            Stream::Plain(_) => Ok(true),
            Stream::Secured(session) => {
                let shaken = session.shake().map_err(|error| error.to_string());
                shaken.map_err(|error| session.failure().map_or(error, str::to_owned))
            }
        }
    }

    /// Why the handshake has failed, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Stream::Plain(_) => None,
            Stream::Secured(session) => session.failure(),
        }
    }

    /// Closes the sending side.
    pub(crate) fn end(&mut self) {
        if let Stream::Secured(session) = self {
            session.end();
        }
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(room),
            Stream::Secured(session) => session.read(room),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write_vectored(slices),
            Stream::Secured(session) => session.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The secured ports, and their keys.
pub(crate) struct Security {
    keys: Arc<Keys>,
    acceptors: Acceptors,
}

/// Acceptors of secured ports.
type Acceptors = BTreeMap<PortId, Acceptor>;

impl Security {
    /// No ports yet.
    pub(crate) fn new() -> Security {
        Security { keys: Arc::new(Keys::new(BTreeMap::new())), acceptors: BTreeMap::new() }
    }

    /// Prepares acceptors for the ports of `plan`; `ports` are their numbers in the target.
    pub(crate) fn prepare(&self, plan: &TargetPlan, ports: &[(PortId, SocketAddr)]) -> Result<Acceptors, StartError> {
        let secured = plan.ports.iter().zip(ports).filter(|(port, _)| port.tls == TlsName::Required);
        let acceptor = |(port, (id, _)): (&Port, &(PortId, SocketAddr))| {
            let acceptor = Acceptor::new(self.keys.clone()).map(|acceptor| (*id, acceptor));
            acceptor.map_err(|error| StartError::Plan(format!("port {}: tls: {error}", port.address)))
        };
        secured.map(acceptor).collect()
    }

    /// Replaces ports and keys for later connections.
    pub(crate) fn change(&mut self, acceptors: Acceptors, plan: &TargetPlan, secrets: &Secrets) {
        self.acceptors = acceptors;
        self.keys.change(secrets.tls_keys(plan));
    }

    /// Wraps a new connection of a port.
    pub(crate) fn stream(&self, port: PortId, socket: TcpStream) -> Result<Stream, String> {
        match self.acceptors.get(&port) {
            Some(acceptor) => Ok(Stream::Secured(Box::new(acceptor.accept(socket)?))),
            None => Ok(Stream::Plain(socket)),
        }
    }
}
