//! Drills: a fault is brought in at the lowest layer that the drill can reach, and followed to the receiver's receipt.
//!
//! A drill runs beside the real thing and never through it: samples go to a store of its own in memory, by the same scraper and the
//! same store's code; the rule is the one in force, evaluated by the same code over injected time; its alerts are marked and go through
//! the routes and to the receivers in force, by an alert manager of its own. So a drill can neither inhibit nor resolve a real alert,
//! and what is to be cleaned up is the message that says the drill is over. On the real store one marked sample is written and read.
//!
//! Invariant: a drill whose client is gone ends by itself: whoever looks at it keeps it alive for [`LEASE`].

mod courier;
mod passed;
mod rehearsal;
mod scenarios;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use config::alertmanager::Config;
use model::{Appender, Batch, Clock as _, Deadline, Labels, Millis, QueryEngine, SystemClock, Value as Answer};
use rules::drill::Drill;
use rules::{LoadedRule, RuleKind};
use serde_json::{Value, json};
use web::drill::{DrillRequest, Drills};

use self::courier::Courier;
use self::passed::{Pass, Passed};

/// How long a drill goes on when nobody looks at it any longer.
const LEASE: Duration = Duration::from_secs(20);

/// Drills remembered after their end.
const RUNS_MAX: usize = 8;

/// Alerts that one drill goes through, at most.
const ALERTS_MAX: usize = 1_000;

/// The label that marks everything of a drill.
pub const MARK: &str = "drill";

/// What a drill is run with.
pub struct Surroundings {
    /// The rules in force.
    pub rules: Arc<rules::Manager>,
    /// The real alert manager: its silences hold in drills too.
    pub alerts: alerts::Manager,
    /// Answers from the real store.
    pub engine: Arc<dyn QueryEngine>,
    /// The real store.
    pub appender: Arc<dyn Appender>,
    /// Routes and receivers in force; nothing before the first configuration is.
    pub alerting: Box<dyn Fn() -> Option<Config> + Send + Sync>,
    /// The hub's data folder.
    pub data: PathBuf,
    /// How people reach this hub.
    pub external_url: String,
    /// Where the drill's tasks run.
    pub runtime: tokio::runtime::Handle,
}

/// Runs drills, one at a time.
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    around: Surroundings,
    passed: Passed,
    runs: Mutex<Vec<Arc<Run>>>,
}

/// A drill, running or over.
struct Run {
    id: String,
    acknowledge: Duration,
    stop: AtomicBool,
    seen: Mutex<Instant>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    alerts: Vec<Course>,
}

/// How one alert's drill goes.
struct Course {
    alert: String,
    expr: String,
    /// The word of the link in its message.
    word: String,
    is_acknowledged: bool,
    /// Absent while it waits or runs.
    has_passed: Option<bool>,
    layer: &'static str,
    receiver: String,
    stages: Vec<Stage>,
}

/// One stage of the way.
struct Stage {
    name: &'static str,
    is_good: bool,
    took: Duration,
    detail: String,
}

/// What there is to drill: the alert's rule, and its scenario.
struct Exercise {
    rule: Arc<LoadedRule>,
    drill: Drill,
    /// Why its last evaluation on the real data failed.
    last_error: Option<String>,
}

impl Desk {
    /// A desk that runs nothing yet.
    pub fn new(around: Surroundings) -> Self {
        let passed = Passed::open(&around.data);
        Self {
            inner: Arc::new(Inner {
                around,
                passed,
                runs: Mutex::default(),
            }),
        }
    }

    fn run(&self, id: &str) -> Option<Arc<Run>> {
        lock(&self.inner.runs).iter().find(|run| run.id == id).map(Arc::clone)
    }
}

