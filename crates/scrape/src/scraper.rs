//! One fetch: a page comes over HTTP, whole, in time and within its size, or an error says why not.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use config::http::{HttpClientConfig, SecretSource};
use exposition::{PageFormat, accept_header};
use model::Millis;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{Certificate, Identity, NoProxy, Proxy, Response, redirect, tls};

use crate::error::{Error, chain};
use crate::job::Job;

/// What we call ourselves.
const AGENT: &str = concat!("Watchfire/", env!("CARGO_PKG_VERSION"));

/// The most redirects followed.
const REDIRECTS_MAX: usize = 10;

/// Fetches the pages of one job's targets, keeping connections open between scrapes.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    job: Arc<Job>,
    accept: HeaderValue,
}

impl Client {
    /// A client with the job's authentication, TLS and proxy. It shares its connections with that of `others`
    /// whose settings are the same: most configurations need one.
    ///
    /// # Errors
    ///
    /// [`Error::File`] when a certificate cannot be read, [`Error::Settings`] when the settings do not fit
    /// together or ask for what is not built yet.
    pub fn new(job: Arc<Job>, others: &[Self]) -> Result<Self, Error> {
        let accept = accept_header(&job.protocols, job.escaping);
        let accept = HeaderValue::from_str(&accept).map_err(|e| Error::Settings(e.to_string()))?;
        let same = |other: &&Self| other.job.http == job.http && other.job.compression == job.compression;
        let http = match others.iter().find(same) {
            Some(other) => other.http.clone(),
            None => build(&job)?,
        };
        Ok(Self { http, job, accept })
    }

    /// Fetches `url` into `page` (emptied first) and tells the page's format.
    ///
    /// # Errors
    ///
    /// Any [`Error`] of a fetch; `page` then holds part of an answer, to be thrown away.
    pub async fn fetch(&self, url: &str, timeout: Millis, page: &mut Vec<u8>) -> Result<PageFormat, Error> {
        page.clear();
        let limit = Duration::from_millis(timeout.unsigned_abs());
        match tokio::time::timeout(limit, self.answer(url, timeout, page)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout(timeout)),
        }
    }

    /// Opens an answer that has no end, such as a stream of events.
    ///
    /// # Errors
    ///
    /// As [`Client::fetch`], without a bound in time or size: those are the reader's.
    pub(crate) async fn open(&self, url: &str) -> Result<Response, Error> {
        // A compressed stream would be held back until there is enough of it.
        let asked = self.request(url, 0)?.header(ACCEPT_ENCODING, "identity");
        let response = asked.send().await.map_err(request)?;
        let status = response.status();
        if status.as_u16() != 200 {
            return Err(Error::Status(status.to_string()));
        }
        Ok(response)
    }

    async fn answer(&self, url: &str, timeout: Millis, page: &mut Vec<u8>) -> Result<PageFormat, Error> {
        let mut response = self.request(url, timeout)?.send().await.map_err(request)?;
        let status = response.status();
        if status.as_u16() != 200 {
            return Err(Error::Status(status.to_string()));
        }
        let format = self.format(&response)?;
        let bytes_max = self.job.body_bytes_max();
        if response.content_length().is_some_and(|l| l > bytes_max) {
            return Err(Error::BodySize(bytes_max));
        }
        while let Some(chunk) = response.chunk().await.map_err(request)? {
            if (page.len() + chunk.len()) as u64 > bytes_max {
                return Err(Error::BodySize(bytes_max));
            }
            page.extend_from_slice(&chunk);
        }
        if page.is_empty() { Err(Error::Empty) } else { Ok(format) }
    }

    fn request(&self, url: &str, timeout: Millis) -> Result<reqwest::RequestBuilder, Error> {
        #[expect(clippy::cast_precision_loss, reason = "a configured span of time")]
        let seconds = timeout as f64 / 1000.0;
        let mut request = self
            .http
            .get(url)
            .header(ACCEPT, self.accept.clone())
            .header("X-Prometheus-Scrape-Timeout-Seconds", seconds.to_string());
        if !self.job.compression {
            request = request.header(ACCEPT_ENCODING, "identity");
        }
        for header in &self.job.http.headers {
            let hidden = header.secrets.iter().map(|s| s.expose().to_owned());
            for value in header.values.iter().cloned().chain(hidden) {
                request = request.header(&header.name, value);
            }
            for file in &header.files {
                request = request.header(&header.name, read(file)?.trim());
            }
        }
        authorize(request, &self.job.http)
    }

    /// The format that the answer says it has; the configured fallback where it says nothing useful.
    fn format(&self, response: &Response) -> Result<PageFormat, Error> {
        let header = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("");
        PageFormat::from_content_type(header)
            .or(self.job.fallback)
            .ok_or_else(|| Error::ContentType(header.to_owned()))
    }
}

