//! Pre-shared keys of NVMe/TCP over TLS 1.3 (TCP Transport 1.1, 3.6.1). From a configured key
//! derive the identity and the key that both sides give their TLS library.

use crate::Nqn;
use crate::auth::HashId;
use crate::interchange::{Interchange, Malformed};
use crate::layout::codes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use sha2::{Sha256, Sha384};

codes! {
    /// The hash function of a key and of its cipher.
    pub enum TlsHash: u8 {
        /// TLS_AES_128_GCM_SHA256; keys of 32 bytes.
        Sha256 = 1,
        /// TLS_AES_256_GCM_SHA384; keys of 48 bytes.
        Sha384 = 2,
    }
}

codes! {
    /// Version of an identity.
    pub enum IdentityVersion: u8 {
        /// Of the names alone (TP8011).
        Names = 0,
        /// With a digest of the key, so that keys can change without a doubt which one is meant
        /// (TP8018).
        Digest = 1,
    }
}

/// Derivation of TLS keys from a configured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivation {
    /// By TCP Transport 1.1, 3.6.1.
    Specification,
    /// As in libnvme before 1.16, that of Debian 13 among them. The length is little-endian, and
    /// neither label nor context has its own length before it (src/nvme/linux.c; later versions
    /// call it compatible).
    Libnvme,
}

impl Derivation {
    /// Both; the first is tried first.
    pub const ALL: &'static [Derivation] = &[Derivation::Specification, Derivation::Libnvme];

    /// What HKDF-Expand is given for a label and its context; `None` when one is longer than its
    /// length can say.
    fn information(self, bytes: u16, label: &str, context: &[u8]) -> Option<Vec<u8>> {
        let label = format!("tls13 {label}");
        let lengths = (u8::try_from(label.len()).ok()?, u8::try_from(context.len()).ok()?);
        let label = label.as_bytes();
        Some(match self {
            Derivation::Specification => {
                [&bytes.to_be_bytes()[..], &[lengths.0], label, &[lengths.1], context].concat()
            }
            Derivation::Libnvme => [&bytes.to_le_bytes()[..], label, context].concat(),
        })
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsKeyError {
    /// Not of the form.
    #[error("a TLS key has the form NVMeTLSkey-1:hh:base64:, with hh 00 to 02")]
    Form,
    /// Not base64.
    #[error("the TLS key is not base64")]
    Base64,
    /// Not a length that keys of this kind have.
    #[error("the TLS key has {got} bytes, allowed are {allowed}")]
    Length {
        /// Its bytes.
        got: usize,
        /// Those that it may have.
        allowed: &'static str,
    },
    /// Its checksum is not its own.
    #[error("the checksum of the TLS key is wrong: a letter of it was changed")]
    Checksum,
}

impl From<Malformed> for TlsKeyError {
    fn from(malformed: Malformed) -> TlsKeyError {
        match malformed {
            Malformed::Form => TlsKeyError::Form,
            Malformed::Base64 => TlsKeyError::Base64,
        }
    }
}

/// A configured key, in the form that `nvme gen-tls-key` prints.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsKey {
    key: Vec<u8>,
    /// By which it becomes the retained key; `None` where it is that already.
    transform: Option<TlsHash>,
}

impl std::fmt::Debug for TlsKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsKey(..)")
    }
}

/// Identity and key for the TLS library.
#[derive(Clone, PartialEq, Eq)]
pub struct PreSharedKey {
    /// Which key is meant.
    pub identity: String,
    /// The hash of the key.
    pub hash: TlsHash,
    /// The key: as many bytes as the hash has.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for PreSharedKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PreSharedKey({}, ..)", self.identity)
    }
}

impl TlsHash {
    /// Bytes of a hash, and of keys.
    pub const fn bytes(self) -> usize {
        match self {
            TlsHash::Sha256 => 32,
            TlsHash::Sha384 => 48,
        }
    }

