//! The registry of metrics: measurements of designs and workloads beyond the statistics of
//! requests.
//!
//! A metric is declared once, in one of the tables below: its name, its unit, its meaning, how the
//! values of several seeds are merged, and which part of the run it covers. A [`Meter`] accepts
//! readings under declared names only. `rackweave describe`, docs/reference/metrics.md and the
//! checks of paths in claims and figures use the same tables.
//!
//! [`find`] returns the declaration of a name.

#![expect(non_upper_case_globals, reason = "a metric is spelled in code as it is in a summary")]

mod blox;
mod common;
mod edm;
mod meter;
mod page;
mod san;
mod scalio;
mod sdirect;
mod wear;

pub use blox::*;
pub use common::*;
pub use edm::*;
pub use meter::Meter;
pub use page::page;
pub use san::*;
pub use scalio::*;
pub use sdirect::*;
pub use wear::*;

use std::fmt::Display;
use std::marker::PhantomData;

/// The form of a metric: how it is read, which determines its window and how seeds are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The growth of a running total in the window. Sum over seeds.
    Count,
    /// The quotient of the growths of two running totals. Mean over seeds.
    Ratio,
    /// The largest value in the window. Maximum over seeds.
    Highest,
    /// The smallest value in the window. Minimum over seeds.
    Lowest,
    /// A number computed from the window. Mean over seeds.
    Sample,
    /// A percentile of values in the window. The percentile of the values of all seeds.
    Percentile,
    /// The state at the end of the run. Mean over seeds.
    State,
    /// A value that follows from the plan. Mean over seeds, which agree.
    Fixed,
}

/// How the values of several seeds are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The sum of the values.
    Sum,
    /// The arithmetic mean of the runs that have the metric.
    Mean,
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// A percentile of the values of all seeds together, which a [`Pool`](crate::Pool) has.
    Pooled,
}

/// The part of a run that a metric covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// From the end of the warm-up to the end of the run.
    Measured,
    /// The whole run, for this reason.
    Whole(&'static str),
    /// The end of the run.
    End,
    /// None: the plan determines the value.
    Plan,
}

/// One declared metric, or a family of metrics whose names have placeholders such as `{stream}`.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The name in summaries, claims and figures.
    pub name: &'static str,
    /// The form of its readings.
    pub form: Form,
    /// The unit, or `none`.
    pub unit: &'static str,
    /// The part of a run that it covers.
    pub window: Window,
    doc: &'static [&'static str],
}

/// A group of related metrics.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The runs that have them.
    pub intro: &'static str,
    /// The metrics, in the order of the documentation.
    pub metrics: &'static [&'static Definition],
}

/// All metrics, by design.
pub const SECTIONS: [Section; 7] =
    [common::SECTION, edm::SECTION, blox::SECTION, wear::SECTION, san::SECTION, sdirect::SECTION, scalio::SECTION];

impl Form {
    const fn window(self) -> Window {
        match self {
            Form::State => Window::End,
            Form::Fixed => Window::Plan,
            _ => Window::Measured,
        }
    }
}

impl Merge {
    /// Returns the name in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Merge::Sum => "sum",
            Merge::Mean => "mean",
            Merge::Max => "max",
            Merge::Min => "min",
            Merge::Pooled => "pooled",
        }
    }

    /// Merges the values of at least one seed; `None` if they do not suffice.
    pub(crate) fn apply(self, values: &[f64]) -> Option<f64> {
        let sum = || values.iter().sum::<f64>();
        Some(match self {
            Merge::Sum => sum(),
            Merge::Mean => sum() / values.len() as f64,
            Merge::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Merge::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Merge::Pooled => return None,
        })
    }
}

impl Window {
    /// Returns the text for documentation.
    pub fn text(self) -> String {
        match self {
            Window::Measured => "after warm-up".into(),
            Window::Whole(reason) => format!("whole run: {reason}"),
            Window::End => "end of run".into(),
            Window::Plan => "plan".into(),
        }
    }
}

impl Definition {
    /// Returns the meaning, in a sentence.
    pub fn doc(&self) -> String {
        self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }

    /// Returns how seeds are merged.
    pub const fn merge(&self) -> Merge {
        match self.form {
            Form::Count => Merge::Sum,
            Form::Highest => Merge::Max,
            Form::Lowest => Merge::Min,
            Form::Percentile => Merge::Pooled,
            Form::Ratio | Form::Sample | Form::State | Form::Fixed => Merge::Mean,
        }
    }

    /// Returns whether this is the declaration of `name`.
    pub fn covers(&self, name: &str) -> bool {
        covers(self.name, name)
    }
}

/// Returns the declaration of `name`, if there is one.
pub fn find(name: &str) -> Option<&'static Definition> {
    all().find(|definition| definition.covers(name))
}

/// Returns every declaration, in the order of [`SECTIONS`].
pub fn all() -> impl Iterator<Item = &'static Definition> {
    SECTIONS.into_iter().flat_map(|section| section.metrics.iter().copied())
}

/// The allowed values of a placeholder.
enum Fill {
    Digits,
    /// Letters, digits, `-` and `_`.
    Word,
    OneOf(&'static [&'static str]),
}

/// The placeholders of families.
const PLACES: [(&str, Fill); 7] = [
    ("server", Fill::Digits),
    ("ssd", Fill::Digits),
    ("channel", Fill::Digits),
    ("bytes", Fill::Digits),
    ("stream", Fill::Word),
    ("work", Fill::OneOf(&common::WORKS)),
    ("kind", Fill::OneOf(&["read", "update", "read_modify_write", "request"])),
];

