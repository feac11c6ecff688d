//! A set of templates that can call each other, with the functions they may use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::text::Span;

use crate::builtin;
use crate::error::{Error, Failure};
use crate::exec::execute;
use crate::function::{Env, Function};
#[cfg(test)]
use crate::parser::TEXT_MAX;
use crate::parser::{is_empty, parse};
use crate::tree::Nodes;
use crate::value::Value;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Text: values as they print.
    Text,
    /// HTML: values escaped for the place where they stand.
    Html,
}

/// Templates by name.
#[derive(Clone)]
pub struct Set {
    pub(crate) mode: Mode,
    pub(crate) is_strict: bool,
    functions: HashMap<&'static str, Function>,
    templates: BTreeMap<String, Template>,
}

/// A template of a set.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) source: Arc<Source>,
    pub(crate) nodes: Arc<Nodes>,
}

/// A text that templates were read from.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
}

/// A text parsed once, to be executed often.
#[derive(Debug, Clone)]
pub struct Parsed {
    main: Template,
    defined: Vec<Template>,
}

impl Set {
    /// An empty set with Go's functions and those of `functions`.
    #[must_use]
    pub fn new(mode: Mode, functions: &[Function]) -> Self {
        let all = builtin::FUNCTIONS.iter().chain(functions);
        Self {
            mode,
            is_strict: false,
            functions: all.map(|function| (function.name, *function)).collect(),
            templates: BTreeMap::new(),
        }
    }

    /// The same, but a key that a map does not have is an error.
    #[must_use]
    pub fn strict(self) -> Self {
        Self {
            is_strict: true,
            ..self
        }
    }

    /// Adds the templates that `text` defines; what stands outside definitions becomes the template `name`.
    ///
    /// A definition replaces an earlier one of the same name unless it is empty.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`], and then the set is as it was.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let Parsed { main, defined } = self.parse(name, text, &[])?;
        for template in defined.into_iter().chain([main]) {
            let is_needed = !is_empty(&template.nodes) || !self.templates.contains_key(&template.name);
            if is_needed {
                self.templates.insert(template.name.clone(), template);
            }
        }
        Ok(())
    }

    /// Parses a text that may call the templates of the set; `variables` are there from the start.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`].
    pub fn parse(&self, name: &str, text: &str, variables: &[&str]) -> Result<Parsed, Error> {
        let is_function = |name: &str| matches!(name, "and" | "or") || self.functions.contains_key(name);
        let known: Vec<&str> = ["$"].iter().chain(variables).copied().collect();
        let parsed = parse(name, text, &is_function, &known)?;
        let source = Arc::new(Source {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        let template = |name: String, nodes| Template {
            name,
            source: source.clone(),
            nodes: Arc::new(nodes),
        };
        Ok(Parsed {
            main: template(name.to_owned(), parsed.main),
            defined: parsed
                .defined
                .into_iter()
                .map(|(name, nodes)| template(name, nodes))
                .collect(),
        })
    }

    /// Executes a parsed text; `variables` are those that it was parsed with.
    ///
    /// # Errors
    ///
    /// [`Error::Execute`].
    pub fn execute(
        &self,
        parsed: &Parsed,
        data: &Value,
        variables: &[(&str, Value)],
        env: &Env<'_>,
    ) -> Result<String, Error> {
        execute(self, &parsed.defined, &parsed.main, data, variables, env)
    }

    /// Parses and executes a text that may call the templates of the set.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] or [`Error::Execute`].
    pub fn expand(&self, text: &str, data: &Value, env: &Env<'_>) -> Result<String, Error> {
        self.execute(&self.parse("", text, &[])?, data, &[], env)
    }

    /// Executes the template `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] or [`Error::Execute`].
    pub fn call(&self, name: &str, data: &Value, env: &Env<'_>) -> Result<String, Error> {
        let template = self
            .templates
            .get(name)
            .ok_or_else(|| Error::Unknown(name.to_owned()))?;
        execute(self, &[], template, data, &[], env)
    }

    /// The names of the templates, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.keys().map(String::as_str)
    }

    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        self.functions.get(name).copied()
    }

    /// The template of this name, looked up first among `extra`.
    pub(crate) fn find<'a>(&'a self, extra: &'a [Template], name: &str) -> Option<&'a Template> {
        let extra = extra.iter().find(|t| t.name == name);
        match (extra, self.templates.get(name)) {
            (Some(extra), Some(own)) if is_empty(&extra.nodes) => Some(own),
            (Some(extra), _) => Some(extra),
            (None, own) => own,
        }
    }
}

impl Source {
    pub(crate) fn error(&self, at: usize, template: &str, context: String, message: String) -> Error {
        let before = self.text.get(..at).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        // The place may be within what was evaluated; the carets cover all of it, where it is written as it prints.
        let written = self.text.get(..at + context.len()).unwrap_or(&self.text);
        let start = written
            .rfind(&context)
            .filter(|start| *start <= at && !context.is_empty());
        let start = start.unwrap_or(at);
        let end = (start + context.len()).min(self.text.len());
        Error::Execute(Box::new(Failure {
            name: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: at - line_start,
            span: Span::new(start, end),
            template: template.to_owned(),
            context,
            message,
        }))
    }
}

#[cfg(test)]
mod tests;
