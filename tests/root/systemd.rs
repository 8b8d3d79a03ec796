// SPDX-License-Identifier: GPL-3.0-or-later
//! The units of systemd, and the daemons' notifications to the service manager.

use bulkmark_sync::wire::Reports;
use bulkmark_testing::http::ask;
use bulkmark_testing::mount::Mount;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::server::{Server, parameters};
use bulkmark_testing::{Daemon, PATIENCE, Site, program, skip, text_of, wait_until};
use bulkmark_types::Signature;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The service manager's end: receives a daemon's notifications one after the other.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(site: &Site) -> Self {
        let path = site.path("notify.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path }
    }

    /// Starts a daemon as the manager does, with a watchdog of 20 ms.
    fn start(&self, site: &Site, arguments: &[&str]) -> Daemon {
        self.start_within(site, arguments, Duration::from_millis(20))
    }

    /// The same, with a watchdog of `limit`.
    fn start_within(&self, site: &Site, arguments: &[&str], limit: Duration) -> Daemon {
        let mut command = Command::new(program());
        command.args(arguments).env("NOTIFY_SOCKET", &self.path);
        site.spawn_by(command.env("WATCHDOG_USEC", limit.as_micros().to_string()))
    }

    /// Waits for a pause of `time` without notifications, which comes after `most` messages at the latest.
    fn is_silent(&self, time: Duration, most: usize) -> bool {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let silent = (0..most).any(|_| self.socket.recv(&mut [0; 256]).is_err());
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    fn next(&self) -> String {
        let mut message = [0; 256];
        let length = self.socket.recv(&mut message).expect("the daemon tells something");
        String::from_utf8_lossy(&message[..length]).trim_end().to_owned()
    }

    fn next_but_beats(&self) -> String {
        let begun = Instant::now();
        let mut messages = std::iter::repeat_with(|| self.next()).take_while(|_| begun.elapsed() < PATIENCE);
        messages.find(|message| message != "WATCHDOG=1").expect("it tells more than that it lives")
    }

    /// Follows a daemon from start to end. `reach` fails when the daemon does not listen.
    fn follow(&self, daemon: Daemon, reach: impl Fn()) {
        assert_eq!(self.next(), "READY=1");
        reach();
        for _ in 0..3 {
            assert_eq!(self.next(), "WATCHDOG=1");
        }
        daemon.signal("HUP");
        let reloading = self.next_but_beats();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(time.is_some_and(|time| time.parse::<u64>().is_ok()), "{reloading}");
        assert_eq!(self.next_but_beats(), "READY=1");
        daemon.signal("TERM");
        assert_eq!(self.next_but_beats(), "STOPPING=1");
        // It beats until its end, and the system keeps only ten notifications: who does not read them stops the daemon.
        let socket = self.socket.try_clone().unwrap();
        std::thread::spawn(move || while socket.recv(&mut [0; 256]).is_ok() {});
        assert!(daemon.wait().success());
    }
}

#[test]
fn the_milter_tells_the_service_manager_what_it_does() {
    let site = Site::unix("");
    let manager = Manager::new(&site);
    let daemon = manager.start(&site, &["milter", "--config", &site.config().to_string_lossy()]);
    manager.follow(daemon, || drop(UnixStream::connect(site.path("m.sock")).unwrap()));
}

#[test]
fn the_server_tells_the_service_manager_what_it_does() {
    let server = Server::new("");
    let manager = Manager::new(&server.site);
    let daemon = manager.start(&server.site, &["server", "--config", &server.config().to_string_lossy()]);
    manager.follow(daemon, || drop(TcpStream::connect(("127.0.0.1", server.port)).unwrap()));
}

/// A daemon with only interfaces is ready once they are open, and stops and reloads as the others do. Invalid settings do not reach it.
#[test]
fn interfaces_tell_the_service_manager_what_they_do() {
    let mut site = Site::new("");
    site.extra = format!("[interfaces.http]\nlisten = \"unix:{}\"\n", site.path("http.sock").display());
    let config = site.interfaces();
    let manager = Manager::new(&site);
    let daemon = manager.start(&site, &["interfaces", "--config", &config.to_string_lossy()]);
    manager.follow(daemon, || {
        drop(UnixStream::connect(site.path("http.sock")).unwrap());
    });
    let daemon = site.spawn_by(Command::new(program()).args(["interfaces", "--config"]).arg(&config));
    daemon.log.wait_for(0, "has opened its interfaces");
    let right = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("nonsense = 1\n{right}")).unwrap();
    assert!(!reload("bulkmark-interfaces.service", &daemon, &config));
    assert!(daemon.reload().contains("nonsense: unknown key"));
    fs::write(&config, right).unwrap();
    let skip = daemon.log.lines().len();
    assert!(reload("bulkmark-interfaces.service", &daemon, &config));
    daemon.log.wait_for(skip, "read again");
}

