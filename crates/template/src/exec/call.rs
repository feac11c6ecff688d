//! Calls of functions.

use super::{Done, Exec, OUTPUT_MAX};
use crate::function::ANY;
use crate::tree::{Operand, Part};
use crate::value::Value;

impl<'t> Exec<'t> {
    /// Calls the function; `node` is what an error of it is reported at.
    pub(super) fn call(
        &mut self,
        dot: &Value,
        name: &str,
        node: Part<'t>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Done<Value> {
        if let "and" | "or" = name {
            return self.short_circuit(dot, name, args, last);
        }
        let Some(function) = self.set.function(name) else {
            return Err(self.error(format!("{name:?} is not a defined function")));
        };
        function
            .check_count(args.len() + usize::from(last.is_some()))
            .map_err(|message| self.error(message))?;
        let mut values = Vec::with_capacity(args.len() + 1);
        for (at, arg) in args.iter().enumerate() {
            values.push(self.arg(dot, function.param(at), arg)?);
        }
        if let Some(last) = last {
            values.push(self.validate(last, function.param(args.len()))?);
        }
        for value in &values {
            self.charge(value)?;
        }
        match (function.call)(self.env, &values).and_then(bounded) {
            Ok(value) => {
                self.charge(&value)?;
                Ok(value)
            }
            Err(message) => {
                self.at(node);
                Err(self.error(format!("error calling {name}: {message}")))
            }
        }
    }

    /// `and` and `or` evaluate no more than they need.
    fn short_circuit(&mut self, dot: &Value, name: &str, args: &'t [Operand], last: Option<Value>) -> Done<Value> {
        if args.is_empty() && last.is_none() {
            return Err(self.error(format!("wrong number of args for {name}: want at least 1 got 0")));
        }
        let mut value = Value::Nil;
        for arg in args {
            value = self.arg(dot, ANY, arg)?;
            if value.is_true() == (name == "or") {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }
}

/// The value, if it is no longer and no deeper than values may be.
pub(super) fn bounded(value: Value) -> Result<Value, String> {
    match value.as_text() {
        Some(text) if text.len() > OUTPUT_MAX => Err(format!("text is longer than {OUTPUT_MAX} bytes")),
        _ => value.shallow(),
    }
}
