//! The published rule set of the reference article: the verdicts that were found by hand, and the same after the exporter's renames.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prove::{Evidence, Finding, Origin, RuleText, Verdict, rules_of};

/// What is true of each alert on the pinned exporters' default pages, and the code of the reason.
const VERDICTS: &[(&str, &str, &str)] = &[
    ("GPUTempCritical", "can_fire", ""),
    ("GPUThermalThrottling", "cannot_fire", "metric_not_exported"),
    ("GPUECCUncorrectable", "cannot_fire", "metric_not_exported"),
    ("GPUXIDError", "cannot_fire", "constant_series"),
    ("GPUPowerEnvelopeExceeded", "can_fire", ""),
    ("GPUIdleDuringWork", "can_fire", ""),
    ("HostMemoryLow", "can_fire", ""),
    ("OOMKillerFired", "can_fire", ""),
    ("ContainerRestartLoop", "cannot_fire", "exporter_absent"),
    ("vLLMQueueBacklog", "can_fire", ""),
    ("vLLMHighLatency", "can_fire", ""),
];

/// The fixture host of node_exporter's own tests has a kernel without this line; every host of today has it.
const HOST: &str = "# TYPE node_memory_MemAvailable_bytes gauge\nnode_memory_MemAvailable_bytes 2.5e11\n";

/// Alerts that the article's text gives without a rule.
const IN_THE_TEXT: &[(&str, &str, &str)] = &[
    (
        "vllm:num_requests_waiting > 0 and DCGM_FI_DEV_GPU_UTIL < 90%",
        "cannot_fire",
        "does_not_parse",
    ),
    (
        "vllm:num_requests_waiting > 0 and DCGM_FI_DEV_GPU_UTIL < 90",
        "cannot_fire",
        "labels_never_match",
    ),
    (
        "vllm:num_requests_waiting > 0 and on (instance) max by (instance) (DCGM_FI_DEV_GPU_UTIL) < 90",
        "can_fire",
        "",
    ),
    ("nvme_available_spare < 20", "cannot_fire", "metric_misnamed"),
    ("nvme_percentage_used > 80", "cannot_fire", "metric_misnamed"),
    ("rate(DCGM_FI_DEV_GPU_TEMP[5m]) > 1", "cannot_fire", "rate_of_gauge"),
];

/// The rules of the article, or nothing where it is not here.
fn seed() -> Option<(Vec<RuleText>, PathBuf)> {
    let corpora = support::corpora()?;
    let article = corpora.join("../reference/ai-server-monitoring-stack.md");
    if !article.is_file() {
        eprintln!("skipped: no article at {}", article.display());
        return None;
    }
    let text = support::read(&article);
    let from = text.find("groups:\n").expect("the article has rules");
    let until = text.find("Opinionated calls").expect("and text behind them");
    Some((rules_of("article.yml", &text[from..until]).unwrap(), corpora))
}

/// The default pages of the pinned exporters, the first one through `dcgm`.
fn pages(corpora: &Path, dcgm: impl Fn(String) -> String) -> Evidence {
    let mut evidence = Evidence::new(Origin::Pages);
    let page = dcgm(support::read(&corpora.join("dcgm/pages/default-h100x8.prom")));
    evidence.add_page("dcgm", page.as_bytes()).unwrap();
    for path in ["node/fixtures/e2e-output.txt", "inference-metrics/vllm/v1-2026-02.prom"] {
        evidence
            .add_page(path, &std::fs::read(corpora.join(path)).unwrap())
            .unwrap();
    }
    evidence.add_page("host", HOST.as_bytes()).unwrap();
    evidence
}

#[track_caller]
fn check(finding: &Finding, verdict: &str, code: &str) {
    assert_eq!(finding.verdict.as_str(), verdict, "{finding:#?}");
    let first = finding.reasons.first().map_or("", |reason| reason.code);
    let is_told = verdict == "can_fire" || first == code;
    assert!(is_told, "{}: {first}, not {code}: {finding:#?}", finding.alert);
    let has_mend = finding.reasons.iter().all(|reason| !reason.message.is_empty());
    assert!(has_mend, "{finding:#?}");
}

