//! Lends free blocks between the regions of a channel group (RackBlox, 3.5.2): a region without
//! free blocks borrows a group of them from a neighbour instead of collecting alone, and returns
//! the same number after the common collection.
//!
//! Only free blocks are lent and returned, and only an erase frees a block: data that the borrower
//! has written to a lent block are erased before a block is returned. It need not be the same
//! block.

use super::{RegionId, SdfError, SoftwareDefinedFlash};

/// Blocks that one region owes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loan {
    from: RegionId,
    to: RegionId,
    blocks: u32,
}

impl SoftwareDefinedFlash {
    /// Hands `blocks` free blocks of one region to another that spans the same channels. All or
    /// nothing.
    pub fn lend(&mut self, from: RegionId, to: RegionId, blocks: u32) -> Result<(), SdfError> {
        if from == to || self.region(from)?.channels != self.region(to)?.channels {
            return Err(SdfError::NotOneGroup { from, to });
        }
        let moved = self.hand_over(from, to, blocks, blocks)?;
        match self.loans.iter_mut().find(|loan| loan.from == from && loan.to == to) {
            Some(loan) => loan.blocks += moved,
            None => self.loans.push(Loan { from, to, blocks: moved }),
        }
        Ok(())
    }
    /// Gives back what a region has borrowed, as far as it has free blocks that it can spare, to
    /// the longest waiting lender first. Returns how many blocks went back.
    pub fn return_lent(&mut self, borrower: RegionId) -> Result<u32, SdfError> {
        self.region(borrower)?;
        let mut returned = 0;
        for index in 0..self.loans.len() {
            let loan = self.loans[index];
            if loan.to == borrower {
                let moved = self.hand_over(borrower, loan.from, loan.blocks, 0)?;
                self.loans[index].blocks -= moved;
                returned += moved;
            }
        }
        self.loans.retain(|loan| loan.blocks > 0);
        Ok(returned)
    }
    /// Blocks that a region has borrowed and not given back.
    pub fn borrowed(&self, borrower: RegionId) -> u32 {
        self.loans.iter().filter(|loan| loan.to == borrower).map(|loan| loan.blocks).sum()
    }
    /// Blocks that a region has lent and not got back.
    pub fn lent(&self, lender: RegionId) -> u32 {
        self.loans.iter().filter(|loan| loan.from == lender).map(|loan| loan.blocks).sum()
    }

    /// Fails when a region has lent or borrowed.
    pub(super) fn check_debts(&self, region: RegionId) -> Result<(), SdfError> {
        match self.borrowed(region) + self.lent(region) {
            0 => Ok(()),
            blocks => Err(SdfError::Indebted { region, blocks }),
        }
    }

    /// Moves up to `most` free blocks; if fewer than `least` can be spared, none, and that is an
    /// error.
    fn hand_over(&mut self, from: RegionId, to: RegionId, most: u32, least: u32) -> Result<u32, SdfError> {
        let giver = &mut self.region_mut(from)?.volume.layer;
        let blocks = giver.take_free(most);
        let moved = blocks.len() as u32;
        if moved < least {
            giver.give(&blocks)?;
            return Err(SdfError::TooFewFree { from, wanted: least, free: moved });
        }
        if let Err(error) = self.region_mut(to)?.volume.layer.give(&blocks) {
            self.region_mut(from)?.volume.layer.give(&blocks)?;
            return Err(error.into());
        }
        Ok(moved)
    }
}
