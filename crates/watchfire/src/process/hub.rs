//! `watchfire hub` and `watchfire run`: scrape, store, query, rules, alerts and page in one process.
//!
//! The order of a start: everything that can be refused (files, address, folder) is refused first; then the store replays
//! its log while the page is served already; then the demonstration's history; then scrapes and rules, and `/-/ready` says yes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use exposition::Format;
use model::{Appender, Clock, Labels, Millis, QueryEngine, SystemClock};
use promql::{CachedEngine, Engine, EngineOptions};
use scrape::{Job, LocalTarget};
use tokio::sync::Semaphore;
use web::{Hub, HubStatus};

use super::alerting::Bridge;
use super::data::{InForce, Shows};
use super::demo::Demo;
use super::drill;
use super::events::Desk;
use super::reload::Reloads;
use super::settings::{Loaded, Settings};
use super::sources::{self, GPU_INVENTORY, GPU_RING, LOCAL_JOBS, Sources};
use super::{own_metrics, store};

/// How often the store tidies up: cuts blocks, compacts, drops what is too old.
const MAINTENANCE: Duration = Duration::from_secs(15);

/// The longest sleep of the rules' thread: a reload may bring a group that is due sooner.
const RULES_NAP_MAX: Millis = 1_000;

/// A simulated server is scraped this often, so that its faults are seen as they happen.
const DEMO_INTERVAL: Millis = 15_000;

/// A machine whose pages this process makes itself.
struct LocalMachine {
    sources: Arc<Sources>,
    labels: Box<dyn Fn(&str) -> Labels + Send + Sync>,
    interval: Option<Millis>,
}

/// The parts that a reload reaches.
struct Parts {
    settings: Settings,
    targets: scrape::Manager,
    rules: Arc<rules::Manager>,
    alerts: alerts::Manager,
    foreign: alerts::foreign::Notifier,
    machines: Vec<LocalMachine>,
    reloads: Reloads,
    in_force: InForce,
    own_metrics: OnceLock<Arc<dyn Fn() -> String + Send + Sync>>,
    /// Results of refreshing range queries; absent where every query is computed anew.
    cache: Option<CachedEngine>,
    /// Routes and receivers in force, for drills.
    alerting: Mutex<Option<config::alertmanager::Config>>,
}