impl Drills for Desk {
    fn start(&self, request: DrillRequest) -> Result<Value, String> {
        let mut runs = lock(&self.inner.runs);
        if let Some(other) = runs.iter().find(|run| !lock(&run.state).is_over) {
            return Err(format!("drill {} is still running", other.id));
        }
        let exercises = self.inner.exercises(&request.alerts)?;
        let course = |exercise: &Exercise| Course {
            alert: exercise.rule.name.clone(),
            expr: exercise.rule.expr.clone(),
            word: word(),
            is_acknowledged: false,
            has_passed: None,
            layer: rehearsal::layer(&exercise.drill),
            receiver: String::new(),
            stages: Vec::new(),
        };
        let run = Arc::new(Run {
            id: word(),
            acknowledge: Duration::from_secs(request.acknowledge_seconds),
            stop: AtomicBool::new(false),
            seen: Mutex::new(Instant::now()),
            state: Mutex::new(State {
                is_over: false,
                alerts: exercises.iter().map(course).collect(),
            }),
        });
        if runs.len() >= RUNS_MAX {
            runs.remove(0);
        }
        runs.push(Arc::clone(&run));
        drop(runs);
        let state = run.json();
        let inner = Arc::clone(&self.inner);
        self.inner.around.runtime.spawn(async move {
            inner.go(&run, exercises).await;
            lock(&run.state).is_over = true;
        });
        Ok(state)
    }

    fn look(&self, id: &str) -> Option<Value> {
        let run = self.run(id)?;
        *lock(&run.seen) = Instant::now();
        Some(run.json())
    }

    fn stop(&self, id: &str) -> bool {
        let Some(run) = self.run(id) else { return false };
        run.stop.store(true, Ordering::Release);
        true
    }

    fn acknowledge(&self, id: &str, word: &str) -> Option<String> {
        let run = self.run(id)?;
        let mut state = lock(&run.state);
        let course = state.alerts.iter_mut().find(|course| course.word == word)?;
        course.is_acknowledged = true;
        Some(course.alert.clone())
    }

    fn asked(&self, id: &str, word: &str) -> Option<String> {
        let run = self.run(id)?;
        let state = lock(&run.state);
        let course = state.alerts.iter().find(|course| course.word == word)?;
        Some(course.alert.clone())
    }

    fn passed(&self) -> Value {
        self.inner.passed.json(SystemClock.now())
    }
}

impl Inner {
    /// The exercises of the alerts named, or of every alert that has a scenario.
    fn exercises(&self, names: &[String]) -> Result<Vec<Exercise>, String> {
        let scenarios = scenarios::all(&self.around.data.join("rules"))?;
        let mut found = Vec::new();
        for group in self.around.rules.status() {
            for status in &group.rules {
                let rule = &status.rule;
                let is_alert = matches!(rule.kind, RuleKind::Alerting { .. });
                if !is_alert || (!names.is_empty() && !names.contains(&rule.name)) {
                    continue;
                }
                match scenarios.get(&rule.name) {
                    Some(drill) => found.push(Exercise {
                        rule: Arc::clone(rule),
                        drill: drill.clone(),
                        last_error: status.last_error.clone(),
                    }),
                    None if !names.is_empty() => {
                        let file = "rules/NAME_drill.yml in the data folder";
                        return Err(format!("{} has no drill scenario; write one into {file}", rule.name));
                    }
                    None => {}
                }
            }
        }
        if let Some(unknown) = names.iter().find(|name| !found.iter().any(|e| e.rule.name == **name)) {
            let known = found
                .iter()
                .map(|e| e.rule.name.as_str())
                .chain(scenarios.keys().map(String::as_str));
            let near = config::yaml::nearest(unknown, known);
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(format!("no alert {unknown} is loaded here{hint}"));
        }
        found.truncate(ALERTS_MAX);
        if found.is_empty() {
            return Err("no alert that is loaded here can be drilled".to_owned());
        }
        Ok(found)
    }

    /// Goes through the exercises; cleans up after them in any case.
    async fn go(&self, run: &Run, exercises: Vec<Exercise>) {
        let courier = match (self.around.alerting)() {
            Some(config) => Courier::start(&config, &self.around),
            None => Err("no routes and receivers are in force yet".to_owned()),
        };
        let courier = match courier {
            Ok(courier) => courier,
            Err(reason) => {
                for at in 0..exercises.len() {
                    run.fail(at, "route", reason.clone());
                }
                return;
            }
        };
        let recordings = self.recordings();
        for (at, exercise) in exercises.iter().enumerate() {
            if !run.is_wanted() {
                break;
            }
            self.exercise(run, at, exercise, &recordings, &courier).await;
        }
        courier.end().await;
    }

