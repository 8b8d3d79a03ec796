// SPDX-License-Identifier: GPL-3.0-or-later
//! `milter.toml`: every key, and the settings made of it.

use super::error::ConfigError;
use super::interfaces;
use super::policies::{self, read_bounded};
use super::source::Source;
use crate::interfaces::{Common, IDLE_TIMEOUT, MAX_CONNECTIONS, Settings as InterfaceSettings};
use crate::milter::Listeners;
use crate::net::Mode;
use crate::{alerts, page, refusals, telemetry};
use bulkmark_counts::KeyFiles;
use bulkmark_policy::{
    Actions, Authentication, Defaults, Despite, ExemptClients, Mailboxes, Network, OnFailure,
    OutboundSettings, Per, Policies, PolicySettings, Threshold, Thresholds, TrapSettings, Traps,
    UserReportSettings, WhiteList, WhiteListError, WhiteListFiles,
};
use bulkmark_sync::{Upstream, log};
use bulkmark_types::FederationKey;
use bulkmark_verdict::{HeaderName, Rules};
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default path of the file.
pub const DEFAULT_PATH: &str = "/etc/bulkmark/milter.toml";

/// The upper bound for the time of a verdict. MTAs wait five minutes for a milter, and then follow their configuration for a failed one.
const LONGEST_DEADLINE: Duration = Duration::from_secs(240);

/// The part of that time that a message waits for DNS or a table.
const LOOKUP_PART: u32 = 5;

/// `[counting]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Counting {
    /// The unit that counts as one report.
    pub per: Per,
    /// Characters that begin the extension of a recipient's address.
    pub recipient_delimiter: String,
}

impl Default for Counting {
    fn default() -> Self {
        Self { per: Per::default(), recipient_delimiter: Mailboxes::default().delimiter }
    }
}

/// The file; every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "conf/milter.toml and bulkmark.toml(5) describe the keys")]
pub struct MilterFile {
    pub listen: Listeners,
    pub listen_mode: Mode,
    pub control: PathBuf,
    pub state_dir: PathBuf,
    pub max_connections: NonZeroUsize,
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Duration,
    pub hostname: String,
    pub header: HeaderName,
    pub exempt: ExemptClients,
    pub exempt_networks: Vec<Network>,
    /// `relays`
    pub relays: Vec<Network>,
    pub on_failure: OnFailure,
    pub act_despite: Despite,
    #[serde(with = "humantime_serde")]
    pub verdict_deadline: Duration,
    pub counting: Counting,
    pub thresholds: Thresholds,
    pub actions: Actions,
    pub whitelist: WhiteListFiles,
    pub policy: Vec<PolicySettings>,
    pub outbound: OutboundSettings,
    pub user_reports: UserReportSettings,
    pub traps: TrapSettings,
    pub authentication: Authentication,
    pub signature: bulkmark_signature::Settings,
    pub ledger: bulkmark_counts::Settings,
    pub upstream: Vec<Upstream>,
    pub fleet: Option<log::Settings>,
    pub sync: bulkmark_sync::Settings,
    pub refusals: refusals::Settings,
    pub status: page::Settings,
    pub alerts: alerts::Settings,
    pub interfaces: InterfaceSettings,
    pub log: telemetry::Settings,
}

impl Default for MilterFile {
    fn default() -> Self {
        Self {
            listen: Listeners::default(),
            listen_mode: Mode::default(),
            control: "/run/bulkmark/milter.sock".into(),
            state_dir: "/var/lib/bulkmark/milter".into(),
            max_connections: MAX_CONNECTIONS,
            idle_timeout: IDLE_TIMEOUT,
            hostname: String::new(),
            header: HeaderName::default(),
            exempt: ExemptClients::default(),
            exempt_networks: Vec::new(),
            relays: Vec::new(),
            on_failure: OnFailure::default(),
            act_despite: Despite::default(),
            verdict_deadline: Duration::from_secs(10),
            counting: Counting::default(),
            thresholds: Thresholds::default(),
            actions: Actions::default(),
            whitelist: WhiteListFiles::default(),
            policy: Vec::new(),
            outbound: OutboundSettings::default(),
            user_reports: UserReportSettings::default(),
            traps: TrapSettings::default(),
            authentication: Authentication::default(),
            signature: bulkmark_signature::Settings::default(),
            ledger: bulkmark_counts::Settings::default(),
            upstream: Vec::new(),
            fleet: None,
            sync: bulkmark_sync::Settings::default(),
            refusals: refusals::Settings::default(),
            status: page::Settings::default(),
            alerts: alerts::Settings::default(),
            interfaces: InterfaceSettings::default(),
            log: telemetry::Settings::default(),
        }
    }
}

