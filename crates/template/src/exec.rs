//! Tree and data to text.
//!
//! Invariants: the text never grows beyond [`OUTPUT_MAX`], no execution takes more than [`STEPS_MAX`]
//! steps, and templates call each other no deeper than [`CALLS_MAX`].

mod call;
mod field;
mod operand;

use crate::error::Error;
use crate::function::Env;
use crate::html::Html;
use crate::print::plain;
use crate::set::{Mode, Set, Template};
use crate::tree::{Branch, Node, NodeKind, OperandKind, Part, Pipe};
use crate::value::{Safe, Value};

/// The longest text that a template gives, and the longest text it computes with, in bytes.
pub const OUTPUT_MAX: usize = 16 << 20;

/// The most steps: nodes and commands executed, and 32 bytes of text or 8 elements of a list that a function is given.
pub const STEPS_MAX: u64 = 5_000_000;

/// How deep blocks and parentheses may be nested, over all templates that are being executed.
const NESTING_MAX: usize = 300;

/// How deep templates may call each other.
pub const CALLS_MAX: usize = 100;

/// Executes `template` of `set`; `extra` holds templates that come before those of the set.
pub(crate) fn execute(
    set: &Set,
    extra: &[Template],
    template: &Template,
    data: &Value,
    variables: &[(&str, Value)],
    env: &Env<'_>,
) -> Result<String, Error> {
    let first = ("$".to_owned(), data.clone());
    let more = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut exec = Exec {
        set,
        extra,
        env,
        template,
        part: None,
        variables: std::iter::once(first).chain(more).collect(),
        out: String::new(),
        html: (set.mode == Mode::Html).then(Html::default),
        steps: 0,
        calls: 0,
        nesting: 0,
    };
    exec.walk(data, &template.nodes)?;
    Ok(exec.out)
}

struct Exec<'t> {
    set: &'t Set,
    extra: &'t [Template],
    env: &'t Env<'t>,
    template: &'t Template,
    /// What is being evaluated, for messages.
    part: Option<Part<'t>>,
    variables: Vec<(String, Value)>,
    out: String,
    html: Option<Html>,
    steps: u64,
    calls: usize,
    nesting: usize,
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

type Done<T> = Result<T, Error>;

impl<'t> Exec<'t> {
    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Done<Flow> {
        self.nested(|exec| {
            for node in nodes {
                let flow = exec.node(dot, node)?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            Ok(Flow::Next)
        })
    }

    /// Runs one level deeper.
    fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        if self.nesting == NESTING_MAX {
            return Err(self.error(format!("templates are nested deeper than {NESTING_MAX} levels")));
        }
        self.nesting += 1;
        let result = run(self);
        self.nesting -= 1;
        result
    }

    fn node(&mut self, dot: &Value, node: &'t Node) -> Done<Flow> {
        self.at(Part::Node(node));
        self.step()?;
        match &node.kind {
            NodeKind::Text(text) => {
                match &mut self.html {
                    Some(html) => html.literal(text, &mut self.out),
                    None => self.out.push_str(text),
                }
                self.check_output()?;
            }
            NodeKind::Action(pipe) => {
                let value = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at(Part::Node(node));
                    self.print(&self.marked_safe(pipe, value))?;
                }
            }
            NodeKind::If(branch) => return self.choose(dot, branch, false),
            NodeKind::With(branch) => return self.choose(dot, branch, true),
            NodeKind::Range(branch) => return self.scoped(|exec| exec.range(dot, branch)),
            NodeKind::Template { name, data } => self.call_template(dot, name, data.as_ref())?,
            NodeKind::Break => return Ok(Flow::Break),
            NodeKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    /// Runs with variables of its own.
    fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        let outer = self.variables.len();
        let result = run(self);
        self.variables.truncate(outer);
        result
    }

    fn choose(&mut self, dot: &Value, branch: &'t Branch, is_with: bool) -> Done<Flow> {
        self.scoped(|exec| {
            let value = exec.pipeline(dot, &branch.pipe)?;
            match value.is_true() {
                true => exec.walk(if is_with { &value } else { dot }, &branch.then),
                false => exec.walk(dot, &branch.otherwise),
            }
        })
    }

    fn range(&mut self, dot: &Value, branch: &'t Branch) -> Done<Flow> {
        let value = self.pipeline(dot, &branch.pipe)?;
        let flow = match value.underlying() {
            Value::Nil => None,
            Value::List(list) => {
                let items = list.items().iter().zip(0..);
                self.each(branch, items.map(|(item, at)| (Value::Int(at), item.clone())))?
            }
            Value::Map(map) => {
                let pairs = map.iter();
                self.each(
                    branch,
                    pairs.map(|(key, item)| (Value::Text(key.clone()), item.clone())),
                )?
            }
            Value::Int(count) => self.each(branch, (0..count).map(|n| (Value::Int(n), Value::Int(n))))?,
            other => {
                let message = format!("range can't iterate over {}", plain(&other));
                return Err(self.error(message));
            }
        };
        match flow {
            Some(()) => Ok(Flow::Next),
            None => self.walk(dot, &branch.otherwise),
        }
    }

