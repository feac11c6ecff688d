//! Lines to events, by the patterns of `data/kernel_events.yml`.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::Event;
use crate::Error;

/// The patterns that come with the program; a user's file of the same name takes their place.
pub const PATTERNS: &str = include_str!("../../../../data/kernel_events.yml");

const FILE: &str = "kernel_events.yml";

/// What a line is cut to before it is looked at; the kernel's own limit is 1 KiB.
const LINE_BYTES_MAX: usize = 8 << 10;

/// What loggers put before a message: the kernel device's record, a level, a time in brackets, dmesg's decoded level,
/// an ISO or syslog time, a host and `kernel:`, a printing task.
const PREFIX: &str = r"^(?:\d+,\d+,\d+,[^;]{0,80};|<\d{1,3}>\s*|\[(?:\.\.\.|[^\]]{0,40}\d[.:]\d[^\]]{0,40})\]\s*|\[\s*[TC]\d+\]\s*|(?:kern|user|daemon|syslog)\s*:\s*\w+\s*:\s*|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+\s+\d\d:\d\d:\d\d\s+|(?:[\w.-]+\s+)?kernel(?:\[\d+\])?:\s+)";

/// Prefixes of a line beyond this many are taken as the message.
const PREFIXES_MAX: usize = 6;

/// syslog's way to shorten a repetition.
const REPEATED: &str = r"^message repeated \d+ times: \[\s*(.*)\]\s*$";

/// Recognises events.
pub struct Classifier {
    prefix: Regex,
    repeated: Regex,
    /// All patterns at once, in the order of the file.
    set: RegexSet,
    patterns: Vec<Pattern>,
    classes: Vec<Class>,
}

struct Class {
    name: &'static str,
    is_detail: bool,
}

struct Pattern {
    text: String,
    class: usize,
    /// Compiled when a line needs its groups.
    regex: OnceLock<Regex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    events: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub class: String,
    #[expect(dead_code, reason = "for readers of the table")]
    what: String,
    #[serde(default)]
    detail: bool,
    patterns: Vec<String>,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "the table's own tests"))]
    pub examples: Vec<String>,
}

impl Classifier {
    /// Reads a table of patterns, [`PATTERNS`] or a user's.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] with place and cause.
    pub fn new(table: &str) -> Result<Self, Error> {
        let rows = rows(table)?;
        let mut patterns = Vec::new();
        let mut classes = Vec::new();
        for row in rows {
            for text in row.patterns {
                compile(&text).map_err(|err| data(format!("class {}: {err}", row.class)))?;
                let (class, regex) = (classes.len(), OnceLock::new());
                patterns.push(Pattern { text, class, regex });
            }
            // The few dozen class names live as long as the program, so that events need not own them.
            let name: &'static str = Box::leak(row.class.into_boxed_str());
            let is_detail = row.detail;
            classes.push(Class { name, is_detail });
        }
        let set = RegexSetBuilder::new(patterns.iter().map(|p| &p.text))
            .unicode(false)
            .build();
        Ok(Self {
            prefix: compile(PREFIX).expect("a constant, compiled in every test"),
            repeated: compile(REPEATED).expect("a constant, compiled in every test"),
            set: set.map_err(|err| data(err.to_string()))?,
            patterns,
            classes,
        })
    }

    /// What the line means; `None` for a line that means nothing. The event's time is 0.
    #[must_use]
    pub fn classify(&self, line: &str) -> Option<Event> {
        let message = self.message(line);
        let first = self.set.matches(message.as_bytes()).iter().next()?;
        let pattern = &self.patterns[first];
        let regex = pattern
            .regex
            .get_or_init(|| compile(&pattern.text).expect("compiled once when the table was read"));
        let groups = regex.captures(message.as_bytes())?;
        Some(Event {
            time: 0,
            class: self.classes[pattern.class].name,
            message: message.to_owned(),
            xid: number(&groups, "xid"),
            sxid: number(&groups, "sxid"),
            pci: text(&groups, "pci"),
            pid: number(&groups, "pid"),
            process: text(&groups, "process"),
            constraint: text(&groups, "constraint"),
            cgroup: text(&groups, "cgroup"),
        })
    }

    /// Classes whose events are counted: all but details.
    pub(super) fn counted_classes(&self) -> impl Iterator<Item = &'static str> {
        self.classes.iter().filter(|c| !c.is_detail).map(|c| c.name)
    }

    /// The message in a line of any log.
    fn message<'a>(&self, line: &'a str) -> &'a str {
        let mut rest = cut(line).trim_end();
        for _ in 0..PREFIXES_MAX {
            let Some(found) = self.prefix.find(rest.as_bytes()).filter(|found| !found.is_empty()) else {
                break;
            };
            // Prefixes end with ASCII, so this is always a boundary.
            rest = rest.get(found.end()..).unwrap_or("");
        }
        let repeated = self.repeated.captures(rest.as_bytes()).and_then(|groups| groups.get(1));
        repeated.and_then(|found| rest.get(found.range())).unwrap_or(rest)
    }
}

pub(super) fn rows(table: &str) -> Result<Vec<Row>, Error> {
    let table: Table = serde_saphyr::from_str(table).map_err(|err| data(err.to_string()))?;
    Ok(table.events)
}

fn data(message: String) -> Error {
    Error::Data { file: FILE, message }
}

/// Patterns work on bytes: the kernel's messages are ASCII, names in them may be anything.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

fn text(groups: &Captures<'_>, name: &str) -> Option<String> {
    let found = groups.name(name)?;
    Some(String::from_utf8_lossy(found.as_bytes()).into_owned())
}

fn number(groups: &Captures<'_>, name: &str) -> Option<u32> {
    std::str::from_utf8(groups.name(name)?.as_bytes()).ok()?.parse().ok()
}

/// The line's beginning, not longer than is looked at.
fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}
