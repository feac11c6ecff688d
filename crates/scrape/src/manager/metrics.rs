//! What the manager tells of its targets, as metrics of this process.

use std::collections::BTreeMap;

use model::{Family, Kind, Labels};

use super::{Manager, lock};
use crate::target::Health;

const HEALTHS: [Health; 3] = [Health::Up, Health::Down, Health::Unknown];

impl Manager {
    /// Totals since each target runs. Only targets that ever had something refused, or a series twice on a
    /// page, have a line for it; targets with the same `job` and `instance` are counted together.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let mut refused: BTreeMap<(String, String, String), u64> = BTreeMap::new();
        let mut duplicates: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut health: BTreeMap<String, [u64; HEALTHS.len()]> = BTreeMap::new();
        let running = lock(&self.shared.running);
        for entry in &running.targets {
            let status = lock(&entry.state.status);
            let counts = health.entry(status.job.clone()).or_default();
            for (count, _) in counts.iter_mut().zip(HEALTHS).filter(|(_, h)| *h == status.health) {
                *count += 1;
            }
            let (job, instance) = (
                label(&status.target.labels, "job"),
                label(&status.target.labels, "instance"),
            );
            for (culprit, count) in lock(&entry.state.notes).refused() {
                let key = (job.clone(), instance.clone(), culprit.to_owned());
                *refused.entry(key).or_default() += count;
            }
            if status.duplicates_total > 0 {
                *duplicates.entry((job, instance)).or_default() += status.duplicates_total;
            }
        }
        drop(running);
        vec![
            refused_family(refused),
            duplicates_family(duplicates),
            health_family(health),
        ]
    }
}

fn refused_family(refused: BTreeMap<(String, String, String), u64>) -> Family {
    let mut family = Family::new(
        "watchfire_scrape_refused_samples_total",
        Kind::Counter,
        "Samples of a target left out because a limit was met, by what met it.",
    );
    for ((job, instance, culprit), count) in refused {
        let labels = vec![("job", job), ("instance", instance), ("culprit", culprit)];
        family.push(labels, float(count));
    }
    family
}

fn duplicates_family(duplicates: BTreeMap<(String, String), u64>) -> Family {
    let mut family = Family::new(
        "watchfire_scrape_duplicate_samples_total",
        Kind::Counter,
        "Samples of a target whose series stood on the page before.",
    );
    for ((job, instance), count) in duplicates {
        family.push(vec![("job", job), ("instance", instance)], float(count));
    }
    family
}

fn health_family(health: BTreeMap<String, [u64; HEALTHS.len()]>) -> Family {
    let mut family = Family::new("watchfire_targets", Kind::Gauge, "Targets of a job, by health.");
    for (job, counts) in health {
        for (health, count) in HEALTHS.iter().zip(counts) {
            let labels = vec![("job", job.clone()), ("health", health.as_str().to_owned())];
            family.push(labels, float(count));
        }
    }
    family
}

fn label(labels: &Labels, name: &str) -> String {
    labels.get(name).unwrap_or_default().to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
