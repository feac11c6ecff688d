//! What the hub's routes about data need of this process: the store, those who write to it, and what it tells of itself.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use model::Appender;
use remote::{Limits, Sayings, otlp, write};
use tokio::sync::Semaphore;
use tsdb::Db;
use web::data::{BlockFacts, ConfigFacts, Data, StoreFacts};

use super::reload::Reloads;
use super::settings::{Loaded, Settings};

/// Requests that push at once: each may hold its body and what it unpacks to.
const PUSHES_AT_ONCE: usize = 8;

/// What the configuration in force says, for the page that shows it.
#[derive(Default)]
pub struct InForce(Mutex<(String, model::Labels)>);

impl InForce {
    /// What is to be shown of a configuration.
    pub fn shown(loaded: &Loaded) -> (String, model::Labels) {
        let prometheus = &loaded.config.prometheus;
        (web::yaml::config(prometheus), prometheus.global.external_labels.clone())
    }

    /// A configuration has come into force.
    pub fn set(&self, shown: (String, model::Labels)) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn facts(&self, reloads: &Reloads) -> ConfigFacts {
        let (yaml, external_labels) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (is_last_good, loaded_at) = reloads.last();
        ConfigFacts {
            yaml,
            external_labels,
            loaded_at: Some(loaded_at),
            is_last_good,
        }
    }
}

/// The parts of a reload that these routes show; gone when the process ends.
pub trait Shows: Send + Sync {
    /// What is in force.
    fn in_force(&self) -> &InForce;
    /// What came of the last reload.
    fn reloads(&self) -> &Reloads;
}

/// The store and the ways to it.
pub fn data<P: Shows + 'static>(db: &Arc<Db>, settings: &Settings, parts: Weak<P>) -> Data {
    let appender: Arc<dyn Appender> = Arc::clone(db) as _;
    let sayings = Arc::new(Sayings::default());
    let body = settings.config.limits.body_bytes;
    let limits = Limits {
        compressed: body.min(Limits::default().compressed),
        decompressed: body,
        ..Limits::default()
    };
    let told = Arc::clone(db);
    Data {
        store: Arc::clone(db) as _,
        exemplars: Arc::clone(db) as _,
        admin: settings.admin_api().then(|| Arc::clone(db) as _),
        write: write::Receiver::new(Arc::clone(&appender), Arc::clone(&sayings), limits),
        otlp: otlp::Receiver::new(appender, Arc::clone(&sayings), limits),
        sayings,
        pushes: Arc::new(Semaphore::new(PUSHES_AT_ONCE)),
        config: Box::new(move || {
            let parts = parts.upgrade();
            parts.map_or_else(ConfigFacts::default, |p| p.in_force().facts(p.reloads()))
        }),
        flags: flags(settings),
        facts: Box::new(move || facts(&told)),
    }
}

/// How OTLP's points become series, as the configuration says.
pub fn otlp_options(loaded: &Loaded) -> otlp::Options {
    let config = &loaded.config.prometheus.otlp;
    let promote_all = config.promote_all_resource_attributes;
    otlp::Options {
        translation: otlp::Translation::from_config(&config.translation_strategy),
        promote_all,
        attributes: if promote_all {
            config.ignore_resource_attributes.clone()
        } else {
            config.promote_resource_attributes.clone()
        },
    }
}

/// Our settings by the names of Prometheus' flags, which its clients know.
fn flags(settings: &Settings) -> Vec<(&'static str, String)> {
    let config = &settings.config;
    let span = |ms| model::time::DurationText(ms).to_string();
    let file = |path: Option<&Path>| path.map(|p| p.display().to_string()).unwrap_or_default();
    vec![
        ("config.file", file(settings.config_file())),
        ("query.max-concurrency", config.limits.queries.to_string()),
        ("query.max-samples", config.limits.query_samples.to_string()),
        ("query.timeout", span(config.limits.query_timeout)),
        ("storage.tsdb.path", settings.data.join("metrics").display().to_string()),
        ("storage.tsdb.retention.size", format!("{}B", config.retention.bytes)),
        ("storage.tsdb.retention.time", span(config.retention.time)),
        ("web.enable-admin-api", settings.admin_api().to_string()),
        ("web.enable-lifecycle", "true".to_owned()),
        ("web.enable-otlp-receiver", "true".to_owned()),
        ("web.enable-remote-write-receiver", "true".to_owned()),
        ("web.external-url", settings.external_url()),
        ("web.listen-address", settings.listen.to_string()),
    ]
}

fn facts(db: &Db) -> StoreFacts {
    let stats = db.stats();
    let block = |meta: blocks::block::Meta| BlockFacts {
        span: (meta.mint, meta.maxt),
        counts: (meta.count("samples"), meta.count("series"), meta.count("chunks")),
        level: meta.level,
        sources: if meta.sources.is_empty() {
            vec![meta.ulid.clone()]
        } else {
            meta.sources
        },
        ulid: meta.ulid,
    };
    StoreFacts {
        series: stats.head_series,
        chunks: stats.head_chunks,
        mint: stats.head_mint,
        maxt: stats.head_maxt,
        corruptions: stats.wal_corruptions + stats.chunk_corruptions,
        blocks: db.block_metas().into_iter().map(block).collect(),
    }
}
