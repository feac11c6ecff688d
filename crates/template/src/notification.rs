//! Templates in notifications: Alertmanager's data and functions.
//!
//! [`Notification`] holds a text set and an HTML set with the same definitions. Labels, annotations and
//! alerts have Alertmanager's fields and methods (`.Alerts.Firing`, `.CommonLabels.SortedPairs`).

mod data;
mod functions;
mod pairs;

use std::cell::RefCell;

use crate::error::Error;
use crate::function::Env;
use crate::set::{Mode, Set};

pub use data::{Alert, Data};
pub use functions::FUNCTIONS;

/// The templates of an Alertmanager configuration.
#[derive(Clone)]
pub struct Notification {
    text: Set,
    html: Set,
}

impl Default for Notification {
    fn default() -> Self {
        Self::new()
    }
}

impl Notification {
    /// No templates yet; the functions are there.
    #[must_use]
    pub fn new() -> Self {
        Self {
            text: Set::new(Mode::Text, FUNCTIONS),
            html: Set::new(Mode::Html, FUNCTIONS),
        }
    }

    /// Adds the definitions of a template file; later ones replace earlier ones.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`].
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.text.add(name, text)?;
        self.html.add(name, text)
    }

    /// Checks the text of a setting.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`].
    pub fn check(&self, text: &str) -> Result<(), Error> {
        self.text.parse("", text, &[]).map(drop)
    }

    /// Expands the text of a setting.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] or [`Error::Execute`].
    pub fn text(&self, text: &str, data: &Data, env: &Env<'_>) -> Result<String, Error> {
        expand(&self.text, text, data, env)
    }

    /// Expands the text of a setting that is HTML.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] or [`Error::Execute`].
    pub fn html(&self, text: &str, data: &Data, env: &Env<'_>) -> Result<String, Error> {
        expand(&self.html, text, data, env)
    }

    /// The set for texts, to execute with other data.
    #[must_use]
    pub const fn text_set(&self) -> &Set {
        &self.text
    }

    /// The set for HTML, to execute with other data.
    #[must_use]
    pub const fn html_set(&self) -> &Set {
        &self.html
    }
}

/// Expands with `routeLabels`, whose values are templates too.
fn expand(set: &Set, text: &str, data: &Data, env: &Env<'_>) -> Result<String, Error> {
    let labels = RouteLabels {
        set,
        data,
        env: *env,
        open: RefCell::default(),
    };
    labels.expand(text)
}

struct RouteLabels<'a> {
    set: &'a Set,
    data: &'a Data,
    env: Env<'a>,
    /// The labels being expanded, outermost first.
    open: RefCell<Vec<String>>,
}

impl RouteLabels<'_> {
    fn expand(&self, text: &str) -> Result<String, Error> {
        if text.is_empty() {
            return Ok(String::new());
        }
        let resolve = |name: &str| self.resolve(name);
        let env = Env {
            route_label: Some(&resolve),
            ..self.env
        };
        self.set.expand(text, &self.data.value(), &env)
    }

    fn resolve(&self, name: &str) -> Result<String, String> {
        let Some(text) = self.data.route_labels.get(name) else {
            return Ok(String::new());
        };
        if self.open.borrow().iter().any(|open| open == name) {
            let cycle = [self.open.borrow().join(" -> "), name.to_owned()].join(" -> ");
            return Err(format!("route label cycle detected: {cycle}"));
        }
        if self.open.borrow().len() >= ROUTE_LABELS_MAX {
            return Err(format!(
                "route labels refer to each other more than {ROUTE_LABELS_MAX} times"
            ));
        }
        self.open.borrow_mut().push(name.to_owned());
        let result = self.expand(text).map_err(|e| e.to_string());
        self.open.borrow_mut().pop();
        result
    }
}

/// How deep route labels may refer to each other.
const ROUTE_LABELS_MAX: usize = 8;

#[cfg(test)]
mod tests;
