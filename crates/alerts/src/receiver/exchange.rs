//! One request and its answer: what every receiver that speaks HTTP has in common.
//!
//! A status 2xx is success, 5xx and a failed connection are tried again, anything else is final; kinds name the
//! further statuses that pass. An answer is read up to a bound, and no address stands in a message: addresses of
//! receivers hold secrets.

use reqwest::{Method, Response};
use serde_json::Value;

use super::client;
use super::failure::Failure;
use super::line::Line;
use crate::delivery::Reason;

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The most bytes of an answer that stand in a message.
const SHOWN_BYTES_MAX: usize = 300;

/// A request.
#[derive(Debug)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A POST of JSON.
    pub fn json(url: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, url)
            .header("Content-Type", "application/json")
            .body(body.to_string())
    }

    /// A POST of a form.
    pub fn form(url: impl Into<String>, pairs: &[(&str, &str)]) -> Self {
        Self::new(Method::POST, url)
            .header("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
            .body(encode_form(pairs))
    }

    /// Without a body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Another method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// One header more.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Another body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// A form as it goes over the wire.
pub fn encode_form(pairs: &[(&str, &str)]) -> String {
    let mut url = reqwest::Url::parse("http://form/").expect("BUG: an address written here");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The type of the body, as told.
    pub content_type: String,
    /// The body, up to a bound.
    pub body: Vec<u8>,
}

impl Line {
    /// Asks; an answer of any status is an answer.
    pub async fn exchange(&self, request: Request) -> Result<Answer, Failure> {
        self.note_address(&request.url);
        let client = self.client()?;
        let mut builder = client.request(request.method, &request.url);
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if !request.body.is_empty() {
            builder = builder.body(request.body);
        }
        let builder = client::dress(builder, &self.http).await.map_err(Failure::passing)?;
        let now = self.memory().now;
        let builder = self.authorize(builder, now).await?;
        let response = builder.send().await.map_err(|e| broken(&e.without_url()))?;
        read(response).await
    }

    /// Asks and wants success, or one of the statuses after which another try may go better.
    pub async fn tell(&self, request: Request, passing: &[u16]) -> Result<Answer, Failure> {
        self.exchange(request).await?.check(passing)
    }
}

/// A request that found no answer.
pub fn broken(error: &reqwest::Error) -> Failure {
    // An address that is none stays none.
    let failure = if error.is_builder() {
        Failure::last(client::chain(error))
    } else {
        Failure::passing(client::chain(error))
    };
    if error.is_timeout() {
        failure.because(Reason::Deadline)
    } else {
        failure
    }
}

async fn read(mut response: Response) -> Result<Answer, Failure> {
    let status = response.status().as_u16();
    let content_type = response
        .headers()
        .get("content-type")
        .and_then(|v| v.to_str().ok())
        .unwrap_or("")
        .to_owned();
    let mut body = Vec::new();
    // The status is known: what follows it is only for messages and for those who need it whole.
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ANSWER_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
    Ok(Answer {
        status,
        content_type,
        body,
    })
}

impl Answer {
    /// The answer, where it tells of success.
    pub fn check(self, passing: &[u16]) -> Result<Self, Failure> {
        match self.status {
            200..300 => Ok(self),
            status => {
                let mut message = format!("unexpected status code {status}");
                let text = self.beginning();
                if !text.is_empty() {
                    message.push_str(": ");
                    message.push_str(&text);
                }
                let retry = (500..600).contains(&status) || passing.contains(&status);
                let failure = if retry {
                    Failure::passing(message)
                } else {
                    Failure::last(message)
                };
                Err(failure.because(Reason::of_status(status)))
            }
        }
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The beginning of the body, in one line.
    pub fn beginning(&self) -> String {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(SHOWN_BYTES_MAX)]);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
