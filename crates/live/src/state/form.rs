//! The form of the state: JSON, all fields by name.

use super::{Content, Known, NamespaceName};
use crate::identity::{Uuid, new_uuid};
use nvme::HostId;
use nvme::reservation::ReservationKind;
use nvme::target::{HeldKind, REGISTRANTS_MAX, RegisteredHost, Reservations};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version that is written. Version 1 kept an identity by the name of a namespace, independent
/// of its data: only its reservations are read.
const VERSION: u32 = 2;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateForm {
    version: u32,
    /// The target's own identity: 32 hexadecimal digits, as all of them.
    #[serde(default)]
    instance: Option<String>,
    #[serde(default)]
    files: Vec<FileForm>,
    namespaces: Vec<NamespaceForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    path: PathBuf,
    uuid: String,
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceForm {
    subsystem: String,
    namespace: u32,
    #[serde(default, skip_serializing)]
    #[allow(dead_code, reason = "version 1 has it")]
    uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservations: Option<ReservationsForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservationsForm {
    generation: u32,
    /// The code of the kind (Base 2.0, Figure 468).
    kind: u8,
    registrants: Vec<HostForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostForm {
    /// 32 hexadecimal digits.
    host: String,
    key: u64,
    is_holder: bool,
}

impl StateForm {
    /// The text of the state.
    pub(super) fn text(content: &Content) -> String {
        let namespaces = content.reservations.iter().map(|(name, kept)| NamespaceForm {
            subsystem: name.subsystem.clone(),
            namespace: name.namespace,
            uuid: None,
            reservations: Some(written(kept)),
        });
        let file = |known: &Known| FileForm {
            path: known.path.clone(),
            uuid: hexadecimal(&known.uuid),
            inode: known.inode,
            created: known.created,
        };
        let form = StateForm {
            version: VERSION,
            instance: Some(hexadecimal(&content.instance)),
            files: content.files.iter().map(file).collect(),
            namespaces: namespaces.collect(),
        };
        serde_json::to_string_pretty(&form).expect("texts and numbers are JSON") + "\n"
    }

    /// Parses a text, or returns why it is invalid.
    pub(super) fn parse(text: &str) -> Result<Content, String> {
        let form: StateForm = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !(1..=VERSION).contains(&form.version) {
            return Err(format!("it has version {}, and this program reads {VERSION}", form.version));
        }
        let instance = match form.instance {
            Some(text) => bytes(&text)?,
            None => new_uuid().map_err(|error| error.to_string())?,
        };
        let file = |form: FileForm| -> Result<Known, String> {
            Ok(Known { uuid: bytes(&form.uuid)?, path: form.path, inode: form.inode, created: form.created })
        };
        let files = form.files.into_iter().map(file).collect::<Result<_, _>>()?;
        let mut reservations = BTreeMap::new();
        for NamespaceForm { subsystem, namespace, reservations: kept, .. } in form.namespaces {
            if let Some(kept) = kept {
                reservations.insert(NamespaceName { subsystem, namespace }, meant(kept)?);
            }
        }
        Ok(Content { instance, files, reservations })
    }
}

fn written(reservations: &Reservations) -> ReservationsForm {
    let host = |known: &RegisteredHost| HostForm {
        host: hexadecimal(&known.host.0),
        key: known.key,
        is_holder: known.is_holder,
    };
    ReservationsForm {
        generation: reservations.generation,
        kind: reservations.kind.0.code(),
        registrants: reservations.registrants.iter().map(host).collect(),
    }
}

fn meant(form: ReservationsForm) -> Result<Reservations, String> {
    if form.registrants.len() > REGISTRANTS_MAX {
        return Err(format!("{} registrants, and {REGISTRANTS_MAX} are allowed", form.registrants.len()));
    }
    let kind = ReservationKind::of_code(form.kind);
    let host = |known: HostForm| {
        Ok(RegisteredHost { host: HostId(bytes(&known.host)?), key: known.key, is_holder: known.is_holder })
    };
    Ok(Reservations {
        generation: form.generation,
        kind: HeldKind(kind.ok_or_else(|| format!("{} is no kind of reservation", form.kind))?),
        persists: true,
        registrants: form.registrants.into_iter().map(host).collect::<Result<_, String>>()?,
    })
}

fn hexadecimal(bytes: &Uuid) -> String {
    format!("{:032x}", u128::from_be_bytes(*bytes))
}

fn bytes(text: &str) -> Result<Uuid, String> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    number.map(u128::to_be_bytes).ok_or_else(|| format!("`{text}` is not 32 hexadecimal digits"))
}
