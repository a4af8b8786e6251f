//! In-band authentication by DH-HMAC-CHAP (NVM Express Base 2.0, 8.13): secrets, messages and
//! responses, without state.
//!
//! A secret proves who is who, and the session is not encrypted by it: secure the connection itself
//! by TLS. An exchange of Diffie and Hellman ([`GroupId`]) keeps those who listen from trying
//! secrets against what they heard. As hosts of Linux have it (`drivers/nvme/common/auth.c`), since
//! the specification leaves some of it open.

mod group;

pub use group::{GroupId, PRIVATE_MAX};

use crate::interchange::{Interchange, Malformed};
use crate::layout::codes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// SECP of NVMe (Base 2.0, 6.1).
pub const PROTOCOL: u8 = 0xe9;
/// SPSP0 and SPSP1.
pub const SPECIFIC: u16 = 0x0101;
/// Longest accepted message: a reply with a public value of 8,192 bits has 1,168 bytes.
pub const MESSAGE_MAX: u32 = 4096;
/// AuthID of DH-HMAC-CHAP in Negotiate.
const CHAP: u8 = 1;
/// Offsets of hashes and groups in an offer of 64 bytes, and the most of each.
const OFFER_BYTES: usize = 64;
const HASHES_AT: usize = 4;
const GROUPS_AT: usize = 34;
const IDS_MAX: usize = 30;

codes! {
    /// Hash functions (Base 2.0, Figure 450).
    pub enum HashId: u8 {
        /// 32 bytes.
        Sha256 = 1,
        /// 48 bytes.
        Sha384 = 2,
        /// 64 bytes.
        Sha512 = 3,
    }
}

impl std::fmt::Display for FailureReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            FailureReason::Failed => "the response is wrong: the secrets differ, or one side has none",
            FailureReason::NotUsable => "DH-HMAC-CHAP is not among what is offered",
            FailureReason::Concatenation => "secure channel concatenation is not spoken",
            FailureReason::HashNotUsable => "no hash function in common",
            FailureReason::GroupNotUsable => "no Diffie-Hellman group in common",
            FailureReason::IncorrectPayload => "a message that cannot be read",
            FailureReason::IncorrectMessage => "a message that may not come now",
        })
    }
}

codes! {
    /// Why an authentication failed (Base 2.0, Figure 444).
    pub enum FailureReason: u8 {
        /// The response is wrong.
        Failed = 1,
        /// The protocol is not spoken.
        NotUsable = 2,
        /// Secure channel concatenation is not spoken.
        Concatenation = 3,
        /// No hash function in common.
        HashNotUsable = 4,
        /// No group in common.
        GroupNotUsable = 5,
        /// A message that cannot be read.
        IncorrectPayload = 6,
        /// A message out of sequence.
        IncorrectMessage = 7,
    }
}

/// The side that responds: the word that goes into its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The host answers the controller's challenge.
    Host,
    /// The controller answers the host's.
    Controller,
}

impl HashId {
    /// Bytes of a hash, and of challenges and responses.
    pub const fn bytes(self) -> usize {
        match self {
            HashId::Sha256 => 32,
            HashId::Sha384 => 48,
            HashId::Sha512 => 64,
        }
    }

    /// The name in nvme-cli and in files.
    pub const fn name(self) -> &'static str {
        match self {
            HashId::Sha256 => "sha256",
            HashId::Sha384 => "sha384",
            HashId::Sha512 => "sha512",
        }
    }

    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            HashId::Sha256 => Sha256::digest(bytes).to_vec(),
            HashId::Sha384 => Sha384::digest(bytes).to_vec(),
            HashId::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// HMAC of all parts, one behind the other.
    pub fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        fn run<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            HashId::Sha256 => run::<Hmac<Sha256>>(key, parts),
            HashId::Sha384 => run::<Hmac<Sha384>>(key, parts),
            HashId::Sha512 => run::<Hmac<Sha512>>(key, parts),
        }
    }
}

