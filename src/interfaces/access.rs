// SPDX-License-Identifier: GPL-3.0-or-later
//! Access to interfaces: by the client's address, and for HTTP also by a token or by the host name of the request.

use crate::net::asks_for_ours;
use axum::http::{HeaderMap, Uri, header};
use bulkmark_policy::Network;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::path::Path;
use subtle::ConstantTimeEq;

/// The bounds of a token's length, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

/// Whether a client with this address may ask: if it is on this machine or in these networks. A Unix socket has its mode for this.
pub(super) fn may_ask(ip: Option<IpAddr>, networks: &[Network]) -> bool {
    let Some(ip) = ip.map(|ip| ip.to_canonical()) else { return true };
    ip.is_loopback() || networks.iter().any(|network| network.contains(ip))
}

/// The conditions of access by HTTP.
#[derive(Debug)]
pub(super) struct Access {
    /// SHA-256 of the token.
    token: Option<[u8; 32]>,
    /// Names of this machine; `None` if requests cannot use another name.
    names: Option<Vec<String>>,
}

/// The reason why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// It has not the token.
    Token,
    /// Its host name is not ours.
    Host,
}

impl Access {
    /// Access with the token in this file, if there is one; by these names, if they matter.
    ///
    /// # Errors
    /// The problem of the file.
    pub(super) fn new(token_file: Option<&Path>, names: Option<Vec<String>>) -> Result<Self, String> {
        let read = |path: &Path| {
            let text =
                std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            let token = text.trim();
            if !LENGTHS.contains(&token.len()) || !token.bytes().all(|b| b.is_ascii_graphic()) {
                let (least, most) = (LENGTHS.start(), LENGTHS.end());
                return Err(format!(
                    "{}: expected one line with a token of {least} to {most} visible characters",
                    path.display()
                ));
            }
            Ok(Sha256::digest(token.as_bytes()).into())
        };
        Ok(Self { token: token_file.map(read).transpose()?, names })
    }

    /// Whether a request with these fields for this target may pass.
    ///
    /// # Errors
    /// The reason why not.
    pub(super) fn check(&self, fields: &HeaderMap, target: &Uri) -> Result<(), Denied> {
        let text = |name| fields.get(name).and_then(|value| value.to_str().ok());
        if let Some(token) = &self.token {
            let given = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
            let given = given.filter(|(scheme, token)| {
                scheme.eq_ignore_ascii_case("bearer") && LENGTHS.contains(&token.trim().len())
            });
            // Hashes are compared in constant time.
            let is_right = given.is_some_and(|(_, given)| {
                let hash: [u8; 32] = Sha256::digest(given.trim().as_bytes()).into();
                bool::from(hash.ct_eq(token))
            });
            return if is_right { Ok(()) } else { Err(Denied::Token) };
        }
        match &self.names {
            Some(names) if !asks_for_ours(fields, target, names) => Err(Denied::Host),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn local_and_configured_addresses_may_ask() {
        let networks = ["192.0.2.0/24".parse().unwrap()];
        let may = |ip: &str| may_ask(Some(ip.parse().unwrap()), &networks);
        assert!(may("127.0.0.1") && may("::1") && may("::ffff:127.0.0.1") && may("192.0.2.9"));
        assert!(!may("192.0.3.1") && !may("2001:db8::1") && may_ask(None, &networks));
    }

    #[test]
    fn requests_with_the_token_may_pass() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let access = Access::new(Some(&path), Some(Vec::new())).unwrap();
        let check = |value: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            access.check(&fields, &Uri::from_static("/v1/judge"))
        };
        assert_eq!(check("Bearer 0123456789abcdef"), Ok(()));
        for bad in ["Bearer 0123456789abcdeg", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer "] {
            assert_eq!(check(bad), Err(Denied::Token), "{bad}");
        }
        assert_eq!(access.check(&HeaderMap::new(), &Uri::from_static("/v1/judge")), Err(Denied::Token));
        std::fs::write(&path, "short\n").unwrap();
        assert!(Access::new(Some(&path), None).unwrap_err().contains("16 to 256 visible characters"));
    }

    #[test]
    fn without_a_token_only_our_names_pass() {
        let access = Access::new(None, Some(vec!["mx.example.org".to_owned()])).unwrap();
        let check = |host: &'static str| {
            let mut fields = HeaderMap::new();
            fields.insert(header::HOST, HeaderValue::from_static(host));
            access.check(&fields, &Uri::from_static("/v1/judge"))
        };
        assert_eq!((check("127.0.0.1:8725"), check("mx.example.org")), (Ok(()), Ok(())));
        assert_eq!(check("evil.example"), Err(Denied::Host));
        assert_eq!(Access::new(None, None).unwrap().check(&HeaderMap::new(), &Uri::from_static("/")), Ok(()));
    }
}
