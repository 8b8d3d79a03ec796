// SPDX-License-Identifier: GPL-3.0-or-later
//! Encryption of the connection to a log: trusted authorities and own certificate.

use super::settings::Settings;
use super::types::LogError;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::path::Path;
use std::sync::Arc;

/// Returns the TLS configuration of a client of the log; none if the connection is not encrypted.
///
/// With `ca-file`, only the authorities in it are trusted; otherwise those that the system trusts. Certificates are read now.
///
/// # Errors
/// When a file cannot be used.
pub fn client_tls(settings: &Settings) -> Result<Option<ClientConfig>, LogError> {
    if !settings.uses_tls() {
        return Ok(None);
    }
    let failed = |e: rustls::Error| LogError::Setup(e.to_string());
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let builder = match &settings.ca_file {
        Some(path) => builder.with_root_certificates(authorities(path)?),
        None => builder.with_platform_verifier().map_err(failed)?,
    };
    let Some(cert) = &settings.cert_file else { return Ok(Some(builder.with_no_client_auth())) };
    let private = PrivateKeyDer::from_pem_file(cert).map_err(|e| unusable(cert, &e))?;
    let config = builder.with_client_auth_cert(certificates(cert)?, private);
    Ok(Some(config.map_err(|e| LogError::Setup(format!("{} cannot be used: {e}", cert.display())))?))
}

fn authorities(path: &Path) -> Result<RootCertStore, LogError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|e| LogError::Setup(format!("{}: {e}", path.display())))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LogError> {
    use rustls::pki_types::pem::Error;
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unusable(path, &e))?;
    if found.is_empty() {
        return Err(unusable(path, &Error::NoItemsFound));
    }
    Ok(found)
}

fn unusable(path: &Path, reason: &rustls::pki_types::pem::Error) -> LogError {
    LogError::Setup(format!("cannot use {}: {reason}", path.display()))
}
