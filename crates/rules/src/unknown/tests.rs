//! Machines that die while an alert fires, with time turned by hand.

use model::{Millis, stale_nan};

use crate::manager::tests::{Stage, hot};

const UP: &str = r#"up{job="dcgm", instance="a"}"#;
const HEAT: &str = r#"temperature{job="dcgm", instance="a", gpu="0"}"#;

/// A script of seconds: what is set, then what the alerts are.
struct Play(Stage);

impl Play {
    fn of(more: &str) -> Self {
        Self(Stage::new(&hot(more)))
    }

    fn rules(text: &str) -> Self {
        Self(Stage::new(text))
    }

    fn set(self, series: &str, at: Millis, value: f64) -> Self {
        self.0.set(series, at, value);
        self
    }

    /// The target answers with a temperature.
    fn scrape(self, at: Millis, heat: f64) -> Self {
        self.set(UP, at, 1.0).set(HEAT, at, heat)
    }

    /// The target does not answer.
    fn fail(self, at: Millis) -> Self {
        self.set(UP, at, 0.0).set(HEAT, at, stale_nan())
    }

    #[track_caller]
    fn gives(self, at: Millis, want: &str) -> Self {
        assert_eq!(self.0.at(at), want, "at {at}");
        self
    }
}

#[test]
fn a_firing_alert_outlives_its_target() {
    Play::of("for: 0s")
        .scrape(0, 90.0)
        .gives(0, "0 firing 90 0")
        .fail(15)
        .gives(15, "0 firing 90 0 unknown")
        .gives(300, "0 firing 90 0 unknown")
        .fail(301)
        .gives(315, "0 firing 90 0 unknown")
        .scrape(330, 91.0)
        .gives(330, "0 firing 91 0")
        .scrape(345, 20.0)
        .gives(345, "0 inactive 91 0");
}

#[test]
fn a_target_that_comes_back_healthy_resolves_at_once() {
    Play::of("for: 0s")
        .scrape(0, 90.0)
        .gives(0, "0 firing 90 0")
        .fail(15)
        .gives(15, "0 firing 90 0 unknown")
        .scrape(30, 20.0)
        .gives(30, "0 inactive 90 0");
}

#[test]
fn a_pending_alert_waits_and_does_not_ripen_in_the_dark() {
    Play::of("for: 1m")
        .scrape(0, 90.0)
        .gives(0, "0 pending 90 0")
        .fail(15)
        .gives(15, "0 pending 90 0 unknown")
        .gives(90, "0 pending 90 0 unknown")
        .scrape(105, 90.0)
        .gives(105, "0 firing 90 0");
}

#[test]
fn a_target_that_left_the_configuration_resolves() {
    Play::of("for: 0s")
        .scrape(0, 90.0)
        .gives(0, "0 firing 90 0")
        .set(UP, 15, stale_nan())
        .set(HEAT, 15, stale_nan())
        .gives(15, "0 inactive 90 0");
}

#[test]
fn a_group_may_ask_for_prometheus_way() {
    let rules = "groups: [{name: g, on_missing: resolve, rules: [{alert: Hot, expr: temperature > 80}]}]";
    Play::rules(rules)
        .scrape(0, 90.0)
        .gives(0, "0 firing 90 0")
        .fail(15)
        .gives(15, "0 inactive 90 0");
}

#[test]
fn a_collector_that_dies_holds_what_it_fed() {
    let collector = r#"watchfire_collector_up{job="dcgm", instance="a", collector="gpu"}"#;
    Play::of("for: 0s")
        .scrape(0, 90.0)
        .set(collector, 0, 1.0)
        .gives(0, "0 firing 90 0")
        .set(UP, 15, 1.0)
        .set(collector, 15, 0.0)
        .set(HEAT, 15, stale_nan())
        .gives(15, "0 firing 90 0 unknown")
        .scrape(30, 20.0)
        .gives(30, "0 inactive 90 0");
}

#[test]
fn a_collector_that_was_down_before_is_not_to_blame() {
    let collector = r#"watchfire_collector_up{job="dcgm", instance="a", collector="ipmi"}"#;
    Play::of("for: 0s")
        .set(collector, 0, 0.0)
        .scrape(0, 90.0)
        .gives(0, "0 firing 90 0")
        .set(HEAT, 15, stale_nan())
        .gives(15, "0 inactive 90 0");
}

