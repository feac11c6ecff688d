//! Executes a script.

use std::sync::Arc;

use model::{Deadline, Labels, Matcher, Millis, QueryError, QueryOutcome, Value};

use super::compare::{self, Verdict};
use super::fixed;
use super::mem::MemStore;
use super::nhcb;
use super::notation::{Point, SeriesLine};
use super::script::{CommandKind, Eval, Moments, parse_script};
use crate::ast::Expr;
use crate::{Engine, EngineOptions};

/// What a script came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Evaluations that gave what was expected.
    pub passed: usize,
    /// Evaluations that did not, and commands that cannot be read.
    pub failures: Vec<Failure>,
    /// Evaluations not judged.
    pub skipped: Vec<Skip>,
}

/// An evaluation that went wrong. Shown as `file:line: query: what`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The script's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The query, or nothing for a command that cannot be read.
    pub query: String,
    /// What went wrong.
    pub what: String,
}

/// An evaluation not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The script's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The query.
    pub query: String,
    /// Why not.
    pub reason: &'static str,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.query.is_empty() {
            write!(f, "{}: ", self.query)?;
        }
        f.write_str(&self.what)
    }
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.query, self.reason)
    }
}

impl Report {
    /// Adds another script's report.
    pub fn extend(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skipped.extend(other.skipped);
    }

    /// Evaluations altogether.
    #[must_use]
    pub fn total(&self) -> usize {
        self.passed + self.failures.len() + self.skipped.len()
    }
}

impl std::fmt::Display for Report {
    /// `N passed, M failed, K skipped`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (failed, skipped) = (self.failures.len(), self.skipped.len());
        write!(f, "{} passed, {failed} failed, {skipped} skipped", self.passed)
    }
}

const START_TIMESTAMPS: &str = "start timestamps";
const EXTENDED_NATIVE: &str = "native histograms under anchored or smoothed";

/// The options that Prometheus' own scripts are written for: everything experimental is on, and names are
/// removed at the end of a query.
#[must_use]
pub fn script_options() -> EngineOptions {
    EngineOptions {
        experimental: true,
        delayed_name_removal: true,
        ..EngineOptions::default()
    }
}

/// Runs a script against a store of its own; `file` names it in what is reported.
#[must_use]
pub fn run(file: &str, script: &str, options: &EngineOptions) -> Report {
    let store = Arc::new(MemStore::new());
    let mut runner = Runner {
        engine: Engine::new(store.clone(), options.clone()),
        store,
        started: Vec::new(),
        native: Vec::new(),
    };
    let mut report = Report::default();
    for command in parse_script(script) {
        let failure = |query: &str, what: String| Failure {
            file: file.to_owned(),
            line: command.line,
            query: query.to_owned(),
            what,
        };
        match &command.kind {
            CommandKind::Broken(error) => report.failures.push(failure("", error.to_string())),
            CommandKind::Clear => runner.clear(),
            CommandKind::Load {
                step,
                with_nhcb,
                series,
                start_timestamps,
            } => runner.load(*step, *with_nhcb, *start_timestamps, series),
            CommandKind::Eval(eval) => match runner.eval(eval) {
                Ok(()) => report.passed += 1,
                Err(what) => match runner.excuse(eval) {
                    Some(reason) => report.skipped.push(Skip {
                        file: file.to_owned(),
                        line: command.line,
                        query: eval.query.clone(),
                        reason,
                    }),
                    None => report.failures.push(failure(&eval.query, what)),
                },
            },
        }
    }
    report
}

struct Runner {
    engine: Engine,
    store: Arc<MemStore>,
    /// Series that have start timestamps.
    started: Vec<Labels>,
    /// Series that hold native histograms.
    native: Vec<Labels>,
}

impl Runner {
    fn clear(&mut self) {
        self.store.clear();
        self.started.clear();
        self.native.clear();
    }

    fn load(&mut self, step: Millis, with_nhcb: bool, start_timestamps: bool, series: &[SeriesLine]) {
        for (place, line) in series.iter().enumerate() {
            // Of two lines for one series within a command the later one counts.
            if series[place + 1..].iter().any(|later| later.labels == line.labels) {
                continue;
            }
            for (i, point) in line.points.iter().enumerate() {
                let time = step.saturating_mul(Millis::try_from(i).unwrap_or(Millis::MAX));
                match point {
                    Point::Absent => {}
                    Point::Float(value) => drop(self.store.add(&line.labels, time, *value)),
                    Point::Histogram { histogram, .. } => {
                        self.store.add_histogram(&line.labels, time, histogram);
                    }
                }
            }
            if line.points.iter().any(|p| matches!(p, Point::Histogram { .. })) {
                self.native.push(line.labels.clone());
            }
            if start_timestamps {
                self.started.push(line.labels.clone());
            }
        }
        if with_nhcb {
            for (labels, step_of, histogram) in nhcb::twins(series) {
                let time = step.saturating_mul(Millis::try_from(step_of).unwrap_or(Millis::MAX));
                self.store.add_histogram(&labels, time, &histogram);
            }
        }
    }

