//! The loops against targets on loopback: series that end, targets that go, configurations that change.

mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{Appended, Appender, Batch, Labels, Millis, SeriesId, StoreError, SystemClock, TargetId, is_stale};
use scrape::{Health, Job, LocalTarget, Manager};
use server::{Reply, Server};

#[derive(Default)]
struct Memory {
    series: Mutex<Vec<Labels>>,
    samples: Mutex<Vec<(Labels, Millis, f64)>>,
}

impl Appender for Memory {
    fn target(&self, _: &Labels) -> TargetId {
        TargetId(1)
    }

    fn series(&self, labels: &Labels) -> Result<SeriesId, StoreError> {
        let mut series = self.series.lock().expect("no panic");
        let at = series.iter().position(|l| l == labels).unwrap_or_else(|| {
            series.push(labels.clone());
            series.len() - 1
        });
        Ok(SeriesId(at as u64))
    }

    fn append(&self, _: TargetId, time: Millis, batch: &Batch) -> Result<Appended, StoreError> {
        let series = self.series.lock().expect("no panic");
        let mut samples = self.samples.lock().expect("no panic");
        for (id, value) in &batch.samples {
            let at = usize::try_from(id.0).expect("an index");
            samples.push((series[at].clone(), time, *value));
        }
        Ok(Appended::default())
    }
}

impl Memory {
    /// Values of a metric so far, in order; a staleness marker is absent.
    fn values(&self, name: &str) -> Vec<Option<f64>> {
        let samples = self.samples.lock().expect("no panic");
        let of = samples.iter().filter(|(l, ..)| l.name() == name);
        of.map(|(_, _, v)| (!is_stale(*v)).then_some(*v)).collect()
    }

