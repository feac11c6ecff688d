//! One fetch: a page comes over HTTP, whole, in time and within its size, or an error says why not.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use config::http::{HttpClientConfig, ProxyConfig, SecretSource, TlsConfig};
use exposition::{PageFormat, accept_header};
use model::Millis;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{
    Certificate, ClientBuilder, Identity, NoProxy, Proxy, RequestBuilder, Response, redirect, tls as version,
};

use crate::error::{Error, chain};
use crate::job::Job;

mod named;
mod token;

use named::Named;
use token::Tokens;

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
    /// In place of `http` where the server's certificate has another name than its address.
    named: Option<Arc<Named>>,
    tokens: Arc<Tokens>,
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
        if let Some(other) = others.iter().find(same) {
            return Ok(Self {
                job,
                accept,
                ..other.clone()
            });
        }
        let is_named = !job.http.tls.server_name.is_empty();
        Ok(Self {
            http: built(build(&job)?)?,
            named: is_named.then(|| Arc::new(Named::new(Arc::clone(&job)))),
            tokens: Arc::default(),
            job,
            accept,
        })
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
        let asked = self.prepared(url).await?.header(ACCEPT_ENCODING, "identity");
        let response = asked.send().await.map_err(request)?;
        let status = response.status();
        if status.as_u16() != 200 {
            return Err(Error::Status(status.to_string()));
        }
        Ok(response)
    }

    /// Fetches a list of targets from a server of discovery into `body` (emptied first).
    ///
    /// # Errors
    ///
    /// Any [`Error`] of a fetch, and [`Error::ContentType`] when the answer is no JSON.
    pub(crate) async fn fetch_list(
        &self,
        url: &str,
        timeout: Millis,
        refresh_seconds: i64,
        body: &mut Vec<u8>,
    ) -> Result<(), Error> {
        body.clear();
        let limit = Duration::from_millis(timeout.unsigned_abs());
        let fetch = async {
            let request = self
                .prepared(url)
                .await?
                .header(ACCEPT, "application/json")
                .header("X-Prometheus-Refresh-Interval-Seconds", refresh_seconds.to_string());
            let response = request.send().await.map_err(self::request)?;
            let told = content_type(&response).to_owned();
            let media = told.split(';').next().unwrap_or("").trim();
            if response.status().as_u16() == 200 && !media.eq_ignore_ascii_case("application/json") {
                return Err(Error::ContentType(told));
            }
            self.body(response, body).await
        };
        match tokio::time::timeout(limit, fetch).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout(timeout)),
        }
    }

    async fn answer(&self, url: &str, timeout: Millis, page: &mut Vec<u8>) -> Result<PageFormat, Error> {
        #[expect(clippy::cast_precision_loss, reason = "a configured span of time")]
        let seconds = timeout as f64 / 1000.0;
        let request = self
            .prepared(url)
            .await?
            .header(ACCEPT, self.accept.clone())
            .header("X-Prometheus-Scrape-Timeout-Seconds", seconds.to_string());
        let response = request.send().await.map_err(self::request)?;
        // What a page of an error says of its type does not matter.
        let format = match response.status().as_u16() {
            200 => self.format(&response)?,
            _ => PageFormat::Protobuf,
        };
        self.body(response, page).await?;
        if page.is_empty() { Err(Error::Empty) } else { Ok(format) }
    }

    /// Reads a good answer's body within its bounds.
    async fn body(&self, mut response: Response, page: &mut Vec<u8>) -> Result<(), Error> {
        let status = response.status();
        if status.as_u16() == 401 {
            // The token may have been withdrawn before its time: the next request asks for another.
            self.tokens.forget();
        }
        if status.as_u16() != 200 {
            return Err(Error::Status(status.to_string()));
        }
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
        Ok(())
    }

    /// A request with the job's headers and credentials.
    async fn prepared(&self, url: &str) -> Result<RequestBuilder, Error> {
        let mut request = match &self.named {
            Some(named) => named.get(url)?,
            None => self.http.get(url),
        };
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
        if let Some(oauth2) = &self.job.http.oauth2 {
            return Ok(request.header(AUTHORIZATION, self.tokens.header(oauth2).await?));
        }
        authorize(request, &self.job.http)
    }

    /// The format that the answer says it has; the configured fallback where it says nothing useful.
    fn format(&self, response: &Response) -> Result<PageFormat, Error> {
        let header = content_type(response);
        PageFormat::from_content_type(header)
            .or(self.job.fallback)
            .ok_or_else(|| Error::ContentType(header.to_owned()))
    }
}

fn content_type(response: &Response) -> &str {
    let header = response.headers().get(CONTENT_TYPE);
    header.and_then(|v| v.to_str().ok()).unwrap_or("")
}

pub(crate) fn request(error: reqwest::Error) -> Error {
    Error::Request(chain(&error.without_url()))
}

fn build(job: &Job) -> Result<ClientBuilder, Error> {
    // Another part of the process may have installed it before: then this does nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = &job.http;
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
    builder = tls(builder, &http.tls)?;
    builder = proxy(builder, &http.proxy)?;
    Ok(builder)
}

/// Makes the client that was prepared.
pub(crate) fn built(builder: ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|e| Error::Settings(chain(&e)))
}

pub(crate) fn tls(mut builder: ClientBuilder, settings: &TlsConfig) -> Result<ClientBuilder, Error> {
    let wrong = |e: reqwest::Error| Error::Settings(chain(&e));
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
        builder = builder.tls_version_min(version::Version::TLS_1_3);
    }
    if settings.max_version == Some(config::http::TlsVersion::Tls12) {
        builder = builder.tls_version_max(version::Version::TLS_1_2);
    }
    Ok(builder)
}

pub(crate) fn proxy(builder: ClientBuilder, settings: &ProxyConfig) -> Result<ClientBuilder, Error> {
    if settings.from_environment {
        return Ok(builder);
    }
    let Some(url) = &settings.url else {
        return Ok(builder.no_proxy());
    };
    let proxy = Proxy::all(url.as_str()).map_err(|e| Error::Settings(chain(&e)))?;
    let mut proxy = proxy.no_proxy(NoProxy::from_string(&settings.no_proxy));
    let mut headers = HeaderMap::new();
    for (name, values) in &settings.connect_header {
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
fn authorize(request: RequestBuilder, http: &HttpClientConfig) -> Result<RequestBuilder, Error> {
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

pub(crate) fn secret(source: &SecretSource) -> Result<String, Error> {
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
