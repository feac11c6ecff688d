//! What `query` gives: a list of samples, each with labels and a value.

use std::sync::Arc;

use model::Labels;

use crate::function::Type;
use crate::value::{Object, Value};

/// One element of a query's result.
#[derive(Debug)]
struct Sample {
    labels: Value,
    value: f64,
}

const LIST_TYPE: &str = "template.queryResult";
const SAMPLE_TYPE: &str = "*template.sample";

/// An argument that is a query's result.
pub(super) const RESULT: Type = Type {
    name: LIST_TYPE,
    accepts: |v| v.type_name() == LIST_TYPE,
};

/// An argument that is one sample.
pub(super) const SAMPLE: Type = Type {
    name: SAMPLE_TYPE,
    accepts: |v| v.type_name() == SAMPLE_TYPE,
};

impl Object for Sample {
    fn type_name(&self) -> &str {
        SAMPLE_TYPE
    }

    fn fields(&self) -> Vec<(&'static str, &'static str, Value)> {
        vec![
            ("Labels", "Labels", self.labels.clone()),
            ("Value", "Value", Value::Float(self.value)),
        ]
    }
}

/// A result as value.
pub(super) fn result(samples: Vec<(Labels, f64)>) -> Value {
    let one = |(labels, value): (Labels, f64)| {
        let labels = Value::text_map(&labels);
        Value::Object(Arc::new(Sample { labels, value }))
    };
    Value::typed_list(LIST_TYPE, samples.into_iter().map(one).collect())
}

/// A label of a sample; empty if it has none of that name.
pub(super) fn label(sample: &Value, name: &str) -> Value {
    let labels = match sample {
        Value::Object(object) => object.field("Labels"),
        _ => None,
    };
    match labels {
        Some(Value::Map(map)) => map.get(name),
        _ => Value::text(""),
    }
}

/// The value of a sample.
pub(super) fn value(sample: &Value) -> Value {
    match sample {
        Value::Object(object) => object.field("Value").unwrap_or(Value::Nil),
        _ => Value::Nil,
    }
}

/// The result sorted by a label, equal ones in their old order.
pub(super) fn sorted_by(name: &str, list: &Value) -> Value {
    let Value::List(list) = list else {
        return list.clone();
    };
    let mut items = list.items().to_vec();
    items.sort_by_key(|sample| label(sample, name).as_text().unwrap_or("").to_owned());
    Value::typed_list(LIST_TYPE, items)
}
