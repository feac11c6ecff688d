//! How long typical dashboard queries take over a synthetic store in memory:
//! 1,000 counters and 1,000 gauges of a day at 15 s, 1,000 steps, and 10,000 series for instant queries.
//!
//! `cargo run --release -p promql --example query_speed [THREADS] [FILTER]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Column, Deadline, Labels, Millis, QueryEngine};
use promql::testscript::MemStore;
use promql::{Engine, EngineOptions};

const SERIES: usize = 1000;
const SAMPLES: i64 = 5760;
const STEP: Millis = 15_000;

fn store() -> MemStore {
    let mut random = fastrand::Rng::with_seed(1);
    let store = MemStore::new();
    for i in 0..SERIES {
        let (job, instance) = (format!("job-{}", i % 10), format!("host-{i}"));
        let labels =
            |name: &'static str| Labels::from_pairs([("__name__", name), ("job", &job), ("instance", &instance)]);
        let (mut counter, mut gauge) = (Column::default(), Column::default());
        let mut count = 0.0;
        for s in 0..SAMPLES {
            count = if random.u16(..) < 8 {
                0.0
            } else {
                count + random.f64() * 100.0
            };
            counter.push(s * STEP, count);
            gauge.push(s * STEP, (random.f64() * 1000.0).round());
        }
        store.add_column(&labels("requests_total"), &counter);
        store.add_column(&labels("temperature"), &gauge);
    }
    for i in 0..10_000 {
        let instance = format!("host-{}", i / 10);
        let le = ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "+Inf"][i % 10];
        let labels = Labels::from_pairs([("__name__", "latency_bucket"), ("instance", &instance), ("le", le)]);
        for s in 0..40 {
            store.add(
                &labels,
                (SAMPLES - 40 + s) * STEP,
                (s * (i as i64 % 10 + 1) * 10) as f64,
            );
        }
    }
    store
}

fn main() {
    let mut args = std::env::args().skip(1);
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    let filter = args.next().unwrap_or_default();
    let options = EngineOptions {
        threads,
        ..EngineOptions::default()
    };
    let engine = Engine::new(Arc::new(store()), options);
    let end = (SAMPLES - 1) * STEP;
    let step = end / 1000 / 1000 * 1000;
    for query in [
        "temperature",
        "sum by (job) (rate(requests_total[5m]))",
        "sum by (job) (rate(requests_total[1h]))",
        "sum(temperature)",
        "avg by (job) (temperature)",
        "max by (instance) (temperature) > 500",
        "topk(5, temperature)",
        "quantile(0.9, temperature)",
        "avg_over_time(temperature[1h])",
        "max_over_time(temperature[1h])",
        "quantile_over_time(0.9, temperature[1h])",
        "stddev_over_time(temperature[1h])",
        "deriv(temperature[1h])",
        "temperature * on (instance) requests_total",
        "temperature and on (instance) (requests_total > 100)",
        "max_over_time(rate(requests_total[5m])[30m:1m])",
        "increase(requests_total[1d])",
    ] {
        if query.contains(filter.as_str()) {
            time(query, || engine.range(query, 86_400, end, step, &Deadline::never()));
        }
    }
    for query in [
        "latency_bucket",
        "sum by (le) (rate(latency_bucket[5m]))",
        "histogram_quantile(0.9, sum by (le) (rate(latency_bucket[5m])))",
        "histogram_quantile(0.9, rate(latency_bucket[5m]))",
        "count by (job) (temperature > 500)",
    ] {
        if query.contains(filter.as_str()) {
            time(query, || engine.instant(query, end, &Deadline::never()));
        }
    }
}

/// Prints the best of a few runs.
fn time(query: &str, run: impl Fn() -> Result<model::QueryOutcome, model::QueryError>) {
    let mut best = Duration::MAX;
    let mut read = 0;
    for _ in 0..5 {
        let start = Instant::now();
        match run() {
            Ok(outcome) => read = outcome.samples_read,
            Err(error) => {
                println!("{query}: {error}");
                return;
            }
        }
        best = best.min(start.elapsed());
    }
    let per_sample = best.as_nanos() as f64 / read.max(1) as f64;
    println!(
        "{:9.3} ms {read:9} samples {per_sample:6.2} ns/sample  {query}",
        best.as_secs_f64() * 1e3
    );
}
