//! What a reader must know about a SAN before believing its numbers.

use super::San;

impl San {
    /// Everything that is legal but probably not meant, with its numbers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
