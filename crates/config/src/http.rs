//! How a client speaks HTTP: authentication, TLS, proxy, headers. Shared by scraping, discovery,
//! remote storage and receivers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::secret::Secret;
use crate::shape::count_from;
use crate::url::Url;
use crate::yaml::{Fields, Node, Result};

mod tls;

pub use tls::{TlsConfig, TlsVersion};

/// Settings of an HTTP client.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpClientConfig {
    /// User and password.
    pub basic_auth: Option<BasicAuth>,
    /// An `Authorization` header; `bearer_token` and its file end up here.
    pub authorization: Option<Authorization>,
    /// OAuth 2.0, client credentials or JWT.
    pub oauth2: Option<Box<OAuth2>>,
    /// TLS.
    pub tls: TlsConfig,
    /// Whether a redirect is followed.
    pub follow_redirects: bool,
    /// Whether HTTP/2 is offered.
    pub enable_http2: bool,
    /// The proxy.
    pub proxy: ProxyConfig,
    /// Headers to add.
    pub headers: Vec<Header>,
}

impl Default for HttpClientConfig {
    fn default() -> Self {
        Self {
            basic_auth: None,
            authorization: None,
            oauth2: None,
            tls: TlsConfig::default(),
            follow_redirects: true,
            enable_http2: true,
            proxy: ProxyConfig::default(),
            headers: Vec::new(),
        }
    }
}

/// A secret as given: in place, in a file, or by the name of a stored one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretSource {
    /// In place; empty when not.
    pub inline: Secret,
    /// A file read at each use; empty when none.
    pub file: String,
    /// A reference into a secret manager; empty when none. Accepted, and not resolved here.
    pub reference: String,
}

impl SecretSource {
    /// How many of the ways were used.
    #[must_use]
    pub fn ways(&self) -> usize {
        [self.inline.is_empty(), self.file.is_empty(), self.reference.is_empty()]
            .iter()
            .filter(|empty| !**empty)
            .count()
    }
}

/// User and password.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BasicAuth {
    /// The user in place, or in a file.
    pub username: String,
    /// A file that holds the user; empty when none.
    pub username_file: String,
    /// The password.
    pub password: SecretSource,
}

/// An `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The scheme; `Bearer` unless told.
    pub kind: String,
    /// What stands behind it.
    pub credentials: SecretSource,
}

/// OAuth 2.0.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuth2 {
    /// The client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretSource,
    /// The key of a client certificate or of a JWT.
    pub client_certificate_key: SecretSource,
    /// `client_credentials` or the JWT bearer's name; empty for the former.
    pub grant_type: String,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Where a token is fetched.
    pub token_url: Url,
    /// Added to that request.
    pub endpoint_params: BTreeMap<String, String>,
    /// TLS towards the token's server.
    pub tls: TlsConfig,
    /// Its proxy.
    pub proxy: ProxyConfig,
}

/// What a token's server answers (RFC 6749, 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub access: Secret,
    /// What stands before it in the header; `Bearer` unless told.
    pub kind: String,
    /// How long it is good for, in seconds; absent where the server does not say.
    pub expires_in: Option<i64>,
}

impl Token {
    /// Reads the server's JSON.
    ///
    /// # Errors
    ///
    /// A sentence when it holds no token; the text itself stays out of it.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let read = |node: &Node| -> Result<Self> {
            let find = |name: &str| {
                node.map()
                    .map(|pairs| pairs.iter().find(|(k, _)| k.text == name).map(|(_, v)| v))
            };
            let access = find("access_token")?.ok_or_else(|| node.fault("no access_token in the answer"))?;
            let kind = find("token_type")?.map(Node::read::<String>).transpose()?;
            Ok(Self {
                access: Secret::new(access.read::<String>()?),
                kind: match kind {
                    Some(kind) if !kind.is_empty() && !kind.eq_ignore_ascii_case("bearer") => kind,
                    _ => "Bearer".to_owned(),
                },
                expires_in: find("expires_in")?.and_then(|v| v.read::<i64>().ok()),
            })
        };
        crate::yaml::parse(text)
            .and_then(|node| read(&node))
            .map_err(|fault| fault.message)
    }
}

