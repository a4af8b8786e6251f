//! External keys of TLS 1.3 in OpenSSL: two callbacks that the crate `openssl` does not bind yet.
//!
//! The only unsafe code here. docs/decisions/tls-external-keys.md says why, and when it goes. A
//! callback of a context reaches its closure through the context's own data, as those of the crate
//! do.

#![allow(unsafe_code)]

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{SslContext, SslContextBuilder, SslRef, SslSession};
use openssl_sys::{EVP_MD, SSL, SSL_CTX, SSL_SESSION};
use std::ffi::{c_int, c_uchar, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

/// The session for the key of an identity; `None` for an unknown one.
pub(super) type Find = Box<dyn Fn(&SslRef, &[u8]) -> Option<SslSession> + Send + Sync>;

/// A client's identity and key.
struct Shown {
    identity: Vec<u8>,
    session: SslSession,
}

/// SSL_psk_find_session_cb_func of ssl.h.
type FindCallback = unsafe extern "C" fn(*mut SSL, *const c_uchar, usize, *mut *mut SSL_SESSION) -> c_int;
/// SSL_psk_use_session_cb_func of ssl.h.
type UseCallback =
    unsafe extern "C" fn(*mut SSL, *const EVP_MD, *mut *const c_uchar, *mut usize, *mut *mut SSL_SESSION) -> c_int;

// SAFETY: as ssl.h of OpenSSL 1.1.1 and later declares them; openssl-sys links that library.
unsafe extern "C" {
    fn SSL_CTX_set_psk_find_session_callback(context: *mut SSL_CTX, callback: FindCallback);
    fn SSL_CTX_set_psk_use_session_callback(context: *mut SSL_CTX, callback: UseCallback);
}

/// Return value of callbacks: the handshake continues, with a key or without.
const GOES_ON: c_int = 1;
/// The handshake fails.
const FAILS: c_int = 0;

static FIND: OnceLock<Index<SslContext, Find>> = OnceLock::new();
static SHOWN: OnceLock<Index<SslContext, Shown>> = OnceLock::new();

/// The index of a kind of data in contexts, made once.
fn place<T: 'static + Send + Sync>(once: &OnceLock<Index<SslContext, T>>) -> Result<Index<SslContext, T>, ErrorStack> {
    if let Some(place) = once.get() {
        return Ok(*place);
    }
    let made = SslContext::new_ex_index()?;
    Ok(*once.get_or_init(|| made))
}

/// Has servers of this context call `find` for each identity that a client offers, until it returns
/// a session whose hash is that of the cipher suite.
pub(super) fn find_by(builder: &mut SslContextBuilder, find: Find) -> Result<(), ErrorStack> {
    builder.set_ex_data(place(&FIND)?, find);
    // SAFETY: the builder holds a context that lives, and the callback keeps to its contract.
    unsafe { SSL_CTX_set_psk_find_session_callback(builder.as_ptr(), on_identity) };
    Ok(())
}

/// Has clients of this context offer `identity` and prove the key of `session`.
pub(super) fn show(builder: &mut SslContextBuilder, identity: Vec<u8>, session: SslSession) -> Result<(), ErrorStack> {
    builder.set_ex_data(place(&SHOWN)?, Shown { identity, session });
    // SAFETY: as in `find_by`.
    unsafe { SSL_CTX_set_psk_use_session_callback(builder.as_ptr(), on_use) };
    Ok(())
}

/// The content of an extension of the ClientHello, within a callback that has one. `None` without
/// such an extension, or outside of such callbacks.
pub(super) fn client_hello_extension(ssl: &SslRef, kind: c_uint) -> Option<Vec<u8>> {
    let (mut bytes, mut length): (*const c_uchar, usize) = (ptr::null(), 0);
    // SAFETY: `ssl` lives. Without a ClientHello it returns 0 and writes nothing.
    let is_there = unsafe { openssl_sys::SSL_client_hello_get0_ext(ssl.as_ptr(), kind, &mut bytes, &mut length) };
    // SAFETY: `length` bytes of the ClientHello, which stays until the handshake goes on; they are
    // copied before.
    (is_there == 1).then(|| unsafe { bytes_at(bytes, length) }.to_vec())
}

/// Bytes that OpenSSL names. Its pointer may be null if there are none.
///
/// # Safety
/// There are `length` bytes at `bytes`, which do not change for as long as the slice is used.
unsafe fn bytes_at<'a>(bytes: *const c_uchar, length: usize) -> &'a [u8] {
    if bytes.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's word.
    unsafe { std::slice::from_raw_parts(bytes, length) }
}

