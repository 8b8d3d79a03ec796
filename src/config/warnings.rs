// SPDX-License-Identifier: GPL-3.0-or-later
//! Valid parts of a configuration that cannot work, or not for long: found by examining the files and addresses that it names, which a daemon
//! does not do before it needs them.

use super::error::ConfigError;
use super::idle::idle_warnings;
use super::in_force::redact;
use super::kind::Kind;
use super::pieces::pieces_directory;
use super::places::{PLACES, missing_directory};
use super::policies::read_bounded;
use super::server::ServerFile;
use super::source::Source;
use crate::interfaces;
use crate::net::{Address, Certificate, CertificateError, Endpoint, TlsError, TlsFiles, TlsKeys};
use bulkmark_ledger::directory::{ENTER, Obstacle, READ, User};
use bulkmark_policy::{OutboundSettings, Thresholds, UserReportSettings, host_bits, unmatchable};
use bulkmark_sync::log;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use toml::de::{DeTable, DeValue};

/// Keys whose values are files that the daemon reads.
const FILES: [&str; 9] = [
    "files",
    "private",
    "token-file",
    "ca-file",
    "federation-key-file",
    "cert",
    "key",
    "cert-file",
    "secret-file",
];

/// Keys whose files are white lists.
const LISTS: [&str; 2] = ["files", "private"];

/// A text in a configuration.
struct Text<'a> {
    /// With its tables and numbers of entries: `upstream.0.url`.
    key: String,
    /// The key alone, without the number in a list.
    name: String,
    value: &'a str,
    span: Range<usize>,
}

/// The keys of milters and servers.
#[derive(serde::Deserialize)]
struct Fleet {
    fleet: Option<log::Settings>,
}

/// The keys of milters only.
#[derive(serde::Deserialize)]
struct Interfaces {
    #[serde(default)]
    interfaces: interfaces::Settings,
}

/// The keys about user reports.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct UserReports {
    user_reports: UserReportSettings,
    thresholds: Thresholds,
    outbound: OutboundSettings,
}

/// A newcomer's weight with which a site trusts unknown users.
const TRUSTING_WEIGHT: f64 = 0.75;

/// Returns the doubtful parts of a valid configuration, read by this user at this time.
///
/// # Errors
/// If a file of the configuration itself can no longer be read, or the daemon cannot start: a directory is missing, or a server's
/// certificate and key cannot be used.
pub fn warnings(
    path: &Path,
    kind: Kind,
    user: &User,
    now: SystemTime,
) -> Result<Vec<ConfigError>, ConfigError> {
    let source = Source::read(path)?;
    let table = source.merged()?;
    let mut texts = Vec::new();
    texts_in(&table, "", &mut texts);
    texts.sort_by_key(|text| text.span.start);
    let mut found = Vec::new();
    let pieces = pieces_directory(path);
    if pieces.is_dir() {
        found
            .extend(obstacle(&pieces, user, READ | ENTER).map(|message| ConfigError::file(&pieces, message)));
    }
    for path in source.paths() {
        found.extend(unreadable(path, user).map(|message| ConfigError::file(path, message)));
    }
    for was in source.replaced(kind.example())? {
        let (file, line) = source.line(was.at);
        let mut value = was.value;
        redact(&mut value);
        let message = format!("this replaces {value}, which {}:{line} says", file.display());
        found.push(source.error(&was.key, message));
    }
    for text in &texts {
        let warnings = text_warnings(text, user, now);
        let at = |message| source.at(Some(text.span.clone()), Some(text.key.clone()), message);
        found.extend(warnings.into_iter().map(at));
        found.extend(missing_directory(&text.key, text.value).map_err(at)?.map(at));
        if LISTS.contains(&&*text.name) {
            found.extend(list_warnings(text.value.into(), user));
        }
    }
    let fleet = source.parse::<Fleet>()?.fleet;
    if fleet.is_some_and(|fleet| fleet.is_exposed()) {
        let message = "tls = false sends the password and all counts so that anybody on the way to the log can read them";
        found.push(source.error("fleet.tls", message.to_owned()));
    }
    if kind == Kind::Milter {
        found.extend(pyzor_warnings(&source, &source.parse::<Interfaces>()?.interfaces.pyzor, user));
        found.extend(user_report_warnings(&source, &source.parse()?));
    }
    if kind != Kind::Server {
        found.extend(idle_warnings(&source, now)?);
    }
    if kind == Kind::Server {
        let file: ServerFile = source.parse()?;
        if let Some(tls) = &file.tls {
            let tested = test_certificates(tls, &file.listen, now)
                .map_err(|e| source.error("tls.cert", e.to_string()))?;
            found.extend(tested.doubts.into_iter().map(|doubt| source.error("tls.cert", doubt.problem)));
        }
    }
    Ok(found)
}

