//! A range query must give at each step what an instant query gives there: windows that slide, values
//! that are repeated and series that are merged agree with looking at one moment alone.

use std::sync::Arc;

use model::{Deadline, Labels, Millis, QueryEngine, Value};
use promql::testscript::MemStore;
use promql::{Engine, EngineOptions};

/// Series with gaps, resets, NaN, infinities, staleness markers and uneven distances.
fn store() -> Arc<MemStore> {
    let mut random = fastrand::Rng::with_seed(11);
    let store = MemStore::new();
    for name in ["a_total", "b_total", "c"] {
        for job in ["x", "y"] {
            for instance in ["1", "2", "3"] {
                let labels = Labels::from_pairs([("__name__", name), ("job", job), ("instance", instance)]);
                let mut value = 0.0;
                let mut time: Millis = random.i64(0..40_000);
                for _ in 0..400 {
                    time += if random.u8(..) < 8 {
                        random.i64(0..900_000)
                    } else {
                        14_000 + random.i64(0..2000)
                    };
                    value = match random.u8(..) {
                        0..4 => 0.0,
                        4..6 if name == "c" => f64::NAN,
                        6..8 if name == "c" => f64::INFINITY,
                        _ if name == "c" => random.f64() * 1e3 - 500.0,
                        _ => {
                            if value.is_finite() {
                                value + f64::from(random.u8(..))
                            } else {
                                0.0
                            }
                        }
                    };
                    let stale = random.u8(..) < 3;
                    store.add(&labels, time, if stale { model::stale_nan() } else { value });
                }
            }
        }
    }
    for (le, share) in [("0.1", 0.2), ("1", 0.5), ("10", 0.9), ("+Inf", 1.0)] {
        let labels = Labels::from_pairs([("__name__", "h_bucket"), ("job", "x"), ("le", le)]);
        for i in 0..400_i32 {
            store.add(&labels, i64::from(i) * 15_000, (f64::from(i) * 10.0 * share).floor());
        }
    }
    Arc::new(store)
}

fn engine(threads: usize) -> Engine {
    let options = EngineOptions {
        experimental: true,
        threads,
        ..EngineOptions::default()
    };
    Engine::new(store(), options)
}

type Cells = Vec<(String, Millis, f64)>;

fn in_range(engine: &Engine, query: &str, (start, end, step): (Millis, Millis, Millis)) -> Result<Cells, String> {
    let outcome = engine
        .range(query, start, end, step, &Deadline::never())
        .map_err(|e| e.to_string())?;
    let Value::Matrix(series) = outcome.value else {
        return Err("not a matrix".into());
    };
    let mut cells: Cells = Vec::new();
    for (labels, column) in series {
        cells.extend(column.iter().map(|s| (labels.to_string(), s.time, s.value)));
    }
    cells.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    Ok(cells)
}

fn one_by_one(engine: &Engine, query: &str, (start, end, step): (Millis, Millis, Millis)) -> Result<Cells, String> {
    let mut cells: Cells = Vec::new();
    let mut time = start;
    while time <= end {
        let outcome = engine
            .instant(query, time, &Deadline::never())
            .map_err(|e| e.to_string())?;
        match outcome.value {
            Value::Vector(series) => {
                cells.extend(
                    series
                        .into_iter()
                        .map(|(labels, s)| (labels.to_string(), time, s.value)),
                );
            }
            Value::Scalar(s) => cells.push(("{}".into(), time, s.value)),
            other => return Err(format!("{} is no vector", other.type_name())),
        }
        time += step;
    }
    cells.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    Ok(cells)
}

#[track_caller]
fn check(engine: &Engine, query: &str) {
    for range in [
        (0, 5_000_000, 60_000),
        (1_000_000, 3_000_000, 7_000),
        (500_000, 6_000_000, 1_800_000),
    ] {
        let (got, want) = (in_range(engine, query, range), one_by_one(engine, query, range));
        let (got, want) = match (got, want) {
            (Ok(got), Ok(want)) => (got, want),
            (got, want) => panic!("{query}: {got:?} {want:?}"),
        };
        let places = |cells: &Cells| cells.iter().map(|(l, t, _)| (l.clone(), *t)).collect::<Vec<_>>();
        assert_eq!(places(&got), places(&want), "{query} over {range:?}");
        for ((labels, time, a), (_, _, b)) in got.iter().zip(&want) {
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
            assert!(
                same,
                "{query} over {range:?}: {labels} at {time}: {a} in range, {b} alone"
            );
        }
    }
}

const RANGE_FUNCTIONS: &[&str] = &[
    "rate",
    "increase",
    "delta",
    "irate",
    "idelta",
    "sum_over_time",
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "last_over_time",
    "first_over_time",
    "present_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "changes",
    "resets",
    "deriv",
    "mad_over_time",
    "ts_of_min_over_time",
    "ts_of_max_over_time",
    "ts_of_first_over_time",
    "ts_of_last_over_time",
    "absent_over_time",
];

