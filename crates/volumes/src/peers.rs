//! Where the nodes of a rack are: addresses, and names that are looked up again and again.
//!
//! A name may stand for another address later, as that of a pod that was started anew. A thread
//! asks the system for names: an answer takes as long as it takes.

use base::NodeId;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// Time between two looks at the names.
const PAUSE: Duration = Duration::from_secs(2);

/// Addresses by node, as far as they are known.
type Addresses = Vec<Option<SocketAddr>>;

/// What the thread has found out.
struct Found {
    addresses: Mutex<Addresses>,
    changes: AtomicU64,
}

/// The addresses of those that a role sends to.
pub(crate) struct Peers {
    addresses: Addresses,
    found: Option<Arc<Found>>,
    #[cfg(test)]
    thread: Option<thread::JoinHandle<()>>,
    seen: u64,
}

impl Peers {
    /// `reached` has an address or a name by node; an empty text is nobody. Names have to stand for
    /// addresses of the same kind as `own`.
    pub fn new(reached: Vec<String>, own: SocketAddr) -> Peers {
        let addresses: Addresses = reached.iter().map(|text| text.parse().ok()).collect();
        let is_name = |(text, address): (&String, &Option<SocketAddr>)| !text.is_empty() && address.is_none();
        let mut peers = Peers {
            addresses,
            found: None,
            #[cfg(test)]
            thread: None,
            seen: 0,
        };
        if reached.iter().zip(&peers.addresses).any(is_name) {
            let found = Found { addresses: Mutex::new(peers.addresses.clone()), changes: AtomicU64::new(0) };
            let found = Arc::new(found);
            let held = Arc::downgrade(&found);
            let look = move || look_up(&reached, own, &held);
            match thread::Builder::new().name("rack-names".into()).spawn(look) {
                Err(error) => tracing::error!(%error, "no thread to look names up"),
                #[cfg(test)]
                Ok(thread) => peers.thread = Some(thread),
                #[cfg(not(test))]
                Ok(_) => {}
            }
            peers.found = Some(found);
        }
        peers
    }

    /// Where a node is, if that is known.
    pub fn address(&mut self, node: NodeId) -> Option<SocketAddr> {
        if let Some(found) = &self.found {
            let changes = found.changes.load(Ordering::Acquire);
            if changes != self.seen {
                self.seen = changes;
                self.addresses.clone_from(&found.addresses.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        self.addresses.get(node.index()).copied().flatten()
    }
}

/// Looks names up until nobody wants to know any more.
fn look_up(reached: &[String], own: SocketAddr, held: &Weak<Found>) {
    let mut unknown = vec![false; reached.len()];
    loop {
        for (node, name) in reached.iter().enumerate().filter(|(_, name)| is_name(name)) {
            let looked = addresses_of(name, own);
            let Some(found) = held.upgrade() else { return };
            let mut addresses = found.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            // One of several that is in use stays so.
            let used = |all: &[SocketAddr]| addresses[node].filter(|address| all.contains(address));
            let looked = looked.map(|all| used(&all).unwrap_or(all[0]));
            match looked {
                Ok(address) if addresses[node] == Some(address) => unknown[node] = false,
                Ok(address) => {
                    tracing::info!(%name, %address, "a name stands for this address");
                    unknown[node] = false;
                    addresses[node] = Some(address);
                    found.changes.fetch_add(1, Ordering::Release);
                }
                // Where it was it may still be.
                Err(reason) if !std::mem::replace(&mut unknown[node], true) => {
                    tracing::warn!(%name, %reason, "no address for this name yet");
                }
                Err(_) => {}
            }
        }
        thread::sleep(PAUSE);
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.parse::<SocketAddr>().is_err()
}

/// The addresses of the kind that the own socket can send to, one at least.
fn addresses_of(name: &str, own: SocketAddr) -> Result<Vec<SocketAddr>, String> {
    let all = name.to_socket_addrs().map_err(|error| error.to_string())?;
    let kind = if own.is_ipv4() { "IPv4" } else { "IPv6" };
    let right: Vec<SocketAddr> = all.filter(|address| address.is_ipv4() == own.is_ipv4()).collect();
    if right.is_empty() { Err(format!("it has no {kind} address")) } else { Ok(right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn addresses_are_known_at_once_and_names_soon() {
        let own: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        let reached = ["127.0.0.1:7", "", "localhost:8", "no-such-name.invalid:9"].map(str::to_owned).to_vec();
        let mut peers = Peers::new(reached, own);
        assert_eq!(peers.address(NodeId(0)), "127.0.0.1:7".parse().ok());
        assert_eq!([1, 3, 4].map(|node| peers.address(NodeId(node))), [None; 3]);
        let until = Instant::now() + Duration::from_secs(60);
        while peers.address(NodeId(2)) != "127.0.0.1:8".parse().ok() {
            assert!(Instant::now() < until, "localhost has an address");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(peers.address(NodeId(3)), None);
    }

    #[test]
    fn without_names_there_is_no_thread_and_with_one_it_ends() {
        let own: SocketAddr = "[::1]:1".parse().expect("an address");
        assert!(Peers::new(vec!["[::1]:7".into(), String::new()], own).found.is_none());
        let mut peers = Peers::new(vec!["localhost:7".into()], own);
        let thread = peers.thread.take().expect("it has a name");
        drop(peers);
        let until = Instant::now() + Duration::from_secs(60);
        while !thread.is_finished() {
            assert!(Instant::now() < until, "it looks names up for nobody");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
