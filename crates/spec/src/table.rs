//! Declares a table of a file: each key once, with all that is to be said of it.
//!
//! ```text
//! table! {
//!     /// What the table is about.
//!     VssdFile {
//!         /// What the key means, and where its default is from.
//!         capacity: Quantity<Bytes> ["1MiB" to "1PiB"] where [Volumes] = Bytes::kib(64 << 20),
//!     }
//! }
//! ```
//!
//! The type is followed by the bounds, the scenes where the table goes with more, and the default,
//! each if there is one. All else follows: the struct that serde reads and writes, the JSON Schema
//! that files are checked against with its messages about ranges and scenes, the defaults, and the
//! pages of docs/reference.
//!
//! * `NameFile { .. }`: a key with a default has a method that returns what is given or the default.
//! * `NameFile => Config { .. }`: every key is a field of `Config`; `resolve` makes it of a table and
//!   `of` the table of it. A default that depends on keys before it, or on what `resolve` is given
//!   (`with context: Type`), stands behind `=>` and is not in the schema; a key without a default is
//!   an `Option`. Keys `beside` it are no such fields.
//! * `NameFile => Config on ground of Design { .. }`: the same with defaults that depend on a rack.
//! * `NameFile => Config { part: PartConfig { key as field: .. } }`: keys of several structs.

use crate::scene::SceneName;
use serde_json::{Map, Value};

