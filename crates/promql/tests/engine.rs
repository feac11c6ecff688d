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
                query processing would load too many samples into memory in query execution: more than 20 values (limits.query_samples)
            "#]],
        );
        check(small(1_000_000), query, &expect!["fine\n"]);
    }
}

#[test]
fn every_bound_is_named_with_its_key() {
    let options = EngineOptions {
        series_max: 1,
        ..EngineOptions::default()
    };
    check(
        options.clone(),
        "up",
        &expect![[r#"
            query selects more than 1 series (limits.query_series)
        "#]],
    );
    check(options, "x_total", &expect!["fine\n"]);
    let options = EngineOptions {
        bytes_max: 500,
        ..EngineOptions::default()
    };
    check(
        options,
        "up",
        &expect![[r#"
            query needs more than 500 bytes of memory (limits.query_memory)
        "#]],
    );
}

#[test]
fn samples_are_counted_by_step_where_asked() {
    let deadline = Deadline::never();
    deadline.meter().want_steps();
    let engine = engine(EngineOptions::default());
    engine
        .range("rate(x_total[1m]) + on () x_total", 60_000, 180_000, 60_000, &deadline)
        .expect("an answer");
    assert_eq!(deadline.meter().steps(), [(60_000, 7), (120_000, 7), (180_000, 7)]);
    assert!(deadline.meter().read() > 0 && deadline.meter().peak() > 0);
}

#[test]
fn questions_beside_queries_end_in_time() {
    let engine = engine(EngineOptions::default());
    let canceled = Deadline::never();
    canceled.cancel();
    assert_eq!(engine.series(&[Vec::new()], 0, 1, &canceled), Err(QueryError::Canceled));
    assert_eq!(engine.label_names(&[], 0, 1, &canceled), Err(QueryError::Canceled));
    assert_eq!(
        engine.label_values("job", &[], 0, 1, &canceled),
        Err(QueryError::Canceled)
    );
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
        .series(
            &[named("up"), named("up"), named("x_total")],
            0,
            1_000_000,
            &Deadline::never(),
        )
        .expect("memory");
    assert_eq!(series.len(), 3);
    assert_eq!(
        engine.label_values(
            "job",
            &[named("up"), named("x_total")],
            0,
            1_000_000,
            &Deadline::never()
        ),
        Ok(vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(
        engine.label_names(&[], 0, 1_000_000, &Deadline::never()),
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

/// Runs what a worker of the server does to a query, on a stack as small as a worker's.
#[track_caller]
fn check_chain(text: String, want: f64) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let expr = promql::parse(&text).expect("a chain is not deep");
        let printed = expr.to_string();
        let again = promql::parse(&printed).expect("what is printed parses");
        assert_eq!(again.to_string(), printed);
        let wrapped = promql::pretty::pretty(&expr);
        let unspaced = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(unspaced(&wrapped), unspaced(&printed));
        assert!(expr.clone() == expr, "a copy is the same");
        let engine = engine(EngineOptions::default());
        match engine.instant(&text, 0, &Deadline::never()).expect("an answer").value {
            Value::Scalar(sample) => sample.value,
            Value::Vector(series) => series[0].1.value,
            other => panic!("neither scalar nor vector: {other:?}"),
        }
    });
    assert_eq!(thread.expect("a thread").join().expect("no overflow"), want);
}

#[test]
fn a_long_chain_of_operators_is_not_deep() {
    check_chain("1+".repeat(9_999) + "1", 10_000.0);
    check_chain("up or ".repeat(2_000) + "up", 0.0);
    check_chain("up + 1 * 2 - ".repeat(3_000) + "up", 6_000.0);
    check_chain("sum(".to_owned() + &"up + ".repeat(2_000) + "1)", 2.0);
}

#[test]
fn chains_in_the_deepest_nesting_fit_a_small_stack() {
    check_chain(
        "(1 + 1 + ".repeat(148) + "1" + &" + 1)".repeat(148),
        2.0 * 148.0 + 1.0 + 148.0,
    );
    check_chain("abs(1 + 1 + ".repeat(10) + "up" + &" + 1)".repeat(10), 30.0);
}
