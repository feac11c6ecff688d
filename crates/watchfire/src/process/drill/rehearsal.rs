//! The first half of a drill: from the fault to the alert, over injected time, in a store of its own.
//!
//! A fault that the kernel tells goes in as the kernel's line, through the reader's classifier and counters; any other as the page that
//! an exporter would show. From there on everything is the real code: scraper, store, query engine, rules.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use blocks::vfs::mem::MemFs;
use collect::kernel::{Classifier, GpuIdentity, Kernel, PATTERNS, XidCatalog, XidCounts};
use exposition::Format;
use model::{Appender, Labels, METRIC_NAME, Millis, Queryable, is_stale};
use promql::{Engine, EngineOptions};
use rules::drill::{Drill, Points};
use rules::{Alert, AlertSink, AlertState, LoadedGroup, LoadedRule};
use scrape::{Ingest, Job};

use super::MARK;

/// Steps before the fault: counters need a value to grow from.
const STEPS_BEFORE: Millis = 4;

/// What came of it.
pub struct Played {
    /// The alerts that fired.
    pub alerts: Vec<Alert>,
    /// How long they took to, in injected time since the drill's beginning.
    pub after: Millis,
    /// Samples brought in.
    pub samples: u64,
    /// Pages read.
    pub pages: u64,
    /// Real time of each stage.
    pub inject: Duration,
    pub collect: Duration,
    pub store: Duration,
    pub rule: Duration,
}

/// Why not, and at which stage.
type Failure = (&'static str, String);

/// The layer at which a drill's fault goes in.
pub fn layer(drill: &Drill) -> &'static str {
    match drill.kernel {
        Some(_) => "the kernel's line, at the reader of kernel messages",
        None => "the sample, on the page that the scraper reads",
    }
}

/// Keeps what fires.
#[derive(Default)]
struct Fired(Mutex<Vec<Alert>>);

impl AlertSink for Fired {
    fn send(&self, _: &LoadedRule, alerts: &[Alert], _: Millis) {
        let firing = alerts.iter().filter(|alert| alert.state == AlertState::Firing);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(firing.cloned());
    }
}

/// Plays a drill that ends now.
pub fn play(
    drill: &Drill,
    rule: &LoadedRule,
    recordings: Vec<LoadedRule>,
    external_url: String,
    now: Millis,
) -> Result<Played, Failure> {
    let begun = Instant::now();
    let start = now - drill.lasts;
    let mut source = Source::new(drill, start).map_err(|reason| ("inject", reason))?;
    let db = tsdb::Db::open(tsdb::Options {
        vfs: Arc::new(MemFs::new()),
        ..tsdb::Options::new("/drill")
    });
    let db = Arc::new(db.map_err(|error| ("store", error.to_string()))?);
    db.wait_ready().map_err(|error| ("store", error.to_string()))?;
    let fired = Arc::new(Fired::default());
    let options = rules::Options {
        interval: drill.interval,
        external_url,
        // A drill has no targets that could be down.
        hold_missing: false,
        ..rules::Options::default()
    };
    let manager = rules::Manager::new(
        Arc::new(Engine::new(
            Arc::clone(&db) as Arc<dyn Queryable>,
            EngineOptions::default(),
        )),
        Arc::clone(&db) as Arc<dyn Appender>,
        Arc::clone(&fired) as _,
        options.clone(),
    );
    let group = LoadedGroup {
        rules: recordings.into_iter().chain([rule.clone()]).collect(),
        ..group_of(rule).ok_or_else(|| ("rule", format!("{} cannot stand in a group", rule.name)))?
    };
    manager.apply(&[Arc::new(group)], options, start);
    let job = Job {
        interval: drill.interval,
        honor_labels: true,
        ..Job::new("drill")
    };
    let labels = Labels::from_pairs([("job", "drill"), ("instance", "drill"), (MARK, "true")]);
    let mut ingest = Ingest::new(Arc::clone(&db) as Arc<dyn Appender>, Arc::new(job), labels);
    let mut played = Played {
        alerts: Vec::new(),
        after: 0,
        samples: 0,
        pages: 0,
        inject: begun.elapsed(),
        collect: Duration::ZERO,
        store: Duration::ZERO,
        rule: Duration::ZERO,
    };
    for step in 0..=drill.lasts / drill.interval {
        let time = start + step * drill.interval;
        let at = Instant::now();
        let page = source.page(time, step);
        played.collect += at.elapsed();
        let at = Instant::now();
        let outcome = ingest.ingest_page(time, page.as_bytes());
        let outcome = outcome.map_err(|error| ("store", error.to_string()))?;
        played.store += at.elapsed();
        played.samples += outcome.kept;
        played.pages += 1;
        let at = Instant::now();
        manager.run_all(time);
        played.rule += at.elapsed();
        played.alerts = std::mem::take(&mut *fired.0.lock().unwrap_or_else(PoisonError::into_inner));
        played
            .alerts
            .retain(|alert| alert.labels.get("alertname") == Some(&rule.name));
        if !played.alerts.is_empty() {
            played.after = time - start;
            return Ok(played);
        }
    }
    let status = manager.status();
    let errors: Vec<_> = status
        .iter()
        .flat_map(|g| &g.rules)
        .filter_map(|r| r.last_error.as_deref())
        .collect();
    let why = match errors.first() {
        Some(error) => format!(": its evaluation failed: {error}"),
        None => ": its expression gave nothing on the drill's samples, or not for long enough".to_owned(),
    };
    Err((
        "rule",
        format!("did not fire within {} s of injected time{why}", drill.lasts / 1000),
    ))
}

