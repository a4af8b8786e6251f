//! The socket of a client: plain, or with TLS 1.2 and later.

use crate::config::TlsFiles;
use mio::net::TcpStream;
use runtime::error::StartError;
use std::io::{self, IoSlice, Read, Write};

#[cfg(feature = "tls")]
use openssl::ssl::{Ssl, SslAcceptor, SslContext, SslFiletype, SslMethod, SslStream, SslVerifyMode};

/// What makes sockets of accepted streams.
#[derive(Clone, Default)]
pub struct Acceptor {
    #[cfg(feature = "tls")]
    tls: Option<SslContext>,
}

/// A client's socket.
pub enum Socket {
    /// Without TLS.
    Plain(TcpStream),
    /// With it. The handshake is a part of the first reads and writes.
    #[cfg(feature = "tls")]
    Tls(Box<SslStream<TcpStream>>),
}

#[cfg(feature = "tls")]
impl Acceptor {
    /// Reads certificates and key; without files, sockets are plain.
    ///
    /// # Errors
    /// When a file cannot be read, or key and certificate do not belong together.
    pub fn new(files: Option<&TlsFiles>) -> Result<Acceptor, StartError> {
        let Some(files) = files else { return Ok(Acceptor::default()) };
        let wrong = |path: &std::path::Path| {
            let path = path.to_path_buf();
            move |error: openssl::error::ErrorStack| StartError::file(&path, error)
        };
        let system = |error: openssl::error::ErrorStack| StartError::system("TLS")(io::Error::other(error));
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).map_err(system)?;
        builder.set_certificate_chain_file(&files.certificate).map_err(wrong(&files.certificate))?;
        builder.set_private_key_file(&files.key, SslFiletype::PEM).map_err(wrong(&files.key))?;
        builder.check_private_key().map_err(wrong(&files.key))?;
        if let Some(clients) = &files.clients {
            builder.set_ca_file(clients).map_err(wrong(clients))?;
            builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        }
        Ok(Acceptor { tls: Some(builder.build().into_context()) })
    }

    /// The socket of a stream.
    ///
    /// # Errors
    /// When TLS has no memory for it.
    pub fn socket(&self, stream: TcpStream) -> io::Result<Socket> {
        let Some(context) = &self.tls else { return Ok(Socket::Plain(stream)) };
        let mut ssl = Ssl::new(context)?;
        ssl.set_accept_state();
        Ok(Socket::Tls(Box::new(SslStream::new(ssl, stream)?)))
    }
}

#[cfg(not(feature = "tls"))]
impl Acceptor {
    /// Without files, sockets are plain.
    ///
    /// # Errors
    /// With files: this build has no TLS.
    pub fn new(files: Option<&TlsFiles>) -> Result<Acceptor, StartError> {
        match files {
            None => Ok(Acceptor::default()),
            Some(files) => {
                Err(StartError::file(&files.certificate, "this build has no TLS: it was built without OpenSSL"))
            }
        }
    }

    /// The socket of a stream.
    ///
    /// # Errors
    /// None.
    pub fn socket(&self, stream: TcpStream) -> io::Result<Socket> {
        Ok(Socket::Plain(stream))
    }
}

impl Socket {
    /// The stream below it.
    pub fn stream(&mut self) -> &mut TcpStream {
        match self {
            Socket::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Socket::Tls(tls) => tls.get_mut(),
        }
    }

    /// Whether both ends have agreed on how they talk.
    pub fn is_agreed(&self) -> bool {
        match self {
            Socket::Plain(_) => true,
            #[cfg(feature = "tls")]
            Socket::Tls(tls) => tls.ssl().is_init_finished(),
        }
    }

    /// Whether a read that gives less than was asked for has taken all that is there: TLS gives one
    /// record at a time.
    pub fn gives_all(&self) -> bool {
        matches!(self, Socket::Plain(_))
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read(buffer),
            #[cfg(feature = "tls")]
            Socket::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Socket::Tls(tls) => tls.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.write_vectored(slices),
            #[cfg(feature = "tls")]
            Socket::Tls(tls) => tls.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
