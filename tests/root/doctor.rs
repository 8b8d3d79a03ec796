// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark doctor` finds each planted fault, with a line for it, and nothing without one.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::passed::start_with;
use bulkmark_testing::rig::Rig;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program, skip, wait_until};
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A user on every Debian system who is not root.
const NOBODY: u32 = 65534;

/// The result of doctor: exit code and output.
struct Told {
    code: i32,
    text: String,
}

impl Told {
    /// The lines other than `ok`, each with its remedy.
    fn faults(&self) -> Vec<&str> {
        let lines = self.text.split_inclusive('\n').collect::<Vec<_>>();
        let start = |i: &usize| lines[*i].starts_with("warning") || lines[*i].starts_with("error");
        (0..lines.len()).filter(start).map(|i| lines[i].trim_end()).collect()
    }

    /// Checks that this is the only fault, and that its remedy is shown.
    #[track_caller]
    fn only(&self, level: &str, wanted: &str, advice: &str) {
        let faults = self.faults();
        assert_eq!(faults.len(), 1, "one fault was planted:\n{}", self.text);
        self.has(level, wanted, advice);
    }

    /// Checks that this fault is shown.
    #[track_caller]
    fn has(&self, level: &str, wanted: &str, advice: &str) {
        let mut lines = self.text.lines();
        let found = lines.find(|line| line.starts_with(level) && line.contains(wanted));
        assert!(found.is_some(), "no {level} {wanted:?} in:\n{}", self.text);
        let next = lines.next().unwrap_or_default();
        assert!(next.starts_with("         ") && next.contains(advice), "no {advice:?} in:\n{}", self.text);
        assert_eq!(self.code, i32::from(level == "error"), "{}", self.text);
    }

    /// Checks that everything is well.
    #[track_caller]
    fn all_ok(&self) {
        assert!(self.faults().is_empty(), "{}", self.text);
        assert_eq!(self.code, 0, "{}", self.text);
    }

    #[track_caller]
    fn says(&self, wanted: &str) {
        assert!(self.text.contains(wanted), "no {wanted:?} in:\n{}", self.text);
    }
}

