// SPDX-License-Identifier: GPL-3.0-or-later
//! Certificates for servers under test.

use super::server::Server;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs;

/// A certificate authority for one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// Makes an authority of this name, with a new key.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes certificate and key of a server of this name where [`tls_server`] expects them.
    pub fn certify(&self, server: &Server, name: &str, expired: bool) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 1));
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(server.site.path("cert.pem"), certificate.pem()).unwrap();
        fs::write(server.site.path("key.pem"), key.serialize_pem()).unwrap();
    }

    /// The authority's own certificate, for clients that trust it.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Makes certificate and key of a server or of a role of this name.
    pub fn issue(&self, name: &str) -> [String; 2] {
        self.issue_for(name, false)
    }

    /// The same, with an expired certificate.
    pub fn issue_expired(&self, name: &str) -> [String; 2] {
        self.issue_for(name, true)
    }

    fn issue_for(&self, name: &str, expired: bool) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 1));
        }
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        [params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem()]
    }

    /// An entry of a milter's list of servers, which trusts this authority alone.
    pub fn entry(&self, server: &Server, url: &str, client: &str) -> String {
        let ca = server.site.path(&format!("{client}.ca"));
        fs::write(&ca, &self.pem).unwrap();
        let entry = server.entry_by(url, client, "report");
        format!("{}, ca-file = \"{}\" }}", entry.trim_end_matches(" }"), ca.display())
    }
}

/// A server with TLS, once it has a certificate.
pub fn tls_server() -> Server {
    let mut server = Server::new("");
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| server.site.path(name).display().to_string());
    server.extra = format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    server
}

/// The server's address.
pub fn https(server: &Server) -> String {
    format!("https://127.0.0.1:{}", server.port)
}
