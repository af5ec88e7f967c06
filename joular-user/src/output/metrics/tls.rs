//! Speaks TLS with scrapers, so that nobody else sees token and figures.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;

/// Certificates are replaced now and then. So long an old one may be used.
const RELOAD: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("reading {path}: {source}: check --metrics-cert and --metrics-key")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {source}: it must have PEM text")]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{path}: there is no certificate in it: name a file with PEM text")]
    NoCertificate { path: PathBuf },
    #[error("the certificate in {certificate} cannot be used with the key in {key}: {source}")]
    Unusable { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

/// A certificate with those that sign it, its key, and what they make possible.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: TlsAcceptor,
    read: Instant,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls of {}", self.certificate.display())
    }
}

impl Tls {
    /// Reads PEM files: a certificate followed by those that sign it, and its private key.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let acceptor = acceptor(certificate, key)?;
        Ok(Self { certificate: certificate.into(), key: key.into(), acceptor, read: Instant::now() })
    }

    /// What takes a connection, with files that are a minute old at most, unless new ones cannot be used.
    pub fn acceptor(&mut self) -> TlsAcceptor {
        if self.read.elapsed() > RELOAD {
            self.read = Instant::now();
            self.acceptor = acceptor(&self.certificate, &self.key).unwrap_or_else(|_| self.acceptor.clone());
        }
        self.acceptor.clone()
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let read = |path: &Path| fs::read(path).map_err(|source| TlsError::Io { path: path.into(), source });
    let pem = |path: &Path, source| TlsError::Pem { path: path.into(), source };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|source| pem(certificate, source))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: certificate.into() });
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|source| pem(key, source))?;
    let unusable = |source| TlsError::Unusable { certificate: certificate.into(), key: key.into(), source };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(unusable)?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, private).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("empty"), "").unwrap();
        fs::write(path("text"), "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        fs::write(path("other"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        for (certificate, key, expected) in [
            ("absent", "absent", "No such file"),
            ("empty", "empty", "there is no certificate in it"),
            ("text", "empty", "it must have PEM text"),
            ("other", "empty", "it must have PEM text"),
        ] {
            let error = Tls::read(&path(certificate), &path(key)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