fn run(arguments: &[&str], config: &Path) -> Told {
    let mut command = Command::new(program());
    for name in ["HTTP_PROXY", "ALL_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    let output = command.arg("doctor").args(arguments).arg("--config").arg(config).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = Told { code: output.status.code().unwrap(), text: String::from_utf8(output.stdout).unwrap() };
    println!("{}", told.text);
    told
}

/// A site with a Postfix that is configured for it.
struct Clinic {
    site: Site,
}

impl Clinic {
    /// `extra` goes into the milter's configuration.
    fn new(extra: &str) -> Self {
        let site = Rig::tcp_site(extra);
        fs::set_permissions(site.directory.path(), Permissions::from_mode(0o755)).unwrap();
        site.config();
        let clinic = Self { site };
        clinic.postfix(&format!("{{ {}, default_action=accept }}", clinic.site.listen), "");
        clinic
    }

    /// Writes Postfix's configuration; `of_service` is added to the service in master.cf.
    fn postfix(&self, milters: &str, of_service: &str) {
        let main = format!("compatibility_level = 3.6\nsmtpd_milters = {milters}\n");
        self.postfix_files(&main, &format!("smtp inet n - n - - smtpd\n{of_service}"));
    }

    fn postfix_files(&self, main: &str, master: &str) {
        let directory = self.site.path("postfix");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in [("main.cf", main), ("master.cf", master)] {
            fs::write(directory.join(name), text).unwrap();
            // Postfix waits for two seconds if a file has just been written, in case the writer continues.
            let file = fs::File::options().write(true).open(directory.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
    }

    fn doctor(&self) -> Told {
        let directory = self.site.path("postfix");
        run(&["--postfix", directory.to_str().unwrap()], &self.site.config())
    }
}

fn secret(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if !root {
        skip("needs root, to give files to others");
    }
    root
}

// All well

#[test]
fn a_milter_that_is_well() {
    let clinic = Clinic::new("exempt-networks = [\"192.0.2.0/24\"]\n");
    let daemon = clinic.site.start();
    let told = clinic.doctor();
    told.all_ok();
    told.says("ok       canary: from 198.51.100.1, as Postfix would show it, mark: bulk; reason=canary; host=mx.test\n");
    told.says("ok       exempt: this machine, users who log in, 192.0.2.0/24; their mail is not judged");
    told.says(&format!("ok       postfix: smtpd_milters has {}\n", clinic.site.listen));
    daemon.log.wait_for(0, "DOCTOR: client=doctor.invalid[198.51.100.1]");
    assert_eq!(
        bulkmark_testing::status(&clinic.site)["ledger"]["slices"],
        serde_json::json!([]),
        "it counts nothing"
    );
}

/// Doctor queries each interface as its clients do, and reports one that is not open.
#[test]
fn interfaces_are_asked() {
    let mut clinic = Clinic::new("");
    let at = |name: &str| format!("listen = \"unix:{}\"\n", clinic.site.path(name).display());
    let interfaces =
        format!("\n[interfaces.http]\n{}\n[interfaces.dccifd]\n{}", at("http.sock"), at("dccifd.sock"));
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = format!("127.250.{high}.{low}");
    let by_port = format!(
        "\n[interfaces.razor]\nlisten = \"{own}:2703\"\n[interfaces.pyzor]\nlisten = \"{own}:24441\"\n"
    );
    clinic.site.extra += &(interfaces + &by_port);
    let daemon = clinic.site.start();
    daemon.log.wait_for(0, "the interface razor is at");
    daemon.log.wait_for(0, "the interface pyzor is at");
    let told = clinic.doctor();
    told.all_ok();
    told.says(&format!("ok       interfaces: pyzor answers at {own}:24441"));
    for interface in ["http", "dccifd"] {
        told.says(&format!("ok       interfaces: {interface} answers at unix:"));
    }
    told.says(&format!("ok       interfaces: razor answers at {own}:2703"));
    assert_eq!(
        bulkmark_testing::status(&clinic.site)["ledger"]["slices"],
        serde_json::json!([]),
        "it counts nothing"
    );
    fs::remove_file(clinic.site.path("dccifd.sock")).unwrap();
    let told = clinic.doctor();
    told.says("error    interfaces: dccifd does not answer at unix:");
    told.says("ok       interfaces: http answers at unix:");
}

/// Doctor's canary does not appear where a postmaster looks at mail.
#[test]
fn its_own_test_is_no_message() {
    let clinic = Clinic::new(bulkmark_testing::page::STATUS);
    let daemon = clinic.site.start();
    clinic.doctor().all_ok();
    daemon.log.wait_for(0, "DOCTOR: client=doctor.invalid[192.0.2.1]");
    let found = bulkmark_testing::page::metrics(&daemon);
    let messages: f64 =
        found.iter().filter(|(name, _)| name.starts_with("bulkmark_messages_total")).map(|(_, n)| n).sum();
    assert_eq!((messages, found["bulkmark_canaries_total"]), (0.0, 1.0), "{found:#?}");
    let (_, page) = bulkmark_testing::page::get(&daemon, "/status.json");
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert_eq!((&page["recent"], &page["bulk"]), (&serde_json::json!([]), &serde_json::json!([])));
}

/// A user without access learns who has it, and gets no advice to create files that exist.
#[test]
fn an_ordinary_user() {
    if !is_root() {
        return;
    }
    let mut clinic = Clinic::new("");
    let list = clinic.site.path("list");
    fs::write(&list, "ip 192.0.2.1\n").unwrap();
    clinic.site.extra = format!("[whitelist]\nfiles = [\"{}\"]\n", list.display());
    let _daemon = clinic.site.start();
    clinic.doctor().all_ok();
    let config = clinic.site.path("milter.toml");
    let copy = clinic.site.path("bulkmark");
    fs::copy(program(), &copy).unwrap();
    let by_nobody = || {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &NOBODY.to_string(), "--regid", &NOBODY.to_string(), "--clear-groups", "--"])
            .arg(&copy);
        command.arg("doctor").arg("--postfix").arg(clinic.site.path("postfix"));
        let output = command.arg("--config").arg(&config).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Told { code: output.status.code().unwrap(), text: String::from_utf8(output.stdout).unwrap() }
    };
    let root = "run it as root: sudo bulkmark doctor";
    let state = clinic.site.path("state");
    fs::set_permissions(&state, Permissions::from_mode(0o750)).unwrap();
    secret(&list);
    let told = by_nobody();
    told.says(&format!(
        "warning  doctor: runs as nobody, which cannot see all files that root sees\n         {root}\n"
    ));
    told.has("error", "daemon: the control socket ", root);
    told.has("error", "list: cannot read the list: Permission denied", root);
    told.has("error", "canary: cannot read the canary ", root);
    assert!(!told.text.contains("create it") && !told.text.contains("install -d"), "{}", told.text);
    fs::set_permissions(&config, Permissions::from_mode(0o640)).unwrap();
    let told = by_nobody();
    assert_eq!((told.code, told.faults().len()), (78, 1), "{}", told.text);
    told.says(&format!("         {root}"));
}

#[test]
fn every_action_is_what_the_configuration_says() {
    for action in ["reject", "tempfail", "discard", "quarantine"] {
        let clinic = Clinic::new(&format!("[actions]\nbulk = \"{action}\"\n"));
        let _daemon = clinic.site.start();
        let told = clinic.doctor();
        told.all_ok();
        told.says(&format!("as Postfix would show it, {action}"));
    }
}

#[test]
fn a_federation_that_is_well() {
    let [one, two] = Server::peers("");
    for (server, token) in [(&one, "two"), (&two, "one")] {
        secret(&server.site.path(token));
    }
    let entry = one.entry("mx", "report");
    secret(&one.site.path("mx"));
    let mut clinic = Clinic::new("");
    clinic.site.extra = milter(&[entry]).extra;
    let _daemons = [one.start(), two.start(), clinic.site.start()];
    wait_until("connections", || {
        let told = clinic.doctor();
        if told.code == 0 && told.faults().is_empty() { Ok(()) } else { Err(told.text) }
    });
    let told = clinic.doctor();
    told.says(&format!("ok       upstream: {} answers, knows our token", one.url()));
    told.says("ok       clock: no more than 5 minutes from that of");
    told.says("ok       spool: 0 of at most 1000000 reports");
    wait_until("peers", || {
        let told = run(&["--server"], &one.config());
        if told.code == 0 && told.faults().is_empty() { Ok(()) } else { Err(told.text) }
    });
    run(&["--server"], &one.config()).says(&format!("ok       peer: {} answers", two.url()));
}

/// If systemd holds the socket, only the daemon's answer counts.
#[test]
fn a_daemon_on_a_socket_of_systemd() {
    let mut clinic = Clinic::new("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("inet:{}", socket.local_addr().unwrap());
    clinic.postfix(&address, "");
    clinic.site.listen = "systemd".to_owned();
    let passed = || socket.try_clone().unwrap();
    let daemon = start_with(&clinic.site, &["milter"], &clinic.site.config(), passed(), 1).listening();
    let told = clinic.doctor();
    told.all_ok();
    told.says(&format!("ok       listener: a milter answers at {address}\n"));
    told.says(&format!("ok       postfix: smtpd_milters has {address}\n"));
    clinic.postfix("", "");
    clinic.doctor().only(
        "error",
        &format!("does not have {address}"),
        &format!("smtpd_milters = {{ {address}, "),
    );
    assert!(daemon.terminate().success());
    let start = "systemctl start bulkmark-milter.socket bulkmark-milter.service";
    clinic.doctor().has("error", "listener: systemd holds its socket, and no milter answers", start);

    let mut server = Server::new("");
    server.client(&["add", "--own", "mx"]);
    server.listen = "systemd".to_owned();
    let daemon = start_with(&server.site, &["server"], &server.config(), passed(), 1).listening();
    let told = run(&["--server"], &server.config());
    told.all_ok();
    told.says(&format!("ok       listener: somebody answers at {}\n", daemon.address));
    assert!(daemon.terminate().success());
    let start = "systemctl start bulkmark-server.socket bulkmark-server.service";
    run(&["--server"], &server.config()).has(
        "error",
        "listener: systemd holds its socket, and no server",
        start,
    );
}

#[test]
fn programs_get_json() {
    let clinic = Clinic::new("");
    let output = Command::new(program())
        .args(["doctor", "--json", "--config"])
        .arg(clinic.site.config())
        .arg("--postfix")
        .arg(clinic.site.path("postfix"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["worst"], "error");
    let lines = all["checks"].as_array().unwrap();
    let daemon = lines.iter().find(|line| line["check"] == "daemon").unwrap();
    assert_eq!(daemon["level"], "error");
    assert!(daemon["advice"].as_str().unwrap().starts_with("systemctl start bulkmark-milter"), "{daemon}");
    assert!(lines.iter().any(|line| line["level"] == "ok" && line.get("advice").is_none()));
}

// Single faults

#[test]
fn a_wrong_key_in_the_configuration() {
    let clinic = Clinic::new("treshold = 3\n");
    let told = clinic.doctor();
    assert_eq!((told.code, told.faults().len()), (78, 1), "{}", told.text);
    told.says("milter.toml:7:1: treshold: unknown key, did you mean thresholds?\n         correct it there");
}

#[test]
fn no_daemon() {
    let clinic = Clinic::new("");
    assert!(clinic.site.start().terminate().success());
    let told = clinic.doctor();
    assert_eq!(told.faults().len(), 2, "{}", told.text);
    told.has("error", "daemon: no milter answers at ", "systemctl start bulkmark-milter");
    told.has("error", &format!("listener: nobody answers at {}", clinic.site.listen), "systemctl restart");
    told.says("ledger.redb is sound\n");
}

#[test]
fn a_key_that_the_daemon_cannot_read() {
    if !is_root() {
        return;
    }
    let mut clinic = Clinic::new("");
    let key = clinic.site.path("federation.key");
    fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    secret(&key);
    clinic.site.extra = format!("[ledger]\nfederation-key-file = \"{}\"\n", key.display());
    clinic.site.config();
    chown(clinic.site.path("state"), Some(NOBODY), None).unwrap();
    let told = clinic.doctor();
    told.has("error", "federation key: nobody cannot read ", "chown root:nobody ");
    chown(&key, Some(NOBODY), None).unwrap();
    let told = clinic.doctor();
    assert!(!told.faults().iter().any(|line| line.contains("federation key")), "{}", told.text);
    fs::write(&key, "short").unwrap();
    clinic.doctor().has("error", "federation key: ", "put the federation's key there");
}

#[test]
fn a_token_that_everybody_can_read() {
    let (clinic, server, _daemons) = with_good_upstream();
    let token = server.site.path("mx");
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    clinic.doctor().only("error", &format!("token: everybody may read {}", token.display()), "chmod 0640 ");
}

#[test]
fn a_state_directory_that_cannot_be_written() {
    if !is_root() {
        return;
    }
    let clinic = Clinic::new("");
    let state = clinic.site.path("state");
    chown(&state, Some(NOBODY), None).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o555)).unwrap();
    clinic.doctor().has("error", "state directory: nobody cannot write to ", "chown nobody ");
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    fs::write(state.join("ledger.redb"), "").unwrap();
    clinic.doctor().has("error", "nobody does not own ledger.redb", "chown -R nobody: ");
    fs::remove_dir_all(&state).unwrap();
    // The configuration would create it again.
    let config = clinic.site.path("milter.toml");
    let postfix = clinic.site.path("postfix");
    run(&["--postfix", postfix.to_str().unwrap()], &config).has(
        "error",
        "state directory: cannot use ",
        "install -d",
    );
}

#[test]
fn a_state_directory_on_a_disk_that_is_read_only_or_full() {
    let clinic = Clinic::new("");
    {
        let Some(_mount) = Mount::new(&clinic.site.path("state"), "ro,size=64m") else { return };
        clinic.doctor().has("error", "disk: the file system of ", "remount it read-write");
    }
    let Some(_mount) = Mount::new(&clinic.site.path("state"), "size=24m") else { return };
    let told = clinic.doctor();
    told.says("warning  disk: 25 MB free below ");
    let filler = clinic.site.path("state").join("filler");
    let _ = fs::write(&filler, vec![0x55; 24 << 20]);
    clinic.doctor().has("error", "disk: 0 bytes free below ", "free some space");
}

#[test]
fn a_postfix_that_asks_somebody_else() {
    let clinic = Clinic::new("");
    let _daemon = clinic.site.start();
    let listen = &clinic.site.listen;
    let ours = format!("{{ {listen}, default_action=accept }}");
    // Existing milters stay.
    clinic.postfix("inet:127.0.0.1:1, unix:/other", "");
    let wanted =
        format!("postfix: smtpd_milters is \"inet:127.0.0.1:1, unix:/other\", and does not have {listen}");
    let line =
        format!("main.cf and run postfix reload: smtpd_milters = inet:127.0.0.1:1, unix:/other, {ours}");
    clinic.doctor().only("error", &wanted, &line);
    clinic.postfix("", "");
    clinic.doctor().only("error", "postfix: smtpd_milters is empty", &format!("smtpd_milters = {ours}"));
    // For this port, main.cf has no effect if master.cf sets the parameter, so master.cf must be changed.
    for (own, line) in [
        ("inet:127.0.0.1:1", format!("-o {{ smtpd_milters = inet:127.0.0.1:1, {ours} }}")),
        ("", format!("-o {{ smtpd_milters = {ours} }}")),
    ] {
        clinic.postfix(listen, &format!("    -o smtpd_milters={own}\n"));
        let found = if own.is_empty() { "empty".to_owned() } else { format!("\"{own}\"") };
        let told = clinic.doctor();
        told.only("error", &format!("smtpd_milters of smtp/inet in master.cf is {found}"), &line);
        assert!(told.text.contains("what master.cf says of smtp/inet goes before main.cf"), "{}", told.text);
        // After the suggested change all is well.
        clinic.postfix(listen, &format!("    {line}\n"));
        clinic.doctor().all_ok();
    }
    clinic.postfix("$mine, inet:127.0.0.1:1", &format!("    -o smtpd_milters=inet:127.0.0.1:1,{listen}\n"));
    clinic.doctor().all_ok();
}

/// Behind postscreen another service than the one on the port takes the mail.
#[test]
fn a_postfix_with_postscreen() {
    let clinic = Clinic::new("");
    let _daemon = clinic.site.start();
    let main = format!("compatibility_level = 3.6\nsmtpd_milters = {}\n", clinic.site.listen);
    let master = "smtp inet n - n - 1 postscreen\nsmtpd pass - - n - - smtpd\n";
    clinic.postfix_files(&main, master);
    clinic.doctor().all_ok();
    clinic.postfix_files(&main, &format!("{master}    -o smtpd_milters=\n"));
    let line = format!("-o {{ smtpd_milters = {{ {}, ", clinic.site.listen);
    clinic.doctor().only("error", "smtpd_milters of smtpd/pass in master.cf is empty", &line);
}

/// In a jail the path of a socket differs.
#[test]
fn a_postfix_in_a_jail() {
    let site = Site::unix("");
    fs::set_permissions(site.directory.path(), Permissions::from_mode(0o755)).unwrap();
    let socket = site.path("m.sock");
    let jailed = Clinic { site };
    let _daemon = jailed.site.start();
    let write = |milters: &str, jail: char| {
        let queue = jailed.site.directory.path().display();
        let main =
            format!("compatibility_level = 3.6\nqueue_directory = {queue}\nsmtpd_milters = {milters}\n");
        jailed.postfix_files(&main, &format!("smtp inet n - {jail} - - smtpd\n"));
    };
    let outside = format!("unix:{}", socket.display());
    write(&outside, 'n');
    jailed.doctor().all_ok();
    write(&outside, 'y');
    jailed.doctor().only(
        "error",
        "and does not have ",
        "smtpd_milters = { unix:/m.sock, default_action=accept }",
    );
    write("unix:/m.sock", 'y');
    jailed.doctor().all_ok();
    if is_root() {
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).unwrap();
        jailed.doctor().only("error", "postfix: postfix may not connect to ", "gpasswd -a postfix bulkmark");
    }
}