/// Why a text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Not of the form.
    #[error("a secret has the form DHHC-1:hh:base64:, with hh 00 to 03")]
    Form,
    /// Not base64.
    #[error("the key of the secret is not base64")]
    Base64,
    /// Not a length that keys have.
    #[error("the key of the secret has {got} bytes, allowed are 32, 48 and 64")]
    Length {
        /// Its bytes.
        got: usize,
    },
    /// Its checksum is not its own.
    #[error("the checksum of the secret is wrong: a letter of it was changed")]
    Checksum,
}

impl From<Malformed> for SecretError {
    fn from(malformed: Malformed) -> SecretError {
        match malformed {
            Malformed::Form => SecretError::Form,
            Malformed::Base64 => SecretError::Base64,
        }
    }
}

/// A key of a host or a controller, in the form that `nvme gen-dhchap-key` prints (Base 2.0,
/// 8.13.5.8).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: Vec<u8>,
    hash: Option<HashId>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Secret {
    /// Reads `DHHC-1:hh:base64:`: the key and its CRC-32, transformed with the hash `hh` (00 for as
    /// it is) before use.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let Interchange { code, key, is_intact } = Interchange::parse(text, "DHHC-1", 3)?;
        if !matches!(key.len(), 32 | 48 | 64) {
            return Err(SecretError::Length { got: key.len() });
        }
        if !is_intact {
            return Err(SecretError::Checksum);
        }
        Ok(Secret { key, hash: HashId::of_code(code) })
    }

    /// The key as it is used for the holder of this name.
    fn transformed(&self, name: &str) -> Vec<u8> {
        match self.hash {
            None => self.key.clone(),
            Some(hash) => hash.hmac(&self.key, &[name.as_bytes(), b"NVMe-over-Fabrics"]),
        }
    }
}

/// Random bytes that no peer knows, different in every run, from the system. Challenges and private
/// values are derived from them, so that nothing below the host needs a source of randomness.
#[derive(Clone, PartialEq, Eq)]
pub struct Entropy([u8; 32]);

impl std::fmt::Debug for Entropy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Entropy(..)")
    }
}

impl Entropy {
    /// Of bytes that have to be as hard to guess as a key.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Entropy(bytes)
    }

    /// Bytes that are unpredictable without these; others for another `label` and number.
    pub fn derive(&self, label: &[u8], number: u64) -> [u8; PRIVATE_MAX] {
        let bytes = HashId::Sha512.hmac(&self.0, &[label, &number.to_le_bytes()]);
        bytes.try_into().expect("SHA-512 has 64 bytes")
    }
}

/// The input of a response.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The hash that was agreed on.
    pub hash: HashId,
    /// The challenge, [augmented](augment) where a group of Diffie and Hellman is used.
    pub challenge: &'a [u8],
    /// Its number.
    pub sequence: u32,
    /// The transaction.
    pub transaction: u16,
    /// The host's name.
    pub host: &'a str,
    /// The subsystem's.
    pub subsystem: &'a str,
}

/// The response of a side that holds `secret` (Base 2.0, 8.13.5.4 and 8.13.5.5).
pub fn respond(secret: &Secret, speaker: Speaker, question: &Question<'_>) -> Vec<u8> {
    let (word, own, other): (&[u8], _, _) = match speaker {
        Speaker::Host => (b"HostHost", question.host, question.subsystem),
        Speaker::Controller => (b"Controller", question.subsystem, question.host),
    };
    let key = secret.transformed(own);
    let (sequence, transaction) = (question.sequence.to_le_bytes(), question.transaction.to_le_bytes());
    let no_channel: &[u8] = &[0];
    let parts =
        [question.challenge, &sequence, &transaction, no_channel, word, own.as_bytes(), no_channel, other.as_bytes()];
    question.hash.hmac(&key, &parts)
}

/// The challenge that is answered where both sides have come to a `shared` value: keyed by its hash
/// (Base 2.0, 8.13.5.4).
pub fn augment(hash: HashId, shared: &[u8], challenge: &[u8]) -> Vec<u8> {
    hash.hmac(&hash.digest(shared), &[challenge])
}

