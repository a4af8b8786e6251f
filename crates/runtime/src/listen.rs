//! Listening sockets, and the processes that hold their ports.

use crate::error::StartError;
use crate::in_use::InUse;
use mio::net::TcpListener;
use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Opens a listener at `text`, `ADDRESS:PORT`; port 0 takes a free one.
pub fn listen(text: &str) -> Result<TcpListener, StartError> {
    let address = resolve(text).map_err(|reason| StartError::Address { text: text.into(), reason })?;
    TcpListener::bind(address).map_err(|reason| match reason.kind() {
        io::ErrorKind::AddrInUse => StartError::InUse { address: text.into(), by: holder_of(address.port()) },
        _ => StartError::Listen { address: text.into(), reason },
    })
}

/// As [`listen`], but a check continues with a free port if another process holds this one.
/// `others` are addresses of the same file: a conflict among them is an error of the file.
pub fn listen_unless_in_use<'a>(
    text: &str,
    mut others: impl Iterator<Item = &'a str>,
    in_use: &InUse,
) -> Result<TcpListener, StartError> {
    let error = match listen(text) {
        Err(error @ StartError::InUse { .. }) => error,
        other => return other,
    };
    let wrong = |reason| StartError::Address { text: text.into(), reason };
    let address = resolve(text).map_err(wrong)?;
    if others.any(|other| resolve(other).is_ok_and(|other| is_in_the_way(address, other))) {
        return Err(error);
    }
    in_use.meet(error)?;
    listen(&SocketAddr::new(address.ip(), 0).to_string())
}

/// Whether the two addresses conflict.
fn is_in_the_way(one: SocketAddr, other: SocketAddr) -> bool {
    // On Linux's default, all addresses of IPv6 include those of IPv4.
    let covers = |all: SocketAddr, one: SocketAddr| all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    one.port() == other.port() && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}

/// The first address of a text.
pub fn resolve(text: &str) -> io::Result<SocketAddr> {
    let nothing = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    text.to_socket_addrs()?.next().ok_or_else(nothing)
}

/// The process that listens at a TCP port of this machine, as far as this process may see.
fn holder_of(port: u16) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let inodes: Vec<String> =
        tables.iter().flat_map(|table| table.lines()).filter_map(|line| listener(line, port)).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .find(|process| inodes.iter().any(|inode| has_open(*process, inode)))
        .map(|process| (process, name_of(process)))
}

/// The inode of the socket of a line of /proc/net/tcp, if it listens at `port` (proc(5)).
fn listener(line: &str, port: u16) -> Option<String> {
    /// TCP_LISTEN of the kernel.
    const LISTENS: &str = "0A";
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local_port, 16) == Ok(port) && columns.get(3) == Some(&LISTENS);
    is_it.then(|| (*columns.get(9)?).to_owned().into()).flatten()
}

fn has_open(process: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
}

fn name_of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).map_or("unknown".into(), |name| name.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_names_the_process_that_has_it() {
        let first = listen("127.0.0.1:0").expect("there is a free port");
        let address = first.local_addr().expect("it is bound").to_string();
        let error = listen(&address).expect_err("it is taken");
        let StartError::InUse { by: Some((process, _)), .. } = &error else { panic!("{error}") };
        assert_eq!(*process, std::process::id());
        assert!(error.to_string().starts_with(&format!("{address} is in use by process {process} (")), "{error}");
    }

    #[test]
    fn a_check_goes_on_where_another_listens_and_not_where_the_file_is_in_its_own_way() {
        let first = listen("127.0.0.1:0").expect("there is a free port");
        let address = first.local_addr().expect("it is bound");
        let text = address.to_string();
        let in_use = InUse::noted();
        let beside = listen_unless_in_use(&text, [].into_iter(), &in_use).expect("it goes on");
        assert_ne!(beside.local_addr().expect("it is bound").port(), address.port());
        let every = format!("0.0.0.0:{}", address.port());
        for other in [&text, &every, &format!("[::]:{}", address.port())] {
            let own = listen_unless_in_use(&text, [other.as_str()].into_iter(), &in_use);
            assert!(own.is_err_and(|error| error.to_string().contains("is in use")), "{other}");
        }
        for other in [&format!("127.0.0.2:{}", address.port()), &format!("[::1]:{}", address.port()), "127.0.0.1:0"] {
            assert!(listen_unless_in_use(&text, [other].into_iter(), &in_use).is_ok(), "{other}");
        }
        assert!(listen_unless_in_use(&text, [].into_iter(), &InUse::Refused).is_err());
        assert_eq!(in_use.into_all().len(), 4);
    }

    #[test]
    fn an_address_that_means_nothing_is_told_as_written() {
        let error = listen("not-an-address").expect_err("it has no port").to_string();
        assert!(error.starts_with("`not-an-address` is not a valid address to listen on"), "{error}");
    }
}
