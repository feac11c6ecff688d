//! Commands and operands.

use super::{Done, Exec};
use crate::function::{ANY, Type};
use crate::tree::{Command, Operand, OperandKind, Part};
use crate::value::Value;

impl<'t> Exec<'t> {
    /// The value of a command; `last` is the result of the one before, its last argument.
    pub(super) fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Done<Value> {
        let Some((first, args)) = command.args.split_first() else {
            return Err(self.error("empty command"));
        };
        match &first.kind {
            OperandKind::Function(name) => {
                self.at(Part::Operand(first));
                self.call(dot, name, Part::Command(command), args, last)
            }
            OperandKind::Field(_) | OperandKind::Chain { .. } => self.fields(dot, first, args, last),
            OperandKind::Variable { fields, .. } if !fields.is_empty() => self.fields(dot, first, args, last),
            _ => {
                if matches!(first.kind, OperandKind::Pipe(_) | OperandKind::Variable { .. }) {
                    self.no_arguments(first, args, last.as_ref())?;
                    return self.value(dot, first);
                }
                self.at(Part::Operand(first));
                self.no_arguments(first, args, last.as_ref())?;
                match first.kind {
                    OperandKind::Nil => Err(self.error("nil is not a command")),
                    _ => self.value(dot, first),
                }
            }
        }
    }

    fn no_arguments(&mut self, first: &'t Operand, args: &[Operand], last: Option<&Value>) -> Done<()> {
        match args.is_empty() && last.is_none() {
            true => Ok(()),
            false => Err(self.error(format!("can't give argument to non-function {first}"))),
        }
    }

    /// The value of an operand without arguments.
    pub(super) fn value(&mut self, dot: &Value, operand: &'t Operand) -> Done<Value> {
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => Ok(Value::Nil),
            OperandKind::Constant { value, .. } => Ok(value.clone()),
            OperandKind::Variable { name, fields } if fields.is_empty() => {
                self.at(Part::Operand(operand));
                self.variable(name)
            }
            OperandKind::Field(_) | OperandKind::Variable { .. } | OperandKind::Chain { .. } => {
                self.fields(dot, operand, &[], None)
            }
            OperandKind::Function(name) => {
                self.at(Part::Operand(operand));
                self.call(dot, name, Part::Operand(operand), &[], None)
            }
            OperandKind::Pipe(pipe) => self.pipeline(dot, pipe),
        }
    }

    pub(super) fn variable(&self, name: &str) -> Done<Value> {
        let found = self.variables.iter().rev().find(|v| v.0 == name);
        found
            .map(|v| v.1.clone())
            .ok_or_else(|| self.error(format!("undefined variable: {name}")))
    }

    /// The value of an argument of the given type.
    pub(super) fn arg(&mut self, dot: &Value, wanted: Type, operand: &'t Operand) -> Done<Value> {
        self.at(Part::Operand(operand));
        if let OperandKind::Constant { value, text } = &operand.kind {
            return match (wanted.accepts)(value) {
                true => Ok(value.clone()),
                false => Err(self.error(format!("expected {}; found {text}", wanted.name))),
            };
        }
        if matches!(operand.kind, OperandKind::Nil) && wanted.name != ANY.name {
            return Err(self.error(format!("cannot assign nil to {}", wanted.name)));
        }
        let value = self.value(dot, operand)?;
        self.validate(value, wanted)
    }

    /// The value if it is of the type.
    pub(super) fn validate(&self, value: Value, wanted: Type) -> Done<Value> {
        if (wanted.accepts)(&value) {
            return Ok(value);
        }
        Err(self.error(match value {
            Value::Nil => format!("invalid value; expected {}", wanted.name),
            _ => format!(
                "wrong type for value; expected {}; got {}",
                wanted.name,
                value.type_name()
            ),
        }))
    }
}
