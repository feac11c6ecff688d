//! `alertmanager.yml`: where alerts go, judged as Alertmanager judges it.
//!
//! [`Config`] is the file with every default and inheritance resolved: a route knows its receiver and its
//! times, a receiver its HTTP client. Kinds of receivers without a type here are judged in full and kept
//! by name; the `alerts` crate says which it can speak.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use model::Millis;

use self::matchers::Mode;
use crate::error::{Error, read};
use crate::http::HttpClientConfig;
use crate::yaml::{Fields, Node, Result, parse};

mod route;

mod inhibit;
mod interval;
pub mod matchers;
mod receiver;

mod checks;
mod global;
mod inherit;
mod kinds;
mod original;

pub use crate::shape::Found;
pub use inhibit::InhibitRule;
pub use interval::{Interval, TimeInterval, TimeRange};
pub use receiver::{Integration, Receiver, Settings, WebhookConfig};
pub use route::{GroupBy, Route};

/// A whole configuration, defaults resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// After how long an alert without news counts as resolved, in milliseconds.
    pub resolve_timeout: Millis,
    /// The HTTP client of receivers that do not tell their own.
    pub http: HttpClientConfig,
    /// The root of the tree; it matches every alert.
    pub route: Route,
    /// Receivers; names are distinct.
    pub receivers: Vec<Receiver>,
    /// Which alerts silence which.
    pub inhibit_rules: Vec<InhibitRule>,
    /// Times that routes name; names are distinct.
    pub time_intervals: Vec<TimeInterval>,
    /// Patterns of template files, relative to `folder`.
    pub templates: Vec<String>,
    /// The folder that relative paths count from.
    pub folder: PathBuf,
    /// The configuration as text, to be shown: secrets are masked.
    pub original: String,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        Self::load_in(path, Mode::default())
    }

    /// Reads a file in a mode of matchers.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn load_in(path: &Path, mode: Mode) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        let config = Self::parse_in(&path.display().to_string(), &text, mode)?;
        Ok(config.within(folder.unwrap_or(Path::new("."))))
    }

    /// The same with relative paths counting from a folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        let all = self.receivers.iter_mut().flat_map(|r| &mut r.integrations);
        all.for_each(|integration| integration.count_from(folder));
        self
    }

    /// Judges a text; `path` stands in messages.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn parse(path: &str, text: &str) -> std::result::Result<Self, Error> {
        Self::parse_in(path, text, Mode::default())
    }

    /// Judges a text in a mode of matchers.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret.
    pub fn parse_in(path: &str, text: &str, mode: Mode) -> std::result::Result<Self, Error> {
        parse(text)
            .and_then(|node| Self::read_in(&node, mode))
            .map_err(|fault| Error::at(path, text, &fault))
    }

    /// Reads a node, so that the language can stand inside another file.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read_in(node: &Node, mode: Mode) -> Result<Self> {
        let mut fields = node.fields()?;
        let global = global::read(fields.part("global"))?;
        let receivers = receivers(&mut fields, &global)?;
        let time_intervals = time_intervals(&mut fields)?;
        let inhibit_rules = fields.list_of("inhibit_rules")?;
        let inhibit_rules = inhibit_rules
            .iter()
            .map(|node| InhibitRule::read_in(node, mode))
            .collect::<Result<_>>()?;
        let templates = fields.or_empty("templates")?;
        fields.part("tracing").map(global::tracing).transpose()?;
        if let Some(recorder) = fields.part("event_recorder") {
            recorder.map()?;
        }
        let route_node = fields.part("route");
        fields.finish()?;
        let Some(route_node) = route_node else {
            return Err(fields.fault("no routes provided"));
        };
        let route = Route::read_in(route_node, mode)?;
        check_root(&route, route_node)?;
        route::check_names(route_node, &receivers, &time_intervals)?;
        Ok(Self {
            resolve_timeout: global::resolve_timeout(&global),
            http: global::http(&global),
            route,
            receivers,
            inhibit_rules,
            time_intervals,
            templates,
            folder: PathBuf::from("."),
            original: original::show(node),
        })
    }

    /// The receiver of a name; every route's is there.
    #[must_use]
    pub fn receiver(&self, name: &str) -> Option<&Receiver> {
        self.receivers.iter().find(|r| r.name == name)
    }
}

fn receivers(fields: &mut Fields<'_>, global: &Found) -> Result<Vec<Receiver>> {
    let nodes = fields.list_of("receivers")?;
    // Names first, so that a nameless receiver is not hidden behind what its parts lack.
    for node in nodes {
        receiver::name(&mut node.fields()?)?;
    }
    let mut names = HashSet::new();
    let mut receivers = Vec::new();
    for node in nodes {
        let receiver = Receiver::read(node, global)?;
        if !names.insert(receiver.name.clone()) {
            let message = format!("notification config name {:?} is not unique", receiver.name);
            return Err(node.fault(message));
        }
        receivers.push(receiver);
    }
    Ok(receivers)
}

/// Both keys share one space of names; the older one goes first.
fn time_intervals(fields: &mut Fields<'_>) -> Result<Vec<TimeInterval>> {
    let mut intervals: Vec<TimeInterval> = Vec::new();
    for (key, what) in [
        ("mute_time_intervals", "mute time interval"),
        ("time_intervals", "time interval"),
    ] {
        for node in fields.list_of(key)? {
            let interval = TimeInterval::read(node, what)?;
            if intervals.iter().any(|i| i.name == interval.name) {
                return Err(node.fault(format!("{what} {:?} is not unique", interval.name)));
            }
            intervals.push(interval);
        }
    }
    Ok(intervals)
}

fn check_root(route: &Route, node: &Node) -> Result<()> {
    let message = if route.receiver.is_empty() {
        "root route must specify a default receiver"
    } else if !route.matchers.is_empty() {
        "root route must not have any matchers"
    } else if !route.mute_time_intervals.is_empty() {
        "root route must not have any mute time intervals"
    } else if !route.active_time_intervals.is_empty() {
        "root route must not have any active time intervals"
    } else if route.continues {
        "cannot have continue in root route"
    } else {
        return Ok(());
    };
    Err(node.fault(message))
}
