//! OpenTelemetry's metrics over HTTP: protobuf and JSON.
//!
//! A point becomes samples under Prometheus' names: unit and type at the end of the name, attributes as labels, `job`
//! and `instance` out of the resource, what else is known of the resource as `target_info`. Exponential histograms
//! become native ones. Only cumulative values are taken: a delta cannot be stored without state that a restart would
//! lose, so it is refused with that reason, and its neighbours are stored.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use exposition::wire::{put_bytes, put_varint};
use model::{Appender, Batch, Labels, LabelsBuilder, Millis, SeriesId, StoreError, TargetId};

use crate::body::Limits;
use crate::error::Error;
use crate::memory::Sayings;

mod convert;
mod json;
mod name;
mod point;
mod proto;

pub use name::Translation;
use point::{Attributes, Metric, Visit};

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Protobuf.
    Protobuf,
    /// JSON.
    Json,
}

impl Encoding {
    /// The encoding of a content type.
    #[must_use]
    pub fn from_content_type(header: &str) -> Option<Self> {
        let media = header.split(';').next().unwrap_or("").trim();
        if media.eq_ignore_ascii_case("application/x-protobuf") {
            Some(Self::Protobuf)
        } else if media.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    /// The content type of the answer.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// How points become series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// How names are translated.
    pub translation: Translation,
    /// Whether every attribute of a resource becomes a label of its series.
    pub promote_all: bool,
    /// Attributes of a resource that become labels; with `promote_all`, those that do not.
    pub attributes: Vec<String>,
}

impl Options {
    fn promotes(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a == name) != self.promote_all
    }
}

/// Series whose moment of creation is remembered.
const CREATED_MAX: usize = 500_000;

/// Samples appended at once.
const PORTION: usize = 65_536;

/// Takes requests. Shared by all connections.
pub struct Receiver {
    appender: Arc<dyn Appender>,
    target: TargetId,
    limits: Limits,
    options: Mutex<Arc<Options>>,
    sayings: Arc<Sayings>,
    created: Mutex<HashMap<SeriesId, Millis>>,
}

impl Receiver {
    /// A receiver that writes to `appender`; what is said of metrics goes to `sayings`.
    #[must_use]
    pub fn new(appender: Arc<dyn Appender>, sayings: Arc<Sayings>, limits: Limits) -> Self {
        let target = appender.target(&Labels::from_pairs([("job", "otlp")]));
        Self {
            appender,
            target,
            limits,
            options: Mutex::default(),
            sayings,
            created: Mutex::default(),
        }
    }

    /// Translates as `options` say from the next request on.
    pub fn set_options(&self, options: Options) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
    }

    /// The bounds it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Stores a body that came at `now`; gives the answer's body, which tells what was refused. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error`] when nothing of it is stored.
    pub fn receive(&self, body: &[u8], encoding: Encoding, is_gzip: bool, now: Millis) -> Result<Vec<u8>, Error> {
        let size = |size: u64, what: &'static str, most: u64| Error::Size { size, what, most };
        if body.len() as u64 > self.limits.compressed {
            return Err(size(body.len() as u64, "compressed", self.limits.compressed));
        }
        let mut unpacked = Vec::new();
        let body = if is_gzip {
            let most = self.limits.decompressed;
            let mut decoder = flate2::read::GzDecoder::new(body).take(most + 1);
            let read = decoder.read_to_end(&mut unpacked);
            read.map_err(|e| Error::Broken(format!("gzip: {e}")))?;
            if unpacked.len() as u64 > most {
                return Err(size(unpacked.len() as u64, "decompressed", most));
            }
            &unpacked
        } else {
            body
        };
        let mut walk = Walk {
            receiver: self,
            options: Arc::clone(&self.options.lock().unwrap_or_else(PoisonError::into_inner)),
            now,
            resource: Resource::default(),
            batch: Batch::default(),
            stored: 0,
            refused: 0,
            reason: String::new(),
        };
        match encoding {
            Encoding::Protobuf => proto::read(body, &mut walk)?,
            Encoding::Json => json::read(body, &mut walk)?,
        }
        walk.end_resource()?;
        walk.flush()?;
        if walk.stored == 0 && walk.refused > 0 {
            return Err(Error::Partial(walk.reason));
        }
        Ok(walk.answer(encoding))
    }
}

/// A resource's part in its series.
#[derive(Default)]
struct Resource {
    attributes: Attributes,
    /// Labels of every series.
    labels: Vec<(String, String)>,
    /// The latest moment of its points; 0 before the first.
    latest: Millis,
}

/// The attributes that say who a resource is: they become `job` and `instance`.
const IDENTITY: [&str; 3] = ["service.name", "service.namespace", "service.instance.id"];

struct Walk<'r> {
    receiver: &'r Receiver,
    options: Arc<Options>,
    now: Millis,
    resource: Resource,
    batch: Batch,
    stored: u64,
    refused: u64,
    reason: String,
}