/// A group as a file with this rule alone would give it.
fn group_of(rule: &LoadedRule) -> Option<LoadedGroup> {
    let text = "groups:\n  - name: drill\n    rules:\n      - alert: A\n        expr: vector(1)\n";
    let mut groups = rules::check_text(&format!("drill of {}", rule.name), text).ok()?;
    groups.pop()
}

/// Makes the pages.
enum Source {
    Kernel {
        kernel: Arc<Kernel>,
        collectors: Vec<Box<dyn collect::Collector>>,
        line: String,
    },
    Samples(Vec<Points>),
}

impl Source {
    fn new(drill: &Drill, start: Millis) -> Result<Self, String> {
        let Some(line) = &drill.kernel else {
            return Ok(Self::Samples(drill.points(&drill.sick, start)));
        };
        let table = || Ok::<_, collect::Error>((Classifier::new(PATTERNS)?, XidCatalog::embedded()?));
        let (classifier, catalog) = table().map_err(|error| error.to_string())?;
        let kernel = Arc::new(Kernel::new(Arc::new(classifier), XidCounts::new(&catalog)));
        kernel.xids().know(GpuIdentity {
            gpu: "3".to_owned(),
            uuid: "GPU-drill".to_owned(),
            pci_bus_id: "00000000:43:00.0".to_owned(),
        });
        kernel.attached();
        let workers = collect::kernel::workers(&kernel);
        Ok(Self::Kernel {
            collectors: workers.into_iter().flat_map(|worker| worker.collectors).collect(),
            kernel,
            line: line.clone(),
        })
    }

    fn page(&mut self, time: Millis, step: Millis) -> String {
        match self {
            Self::Kernel {
                kernel,
                collectors,
                line,
            } => {
                if step == STEPS_BEFORE {
                    for line in line.lines() {
                        kernel.message(line, time);
                    }
                }
                let mut families: Vec<_> = collectors.iter_mut().flat_map(|c| c.collect(time).families).collect();
                families.retain(|family| !family.metrics.is_empty());
                exposition::write_page(&families, Format::Text)
            }
            Self::Samples(points) => page_of(points, time),
        }
    }
}

/// The samples of one moment as an exporter would show them.
fn page_of(points: &[Points], time: Millis) -> String {
    let mut page = String::new();
    for (labels, samples) in points {
        let Ok(at) = samples.binary_search_by_key(&time, |(at, _)| *at) else {
            continue;
        };
        let value = samples[at].1;
        if is_stale(value) {
            continue;
        }
        page.push_str(labels.get(METRIC_NAME).unwrap_or(""));
        page.push('{');
        let own = labels.drop_name();
        for (at, (name, value)) in own.iter().enumerate() {
            if at > 0 {
                page.push(',');
            }
            page.push_str(name);
            page.push_str("=\"");
            page.push_str(&value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
            page.push('"');
        }
        page.push_str("} ");
        page.push_str(&value.to_string());
        page.push('\n');
    }
    page
}
