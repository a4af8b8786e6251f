//! Blocks that the vSSDs of a channel group lend each other, so that they can put collection off
//! and collect together (RackBlox, 3.5.2).
//!
//! A vSSD that is about to run out of free blocks gets a group of them (1 GB) from the member that
//! has most. After the collection they go back, erased first. What a borrower cannot spare then
//! stays in the ledger until the next time.

use crate::id::VssdId;
use std::collections::BTreeMap;

/// When and how much is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BorrowConfig {
    /// Blocks in one borrowed group, at least one (paper: 1 GB of them).
    pub group_blocks: u32,
    /// A vSSD with fewer free blocks than this borrows, and nobody is brought below it by lending
    /// or giving back. At least one.
    pub keep_blocks: u32,
}

/// Blocks that should move from one vSSD's free list to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMove {
    /// Whose free list they leave.
    pub from: VssdId,
    /// The region that they join.
    pub to: VssdId,
    /// Number of blocks.
    pub blocks: u32,
}

/// Debts in blocks within one channel group.
#[derive(Clone, Debug)]
pub struct Ledger {
    config: BorrowConfig,
    /// By borrower and owner; never 0.
    debts: BTreeMap<(VssdId, VssdId), u32>,
    /// A loan that has been ordered and not yet been carried out; one at a time, so that it is
    /// decided on known counts.
    under_way: Option<BlockMove>,
}

impl Ledger {
    /// Nobody owes anything.
    pub fn new(config: BorrowConfig) -> Self {
        Ledger { config, debts: BTreeMap::new(), under_way: None }
    }

    /// The loan to order for a member that has too few free blocks, if one can spare a group.
    /// `free` is what each member has.
    pub fn lend(&mut self, free: impl Iterator<Item = (VssdId, u32)> + Clone) -> Option<BlockMove> {
        if self.under_way.is_some() {
            return None;
        }
        let (borrower, least) = free.clone().min_by_key(|&(vssd, blocks)| (blocks, vssd))?;
        // Of equals the first: the order of ties must not hang on the iterator's habits.
        let (owner, most) = free.max_by_key(|&(vssd, blocks)| (blocks, std::cmp::Reverse(vssd)))?;
        let BorrowConfig { group_blocks, keep_blocks } = self.config;
        let can_spare = owner != borrower && u64::from(most) >= u64::from(group_blocks) + u64::from(keep_blocks);
        if least >= keep_blocks || !can_spare {
            return None;
        }
        self.under_way = Some(BlockMove { from: owner, to: borrower, blocks: group_blocks });
        self.under_way
    }

    /// Returns whether a loan has been ordered and not yet been carried out.
    pub fn is_lending(&self) -> bool {
        self.under_way.is_some()
    }

    /// The device has moved `blocks` from `from` to `to`.
    pub fn lent(&mut self, moved: BlockMove) {
        self.under_way = None;
        if moved.blocks > 0 {
            let debt = self.debts.entry((moved.to, moved.from)).or_default();
            *debt = debt.saturating_add(moved.blocks);
        }
    }

    /// Returns the blocks to give back after a collection, given each member's free blocks: as much
    /// of each debt as its borrower can spare.
    pub fn give_back(&self, free: impl Iterator<Item = (VssdId, u32)>) -> Vec<BlockMove> {
        let mut spare: BTreeMap<VssdId, u32> =
            free.map(|(vssd, blocks)| (vssd, blocks.saturating_sub(self.config.keep_blocks))).collect();
        let mut moves = Vec::new();
        for (&(borrower, owner), &debt) in &self.debts {
            let spare = spare.entry(borrower).or_default();
            let blocks = debt.min(*spare);
            *spare -= blocks;
            if blocks > 0 {
                moves.push(BlockMove { from: borrower, to: owner, blocks });
            }
        }
        moves
    }

    /// The device has erased and given back `blocks` of `from`'s debt to `to`. More than is owed is
    /// the device's mistake and changes nothing beyond the debt.
    pub fn returned(&mut self, moved: BlockMove) {
        if let Some(debt) = self.debts.get_mut(&(moved.from, moved.to)) {
            *debt = debt.saturating_sub(moved.blocks);
            if *debt == 0 {
                self.debts.remove(&(moved.from, moved.to));
            }
        }
    }

    /// As after a loss of power: debts are on flash with the block tables and stay; an open order
    /// is dropped.
    pub fn reset(&mut self) {
        self.under_way = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOR: VssdId = VssdId(1);
    const RICH: VssdId = VssdId(2);

    fn ledger() -> Ledger {
        Ledger::new(BorrowConfig { group_blocks: 16, keep_blocks: 2 })
    }

    fn free(poor: u32, rich: u32) -> impl Iterator<Item = (VssdId, u32)> + Clone {
        [(POOR, poor), (RICH, rich)].into_iter()
    }

    #[test]
    fn a_vssd_without_free_blocks_gets_a_group_from_the_one_with_most() {
        let wanted = BlockMove { from: RICH, to: POOR, blocks: 16 };
        assert_eq!(ledger().lend(free(1, 18)), Some(wanted));
        assert_eq!(ledger().lend(free(2, 18)), None, "two are enough");
        assert_eq!(ledger().lend(free(1, 17)), None, "the lender keeps two");
    }

    #[test]
    fn a_loan_is_not_ordered_twice() {
        let mut ledger = ledger();
        let loan = ledger.lend(free(0, 100)).expect("a loan");
        assert_eq!(ledger.lend(free(0, 100)), None);
        ledger.lent(loan);
        assert!(ledger.lend(free(0, 100)).is_some(), "and again when that was not enough");
    }

    #[test]
    fn what_was_borrowed_goes_back_as_far_as_it_can_be_spared() {
        let mut ledger = ledger();
        ledger.lent(BlockMove { from: RICH, to: POOR, blocks: 16 });
        let first = BlockMove { from: POOR, to: RICH, blocks: 10 };
        assert_eq!(ledger.give_back(free(12, 50)), [first]);
        ledger.returned(first);
        assert_eq!(ledger.give_back(free(100, 50)), [BlockMove { from: POOR, to: RICH, blocks: 6 }]);
    }

    #[test]
    fn a_loan_of_which_nothing_came_leaves_no_debt() {
        let mut ledger = ledger();
        ledger.lent(BlockMove { from: RICH, to: POOR, blocks: 0 });
        assert!(ledger.give_back(free(100, 100)).is_empty());
    }

    #[test]
    fn two_debts_share_what_the_borrower_can_spare() {
        let third = VssdId(3);
        let mut ledger = ledger();
        ledger.lent(BlockMove { from: RICH, to: POOR, blocks: 16 });
        ledger.lent(BlockMove { from: third, to: POOR, blocks: 16 });
        let back = ledger.give_back([(POOR, 22)].into_iter());
        assert_eq!(back.iter().map(|back| back.blocks).collect::<Vec<_>>(), [16, 4]);
    }
}