/// Parses the declaration; see the module.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? $(where [ $($scene:ident),+ ])?
            $(= $default:expr)?,
    )* }) => {
        $crate::table::written! { $(#[$meta])* $name { $(
            $(#[$key_meta])* $key : $type, ($($($bounds)+)?), ($($($scene),+)?),
            ($(<$type as $crate::quantity::Plain>::written($default))?);
        )* } }
        impl $name { $( $(
            /// What is given, else the default.
            pub(crate) fn $key(&self) -> <$type as $crate::quantity::Plain>::Value {
                self.$key.map_or($default, $crate::quantity::Plain::plain)
            }
        )? )* }
    };
    ($(#[$meta:meta])* $name:ident => $config:ident $(with $context:ident : $of:ty)? { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? $(= $default:expr)? $(=> $usual:expr)?,
    )* } $(beside { $(
        $(#[$beside_meta:meta])* $beside:ident : $beside_type:ty $([ $($beside_bounds:tt)+ ])?,
    )* })?) => {
        $crate::table::written! { $(#[$meta])* $name {
            $(
                $(#[$key_meta])* $key : $type, ($($($bounds)+)?), (),
                ($(<$type as $crate::quantity::Plain>::written($default))?);
            )*
            $($( $(#[$beside_meta])* $beside : $beside_type, ($($($beside_bounds)+)?), (), (); )*)?
        } }
        impl $name {
            /// What is given, and defaults for the rest.
            pub(crate) fn resolve(&self $(, $context: $of)?) -> $config {
                $( let $key = $crate::table::given!(self.$key; $(= $default)? $(=> $usual)?); )*
                $config { $( $key, )* }
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                $name {
                    $( $key: $crate::table::told!(config.$key; $(= $default)? $(=> $usual)?), )*
                    $($( $beside: None, )*)?
                }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident => $config:ident on $ground:ident of $design:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? = $default:expr,
    )* }) => {
        $crate::table::written! { $(#[$meta])* $name { $(
            $(#[$key_meta])* $key : $type, ($($($bounds)+)?), (),
            (<$type as $crate::quantity::Plain>::written(
                $name::defaults(&$crate::ground::Ground::shown($crate::design_file::DesignName::$design)).$key
            ));
        )* } }
        impl $name {
            /// Every default on this ground. The schema shows those on the shown ground.
            pub(crate) fn defaults($ground: &$crate::ground::Ground) -> $config {
                $config { $( $key: $default, )* }
            }
            /// What is given, and defaults for the rest.
            pub(crate) fn resolve(&self, ground: &$crate::ground::Ground) -> $config {
                let defaults = Self::defaults(ground);
                $config { $( $key: self.$key.map_or(defaults.$key, $crate::quantity::Plain::plain), )* }
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                $name { $( $key: Some($crate::quantity::Plain::written(config.$key)), )* }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident => $config:ident { $(
        $part:ident : $part_config:ident { $(
            $(#[$key_meta:meta])* $key:ident as $field:ident : $type:ty $([ $($bounds:tt)+ ])? = $default:expr,
        )* }
    )* }) => {
        $crate::table::written! { $(#[$meta])* $name { $($(
            $(#[$key_meta])* $key : $type, ($($($bounds)+)?), (),
            (<$type as $crate::quantity::Plain>::written($default));
        )*)* } }
        impl $name {
            /// What is given, and defaults for the rest.
            pub(crate) fn resolve(&self) -> $config {
                $config { $( $part: $part_config { $(
                    $field: self.$key.map_or($default, $crate::quantity::Plain::plain),
                )* }, )* }
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                $name { $($( $key: Some($crate::quantity::Plain::written(config.$part.$field)), )*)* }
            }
        }
    };
}
pub(crate) use table;

/// What is given for a key, else its default; of a key without one, what is given if anything.
macro_rules! given {
    ($given:expr; = $default:expr) => {
        $given.map_or($default, $crate::quantity::Plain::plain)
    };
    ($given:expr; => $usual:expr) => {
        $given.map_or_else(|| $usual, $crate::quantity::Plain::plain)
    };
    ($given:expr;) => {
        $given.map($crate::quantity::Plain::plain)
    };
}
pub(crate) use given;

/// The way back from [`given`].
macro_rules! told {
    ($value:expr;) => {
        $value.map($crate::quantity::Plain::written)
    };
    ($value:expr; $($default:tt)+) => {
        Some($crate::quantity::Plain::written($value))
    };
}
pub(crate) use told;

/// The struct of a table, of which every key may be left out: of each key its type, its bounds, its
/// scenes and its default.
macro_rules! written {
    ($(#[$meta:meta])* $name:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty, ($($bounds:tt)*), ($($scene:ident),*), ($($default:expr)?);
    )* }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $(#[$meta])*
        pub struct $name { $(
            $(#[$key_meta])*
            #[schemars(extend(
                "bounds" = $crate::table::bounds!($($bounds)*),
                "goesWith" = $crate::table::scenes(&[$($crate::scene::SceneName::$scene),*])
            ))]
            $(#[schemars(extend("default" = $default))])?
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>,
        )* }
    };
}
pub(crate) use written;

/// What a key's bounds are in its schema, before [`settle`]: numbers, or texts of quantities.
macro_rules! bounds {
    () => { serde_json::Value::Null };
    (length $least:tt to $most:tt) => { serde_json::json!({ "minItems": $least, "maxItems": $most }) };
    (length from $least:tt) => { serde_json::json!({ "minItems": $least }) };
    (length to $most:tt) => { serde_json::json!({ "maxItems": $most }) };
    (above $least:tt to $most:tt) => { serde_json::json!({ "exclusiveMinimum": $least, "maximum": $most }) };
    (above $least:tt) => { serde_json::json!({ "exclusiveMinimum": $least }) };
    (from $least:tt) => { serde_json::json!({ "minimum": $least }) };
    (to $most:tt) => { serde_json::json!({ "maximum": $most }) };
    ($least:tt to $most:tt) => { serde_json::json!({ "minimum": $least, "maximum": $most }) };
}
pub(crate) use bounds;

/// The scenes of a key as its schema lists them; null for those of its table.
pub(crate) fn scenes(scenes: &[SceneName]) -> Value {
    match scenes {
        [] => Value::Null,
        some => some.iter().map(|scene| Value::from(scene.word())).collect(),
    }
}

/// Puts bounds where a schema has them: beside a number, a list or a text, and for quantities as the
/// `formatMinimum` and its kin of JSON Schema's vocabulary for ordered formats.
pub(crate) fn settle(object: &mut Map<String, Value>) {
    if object.get("goesWith").is_some_and(Value::is_null) {
        object.remove("goesWith");
    }
    let Some(Value::Object(bounds)) = object.remove("bounds") else { return };
    let alternatives = object.get_mut("anyOf").and_then(Value::as_array_mut);
    let of_quantity = alternatives.and_then(|all| all.iter_mut().find(|one| one.get("format").is_some()));
    match of_quantity.and_then(Value::as_object_mut) {
        Some(quantity) => put(&bounds, quantity),
        None => put(&bounds, object),
    }
}

fn put(bounds: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let is_text = schema.get("type").is_some_and(|kind| kind == "string" || kind[0] == "string");
    for (name, bound) in bounds {
        let name = match name.as_str() {
            "minItems" if is_text => "minLength",
            "maxItems" if is_text => "maxLength",
            "minimum" if bound.is_string() => "formatMinimum",
            "maximum" if bound.is_string() => "formatMaximum",
            "exclusiveMinimum" if bound.is_string() => "formatExclusiveMinimum",
            plain => plain,
        };
        schema.insert(name.into(), bound.clone());
    }
}
