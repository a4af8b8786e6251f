//! A group: several machines that serve one target, each in a thread of its own. A controller lives
//! in one member with all its queues. The first member accepts connections, gives controllers their
//! numbers and decides reservations; the others hear of it by letters.
//!
//! Letters from one member to another arrive in the order in which they were sent.

use crate::target::connection::Stage;
use crate::target::hand_over::HandOver;
use crate::target::io::IoTag;
use crate::target::reservations::{Effects, Reservations};
use crate::target::{ConnectionId, Target};
use crate::{Command, HostId, Nqn, Status};
use base::Time;
use std::collections::{BTreeMap, VecDeque};

/// One machine of a group, by its number from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(pub u16);

impl Member {
    /// The member that accepts connections and decides what all share.
    pub const FIRST: Member = Member(0);
}

/// What one member has to tell another.
#[derive(Debug)]
pub struct Letter {
    /// The sender.
    pub from: Member,
    /// Who has to [hear](Target::hear) it.
    pub to: Member,
    /// The sender's connection that goes with the letter: its socket belongs to the receiver from
    /// now on, with the bytes that the sender has not taken.
    pub connection: Option<ConnectionId>,
    pub(super) content: Content,
}

/// The content of a letter.
#[derive(Debug)]
pub(super) enum Content {
    /// A connection whose Connect belongs to the receiver.
    Connection(Box<HandOver>),
    /// A connection that the first member has given away is closed.
    ConnectionEnded,
    /// A member has this controller now.
    ControllerOpened(u16, Box<Elsewhere>),
    /// The controller is gone.
    ControllerEnded(u16),
    /// A reservation command, which the first member decides.
    Reserve(Box<Asked>),
    /// The answer to it.
    Reserved { tag: IoTag, status: Status },
    /// The reservations of a namespace from now on.
    Reservations(Box<News>),
    /// The sender has taken them, and nothing that they refuse is under way.
    Taken(IoTag),
}

/// A controller of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) host: Nqn,
    pub(super) host_id: HostId,
    /// `None` for the discovery subsystem.
    pub(super) subsystem: Option<Nqn>,
}

/// A reservation command of another member.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) asker: Asker,
    pub(super) command: Command,
    pub(super) data: Vec<u8>,
}

/// Who waits for the answer to a reservation command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) member: Member,
    /// The member's command.
    pub(super) tag: IoTag,
    pub(super) subsystem: Nqn,
    pub(super) host: HostId,
}

/// New reservations of a namespace.
#[derive(Clone, Debug)]
pub(super) struct News {
    /// The first member's command.
    pub(super) tag: IoTag,
    pub(super) subsystem: Nqn,
    pub(super) namespace: u32,
    pub(super) state: Reservations,
    pub(super) effects: Effects,
}

/// Commands that new reservations refuse and that are under way. The first member's command is
/// answered when they are over.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) of: IoTag,
    pub(super) commands: Vec<IoTag>,
}

/// What a machine knows of its group. Alone, it knows nothing of others and is never asked.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) own: Member,
    /// Members, this one included.
    pub(super) size: u16,
    letters: VecDeque<Letter>,
    /// Connections that the first member has given to others, and that are open.
    pub(super) away: usize,
    /// Controllers of other members.
    pub(super) elsewhere: BTreeMap<u16, Elsewhere>,
    /// By the place of a command of the target's own: who waits for it.
    pub(super) askers: BTreeMap<u32, Asker>,
    pub(super) drains: Vec<Drain>,
}

impl Group {
    /// A machine without others.
    pub(super) fn alone() -> Group {
        let (letters, elsewhere, askers, drains) = Default::default();
        Group { own: Member::FIRST, size: 1, letters, away: 0, elsewhere, askers, drains }
    }

    pub(super) fn is_first(&self) -> bool {
        self.own == Member::FIRST
    }

    /// The member to which a controller of this number belongs.
    pub(super) fn member_of(&self, controller: u16) -> Member {
        Member(controller % self.size)
    }

