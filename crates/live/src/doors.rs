//! The listeners, one per port of the plan. A port keeps its number in the target while it exists,
//! wherever it is in the file.

use crate::error::StartError;
use crate::in_use::InUse;
use crate::listen::listen_unless_in_use;
use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use nvme::target::PortId;
use plan::target::TargetPlan;
use std::net::SocketAddr;
use std::ops::Range;

/// One listener.
pub(crate) struct Door {
    pub id: PortId,
    pub listener: TcpListener,
    address: SocketAddr,
    /// The port as the plan has it.
    text: String,
    token: usize,
}

/// All listeners, in the order of the plan.
pub(crate) struct Doors {
    pub all: Vec<Door>,
    last: u16,
    tokens: Range<usize>,
}

/// The listeners of another plan: those that stay, by their current places, and new ones, which
/// listen already.
pub(crate) struct NextDoors {
    all: Vec<Next>,
    last: u16,
}

enum Next {
    Stays(usize),
    New(Door),
}

impl Doors {
    /// No listeners yet. `tokens` has to hold twice as many tokens as a plan has ports.
    pub(crate) fn new(tokens: Range<usize>) -> Doors {
        Doors { all: Vec::new(), last: 0, tokens }
    }

    /// Opens listeners for the addresses of `plan` that have none yet.
    pub(crate) fn prepare(
        &self,
        plan: &TargetPlan,
        registry: &Registry,
        in_use: &InUse,
    ) -> Result<NextDoors, StartError> {
        let mut next = NextDoors { all: Vec::new(), last: self.last };
        let mut left: Vec<usize> = (0..self.all.len()).collect();
        let mut free = self.tokens.clone().filter(|token| !self.all.iter().any(|door| door.token == *token));
        for (number, port) in plan.ports.iter().enumerate() {
            if let Some(at) = left.iter().position(|index| self.all[*index].text == port.address) {
                next.all.push(Next::Stays(left.remove(at)));
                continue;
            }
            let before = plan.ports[..number].iter().map(|port| port.address.as_str());
            let mut listener = listen_unless_in_use(&port.address, before, in_use)?;
            let token = free.next().expect("there are twice as many tokens as ports");
            let registered = registry.register(&mut listener, Token(token), Interest::READABLE);
            registered.map_err(StartError::system("the event queue"))?;
            let address = listener.local_addr().map_err(StartError::system("an address"))?;
            next.last += 1;
            next.all.push(Next::New(Door {
                id: PortId(next.last),
                listener,
                address,
                text: port.address.clone(),
                token,
            }));
        }
        Ok(next)
    }

    /// Numbers and addresses of the listeners of `next`, in the order of their plan.
    pub(crate) fn numbers(&self, next: &NextDoors) -> Vec<(PortId, SocketAddr)> {
        let door = |next: &'_ Next| match next {
            Next::Stays(at) => (self.all[*at].id, self.all[*at].address),
            Next::New(door) => (door.id, door.address),
        };
        next.all.iter().map(door).collect()
    }

    /// Opens the new listeners and closes those that do not stay.
    pub(crate) fn change(&mut self, next: NextDoors) {
        let mut old: Vec<Option<Door>> = self.all.drain(..).map(Some).collect();
        let door = |next| match next {
            Next::Stays(at) => old[at].take().expect("each stays once"),
            Next::New(door) => door,
        };
        self.all = next.all.into_iter().map(door).collect();
        self.last = next.last;
    }

    /// The place of the listener with this token.
    pub(crate) fn of_token(&self, token: usize) -> Option<usize> {
        self.all.iter().position(|door| door.token == token)
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|door| door.address).collect()
    }
}
