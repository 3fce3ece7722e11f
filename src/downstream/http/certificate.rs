//! The certificate of this service, which hosts see when they connect over TLS.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::base::{Lock, run_blocking};

/// Time between two looks at the files. Programs that renew certificates replace them.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// The protocols that hosts may choose, the preferred one first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [HTTP_2, b"http/1.1"];
/// HTTP/2 over TLS (RFC 9113, section 3.2).
pub(super) const HTTP_2: &[u8] = b"h2";

/// The files of a certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The contents of the files.
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate of the files, which new connections get.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: CertificateFiles,
    current: ArcSwap<CertifiedKey>,
    /// The hash of the files as they were last, whether they could be used or not.
    seen: Lock<Option<[u8; 32]>>,
}

impl Pem {
    fn hash(&self) -> [u8; 32] {
        let whole = Sha256::new().chain_update(Sha256::digest(&self.certificate));
        whole.chain_update(&self.key).finalize().into()
    }
}

impl CertificateFiles {
    fn read(&self) -> io::Result<Pem> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
            })
        };
        Ok(Pem { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    /// Returns the certificate with its key.
    ///
    /// # Errors
    /// If a file has no PEM, or the key belongs to another certificate.
    fn parse(&self, pem: &Pem) -> io::Result<CertifiedKey> {
        let refused = |path: &PathBuf, why: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.certificate).collect();
        let chain = chain.map_err(|error| refused(&self.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(refused(&self.certificate, "it has no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&pem.key)
            .map_err(|error| refused(&self.key, format!("it has no private key: {error}")))?;
        CertifiedKey::from_der(chain, key, &provider())
            .map_err(|error| refused(&self.key, format!("cannot use the private key: {error}")))
    }
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// If they cannot be read, or do not belong together.
    pub(crate) fn read(files: CertificateFiles) -> io::Result<Arc<Self>> {
        let pem = files.read()?;
        let current = ArcSwap::from_pointee(files.parse(&pem)?);
        Ok(Arc::new(Self { files, current, seen: Lock::new(Some(pem.hash())) }))
    }

    /// Returns the side of dormouse in TLS.
    pub(super) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let builder = ServerConfig::builder_with_provider(Arc::new(provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.expect("the provider has the suites of these versions");
        let mut config = builder.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads the files again whenever they change, in an endless loop. A certificate that cannot be
    /// used is reported once, and the earlier one stays.
    pub(super) async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let this = self.clone();
            run_blocking(move || this.look()).await;
        }
    }

    fn look(&self) {
        let read = self.files.read();
        let hash = read.as_ref().map(Pem::hash).ok();
        if std::mem::replace(&mut *self.seen.lock(), hash) == hash {
            return;
        }
        match read.and_then(|pem| self.files.parse(&pem)) {
            Ok(certificate) => {
                self.current.store(Arc::new(certificate));
                tracing::info!("the certificate was read again");
            }
            Err(error) => {
                tracing::warn!(%error, "the certificate cannot be used; the earlier one stays");
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}
