//! An HTTP client as a configuration describes it.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use config::http::{HttpClientConfig, SecretSource, TlsConfig, TlsVersion};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Identity, NoProxy, Proxy, RequestBuilder, tls};

/// The most redirects followed.
const REDIRECTS_MAX: usize = 10;
/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may take where nothing is told.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// What a configuration asks for that is not built; `None` when all is.
pub(crate) fn unbuilt(http: &HttpClientConfig) -> Option<&'static str> {
    let reference = |source: Option<&SecretSource>| source.is_some_and(|s| !s.reference.is_empty());
    let oauth2 = http.oauth2.as_ref();
    if oauth2.is_some_and(|o| !matches!(o.grant_type.as_str(), "" | "client_credentials")) {
        return Some("an oauth2 grant other than client_credentials");
    }
    let basic = http.basic_auth.as_ref().map(|b| &b.password);
    let token = http.authorization.as_ref().map(|a| &a.credentials);
    let client = oauth2.map(|o| &o.client_secret);
    let is_asked = reference(basic) || reference(token) || reference(client);
    is_asked.then_some("a reference into a secret manager")
}

/// Builds the client; certificates are read now.
///
/// # Errors
///
/// A sentence: a file cannot be read, or is not what it should be.
pub(super) fn build(http: &HttpClientConfig, timeout: Option<Duration>) -> Result<Client, String> {
    static PROVIDER: Once = Once::new();
    // Whoever comes first sets it for the process; a second setting fails and changes nothing.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let redirects = if http.follow_redirects {
        Policy::limited(REDIRECTS_MAX)
    } else {
        Policy::none()
    };
    let mut builder = Client::builder()
        .user_agent(concat!("watchfire/", env!("CARGO_PKG_VERSION")))
        .redirect(redirects)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(timeout.unwrap_or(REQUEST_TIMEOUT));
    if !http.enable_http2 {
        builder = builder.http1_only();
    }
    builder = proxy(builder, http)?;
    builder = tls_settings(builder, &http.tls)?;
    builder.build().map_err(|e| chain(&e))
}

fn proxy(builder: ClientBuilder, http: &HttpClientConfig) -> Result<ClientBuilder, String> {
    match &http.proxy.url {
        Some(url) => {
            let mut headers = HeaderMap::new();
            for (name, values) in &http.proxy.connect_header {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| chain(&e))?;
                for value in values {
                    let value = HeaderValue::from_str(value.expose()).map_err(|e| chain(&e))?;
                    headers.append(name.clone(), value);
                }
            }
            let proxy = Proxy::all(url.as_str()).map_err(|e| chain(&e))?.headers(headers);
            Ok(builder.proxy(proxy.no_proxy(NoProxy::from_string(&http.proxy.no_proxy))))
        }
        None if http.proxy.from_environment => Ok(builder),
        None => Ok(builder.no_proxy()),
    }
}

fn tls_settings(mut builder: ClientBuilder, config: &TlsConfig) -> Result<ClientBuilder, String> {
    if let Some(pem) = pem(&config.ca, &config.ca_file)? {
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|e| chain(&e))?;
        builder = builder.tls_certs_only(certificates);
    }
    if let Some(mut certificate) = pem(&config.cert, &config.cert_file)? {
        let key = pem(config.key.expose(), &config.key_file)?.unwrap_or_default();
        certificate.push(b'\n');
        certificate.extend_from_slice(&key);
        builder = builder.identity(Identity::from_pem(&certificate).map_err(|e| chain(&e))?);
    }
    if let Some(version) = config.min_version {
        builder = builder.tls_version_min(version_of(version));
    }
    if let Some(version) = config.max_version {
        builder = builder.tls_version_max(version_of(version));
    }
    Ok(builder.tls_danger_accept_invalid_certs(config.insecure_skip_verify))
}

fn version_of(version: TlsVersion) -> tls::Version {
    match version {
        TlsVersion::Tls10 => tls::Version::TLS_1_0,
        TlsVersion::Tls11 => tls::Version::TLS_1_1,
        TlsVersion::Tls12 => tls::Version::TLS_1_2,
        TlsVersion::Tls13 => tls::Version::TLS_1_3,
    }
}

fn pem(inline: &str, file: &str) -> Result<Option<Vec<u8>>, String> {
    if !inline.is_empty() {
        return Ok(Some(inline.as_bytes().to_vec()));
    }
    if file.is_empty() {
        return Ok(None);
    }
    let read = std::fs::read(Path::new(file)).map(Some);
    read.map_err(|e| format!("cannot read {file}: {e}"))
}

/// Adds what authenticates and the headers; secrets in files are read anew each time.
///
/// # Errors
///
/// A sentence: a file cannot be read.
pub(super) async fn dress(mut request: RequestBuilder, http: &HttpClientConfig) -> Result<RequestBuilder, String> {
    if let Some(basic) = &http.basic_auth {
        let user = secret(&basic.username, &basic.username_file).await?;
        let password = secret(basic.password.inline.expose(), &basic.password.file).await?;
        request = request.basic_auth(user, Some(password));
    }
    if let Some(authorization) = &http.authorization {
        let source = &authorization.credentials;
        let credentials = secret(source.inline.expose(), &source.file).await?;
        request = request.header("Authorization", format!("{} {credentials}", authorization.kind));
    }
    for header in &http.headers {
        for value in &header.values {
            request = request.header(&header.name, value);
        }
        for value in &header.secrets {
            request = request.header(&header.name, value.expose());
        }
        for file in &header.files {
            request = request.header(&header.name, secret("", file).await?);
        }
    }
    Ok(request)
}

/// The text in place, or the file's without the space around it.
pub(super) async fn secret(inline: &str, file: &str) -> Result<String, String> {
    if file.is_empty() {
        return Ok(inline.to_owned());
    }
    let text = tokio::fs::read_to_string(file).await;
    text.map(|t| t.trim().to_owned())
        .map_err(|e| format!("cannot read {file}: {e}"))
}

/// An error with its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