/// The proxy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProxyConfig {
    /// Where it is.
    pub url: Option<Url>,
    /// Hosts that go without.
    pub no_proxy: String,
    /// Taken from the environment's `HTTP_PROXY` and fellows.
    pub from_environment: bool,
    /// Headers sent with CONNECT.
    pub connect_header: BTreeMap<String, Vec<Secret>>,
}

/// A header to add.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The name as written.
    pub name: String,
    /// Open values.
    pub values: Vec<String>,
    /// Hidden values.
    pub secrets: Vec<Secret>,
    /// Files that hold a value each.
    pub files: Vec<String>,
}

/// Headers the client itself sets.
const RESERVED_HEADERS: [&str; 18] = [
    "authorization",
    "host",
    "content-encoding",
    "content-length",
    "content-type",
    "user-agent",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "www-authenticate",
    "accept-encoding",
    "x-prometheus-remote-write-version",
    "x-prometheus-remote-read-version",
    "x-prometheus-scrape-timeout-seconds",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-content-sha256",
];

impl HttpClientConfig {
    /// Reads a mapping that holds nothing else.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let config = Self::take(&mut fields)?;
        fields.finish()?;
        Ok(config)
    }

    /// Takes the client's keys out of a mapping that holds others too.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn take(fields: &mut Fields<'_>) -> Result<Self> {
        let bearer = SecretSource {
            inline: fields.or_empty("bearer_token")?,
            file: fields.or_empty("bearer_token_file")?,
            reference: String::new(),
        };
        let mut config = Self {
            basic_auth: fields.part("basic_auth").map(BasicAuth::read).transpose()?,
            authorization: fields.part("authorization").map(Authorization::read).transpose()?,
            oauth2: fields.part("oauth2").map(OAuth2::read).transpose()?.map(Box::new),
            tls: fields
                .part("tls_config")
                .map(TlsConfig::read)
                .transpose()?
                .unwrap_or_default(),
            follow_redirects: fields.or("follow_redirects", true)?,
            enable_http2: fields.or("enable_http2", true)?,
            proxy: ProxyConfig::take(fields)?,
            headers: fields
                .part("http_headers")
                .map(headers)
                .transpose()?
                .unwrap_or_default(),
        };
        config.check(fields, &bearer)?;
        if bearer.ways() > 0 {
            config.authorization = Some(Authorization {
                kind: "Bearer".to_owned(),
                credentials: bearer,
            });
        }
        Ok(config)
    }

    /// Lets relative paths of files count from a folder.
    pub(crate) fn count_from(&mut self, folder: &Path) {
        let mut sources: Vec<&mut String> = Vec::new();
        if let Some(basic) = &mut self.basic_auth {
            sources.extend([&mut basic.username_file, &mut basic.password.file]);
        }
        if let Some(authorization) = &mut self.authorization {
            sources.push(&mut authorization.credentials.file);
        }
        if let Some(oauth2) = &mut self.oauth2 {
            sources.extend([&mut oauth2.client_secret.file, &mut oauth2.client_certificate_key.file]);
            oauth2.tls.count_from(folder);
        }
        sources.extend(self.headers.iter_mut().flat_map(|h| &mut h.files));
        for path in sources {
            count_from(folder, path);
        }
        self.tls.count_from(folder);
    }

    fn check(&self, fields: &Fields<'_>, bearer: &SecretSource) -> Result<()> {
        let refuse = |message: &str| Err(fields.fault(message));
        let (basic, oauth2) = (self.basic_auth.is_some(), self.oauth2.is_some());
        if bearer.ways() > 1 {
            return refuse("at most one of bearer_token & bearer_token_file must be configured");
        }
        if (basic || oauth2) && bearer.ways() > 0 {
            return refuse("at most one of basic_auth, oauth2, bearer_token & bearer_token_file must be configured");
        }
        if self.authorization.is_some() && bearer.ways() > 0 {
            return refuse("authorization is not compatible with bearer_token & bearer_token_file");
        }
        if usize::from(basic) + usize::from(oauth2) + usize::from(self.authorization.is_some()) > 1 {
            return refuse("at most one of basic_auth, oauth2 & authorization must be configured");
        }
        Ok(())
    }
}

