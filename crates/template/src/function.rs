//! Functions: a name, the types of the arguments, and what is computed.
//!
//! Functions are pure but for the [`Env`] that is handed in: time, links and queries.

use model::{Labels, Millis};

use crate::value::Value;

/// What functions may ask of the outside.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The present moment, in milliseconds since the Unix epoch.
    pub now: Millis,
    /// Where the page of this program is found, without a slash at the end.
    pub external_url: &'a str,
    /// Who answers `query`.
    pub query: Option<&'a dyn Query>,
    /// Who answers `routeLabels`.
    pub route_label: Option<&'a RouteLabel<'a>>,
}

/// Gives the expanded value of a route's label.
pub type RouteLabel<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

impl Env<'_> {
    /// Nothing outside but the time.
    #[must_use]
    pub const fn at(now: Millis) -> Self {
        Self {
            now,
            external_url: "",
            query: None,
            route_label: None,
        }
    }
}

/// Answers the queries that templates make.
pub trait Query {
    /// The value of a PromQL expression at the time of the evaluation, as instant vector.
    ///
    /// # Errors
    ///
    /// What is shown instead.
    fn query(&self, expr: &str) -> Result<Vec<(Labels, f64)>, String>;
}

/// A type that a function asks of an argument.
#[derive(Clone, Copy)]
pub struct Type {
    /// Its Go name.
    pub name: &'static str,
    /// Whether a value is of it.
    pub accepts: fn(&Value) -> bool,
}

/// A function that templates can call.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub params: &'static [Type],
    /// Whether the last argument may be given any number of times.
    pub variadic: bool,
    /// Computes; the arguments have been checked against `params`.
    pub call: fn(&Env<'_>, &[Value]) -> Result<Value, String>,
}

impl Function {
    /// A function with exactly these arguments.
    #[must_use]
    pub const fn new(
        name: &'static str,
        params: &'static [Type],
        call: fn(&Env<'_>, &[Value]) -> Result<Value, String>,
    ) -> Self {
        Self {
            name,
            params,
            variadic: false,
            call,
        }
    }

    /// The same with the last argument any number of times.
    #[must_use]
    pub const fn variadic(self) -> Self {
        Self { variadic: true, ..self }
    }

    /// The type of the argument at `at`.
    pub(crate) fn param(&self, at: usize) -> Type {
        self.params.get(at).or(self.params.last()).copied().unwrap_or(ANY)
    }

    /// Whether it takes `count` arguments.
    pub(crate) fn check_count(&self, count: usize) -> Result<(), String> {
        let want = self.params.len();
        let name = self.name;
        if self.variadic && count + 1 < want {
            return Err(format!(
                "wrong number of args for {name}: want at least {} got {count}",
                want - 1
            ));
        }
        if !self.variadic && count != want {
            return Err(format!("wrong number of args for {name}: want {want} got {count}"));
        }
        Ok(())
    }
}

/// Anything.
pub const ANY: Type = Type {
    name: "interface {}",
    accepts: |_| true,
};
/// A text.
pub const TEXT: Type = Type {
    name: "string",
    accepts: |v| v.as_text().is_some(),
};
/// A list of texts.
pub const TEXTS: Type = Type {
    name: "[]string",
    accepts: |v| match v.underlying() {
        Value::List(list) => list.items().iter().all(|item| item.as_text().is_some()),
        _ => false,
    },
};
/// A list of anything.
pub const LIST: Type = Type {
    name: "[]interface {}",
    accepts: |v| matches!(v, Value::List(_)),
};
/// A moment.
pub const MOMENT: Type = Type {
    name: "time.Time",
    accepts: |v| matches!(v, Value::Moment(_)),
};

/// The text of a checked argument.
pub(crate) fn text(args: &[Value], at: usize) -> &str {
    args.get(at).and_then(Value::as_text).unwrap_or("")
}

/// The texts of a checked argument.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    match value.underlying() {
        Value::List(list) => list
            .items()
            .iter()
            .filter_map(Value::as_text)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}