/// Runs until asked to end.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let loaded = settings.load()?;
    let listener = web::listen(settings.listen, settings.insecure).await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = store::open(&settings)?;
    let appender: Arc<dyn Appender> = Arc::clone(&db) as Arc<dyn Appender>;
    let demo = if settings.demo {
        Some(Arc::new(Demo::prepare(&settings.data)?))
    } else {
        None
    };

    let alerts = alerts::Manager::start(
        &loaded.alerting,
        alerts::manager::Options {
            clock: Arc::clone(&clock),
            data_dir: Some(settings.data.clone()),
            external_url: settings.external_url(),
            alerts_max: usize::try_from(settings.config.limits.alerts).unwrap_or(usize::MAX),
        },
    )
    .context("cannot start the alert manager")?;
    let history = store::with_aliases(&db)?;
    let engine = Arc::new(Engine::new(Arc::clone(&history), engine_options(&settings, &loaded)));
    let foreign = alerts::foreign::Notifier::new(Arc::clone(&clock));
    let bridge = Bridge {
        alerts: alerts.clone(),
        foreign: foreign.clone(),
        external_url: settings.external_url(),
    };
    let rules = Arc::new(rules::Manager::new(
        Arc::clone(&engine) as _,
        Arc::clone(&appender),
        Arc::new(bridge),
        loaded.rule_options.clone(),
    ));
    let targets = scrape::Manager::new(Arc::clone(&appender), Arc::clone(&clock));
    let machines = machines(&settings, demo.as_ref())?;
    let cache = settings
        .result_cache()
        .map(|bytes| CachedEngine::new((*engine).clone(), history, bytes));
    let engine: Arc<dyn QueryEngine> = match &cache {
        Some(cache) => Arc::new(cache.clone()),
        None => engine,
    };
    let parts = Arc::new(Parts {
        cache,
        settings,
        targets,
        rules,
        alerts,
        foreign,
        machines,
        reloads: Reloads::begun(clock.now()),
        in_force: InForce::default(),
        own_metrics: OnceLock::new(),
        alerting: Mutex::default(),
    });
    let hub = Arc::new(page_parts(&parts, &loaded, engine, &db, clock, demo.is_some()));

    let serving = tokio::spawn(web::serve(
        listener,
        web::hub::router(Arc::clone(&hub)),
        super::asked_to_end(),
    ));
    tracing::info!("open http://{address}/");
    let stopping = Arc::new(AtomicBool::new(false));
    let begun = {
        let (db, demo, appender) = (Arc::clone(&db), demo.clone(), Arc::clone(&appender));
        let stopping = Arc::clone(&stopping);
        tokio::task::spawn_blocking(move || fill(&db, demo.as_ref(), &appender, &stopping))
    };
    let mut serving = serving;
    tokio::select! {
        begun = begun => begun.context("the start ended early")??,
        served = &mut serving => {
            // Asked to end before it had begun.
            stopping.store(true, Ordering::Release);
            return served.context("the server's task ended early")?.context("the listener failed");
        }
    }
    if let Some(demo) = demo {
        demo.play()?;
    }
    hub.data.otlp.set_options(super::data::otlp_options(&loaded));
    parts.apply(loaded).await?;
    let desk = Desk::of_hub(parts.targets.clone(), Arc::clone(&parts.rules))?;
    for machine in &parts.machines {
        desk.listen(&machine.sources.kernel(), |page| (machine.labels)(page));
    }
    let streams = tokio::spawn(scrape::events::follow(parts.targets.clone(), desk.on_events()));
    tokio::spawn(reload_at_hangup(Arc::clone(&hub)));
    let workers = [
        repeat("rules", Arc::clone(&stopping), rules_turn(Arc::clone(&parts)))?,
        repeat("store", Arc::clone(&stopping), maintenance_turn(Arc::clone(&db)))?,
    ];
    let _ = hub.drills.set(drill_desk(&parts, &hub, appender));
    hub.ready.store(true, Ordering::Release);
    tracing::info!("ready");

    let served = serving.await.context("the server's task ended early")?;
    stopping.store(true, Ordering::Release);
    streams.abort();
    drop(desk);
    parts.targets.stop().await;
    for worker in workers {
        // A panic in it was reported when it happened.
        let _ = tokio::task::spawn_blocking(move || worker.join()).await;
    }
    parts.foreign.shutdown().await;
    parts.alerts.shutdown().await;
    tokio::task::spawn_blocking(move || db.close())
        .await
        .context("the store's end was cut short")?
        .context("cannot close the store")?;
    served.context("the listener failed")
}

/// Replays the log and fills in the demonstration's history: all that must be there before the first rule is evaluated.
fn fill(
    db: &Arc<tsdb::Db>,
    demo: Option<&Arc<Demo>>,
    appender: &Arc<dyn Appender>,
    stopping: &AtomicBool,
) -> anyhow::Result<()> {
    store::wait_replayed(db)?;
    let Some(demo) = demo else { return Ok(()) };
    let begun = std::time::Instant::now();
    let samples = demo.fill_history(appender, |now| store::maintain(db, now), stopping)?;
    if samples > 0 {
        tracing::info!(
            samples,
            seconds = begun.elapsed().as_secs_f64(),
            "filled in the last day of the simulated server"
        );
    }
    Ok(())
}

fn engine_options(settings: &Settings, loaded: &Loaded) -> EngineOptions {
    EngineOptions {
        subquery_step: loaded.rule_options.interval,
        samples_max: usize::try_from(settings.config.limits.query_samples).unwrap_or(usize::MAX),
        series_max: usize::try_from(settings.config.limits.query_series).unwrap_or(usize::MAX),
        bytes_max: usize::try_from(settings.config.limits.query_memory).unwrap_or(usize::MAX),
        timeout: settings.query_timeout(),
        experimental: settings.config.promql_experimental,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        ..EngineOptions::default()
    }
}

