//! The door with TLS. Certificates are made by the program `openssl`; without it, the tests are
//! skipped with a sentence.
#![cfg(feature = "tls")]

mod common;

use base::Span;
use common::{Running, config, is_closed, with};
use kv::{Config, Limits, TlsFiles};
use openssl::ssl::{SslConnector, SslFiletype, SslMethod, SslStream};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A certificate for localhost that is its own root, and its key; `None` without the program.
fn certificate(folder: &Path, name: &str) -> Option<TlsFiles> {
    let [certificate, key] = ["crt", "key"].map(|kind| folder.join(format!("{name}.{kind}")));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout"]);
    let made = command.arg(&key).arg("-out").arg(&certificate).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: the program openssl made no certificate");
        return None;
    }
    Some(TlsFiles { certificate, key, clients: None })
}

fn connect(address: SocketAddr, root: &TlsFiles, own: Option<&TlsFiles>) -> Result<SslStream<TcpStream>, String> {
    let mut builder = SslConnector::builder(SslMethod::tls_client()).expect("there is OpenSSL");
    builder.set_ca_file(&root.certificate).expect("it was made");
    if let Some(own) = own {
        builder.set_certificate_chain_file(&own.certificate).expect("it was made");
        builder.set_private_key_file(&own.key, SslFiletype::PEM).expect("it was made");
    }
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    builder.build().connect("localhost", stream).map_err(|error| error.to_string())
}

fn expect(stream: &mut SslStream<TcpStream>, reply: &[u8]) {
    let mut got = vec![0; reply.len()];
    stream.read_exact(&mut got).expect("the store answers");
    assert!(got == reply, "{}", got[..got.len().min(100)].escape_ascii());
}

#[test]
fn commands_and_long_values_pass_in_many_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = certificate(folder.path(), "door") else { return };
    let long = 1 << 20;
    let config =
        with(config(folder.path()), |jbof| (jbof.value_bytes_max, jbof.zone_sectors) = (long as u32, 24 << 10));
    let config = Config { tls: Some(files.clone()), ..config };
    let store = Running::start(config);
    let mut client = connect(store.address, &files, None).expect("the certificate is right");
    let value: Vec<u8> = (0..long).map(|at| ((at * 31) >> 7) as u8).collect();
    for round in 0..3 {
        client.write_all(format!("*3\r\n$3\r\nSET\r\n$2\r\nk{round}\r\n${long}\r\n").as_bytes()).expect("it is read");
        client.write_all(&value).expect("it is read");
        client.write_all(b"\r\nPING\r\n").expect("it is read");
        expect(&mut client, b"+OK\r\n+PONG\r\n");
    }
    client.write_all(b"GET k0\r\nGET k1\r\nGET k2\r\nGET k3\r\n").expect("it is read");
    for _ in 0..3 {
        expect(&mut client, format!("${long}\r\n").as_bytes());
        expect(&mut client, &value);
        expect(&mut client, b"\r\n");
    }
    expect(&mut client, b"$-1\r\n");
}

#[test]
fn redis_cli_works_with_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = certificate(folder.path(), "door") else { return };
    let store = Running::start(Config { tls: Some(files.clone()), ..config(folder.path()) });
    let port = store.address.port().to_string();
    let ask = |words: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.args(["-h", "localhost", "-p", &port, "--tls", "--cacert"]).arg(&files.certificate).args(words);
        command
            .output()
            .ok()
            .map(|output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    match ask(&["SET", "a key", "a value"]) {
        None => eprintln!("skipped: redis-cli is not installed"),
        Some(told) if told.contains("Unrecognized option") => eprintln!("skipped: this redis-cli has no TLS"),
        Some(told) => {
            assert_eq!(told, "OK\n");
            assert_eq!(ask(&["GET", "a key"]).as_deref(), Some("a value\n"));
        }
    }
}

#[test]
fn who_does_not_speak_tls_or_does_not_come_to_an_end_of_its_handshake_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = certificate(folder.path(), "door") else { return };
    // Longer than a machine with other work may keep `good` from its handshake.
    let limits = Limits { handshake: Span::secs(3), ..Limits::default() };
    let store = Running::start(Config { tls: Some(files.clone()), limits, ..config(folder.path()) });
    let mut good = connect(store.address, &files, None).expect("the certificate is right");
    let mut plain = store.client();
    plain.send(&[b"PING"]);
    assert!(plain.reply().is_none_or(|frame| panic!("{frame:?}")));
    let mut silent = store.client();
    assert!(is_closed(&mut silent.stream), "its handshake never ends");
    good.write_all(b"PING\r\n").expect("it is read");
    expect(&mut good, b"+PONG\r\n");
}

#[test]
fn clients_need_a_certificate_where_the_file_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (Some(door), Some(client)) = (certificate(folder.path(), "door"), certificate(folder.path(), "client")) else {
        return;
    };
    let files = TlsFiles { clients: Some(client.certificate.clone()), ..door.clone() };
    let store = Running::start(Config { tls: Some(files), ..config(folder.path()) });
    // TLS 1.3 tells it with the first answer.
    let answered = |own: Option<&TlsFiles>| {
        let mut stream = connect(store.address, &door, own).ok()?;
        stream.write_all(b"PING\r\n").ok()?;
        let mut got = [0; 7];
        stream.read_exact(&mut got).ok().map(|()| got)
    };
    assert_eq!(answered(Some(&client)).as_ref(), Some(b"+PONG\r\n"));
    assert_eq!((answered(None), answered(Some(&door))), (None, None));
}

#[test]
fn files_that_do_not_belong_together_are_refused_with_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let (Some(one), Some(other)) = (certificate(folder.path(), "one"), certificate(folder.path(), "other")) else {
        return;
    };
    let refused = |tls: TlsFiles| match kv::Store::start(Config { tls: Some(tls), ..config(folder.path()) }, false) {
        Ok(_) => panic!("it is refused"),
        Err(error) => error.to_string(),
    };
    assert!(refused(TlsFiles { key: other.key, ..one.clone() }).contains("other.key"));
    assert!(refused(TlsFiles { certificate: folder.path().join("none"), ..one }).contains("none"));
}
