//! In-band authentication of a connection: until it is through, nothing else is carried out. A host
//! that is through may prove itself anew at any time.

use crate::auth::{
    Entropy, FailureReason, GroupId, HashId, MESSAGE_MAX, Message, PROTOCOL, Question, SPECIFIC, Secret, Speaker,
    augment, is_same, respond,
};
use crate::target::Target;
use crate::target::controller::Controller;
use crate::target::flight::Transfer;
use crate::target::notice::{AuthenticationFault, CloseReason, Notice};
use crate::{Fabrics, Nqn, Status};
use base::{Span, Time};
use std::collections::BTreeMap;

/// Who has to authenticate, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationConfig {
    /// What challenges and private values are derived from.
    pub entropy: Entropy,
    /// Hosts that have to prove who they are. A host that is not among them is let in without, if
    /// the subsystem lets it in: list its hosts.
    pub hosts: BTreeMap<Nqn, HostSecrets>,
    /// Hash functions that are taken; of those the host's first is used.
    pub hashes: Vec<HashId>,
    /// Groups of Diffie and Hellman that are taken; the first that the host offers is used.
    pub groups: Vec<GroupId>,
    /// What exponentiations may cost a second, in [such of 2,048 bits](GroupId::cost), of
    /// authentications that come to nothing: strangers can ask for them. What is beyond that is
    /// told to come again.
    pub exponent_cost_per_second: u32,
}

/// Secrets that a host shares with the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSecrets {
    /// By which the host proves itself.
    pub host: Secret,
    /// By which the target proves itself to a host that asks; `None` to have such a host fail.
    pub controller: Option<Secret>,
}

/// What has to come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Negotiate, from the host.
    Negotiate,
    /// The host fetches its challenge.
    Challenge,
    /// Reply, from the host.
    Reply,
    /// The host fetches the end; whether it then says that it is satisfied too.
    Success { is_mutual: bool },
    /// The host fetches why it failed.
    Failure(FailureReason),
    /// The host says that it is satisfied.
    Confirmation,
}

/// How far the authentication of a connection is.
#[derive(Clone, Debug)]
pub(super) struct Authentication {
    secrets: HostSecrets,
    entropy: Entropy,
    stage: Stage,
    /// The host has proved itself once.
    is_proven: bool,
    transaction: u16,
    hash: HashId,
    group: GroupId,
    /// Which challenge of the target it is; its private value goes by the same.
    number: u64,
    challenge: Vec<u8>,
    /// What the host asked of us.
    answer: Option<Vec<u8>>,
}

/// What became of a message of the host.
enum Step {
    /// The transaction goes on.
    On,
    /// There is no time for it now.
    Busy,
    /// The host is who it says.
    Passed,
    /// It ends.
    Ended(FailureReason),
}

/// What of a host's offers is taken.
struct Choice<'a> {
    config: &'a AuthenticationConfig,
    exertion: &'a mut Exertion,
    now: Time,
    number: u64,
}

/// How far exponentiations have used up the time that they may take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exertion {
    /// All of it is there again at this time.
    rested: Time,
}

impl Exertion {
    /// Whether there is time for so much at a rate of so much a second; takes it then. A second's
    /// worth may be used at once.
    fn take(&mut self, now: Time, cost: u64, per_second: u32) -> bool {
        let (second, span) = (Span::secs(1), span_of(cost, per_second));
        let from = self.rested.max(now);
        let is_free = cost == 0 || from.saturating_since(now) < second;
        if is_free {
            self.rested = from.checked_add(span).unwrap_or(from);
        }
        is_free
    }

    /// It was worth it.
    fn give_back(&mut self, cost: u64, per_second: u32) {
        let rested = self.rested.as_ps().saturating_sub(span_of(cost, per_second).as_ps());
        self.rested = Time::ps(rested);
    }
}

fn span_of(cost: u64, per_second: u32) -> Span {
    Span::ps((Span::secs(1).as_ps() / u64::from(per_second.max(1))).saturating_mul(cost))
}

/// One for the public value, one for what both share.
fn exchange_cost(group: GroupId) -> u64 {
    2 * group.cost()
}

