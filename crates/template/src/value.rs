//! What templates compute with: Go's kinds, as far as templates can tell them apart.
//!
//! Lists and maps are shared, so a value is cheap to clone. Invariant: no value is nested deeper than
//! [`DEPTH_MAX`]; whoever walks one may recurse.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::moment::{Moment, Span};

/// The deepest nesting of lists and maps that a template can build.
pub const DEPTH_MAX: u8 = 32;

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing: Go's nil. Printed alone it is `<no value>`.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer: every integer written in a template.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A text that HTML templates take as it is.
    Safe(Safe, Arc<str>),
    /// A list.
    List(Arc<List>),
    /// A map with texts as keys.
    Map(Arc<Map>),
    /// A moment in a time zone.
    Moment(Moment),
    /// A length of time.
    Span(Span),
    /// A value with fields or methods.
    Object(Arc<dyn Object>),
}

/// What a safe text is safe for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safe {
    /// A piece of HTML.
    Html,
    /// An address.
    Url,
}

/// A list and the type of its elements.
#[derive(Debug)]
pub struct List {
    items: Vec<Value>,
    type_name: &'static str,
    depth: u8,
}

/// A map and what a missing key gives.
#[derive(Debug)]
pub struct Map {
    entries: BTreeMap<Arc<str>, Value>,
    of_texts: bool,
    depth: u8,
}

/// A value with fields or methods of its own.
pub trait Object: fmt::Debug + Send + Sync {
    /// Its type as messages name it.
    fn type_name(&self) -> &str;

    /// Its fields in order: name, name in JSON, value. Empty for what is no struct.
    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        Vec::new()
    }

    /// The field of this name.
    fn field(&self, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|f| f.0 == name).map(|f| f.2)
    }

    /// Calls a method; `None` when there is none of this name.
    fn call(&self, _method: &str, _args: &[Value]) -> Option<Result<Value, String>> {
        None
    }

    /// The list, map or number that it also is: what `range`, `len` and `index` see.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// Its text, where it prints in a way of its own.
    fn text(&self) -> Option<String> {
        None
    }
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }

    /// A list of values of any kind.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::typed_list("[]interface {}", items)
    }

    /// A list whose Go type is `type_name`.
    #[must_use]
    pub fn typed_list(type_name: &'static str, items: Vec<Self>) -> Self {
        let depth = deepest(&items);
        Self::List(Arc::new(List {
            items,
            type_name,
            depth,
        }))
    }

    /// A list of texts.
    #[must_use]
    pub fn texts<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::typed_list("[]string", items.into_iter().map(|s| Self::text(s.as_ref())).collect())
    }

    /// A map to values of any kind; a missing key gives nothing.
    #[must_use]
    pub fn map(entries: BTreeMap<Arc<str>, Self>) -> Self {
        let depth = deepest(entries.values());
        Self::Map(Arc::new(Map {
            entries,
            of_texts: false,
            depth,
        }))
    }

    /// A map to texts; a missing key gives the empty text.
    #[must_use]
    pub fn text_map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs = pairs.into_iter().map(|(k, v)| (Arc::from(k), Self::text(v)));
        Self::Map(Arc::new(Map {
            entries: pairs.collect(),
            of_texts: true,
            depth: 1,
        }))
    }

    /// How deep lists and maps are nested in it.
    pub(crate) fn depth(&self) -> u8 {
        match self {
            Self::List(list) => list.depth,
            Self::Map(map) => map.depth,
            _ => 0,
        }
    }

    /// The value if it is not nested too deep.
    pub(crate) fn shallow(self) -> Result<Self, String> {
        match self.depth() <= DEPTH_MAX {
            true => Ok(self),
            false => Err(format!("lists and maps are nested deeper than {DEPTH_MAX} levels")),
        }
    }

    /// Its Go type, as messages name it.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Safe(Safe::Html, _) => "template.HTML",
            Self::Safe(Safe::Url, _) => "template.URL",
            Self::List(list) => list.type_name,
            Self::Map(map) if map.of_texts => "map[string]string",
            Self::Map(_) => "map[string]interface {}",
            Self::Moment(_) => "time.Time",
            Self::Span(_) => "time.Duration",
            Self::Object(object) => object.type_name(),
        }
    }

    /// Whether `if` takes it for true: not nothing, zero or empty.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(b) => *b,
            Self::Int(n) => *n != 0,
            Self::Uint(n) => *n != 0,
            Self::Float(n) => *n != 0.0,
            Self::Text(text) | Self::Safe(_, text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            Self::Moment(_) => true,
            Self::Span(span) => span.nanos() != 0,
            Self::Object(object) => object.underlying().is_none_or(|v| v.is_true()),
        }
    }

    /// The list, map or number behind an object, else the value itself.
    #[must_use]
    pub fn underlying(&self) -> Self {
        match self {
            Self::Object(object) => object.underlying().unwrap_or_else(|| self.clone()),
            Self::Span(span) => Self::Int(span.nanos()),
            Self::Safe(_, text) => Self::Text(text.clone()),
            _ => self.clone(),
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Safe(_, text) => Some(text),
            _ => None,
        }
    }
}

fn deepest<'a>(values: impl IntoIterator<Item = &'a Value>) -> u8 {
    values
        .into_iter()
        .map(Value::depth)
        .max()
        .unwrap_or(0)
        .saturating_add(1)
}

impl List {
    /// The elements.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    /// The value of `key`, or what a missing key gives.
    #[must_use]
    pub fn get(&self, key: &str) -> Value {
        match self.entries.get(key) {
            Some(value) => value.clone(),
            None if self.of_texts => Value::text(""),
            None => Value::Nil,
        }
    }

    /// Whether there is such a key.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Pairs in the order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.entries.iter()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Self::Float(n)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}
