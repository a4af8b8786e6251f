//! Declares a table of a file: each key once, with all of its properties.
//!
//! ```text
//! table! {
//!     /// What the table is about.
//!     VssdFile => Vssd with dies_per_channel: u32 {
//!         /// What the key means, and where its default is from.
//!         capacity: Quantity<Bytes> ["1MiB" to "1PiB"] where [Volumes] = Bytes::kib(64 << 20),
//!         /// A default that depends on keys before it.
//!         write_cache: Quantity<Bytes> => Bytes::new(capacity.count() / 1_024),
//!         /// A key that means something only with a value of another one.
//!         group: u32 [2 to 128] where [isolation = "software"] = 2,
//!     }
//! }
//! ```
//!
//! The type is followed by the bounds, by when the key means something (`where`, see [`goes`]), and
//! by the default, each if there is one. All else follows: the struct that serde reads and writes,
//! the JSON Schema that files are checked against with its messages about ranges, scenes and other
//! keys, the defaults, what a printed plan leaves out, and the pages of docs/reference.
//!
//! * `NameFile { .. }`: a key with a default has a method that returns what is given or the
//!   default.
//! * `NameFile => Config { .. }`: besides, `resolve` makes a `Config` of a table, and `of` the
//!   table of it. Every key is a field of `Config`. A default behind `=>` may depend on keys before
//!   it and on what `resolve` is given (`with context: Type`), and is not in the schema. A key
//!   without a default is an `Option`. Keys `beside` it are no such fields.
//! * `.. as { part: Part { key }, field: other_key }`: where `Config` has its keys, when they are
//!   not its fields. It is an expression in `resolve` and a pattern in `of`. `.. as whole` names a
//!   value that `from` makes and `to` takes apart, such as an enum.
//! * `.. from { let part = ..; } to { let key = ..; }`: what a shape cannot say, such as a variant
//!   that a key chooses: the statements before it in `resolve`, and behind it in `of`.
//! * `NameFile => Config on ground of Design { .. }`: the same with defaults that depend on a rack.

use crate::scene::SceneName;
use serde_json::{Map, Value, json};

/// Parses the declaration; see the module.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? $(where [ $($goes:tt)+ ])?
            $(= $default:expr)?,
    )* }) => {
        $crate::table::written! { $(#[$meta])* $name { $(
            $(#[$key_meta])* $key : $type, ($($($bounds)+)?), ($($($goes)+)?),
            ($(<$type as $crate::quantity::Plain>::written($default))?);
        )* } }
        $crate::table::methods! { $name, $( $($key : $type = $default;)? )* }
    };
    ($(#[$meta:meta])* $name:ident => $config:ident $(with $context:ident : $of:ty)? { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? $(where [ $($goes:tt)+ ])?
            $(= $default:expr)? $(=> $usual:expr)?,
    )* } $(as $shape:tt)? $(from { $($from:tt)+ } to { $($to:tt)* })? $(beside { $(
        $(#[$beside_meta:meta])* $beside:ident : $beside_type:ty $([ $($beside_bounds:tt)+ ])?
            $(where [ $($beside_goes:tt)+ ])?,
    )* })?) => {
        $crate::table::written! { $(#[$meta])* $name {
            $(
                $(#[$key_meta])* $key : $type, ($($($bounds)+)?), ($($($goes)+)?),
                ($(<$type as $crate::quantity::Plain>::written($default))?);
            )*
            $($(
                $(#[$beside_meta])* $beside : $beside_type, ($($($beside_bounds)+)?), ($($($beside_goes)+)?), ();
            )*)?
        } }
        $crate::table::two_ways! {
            $name, $config, ($($context : $of)?), ($($shape)?), ($($($from)+)?), ($($($to)*)?),
            ($( $key, ($($default)? $($usual)?); )*), ($($( $beside, )*)?)
        }
        $crate::table::methods! { $name, $( $($key : $type = $default;)? )* }
        $crate::table::as_value! { $name, $config, ($($of)?) }
    };
    ($(#[$meta:meta])* $name:ident => $config:ident on $ground:ident of $design:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty $([ $($bounds:tt)+ ])? $(where [ $($goes:tt)+ ])?
            = $default:expr,
    )* } $(as $shape:tt)? $(from { $($from:tt)+ } to { $($to:tt)* })?) => {
        $crate::table::written! { $(#[$meta])* #[schemars(extend("defaultsVary" = true))] $name { $(
            $(#[$key_meta])* $key : $type, ($($($bounds)+)?), ($($($goes)+)?), (
                $crate::table::shown!($type, $ground of $design, $default)
            );
        )* } }
        $crate::table::two_ways! {
            $name, $config, ($ground : &$crate::ground::Ground), ($($shape)?), ($($($from)+)?), ($($($to)*)?),
            ($( $key, ($default); )*), ()
        }
    };
}
pub(crate) use table;

