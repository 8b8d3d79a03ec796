// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark doctor`
//!
//! `report` collects the findings of the others: `files` examines the daemon's permissions for its files, and a server's certificate, `counts`
//! asks the daemon or reads its ledger, `session` opens a milter session as Postfix would, `postfix` reads Postfix's configuration, `interfaces`
//! asks the other interfaces, `dns` asks name servers, `servers` asks the other servers, `fleet` the log of a fleet, and `traps` examines the
//! mail to traps.

mod counts;
mod dns;
mod files;
mod fleet;
mod interfaces;
mod postfix;
mod report;
mod servers;
mod session;
mod traps;
mod webhook;

use crate::command::daemon_args::{DaemonArgs, unit};
use crate::command::output::{EX_CONFIG, output};
use crate::command::pause::{remedy, sentence};
use crate::command::show::{THRESHOLD, some, time};
use crate::config::{self, ConfigError, INTERFACES_PATH, Kind, MilterFile, ServerFile};
use crate::control::{ClientStatus, DaemonStatus};
use crate::net::{Address, Endpoint};
use crate::server::Clients;
use crate::telemetry;
use bulkmark_ledger::directory::User;
use bulkmark_sync::Upstream;
use bulkmark_types::FederationKey;
use counts::Daemon;
use files::AS_ROOT;
use report::{Level, Report};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check everything that a milter or server needs, and give advice.
///
/// Each line begins with "ok", "warning" or "error" and the name of the check; an indented line below it has the advice. Nothing is changed, and
/// nothing is counted. Run it as root, who can read everything that the daemon reads. Exit code 0: no errors, but perhaps warnings; 1: an error;
/// 78: the configuration cannot be used, and nothing else was checked.
///
/// Checks "configuration", "federation key", "token", "certificate", "white lists": the files are valid, the daemon can read them, nobody else
/// can read secrets, and nobody else can write to any of them.
///
/// "state directory", "disk", "log": the daemon can write to its directory and owns the files in it; there is space; log lines are accepted.
///
/// "daemon", "ledger", "counts", "bulk", "capacity", "spool", "user-reports": the daemon answers at its control socket, in this version and with
/// these parameters; the ledger is sound (it is read if no daemon has it open); how full the filters are; the reports that wait for a server;
/// the room for user reports.
///
/// "listener", "exempt", "canary": the milter answers, and treats a canary, sent as Postfix would, according to actions.bulk. The client of that
/// session is not exempt; exempt clients are named, since their canaries are not judged.
///
/// "postfix": if there is a Postfix, its smtpd_milters has the listener, also where master.cf has one for the service on port 25.
///
/// "pause": nothing is refused at present (`bulkmark pause`).
///
/// "interfaces", "name servers", "traps", "relays", "correspondents": open interfaces and name servers answer; no trap gets whitelisted mail; no
/// network sends so much mail that it may be your own relay; how correspondents are verified.
///
/// "upstream", "peer", "clock", "clients", "reports of clients": the other servers answer, accept the token, and have the same window,
/// capacity, key and time; a server has clients, and none of them is silent, refused or over its limits.
///
/// "log of the fleet", "aggregators", "fleet": the log answers, admits this machine, is set up, and has the same key, window and time; an
/// aggregator counts its reports; the daemon is in step with it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The directory of Postfix's configuration [default: Postfix's own default]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "server")]
    postfix: Option<PathBuf>,
    /// Print one JSON object: worst, the worst level, and checks, a list of objects with check, level, text and advice.
    #[arg(long, conflicts_with = "nagios")]
    json: bool,
    /// Print warnings and errors only.
    #[arg(long, conflicts_with_all = ["json", "nagios"])]
    quiet: bool,
    /// Print one line for Nagios, Icinga and similar programs, and end with their exit codes. 0: OK; 1: WARNING; 2: CRITICAL, an error; 3:
    /// UNKNOWN, the configuration cannot be used.
    #[arg(long)]
    nagios: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // reqwest uses the process's provider, of which there is only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = args.daemon.path();
    let packaged = [args.daemon.default_path(), INTERFACES_PATH].iter().any(|place| path == Path::new(place));
    let mut report = Report::default();
    let examined = runtime.block_on(async {
        if args.daemon.kind(&path)? == Kind::Server {
            let (file, key) = config::load_server_parts(&path)?;
            server(&path, packaged, &file, key, &mut report).await;
        } else {
            let config::Parts { file, key, whitelist, private, traps, policies } = config::load_parts(&path)?;
            let lists = [whitelist.map(drop), private.map(drop), traps.map(drop), policies.map(drop)];
            let lists = lists.into_iter().collect();
            milter(&path, packaged, args.postfix.as_deref(), (&file, key, lists), &mut report).await;
        }
        Ok(())
    });
    if let Err(e) = &examined {
        let advice = match path.try_exists() {
            Ok(false) => "install a package, or name the file by --config; nothing else was checked",
            _ if files::is_forbidden(&path) => AS_ROOT,
            _ => "correct it there; nothing else was checked",
        };
        report.error("configuration", first_line(e), advice);
    }
    let mut out = output();
    let worst = report.worst();
    if args.nagios {
        let (code, state) = match worst {
            _ if examined.is_err() => (3, "UNKNOWN"),
            Level::Error => (2, "CRITICAL"),
            Level::Warning => (1, "WARNING"),
            Level::Ok => (0, "OK"),
        };
        writeln!(out, "{}", report.nagios(state))?;
        return Ok(ExitCode::from(code));
    }
    if args.json {
        writeln!(out, "{}", report.json())?;
    } else {
        report.print(&mut out, if args.quiet { Level::Warning } else { Level::Ok })?;
    }
    Ok(ExitCode::from(match worst {
        _ if examined.is_err() => EX_CONFIG,
        Level::Error => 1,
        Level::Ok | Level::Warning => 0,
    }))
}

