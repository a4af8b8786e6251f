//! TLS 1.3 with pre-shared keys by OpenSSL, over a non-blocking socket. [`nvme::tls`] derives
//! identities and keys.
//!
//! The cipher suite has the hash of the key: [`offer`] has a target choose it. A key is used with
//! an ephemeral exchange (psk_dhe_ke), so that recorded traffic stays secret if the key leaks
//! later. Sessions are not resumed: a removed key admits nobody.

mod offer;
mod psk;

use crate::secrets::TlsKeys;
use mio::net::TcpStream;
use nvme::target::Channel;
use nvme::tls::{Identity, IdentityVersion, PreSharedKey, TlsHash};
use offer::{Known, Offer, PRE_SHARED_KEY};
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{
    ClientHelloResponse, Error, ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions, SslRef,
    SslSession, SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use std::io::{self, IoSlice};
use std::sync::{Arc, PoisonError, RwLock};

/// The suites of TCP Transport 1.1, 3.6.1.1; there is no other for a hash.
const SUITES: &str = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256";
/// Plaintext of a record (RFC 8446, 5.1): what one call writes.
const RECORD_BYTES: usize = 16 << 10;

/// The suite of a hash: its name, and its code (RFC 8446, B.4).
fn suite(hash: TlsHash) -> (&'static str, [u8; 2]) {
    match hash {
        TlsHash::Sha256 => ("TLS_AES_128_GCM_SHA256", [0x13, 0x01]),
        TlsHash::Sha384 => ("TLS_AES_256_GCM_SHA384", [0x13, 0x02]),
    }
}

/// A key as OpenSSL takes it: a session that has nothing else. Made from its DER form
/// (SSL_SESSION_ASN1 in OpenSSL's ssl_asn1.c), so that no unsafe code has to build it.
fn session(key: &PreSharedKey) -> Result<SslSession, ErrorStack> {
    const INTEGER: u8 = 2;
    const OCTETS: u8 = 4;
    const SEQUENCE: u8 = 0x30;
    /// Version of the form itself.
    const FORM: &[u8] = &[1];
    const TLS_1_3: &[u8] = &[3, 4];
    // Everything is shorter than 128 bytes: one byte holds each length.
    let part = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
    let (_, code) = suite(key.hash);
    let parts = [(INTEGER, FORM), (INTEGER, TLS_1_3), (OCTETS, &code), (OCTETS, &[]), (OCTETS, &key.key)];
    let parts: Vec<u8> = parts.into_iter().flat_map(|(tag, bytes)| part(tag, bytes)).collect();
    SslSession::from_der(&part(SEQUENCE, &parts))
}

/// Why an identity is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Stranger {
    #[error("it is not of the form `NVMe1R01 HOST SUBSYSTEM DIGEST` or `NVMe0R01 HOST SUBSYSTEM`")]
    Form,
    #[error("there is no `tls_key` of this host")]
    Host,
    #[error("the host may not use this subsystem, or there is none of this name")]
    Subsystem,
    #[error("it is of a key of another length")]
    Hash,
    #[error(
        "its key is proved by another hash than its own (GnuTLS before 3.8.11, as tlshd uses it, has SHA-256 alone)"
    )]
    Binder,
    #[error("its digest is of another key, or of one that was derived otherwise (see `tls_derivation`)")]
    Digest,
}

/// Keys of hosts, which can be replaced at any time.
pub(crate) struct Keys(RwLock<TlsKeys>);

impl Keys {
    pub(crate) fn new(keys: TlsKeys) -> Keys {
        Keys(RwLock::new(keys))
    }

    pub(crate) fn change(&self, keys: TlsKeys) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// The host of an identity, and its key.
    fn find(&self, identity: &str) -> Result<Known, Stranger> {
        let Identity { version, hash, host, subsystem } = Identity::parse(identity).ok_or(Stranger::Form)?;
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let access = keys.get(&host).ok_or(Stranger::Host)?;
        if !access.subsystems.contains(&subsystem) {
            return Err(Stranger::Subsystem);
        }
        if access.key.hash() != hash {
            return Err(Stranger::Hash);
        }
        let mut derived =
            access.derivations.iter().filter_map(|how| access.key.pre_shared(*how, version, host, subsystem));
        let is_meant = |psk: &PreSharedKey| psk.identity == identity;
        let unlike = if version == IdentityVersion::Digest { Stranger::Digest } else { Stranger::Form };
        derived.find(is_meant).map(|key| Known { channel: Channel { host, subsystem }, key }).ok_or(unlike)
    }
}

/// Accepts connections of a secured port.
pub(crate) struct Acceptor {
    context: SslContext,
    offers: Index<Ssl, Offer>,
}

impl Acceptor {
    pub(crate) fn new(keys: Arc<Keys>) -> Result<Acceptor, String> {
        Acceptor::try_new(keys).map_err(|error| error.to_string())
    }

