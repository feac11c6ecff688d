//! The engine: answers PromQL over any [`Queryable`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::text::caret;
use model::{
    Deadline, Labels, Matcher, Millis, QueryEngine, QueryError, QueryOutcome, Queryable, Sample, StoreError, Value,
};

use crate::ast::Expr;
use crate::error::Problem;
use crate::eval::{
    Budget, Evaluator, Grid, LookedAt, Notes, Operand, Series, column_of, is_present, store_error, too_many,
    too_many_series,
};
use crate::function::ValueType;
use crate::plan::{self, Kind, Node, Query, Refusal};

/// How an engine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// How old a sample may be to stand for the present, in milliseconds; five minutes.
    pub lookback: Millis,
    /// The step of a subquery that names none, in milliseconds; the evaluation interval, one minute.
    pub subquery_step: Millis,
    /// The most values a query may hold in memory at a time; a value takes eight bytes, a histogram counts for
    /// its buckets. Fifty millions.
    pub samples_max: usize,
    /// The most memory that values and labels of a query may take at a time, in bytes. One gibibyte.
    pub bytes_max: usize,
    /// The most series a query may select altogether. Five millions.
    pub series_max: usize,
    /// The longest a query may take; two minutes.
    pub timeout: Duration,
    /// Whether experimental functions, aggregations and modifiers are allowed; no.
    pub experimental: bool,
    /// Whether a metric's name is removed at the end of a query only, so that `by (__name__)` still sees
    /// it after a function; no.
    pub delayed_name_removal: bool,
    /// The most threads a query may use; one.
    pub threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            lookback: 300_000,
            subquery_step: 60_000,
            samples_max: 50_000_000,
            bytes_max: 1 << 30,
            series_max: 5_000_000,
            timeout: Duration::from_secs(120),
            experimental: false,
            delayed_name_removal: false,
            threads: 1,
        }
    }
}