/// Returns an error of the configuration without the line that it shows.
fn first_line(error: &ConfigError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

type Loaded<'a> = (&'a MilterFile, Result<FederationKey, ConfigError>, Result<(), ConfigError>);

async fn milter(
    path: &Path,
    packaged: bool,
    postfix: Option<&Path>,
    (file, key, lists): Loaded<'_>,
    report: &mut Report,
) {
    let daemon = Daemon {
        name: file.daemon(),
        path,
        packaged,
        control: &file.control,
        state_dir: &file.state_dir,
        ledger: &file.ledger,
        threshold: file.thresholds.body.get(),
        log: &file.log,
        link: "upstream",
        others: &file.upstream,
        fleet: file.fleet.as_ref(),
    };
    let (user, key) = daemon.examine_config(key, report);
    let unit = unit(path, file.daemon());
    for list in &file.whitelist.files {
        files::examine_file("white lists", list, false, &user, report);
    }
    for policy in &file.policy {
        for list in policy.whitelist.files.iter().chain(&policy.matches.recipient_files) {
            files::examine_file("policies", list, false, &user, report);
        }
    }
    for list in &file.sync.private {
        files::examine_file("private mail", list, false, &user, report);
    }
    for list in file.traps.files() {
        files::examine_file("traps", list, false, &user, report);
    }
    match lists {
        Err(e) => {
            let mut files = file.whitelist.files.iter().chain(&file.sync.private);
            let advice = if files.any(|list| files::is_forbidden(list)) {
                AS_ROOT
            } else {
                "correct it there; until then the old lists stay in force"
            };
            report.error("white lists", first_line(&e), advice);
        }
        Ok(()) if file.whitelist.files.is_empty() => report.ok("white lists", "there are none"),
        Ok(()) => report.ok("white lists", "every entry is valid"),
    }
    dns::examine(&file.authentication, report).await;
    let status = daemon.examine_state(&user, key.as_ref(), report).await;
    // Interfaces alone have no listener.
    let listener = file.listen.first();
    if let Some(listen) =
        listener.and_then(|at| daemon.listens(at, status.as_ref(), Address::of_postfix, report))
    {
        session::examine(file, &unit, &listen, report).await;
        postfix::examine(postfix, &listen, report);
    }
    interfaces::examine(&file.interfaces, &unit, &user, report).await;
    if let Some(status) = &status {
        servers::examine_spool(file, status, report);
        traps::examine(file, status, report);
        examine_pause(status, report);
    }
    daemon.examine_others(key.as_ref(), status.as_ref(), report).await;
}

