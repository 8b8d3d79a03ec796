// SPDX-License-Identifier: GPL-3.0-or-later
//! Names and validity of certificates.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};

/// How long before its end a certificate should be renewed: two weeks, or the last quarter of a short one's validity. Renewal programs
/// start earlier.
const SOON: Duration = Duration::from_secs(14 * 86_400);
const LAST_PART: u32 = 4;

/// Maximum of certificates that are read from a file: more than a system's list of authorities has.
const MOST: usize = 1000;

/// The parts of a certificate that decide whether clients accept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The names and addresses that it is for. Its subject does not count.
    pub names: Vec<String>,
    /// The start of its validity.
    pub begins: SystemTime,
    /// The end of its validity.
    pub ends: SystemTime,
    /// Whether it belongs to an authority.
    pub is_authority: bool,
}

/// A file has no readable certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be read, or is not PEM.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: pem::Error,
    },
    /// It has no certificate in it.
    #[error("{}: found no certificate in PEM, expected \"-----BEGIN CERTIFICATE-----\"", path.display())]
    None {
        /// The file.
        path: PathBuf,
    },
    /// One of them is damaged.
    #[error("{}: certificate {number} cannot be parsed: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which one, from 1.
        number: usize,
        /// Why.
        reason: x509_cert::der::Error,
    },
}

impl Certificate {
    /// Reads the certificates of a PEM file, in order.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn read(path: &Path) -> Result<Vec<Self>, CertificateError> {
        let pem = |reason| CertificateError::Pem { path: path.to_owned(), reason };
        let mut all = Vec::new();
        for (i, der) in CertificateDer::pem_file_iter(path).map_err(pem)?.take(MOST).enumerate() {
            let damaged = |reason| CertificateError::Damaged { path: path.to_owned(), number: i + 1, reason };
            all.push(Self::parse(&der.map_err(pem)?).map_err(damaged)?);
        }
        if all.is_empty() {
            return Err(CertificateError::None { path: path.to_owned() });
        }
        Ok(all)
    }

    pub(super) fn parse(der: &[u8]) -> Result<Self, x509_cert::der::Error> {
        let certificate = x509_cert::Certificate::from_der(der)?;
        let certificate = certificate.tbs_certificate();
        let names = certificate.get_extension::<SubjectAltName>()?.map(|(_, names)| names.0);
        let constraints = certificate.get_extension::<BasicConstraints>()?;
        Ok(Self {
            names: names.unwrap_or_default().iter().filter_map(shown).collect(),
            begins: certificate.validity().not_before.to_system_time(),
            ends: certificate.validity().not_after.to_system_time(),
            is_authority: constraints.is_some_and(|(_, constraints)| constraints.ca),
        })
    }

    /// Returns the day on which it expires, as `2027-01-31`.
    #[must_use]
    pub fn last_day(&self) -> String {
        date(self.ends)
    }

    /// Returns the problem with its validity, or one that is near.
    #[must_use]
    pub fn out_of_time(&self, now: SystemTime) -> Option<String> {
        let life = self.ends.duration_since(self.begins).unwrap_or_default();
        let soon = SOON.min(life / LAST_PART);
        let left = self.ends.duration_since(now).unwrap_or_default();
        if left.is_zero() {
            Some(format!("expired on {}", self.last_day()))
        } else if self.begins > now {
            Some(format!("is not valid before {}", date(self.begins)))
        } else if left < soon {
            Some(format!("expires on {}, and was not renewed yet", self.last_day()))
        } else {
            None
        }
    }

    /// Whether it is valid at this time.
    #[must_use]
    pub fn is_in_time(&self, now: SystemTime) -> bool {
        self.begins <= now && now < self.ends
    }

    /// Returns the reason why clients will not accept it from a server, which they know by `name` if given.
    #[must_use]
    pub fn unfit(&self, name: Option<&str>) -> Option<String> {
        if self.is_authority {
            return Some(
                "is that of an authority, which clients do not take from a server; make one that it signs \
                 (openssl: basicConstraints = CA:FALSE)"
                    .to_owned(),
            );
        }
        if self.names.is_empty() {
            return Some(
                "is for no name: it has no subjectAltName, by which clients know a server".to_owned(),
            );
        }
        let name = name.filter(|name| !self.names.iter().any(|of| covers(of, name)))?;
        Some(format!("is for {}, and not for {name}", self.names.join(", ")))
    }
}