#[test]
fn another_machine_that_dies_changes_nothing() {
    let other = r#"up{job="dcgm", instance="b"}"#;
    Play::of("for: 0s")
        .scrape(0, 90.0)
        .set(other, 0, 1.0)
        .gives(0, "0 firing 90 0")
        .set(other, 15, 0.0)
        .scrape(15, 20.0)
        .gives(15, "0 inactive 90 0");
}

#[test]
fn a_sum_over_fewer_machines_does_not_resolve() {
    let rules = "groups: [{name: g, rules: [{alert: Busy, expr: sum(load) > 10}]}]";
    let load = |host: &str| format!("load{{job=\"node\", instance=\"{host}\"}}");
    let up = |host: &str| format!("up{{job=\"node\", instance=\"{host}\"}}");
    Play::rules(rules)
        .set(&load("a"), 0, 6.0)
        .set(&load("b"), 0, 6.0)
        .set(&up("a"), 0, 1.0)
        .set(&up("b"), 0, 1.0)
        .gives(0, "- firing 12 0")
        .set(&up("b"), 15, 0.0)
        .set(&load("b"), 15, stale_nan())
        .gives(15, "- firing 12 0 unknown");
}

#[test]
fn a_window_with_a_gap_is_waited_for() {
    let rules = "groups: [{name: g, rules: [{alert: Errors, expr: 'rate(errors[30s]) > 0'}]}]";
    let errors = r#"errors{job="dcgm", instance="a", gpu="0"}"#;
    Play::rules(rules)
        .set(UP, 0, 1.0)
        .set(errors, 0, 0.0)
        .set(UP, 15, 1.0)
        .set(errors, 15, 15.0)
        .gives(15, "0 firing 0.5 15")
        .set(UP, 30, 0.0)
        .set(errors, 30, stale_nan())
        .gives(30, "0 firing 0.5 15 unknown")
        .set(UP, 45, 0.0)
        .gives(45, "0 firing 0.5 15 unknown")
        .set(UP, 60, 1.0)
        .set(errors, 60, 60.0)
        .gives(60, "0 firing 0.5 15 unknown")
        .set(UP, 75, 1.0)
        .set(errors, 75, 75.0)
        .gives(75, "0 firing 1 15");
}

#[test]
fn a_lost_scrape_in_ten_never_flaps() {
    let play = Play::of("for: 30s");
    let mut fired = false;
    for n in 0..240 {
        let at = n * 15;
        if n % 10 == 9 {
            play.0.set(UP, at, 0.0);
            play.0.set(HEAT, at, stale_nan());
        } else {
            play.0.set(UP, at, 1.0);
            play.0.set(HEAT, at, 90.0);
        }
        let state = play.0.at(at);
        fired |= state.contains("firing");
        assert!(!fired || state.contains("firing"), "{state} at {at}");
    }
    assert_eq!(play.0.told().matches("resolved").count(), 0);
}

#[test]
fn an_alert_is_unknown_still_after_a_restart() {
    let play = Play::of("for: 0s").scrape(0, 90.0).gives(0, "0 firing 90 0").fail(15);
    assert_eq!(play.0.at(15), "0 firing 90 0 unknown");
    let stage = play.0.restart(&hot("for: 0s"));
    stage.set(UP, 30, 0.0);
    assert_eq!(stage.at(30), "0 firing NaN 0 unknown");
    assert!(!stage.told().contains("resolved"));
}

#[test]
fn blind_rules_are_told_of_after_three_evaluations() {
    let stage = Stage::new(&hot("for: 0s"));
    stage.set(UP, 0, 1.0);
    stage.set(HEAT, 0, 20.0);
    assert_eq!(stage.at(0), "");
    stage.set(UP, 15, 0.0);
    stage.set(HEAT, 15, stale_nan());
    for at in [15, 30, 45] {
        assert_eq!(stage.at(at), "");
        assert_eq!(stage.unknown(), "target dcgm of a is down", "at {at}");
        assert_eq!(stage.told(), "");
    }
    stage.at(60);
    assert_eq!(stage.told(), "60: - fires since 60 until 300");
    let series = r#"ALERTS{alertname="RulesUnknown", alertstate="firing", instance="a", job="dcgm", rule_group="g", severity="warning"}"#;
    stage.check_series(series, "60=1");
    stage.set(UP, 75, 1.0);
    stage.set(HEAT, 75, 20.0);
    stage.at(75);
    assert_eq!(stage.unknown(), "");
    assert_eq!(stage.told(), "75: - resolved since 60 until 315");
}
