//! TLS in a program that was built without it: nothing that needs it can be made.

use crate::secrets::TlsKeys;
use mio::net::TcpStream;
use nvme::target::Channel;
use nvme::tls::PreSharedKey;
use std::io::{self, IoSlice};
use std::sync::Arc;

const ABSENT: &str = "this program was built without TLS (the feature `tls`)";

/// Unused keys.
pub(crate) struct Keys;

impl Keys {
    pub(crate) fn new(_: TlsKeys) -> Keys {
        Keys
    }
    pub(crate) fn change(&self, _: TlsKeys) {}
}

/// There is none.
pub(crate) enum Acceptor {}

impl Acceptor {
    pub(crate) fn new(_: Arc<Keys>) -> Result<Acceptor, String> {
        Err(ABSENT.into())
    }
    pub(crate) fn accept(&self, _: TcpStream) -> Result<Session, String> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum Session {}

impl Session {
    pub(crate) fn connect(_: PreSharedKey, _: TcpStream) -> Result<Session, String> {
        Err(ABSENT.into())
    }
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match *self {}
    }
    pub(crate) fn take_channel(&mut self) -> Option<Channel> {
        match *self {}
    }
    pub(crate) fn has_ended(&self) -> bool {
        match *self {}
    }
    pub(crate) fn failure(&self) -> Option<&str> {
        match *self {}
    }
    pub(crate) fn shake(&mut self) -> io::Result<bool> {
        match *self {}
    }
    pub(crate) fn end(&mut self) {
        match *self {}
    }
    pub(crate) fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
    pub(crate) fn write_vectored(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }
}
