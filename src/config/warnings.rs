// SPDX-License-Identifier: GPL-3.0-or-later
//! What is valid in a configuration and still cannot work, or not for long: found by looking at the files and addresses that it
//! names, which a daemon does not do before it needs them.

use super::error::ConfigError;
use super::in_force::redact;
use super::kind::Kind;
use super::pieces::pieces_directory;
use super::server::ServerFile;
use super::source::Source;
use crate::doors;
use crate::net::{Address, Certificate, CertificateError, Endpoint, TlsError, TlsFiles, TlsKeys};
use bulkmark_ledger::directory::{ENTER, Obstacle, READ, User};
use bulkmark_policy::{OutboundSettings, PeopleSettings, Thresholds, doubts, host_bits};
use bulkmark_sync::log;
use std::fs;
use std::net::IpAddr;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use toml::de::{DeTable, DeValue};

/// Keys whose values are files that the daemon reads.
const FILES: [&str; 14] = [
    "files",
    "private",
    "token-file",
    "ca-file",
    "federation-key-file",
    "old-federation-key-file",
    "cert",
    "key",
    "cert-file",
    "key-file",
    "nkey-file",
    "password-file",
    "accounts-file",
    "access-file",
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

/// What both files may have.
#[derive(serde::Deserialize)]
struct Fleet {
    fleet: Option<log::Settings>,
}

/// What only a milter's has.
#[derive(serde::Deserialize)]
struct Doors {
    #[serde(default)]
    doors: doors::Settings,
}

/// What it has of what people say.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct People {
    people: PeopleSettings,
    thresholds: Thresholds,
    outbound: OutboundSettings,
}

/// A newcomer's weight by which a site says that it believes strangers.
const BELIEVED: f64 = 0.75;

/// What is doubtful in a configuration that is valid, read by this user at this time.
///
/// # Errors
/// When a file of the configuration itself cannot be read any more, or a server's certificate and key cannot be used.
pub fn warnings(
    path: &Path,
    kind: Kind,
    user: &User,
    now: SystemTime,
) -> Result<Vec<ConfigError>, ConfigError> {
    let source = Source::read(path)?;
    let table = source.merged()?;
    let mut texts = Vec::new();
    texts_of(&table, "", &mut texts);
    texts.sort_by_key(|text| text.span.start);
    let mut found = Vec::new();
    let pieces = pieces_directory(path);
    if pieces.is_dir() {
        found.extend(obstacle(&pieces, user, READ | ENTER).map(|what| ConfigError::file(&pieces, what)));
    }
    for path in source.paths() {
        found.extend(unreadable(path, user).map(|what| ConfigError::file(path, what)));
    }
    for was in source.replaced(kind.example())? {
        let (file, line) = source.line(was.at);
        let mut value = was.value;
        redact(&mut value);
        let what = format!("this replaces {value}, which {}:{line} says", file.display());
        found.push(source.error(&was.key, what));
    }
    for text in &texts {
        let told = of_text(text, user, now);
        let at = |what| source.at(Some(text.span.clone()), Some(text.key.clone()), what);
        found.extend(told.into_iter().map(at));
        if LISTS.contains(&&*text.name) {
            found.extend(of_list(text.value.into(), user));
        }
    }
    let fleet = source.parse::<Fleet>()?.fleet;
    if fleet.is_some_and(|fleet| fleet.is_exposed()) {
        let what = "tls = false sends the password and all counts so that anybody on the way to the log can read them";
        found.push(source.error("fleet.tls", what.to_owned()));
    }
    if kind == Kind::Milter {
        found.extend(of_pyzor(&source, &source.parse::<Doors>()?.doors.pyzor));
        found.extend(of_people(&source, &source.parse()?));
    }
    if kind == Kind::Server {
        let file: ServerFile = source.parse()?;
        if let Some(tls) = &file.tls {
            let tested = test_certificates(tls, &file.listen, now)
                .map_err(|e| source.error("tls.cert", e.to_string()))?;
            found.extend(tested.doubts.into_iter().map(|doubt| source.error("tls.cert", doubt.what)));
        }
    }
    Ok(found)
}

