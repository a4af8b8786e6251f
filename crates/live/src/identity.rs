//! The identity of a disk, as hosts see it. It belongs to the data: made once at random for a file,
//! and kept in the folder of the state or beside the file.
//!
//! Hosts take two disks with one identity for two paths to the same data, and read from either. So
//! no identity may derive from a name or a number alone.

use crate::backend::storage::DiskFile;
use crate::error::StartError;
use crate::secrets::random;
use crate::state::State;
use runtime::draft::Draft;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A unique identifier, in the byte order of RFC 4122.
pub(crate) type Uuid = [u8; 16];

/// A new one: version 4 (RFC 9562, 5.4).
pub(crate) fn new_uuid() -> Result<Uuid, StartError> {
    let mut uuid = random().map_err(StartError::system("random numbers"))?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

/// The text form of a UUID.
pub(crate) fn uuid_text(uuid: &Uuid) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*uuid));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The subsystem name of an identity (Base 2.0, 4.7: the form with a UUID).
pub(crate) fn name_with(uuid: &Uuid) -> String {
    format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid_text(&derived(uuid, "name")))
}

/// The serial number of an identity.
pub(crate) fn serial_with(uuid: &Uuid, of: &str) -> String {
    let digest = derived(uuid, of);
    format!("RW{:016X}", u64::from_be_bytes(*digest.first_chunk().expect("it has sixteen bytes")))
}

/// Another UUID that is always the same for `uuid` and `what`: version 8 (RFC 9562, 5.8).
fn derived(uuid: &Uuid, what: &str) -> Uuid {
    let digest = Sha256::new().chain_update(uuid).chain_update(what).finalize();
    let mut uuid: Uuid = *digest.first_chunk().expect("it has 32 bytes");
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// A file, distinguished from all others of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its path, without links.
    pub path: PathBuf,
    /// Its device and inode numbers. A block device has its own.
    pub place: (u64, u64),
    /// Its creation time, nanoseconds of the wall clock, where the file system records it: inode
    /// numbers are reused.
    pub created: Option<u64>,
    is_device: bool,
}

impl Image {
    /// Identifies the file that is open as `file`.
    pub(crate) fn of(file: &DiskFile) -> io::Result<Image> {
        let path = fs::canonicalize(file.path())?;
        Ok(Image::with(path, &file.metadata()?))
    }

    fn with(path: PathBuf, facts: &Metadata) -> Image {
        let is_device = facts.file_type().is_block_device();
        let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).ok();
        Image {
            path,
            place: if is_device { (facts.rdev(), 0) } else { (facts.dev(), facts.ino()) },
            created: facts.created().ok().and_then(since).map(|age| age.as_nanos() as u64),
            is_device,
        }
    }

    fn at(path: &Path) -> Option<Image> {
        Some(Image::with(path.into(), &fs::metadata(path).ok()?))
    }

    /// Whether `path` leads to another file.
    pub(crate) fn is_elsewhere(&self, path: &Path) -> bool {
        Image::at(path).is_some_and(|other| other.place != self.place)
    }

    /// The place of its identity without a folder of a state.
    fn sidecar(&self) -> PathBuf {
        sidecar_of(&self.path)
    }
}

fn sidecar_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".rackweave");
    name.into()
}

/// The identity file beside an image.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    version: u32,
    uuid: String,
    /// Path of the image when it was last served.
    path: PathBuf,
}

const VERSION: u32 = 1;

impl Sidecar {
    fn draft(image: &Image, uuid: &Uuid) -> io::Result<Draft> {
        let form = Sidecar { version: VERSION, uuid: uuid_text(uuid), path: image.path.clone() };
        let text = serde_json::to_string_pretty(&form).map_err(io::Error::other)?;
        Draft::write(&image.sidecar(), &(text + "\n"))
    }

    /// The identity file beside the image at `path`; `None` without one.
    fn read(path: &Path) -> Result<Option<(Uuid, PathBuf)>, StartError> {
        let place = sidecar_of(path);
        let text = match fs::read_to_string(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StartError::file(place, error)),
        };
        let wrong = |reason: String| {
            StartError::file(&place, format!("{reason}; move it away to give the disk a new identity"))
        };
        let form: Sidecar = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if form.version != VERSION {
            return Err(wrong(format!("it has version {}, and this program reads {VERSION}", form.version)));
        }
        let uuid = plan::target::uuid_bytes(&form.uuid);
        let uuid = uuid.ok_or_else(|| wrong(format!("`{}` is no UUID", form.uuid)))?;
        Ok(Some((uuid, form.path)))
    }
}

/// The identity of an image: the kept one, or a new one, which is kept from now on. The file beside
/// the image moves with it, and therefore comes first.
pub(crate) fn identity_of(image: &Image, state: &mut State, drafts: &mut Vec<Draft>) -> Result<Uuid, StartError> {
    if let Some((uuid, path)) = Sidecar::read(&image.path)? {
        if path != image.path && !warn_of_copy(image, &uuid, &path) {
            // It has moved. If that cannot be written, the next start finds out again.
            drafts.extend(Sidecar::draft(image, &uuid).ok());
        }
        return Ok(uuid);
    }
    if state.is_kept() {
        return state.identity(image);
    }
    let uuid = new_uuid()?;
    let path = image.path.display();
    if image.is_device {
        tracing::warn!(%path, "its identity ends with this process: give a `state` or a `uuid` to keep it");
        return Ok(uuid);
    }
    match Sidecar::draft(image, &uuid) {
        Ok(draft) => drafts.push(draft),
        Err(error) => tracing::warn!(
            %path,
            %error,
            "its identity ends with this process, since none can be written beside it: give a `state` or a `uuid`"
        ),
    }
    Ok(uuid)
}

/// Whether the image that the identity was made for still exists with it. Then this one is a copy,
/// and hosts would take both for one disk.
fn warn_of_copy(image: &Image, uuid: &Uuid, original: &Path) -> bool {
    let has_it = |other: (Uuid, PathBuf)| other.0 == *uuid;
    let is_copy = image.is_elsewhere(original) && Sidecar::read(original).ok().flatten().is_some_and(has_it);
    if is_copy {
        tracing::warn!(
            uuid = uuid_text(uuid),
            image = %image.path.display(),
            original = %original.display(),
            "this identity is there twice, and a host that sees both takes them for one disk: remove {} to give the copy its own",
            image.sidecar().display()
        );
    }
    is_copy
}
