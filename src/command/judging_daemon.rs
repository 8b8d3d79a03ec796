// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon that judges messages: with a milter's listeners and other interfaces, or with interfaces alone.

use super::canary;
use super::daemon::{alert, answer, end_history, ended, open_ledger, reloading, serving, show};
use super::fleet_tasks::{self, Duty, Joined};
use super::lists::look_after;
use super::open_interfaces::{last_answers, open_interfaces};
use super::state_files;
use super::supervisor::Supervisor;
use super::take_reports::{know_mailing, reporter, reports};
use super::watch::watch;
use crate::activity::{Activity, Connections};
use crate::config::{self, Checked, Kind, MilterFile};
use crate::control::{Daemon, Parts};
use crate::judging::{Service, recheck, weighing};
use crate::milter::{Bounds, ListenerSettings, Socket, serve};
use crate::net::{Activation, Endpoint, Mode};
use crate::orders::{Orders, exchange};
use crate::refusals::Refusals;
use crate::telemetry;
use anyhow::Context;
use arc_swap::ArcSwap;
use bulkmark_counts::{LocalCopy, Role};
use bulkmark_ledger::Ledger;
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_policy::Name;
use bulkmark_sync::fleet::Fleet;
use bulkmark_sync::{
    BulkBound, FollowMode, Links, Parameters, Remote, RemoteCounts, Upstream, follow, push, trim,
};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Runs the daemon with the configuration at `path`.
pub(super) fn run(kind: Kind, path: &Path) -> anyhow::Result<ExitCode> {
    let passed =
        Activation::take(if kind == Kind::Interfaces { "bulkmark-interfaces" } else { "bulkmark-milter" });
    let checked = config::load_for(kind, path)?;
    super::daemon::run(&checked.file.log.clone(), daemon(kind, path, checked, passed))
}

async fn daemon(kind: Kind, path: &Path, mut checked: Checked, passed: Activation) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let ending = ended()?;
    let file = checked.file.clone();
    let activity = Activity::new(telemetry::lines_dropped, file.status.record());
    state_files::restore(&file.state_dir, &activity);
    let (new, role) = (!file.state_dir.join(bulkmark_ledger::FILE_NAME).exists(), role_of(&file));
    let ledger = open_ledger(&file.state_dir, role, &file.ledger, &checked.key).await?;
    if new {
        log::info!("created a new ledger in {}", file.state_dir.display());
    }
    checked.file.signature.canary = canary::read_or_make(&file.state_dir);
    let sockets = listen(path, &file, passed, &activity.connections).await?;
    let addresses = format_addresses(&sockets);
    let parameters = Parameters::new(&file.ledger, &checked.key);
    let mut tasks = Supervisor::new(Arc::clone(&activity.tasks));
    let rules = checked.into_rules();
    let sync = start_sync(&file, &parameters, (&ledger, &activity), rules.hold_from(), &mut tasks).await?;
    let (links, asks) = (Arc::clone(&sync.links), sync.asks.clone());
    let correspondents = Arc::new(Correspondents::open(&file.state_dir, &rules.key, bulkmark_ledger::now()));
    let service = Service::new(
        rules,
        (ledger.clone(), correspondents),
        (Arc::new(Orders::open(&file.state_dir)), Refusals::open(&file.state_dir, &file.refusals)),
        file.interfaces.are_open(),
        links,
        asks,
        Arc::clone(&activity),
    );
    // The ledger logs its own failure; the next report sets the weights again.
    let _ = ledger.set_weighing(weighing(&service.rules.load())).await;
    let daemon = status_parts((kind, role), addresses.clone(), parameters, &service, &file, sync, &activity);
    answer(&file.control, Arc::clone(&daemon), &mut tasks).await?;
    let threshold_service = Arc::clone(&service);
    let threshold = move || threshold_service.rules.load().thresholds.body.get();
    let shown = Arc::new(ArcSwap::from_pointee(config::in_force(path, kind.example())));
    contact_others(&file, &service, &daemon, &mut tasks);
    let history = show(&mut tasks, &file.status, daemon, threshold, Arc::clone(&shown)).await;
    let (state_dir, end) = (file.state_dir.clone(), at_end(ending));
    begin(kind, &file, &addresses, (&ledger, &service), &end, &mut tasks).await?;
    let bounds = Bounds { connections: file.max_connections.get(), idle: file.idle_timeout };
    let sessions = tokio::spawn(serve_all(sockets, bounds, Arc::clone(&service), end));
    let reloads = async {
        let mut in_force = file;
        while hangup.recv().await.is_some() {
            reloading(&activity, || reload((kind, path), &service, &mut in_force, &shown));
        }
    };
    tokio::select! {
        ended = sessions => ended.context("the milter failed")?.context("the milter failed")?,
        () = reloads => (),
    }
    last_answers(&service).await;
    drop(tasks);
    end_history(history.as_ref());
    state_files::store(&state_dir, &activity);
    ledger.close().await.context("the last reports could not be written")?;
    log::info!("bulkmark ended");
    Ok(())
}

