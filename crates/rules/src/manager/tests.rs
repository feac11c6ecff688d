//! Rules against a store in memory, with time turned by hand.

use std::fmt::Write as _;

use model::{Labels, Value, is_stale};
use promql::testscript::MemStore;
use promql::testscript::notation::parse_metric;
use promql::{Engine, EngineOptions};

use super::*;
use crate::load::check_text;

type Told = Arc<Mutex<Vec<String>>>;

struct Ear(Told);

impl AlertSink for Ear {
    fn send(&self, _: &LoadedRule, alerts: &[Alert], valid_until: Millis) {
        for alert in alerts {
            let at = alert.last_sent_at.map_or(0, |at| at / 1000);
            let state = if alert.resolved_at.is_some() {
                "resolved"
            } else {
                "fires"
            };
            let since = alert.fired_at.map_or(-1, |at| at / 1000);
            let name = alert.labels.get("gpu").unwrap_or("-");
            lock(&self.0).push(format!(
                "{at}: {name} {state} since {since} until {}",
                valid_until / 1000
            ));
        }
    }
}

/// A hub without its shell: what it stores survives [`Stage::restart`], what it knows does not.
pub(crate) struct Stage {
    pub store: Arc<MemStore>,
    manager: Manager,
    told: Told,
    options: Options,
}

fn groups(text: &str) -> Vec<Arc<LoadedGroup>> {
    let groups = check_text("test.yml", text).expect("the rules are right");
    groups.into_iter().map(Arc::new).collect()
}

/// One group of one alerting rule on `temperature`.
pub(crate) fn hot(more: &str) -> String {
    format!("groups: [{{name: g, rules: [{{alert: Hot, expr: temperature > 80, {more}}}]}}]")
}

impl Stage {
    pub fn new(rules: &str) -> Self {
        Self::on(Arc::new(MemStore::new()), rules, Options::default())
    }

    pub fn on(store: Arc<MemStore>, rules: &str, options: Options) -> Self {
        let engine = Arc::new(Engine::new(store.clone(), EngineOptions::default()));
        let told = Told::default();
        let ear = Arc::new(Ear(Arc::clone(&told)));
        let manager = Manager::new(engine, store.clone(), ear, options.clone());
        manager.apply(&groups(rules), options.clone(), 0);
        Self {
            store,
            manager,
            told,
            options,
        }
    }

    pub fn restart(self, rules: &str) -> Self {
        Self::on(self.store, rules, self.options)
    }

    fn reload(&self, rules: &str, at: Millis) {
        self.manager.apply(&groups(rules), self.options.clone(), at * 1000);
    }

    pub fn set(&self, series: &str, at: Millis, value: f64) {
        let labels = parse_metric(series).expect("a series");
        assert!(self.store.add(&labels, at * 1000, value), "{series} at {at}");
    }

    /// Evaluates at `at` seconds and gives every alert as `gpu state value since`.
    pub fn at(&self, at: Millis) -> String {
        self.manager.run_all(at * 1000);
        self.alerts()
    }

    pub fn alerts(&self) -> String {
        let mut out = Vec::new();
        for group in self.manager.status() {
            for alert in group.rules.iter().flat_map(|r| &r.alerts) {
                let name = alert.labels.get("gpu").unwrap_or("-");
                let (state, value, since) = (alert.state.as_str(), alert.value, alert.active_at / 1000);
                let unknown = if alert.unknown.is_some() { " unknown" } else { "" };
                out.push(format!("{name} {state} {value} {since}{unknown}"));
            }
        }
        out.join("; ")
    }

    /// An event changed a series at `at` milliseconds; gives when to come again.
    fn event(&self, series: &str, at: Millis, value: f64) -> Option<Millis> {
        let labels = parse_metric(series).expect("a series");
        assert!(self.store.add(&labels, at, value), "{series} at {at}");
        self.manager.on_events(&[labels], at)
    }

