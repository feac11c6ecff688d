//! What a fuzzer throws queries at: parser, printer and engine over a store with floats, histograms, gaps and
//! values that are no numbers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Deadline, Labels, Millis, QueryEngine as _, QueryError};

use super::mem::MemStore;
use super::notation::{Point, parse_series};
use super::run::script_options;
use crate::{Engine, EngineOptions};

/// Queries to begin with.
pub const SEEDS: &[&str] = &[
    "x",
    "x{job=\"a\",le=~\"0.*\"}",
    "sum by (job) (rate(x_total[5m]))",
    "histogram_quantile(0.9, sum by (le) (rate(lat_bucket[5m])))",
    "histogram_fraction(0, 1, h) or h </ 1",
    "avg(h) - ignoring(job) group_left h",
    "increase(h[10m:3m])",
    "topk(3, x) + on (job) group_right (le) lat_bucket",
    "label_replace(x, \"a\", \"$1\", \"job\", \"(.*)\")",
    "quantile_over_time(0.5, x[1h] offset 5m @ end())",
    "predict_linear(x[5m], 3600) > bool 2",
    "count_values(\"v\", {__name__=~\".+\"})",
    "absent(nothing) unless vector(1)",
    "-x ^ 2 % 3 atan2 4",
    "max_over_time(rate(x_total[5m])[30m:1m])",
    "sum_over_time(h[5m]) / 0",
    "rate(x_total[5m] smoothed)",
    "double_exponential_smoothing(x[5m], 0.5, 0.5)",
    "info(x, {a=\"b\"})",
    "x offset -5m and x == bool 1",
    "stddev(h) by (job)",
    "histogram_quantiles(lat_bucket, \"q\", 0.1, 0.9)",
    "sort_by_label(x, \"job\")",
];

/// Pieces of the language.
pub const WORDS: &[&str] = &[
    " by (job) ",
    "[5m]",
    "[1h:]",
    " offset 1m",
    " @ start()",
    " or ",
    "(",
    ")",
    "{",
    "}",
    "\"",
    "'",
    "`",
    " >/ ",
    "NaN",
    "-Inf",
    "0x1p",
    "1e309",
    "\\u00ff",
    "5m",
    "9223372036854775807",
    ",",
    " bool ",
    " ignoring() ",
    "__name__",
    "h",
    " anchored",
    "step()",
    "#",
];

/// What a query is put into; `$` is the query.
pub const WRAPS: &[&str] = &[
    "sum($)",
    "($)",
    "-($)",
    "rate(($)[5m:30s])",
    "abs($)",
    "topk(2, $)",
    "$ + $",
    "histogram_count($)",
    "$ and $",
    "vector(scalar($))",
    "timestamp($)",
    "avg_over_time(($)[10m:1m])",
    "histogram_quantile(0.5, $)",
    "sort($)",
];

/// Parser, printer and engine.
#[derive(Debug)]
pub struct Target {
    engine: Engine,
}

impl Default for Target {
    fn default() -> Self {
        Self::new()
    }
}

impl Target {
    /// With a store of its own.
    #[must_use]
    pub fn new() -> Self {
        let store = MemStore::new();
        let lines = [
            "x{job=\"a\"} 1 2 _ NaN 5 stale 7 Inf -Inf 10",
            "x{job=\"b\"} -1+2x20",
            "x_total{job=\"a\"} 0+5x9 0+7x9",
            "lat_bucket{job=\"a\",le=\"0.1\"} 0+1x20",
            "lat_bucket{job=\"a\",le=\"1\"} 0+3x20",
            "lat_bucket{job=\"a\",le=\"+Inf\"} 0+2x20",
            "h{job=\"a\"} {{schema:1 count:4 sum:5 z_bucket:1 z_bucket_w:0.01 buckets:[1 2]}}+{{schema:1 count:1 buckets:[1]}}x9",
            "h{job=\"b\"} {{count:1 buckets:[1] counter_reset_hint:gauge}} 5 _ {{schema:-53 custom_values:[1 2] count:3 buckets:[1 1 1]}}x5",
            "h{job=\"c\"} {{schema:-53 custom_values:[1 3] count:3 sum:NaN buckets:[1 1 1]}}x9",
        ];
        for line in lines {
            let Ok(line) = parse_series(line) else { continue };
            add(&store, &line.labels, &line.points);
        }
        let options = EngineOptions {
            samples_max: 200_000,
            ..script_options()
        };
        Self {
            engine: Engine::new(Arc::new(store), options),
        }
    }

    /// Tries a query; tells whether it parses.
    ///
    /// # Errors
    ///
    /// What is wrong: an internal error, or a printed form that is not the same query.
    pub fn try_query(&self, text: &str) -> Result<bool, String> {
        let Ok(expr) = crate::parse(text) else { return Ok(false) };
        let printed = expr.to_string();
        match crate::parse(&printed) {
            Err(error) => return Err(format!("printed as {printed:?}, which does not parse: {error}")),
            // An infinity is printed with a sign, as upstream does it, and under a power that sign reads as one of
            // its own.
            Ok(again) if again.to_string() != printed && !printed.contains("+Inf") => {
                return Err(format!("printed as {printed:?}, then as {:?}", again.to_string()));
            }
            Ok(_) => {}
        }
        drop(crate::pretty::pretty(&expr));
        let deadline = || Deadline::at(Instant::now() + Duration::from_secs(2));
        for time in [0, 300_000, Millis::MAX] {
            self.judge(&self.engine.instant_expr(text, &expr, time, &deadline()))?;
        }
        for (start, end, step) in [(0, 1_200_000, 60_000), (-60_000, 60_000, 7_777)] {
            self.judge(&self.engine.range_expr(text, &expr, (start, end, step), &deadline()))?;
        }
        Ok(true)
    }

    #[expect(clippy::unused_self, reason = "reads like a question to the target")]
    fn judge(&self, outcome: &Result<model::QueryOutcome, QueryError>) -> Result<(), String> {
        match outcome {
            Err(QueryError::Internal(what)) => Err(format!("internal error: {what}")),
            _ => Ok(()),
        }
    }

    /// Answers as the engine does; for the tests of the target itself.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    pub fn ask(&self, text: &str) -> Result<model::QueryOutcome, QueryError> {
        self.engine.instant(text, 300_000, &Deadline::never())
    }
}

fn add(store: &MemStore, labels: &Labels, points: &[Point]) {
    for (time, point) in (0..).step_by(60_000).zip(points) {
        match point {
            Point::Absent => {}
            Point::Float(value) => drop(store.add(labels, time, *value)),
            Point::Histogram { histogram, .. } => drop(store.add_histogram(labels, time, histogram)),
        }
    }
}