/// Opens the interfaces, and begins the daemon's other tasks, once it serves.
async fn begin(
    kind: Kind,
    file: &MilterFile,
    addresses: &str,
    (ledger, service): (&Ledger, &Arc<Service>),
    end: &watch::Receiver<bool>,
    tasks: &mut Supervisor,
) -> anyhow::Result<()> {
    let state_dir = &file.state_dir;
    // Mail does not wait for the interfaces; without a mail server, the start waits for them.
    if kind == Kind::Milter {
        log::info!("bulkmark {} listens on {addresses}", env!("CARGO_PKG_VERSION"));
        begin_tasks(ledger, service, state_dir, tasks);
    }
    let open = open_interfaces(&file.open_interfaces(), (service, state_dir), end, tasks).await;
    if kind == Kind::Interfaces {
        anyhow::ensure!(open > 0, "no interface could be opened, and there is nothing else to do");
        log::info!("bulkmark {} has opened its interfaces", env!("CARGO_PKG_VERSION"));
        begin_tasks(ledger, service, state_dir, tasks);
    }
    Ok(())
}

/// Returns the role of the ledger.
const fn role_of(file: &MilterFile) -> Role {
    if file.upstream.is_empty() && file.fleet.is_none() { Role::Site } else { Role::Cache }
}

/// Returns the parts that the daemon's status is about.
fn status_parts(
    (kind, role): (Kind, Role),
    address: String,
    parameters: Parameters,
    service: &Arc<Service>,
    file: &MilterFile,
    Sync { links, servers, fleet, asks }: Sync,
    activity: &Arc<Activity>,
) -> Arc<Daemon> {
    Arc::new(Daemon::new(Parts {
        name: kind.name(),
        role,
        address,
        parameters,
        ledger: service.ledger.clone(),
        state_dir: file.state_dir.clone(),
        links,
        servers,
        fleet,
        asks,
        clients: Box::new(Vec::new),
        refused: Box::new(|| None),
        correspondents: Some(Arc::clone(&service.correspondents)),
        reports: Some(reports(Arc::clone(service))),
        reporter: Some(reporter(Arc::clone(service))),
        orders: Some(Arc::clone(&service.orders)),
        know_mailing: Some(know_mailing(Arc::clone(service))),
        activity: Arc::clone(activity),
    }))
}

/// Notifies the service manager, and begins to watch the writer and the files of white lists, and to store data for the next start.
fn begin_tasks(ledger: &Ledger, service: &Arc<Service>, state_dir: &Path, tasks: &mut Supervisor) {
    serving();
    watch(ledger, tasks);
    let (directory, activity) = (state_dir.to_owned(), Arc::clone(&service.activity));
    tasks.run("keep", move || state_files::store_periodically(directory.clone(), Arc::clone(&activity)));
    if service.asks.is_some() {
        let service = Arc::clone(service);
        tasks.run("later", move || recheck(Arc::clone(&service)));
    }
    let service = Arc::clone(service);
    tasks.run("lists", move || look_after(Arc::clone(&service)));
}

/// Formats the listening addresses: the unnamed one first, then the others with their names.
fn format_addresses(sockets: &[(Option<Arc<str>>, Socket)]) -> String {
    let address = |(name, socket): &(Option<Arc<str>>, Socket)| match name {
        Some(name) => format!("{} ({name})", socket.address()),
        None => socket.address(),
    };
    sockets.iter().map(address).collect::<Vec<_>>().join(", ")
}

