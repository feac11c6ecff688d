//! The functions that every template has: comparison, indexing, printing, escaping.
//!
//! `and` and `or` are not here: they evaluate no more than they need, so [`crate::exec`] has them.

mod compare;
mod index;

use crate::escape;
use crate::function::{ANY, Function, TEXT, text};
use crate::print::sprint;
use crate::printf::printf;
use crate::value::Value;

/// Go's functions.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("call", &[ANY], |_, _| Err("call of nil".to_owned())).variadic(),
    Function::new("not", &[ANY], |_, args| Ok(Value::Bool(!args[0].is_true()))),
    Function::new("len", &[ANY], |_, args| index::len(&args[0])),
    Function::new("index", &[ANY, ANY], |_, args| index::index(&args[0], &args[1..])).variadic(),
    Function::new("slice", &[ANY, ANY], |_, args| index::slice(&args[0], &args[1..])).variadic(),
    Function::new("print", &[ANY], |_, args| Ok(sprint(args).into())).variadic(),
    Function::new("println", &[ANY], |_, args| Ok(sprintln(args).into())).variadic(),
    Function::new("printf", &[TEXT, ANY], |_, args| {
        Ok(printf(text(args, 0), &args[1..]).into())
    })
    .variadic(),
    Function::new("html", &[ANY], |_, args| Ok(escape::html(&sprint(args)).into())).variadic(),
    Function::new("js", &[ANY], |_, args| Ok(escape::js(&sprint(args)).into())).variadic(),
    Function::new("urlquery", &[ANY], |_, args| Ok(escape::query(&sprint(args)).into())).variadic(),
    Function::new("eq", &[ANY, ANY], |_, args| compare::eq(args).map(Value::Bool)).variadic(),
    Function::new("ne", &[ANY, ANY], |_, args| {
        Ok(Value::Bool(!compare::same(&args[0], &args[1])?))
    }),
    Function::new("lt", &[ANY, ANY], |_, args| {
        Ok(Value::Bool(compare::less(&args[0], &args[1])?))
    }),
    Function::new("le", &[ANY, ANY], |_, args| {
        Ok(Value::Bool(
            compare::less(&args[0], &args[1])? || compare::same(&args[0], &args[1])?,
        ))
    }),
    Function::new("gt", &[ANY, ANY], |_, args| {
        Ok(Value::Bool(
            !compare::less(&args[0], &args[1])? && !compare::same(&args[0], &args[1])?,
        ))
    }),
    Function::new("ge", &[ANY, ANY], |_, args| {
        Ok(Value::Bool(!compare::less(&args[0], &args[1])?))
    }),
];

fn sprintln(args: &[Value]) -> String {
    let texts: Vec<String> = args.iter().map(crate::print::plain).collect();
    texts.join(" ") + "\n"
}