/// A key with a default as a method.
macro_rules! methods {
    ($name:ident, $( $key:ident : $type:ty = $default:expr; )*) => {
        #[allow(dead_code, clippy::clone_on_copy, reason = "most keys are asked for all at once")]
        impl $name { $(
            /// The given value, else the default.
            pub(crate) fn $key(&self) -> <$type as $crate::quantity::Plain>::Value {
                $crate::table::given!(self.$key; $default)
            }
        )* }
    };
}
pub(crate) use methods;

/// A default as it is written, on the rack of the schema's defaults.
macro_rules! shown {
    ($type:ty, $ground:ident of $design:ident, $default:expr) => {{
        let $ground = &$crate::ground::Ground::shown($crate::design_file::DesignName::$design);
        <$type as $crate::quantity::Plain>::written($default)
    }};
}
pub(crate) use shown;

/// Converts a table to the struct of its values, and back.
macro_rules! two_ways {
    (
        $name:ident, $config:ident, ($($context:ident : $of:ty)?), ($($shape:tt)*), ($($from:tt)*), ($($to:tt)*),
        ($( $key:ident, ($($default:expr)?); )*), ($( $beside:ident, )*)
    ) => {
        #[allow(unused_variables, clippy::clone_on_copy, reason = "not every table needs all of it")]
        impl $name {
            /// The given values, and defaults for the rest.
            pub(crate) fn resolve(&self $(, $context: $of)?) -> $config {
                $( let $key = $crate::table::given!(self.$key; $($default)?); )*
                $($from)*
                $crate::table::shape!($config; $($key)*; $($shape)*)
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                let $crate::table::shape!($config; $($key)*; $($shape)*) = config.clone();
                $($to)*
                $name {
                    $( $key: $crate::table::told!($key; $($default)?), )*
                    $( $beside: None, )*
                }
            }
        }
    };
}
pub(crate) use two_ways;

/// A struct with its keys as fields, with the keys in other places, or whole as `from` makes it: an
/// expression and a pattern.
macro_rules! shape {
    ($config:ident; $($key:ident)*;) => { $config { $($key),* } };
    ($config:ident; $($key:ident)*; { $($shape:tt)+ }) => { $config { $($shape)+ } };
    ($config:ident; $($key:ident)*; $whole:ident) => { $whole };
}
pub(crate) use shape;

/// A table that needs nothing else is a value of other tables' keys.
macro_rules! as_value {
    ($name:ident, $config:ident, ()) => {
        impl $crate::quantity::Plain for $name {
            type Value = $config;
            fn plain(self) -> $config {
                self.resolve()
            }
            fn written(value: $config) -> $name {
                $name::of(&value)
            }
        }
    };
    ($name:ident, $config:ident, ($of:ty)) => {};
}
pub(crate) use as_value;

/// The given value of a key, else its default; without a default, an `Option`.
macro_rules! given {
    ($given:expr; $default:expr) => {
        $given.clone().map_or_else(|| $default, $crate::quantity::Plain::plain)
    };
    ($given:expr;) => {
        $given.clone().map($crate::quantity::Plain::plain)
    };
}
pub(crate) use given;

/// The inverse of [`given`].
macro_rules! told {
    ($value:expr;) => {
        $value.map($crate::quantity::Plain::written)
    };
    ($value:expr; $default:expr) => {
        Some($crate::quantity::Plain::written($value))
    };
}
pub(crate) use told;

