//! Saves reservations as they change, in a thread, so that no host waits for the disk of another.

use super::{NamespaceName, State};
use crate::backend::{Completion, Done, Facts};
use nvme::target::{BackendId, IoResult, IoStatus, IoTag, Reservations};
use runtime::lock::lock;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// The state, which the loop and the keeper change.
pub(crate) type SharedState = Arc<Mutex<State>>;

/// A panic of the other thread has been reported where it happened; the state in memory is whole.
pub(crate) fn locked(state: &SharedState) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change of the reservations of a namespace.
struct Change {
    tag: IoTag,
    name: NamespaceName,
    reservations: Reservations,
    facts: Facts,
    /// The list of the loop that waits for it.
    answers: Arc<Done>,
}

/// Answers when a change would survive a power loss. Drop it to end its thread; earlier changes are
/// saved first.
pub(crate) struct Keeper {
    changes: Option<Sender<Change>>,
    thread: Option<JoinHandle<()>>,
    names: Mutex<BTreeMap<BackendId, NamespaceName>>,
    is_kept: bool,
}

impl Keeper {
    /// Keeps `state`.
    pub(crate) fn start(state: SharedState) -> std::io::Result<Keeper> {
        let (sender, receiver) = channel();
        let is_kept = locked(&state).is_kept();
        let builder = thread::Builder::new().name("keeper".into());
        let thread = builder.spawn(move || keep(&state, &receiver))?;
        Ok(Keeper { changes: Some(sender), thread: Some(thread), names: Mutex::default(), is_kept })
    }

    /// Requests of `backend` are about this namespace.
    pub(crate) fn name(&self, backend: BackendId, name: NamespaceName) {
        lock(&self.names).insert(backend, name);
    }

    /// Keeps `reservations` in place of the last, and then adds to `answers`. Fails at once if
    /// nothing is kept: persistence would be a false promise.
    pub(crate) fn persist(
        &self,
        tag: IoTag,
        reservations: Reservations,
        facts: Facts,
        answers: &Arc<Done>,
    ) -> Result<(), IoStatus> {
        if !self.is_kept && reservations.persists {
            return Err(IoStatus::Unsupported);
        }
        let name = lock(&self.names).get(&facts.backend).ok_or(IoStatus::Unavailable)?.clone();
        let sender = self.changes.as_ref().ok_or(IoStatus::Unavailable)?;
        let answers = answers.clone();
        sender.send(Change { tag, name, reservations, facts, answers }).map_err(|_| IoStatus::Unavailable)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

fn keep(state: &SharedState, changes: &Receiver<Change>) {
    while let Ok(first) = changes.recv() {
        // Changes that have come meanwhile go into the same file.
        let batch: Vec<Change> = std::iter::once(first).chain(changes.try_iter()).collect();
        let mut state = locked(state);
        for change in &batch {
            state.set_reservations(&change.name, change.reservations.clone());
        }
        let status = match state.save() {
            Ok(()) => IoStatus::Done,
            Err(error) => {
                tracing::error!(%error, "reservations cannot be saved");
                IoStatus::WriteError
            }
        };
        drop(state);
        for Change { tag, facts, answers, .. } in batch {
            answers.add(Completion { tag, result: IoResult::bare(status), facts, due: facts.came });
        }
    }
}