#[test]
fn the_published_rules_get_the_verdicts_found_by_hand() {
    let Some((rules, corpora)) = seed() else { return };
    let mut evidence = pages(&corpora, |page| page);
    // Memory stands on another page here than its total: they are of one host.
    evidence
        .add_page(
            "host",
            b"# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes 5e11\n",
        )
        .unwrap();
    let findings = support::judge(&rules, &evidence);
    assert_eq!(findings.len(), VERDICTS.len());
    for (finding, (alert, verdict, code)) in findings.iter().zip(VERDICTS) {
        assert_eq!(finding.alert, *alert);
        check(finding, verdict, code);
    }
}

#[test]
fn what_the_text_proposes_is_judged_too() {
    let Some((_, corpora)) = seed() else { return };
    let mut evidence = pages(&corpora, |page| page);
    for entry in std::fs::read_dir(corpora.join("smart/pages")).unwrap() {
        let path = entry.unwrap().path();
        evidence.add_page("smart", &std::fs::read(path).unwrap()).unwrap();
    }
    for (expr, verdict, code) in IN_THE_TEXT {
        let rule = RuleText {
            name: (*expr).to_owned(),
            is_alert: true,
            expr: (*expr).to_owned(),
            ..RuleText::default()
        };
        check(&support::judge(&[rule], &evidence)[0], verdict, code);
    }
}

#[test]
fn with_containers_watched_the_restart_rule_still_cannot_mean_what_it_says() {
    let Some((rules, corpora)) = seed() else { return };
    let mut evidence = pages(&corpora, |page| page);
    let page = std::fs::read(corpora.join("containers/pages/prometheus_metrics.prom")).unwrap();
    evidence.add_page("containers", &page).unwrap();
    let findings = support::judge(&rules, &evidence);
    let restart = findings.iter().find(|f| f.alert == "ContainerRestartLoop").unwrap();
    check(restart, "cannot_fire", "rate_of_gauge");
    assert!(restart.reasons[0].mend.contains("changes("), "{restart:#?}");
}

#[test]
fn after_the_renames_of_4_9_every_gpu_rule_is_dead_and_the_new_name_is_told() {
    let Some((rules, corpora)) = seed() else { return };
    let renames: BTreeMap<&str, &str> = BTreeMap::from([
        ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
        ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"),
        ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
        ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"),
        ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES"),
        ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"),
    ]);
    let evidence = pages(&corpora, |page| {
        renames.iter().fold(page, |page, (old, new)| {
            page.replace(&format!("{old} "), &format!("{new} "))
                .replace(&format!("{old}{{"), &format!("{new}{{"))
        })
    });
    let findings = support::judge(&rules, &evidence);
    let gpu: Vec<_> = findings.iter().filter(|f| f.group == "gpu").collect();
    assert_eq!(gpu.len(), 6);
    for finding in gpu {
        assert_eq!(finding.verdict, Verdict::CannotFire, "{finding:#?}");
        let named = renames
            .iter()
            .find(|(old, _)| finding.expr.contains(&format!("{old}[")) || finding.expr.contains(&format!("{old} ")));
        if let Some((_, new)) = named {
            let told = finding
                .reasons
                .iter()
                .any(|r| r.mend.contains(new) && r.message.contains("4.9.0"));
            assert!(told, "{finding:#?}");
        }
    }
    let idle = findings.iter().find(|f| f.alert == "GPUIdleDuringWork").unwrap();
    assert!(
        idle.reasons.iter().any(|r| r.mend.contains("bytes instead of MiB")),
        "{idle:#?}"
    );
    assert!(
        idle.reasons.iter().any(|r| r.mend.contains("a ratio of 0 to 1")),
        "{idle:#?}"
    );
}

#[test]
fn a_rule_set_without_a_dead_man_is_told_so() {
    let Some((rules, _)) = seed() else { return };
    let codes: Vec<_> = prove::remarks(&rules).iter().map(|r| r.code).collect();
    assert_eq!(codes, ["no_dead_man", "no_target_down"]);
}
