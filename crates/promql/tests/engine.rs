//! The engine's limits and refusals, and the questions beside queries.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use model::store::Selection;
use model::{
    Column, Deadline, Labels, MatchOp, Matcher, Millis, QueryEngine, QueryError, Queryable, StoreError, StoredSeries,
    Value,
};
use promql::testscript::MemStore;
use promql::{Engine, EngineOptions};

fn engine(options: EngineOptions) -> Engine {
    let store = MemStore::new();
    for (name, job) in [("up", "a"), ("up", "b"), ("x_total", "a")] {
        let labels = Labels::from_pairs([("__name__", name), ("job", job)]);
        for i in 0..100 {
            store.add(&labels, i * 10_000, i as f64);
        }
    }
    Engine::new(Arc::new(store), options)
}

#[track_caller]
fn check(options: EngineOptions, query: &str, want: &Expect) {
    let error = engine(options).range(query, 0, 600_000, 60_000, &Deadline::never());
    want.assert_eq(&error.map_or_else(|e| format!("{e}\n"), |_| "fine\n".to_owned()));
}

#[test]
fn experimental_parts_are_refused_as_prometheus_refuses_them() {
    let plain = EngineOptions::default;
    check(
        plain(),
        "sum(mad_over_time(up[5m]))",
        &expect![[r#"
            1:5: parse error: function "mad_over_time" is not enabled
              sum(mad_over_time(up[5m]))
                  ^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check(
        plain(),
        "limitk(1, up)",
        &expect![[r#"
            1:1: parse error: limitk() is experimental and must be enabled with --enable-feature=promql-experimental-functions
              limitk(1, up)
              ^^^^^^^^^^^^^
        "#]],
    );
    check(
        plain(),
        "rate(x_total[5m] anchored)",
        &expect![[r#"
            1:6: parse error: anchored modifier is experimental and not enabled
              rate(x_total[5m] anchored)
                   ^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    let experimental = EngineOptions {
        experimental: true,
        ..plain()
    };
    check(experimental, "limitk(1, up)", &expect!["fine\n"]);
}

#[test]
fn a_range_query_gives_vectors_and_scalars_only() {
    check(
        EngineOptions::default(),
        "up[5m]",
        &expect![[r#"
            invalid expression type "range vector" for range query, must be Scalar or instant Vector
        "#]],
    );
    check(EngineOptions::default(), "1", &expect!["fine\n"]);
}

#[test]
fn durations_that_cannot_be_are_refused() {
    check(
        EngineOptions::default(),
        "rate(x_total[5m - 10m])",
        &expect![[r#"
            13:21: duration must be greater than 0
              rate(x_total[5m - 10m])
                           ^^^^^^^^
        "#]],
    );
}

#[test]
fn a_query_over_its_limit_of_values_ends() {
    let small = |samples_max| EngineOptions {
        samples_max,
        ..EngineOptions::default()
    };
    for query in ["up", "sum(rate(up[10m]))", "max_over_time(up[1d:1s])", "up @ 100"] {
        check(
            small(20),
            query,
            &expect![[r#"
                query processing would load too many samples into memory in query execution
            "#]],
        );
        check(small(1_000_000), query, &expect!["fine\n"]);
    }
}

#[test]
fn a_query_ends_in_time() {
    let engine = engine(EngineOptions::default());
    let canceled = Deadline::never();
    canceled.cancel();
    assert_eq!(engine.instant("up", 0, &canceled), Err(QueryError::Canceled));
    let no_time = EngineOptions {
        timeout: Duration::ZERO,
        ..EngineOptions::default()
    };
    let engine = Engine::new(Arc::new(MemStore::new()), no_time);
    assert_eq!(engine.instant("up", 0, &Deadline::never()), Err(QueryError::Timeout));
}

#[test]
fn series_and_labels_are_told_once() {
    let engine = engine(EngineOptions::default());
    let named = |name: &str| vec![Matcher::new(MatchOp::Equal, "__name__", name).expect("no pattern")];
    let series = engine
        .series(&[named("up"), named("up"), named("x_total")], 0, 1_000_000)
        .expect("memory");
    assert_eq!(series.len(), 3);
    assert_eq!(
        engine.label_values("job", &[named("up"), named("x_total")], 0, 1_000_000),
        Ok(vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(
        engine.label_names(&[], 0, 1_000_000),
        Ok(vec!["__name__".to_owned(), "job".to_owned()])
    );
}

#[test]
fn an_answer_tells_how_many_samples_were_read() {
    let engine = engine(EngineOptions::default());
    let outcome = engine
        .range("x_total", 0, 600_000, 60_000, &Deadline::never())
        .expect("an answer");
    assert_eq!(outcome.samples_read, 61);
    let Value::Matrix(series) = outcome.value else {
        panic!("a range query gives a matrix");
    };
    assert_eq!(series[0].1.len(), 11);
}

/// A store of `count` series that each gives a sample at 0 and then fails.
struct Failing {
    count: usize,
    error: StoreError,
}

struct FailingSeries(Labels, StoreError);

impl StoredSeries for FailingSeries {
    fn labels(&self) -> &Labels {
        &self.0
    }

    fn read(&self, _: Millis, _: Millis, into: &mut Column) -> Result<(), StoreError> {
        into.push(0, 1.0);
        Err(self.1.clone())
    }
}

impl Queryable for Failing {
    fn select(&self, _: &[Matcher], _: Millis, _: Millis) -> Result<Selection, StoreError> {
        let one = |i: usize| {
            let labels = Labels::from_pairs([("__name__", "up"), ("gpu", &format!("{i:04}"))]);
            Arc::new(FailingSeries(labels, self.error.clone())) as Arc<dyn StoredSeries>
        };
        Ok(Selection {
            series: (0..self.count).map(one).collect(),
            warnings: Vec::new(),
        })
    }

    fn label_names(&self, _: &[Matcher], _: Millis, _: Millis) -> Result<Vec<String>, StoreError> {
        Err(self.error.clone())
    }

    fn label_values(&self, _: &str, _: &[Matcher], _: Millis, _: Millis) -> Result<Vec<String>, StoreError> {
        Err(self.error.clone())
    }
}

fn failing(count: usize, error: StoreError) -> Engine {
    Engine::new(Arc::new(Failing { count, error }), EngineOptions::default())
}

#[test]
fn a_damaged_chunk_costs_its_samples_and_is_told_once() {
    let engine = failing(2, StoreError::Damaged("chunks/000001: offset 8".to_owned()));
    let outcome = engine.instant("sum(up + up + max_over_time(up[5m]))", 0, &Deadline::never());
    let outcome = outcome.expect("what can be read is answered");
    assert!(matches!(&outcome.value, Value::Vector(v) if v[0].1.value == 6.0));
    assert_eq!(
        outcome.warnings,
        [0, 1].map(|i| {
            format!(
                "samples of {{__name__=\"up\", gpu=\"000{i}\"}} are missing, their data is damaged: chunks/000001: offset 8"
            )
        })
    );
}

#[test]
fn a_damaged_block_does_not_drown_the_answer() {
    let engine = failing(1000, StoreError::Damaged("offset 8".to_owned()));
    let outcome = engine.instant("count(up)", 0, &Deadline::never()).expect("an answer");
    assert_eq!(outcome.warnings.len(), 21);
}

#[test]
fn a_disk_that_fails_fails_the_query() {
    let engine = failing(1, StoreError::Io("input/output error".to_owned()));
    assert!(engine.instant("up", 0, &Deadline::never()).is_err());
}