/// Examines whether a pause is in force.
fn examine_pause(status: &DaemonStatus, report: &mut Report) {
    if let Some(pause) = &status.pause {
        report.warning("pause", sentence(pause), remedy(pause));
    }
}

async fn server(
    path: &Path,
    packaged: bool,
    file: &ServerFile,
    key: Result<FederationKey, ConfigError>,
    report: &mut Report,
) {
    let daemon = Daemon {
        name: "server",
        path,
        packaged,
        control: &file.control,
        state_dir: &file.state_dir,
        ledger: &file.ledger,
        threshold: THRESHOLD,
        log: &file.log,
        link: "peer",
        others: &file.peer,
        fleet: file.fleet.as_ref(),
    };
    let (user, key) = daemon.examine_config(key, report);
    if let Some(tls) = &file.tls {
        files::examine_certificates(tls, &file.listen, &user, report);
    }
    match Clients::load(&file.state_dir) {
        Ok(_) if file.fleet.is_some() => report.ok("clients", "those that report are in the log"),
        Ok(clients) if clients.list().is_empty() => {
            report.warning(
                "clients",
                "there are none, so nobody can report",
                "bulkmark client add --own NAME",
            );
        }
        Ok(clients) => examine_clients(&clients, report),
        Err(e) => report.error("clients", e, format!("restore clients.json, or chown {}: it", user.name)),
    }
    let status = daemon.examine_state(&user, key.as_ref(), report).await;
    if let Some(status) = &status {
        examine_reports(&status.clients, report);
    }
    if let Some(listen) = daemon.listens(&file.listen, status.as_ref(), str::parse, report) {
        examine_listener(&listen, report).await;
    }
    daemon.examine_others(key.as_ref(), status.as_ref(), report).await;
}

impl Daemon<'_> {
    /// Examines the daemon's user and configuration; returns the federation key if it can be read.
    fn examine_config(
        &self,
        key: Result<FederationKey, ConfigError>,
        report: &mut Report,
    ) -> (User, Option<FederationKey>) {
        let user = User::of_daemon(self.control, self.state_dir, self.packaged);
        files::examine_self(&user, report);
        for file in config::files(self.path).unwrap_or_else(|_| vec![self.path.to_owned()]) {
            files::examine_file("configuration", &file, false, &user, report);
        }
        let key = examine_key(self.ledger, key, &user, report);
        (user, key)
    }

    /// Examines the state directory and the counts; returns the status if the daemon runs.
    async fn examine_state(
        &self,
        user: &User,
        key: Option<&FederationKey>,
        report: &mut Report,
    ) -> Option<DaemonStatus> {
        examine_entries(self.link, self.others, user, report);
        if let Some(log) = self.fleet {
            fleet::examine_files(log, user, report);
        }
        files::examine_state(self.state_dir, user, report);
        files::examine_disk(self.state_dir, report);
        examine_log(self.log, report);
        counts::examine(self, key, report).await
    }

    /// Returns the listening address. For a socket from systemd, only the daemon knows it.
    fn listens(
        &self,
        endpoint: &Endpoint,
        status: Option<&DaemonStatus>,
        read: fn(&str) -> Result<Address, String>,
        report: &mut Report,
    ) -> Option<Address> {
        if let Endpoint::At(address) = endpoint {
            return Some(address.clone());
        }
        // The first of several, which is the unnamed one if there is one.
        let first = |listens: &str| listens.split([',', ' ']).next().map(str::to_owned);
        let address = status.and_then(|status| read(&first(status.listens.as_ref()?)?).ok());
        if address.is_none() {
            let daemon = self.name;
            report.error(
                "listener",
                format!("systemd holds its socket, and no {daemon} answers, so its address is unknown"),
                format!("systemctl start bulkmark-{daemon}.socket bulkmark-{daemon}.service"),
            );
        }
        address
    }

    async fn examine_others(
        &self,
        key: Option<&FederationKey>,
        status: Option<&DaemonStatus>,
        report: &mut Report,
    ) {
        if let Some(status) = status {
            webhook::examine(status, report);
        }
        if let (Some(key), Some(log)) = (key, self.fleet) {
            fleet::examine(log, self.ledger, key, status, report).await;
        }
        if let Some(key) = key {
            servers::examine(self.link, self.others, self.ledger, key, status, report).await;
        }
    }
}

