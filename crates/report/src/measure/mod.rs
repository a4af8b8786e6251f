//! A small declarative language that says how a number is computed from the points of a run.
//!
//! A *point* is one [`record::Summary`]. A measure is written as a TOML table (or as a bare number)
//! with exactly one of
//!
//! | key | its value |
//! | --- | --- |
//! | `metric = "latency_ns.read.mean"` | that number of each selected point |
//! | `sum = ["span_mean_ns.read.mac", "span_mean_ns.read.pcs"]` | the sum of those numbers of each selected point |
//! | `published = "artifact"` (or `"paper"`) | the selected numbers of `published.csv`, by `series`, `x`, `facet` |
//! | `each = "trace", of = M` | `M` once for each value that the label has among the selected points, in their order |
//! | `knee = "store.devices", of = M` | the smallest value of the label, a number, at which `M` is within 5 % of its largest |
//! | `of = M` | `M` itself, to apply the keys below once more |
//! | `list = [M, M]` | a list, for claims with several numbers |
//! | `all = [{ left = M, op = "<", right = M }]` | true when every comparison holds; an element-wise one for lists |
//!
//! and any of `where` (which points it sees: labels and `design`, each equal to a value, to one of
//! a list, or inside `{ at_least = 0.1, at_most = 0.9 }`), `reduce` (`only`, the default of
//! `metric`, `sum` and `published`; `max`, `min`, `mean`, `median`, `list`; `all` or `any` for
//! truths), then `subtract = M`, `divide_by = M`, `scale = 0.001`, applied to the reduced value in
//! this order, element by element when it is a list. `where` narrows what the node itself sees, not
//! what it is divided by.

mod evaluate;
mod parse;
mod path;
mod reduce;
mod select;

pub use evaluate::{Evaluated, Missing, Reading};
pub(crate) use evaluate::{describe, label};
pub(crate) use parse::RawMeasure;
pub(crate) use path::{Flat, check_path, flatten, neighbours};
pub(crate) use select::same;
pub use select::{Condition, Selection};

use crate::published::Source;

/// Largest growth of a measure that counts as none, as a share of its largest value.
pub const KNEE: f64 = 0.05;

/// The computation of a value. See the module for the meaning of each form.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A number written in the file.
    Constant(f64),
    /// The sum of some metrics of each selected point, reduced.
    Metrics {
        /// Dotted paths into a summary.
        paths: Vec<String>,
        /// Which points.
        selection: Selection,
        /// Reduction to one value.
        reduce: Reduce,
    },
    /// Published numbers, reduced.
    Published {
        /// Origin of the numbers.
        source: Source,
        /// Which, by `series`, `x` and `facet`.
        selection: Selection,
        /// Reduction to one value.
        reduce: Reduce,
    },
    /// Another measure, once for each value of a label, reduced.
    Each {
        /// A label, `design`, or for published numbers `series`, `x` or `facet`.
        label: String,
        /// The measure of each value.
        of: Box<Measure>,
        /// Which points are seen at all.
        selection: Selection,
        /// Reduction to one value.
        reduce: Reduce,
    },
    /// The knee of another measure: the smallest value of a label at which it is within [`KNEE`] of
    /// its largest.
    Knee {
        /// A label whose values are numbers.
        label: String,
        /// The growing measure.
        of: Box<Measure>,
        /// Which points are seen at all.
        selection: Selection,
    },
    /// Another measure, reduced once more if it is a list.
    Of {
        /// The measure.
        of: Box<Measure>,
        /// Which points are seen at all.
        selection: Selection,
        /// The reduction; none when absent.
        reduce: Option<Reduce>,
    },
    /// Several values.
    List {
        /// The values, in order.
        items: Vec<Measure>,
        /// Which points are seen at all.
        selection: Selection,
    },
    /// A conjunction of comparisons.
    All {
        /// The comparisons.
        comparisons: Vec<Comparison>,
        /// Which points are seen at all.
        selection: Selection,
    },
    /// `(base - subtract) / divide_by * scale`.
    Arithmetic {
        /// The minuend.
        base: Box<Measure>,
        /// The subtrahend.
        subtract: Option<Box<Measure>>,
        /// The divisor of the difference.
        divide_by: Option<Box<Measure>>,
        /// A conversion of units, last.
        scale: f64,
    },
}

/// Two measures, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The left side.
    pub left: Measure,
    /// The relation.
    pub relation: Relation,
    /// The right side.
    pub right: Measure,
}

/// The relation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
}

impl Relation {
    const ALL: [(&str, Relation); 5] = [
        ("<", Relation::Less),
        ("<=", Relation::LessOrEqual),
        (">", Relation::Greater),
        (">=", Relation::GreaterOrEqual),
        ("==", Relation::Equal),
    ];
    /// Whether `left` has this relation to `right`.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Relation::Less => left < right,
            Relation::LessOrEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterOrEqual => left >= right,
            Relation::Equal => left == right,
        }
    }
}

/// The reduction of several values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// There must be exactly one.
    Only,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The middle one, or the mean of the two in the middle.
    Median,
    /// They stay several.
    List,
    /// Truths only: whether all of them hold.
    All,
    /// Truths only: whether one of them holds.
    Any,
}

impl Reduce {
    const ALL: [(&str, Reduce); 8] = [
        ("only", Reduce::Only),
        ("max", Reduce::Max),
        ("min", Reduce::Min),
        ("mean", Reduce::Mean),
        ("median", Reduce::Median),
        ("list", Reduce::List),
        ("all", Reduce::All),
        ("any", Reduce::Any),
    ];
}
