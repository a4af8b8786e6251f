//! The order of acknowledged writes, where it is checked: a read finds the last one or a later one.

use super::SanRig;
use super::ends::DriveWork;
use base::{Operation, Request, RequestId, Time};
use history::{BlockId, OrderViolation, WriteEnd, WriteOrder};
use record::metric::{self, Meter};
use std::collections::BTreeMap;

/// The block in which the order of writes is checked.
const BLOCK: u64 = 4_096;

/// What drives hold, and what reads have found there.
pub(super) struct OrderCheck {
    /// Drives are numbered after so many hosts.
    hosts: u64,
    order: WriteOrder,
    /// By block: the request that wrote it last.
    contents: BTreeMap<BlockId, u64>,
    /// What reads have found that are on their way back.
    found: BTreeMap<RequestId, Vec<u64>>,
    violations: u64,
    first: Option<OrderViolation>,
}

impl OrderCheck {
    /// Of a network with so many hosts.
    pub fn new(hosts: usize) -> OrderCheck {
        let (contents, found) = (BTreeMap::new(), BTreeMap::new());
        OrderCheck { hosts: hosts as u64, order: WriteOrder::new(), contents, found, violations: 0, first: None }
    }

    fn blocks(drive: u64, address: u64, bytes: u64) -> impl Iterator<Item = BlockId> {
        (address / BLOCK..(address + bytes).div_ceil(BLOCK)).map(move |block| (drive, block))
    }

    fn blocks_of(&self, request: &Request) -> impl Iterator<Item = BlockId> + use<> {
        let drive = u64::from(request.target.0) - self.hosts;
        OrderCheck::blocks(drive, request.address, request.bytes.count())
    }

    /// A request begins.
    pub fn begins(&mut self, now: Time, name: RequestId, request: &Request) {
        for block in self.blocks_of(request) {
            match request.operation {
                Operation::Read => self.order.read_begins(now, block),
                Operation::Write | Operation::ReadModifyWrite => self.order.write_begins(now, block, name.0),
            }
        }
    }

    /// What a drive has done is in its blocks, and what it has read goes with the request.
    pub fn store(&mut self, work: &DriveWork) {
        let blocks = OrderCheck::blocks(u64::from(work.drive.0), work.address, u64::from(work.bytes));
        if work.operation == Operation::Read {
            let found = blocks.map(|block| self.contents.get(&block).copied().unwrap_or(0)).collect();
            self.found.insert(work.request, found);
        } else {
            self.contents.extend(blocks.map(|block| (block, work.request.0)));
        }
    }

    /// A request that began at `begun` ends, and `is_done` or has failed.
    pub fn ends(&mut self, now: Time, name: RequestId, request: &Request, is_done: bool, begun: Time) {
        let blocks = self.blocks_of(request);
        if request.operation != Operation::Read {
            let end = if is_done { WriteEnd::Acknowledged } else { WriteEnd::Failed };
            blocks.for_each(|block| self.order.write_ends(now, block, name.0, end));
            return;
        }
        let found = self.found.remove(&name).filter(|_| is_done);
        for (index, block) in blocks.enumerate() {
            let Some(id) = found.as_ref().and_then(|found: &Vec<u64>| found.get(index)) else {
                self.order.read_fails(block, begun);
                continue;
            };
            if let Err(violation) = self.order.read_ends(now, block, begun, *id) {
                self.violations += 1;
                self.first.get_or_insert(violation);
            }
        }
    }

    /// Warns of the first read that found what it must not.
    fn judge(&self, meter: &mut Meter) {
        meter.count(metric::write_order_violations, self.violations as f64);
        meter.count(metric::write_order_reads_judged, self.order.reads() as f64);
        if let Some(first) = &self.first {
            meter.warn(format!("an acknowledged write was undone: {first}"));
        }
    }
}

impl SanRig {
    /// Reads what the order of writes was like, if it was checked.
    pub fn judge_write_order(&self, meter: &mut Meter) {
        if let Some(order) = &self.order {
            order.judge(meter);
        }
    }
}