/// Whether a server's certificate and key can be used, and what is doubtful in them.
#[derive(Debug)]
pub struct Tested {
    /// The server's, and those between it and its authority; there is one at least.
    pub certificates: Vec<Certificate>,
    /// Why others will not take it, or not for long.
    pub doubts: Vec<Doubt>,
}

/// Why clients will not take a certificate, or not for long.
#[derive(Debug)]
pub struct Doubt {
    /// What is wrong with it.
    pub what: String,
    /// Whether no client takes it now.
    pub is_fatal: bool,
}

/// A server cannot use its certificate and key.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// The certificates cannot be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key cannot be read, or is another one's.
    #[error(transparent)]
    Pair(#[from] TlsError),
}

/// Tests the certificate and key of a server that listens there.
///
/// # Errors
/// When the server cannot use them.
pub fn test_certificates(
    files: &TlsFiles,
    listen: &Endpoint,
    now: SystemTime,
) -> Result<Tested, CertificatesError> {
    let certificates = Certificate::read(&files.cert)?;
    TlsKeys::load(files.clone())?;
    let doubts = of_certificates(&certificates, listen, now);
    Ok(Tested { certificates, doubts })
}

/// What is doubtful in the certificates that a server shows: its own, and those between it and its authority.
fn of_certificates(certificates: &[Certificate], listen: &Endpoint, now: SystemTime) -> Vec<Doubt> {
    let name = match listen {
        Endpoint::At(Address::Tcp(address)) => Some(host_of(address)),
        Endpoint::At(Address::Unix(_)) | Endpoint::Systemd => None,
    };
    // By what name others know an address cannot be seen here.
    let name = name.filter(|name| name.parse::<IpAddr>().is_err() && *name != "localhost");
    let mut found = Vec::new();
    for (i, certificate) in certificates.iter().enumerate() {
        let which = if i == 0 { String::new() } else { format!("{} of its file ", i + 1) };
        let unfit = if i == 0 { certificate.unfit(name) } else { None };
        // By another name than that of `listen` clients may reach it.
        let is_unfit = i == 0 && certificate.unfit(None).is_some();
        let of_time = certificate.out_of_time(now).map(|what| (what, !certificate.is_in_time(now)));
        let told = of_time.into_iter().chain(unfit.map(|what| (what, is_unfit)));
        found.extend(
            told.map(|(what, is_fatal)| Doubt { what: format!("the certificate {which}{what}"), is_fatal }),
        );
    }
    found
}

/// All texts of a table.
fn texts_of<'a>(table: &'a DeTable<'_>, prefix: &str, texts: &mut Vec<Text<'a>>) {
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
            DeValue::Table(inner) => texts_of(inner, &format!("{key}."), texts),
            _ => (),
        }
    }
    for (name, value) in table {
        add(value, format!("{prefix}{}", name.get_ref()), name.get_ref(), texts);
    }
}

fn of_text(text: &Text<'_>, user: &User, now: SystemTime) -> Vec<String> {
    let path = Path::new(text.value);
    if let Some(meant) = host_bits(text.value) {
        return vec![format!("{} has bits of a host, and is taken as {meant}", text.value)];
    }
    if text.name == "url" {
        return plain(text.value).into_iter().collect();
    }
    // Recipients stand beside files of such.
    let is_file = FILES.contains(&&*text.name) || text.name == "recipients" && path.is_absolute();
    if !is_file {
        return Vec::new();
    }
    if path.is_relative() {
        let shown = path.display();
        return vec![format!(
            "{shown} is looked for below the directory that the daemon is started in; write all of its path"
        )];
    }
    if let Some(what) = unreadable(path, user) {
        return vec![what];
    }
    match &*text.name {
        "token-file" => {
            let empty = fs::read_to_string(path).is_ok_and(|token| token.trim().is_empty());
            let what = "is empty, expected the token that bulkmark client add printed";
            if empty { vec![format!("{} {what}", path.display())] } else { Vec::new() }
        }
        "ca-file" => match Certificate::read(path) {
            Ok(all) => {
                let told = all.iter().filter_map(|authority| authority.out_of_time(now));
                told.map(|what| format!("a certificate in {} {what}", path.display())).collect()
            }
            Err(e) => vec![e.to_string()],
        },
        _ => Vec::new(),
    }
}

