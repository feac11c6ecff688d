//! The alert rules of others against the pages of the exporters that we have: our verdicts beside those of a reviewed list.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use prove::{Evidence, Origin, Verdict};

/// The pages that are everything there is.
const PAGES: &[&str] = &[
    "dcgm/pages/default-h100x8.prom",
    "dcgm/pages/exporter-own-metrics.prom",
    "node/fixtures/e2e-output.txt",
    "inference-metrics/vllm/v1-2026-02.prom",
    "ipmi/pages/documented-samples.prom",
    "containers/pages/prometheus_metrics.prom",
    "containers/pages/prometheus_machine_metrics.prom",
    "nvidia-smi/exporter-pages/linux-x86_64__nvidia-h200__590.48.01__load.prom",
];

/// Every page of this folder too.
const PAGE_FOLDER: &str = "smart/pages";

/// Files that are no rule files of Prometheus.
const SKIPPED: &[(&str, &str)] = &[
    (
        "ceems/host-power-ipmi-with-nvidia-gpu.rules.yml",
        "a template with places to fill in, and without alerts",
    ),
    (
        "ceems/host-power-ipmi.rules.yml",
        "a template with places to fill in, and without alerts",
    ),
    (
        "gpu-operator/state-dcgm-exporter__1000_prometheus_rule_openshift.yaml",
        "an object of Kubernetes that holds rules",
    ),
    (
        "gpu-operator/state-node-status-exporter__0800_prometheus_rule_openshift.yaml",
        "an object of Kubernetes that holds rules",
    ),
    (
        "gpu-operator/state-operator-metrics__0400_prometheus_rule_openshift.yaml",
        "an object of Kubernetes that holds rules",
    ),
];

fn evidence(corpora: &Path) -> Evidence {
    let mut evidence = Evidence::new(Origin::Pages);
    let mut add = |path: &Path| {
        evidence
            .add_page(&path.display().to_string(), &std::fs::read(path).unwrap())
            .unwrap();
    };
    for page in PAGES {
        add(&corpora.join(page));
    }
    let mut folder: Vec<_> = std::fs::read_dir(corpora.join(PAGE_FOLDER))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folder.sort();
    folder.iter().for_each(|page| add(page));
    evidence
}

#[test]
fn dead_rules_of_others_are_found_and_live_ones_not_called_dead() {
    let Some(corpora) = support::corpora() else { return };
    let list = support::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/alert-rules.tsv"));
    let mut files: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        files.entry(columns[0]).or_default().push((columns[2], columns[3]));
    }
    for (file, reason) in SKIPPED {
        assert!(!files.contains_key(file));
        println!("skipped {file}: {reason}");
    }
    let evidence = evidence(&corpora);
    let (mut dead, mut missed, mut live, mut wronged) = (0, Vec::new(), 0, Vec::new());
    for (file, known) in files {
        let rules = prove::rules_of(file, &support::read(&corpora.join("alert-rules").join(file))).unwrap();
        let findings = support::judge(&rules, &evidence);
        assert_eq!(findings.len(), known.len(), "{file}");
        for (finding, (alert, word)) in findings.iter().zip(known) {
            assert_eq!(finding.alert, alert, "{file}");
            let is_dead = finding.verdict == Verdict::CannotFire;
            if word == "dead" {
                dead += 1;
                if !is_dead {
                    missed.push(format!("{file} {alert}: {}", finding.expr));
                }
            } else {
                live += 1;
                if is_dead {
                    wronged.push(format!("{file} {alert}: {:?}", finding.reasons));
                }
            }
        }
    }
    println!(
        "dead {dead}, missed {}; alive {live}, called dead {}",
        missed.len(),
        wronged.len()
    );
    assert!(dead > 200 && live > 80, "{dead}, {live}");
    assert!(missed.len() * 100 <= dead * 5, "{missed:#?}");
    assert!(wronged.len() * 100 <= live * 2, "{wronged:#?}");
}