/// The machines whose pages this process makes: this one, unless it is only a hub, and the simulated one.
fn machines(settings: &Settings, demo: Option<&Arc<Demo>>) -> anyhow::Result<Vec<LocalMachine>> {
    let mut out = Vec::new();
    if let Some(paths) = &settings.paths {
        let host = sources::host_name();
        out.push(LocalMachine {
            sources: Sources::of_here(
                paths,
                Some(&settings.data.join(GPU_INVENTORY)),
                Some(&settings.data.join(GPU_RING)),
                &settings.config.gpu,
            )?,
            labels: Box::new(move |job| Labels::from_pairs([("job", job), ("instance", &host)])),
            interval: None,
        });
    }
    if let Some(demo) = demo {
        let server = Arc::clone(demo);
        out.push(LocalMachine {
            sources: demo.sources(),
            labels: Box::new(move |job| server.labels(job)),
            interval: Some(DEMO_INTERVAL),
        });
    }
    Ok(out)
}

impl Parts {
    /// Puts a configuration in force, everywhere or nowhere.
    async fn apply(&self, loaded: Loaded) -> anyhow::Result<()> {
        let locals = self.local_targets(&loaded);
        let shown = InForce::shown(&loaded);
        // The one part that can refuse comes first.
        self.alerts
            .reload(&loaded.alerting)
            .context("cannot use the alerting configuration")?;
        *self.alerting.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded.alerting.clone());
        self.targets
            .apply(loaded.jobs, locals)
            .await
            .context("cannot use the scrape configuration")?;
        let global = &loaded.config.prometheus.global;
        for remark in self
            .foreign
            .apply(&loaded.config.prometheus.alerting, &global.external_labels)
        {
            tracing::warn!("{remark}");
        }
        self.rules.apply(&loaded.groups, loaded.rule_options, SystemClock.now());
        self.in_force.set(shown);
        Ok(())
    }

    fn local_targets(&self, loaded: &Loaded) -> Vec<LocalTarget> {
        let interval = loaded.config.global.scrape_interval;
        let mut out = Vec::new();
        let own = self.own_metrics.get().filter(|_| self.settings.scrapes_itself());
        if let Some(own) = own.map(Arc::clone) {
            let host = sources::host_name();
            out.push(LocalTarget {
                job: Job {
                    interval,
                    timeout: interval.min(10_000),
                    // What it says of targets names them by their own labels.
                    honor_labels: true,
                    ..Job::new("watchfire")
                },
                labels: Labels::from_pairs([("job", "watchfire"), ("instance", &host)]),
                url: "in this process/metrics".to_owned(),
                page: Arc::new(move || Ok(own().into_bytes())),
            });
        }
        for machine in &self.machines {
            for (name, page, path) in LOCAL_JOBS {
                let sources = Arc::clone(&machine.sources);
                let interval = machine.interval.map_or(interval, |own| own.min(interval));
                let job = Job {
                    interval,
                    timeout: interval.min(10_000),
                    ..Job::new(name)
                };
                out.push(LocalTarget {
                    job,
                    labels: (machine.labels)(name),
                    url: format!("in this process{path}"),
                    page: Arc::new(move || Ok(sources.page(page).into_bytes())),
                });
            }
        }
        out
    }
}

impl Shows for Parts {
    fn in_force(&self) -> &InForce {
        &self.in_force
    }

    fn reloads(&self) -> &Reloads {
        &self.reloads
    }
}

fn page_parts(
    parts: &Arc<Parts>,
    loaded: &Loaded,
    engine: Arc<dyn QueryEngine>,
    db: &Arc<tsdb::Db>,
    clock: Arc<dyn Clock>,
    demo: bool,
) -> Hub {
    let counted = Arc::clone(db);
    let own = own_page(parts, db);
    let reloaded = Arc::clone(parts);
    let handle = tokio::runtime::Handle::current();
    // One reload at a time; a second one waits for the first.
    let one = Mutex::new(());
    let config = &loaded.config;
    let external = parts.settings.external_url();
    Hub {
        engine,
        data: super::data::data(db, &parts.settings, Arc::downgrade(parts)),
        targets: parts.targets.clone(),
        rules: Arc::clone(&parts.rules),
        alerts: parts.alerts.clone(),
        ring: super::ring::window(
            parts
                .settings
                .paths
                .is_some()
                .then(|| parts.settings.data.join(GPU_RING))
                .as_deref(),
        ),
        own_metrics: Box::new(move || own()),
        reload: Box::new(move || {
            let _one = one.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = reloaded
                .settings
                .load()
                .and_then(|loaded| handle.block_on(reloaded.apply(loaded)));
            reloaded.reloads.note(outcome, SystemClock.now())
        }),
        series_count: Box::new(move || store::series(&counted)),
        ready: AtomicBool::new(false),
        status: HubStatus {
            version: env!("CARGO_PKG_VERSION"),
            hostname: sources::host_name(),
            mode: parts.settings.mode,
            demo,
            started_at: clock.now(),
            retention: config.retention.time,
            retention_bytes: config.retention.bytes,
            external_url: external,
        },
        clock,
        query_timeout: parts.settings.query_timeout(),
        queries: Arc::new(web::queries::Queries::new(Duration::from_millis(
            config.limits.slow_query.unsigned_abs(),
        ))),
        query_slots: Arc::new(Semaphore::new(
            usize::try_from(config.limits.queries)
                .unwrap_or(web::hub::QUERIES_AT_ONCE)
                .max(1),
        )),
        drills: OnceLock::new(),
    }
}