pub(crate) fn request(error: reqwest::Error) -> Error {
    Error::Request(chain(&error.without_url()))
}

fn build(job: &Job) -> Result<reqwest::Client, Error> {
    // Another part of the process may have installed it before: then this does nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = &job.http;
    if http.oauth2.is_some() {
        return Err(Error::Settings("oauth2 is not built yet".to_owned()));
    }
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let mut builder = reqwest::Client::builder()
        .default_headers(headers)
        .gzip(job.compression)
        .zstd(job.compression)
        .redirect(if http.follow_redirects {
            redirect::Policy::limited(REDIRECTS_MAX)
        } else {
            redirect::Policy::none()
        })
        .pool_max_idle_per_host(1)
        .tcp_nodelay(true);
    if !http.enable_http2 {
        builder = builder.http1_only();
    }
    builder = tls(builder, http)?;
    builder = proxy(builder, http)?;
    builder.build().map_err(|e| Error::Settings(chain(&e)))
}

fn tls(mut builder: reqwest::ClientBuilder, http: &HttpClientConfig) -> Result<reqwest::ClientBuilder, Error> {
    let settings = &http.tls;
    let wrong = |e: reqwest::Error| Error::Settings(chain(&e));
    if !settings.server_name.is_empty() {
        return Err(Error::Settings("tls_config.server_name is not built yet".to_owned()));
    }
    let authorities = text_or_file(&settings.ca, &settings.ca_file)?;
    if !authorities.is_empty() {
        let found = Certificate::from_pem_bundle(authorities.as_bytes()).map_err(wrong)?;
        builder = builder.tls_certs_only(found);
    }
    let certificate = text_or_file(&settings.cert, &settings.cert_file)?;
    if !certificate.is_empty() {
        let key = text_or_file(settings.key.expose(), &settings.key_file)?;
        let both = format!("{certificate}\n{key}");
        builder = builder.identity(Identity::from_pem(both.as_bytes()).map_err(wrong)?);
    }
    if settings.insecure_skip_verify {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    // rustls speaks 1.2 and 1.3 only, so an older minimum is met anyway.
    if settings.min_version == Some(config::http::TlsVersion::Tls13) {
        builder = builder.tls_version_min(tls::Version::TLS_1_3);
    }
    if settings.max_version == Some(config::http::TlsVersion::Tls12) {
        builder = builder.tls_version_max(tls::Version::TLS_1_2);
    }
    Ok(builder)
}

fn proxy(builder: reqwest::ClientBuilder, http: &HttpClientConfig) -> Result<reqwest::ClientBuilder, Error> {
    if http.proxy.from_environment {
        return Ok(builder);
    }
    let Some(url) = &http.proxy.url else {
        return Ok(builder.no_proxy());
    };
    let proxy = Proxy::all(url.as_str()).map_err(|e| Error::Settings(chain(&e)))?;
    let mut proxy = proxy.no_proxy(NoProxy::from_string(&http.proxy.no_proxy));
    let mut headers = HeaderMap::new();
    for (name, values) in &http.proxy.connect_header {
        for value in values {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| Error::Settings(e.to_string()))?;
            let value = HeaderValue::from_str(value.expose()).map_err(|e| Error::Settings(e.to_string()))?;
            headers.append(name, value);
        }
    }
    if !headers.is_empty() {
        proxy = proxy.headers(headers);
    }
    Ok(builder.proxy(proxy))
}

/// Adds the credentials; files are read at each scrape, so that a changed secret needs no reload.
fn authorize(request: reqwest::RequestBuilder, http: &HttpClientConfig) -> Result<reqwest::RequestBuilder, Error> {
    if let Some(basic) = &http.basic_auth {
        let user = match basic.username_file.as_str() {
            "" => basic.username.clone(),
            file => read(file)?.trim().to_owned(),
        };
        return Ok(request.basic_auth(user, Some(secret(&basic.password)?)));
    }
    let Some(authorization) = &http.authorization else {
        return Ok(request);
    };
    let credentials = secret(&authorization.credentials)?;
    let mut value = HeaderValue::from_str(&format!("{} {credentials}", authorization.kind))
        .map_err(|_| Error::Settings("the credentials hold characters that a header cannot".to_owned()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

fn secret(source: &SecretSource) -> Result<String, Error> {
    match source.file.as_str() {
        "" => Ok(source.inline.expose().to_owned()),
        file => Ok(read(file)?.trim().to_owned()),
    }
}

fn text_or_file(text: &str, file: &str) -> Result<String, Error> {
    if file.is_empty() {
        Ok(text.to_owned())
    } else {
        read(file)
    }
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|e| Error::File {
        path: path.to_owned(),
        cause: e.to_string(),
    })
}
