//! Parts of records as files in a folder.

use record::{Parts, part_name};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// A folder that holds `part-00000.parquet` and so on. A part is written under a hidden name and
/// renamed when complete.
///
/// It is not synced: the same command makes the records again. So they have to survive the end of
/// the program, not that of the machine.
pub struct FileParts {
    folder: PathBuf,
}

impl FileParts {
    /// Parts in `folder`, which must exist.
    pub fn new(folder: PathBuf) -> FileParts {
        FileParts { folder }
    }

    fn shown(&self, part: u32) -> PathBuf {
        self.folder.join(part_name(part))
    }

    fn unfinished(&self, part: u32) -> PathBuf {
        self.folder.join(format!(".{}.tmp", part_name(part)))
    }
}

impl Parts for FileParts {
    type File = File;

    fn create(&mut self, part: u32) -> io::Result<File> {
        File::create(self.unfinished(part))
    }

    fn commit(&mut self, part: u32, file: File) -> io::Result<()> {
        drop(file);
        fs::rename(self.unfinished(part), self.shown(part))
    }

    fn place(&self, part: u32) -> String {
        self.shown(part).display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Outcome, ParquetWriter, Provenance, Row, Sink, Spans, read_part};

    fn row(request: u64) -> Row {
        Row {
            request: base::RequestId(request),
            operation: base::Operation::Read,
            source: base::NodeId(0),
            target: base::NodeId(1),
            address: 0,
            bytes: base::Bytes::new(64),
            outcome: Outcome::Finished,
            intended: base::Time::ZERO,
            start: base::Time::ZERO,
            end: base::Time::ZERO,
            unloaded: base::Span::ZERO,
            measured: true,
            spans: Spans::default(),
        }
    }

    #[test]
    fn a_full_disk_names_the_file_and_leaves_the_parts_before_it() {
        let folder = tempfile::tempdir().unwrap();
        // This device has no space.
        std::os::unix::fs::symlink("/dev/full", folder.path().join(".part-00001.parquet.tmp")).unwrap();
        let parts = FileParts::new(folder.path().into());
        let mut writer = ParquetWriter::new(parts, &Provenance::default()).with_rows_per_part(10);
        let error = (0..30).find_map(|request| writer.row(&row(request)).err()).expect("the disk is full");
        assert!(error.place.ends_with("part-00001.parquet") && error.reason.contains("No space left"), "{error}");
        assert_eq!((writer.written().parts, writer.written().rows), (1, 10));
        let first = File::open(folder.path().join("part-00000.parquet")).unwrap();
        assert_eq!(read_part("first", &first).unwrap().rows.len(), 10);
        assert!(!folder.path().join("part-00001.parquet").exists());
    }
}
