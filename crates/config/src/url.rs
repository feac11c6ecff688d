//! Just enough of a URL to judge one: scheme, host, port. The network crates parse it again.

use std::fmt;

use crate::yaml::{Decode, Node, Result};

/// A URL that parses; possibly empty or relative until a `must` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Url {
    text: String,
    scheme_end: usize,
    host: (usize, usize),
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// A sentence where the text is not a URL at all.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        // The text itself stays out of messages: it may hold a secret.
        let fail = |why: &str| Err(format!("not a URL: {why}"));
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return fail("net/url: invalid control character in URL");
        }
        let scheme_end = match scheme_end(text) {
            Ok(end) => end,
            Err(why) => return fail(why),
        };
        let after = if scheme_end == 0 { 0 } else { scheme_end + 1 };
        if let Err(escape) = check_escapes(&text[after..]) {
            return fail(&format!("invalid URL escape {escape:?}"));
        }
        let Some(authority) = text[after..].strip_prefix("//") else {
            return Ok(Self {
                text: text.to_owned(),
                scheme_end,
                host: (0, 0),
            });
        };
        let start = after + 2;
        let end = start + authority.find(['/', '?', '#']).unwrap_or(authority.len());
        let host_start = text[start..end].rfind('@').map_or(start, |at| start + at + 1);
        let host = &text[host_start..end];
        if host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']) {
            return fail("invalid character in host name");
        }
        if let Some(bad) = bad_port(host) {
            return fail(&format!("invalid port {bad:?} after host"));
        }
        Ok(Self {
            text: text.to_owned(),
            scheme_end,
            host: (host_start, end),
        })
    }

    /// The whole URL; may hold a password, so it is for the wire. [`fmt::Display`] hides it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `http`, `https`, …; empty for a relative one.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_end]
    }

    /// Host and port, without user and password.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.text[self.host.0..self.host.1]
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl fmt::Display for Url {
    /// The URL with a password shown as `xxxxx`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host_start, _) = self.host;
        let user = self.text[..host_start]
            .strip_suffix('@')
            .and_then(|before| before.rsplit_once("//"))
            .and_then(|(_, user)| user.split_once(':'));
        match user {
            Some((name, _)) => write!(f, "{}://{name}:xxxxx@{}", self.scheme(), &self.text[host_start..]),
            None => f.write_str(&self.text),
        }
    }
}

fn scheme_end(text: &str) -> std::result::Result<usize, &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok(at),
            '0'..='9' | '+' | '-' | '.' => break,
            _ => break,
        }
    }
    let first = text.split('/').next().unwrap_or("");
    if !text.starts_with(['/', '?', '#']) && first.contains(':') {
        return Err("first path segment in URL cannot contain colon");
    }
    Ok(0)
}

fn check_escapes(text: &str) -> std::result::Result<(), &str> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let digits = rest.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
            let end = (at + 3).min(rest.len());
            return Err(rest.get(at..end).unwrap_or("%"));
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

fn bad_port(host: &str) -> Option<&str> {
    let after = match host.rfind(']') {
        Some(bracket) => &host[bracket + 1..],
        None => &host[host.rfind(':')?..],
    };
    let port = match after.strip_prefix(':') {
        Some(port) => port,
        None if after.is_empty() => return None,
        None => return Some(after),
    };
    (!port.bytes().all(|b| b.is_ascii_digit())).then_some(after)
}

impl Decode for Url {
    fn decode(node: &Node) -> Result<Self> {
        let text: String = node.read()?;
        Self::parse(&text).map_err(|message| node.fault(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<(&str, &str)>) {
        let url = Url::parse(text).ok();
        assert_eq!(url.as_ref().map(|u| (u.scheme(), u.host())), want, "{text:?}");
    }

    #[test]
    fn urls_give_scheme_and_host() {
        check("http://a:9090/x?y#z", Some(("http", "a:9090")));
        check("https://u:p@[::1]:80", Some(("https", "[::1]:80")));
        check("unix:///var/run/docker.sock", Some(("unix", "")));
        check("/relative", Some(("", "")));
        check("", Some(("", "")));
        check("localhost/x", Some(("", "")));
        check("mailto:a@b", Some(("mailto", "")));
    }

    #[test]
    fn what_is_not_a_url_is_refused() {
        for text in [
            "://x",
            "http://a:b/",
            "http://a b/",
            "http://a/%zz",
            "a\nb",
            "1.2.3.4:80",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = Url::parse("http://me:hunter2@host/x").expect("valid");
        assert_eq!(url.to_string(), "http://me:xxxxx@host/x");
    }
}