/// Whether two responses are the same, in a time that does not reveal where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The host offers hashes and groups.
    Negotiate {
        /// Its name for the transaction.
        transaction: u16,
        /// Whether the host requests secure channel concatenation.
        wants_channel: bool,
        /// Hash functions that it knows, in its order; unknown ones are left out.
        hashes: Vec<HashId>,
        /// Groups in the host's order; unknown ones are left out.
        groups: Vec<GroupId>,
    },
    /// The controller's challenge.
    Challenge {
        /// The transaction.
        transaction: u16,
        /// The hash to use.
        hash: HashId,
        /// The group to use.
        group: GroupId,
        /// The number of the challenge.
        sequence: u32,
        /// As many random bytes as the hash has.
        challenge: Vec<u8>,
        /// The controller's public value: as many bytes as the group has.
        public: Vec<u8>,
    },
    /// The host's response, and its own challenge if it wants one.
    Reply {
        /// The transaction.
        transaction: u16,
        /// Its response.
        response: Vec<u8>,
        /// The host's challenge for the controller and its number, if there is one.
        challenge: Option<(Vec<u8>, u32)>,
        /// Its public value; empty with the null group.
        public: Vec<u8>,
    },
    /// The controller accepts, and responds if it was challenged.
    Success1 {
        /// The transaction.
        transaction: u16,
        /// The hash's bytes.
        hash: HashId,
        /// Its response.
        response: Option<Vec<u8>>,
    },
    /// The host is satisfied.
    Success2 {
        /// The transaction.
        transaction: u16,
    },
    /// One side is not.
    Failure {
        /// The transaction.
        transaction: u16,
        /// Whether the controller sends it.
        is_from_controller: bool,
        /// The reason.
        reason: FailureReason,
    },
}

/// Types and ids of messages (Base 2.0, Figure 438).
const NEGOTIATE: [u8; 2] = [0x00, 0x00];
const FAILURE_1: [u8; 2] = [0x00, 0xf1];
const FAILURE_2: [u8; 2] = [0x00, 0xf0];
const CHALLENGE: [u8; 2] = [0x01, 0x01];
const REPLY: [u8; 2] = [0x01, 0x02];
const SUCCESS_1: [u8; 2] = [0x01, 0x03];
const SUCCESS_2: [u8; 2] = [0x01, 0x04];
/// The only reason code: authentication failure.
const FAILED: u8 = 1;

fn start(kind: [u8; 2], transaction: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..2].copy_from_slice(&kind);
    bytes[4..6].copy_from_slice(&transaction.to_le_bytes());
    bytes
}