/// A daemon that cannot start never reports that it is ready.
#[test]
fn who_does_not_listen_is_not_ready() {
    let server = Server::new("");
    let taken = std::net::TcpListener::bind(("127.0.0.1", server.port)).unwrap();
    let manager = Manager::new(&server.site);
    let daemon = manager.start(&server.site, &["server", "--config", &server.config().to_string_lossy()]);
    assert!(!daemon.wait().success());
    manager.socket.set_nonblocking(true).unwrap();
    let error = manager.socket.recv(&mut [0; 256]).expect_err("it told something");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(taken);
}

/// A server whose disk hangs: nothing fails, but the watchdog gets no beat any longer, as from a stuck daemon. Clients get an error, and
/// the log a line. When the disk answers again, all of it continues.
#[test]
fn a_daemon_whose_disk_hangs_is_not_alive() {
    const LIMIT: Duration = Duration::from_millis(500);
    let mut server = Server::new("");
    server.status = STATUS.replace("[status]\n", "");
    let Some(disk) = Mount::ext4(&server.site.path("state"), 64) else { return };
    let token = server.client(&["add", "--own", "mx"]).trim().to_owned();
    let config = server.config();
    let manager = Manager::new(&server.site);
    let daemon =
        manager.start_within(&server.site, &["server", "--config", &config.to_string_lossy()], LIMIT);
    assert_eq!(manager.next(), "READY=1");
    assert_eq!(manager.next(), "WATCHDOG=1");
    let healthz = || ask(server.port, "GET /healthz HTTP/1.1", b"");
    assert!(healthz().starts_with("HTTP/1.1 200 "));

    let frozen = disk.freeze();
    let (port, parameters) = (server.port, parameters());
    let report = std::thread::spawn(move || {
        let head = format!(
            "POST /v1/reports HTTP/1.1\r\nAuthorization: Bearer {token}\r\nbulkmark-parameters: {parameters}"
        );
        let batch = Reports { spool: 1, number: 1, reports: vec![(Signature::from_bytes([7; 16]), 3)] };
        ask(port, &head, &batch.encode())
    });
    assert!(manager.is_silent(4 * LIMIT, 200), "it beats beside a writer that is stuck");
    assert!(metrics(&daemon)["bulkmark_ledger_writing_seconds"] > LIMIT.as_secs_f64());
    let status = || {
        let output = Command::new(program()).args(["status", "--server", "--config"]).arg(&config).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = status();
    assert_eq!(code, Some(75), "{told}");
    assert!(told.contains(" cannot answer: the ledger's disk has not answered for "), "{told}");
    daemon.log.wait_for(0, "the ledger's disk has not answered for ");
    let answer = healthz();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("does not answer"), "{answer}");

    drop(frozen);
    assert_eq!(manager.next(), "WATCHDOG=1");
    let answer = report.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    daemon.log.wait_for(0, "the ledger's disk answers again, after ");
    let (code, told) = status();
    assert_eq!(code, Some(0), "{told}");
    assert!(healthz().starts_with("HTTP/1.1 200 "));
}

fn units() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let units = entries.map(|entry| {
        let text = fs::read_to_string(entry.path()).unwrap();
        (entry.file_name().to_string_lossy().into_owned(), text)
    });
    let units: Vec<_> = units.collect();
    assert_eq!(units.len(), 10, "{units:?}");
    units
}

/// The units of daemons; `doctor` runs as root, and is no daemon.
fn services() -> impl Iterator<Item = (String, String)> {
    units().into_iter().filter(|(name, _)| name.ends_with(".service") && !name.ends_with("-doctor.service"))
}

/// Runs systemd-analyze on each of these units, with the program under test in it; expects exit code 0 and nothing on standard error.
fn analyze(arguments: &[&str], names: impl Iterator<Item = String>) {
    let directory = tempfile::tempdir().unwrap();
    // All of them, since a socket needs its service.
    for (name, text) in units() {
        fs::write(directory.path().join(&name), text.replace("/usr/bin/bulkmark", program())).unwrap();
    }
    for name in names {
        let path = directory.path().join(&name);
        match Command::new("systemd-analyze").args(arguments).arg(&path).output() {
            Ok(output) => {
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && told.is_empty(), "{name}: {told}");
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                skip("systemd-analyze is not installed");
            }
            Err(e) => panic!("systemd-analyze: {e}"),
        }
    }
}

#[test]
fn units_are_valid() {
    analyze(&["verify", "--man=no"], units().into_iter().map(|(name, _)| name));
}

/// The scale goes to 10; the threshold is in tenths.
#[test]
fn units_expose_little() {
    analyze(
        &["security", "--offline=true", "--threshold=15", "--no-pager"],
        services().map(|(name, _)| name),
    );
}

/// Both daemons have the same restrictions.
#[test]
fn units_are_hardened_alike() {
    let hardened: Vec<_> = services()
        .map(|(name, text)| {
            text.split_once("\nAmbientCapabilities=").unwrap_or_else(|| panic!("{name}")).1.to_owned()
        })
        .collect();
    assert!(hardened.iter().all(|lines| lines == &hardened[0]), "{hardened:?}");
}

