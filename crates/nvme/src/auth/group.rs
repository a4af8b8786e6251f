//! The groups of Diffie and Hellman that DH-HMAC-CHAP may use: RFC 7919's, with the modular
//! arithmetic of `crypto-bigint`, whose time does not depend on the exponent.

use crate::layout::codes;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Limb, NonZero, Odd, Resize};
use std::sync::OnceLock;

codes! {
    /// Groups of Diffie and Hellman (Base 2.0, Figure 451).
    pub enum GroupId: u8 {
        /// None: responses depend on challenges and secrets alone.
        Null = 0,
        /// 2,048 bits.
        Ffdhe2048 = 1,
        /// 3,072 bits.
        Ffdhe3072 = 2,
        /// 4,096 bits.
        Ffdhe4096 = 3,
        /// 6,144 bits.
        Ffdhe6144 = 4,
        /// 8,192 bits.
        Ffdhe8192 = 5,
    }
}

/// Longest private value, bytes.
pub const PRIVATE_MAX: usize = 64;
const GENERATOR: u64 = 2;
/// Bits that the sum of e carries beyond those that are kept: its error is below 2^-50 of one.
const GUARD: u32 = 64;

impl GroupId {
    /// Bytes of the modulus and of public values; 0 of the null group.
    pub const fn bytes(self) -> usize {
        match self {
            GroupId::Null => 0,
            GroupId::Ffdhe2048 => 256,
            GroupId::Ffdhe3072 => 384,
            GroupId::Ffdhe4096 => 512,
            GroupId::Ffdhe6144 => 768,
            GroupId::Ffdhe8192 => 1024,
        }
    }

    /// Bytes of private values: at least the exponent that RFC 7919, appendix A asks for (225, 275,
    /// 325, 375 and 400 bits).
    pub const fn private_bytes(self) -> usize {
        match self {
            GroupId::Null => 0,
            GroupId::Ffdhe2048 => 32,
            GroupId::Ffdhe3072 => 40,
            GroupId::Ffdhe4096 => 48,
            GroupId::Ffdhe6144 => 48,
            GroupId::Ffdhe8192 => 56,
        }
    }

    /// The cost of an exponentiation, in such of 2,048 bits: modulus squared times exponent.
    pub const fn cost(self) -> u64 {
        let (modulus, exponent) = (self.bytes() as u64, self.private_bytes() as u64);
        (modulus * modulus * exponent).div_ceil(256 * 256 * 32)
    }

    /// The name in RFC 7919 and nvme-cli.
    pub const fn name(self) -> &'static str {
        match self {
            GroupId::Null => "null",
            GroupId::Ffdhe2048 => "ffdhe2048",
            GroupId::Ffdhe3072 => "ffdhe3072",
            GroupId::Ffdhe4096 => "ffdhe4096",
            GroupId::Ffdhe6144 => "ffdhe6144",
            GroupId::Ffdhe8192 => "ffdhe8192",
        }
    }

    /// The number that RFC 7919, appendix A adds to the digits of e so that the modulus is a safe
    /// prime.
    const fn addend(self) -> u64 {
        match self {
            GroupId::Null => 0,
            GroupId::Ffdhe2048 => 560_316,
            GroupId::Ffdhe3072 => 2_625_351,
            GroupId::Ffdhe4096 => 5_736_041,
            GroupId::Ffdhe6144 => 15_705_020,
            GroupId::Ffdhe8192 => 10_965_728,
        }
    }

    /// The public value of a private one, as many bytes as the modulus; empty for the null group.
    /// Of `private` the first [`Self::private_bytes`] count.
    pub fn public(self, private: &[u8; PRIVATE_MAX]) -> Vec<u8> {
        match self {
            GroupId::Null => Vec::new(),
            _ => self.power(BoxedUint::from(GENERATOR).resize(self.bits()), private),
        }
    }

    /// What both sides know after they have exchanged public values; `None` when the other's is no
    /// value of the group.
    pub fn shared(self, private: &[u8; PRIVATE_MAX], theirs: &[u8]) -> Option<Vec<u8>> {
        if self == GroupId::Null || theirs.len() != self.bytes() {
            return None;
        }
        let theirs = BoxedUint::from_be_slice(theirs, self.bits()).ok()?;
        // 0, 1 and p - 1 would make the result known to everyone (RFC 7919, 3).
        let one = BoxedUint::one_with_precision(self.bits());
        let last = self.field().modulus().as_ref().wrapping_sub(&one);
        (theirs > one && theirs < last).then(|| self.power(theirs, private))
    }

    const fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }

    fn power(self, base: BoxedUint, private: &[u8; PRIVATE_MAX]) -> Vec<u8> {
        let bits = self.private_bytes() as u32 * 8;
        let exponent =
            BoxedUint::from_be_slice(&private[..self.private_bytes()], bits).expect("it is as long as it says");
        BoxedMontyForm::new(base, self.field()).pow(&exponent).retrieve().to_be_bytes().into_vec()
    }

    /// The modulus and values derived from it, computed once per process.
    fn field(self) -> &'static BoxedMontyParams {
        static FIELDS: [OnceLock<BoxedMontyParams>; 5] = [const { OnceLock::new() }; 5];
        let place = &FIELDS[usize::from(self.code().max(1)) - 1];
        place.get_or_init(|| {
            let modulus = Odd::new(self.modulus()).into_option();
            BoxedMontyParams::new(modulus.expect("a prime above two is odd"))
        })
    }

    /// 2^b - 2^(b-64) + (floor(2^(b-130) e) + addend) 2^64 - 1 (RFC 7919, appendix A).
    fn modulus(self) -> BoxedUint {
        let bits = self.bits();
        let one = BoxedUint::one_with_precision(bits);
        let middle = digits_of_e(bits - 130, bits).wrapping_add(BoxedUint::from(self.addend()).resize(bits)).shl(64);
        // 2^b is zero at this precision.
        middle.wrapping_sub(one.shl(bits - 64)).wrapping_sub(&one)
    }
}