    /// HKDF-Extract without salt, then HKDF-Expand-Label (RFC 5869, RFC 8446, 7.1); `None` when the
    /// context is longer than a label may say.
    fn derive(self, how: Derivation, key: &[u8], label: &str, context: &[u8]) -> Option<Vec<u8>> {
        let information = how.information(self.bytes() as u16, label, context)?;
        let mut out = vec![0; self.bytes()];
        match self {
            TlsHash::Sha256 => Hkdf::<Sha256>::new(None, key).expand(&information, &mut out),
            TlsHash::Sha384 => Hkdf::<Sha384>::new(None, key).expand(&information, &mut out),
        }
        .ok()?;
        Some(out)
    }

    fn id(self) -> HashId {
        match self {
            TlsHash::Sha256 => HashId::Sha256,
            TlsHash::Sha384 => HashId::Sha384,
        }
    }
}

impl TlsKey {
    /// Reads `NVMeTLSkey-1:hh:base64:`: the key and its CRC-32; with hh other than 00 it is
    /// transformed for the host that it is of.
    pub fn parse(text: &str) -> Result<Self, TlsKeyError> {
        let Interchange { code, key, is_intact } = Interchange::parse(text, "NVMeTLSkey-1", 2)?;
        let transform = TlsHash::of_code(code);
        let allowed = match transform {
            None => "32 and 48",
            Some(TlsHash::Sha256) => "32",
            Some(TlsHash::Sha384) => "48",
        };
        let is_right = transform.map_or(matches!(key.len(), 32 | 48), |hash| key.len() == hash.bytes());
        if !is_right {
            return Err(TlsKeyError::Length { got: key.len(), allowed });
        }
        if !is_intact {
            return Err(TlsKeyError::Checksum);
        }
        Ok(TlsKey { key, transform })
    }

    /// The hash function of the key.
    pub fn hash(&self) -> TlsHash {
        if self.key.len() == TlsHash::Sha256.bytes() { TlsHash::Sha256 } else { TlsHash::Sha384 }
    }

    /// The key as the host of this name keeps it (3.6.1.2).
    fn retained(&self, how: Derivation, host: Nqn) -> Vec<u8> {
        let derived = self.transform.and_then(|hash| hash.derive(how, &self.key, "HostNQN", host.as_str().as_bytes()));
        derived.unwrap_or_else(|| self.key.clone())
    }

    /// Identity and key by which `host` connects to `subsystem` (3.6.1.3); `None` where the names
    /// are too long for this version.
    pub fn pre_shared(
        &self,
        how: Derivation,
        version: IdentityVersion,
        host: Nqn,
        subsystem: Nqn,
    ) -> Option<PreSharedKey> {
        let (retained, hash) = (self.retained(how, host), self.hash());
        let names = format!("NVMe{}R{:02} {host} {subsystem}", version.code(), hash.code());
        let (identity, context) = match version {
            IdentityVersion::Names => (names.clone(), names),
            IdentityVersion::Digest => {
                let message = format!("{host} {subsystem} NVMe-over-Fabrics");
                let digest = STANDARD.encode(hash.id().hmac(&retained, &[message.as_bytes()]));
                (format!("{names} {digest}"), format!("{:02} {digest}", hash.code()))
            }
        };
        let key = hash.derive(how, &retained, "nvme-tls-psk", context.as_bytes())?;
        Some(PreSharedKey { identity, hash, key })
    }
}

/// The parts of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its version.
    pub version: IdentityVersion,
    /// The hash function of its key.
    pub hash: TlsHash,
    /// The host.
    pub host: Nqn,
    /// The subsystem.
    pub subsystem: Nqn,
}

