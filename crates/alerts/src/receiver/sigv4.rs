//! AWS' signature, version 4, of a POST without a query.

use config::alertmanager::Found;
use jiff::tz::TimeZone;
use model::Millis;
use sha2::{Digest as _, Sha256};

use super::call::hex;
use super::mac::hmac;

/// Who signs.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    access_key: String,
    secret_key: String,
    /// For credentials that are lent; empty for one's own.
    token: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

impl Credentials {
    /// Those of the settings, of the environment, or of AWS' file of credentials, in this order.
    ///
    /// # Errors
    ///
    /// A sentence: there are none.
    pub async fn find(sigv4: Option<&Found>) -> Result<Self, String> {
        let told = |key: &str| sigv4.map_or("", |s| s.text(key)).to_owned();
        let own = Self {
            access_key: told("access_key"),
            secret_key: told("secret_key"),
            token: String::new(),
        };
        if !own.access_key.is_empty() {
            return Ok(own);
        }
        let env = |name: &str| std::env::var(name).unwrap_or_default();
        let profile = told("profile");
        let lent = Self {
            access_key: env("AWS_ACCESS_KEY_ID"),
            secret_key: env("AWS_SECRET_ACCESS_KEY"),
            token: env("AWS_SESSION_TOKEN"),
        };
        if profile.is_empty() && !lent.access_key.is_empty() {
            return Ok(lent);
        }
        let path = match env("AWS_SHARED_CREDENTIALS_FILE") {
            path if path.is_empty() => format!("{}/.aws/credentials", env("HOME")),
            path => path,
        };
        let text = tokio::fs::read_to_string(&path).await;
        let text = text.map_err(|e| {
            format!("no AWS credentials in the settings or the environment, and cannot read {path}: {e}")
        })?;
        let profile = if profile.is_empty() { "default" } else { &profile };
        Self::read(&text, profile).ok_or_else(|| format!("no credentials of profile {profile:?} in {path}"))
    }

    /// The credentials of a profile in AWS' file.
    fn read(text: &str, profile: &str) -> Option<Self> {
        let mut inside = false;
        let mut found = Self {
            access_key: String::new(),
            secret_key: String::new(),
            token: String::new(),
        };
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                inside = name.trim() == profile;
            } else if inside && let Some((key, value)) = line.split_once('=') {
                let value = value.trim().to_owned();
                match key.trim() {
                    "aws_access_key_id" => found.access_key = value,
                    "aws_secret_access_key" => found.secret_key = value,
                    "aws_session_token" => found.token = value,
                    _ => {}
                }
            }
        }
        (!found.access_key.is_empty() && !found.secret_key.is_empty()).then_some(found)
    }
}

/// The headers that sign a form for a service.
///
/// # Errors
///
/// A sentence: the address is none.
pub fn sign(
    credentials: &Credentials,
    region: &str,
    service: &str,
    url: &str,
    body: &str,
    now: Millis,
) -> Result<Vec<(&'static str, String)>, String> {
    let url = reqwest::Url::parse(url).map_err(|e| format!("api_url: {e}"))?;
    let host = url.host_str().unwrap_or("");
    let host = url
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let moment = TimeZone::UTC.to_datetime(jiff::Timestamp::from_millisecond(now).unwrap_or_default());
    let (date, time) = (moment.strftime("%Y%m%d"), moment.strftime("%Y%m%dT%H%M%SZ").to_string());
    let mut headers = vec![("host", host), ("x-amz-date", time.clone())];
    if !credentials.token.is_empty() {
        headers.push(("x-amz-security-token", credentials.token.clone()));
    }
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let signed = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let path = if url.path().is_empty() { "/" } else { url.path() };
    let hash = hex(&Sha256::digest(body.as_bytes()));
    let request = format!("POST\n{path}\n\n{lines}\n{signed}\n{hash}");
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex(&Sha256::digest(request.as_bytes()))
    );
    let secret = format!("AWS4{}", credentials.secret_key);
    let mut key = secret.into_bytes();
    for part in [&date.to_string(), region, service, "aws4_request"] {
        key = hmac::<Sha256>(&key, part.as_bytes());
    }
    let signature = hex(&hmac::<Sha256>(&key, text.as_bytes()));
    let access = &credentials.access_key;
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={signed}, Signature={signature}");
    // The client writes the host itself.
    headers.remove(0);
    headers.push(("authorization", authorization));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS' published example key, never a real one.
    fn example() -> Credentials {
        Credentials {
            access_key: "AKIDEXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            token: String::new(),
        }
    }

    #[test]
    fn the_signature_is_that_of_awss_test_suite() {
        // `post-vanilla` of the published suite: 2015-08-30T12:36:00Z, service "service", empty body.
        let headers = sign(
            &example(),
            "us-east-1",
            "service",
            "https://example.amazonaws.com/",
            "",
            1_440_938_160_000,
        );
        let headers = headers.expect("signed");
        assert_eq!(headers[0], ("x-amz-date", "20150830T123600Z".to_owned()));
        assert_eq!(
            headers[1].1,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
    }

    #[test]
    fn a_file_of_credentials_has_profiles() {
        let text = "[default]\naws_access_key_id = a\naws_secret_access_key=b\n[p]\naws_access_key_id=c\n\
                    aws_secret_access_key = d\naws_session_token = e\n[half]\naws_access_key_id=f";
        let read = |profile| Credentials::read(text, profile).map(|c| (c.access_key, c.secret_key, c.token));
        assert_eq!(read("default"), Some(("a".into(), "b".into(), String::new())));
        assert_eq!(read("p"), Some(("c".into(), "d".into(), "e".into())));
        assert_eq!((read("half"), read("none")), (None, None));
    }
}
