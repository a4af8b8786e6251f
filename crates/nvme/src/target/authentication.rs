//! In-band authentication of a connection: before it passes, no other command is carried out. A
//! host may authenticate again at any time.

use crate::auth::{
    Entropy, FailureReason, GroupId, HashId, MESSAGE_MAX, Message, PROTOCOL, Question, SPECIFIC, Secret, Speaker,
    augment, is_same, respond,
};
use crate::target::connection::Connection;
use crate::target::flight::Transfer;
use crate::target::subsystem::Subsystem;
use crate::{Fabrics, Nqn, Status};
use base::{Span, Time};
use std::collections::BTreeMap;

/// The hosts that have to authenticate, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationConfig {
    /// Source of challenges and private values.
    pub entropy: Entropy,
    /// Hosts that have to authenticate. Any other host that the subsystem allows is accepted
    /// without: list its hosts.
    pub hosts: BTreeMap<Nqn, HostSecrets>,
    /// Hash functions that are taken; of those the host's first is used.
    pub hashes: Vec<HashId>,
    /// Groups of Diffie and Hellman that are taken; the first that the host offers is used.
    pub groups: Vec<GroupId>,
    /// Cost of exponentiations a second, in [such of 2,048 bits](GroupId::cost), for
    /// authentications that fail: strangers can cause them. Beyond that a host is told to try
    /// again.
    pub exponent_cost_per_second: u32,
}

/// Secrets that a host shares with the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSecrets {
    /// By which the host proves itself.
    pub host: Secret,
    /// Secret by which the target authenticates to a host that challenges it; `None` refuses such a
    /// host.
    pub controller: Option<Secret>,
}

/// The next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Negotiate, from the host.
    Negotiate,
    /// The host fetches its challenge.
    Challenge,
    /// Reply, from the host.
    Reply,
    /// The host fetches the success; whether it then confirms the target's response.
    Success { is_mutual: bool },
    /// The host fetches why it failed.
    Failure(FailureReason),
    /// The host confirms.
    Confirmation,
}

/// State of a connection's authentication.
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
    /// The number of the target's challenge, and of its private value.
    number: u64,
    challenge: Vec<u8>,
    /// The response to the host's challenge.
    answer: Option<Vec<u8>>,
}

/// An event of an authentication, for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthenticationEvent {
    /// The transaction continues.
    Continues,
    /// No time is left for exponentiations: the host may try again.
    Busy,
    /// This side refuses the host, which may fetch the reason.
    Refused(FailureReason),
    /// The host is authenticated.
    Passed,
    /// The host ended it, or has fetched the reason of its refusal: the connection ends.
    Ended(FailureReason),
}

/// Parameters for a choice among a host's offers.
struct Choice<'a> {
    config: &'a AuthenticationConfig,
    exertion: &'a mut Exertion,
    now: Time,
    number: u64,
}

/// The share of the time for exponentiations that is used up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exertion {
    /// All of the share is available again at this time.
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