fn examine_key(
    ledger: &bulkmark_counts::Settings,
    key: Result<FederationKey, ConfigError>,
    user: &User,
    report: &mut Report,
) -> Option<FederationKey> {
    const CHECK: &str = "federation key";
    if let Some(path) = &ledger.federation_key_file.old {
        files::examine_file(CHECK, path, true, user, report);
    }
    match &ledger.federation_key_file.key {
        Some(path) => files::examine_file(CHECK, path, true, user, report),
        None => report.ok(CHECK, "none; signatures are made under the public key"),
    }
    match key {
        Ok(key) => Some(key),
        Err(e) => {
            if !report.faults(CHECK) {
                report.error(CHECK, first_line(&e), "put the federation's key there");
            }
            None
        }
    }
}

/// Examines the files that entries of other servers name.
fn examine_entries(check: &'static str, entries: &[Upstream], user: &User, report: &mut Report) {
    for entry in entries {
        if let Some(token) = &entry.token_file {
            files::examine_file("token", token, true, user, report);
        }
        if let Some(authority) = &entry.ca_file {
            files::examine_file(check, authority, false, user, report);
        }
    }
}

fn examine_log(log: &telemetry::Settings, report: &mut Report) {
    let target = match &log.target {
        telemetry::Target::Syslog(..) => "syslog",
        telemetry::Target::Journald(..) => "the journal",
        telemetry::Target::Stderr => "standard error",
    };
    match telemetry::probe(log) {
        Ok(()) => report.ok("log", format!("lines go to {target}")),
        Err(e) => report.warning(
            "log",
            format!("{target} takes no lines, so they go to standard error: {e}"),
            "start the log daemon, or correct log.target",
        ),
    }
}

/// Examines whether clients report as usual.
fn examine_reports(clients: &[ClientStatus], report: &mut Report) {
    const CHECK: &str = "reports of clients";
    let trouble: Vec<_> = clients
        .iter()
        .filter(|client| client.state.is_trouble())
        .map(|client| format!("{}: {}", client.name, client.state))
        .collect();
    if !trouble.is_empty() {
        let some = trouble.iter().take(10).map(|text| &**text).collect::<Vec<_>>().join(", ");
        let text = format!("{} of {}: {some}", trouble.len(), clients.len());
        report.warning(
            CHECK,
            text,
            "bulkmark status --server has the reasons; run bulkmark doctor on these machines, or remove clients that are gone: \
             bulkmark client remove NAME",
        );
    }
}

/// Examines whether tokens of clients expire soon, and whether sites wait for approval.
fn examine_clients(clients: &Clients, report: &mut Report) {
    let soon: Vec<_> = clients
        .list()
        .iter()
        .filter_map(|client| Some((client, client.expires.filter(|&at| servers::is_soon(at))?)))
        .map(|(client, at)| format!("{} at {}", client.name, time(at)))
        .collect();
    let waiting = clients.unapproved().count();
    let count = format!("{} of them", clients.list().len() - waiting);
    if !soon.is_empty() {
        let some = soon.iter().take(10).map(|text| &**text).collect::<Vec<_>>().join(", ");
        let text = format!("{count}; tokens of {} expire soon or have expired: {some}", soon.len());
        report.warning("clients", text, "extend them: bulkmark client set --expires 90d NAME");
    } else if waiting > 0 {
        let text = format!("{count}; not approved yet: {}", some(waiting, "site"));
        report.warning("clients", text, "bulkmark client list --unapproved, and approve or remove them");
    } else {
        report.ok("clients", count);
    }
}

async fn examine_listener(listen: &Address, report: &mut Report) {
    let connected = match listen {
        Address::Tcp(address) => tokio::net::TcpStream::connect(address).await.map(drop),
        Address::Unix(path) => tokio::net::UnixStream::connect(path).await.map(drop),
    };
    match connected {
        Ok(()) => report.ok("listener", format!("somebody answers at {listen}")),
        Err(e) => report.error(
            "listener",
            format!("no server can be reached at {listen}: {e}"),
            "systemctl restart bulkmark-server; journalctl -u bulkmark-server shows the result",
        ),
    }
}
