//! DH-HMAC-CHAP from the host's side: it follows Connect on a queue whose controller requires it.

use crate::auth::{
    Entropy, FailureReason, GroupId, HashId, MESSAGE_MAX, Message, PRIVATE_MAX, PROTOCOL, Question, SPECIFIC, Secret,
    Speaker, augment, is_same, respond,
};
use crate::initiator::setup::Step;
use crate::initiator::{Initiator, InitiatorError, Payload};
use crate::{Body, Fabrics};

/// The secrets of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The host's secret.
    pub host: Secret,
    /// The controller's: with it a controller that does not prove itself is refused.
    pub controller: Option<Secret>,
    /// Source of challenges and private values.
    pub entropy: Entropy,
    /// Hash functions that are offered, the preferred first.
    pub hashes: Vec<HashId>,
    /// Groups of Diffie and Hellman that are offered.
    pub groups: Vec<GroupId>,
}

/// Bits of what Connect's answer says of authentication: in-band, and over a secure channel made by
/// it.
const ASKS_IN_BAND: u16 = 1 << 1;
const ASKS_CHANNEL: u16 = 1 << 2;

/// Room for an answer of the controller.
const ANSWER_BYTES: u32 = MESSAGE_MAX;

/// State of a queue's authentication.
#[derive(Clone, Debug)]
pub(super) struct Proving {
    transaction: u16,
    hash: HashId,
    group: GroupId,
    shared: Option<Vec<u8>>,
    /// The challenge for the controller, and its number.
    challenge: Option<(Vec<u8>, u32)>,
}