    /// Runs the body for each pair; `None` if there was none.
    fn each(&mut self, branch: &'t Branch, pairs: impl Iterator<Item = (Value, Value)>) -> Done<Option<()>> {
        let mut ran = None;
        for (key, item) in pairs {
            ran = Some(());
            self.step()?;
            let flow = self.scoped(|exec| {
                let pipe = &branch.pipe;
                match pipe.variables.as_slice() {
                    [one] => exec.set_variable(one, item.clone(), pipe.is_assign)?,
                    [first, second] => {
                        exec.set_variable(first, key, pipe.is_assign)?;
                        exec.set_variable(second, item.clone(), pipe.is_assign)?;
                    }
                    _ => {}
                }
                exec.walk(&item, &branch.then)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn call_template(&mut self, dot: &Value, name: &str, data: Option<&'t Pipe>) -> Done<()> {
        let (set, extra) = (self.set, self.extra);
        let Some(template) = set.find(extra, name) else {
            let message = format!("template {} not defined", model::text::quote(name));
            return Err(self.error(message));
        };
        if self.calls == CALLS_MAX {
            return Err(self.error(format!("exceeded maximum template depth ({CALLS_MAX})")));
        }
        let data = match data {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Value::Nil,
        };
        self.calls += 1;
        let outer = std::mem::replace(&mut self.template, template);
        let variables = std::mem::replace(&mut self.variables, vec![("$".to_owned(), data.clone())]);
        self.walk(&data, &template.nodes)?;
        self.variables = variables;
        self.template = outer;
        self.calls -= 1;
        Ok(())
    }

    /// The value of a pipeline; its variables are set, unless a loop sets them.
    fn pipeline(&mut self, dot: &Value, pipe: &'t Pipe) -> Done<Value> {
        self.at(Part::Pipe(pipe));
        let value = self.nested(|exec| {
            let mut value = None;
            for command in &pipe.commands {
                exec.step()?;
                value = Some(exec.command(dot, command, value)?);
            }
            Ok(value.unwrap_or(Value::Nil))
        })?;
        for name in &pipe.variables {
            self.set_variable(name, value.clone(), pipe.is_assign)?;
        }
        Ok(value)
    }

    fn set_variable(&mut self, name: &str, value: Value, is_assign: bool) -> Done<()> {
        if !is_assign {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        match self.variables.iter_mut().rev().find(|v| v.0 == name) {
            Some(variable) => {
                variable.1 = value;
                Ok(())
            }
            None => Err(self.error(format!("undefined variable: {name}"))),
        }
    }

    /// In HTML, what `html` or `urlquery` made is not made harmless a second time.
    fn marked_safe(&self, pipe: &Pipe, value: Value) -> Value {
        let last = pipe.commands.last().and_then(|command| command.args.first());
        let escaper = match last.map(|operand| &operand.kind) {
            Some(OperandKind::Function(name)) if self.html.is_some() => name.as_str(),
            _ => "",
        };
        match (escaper, value) {
            ("html", Value::Text(text)) => Value::Safe(Safe::Html, text),
            ("urlquery", Value::Text(text)) => Value::Safe(Safe::Url, text),
            (_, value) => value,
        }
    }

    fn print(&mut self, value: &Value) -> Done<()> {
        match &mut self.html {
            Some(html) => {
                let escaped = html.value(value);
                self.out.push_str(&escaped);
            }
            None => match value {
                Value::Nil => self.out.push_str("<no value>"),
                value => self.out.push_str(&plain(value)),
            },
        }
        self.check_output()
    }

    fn at(&mut self, part: Part<'t>) {
        self.part = Some(part);
    }

    fn step(&mut self) -> Done<()> {
        self.spend(1)
    }

    /// Counts the work that a function has with a value.
    fn charge(&mut self, value: &Value) -> Done<()> {
        let size = match value {
            Value::Text(text) | Value::Safe(_, text) => text.len() / 32,
            Value::List(list) => list.items().len() / 8,
            Value::Map(map) => map.len() / 8,
            _ => 0,
        };
        self.spend(u64::try_from(size).unwrap_or(u64::MAX))
    }

    fn spend(&mut self, steps: u64) -> Done<()> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps <= STEPS_MAX {
            true => Ok(()),
            false => Err(self.error(format!("template takes more than {STEPS_MAX} steps"))),
        }
    }

    fn check_output(&self) -> Done<()> {
        match self.out.len() <= OUTPUT_MAX {
            true => Ok(()),
            false => Err(self.error(format!("template gives more than {OUTPUT_MAX} bytes"))),
        }
    }

    /// An error at the part being evaluated.
    fn error(&self, message: impl Into<String>) -> Error {
        let template = self.template;
        let (at, context) = self
            .part
            .map_or((0, String::new()), |part| (part.at(), part.to_string()));
        template.source.error(at, &template.name, context, message.into())
    }
}
