//! Labels and annotations, with the methods of Alertmanager's `KV`, `Pairs` and `Strings`.

use std::sync::Arc;

use model::Labels;

use crate::function::texts;
use crate::value::{Object, Value};

/// A set of labels: `KV`.
#[derive(Debug, Clone)]
pub(super) struct Kv(pub(super) Labels);

/// Labels in order, that of the alert's name first: `Pairs`.
#[derive(Debug)]
struct Pairs(Vec<(Arc<str>, Arc<str>)>);

/// One label: `Pair`.
#[derive(Debug)]
struct Pair(Arc<str>, Arc<str>);

/// Texts that can be joined: `Strings`.
#[derive(Debug)]
struct Strings(Vec<Arc<str>>);

const ALERT_NAME: &str = "alertname";

impl Kv {
    pub(super) fn value(labels: &Labels) -> Value {
        Value::Object(Arc::new(Self(labels.clone())))
    }

    fn pairs(&self) -> Pairs {
        let mut pairs: Vec<(Arc<str>, Arc<str>)> = self.0.iter().map(|(k, v)| (k.into(), v.into())).collect();
        // The labels are in order already, so only the alert's name moves.
        pairs.sort_by_key(|(name, _)| &**name != ALERT_NAME);
        Pairs(pairs)
    }
}

impl Object for Kv {
    fn type_name(&self) -> &str {
        "template.KV"
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::text_map(&self.0))
    }

    fn text(&self) -> Option<String> {
        self.pairs().text()
    }

    fn call(&self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        let pairs = self.pairs();
        Some(Ok(match (method, args) {
            ("SortedPairs", []) => Value::Object(Arc::new(pairs)),
            ("Names" | "Values", []) => return pairs.call(method, args),
            ("String", []) => Value::from(pairs.text()?),
            ("Remove", [names]) => Self::value(&self.0.without(&texts(names))),
            ("SortedPairs" | "Names" | "Values" | "Remove", _) => return Some(wrong_count(method, args.len())),
            _ => return None,
        }))
    }
}

fn wrong_count(method: &str, got: usize) -> Result<Value, String> {
    Err(format!("wrong number of args for {method}: got {got}"))
}

impl Object for Pairs {
    fn type_name(&self) -> &str {
        "template.Pairs"
    }

    fn underlying(&self) -> Option<Value> {
        let pairs = self.0.iter();
        let pairs = pairs.map(|(name, value)| Value::Object(Arc::new(Pair(name.clone(), value.clone()))));
        Some(Value::list(pairs.collect()))
    }

    fn text(&self) -> Option<String> {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(pairs.join(", "))
    }

    fn call(&self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        let strings = match method {
            "Names" => self.0.iter().map(|pair| pair.0.clone()).collect(),
            "Values" => self.0.iter().map(|pair| pair.1.clone()).collect(),
            "String" => return Some(Ok(Value::from(self.text()?))),
            _ => return None,
        };
        match args {
            [] => Some(Ok(Value::Object(Arc::new(Strings(strings))))),
            _ => Some(wrong_count(method, args.len())),
        }
    }
}

impl Object for Pair {
    fn type_name(&self) -> &str {
        "template.Pair"
    }

    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        vec![
            ("Name", "Name", Value::Text(self.0.clone())),
            ("Value", "Value", Value::Text(self.1.clone())),
        ]
    }
}

impl Object for Strings {
    fn type_name(&self) -> &str {
        "template.Strings"
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::texts(&self.0))
    }

    fn call(&self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        match (method, args) {
            ("Join", [separator]) => Some(Ok(Value::from(self.0.join(separator.as_text()?)))),
            ("Join", _) => Some(wrong_count(method, args.len())),
            _ => None,
        }
    }
}
