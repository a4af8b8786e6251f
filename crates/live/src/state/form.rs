//! How state is written: JSON, all fields by name.

use super::{Kept, NamespaceName};
use nvme::HostId;
use nvme::reservation::ReservationKind;
use nvme::target::{HeldKind, REGISTRANTS_MAX, RegisteredHost, Reservations};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The only version so far.
const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateForm {
    version: u32,
    namespaces: Vec<NamespaceForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceForm {
    subsystem: String,
    namespace: u32,
    uuid: String,
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
    /// The text of everything.
    pub(super) fn text(namespaces: &BTreeMap<NamespaceName, Kept>) -> String {
        let namespaces = namespaces.iter().map(|(name, kept)| NamespaceForm {
            subsystem: name.subsystem.clone(),
            namespace: name.namespace,
            uuid: hexadecimal(&kept.uuid),
            reservations: kept.reservations.as_ref().map(written),
        });
        let form = StateForm { version: VERSION, namespaces: namespaces.collect() };
        serde_json::to_string_pretty(&form).expect("texts and numbers are JSON") + "\n"
    }

    /// What a text says, or why it says nothing.
    pub(super) fn parse(text: &str) -> Result<BTreeMap<NamespaceName, Kept>, String> {
        let form: StateForm = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if form.version != VERSION {
            return Err(format!("it has version {}, and this program reads {VERSION}", form.version));
        }
        let mut namespaces = BTreeMap::new();
        for NamespaceForm { subsystem, namespace, uuid, reservations } in form.namespaces {
            let uuid = bytes(&uuid)?;
            let reservations = reservations.map(meant).transpose()?;
            namespaces.insert(NamespaceName { subsystem, namespace }, Kept { uuid, reservations });
        }
        Ok(namespaces)
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

fn hexadecimal(bytes: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*bytes))
}

fn bytes(text: &str) -> Result<[u8; 16], String> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    number.map(u128::to_be_bytes).ok_or_else(|| format!("`{text}` is not 32 hexadecimal digits"))
}
