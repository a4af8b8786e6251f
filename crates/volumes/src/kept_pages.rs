//! The data and the notes of a vSSD, in files.

use crate::notes::{Named, Note, Notes};
use blox::{PAGE_BYTES, Page, Value, VssdId};
use runtime::room::{reserve, warn_of_room};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a read of a page has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Content {
    /// The page, as it was written.
    Sound(Value),
    /// No sound page, and the value that it should have, if that is known.
    Rotten(Option<Value>),
}

/// The pages of a vSSD in files.
pub(crate) struct KeptPages {
    data: File,
    notes: Notes,
    named: Vec<Named>,
    /// Pages that this process has written: what they were before is over.
    written: Vec<bool>,
}

impl KeptPages {
    /// Opens the files of a vSSD, or makes empty ones. Takes their room where `is_reserved`.
    ///
    /// # Errors
    /// When they cannot be opened or made, or are of an earlier version, and where there is less
    /// room than is to be taken.
    pub fn open(folder: &Path, id: VssdId, pages: u64, is_reserved: bool) -> io::Result<KeptPages> {
        let path = |what: &str| folder.join(format!("vssd-{}.{what}", id.0));
        let (data, notes) = (path("pages"), path("notes"));
        if !notes.exists() && (data.exists() || path("values").exists()) {
            let reason = format!(
                "{} has no {}: it is of an earlier version, which kept no checksums, or that was removed. Move the \
                 server's folder away: its peers fill a new one, one server after the other",
                data.display(),
                notes.display(),
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let (notes, named) = Notes::open(&notes, pages)?;
        let name = data;
        let data = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&name)?;
        let bytes = pages * u64::from(PAGE_BYTES);
        data.set_len(bytes)?;
        if is_reserved {
            reserve(&data, bytes)?;
        } else {
            warn_of_room(&name, &data, bytes)?;
        }
        Ok(KeptPages { data, notes, written: vec![false; named.len()], named })
    }

    /// The values of all pages.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.named.iter().map(|named| named.value)
    }

    /// Reads a page into `data`.
    ///
    /// # Errors
    /// When the file cannot be read at all. What a medium has lost is [`Content::Rotten`].
    pub fn read(&mut self, page: Page, data: &mut [u8]) -> io::Result<Content> {
        let Named { value, sum } = self.named[page.0 as usize];
        if value == Value(0) {
            data.fill(0);
            return Ok(Content::Sound(value));
        }
        let named = Some(value).filter(|value| *value != Value::ROTTEN);
        match self.data.read_exact_at(data, page.0 * u64::from(PAGE_BYTES)) {
            Err(error) if is_of_the_medium(&error) => {
                tracing::warn!(%error, page = page.0, "a page cannot be read");
                return Ok(Content::Rotten(named));
            }
            read => read?,
        }
        if named.is_none() {
            return Ok(Content::Rotten(None));
        }
        let found = crc32c::crc32c(data);
        if found == sum {
            return Ok(Content::Sound(value));
        }
        Ok(self.before(page, value, found)?.map_or(Content::Rotten(named), Content::Sound))
    }

    /// The value that a page still has whose writer was killed between its note and its data.
    fn before(&mut self, page: Page, value: Value, found: u32) -> io::Result<Option<Value>> {
        if self.written[page.0 as usize] {
            return Ok(None);
        }
        let note = self.notes.read(page)?.filter(|note| note.now.value == value && note.before.sum == found);
        let before = note.map(|note| note.before);
        before.iter().for_each(|before| self.named[page.0 as usize] = *before);
        Ok(before.map(|before| before.value))
    }

    /// Writes a page, or that nobody has its data ([`Value::ROTTEN`]).
    pub fn write(&mut self, page: Page, value: Value, data: &[u8]) -> io::Result<()> {
        let place = page.0 as usize;
        let (before, now) = (self.named[place], Named::of(value, data));
        // What was never written has no room in the file.
        if value == Value::ROTTEN || value == Value(0) && before.value == Value(0) {
            self.notes.write(page, Note { now, before: now })?;
        } else if matches!(before.value, Value(0) | Value::ROTTEN) {
            // Nobody reads the data before there is a note of them. Zeros that a disk has lost must
            // not be taken for a page that was never written.
            self.data.write_all_at(data, page.0 * u64::from(PAGE_BYTES))?;
            self.notes.write(page, Note { now, before: now })?;
        } else {
            self.notes.write(page, Note { now, before })?;
            self.data.write_all_at(data, page.0 * u64::from(PAGE_BYTES))?;
        }
        (self.named[place], self.written[place]) = (now, true);
        Ok(())
    }

    /// Looks whether the note of a page is on the disk as it is in memory, and writes it anew if
    /// not.
    pub fn check_note(&mut self, page: Page) -> io::Result<()> {
        let now = self.named[page.0 as usize];
        let found = self.notes.read(page)?;
        if found.is_some_and(|note| note.now == now) || now.value == Value::ROTTEN {
            return Ok(());
        }
        // What is known to have come of a kill is not worth a word.
        if self.written[page.0 as usize] || found.is_none() {
            tracing::warn!(page = page.0, "the note of a page was not as it was written: it is written anew");
        }
        self.notes.write(page, Note { now, before: now })
    }

    pub fn sync(&self) -> io::Result<()> {
        self.data.sync_data().and_then(|()| self.notes.sync())
    }
}

/// Whether a failure to read says that data are lost, and not that nothing can be read: a device's
/// error, a checksum of a file system, a file that was cut short.
pub(crate) fn is_of_the_medium(error: &io::Error) -> bool {
    const LOST: [Errno; 6] = [Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::NODATA, Errno::ILSEQ, Errno::REMOTEIO];
    let code = Errno::from_io_error(error);
    error.kind() == io::ErrorKind::UnexpectedEof || code.is_some_and(|code| LOST.contains(&code))
}

#[cfg(test)]
mod tests;
