//! One expression, one small world, one word: what each kind of fault looks like, and what is no fault.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use prove::{Evidence, Origin, RuleText};

const PAGE: &str = r#"
# TYPE temp gauge
temp{gpu="0"} 60
temp{gpu="1"} 61
# TYPE errors_total counter
errors_total{gpu="0",kind="a"} 3
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1"} 3
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-0"} 400
# TYPE DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX gauge
DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX{gpu="0",UUID="GPU-0"} 450
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 5
node_cpu_seconds_total{cpu="0",mode="user"} 5
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 5
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 10
# TYPE lat_bucket counter
# TYPE lat histogram
lat_bucket{model="m",le="1"} 1
lat_bucket{model="m",le="10"} 2
lat_bucket{model="m",le="+Inf"} 2
lat_sum{model="m"} 2
lat_count{model="m"} 2
# TYPE node_md_disks gauge
node_md_disks{device="md0",state="active"} 2
# TYPE node_uname_info gauge
node_uname_info{release="6.1"} 1
# TYPE waiting gauge
waiting{model="m"} 1
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds 1.7e9
"#;

#[track_caller]
fn check(expr: &str, verdict: &str, code: &str) {
    let mut evidence = Evidence::new(Origin::Pages);
    evidence.add_page("page", PAGE.as_bytes()).unwrap();
    let rule = RuleText {
        name: "A".to_owned(),
        is_alert: true,
        expr: expr.to_owned(),
        ..RuleText::default()
    };
    let finding = support::judge(&[rule], &evidence).remove(0);
    let codes: Vec<_> = finding.reasons.iter().map(|r| r.code).collect();
    assert_eq!(finding.verdict.as_str(), verdict, "{expr}: {finding:#?}");
    assert!(code.is_empty() || codes.contains(&code), "{expr}: {finding:#?}");
}

#[track_caller]
fn dead(expr: &str, code: &str) {
    check(expr, "cannot_fire", code);
}

#[track_caller]
fn alive(expr: &str) {
    check(expr, "can_fire", "");
}

#[test]
fn a_metric_that_nobody_shows_kills_what_needs_it() {
    dead("nothing > 1", "metric_absent");
    dead("temp > 1 and nothing > 1", "metric_absent");
    dead("temp / nothing > 1", "metric_absent");
    alive("temp > 1 or nothing > 1");
    alive("temp > 1 unless nothing > 1");
    check("absent(nothing)", "can_fire", "absent_always");
    alive("absent(temp)");
    dead("tmep > 1", "metric_absent");
}

#[test]
fn rates_need_counters_and_two_samples() {
    dead("rate(temp[5m]) > 0", "rate_of_gauge");
    dead("increase(temp[5m]) > 5", "rate_of_gauge");
    alive("rate(errors_total[5m]) > 0");
    dead("rate(errors_total[15s]) > 0", "window_too_short");
    dead("rate(errors_total[20s]) > 0", "window_too_short");
    alive("rate(errors_total[30s]) > 0");
    alive("max_over_time(temp[15s]) > 80");
    dead("rate(errors_total[5m]) < 0", "impossible_value");
    check("delta(errors_total[5m]) > 0", "can_fire", "difference_of_counter");
    check("errors_total > 5", "can_fire", "counter_as_gauge");
    dead("rate(node_boot_time_seconds[5m]) > 1", "rate_of_gauge");
    alive("changes(node_boot_time_seconds[5m]) > 1");
}

#[test]
fn values_keep_to_their_unit() {
    dead("DCGM_FI_DEV_GPU_UTIL > 950", "impossible_value");
    dead("DCGM_FI_DEV_GPU_UTIL > 100", "impossible_value");
    alive("DCGM_FI_DEV_GPU_UTIL >= 100");
    dead("DCGM_FI_DEV_GPU_UTIL < 0", "impossible_value");
    dead("DCGM_FI_DEV_GPU_UTIL / 100 > 1.5", "impossible_value");
    dead("950 < DCGM_FI_DEV_GPU_UTIL", "impossible_value");
    dead("avg by (gpu) (DCGM_FI_DEV_GPU_UTIL) > 200", "impossible_value");
    dead("avg_over_time(DCGM_FI_DEV_GPU_UTIL[5m]) > 200", "impossible_value");
    alive("sum(DCGM_FI_DEV_GPU_UTIL) > 200");
    dead(
        "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes > 5",
        "impossible_value",
    );
    alive("node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes * 100 > 5");
    dead(
        "(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) / node_memory_MemTotal_bytes > 95",
        "impossible_value",
    );
    alive("(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) / node_memory_MemTotal_bytes > .95");
    dead(
        "node_memory_MemAvailable_bytes > node_memory_MemTotal_bytes",
        "impossible_value",
    );
    dead(
        "100 - avg(rate(node_cpu_seconds_total{mode=\"idle\"}[5m])) * 100 > 120",
        "impossible_value",
    );
    alive("100 - avg(rate(node_cpu_seconds_total{mode=\"idle\"}[5m])) * 100 > 90");
    dead("up == 2", "impossible_value");
    dead("up == 0.5", "impossible_value");
    alive("up == 0");
    dead("count(up == 0) == 0", "count_of_nothing");
    alive("count(up == 0) > 1");
    dead("sum(up == 0) > 0", "impossible_value");
    dead("node_boot_time_seconds < 600", "impossible_value");
    alive("time() - node_boot_time_seconds < 600");
    check("errors_total >= 0", "can_fire", "always_true");
}