impl Fill {
    fn takes(&self, text: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match self {
            Fill::Digits => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
            Fill::Word => !text.is_empty() && text.bytes().all(is_word),
            Fill::OneOf(words) => words.contains(&text),
        }
    }
}

/// Returns whether `name` is `pattern` with its placeholders filled.
fn covers(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('{') else { return pattern == name };
    let (place, after) = rest.split_once('}').expect("a place ends");
    let Some(name) = name.strip_prefix(before) else { return false };
    let fill = PLACES.iter().find(|(known, _)| *known == place).map(|(_, fill)| fill);
    let fill = fill.expect("every place is declared");
    let ends = (0..=name.len()).filter(|end| name.is_char_boundary(*end));
    ends.into_iter().any(|end| fill.takes(&name[..end]) && covers(after, &name[end..]))
}

/// A declared metric with readings of the form `F`.
#[derive(Clone, Copy, Debug)]
pub struct Metric<F>(&'static Definition, PhantomData<F>);

/// A declared family of metrics with readings of the form `F`.
#[derive(Clone, Copy, Debug)]
pub struct Family<F>(&'static Definition, PhantomData<F>);

/// The full name of a metric.
#[derive(Clone, Debug)]
pub struct Key<F> {
    definition: &'static Definition,
    name: String,
    form: PhantomData<F>,
}

impl<F> Metric<F> {
    const fn new(definition: &'static Definition) -> Metric<F> {
        Metric(definition, PhantomData)
    }

    /// Returns the name in summaries.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }
}

impl<F> Family<F> {
    const fn new(definition: &'static Definition) -> Family<F> {
        Family(definition, PhantomData)
    }

    /// Returns the metric with these values of the placeholders, in the order of the name.
    ///
    /// # Panics
    /// If the declaration does not cover the resulting name.
    pub fn at(self, places: &[&dyn Display]) -> Key<F> {
        let mut name = String::new();
        let mut places = places.iter();
        let mut rest = self.0.name;
        while let Some((before, behind)) = rest.split_once('{') {
            let place = places.next().map_or_else(String::new, ToString::to_string);
            name += before;
            name += &place;
            rest = behind.split_once('}').map_or("", |(_, after)| after);
        }
        name += rest;
        assert!(self.0.covers(&name), "{name} is none of the metrics {}", self.0.name);
        Key { definition: self.0, name, form: PhantomData }
    }
}

impl<F> From<Metric<F>> for Key<F> {
    fn from(Metric(definition, form): Metric<F>) -> Key<F> {
        Key { definition, name: definition.name.to_owned(), form }
    }
}

/// Forms as types, so that a metric cannot be read in another form than its own.
macro_rules! forms {
    ($($form:ident)+) => {$(
        #[doc = concat!("See [`Form::", stringify!($form), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub struct $form;
    )+};
}
forms! { Count Ratio Highest Lowest Sample Percentile State Fixed }

/// Forms whose value the caller computes.
pub trait Computed {}
impl Computed for Highest {}
impl Computed for Lowest {}
impl Computed for Sample {}
impl Computed for State {}
impl Computed for Fixed {}

/// Declares the metrics of a section. A line has a name, the pattern of the names if it is a
/// family, the form, the unit, and the window if it differs from the form's. The doc comment is the
/// meaning.
macro_rules! metrics {
    ($title:literal $intro:literal $(
        $(#[doc = $doc:literal])+
        $name:ident $(= $pattern:literal)?: $form:ident [$unit:literal] $($window:ident $reason:literal)?;
    )+) => {
        /// The metrics of this section.
        pub(super) const SECTION: super::Section = super::Section {
            title: $title,
            intro: $intro,
            metrics: &[$(super::definition!(
                $name $(= $pattern)?: $form [$unit] $($window $reason)? ($($doc),+)
            )),+],
        };
        $(
            $(#[doc = $doc])+
            pub const $name: super::metric_type!($form $($pattern)?) = <super::metric_type!($form $($pattern)?)>::new(
                super::definition!($name $(= $pattern)?: $form [$unit] $($window $reason)? ($($doc),+))
            );
        )+
    };
}

/// Makes the declaration of one metric.
macro_rules! definition {
    ($name:ident = $pattern:literal: $form:ident [$unit:literal] $($window:ident $reason:literal)? ($($doc:literal),+)) => {
        super::definition!(@ $pattern, $form [$unit] $($window $reason)? ($($doc),+))
    };
    ($name:ident: $form:ident [$unit:literal] $($window:ident $reason:literal)? ($($doc:literal),+)) => {
        super::definition!(@ stringify!($name), $form [$unit] $($window $reason)? ($($doc),+))
    };
    (@ $name:expr, $form:ident [$unit:literal] ($($doc:literal),+)) => {
        super::definition!(@@ $name, $form [$unit] super::Form::$form.window(), ($($doc),+))
    };
    (@ $name:expr, $form:ident [$unit:literal] whole $reason:literal ($($doc:literal),+)) => {
        super::definition!(@@ $name, $form [$unit] super::Window::Whole($reason), ($($doc),+))
    };
    (@@ $name:expr, $form:ident [$unit:literal] $window:expr, ($($doc:literal),+)) => {
        &super::Definition {
            name: $name,
            form: super::Form::$form,
            unit: $unit,
            window: $window,
            doc: &[$($doc),+],
        }
    };
}

/// Selects the type of a metric, or of a family if there is a pattern.
macro_rules! metric_type {
    ($form:ident) => { super::Metric<super::$form> };
    ($form:ident $pattern:literal) => { super::Family<super::$form> };
}
use {definition, metric_type, metrics};

#[cfg(test)]
mod tests;