    /// The recording rules in force: an alert may read what they record.
    fn recordings(&self) -> Vec<LoadedRule> {
        let groups = self.around.rules.status();
        let rules = groups.iter().flat_map(|group| &group.rules).map(|status| &status.rule);
        rules
            .filter(|rule| rule.kind == RuleKind::Recording)
            .map(|rule| (**rule).clone())
            .collect()
    }

    async fn exercise(&self, run: &Run, at: usize, exercise: &Exercise, recordings: &[LoadedRule], courier: &Courier) {
        let played = {
            let (drill, rule, recordings) = (exercise.drill.clone(), Arc::clone(&exercise.rule), recordings.to_vec());
            let external_url = self.around.external_url.clone();
            tokio::task::spawn_blocking(move || {
                rehearsal::play(&drill, &rule, recordings, external_url, SystemClock.now())
            })
        };
        let played = match played.await {
            Ok(Ok(played)) => played,
            Ok(Err((stage, reason))) => return run.fail(at, stage, reason),
            Err(error) => return run.fail(at, "rule", format!("the rehearsal ended early: {error}")),
        };
        run.note(
            at,
            "inject",
            played.inject,
            exercise.drill.alert.clone() + ": " + rehearsal::layer(&exercise.drill),
        );
        run.note(
            at,
            "collect",
            played.collect,
            format!("{} samples on {} pages", played.samples, played.pages),
        );
        let begun = Instant::now();
        match self.mark_real_store(&exercise.rule.name) {
            Ok(()) => run.note(
                at,
                "store",
                played.store + begun.elapsed(),
                "the drill's store took the samples, and the real one a marked sample".to_owned(),
            ),
            Err(reason) => return run.fail(at, "store", reason),
        }
        if let Some(error) = &exercise.last_error {
            return run.fail(
                at,
                "rule",
                format!("its last evaluation on the real data failed: {error}"),
            );
        }
        let fired = format!("fired after {} of injected time", seconds(played.after));
        run.note(at, "rule", played.rule, fired);
        let link = lock(&run.state).alerts.get(at).map(|course| {
            format!(
                "{}/api/watchfire/v1/drill/{}/ack/{}",
                self.around.external_url, run.id, course.word
            )
        });
        let begun = Instant::now();
        let told = courier.tell(&played.alerts, link.as_deref().unwrap_or("")).await;
        match told {
            Ok(receipt) => {
                run.note(
                    at,
                    "route",
                    Duration::ZERO,
                    format!("to {}", receipt.receivers.join(", ")),
                );
                run.note(at, "receive", begun.elapsed(), receipt.detail.clone());
                run.received(at, &receipt.receivers.join(", "));
            }
            Err((stage, reason)) => return run.fail(at, stage, reason),
        }
        if run.acknowledge > Duration::ZERO && !self.acknowledged(run, at).await {
            return;
        }
        run.pass(at);
        let state = lock(&run.state);
        if let Some(course) = state.alerts.get(at) {
            self.passed.add(Pass {
                alert: course.alert.clone(),
                expr: course.expr.clone(),
                receiver: course.receiver.clone(),
                layer: course.layer.to_owned(),
                at: SystemClock.now(),
            });
        }
    }