    /// The member with the fewest controllers, of those the first. This one has `own`.
    pub(super) fn least(&self, own: usize) -> Member {
        let mut counts = vec![0; usize::from(self.size)];
        counts[usize::from(self.own.0)] = own;
        self.elsewhere.keys().for_each(|id| counts[usize::from(self.member_of(*id).0)] += 1);
        let least = (0..self.size).min_by_key(|number| counts[usize::from(*number)]);
        Member(least.unwrap_or(0))
    }

    /// Controllers of `host` that other members have.
    pub(super) fn count_of(&self, host: &Nqn) -> usize {
        self.elsewhere.values().filter(|known| known.host == *host).count()
    }

    pub(super) fn send(&mut self, to: Member, content: Content) {
        self.letters.push_back(Letter { from: self.own, to, connection: None, content });
    }

    pub(super) fn send_connection(&mut self, to: Member, hand_over: HandOver) {
        let connection = Some(hand_over.connection);
        let content = Content::Connection(Box::new(hand_over));
        self.letters.push_back(Letter { from: self.own, to, connection, content });
    }

    /// Sends to all members but this one and `except`.
    pub(super) fn send_others(&mut self, except: Member, content: impl Fn() -> Content) {
        let own = self.own;
        for number in (0..self.size).filter(|number| ![own.0, except.0].contains(number)) {
            self.send(Member(number), content());
        }
    }

    /// The first member has given a controller this number.
    pub(super) fn opened(&mut self, id: u16, known: Elsewhere) {
        let member = self.member_of(id);
        self.send_others(member, || Content::ControllerOpened(id, Box::new(known)));
        if member != self.own {
            self.elsewhere.insert(id, known);
        }
    }

    fn next_letter(&mut self) -> Option<Letter> {
        self.letters.pop_front()
    }

    /// A controller of another member is gone.
    pub(super) fn forget(&mut self, id: u16) {
        let member = self.member_of(id);
        if self.elsewhere.remove(&id).is_some() && self.is_first() {
            self.send_others(member, || Content::ControllerEnded(id));
        }
    }
}

impl Target {
    /// Makes this machine one of `size` that serve the target together, all of the same
    /// configuration. Call it before anything else, with a size from 1 on. The first member alone
    /// [accepts](Self::accept) connections; its limits are those of the group.
    pub fn join(&mut self, own: Member, size: u16) {
        debug_assert!(own.0 < size && self.connections.count() == 0);
        (self.group.own, self.group.size) = (own, size);
        // No two members make the same challenge.
        self.challenges = u64::from(own.0) << 48;
    }

    /// The next letter for another member. One with a connection takes that connection from this
    /// machine.
    pub fn next_letter(&mut self) -> Option<Letter> {
        loop {
            let mut letter = self.group.next_letter()?;
            let Content::Connection(hand_over) = &mut letter.content else { return Some(letter) };
            let index = self.connections.find(hand_over.connection);
            let Some(index) = index.filter(|index| self.connections[*index].stage == Stage::Leaving) else {
                // The host has left meanwhile.
                let unused = hand_over.controller.filter(|_| hand_over.is_admin());
                unused.into_iter().for_each(|id| self.group.forget(id));
                continue;
            };
            hand_over.unsent = self.connections[index].out.slices().flatten().copied().collect();
            self.connections.close(index, &mut self.io);
            self.group.away += usize::from(self.group.is_first());
            return Some(letter);
        }
    }

    /// Takes a letter of another member. Returns the connection that has come with it: serve its
    /// socket from now on.
    pub fn hear(&mut self, now: Time, letter: Letter) -> Option<ConnectionId> {
        self.clock.pass(now);
        match letter.content {
            Content::Connection(hand_over) => return Some(self.adopt(*hand_over)),
            Content::ConnectionEnded => self.group.away -= 1,
            Content::ControllerOpened(id, known) => {
                self.group.elsewhere.insert(id, *known);
            }
            Content::ControllerEnded(id) => self.group.forget(id),
            Content::Reserve(asked) => self.on_asked(*asked),
            Content::Reserved { tag, status } => self.on_decided(tag, status),
            Content::Reservations(news) => self.take_news(*news),
            Content::Taken(tag) => self.on_taken(tag),
        }
        None
    }
}