/// floor(2^shift e): the sum of 2^shift / k!.
fn digits_of_e(shift: u32, precision: u32) -> BoxedUint {
    let mut term = BoxedUint::one_with_precision(precision).shl(shift + GUARD);
    let mut sum = BoxedUint::zero_with_precision(precision);
    for divisor in 1_u32.. {
        if bool::from(term.is_zero()) {
            break;
        }
        sum = sum.wrapping_add(&term);
        let divisor = NonZero::new(Limb::from(divisor)).into_option().expect("it counts from one");
        term = term.div_rem_limb(divisor).0;
    }
    sum.shr(GUARD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [GroupId; 5] =
        [GroupId::Ffdhe2048, GroupId::Ffdhe3072, GroupId::Ffdhe4096, GroupId::Ffdhe6144, GroupId::Ffdhe8192];

    fn private(fill: u8) -> [u8; PRIVATE_MAX] {
        std::array::from_fn(|at| fill.wrapping_add(at as u8))
    }

    #[test]
    fn moduli_begin_and_end_as_rfc_7919_prints_them() {
        for group in GROUPS {
            let bytes = group.modulus().to_be_bytes();
            assert_eq!(bytes.len(), group.bytes());
            assert!(bytes.starts_with(&[0xff; 8]) && bytes.ends_with(&[0xff; 8]));
            // e less two, its fraction: ADF85458 A2BB4A9A.
            assert_eq!(bytes[8..16], [0xad, 0xf8, 0x54, 0x58, 0xa2, 0xbb, 0x4a, 0x9a]);
        }
        let last = |group: GroupId| {
            let bytes = group.modulus().to_be_bytes();
            u64::from_be_bytes(bytes[bytes.len() - 16..bytes.len() - 8].try_into().unwrap())
        };
        // The last words before the ones, from the RFC's tables.
        assert_eq!(last(GroupId::Ffdhe2048), 0x886b_4238_6128_5c97);
        assert_eq!(last(GroupId::Ffdhe3072), 0x25e4_1d2b_66c6_2e37);
        assert_eq!(last(GroupId::Ffdhe4096), 0xc68a_007e_5e65_5f6a);
        assert_eq!(last(GroupId::Ffdhe6144), 0xa40e_329c_d0e4_0e65);
        assert_eq!(last(GroupId::Ffdhe8192), 0xd68c_8bb7_c5c6_424c);
    }

    #[test]
    fn both_sides_come_to_the_same_and_a_third_does_not() {
        for group in GROUPS {
            let (mine, yours) = (private(1), private(101));
            let shared = group.shared(&mine, &group.public(&yours)).unwrap();
            assert_eq!(shared.len(), group.bytes());
            assert_eq!(group.shared(&yours, &group.public(&mine)), Some(shared.clone()));
            assert_ne!(group.shared(&private(2), &group.public(&yours)), Some(shared));
        }
        assert!(GroupId::Null.public(&private(1)).is_empty());
    }

    /// p is prime if 2^(p-1) is one, as good as certainly; 2 has the order (p-1)/2, as the RFC
    /// says.
    #[test]
    fn the_modulus_is_a_prime_of_which_two_makes_half() {
        let group = GroupId::Ffdhe2048;
        let half = group.modulus().shr(1);
        let two = BoxedMontyForm::new(BoxedUint::from(GENERATOR).resize(group.bits()), group.field());
        assert_eq!(two.pow(&half).retrieve(), BoxedUint::one_with_precision(group.bits()));
    }

    #[test]
    fn values_that_are_not_of_the_group_are_refused_on_both_edges() {
        let group = GroupId::Ffdhe2048;
        let value = |number: u8| {
            let mut bytes = vec![0; group.bytes()];
            bytes[group.bytes() - 1] = number;
            bytes
        };
        let below = |less: u64| {
            let less = BoxedUint::from(less).resize(group.bits());
            group.modulus().wrapping_sub(&less).to_be_bytes().into_vec()
        };
        for refused in [value(0), value(1), below(1), below(0), vec![0xff; group.bytes()], vec![2; 255], vec![]] {
            assert_eq!(group.shared(&private(1), &refused), None);
        }
        assert!(group.shared(&private(1), &value(2)).is_some() && group.shared(&private(1), &below(2)).is_some());
        assert_eq!(GroupId::Null.shared(&private(1), &[]), None);
    }

    #[test]
    fn the_cost_grows_with_modulus_and_exponent() {
        let costs: Vec<u64> = GroupId::ALL.iter().map(|group| group.cost()).collect();
        assert_eq!(costs, [0, 1, 3, 6, 14, 28]);
    }
}