/// One for the public value, one for the shared secret.
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

    /// Refuses the host. An earlier success holds no more: the host may only fetch the reason.
    fn fail(&mut self, reason: FailureReason) -> AuthenticationEvent {
        (self.stage, self.is_proven) = (Stage::Failure(reason), false);
        AuthenticationEvent::Refused(reason)
    }

    /// Notes that the host passed. It may authenticate again at any time.
    pub(super) fn pass(&mut self) {
        (self.is_proven, self.stage) = (true, Stage::Negotiate);
    }

    /// Whether this side has refused the host.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Failure(_))
    }

    fn take(&mut self, bytes: &[u8], names: (&str, &str), choice: Choice<'_>) -> AuthenticationEvent {
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(reason) => return self.fail(reason),
        };
        match (self.stage, message) {
            (_, Message::Failure { reason, .. }) => AuthenticationEvent::Ended(reason),
            (Stage::Negotiate, Message::Negotiate { transaction, wants_channel, hashes, groups }) => {
                self.transaction = transaction;
                self.negotiate(wants_channel, &hashes, &groups, choice)
            }
            (Stage::Reply, Message::Reply { transaction, response, challenge, public })
                if transaction == self.transaction =>
            {
                self.check(&response, challenge, &public, names)
            }
            (Stage::Confirmation, Message::Success2 { transaction }) if transaction == self.transaction => {
                AuthenticationEvent::Passed
            }
            _ => self.fail(FailureReason::IncorrectMessage),
        }
    }

    fn negotiate(
        &mut self,
        wants_channel: bool,
        hashes: &[HashId],
        groups: &[GroupId],
        choice: Choice<'_>,
    ) -> AuthenticationEvent {
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
            return AuthenticationEvent::Busy;
        }
        (self.hash, self.group, self.stage, self.number) = (*hash, *group, Stage::Challenge, number);
        self.challenge = self.entropy.derive(b"challenge", number)[..hash.bytes()].to_vec();
        AuthenticationEvent::Continues
    }

    /// The number of the challenge; zero would mean that there is none (Base 2.0, 8.13.5.4).
    fn sequence(&self) -> u32 {
        (self.number as u32).max(1)
    }

    fn private(&self) -> [u8; crate::auth::PRIVATE_MAX] {
        self.entropy.derive(b"private value", self.number)
    }

    /// The augmented challenge in a group; `None` for an invalid public value of the host.
    fn augmented(&self, challenge: &[u8], shared: Option<&[u8]>) -> Vec<u8> {
        shared.map_or_else(|| challenge.to_vec(), |shared| augment(self.hash, shared, challenge))
    }

    fn check(
        &mut self,
        response: &[u8],
        challenge: Option<(Vec<u8>, u32)>,
        public: &[u8],
        (host, subsystem): (&str, &str),
    ) -> AuthenticationEvent {
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
        AuthenticationEvent::Continues
    }

    /// What the host fetches, and whether it is through or out by it; `None` when there is nothing
    /// to fetch.
    pub(super) fn give(&mut self) -> Option<(Message, AuthenticationEvent)> {
        let transaction = self.transaction;
        match self.stage {
            Stage::Challenge => {
                self.stage = Stage::Reply;
                let (hash, group, sequence) = (self.hash, self.group, self.sequence());
                let (challenge, public) = (self.challenge.clone(), group.public(&self.private()));
                Some((
                    Message::Challenge { transaction, hash, group, sequence, challenge, public },
                    AuthenticationEvent::Continues,
                ))
            }
            Stage::Success { is_mutual } => {
                self.stage = Stage::Confirmation;
                let success = Message::Success1 { transaction, hash: self.hash, response: self.answer.take() };
                Some((success, if is_mutual { AuthenticationEvent::Continues } else { AuthenticationEvent::Passed }))
            }
            Stage::Failure(reason) => Some((
                Message::Failure { transaction, is_from_controller: true, reason },
                AuthenticationEvent::Ended(reason),
            )),
            Stage::Negotiate | Stage::Reply | Stage::Confirmation => None,
        }
    }
}

impl Subsystem {
    /// The authentication that a host has to pass, if any.
    pub(super) fn authentication_of(&self, host: &Nqn) -> Option<Box<Authentication>> {
        let config = self.config.authentication.as_ref()?;
        let secrets = config.hosts.get(host)?.clone();
        Some(Box::new(Authentication::new(secrets, config.entropy.clone())))
    }

    /// Takes a message of `host`. `number` is the challenge's, should one be made.
    pub(super) fn hear(
        &mut self,
        state: &mut Authentication,
        bytes: &[u8],
        host: Nqn,
        (now, number): (Time, u64),
    ) -> AuthenticationEvent {
        // The configuration was removed while this host was connected: what it had holds no more.
        let Some(config) = &self.config.authentication else { return state.fail(FailureReason::Failed) };
        if let (Stage::Negotiate, Some(secrets)) = (state.stage, config.hosts.get(&host)) {
            state.secrets = secrets.clone();
        }
        let choice = Choice { config, exertion: &mut self.exertion, now, number };
        state.take(bytes, (host.as_str(), self.config.name.as_str()), choice)
    }

    /// An authentication passed: its exponentiations do not count.
    pub(super) fn passed(&mut self, state: &Authentication) {
        if let Some(config) = &self.config.authentication {
            self.exertion.give_back(exchange_cost(state.group), config.exponent_cost_per_second);
        }
    }
}

impl Connection {
    /// Bytes and direction of an authentication command.
    pub(super) fn authentication_transfer(&self, fabrics: Fabrics) -> Result<Transfer, Status> {
        let (Fabrics::AuthenticationSend { protocol, specific, length }
        | Fabrics::AuthenticationReceive { protocol, specific, length }) = fabrics
        else {
            return Err(Status::INVALID_OPCODE.without_retry());
        };
        if self.authentication.is_none() {
            return Err(Status::INVALID_OPCODE.without_retry());
        }
        if (protocol, specific) != (PROTOCOL, SPECIFIC) || !(1..=MESSAGE_MAX).contains(&length) {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        let is_send = matches!(fabrics, Fabrics::AuthenticationSend { .. });
        Ok(if is_send { Transfer::In(length) } else { Transfer::Out(length) })
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
