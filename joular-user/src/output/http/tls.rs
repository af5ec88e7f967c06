//! Speaks TLS with clients, so that nobody else sees token and figures.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tokio_rustls::TlsAcceptor;

/// Certificates are replaced now and then. So long an old one may be used.
const RELOAD: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("reading {path}: {source}: check the flags that name certificates and their key")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {source}: it must have PEM text")]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{path}: there is no certificate in it: name a file with PEM text")]
    NoCertificate { path: PathBuf },
    #[error("the certificate in {certificate} cannot be used with the key in {key}: {source}")]
    Unusable { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("clients cannot be known by the certificates in {path}: {cause}")]
    Authority { path: PathBuf, cause: String },
}

/// Files that are served with.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    client_authority: Option<PathBuf>,
}

/// Files, and what they make possible.
pub struct Tls {
    files: Files,
    acceptor: TlsAcceptor,
    read: Instant,
    /// Whether new files cannot be used, which was reported.
    is_old: bool,
    warn: fn(&str),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls of {}", self.files.certificate.display())
    }
}

impl Tls {
    /// Reads PEM files: a certificate followed by those that sign it, its private key, and those that sign certificates
    /// of clients, if clients have to have one. `warn` is told if later ones cannot be used.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn read(
        certificate: &Path,
        key: &Path,
        client_authority: Option<&Path>,
        warn: fn(&str),
    ) -> Result<Self, TlsError> {
        let client_authority = client_authority.map(Path::to_owned);
        let files = Files { certificate: certificate.into(), key: key.into(), client_authority };
        let acceptor = acceptor(&files)?;
        Ok(Self { files, acceptor, read: Instant::now(), is_old: false, warn })
    }

    /// Whether clients have to have a certificate.
    pub const fn expects_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    /// What takes a connection, with files that are a minute old at most, unless new ones cannot be used.
    pub fn acceptor(&mut self) -> TlsAcceptor {
        if self.read.elapsed() > RELOAD {
            self.reload();
        }
        self.acceptor.clone()
    }

    fn reload(&mut self) {
        self.read = Instant::now();
        match acceptor(&self.files) {
            Ok(acceptor) => (self.acceptor, self.is_old) = (acceptor, false),
            Err(error) if !std::mem::replace(&mut self.is_old, true) => {
                (self.warn)(&format!("the old certificate is still served with: {error}"));
            }
            Err(_) => {}
        }
    }
}

fn acceptor(files: &Files) -> Result<TlsAcceptor, TlsError> {
    let Files { certificate, key, client_authority } = files;
    let chain = certificates(certificate)?;
    let private =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|source| TlsError::Pem { path: key.clone(), source })?;
    let unusable = |source| TlsError::Unusable { certificate: certificate.clone(), key: key.clone(), source };
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let config = config.with_safe_default_protocol_versions().map_err(unusable)?;
    let config = match client_authority {
        Some(path) => config.with_client_cert_verifier(clients_of(path, provider)?),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_single_cert(chain, private).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Knows clients by who signs their certificates. Those without a certificate are let in, because probes have none:
/// they get no metrics.
fn clients_of(path: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let failed = |cause: String| TlsError::Authority { path: path.into(), cause };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.allow_unauthenticated().build().map_err(|error| failed(error.to_string()))
}

/// At least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem { path: path.into(), source })?;
    if found.is_empty() { Err(TlsError::NoCertificate { path: path.into() }) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Io { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Made for this test, by `openssl req -x509`.
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBfzCCASWgAwIBAgIUAyMBX4KJ4t+grtY5twqPgzVdB+QwCgYIKoZIzj0EAwIw\n\
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNDExMzc1OFoYDzIxMjYxMDMx\n\
        MTEzNzU4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
        PQMBBwNCAAQcx17Oo4ywJfkCSpAHQ58678twtx6yX59P0isiz9rMx1tT+3hhk2zt\n\
        R6qkw97mKgvRUE2d/QjTRA+t+7/75Ez1o1MwUTAdBgNVHQ4EFgQUTKUoSs63ERBB\n\
        mMT1o0s8/CoB9i0wHwYDVR0jBBgwFoAUTKUoSs63ERBBmMT1o0s8/CoB9i0wDwYD\n\
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAv+AhxblBMjhVVXfu7kd3\n\
        gXuFukDVnaP3QITpkP9xKlECIGYZF6yqRk3F525jOkSzdBFRyfADoLw89+WlhGm1\n\
        n9ES\n\
        -----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgl6ePbABjuR7dkg8h\n\
        B8dEDvlmmDz5zlZP7CV1WzVbrYOhRANCAAQcx17Oo4ywJfkCSpAHQ58678twtx6y\n\
        X59P0isiz9rMx1tT+3hhk2ztR6qkw97mKgvRUE2d/QjTRA+t+7/75Ez1\n\
        -----END PRIVATE KEY-----\n";

    #[test]
    fn a_new_certificate_that_cannot_be_used_leaves_the_old_one_and_is_told_once() {
        static TOLD: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("certificate"), CERTIFICATE).unwrap();
        fs::write(path("key"), KEY).unwrap();
        let told = |text: &str| {
            assert!(text.contains("the old certificate"), "{text}");
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        let mut tls = Tls::read(&path("certificate"), &path("key"), None, told).unwrap();
        for (certificate, expected) in [(CERTIFICATE, 0), ("", 1), ("", 1), (CERTIFICATE, 1), ("", 2)] {
            fs::write(path("certificate"), certificate).unwrap();
            tls.reload();
            assert_eq!(TOLD.load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("empty"), "").unwrap();
        fs::write(path("text"), "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        fs::write(path("other"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        fs::write(path("good"), CERTIFICATE).unwrap();
        fs::write(path("key"), KEY).unwrap();
        for (certificate, key, authority, expected) in [
            ("absent", "absent", None, "No such file"),
            ("empty", "empty", None, "there is no certificate in it"),
            ("text", "empty", None, "it must have PEM text"),
            ("other", "empty", None, "it must have PEM text"),
            ("good", "key", Some("empty"), "there is no certificate in it"),
            ("good", "key", Some("other"), "clients cannot be known by"),
        ] {
            let authority = authority.map(path);
            let error =
                Tls::read(&path(certificate), &path(key), authority.as_deref(), |_| {}).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
