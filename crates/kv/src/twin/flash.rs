//! Flash of a simulated JBOF: what its journals have seen there, and what is written meanwhile.

use scalio::{
    ClientIn, Content, Corrupt, Extent, FlashAnswer, FlashOperation, Item, Length, Record, RecordPlace, Segment,
    SegmentPointer, Sequence, ServerIn,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Segments and records, without values.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// By first sector.
    segments: BTreeMap<u64, Arc<Segment>>,
    records: BTreeMap<(RecordPlace, Sequence), Record<Length>>,
}

impl Contents {
    /// A client has read this live. What is written later has other places or other sequences.
    pub fn saw_client(&mut self, operation: Option<&FlashOperation<Length>>, input: &ClientIn<Length>) {
        if let (Some(operation), ClientIn::Flash { answer, .. }) = (operation, input) {
            self.saw(operation, answer);
        }
    }

    /// A helper has read this live.
    pub fn saw_helper(&mut self, operation: Option<&FlashOperation<Length>>, input: &ServerIn<Length>) {
        if let (Some(operation), ServerIn::Flash { answer, .. }) = (operation, input) {
            self.saw(operation, answer);
        }
    }

    fn saw(&mut self, operation: &FlashOperation<Length>, answer: &FlashAnswer<Length>) {
        match (operation, answer) {
            (FlashOperation::ReadSegment { pointer, .. }, FlashAnswer::Segment(Ok(segment))) => {
                self.segments.entry(pointer.extent.sector).or_insert_with(|| segment.clone());
            }
            (FlashOperation::ReadRecord { item }, FlashAnswer::Record(Ok(record))) => {
                self.records.entry((item.record, item.sequence)).or_insert_with(|| record.clone());
            }
            _ => {}
        }
    }

    /// Carries out an operation.
    pub fn carry_out(&mut self, operation: &FlashOperation<Length>) -> FlashAnswer<Length> {
        match operation {
            FlashOperation::ReadSegment { pointer, block } => FlashAnswer::Segment(self.segment(*block, pointer)),
            FlashOperation::ReadRecord { item } => FlashAnswer::Record(Ok(self.record(item))),
            FlashOperation::Write { extent, content } => {
                self.write(*extent, content);
                FlashAnswer::Done
            }
            FlashOperation::List { extent } => FlashAnswer::Listed(self.list(*extent)),
            FlashOperation::Trim { extent } => {
                let within = extent.sector..extent.sector + u64::from(extent.sectors);
                self.segments.retain(|sector, _| !within.contains(sector));
                self.records.retain(|(place, _), _| !within.contains(&place.sector()));
                FlashAnswer::Done
            }
            FlashOperation::Flush => FlashAnswer::Done,
            // Names are not in journals where nobody walked, and restarts are not simulated.
            FlashOperation::ReadHead { .. } | FlashOperation::ReadKind { .. } | FlashOperation::Scan { .. } => {
                FlashAnswer::Failed
            }
        }
    }

    fn segment(&self, block: u32, pointer: &SegmentPointer) -> Result<Arc<Segment>, Corrupt> {
        let found = self.segments.get(&pointer.extent.sector);
        let found = found.filter(|segment| pointer.check(block, segment).is_ok());
        found.cloned().ok_or(Corrupt::Foreign { what: "segment" })
    }

    /// One that nobody has read live is as its item says.
    fn record(&self, item: &Item) -> Record<Length> {
        let known = self.records.get(&(item.record, item.sequence)).cloned();
        let Item { key, sequence, expiry, value_bytes, .. } = *item;
        known.unwrap_or(Record { key, sequence, expiry, value: Length(value_bytes) })
    }

    fn write(&mut self, extent: Extent, content: &Content<Length>) {
        match content {
            Content::Segment(segment) => drop(self.segments.insert(extent.sector, segment.clone())),
            Content::Page(page) => {
                for (place, record) in page.places(extent.sector) {
                    self.records.insert((place, record.sequence), record.clone());
                }
            }
        }
    }

    /// What compaction finds: blocks that may have something in the row of sectors.
    fn list(&self, extent: Extent) -> Vec<(u64, Content<Length>)> {
        let end = extent.sector + u64::from(extent.sectors);
        let segments = self.segments.range(extent.sector..end);
        let mut found: Vec<_> =
            segments.map(|(sector, segment)| (*sector, Content::Segment(segment.clone()))).collect();
        // A record whose own page was never seen is in the segment that lists it.
        for segment in self.segments.values() {
            let is_there = |item: &&Item| (extent.sector..end).contains(&item.record.sector());
            let records: Vec<_> = segment.items.iter().filter(is_there).map(|item| self.record(item)).collect();
            if let Some(first) = segment.items.iter().find(is_there).filter(|_| !records.is_empty()) {
                let page = scalio::Page { epoch: segment.epoch, records };
                found.push((first.record.sector(), Content::Page(Arc::new(page))));
            }
        }
        found
    }
}
