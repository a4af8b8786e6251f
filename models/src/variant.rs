//! Protocols, and what can be taken out of ours.

/// What the clients and the server run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Ours.
    Ours,
    /// Section 5.2 of the paper: two flags, plain writes, the writer invalidates.
    Paper {
        /// With its optional lease.
        has_lease: bool,
    },
}

/// One thing done wrong, by the number of its scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// H1: the offset is that of the first read of the block.
    OffsetOfFirstRead,
    /// H1b: in the double-read, torn, the offset may be seen before the other slots are.
    OffsetInAnyOrder,
    /// H2 and H8: payloads carry neither version nor checksum.
    PlainPayload,
    /// H3: of two fillers of one key both give way.
    BothGiveWay,
    /// H4: the first slot of the key alone is invalidated.
    FirstMatchAlone,
    /// H5: a reader does not wait for a filler, but reads flash beside it.
    ReadsPastFiller,
    /// H9: the word carries neither version nor owner.
    PlainWord,
    /// H9b: a filler does not check whether its slot is still its own.
    OwnWordUnchecked,
    /// H9c: in the double-read, torn, a filler may see its own word before the offset.
    OwnWordInAnyOrder,
    /// H9d: in the double-read, another slot of the key that is damaged counts as none.
    DamagedIgnored,
    /// H9e: in the double-read, another filler of the key whose lease is over counts as none.
    LapsedIgnored,
    /// H10: the writer invalidates, after the server's answer.
    WriterInvalidates,
    /// H11: the server answers reads between storing the offset and invalidating.
    ServerReadsBetween,
    /// H12: the lock is set first, fingerprint and lease after it.
    LockThenInstall,
    /// H13: the last batch to finish stores its offset.
    OffsetOfAnyBatch,
    /// H14: a deletion leaves no record on flash.
    NoTombstone,
    /// H15a: the offset is stored before the record is flushed.
    PublishesUnflushed,
    /// H15b: slots survive the server's restart.
    CacheSurvivesRestart,
    /// H15c: the slots are emptied, and their versions begin again.
    VersionsBeginAgain,
    /// H15d: recovery frees the slots first, and sets the header then.
    RecoversSlotsFirst,
    /// H16: a record is not compared with the expected one.
    RecordUnchecked,
    /// H17: the processor's plain store comes between the halves of the network card's
    /// compare-and-swap.
    PlainStores,
    /// H19: versions come back after four changes of a slot; in the layout after 2^24.
    VersionsWrap,
    /// Invalidates first and stores the offset then.
    InvalidatesThenStores,
}

/// What is explored: a protocol, perhaps with a flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The protocol.
    pub protocol: Protocol,
    /// What is wrong with it.
    pub flaw: Option<Flaw>,
}

impl Variant {
    /// Ours, whole.
    pub const OURS: Variant = Variant { protocol: Protocol::Ours, flaw: None };
    /// The paper's, as kindly read as it can be: the offset is that of the double-read, every match
    /// is invalidated.
    pub const PAPER: Variant = Variant { protocol: Protocol::Paper { has_lease: false }, flaw: None };
    /// The paper's with its lease.
    pub const PAPER_WITH_LEASE: Variant = Variant { protocol: Protocol::Paper { has_lease: true }, flaw: None };

    /// Ours without one of its rules.
    pub const fn ours_with(flaw: Flaw) -> Variant {
        Variant { protocol: Protocol::Ours, flaw: Some(flaw) }
    }

    /// Returns whether this is done wrong.
    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}
