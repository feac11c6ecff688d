//! The table of functions: names, argument types, and which are experimental.
//!
//! The parser checks calls against it, the evaluator dispatches on the name's [`Function::id`].

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum ValueType {
    Scalar,
    Text,
    Vector,
    Matrix,
}

/// A function of the language.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments; the last one repeats or is optional as [`Function::variadic`] says.
    pub args: &'static [ValueType],
    /// 0: exactly `args`; n > 0: up to n further arguments of the last type, of which the last listed is optional; -1: any number.
    pub variadic: i32,
    /// What it returns.
    pub returns: ValueType,
    /// Refused by the evaluator unless experimental functions are on.
    pub experimental: bool,
}