/// What a word of a table chooses, both ways: the variants of an enum that have the names of the
/// words, and keys as their fields.
///
/// ```text
/// variants! {
///     WorkloadFile.arrivals: ArrivalsName => Arrivals by arrivals_at(gap: f64), write_arrivals {
///         Poisson [mean_gap_ps: gap],
///         OnOff(on, off) [mean_gap_ps: gap],
///         Closed { depth, think },
///     } else Trace
/// }
/// ```
///
/// Keys in parentheses have no default: while one is missing there is no value. Those with a
/// default are in braces. Fields in brackets follow from the reader's arguments and are not
/// written. Words behind `else` are no variant.
macro_rules! variants {
    ($file:ident.$word:ident: $name:ident => $kind:ident
    by $read:ident $(( $($given:ident: $of:ty),+ ))?, $write:ident {
        $(
            $variant:ident $(( $($needed:ident),+ ))? $({ $($key:ident),+ })? $([ $($field:ident: $value:expr),+ ])?,
        )+
    } $(else $($other:ident)|+)?) => {
        impl $file {
            /// The value that `word` chooses; `None` while one of its keys is missing.
            pub(crate) fn $read(&self, word: $name $($(, $given: $of)+)?) -> Option<$kind> {
                Some(match word {
                    $( $name::$variant => $kind::$variant {
                        $($( $needed: $crate::table::given!(self.$needed;)?, )+)?
                        $($( $key: self.$key(), )+)?
                        $($( $field: $value, )+)?
                    }, )+
                    $( $($name::$other)|+ => return None, )?
                })
            }
            /// Writes the word and the keys of `value`.
            pub(crate) fn $write(&mut self, value: &$kind) {
                self.$word = Some(match value { $(
                    $kind::$variant { $($($needed,)+)? $($($key,)+)? $($($field: _,)+)? } => {
                        $($( self.$needed = $crate::table::told!(Some($needed.clone());); )+)?
                        $($( self.$key = $crate::table::told!(Some($key.clone());); )+)?
                        $name::$variant
                    }
                )+ });
            }
        }
    };
}
pub(crate) use variants;

/// Keys of a table that are a struct of their own, as in [`variants`].
macro_rules! part {
    ($file:ident => $config:ident by $read:ident $(( $($given:ident: $of:ty),+ ))?, $write:ident {
        $(( $($needed:ident),+ ))? { $($key:ident),+ } $([ $($field:ident: $value:expr),+ ])?
    }) => {
        impl $file {
            /// The struct; `None` while one of its keys is missing.
            pub(crate) fn $read(&self $($(, $given: $of)+)?) -> Option<$config> {
                Some($config {
                    $($( $needed: $crate::table::given!(self.$needed;)?, )+)?
                    $( $key: self.$key(), )+
                    $($( $field: $value, )+)?
                })
            }
            /// Writes its keys.
            pub(crate) fn $write(&mut self, value: &$config) {
                let $config { $($($needed,)+)? $($key,)+ $($($field: _,)+)? } = value.clone();
                $($( self.$needed = $crate::table::told!(Some($needed);); )+)?
                $( self.$key = $crate::table::told!(Some($key);); )+
            }
        }
    };
}
pub(crate) use part;

/// The struct of a table, of which every key may be left out: of each key its type, its bounds,
/// when it means something, and its default.
macro_rules! written {
    ($(#[$meta:meta])* $name:ident { $(
        $(#[$key_meta:meta])* $key:ident : $type:ty, ($($bounds:tt)*), ($($goes:tt)*), ($($default:expr)?);
    )* }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $(#[$meta])*
        pub struct $name { $(
            $(#[$key_meta])*
            #[schemars(extend(
                "bounds" = $crate::table::bounds!($($bounds)*),
                "goes" = $crate::table::goes!($crate::table::Goes::default(); $($goes)*).value()
            ))]
            $(#[schemars(extend("default" = $default))])?
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>,
        )* }
    };
}
pub(crate) use written;