    /// Why rules cannot tell.
    pub fn unknown(&self) -> String {
        let groups = self.manager.status();
        let reasons = groups.iter().flat_map(|g| &g.rules).flat_map(|r| r.unknown.clone());
        reasons.collect::<Vec<_>>().join("; ")
    }

    /// What was told since the last call.
    pub fn told(&self) -> String {
        std::mem::take(&mut *lock(&self.told)).join("; ")
    }

    fn error(&self) -> String {
        let groups = self.manager.status();
        let errors = groups
            .iter()
            .flat_map(|g| &g.rules)
            .filter_map(|r| r.last_error.clone());
        errors.collect::<Vec<_>>().join("; ")
    }

    /// The samples of a series as `seconds=value`, markers as `stale`.
    #[track_caller]
    pub fn check_series(&self, series: &str, want: &str) {
        let labels: Labels = parse_metric(series).expect("a series");
        let matchers: Vec<model::Matcher> = labels.iter().map(|(n, v)| model::Matcher::equal(n, v)).collect();
        let found = model::Queryable::select(&*self.store, &matchers, Millis::MIN, Millis::MAX).expect("a store");
        let mut out = String::new();
        for stored in found.series.iter().filter(|s| *s.labels() == labels) {
            let mut column = model::Column::default();
            stored.read(Millis::MIN, Millis::MAX, &mut column).expect("readable");
            for sample in column.iter() {
                let value = if is_stale(sample.value) {
                    "stale".into()
                } else {
                    sample.value.to_string()
                };
                write!(out, "{}={value} ", sample.time / 1000).expect("a string takes it");
            }
        }
        assert_eq!(out.trim_end(), want, "{series}");
    }
}

const FIRING: &str = r#"ALERTS{alertname="Hot",alertstate="firing",gpu="3"}"#;
const PENDING: &str = r#"ALERTS{alertname="Hot",alertstate="pending",gpu="3"}"#;
const SINCE: &str = r#"ALERTS_FOR_STATE{alertname="Hot",gpu="3"}"#;

#[test]
fn an_alert_waits_fires_and_is_resolved() {
    let stage = Stage::new(&hot("for: 30s"));
    for at in [0, 15, 30] {
        stage.set("temperature{gpu=\"3\"}", at, 90.0 + at as f64);
    }
    assert_eq!(stage.at(5), "3 pending 90 5");
    assert_eq!(stage.at(20), "3 pending 105 5");
    assert_eq!(stage.told(), "");
    assert_eq!(stage.at(35), "3 firing 120 5");
    assert_eq!(stage.told(), "35: 3 fires since 35 until 275");
    stage.set("temperature{gpu=\"3\"}", 45, 70.0);
    assert_eq!(stage.at(50), "3 inactive 120 5");
    assert_eq!(stage.told(), "50: 3 resolved since 35 until 290");
    stage.check_series(PENDING, "5=1 20=1 35=stale");
    stage.check_series(FIRING, "35=1 50=stale");
    stage.check_series(SINCE, "5=5 20=5 35=5 50=stale");
}

#[test]
fn a_pending_alert_that_ends_is_forgotten_and_waits_anew() {
    let stage = Stage::new(&hot("for: 30s"));
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    stage.set("temperature{gpu=\"3\"}", 15, 70.0);
    stage.set("temperature{gpu=\"3\"}", 30, 91.0);
    assert_eq!(stage.at(0), "3 pending 90 0");
    assert_eq!(stage.at(15), "");
    assert_eq!(stage.at(30), "3 pending 91 30");
    assert_eq!(stage.told(), "");
}

