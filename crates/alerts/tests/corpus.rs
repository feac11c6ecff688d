//! The published corpora: routes, times and the timing of messages are Alertmanager's.
//!
//! The corpora lie beside the repository (`WATCHFIRE_CORPORA` names another place); without them these
//! tests say so and pass.

use std::fs;
use std::path::{Path, PathBuf};

use alerts::interval::holds;
use alerts::route::Routes;
use config::alertmanager::{Config, GroupBy, Interval, Route, TimeRange};
use config::yaml;
use model::Millis;
use model::labels::Labels;
use model::time::parse_duration;
use serde_json::Value;

fn corpora() -> Option<PathBuf> {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    let folder = root.join("alertmanager");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no corpora at {}", folder.display());
    None
}

fn jsonl(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the table is readable");
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    lines
        .map(|l| serde_json::from_str(l).expect("a line of the table is JSON"))
        .collect()
}

/// Counts a corpus and fails at the end with every case that went wrong.
#[derive(Default)]
struct Tally {
    passed: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn case(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.wrong.push(format!("{name}: {why}")),
        }
    }

    #[track_caller]
    fn close(self, corpus: &str) {
        let total = self.passed + self.wrong.len();
        println!("{corpus}: {} / {total} passed, 0 skipped", self.passed);
        assert!(self.wrong.is_empty(), "{corpus}:\n{}", self.wrong.join("\n"));
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a case reads better with its value than with a reference"
)]
fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Result<(), String> {
    if got == want {
        Ok(())
    } else {
        Err(format!("got {got:?}, want {want:?}"))
    }
}

fn label_set(value: &Value) -> Labels {
    let pairs = value.as_object().expect("labels are an object");
    Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str().expect("a text"))))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A setting of the table in the form of ours; `default` is what the root has.
fn describe(route: &Route, root: &Route, want: &Value) -> (Value, Value) {
    let span = |key: &str, own: Millis, default: Millis| {
        let wanted = match text(&want[key]) {
            "default" => default,
            written => parse_duration(written).expect("a duration of the table"),
        };
        (own, wanted)
    };
    let group_by = match &route.group_by {
        GroupBy::All => Value::from("all"),
        by if *by == root.group_by => Value::from("default"),
        GroupBy::Labels(names) => Value::from(names.clone()),
    };
    let spans = [
        span("group_wait", route.group_wait, root.group_wait),
        span("group_interval", route.group_interval, root.group_interval),
        span("repeat_interval", route.repeat_interval, root.repeat_interval),
    ];
    let own: Vec<Millis> = spans.iter().map(|s| s.0).collect();
    let wanted: Vec<Millis> = spans.iter().map(|s| s.1).collect();
    (
        serde_json::json!([route.receiver, group_by, own]),
        serde_json::json!([want["receiver"], want["group_by"], wanted]),
    )
}

#[test]
fn alerts_take_the_published_routes() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    for case in jsonl(&folder.join("tables/routes.jsonl")) {
        let node = yaml::parse(text(&case["route_yaml"])).expect("valid YAML");
        let root = Route::read_root(&node).expect("a route");
        let routes = Routes::new(&root);
        for alert in case["alerts"].as_array().expect("a list") {
            let labels = label_set(&alert["labels"]);
            let found = routes.matching(&labels);
            let keys: Vec<&str> = found.iter().map(|at| routes.get(*at).key.as_str()).collect();
            let wanted: Vec<&str> = alert["group_keys"]
                .as_array()
                .expect("a list")
                .iter()
                .map(text)
                .collect();
            let name = format!("{} {labels}", case["case"]);
            tally.case(&format!("{name} keys"), equal(keys, wanted));
            let wanted = alert["routes"].as_array().expect("a list");
            let described: Vec<_> = found
                .iter()
                .zip(wanted)
                .map(|(at, want)| describe(&routes.get(*at).route, &root, want))
                .collect();
            let (own, want): (Vec<_>, Vec<_>) = described.into_iter().unzip();
            tally.case(&name, equal((found.len(), own), (wanted.len(), want)));
        }
    }
    tally.close("alertmanager/tables/routes.jsonl (keys and settings counted)");

    let mut tally = Tally::default();
    for case in jsonl(&folder.join("tables/routing-cli.jsonl")) {
        let config = Config::load(&folder.join(text(&case["config"]))).expect("a configuration");
        let routes = Routes::new(&config.route);
        let labels = label_set(&case["labels"]);
        let found = routes.matching(&labels).into_iter();
        let receivers: Vec<String> = found.map(|at| routes.get(at).route.receiver.clone()).collect();
        let wanted: Vec<String> = case["receivers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|v| text(v).to_owned())
            .collect();
        tally.case(&labels.to_string(), equal(receivers, wanted));
    }
    tally.close("alertmanager/tables/routing-cli.jsonl");
}

/// `08 Jul 20 09:00 +0000` in milliseconds since the epoch.
fn moment(text: &str) -> Millis {
    let zoned = jiff::fmt::strtime::parse("%d %b %y %H:%M %z", text).expect("a moment of the table");
    zoned.to_timestamp().expect("a moment of the table").as_millisecond()
}

#[test]
fn moments_lie_in_the_published_intervals() {
    let Some(folder) = corpora() else { return };
    let mut tally = Tally::default();
    for case in jsonl(&folder.join("tables/time-intervals.jsonl")) {
        let name = case.to_string();
        let ok = case["ok"].as_bool().expect("a flag");
        if let Some(range) = case.get("time_range_yaml") {
            let node = yaml::parse(text(range)).expect("valid YAML");
            let got = node
                .read::<TimeRange>()
                .ok()
                .map(|r| (i64::from(r.start), i64::from(r.end)));
            let minutes = &case["minutes"];
            let want = ok.then(|| (minutes["StartMinute"].as_i64(), minutes["EndMinute"].as_i64()));
            let want = want.map(|(start, end)| (start.expect("minutes"), end.expect("minutes")));
            tally.case(&name, equal(got, want));
            continue;
        }
        let read = yaml::parse(text(&case["yaml"])).and_then(|node| node.read::<Vec<Interval>>());
        let intervals = match read {
            Ok(intervals) if ok => intervals,
            Ok(_) => {
                tally.case(&name, Err("accepted".to_owned()));
                continue;
            }
            Err(fault) => {
                let result = if ok {
                    Err(fault.message)
                } else {
                    equal(fault.message.as_str(), text(&case["error"]))
                };
                tally.case(&name, result);
                continue;
            }
        };
        for (key, want) in [("contains", true), ("excludes", false)] {
            for at in case[key].as_array().expect("a list") {
                let held = intervals.iter().any(|part| holds(part, moment(text(at))));
                tally.case(&format!("{name} {at}"), equal(held, want));
            }
        }
    }
    tally.close("alertmanager/tables/time-intervals.jsonl (moments counted)");
}