#[test]
fn windows_slide_as_if_each_were_looked_at_alone() {
    let engine = engine(1);
    for function in RANGE_FUNCTIONS {
        for selector in ["a_total", "c"] {
            for range in ["1m", "5m", "1h", "10m:1m", "1h:7s"] {
                check(&engine, &format!("{function}({selector}[{range}])"));
            }
        }
        check(&engine, &format!("{function}(c{{job=\"x\"}}[10m] offset 3m)"));
        check(&engine, &format!("{function}(a_total[10m] offset -3m)"));
    }
    for query in [
        "quantile_over_time(0.9, c[10m])",
        "predict_linear(a_total[10m], 3600)",
        "double_exponential_smoothing(a_total[10m], 0.3, 0.4)",
        "rate(a_total[10m] @ 3000)",
        "predict_linear(a_total[10m] @ 3000, 60)",
        "rate(a_total[5m] anchored)",
        "increase(a_total[5m] smoothed)",
        "max_over_time(rate(a_total[5m])[30m:])",
        "sum_over_time((c @ 2000)[10m:1m])",
    ] {
        check(&engine, query);
    }
}

#[test]
fn operators_agree_step_by_step() {
    let engine = engine(4);
    for query in [
        "c",
        "c offset 1m",
        "-c",
        "c > 0",
        "0 < bool c",
        "c + on (job, instance) a_total",
        "a_total / on (job) group_left sum by (job) (b_total)",
        "sum by (job) (b_total) * on (job) group_right a_total",
        "a_total and on (instance) (c > 0)",
        "a_total or c",
        "a_total unless on (job, instance) (c > 100)",
        "sum(c)",
        "avg by (job) (a_total)",
        "min without (instance) (c)",
        "max(c)",
        "count by (job) (c)",
        "stddev(a_total)",
        "quantile(0.5, a_total)",
        "group by (job) (c)",
        "topk(2, a_total)",
        "bottomk by (job) (1, c)",
        "limitk(3, c)",
        "count_values(\"v\", changes(c[3m]))",
        "absent(c{instance=\"1\", job=\"x\"})",
        "scalar(a_total{job=\"x\", instance=\"1\"})",
        "vector(time())",
        "timestamp(c)",
        "hour(timestamp(c))",
        "minute()",
        "round(c, 7)",
        "clamp(c, -5, 5)",
        "label_replace(c, \"z\", \"$1-x\", \"instance\", \"(.*)\")",
        "label_join(c, \"z\", \"/\", \"job\", \"instance\")",
        "histogram_quantile(0.9, rate(h_bucket[5m]))",
        "histogram_fraction(0, 2, rate(h_bucket[5m]))",
        "histogram_quantile(scalar(c{job=\"x\",instance=\"1\"}) % 1, h_bucket)",
        "sum(rate({__name__=~\"a_total\"}[5m])) by (job) > bool on (job) sum by (job) (c)",
        "c @ 2500 + on (job, instance) a_total",
        "sort(c)",
        "1 + 2 * 3",
        "time() % 7",
    ] {
        check(&engine, query);
    }
}

#[test]
fn threads_change_nothing() {
    let (one, many) = (engine(1), engine(8));
    let store = MemStore::new();
    let mut random = fastrand::Rng::with_seed(5);
    for i in 0..500 {
        let labels = Labels::from_pairs([("__name__", "x_total"), ("i", i.to_string().as_str())]);
        (0..100).for_each(|s| {
            store.add(&labels, s * 15_000, random.f64());
        });
    }
    let store = Arc::new(store);
    let on = |engine: &Engine| Engine::new(store.clone(), engine.options().clone());
    for query in [
        "sum(rate(x_total[5m]))",
        "x_total",
        "topk(3, avg_over_time(x_total[5m]))",
    ] {
        let ask = |engine: &Engine| engine.range(query, 0, 1_500_000, 15_000, &Deadline::never());
        assert_eq!(ask(&on(&one)), ask(&on(&many)), "{query}");
    }
}

/// The deepest expressions the parser lets through fit the stack of an ordinary thread.
#[test]
fn deep_expressions_are_answered() {
    let engine = engine(1);
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    let mut answered = 0;
    for depth in [50, 100, 140, 145, 149, 290, 295, 298, 299] {
        for query in [
            nested("abs(", "c", ")", depth),
            nested("(", "c", ")", depth),
            nested("-", "c", "", depth),
            nested("sum by (job) (", "c", ")", depth),
            nested("max_over_time((", "c", ")[1m:1m])", depth),
            nested("label_replace(", "c", ", \"a\", \"$1\", \"job\", \"(.*)\")", depth),
            nested("c + on (job, instance) ", "c", "", depth),
            nested("", "c", " + on (job, instance) c", depth),
            nested("histogram_quantile(0.5, ", "h_bucket", ")", depth),
            nested("vector(scalar(", "c", "))", depth / 2),
        ] {
            answered += usize::from(engine.range(&query, 0, 600_000, 300_000, &Deadline::never()).is_ok());
        }
    }
    assert!(answered > 40, "{answered}");
}
