//! Windows of samples, and the functions over them.

use model::text::Span;
use model::{Kind, METRIC_NAME, Millis};
use promql::ast::{DurationExpr, DurationKind, Expr, ExprKind};

use super::{Found, Judge};
use crate::interval::Interval;
use crate::line::{Line, Text};
use crate::verdict::Reason;

/// The step of a subquery that names none.
const SUBQUERY_STEP: Millis = 60_000;

/// The shortest interval between samples that is taken as possible where nobody told it.
const SHORTEST_INTERVAL: Millis = 1_000;

/// Ends of names that are counted up whatever the exporter calls their type.
const COUNTED: &[&str] = &[
    "_total",
    "_count",
    "_sum",
    "_bucket",
    "_COUNTER",
    "_TOTAL",
    "_errors",
    "_events",
    "_restarts",
    "_created",
];

/// A window over series.
pub(super) struct Window {
    pub found: Found,
    /// Its length, where it is a plain number.
    pub range: Option<Millis>,
    /// The time between two samples.
    pub step: Millis,
    /// Whether the samples are those of a metric, as scraped.
    pub raw: bool,
}

impl Judge<'_> {
    /// The window that an expression with `[…]` at its end gives.
    pub(super) fn window(&self, expr: &Expr) -> Window {
        match &expr.kind {
            ExprKind::Matrix { selector, range, .. } => Window {
                found: self.selector(selector, expr.span),
                range: literal(range),
                step: self.step_of(&selector.name),
                raw: true,
            },
            ExprKind::Subquery(subquery) => Window {
                found: self.vector(&subquery.expr),
                range: literal(&subquery.range),
                step: subquery.step.as_ref().and_then(literal).unwrap_or(SUBQUERY_STEP),
                raw: matches!(subquery.expr.kind, ExprKind::Vector(_)),
            },
            ExprKind::Paren(inner) => self.window(inner),
            _ => Window {
                found: self.vector(expr),
                range: None,
                step: self.interval(),
                raw: false,
            },
        }
    }

    /// How far the samples of a metric are apart.
    fn step_of(&self, name: &str) -> Millis {
        let recorded = self
            .recorded
            .get(name)
            .into_iter()
            .flatten()
            .filter_map(|r| r.interval)
            .max();
        recorded.unwrap_or_else(|| self.interval())
    }

    /// A function over a window.
    pub(super) fn over_window(&self, function: &str, arg: &Expr, span: Span) -> Found {
        let Window {
            mut found,
            range,
            step,
            raw,
        } = self.window(arg);
        let needs_two = matches!(
            function,
            "rate"
                | "irate"
                | "increase"
                | "delta"
                | "idelta"
                | "deriv"
                | "predict_linear"
                | "double_exponential_smoothing"
        );
        if needs_two
            && let Some(range) = range
            && range < 2 * step
            && !found.lines.is_empty()
        {
            let seconds = step as f64 / 1000.0;
            let told = if self.evidence.interval.is_some() {
                ""
            } else {
                " (the default; nothing here tells it)"
            };
            found.lines.clear();
            found.causes.insert(
                0,
                Reason::at(
                    arg.span,
                    "window_too_short",
                    format!(
                        "{function}() needs two samples, and a window of {}s holds fewer than two scrapes {seconds}s apart{told}",
                        range as f64 / 1000.0
                    ),
                    format!("make the window at least {}s", 4.0 * seconds),
                ),
            );
            return found;
        }
        if raw {
            self.check_type(function, &mut found, arg.span, span);
        }
        let lines = std::mem::take(&mut found.lines);
        let samples = range.map(|range| {
            let step = if self.evidence.interval.is_some() || !raw {
                step
            } else {
                SHORTEST_INTERVAL
            };
            (range / step.max(1) + 2) as f64
        });
        found.lines = lines
            .into_iter()
            .map(|line| self.windowed(function, line, range, samples))
            .collect();
        found
    }

    /// Rates of gauges, differences of counters.
    fn check_type(&self, function: &str, found: &mut Found, at: Span, call: Span) {
        let is_rate = matches!(function, "rate" | "irate" | "increase");
        let is_difference = matches!(function, "delta" | "idelta" | "deriv" | "predict_linear");
        if !is_rate && !is_difference {
            return;
        }
        let mut gauges = Vec::new();
        let mut kept = Vec::new();
        for line in std::mem::take(&mut found.lines) {
            let Some(Text::Is(name)) = line.label(METRIC_NAME) else {
                kept.push(line);
                continue;
            };
            // A recorded series has a type only by its name.
            let kind = if self.recorded.contains_key(name) {
                None
            } else {
                self.kind(name)
            };
            let is_counted = COUNTED.iter().any(|end| name.ends_with(end));
            if is_rate && kind == Some(Kind::Gauge) && !is_counted {
                if let Some(why) = &line.constant {
                    found.blame(Reason::at(
                        at,
                        "constant_series",
                        format!("`{name}` never changes: {why}; {function}() of it is always 0"),
                        constant_mend(name),
                    ));
                }
                gauges.push(name.clone());
                continue;
            }
            if is_difference && kind == Some(Kind::Counter) {
                found.note(Reason::at(
                    call,
                    "difference_of_counter",
                    format!("{function}() of the counter `{name}` takes a restart for a fall"),
                    if function == "delta" || function == "idelta" {
                        format!("use {}()", if function == "delta" { "increase" } else { "irate" })
                    } else {
                        "take rate() of the counter first".to_owned()
                    },
                ));
            }
            kept.push(line);
        }
        gauges.sort();
        gauges.dedup();
        for name in gauges {
            let is_moment =
                name.ends_with("_time_seconds") || name.ends_with("_timestamp_seconds") || name.ends_with("_timestamp");
            let (why, mend) = if is_moment {
                let why = "a moment in time, not a count: its rate says how far the clock moved between two restarts";
                (
                    why,
                    format!("use changes({name}[…]) to count restarts, or time() - {name} for an age"),
                )
            } else {
                let why = "every fall counts as a restart at zero, so the result is no rate";
                let other = if function == "increase" { "delta" } else { "deriv" };
                (why, format!("compare the value itself, or use {other}()"))
            };
            found.blame(Reason::at(
                call,
                "rate_of_gauge",
                format!("{function}() of the gauge `{name}`: {why}"),
                mend,
            ));
        }
        found.lines = kept;
    }

    /// A series after a function over its window.
    fn windowed(&self, function: &str, line: Line, range: Option<Millis>, samples: Option<f64>) -> Line {
        let seconds = range.map_or(f64::INFINITY, |ms| ms as f64 / 1000.0);
        let values = line.range;
        let (constant, whole, bound, core) = (line.constant.clone(), line.whole, line.bound.clone(), line.core.clone());
        let is_constant = constant.is_some();
        let rate_max = match (&line.core, line.label(METRIC_NAME)) {
            (Some(core), _) => self.facts.metric(&core.metric).and_then(|fact| fact.rate_max),
            _ => None,
        };
        let why = line.why.clone();
        let changed = |range: Interval| if is_constant { Interval::one(0.0) } else { range };
        let mut out = line;
        let new = match function {
            "rate" | "irate" => changed(rate_max.map_or(Interval::POSITIVE, |max| Interval::new(0.0, max))),
            "increase" => changed(rate_max.map_or(Interval::POSITIVE, |max| Interval::new(0.0, max * seconds))),
            "delta" | "idelta" if values.width().is_finite() => {
                // Extrapolation to the ends of the window may add a little.
                changed(Interval::new(-1.2 * values.width(), 1.2 * values.width()))
            }
            "delta" | "idelta" | "deriv" => changed(Interval::ALL),
            "changes" | "resets" => changed(Interval::new(0.0, samples.unwrap_or(f64::INFINITY))),
            "count_over_time" => Interval::new(1.0, samples.unwrap_or(f64::INFINITY)),
            "present_over_time" => Interval::one(1.0),
            "min_over_time" | "max_over_time" | "avg_over_time" | "last_over_time" | "first_over_time"
            | "quantile_over_time" => values,
            "sum_over_time" if values.lo >= 0.0 => Interval::new(0.0, values.hi * samples.unwrap_or(f64::INFINITY)),
            "stddev_over_time" | "mad_over_time" => changed(Interval::new(0.0, values.width())),
            "stdvar_over_time" => changed(Interval::POSITIVE),
            "ts_of_min_over_time" | "ts_of_max_over_time" | "ts_of_last_over_time" | "ts_of_first_over_time" => {
                Interval::POSITIVE
            }
            _ => Interval::ALL,
        };
        let keeps_name = matches!(function, "last_over_time" | "first_over_time");
        let name = out.label(METRIC_NAME).cloned();
        out = out.valued(new);
        match function {
            "min_over_time" | "max_over_time" | "last_over_time" | "first_over_time" | "avg_over_time" => {
                out.whole = whole && function != "avg_over_time";
                out.why = why;
                out.constant = constant;
            }
            "changes" | "resets" | "delta" | "idelta" | "deriv" | "stddev_over_time" => {
                out.why.clone_from(&constant);
                out.constant = constant;
            }
            "rate" | "irate" | "increase" => {
                out.why = match (&constant, rate_max) {
                    (Some(_), _) => constant.clone(),
                    (None, Some(max)) => Some(format!("it grows by {max} a second at most")),
                    (None, None) => Some("a rate, never below 0".to_owned()),
                };
                out.constant = constant;
                let kind = if function == "increase" { "increase" } else { "rate" };
                out.bound = bound.map(|(metric, factor)| (format!("{kind}:{metric}"), factor));
                out.core = core.map(|mut core| {
                    core.metric = format!("{kind}:{}", core.metric);
                    core.text = format!("{function}({})[{range:?}]", core.text);
                    core
                });
            }
            _ => {}
        }
        if keeps_name {
            out.set(METRIC_NAME, name);
        }
        out
    }
}

/// The length of a window that is written as a number.
fn literal(duration: &DurationExpr) -> Option<Millis> {
    match &duration.kind {
        DurationKind::Literal { millis, .. } => Some(*millis),
        DurationKind::Paren(inner) => literal(inner),
        _ => None,
    }
}

fn constant_mend(name: &str) -> String {
    if name.contains("XID") {
        "count XIDs from the kernel log: increase(watchfire_gpu_xid_errors_total[…]) > 0".to_owned()
    } else {
        "compare the value, or count series by the label".to_owned()
    }
}
