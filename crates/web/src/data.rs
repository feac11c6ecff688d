//! What the routes about data ask: the store as it is, and those who write to it.

use std::collections::HashMap;
use std::sync::Arc;

use model::{ExemplarQueryable, Labels, Matcher, Millis, Queryable, StoreAdmin, StoreError};
use remote::{Sayings, otlp, write};
use tokio::sync::Semaphore;

/// The store and the ways to it.
pub struct Data {
    /// The series as they are stored, without aliases: for federation and remote read.
    pub store: Arc<dyn Queryable>,
    /// Examples of observations.
    pub exemplars: Arc<dyn ExemplarQueryable>,
    /// Deletions and snapshots; absent where they are not allowed.
    pub admin: Option<Arc<dyn StoreAdmin>>,
    /// Takes remote write.
    pub write: write::Receiver,
    /// Takes OpenTelemetry's metrics.
    pub otlp: otlp::Receiver,
    /// What pushers say of metrics.
    pub sayings: Arc<Sayings>,
    /// Places for requests that push: their bodies are in memory.
    pub pushes: Arc<Semaphore>,
    /// What the configuration says at present.
    pub config: Box<dyn Fn() -> ConfigFacts + Send + Sync>,
    /// Flags of this process, by the names that the field's clients know.
    pub flags: Vec<(&'static str, String)>,
    /// What the store tells of itself.
    pub facts: Box<dyn Fn() -> StoreFacts + Send + Sync>,
}

/// What the configuration in force says.
#[derive(Debug, Clone, Default)]
pub struct ConfigFacts {
    /// The ecosystem's part, as YAML without secrets.
    pub yaml: String,
    /// Labels of this server, for whoever takes its data.
    pub external_labels: Labels,
    /// When it was put in force.
    pub loaded_at: Option<Millis>,
    /// Whether the last attempt to load one succeeded.
    pub is_last_good: bool,
}

/// What the store tells of itself.
#[derive(Debug, Clone, Default)]
pub struct StoreFacts {
    /// Series in the head.
    pub series: u64,
    /// Sealed chunks in the head.
    pub chunks: u64,
    /// Earliest sample of the head.
    pub mint: Option<Millis>,
    /// Latest sample of the head.
    pub maxt: Option<Millis>,
    /// Damaged places found in the log.
    pub corruptions: u64,
    /// Blocks on disk.
    pub blocks: Vec<BlockFacts>,
}

/// A block on disk.
#[derive(Debug, Clone, Default)]
pub struct BlockFacts {
    /// Its name.
    pub ulid: String,
    /// Earliest and latest sample.
    pub span: (Millis, Millis),
    /// Samples, series and chunks.
    pub counts: (u64, u64, u64),
    /// How often it was compacted.
    pub level: u32,
    /// The blocks it was made of.
    pub sources: Vec<String>,
}

/// Names with counts, the largest first.
pub type Ranking = Vec<(String, u64)>;

/// How many there are of what.
#[derive(Debug, Clone, Default)]
pub struct Cardinality {
    /// Series by metric name.
    pub by_metric: Ranking,
    /// Values by label name.
    pub values_by_label: Ranking,
    /// Bytes of values by label name.
    pub bytes_by_label: Ranking,
    /// Series by `label=value`.
    pub by_pair: Ranking,
    /// Different pairs of label and value.
    pub pairs: u64,
}

impl Cardinality {
    /// Counts the series with samples in `mint..=maxt`; each ranking has `most` entries.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn count(store: &dyn Queryable, mint: Millis, maxt: Millis, most: usize) -> Result<Self, StoreError> {
        let named = Matcher::new(model::MatchOp::NotEqual, model::METRIC_NAME, "")
            .map_err(|e| StoreError::Limit(e.to_string()))?;
        let mut pairs: HashMap<(String, String), u64> = HashMap::new();
        for series in store.select(&[named], mint, maxt)?.series {
            for (name, value) in series.labels() {
                *pairs.entry((name.to_owned(), value.to_owned())).or_default() += 1;
            }
        }
        let (mut metrics, mut labels, mut bytes) = (HashMap::new(), HashMap::new(), HashMap::new());
        for ((name, value), count) in &pairs {
            if name == model::METRIC_NAME {
                metrics.insert(value.clone(), *count);
            }
            *labels.entry(name.clone()).or_insert(0) += 1;
            *bytes.entry(name.clone()).or_insert(0) += value.len() as u64;
        }
        Ok(Self {
            by_metric: ranking(metrics, most),
            values_by_label: ranking(labels, most),
            bytes_by_label: ranking(bytes, most),
            pairs: pairs.len() as u64,
            by_pair: ranking(
                pairs.into_iter().map(|((n, v), count)| (format!("{n}={v}"), count)),
                most,
            ),
        })
    }
}

fn ranking(counts: impl IntoIterator<Item = (String, u64)>, most: usize) -> Ranking {
    let mut out: Ranking = counts.into_iter().collect();
    out.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    out.truncate(most);
    out
}
