// SPDX-License-Identifier: GPL-3.0-or-later
//! Certificate and key, which can be replaced while connections are open.

use super::certificate::Certificate;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tokio_rustls::TlsAcceptor;

/// `[tls]`: certificate and key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, with the intermediate ones.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Certificate or key is unusable.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is missing, or has no certificate or key.
    #[error("cannot use {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: rustls::pki_types::pem::Error,
    },
    /// They do not match, or are of a kind that TLS does not know.
    #[error("{cert} and {key} cannot be used: {}", in_words(reason))]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
}

/// Returns the reason, in our words if they do not belong together.
fn in_words(reason: &rustls::Error) -> String {
    match reason {
        rustls::Error::InconsistentKeys(_) => "the key is not that of the certificate".to_owned(),
        other => other.to_string(),
    }
}

/// The certificate and key in force.
pub struct TlsKeys {
    files: TlsFiles,
    config: ArcSwap<InForce>,
}

/// The content of the files.
struct InForce {
    server: Arc<ServerConfig>,
    /// When the first certificate of the chain expires, in seconds since 1970.
    expiry: Option<u64>,
}

fn read(files: &TlsFiles) -> Result<InForce, TlsError> {
    let file = |path: &PathBuf, reason| TlsError::File { path: path.clone(), reason };
    let certificates = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| file(&files.cert, e))?;
    if certificates.is_empty() {
        return Err(file(&files.cert, rustls::pki_types::pem::Error::NoItemsFound));
    }
    let expiry = certificates.iter().filter_map(expiry).min();
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| file(&files.key, e))?;
    let pair = |reason| TlsError::Pair { cert: files.cert.clone(), key: files.key.clone(), reason };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(InForce { server: Arc::new(config), expiry })
}

/// Returns when a certificate expires; none if it cannot be parsed.
fn expiry(certificate: &CertificateDer<'_>) -> Option<u64> {
    let ends = Certificate::parse(certificate).ok()?.ends;
    ends.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

impl TlsKeys {
    /// Reads the files.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let config = ArcSwap::from_pointee(read(&files)?);
        Ok(Self { files, config })
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    /// See [`TlsError`]; the old ones stay in force.
    pub fn reload(&self) -> Result<(), TlsError> {
        read(&self.files).map(|config| self.config.store(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.load().server))
    }

    /// Returns when the first certificate of the chain in force expires, in seconds since 1970.
    #[must_use]
    pub fn expiry(&self) -> Option<u64> {
        self.config.load().expiry
    }
}