#[test]
fn something_else_on_the_port() {
    let clinic = Clinic::new("");
    let address = clinic.site.listen.strip_prefix("inet:").unwrap();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let _other = bulkmark_testing::standin::StandIn::new(port, |_| None);
    clinic.doctor().has("error", "does not answer as a milter", "ss -ltnpx");
}

/// A milter that follows a server, both running; its token is the file "mx" of the server's site.
fn with_upstream(role: &str, ledger: &str) -> (Clinic, Server, [Daemon; 2]) {
    let server = Server::new("");
    let entry = server.entry("mx", role);
    secret(&server.site.path("mx"));
    let mut clinic = Clinic::new("");
    clinic.site.extra = format!("{}{ledger}", milter(&[entry]).extra);
    let daemons = [server.start(), clinic.site.start()];
    (clinic, server, daemons)
}

/// The same, after checking that all is well.
fn with_good_upstream() -> (Clinic, Server, [Daemon; 2]) {
    let (clinic, server, daemons) = with_upstream("report", "");
    wait_until("the upstream", || {
        let told = clinic.doctor();
        if told.text.contains("ok       upstream: ") { Ok(()) } else { Err(told.text) }
    });
    (clinic, server, daemons)
}

#[test]
fn an_upstream_that_is_down() {
    let (clinic, _server, [daemon, _milter]) = with_good_upstream();
    daemon.kill();
    clinic.doctor().only("error", "upstream: http://127.0.0.1:", "is it running, is the address right");
}