impl Message {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Message::Negotiate { transaction, wants_channel, hashes, groups } => {
                encode_negotiate(*transaction, *wants_channel, hashes, groups)
            }
            Message::Challenge { transaction, hash, group, sequence, challenge, public } => {
                let mut bytes = start(CHALLENGE, *transaction, 16);
                (bytes[6], bytes[8], bytes[9]) = (hash.bytes() as u8, hash.code(), group.code());
                bytes[10..12].copy_from_slice(&(public.len() as u16).to_le_bytes());
                bytes[12..16].copy_from_slice(&sequence.to_le_bytes());
                [&bytes[..], challenge, public].concat()
            }
            Message::Reply { transaction, response, challenge, public } => {
                let mut bytes = start(REPLY, *transaction, 16);
                (bytes[6], bytes[8]) = (response.len() as u8, u8::from(challenge.is_some()));
                bytes[10..12].copy_from_slice(&(public.len() as u16).to_le_bytes());
                let (own, sequence) = challenge.clone().unwrap_or((vec![0; response.len()], 0));
                bytes[12..16].copy_from_slice(&sequence.to_le_bytes());
                [&bytes[..], response, &own, public].concat()
            }
            Message::Success1 { transaction, hash, response } => {
                let mut bytes = start(SUCCESS_1, *transaction, 16);
                (bytes[6], bytes[8]) = (hash.bytes() as u8, u8::from(response.is_some()));
                [bytes, response.clone().unwrap_or(vec![0; hash.bytes()])].concat()
            }
            Message::Success2 { transaction } => start(SUCCESS_2, *transaction, 16),
            Message::Failure { transaction, is_from_controller, reason } => {
                let kind = if *is_from_controller { FAILURE_1 } else { FAILURE_2 };
                let mut bytes = start(kind, *transaction, 8);
                (bytes[6], bytes[7]) = (FAILED, reason.code());
                bytes
            }
        }
    }

    /// Reads a message; fails with the reason to send.
    pub fn decode(bytes: &[u8]) -> Result<Self, FailureReason> {
        const WRONG: FailureReason = FailureReason::IncorrectPayload;
        let [kind, id, _, _, low, high, ..] = *bytes else { return Err(WRONG) };
        let transaction = u16::from_le_bytes([low, high]);
        match [kind, id] {
            NEGOTIATE => decode_negotiate(transaction, bytes),
            CHALLENGE => decode_challenge(transaction, bytes).ok_or(WRONG),
            REPLY => decode_reply(transaction, bytes).ok_or(WRONG),
            SUCCESS_1 => decode_success(transaction, bytes).ok_or(WRONG),
            SUCCESS_2 => Ok(Message::Success2 { transaction }),
            FAILURE_1 | FAILURE_2 => {
                let reason = bytes.get(7).and_then(|code| FailureReason::of_code(*code)).ok_or(WRONG)?;
                Ok(Message::Failure { transaction, is_from_controller: [kind, id] == FAILURE_1, reason })
            }
            _ => Err(FailureReason::IncorrectMessage),
        }
    }
}

fn encode_negotiate(transaction: u16, wants_channel: bool, hashes: &[HashId], groups: &[GroupId]) -> Vec<u8> {
    let mut bytes = start(NEGOTIATE, transaction, 8 + OFFER_BYTES);
    (bytes[6], bytes[7], bytes[8]) = (u8::from(wants_channel), 1, CHAP);
    let (hashes, groups) = (&hashes[..hashes.len().min(IDS_MAX)], &groups[..groups.len().min(IDS_MAX)]);
    (bytes[10], bytes[11]) = (hashes.len() as u8, groups.len() as u8);
    hashes.iter().enumerate().for_each(|(at, hash)| bytes[8 + HASHES_AT + at] = hash.code());
    groups.iter().enumerate().for_each(|(at, group)| bytes[8 + GROUPS_AT + at] = group.code());
    bytes
}

fn decode_negotiate(transaction: u16, bytes: &[u8]) -> Result<Message, FailureReason> {
    let [_, _, _, _, _, _, channel, count, offers @ ..] = bytes else { return Err(FailureReason::IncorrectPayload) };
    let offers = offers.chunks_exact(OFFER_BYTES).take(usize::from(*count));
    let offer = offers.into_iter().find(|offer| offer[0] == CHAP).ok_or(FailureReason::NotUsable)?;
    let (hashes, groups) = (usize::from(offer[2]), usize::from(offer[3]));
    if hashes > IDS_MAX || groups > IDS_MAX {
        return Err(FailureReason::IncorrectPayload);
    }
    let hashes = offer[HASHES_AT..HASHES_AT + hashes].iter().filter_map(|code| HashId::of_code(*code)).collect();
    let groups = offer[GROUPS_AT..GROUPS_AT + groups].iter().filter_map(|code| GroupId::of_code(*code)).collect();
    Ok(Message::Negotiate { transaction, wants_channel: *channel != 0, hashes, groups })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes))
}

/// The public value that begins at byte `at`; bytes 11:10 hold its length.
fn public_value(bytes: &[u8], at: usize) -> Option<Vec<u8>> {
    let length = bytes.get(10..12)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))?;
    Some(bytes.get(at..at + usize::from(length))?.to_vec())
}