/// The certificates of a server that can be used, and their problems.
#[derive(Debug)]
pub struct Tested {
    /// The server's own certificate, and those between it and its authority; at least one.
    pub certificates: Vec<Certificate>,
    /// Why clients will reject them, or soon.
    pub doubts: Vec<Doubt>,
}

/// Why clients will reject a certificate, or soon.
#[derive(Debug)]
pub struct Doubt {
    /// The problem.
    pub problem: String,
    /// Whether all clients reject it now.
    pub is_fatal: bool,
}

/// A server cannot use its certificate and key.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// The certificates cannot be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key cannot be read, or does not match the certificate.
    #[error(transparent)]
    Pair(#[from] TlsError),
}

/// Tests the certificate and key of a server that listens at this address.
///
/// # Errors
/// If the server cannot use them.
pub fn test_certificates(
    files: &TlsFiles,
    listen: &Endpoint,
    now: SystemTime,
) -> Result<Tested, CertificatesError> {
    let certificates = Certificate::read(&files.cert)?;
    TlsKeys::load(files.clone())?;
    let doubts = certificate_problems(&certificates, listen, now);
    Ok(Tested { certificates, doubts })
}

/// Returns the problems of the certificates that a server shows: its own, and those between it and its authority.
fn certificate_problems(certificates: &[Certificate], listen: &Endpoint, now: SystemTime) -> Vec<Doubt> {
    let name = match listen {
        Endpoint::At(Address::Tcp(address)) => Some(host_of(address)),
        Endpoint::At(Address::Unix(_)) | Endpoint::Systemd => None,
    };
    // The name that belongs to an IP address cannot be found here.
    let name = name.filter(|name| name.parse::<IpAddr>().is_err() && *name != "localhost");
    let mut found = Vec::new();
    for (i, certificate) in certificates.iter().enumerate() {
        let which = if i == 0 { String::new() } else { format!("{} of its file ", i + 1) };
        let unfit = if i == 0 { certificate.unfit(name) } else { None };
        // Clients may use another name than that of `listen`.
        let is_unfit = i == 0 && certificate.unfit(None).is_some();
        let expiry = certificate.out_of_time(now).map(|message| (message, !certificate.is_in_time(now)));
        let problems = expiry.into_iter().chain(unfit.map(|message| (message, is_unfit)));
        found.extend(problems.map(|(message, is_fatal)| Doubt {
            problem: format!("the certificate {which}{message}"),
            is_fatal,
        }));
    }
    found
}

/// Returns all texts of a table.
fn texts_in<'a>(table: &'a DeTable<'_>, prefix: &str, texts: &mut Vec<Text<'a>>) {
    fn add<'a>(value: &'a toml::Spanned<DeValue<'_>>, key: String, name: &str, texts: &mut Vec<Text<'a>>) {
        match value.get_ref() {
            DeValue::String(text) => {
                texts.push(Text { key, name: name.to_owned(), value: text, span: value.span() });
            }
            DeValue::Array(list) => {
                for (i, entry) in list.iter().enumerate() {
                    add(entry, format!("{key}[{i}]"), name, texts);
                }
            }
            DeValue::Table(inner) => texts_in(inner, &format!("{key}."), texts),
            _ => (),
        }
    }
    for (name, value) in table {
        add(value, format!("{prefix}{}", name.get_ref()), name.get_ref(), texts);
    }
}

fn text_warnings(text: &Text<'_>, user: &User, now: SystemTime) -> Vec<String> {
    let path = Path::new(text.value);
    if let Some(meant) = host_bits(text.value) {
        return vec![format!("{} has bits of a host, and is taken as {meant}", text.value)];
    }
    if text.name == "url" {
        return plain(text.value).into_iter().collect();
    }
    // This key has recipients beside paths of files with recipients.
    let is_file = FILES.contains(&&*text.name) || text.name == "recipients" && path.is_absolute();
    let is_place = PLACES.contains(&&*text.key);
    if !(is_file || is_place) {
        return Vec::new();
    }
    if path.is_relative() {
        let shown = path.display();
        return vec![format!(
            "{shown} is looked for below the directory that the daemon is started in; write all of its path"
        )];
    }
    if let Some(message) = unreadable(path, user).filter(|_| is_file) {
        return vec![message];
    }
    match &*text.name {
        "token-file" => {
            // The token of the interfaces is the administrator's choice.
            let is_wrong =
                |token: &str| token.is_empty() || !(is_token(token) || text.key.starts_with("interfaces."));
            let token = fs::read_to_string(path).ok();
            let found = token.as_deref().map(str::trim).filter(|token| is_wrong(token));
            let what = |token: &str| if token.is_empty() { "is empty" } else { "has no token" };
            let expected = "expected the one that bulkmark client add printed: bulkmark_ and 64 digits";
            found.map(|token| format!("{} {}, {expected}", path.display(), what(token))).into_iter().collect()
        }
        "ca-file" => match Certificate::read(path) {
            Ok(all) => {
                let problems = all.iter().filter_map(|authority| authority.out_of_time(now));
                problems.map(|message| format!("a certificate in {} {message}", path.display())).collect()
            }
            Err(e) => vec![e.to_string()],
        },
        _ => Vec::new(),
    }
}