/// Formats a day as `2027-01-31`.
fn date(time: SystemTime) -> String {
    let time = humantime_serde::re::humantime::format_rfc3339_seconds(time).to_string();
    time.split('T').next().unwrap_or_default().to_owned()
}

/// Returns a name as in addresses; none for other kinds of names.
fn shown(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let four = <[u8; 4]>::try_from(bytes).map(|ip| IpAddr::from(Ipv4Addr::from(ip)));
            let six = || <[u8; 16]>::try_from(bytes).map(|ip| IpAddr::from(Ipv6Addr::from(ip)));
            four.or_else(|_| six()).ok().map(|ip| ip.to_string())
        }
        _ => None,
    }
}

/// Whether a certificate's name equals or covers this one. `*` stands for one label.
fn covers(pattern: &str, name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(domain) => name.split_once('.').is_some_and(|(_, rest)| rest == domain),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use std::time::UNIX_EPOCH;

    const DAY: Duration = Duration::from_secs(86_400);

    fn certificate(names: &[&str], change: impl Fn(&mut CertificateParams)) -> (String, Certificate) {
        let names = names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        change(&mut params);
        let pem = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cert.pem");
        std::fs::write(&path, &pem).unwrap();
        (pem, Certificate::read(&path).unwrap().remove(0))
    }

    /// The day 2026-01-01 plus so many days.
    fn day(n: u32) -> SystemTime {
        UNIX_EPOCH + DAY * 20_454 + DAY * n
    }

    #[test]
    fn time_runs_out() {
        let (_, of_90_days) = certificate(&["a.example"], |_| ());
        assert_eq!(of_90_days.begins, day(0));
        let problem = |n| of_90_days.out_of_time(day(n) + DAY / 2);
        assert_eq!(problem(75), None);
        assert_eq!(problem(76).unwrap(), "expires on 2026-04-01, and was not renewed yet");
        assert_eq!(problem(90).unwrap(), "expired on 2026-04-01");
        let before = of_90_days.out_of_time(day(0) - DAY).unwrap();
        assert_eq!(before, "is not valid before 2026-01-01");
        let (_, of_8_days) = certificate(&["a.example"], |p| p.not_after = rcgen::date_time_ymd(2026, 1, 9));
        assert!(of_8_days.out_of_time(day(5)).is_none() && of_8_days.out_of_time(day(7)).is_some());
    }

    #[test]
    fn it_is_for_its_names() {
        let names = ["counts.example.org", "*.Example.net", "192.0.2.7", "2001:db8::1"];
        let (_, found) = certificate(&names, |_| ());
        assert_eq!(found.names, ["counts.example.org", "*.example.net", "192.0.2.7", "2001:db8::1"]);
        for good in ["counts.example.org", "Counts.Example.org.", "a.example.net", "192.0.2.7", "2001:db8::1"]
        {
            assert_eq!(found.unfit(Some(good)), None, "{good}");
        }
        assert_eq!(found.unfit(None), None);
        for bad in ["example.org", "example.net", "a.b.example.net", "192.0.2.8"] {
            let problem = found.unfit(Some(bad)).unwrap();
            assert!(problem.ends_with(&format!("2001:db8::1, and not for {bad}")), "{problem}");
        }
        assert!(certificate(&[], |_| ()).1.unfit(None).unwrap().contains("subjectAltName"));
        let authority = |p: &mut CertificateParams| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        assert!(certificate(&["a.example"], authority).1.unfit(None).unwrap().contains("authority"));
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cert.pem");
        let (pem, _) = certificate(&["a.example"], |_| ());
        let cut = pem.lines().take(3).chain(["-----END CERTIFICATE-----"]).collect::<Vec<_>>().join("\n");
        for (text, expected) in [
            ("broken", "found no certificate in PEM"),
            ("", "found no certificate in PEM"),
            (&format!("{pem}{cut}\n"), "certificate 2 cannot be parsed"),
            ("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", "base64"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Certificate::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = Certificate::read(&directory.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }
}
