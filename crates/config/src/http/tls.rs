//! TLS towards a server.

use std::path::Path;

use crate::secret::Secret;
use crate::shape::count_from;
use crate::yaml::{Decode, Node, Result};

/// Settings of TLS; certificates stand in place or in files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsConfig {
    /// Authorities to trust, PEM, in place.
    pub ca: String,
    /// The same in a file.
    pub ca_file: String,
    /// Our certificate, PEM.
    pub cert: String,
    /// The same in a file.
    pub cert_file: String,
    /// Our key, PEM.
    pub key: Secret,
    /// The same in a file.
    pub key_file: String,
    /// The name to expect in the server's certificate; empty for the host's.
    pub server_name: String,
    /// Whether the server's certificate is left unchecked.
    pub insecure_skip_verify: bool,
    /// The oldest version to speak.
    pub min_version: Option<TlsVersion>,
    /// The newest version to speak.
    pub max_version: Option<TlsVersion>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.0
    Tls10,
    /// TLS 1.1
    Tls11,
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

impl TlsConfig {
    /// Lets relative paths of files count from a folder.
    pub(crate) fn count_from(&mut self, folder: &Path) {
        for path in [&mut self.ca_file, &mut self.cert_file, &mut self.key_file] {
            count_from(folder, path);
        }
    }

    /// Reads and checks the mapping.
    ///
    /// # Errors
    ///
    /// A fault at what is wrong.
    pub fn read(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let mut refs = [false; 3];
        for (key, set) in ["ca_ref", "cert_ref", "key_ref"].into_iter().zip(&mut refs) {
            *set = !fields.or_empty::<String>(key)?.is_empty();
        }
        let config = Self {
            ca: fields.or_empty("ca")?,
            ca_file: fields.or_empty("ca_file")?,
            cert: fields.or_empty("cert")?,
            cert_file: fields.or_empty("cert_file")?,
            key: fields.or_empty("key")?,
            key_file: fields.or_empty("key_file")?,
            server_name: fields.or_empty("server_name")?,
            insecure_skip_verify: fields.or_empty("insecure_skip_verify")?,
            min_version: fields.part("min_version").map(Node::read).transpose()?,
            max_version: fields.part("max_version").map(Node::read).transpose()?,
        };
        config.check(node, refs)?;
        fields.finish()?;
        Ok(config)
    }

    fn check(&self, node: &Node, refs: [bool; 3]) -> Result<()> {
        let count = |ways: [bool; 3]| ways.iter().filter(|set| **set).count();
        let ca = count([!self.ca.is_empty(), !self.ca_file.is_empty(), refs[0]]);
        let cert = count([!self.cert.is_empty(), !self.cert_file.is_empty(), refs[1]]);
        let key = count([!self.key.is_empty(), !self.key_file.is_empty(), refs[2]]);
        let message = if ca > 1 {
            "at most one of ca, ca_file & ca_ref must be configured"
        } else if cert > 1 {
            "at most one of cert, cert_file & cert_ref must be configured"
        } else if key > 1 {
            "at most one of key, key_file & key_ref must be configured"
        } else if cert > 0 && key == 0 {
            "exactly one of key or key_file must be configured when a client certificate is configured"
        } else if key > 0 && cert == 0 {
            "exactly one of cert or cert_file must be configured when a client key is configured"
        } else if matches!((self.min_version, self.max_version), (Some(min), Some(max)) if max < min) {
            "tls_config.max_version must be greater than or equal to tls_config.min_version if both are specified"
        } else {
            return Ok(());
        };
        Err(node.fault(message))
    }
}

impl Decode for TlsVersion {
    fn decode(node: &Node) -> Result<Self> {
        let text: String = node.read()?;
        match text.as_str() {
            "TLS10" => Ok(Self::Tls10),
            "TLS11" => Ok(Self::Tls11),
            "TLS12" => Ok(Self::Tls12),
            "TLS13" => Ok(Self::Tls13),
            _ => Err(node.fault(format!("unknown TLS version: {text}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        let got = TlsConfig::read(&parse(text).expect("valid YAML"))
            .err()
            .map(|f| f.message);
        match (got, want) {
            (None, None) => {}
            (Some(message), Some(want)) => assert!(message.contains(want), "{text}: {message}"),
            (got, want) => panic!("{text}: got {got:?}, want {want:?}"),
        }
    }

    #[test]
    fn certificate_and_key_come_together() {
        check("{cert_file: a, key_file: b, ca_file: c}", None);
        check("{cert_file: a}", Some("exactly one of key or key_file"));
        check("{key: a}", Some("exactly one of cert or cert_file"));
        check("{ca: a, ca_file: b}", Some("at most one of ca"));
    }

    #[test]
    fn versions_have_names_and_order() {
        check("{min_version: TLS12, max_version: TLS13}", None);
        check(
            "{min_version: TLS13, max_version: TLS12}",
            Some("max_version must be greater"),
        );
        check("{min_version: SSL3}", Some("unknown TLS version"));
    }
}