#[test]
fn a_token_that_is_refused() {
    let (clinic, server, _daemons) = with_good_upstream();
    fs::write(server.site.path("mx"), "bulkmark_00").unwrap();
    clinic.doctor().only(
        "error",
        "401 Unauthorized: the token is not valid",
        "bulkmark client add or rotate",
    );
}

/// Only the daemon knows of it, since nobody asks for a report.
#[test]
fn a_token_that_may_only_read() {
    let (clinic, _server, [_daemon, milter]) = with_upstream("read", "");
    send(&milter, &letter(1), 1);
    milter.log.wait_for(0, "403 Forbidden: this client may only read");
    clinic.doctor().only("warning", "403 Forbidden: this client may only read", "one with the right --role");
}

#[test]
fn another_window_than_the_server_has() {
    let (clinic, _server, _daemons) = with_upstream("report", "[ledger]\nwindow = \"12h\"\n");
    clinic.doctor().only("error", "other parameters: window is ", "use the same [ledger] window");
}

#[test]
fn a_clock_that_is_off() {
    let mut server = Server::new("");
    let Some(_clock) = Clock::of(&mut server.site, "+2d") else { return };
    let entry = server.entry("mx", "report");
    secret(&server.site.path("mx"));
    let mut clinic = Clinic::new("");
    clinic.site.extra = milter(&[entry]).extra;
    let (_server, _daemon) = (server.start(), clinic.site.start());
    let told = clinic.doctor();
    told.only("error", "clock: http://127.0.0.1:", "let NTP keep it");
    told.says("is 2 days");
}

