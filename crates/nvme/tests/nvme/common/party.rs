//! Hosts at a target of several machines. What happens next is drawn: bytes of any socket, a letter
//! of any pair of members, an answer of a backend. Letters of a pair keep their order.

use super::{Disks, PORT};
use base::Time;
use nvme::initiator::{Action, HostEvent, Initiator, InitiatorConfig, Payload, Ticket};
use nvme::target::*;
use nvme::{Body, Status};
use std::collections::{BTreeMap, VecDeque};

type Queue = (usize, u16);
/// Letters on their way, each with the queue whose connection it carries.
type Letters = VecDeque<(Letter, Option<Queue>)>;

/// Something that can happen.
#[derive(Clone, Copy)]
enum Next {
    Act(usize),
    ToTarget(Queue),
    ToHost(Queue),
    Post(Member),
    Letter(Member, Member),
}

pub struct Party {
    pub now: Time,
    pub members: Vec<Target>,
    pub disks: Disks,
    pub hosts: Vec<Initiator>,
    /// Where the connection of a queue is; none while a letter carries it.
    pub places: BTreeMap<Queue, Option<(Member, ConnectionId)>>,
    post: BTreeMap<(Member, Member), Letters>,
    pub held: Vec<(Member, IoRequest)>,
    /// What backends carried out, in order: the request's controller and whether it wrote, or the
    /// answer that a host got.
    pub history: Vec<Happened>,
    pub ended: BTreeMap<(usize, Ticket), Status>,
    pub data: BTreeMap<(usize, Ticket), Vec<u8>>,
    pub ready: Vec<usize>,
    draw: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    Wrote { controller: u16 },
    Answered { host: usize, ticket: Ticket },
}

impl Party {
    pub fn new(config: &TargetConfig, size: u16, seed: u64) -> Party {
        let member = |number| {
            let mut target = Target::new(config.clone()).unwrap();
            target.join(Member(number), size);
            target
        };
        Party {
            now: Time::secs(1),
            members: (0..size).map(member).collect(),
            disks: Disks::default(),
            hosts: Vec::new(),
            places: BTreeMap::new(),
            post: BTreeMap::new(),
            held: Vec::new(),
            history: Vec::new(),
            ended: BTreeMap::new(),
            data: BTreeMap::new(),
            ready: Vec::new(),
            draw: seed | 1,
        }
    }

    /// A number below `count`, by xorshift.
    pub fn draw(&mut self, count: usize) -> usize {
        self.draw ^= self.draw << 13;
        self.draw ^= self.draw >> 7;
        self.draw ^= self.draw << 17;
        (self.draw >> 20) as usize % count
    }

    pub fn join(&mut self, initiator: InitiatorConfig) -> usize {
        self.hosts.push(Initiator::new(initiator));
        self.hosts.len() - 1
    }

    pub fn submit(&mut self, host: usize, queue: u16, (body, payload): (Body, Payload)) -> (usize, Ticket) {
        (host, self.hosts[host].submit(self.now, queue, 1, body, payload).unwrap())
    }

