//! The identities that a host offers in its ClientHello, and the first known one of them.
//!
//! OpenSSL chooses the cipher suite before it looks at keys, and skips a key of another hash. So
//! this is read before, and the suite is that of the first known identity.

use super::{Keys, Stranger};
use nvme::target::Channel;
use nvme::tls::PreSharedKey;

/// The extension `pre_shared_key` (RFC 8446, 4.2.11).
pub(super) const PRE_SHARED_KEY: u32 = 41;
/// Identities that are looked up: each may cost a derivation. Hosts have one, or one per version.
const IDENTITIES_MAX: usize = 8;
/// Characters of an unknown identity that a log shows.
const SHOWN_MAX: usize = 128;

/// An identity of the extension.
#[derive(Debug, PartialEq, Eq)]
struct Offered<'a> {
    identity: &'a [u8],
    /// Bytes of its binder, which are those of its hash.
    binder_bytes: usize,
}

/// A host's offer: the first known identity, or why its first one is unknown.
pub(super) struct Offer {
    /// As a log may show it.
    pub identity: String,
    pub found: Result<Known, Stranger>,
}

/// The host of an identity, and its key.
pub(super) struct Known {
    pub channel: Channel,
    pub key: PreSharedKey,
}

impl Offer {
    /// `None` if the extension has no valid identity.
    pub(super) fn of(extension: &[u8], keys: &Keys) -> Option<Offer> {
        let offered = identities(extension)?;
        let offer = |offered: &Offered| {
            let identity = String::from_utf8_lossy(offered.identity);
            let found = keys.find(&identity).and_then(|known| {
                if known.key.hash.bytes() == offered.binder_bytes { Ok(known) } else { Err(Stranger::Binder) }
            });
            Offer { identity: identity.escape_debug().take(SHOWN_MAX).collect(), found }
        };
        let mut offers = offered.iter().take(IDENTITIES_MAX).map(offer);
        let first = offers.next()?;
        if first.found.is_ok() { Some(first) } else { offers.find(|offer| offer.found.is_ok()).or(Some(first)) }
    }
}

/// Takes a length of `bytes` bytes, and as many bytes behind it, off the front.
fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_at_checked(bytes)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (taken, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

/// The identities of an extension `pre_shared_key`; `None` if it is malformed.
fn identities(extension: &[u8]) -> Option<Vec<Offered<'_>>> {
    const AGE_BYTES: usize = 4;
    let mut rest = extension;
    let (mut identities, mut binders) = (take(&mut rest, 2)?, take(&mut rest, 2)?);
    let mut all = Vec::new();
    while !identities.is_empty() {
        let identity = take(&mut identities, 2)?;
        identities = identities.get(AGE_BYTES..)?;
        all.push(Offered { identity, binder_bytes: take(&mut binders, 1)?.len() });
    }
    (rest.is_empty() && binders.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{TlsAccess, TlsKeys};
    use nvme::Nqn;
    use nvme::tls::{Derivation, IdentityVersion, TlsKey};
    use proptest::prelude::*;

    const KEY_256: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    const KEY_384: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

    fn name(text: &str) -> Nqn {
        Nqn::new(text).expect("a name")
    }

    /// The extension as a client writes it.
    fn extension(offers: &[(&[u8], usize)]) -> Vec<u8> {
        let identity = |(text, _): &(&[u8], usize)| [&(text.len() as u16).to_be_bytes()[..], text, &[0; 4]].concat();
        let binder = |(_, bytes): &(&[u8], usize)| [vec![*bytes as u8], vec![7; *bytes]].concat();
        let lists: [Vec<u8>; 2] =
            [offers.iter().flat_map(identity).collect(), offers.iter().flat_map(binder).collect()];
        lists.iter().flat_map(|list| [&(list.len() as u16).to_be_bytes()[..], list].concat()).collect()
    }

    fn keys() -> Keys {
        let access = |text| TlsAccess {
            key: TlsKey::parse(text).expect("a key"),
            derivations: Derivation::ALL,
            subsystems: vec![name("nqn.disk")],
        };
        Keys::new(TlsKeys::from([(name("nqn.short"), access(KEY_256)), (name("nqn.long"), access(KEY_384))]))
    }

    fn identity(host: &str, key: &str) -> String {
        let key = TlsKey::parse(key).expect("a key");
        let how = (Derivation::Specification, IdentityVersion::Digest);
        key.pre_shared(how.0, how.1, name(host), name("nqn.disk")).expect("short names").identity
    }

    #[test]
    fn the_first_identity_that_is_known_is_taken_whatever_stands_before_it() {
        let (short, long) = (identity("nqn.short", KEY_256), identity("nqn.long", KEY_384));
        let chosen = |offers: &[(&[u8], usize)]| {
            let offer = Offer::of(&extension(offers), &keys()).expect("it is of the form");
            (offer.identity, offer.found.map(|known| known.channel.host.to_string()))
        };
        let is = |identity: &str, host: &str| (identity.to_owned(), Ok(host.to_owned()));
        assert_eq!(chosen(&[(short.as_bytes(), 32), (long.as_bytes(), 48)]), is(&short, "nqn.short"));
        assert_eq!(chosen(&[(b"?", 32), (long.as_bytes(), 48), (short.as_bytes(), 32)]), is(&long, "nqn.long"));
        assert_eq!(chosen(&[(b"\xff\n", 32), (b"!", 32)]), ("\u{fffd}\\n".into(), Err(Stranger::Form)));
        assert_eq!(chosen(&[(long.as_bytes(), 32)]), (long.clone(), Err(Stranger::Binder)));
        let far = [[(&b"?"[..], 32); IDENTITIES_MAX].as_slice(), &[(short.as_bytes(), 32)]].concat();
        assert_eq!(chosen(&far).1, Err(Stranger::Form), "a host has not so many");
        assert_eq!(chosen(&far[1..]), is(&short, "nqn.short"));
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_no_offer() {
        let whole = extension(&[(b"one", 32), (b"two", 48)]);
        let both = [("one", 32), ("two", 48)]
            .map(|(identity, binder_bytes)| Offered { identity: identity.as_bytes(), binder_bytes });
        assert_eq!(identities(&whole), Some(both.into()));
        assert!((0..whole.len()).all(|end| identities(&whole[..end]).is_none()));
        assert_eq!(identities(&[whole, vec![0]].concat()), None);
        assert!(Offer::of(&extension(&[]), &keys()).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_offer_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in 0usize..40) {
            let _ = Offer::of(&bytes, &keys());
            let mut near = extension(&[(&bytes, 32)]);
            near.truncate(near.len() - cut);
            prop_assert_eq!(Offer::of(&near, &keys()).is_some(), cut == 0);
        }
    }
}
