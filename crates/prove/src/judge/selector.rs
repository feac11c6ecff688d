//! A selector: which series there are, or could be, of the metrics it names.

use hashbrown::HashSet;
use model::text::Span;
use model::{Kind, METRIC_NAME, MatchOp, Matcher};
use promql::ast::Selector;

use super::{Found, Judge, Operand, RECORDING_DEPTH_MAX, Recorded};
use crate::evidence::{Known, Origin};
use crate::interval::Interval;
use crate::line::{Core, Line, Text, is_added_by_scrapes, texts};
use crate::verdict::Reason;

/// Metrics that one pattern of names is followed to.
const NAMES_MAX: usize = 200;

/// Label values listed in a message.
const VALUES_LISTED: usize = 8;

impl Judge<'_> {
    /// The series that a selector can give.
    pub(super) fn selector(&self, selector: &Selector, span: Span) -> Found {
        let names = self.names_of(selector);
        if names.is_empty() {
            return Found::cause(Reason::at(
                span,
                "metric_absent",
                format!("no metric here has a name that {} selects", self.quoted(span)),
                "name a metric that exists",
            ));
        }
        let mut found = Found::default();
        for name in &names {
            let mut of_name = self.metric(name, span);
            let lines = std::mem::take(&mut of_name.lines);
            if !lines.is_empty() {
                let (lines, causes) = self.filter(name, &lines, &selector.matchers, span);
                found.lines.extend(lines);
                of_name.causes.extend(causes);
            }
            found.hear(&mut of_name);
        }
        let text = selector_text(selector);
        let is_shifted = selector.offset.is_some() || selector.at.is_some();
        found.map(|mut line| {
            if is_shifted {
                line.bound = None;
            }
            if let Some(core) = &mut line.core {
                core.text.clone_from(&text);
            }
            line
        })
    }

    /// The names of the metrics that a selector asks for.
    fn names_of(&self, selector: &Selector) -> Vec<String> {
        let of_name: Vec<&Matcher> = selector.matchers.iter().filter(|m| m.name == METRIC_NAME).collect();
        let sets = of_name.iter().find_map(|m| m.set());
        if let Some(set) = sets {
            let names = set.iter().filter(|name| of_name.iter().all(|m| m.matches(name)));
            return names.take(NAMES_MAX).cloned().collect();
        }
        let known: HashSet<&str> = self
            .evidence
            .names()
            .chain(self.recorded.keys().map(String::as_str))
            .collect();
        let mut names: Vec<String> = known
            .into_iter()
            .filter(|name| of_name.iter().all(|m| m.matches(name)))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.truncate(NAMES_MAX);
        names
    }

    /// Every series of a metric, recorded or told.
    fn metric(&self, name: &str, span: Span) -> Found {
        let mut found = Found::default();
        for recorded in self.recorded.get(name).into_iter().flatten() {
            let mut more = self.recording(name, recorded, span);
            found.lines.append(&mut more.lines);
            found.hear(&mut more);
        }
        let is_past = !self.evidence.series(name).is_empty() && !self.evidence.has_now(name);
        if is_past && found.lines.is_empty() {
            if self.renamed(name).is_some() {
                return Found::cause(self.why_absent(name, span));
            }
            found.blame(Reason::at(
                span,
                "metric_gone",
                format!("`{name}` was here lately and is not here now"),
                "see whether its target is down, or its exporter was changed",
            ));
        }
        found.lines.extend(self.told(name));
        if found.lines.is_empty() {
            found.lines.extend(self.made_by_server(name));
        }
        if found.lines.is_empty() && !self.recorded.contains_key(name) {
            return self.absent_metric(name, span);
        }
        found
    }

    fn recording(&self, name: &str, recorded: &Recorded, span: Span) -> Found {
        if self.depth >= RECORDING_DEPTH_MAX {
            return Found::of(vec![named(loose_guess(), name)]);
        }
        let inner = Judge {
            depth: self.depth + 1,
            text: &recorded.text,
            ..*self
        };
        let mut found = match inner.eval(&recorded.expr) {
            Operand::Vector(found) => found,
            Operand::Scalar(range, found) => found.with(range.map(Line::bare).into_iter().collect()),
            Operand::Text => Found::default(),
        };
        // Remarks on the recording rule are its own; its causes are told here, at the place that reads it.
        found.notes.clear();
        for cause in &mut found.causes {
            cause.span = Some(span);
            cause.message = format!("`{name}` is recorded from {}: {}", recorded.text.trim(), cause.message);
        }
        found.map(|mut line| {
            for (label, value) in &recorded.labels {
                line.set(label, (!value.is_empty()).then(|| Text::Is(value.clone())));
            }
            line.core = None;
            line.filtered = line.filtered || !line.sure;
            named(line, name)
        })
    }

    /// The series that pages or the store show.
    fn told(&self, name: &str) -> Vec<Line> {
        let known = self.evidence.series(name);
        let fact = self.facts.metric(name);
        let unit = self.facts.unit(name).filter(|unit| {
            let fits = |seen: Interval| unit.range.holds(seen.lo) && unit.range.holds(seen.hi);
            known.iter().filter_map(|k| k.seen).all(fits)
        });
        let is_counter = self.kind(name) == Some(Kind::Counter) && !name.ends_with("_sum");
        let mut range = unit.map_or(Interval::ALL, |unit| unit.range);
        if is_counter && let Some(above) = range.meet(Interval::POSITIVE) {
            range = above;
        }
        let why = match unit {
            Some(unit) => Some(unit.words.clone()),
            None => is_counter.then(|| "a count, never below 0".to_owned()),
        };
        let whole = fact.and(unit).is_some_and(|unit| unit.whole);
        let part_of = fact.and_then(|f| f.part_of.clone());
        known
            .iter()
            .map(|known| {
                let mut line = Line {
                    labels: texts(&known.labels),
                    range,
                    why: why.clone(),
                    whole,
                    core: Some(Core {
                        metric: name.to_owned(),
                        text: String::new(),
                        factor: 1.0,
                    }),
                    bound: part_of.clone().map(|whole| (whole, 1.0)),
                    guess: known.past,
                    // Not there at this moment.
                    filtered: known.seen.is_none() && !self.is_open(),
                    ..Line::bare(range)
                };
                if self.is_open() {
                    for label in ["job", "instance"] {
                        if line.label(label).is_none() {
                            line.set(label, Some(Text::OfPage(known.page)));
                        }
                    }
                }
                self.device_limit(name, known, &mut line);
                line.constant = self.constant(name, known);
                named(line, name)
            })
            .collect()
    }

    /// The type of a metric: as told, else as known.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        let told = self.evidence.kind(name).filter(|kind| *kind != Kind::Unknown);
        told.or_else(|| self.facts.metric(name)?.kind)
    }

    /// Why a series never changes.
    fn constant(&self, name: &str, known: &Known) -> Option<String> {
        if let Some(label) = self.facts.metric(name).and_then(|fact| fact.value_label.as_deref())
            && known.labels.get(label).is_some()
        {
            return Some(format!(
                "the exporter puts its value into the label `{label}`, so each series keeps the value it began with and another value is another series"
            ));
        }
        let is_info = name.ends_with("_info") && known.seen.is_none_or(|seen| seen == Interval::one(1.0));
        is_info
            .then(|| "an info metric is always 1; what changes is its labels, and then it is another series".to_owned())
    }

    /// Cuts the range at what the device's own limit allows.
    fn device_limit(&self, name: &str, known: &Known, line: &mut Line) {
        let Some((metric, times)) = self.facts.metric(name).and_then(|fact| fact.limit.as_ref()) else {
            return;
        };
        let same_device = |other: &&Known| {
            let shared = ["UUID", "gpu", "pci_bus_id", "chip", "sensor", "device", "instance"];
            other.page == known.page
                && shared
                    .iter()
                    .all(|label| match (known.labels.get(label), other.labels.get(label)) {
                        (Some(a), Some(b)) => a == b,
                        _ => true,
                    })
        };
        // A limit may be a sum: used, free and reserved memory make the whole.
        let mut top = 0.0;
        for part in metric.split('+').map(str::trim) {
            let parts = self.evidence.series(part).iter().filter(same_device);
            let Some(limit) = parts.filter_map(|k| k.seen).map(|seen| seen.hi).reduce(f64::max) else {
                return;
            };
            top += limit;
        }
        let (limit, top) = (top, top * times);
        let was_above = known.seen.is_some_and(|seen| seen.hi > top);
        if limit > 0.0 && !was_above && top < line.range.hi {
            line.range = Interval::new(line.range.lo.min(top), top);
            line.why = Some(format!("limited by the device's own {metric}, {limit}"));
        }
    }

    /// `up` and its like, which the scraper adds to what the pages show, and the series that alerts make.
    fn made_by_server(&self, name: &str) -> Vec<Line> {
        let range = match name {
            "up" => Interval::new(0.0, 1.0),
            "ALERTS" => Interval::one(1.0),
            "ALERTS_FOR_STATE"
            | "scrape_duration_seconds"
            | "scrape_samples_scraped"
            | "scrape_series_added"
            | "scrape_samples_post_metric_relabeling" => Interval::POSITIVE,
            _ => return Vec::new(),
        };
        let is_alerts = name.starts_with("ALERTS");
        if !is_alerts && !self.is_open() {
            return Vec::new();
        }
        let line = |labels: Vec<(String, Text)>, loose| {
            let why = (name == "up").then(|| "1 or 0".to_owned());
            named(
                Line {
                    labels,
                    why,
                    whole: name == "up" || is_alerts,
                    loose,
                    filtered: is_alerts,
                    ..Line::bare(range)
                },
                name,
            )
        };
        if is_alerts {
            let of = |alert: Text| {
                line(
                    vec![("alertname".to_owned(), alert), ("alertstate".to_owned(), Text::Any)],
                    true,
                )
            };
            let own = self.alerts.iter().map(|alert| of(Text::Is(alert.clone())));
            // Alerts of other files are not known.
            let other = Line {
                guess: true,
                ..of(Text::Any)
            };
            return own.chain([other]).collect();
        }
        let pages = 0..self.evidence.page_count().max(1);
        pages
            .map(|page| {
                let of_page = |label: &str| (label.to_owned(), Text::OfPage(page));
                line(vec![of_page("instance"), of_page("job")], false)
            })
            .collect()
    }

    /// The series that pass the matchers, and why others do not.
    fn filter(&self, name: &str, lines: &[Line], matchers: &[Matcher], span: Span) -> (Vec<Line>, Vec<Reason>) {
        let matchers: Vec<&Matcher> = matchers.iter().filter(|m| m.name != METRIC_NAME).collect();
        let passing: Vec<Line> = lines
            .iter()
            .filter(|line| matchers.iter().all(|m| self.passes(line, m)))
            .map(|line| narrowed(line, &matchers))
            .collect();
        if !passing.is_empty() || lines.is_empty() {
            return (passing, Vec::new());
        }
        let culprits: Vec<&Matcher> = matchers
            .iter()
            .copied()
            .filter(|m| !lines.iter().any(|line| self.passes(line, m)))
            .collect();
        let mut causes = Vec::new();
        let mut is_possible = true;
        for matcher in &culprits {
            let (possible, cause) = self.no_match(name, lines, matcher, span);
            is_possible &= possible;
            causes.push(cause);
        }
        if culprits.is_empty() {
            causes.push(Reason::at(
                span,
                "label_values_unseen",
                format!(
                    "no series of `{name}` now has all the labels that {} asks for at once",
                    self.quoted(span)
                ),
                "check the label values",
            ));
        }
        let guess = is_possible.then(|| {
            let most = lines
                .iter()
                .max_by_key(|line| matchers.iter().filter(|m| self.passes(line, m)).count());
            let mut line = narrowed(most.unwrap_or(&lines[0]), &matchers);
            line.guess = true;
            line
        });
        (guess.into_iter().collect(), causes)
    }

    fn passes(&self, line: &Line, matcher: &Matcher) -> bool {
        match line.label(&matcher.name) {
            Some(Text::Is(value)) => matcher.matches(value),
            Some(_) => matcher.set() != Some(&[String::new()]),
            None if line.loose => true,
            None => matcher.matches_empty() || (self.is_open() && is_added_by_scrapes(&matcher.name)),
        }
    }

    /// Whether series that pass may still come to be, and what is the matter.
    fn no_match(&self, name: &str, lines: &[Line], matcher: &Matcher, span: Span) -> (bool, Reason) {
        let label = &matcher.name;
        let mut seen: Vec<&str> = lines
            .iter()
            .filter_map(|line| match line.label(label) {
                Some(Text::Is(value)) => Some(value.as_str()),
                _ => None,
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let is_there = lines.iter().any(|line| line.label(label).is_some());
        if !is_there {
            let mut names: Vec<&str> = lines
                .iter()
                .flat_map(Line::names)
                .filter(|n| *n != METRIC_NAME)
                .collect();
            names.sort_unstable();
            names.dedup();
            let mend = match config::yaml::nearest(label, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its labels are {}", names.join(", ")),
            };
            let message = format!("no series of `{name}` has a label `{label}`");
            return (false, Reason::at(span, "label_absent", message, mend));
        }
        let listed = || {
            let more = if seen.len() > VALUES_LISTED { ", …" } else { "" };
            let list: Vec<_> = seen.iter().take(VALUES_LISTED).map(|v| format!("{v:?}")).collect();
            format!("{}{more}", list.join(", "))
        };
        if let Some(values) = self.facts.values_of(name, label) {
            let possible = values.iter().any(|value| matcher.matches(value));
            if !possible {
                let list: Vec<_> = values.iter().map(|v| format!("{v:?}")).collect();
                let message = format!("`{label}` of `{name}` is never as {matcher} asks");
                let mend = format!("its values are {}", list.join(", "));
                return (false, Reason::at(span, "label_value_impossible", message, mend));
            }
        } else if self.evidence.is_state_set(name, label) {
            let message = format!("`{label}` of `{name}` is a set of states, and none is as {matcher} asks");
            return (
                false,
                Reason::at(
                    span,
                    "label_value_impossible",
                    message,
                    format!("the states are {}", listed()),
                ),
            );
        }
        if let Some(slip) = slip(matcher, &seen) {
            let message = format!("`{label}` of `{name}` is {}, never as {matcher} asks", listed());
            return (false, Reason::at(span, "label_value_impossible", message, slip));
        }
        if label == "job" && self.evidence.knows_targets() && matcher.op != MatchOp::NotEqual {
            let message = format!("no target of `{name}` is as {matcher} asks");
            let mend = format!("its jobs are {}", listed());
            return (false, Reason::at(span, "label_value_impossible", message, mend));
        }
        let message = format!("no series of `{name}` has {matcher} so far; `{label}` is {}", listed());
        (
            true,
            Reason::at(
                span,
                "label_value_unseen",
                message,
                "check the value, or drill the alert",
            ),
        )
    }

    /// A metric that nobody shows; for one that comes with its first event, a series that may come.
    fn absent_metric(&self, name: &str, span: Span) -> Found {
        let comes_later = self.facts.metric(name).is_some_and(|fact| fact.on_event);
        let mut found = Found::cause(self.why_absent(name, span));
        if comes_later && self.evidence.origin() != Origin::Pages {
            found.lines.push(named(loose_guess(), name));
        }
        found
    }
}

/// A series of which nothing is known.
fn loose_guess() -> Line {
    Line {
        guess: true,
        loose: true,
        ..Line::bare(Interval::ALL)
    }
}

fn named(mut line: Line, name: &str) -> Line {
    line.set(METRIC_NAME, Some(Text::Is(name.to_owned())));
    line
}

/// The series with what the matchers tell of labels that were not known.
fn narrowed(line: &Line, matchers: &[&Matcher]) -> Line {
    let mut line = line.clone();
    for matcher in matchers {
        let is_unknown = match line.label(&matcher.name) {
            Some(Text::Is(value)) => !matcher.matches(value),
            Some(_) => true,
            None => !matcher.matches_empty(),
        };
        let is_page = matches!(line.label(&matcher.name), Some(Text::OfPage(_)));
        if !is_unknown || (is_page && matcher.op != MatchOp::Equal) {
            continue;
        }
        let text = match matcher.op {
            MatchOp::Equal if matcher.value.is_empty() => None,
            MatchOp::Equal => Some(Text::Is(matcher.value.clone())),
            _ => Some(Text::Any),
        };
        line.set(&matcher.name, text);
    }
    line
}

/// How a value was missed by a hair: other letters' case, or a pattern that would match only a part.
fn slip(matcher: &Matcher, seen: &[&str]) -> Option<String> {
    let wanted = matcher.value.as_str();
    match matcher.op {
        MatchOp::Equal => {
            let near = seen.iter().find(|v| v.eq_ignore_ascii_case(wanted))?;
            Some(format!("write {near:?}: case counts"))
        }
        MatchOp::Regex if wanted.chars().all(|c| c.is_alphanumeric() || "_-/".contains(c)) => {
            let near = seen.iter().find(|v| v.contains(wanted) && wanted.len() >= 2)?;
            Some(format!(
                "a pattern must match the whole value; {near:?} needs `.*` around it"
            ))
        }
        _ => None,
    }
}

/// A selector in one way of writing: matchers sorted.
fn selector_text(selector: &Selector) -> String {
    let mut parts: Vec<String> = selector.matchers.iter().map(ToString::to_string).collect();
    parts.sort();
    let offset = selector
        .offset
        .as_ref()
        .map(|o| format!(" offset {o}"))
        .unwrap_or_default();
    format!("{}{offset} {:?}", parts.join(","), selector.at)
}