impl Initiator {
    /// The same host, with authentication if the controller requires it.
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(Box::new(credentials));
        self
    }

    /// Connect was answered; `asked` says whether authentication has to follow. True when the queue
    /// can be used at once.
    pub(super) fn begin_authentication(&mut self, queue: u16, asked: u16) -> Result<bool, InitiatorError> {
        let wants_proof = self.credentials.as_ref().is_some_and(|known| known.controller.is_some());
        if asked & (ASKS_IN_BAND | ASKS_CHANNEL) == 0 {
            return match wants_proof {
                true => Err(InitiatorError::Authentication("the target does not prove itself, as its secret asks for")),
                false => Ok(true),
            };
        }
        if asked & ASKS_CHANNEL != 0 {
            return Err(InitiatorError::Authentication("the target asks for secure channel concatenation"));
        }
        let Some(credentials) = &self.credentials else {
            return Err(InitiatorError::Authentication("the target asks for a secret, and none was given"));
        };
        // The queue distinguishes the transactions of an association.
        let transaction = queue.wrapping_add(1);
        let (hashes, groups) = (credentials.hashes.clone(), credentials.groups.clone());
        let first = Message::Negotiate { transaction, wants_channel: false, hashes, groups };
        let (hash, group) = (HashId::Sha256, GroupId::Null);
        self.proving.insert(queue, Proving { transaction, hash, group, shared: None, challenge: None });
        self.say(queue, &first, Step::Negotiated);
        Ok(false)
    }

    /// A step of it was answered. True when the queue can be used.
    pub(super) fn go_on_authenticating(&mut self, queue: u16, step: Step, data: &[u8]) -> Result<bool, InitiatorError> {
        match step {
            Step::Negotiated => self.hear(queue, Step::Challenged),
            Step::Challenged => self.on_challenge(queue, data)?,
            Step::Replied => self.hear(queue, Step::Succeeded),
            Step::Succeeded => return self.on_success(queue, data),
            _ => {
                self.proving.remove(&queue);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn say(&mut self, queue: u16, message: &Message, step: Step) {
        let bytes = message.encode();
        let length = bytes.len() as u32;
        let send = Fabrics::AuthenticationSend { protocol: PROTOCOL, specific: SPECIFIC, length };
        self.send_step(queue, Body::Fabrics(send), Payload::ToController(bytes), step);
    }

    fn hear(&mut self, queue: u16, step: Step) {
        let receive = Fabrics::AuthenticationReceive { protocol: PROTOCOL, specific: SPECIFIC, length: ANSWER_BYTES };
        self.send_step(queue, Body::Fabrics(receive), Payload::ToHost(ANSWER_BYTES), step);
    }

    fn on_challenge(&mut self, queue: u16, data: &[u8]) -> Result<(), InitiatorError> {
        let (Some(credentials), Some(proving)) = (&self.credentials, self.proving.get_mut(&queue)) else {
            return Err(InitiatorError::Authentication("a challenge came unasked"));
        };
        let (host, subsystem) = (self.config.host, self.config.subsystem);
        // Every queue of every association has values of its own.
        let number = u64::from(self.setup.controller_id) << 16 | u64::from(queue);
        let reply = proving.reply(credentials, data, (host.as_str(), subsystem.as_str()), number)?;
        self.say(queue, &reply, Step::Replied);
        Ok(())
    }

    fn on_success(&mut self, queue: u16, data: &[u8]) -> Result<bool, InitiatorError> {
        let (Some(credentials), Some(proving)) = (&self.credentials, self.proving.get(&queue)) else {
            return Err(InitiatorError::Authentication("an end came unasked"));
        };
        let (host, subsystem) = (self.config.host, self.config.subsystem);
        proving.check(credentials, data, (host.as_str(), subsystem.as_str()))?;
        let (is_over, transaction) = (credentials.controller.is_none(), proving.transaction);
        if is_over {
            self.proving.remove(&queue);
        } else {
            self.say(queue, &Message::Success2 { transaction }, Step::Confirmed);
        }
        Ok(is_over)
    }
}

fn told(reason: FailureReason) -> InitiatorError {
    InitiatorError::NotAuthenticated(reason)
}

impl Proving {
    fn reply(
        &mut self,
        credentials: &Credentials,
        data: &[u8],
        (host, subsystem): (&str, &str),
        number: u64,
    ) -> Result<Message, InitiatorError> {
        let (transaction, hash, group, sequence, challenge, public) = match Message::decode(data).map_err(told)? {
            Message::Challenge { transaction, hash, group, sequence, challenge, public } => {
                (transaction, hash, group, sequence, challenge, public)
            }
            Message::Failure { reason, .. } => return Err(told(reason)),
            _ => return Err(told(FailureReason::IncorrectMessage)),
        };
        let is_offered = credentials.hashes.contains(&hash) && credentials.groups.contains(&group);
        if transaction != self.transaction || !is_offered {
            return Err(InitiatorError::Authentication("the target's challenge is none that was offered"));
        }
        let private: [u8; PRIVATE_MAX] = credentials.entropy.derive(b"host's private value", number);
        self.shared = group.shared(&private, &public);
        if group != GroupId::Null && self.shared.is_none() {
            return Err(InitiatorError::Authentication("the target's public value is none of the group"));
        }
        (self.hash, self.group) = (hash, group);
        let own = credentials.entropy.derive(b"host's challenge", number)[..hash.bytes()].to_vec();
        self.challenge = credentials.controller.as_ref().map(|_| (own, (number as u32).max(1)));
        let augmented = self.augmented(&challenge);
        let asked = Question { hash, challenge: &augmented, sequence, transaction, host, subsystem };
        let response = respond(&credentials.host, Speaker::Host, &asked);
        Ok(Message::Reply { transaction, response, challenge: self.challenge.clone(), public: group.public(&private) })
    }

    fn augmented(&self, challenge: &[u8]) -> Vec<u8> {
        self.shared.as_ref().map_or_else(|| challenge.to_vec(), |shared| augment(self.hash, shared, challenge))
    }

    /// The controller accepts the host, and has authenticated itself if it was challenged.
    fn check(
        &self,
        credentials: &Credentials,
        data: &[u8],
        (host, subsystem): (&str, &str),
    ) -> Result<(), InitiatorError> {
        let response = match Message::decode(data).map_err(told)? {
            Message::Success1 { transaction, response, .. } if transaction == self.transaction => response,
            Message::Failure { reason, .. } => return Err(told(reason)),
            _ => return Err(told(FailureReason::IncorrectMessage)),
        };
        let (Some(secret), Some((challenge, sequence))) = (&credentials.controller, &self.challenge) else {
            return Ok(());
        };
        let augmented = self.augmented(challenge);
        let (hash, transaction) = (self.hash, self.transaction);
        let asked = Question { hash, challenge: &augmented, sequence: *sequence, transaction, host, subsystem };
        let expected = respond(secret, Speaker::Controller, &asked);
        match response {
            Some(response) if is_same(&expected, &response) => Ok(()),
            _ => Err(InitiatorError::Authentication("the target has not the secret that it should have")),
        }
    }
}