/// A reference that belongs to OpenSSL from now on.
fn given_away(session: SslSession) -> *mut SSL_SESSION {
    let pointer = session.as_ptr();
    std::mem::forget(session);
    pointer
}

/// A server has read an identity. No panic unwinds through OpenSSL: the handshake fails instead.
unsafe extern "C" fn on_identity(
    ssl: *mut SSL,
    identity: *const c_uchar,
    length: usize,
    session: *mut *mut SSL_SESSION,
) -> c_int {
    let find = || {
        // SAFETY: OpenSSL calls with a connection and an identity that live until this returns.
        let (ssl, identity) = unsafe { (SslRef::from_ptr(ssl), bytes_at(identity, length)) };
        let find = ssl.ssl_context().ex_data(*FIND.get()?)?;
        find(ssl, identity)
    };
    // Nothing but the closure changes its data.
    let Ok(found) = catch_unwind(AssertUnwindSafe(find)) else { return FAILS };
    // SAFETY: a place of OpenSSL's, which frees the session that it finds there.
    unsafe { *session = found.map_or(ptr::null_mut(), given_away) };
    GOES_ON
}

/// A client is about to send its identity.
unsafe extern "C" fn on_use(
    ssl: *mut SSL,
    _: *const EVP_MD,
    identity: *mut *const c_uchar,
    length: *mut usize,
    session: *mut *mut SSL_SESSION,
) -> c_int {
    // SAFETY: OpenSSL calls with a connection that lives until this returns.
    let ssl = unsafe { SslRef::from_ptr(ssl) };
    let Some(shown) = SHOWN.get().and_then(|place| ssl.ssl_context().ex_data(*place)) else { return FAILS };
    // SAFETY: places of OpenSSL's. It copies the identity, which lives as long as the context does,
    // and frees the session, of which this is a reference of its own.
    unsafe {
        *identity = shown.identity.as_ptr();
        *length = shown.identity.len();
        *session = given_away(shown.session.clone());
    }
    GOES_ON
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::tls::{PreSharedKey, TlsHash};
    use openssl::ssl::{Ssl, SslMethod, SslStream, SslVersion};
    use std::os::unix::net::UnixStream;

    fn builder(method: SslMethod) -> SslContextBuilder {
        let mut builder = SslContextBuilder::new(method).expect("OpenSSL is there");
        builder.set_min_proto_version(Some(SslVersion::TLS1_3)).expect("it has TLS 1.3");
        builder.set_ciphersuites("TLS_AES_256_GCM_SHA384").expect("it has this suite");
        builder
    }

    fn session(byte: u8) -> SslSession {
        let key = PreSharedKey { identity: String::new(), hash: TlsHash::Sha384, key: vec![byte; 48] };
        super::super::session(&key).expect("it is of the form")
    }

    /// Whether a client with the identity `me` and a key of 7s is accepted by `find`.
    fn gets_in(find: Find) -> bool {
        let (mut server, mut client) = (builder(SslMethod::tls_server()), builder(SslMethod::tls_client()));
        find_by(&mut server, find).expect("there is room");
        show(&mut client, b"me".to_vec(), session(7)).expect("there is room");
        let (here, there) = UnixStream::pair().expect("sockets");
        let stream = |context: SslContextBuilder, socket| {
            SslStream::new(Ssl::new(&context.build()).expect("there is room"), socket).expect("there is room")
        };
        let mut client = stream(client, there);
        let shown = std::thread::spawn(move || client.connect().is_ok());
        let mut server = stream(server, here);
        let is_in = server.accept().is_ok() && server.ssl().session_reused();
        drop(server);
        assert!(shown.join().expect("it does not panic") || !is_in);
        is_in
    }

    #[test]
    fn a_key_opens_by_its_identity_and_a_panic_is_a_handshake_that_fails() {
        assert!(gets_in(Box::new(|_, identity| (identity == b"me").then(|| session(7)))));
        assert!(!gets_in(Box::new(|_, identity| (identity == b"me").then(|| session(8)))), "another key");
        assert!(!gets_in(Box::new(|_, _| None)));
        assert!(!gets_in(Box::new(|_, _| panic!("on purpose"))));
    }

    #[test]
    fn nothing_is_read_of_a_client_hello_that_has_not_come() {
        let ssl = Ssl::new(&builder(SslMethod::tls_server()).build()).expect("there is room");
        assert_eq!(client_hello_extension(&ssl, 41), None);
    }
}