    fn try_new(keys: Arc<Keys>) -> Result<Acceptor, ErrorStack> {
        let offers = Ssl::new_ex_index()?;
        let mut builder = builder(SslMethod::tls_server())?;
        builder.set_num_tickets(0)?;
        builder.set_client_hello_callback(move |ssl, _| {
            read_offer(ssl, &keys, offers).map(|()| ClientHelloResponse::SUCCESS)
        });
        let find = move |ssl: &SslRef, identity: &[u8]| {
            let known = ssl.ex_data(offers)?.found.as_ref().ok()?;
            let is_meant = known.key.identity.as_bytes() == identity;
            is_meant.then(|| session(&known.key).ok()).flatten()
        };
        psk::find_by(&mut builder, Box::new(find))?;
        Ok(Acceptor { context: builder.build(), offers })
    }

    /// A connection whose handshake is due: reading continues it.
    pub(crate) fn accept(&self, socket: TcpStream) -> Result<Session, String> {
        let side = Side::Target { offers: self.offers };
        Session::new(&self.context, side, socket).map_err(|error| error.to_string())
    }
}

/// Finds the host of a ClientHello, and leaves the one suite of its key.
fn read_offer(ssl: &mut SslRef, keys: &Keys, offers: Index<Ssl, Offer>) -> Result<(), ErrorStack> {
    let extension = psk::client_hello_extension(ssl, PRE_SHARED_KEY);
    let Some(offer) = extension.and_then(|extension| Offer::of(&extension, keys)) else { return Ok(()) };
    if let Ok(known) = &offer.found {
        ssl.set_ciphersuites(suite(known.key.hash).0)?;
    }
    ssl.set_ex_data(offers, offer);
    Ok(())
}

/// Settings of both sides.
fn builder(method: SslMethod) -> Result<SslContextBuilder, ErrorStack> {
    let mut builder = SslContextBuilder::new(method)?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    builder.set_ciphersuites(SUITES)?;
    builder.set_options(SslOptions::NO_TICKET);
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    // Data lie elsewhere when a write is retried, and idle connections hold no buffers.
    builder.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::RELEASE_BUFFERS);
    Ok(builder)
}

/// The role of this end.
enum Side {
    Host,
    Target { offers: Index<Ssl, Offer> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Shaking,
    Open,
    Failed,
}

/// A connection under TLS.
pub(crate) struct Session {
    stream: SslStream<TcpStream>,
    side: Side,
    stage: Stage,
    channel: Option<Channel>,
    failure: Option<String>,
    /// The next read reports the end.
    has_ended: bool,
    /// Small slices on their way into one record.
    gathered: Vec<u8>,
}

impl Session {
    fn new(context: &SslContext, side: Side, socket: TcpStream) -> Result<Session, ErrorStack> {
        let mut ssl = Ssl::new(context)?;
        match side {
            Side::Host => ssl.set_connect_state(),
            Side::Target { .. } => ssl.set_accept_state(),
        }
        let stream = SslStream::new(ssl, socket)?;
        let (stage, gathered) = (Stage::Shaking, Vec::new());
        Ok(Session { stream, side, stage, channel: None, failure: None, has_ended: false, gathered })
    }

    /// A host's connection, still to be secured by `psk`.
    pub(crate) fn connect(psk: PreSharedKey, socket: TcpStream) -> Result<Session, String> {
        let context = || -> Result<SslContext, ErrorStack> {
            let mut builder = builder(SslMethod::tls_client())?;
            // No certificate is trusted: a target without the key cannot present one instead.
            builder.set_verify(SslVerifyMode::PEER);
            // One suite, so that a target cannot choose one that does not fit the key.
            builder.set_ciphersuites(suite(psk.hash).0)?;
            let session = session(&psk)?;
            psk::show(&mut builder, psk.identity.into_bytes(), session)?;
            Ok(builder.build())
        };
        let session = context().and_then(|context| Session::new(&context, Side::Host, socket));
        session.map_err(|error| error.to_string())
    }

    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        self.stream.get_mut()
    }

    /// Returns the peer's identity, once.
    pub(crate) fn take_channel(&mut self) -> Option<Channel> {
        self.channel.take()
    }

    /// Whether the next read reports the end, although the socket has no more bytes.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Why the handshake has failed, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Continues the handshake. Returns true when it is done.
    pub(crate) fn shake(&mut self) -> io::Result<bool> {
        match self.stage {
            Stage::Open => return Ok(true),
            Stage::Failed => return Err(io::ErrorKind::ConnectionAborted.into()),
            Stage::Shaking => {}
        }
        match self.stream.do_handshake() {
            Ok(()) => self.on_shaken(),
            Err(error) if is_waiting(&error) => Ok(false),
            Err(error) => self.fail(&error),
        }
    }