impl MilterFile {
    /// Whether a mail server asks the daemon; else it has only interfaces.
    #[must_use]
    pub const fn has_milter(&self) -> bool {
        !self.listen.0.is_empty()
    }

    /// Whether near-replicas are counted for some mail.
    fn has_near(&self) -> bool {
        let policies =
            self.policy.iter().map(|policy| policy.thresholds.near.unwrap_or(self.thresholds.near));
        policies.chain([self.thresholds.near]).any(|near| near != Threshold::NEVER)
    }

    /// Returns the settings of the interfaces, with those of the whole daemon.
    #[must_use]
    pub fn open_interfaces(&self) -> InterfaceSettings {
        self.interfaces.with(Common {
            listen_mode: self.listen_mode,
            hostname: &self.hostname,
            max_connections: self.max_connections,
            idle_timeout: self.idle_timeout,
        })
    }

    /// Returns the longest time that a message waits for DNS and for servers of tables.
    #[must_use]
    pub fn lookup_timeout(&self) -> Duration {
        self.verdict_deadline / LOOKUP_PART
    }

    /// Returns the name of the daemon to which the file belongs.
    #[must_use]
    pub const fn daemon(&self) -> &'static str {
        if self.has_milter() { "milter" } else { "interfaces" }
    }
}

/// A valid configuration, with all files that it names.
#[derive(Debug)]
pub struct Checked {
    /// The keys.
    pub file: MilterFile,
    /// The federation's key.
    pub key: FederationKey,
    /// The entries of all white lists.
    pub whitelist: WhiteList,
    /// The mail that only this machine counts.
    pub private: WhiteList,
    /// Addresses that get only spam.
    pub traps: Traps,
    /// Settings that differ for some mail.
    pub policies: Policies,
}

/// A file that is valid by itself, with the results of reading the files that it names.
#[derive(Debug)]
pub struct Parts {
    /// The keys.
    pub file: MilterFile,
    /// The federation's key.
    pub key: Result<FederationKey, ConfigError>,
    /// The entries of all white lists.
    pub whitelist: Result<WhiteList, ConfigError>,
    /// The mail that only this machine counts.
    pub private: Result<WhiteList, ConfigError>,
    /// Addresses that get only spam.
    pub traps: Result<Traps, ConfigError>,
    /// Settings that differ for some mail.
    pub policies: Result<Policies, ConfigError>,
}

/// Reads and checks the file at `path` and the files that it names.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub(super) fn load(path: &Path) -> Result<Checked, ConfigError> {
    checked(load_parts(path)?)
}

fn checked(parts: Parts) -> Result<Checked, ConfigError> {
    let Parts { file, key, whitelist, private, traps, policies } = parts;
    let (key, whitelist, private, traps) = (key?, whitelist?, private?, traps?);
    Ok(Checked { file, key, whitelist, private, traps, policies: policies? })
}

fn check_times(source: &Source, file: &MilterFile) -> Result<(), ConfigError> {
    if file.idle_timeout.is_zero() {
        let message = "found 0s, expected a longer time, for example \"20s\"";
        return Err(source.error("idle-timeout", message.to_owned()));
    }
    if file.verdict_deadline.is_zero() || file.verdict_deadline > LONGEST_DEADLINE {
        let found = humantime_serde::re::humantime::format_duration(file.verdict_deadline);
        return Err(source
            .error("verdict-deadline", format!("found {found}, expected at most 4m, for example \"10s\"")));
    }
    Ok(())
}

fn check_user_reports(source: &Source, file: &MilterFile) -> Result<(), ConfigError> {
    if let Some(bad) = file.user_reports.bad_domain() {
        let message = format!("found \"{bad}\", expected a domain such as \"example.org\"");
        return Err(source.error("user-reports.own-domains", message));
    }
    if let Err(error) = file.user_reports.trust(file.thresholds.spam) {
        return Err(source.error("user-reports.trust", error.to_string()));
    }
    Ok(())
}