/// Whether this has the form of a token that a server made.
fn is_token(text: &str) -> bool {
    let digits = text.strip_prefix("bulkmark_").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns why a daemon of this user cannot read a file.
fn unreadable(path: &Path, user: &User) -> Option<String> {
    let is_directory = || path.is_dir().then(|| format!("{} is a directory", path.display()));
    obstacle(path, user, READ).or_else(is_directory)
}

/// Returns why this user cannot use a file or directory with these permissions.
fn obstacle(path: &Path, user: &User, wanted: u32) -> Option<String> {
    let shown = path.display();
    match user.reach(path, wanted) {
        Ok(()) => None,
        Err(Obstacle::Mode(at)) if at == path => {
            Some(format!("the daemon's user {} cannot read {shown}", user.name))
        }
        Err(Obstacle::Mode(at)) => {
            let at = at.display();
            Some(format!("the daemon's user {} cannot read {shown}, because of the mode of {at}", user.name))
        }
        Err(Obstacle::Unknown(e)) => Some(format!("cannot read {shown}: {e}")),
    }
}

/// Returns the problems of a list, and of the lists that it includes.
fn list_warnings(path: PathBuf, user: &User) -> Vec<ConfigError> {
    let found = std::cell::RefCell::new(Vec::new());
    let first = path.clone();
    let read = |path: &Path| {
        // The list itself was checked where it is named.
        if path != first {
            let message = unreadable(path, user);
            found.borrow_mut().extend(message.map(|message| ConfigError::file(path, message)));
        }
        String::from_utf8(read_bounded(path)?).map_err(io::Error::other)
    };
    let entries = unmatchable(&[path], &read);
    let mut found = found.into_inner();
    found.extend(entries.into_iter().map(|entry| {
        ConfigError::file(Path::new(&format!("{}:{}", entry.path.display(), entry.line)), entry.what)
    }));
    found
}

/// Returns the problems of Pyzor's accounts and their permissions.
fn pyzor_warnings(source: &Source, settings: &interfaces::PyzorSettings, user: &User) -> Vec<ConfigError> {
    let Some(home) = settings.home.as_deref() else { return Vec::new() };
    let files = interfaces::pyzor::FILES.map(|name| home.join(name));
    let key = "interfaces.pyzor.home";
    let unreadable = files.iter().filter_map(|path| unreadable(path, user));
    let mut found: Vec<_> = unreadable.map(|message| source.error(key, message)).collect();
    let Ok((faults, has_keys)) = interfaces::pyzor::examine(Some(home)) else { return found };
    let is_everybodys = fs::metadata(&files[0]).is_ok_and(|meta| meta.mode() & 0o004 != 0);
    if has_keys && is_everybodys {
        let message = format!("everybody on this machine can read the keys in {}", files[0].display());
        found.push(source.error(key, message));
    }
    let faults = faults.into_iter().map(|interfaces::pyzor::Fault { path, line, what }| {
        ConfigError::file(Path::new(&format!("{}:{line}", path.display())), what)
    });
    found.extend(faults);
    found
}

/// Returns the problems of the rules for user reports.
fn user_report_warnings(source: &Source, settings: &UserReports) -> Vec<ConfigError> {
    let UserReports { user_reports, thresholds, outbound } = settings;
    let mut found = Vec::new();
    if user_reports.own_domains.is_empty() && !outbound.matches.is_empty() {
        let message = "empty, though [outbound] says what mail is your own: nominations of it as spam count; list your domains with signed mail";
        found.push(source.error("user-reports.own-domains", message.to_owned()));
    }
    let (new, all) =
        (user_reports.trust.new_reporter.in_persons(), user_reports.trust.max_newcomers.in_persons());
    let threshold = f64::from(thresholds.spam.get());
    if new >= TRUSTING_WEIGHT && all < threshold {
        let message = format!(
            "max-newcomers is {all}, so once ten users are trusted all others weigh no more together, though new-reporter gives each of \
             them {new}, and make nothing spam; if all accounts belong to your own people, write trust = \"own\""
        );
        found.push(source.error("user-reports.trust", message));
    }
    found
}

/// Returns the problem of a server's address.
fn plain(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?;
    let host = host_of(rest.split('/').next().unwrap_or_default());
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (!is_here).then(|| {
        format!("http:// sends the token and all counts so that anybody on the way to {host} can read them; use https://")
    })
}

/// Returns the host of `HOST` or `HOST:PORT`.
fn host_of(address: &str) -> &str {
    let host = match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => address,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}