fn decode_challenge(transaction: u16, bytes: &[u8]) -> Option<Message> {
    let hash = HashId::of_code(*bytes.get(8)?)?;
    let group = GroupId::of_code(*bytes.get(9)?)?;
    let length = usize::from(bytes[6]);
    let challenge = bytes.get(16..16 + length).filter(|_| length == hash.bytes())?.to_vec();
    let public = public_value(bytes, 16 + length).filter(|public| public.len() == group.bytes())?;
    Some(Message::Challenge { transaction, hash, group, sequence: number(bytes, 12)?, challenge, public })
}

fn decode_reply(transaction: u16, bytes: &[u8]) -> Option<Message> {
    let length = usize::from(*bytes.get(6)?);
    let response = bytes.get(16..16 + length)?.to_vec();
    let own = bytes.get(16 + length..16 + 2 * length)?.to_vec();
    let asks = bytes[8] & 1 != 0;
    let sequence = number(bytes, 12)?;
    let public = public_value(bytes, 16 + 2 * length)?;
    Some(Message::Reply { transaction, response, challenge: asks.then_some((own, sequence)), public })
}

fn decode_success(transaction: u16, bytes: &[u8]) -> Option<Message> {
    let length = usize::from(*bytes.get(6)?);
    let hash = HashId::ALL.iter().copied().find(|hash| hash.bytes() == length)?;
    let response = bytes.get(16..16 + length)?.to_vec();
    Some(Message::Success1 { transaction, hash, response: (bytes[8] & 1 != 0).then_some(response) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A key of 32 bytes 00h to 1Fh, its CRC-32 behind it: worked out by another implementation of
    /// both.
    const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    #[test]
    fn a_secret_is_read_and_a_changed_letter_is_noticed() {
        let secret = Secret::parse(SECRET).unwrap();
        assert_eq!((secret.key, secret.hash), ((0..32).collect(), None));
        assert_eq!(Secret::parse(&SECRET.replace("AAEC", "AAED")), Err(SecretError::Checksum));
        assert_eq!(Secret::parse("DHHC-1:04:AAAA:"), Err(SecretError::Form));
        assert_eq!(Secret::parse("DHHC-1:00:****:"), Err(SecretError::Base64));
        assert_eq!(Secret::parse("DHHC-1:00:AAAAAAAAAAA=:"), Err(SecretError::Length { got: 4 }));
        assert_eq!(format!("{:?}", Secret::parse(SECRET).unwrap()), "Secret(..)");
    }

    /// RFC 4231, test case 2.
    #[test]
    fn hmac_is_that_of_the_rfc() {
        let mac = HashId::Sha256.hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!((mac[0], mac[1], mac[30], mac[31]), (0x5b, 0xdc, 0x38, 0x43));
    }

    /// Worked out in Python by the formulas of Base 2.0, 8.13.5: once with the key as it is, once
    /// transformed with SHA-512.
    #[test]
    fn responses_are_those_of_another_implementation() {
        let question = Question {
            hash: HashId::Sha256,
            challenge: &[7; 32],
            sequence: 0x0102_0304,
            transaction: 5,
            host: "nqn.2014-08.org.rackweave:host9",
            subsystem: "nqn.2014-08.org.rackweave:disk",
        };
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let plain = Secret::parse(SECRET).unwrap();
        let host = respond(&plain, Speaker::Host, &question);
        assert_eq!(hex(host), "ca1b24a215afea846d49e190ec26427f549d7cbf64d72b4ad1d895d03fce2bd6");
        let transformed = Secret::parse(&SECRET.replace(":00:", ":03:")).unwrap();
        let controller = respond(&transformed, Speaker::Controller, &question);
        assert_eq!(hex(controller), "642039c212cadaea6e2cce9f403c54bd7c4051fdcf989c715b3d769c44399d19");
    }

    #[test]
    fn responses_differ_by_all_that_they_are_about() {
        let secret = Secret::parse(SECRET).unwrap();
        let question = Question {
            hash: HashId::Sha384,
            challenge: &[7; 48],
            sequence: 1,
            transaction: 2,
            host: "host",
            subsystem: "subsystem",
        };
        let all = [
            respond(&secret, Speaker::Host, &question),
            respond(&secret, Speaker::Controller, &question),
            respond(&secret, Speaker::Host, &Question { sequence: 2, ..question }),
            respond(&secret, Speaker::Host, &Question { transaction: 3, ..question }),
            respond(&secret, Speaker::Host, &Question { host: "other", ..question }),
            respond(&secret, Speaker::Host, &Question { challenge: &[8; 48], ..question }),
        ];
        assert!(all.iter().all(|response| response.len() == 48));
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| !is_same(one, other)));
            assert!(is_same(one, one) && !is_same(one, &one[1..]));
        }
    }

    /// As Linux makes it: keyed by the hash of the shared value. The figure is that of another
    /// implementation of HMAC and SHA-256.
    #[test]
    fn a_challenge_is_augmented_by_what_both_sides_share() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let augmented = augment(HashId::Sha256, &[5; 256], &[7; 32]);
        assert_eq!(hex(augmented), "34ad47a29d2f9fb7cc65e66165b3347141a679a22df87aac4bbcf64a956e933e");
    }

    fn messages() -> impl Strategy<Value = Message> {
        let hash = prop::sample::select(HashId::ALL.to_vec());
        let bytes = |hash: HashId| prop::collection::vec(any::<u8>(), hash.bytes());
        let group = prop::sample::select(GroupId::ALL.to_vec());
        prop_oneof![
            (
                any::<(u16, bool)>(),
                prop::collection::vec(hash.clone(), 0..4),
                prop::collection::vec(group.clone(), 0..6)
            )
                .prop_map(|((transaction, wants_channel), hashes, groups)| Message::Negotiate {
                    transaction,
                    wants_channel,
                    hashes,
                    groups
                }),
            (any::<(u16, u32, u8)>(), hash.clone().prop_flat_map(move |hash| (Just(hash), bytes(hash))), group.clone())
                .prop_map(|((transaction, sequence, fill), (hash, challenge), group)| Message::Challenge {
                    transaction,
                    hash,
                    group,
                    sequence,
                    challenge,
                    public: vec![fill; group.bytes()]
                }),
            (any::<(u16, u32, bool)>(), hash.clone().prop_flat_map(move |hash| (bytes(hash), bytes(hash))), group)
                .prop_map(|((transaction, sequence, asks), (response, own), group)| Message::Reply {
                    transaction,
                    response,
                    challenge: asks.then_some((own, sequence)),
                    public: vec![7; group.bytes()]
                }),
            (any::<(u16, bool)>(), hash.prop_flat_map(move |hash| (Just(hash), bytes(hash)))).prop_map(
                |((transaction, answers), (hash, response))| {
                    Message::Success1 { transaction, hash, response: answers.then_some(response) }
                }
            ),
            ends(),
        ]
    }

    fn ends() -> impl Strategy<Value = Message> {
        let reason = prop::sample::select(FailureReason::ALL.to_vec());
        prop_oneof![
            any::<u16>().prop_map(|transaction| Message::Success2 { transaction }),
            (any::<(u16, bool)>(), reason).prop_map(|((transaction, is_from_controller), reason)| {
                Message::Failure { transaction, is_from_controller, reason }
            }),
        ]
    }

    proptest! {
        #[test]
        fn messages_come_back(message in messages()) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..7) {
            let mut bytes = bytes;
            let kinds = [NEGOTIATE, CHALLENGE, REPLY, SUCCESS_1, SUCCESS_2, FAILURE_1, FAILURE_2];
            if let Some(front) = bytes.get_mut(..2) {
                front.copy_from_slice(&kinds[kind]);
            }
            let _ = Message::decode(&bytes);
        }
    }
}
