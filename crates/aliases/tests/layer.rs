//! The same numbers whichever name is asked for and whichever is stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aliases::{Aliased, Table};
use exposition::{Entry, Format, Reader};
use model::{Deadline, Labels, Millis, QueryEngine as _, Queryable, Value, stale_nan};
use promql::testscript::MemStore;
use promql::testscript::notation::parse_metric;
use promql::{Engine, EngineOptions};

const NOW: Millis = 600_000;

fn table() -> Table {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let read = |file: &str| std::fs::read_to_string(data.join(file)).expect("a table");
    let mut table = Table::default();
    table
        .add_gpu_fields("gpu_fields.yml", &read("gpu_fields.yml"))
        .expect("valid");
    table.add_aliases("aliases.yml", &read("aliases.yml")).expect("valid");
    table
}

fn engine(store: &Arc<MemStore>) -> Engine {
    let layer = Aliased::new(Arc::clone(store) as Arc<dyn Queryable>, Arc::new(table()));
    Engine::new(Arc::new(layer), EngineOptions::default())
}

/// The answer to an instant query: labels less the name, and values.
fn ask(engine: &Engine, query: &str) -> Vec<(Labels, f64)> {
    let outcome = engine.instant(query, NOW, &Deadline::never());
    match outcome.unwrap_or_else(|e| panic!("{query}: {e}")).value {
        Value::Vector(list) => {
            let mut list: Vec<_> = list.into_iter().map(|(l, s)| (l.drop_name(), s.value)).collect();
            list.sort_by(|a, b| a.0.cmp(&b.0));
            list
        }
        Value::Scalar(sample) => vec![(Labels::empty(), sample.value)],
        other => panic!("{query}: {other:?}"),
    }
}

#[track_caller]
fn check(stored: &[(&str, f64)], query: &str, want: &[(&str, f64)]) {
    let store = Arc::new(MemStore::new());
    for (series, value) in stored {
        store.add(&parse_metric(series).expect("a series"), NOW, *value);
    }
    let got = ask(&engine(&store), query);
    let mut want: Vec<(Labels, f64)> = want
        .iter()
        .map(|(l, v)| (parse_metric(l).expect("labels"), *v))
        .collect();
    want.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(got, want, "{query}");
}

#[test]
fn either_name_gives_the_numbers_of_its_unit_and_its_labels() {
    let old = ("DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",Hostname=\"h\"}", 1980.0);
    let new = ("DCGM_FI_DEV_SM_CLOCK_HERTZ{gpu=\"0\",hostname=\"h\"}", 1.98e9);
    check(
        &[old],
        "DCGM_FI_DEV_SM_CLOCK_HERTZ",
        &[("{gpu=\"0\",hostname=\"h\"}", 1.98e9)],
    );
    check(
        &[new],
        "DCGM_FI_DEV_SM_CLOCK",
        &[("{gpu=\"0\",Hostname=\"h\"}", 1980.0)],
    );
    check(
        &[new],
        "DCGM_FI_DEV_SM_CLOCK{Hostname=~\"h.*\"}",
        &[("{gpu=\"0\",Hostname=\"h\"}", 1980.0)],
    );
    check(&[new], "DCGM_FI_DEV_SM_CLOCK{Hostname=\"other\"}", &[]);
    check(
        &[new],
        "sum by (Hostname) (DCGM_FI_DEV_SM_CLOCK)",
        &[("{Hostname=\"h\"}", 1980.0)],
    );
}

#[test]
fn the_native_name_wins_for_the_same_labels() {
    check(
        &[
            ("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"}", 50.0),
            ("DCGM_FI_DEV_GPU_TEMP{gpu=\"1\"}", 51.0),
        ],
        "DCGM_FI_DEV_GPU_TEMP",
        &[("{gpu=\"0\"}", 50.0), ("{gpu=\"1\"}", 51.0)],
    );
    check(
        &[
            ("vllm:num_requests_running{model_name=\"m\"}", 1.0),
            ("num_requests_running{model_name=\"m\"}", 9.0),
            ("num_requests_running{model_name=\"n\"}", 2.0),
        ],
        "vllm:num_requests_running",
        &[("{model_name=\"m\"}", 1.0), ("{model_name=\"n\"}", 2.0)],
    );
}

#[test]
fn a_pattern_of_names_sees_what_is_stored() {
    let stored = ("num_requests_running{a=\"b\"}", 2.0);
    check(&[stored], "{__name__=~\"vllm:num_requests_running\"}", &[]);
    check(
        &[stored],
        "{__name__=\"vllm:num_requests_running\"}",
        &[("{a=\"b\"}", 2.0)],
    );
}