/// Who runs drills: with the rules, routes and receivers in force, beside the real ones and never through them.
fn drill_desk(parts: &Arc<Parts>, hub: &Hub, appender: Arc<dyn Appender>) -> Arc<dyn web::drill::Drills> {
    let of = Arc::clone(parts);
    Arc::new(drill::Desk::new(drill::Surroundings {
        rules: Arc::clone(&parts.rules),
        alerts: parts.alerts.clone(),
        engine: Arc::clone(&hub.engine),
        appender,
        alerting: Box::new(move || of.alerting.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        data: parts.settings.data.clone(),
        external_url: parts.settings.external_url(),
        runtime: tokio::runtime::Handle::current(),
    }))
}

/// The page of this hub's own metrics; the hub scrapes it like any other.
fn own_page(parts: &Arc<Parts>, db: &Arc<tsdb::Db>) -> Arc<dyn Fn() -> String + Send + Sync> {
    // The page belongs to the parts, so it must not keep them alive.
    let (weak, measured) = (Arc::downgrade(parts), Arc::clone(db));
    let page: Arc<dyn Fn() -> String + Send + Sync> = Arc::new(move || {
        let mut families = own_metrics::families(env!("CARGO_PKG_VERSION"));
        families.extend(store::families(&measured));
        if let Some(parts) = weak.upgrade() {
            families.extend(parts.targets.families());
            families.extend(parts.reloads.families());
            families.extend(parts.alerts.families());
            families.push(own_metrics::rules_failing(&parts.rules));
            families.extend(parts.cache.iter().flat_map(own_metrics::result_cache));
            families.extend(parts.foreign.families());
        }
        exposition::write_page(&families, Format::Text)
    });
    Arc::clone(parts.own_metrics.get_or_init(|| page))
}

/// Takes the configuration anew whenever the process gets SIGHUP, as the field's servers do.
async fn reload_at_hangup(hub: Arc<Hub>) {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            tracing::warn!(%error, "cannot listen for SIGHUP; POST /-/reload still takes the configuration anew");
            return;
        }
    };
    while hangups.recv().await.is_some() {
        let hub = Arc::clone(&hub);
        // What came of it is in the log.
        let _ = tokio::task::spawn_blocking(move || (hub.reload)()).await;
    }
}

/// Runs `turn` again and again on a thread of its own; it says how long to sleep between.
fn repeat(
    name: &str,
    stopping: Arc<AtomicBool>,
    mut turn: impl FnMut() -> Duration + Send + 'static,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    const GLANCE: Duration = Duration::from_millis(100);
    let work = move || {
        while !stopping.load(Ordering::Acquire) {
            let mut left = turn();
            while left > Duration::ZERO && !stopping.load(Ordering::Acquire) {
                let nap = left.min(GLANCE);
                std::thread::sleep(nap);
                left -= nap;
            }
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start the {name} thread"))
}

fn rules_turn(parts: Arc<Parts>) -> impl FnMut() -> Duration {
    move || {
        let now = SystemClock.now();
        let next = parts.rules.run_due(now);
        let left = (next - SystemClock.now()).clamp(1, RULES_NAP_MAX);
        Duration::from_millis(left.unsigned_abs())
    }
}

fn maintenance_turn(db: Arc<tsdb::Db>) -> impl FnMut() -> Duration {
    move || {
        store::maintain(&db, SystemClock.now());
        MAINTENANCE
    }
}
