use super::*;
use crate::manager::tests::{Stage, hot};

/// Hot from 0 s on, evaluated every 15 s from 0 to `until`.
fn hot_until(rules: &str, until: Millis) -> Stage {
    let stage = Stage::new(rules);
    heat(&stage, 0, until);
    stage
}

/// Feeds and evaluates every 15 s.
fn heat(stage: &Stage, from: Millis, until: Millis) {
    for at in (from..=until).step_by(15) {
        stage.set("temperature{gpu=\"3\"}", at, 90.0);
        stage.at(at);
    }
}

#[test]
fn downtime_counts_neither_way() {
    let minute = 60_000;
    let timing = Timing {
        now: 100 * minute,
        hold: 30 * minute,
        keep_firing: 0,
        by_event: false,
    };
    let at = |active: Millis, down: Millis| {
        let before = Remembered {
            active_at: active * minute,
            down_at: down * minute,
        };
        restored_active_at(before, timing, 10 * minute) / minute
    };
    // Fired before the restart: since then.
    assert_eq!(at(10, 60), 10);
    // Twenty minutes were left: twenty are left.
    assert_eq!(at(50, 60), 90);
    // Two were left: ten, the grace time.
    assert_eq!(at(50, 78), 80);
}

#[test]
fn a_firing_alert_fires_on_since_the_same_moment() {
    let rules = hot("for: 40s");
    let stage = hot_until(&rules, 60);
    assert_eq!(stage.told(), "45: 3 fires since 45 until 285");
    let stage = stage.restart(&rules);
    stage.set("temperature{gpu=\"3\"}", 190, 91.0);
    assert_eq!(stage.at(200), "3 firing 91 0");
    // The same beginning: whoever is told knows it already.
    assert_eq!(stage.told(), "200: 3 fires since 45 until 440");
}

#[test]
fn a_crash_right_after_an_alert_fired_restores_it_in_the_same_slot() {
    let rules = hot("for: 45s");
    let stage = hot_until(&rules, 45);
    assert_eq!(stage.told(), "45: 3 fires since 45 until 285");
    let stage = stage.restart(&rules);
    assert_eq!(stage.at(45), "3 firing 90 0");
    assert_eq!(stage.told(), "45: 3 fires since 45 until 285");
}

#[test]
fn an_alert_whose_data_comes_late_is_restored_too() {
    let rules = hot("for: 40s");
    let stage = hot_until(&rules, 60).restart(&rules);
    // Down for ten minutes: the first evaluation comes before the first scrape.
    assert_eq!(stage.at(660), "");
    stage.set("temperature{gpu=\"3\"}", 670, 91.0);
    assert_eq!(stage.at(675), "3 firing 91 0");
    assert_eq!(stage.told(), "675: 3 fires since 45 until 915");
}

#[test]
fn an_alert_that_comes_back_long_after_the_restart_is_new() {
    let rules = hot("for: 40s");
    let stage = hot_until(&rules, 60).restart(&rules);
    for at in (660..=750).step_by(15) {
        assert_eq!(stage.at(at), "");
    }
    stage.set("temperature{gpu=\"3\"}", 760, 91.0);
    assert_eq!(stage.at(765), "3 pending 91 765");
}

#[test]
fn a_pending_alert_waits_for_what_was_left() {
    let rules = hot("for: 30m");
    let stage = hot_until(&rules, 600).restart(&rules);
    stage.set("temperature{gpu=\"3\"}", 700, 90.0);
    assert_eq!(stage.at(700), "3 pending 90 100");
    assert_eq!(stage.told(), "");
}

#[test]
fn a_downtime_longer_than_the_tolerance_begins_anew() {
    let rules = hot("for: 40s");
    let stage = hot_until(&rules, 60).restart(&rules);
    stage.set("temperature{gpu=\"3\"}", 3690, 90.0);
    assert_eq!(stage.at(3700), "3 pending 90 3700");
}

#[test]
fn an_alert_resolved_before_the_restart_is_not_restored() {
    let rules = hot("for: 40s");
    let stage = hot_until(&rules, 60);
    stage.set("temperature{gpu=\"3\"}", 65, 20.0);
    // Its neighbour still fires when the server goes down.
    stage.set("temperature{gpu=\"4\"}", 65, 90.0);
    for at in [75, 90, 105, 120] {
        stage.at(at);
    }
    let stage = stage.restart(&rules);
    stage.set("temperature{gpu=\"3\"}", 130, 90.0);
    assert_eq!(stage.at(135), "3 pending 90 135; 4 firing 90 75");
}

#[test]
fn a_rule_that_fails_first_is_restored_when_it_works() {
    let rules = hot("for: 40s, labels: {gpu: '3'}");
    let stage = hot_until(&rules, 60).restart(&rules);
    stage.set("temperature{gpu=\"4\"}", 70, 90.0);
    // Two samples become one alert: no result.
    assert_eq!(stage.at(75), "");
    stage.set("temperature{gpu=\"4\"}", 80, 20.0);
    assert_eq!(stage.at(90), "3 firing 90 0");
}

#[test]
fn somebody_elses_series_of_that_name_restores_nothing_odd() {
    let rules = hot("for: 40s");
    for value in [f64::NAN, f64::INFINITY, 1e18, 5000.0] {
        let stage = Stage::new(&rules);
        stage.set("ALERTS_FOR_STATE{alertname=\"Hot\",gpu=\"3\"}", 10, value);
        stage.set("temperature{gpu=\"3\"}", 20, 90.0);
        assert_eq!(stage.at(30), "3 pending 90 30", "{value}");
    }
}
