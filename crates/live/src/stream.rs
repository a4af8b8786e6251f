//! A connection as bytes: a socket as it is, or TLS over one.

use crate::error::StartError;
use crate::secrets::Secrets;
use crate::tls::{Acceptor, Keys, Session};
use mio::net::TcpStream;
use nvme::target::{Channel, PortId};
use spec::target::{TargetPlan, TlsName};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

/// A connection. What is read and written are the bytes of NVMe/TCP.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<Session>),
}

impl Stream {
    /// The socket itself, to wait for.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Secured(session) => session.socket(),
        }
    }

    /// Whether bytes go to the system as they are.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Whom a handshake has shown the peer to be, once after it.
    pub(crate) fn take_channel(&mut self) -> Option<Channel> {
        match self {
            Stream::Plain(_) => None,
            Stream::Secured(session) => session.take_channel(),
        }
    }

    /// Whether reading has something to say though nothing more comes from the socket.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Stream::Secured(session) if session.has_ended())
    }

    /// Whether bytes can be sent: a handshake that is due goes on by this. An error says why there will be none.
    pub(crate) fn is_ready(&mut self) -> Result<bool, String> {
        match self {
            Stream::Plain(_) => Ok(true),
            Stream::Secured(session) => {
                let shaken = session.shake().map_err(|error| error.to_string());
                shaken.map_err(|error| session.failure().map_or(error, str::to_owned))
            }
        }
    }

    /// Nothing more is sent.
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

/// Which ports are secured, and by what.
pub(crate) struct Security {
    keys: Arc<Keys>,
    /// By port; `None` where it is not secured.
    acceptors: Vec<Option<Acceptor>>,
}

impl Security {
    pub(crate) fn open(plan: &TargetPlan, secrets: &Secrets) -> Result<Security, StartError> {
        let keys = Arc::new(Keys::new(secrets.tls_keys(plan)));
        let acceptor = |(number, tls): (u16, TlsName)| match tls {
            TlsName::Off => Ok(None),
            TlsName::Required => {
                let acceptor = Acceptor::new(PortId(number), keys.clone());
                acceptor.map(Some).map_err(|error| StartError::Plan(format!("port {number}: tls: {error}")))
            }
        };
        let ports = (1..).zip(plan.ports.iter().map(|port| port.tls));
        let acceptors = ports.map(acceptor).collect::<Result<_, _>>()?;
        Ok(Security { keys, acceptors })
    }

    /// Other keys, for whoever connects from now on.
    pub(crate) fn change(&self, plan: &TargetPlan, secrets: &Secrets) {
        self.keys.change(secrets.tls_keys(plan));
    }

    /// What a port makes of a new connection.
    pub(crate) fn stream(&self, port: PortId, peer: SocketAddr, socket: TcpStream) -> Result<Stream, String> {
        match self.acceptors.get(usize::from(port.0) - 1) {
            Some(Some(acceptor)) => Ok(Stream::Secured(Box::new(acceptor.accept(peer, socket)?))),
            _ => Ok(Stream::Plain(socket)),
        }
    }
}
