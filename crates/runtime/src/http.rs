//! `/metrics` and `/healthz`, on a listener of their own in the same loop.
//!
//! `httparse` reads the requests, and the loop serves them: HTTP servers bring threads or an
//! asynchronous runtime. A connection has one request; a slow or a long one is closed.

use base::{Span, Time};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// Longest head of a request.
const HEAD_MAX: usize = 8 << 10;
/// Most header fields of a request.
const HEADERS_MAX: usize = 64;
/// Longest life of a connection.
const LIFE: Span = Span::secs(5);

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

struct Connection {
    stream: TcpStream,
    head: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    until: Time,
}

/// The resource of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Metrics,
    Health,
    Unknown,
    Malformed,
}

/// Serves metrics and health.
pub struct Http {
    listener: TcpListener,
    connections: BTreeMap<Token, Connection>,
    tokens: std::ops::Range<usize>,
}

impl Http {
    /// Serves connections of `listener`, which is registered; they get tokens of `tokens`.
    pub fn new(listener: TcpListener, tokens: std::ops::Range<usize>) -> Http {
        Http { listener, connections: BTreeMap::new(), tokens }
    }

    /// Accepts all waiting connections.
    pub fn accept(&mut self, now: Time, registry: &Registry) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let free = self.tokens.clone().map(Token).find(|token| !self.connections.contains_key(token));
            let Some(token) = free.filter(|_| self.connections.len() < CONNECTIONS_MAX) else { continue };
            if registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_ok() {
                let connection =
                    Connection { stream, head: Vec::new(), answer: Vec::new(), sent: 0, until: now + LIFE };
                self.connections.insert(token, connection);
            }
        }
    }

    /// Handles an event of a connection. `metrics` makes the text on request.
    pub fn on_event(&mut self, token: Token, metrics: impl FnOnce() -> String) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if connection.serve(metrics) == Life::Over {
            self.connections.remove(&token);
        }
    }

    /// Time at which the next connection is closed for slowness.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.connections.values().map(|connection| connection.until).min()
    }

    /// Closes connections that are too slow.
    pub fn on_wakeup(&mut self, now: Time) {
        self.connections.retain(|_, connection| connection.until > now);
    }
}

/// Whether a connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    GoesOn,
    Over,
}

impl Connection {
    fn serve(&mut self, metrics: impl FnOnce() -> String) -> Life {
        if self.answer.is_empty() {
            match self.read_head() {
                Some(Request::Metrics) => self.answer = answer("200 OK", METRICS_TYPE, &metrics()),
                Some(Request::Health) => self.answer = answer("200 OK", TEXT_TYPE, "ok\n"),
                Some(Request::Unknown) => {
                    self.answer = answer("404 Not Found", TEXT_TYPE, "there are /metrics and /healthz\n");
                }
                Some(Request::Malformed) => return Life::Over,
                None => return Life::GoesOn,
            }
        }
        self.send()
    }

    /// The request, once its head is complete.
    fn read_head(&mut self) -> Option<Request> {
        let mut room = [0; 1024];
        loop {
            if let Some(request) = request(&self.head) {
                return Some(request);
            }
            match self.stream.read(&mut room) {
                Ok(count) if count > 0 && self.head.len() + count <= HEAD_MAX => self.head.extend(&room[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Some(Request::Malformed),
            }
        }
    }

    fn send(&mut self) -> Life {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(count) if count > 0 => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Life::GoesOn,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Life::Over,
            }
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        Life::Over
    }
}

/// The request at the front of `head`, once it is complete.
fn request(head: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(status) if status.is_partial() => return None,
        Ok(_) if parsed.method == Some("GET") => {}
        _ => return Some(Request::Malformed),
    }
    let path = parsed.path.and_then(|path| path.split('?').next());
    Some(match path {
        Some("/metrics") => Request::Metrics,
        Some("/healthz") => Request::Health,
        _ => Request::Unknown,
    })
}

fn answer(status: &str, content: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_paths_are_served() {
        assert_eq!(request(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(Request::Metrics));
        assert_eq!(request(b"GET /healthz?full=1 HTTP/1.0\r\n\r\n"), Some(Request::Health));
        assert_eq!(request(b"GET / HTTP/1.1\r\n\r\n"), Some(Request::Unknown));
        assert_eq!(request(b"POST /metrics HTTP/1.1\r\n\r\n"), Some(Request::Malformed));
        assert_eq!(request(b"GET /metrics\r\n\r\n"), Some(Request::Malformed));
        assert_eq!(request(b"GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(head in prop::collection::vec(any::<u8>(), 0..64)) {
            request(&head);
        }
    }
}