/// Conditions of a key, separated by `;`:
///
/// * `San, Volumes`: with these scenes; with those of its table when it names none;
/// * `kind = "mesh" | "torus"`, `remote = true`: with these values of another key of its table, or
///   of another table (`flash.state = "used"`), given or by default; `kind != "custom"`: with
///   others;
/// * `given trace | job`, `without trace | job`: where one of other keys is given, or none is;
/// * `needed`: it must be given wherever it means something, or with these scenes (`needed San`). A
///   default behind `=>` then replaces it while other errors are found;
/// * `was old_name`: what it was called before.
macro_rules! goes {
    ($goes:expr;) => { $goes };
    ($goes:expr; needed $($scene:ident),* $(; $($rest:tt)*)?) => {
        $crate::table::goes!($goes.needed(&[$($crate::scene::SceneName::$scene),*]); $($($rest)*)?)
    };
    ($goes:expr; was $old:ident $(; $($rest:tt)*)?) => {
        $crate::table::goes!($goes.was(stringify!($old)); $($($rest)*)?)
    };
    ($goes:expr; given $($($key:ident).+)|+ $(; $($rest:tt)*)?) => {
        $crate::table::goes!($goes.given(&[$($crate::table::dotted!($($key).+)),+]); $($($rest)*)?)
    };
    ($goes:expr; without $($($key:ident).+)|+ $(; $($rest:tt)*)?) => {
        $crate::table::goes!($goes.without(&[$($crate::table::dotted!($($key).+)),+]); $($($rest)*)?)
    };
    ($goes:expr; $($key:ident).+ = $($is:literal)|+ $(; $($rest:tt)*)?) => {
        $crate::table::goes!(
            $goes.only($crate::table::dotted!($($key).+), "is", serde_json::json!([$($is),+])); $($($rest)*)?
        )
    };
    ($goes:expr; $($key:ident).+ != $($is:literal)|+ $(; $($rest:tt)*)?) => {
        $crate::table::goes!(
            $goes.only($crate::table::dotted!($($key).+), "isNot", serde_json::json!([$($is),+])); $($($rest)*)?
        )
    };
    ($goes:expr; $($scene:ident),+ $(; $($rest:tt)*)?) => {
        $crate::table::goes!($goes.with(&[$($crate::scene::SceneName::$scene),+]); $($($rest)*)?)
    };
}
pub(crate) use goes;

/// The path of a key as a text.
macro_rules! dotted {
    ($first:ident $(. $rest:ident)*) => {
        concat!(stringify!($first) $(, ".", stringify!($rest))*)
    };
}
pub(crate) use dotted;

/// Conditions of a key, as its schema has them.
#[derive(Default)]
pub(crate) struct Goes(Map<String, Value>);

impl Goes {
    pub(crate) fn with(self, scenes: &[SceneName]) -> Goes {
        self.and("goesWith", words(scenes))
    }
    pub(crate) fn only(mut self, key: &str, test: &str, value: Value) -> Goes {
        let conditions = self.0.entry("goesIf").or_insert_with(|| json!([])).as_array_mut();
        conditions.expect("conditions are a list").push(json!({ "key": key, test: value }));
        self
    }
    /// At least one of `keys` is given.
    pub(crate) fn given(self, keys: &[&str]) -> Goes {
        let (first, others) = keys.split_first().expect("`given` names a key");
        let mut goes = self.only(first, "isGiven", true.into());
        if !others.is_empty() {
            let last = goes.0["goesIf"].as_array_mut().and_then(|all| all.last_mut());
            last.expect("it was added")["orKeys"] = json!(others);
        }
        goes
    }
    /// None of `keys` is given.
    pub(crate) fn without(self, keys: &[&str]) -> Goes {
        keys.iter().fold(self, |goes, key| goes.only(key, "isGiven", false.into()))
    }
    pub(crate) fn needed(self, scenes: &[SceneName]) -> Goes {
        self.and("needed", if scenes.is_empty() { true.into() } else { words(scenes) })
    }
    pub(crate) fn was(self, old: &str) -> Goes {
        self.and("was", old.into())
    }
    fn and(mut self, name: &str, value: Value) -> Goes {
        self.0.insert(name.into(), value);
        self
    }
    pub(crate) fn value(self) -> Value {
        Value::Object(self.0)
    }
}

fn words(scenes: &[SceneName]) -> Value {
    scenes.iter().map(|scene| Value::from(scene.word())).collect()
}

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

/// Moves the properties of a key from `table!` to their places in a schema. Bounds are beside a
/// number, a list or a text, and for quantities the `formatMinimum` and its kin of JSON Schema's
/// vocabulary for ordered formats.
pub(crate) fn settle(object: &mut Map<String, Value>) {
    if let Some(Value::Object(goes)) = object.remove("goes") {
        object.extend(goes);
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