impl Identity {
    /// Reads one of a retained key; `None` for anything else, such as those of keys that
    /// DH-HMAC-CHAP makes.
    pub fn parse(text: &str) -> Option<Identity> {
        let (kind, names) = text.split_once(' ')?;
        let version = match kind.get(..6)? {
            "NVMe0R" => IdentityVersion::Names,
            "NVMe1R" => IdentityVersion::Digest,
            _ => return None,
        };
        let hash = match &kind[6..] {
            "01" => TlsHash::Sha256,
            "02" => TlsHash::Sha384,
            _ => return None,
        };
        let mut names = names.splitn(3, ' ');
        let (host, subsystem) = (Nqn::new(names.next()?).ok()?, Nqn::new(names.next()?).ok()?);
        let has_digest = names.next().is_some_and(|digest| !digest.is_empty());
        (has_digest == (version == IdentityVersion::Digest)).then_some(Identity { version, hash, host, subsystem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of libnvme's own test (test/psk.c).
    const KEY_256: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    const KEY_384: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

    fn name(text: &str) -> Nqn {
        Nqn::new(text).unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn identities_are_those_of_libnvme() {
        let (host, subsystem) = (name("nqn.psk-test-host"), name("nqn.psk-test-subsys"));
        for (key, digest) in [
            (KEY_256, "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU="),
            (
                KEY_384,
                "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a",
            ),
        ] {
            let psk = TlsKey::parse(key)
                .unwrap()
                .pre_shared(Derivation::Specification, IdentityVersion::Digest, host, subsystem)
                .unwrap();
            assert_eq!(psk.identity, digest);
        }
    }

    /// The keys of Linux's own test (drivers/nvme/common/tests/auth_kunit.c), which are retained as
    /// they are.
    #[test]
    fn keys_are_those_of_linux() {
        let (host, subsystem) = (name("hostnqn"), name("subsysnqn"));
        for (key, digest, expected) in [
            (
                "1733c59fa7f48fcf37f5f26fc4ff0268ad4f78e030f4f3b0bfd1d47e7bb1447a",
                "OldoKuTfKddMuyCznAZojkWD7P4D9/AtzDzLimtOxqI=",
                "3c17da628474a04d2247c4cab47968c915388193f7c071bd9489cc3666cd7cc8",
            ),
            (
                "f14b2dd3234c459694d3bc63f8968bd6b37c2c6de849e22e118749001ce4bbe8640b9e3a748cb11ce4b1d71d359cce39",
                "cffMWk8TSS7HOQebjgYEIkrPrjWPV4JE5cdPB8WhEvY4JBW5YynKyv66XscN4A9n",
                "277475323353\
                 7b3fa50eb7d16a8e43457d85f4906c005b2236616c5d80939d0898fff15bb8b77119d2be0aac423e7590",
            ),
        ] {
            let key = (0..key.len() / 2).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
            let key = TlsKey { key, transform: None };
            let psk = key.pre_shared(Derivation::Specification, IdentityVersion::Digest, host, subsystem).unwrap();
            assert!(psk.identity.ends_with(digest), "{psk:?}");
            assert_eq!(hex(&psk.key), expected);
        }
    }

    /// Derivation, bytes of the key, how it is transformed, version, digest in the identity, key.
    type Made = (Derivation, u8, Option<TlsHash>, IdentityVersion, &'static str, &'static str);

    /// Made of the key whose bytes are 0, 1, 2 and so on by nvme_insert_tls_key_versioned of
    /// libnvme. Versions: 1.13-2 of Debian 13, and 1.16.2 (nvme-cli 2.16-1), which derives as the
    /// specification says.
    #[rustfmt::skip]
    const MADE_BY_LIBNVME: &[Made] = &[
        (Derivation::Libnvme, 32, None, IdentityVersion::Names,
         "",
         "aa033caffa37d35c629bf4aed99973d0\
          2587e73d32079d1b22c074f147984f0d"),
        (Derivation::Libnvme, 32, None, IdentityVersion::Digest,
         " c2BuBPDGW9ooQjE5OdqA0zPV0H6k8IVsNBVR+IW2tOg=",
         "a451b8ce6a36fecf5bfb6d6840170dff\
          1da26b8380d7f9fae4cc90bb3cddaf44"),
        (Derivation::Libnvme, 32, Some(TlsHash::Sha256), IdentityVersion::Names,
         "",
         "dc092d5dba2ace07aeb9757dc2f0eca9\
          d73b17bd98ee74545d5fc19ad92e44f0"),
        (Derivation::Libnvme, 32, Some(TlsHash::Sha256), IdentityVersion::Digest,
         " i88rT3y/dRTS7HNKIYtK1eaSedt1jWiH2WPJa6CxICU=",
         "f9115e0dc12f144d94d01396a8fb34bd\
          e7ece550ad50e85bebb721263419e41e"),
        (Derivation::Libnvme, 48, None, IdentityVersion::Names,
         "",
         "e4e1ae5f2cb70bc497ae064738c028a2c27d3c1216f90a09\
          d0a0fdba779cd2e9de940309db33beb23b75af4cd9b41d9d"),
        (Derivation::Libnvme, 48, None, IdentityVersion::Digest,
         " BRyO57gBOjV8n7qpifd2HoNfKR7LeSNB24oiYvlOhapLJMSro6jw+2UOmA5jfdl8",
         "b0380f0a05e2f77812313283581adedb17016df063ba5d93\
          b2f15ab01bb85ddde2af804e3bcc00818cb92b6b4de4e02a"),
        (Derivation::Libnvme, 48, Some(TlsHash::Sha384), IdentityVersion::Names,
         "",
         "f22c29da9a98402262bc6bf16c1b1f0eb001ac532bd3de2e\
          dd82f545b25b7a59831e28eff64876695dee1a67bce7e3f3"),
        (Derivation::Libnvme, 48, Some(TlsHash::Sha384), IdentityVersion::Digest,
         " Pwio8/hcmY6SDxsLI2JCM0dXDaUfFA/QQhotYdIKiZAACuSNDw5My7Ns4tL3k6MK",
         "8de91faaa1bc01e62ba16b75ae94f543f6bcc57b52bb3de5\
          9d83b9a7914b93188557b9e7416ff1af40dc638534e01268"),
        (Derivation::Specification, 32, None, IdentityVersion::Names,
         "",
         "b322216795da25506f94c0ebe8380a8d\
          0ce3e383bb3e110c6f6e1b73814c8a31"),
        (Derivation::Specification, 32, None, IdentityVersion::Digest,
         " c2BuBPDGW9ooQjE5OdqA0zPV0H6k8IVsNBVR+IW2tOg=",
         "8989e21e8d2ded26fce857e8f4378dae\
          ed5534e7a9d781d7a2bcc5ec66bcc731"),
        (Derivation::Specification, 32, Some(TlsHash::Sha256), IdentityVersion::Names,
         "",
         "b63b0a90b3f6c36c7d88cb0f821b3c77\
          4d547688f2a8cda75219262ce7f2e7aa"),
        (Derivation::Specification, 32, Some(TlsHash::Sha256), IdentityVersion::Digest,
         " TL/OqnPVuXRrnOKoVvvlVT3JSa7hSf2cR0xbqCTIgcg=",
         "33b1c545d3ce7f5e463e64e19de0fab4\
          f615e3cbee6e52e25024391bdd2b6926"),
        (Derivation::Specification, 48, None, IdentityVersion::Names,
         "",
         "6e2864c38b46c59bc5add88ba708628ffe1676e754ddf9d9\
          aba1a177a5c9a4a090b8cc6555a359e59ac27e1efc19111f"),
        (Derivation::Specification, 48, None, IdentityVersion::Digest,
         " BRyO57gBOjV8n7qpifd2HoNfKR7LeSNB24oiYvlOhapLJMSro6jw+2UOmA5jfdl8",
         "cb95491130cfb48838d690a1dcf9f5001547d76e88c4b83c\
          cc010530b7b79954281b50089ea820fc39bdd61b6812ce1c"),
        (Derivation::Specification, 48, Some(TlsHash::Sha384), IdentityVersion::Names,
         "",
         "78bf8a545e63e76157f529960ec2101ba8fb6be55d4a66ec\
          1d547f1105f91bce5d607a59139142194e2cbd7a6d3c466f"),
        (Derivation::Specification, 48, Some(TlsHash::Sha384), IdentityVersion::Digest,
         " jC8I+oOotVeIeUm4rZpmTa+++XEnVOWjYOQCY8n8/hA4J6b8HGk/yYmhjzwrS/lR",
         "9805b756b420a4e71ede997b2551d8d1debad38e4b9f7aca\
          800d8bc69f19562bc45195e29db35935a0a4202405fa8cb3"),
    ];

    #[test]
    fn keys_are_those_that_libnvme_makes_before_and_since_its_repair() {
        let (host, subsystem) = (name("hostnqn"), name("subsysnqn"));
        for &(how, bytes, transform, version, digest, expected) in MADE_BY_LIBNVME {
            let key = TlsKey { key: (0..bytes).collect(), transform };
            let psk = key.pre_shared(how, version, host, subsystem).unwrap();
            let names = format!("NVMe{}R0{} hostnqn subsysnqn", version.code(), bytes / 16 - 1);
            assert_eq!(psk.identity, format!("{names}{digest}"));
            assert_eq!((hex(&psk.key), psk.hash), (expected.into(), key.hash()));
        }
    }

    #[test]
    fn a_key_is_read_and_a_changed_letter_is_noticed() {
        assert_eq!(TlsKey::parse(KEY_256).unwrap().hash(), TlsHash::Sha256);
        assert_eq!(TlsKey::parse(KEY_384).unwrap().hash(), TlsHash::Sha384);
        assert_eq!(TlsKey::parse(&KEY_256.replace("VRLb", "VRLc")), Err(TlsKeyError::Checksum));
        assert_eq!(TlsKey::parse(&KEY_256.replace("-1:01", "-2:01")), Err(TlsKeyError::Form));
        assert_eq!(TlsKey::parse(&KEY_256.replace(":01:", ":03:")), Err(TlsKeyError::Form));
        assert_eq!(TlsKey::parse("NVMeTLSkey-1:01:****:"), Err(TlsKeyError::Base64));
        let wrong = TlsKey::parse(&KEY_256.replace(":01:", ":02:"));
        assert_eq!(wrong, Err(TlsKeyError::Length { got: 32, allowed: "48" }));
        assert_eq!(TlsKey::parse(&KEY_384.replace(":02:", ":00:")).unwrap().hash(), TlsHash::Sha384);
        assert_eq!(format!("{:?}", TlsKey::parse(KEY_256)), "Ok(TlsKey(..))");
    }

    #[test]
    fn keys_differ_by_host_subsystem_version_and_transformation() {
        let key = TlsKey::parse(KEY_256).unwrap();
        let (host, subsystem) = (name("nqn.a"), name("nqn.b"));
        let psk = |key: &TlsKey, version, host, subsystem| {
            key.pre_shared(Derivation::Specification, version, host, subsystem).unwrap().key
        };
        let all = [
            psk(&key, IdentityVersion::Names, host, subsystem),
            psk(&key, IdentityVersion::Digest, host, subsystem),
            psk(&key, IdentityVersion::Digest, subsystem, host),
            psk(&key, IdentityVersion::Digest, host, host),
            psk(&TlsKey::parse(&KEY_256.replace(":01:", ":00:")).unwrap(), IdentityVersion::Digest, host, subsystem),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(one.len() == 32 && !all[..at].contains(one));
        }
    }

    #[test]
    fn names_too_long_for_a_label_have_no_key_of_the_first_version() {
        let key = TlsKey::parse(KEY_256).unwrap();
        // "NVMe0R01 ", the names and a space: 255 bytes fit.
        let pair = |bytes: usize| (name(&format!("nqn.{}", "h".repeat(120))), name(&"s".repeat(bytes - 9 - 124 - 1)));
        let (host, subsystem) = pair(255);
        assert!(key.pre_shared(Derivation::Specification, IdentityVersion::Names, host, subsystem).is_some());
        let (host, subsystem) = pair(256);
        assert_eq!(key.pre_shared(Derivation::Specification, IdentityVersion::Names, host, subsystem), None);
        assert!(key.pre_shared(Derivation::Specification, IdentityVersion::Digest, host, subsystem).is_some());
    }

    proptest! {
        #[test]
        fn identities_come_back(version in 0usize..2, key in 0usize..2) {
            let key = TlsKey::parse([KEY_256, KEY_384][key]).unwrap();
            let (host, subsystem) = (name("nqn.2014-08.org.nvmexpress:uuid:h"), name("nqn.2026-11.io.rackweave:disk"));
            let version = IdentityVersion::ALL[version];
            let psk = key.pre_shared(Derivation::Specification, version, host, subsystem).unwrap();
            prop_assert_eq!(Identity::parse(&psk.identity), Some(Identity { version, hash: key.hash(), host, subsystem }));
        }

        #[test]
        fn any_text_is_an_identity_or_none(text in "(NVMe[0-2][RG]0[0-3])? ?[ -~é]{0,60}") {
            if let Some(identity) = Identity::parse(&text) {
                let names = format!(" {} {}", identity.host, identity.subsystem);
                prop_assert!(text.contains(&names));
            }
            let _ = TlsKey::parse(&text);
        }
    }
}