/// Reads and checks the file like `load`, with a separate result for each of the files that it names.
///
/// # Errors
/// If the file at `path` itself cannot be used.
pub(super) fn load_parts(path: &Path) -> Result<Parts, ConfigError> {
    parts_from(&Source::read(path)?)
}

fn parts_from(source: &Source) -> Result<Parts, ConfigError> {
    let mut file: MilterFile = source.parse()?;
    file.interfaces.share_networks();
    if !file.has_milter() {
        interfaces::check(source, &file.interfaces)?;
        let place = |key, own: &str, given: PathBuf| if source.has(key) { given } else { own.into() };
        file.control = place("control", interfaces::CONTROL, file.control);
        file.state_dir = place("state-dir", interfaces::STATE_DIR, file.state_dir);
    }
    file.ledger.check().map_err(|(key, message)| source.error(&format!("ledger.{key}"), message))?;
    if let Some(bad) = file.hostname.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(source.error("hostname", format!("found {bad:?}, expected the name of this mail server")));
    }
    check_times(source, &file)?;
    file.authentication.timeout = file.lookup_timeout();
    let delimiter = &file.counting.recipient_delimiter;
    if let Some(bad) = delimiter.chars().find(|c| !c.is_ascii_punctuation() || matches!(c, '@' | '"' | '\\'))
    {
        let message = format!("found {bad:?}, expected characters that stand in addresses, such as \"+\"");
        return Err(source.error("counting.recipient-delimiter", message));
    }
    check_user_reports(source, &file)?;
    let authentication = file.authentication.check();
    authentication.map_err(|(key, message)| source.error(&format!("authentication.{key}"), message))?;
    if file.sync.interval.is_zero() {
        return Err(source
            .error("sync.interval", "found 0s, expected a longer time, for example \"500ms\"".to_owned()));
    }
    file.signature.near = file.has_near();
    source.check_servers("upstream", &file.upstream)?;
    if let Some(fleet) = &mut file.fleet {
        fleet.reports = true;
    }
    source.check_fleet(file.fleet.as_ref(), ("upstream", &file.upstream))?;
    policies::check(source, &file.listen, &file.policy, &file.outbound)?;
    file.refusals.check().map_err(|(key, message)| source.error(&format!("refusals.{key}"), message))?;
    file.status.check().map_err(|message| source.error("status.listen", message))?;
    file.alerts.url().map_err(|message| source.error("alerts.webhook", message))?;
    file.interfaces
        .check(&file.hostname)
        .map_err(|(key, message)| source.error(&format!("interfaces.{key}"), message))?;
    file.ledger.federation.copy = file.sync.copy;
    // In the form of these servers' clients.
    let url = |upstream: &Upstream| upstream.url.trim_end_matches('/').to_owned();
    file.ledger.federation.fleet_client =
        file.fleet.as_ref().and_then(|fleet| fleet.reporter().map(str::to_owned));
    file.ledger.federation.upstreams = file.upstream.iter().map(url).collect();
    let key = load_key(source, &file.ledger);
    let whitelist = load_list(source, "whitelist.files", &file.whitelist.files);
    let private = load_private(source, &file.sync.private);
    let traps =
        Traps::load(&file.traps, &read_bounded).map_err(|e| list_error(source, "traps.recipients", e));
    let defaults = Defaults { thresholds: &file.thresholds, actions: &file.actions };
    let policies = policies::load(source, &file.policy, defaults);
    check_copy(source, &file, &policies)?;
    Ok(Parts { file, key, whitelist, private, traps, policies })
}

/// Reads the list of mail that only this machine counts.
fn load_private(source: &Source, files: &[PathBuf]) -> Result<WhiteList, ConfigError> {
    const KEY: &str = "sync.private";
    let list = load_list(source, KEY, files)?;
    match list.first_remote_entry() {
        Some(entry) => Err(source.error(
            KEY,
            format!("{entry} asks a server, expected a table in a file, since no message may wait for it"),
        )),
        None => Ok(list),
    }
}