    fn eval(&self, eval: &Eval) -> Verdict {
        let deadline = Deadline::never();
        let expr = match crate::parse(&eval.query) {
            Ok(expr) => expr,
            Err(error) => return failed(eval, &error.to_string()),
        };
        match eval.moments {
            Moments::Range { start, end, step } => {
                let outcome = self
                    .engine
                    .range_expr(&eval.query, &expr, (start, end, step), &deadline);
                judge(eval, outcome, (start, end, step)).map(|_| ())
            }
            Moments::Instant(at) => {
                self.instant(eval, &expr, at)?;
                if let Some(fixed) = fixed::at(&expr, at) {
                    for moment in other_moments(at) {
                        self.instant(eval, &fixed, moment)
                            .map_err(|what| format!("{what} (with @ {at}, asked at {moment})"))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// An instant query, and the same as the middle step of a range query.
    fn instant(&self, eval: &Eval, expr: &Expr, at: Millis) -> Verdict {
        const MINUTE: Millis = 60_000;
        let deadline = Deadline::never();
        let outcome = self.engine.instant_expr(&eval.query, expr, at, &deadline);
        let Some(outcome) = judge(eval, outcome, (at, at, 1))? else {
            return Ok(());
        };
        let expect = &eval.expect;
        let context = ["start()", "end()", "range()", "step()"];
        let apart = expect.range_vector.is_some()
            || expect.text.is_some()
            || context.iter().any(|f| eval.query.to_ascii_lowercase().contains(f));
        if apart {
            return Ok(());
        }
        let range = (at - MINUTE, at + MINUTE, MINUTE);
        let ranged = self.engine.range_expr(&eval.query, expr, range, &deadline);
        let in_range = |what: String| format!("{what} (range mode)");
        let ranged = ranged.map_err(|e| in_range(message(&e)))?;
        let Value::Matrix(series) = ranged.value else {
            return Err(in_range("not a matrix".to_owned()));
        };
        if expect.ordered {
            return Ok(());
        }
        let middle = series.into_iter().filter_map(|(labels, column)| {
            let sample = column.iter().find(|s| s.time == at)?;
            Some((labels, sample))
        });
        let middle: Vec<_> = middle.collect();
        match (&outcome.value, middle.first()) {
            (Value::Scalar(_), Some((_, sample))) => compare::scalar(expect, sample.value),
            _ => compare::vector(expect, &middle),
        }
        .map_err(in_range)
    }

    /// Why an evaluation need not hold: it deals in what is not here yet.
    fn excuse(&self, eval: &Eval) -> Option<&'static str> {
        let expr = crate::parse(&eval.query).ok()?;
        let mut selectors = Vec::new();
        expr.each_selector(&mut |selector| selectors.push(selector));
        let touches = |labels: &Labels| {
            let passes = |m: &Matcher| m.matches(labels.get(&m.name).unwrap_or(""));
            selectors.iter().any(|s| s.matchers.iter().all(passes))
        };
        if self.started.iter().any(touches) {
            return Some(START_TIMESTAMPS);
        }
        let printed = expr.to_string();
        let extended = printed.contains(" anchored") || printed.contains(" smoothed");
        (extended && self.native.iter().any(touches)).then_some(EXTENDED_NATIVE)
    }
}

/// Compares an outcome; gives it back where it was a value.
fn judge(
    eval: &Eval,
    outcome: Result<QueryOutcome, QueryError>,
    moments: (Millis, Millis, Millis),
) -> Result<Option<QueryOutcome>, String> {
    match outcome {
        Err(error) => failed(eval, &message(&error)).map(|()| None),
        Ok(_) if eval.expect.fail.is_some() => Err("expected an error, got none".to_owned()),
        Ok(outcome) => {
            compare::notes(&eval.expect, &outcome)?;
            compare::value(&eval.expect, &outcome.value, moments)?;
            Ok(Some(outcome))
        }
    }
}

fn failed(eval: &Eval, message: &str) -> Verdict {
    match &eval.expect.fail {
        Some(want) if want.accepts(message) => Ok(()),
        Some(want) => Err(format!("expected error {want}, got: {message}")),
        None => Err(format!("error: {message}")),
    }
}

/// An error's first line: the drawing of the place below is for people.
fn message(error: &QueryError) -> String {
    error.to_string().lines().next().unwrap_or("").to_owned()
}

/// Moments far from and near to the one of a query.
fn other_moments(at: Millis) -> Vec<Millis> {
    if at == 0 {
        vec![-1000, 0, 1000]
    } else {
        vec![-10 * at, 0, at / 5, at, 10 * at]
    }
}