    /// Waits until the store shows what `seen` looks for.
    async fn until(&self, what: &str, seen: impl Fn(&Self) -> bool) {
        for _ in 0..1_500 {
            if seen(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never: {what}");
    }
}

fn job(name: &str, address: &str, rest: &str) -> Job {
    let text = format!(
        "scrape_configs:\n- job_name: {name}\n  scrape_interval: 400ms\n  scrape_timeout: 400ms\n  \
         static_configs: [{{targets: ['{address}']}}]\n{rest}"
    );
    let config = config::prometheus::Config::parse("test", &text).expect("a configuration");
    Job::from(&config.scrape_configs[0])
}

fn manager() -> (Arc<Memory>, Manager) {
    let store = Arc::new(Memory::default());
    (store.clone(), Manager::new(store, Arc::new(SystemClock)))
}

#[tokio::test]
async fn a_series_that_vanishes_ends_and_a_bad_page_ends_all() {
    let server = Server::start(vec![Reply::page("x 1\ny 2\n")]).await;
    let (store, manager) = manager();
    manager
        .apply(vec![job("j", server.address(), "")], vec![])
        .await
        .expect("valid");
    store.until("x", |s| !s.values("x").is_empty()).await;
    server.reply(Reply::page("x 1\n"));
    store.until("y ends", |s| s.values("y").contains(&None)).await;
    assert!(!store.values("x").contains(&None));
    server.reply(Reply::page("garbage here\n"));
    store.until("up is 0", |s| s.values("up").contains(&Some(0.0))).await;
    store.until("x ends", |s| s.values("x").contains(&None)).await;
    store
        .until("shown", |_| manager.targets().active[0].health == Health::Down)
        .await;
    let target = manager.targets().active.remove(0);
    assert!(
        target.last_error.contains("line 1, column 9: not a number"),
        "{}",
        target.last_error
    );
    assert_eq!(store.values("y").iter().filter(|v| v.is_none()).count(), 1, "once");
    server.reply(Reply::page("x 5\n"));
    store.until("x again", |s| s.values("x").contains(&Some(5.0))).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_removed_target_ends_and_an_unchanged_one_goes_on() {
    let (one, two) = (
        Server::start(vec![Reply::page("a 1\n")]).await,
        Server::start(vec![Reply::page("b 1\n")]).await,
    );
    let (store, manager) = manager();
    let jobs = || vec![job("one", one.address(), ""), job("two", two.address(), "")];
    manager.apply(jobs(), vec![]).await.expect("valid");
    store
        .until("both", |s| !s.values("a").is_empty() && !s.values("b").is_empty())
        .await;
    manager.apply(jobs().split_off(1), vec![]).await.expect("valid");
    assert_eq!(store.values("a").last(), Some(&None), "ended before apply returned");
    let before = store.values("b").len();
    store.until("b goes on", |s| s.values("b").len() > before + 1).await;
    assert!(!store.values("b").contains(&None));
    assert_eq!(manager.targets().active.len(), 1);
    manager.stop().await;
    let stopped = store.values("b");
    assert!(!stopped.contains(&None), "a stop does not end series");
}

#[tokio::test]
async fn changed_settings_restart_the_loop_without_an_end() {
    let server = Server::start(vec![Reply::page("a 1\n")]).await;
    let (store, manager) = manager();
    manager
        .apply(vec![job("j", server.address(), "")], vec![])
        .await
        .expect("valid");
    store.until("a", |s| !s.values("a").is_empty()).await;
    let changed = job("j", server.address(), "  extra_scrape_metrics: true\n");
    manager.apply(vec![changed], vec![]).await.expect("valid");
    store
        .until("extra", |s| !s.values("scrape_body_size_bytes").is_empty())
        .await;
    assert!(!store.values("a").contains(&None));
    manager.stop().await;
}

#[tokio::test]
async fn a_collector_of_our_own_goes_the_same_way() {
    let (store, manager) = manager();
    let count = Arc::new(AtomicU64::new(0));
    let page = {
        let count = count.clone();
        move || match count.fetch_add(1, Ordering::Relaxed) {
            2 => Err("no driver".to_owned()),
            n => Ok(format!("# HELP own Own.\nown {n}\n").into_bytes()),
        }
    };
    let mut settings = Job::new("dcgm");
    settings.interval = 400;
    settings.timeout = 400;
    let local = LocalTarget {
        job: settings,
        labels: Labels::from_pairs([("job", "dcgm"), ("instance", "host")]),
        url: "http://127.0.0.1:9900/metrics/gpu".to_owned(),
        page: Arc::new(page),
    };
    manager.apply(vec![], vec![local]).await.expect("valid");
    store.until("a failure", |s| s.values("up").contains(&Some(0.0))).await;
    store.until("own again", |s| s.values("own").contains(&Some(3.0))).await;
    assert_eq!(store.values("own")[..3], [Some(0.0), Some(1.0), None]);
    assert_eq!(manager.metadata()[0].1["own"].help, "Own.");
    manager.stop().await;
}

#[tokio::test]
async fn a_target_that_hangs_does_not_hold_the_others_or_the_stop() {
    let (sick, well) = (
        Server::start(vec![Reply::Hang]).await,
        Server::start(vec![Reply::page("a 1\n")]).await,
    );
    let (store, manager) = manager();
    let mut slow = job("sick", sick.address(), "");
    slow.interval = 600_000;
    slow.timeout = 600_000;
    manager
        .apply(vec![slow, job("well", well.address(), "")], vec![])
        .await
        .expect("valid");
    store.until("a", |s| s.values("a").len() > 3).await;
    let stopped = tokio::time::timeout(Duration::from_secs(20), manager.stop()).await;
    assert!(stopped.is_ok(), "stop waited for a hanging target");
}

#[tokio::test]
async fn a_target_without_an_address_is_shown_with_its_reason() {
    let (_, manager) = manager();
    let broken = job(
        "j",
        "a:1",
        "  relabel_configs: [{target_label: __address__, replacement: ''}]\n",
    );
    let dropped = job("k", "b:1", "  relabel_configs: [{action: drop}]\n");
    manager.apply(vec![broken, dropped], vec![]).await.expect("valid");
    let targets = manager.targets();
    assert_eq!(targets.dropped.len(), 1);
    for _ in 0..500 {
        if manager.targets().active[0].health == Health::Down {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let shown = manager.targets().active.remove(0);
    assert!(shown.last_error.contains("no address"), "{}", shown.last_error);
    manager.stop().await;
}

#[tokio::test]
async fn what_limits_refuse_is_counted_by_target_and_culprit() {
    let server = Server::start(vec![Reply::page(
        "x{a=\"1\"} 1\nx{a=\"2\"} 1\nx{a=\"3\"} 1\nx{a=\"1\"} 1\n",
    )])
    .await;
    let (store, manager) = manager();
    let jobs = vec![
        job("j", server.address(), "  sample_limit: 1\n"),
        job("silent", "127.0.0.1:1", ""),
    ];
    manager.apply(jobs, vec![]).await.expect("valid");
    store.until("x", |s| !s.values("x").is_empty()).await;
    store
        .until("both seen", |_| {
            manager.targets().active.iter().all(|t| t.health != Health::Unknown)
        })
        .await;
    let lines: Vec<String> = manager
        .families()
        .iter()
        .flat_map(|f| f.metrics.iter().map(|m| (m.series(&f.name), m.value)))
        .map(|(labels, value)| {
            format!(
                "{} {}",
                model::labels::SeriesText(&labels),
                if value > 0.0 { "some" } else { "none" }
            )
        })
        .collect();
    let address = server.address();
    let want = [
        format!(
            "watchfire_scrape_refused_samples_total{{culprit=\"label a\", instance=\"{address}\", job=\"j\"}} some"
        ),
        format!("watchfire_scrape_duplicate_samples_total{{instance=\"{address}\", job=\"j\"}} some"),
        "watchfire_targets{health=\"up\", job=\"j\"} some".to_owned(),
        "watchfire_targets{health=\"down\", job=\"j\"} none".to_owned(),
        "watchfire_targets{health=\"unknown\", job=\"j\"} none".to_owned(),
        "watchfire_targets{health=\"up\", job=\"silent\"} none".to_owned(),
        "watchfire_targets{health=\"down\", job=\"silent\"} some".to_owned(),
        "watchfire_targets{health=\"unknown\", job=\"silent\"} none".to_owned(),
    ];
    assert_eq!(lines, want);
    manager.stop().await;
    let kept = store.values("scrape_samples_post_metric_relabeling");
    assert!(kept.contains(&Some(4.0)), "{kept:?}");
}
