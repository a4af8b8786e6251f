//! The project's own ledgers, built into the program so that it can show them anywhere.

use super::{Ledger, parse};

/// File name and text of each ledger, in the order of the rooms.
const LEDGERS: [(&str, &str); 5] = [
    ("experiments/claims/edm.toml", include_str!("../../../../experiments/claims/edm.toml")),
    ("experiments/claims/rackblox.toml", include_str!("../../../../experiments/claims/rackblox.toml")),
    ("experiments/claims/san.toml", include_str!("../../../../experiments/claims/san.toml")),
    ("experiments/claims/sdirect.toml", include_str!("../../../../experiments/claims/sdirect.toml")),
    ("experiments/claims/scalio.toml", include_str!("../../../../experiments/claims/scalio.toml")),
];

/// Every claim of every paper.
///
/// # Panics
/// When a ledger built into the program is broken: a test reads them all, so such a program does
/// not leave the workshop.
pub fn ledgers() -> Vec<Ledger> {
    let read = |(name, text): &(&str, &str)| {
        parse(name, text).unwrap_or_else(|error| panic!("a built-in ledger is broken: {error}"))
    };
    LEDGERS.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_claim_is_built_in_once() {
        let ledgers = ledgers();
        let counts: Vec<_> = ledgers.iter().map(|ledger| (ledger.paper.as_str(), ledger.claims.len())).collect();
        assert_eq!(counts, [("edm", 20), ("rackblox", 20), ("san", 31), ("sdirect", 7), ("scalio", 16)]);
        let mut ids: Vec<_> = ledgers.iter().flat_map(|ledger| &ledger.claims).map(|claim| &claim.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 94);
    }
}
