//! The shipped rules: part of the binary, replaced one file at a time by the user's of the same name.

use std::path::Path;
use std::sync::Arc;

use rules::LoadedGroup;

/// Name and text of each file of `data/rules/`.
pub const RULE_FILES: [(&str, &str); 7] = [
    ("gpu.yml", include_str!("../../../../data/rules/gpu.yml")),
    ("host.yml", include_str!("../../../../data/rules/host.yml")),
    ("disks.yml", include_str!("../../../../data/rules/disks.yml")),
    ("chassis.yml", include_str!("../../../../data/rules/chassis.yml")),
    ("containers.yml", include_str!("../../../../data/rules/containers.yml")),
    ("serving.yml", include_str!("../../../../data/rules/serving.yml")),
    ("watchfire.yml", include_str!("../../../../data/rules/watchfire.yml")),
];

/// How the alerts of each file are drilled.
pub const DRILL_FILES: [(&str, &str); 7] = [
    ("gpu_drill.yml", include_str!("../../../../data/rules/gpu_drill.yml")),
    ("host_drill.yml", include_str!("../../../../data/rules/host_drill.yml")),
    (
        "disks_drill.yml",
        include_str!("../../../../data/rules/disks_drill.yml"),
    ),
    (
        "chassis_drill.yml",
        include_str!("../../../../data/rules/chassis_drill.yml"),
    ),
    (
        "containers_drill.yml",
        include_str!("../../../../data/rules/containers_drill.yml"),
    ),
    (
        "serving_drill.yml",
        include_str!("../../../../data/rules/serving_drill.yml"),
    ),
    (
        "watchfire_drill.yml",
        include_str!("../../../../data/rules/watchfire_drill.yml"),
    ),
];

/// The groups of every shipped file; `folder/NAME`, where it exists, stands in for the shipped one.
///
/// # Errors
///
/// Everything that is wrong with the user's files.
pub fn groups(folder: &Path) -> Result<Vec<Arc<LoadedGroup>>, Vec<rules::Error>> {
    let mut groups = Vec::new();
    let mut errors = Vec::new();
    for (name, shipped) in RULE_FILES {
        let own = folder.join(name);
        let loaded = if own.is_file() {
            rules::load::load_files(&[own])
        } else {
            rules::check_text(&format!("shipped:{name}"), shipped).map(|g| g.into_iter().map(Arc::new).collect())
        };
        match loaded {
            Ok(found) => groups.extend(found),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(groups) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_rule_loads_and_names_its_runbook() {
        let groups = groups(Path::new("/nonexistent")).expect("the shipped rules");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for rule in groups.iter().flat_map(|g| &g.rules) {
            let rules::RuleKind::Alerting { annotations, .. } = &rule.kind else {
                continue;
            };
            for name in ["summary", "description", "action", "runbook_url"] {
                assert!(
                    annotations.iter().any(|(n, _)| n == name),
                    "{} has no {name}",
                    rule.name
                );
            }
            let runbook = annotations
                .iter()
                .find(|(n, _)| n == "runbook_url")
                .expect("checked above");
            assert!(
                root.join(&runbook.1).is_file(),
                "{} names a page that is not there: {}",
                rule.name,
                runbook.1
            );
        }
    }
}