/// Opens the sockets for the MTA, with their names if they have one.
async fn listen(
    path: &Path,
    file: &MilterFile,
    mut passed: Activation,
    connections: &Arc<Connections>,
) -> anyhow::Result<Vec<(Option<Arc<str>>, Socket)>> {
    let listeners = &file.listen.0;
    let from_systemd = listeners.iter().filter(|listener| listener.at == Endpoint::Systemd).count();
    if from_systemd > 0 && file.listen_mode != Mode::default() && from_systemd == listeners.len() {
        log::warn!("{}: listen-mode is not used, SocketMode= of the socket's unit is", path.display());
    }
    // A single socket may have any name in the unit.
    let names_matter = from_systemd > 1 || passed.number() > 1;
    let mut sockets = Vec::new();
    // Named listeners first: the unnamed one gets the remaining socket.
    let (named, unnamed): (Vec<_>, Vec<_>) = listeners.iter().partition(|listener| listener.name.is_some());
    for ListenerSettings { name, at } in named.into_iter().chain(unnamed) {
        let name = name.as_ref().map(Name::as_str);
        let socket = match at {
            Endpoint::At(address) => Socket::bind(address, file.listen_mode, Arc::clone(connections)).await?,
            Endpoint::Systemd => {
                Socket::passed(&mut passed, name.filter(|_| names_matter), Arc::clone(connections))
                    .with_context(|| format!("{}: listen = \"systemd\"", path.display()))?
            }
        };
        sockets.push((name.map(Arc::from), socket));
    }
    if listeners.is_empty() {
        passed.refuse()
    } else {
        passed.ignore(path)
    }
    sockets.sort_by_key(|(name, _)| name.is_some());
    Ok(sockets)
}

/// Returns a receiver that becomes true when the daemon has to end.
fn at_end(ending: impl Future<Output = ()> + Send + 'static) -> watch::Receiver<bool> {
    let (ended, end) = watch::channel(false);
    tokio::spawn(async move {
        ending.await;
        ended.send_replace(true);
    });
    end
}

/// Runs sessions on all listeners until the daemon has to end; without listeners it only waits.
async fn serve_all(
    sockets: Vec<(Option<Arc<str>>, Socket)>,
    bounds: Bounds,
    service: Arc<Service>,
    end: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut sessions = JoinSet::new();
    let until = |mut end: watch::Receiver<bool>| async move {
        // The sender is dropped only after it sent.
        let _ = end.wait_for(|ended| *ended).await;
    };
    if sockets.is_empty() {
        until(end.clone()).await;
    }
    for (name, socket) in sockets {
        let until = until(end.clone());
        sessions.spawn(serve(socket, bounds, Arc::clone(&service), name, until));
    }
    while let Some(result) = sessions.join_next().await {
        result.map_err(std::io::Error::other)??;
    }
    Ok(())
}

/// The connections to other servers.
struct Sync {
    links: Arc<Links>,
    servers: Vec<Arc<Remote>>,
    /// A fleet, whose log is the only link.
    fleet: Option<Arc<Fleet>>,
    /// Who is asked for counts that are not held here.
    asks: Option<Arc<RemoteCounts>>,
}

/// Follows the upstream servers, or a fleet's log, and sends local reports there, if there are any.
async fn start_sync(
    file: &MilterFile,
    parameters: &Parameters,
    (ledger, activity): (&Ledger, &Arc<Activity>),
    hold_from: u32,
    tasks: &mut Supervisor,
) -> anyhow::Result<Sync> {
    if let Some(log) = &file.fleet {
        let asks = match file.sync.copy {
            LocalCopy::Full => None,
            LocalCopy::Partial => {
                let (servers, links) = remotes("fleet.aggregators", &log.aggregators, parameters)?;
                Some(Arc::new(RemoteCounts::of_fleet(servers, links, hold_from)))
            }
        };
        let from = asks.clone().map(|asks| -> BulkBound { Arc::new(move || asks.bound()) });
        let duty = Duty::Report(file.sync.interval, from);
        let Joined { links, fleet } =
            fleet_tasks::join(log, &duty, (ledger, &file.ledger), activity, tasks).await?;
        return Ok(Sync { links, servers: Vec::new(), fleet: Some(fleet), asks });
    }
    let (clients, links) = remotes("upstream", &file.upstream, parameters)?;
    if clients.is_empty() {
        return Ok(Sync { links, servers: clients, fleet: None, asks: None });
    }
    let asks = (file.sync.copy == LocalCopy::Partial)
        .then(|| Arc::new(RemoteCounts::new(clients.clone(), Arc::clone(&links), hold_from)));
    let way = match asks.clone() {
        Some(asks) => FollowMode::Bulk(Arc::new(move || asks.bound())),
        None => FollowMode::All { snapshot_on_fork: true },
    };
    let (all, of_ledger, to) = (clients.clone(), ledger.clone(), Arc::clone(&links));
    let counts = file.ledger.clone();
    tasks.run("follow", move || {
        follow(of_ledger.clone(), counts.clone(), all.clone(), Arc::clone(&to), way.clone())
    });
    for (i, client) in clients.iter().map(Arc::clone).enumerate() {
        let (of_ledger, settings, to) = (ledger.clone(), file.sync.clone(), Arc::clone(&links));
        tasks.run("push", move || {
            push(of_ledger.clone(), settings.clone(), i, Arc::clone(&client), Arc::clone(&to))
        });
    }
    let (of_ledger, to) = (ledger.clone(), Arc::clone(&links));
    tasks.run("spool", move || trim(of_ledger.clone(), Arc::clone(&to)));
    Ok(Sync { links, servers: clients, fleet: None, asks })
}