#[test]
fn a_ledger_that_is_damaged() {
    let clinic = Clinic::new("exempt = [\"authenticated\"]\n");
    let daemon = clinic.site.start();
    send(&daemon, &letter(1), 3);
    assert!(daemon.terminate().success());
    let path = clinic.site.path("state").join("ledger.redb");
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes.truncate(half);
    fs::write(&path, bytes).unwrap();
    clinic.doctor().has("error", "ledger.redb is damaged", "restore a backup over it");
}

#[test]
fn a_ledger_of_another_key() {
    let mut clinic = Clinic::new("");
    assert!(clinic.site.start().terminate().success());
    let key = clinic.site.path("federation.key");
    fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    secret(&key);
    clinic.site.extra = format!("[ledger]\nfederation-key-file = \"{}\"\n", key.display());
    let told = clinic.doctor();
    told.says("warning  ledger: ");
    told.says("was made under another federation key");
    told.says("put the old key back");
}

#[test]
fn a_white_list_with_a_bad_line() {
    let mut clinic = Clinic::new("");
    let list = clinic.site.path("list");
    clinic.site.extra = format!("[whitelist]\nfiles = [\"{}\"]\n", list.display());
    fs::write(&list, "ip 192.0.2.1\n").unwrap();
    let _daemon = clinic.site.start();
    clinic.doctor().all_ok();
    fs::write(&list, "ip 192.0.2.1\nsendr a@b\n").unwrap();
    let told = clinic.doctor();
    told.only("error", &format!("white lists: {}:2: found \"sendr\"", list.display()), "correct it there");
    fs::write(&list, "").unwrap();
    fs::set_permissions(&list, Permissions::from_mode(0o666)).unwrap();
    clinic.doctor().only("error", "white lists: everybody may write to ", "chmod o-w ");
}

