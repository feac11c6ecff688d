//! The shipped pack: every alert has a unit test, a drill under which it fires, a healthy scenario in which it is silent, and a page
//! for the night.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use model::{Labels, Millis};
use promql::testscript::mem::MemStore;
use promql::{Engine, EngineOptions};
use rules::drill::{Drill, Points};
use rules::{Alert, AlertSink, AlertState, LoadedGroup, LoadedRule, Manager, RuleKind};

/// Always fires, by design: a healthy scenario in which it is silent would be its failure.
const ALWAYS_FIRES: &str = "Watchdog";

/// A moment of 2026: some rules look at the time.
const START: Millis = 1_780_000_000_000;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each file of the pack: its name without end, and its groups.
fn pack() -> Vec<(String, Vec<Arc<LoadedGroup>>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root("data/rules")).expect("our own folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_some_and(|end| end == "yml") && !name.ends_with("_test") && !name.ends_with("_drill") {
            let groups = rules::check_text(&name, &text(&path)).unwrap_or_else(|errors| panic!("{errors:#?}"));
            files.push((name, groups.into_iter().map(Arc::new).collect()));
        }
    }
    assert!(files.len() >= 7, "{files:?}");
    files
}

fn drills(file: &str) -> Vec<Drill> {
    let name = format!("data/rules/{file}_drill.yml");
    rules::drill::read(&name, &text(&root(&name))).unwrap_or_else(|error| panic!("{error}"))
}

fn alerts(groups: &[Arc<LoadedGroup>]) -> impl Iterator<Item = &LoadedRule> {
    let rules = groups.iter().flat_map(|group| &group.rules);
    rules.filter(|rule| matches!(rule.kind, RuleKind::Alerting { .. }))
}

/// An alert that fired: its name, labels and annotations.
type Told = (String, Labels, Vec<(String, String)>);

/// Keeps what fired.
#[derive(Default)]
struct Fired(Mutex<Vec<Told>>);

impl AlertSink for Fired {
    fn send(&self, rule: &LoadedRule, alerts: &[Alert], _: Millis) {
        let firing = alerts.iter().filter(|alert| alert.state == AlertState::Firing);
        let told = firing.map(|alert| (rule.name.clone(), alert.labels.clone(), alert.annotations.clone()));
        self.0.lock().expect("nobody panics with it").extend(told);
    }
}

/// What fires while the samples pass.
fn play(groups: &[Arc<LoadedGroup>], drill: &Drill, points: &[Points]) -> Vec<Told> {
    let store = Arc::new(MemStore::new());
    for (labels, samples) in points {
        for (time, value) in samples {
            store.add(labels, *time, *value);
        }
    }
    let engine = Arc::new(Engine::new(Arc::clone(&store) as _, EngineOptions::default()));
    let fired = Arc::new(Fired::default());
    let manager = Manager::new(engine, store, Arc::clone(&fired) as _, rules::Options::default());
    manager.apply(groups, rules::Options::default(), START);
    for at in 0..=drill.lasts / drill.interval {
        manager.run_all(START + at * drill.interval);
    }
    std::mem::take(&mut *fired.0.lock().expect("nobody panics with it"))
}

#[test]
fn every_alert_has_a_test_a_drill_a_healthy_scenario_and_a_page() {
    let mut count = 0;
    for (file, groups) in pack() {
        let tests = text(&root(&format!("data/rules/{file}_test.yml")));
        let drills = drills(&file);
        for rule in alerts(&groups) {
            let name = &rule.name;
            count += 1;
            assert!(
                tests.contains(&format!("\"{name}\"")) || tests.contains(&format!("alertname: {name}")),
                "{name}: no unit test"
            );
            let drill = drills.iter().find(|drill| drill.alert == *name);
            let drill = drill.unwrap_or_else(|| panic!("{name}: no drill"));
            assert!(!drill.sick.is_empty(), "{name}: nothing in its drill");
            assert!(
                !drill.healthy.is_empty() || name == ALWAYS_FIRES,
                "{name}: no healthy scenario"
            );
            let page = text(&root(&format!("docs/runbooks/{name}.md")));
            for part in [
                "# ",
                "## Likely causes",
                "## Where to look next",
                "```promql",
                "## What to do",
            ] {
                let is_there = page.contains(part) || name == ALWAYS_FIRES;
                assert!(is_there, "{name}: its page has no {part:?}");
            }
        }
        for drill in &drills {
            assert!(
                alerts(&groups).any(|rule| rule.name == drill.alert),
                "{}: a drill of no alert",
                drill.alert
            );
        }
    }
    assert!(count >= 90, "{count} alerts");
}

#[test]
fn every_alert_fires_in_its_drill_and_its_texts_are_whole() {
    for (file, groups) in pack() {
        for drill in drills(&file) {
            let fired = play(&groups, &drill, &drill.points(&drill.sick, START));
            let own = fired.iter().find(|(name, ..)| *name == drill.alert);
            let (_, _, annotations) = own.unwrap_or_else(|| panic!("{} did not fire: {fired:?}", drill.alert));
            for (name, text) in annotations {
                assert!(
                    !text.contains("<error") && !text.contains("<no value>") && !text.contains("{{"),
                    "{}: {name}: {text}",
                    drill.alert
                );
            }
        }
    }
}

#[test]
fn every_alert_is_silent_on_a_healthy_machine() {
    for (file, groups) in pack() {
        for drill in drills(&file).iter().filter(|drill| drill.alert != ALWAYS_FIRES) {
            let fired = play(&groups, drill, &drill.points(&drill.healthy, START));
            let own = fired.iter().find(|(name, ..)| *name == drill.alert);
            assert!(own.is_none(), "{} fired: {own:?}", drill.alert);
        }
    }
}
