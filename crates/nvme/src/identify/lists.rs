//! Lists: active namespaces, and the names of one.

use crate::CodecError;
use crate::identify::IDENTIFY_BYTES;
use zerocopy::little_endian::U32;

/// Active namespaces in rising order (Base 2.0, 5.17.2.2), at most 1,024 a page; zeros behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveNamespaces(pub Vec<u32>);

impl ActiveNamespaces {
    /// Namespaces of a page.
    pub const COUNT_MAX: usize = IDENTIFY_BYTES / 4;

    /// The page for the host that knows all up to `after`, from all that are active in rising
    /// order.
    pub fn page(active: impl IntoIterator<Item = u32>, after: u32) -> Self {
        ActiveNamespaces(active.into_iter().filter(|id| *id > after).take(Self::COUNT_MAX).collect())
    }

    /// As bytes. Those beyond a page are left out.
    pub fn encode(&self) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        for (place, id) in bytes.chunks_exact_mut(4).zip(&self.0) {
            place.copy_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    /// Reads a page up to its first zero; fails when the ids do not rise.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let all: &[U32] = crate::range::list("active namespaces", bytes, Self::COUNT_MAX)?;
        let ids: Vec<u32> = all.iter().map(|id| id.get()).take_while(|id| *id != 0).collect();
        match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => {
                let allowed = "above the one before it";
                Err(CodecError::Field { field: "active namespace", got: u64::from(pair[1]), allowed })
            }
            None => Ok(ActiveNamespaces(ids)),
        }
    }
}

/// A name of a namespace (Base 2.0, Figure 277).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceName {
    /// Type 1.
    Eui64([u8; 8]),
    /// Type 2.
    Nguid([u8; 16]),
    /// Type 3, in the order of RFC 4122.
    Uuid([u8; 16]),
    /// Type 4: command set, 0 for NVM.
    CommandSet(u8),
}

/// Names of a namespace, one behind the other, ended by a type of zero.
pub struct NamespaceDescriptors;

impl NamespaceDescriptors {
    /// The page with `names`; those that no longer fit are left out.
    pub fn encode(names: &[NamespaceName]) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        let mut rest = &mut bytes[..];
        for name in names {
            let (kind, value) = parts(name);
            let Some((place, behind)) = rest.split_at_mut_checked(4 + value.len()) else { break };
            (place[0], place[1]) = (kind, value.len() as u8);
            place[4..].copy_from_slice(value);
            rest = behind;
        }
        bytes
    }

    /// Reads a page; names of unknown types are passed over. Fails on a length that is not the
    /// type's and on one that leaves the page.
    pub fn decode(bytes: &[u8]) -> Result<Vec<NamespaceName>, CodecError> {
        let page: &[u8; IDENTIFY_BYTES] = crate::error::leading("namespace descriptors", bytes)?;
        let (mut rest, mut names) = (&page[..], Vec::new());
        while let [kind @ (1..), length, _, _, behind @ ..] = rest {
            let wrong = CodecError::Field { field: "NIDL", got: u64::from(*length), allowed: "the length of its type" };
            let (value, next) = behind.split_at_checked(usize::from(*length)).filter(|_| *length > 0).ok_or(wrong)?;
            if let Some(name) = read_name(*kind, value).ok_or(wrong)? {
                names.push(name);
            }
            rest = next;
        }
        Ok(names)
    }
}

fn parts(name: &NamespaceName) -> (u8, &[u8]) {
    match name {
        NamespaceName::Eui64(value) => (1, value),
        NamespaceName::Nguid(value) => (2, value),
        NamespaceName::Uuid(value) => (3, value),
        NamespaceName::CommandSet(value) => (4, std::slice::from_ref(value)),
    }
}

/// `None` when the length is not the type's, `Some(None)` for an unknown type.
fn read_name(kind: u8, value: &[u8]) -> Option<Option<NamespaceName>> {
    Some(match kind {
        1 => Some(NamespaceName::Eui64(value.try_into().ok()?)),
        2 => Some(NamespaceName::Nguid(value.try_into().ok()?)),
        3 => Some(NamespaceName::Uuid(value.try_into().ok()?)),
        4 => Some(NamespaceName::CommandSet(<[u8; 1]>::try_from(value).ok()?[0])),
        _ => None,
    })
}
