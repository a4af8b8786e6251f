//! Memory and flash of a JBOF that this thread reaches itself: no other one wakes up for a read.

use crate::flash::{Ended, Flash, Job};
use crate::transport::Arrival;
use mapped::Mapped;
use mio::Waker;
use runtime::storage::DiskFile;
use scalio::layout::Seal;
use scalio::{Done, Extent, RegisteredMemory, RequestId, Verb};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Both of them, for one loop.
pub struct Direct {
    memory: RegisteredMemory<Mapped>,
    flash: Flash,
    ended: Vec<Ended>,
}

impl Direct {
    /// Takes over what a JBOF has shared. `waker` wakes the loop when flash was read.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn new(memory: Mapped, flash: File, seal: Seal, waker: Arc<Waker>) -> io::Result<Direct> {
        let flash = Flash::start(DiskFile::view(flash)?, seal, waker)?;
        Ok(Direct { memory: RegisteredMemory::of(memory), flash, ended: Vec::new() })
    }

    /// Executes verbs in their order.
    pub fn execute(&self, verbs: &[Verb]) -> Vec<Done> {
        verbs.iter().map(|verb| self.memory.execute(verb)).collect()
    }

    /// Reads sectors. What the system has in memory arrives at once.
    pub fn read(&mut self, request: RequestId, extent: Extent, arrived: &mut VecDeque<Arrival>) {
        match self.flash.read_cached(extent) {
            Some(bytes) => arrived.push_back(Arrival::Read { request, bytes: Some(bytes) }),
            None => {
                self.flash.submit(Job::Read { request, extent });
                self.flash.flush();
            }
        }
    }

    /// Takes what threads have read.
    pub fn take(&mut self, arrived: &mut VecDeque<Arrival>) {
        self.flash.take(&mut self.ended);
        for ended in self.ended.drain(..) {
            if let Ended::Read { request, bytes } = ended {
                arrived.push_back(Arrival::Read { request, bytes });
            }
        }
    }
}