impl SecretSource {
    /// Takes `name`, `name_file` and `name_ref`.
    fn take(fields: &mut Fields<'_>, keys: [&'static str; 3]) -> Result<Self> {
        Ok(Self {
            inline: fields.or_empty(keys[0])?,
            file: fields.or_empty(keys[1])?,
            reference: fields.or_empty(keys[2])?,
        })
    }
}

impl BasicAuth {
    fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let auth = Self {
            username: fields.or_empty("username")?,
            username_file: fields.or_empty("username_file")?,
            password: SecretSource::take(&mut fields, ["password", "password_file", "password_ref"])?,
        };
        let reference: String = fields.or_empty("username_ref")?;
        let users = [&auth.username, &auth.username_file, &reference];
        if users.iter().filter(|u| !u.is_empty()).count() > 1 {
            return Err(
                node.fault("at most one of basic_auth username, username_file & username_ref must be configured")
            );
        }
        if auth.password.ways() > 1 {
            return Err(
                node.fault("at most one of basic_auth password, password_file & password_ref must be configured")
            );
        }
        fields.finish()?;
        Ok(auth)
    }
}

impl Authorization {
    fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let kind: String = fields.or_empty("type")?;
        let kind = if kind.trim().is_empty() { "Bearer" } else { kind.trim() };
        let credentials = SecretSource::take(&mut fields, ["credentials", "credentials_file", "credentials_ref"])?;
        if credentials.ways() > 1 {
            return Err(node.fault("at most one of authorization credentials & credentials_file must be configured"));
        }
        if kind.eq_ignore_ascii_case("basic") {
            return Err(node.fault("authorization type cannot be set to \"basic\", use \"basic_auth\" instead"));
        }
        let kind = kind.to_owned();
        fields.finish()?;
        Ok(Self { kind, credentials })
    }
}

/// The one grant type that authenticates by a signed token.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

impl OAuth2 {
    fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let oauth2 = Self {
            client_id: fields.or_empty("client_id")?,
            client_secret: SecretSource::take(
                &mut fields,
                ["client_secret", "client_secret_file", "client_secret_ref"],
            )?,
            client_certificate_key: SecretSource::take(
                &mut fields,
                [
                    "client_certificate_key",
                    "client_certificate_key_file",
                    "client_certificate_key_ref",
                ],
            )?,
            grant_type: fields.or_empty("grant_type")?,
            scopes: fields.or_empty("scopes")?,
            token_url: fields.or_empty("token_url")?,
            endpoint_params: fields.or_empty("endpoint_params")?,
            tls: fields
                .part("tls_config")
                .map(TlsConfig::read)
                .transpose()?
                .unwrap_or_default(),
            proxy: ProxyConfig::take(&mut fields)?,
        };
        for key in ["client_certificate_key_id", "signature_algorithm", "iss", "audience"] {
            let _: Option<String> = fields.get(key)?;
        }
        if let Some(claims) = fields.node_of("claims") {
            claims.map()?;
        }
        oauth2.check(&fields)?;
        fields.finish()?;
        Ok(oauth2)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<()> {
        if self.client_id.is_empty() && self.grant_type != JWT_BEARER {
            return Err(fields.fault("oauth2 client_id must be configured"));
        }
        if self.token_url.is_empty() {
            return Err(fields.fault("oauth2 token_url must be configured"));
        }
        if self.client_secret.ways() > 1 {
            return Err(fields.fault(
                "at most one of oauth2 client_secret, client_secret_file & client_secret_ref must be configured \
                 using grant-type=client_credentials",
            ));
        }
        if self.grant_type == JWT_BEARER {
            if self.client_certificate_key.ways() > 1 {
                return Err(fields.fault(
                    "at most one of oauth2 client_certificate_key, client_certificate_key_file & \
                     client_certificate_key_ref must be configured using grant-type=urn:ietf:params:oauth:grant-type:jwt-bearer",
                ));
            }
        } else if self.client_certificate_key.ways() > 0 {
            return Err(fields.fault(format!("oauth2 client_certificate_key needs grant_type {JWT_BEARER}")));
        }
        Ok(())
    }
}

