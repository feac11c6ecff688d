//! A hub with an engine that can misbehave, and a client.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::{Clock, Deadline, Labels, Matcher, Millis, QueryEngine, QueryError, QueryOutcome};
use promql::testscript::MemStore;
use promql::testscript::notation::parse_metric;
use promql::{Engine, EngineOptions};
use rules::{Alert, AlertSink, LoadedRule};
use scrape::{Job, LocalTarget};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use crate::data::{BlockFacts, ConfigFacts, Data, StoreFacts};
use crate::hub::{Hub, HubStatus, router};
use crate::serve::serve;

/// 2015-07-01T20:10:51.781Z, the moment of the field's examples.
pub const NOW: Millis = 1_435_781_451_781;

struct Still;

impl Clock for Still {
    fn now(&self) -> Millis {
        NOW
    }
}

/// PromQL over a store in memory; some words make it fail.
struct Moody {
    engine: Engine,
    ended: Arc<Mutex<Vec<QueryError>>>,
}

impl Moody {
    fn mood(&self, expr: &str, deadline: &Deadline) -> Result<(), QueryError> {
        match expr {
            "execution" => Err(QueryError::Execution("found duplicate series".into())),
            "unavailable" => Err(QueryError::Unavailable("the far side is down".into())),
            "internal" => Err(QueryError::Internal("disk on fire".into())),
            "panic" => panic!("a test asked for it"),
            "slow" => {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_secs(20) {
                    if let Err(error) = deadline.check() {
                        self.ended.lock().expect("free").push(error.clone());
                        return Err(error);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl QueryEngine for Moody {
    fn instant(&self, expr: &str, time: Millis, deadline: &Deadline) -> Result<QueryOutcome, QueryError> {
        self.mood(expr, deadline)?;
        self.engine.instant(expr, time, deadline)
    }

    fn range(
        &self,
        expr: &str,
        start: Millis,
        end: Millis,
        step: Millis,
        deadline: &Deadline,
    ) -> Result<QueryOutcome, QueryError> {
        self.mood(expr, deadline)?;
        self.engine.range(expr, start, end, step, deadline)
    }

    fn series(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<Labels>, QueryError> {
        self.engine.series(selectors, start, end, deadline)
    }

    fn label_names(
        &self,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        self.engine.label_names(selectors, start, end, deadline)
    }

    fn label_values(
        &self,
        name: &str,
        selectors: &[Vec<Matcher>],
        start: Millis,
        end: Millis,
        deadline: &Deadline,
    ) -> Result<Vec<String>, QueryError> {
        self.engine.label_values(name, selectors, start, end, deadline)
    }
}

struct Nobody;

impl AlertSink for Nobody {
    fn send(&self, _: &LoadedRule, _: &[Alert], _: Millis) {}
}

const RULES: &str = r#"
groups:
  - name: example
    rules:
      - alert: HighRequestLatency
        expr: job:request_latency_seconds:mean5m{job="myjob"} > 0.5
        labels: {severity: page}
        annotations: {summary: High request latency}
      - {record: 'job:http_inprogress_requests:sum', expr: sum by (job) (http_inprogress_requests)}
      - {alert: Quiet, expr: vector(1) > 2, for: 10m}
"#;

const SERIES: &[(&str, f64)] = &[
    ("up{job=\"prometheus\",instance=\"localhost:9090\"}", 1.0),
    ("up{job=\"node\",instance=\"localhost:9091\"}", 0.0),
    (
        "process_start_time_seconds{job=\"prometheus\",instance=\"localhost:9090\"}",
        3.0,
    ),
    ("http_requests_total{http_status_code=\"200\"}", 3.0),
    ("http_requests_total{http_status_code=\"504\"}", 3.0),
    ("job:request_latency_seconds:mean5m{job=\"myjob\"}", 1.0),
];

/// A hub that answers.
pub struct Stage {
    pub address: SocketAddr,
    pub hub: Arc<Hub>,
    /// How slow queries ended.
    pub ended: Arc<Mutex<Vec<QueryError>>>,
    pub stop: Option<oneshot::Sender<()>>,
    pub serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// What is pushed goes here.
    pub db: Arc<tsdb::Db>,
    _folder: tempfile::TempDir,
}

/// Pushes go to a store on disk, federation and remote read see the example's series.
fn data(db: &Arc<tsdb::Db>, store: &Arc<MemStore>) -> Data {
    let sayings = Arc::new(remote::Sayings::default());
    let limits = remote::Limits::default();
    let appender: Arc<dyn model::Appender> = Arc::clone(db) as _;
    let config =
        "global: {scrape_interval: 15s}\nscrape_configs: [{job_name: prometheus, basic_auth: {password: hush}}]\n";
    let config = config::prometheus::Config::parse("test", config).expect("a configuration");
    Data {
        store: Arc::clone(store) as _,
        exemplars: Arc::clone(db) as _,
        admin: Some(Arc::clone(db) as _),
        write: remote::write::Receiver::new(Arc::clone(&appender), Arc::clone(&sayings), limits),
        otlp: remote::otlp::Receiver::new(appender, Arc::clone(&sayings), limits),
        sayings,
        pushes: Arc::new(Semaphore::new(2)),
        config: Box::new(move || ConfigFacts {
            yaml: crate::yaml::config(&config),
            external_labels: Labels::from_pairs([("site", "here")]),
            loaded_at: Some(NOW),
            is_last_good: false,
        }),
        flags: vec![("web.listen-address", "127.0.0.1:9900".into())],
        facts: Box::new(|| StoreFacts {
            blocks: vec![BlockFacts {
                ulid: "01JZ8JKZY6XSK3PTDP9ZKRWT60".into(),
                sources: vec!["01JZ8JKZY6XSK3PTDP9ZKRWT60".into()],
                ..BlockFacts::default()
            }],
            ..StoreFacts::default()
        }),
    }
}

fn relabel() -> Vec<config::relabel::RelabelConfig> {
    let text = "scrape_configs: [{job_name: j, relabel_configs: [{target_label: env, replacement: development}, \
                {source_labels: [__address__], regex: 'localhost:.*', action: drop}]}]";
    let config = config::prometheus::Config::parse("test", text).expect("a configuration");
    config.scrape_configs[0].relabel_configs.clone()
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(None, true).await
    }

    /// A hub whose store nobody may administrate over HTTP.
    pub async fn without_admin() -> Self {
        Self::with(None, false).await
    }

    /// With an alert manager of the test's own.
    pub async fn with_alerts(alerts: alerts::Manager) -> Self {
        Self::with(Some(alerts), true).await
    }

    async fn with(alerts: Option<alerts::Manager>, is_admin: bool) -> Self {
        let store = Arc::new(MemStore::new());
        for (series, value) in SERIES {
            let labels = parse_metric(series).expect("a series");
            for back in [21_000, 6_000, 0] {
                store.add(&labels, NOW - back, *value);
            }
        }
        let ended = Arc::default();
        let engine = Engine::new(store.clone(), EngineOptions::default());
        let engine: Arc<dyn QueryEngine> = Arc::new(Moody {
            engine,
            ended: Arc::clone(&ended),
        });
        let clock: Arc<dyn Clock> = Arc::new(Still);
        let folder = tempfile::tempdir().expect("a folder");
        let db = Arc::new(tsdb::Db::open(tsdb::Options::new(folder.path().join("db"))).expect("a store"));
        db.wait_ready().expect("an empty log");
        let mut data = data(&db, &store);
        if !is_admin {
            data.admin = None;
        }
        // What is scraped goes elsewhere: queries find the example's series alone.
        let targets = scrape::Manager::new(Arc::new(MemStore::new()), Arc::clone(&clock));
        let local = LocalTarget {
            job: Job {
                relabel: relabel(),
                ..Job::new("node")
            },
            labels: Labels::from_pairs([("job", "node"), ("instance", "box")]),
            url: "http://127.0.0.1:9100/metrics".into(),
            page: Arc::new(|| Ok(b"# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n".to_vec())),
        };
        targets.apply(Vec::new(), vec![local]).await.expect("targets");
        let options = rules::Options::default();
        let manager = rules::Manager::new(Arc::clone(&engine), store, Arc::new(Nobody), options.clone());
        let groups = rules::check_text("rules.yml", RULES).expect("rules");
        let groups: Vec<_> = groups.into_iter().map(Arc::new).collect();
        manager.apply(&groups, options, NOW);
        manager.run_all(NOW);
        let alerts = alerts.unwrap_or_else(|| {
            let alerting = alerts::manager::Options {
                clock: Arc::clone(&clock),
                data_dir: None,
                external_url: String::new(),
                alerts_max: 100,
            };
            alerts::Manager::start(&alerts::defaults::default_config(), alerting).expect("alerts")
        });
        let hub = Arc::new(Hub {
            engine,
            data,
            targets,
            rules: Arc::new(manager),
            alerts,
            clock,
            ring: Arc::new(|_| Err(crate::RingRefusal::Absent("no GPU is watched here".to_owned()))),
            own_metrics: Box::new(|| "watchfire_build_info 1\n".repeat(40)),
            reload: Box::new(|| Err("line 3: no such key".into())),
            series_count: Box::new(|| 6),
            ready: AtomicBool::new(true),
            status: HubStatus {
                version: "0.1.0",
                external_url: "https://watch.example/".into(),
                ..HubStatus::default()
            },
            query_timeout: Duration::from_secs(10),
            queries: Arc::default(),
            query_slots: Arc::new(Semaphore::new(2)),
            drills: std::sync::OnceLock::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(listener, router(Arc::clone(&hub)), async {
            let _ = stopped.await;
        }));
        Self {
            address,
            hub,
            ended,
            stop: Some(stop),
            serving,
            db,
            _folder: folder,
        }
    }

    pub fn set_ready(&self, ready: bool) {
        self.hub.ready.store(ready, Ordering::Release);
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the hub listens")
    }

    /// Sends a request as it stands and reads the whole answer.
    pub async fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("an answer");
        Answer::read(&bytes)
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        );
        self.raw(&request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub async fn post_form(&self, path: &str, form: &str) -> Answer {
        self.send(
            "POST",
            path,
            "Content-Type: application/x-www-form-urlencoded\r\n",
            form,
        )
        .await
    }
}

/// An answer taken apart.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        Self {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?} {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}
