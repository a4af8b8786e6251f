//! Updates and their answers on their way between machines: they tell how clocks are apart.

use super::Site;
use crate::journal::{Beginning, Entry, Part, Reader, Take};
use base::Time;
use runtime::clocks::{Machines, Messages};
use runtime::journal::JournalError;
use scalio::{ClientId, ClientIn, ClientOut, Length, ServerIn, ServerOut};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An update of a site, by its door's name at the JBOF and its number, or the answer to it.
type Letter = (usize, bool, ClientId, u64);
/// A machine, and a time of its clock.
type When = (usize, u64);

#[derive(Default)]
struct Letters {
    sent: BTreeMap<Letter, When>,
    came: BTreeMap<Letter, When>,
}

/// What went between the machines of these journals.
///
/// # Errors
/// When one cannot be read.
pub(super) fn messages(
    files: &[(PathBuf, Beginning)],
    sites: &[Site],
    machines: &Machines,
) -> Result<Messages, JournalError> {
    let mut letters = Letters::default();
    for (path, beginning) in files {
        let Some(site) = sites.iter().position(|site| site.has(beginning)) else { continue };
        let when = |at: Time| machines.own(&beginning.boot, beginning.clock_ns.saturating_add(at.as_ps() / 1_000));
        let journal = Reader::open(path)?;
        match beginning.part {
            Part::Loop(_) => each(journal, |at, entry| letters.see_loop(site, when(at), &entry))?,
            Part::Helper => each(journal, |at, entry| letters.see_helper(site, when(at), &entry))?,
        }
    }
    let mut messages = Messages::default();
    for (letter, sent) in &letters.sent {
        letters.came.get(letter).into_iter().for_each(|came| messages.saw(*sent, *came));
    }
    Ok(messages)
}

/// Looks at each entry of a journal, and when it was.
fn each<I: Take, O: Take>(mut journal: Reader, mut see: impl FnMut(Time, Entry<I, O>)) -> Result<(), JournalError> {
    let mut at = Time::ZERO;
    while let Some(entry) = journal.next()? {
        at = entry.at().unwrap_or(at);
        see(at, entry);
    }
    Ok(())
}

impl Letters {
    fn see_loop(&mut self, site: usize, when: When, entry: &Entry<ClientIn<Length>, ClientOut<Length>>) {
        match entry {
            Entry::Decided(ClientOut::Send { request, .. }) => {
                self.sent.entry((site, false, request.client, request.number)).or_insert(when);
            }
            Entry::Input { input: ClientIn::Reply(reply), .. } => {
                self.came.entry((site, true, reply.client, reply.number)).or_insert(when);
            }
            _ => {}
        }
    }

    fn see_helper(&mut self, site: usize, when: When, entry: &Entry<ServerIn<Length>, ServerOut<Length>>) {
        match entry {
            Entry::Input { input: ServerIn::Request(request), .. } => {
                self.came.entry((site, false, request.client, request.number)).or_insert(when);
            }
            Entry::Decided(ServerOut::Reply(reply)) => {
                self.sent.entry((site, true, reply.client, reply.number)).or_insert(when);
            }
            _ => {}
        }
    }
}