impl Authentication {
    fn new(secrets: HostSecrets, entropy: Entropy) -> Self {
        Authentication {
            secrets,
            entropy,
            stage: Stage::Negotiate,
            is_proven: false,
            transaction: 0,
            hash: HashId::Sha256,
            group: GroupId::Null,
            number: 0,
            challenge: Vec::new(),
            answer: None,
        }
    }

    /// Whether the host has proved itself.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    fn fail(&mut self, reason: FailureReason) -> Step {
        self.stage = Stage::Failure(reason);
        Step::On
    }

    fn take(&mut self, bytes: &[u8], names: (&str, &str), choice: Choice<'_>) -> Step {
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(reason) => return self.fail(reason),
        };
        match (self.stage, message) {
            (_, Message::Failure { reason, .. }) => Step::Ended(reason),
            (Stage::Negotiate, Message::Negotiate { transaction, wants_channel, hashes, groups }) => {
                self.transaction = transaction;
                self.negotiate(wants_channel, &hashes, &groups, choice)
            }
            (Stage::Reply, Message::Reply { transaction, response, challenge, public })
                if transaction == self.transaction =>
            {
                self.check(&response, challenge, &public, names)
            }
            (Stage::Confirmation, Message::Success2 { transaction }) if transaction == self.transaction => Step::Passed,
            _ => self.fail(FailureReason::IncorrectMessage),
        }
    }

    fn negotiate(&mut self, wants_channel: bool, hashes: &[HashId], groups: &[GroupId], choice: Choice<'_>) -> Step {
        let Choice { config, exertion, now, number } = choice;
        if wants_channel {
            return self.fail(FailureReason::Concatenation);
        }
        // The host's order is its preference.
        let Some(hash) = hashes.iter().find(|hash| config.hashes.contains(hash)) else {
            return self.fail(FailureReason::HashNotUsable);
        };
        let Some(group) = config.groups.iter().find(|group| groups.contains(group)) else {
            return self.fail(FailureReason::GroupNotUsable);
        };
        if !exertion.take(now, exchange_cost(*group), config.exponent_cost_per_second) {
            return Step::Busy;
        }
        (self.hash, self.group, self.stage, self.number) = (*hash, *group, Stage::Challenge, number);
        self.challenge = self.entropy.derive(b"challenge", number)[..hash.bytes()].to_vec();
        Step::On
    }

    /// The number of the challenge: zero would say that there is none (Base 2.0, 8.13.5.4).
    fn sequence(&self) -> u32 {
        (self.number as u32).max(1)
    }

    fn private(&self) -> [u8; crate::auth::PRIVATE_MAX] {
        self.entropy.derive(b"private value", self.number)
    }

    /// What a challenge becomes in a group; `None` where the host's public value is none of it.
    fn augmented(&self, challenge: &[u8], shared: Option<&[u8]>) -> Vec<u8> {
        shared.map_or_else(|| challenge.to_vec(), |shared| augment(self.hash, shared, challenge))
    }

    fn check(
        &mut self,
        response: &[u8],
        challenge: Option<(Vec<u8>, u32)>,
        public: &[u8],
        (host, subsystem): (&str, &str),
    ) -> Step {
        let (hash, transaction) = (self.hash, self.transaction);
        let shared = self.group.shared(&self.private(), public);
        let has_value = self.group == GroupId::Null && public.is_empty() || shared.is_some();
        if !has_value || response.len() != hash.bytes() {
            return self.fail(FailureReason::IncorrectPayload);
        }
        let own = self.augmented(&self.challenge, shared.as_deref());
        let asked = Question { hash, challenge: &own, sequence: self.sequence(), transaction, host, subsystem };
        if !is_same(&respond(&self.secrets.host, Speaker::Host, &asked), response) {
            return self.fail(FailureReason::Failed);
        }
        let is_mutual = challenge.is_some();
        if let Some((challenge, sequence)) = challenge {
            // Its own challenge sent back would have the target answer for the host (Base 2.0,
            // 8.13.5.5).
            let Some(secret) = self.secrets.controller.as_ref().filter(|_| challenge != self.challenge) else {
                return self.fail(FailureReason::Failed);
            };
            let theirs = self.augmented(&challenge, shared.as_deref());
            let asked = Question { challenge: &theirs, sequence, ..asked };
            self.answer = Some(respond(secret, Speaker::Controller, &asked));
        }
        self.stage = Stage::Success { is_mutual };
        Step::On
    }

    /// What the host fetches, and whether it is through or out by it; `None` when there is nothing
    /// to fetch.
    fn give(&mut self) -> Option<(Message, Step)> {
        let transaction = self.transaction;
        match self.stage {
            Stage::Challenge => {
                self.stage = Stage::Reply;
                let (hash, group, sequence) = (self.hash, self.group, self.sequence());
                let (challenge, public) = (self.challenge.clone(), group.public(&self.private()));
                Some((Message::Challenge { transaction, hash, group, sequence, challenge, public }, Step::On))
            }
            Stage::Success { is_mutual } => {
                self.stage = Stage::Confirmation;
                let success = Message::Success1 { transaction, hash: self.hash, response: self.answer.take() };
                Some((success, if is_mutual { Step::On } else { Step::Passed }))
            }
            Stage::Failure(reason) => {
                Some((Message::Failure { transaction, is_from_controller: true, reason }, Step::Ended(reason)))
            }
            Stage::Negotiate | Stage::Reply | Stage::Confirmation => None,
        }
    }
}