#[test]
fn a_firing_alert_is_told_again_and_a_resolved_one_for_a_quarter_of_an_hour() {
    let stage = Stage::new(&hot("for: 0s"));
    stage.set("temperature", 0, 90.0);
    for at in [0, 30, 60, 75] {
        stage.at(at);
    }
    assert_eq!(
        stage.told(),
        "0: - fires since 0 until 240; 75: - fires since 0 until 315"
    );
    stage.set("temperature", 80, 1.0);
    stage.at(90);
    stage.at(200);
    assert_eq!(
        stage.told(),
        "90: - resolved since 0 until 330; 200: - resolved since 0 until 440"
    );
    assert_eq!(stage.at(90 + 900), "- inactive 90 0");
    assert_eq!(stage.at(90 + 901), "");
}

#[test]
fn a_resolved_alert_that_fires_again_is_news() {
    let stage = Stage::new(&hot("for: 0s"));
    for (at, value) in [(0, 90.0), (15, 1.0), (30, 91.0)] {
        stage.set("temperature", at, value);
        stage.at(at);
    }
    assert_eq!(
        stage.told(),
        "0: - fires since 0 until 240; 15: - resolved since 0 until 255; 30: - fires since 30 until 270"
    );
}

#[test]
fn an_alert_fires_on_for_keep_firing_for() {
    let stage = Stage::new(&hot("keep_firing_for: 30s"));
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    stage.at(0);
    stage.set("temperature{gpu=\"3\"}", 15, 70.0);
    assert_eq!(stage.at(15), "3 firing 90 0");
    assert_eq!(stage.at(30), "3 firing 90 0");
    // Holding once more begins the time anew.
    stage.set("temperature{gpu=\"3\"}", 45, 95.0);
    stage.at(45);
    stage.set("temperature{gpu=\"3\"}", 60, 70.0);
    assert_eq!(stage.at(60), "3 firing 95 0");
    assert_eq!(stage.at(75), "3 firing 95 0");
    assert_eq!(stage.at(90), "3 inactive 95 0");
    stage.check_series(FIRING, "0=1 15=1 30=1 45=1 60=1 75=1 90=stale");
}

#[test]
fn a_limit_that_is_exceeded_drops_the_alerts_and_says_so() {
    let stage = Stage::new(
        "groups: [{name: g, limit: 1, rules: [{alert: Hot, expr: temperature > 80}, {record: r, expr: temperature}]}]",
    );
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    assert_eq!(stage.at(0), "3 firing 90 0");
    stage.set("temperature{gpu=\"4\"}", 15, 90.0);
    assert_eq!(stage.at(15), "");
    assert_eq!(
        stage.error(),
        "exceeded limit of 1 with 2 alerts; exceeded limit of 1 with 2 series"
    );
    // No markers: nobody knows what is true.
    stage.check_series(FIRING, "0=1");
    stage.check_series("r{gpu=\"3\"}", "0=90");
}

#[test]
fn an_offset_moves_the_data_and_not_the_alert() {
    let stage = Stage::new(
        "groups: [{name: g, query_offset: 1m, rules: [{alert: Hot, expr: temperature > 80, for: 30s}, {record: r, expr: temperature}]}]",
    );
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    assert_eq!(stage.at(45), "");
    assert_eq!(stage.at(60), "3 pending 90 60");
    assert_eq!(stage.at(90), "3 firing 90 60");
    assert_eq!(stage.told(), "90: 3 fires since 90 until 330");
    stage.check_series(SINCE, "0=60 30=60");
    stage.check_series("r{gpu=\"3\"}", "0=90 30=90");
}