    /// Waits for a person; whether one came.
    async fn acknowledged(&self, run: &Run, at: usize) -> bool {
        let begun = Instant::now();
        loop {
            let is_there = lock(&run.state)
                .alerts
                .get(at)
                .is_some_and(|course| course.is_acknowledged);
            if is_there {
                run.note(
                    at,
                    "acknowledge",
                    begun.elapsed(),
                    "a person pressed the button".to_owned(),
                );
                return true;
            }
            if begun.elapsed() >= run.acknowledge || !run.is_wanted() {
                run.fail(
                    at,
                    "acknowledge",
                    format!("nobody answered within {}", seconds_of(begun.elapsed())),
                );
                return false;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Writes one marked sample into the real store and reads it back.
    fn mark_real_store(&self, alert: &str) -> Result<(), String> {
        let labels = Labels::from_pairs([
            (model::METRIC_NAME, "watchfire_drill"),
            ("alert", alert),
            (MARK, "true"),
        ]);
        let (now, appender) = (SystemClock.now(), &self.around.appender);
        let failed = |error: model::StoreError| format!("the real store does not take a sample: {error}");
        let target = appender.target(&Labels::from_pairs([("job", "drill"), (MARK, "true")]));
        let series = appender.series(&labels).map_err(failed)?;
        let batch = Batch {
            samples: vec![(series, now.rem_euclid(1_000_000) as f64)],
            ..Batch::default()
        };
        appender.append(target, now, &batch).map_err(failed)?;
        let expr = format!("watchfire_drill{{alert={}}}", model::text::quote(alert));
        let deadline = Instant::now()
            .checked_add(Duration::from_secs(10))
            .map_or_else(Deadline::never, Deadline::at);
        match self
            .around
            .engine
            .instant(&expr, now, &deadline)
            .map(|outcome| outcome.value)
        {
            Ok(Answer::Vector(samples)) if samples.iter().any(|(_, s)| s.value == now.rem_euclid(1_000_000) as f64) => {
                Ok(())
            }
            Ok(_) => Err("the real store does not give back the sample that it took".to_owned()),
            Err(error) => Err(format!("the real store does not answer: {error}")),
        }
    }
}

impl Run {
    /// Whether somebody still waits for it.
    fn is_wanted(&self) -> bool {
        !self.stop.load(Ordering::Acquire) && lock(&self.seen).elapsed() < LEASE
    }

    fn with(&self, at: usize, change: impl FnOnce(&mut Course)) {
        if let Some(course) = lock(&self.state).alerts.get_mut(at) {
            change(course);
        }
    }

    fn note(&self, at: usize, name: &'static str, took: Duration, detail: String) {
        let stage = Stage {
            name,
            is_good: true,
            took,
            detail,
        };
        self.with(at, |course| course.stages.push(stage));
    }

    fn fail(&self, at: usize, name: &'static str, detail: String) {
        let stage = Stage {
            name,
            is_good: false,
            took: Duration::ZERO,
            detail,
        };
        self.with(at, |course| {
            course.stages.push(stage);
            course.has_passed = Some(false);
        });
    }

    fn received(&self, at: usize, receiver: &str) {
        self.with(at, |course| receiver.clone_into(&mut course.receiver));
    }

    fn pass(&self, at: usize) {
        self.with(at, |course| course.has_passed = Some(true));
    }

    fn json(&self) -> Value {
        let state = lock(&self.state);
        let alerts: Vec<Value> = state.alerts.iter().map(|course| course.json(state.is_over)).collect();
        let all = state.alerts.iter().all(|course| course.has_passed == Some(true));
        let word = match (state.is_over, all) {
            (false, _) => "running",
            (true, true) => "passed",
            (true, false) if self.stop.load(Ordering::Acquire) => "stopped",
            (true, false) => "failed",
        };
        json!({"id": self.id, "state": word, "alerts": alerts})
    }
}

impl Course {
    fn json(&self, is_over: bool) -> Value {
        let state = match (self.has_passed, is_over) {
            (Some(true), _) => "passed",
            (Some(false), _) => "failed",
            (None, true) => "not run",
            (None, false) if self.stages.is_empty() => "waiting",
            (None, false) => "running",
        };
        let stage = |stage: &Stage| json!({"stage": stage.name, "ok": stage.is_good, "seconds": stage.took.as_secs_f64(), "detail": stage.detail});
        json!({
            "alert": self.alert,
            "state": state,
            "layer": self.layer,
            "receiver": self.receiver,
            "acknowledged": self.is_acknowledged,
            "stages": self.stages.iter().map(stage).collect::<Vec<_>>(),
        })
    }
}

/// A word that nobody guesses.
fn word() -> String {
    // Each state is keyed by the system's randomness.
    let part = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", part(), part())
}

fn seconds(millis: Millis) -> String {
    format!("{} s", millis / 1000)
}

fn seconds_of(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Scenarios by alert.
type Scenarios = BTreeMap<String, Drill>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