impl Target {
    /// What a host that connects has to go through, if anything.
    pub(super) fn authentication_of(&self, controller: &Controller) -> Option<Box<Authentication>> {
        let config = self.subsystems[controller.subsystem()?].config.authentication.as_ref()?;
        let secrets = config.hosts.get(&controller.host)?.clone();
        Some(Box::new(Authentication::new(secrets, config.entropy.clone())))
    }

    /// What an authentication command moves, on a connection that has something to prove.
    pub(super) fn authentication_transfer(&self, index: u32, fabrics: Fabrics) -> Result<Transfer, Status> {
        let (Fabrics::AuthenticationSend { protocol, specific, length }
        | Fabrics::AuthenticationReceive { protocol, specific, length }) = fabrics
        else {
            return Err(Status::INVALID_OPCODE.without_retry());
        };
        if self.connections[index].authentication.is_none() {
            return Err(Status::INVALID_OPCODE.without_retry());
        }
        if (protocol, specific) != (PROTOCOL, SPECIFIC) || !(1..=MESSAGE_MAX).contains(&length) {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        let is_send = matches!(fabrics, Fabrics::AuthenticationSend { .. });
        Ok(if is_send { Transfer::In(length) } else { Transfer::Out(length) })
    }

    /// A message of the host.
    pub(super) fn on_authentication_send(&mut self, index: u32, slot: u32) {
        let Some((host, subsystem)) = self.names_of(index) else { return };
        let Some(mut state) = self.connections[index].authentication.take() else { return };
        let bytes = std::mem::take(&mut self.flights[slot].buffer);
        let step = self.heard(index, &mut state, &bytes);
        self.flights[slot].buffer = bytes;
        if let (Stage::Failure(reason), Step::On) = (state.stage, &step) {
            self.counters.authentications_failed += 1;
            let (connection, why) = (self.connections[index].id, AuthenticationFault::Refused(reason));
            self.notice(Notice::NotAuthenticated { connection, host, subsystem, why });
            // Whatever it proved before: it may fetch why, and that is all.
            state.is_proven = false;
            self.set_deadline(index, self.limits.handshake);
        }
        // What is not through stands again before anything else happens.
        self.after_authentication(index, state, &step);
        let status = if matches!(step, Step::Busy) { Status::INTERRUPTED } else { Status::SUCCESS };
        self.finish(slot, status, 0);
        self.end_authentication(index, &step);
    }

    fn heard(&mut self, index: u32, state: &mut Authentication, bytes: &[u8]) -> Step {
        let Some((host, subsystem)) = self.names_of(index) else { return state.fail(FailureReason::Failed) };
        let at = self.controller_of(index).and_then(|controller| controller.subsystem());
        self.challenges += 1;
        let (now, number) = (self.now, self.challenges);
        let Some(at) = at else { return state.fail(FailureReason::Failed) };
        let place = &mut self.subsystems[at];
        // It was taken away while this host was connected: what was, holds no more.
        let Some(config) = &place.config.authentication else { return state.fail(FailureReason::Failed) };
        if let (Stage::Negotiate, Some(secrets)) = (state.stage, config.hosts.get(&host)) {
            state.secrets = secrets.clone();
        }
        let choice = Choice { config, exertion: &mut place.exertion, now, number };
        state.take(bytes, (host.as_str(), subsystem.as_str()), choice)
    }

    /// Names of host and subsystem of a connection.
    fn names_of(&mut self, index: u32) -> Option<(Nqn, Nqn)> {
        let controller = self.controller_of(index)?;
        let (host, subsystem) = (controller.host, controller.subsystem()?);
        Some((host, self.subsystems[subsystem].config.name))
    }

    /// The host fetches what it is told.
    pub(super) fn on_authentication_receive(&mut self, index: u32, slot: u32) {
        let Some(mut state) = self.connections[index].authentication.take() else { return };
        let Some((message, step)) = state.give() else {
            self.connections[index].authentication = Some(state);
            return self.finish(slot, Status::COMMAND_SEQUENCE.without_retry(), 0);
        };
        let bytes = message.encode();
        if bytes.len() > self.flights[slot].buffer.len() {
            self.connections[index].authentication = Some(state);
            return self.finish(slot, Status::INVALID_FIELD.without_retry(), 0);
        }
        self.after_authentication(index, state, &step);
        self.reply(slot, Ok(bytes));
        self.end_authentication(index, &step);
    }

    fn after_authentication(&mut self, index: u32, mut state: Box<Authentication>, step: &Step) {
        let has_passed = matches!(step, Step::Passed);
        if has_passed {
            (state.is_proven, state.stage) = (true, Stage::Negotiate);
            self.give_back(index, state.group);
        }
        self.connections[index].authentication = Some(state);
        if has_passed {
            self.connections[index].deadline = None;
            self.refresh_idle(index);
        }
    }

    fn give_back(&mut self, index: u32, group: GroupId) {
        let Some(at) = self.controller_of(index).and_then(|controller| controller.subsystem()) else { return };
        let place = &mut self.subsystems[at];
        if let Some(config) = &place.config.authentication {
            place.exertion.give_back(exchange_cost(group), config.exponent_cost_per_second);
        }
    }

    fn end_authentication(&mut self, index: u32, step: &Step) {
        let Step::Ended(reason) = *step else { return };
        if let (Some((host, subsystem)), false) = (self.names_of(index), self.has_failed(index)) {
            self.counters.authentications_failed += 1;
            let (connection, why) = (self.connections[index].id, AuthenticationFault::HostEnded(reason));
            self.notice(Notice::NotAuthenticated { connection, host, subsystem, why });
        }
        self.close(index, CloseReason::Authentication);
    }

    /// Whether this side has said so already.
    fn has_failed(&self, index: u32) -> bool {
        let state = self.connections[index].authentication.as_ref();
        state.is_some_and(|state| matches!(state.stage, Stage::Failure(_)))
    }

    /// The host has used up the time in which it had to prove itself.
    pub(super) fn on_authentication_late(&mut self, index: u32) {
        let Some((host, subsystem)) = self.names_of(index) else { return };
        self.counters.authentications_failed += 1;
        let (connection, why) = (self.connections[index].id, AuthenticationFault::Late);
        self.notice(Notice::NotAuthenticated { connection, host, subsystem, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentiations_have_a_second_of_their_rate_and_then_that_rate() {
        let mut exertion = Exertion::default();
        let start = Time::ZERO + Span::secs(7);
        let taken = (0..100).filter(|_| exertion.take(start, 2, 20)).count();
        assert_eq!(taken, 10, "20 a second, two each");
        assert!(exertion.take(start, 0, 20), "the null group costs nothing");
        assert!(!exertion.take(start, 2, 20));
        assert!(exertion.take(start + Span::ms(100), 2, 20) && !exertion.take(start + Span::ms(100), 2, 20));
        let later = start + Span::secs(60);
        assert_eq!((0..100).filter(|_| exertion.take(later, 2, 20)).count(), 10, "what was not used is not saved");
        exertion.give_back(2, 20);
        assert!(exertion.take(later, 2, 20) && !exertion.take(later, 2, 20));
    }
}