impl Visit for Walk<'_> {
    fn resource(&mut self, attributes: Attributes) -> Result<(), Error> {
        self.end_resource()?;
        let of = |name: &str| attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let mut labels = Vec::new();
        if let Some(name) = of("service.name") {
            let job = match of("service.namespace") {
                Some(space) if !space.is_empty() => format!("{space}/{name}"),
                _ => name.to_owned(),
            };
            labels.push(("job".to_owned(), job));
        }
        if let Some(instance) = of("service.instance.id") {
            labels.push(("instance".to_owned(), instance.to_owned()));
        }
        for (name, value) in attributes.iter().filter(|(n, _)| self.options.promotes(n)) {
            labels.push((name::label_name(name, self.options.translation), value.clone()));
        }
        self.resource = Resource {
            attributes,
            labels,
            latest: 0,
        };
        Ok(())
    }

    fn metric(&mut self, metric: Metric) -> Result<(), Error> {
        convert::metric(self, &metric)?;
        if self.batch.timed.len() + self.batch.histograms.len() >= PORTION {
            self.flush()?;
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn refuse(&mut self, points: usize, reason: impl FnOnce() -> String) {
        if self.refused == 0 {
            self.reason = reason();
        }
        self.refused += points as u64;
    }

    /// The series of a metric with these attributes; `None` when it was refused, which is noted.
    fn series(
        &mut self,
        name: &str,
        attributes: &Attributes,
        extra: Option<(&str, &str)>,
    ) -> Result<Option<SeriesId>, Error> {
        let mut builder = LabelsBuilder::new();
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in attributes {
            let label = name::label_name(key, self.options.translation);
            // Two attributes may have one name as labels: their values stand together.
            joined
                .entry(label)
                .and_modify(|have| {
                    have.push(';');
                    have.push_str(value);
                })
                .or_insert_with(|| value.clone());
        }
        let own = joined.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let resource = self.resource.labels.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        for (name, value) in own.chain(resource).chain(extra) {
            builder.set(name, value);
        }
        builder.set(model::METRIC_NAME, name);
        let labels = builder.build();
        let limits = &self.receiver.limits;
        let longest = labels.iter().map(|(n, v)| n.len().max(v.len())).max().unwrap_or(0);
        if labels.len() > limits.labels || longest > limits.label_bytes {
            self.refuse(1, || {
                format!("a series of {name} has too many labels, or too long ones")
            });
            return Ok(None);
        }
        match self.receiver.appender.series(&labels) {
            Ok(id) => Ok(Some(id)),
            Err(StoreError::Limit(reason)) => {
                self.refuse(1, || format!("limit: {reason}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes when a series began, if that is news.
    fn began(&mut self, id: SeriesId, start: Millis, time: Millis) {
        if start <= 0 || start >= time {
            return;
        }
        let mut known = self.receiver.created.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CREATED_MAX {
            known.clear();
        }
        if known.insert(id, start) != Some(start) {
            self.batch.created.push((id, start));
        }
    }

    /// Says what is known of the resource that ends: `target_info`.
    fn end_resource(&mut self) -> Result<(), Error> {
        let time = std::mem::take(&mut self.resource.latest);
        let resource = std::mem::take(&mut self.resource.attributes);
        let rest: Attributes = resource
            .into_iter()
            .filter(|(name, _)| !IDENTITY.contains(&name.as_str()))
            .collect();
        let identified = self.resource.labels.iter().any(|(n, _)| n == "job" || n == "instance");
        if time == 0 || rest.is_empty() || !identified {
            return Ok(());
        }
        self.resource.labels.retain(|(n, _)| n == "job" || n == "instance");
        if let Some(id) = self.series("target_info", &rest, None)? {
            self.batch.timed.push((id, time, 1.0));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let count = self.batch.timed.len() + self.batch.histograms.len();
        if count > 0 {
            let receiver = self.receiver;
            let done = receiver.appender.append(receiver.target, self.now, &self.batch)?;
            if done.too_old > 0 {
                let old = done.too_old;
                self.refuse(usize::try_from(old).unwrap_or(usize::MAX), || {
                    format!("out of order: {old} samples lie before the window that late samples may fall into")
                });
            }
            self.stored += (count as u64).saturating_sub(done.too_old);
        }
        self.batch = Batch::default();
        Ok(())
    }

    /// `ExportMetricsServiceResponse`
    fn answer(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Json if self.refused == 0 => b"{}".to_vec(),
            Encoding::Json => serde_json::json!({
                "partialSuccess": {"rejectedDataPoints": self.refused.to_string(), "errorMessage": self.reason}
            })
            .to_string()
            .into_bytes(),
            Encoding::Protobuf => {
                let mut out = Vec::new();
                if self.refused > 0 {
                    let mut inner = Vec::new();
                    put_varint(&mut inner, 1, self.refused);
                    put_bytes(&mut inner, 2, self.reason.as_bytes());
                    put_bytes(&mut out, 1, &inner);
                }
                out
            }
        }
    }
}

#[cfg(test)]
mod tests;
