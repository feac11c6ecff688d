//! TLS towards a mail server, as the settings tell it.

use std::sync::Arc;

use config::http::{TlsConfig, TlsVersion};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Builds the client's settings; certificates are read now.
///
/// # Errors
///
/// A sentence: a file cannot be read, or is not what it should be.
pub fn client(config: &TlsConfig) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(config))
        .map_err(|e| e.to_string())?;
    let builder = if config.insecure_skip_verify {
        let anything = Arc::new(Anything(provider));
        builder.dangerous().with_custom_certificate_verifier(anything)
    } else if let Some(pem) = pem(&config.ca, &config.ca_file)? {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&pem)? {
            roots.add(certificate).map_err(|e| e.to_string())?;
        }
        builder.with_root_certificates(roots)
    } else {
        builder.with_platform_verifier().map_err(|e| e.to_string())?
    };
    let Some(own) = pem(&config.cert, &config.cert_file)? else {
        return Ok(builder.with_no_client_auth());
    };
    let key = pem(config.key.expose(), &config.key_file)?.unwrap_or_default();
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|e| format!("the key: {e}"))?;
    let own = certificates(&own)?;
    builder.with_client_auth_cert(own, key).map_err(|e| e.to_string())
}

/// The versions that are both wanted and spoken; older ones than 1.2 are not.
fn versions(config: &TlsConfig) -> Vec<&'static SupportedProtocolVersion> {
    let all = [
        (TlsVersion::Tls12, &rustls::version::TLS12),
        (TlsVersion::Tls13, &rustls::version::TLS13),
    ];
    let wanted = |version: TlsVersion| {
        config.min_version.is_none_or(|min| min <= version) && config.max_version.is_none_or(|max| version <= max)
    };
    all.iter()
        .filter(|(v, _)| wanted(*v))
        .map(|(_, spoken)| *spoken)
        .collect()
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|e| format!("a certificate: {e}"))?;
    if all.is_empty() {
        return Err("no certificate where one should be".to_owned());
    }
    Ok(all)
}

fn pem(inline: &str, file: &str) -> Result<Option<Vec<u8>>, String> {
    if !inline.is_empty() {
        return Ok(Some(inline.as_bytes().to_vec()));
    }
    if file.is_empty() {
        return Ok(None);
    }
    std::fs::read(file)
        .map(Some)
        .map_err(|e| format!("cannot read {file}: {e}"))
}

/// Trusts any server: `insecure_skip_verify`.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