#[test]
fn a_device_does_not_pass_its_own_limit() {
    dead("DCGM_FI_DEV_POWER_USAGE > 1000", "beyond_device_limit");
    alive("DCGM_FI_DEV_POWER_USAGE > 440");
}

#[test]
fn buckets_bound_a_quantile() {
    alive("histogram_quantile(0.9, rate(lat_bucket[5m])) > 5");
    dead("histogram_quantile(0.9, rate(lat_bucket[5m])) > 10", "above_top_bucket");
    dead(
        "histogram_quantile(0.9, sum by (model) (rate(lat_bucket[5m]))) > 5",
        "le_missing",
    );
    alive("histogram_quantile(0.9, sum by (le, model) (rate(lat_bucket[5m]))) > 5");
    dead("histogram_quantile(0.9, rate(lat_sum[5m])) > 5", "le_missing");
}

#[test]
fn labels_must_be_there_and_meet() {
    dead("temp{gpux=\"0\"} > 5", "label_absent");
    dead("node_cpu_seconds_total{mode=\"Idle\"} > 5", "label_value_impossible");
    dead(
        "node_cpu_seconds_total{mode=\"sleeping\"} > 5",
        "label_value_impossible",
    );
    check(
        "node_cpu_seconds_total{mode=\"iowait\"} > 5",
        "unknown",
        "label_value_unseen",
    );
    check("errors_total{kind=\"b\"} > 5", "unknown", "label_value_unseen");
    alive("temp{job=\"dcgm\",instance=~\"a.*\"} > 5");
    dead("waiting > 0 and temp > 80", "labels_never_match");
    alive("waiting > 0 and on (instance) temp > 80");
    alive("waiting > 0 and on () temp > 80");
    dead("waiting / on (model) temp > 1", "labels_never_match");
    dead("temp * on (instance) DCGM_FI_DEV_GPU_UTIL > 1", "many_to_many");
    alive("temp * on (instance, gpu) DCGM_FI_DEV_GPU_UTIL > 1");
    dead("temp - ignoring (gpu) DCGM_FI_DEV_GPU_UTIL > 1", "");
}

#[test]
fn conditions_must_not_exclude_each_other() {
    dead("temp > 90 and temp < 80", "contradiction");
    dead("temp > 90 < 80", "contradiction");
    alive("temp > 80 and temp < 90");
    alive("temp{gpu=\"0\"} > 90 and on (instance) temp{gpu=\"1\"} < 80");
    dead("temp > temp", "impossible_value");
    alive("temp > temp offset 5m");
    dead("temp unless temp", "contradiction");
}

#[test]
fn what_is_constant_does_not_change() {
    dead("changes(node_uname_info[1h]) > 0", "constant_series");
    dead("node_uname_info != 1", "constant_series");
    alive("count by (instance) (node_uname_info) > 1");
}

#[test]
fn numbers_and_functions_are_followed() {
    alive("vector(1)");
    alive("1 > bool 0");
    check("temp > bool 90", "can_fire", "bool_always_fires");
    dead("hour() > 24", "impossible_value");
    alive("hour() > 22 and on () temp > 80");
    dead("scalar(nothing) < temp", "metric_absent");
    dead("absent(vector(1))", "never_absent");
    dead("clamp_max(temp, 50) > 60", "impossible_value");
    alive("topk(1, temp) > 60");
    alive("label_replace(temp, \"model\", \"$1\", \"gpu\", \"(.*)\") * on (model) waiting > 0");
    dead("temp > 5 and", "does_not_parse");
}

#[test]
fn recording_rules_are_followed_to_what_they_read() {
    let mut evidence = Evidence::new(Origin::Pages);
    evidence.add_page("page", PAGE.as_bytes()).unwrap();
    let text = r"
groups:
  - name: g
    rules:
      - { record: 'gpu:temp:max', expr: max by (gpu) (temp) }
      - { record: 'gpu:none', expr: max by (gpu) (nothing) }
      - { alert: Hot, expr: 'gpu:temp:max > 90' }
      - { alert: Never, expr: 'gpu:none > 90' }
      - { alert: Hot2, expr: 'max by (gpu) (temp) > 90' }
      - { alert: Hot3, expr: 'max by(gpu) (temp)>90' }
      - { alert: Flip, expr: temp > 5 }
      - { alert: Flip, expr: temp <= 5 }
";
    let rules = prove::rules_of("f.yml", text).unwrap();
    let findings = support::judge(&rules, &evidence);
    let told: Vec<_> = findings
        .iter()
        .map(|f| {
            (
                f.alert.as_str(),
                f.verdict.as_str(),
                f.reasons.first().map_or("", |r| r.code),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("Hot", "can_fire", ""),
            ("Never", "cannot_fire", "metric_absent"),
            ("Hot2", "can_fire", "duplicate"),
            ("Hot3", "can_fire", "duplicate"),
            ("Flip", "can_fire", "contradictory"),
            ("Flip", "can_fire", "contradictory"),
        ]
    );
}

#[test]
fn without_any_evidence_nothing_is_called_dead() {
    let rule = RuleText {
        is_alert: true,
        expr: "up == 0".to_owned(),
        ..RuleText::default()
    };
    let finding = support::judge(&[rule], &Evidence::new(Origin::Store)).remove(0);
    assert_eq!(finding.verdict.as_str(), "unknown");
}
