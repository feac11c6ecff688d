//! Fields and methods: `.a.b`, `$x.a`, `(…).a`, the last one with arguments.

use super::call::bounded;
use super::{Done, Exec};
use crate::function::ANY;
use crate::tree::{Operand, OperandKind, Part};
use crate::value::Value;

impl<'t> Exec<'t> {
    /// The value of an operand with fields; arguments go to the last of them.
    pub(super) fn fields(
        &mut self,
        dot: &Value,
        operand: &'t Operand,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Done<Value> {
        self.at(Part::Operand(operand));
        let (mut receiver, fields) = match &operand.kind {
            OperandKind::Field(fields) => (dot.clone(), fields),
            OperandKind::Variable { name, fields } => (self.variable(name)?, fields),
            OperandKind::Chain { of, fields } => {
                if matches!(of.kind, OperandKind::Nil) {
                    return Err(self.error(format!("indirection through explicit nil in {operand}")));
                }
                (self.arg(dot, ANY, of)?, fields)
            }
            _ => return self.value(dot, operand),
        };
        let Some((name, inner)) = fields.split_last() else {
            return Ok(receiver);
        };
        for field in inner {
            receiver = self.field(&receiver, field, operand, &[])?;
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        for arg in args {
            values.push(self.arg(dot, ANY, arg)?);
        }
        values.extend(last);
        self.field(&receiver, name, operand, &values)
    }

    /// A method called, a field, or a key of a map.
    fn field(&mut self, receiver: &Value, name: &str, operand: &'t Operand, args: &[Value]) -> Done<Value> {
        if matches!(receiver, Value::Nil) {
            return match self.set.is_strict {
                true => Err(self.error(format!("nil data; no entry for key {name:?}"))),
                false => Ok(Value::Nil),
            };
        }
        let called = match receiver {
            Value::Object(object) => object.call(name, args),
            Value::Moment(moment) => moment.call(name, args),
            Value::Span(span) => span.call(name, args),
            _ => None,
        };
        if let Some(result) = called {
            return match result.and_then(bounded) {
                Ok(value) => {
                    self.charge(&value)?;
                    Ok(value)
                }
                Err(message) => {
                    self.at(Part::Operand(operand));
                    Err(self.error(format!("error calling {name}: {message}")))
                }
            };
        }
        let object_field = match receiver {
            Value::Object(object) => object.field(name),
            _ => None,
        };
        if let Some(value) = object_field {
            return match args.is_empty() {
                true => Ok(value),
                false => Err(self.error(format!("{name} has arguments but cannot be invoked as function"))),
            };
        }
        match receiver.underlying() {
            Value::Map(_) if !args.is_empty() => Err(self.error(format!("{name} is not a method but has arguments"))),
            Value::Map(map) if self.set.is_strict && !map.contains(name) => {
                Err(self.error(format!("map has no entry for key {name:?}")))
            }
            Value::Map(map) => Ok(map.get(name)),
            _ => {
                let type_name = receiver.type_name();
                Err(self.error(format!("can't evaluate field {name} in type {type_name}")))
            }
        }
    }
}