    /// Only a key is accepted: neither a certificate nor an earlier session.
    fn on_shaken(&mut self) -> io::Result<bool> {
        let channel = match &self.side {
            Side::Host => None,
            Side::Target { offers, .. } => match self.stream.ssl().ex_data(*offers) {
                Some(Offer { found: Ok(known), .. }) => Some(known.channel),
                _ => return self.refuse("no pre-shared key was used".into()),
            },
        };
        if !self.stream.ssl().session_reused() {
            return self.refuse("no pre-shared key was used".into());
        }
        (self.stage, self.channel) = (Stage::Open, channel);
        Ok(true)
    }

    fn fail(&mut self, error: &Error) -> io::Result<bool> {
        let reason = match &self.side {
            Side::Host => format!("{} (is it the right key, and a port with TLS?)", said(error)),
            Side::Target { offers, .. } => fault(error, self.stream.ssl().ex_data(*offers)),
        };
        self.refuse(reason)
    }

    fn refuse(&mut self, reason: String) -> io::Result<bool> {
        (self.stage, self.failure) = (Stage::Failed, Some(reason));
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Fills `room` as far as there are bytes: less than all means that none are left.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if !self.shake()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut filled = 0;
        while filled < room.len() {
            match self.stream.ssl_read(&mut room[filled..]) {
                Ok(count) => filled += count,
                // A failure or an end is reported again when no bytes precede it.
                Err(error) if filled > 0 => {
                    self.has_ended = !is_waiting(&error);
                    break;
                }
                Err(error) => return over(error),
            }
        }
        Ok(filled)
    }

    /// Sends slices as whole records as far as the socket accepts them. The rest has to be sent
    /// again first.
    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.stage != Stage::Open {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut pieces = slices.iter().map(|slice| &slice[..]);
        let (mut rest, mut sent): (&[u8], usize) = (&[], 0);
        loop {
            if rest.is_empty() {
                match pieces.next() {
                    Some(piece) => rest = piece,
                    None => return Ok(sent),
                }
            }
            let (written, taken) = if rest.len() >= RECORD_BYTES {
                let record = &rest[..RECORD_BYTES];
                (self.stream.ssl_write(record), record.len())
            } else {
                self.gathered.clear();
                gather(&mut self.gathered, &mut rest, &mut pieces);
                (self.stream.ssl_write(&self.gathered), 0)
            };
            match written {
                Ok(count) => {
                    sent += count;
                    rest = &rest[taken.min(count)..];
                    if taken == 0 && count < self.gathered.len() {
                        return Ok(sent);
                    }
                }
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) => return over(error),
            }
        }
    }

    /// Sends close_notify.
    pub(crate) fn end(&mut self) {
        if self.stage == Stage::Open {
            let _ = self.stream.shutdown();
        }
    }
}

/// Moves the next bytes into one record.
fn gather<'a>(record: &mut Vec<u8>, rest: &mut &'a [u8], pieces: &mut impl Iterator<Item = &'a [u8]>) {
    loop {
        let now = rest.len().min(RECORD_BYTES - record.len());
        record.extend_from_slice(&rest[..now]);
        *rest = &rest[now..];
        if !rest.is_empty() || record.len() == RECORD_BYTES {
            return;
        }
        match pieces.next() {
            Some(piece) => *rest = piece,
            None => return,
        }
    }
}

fn is_waiting(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::WANT_READ | ErrorCode::WANT_WRITE)
}

/// The end of reading or writing in terms of sockets.
fn over(error: Error) -> io::Result<usize> {
    if is_waiting(&error) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    if error.code() == ErrorCode::ZERO_RETURN {
        return Ok(0);
    }
    // No close_notify: cut off on the way, or by a peer that has died.
    Err(error.into_io_error().unwrap_or_else(io::Error::other))
}

/// OpenSSL's reason.
fn said(error: &Error) -> String {
    if let Some(error) = error.io_error() {
        return error.to_string();
    }
    let reason = error.ssl_error().and_then(|stack| stack.errors().first()).and_then(|error| error.reason());
    reason.map_or_else(|| "the peer ended the connection".into(), str::to_owned)
}

/// Why a host is refused. For an unknown identity OpenSSL tries certificates and complains about
/// those, which are never used.
fn fault(error: &Error, offer: Option<&Offer>) -> String {
    /// OpenSSL's reason for a client that has none of our suites.
    const NO_SUITE: &str = "no shared cipher";
    let said = said(error);
    match offer {
        Some(Offer { identity, found: Err(stranger) }) => format!("unknown identity `{identity}`: {stranger}"),
        Some(Offer { identity, found: Ok(known) }) if said == NO_SUITE => {
            let (suite, _) = suite(known.key.hash);
            format!("{said}: the key of `{identity}` goes with {suite}, which the host does not offer")
        }
        Some(Offer { identity, found: Ok(_) }) => format!(
            "{said}: the key of `{identity}` is another on the other side, \
             or was derived otherwise (see `tls_derivation`)"
        ),
        None if said == NO_SUITE => format!("{said}: only {} are spoken", SUITES.replace(':', " and ")),
        None if error.ssl_error().is_some() => format!("no pre-shared key was offered: {said}"),
        None => said,
    }
}