/// Posts problems to the webhook, if there is one, and exchanges orders with the upstream servers, if there are any.
fn contact_others(file: &MilterFile, service: &Arc<Service>, daemon: &Arc<Daemon>, tasks: &mut Supervisor) {
    alert(&file.alerts, &file.hostname, daemon, tasks);
    if !daemon.servers.is_empty() {
        let (service, servers) = (Arc::clone(service), daemon.servers.clone());
        tasks.run("orders", move || {
            let of = Arc::clone(&service);
            let sends = move || of.rules.load().shares_exact;
            exchange(Arc::clone(&service.orders), servers.clone(), Arc::clone(&service.links), sends)
        });
    }
}

/// Returns the servers of a list, and the state of the connections to them.
fn remotes(
    key: &str,
    servers: &[Upstream],
    parameters: &Parameters,
) -> anyhow::Result<(Vec<Arc<Remote>>, Arc<Links>)> {
    let urls: Vec<&str> = servers.iter().map(|server| &*server.url).collect();
    let links = Arc::new(Links::new(&urls, false));
    let remote = |(i, server): (usize, &Upstream)| {
        let remote = Remote::new(server, Some(parameters.clone()), links.get(i).unwrap_or_default());
        Ok(Arc::new(remote.with_context(|| format!("{key} {}", server.url))?))
    };
    let remotes = servers.iter().enumerate().map(remote).collect::<anyhow::Result<_>>()?;
    Ok((remotes, links))
}

/// Puts a new configuration into force, or keeps the old one if the new one is invalid; returns whether it succeeded.
fn reload(
    (kind, path): (Kind, &Path),
    service: &Service,
    in_force: &mut MilterFile,
    shown: &ArcSwap<serde_json::Value>,
) -> bool {
    match config::load_for(kind, path) {
        Ok(checked) if !checked.key.is_same(&service.rules.load().key) => {
            log::error!(
                "{}: the federation key was changed, which takes a restart, and begins a new ledger unless ledger.federation-key-file \
                 has the old key behind the new one; the old configuration stays in force",
                path.display()
            );
            false
        }
        Ok(mut checked) => {
            let kept = keep_fixed(&mut checked.file, in_force);
            let mut now_shown = config::in_force(path, kind.example());
            config::keep(&mut now_shown, &shown.load(), &kept);
            shown.store(Arc::new(now_shown));
            for key in kept {
                log::warn!("{}: {key} was changed, which takes effect at the next start", path.display());
            }
            telemetry::set_levels(&checked.file.log);
            checked.file.signature.canary = canary::read_or_make(&checked.file.state_dir);
            *in_force = checked.file.clone();
            let rules = checked.into_rules();
            service.asks.iter().for_each(|asks| asks.set_bound(rules.hold_from()));
            service.put_in_force(rules);
            log::info!("{}: read again", path.display());
            true
        }
        Err(e) => {
            let first_line = e.to_string().lines().next().unwrap_or_default().to_owned();
            log::error!("{first_line}; the old configuration stays in force");
            false
        }
    }
}

/// Resets the keys that cannot change while the daemon runs, and returns their names.
fn keep_fixed(new: &mut MilterFile, old: &MilterFile) -> Vec<&'static str> {
    let mut changed = Vec::new();
    macro_rules! keep {
        ($($name:literal: $($field:ident).+;)*) => {$(
            if new.$($field).+ != old.$($field).+ {
                new.$($field).+ = old.$($field).+.clone();
                changed.push($name);
            }
        )*};
    }
    keep! {
        "listen": listen;
        "listen-mode": listen_mode;
        "control": control;
        "state-dir": state_dir;
        "max-connections": max_connections;
        "idle-timeout": idle_timeout;
        "[ledger]": ledger;
        "[[upstream]]": upstream;
        "[fleet]": fleet;
        "sync.interval": sync.interval;
        "sync.copy": sync.copy;
        "[refusals]": refusals;
        "[status]": status;
        "[alerts]": alerts;
        "[interfaces]": interfaces;
        "log.target": log.target;
        "log.format": log.format;
    }
    changed
}
