//! Files and folders that are kept only if everything else succeeds: until then, dropping them
//! removes them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Read and write for the owner alone.
pub const PRIVATE: u32 = 0o600;

/// A new name survives a power loss once its folder is synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// The new text of a file, written and synced beside it.
#[derive(Debug)]
pub struct Draft {
    beside: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Writes `text` beside `path`.
    pub fn write(path: &Path, text: &str) -> io::Result<Draft> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let draft = Draft { beside: name.into(), path: path.into() };
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(PRIVATE).open(&draft.beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Replaces the file: after a crash at any time it is the old one or the new one.
    pub fn keep(self) -> io::Result<()> {
        fs::rename(&self.beside, &self.path)?;
        sync_folder_of(&self.path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `keep` there is no file to remove.
        let _ = fs::remove_file(&self.beside);
    }
}

/// A folder, with those above it that were created for it.
#[derive(Debug, Default)]
pub struct MadeFolder(Vec<PathBuf>);

impl MadeFolder {
    /// Creates `path` unless it exists.
    pub fn make(path: &Path) -> io::Result<MadeFolder> {
        let missing = path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let made = MadeFolder(missing.map(Path::to_owned).collect());
        fs::create_dir_all(path)?;
        // Missing permission to write shows now, and not when there is something to keep.
        let probe = path.join(".probe");
        File::create(&probe).and_then(|_| fs::remove_file(&probe))?;
        Ok(made)
    }

    /// Keeps the folder.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        // The deepest first. A folder that is not empty stays.
        self.0.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}
