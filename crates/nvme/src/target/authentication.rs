//! In-band authentication of a connection: until it is through, nothing else is carried out.

use crate::auth::{
    FailureReason, HashId, MESSAGE_MAX, Message, PROTOCOL, Question, SPECIFIC, Secret, Speaker, is_same, respond,
};
use crate::target::Target;
use crate::target::controller::Controller;
use crate::target::flight::Transfer;
use crate::target::notice::CloseReason;
use crate::{Fabrics, Nqn, Status};
use std::collections::BTreeMap;

/// Who has to authenticate, and how challenges are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationConfig {
    /// Random bytes that no host knows and that are others in every run: challenges are derived from them, so that the target itself needs no
    /// source of randomness.
    pub entropy: [u8; 32],
    /// Hosts that have to prove who they are. A host that is not among them is let in without, if the subsystem lets it in: list its hosts.
    pub hosts: BTreeMap<Nqn, HostSecrets>,
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
    entropy: [u8; 32],
    stage: Stage,
    transaction: u16,
    hash: HashId,
    sequence: u32,
    challenge: Vec<u8>,
    /// What the host asked of us.
    answer: Option<Vec<u8>>,
}

/// What became of a message of the host.
enum Step {
    /// The transaction goes on.
    On,
    /// The host is who it says.
    Passed,
    /// It ends.
    Ended,
}

impl Authentication {
    fn fail(&mut self, reason: FailureReason) -> Step {
        self.stage = Stage::Failure(reason);
        Step::On
    }

    /// The next challenge: random to whoever does not know the entropy.
    fn make_challenge(&mut self, number: u64) {
        let bytes = HashId::Sha512.hmac(&self.entropy, &[b"challenge", &number.to_le_bytes()]);
        self.challenge = bytes[..self.hash.bytes()].to_vec();
        // A number of zero would say that there is no challenge (Base 2.0, 8.13.5.4).
        self.sequence = (number as u32).max(1);
    }

    fn take(&mut self, bytes: &[u8], names: (&str, &str), number: u64) -> Step {
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(reason) => return self.fail(reason),
        };
        match (self.stage, message) {
            (_, Message::Failure { .. }) => Step::Ended,
            (Stage::Negotiate, Message::Negotiate { transaction, wants_channel, hashes, takes_null_group }) => {
                self.transaction = transaction;
                self.negotiate(wants_channel, &hashes, takes_null_group, number)
            }
            (Stage::Reply, Message::Reply { transaction, response, challenge }) if transaction == self.transaction => {
                self.check(&response, challenge, names)
            }
            (Stage::Confirmation, Message::Success2 { transaction }) if transaction == self.transaction => Step::Passed,
            _ => self.fail(FailureReason::IncorrectMessage),
        }
    }

    fn negotiate(&mut self, wants_channel: bool, hashes: &[HashId], takes_null_group: bool, number: u64) -> Step {
        if wants_channel {
            return self.fail(FailureReason::Concatenation);
        }
        if !takes_null_group {
            return self.fail(FailureReason::GroupNotUsable);
        }
        // The host's order is its preference.
        let Some(hash) = hashes.first() else { return self.fail(FailureReason::HashNotUsable) };
        (self.hash, self.stage) = (*hash, Stage::Challenge);
        self.make_challenge(number);
        Step::On
    }

    fn check(&mut self, response: &[u8], challenge: Option<(Vec<u8>, u32)>, (host, subsystem): (&str, &str)) -> Step {
        let (hash, transaction) = (self.hash, self.transaction);
        let asked =
            Question { hash, challenge: &self.challenge, sequence: self.sequence, transaction, host, subsystem };
        if !is_same(&respond(&self.secrets.host, Speaker::Host, &asked), response) {
            return self.fail(FailureReason::Failed);
        }
        let is_mutual = challenge.is_some();
        if let Some((challenge, sequence)) = challenge {
            // Its own challenge sent back would have the target answer for the host (Base 2.0, 8.13.5.5).
            let Some(secret) = self.secrets.controller.as_ref().filter(|_| challenge != self.challenge) else {
                return self.fail(FailureReason::Failed);
            };
            let asked = Question { challenge: &challenge, sequence, ..asked };
            self.answer = Some(respond(secret, Speaker::Controller, &asked));
        }
        self.stage = Stage::Success { is_mutual };
        Step::On
    }

    /// What the host fetches, and whether it is through or out by it; `None` when there is nothing to fetch.
    fn give(&mut self) -> Option<(Message, Step)> {
        let transaction = self.transaction;
        match self.stage {
            Stage::Challenge => {
                self.stage = Stage::Reply;
                let (hash, sequence, challenge) = (self.hash, self.sequence, self.challenge.clone());
                Some((Message::Challenge { transaction, hash, sequence, challenge }, Step::On))
            }
            Stage::Success { is_mutual } => {
                self.stage = Stage::Confirmation;
                let success = Message::Success1 { transaction, hash: self.hash, response: self.answer.take() };
                Some((success, if is_mutual { Step::On } else { Step::Passed }))
            }
            Stage::Failure(reason) => {
                Some((Message::Failure { transaction, is_from_controller: true, reason }, Step::Ended))
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
        Some(Box::new(Authentication {
            secrets,
            entropy: config.entropy,
            stage: Stage::Negotiate,
            transaction: 0,
            hash: HashId::Sha256,
            sequence: 0,
            challenge: Vec::new(),
            answer: None,
        }))
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
        self.challenges += 1;
        let number = self.challenges;
        let bytes = std::mem::take(&mut self.flights[slot].buffer);
        let step = state.take(&bytes, (host.as_str(), subsystem.as_str()), number);
        self.flights[slot].buffer = bytes;
        // What is not through stands again before anything else happens.
        self.after_authentication(index, state, &step);
        self.finish(slot, Status::SUCCESS, 0);
        self.end_authentication(index, &step);
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

    fn after_authentication(&mut self, index: u32, state: Box<Authentication>, step: &Step) {
        if matches!(step, Step::Passed) {
            self.connections[index].deadline = None;
            self.refresh_idle(index);
        } else {
            self.connections[index].authentication = Some(state);
        }
    }

    fn end_authentication(&mut self, index: u32, step: &Step) {
        if matches!(step, Step::Ended) {
            self.close(index, CloseReason::Authentication);
        }
    }
}