/// Why a daemon of this user cannot read a file.
fn unreadable(path: &Path, user: &User) -> Option<String> {
    let is_directory = || path.is_dir().then(|| format!("{} is a directory", path.display()));
    obstacle(path, user, READ).or_else(is_directory)
}

/// Why it cannot do this with a file or directory.
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

/// What is to be said of a list, and of those that it includes.
fn of_list(path: PathBuf, user: &User) -> Vec<ConfigError> {
    let found = std::cell::RefCell::new(Vec::new());
    let first = path.clone();
    let read = |path: &Path| {
        // The list itself was looked at where it is named.
        if path != first {
            let what = unreadable(path, user);
            found.borrow_mut().extend(what.map(|what| ConfigError::file(path, what)));
        }
        fs::read_to_string(path)
    };
    let doubts = doubts(&[path], &read);
    let mut found = found.into_inner();
    found.extend(doubts.into_iter().map(|doubt| {
        ConfigError::file(Path::new(&format!("{}:{}", doubt.path.display(), doubt.line)), doubt.what)
    }));
    found
}

/// What is to be said of the accounts of Pyzor's users, and of what they may do. That a file cannot be read was said before.
fn of_pyzor(source: &Source, settings: &doors::PyzorSettings) -> Vec<ConfigError> {
    let doors::PyzorSettings { accounts_file, access_file, .. } = settings;
    let examined = doors::pyzor::examine(accounts_file.as_deref(), access_file.as_deref());
    let Ok((faults, has_keys)) = examined else { return Vec::new() };
    let mut found = Vec::new();
    let is_everybodys = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.mode() & 0o004 != 0);
    if let Some(path) = accounts_file.as_ref().filter(|path| has_keys && is_everybodys(path)) {
        let what = format!("everybody on this machine can read the keys in {}", path.display());
        found.push(source.error("doors.pyzor.accounts-file", what));
    }
    let faults = faults.into_iter().map(|doors::pyzor::Fault { path, line, what }| {
        ConfigError::file(Path::new(&format!("{}:{line}", path.display())), what)
    });
    found.extend(faults);
    found
}

/// What is to be said of who may call what spam.
fn of_people(source: &Source, said: &People) -> Vec<ConfigError> {
    let People { people, thresholds, outbound } = said;
    let mut found = Vec::new();
    if people.own_domains.is_empty() && !outbound.matches.is_empty() {
        let what = "empty, though [outbound] says what mail is your own: whoever nominates it as spam is heard; name the domains whose mail is signed";
        found.push(source.error("people.own-domains", what.to_owned()));
    }
    let (new, all) = (people.trust.new_reporter.in_persons(), people.trust.max_newcomers.in_persons());
    let threshold = f64::from(thresholds.spam.get());
    if new >= BELIEVED && all < threshold {
        let what = format!(
            "max-newcomers is {all}, so once ten users are trusted all others weigh no more together, though new-reporter gives each of \
             them {new}, and make nothing spam; if all accounts belong to your own people, write trust = \"own\""
        );
        found.push(source.error("people.trust", what));
    }
    found
}

/// What is to be said of a server's address.
fn plain(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?;
    let host = host_of(rest.split('/').next().unwrap_or_default());
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (!is_here).then(|| {
        format!("http:// sends the token and all counts so that anybody on the way to {host} can read them; use https://")
    })
}

/// The host of `HOST` or `HOST:PORT`.
fn host_of(address: &str) -> &str {
    let host = match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => address,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}