impl ProxyConfig {
    fn take(fields: &mut Fields<'_>) -> Result<Self> {
        let url: Option<Url> = fields.get("proxy_url")?;
        let proxy = Self {
            url: url.filter(|u| !u.is_empty()),
            no_proxy: fields.or_empty("no_proxy")?,
            from_environment: fields.or_empty("proxy_from_environment")?,
            connect_header: fields.or_empty("proxy_connect_header")?,
        };
        let message = if !proxy.connect_header.is_empty() && !proxy.from_environment && proxy.url.is_none() {
            "if proxy_connect_header is configured, proxy_url or proxy_from_environment must also be configured"
        } else if proxy.from_environment && proxy.url.is_some() {
            "if proxy_from_environment is configured, proxy_url must not be configured"
        } else if proxy.from_environment && !proxy.no_proxy.is_empty() {
            "if proxy_from_environment is configured, no_proxy must not be configured"
        } else if proxy.url.is_none() && !proxy.no_proxy.is_empty() {
            "if no_proxy is configured, proxy_url must also be configured"
        } else {
            return Ok(proxy);
        };
        Err(fields.fault(message))
    }
}

fn headers(node: &Node) -> Result<Vec<Header>> {
    let mut headers = Vec::new();
    for (key, value) in node.map()? {
        if RESERVED_HEADERS.contains(&key.text.to_ascii_lowercase().as_str()) {
            return Err(value.fault(format!("setting header {:?} is not allowed", key.text)));
        }
        let mut fields = value.fields()?;
        headers.push(Header {
            name: key.text.clone(),
            values: fields.or_empty("values")?,
            secrets: fields.or_empty("secrets")?,
            files: fields.or_empty("files")?,
        });
        fields.finish()?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn read(text: &str) -> Result<HttpClientConfig> {
        HttpClientConfig::read(&parse(text)?)
    }

    #[track_caller]
    fn refused(text: &str, want: &str) {
        let fault = read(text).expect_err("refused");
        assert!(fault.message.contains(want), "{text}: {}", fault.message);
    }

    #[test]
    fn a_bearer_token_is_an_authorization() {
        let config = read("bearer_token: x").expect("valid");
        let authorization = config.authorization.expect("one");
        assert_eq!(authorization.kind, "Bearer");
        assert_eq!(authorization.credentials.inline.expose(), "x");
    }

    #[test]
    fn one_way_to_authenticate() {
        refused(
            "{bearer_token: x, bearer_token_file: y}",
            "at most one of bearer_token &",
        );
        refused(
            "{basic_auth: {}, bearer_token: y}",
            "at most one of basic_auth, oauth2, bearer_token",
        );
        refused(
            "{basic_auth: {}, authorization: {}}",
            "at most one of basic_auth, oauth2 & authorization",
        );
        refused("authorization: {type: Basic}", "use \"basic_auth\" instead");
        refused("basic_auth: {password: a, password_file: b}", "basic_auth password");
        refused("basic_auth: {user: a}", "field user not found");
    }

    #[test]
    fn oauth2_needs_client_and_place() {
        refused("oauth2: {token_url: 'http://x'}", "client_id must be configured");
        refused("oauth2: {client_id: x}", "token_url must be configured");
    }

    #[test]
    fn proxy_and_headers_make_sense() {
        refused("no_proxy: a", "proxy_url must also be configured");
        refused(
            "{proxy_from_environment: true, proxy_url: 'http://a'}",
            "must not be configured",
        );
        refused(
            "http_headers: {Host: {values: [a]}}",
            "setting header \"Host\" is not allowed",
        );
        assert!(read("{proxy_url: 'http://a', no_proxy: b, http_headers: {X-A: {values: [c]}}}").is_ok());
    }
}