/// Checks `sync.copy`: a partial copy has bulk from half of the lowest threshold on, which must be below the count of bulk. Only a milter with a
/// partial copy asks other servers.
fn check_copy(
    source: &Source,
    file: &MilterFile,
    policies: &Result<Policies, ConfigError>,
) -> Result<(), ConfigError> {
    if file.sync.copy == bulkmark_counts::LocalCopy::Full {
        let asks = file.fleet.as_ref().is_some_and(|fleet| !fleet.aggregators.is_empty());
        let message = "goes with [sync] copy = \"partial\": a milter that holds all counts asks nobody";
        return if asks { Err(source.error("fleet.aggregators", message.to_owned())) } else { Ok(()) };
    }
    let Ok(policies) = policies else { return Ok(()) };
    let all = policies.0.iter().map(|policy| &policy.thresholds).chain([&file.thresholds]);
    let lowest = all.flat_map(|thresholds| [thresholds.body.get(), thresholds.near.get()]).min();
    match lowest.filter(|&lowest| lowest < LOWEST_PARTIAL) {
        None => Ok(()),
        Some(lowest) => Err(source.error(
            "sync.copy",
            format!("found \"partial\" and a threshold of {lowest}, expected \"full\", or thresholds of {LOWEST_PARTIAL} and more"),
        )),
    }
}

/// The lowest threshold with a partial copy: below it, most signatures are bulk.
const LOWEST_PARTIAL: u32 = 4;

/// Reads the list in these files of a key.
fn load_list(source: &Source, key: &str, files: &[PathBuf]) -> Result<WhiteList, ConfigError> {
    WhiteList::load(files, &read_bounded).map_err(|e| list_error(source, key, e))
}

/// Converts an error of a list that a key names.
fn list_error(source: &Source, key: &str, error: WhiteListError) -> ConfigError {
    match error {
        // A list that cannot be read may be misnamed here; the other errors have a place in the list itself.
        WhiteListError::Read { .. } => source.error(key, error.to_string()),
        WhiteListError::Entry { path, line, what } => {
            ConfigError::file(Path::new(&format!("{}:{line}", path.display())), what)
        }
    }
}

/// Reads the key that a file names, and the old key during a change.
pub(super) fn load_key(
    source: &Source,
    ledger: &bulkmark_counts::Settings,
) -> Result<FederationKey, ConfigError> {
    const KEY: &str = "ledger.federation-key-file";
    let read = |path: &Path, name: &str| read_key(path).map_err(|message| source.error(name, message));
    let KeyFiles { key, old } = &ledger.federation_key_file;
    let Some(path) = key else { return Ok(FederationKey::public()) };
    let Some(old) = old else { return read(path, KEY) };
    let (name, old_name) = (format!("{KEY}.0"), format!("{KEY}.1"));
    let (key, old_key) = (read(path, &name)?, read(old, &old_name)?);
    if old_key.id() == key.id() {
        let message =
            format!("{} has the same key as {}, expected the old one", old.display(), path.display());
        return Err(source.error(&old_name, message));
    }
    Ok(key.after(old_key))
}

fn read_key(path: &Path) -> Result<FederationKey, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    FederationKey::from_bytes(&bytes).map_err(|e| format!("{}: {e}", path.display()))
}

impl Checked {
    /// Returns the rules for judging messages.
    #[must_use]
    pub fn into_rules(self) -> Rules {
        let file = self.file;
        let table_timeout = file.lookup_timeout();
        Rules {
            hostname: Some(file.hostname).filter(|name| !name.is_empty()),
            header: file.header,
            exempt_networks: file.exempt_networks,
            relays: file.relays,
            exempt: file.exempt,
            on_failure: file.on_failure,
            deadline: file.verdict_deadline,
            max_staleness: file.sync.max_staleness.as_secs(),
            table_timeout,
            despite: file.act_despite,
            per: file.counting.per,
            mailboxes: Mailboxes { delimiter: file.counting.recipient_delimiter },
            policies: self.policies,
            outbound: file.outbound,
            thresholds: file.thresholds,
            actions: file.actions,
            whitelist: self.whitelist,
            private: self.private,
            user_reports: file.user_reports,
            traps: self.traps,
            authentication: file.authentication,
            shares_exact: !file.sync.withhold.exact,
            shares_user_reports: !file.sync.withhold.user_reports,
            signature: file.signature,
            key: self.key,
        }
    }
}