/// Answers PromQL over a store. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    storage: Arc<dyn Queryable>,
    options: EngineOptions,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over `storage`.
    #[must_use]
    pub fn new(storage: Arc<dyn Queryable>, options: EngineOptions) -> Self {
        Self { storage, options }
    }

    /// How the engine answers.
    #[must_use]
    pub const fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The value at `time` of an expression already parsed from `text`.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    pub fn instant_expr(
        &self,
        text: &str,
        expr: &Expr,
        time: Millis,
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError> {
        let query = Query {
            start: time,
            end: time,
            step: 0,
        };
        self.run(
            text,
            expr,
            query,
            Grid::instant(time),
            deadline,
            |evaluator, node, grid| {
                if let Kind::Ranged(ranged) = &node.kind {
                    let mut series = evaluator.matrix(ranged, grid)?;
                    series.sort_by(|a, b| a.0.cmp(&b.0));
                    return Ok(Value::Matrix(series));
                }
                Ok(match evaluator.query(node, grid)? {
                    Operand::Scalar(scalar) => Value::Scalar(Sample::float(time, scalar.at(0))),
                    Operand::Text(text) => Value::Text(time, text),
                    Operand::Vector(series) => {
                        Value::Vector(series.into_iter().filter_map(|s| sample_of(s, time)).collect())
                    }
                })
            },
        )
    }

    /// The values over a range of an expression already parsed from `text`.
    ///
    /// # Errors
    ///
    /// See [`QueryError`].
    pub fn range_expr(
        &self,
        text: &str,
        expr: &Expr,
        (start, end, step): (Millis, Millis, Millis),
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError> {
        if step <= 0 {
            return Err(QueryError::BadData(
                "zero or negative query resolution step widths are not accepted. Try a positive integer".to_owned(),
            ));
        }
        let kind = expr.value_type();
        if !matches!(kind, ValueType::Scalar | ValueType::Vector) {
            return Err(QueryError::BadData(format!(
                "invalid expression type {:?} for range query, must be Scalar or instant Vector",
                kind.documented()
            )));
        }
        let grid =
            Grid::new(start, end, step, self.options.samples_max).ok_or_else(|| too_many(self.options.samples_max))?;
        let query = Query { start, end, step };
        self.run(text, expr, query, grid, deadline, |evaluator, node, grid| {
            if grid.len == 0 {
                return Ok(Value::Matrix(Vec::new()));
            }
            let series = match evaluator.query(node, grid)? {
                Operand::Vector(series) => series,
                Operand::Scalar(scalar) => {
                    let values = (0..grid.len).map(|i| scalar.at(i)).collect();
                    vec![Series::new(Labels::empty(), values)]
                }
                Operand::Text(_) => Vec::new(),
            };
            let mut columns: Vec<_> = series.into_iter().map(|s| column_of(s, grid)).collect();
            columns.retain(|(_, column)| !column.is_empty());
            let unsorted = Instant::now();
            columns.sort_by(|a, b| a.0.cmp(&b.0));
            deadline.meter().note_sorted(unsorted.elapsed());
            Ok(Value::Matrix(columns))
        })
    }

    fn run(
        &self,
        text: &str,
        expr: &Expr,
        query: Query,
        grid: Grid,
        deadline: &Deadline,
        answer: impl FnOnce(&Evaluator<'_>, &Node, Grid) -> Result<Value, QueryError>,
    ) -> Result<QueryOutcome, QueryError> {
        // How long a query may take counts from when it starts.
        let started = Instant::now();
        let node = plan::build(expr, query, &self.options).map_err(|refusal| refused(text, refusal))?;
        let meter = deadline.meter();
        meter.note_prepared(started.elapsed());
        let own = started
            .checked_add(self.options.timeout)
            .map_or_else(Deadline::never, Deadline::at);
        let evaluator = Evaluator {
            storage: &*self.storage,
            text,
            lookback: self.options.lookback,
            delayed_names: self.options.delayed_name_removal,
            threads: self.options.threads.max(1),
            budget: Budget::new(&self.options, [deadline, &own]),
            looked_at: meter.wants_steps().then(|| LookedAt::new(grid)),
            notes: Mutex::new(Notes::default()),
            store_warnings: Mutex::new(Vec::new()),
        };
        let planned = Instant::now();
        let answered = answer(&evaluator, &node, grid);
        meter.note_evaluated(planned.elapsed());
        meter.count_read(evaluator.budget.samples_read());
        meter.note_held(evaluator.budget.peak());
        if let Some(looked_at) = &evaluator.looked_at {
            meter.note_steps(looked_at.by_step());
        }
        let value = answered?;
        let samples_read = evaluator.budget.samples_read();
        let notes = evaluator.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut warnings, infos) = notes.render(text);
        warnings.extend(
            evaluator
                .store_warnings
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        );
        Ok(QueryOutcome {
            value,
            warnings,
            infos,
            samples_read,
        })
    }
}

impl QueryEngine for Engine {
    fn instant(&self, expr: &str, time: Millis, deadline: &Deadline) -> Result<QueryOutcome, QueryError> {
        let parsed = parse(expr)?;
        self.instant_expr(expr, &parsed, time, deadline)
    }

    fn range(
        &self,
        expr: &str,
        start: Millis,
        end: Millis,
        step: Millis,
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError> {
        let parsed = parse(expr)?;
        self.range_expr(expr, &parsed, (start, end, step), deadline)
    }

    fn series(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<Labels>, QueryError> {
        let mut all = Vec::new();
        for matchers in selectors {
            deadline.check()?;
            let selection = self.storage.select(matchers, start, end).map_err(store_error)?;
            if all.len() + selection.series.len() > self.options.series_max {
                return Err(too_many_series(self.options.series_max));
            }
            for series in selection.series.chunks(4096) {
                deadline.check()?;
                all.extend(series.iter().map(|s| s.labels().clone()));
            }
        }
        deadline.check()?;
        all.sort();
        all.dedup();
        Ok(all)
    }

    fn label_names(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        union(selectors, deadline, |matchers| {
            self.storage.label_names(matchers, start, end)
        })
    }

    fn label_values(
        &self,
        name: &str,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        union(selectors, deadline, |matchers| {
            self.storage.label_values(name, matchers, start, end)
        })
    }
}

/// Asks once per selector, or once for everything, and joins the answers.
fn union(
    selectors: &[Vec<Matcher>],
    deadline: &Deadline,
    ask: impl Fn(&[Matcher]) -> Result<Vec<String>, StoreError>,
) -> Result<Vec<String>, QueryError> {
    deadline.check()?;
    if selectors.is_empty() {
        return ask(&[]).map_err(store_error);
    }
    let mut all = Vec::new();
    for matchers in selectors {
        deadline.check()?;
        all.extend(ask(matchers).map_err(store_error)?);
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn parse(text: &str) -> Result<Expr, QueryError> {
    crate::parse(text).map_err(|error| QueryError::BadData(error.render(text)))
}

/// A refusal with its place, as if the parser had refused where Prometheus' parser would.
fn refused(text: &str, refusal: Refusal) -> QueryError {
    let drawn = caret(text, refusal.span);
    QueryError::BadData(if refusal.is_syntax {
        format!("{}\n{drawn}", Problem::new(text, refusal.span, refusal.message))
    } else {
        format!("{}\n{drawn}", refusal.message)
    })
}

fn sample_of(series: Series, time: Millis) -> Option<(Labels, Sample)> {
    if let Some(histogram) = series.native(0) {
        let sample = Sample::native(time, Arc::clone(histogram));
        return Some((series.labels, sample));
    }
    let value = *series.values.first()?;
    is_present(value).then_some((series.labels, Sample::float(time, value)))
}