#[test]
fn a_log_that_nobody_takes() {
    let mut clinic = Clinic::new("");
    clinic.site.extra = format!("[log]\ntarget = \"syslog:{}\"\n", clinic.site.path("log").display());
    clinic.doctor().says("warning  log: syslog takes no lines, so they go to standard error");
    let _log = std::os::unix::net::UnixDatagram::bind(clinic.site.path("log")).unwrap();
    clinic.doctor().says("ok       log: lines go to syslog\n");
}

#[test]
fn a_daemon_that_did_not_read_its_configuration_again() {
    let mut clinic = Clinic::new("");
    let _daemon = clinic.site.start();
    clinic.site.extra = "[actions]\nbulk = \"reject\"\n".to_owned();
    clinic.doctor().only(
        "warning",
        "canary: from 192.0.2.1, as Postfix would show it, mark: ",
        "systemctl reload",
    );
    clinic.site.extra = "[ledger]\nwindow = \"12h\"\n".to_owned();
    clinic.doctor().only(
        "warning",
        "daemon: the running milter has another configuration: window",
        "systemctl restart",
    );
    clinic.site.extra = "exempt-networks = [\"0.0.0.0/0\", \"::/0\"]\n".to_owned();
    clinic.doctor().only(
        "error",
        "canary: exempt-networks has all addresses",
        "name only networks of your own",
    );
}

#[test]
fn a_server_without_clients_and_one_that_does_not_run() {
    let server = Server::new("");
    let daemon = server.start();
    run(&["--server"], &server.config()).only("warning", "clients: there are none", "bulkmark client add");
    server.client(&["add", "--own", "mx1"]);
    run(&["--server"], &server.config()).all_ok();
    assert!(daemon.terminate().success());
    let told = run(&["--server"], &server.config());
    told.has("error", "daemon: no server answers at ", "systemctl start bulkmark-server");
    told.has(
        "error",
        &format!("listener: no server can be reached at {}", server.listen),
        "systemctl restart",
    );
    assert_eq!(told.faults().len(), 2, "{}", told.text);
}
