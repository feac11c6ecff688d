//! The table of functions: names, argument types, and which are experimental.
//!
//! The parser checks calls against it, the evaluator dispatches on [`Function::name`]. What is
//! deliberately absent: whether an experimental function may run; the evaluator decides that.

use ValueType::{Matrix, Scalar, Text, Vector};

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum ValueType {
    Scalar,
    Text,
    Vector,
    Matrix,
}

impl ValueType {
    /// The word that the HTTP API uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scalar => "scalar",
            Text => "string",
            Vector => "vector",
            Matrix => "matrix",
        }
    }

    /// The words that documentation and error messages use.
    #[must_use]
    pub const fn documented(self) -> &'static str {
        match self {
            Scalar => "scalar",
            Text => "string",
            Vector => "instant vector",
            Matrix => "range vector",
        }
    }
}

/// A function of the language.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments; the last one repeats or is optional as [`Function::variadic`] says.
    pub args: &'static [ValueType],
    /// 0: exactly `args`; n > 0: the last of `args` is optional and up to n of its type may be given; -1: any number.
    pub variadic: i32,
    /// What it returns.
    pub returns: ValueType,
    /// Refused by the evaluator unless experimental functions are on.
    pub experimental: bool,
}

impl Function {
    const fn new(name: &'static str, args: &'static [ValueType], returns: ValueType) -> Self {
        Self {
            name,
            args,
            variadic: 0,
            returns,
            experimental: false,
        }
    }

    const fn optional(self, variadic: i32) -> Self {
        Self { variadic, ..self }
    }

    const fn experimental(self) -> Self {
        Self {
            experimental: true,
            ..self
        }
    }
}

/// The function of this name; names are case-sensitive.
#[must_use]
pub fn get(name: &str) -> Option<&'static Function> {
    let at = FUNCTIONS.binary_search_by(|f| f.name.cmp(name)).ok()?;
    Some(&FUNCTIONS[at])
}

/// Vector to vector.
const fn map(name: &'static str) -> Function {
    Function::new(name, &[Vector], Vector)
}

/// Range vector to vector.
const fn over_time(name: &'static str) -> Function {
    Function::new(name, &[Matrix], Vector)
}

/// A part of the date, of the evaluation time unless a vector is given.
const fn date(name: &'static str) -> Function {
    map(name).optional(1)
}

/// A scalar that depends on the query alone.
const fn constant(name: &'static str) -> Function {
    Function::new(name, &[], Scalar)
}

/// All functions of Prometheus 3.14, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    map("abs"),
    map("absent"),
    over_time("absent_over_time"),
    map("acos"),
    map("acosh"),
    map("asin"),
    map("asinh"),
    map("atan"),
    map("atanh"),
    over_time("avg_over_time"),
    map("ceil"),
    over_time("changes"),
    Function::new("clamp", &[Vector, Scalar, Scalar], Vector),
    Function::new("clamp_max", &[Vector, Scalar], Vector),
    Function::new("clamp_min", &[Vector, Scalar], Vector),
    map("cos"),
    map("cosh"),
    over_time("count_over_time"),
    date("day_of_month"),
    date("day_of_week"),
    date("day_of_year"),
    date("days_in_month"),
    map("deg"),
    over_time("delta"),
    over_time("deriv"),
    Function::new("double_exponential_smoothing", &[Matrix, Scalar, Scalar], Vector).experimental(),
    constant("end").experimental(),
    map("exp"),
    over_time("first_over_time"),
    map("floor"),
    map("histogram_avg"),
    map("histogram_count"),
    Function::new("histogram_fraction", &[Scalar, Scalar, Vector], Vector),
    Function::new("histogram_quantile", &[Scalar, Vector], Vector),
    Function::new("histogram_quantiles", &[Vector, Text, Scalar, Scalar], Vector)
        .optional(9)
        .experimental(),
    map("histogram_stddev"),
    map("histogram_stdvar"),
    map("histogram_sum"),
    date("hour"),
    over_time("idelta"),
    over_time("increase"),
    Function::new("info", &[Vector, Vector], Vector)
        .optional(1)
        .experimental(),
    over_time("irate"),
    Function::new("label_join", &[Vector, Text, Text, Text], Vector).optional(-1),
    Function::new("label_replace", &[Vector, Text, Text, Text, Text], Vector),
    over_time("last_over_time"),
    map("ln"),
    map("log10"),
    map("log2"),
    over_time("mad_over_time").experimental(),
    Function::new("max_of", &[Scalar, Scalar], Scalar).experimental(),
    over_time("max_over_time"),
    Function::new("min_of", &[Scalar, Scalar], Scalar).experimental(),
    over_time("min_over_time"),
    date("minute"),
    date("month"),
    constant("pi"),
    Function::new("predict_linear", &[Matrix, Scalar], Vector),
    over_time("present_over_time"),
    Function::new("quantile_over_time", &[Scalar, Matrix], Vector),
    map("rad"),
    constant("range").experimental(),
    over_time("rate"),
    over_time("resets"),
    Function::new("round", &[Vector, Scalar], Vector).optional(1),
    Function::new("scalar", &[Vector], Scalar),
    map("sgn"),
    map("sin"),
    map("sinh"),
    map("sort"),
    Function::new("sort_by_label", &[Vector, Text], Vector)
        .optional(-1)
        .experimental(),
    Function::new("sort_by_label_desc", &[Vector, Text], Vector)
        .optional(-1)
        .experimental(),
    map("sort_desc"),
    map("sqrt"),
    constant("start").experimental(),
    map("start_timestamp").experimental(),
    over_time("stddev_over_time"),
    over_time("stdvar_over_time"),
    constant("step").experimental(),
    over_time("sum_over_time"),
    map("tan"),
    map("tanh"),
    constant("time"),
    map("timestamp"),
    over_time("ts_of_first_over_time").experimental(),
    over_time("ts_of_last_over_time").experimental(),
    over_time("ts_of_max_over_time").experimental(),
    over_time("ts_of_min_over_time").experimental(),
    Function::new("vector", &[Scalar], Vector),
    date("year"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.name < b.name));
        for function in FUNCTIONS {
            assert_eq!(get(function.name), Some(function));
        }
        assert_eq!(get("Rate"), None);
        assert_eq!(get(""), None);
    }
}