/// Another milter differs from the first only in its configuration, state and sockets.
#[test]
fn an_instance_differs_from_the_first_milter_in_its_files_only() {
    let text = |wanted: &str| services().find(|(name, _)| name == wanted).unwrap().1;
    let settings = |name: &str| -> Vec<_> {
        let lines: Vec<_> = text(name).lines().map(str::to_owned).collect();
        lines.into_iter().filter(|line| !line.starts_with('#')).collect()
    };
    let (first, other) = (settings("bulkmark-milter.service"), settings("bulkmark-milter@.service"));
    let own = |lines: &[String], others: &[String]| -> Vec<_> {
        lines.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    for line in own(&other, &first) {
        assert!(line.contains("%i"), "{line}");
    }
    let missing = own(&first, &other);
    let keys: Vec<_> = missing.iter().map(|line| line.split('=').next().unwrap()).collect();
    let expected = [
        "Description",
        "ExecStart",
        "ExecReload",
        "StateDirectory",
        "RuntimeDirectory",
        "RuntimeDirectoryPreserve",
        "ConfigurationDirectory",
    ];
    assert!(keys.iter().all(|key| expected.contains(key)), "{missing:?}");
    assert!(keys.contains(&"StateDirectory") && keys.contains(&"ExecStart"), "{keys:?}");
}

/// Runs the commands of a unit's ExecReload= as systemd does: one after the other, up to the first that fails. Those that check get the
/// path of the configuration.
fn reload(unit: &str, daemon: &Daemon, config: &Path) -> bool {
    let (_, text) = units().into_iter().find(|(name, _)| name == unit).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("ExecReload=")).collect();
    assert_eq!(lines.len(), 2, "{unit}");
    lines.iter().all(|line| {
        let mut line = line.replace("/usr/bin/bulkmark", program());
        if let Some((check, _)) = line.split_once(" /etc/bulkmark/") {
            line = check.to_owned();
        }
        if line.contains(" config check") {
            line += &format!(" {}", config.display());
        }
        let status = Command::new("sh").args(["-c", &line]).env("MAINPID", daemon.pid().to_string()).status();
        status.unwrap().success()
    })
}

/// `systemctl reload` fails if the configuration is wrong, without a signal to the daemon. Otherwise the daemon reads it.
#[test]
fn a_reload_checks_first() {
    let mut site = Site::new("[status]\nlisten = \"127.0.0.1:0\"\n");
    let (mut server, right) = (Server::new(""), site.extra.clone());
    server.status = STATUS.replace("[status]\n", "");
    let (milter, served) = (site.start(), server.start());
    let reloads = |daemon: &Daemon| {
        let found = metrics(daemon);
        ["failure", "success"].map(|result| found[&format!("bulkmark_reloads_total{{result=\"{result}\"}}")])
    };
    let wait_for = |daemon: &Daemon, expected: [f64; 2]| {
        let equal =
            || if reloads(daemon) == expected { Ok(()) } else { Err(format!("{:?}", reloads(daemon))) };
        wait_until("the reload is counted", equal);
    };
    for (unit, daemon) in [("bulkmark-milter.service", &milter), ("bulkmark-server.service", &served)] {
        site.extra = format!("nonsense = 1\n{right}");
        server.extra = "nonsense = 1\n".to_owned();
        let config = |site: &Site, server: &Server| match unit {
            "bulkmark-milter.service" => site.config(),
            _ => server.config(),
        };
        assert!(!reload(unit, daemon, &config(&site, &server)), "{unit}");
        assert_eq!(reloads(daemon), [0.0, 0.0], "{unit}");
        (site.extra, server.extra) = (right.clone(), String::new());
        assert!(reload(unit, daemon, &config(&site, &server)), "{unit}");
        wait_for(daemon, [0.0, 1.0]);
        // After a signal without a check, log and metrics show the error; so they do for a server, which uses the file only at the next
        // start.
        site.extra = format!("nonsense = 1\n{right}");
        server.extra = "nonsense = 1\n".to_owned();
        config(&site, &server);
        daemon.signal("HUP");
        daemon.log.wait_for(0, "nonsense: unknown key");
        wait_for(daemon, [1.0, 1.0]);
        assert_eq!(metrics(daemon)["bulkmark_config_last_reload_successful"], 0.0);
        (site.extra, server.extra) = (right.clone(), String::new());
        config(&site, &server);
    }
}

/// A socket has one address: the documented one, which for the server is also in its own configuration.
#[test]
fn sockets_are_where_the_documents_say() {
    let address = |unit: &str| {
        let text = text_of(unit);
        let found: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("ListenStream=")).collect();
        assert_eq!(found.len(), 1, "{unit}: {found:?}");
        found[0].to_owned()
    };
    let milter = address("systemd/bulkmark-milter.socket");
    for document in ["docs/postfix.md", "man/bulkmark-milter.8"] {
        assert!(text_of(document).contains(&milter), "{document} does not have {milter}");
    }
    let server: toml::Table = text_of("conf/server.toml").parse().unwrap();
    assert_eq!(server["listen"].as_str(), Some(&*address("systemd/bulkmark-server.socket")));
}
