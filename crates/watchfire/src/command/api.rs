//! A Prometheus-compatible API, asked from a command: one question at a time.

use std::time::Duration;

use anyhow::Context as _;
use model::{Clock as _, Labels, Millis, SystemClock};
use serde_json::Value;

use crate::failure::Hinted;

/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Somebody with the API of Prometheus.
pub struct Api {
    base: String,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    /// The moment that counts as now.
    pub now: Millis,
    /// Whether it is one of our own hubs, which answers to the names of other versions as well.
    pub is_hub: bool,
}

impl Api {
    /// Makes ready to ask; nothing is asked yet.
    pub fn new(url: &str, is_hub: bool) -> anyhow::Result<Self> {
        crate::process::install_tls_provider();
        let scheme = if url.contains("://") { "" } else { "http://" };
        Ok(Self {
            base: format!("{scheme}{}", url.trim_end_matches('/')),
            client: reqwest::Client::builder()
                .timeout(TIMEOUT)
                .build()
                .context("cannot make an HTTP client")?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("cannot start")?,
            now: SystemClock.now(),
            is_hub,
        })
    }

    /// Runs a task where requests run.
    pub fn within<T>(&self, task: impl Future<Output = T>) -> T {
        self.runtime.block_on(task)
    }

    /// What was judged against, in words.
    pub fn note(&self) -> String {
        if self.is_hub {
            format!(
                "judged against the hub at {}, which answers to the names of other exporter versions too",
                self.base
            )
        } else {
            format!("judged against {}, by the names as stored", self.base)
        }
    }

    /// The `data` of an answer to a GET.
    pub fn get(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        let address = format!("{}{path}", self.base);
        self.ask(&address, self.client.get(with_query(&address, query)))
    }

    /// The `data` of an answer to a form.
    pub fn post(&self, path: &str, form: &[(&str, String)]) -> anyhow::Result<Value> {
        let address = format!("{}{path}", self.base);
        self.ask(&address, self.client.post(&address).form(form))
    }

    /// Sends JSON, or nothing, and gives the whole answer.
    pub fn send(&self, method: reqwest::Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let address = format!("{}{path}", self.base);
        let mut request = self.client.request(method, &address);
        if let Some(body) = body {
            request = request.json(body);
        }
        let (status, answer) = self.answer(&address, request)?;
        if !status.is_success() {
            let reason = answer["error"].as_str().unwrap_or("no reason given").to_owned();
            anyhow::bail!("{address} answered {status}: {reason}");
        }
        Ok(answer)
    }

    fn ask(&self, address: &str, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let (status, mut answer) = self.answer(address, request)?;
        if answer["status"] == "success" {
            return Ok(answer["data"].take());
        }
        let reason = answer["error"].as_str().unwrap_or("no answer of a query API");
        anyhow::bail!("{address} answered {status}: {reason}")
    }

    fn answer(&self, address: &str, request: reqwest::RequestBuilder) -> anyhow::Result<(reqwest::StatusCode, Value)> {
        let work = async {
            let response = request.send().await.map_err(|error| no_answer(address, error))?;
            let status = response.status();
            if response
                .content_length()
                .is_some_and(|length| length > ANSWER_BYTES_MAX as u64)
            {
                anyhow::bail!("{address}: the answer is larger than {ANSWER_BYTES_MAX} bytes");
            }
            let mut response = response;
            let mut body = Vec::new();
            while let Some(piece) = response
                .chunk()
                .await
                .with_context(|| format!("cannot read the answer of {address}"))?
            {
                body.extend_from_slice(&piece);
                if body.len() > ANSWER_BYTES_MAX {
                    anyhow::bail!("{address}: the answer is larger than {ANSWER_BYTES_MAX} bytes");
                }
            }
            let answer = if body.is_empty() {
                Ok(Value::Null)
            } else {
                serde_json::from_slice(&body)
            };
            Ok((
                status,
                answer.with_context(|| format!("{address} answered {status} and no JSON"))?,
            ))
        };
        self.runtime.block_on(work)
    }

    /// The samples of an expression now.
    pub fn instant(&self, expr: &str) -> anyhow::Result<Vec<(Labels, f64)>> {
        let data = self.post(
            "/api/v1/query",
            &[("query", expr.to_owned()), ("time", seconds(self.now))],
        )?;
        let samples = data["result"].as_array().into_iter().flatten();
        Ok(samples
            .map(|row| (labels(&row["metric"]), number(&row["value"][1])))
            .collect())
    }
}

fn with_query(address: &str, query: &[(&str, String)]) -> String {
    let mut out = address.to_owned();
    for (at, (name, value)) in query.iter().enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        out.push_str(name);
        out.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    out
}

/// Why nobody answers, and what to do where nobody is there.
fn no_answer(address: &str, error: reqwest::Error) -> anyhow::Error {
    let context = format!("cannot ask {address}");
    if !error.is_connect() {
        return anyhow::Error::new(error).context(context);
    }
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    anyhow::Error::new(Hinted {
        message: cause.to_string(),
        hint: "start a hub with `watchfire run`, or name another with --hub".into(),
    })
    .context(context)
}

/// A JSON object of labels.
pub fn labels(metric: &Value) -> Labels {
    let pairs = metric.as_object().into_iter().flatten();
    Labels::from_pairs(pairs.filter_map(|(n, v)| Some((n.as_str(), v.as_str()?))))
}

/// A sample's value, written as text in the API.
pub fn number(value: &Value) -> f64 {
    value.as_str().and_then(model::number::parse_float).unwrap_or(f64::NAN)
}

/// Milliseconds as the API's seconds.
pub fn seconds(millis: Millis) -> String {
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}