#[test]
fn an_exporter_that_was_replaced_leaves_no_gap() {
    let store = Arc::new(MemStore::new());
    let series = |text: &str| parse_metric(text).expect("a series");
    let (old, new) = (series("vllm:gpu_cache_usage_perc"), series("vllm:kv_cache_usage_perc"));
    for (back, old_value, new_value) in [
        (60, Some(1.0), None),
        (45, Some(2.0), None),
        (30, None, Some(3.0)),
        (15, None, Some(4.0)),
    ] {
        let time = NOW - back * 1000;
        if let Some(value) = old_value {
            store.add(&old, time, value);
        }
        if let Some(value) = new_value {
            store.add(&new, time, value);
        }
        if back == 30 {
            store.add(&old, time, stale_nan());
        }
    }
    for name in ["vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"] {
        assert_eq!(
            ask(&engine(&store), &format!("sum_over_time({name}[2m])"))[0].1,
            10.0,
            "{name}"
        );
        assert_eq!(ask(&engine(&store), name)[0].1, 4.0, "{name}");
    }
}

#[test]
fn a_value_may_have_something_before_it() {
    let smi = ("nvidia_smi_temperature_gpu{uuid=\"0-1\"}", 59.0);
    check(
        &[smi],
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-0-1\"}",
        &[("{UUID=\"GPU-0-1\"}", 59.0)],
    );
    check(&[smi], "DCGM_FI_DEV_GPU_TEMP{UUID=\"0-1\"}", &[]);
    let dcgm = ("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-0-1\"}", 50.0);
    check(
        &[dcgm],
        "nvidia_smi_utilization_gpu_ratio{uuid=\"0-1\"}",
        &[("{uuid=\"0-1\"}", 0.5)],
    );
}

fn corpora() -> Option<PathBuf> {
    let told = std::env::var_os("WATCHFIRE_CORPORA").map(PathBuf::from);
    let folder = told.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"));
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no corpora at {}", folder.display());
    None
}

/// The expressions of a dashboard with its variables filled in.
fn expressions(dashboard: &Path) -> Vec<String> {
    fn walk(value: &serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                if let Some(expr) = map.get("expr").and_then(|e| e.as_str()) {
                    out.push(expr.to_owned());
                }
                map.values().for_each(|v| walk(v, out));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|v| walk(v, out)),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(dashboard).expect("a dashboard");
    let mut out = Vec::new();
    walk(&serde_json::from_str(&text).expect("JSON"), &mut out);
    let fill = |expr: String| {
        let mut filled = String::new();
        let mut rest = expr.as_str();
        while let Some(at) = rest.find('$') {
            filled.push_str(&rest[..at]);
            let name = rest[at + 1..].trim_start_matches('{');
            let end = name
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
                .unwrap_or(name.len());
            let is_span = name.starts_with("__") || name.contains("interval") && name.find("interval") < Some(end);
            filled.push_str(if is_span { "5m" } else { ".*" });
            rest = name[end..].trim_start_matches('}');
        }
        filled.push_str(rest);
        filled.replace("=\".*\"", "=~\".*\"")
    };
    out.into_iter().map(fill).collect()
}

fn load(store: &MemStore, page: &Path, rename: &BTreeMap<String, (String, f64)>, labels: &[(&str, &str)]) {
    let text = std::fs::read(page).expect("a page");
    let mut reader = Reader::new(&text, Format::Text);
    while let Some(Entry::Sample(sample)) = next_sample(&mut reader) {
        let own = sample.series.labels().expect("labels");
        let (name, factor) = rename.get(own.name()).cloned().unwrap_or((own.name().to_owned(), 1.0));
        let mut series = own.with("__name__", &name).with("instance", "host:1");
        for (from, to) in labels {
            if let Some(value) = own.get(from) {
                series = series.with(from, "").with(to, value);
            }
        }
        for (back, share) in [(240_000, 0.5), (120_000, 0.75), (0, 1.0)] {
            store.add(&series, NOW - back, sample.value * factor * share);
        }
    }
}

fn next_sample<'a>(reader: &mut Reader<'a>) -> Option<Entry<'a>> {
    loop {
        let entry = reader.next_entry().expect("a page that parses")?;
        if matches!(entry, Entry::Sample(_)) {
            return Some(entry);
        }
    }
}

