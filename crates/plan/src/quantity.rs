//! Values as they are written in a file: quantities with a unit, words for "no limit", and their
//! JSON Schema.

use base::{Bytes, Clock, Length, NodeId, Rate, Span, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A quantity that is written with its unit, `"10ns"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity<T>(pub T);

/// What a quantity's schema says.
pub trait Written {
    /// The schema's name and `format`.
    const FORMAT: &'static str;
    /// One right way to write it.
    const EXAMPLE: &'static str;
    /// The units, as `base` lists them.
    const UNITS: &'static str;
}

macro_rules! written_as {
    ($type:ty, $format:literal, $example:literal) => {
        impl Written for $type {
            const FORMAT: &'static str = $format;
            const EXAMPLE: &'static str = $example;
            const UNITS: &'static str = <$type>::UNITS;
        }
    };
}
written_as!(Span, "time", "10ns");
written_as!(Time, "time", "10us");
written_as!(Bytes, "size", "64B");
written_as!(Rate, "rate", "100Gbps");
written_as!(Clock, "frequency", "390.625MHz");
written_as!(Length, "length", "2m");

impl<T: Written> JsonSchema for Quantity<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::FORMAT.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units = T::UNITS.replace(", ", "|");
        json_schema!({
            "type": "string",
            "format": T::FORMAT,
            "pattern": format!(r"^\s*[0-9_]*\.?[0-9_]*\s*({units})\s*$"),
            "examples": [T::EXAMPLE],
        })
    }
}

/// A value, or one word in its place.
macro_rules! value_or_word {
    ($(#[$doc:meta])* $name:ident: $word:literal is $(#[$open_doc:meta])* $open:ident, else $(#[$given_doc:meta])* $given:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum $name<T> {
            $(#[$open_doc])*
            $open,
            $(#[$given_doc])*
            $given(T),
        }

        impl<T: Serialize> Serialize for $name<T> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $name::$open => serializer.serialize_str($word),
                    $name::$given(value) => value.serialize(serializer),
                }
            }
        }

        impl<'de, T: Deserialize<'de>> Deserialize<'de> for $name<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                enum Word {
                    #[serde(rename = $word)]
                    Open,
                }
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum Either<T> {
                    Word(Word),
                    Value(T),
                }
                Ok(match Either::deserialize(deserializer)? {
                    Either::Word(Word::Open) => $name::$open,
                    Either::Value(value) => $name::$given(value),
                })
            }
        }

        impl<T: JsonSchema> JsonSchema for $name<T> {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                format!("{}Of{}", stringify!($name), T::schema_name()).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                json_schema!({ "anyOf": [T::json_schema(generator), { "type": "string", "enum": [$word] }] })
            }
        }
    };
}

value_or_word! {
    /// A bound that may be left open with the word `"unlimited"`.
    Limit: "unlimited" is
    /// No bound.
    Unlimited, else
    /// This much at most.
    To
}
value_or_word! {
    /// A value that may be left to the program with the word `"auto"`.
    Choice: "auto" is
    /// The program finds it.
    Auto, else
    /// This much.
    Given
}

/// From what is written to what is meant, and back.
pub(crate) trait Plain: Clone {
    /// What is meant.
    type Value: Clone;
    fn plain(self) -> Self::Value;
    fn written(value: Self::Value) -> Self;
}

impl<T: Clone> Plain for Quantity<T> {
    type Value = T;
    fn plain(self) -> T {
        self.0
    }
    fn written(value: T) -> Self {
        Quantity(value)
    }
}

impl<T: Plain> Plain for Limit<T> {
    type Value = Option<T::Value>;
    fn plain(self) -> Option<T::Value> {
        match self {
            Limit::Unlimited => None,
            Limit::To(bound) => Some(bound.plain()),
        }
    }
    fn written(value: Option<T::Value>) -> Self {
        value.map_or(Limit::Unlimited, |bound| Limit::To(T::written(bound)))
    }
}

impl<T: Plain> Plain for Choice<T> {
    type Value = Choice<T::Value>;
    fn plain(self) -> Choice<T::Value> {
        match self {
            Choice::Auto => Choice::Auto,
            Choice::Given(value) => Choice::Given(value.plain()),
        }
    }
    fn written(value: Choice<T::Value>) -> Self {
        match value {
            Choice::Auto => Choice::Auto,
            Choice::Given(value) => Choice::Given(T::written(value)),
        }
    }
}

impl<T: Plain> Plain for Vec<T> {
    type Value = Vec<T::Value>;
    fn plain(self) -> Vec<T::Value> {
        self.into_iter().map(T::plain).collect()
    }
    fn written(value: Vec<T::Value>) -> Self {
        value.into_iter().map(T::written).collect()
    }
}

impl<T: Plain, U: Plain> Plain for (T, U) {
    type Value = (T::Value, U::Value);
    fn plain(self) -> (T::Value, U::Value) {
        (self.0.plain(), self.1.plain())
    }
    fn written((one, other): (T::Value, U::Value)) -> Self {
        (T::written(one), U::written(other))
    }
}

/// Types whose values are other types' under another name.
macro_rules! written_for {
    ($($(#[$doc:meta])* $name:ident($written:ty) is $value:ty: $plain:expr, $back:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $written);

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                <$written>::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$written>::json_schema(generator)
            }
        }

        impl Plain for $name {
            type Value = $value;
            fn plain(self) -> $value {
                $plain(self.0)
            }
            fn written(value: $value) -> $name {
                $name($back(value))
            }
        }
    )* };
}

written_for! {
    /// The number of a node.
    NodeNumber(u32) is NodeId: NodeId, |node: NodeId| node.0;
    /// A size of less than 4 GiB that is counted in bytes.
    ByteCount(Quantity<Bytes>) is u32:
        |size: Quantity<Bytes>| u32::try_from(size.0.count()).unwrap_or(u32::MAX),
        |count| Quantity(Bytes::new(u64::from(count)));
    /// A share that is counted in 1,024ths.
    Of1024(f64) is u16:
        // One that is out of range was reported, and becomes the nearest that is not.
        |share: f64| (share.clamp(0.0, 1.0) * 1_024.0).round() as u16,
        |count| f64::from(count) / 1_024.0;
}

/// Types that are written as they are.
macro_rules! plain {
    ($($type:ty),*) => {
        $(impl $crate::quantity::Plain for $type {
            type Value = $type;
            fn plain(self) -> $type {
                self
            }
            fn written(value: $type) -> $type {
                value
            }
        })*
    };
}
plain!(f64, usize, u64, u32, u16, u8, bool, String);
pub(crate) use plain;