#[test]
fn later_rules_see_what_earlier_ones_recorded() {
    let stage = Stage::new(
        "groups: [{name: g, rules: [{record: warm, expr: temperature + 1, labels: {a: b}}, {alert: Hot, expr: 'warm{a=\"b\"} > 80'}]}]",
    );
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    assert_eq!(stage.at(0), "3 firing 91 0");
    stage.set("temperature{gpu=\"3\"}", 10, f64::from_bits(model::STALE_NAN_BITS));
    assert_eq!(stage.at(15), "3 inactive 91 0");
    stage.check_series(r#"warm{a="b",gpu="3"}"#, "0=91 15=stale");
}

#[test]
fn a_failing_rule_keeps_its_alerts_and_goes_on_telling_them() {
    let stage = Stage::new(&hot("labels: {gpu: x}"));
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    assert_eq!(stage.at(0), "x firing 90 0");
    stage.told();
    // Two samples become one alert under the rule's labels.
    stage.set("temperature{gpu=\"4\"}", 75, 90.0);
    assert_eq!(stage.at(75), "x firing 90 0");
    assert_eq!(
        stage.error(),
        "vector contains metrics with the same labelset after applying alert labels"
    );
    assert_eq!(stage.told(), "75: x fires since 0 until 315");
    stage.check_series(r#"ALERTS{alertname="Hot",alertstate="firing",gpu="x"}"#, "0=1");
}

#[test]
fn results_that_are_no_numbers_per_series_are_errors() {
    for (expr, want) in [
        ("temperature[1m]", "rule result is a matrix, not a vector or scalar"),
        ("'x'", "rule result is a string, not a vector or scalar"),
    ] {
        let stage = Stage::new(&format!(
            "groups: [{{name: g, rules: [{{record: r, expr: \"{expr}\"}}]}}]"
        ));
        stage.set("temperature", 0, 90.0);
        stage.at(0);
        assert_eq!(stage.error(), want);
    }
    assert_eq!(
        Stage::new("groups: [{name: g, rules: [{alert: A, expr: '7'}]}]").at(3),
        "- firing 7 3"
    );
}

#[test]
fn a_reload_keeps_rules_of_the_same_name_and_labels() {
    let stage = Stage::new(&hot("for: 30s, labels: {a: b}"));
    stage.set("temperature{gpu=\"3\"}", 0, 90.0);
    stage.at(0);
    // Another threshold and another wait: the same rule.
    let changed = "groups: [{name: g, rules: [{record: r, expr: '1'}, {alert: Hot, expr: temperature > 70, for: 15s, labels: {a: b}}]}]";
    stage.reload(changed, 10);
    assert_eq!(stage.alerts(), "3 pending 90 0");
    assert_eq!(stage.at(15), "3 firing 90 0");
    stage.told();
    stage.reload(changed, 20);
    stage.at(30);
    assert_eq!(stage.told(), "");
    // Other labels: another rule, and the old one's series end.
    stage.reload(&hot("for: 30s, labels: {a: c}"), 40);
    assert_eq!(stage.at(45), "3 pending 90 45");
    stage.check_series(
        r#"ALERTS{a="b",alertname="Hot",alertstate="firing",gpu="3"}"#,
        "15=1 30=1 45=stale",
    );
    stage.check_series("r", "15=1 30=1 45=stale");
}

#[test]
fn a_reload_keeps_resolved_alerts_that_are_still_told() {
    let stage = Stage::new(&hot("for: 0s"));
    stage.set("temperature", 0, 90.0);
    stage.at(0);
    stage.set("temperature", 15, 1.0);
    stage.at(15);
    stage.told();
    stage.reload(&hot("for: 0s"), 20);
    stage.at(90);
    assert_eq!(stage.told(), "90: - resolved since 0 until 330");
}

#[test]
fn a_removed_group_ends_its_series_unless_another_writes_them() {
    let record = |group: &str, name: &str| format!("{{name: {group}, rules: [{{record: {name}, expr: temperature}}]}}");
    let stage = Stage::new(&format!("groups: [{}, {}]", record("a", "moved"), record("b", "gone")));
    stage.set("temperature", 0, 5.0);
    stage.at(0);
    stage.reload(&format!("groups: [{}]", record("c", "moved")), 10);
    stage.at(15);
    stage.at(30);
    stage.manager.run_due(39_000);
    stage.check_series("gone", "0=5");
    stage.manager.run_due(40_000);
    stage.check_series("gone", "0=5 40=stale");
    assert_eq!(lock(&stage.manager.endings).len(), 0);
    let found = stage
        .manager
        .engine
        .instant("moved", 40_000, &model::Deadline::never())
        .expect("an answer");
    assert!(
        matches!(found.value, Value::Vector(v) if v.len() == 1),
        "a rule that moved goes on"
    );
}

#[test]
fn evaluations_that_were_left_out_are_counted() {
    let stage = Stage::new(&hot("for: 0s"));
    let slot = |at: Millis| lock(&stage.manager.groups)[0].group.lock().expect("free").slot_at(at);
    let first = slot(100_000);
    assert_eq!(stage.manager.run_due(first + 1), first + 15_000);
    assert_eq!(stage.manager.run_due(first + 14_999), first + 15_000);
    let status = || Arc::clone(&stage.manager.status()[0]);
    assert_eq!((status().missed, status().last_evaluation), (0, Some(first)));
    stage.manager.run_due(first + 15_000);
    stage.manager.run_due(first + 61_000);
    assert_eq!((status().missed, status().last_evaluation), (2, Some(first + 60_000)));
}

#[test]
fn a_clock_set_back_stops_no_rule() {
    let stage = Stage::new(&hot("for: 0s"));
    stage.manager.run_due(10_000_000);
    let next = stage.manager.run_due(1_000_000);
    assert!(next <= 1_015_000, "{next}");
    let last = stage.manager.status()[0].last_evaluation.expect("evaluated");
    assert!((985_000..=1_000_000).contains(&last), "{last}");
    assert_eq!(stage.manager.status()[0].missed, 0);
}

#[test]
fn groups_are_spread_over_their_interval_on_whole_seconds() {
    let names: String = (0..40).map(|i| format!("{{name: g{i}, rules: []}},")).collect();
    let stage = Stage::new(&format!("groups: [{names}]"));
    let seats = lock(&stage.manager.groups).clone();
    let slots: std::collections::BTreeSet<Millis> = seats
        .iter()
        .map(|s| lock(&s.group).slot_at(1_000_000) % 15_000)
        .collect();
    assert!(slots.len() > 8, "{slots:?}");
    assert!(slots.iter().all(|slot| slot % 1000 == 0), "{slots:?}");
}

#[test]
fn an_event_is_told_when_it_arrives() {
    let stage = Stage::new(
        "groups: [{name: g, rules: [{alert: A, expr: 'increase(xid[10m]) > 0'}, {alert: B, expr: 'xid > 0', for: 1m}]}]",
    );
    let series = r#"xid{gpu="3"}"#;
    stage.set(series, 0, 0.0);
    assert_eq!(stage.at(0), "");
    assert_eq!(stage.event(series, 7_300, 1.0), None);
    assert_eq!(stage.told(), "7: 3 fires since 7 until 247");
    // Only the rule without a wait was evaluated.
    assert_eq!(stage.alerts().matches("firing").count(), 1);
    assert!(!stage.alerts().contains("pending"), "{}", stage.alerts());
    assert!(stage.at(15).contains("pending"));
}

#[test]
fn events_in_a_row_wait_for_a_second() {
    let stage = Stage::new("groups: [{name: g, rules: [{alert: A, expr: 'xid > 0'}]}]");
    let (one, two) = (r#"xid{gpu="1"}"#, r#"xid{gpu="2"}"#);
    assert_eq!(stage.event(one, 5_000, 1.0), None);
    assert_eq!(stage.told(), "5: 1 fires since 5 until 245");
    assert_eq!(stage.event(two, 5_200, 1.0), Some(6_000));
    assert_eq!(stage.told(), "");
    assert_eq!(stage.manager.on_events(&[], 6_000), None);
    assert_eq!(stage.told(), "6: 2 fires since 6 until 246");
    assert_eq!(stage.manager.on_events(&[], 6_000), None);
}