    /// Everything goes on until nothing moves.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    pub fn run(&mut self, host: usize, queue: u16, command: (Body, Payload)) -> Status {
        let ticket = self.submit(host, queue, command);
        self.settle();
        self.ended[&ticket]
    }

    fn choices(&mut self) -> Vec<Next> {
        let mut all: Vec<Next> = (0..self.hosts.len()).map(Next::Act).collect();
        for (queue, place) in &self.places {
            let Some((member, connection)) = place else { continue };
            let target = &self.members[usize::from(member.0)];
            if target.wants_input(*connection) && self.hosts[queue.0].transmit(queue.1).flatten().next().is_some() {
                all.push(Next::ToTarget(*queue));
            }
            if target.has_output(*connection) || target.should_close(*connection).is_some() {
                all.push(Next::ToHost(*queue));
            }
        }
        let waiting = self.post.iter().filter(|(_, letters)| !letters.is_empty());
        all.extend(waiting.map(|((from, to), _)| Next::Letter(*from, *to)));
        all.extend((0..self.members.len() as u16).map(|number| Next::Post(Member(number))));
        all
    }

    /// One of the things that can happen does. Returns whether one did.
    pub fn step(&mut self) -> bool {
        // Backends are slow: most of the rest happens first.
        if self.draw(16) == 0 && self.answer_one() {
            return true;
        }
        let mut choices = self.choices();
        while !choices.is_empty() {
            let place = self.draw(choices.len());
            if self.happen(choices.swap_remove(place)) {
                self.gather();
                return true;
            }
        }
        self.answer_one()
    }

    fn answer_one(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let place = self.draw(self.held.len());
        let (member, request) = self.held.remove(place);
        let (tag, controller) = (request.tag, request.controller);
        if matches!(request.operation, IoOperation::Write { .. }) {
            self.history.push(Happened::Wrote { controller });
        }
        let result = self.disks.carry_out(request);
        self.members[usize::from(member.0)].complete(self.now, tag, result);
        self.gather();
        true
    }

    fn happen(&mut self, next: Next) -> bool {
        match next {
            Next::Act(host) => return self.act(host),
            Next::ToTarget(queue) => self.carry_to_target(queue),
            Next::ToHost(queue) => self.carry_to_host(queue),
            Next::Letter(from, to) => {
                let Some((letter, queue)) = self.post.get_mut(&(from, to)).and_then(VecDeque::pop_front) else {
                    return false;
                };
                let came = self.members[usize::from(to.0)].hear(self.now, letter);
                assert_eq!(came.is_some(), queue.is_some());
                if let (Some(queue), Some(place)) = (queue, came.map(|id| (to, id))) {
                    match self.places.get_mut(&queue) {
                        Some(known) => *known = Some(place),
                        // The host has closed it meanwhile.
                        None => self.members[usize::from(to.0)].closed(self.now, place.1),
                    }
                }
            }
            Next::Post(member) => return self.post(member),
        }
        true
    }

    fn act(&mut self, host: usize) -> bool {
        match self.hosts[host].next_action() {
            None => return false,
            Some(Action::Open(queue)) => match self.members[0].accept(self.now, PORT) {
                Ok(connection) => {
                    self.places.insert((host, queue), Some((Member::FIRST, connection)));
                    self.hosts[host].opened(self.now, queue);
                }
                Err(_) => self.hosts[host].closed(self.now, queue),
            },
            Some(Action::Close(queue)) => {
                if let Some(Some((member, connection))) = self.places.remove(&(host, queue)) {
                    self.members[usize::from(member.0)].closed(self.now, connection);
                }
            }
        }
        true
    }

    fn carry_to_target(&mut self, queue: Queue) {
        let Some(Some((member, connection))) = self.places.get(&queue).copied() else { return };
        let most = 1 + self.draw(200);
        let bytes: Vec<u8> = self.hosts[queue.0].transmit(queue.1).flatten().copied().take(most).collect();
        let taken = self.members[usize::from(member.0)].receive(self.now, connection, &bytes);
        self.hosts[queue.0].transmitted(queue.1, taken);
    }

    fn carry_to_host(&mut self, queue: Queue) {
        let Some(Some((member, connection))) = self.places.get(&queue).copied() else { return };
        let most = 1 + self.draw(200);
        let target = &mut self.members[usize::from(member.0)];
        let bytes: Vec<u8> = target.transmit(connection).flatten().copied().take(most).collect();
        target.transmitted(connection, bytes.len());
        if !bytes.is_empty() {
            self.hosts[queue.0].receive(self.now, queue.1, &bytes);
        }
        if self.members[usize::from(member.0)].should_close(connection).is_some() {
            self.places.remove(&queue);
            self.members[usize::from(member.0)].closed(self.now, connection);
            self.hosts[queue.0].closed(self.now, queue.1);
        }
    }

    /// The role of a member sends a letter on its way.
    fn post(&mut self, member: Member) -> bool {
        let Some(letter) = self.members[usize::from(member.0)].next_letter() else { return false };
        assert_eq!(letter.from, member);
        let of = |id| self.places.iter().find(|(_, place)| **place == Some((member, id))).map(|(queue, _)| *queue);
        let queue = letter.connection.map(|id| of(id).expect("the host has not closed it"));
        queue.into_iter().for_each(|queue| _ = self.places.insert(queue, None));
        self.post.entry((member, letter.to)).or_default().push_back((letter, queue));
        true
    }

    /// Takes what machines and hosts have given out.
    fn gather(&mut self) {
        for number in 0..self.members.len() as u16 {
            let member = Member(number);
            let target = &mut self.members[usize::from(number)];
            while let Some(request) = target.next_io() {
                self.held.push((member, request));
            }
            while target.next_active().is_some() {}
        }
        for host in 0..self.hosts.len() {
            while let Some(event) = self.hosts[host].next_event() {
                match event {
                    HostEvent::Ready { .. } => self.ready.push(host),
                    HostEvent::Completed { ticket, status, data, .. } => {
                        self.data.insert((host, ticket), data);
                        self.history.push(Happened::Answered { host, ticket });
                        self.ended.insert((host, ticket), status);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The member that has all connections of a host.
    pub fn member_of(&self, host: usize) -> Member {
        let mut places = self.places.iter().filter(|(queue, _)| queue.0 == host).map(|(_, place)| place.unwrap().0);
        let first = places.next().expect("it has connected");
        assert!(places.all(|other| other == first), "queues of a controller are in one member");
        first
    }

    /// A host goes without a word.
    pub fn vanish(&mut self, host: usize) {
        let queues: Vec<Queue> = self.places.keys().copied().filter(|queue| queue.0 == host).collect();
        for queue in queues {
            if let Some(Some((member, connection))) = self.places.remove(&queue) {
                self.members[usize::from(member.0)].closed(self.now, connection);
            }
        }
        self.gather();
    }
}