/// Both generations' names of DCGM's fields: old, then new with its factor.
fn renames() -> BTreeMap<String, (String, f64)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/gpu_fields.yml");
    let text = std::fs::read_to_string(path).expect("the table");
    let mut out = BTreeMap::new();
    for line in text.lines().filter(|l| l.trim_start().starts_with("- { name: ")) {
        let field = |key: &str| {
            let at = line.find(&format!("{key}: "))? + key.len() + 2;
            Some(line[at..].split([',', ' ', '}']).next()?.to_owned())
        };
        let (Some(name), Some(new)) = (field("{ name"), field(" new")) else {
            continue;
        };
        let factor = field(" factor").map_or(1.0, |f| match f.split_once('/') {
            Some((a, b)) => a.parse::<f64>().expect("a number") / b.parse::<f64>().expect("a number"),
            None => f.parse().expect("a number"),
        });
        out.insert(name, (new, factor));
    }
    assert!(out.len() > 20, "{out:?}");
    out
}

#[test]
fn the_gpu_dashboard_gives_equal_values_on_both_generations() {
    let Some(corpora) = corpora() else { return };
    let page = corpora.join("dcgm/pages/default-h100x8.prom");
    let (old, new) = (Arc::new(MemStore::new()), Arc::new(MemStore::new()));
    load(&old, &page, &BTreeMap::new(), &[]);
    let labels = [
        ("Hostname", "hostname"),
        ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    ];
    load(&new, &page, &renames(), &labels);
    let (old, new) = (engine(&old), engine(&new));
    let queries = expressions(&corpora.join("dashboards/12239-dcgm-exporter.json"));
    let mut answered = 0;
    for query in &queries {
        let (a, b) = (ask(&old, query), ask(&new, query));
        same(query, &a, &b);
        answered += usize::from(!a.is_empty());
    }
    println!("12239: {} expressions equal, {answered} with an answer", queries.len());
    assert!(answered > 5);
}

#[track_caller]
fn same(query: &str, a: &[(Labels, f64)], b: &[(Labels, f64)]) {
    let labels = |list: &[(Labels, f64)]| list.iter().map(|(l, _)| l.clone()).collect::<Vec<_>>();
    assert_eq!(labels(a), labels(b), "{query}");
    for ((series, a), (_, b)) in a.iter().zip(b) {
        let close = (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) || (a.is_nan() && b.is_nan());
        assert!(close, "{query}: {series} {a} and {b}");
    }
}

#[test]
fn the_vllm_dashboards_give_equal_values_whatever_the_engine_calls_them() {
    let Some(corpora) = corpora() else { return };
    let folder = corpora.join("inference-metrics");
    let page = folder.join("vllm/v1-2026-02.prom");
    // The same page as each other generation names it.
    let generations: [&[(&str, &str)]; 2] = [
        &[
            ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
            ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        ],
        &[
            ("vllm:kv_cache_usage_perc", "gpu_cache_usage_perc"),
            ("vllm:inter_token_latency_seconds", "time_per_output_token_seconds"),
            ("vllm:num_requests_running", "num_requests_running"),
            ("vllm:num_requests_waiting", "num_requests_waiting"),
            ("vllm:prompt_tokens_total", "prompt_tokens_total"),
            ("vllm:generation_tokens_total", "generation_tokens_total"),
            ("vllm:time_to_first_token_seconds", "time_to_first_token_seconds"),
            ("vllm:e2e_request_latency_seconds", "e2e_request_latency_seconds"),
        ],
    ];
    let present = Arc::new(MemStore::new());
    load(&present, &page, &BTreeMap::new(), &[]);
    let present = engine(&present);
    for names in generations {
        let mut rename = BTreeMap::new();
        for (from, to) in names {
            for suffix in ["", "_bucket", "_sum", "_count"] {
                rename.insert(format!("{from}{suffix}"), (format!("{to}{suffix}"), 1.0));
            }
        }
        let other = Arc::new(MemStore::new());
        load(&other, &page, &rename, &[]);
        let other = engine(&other);
        let (mut total, mut answered) = (0, 0);
        for dashboard in [
            "vllm-grafana.json",
            "vllm-performance-statistics.json",
            "vllm-production-stack.json",
        ] {
            for query in expressions(&corpora.join("dashboards").join(dashboard)) {
                let a = ask(&present, &query);
                same(&query, &a, &ask(&other, &query));
                total += 1;
                answered += usize::from(!a.is_empty());
            }
        }
        println!("vLLM: {total} expressions equal, {answered} with an answer");
        assert!(answered > 10);
    }
}
