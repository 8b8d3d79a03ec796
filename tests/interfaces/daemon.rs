// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark interfaces`: the daemon of a machine whose mail server uses no milter.

use bulkmark_testing::letters::letter;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::process::resident;
use bulkmark_testing::{Daemon, PATIENCE, Site, program, wait_until};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// A site with a page and these interfaces, in which `PLACE` stands for its directory.
fn site(interfaces: &str) -> Site {
    let mut site = Site::new("");
    let place = site.directory.path().display().to_string();
    site.extra = format!("{STATUS}{}", interfaces.replace("PLACE", &place));
    site
}

const DCCIFD: &str = "[interfaces.dccifd]\nlisten = \"unix:PLACE/dccifd.sock\"\n";

/// All four; those without a Unix socket on this process's own loopback address.
fn all_four() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = format!("127.249.{high}.{low}");
    format!(
        "{DCCIFD}[interfaces.http]\nlisten = \"unix:PLACE/http.sock\"\n[interfaces.razor]\nlisten = \"{own}:2703\"\n\
         [interfaces.pyzor]\nlisten = \"{own}:24441\"\n"
    )
}

/// Starts it without waiting.
fn spawn(site: &Site) -> Daemon {
    site.spawn_by(Command::new(program()).args(["interfaces", "--config"]).arg(site.interfaces()))
}

/// Starts it and waits until its interfaces are open.
fn start(site: &Site) -> Daemon {
    let daemon = spawn(site);
    daemon.log.wait_for(0, "has opened its interfaces");
    daemon
}

/// Exit code and output of a command.
fn run(arguments: &[&str], config: &Path) -> (i32, String) {
    let output = Command::new(program()).args(arguments).arg("--config").arg(config).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

/// Begins a request at dccifd's interface.
fn begin(site: &Site) -> UnixStream {
    let stream = UnixStream::connect(site.path("dccifd.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    (&stream).write_all(b"header\n192.0.2.7\rh.example\nh.example\ns@example.org\nu@box.test\n\n").unwrap();
    stream
}

/// Sends the message, and returns the answer.
fn end(mut stream: UnixStream, message: &[u8]) -> String {
    stream.write_all(message).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Counts survive kill -9; status, check, report and metrics are this daemon's own; and a milter continues with its ledger.
#[test]
fn counts_last_and_commands_ask_it() {
    let site = site(DCCIFD);
    let daemon = start(&site);
    for count in 1..=3 {
        let answer = end(begin(&site), &letter(1));
        assert!(
            answer.starts_with("A\nA\nX-DCC-") && answer.contains(&format!(" Body={count} ")),
            "{answer}"
        );
    }
    daemon.kill();
    let daemon = start(&site);
    let answer = end(begin(&site), &letter(1));
    assert!(answer.contains(" Body=4 "), "{answer}");
    let found = metrics(&daemon);
    assert_eq!(found["bulkmark_interface_requests_total{interface=\"dccifd\",result=\"counted\"}"], 1.0);
    assert_eq!(found["bulkmark_interface_open{interface=\"dccifd\"}"], 1.0);
    assert!(!found.contains_key("bulkmark_interface_open{interface=\"http\"}"), "it is not configured");
    assert!(
        found.keys().any(|name| name.starts_with("bulkmark_build_info{role=\"interfaces\",")),
        "{found:?}"
    );

    let config = site.interfaces();
    let (code, told) = run(&["status"], &config);
    assert_eq!(code, 0, "{told}");
    assert!(told.starts_with("bulkmark interfaces ") && !told.contains("listens on"), "{told}");
    assert!(
        told.contains("  dccifd at unix:") && told.contains("requests since the start: 1 counted; "),
        "{told}"
    );
    let file = site.path("letter.eml");
    fs::write(&file, letter(1)).unwrap();
    let (_, told) = run(&["check", "--json", file.to_str().unwrap()], &config);
    assert_eq!(bulkmark_testing::first_message(told.as_bytes())["body"]["count"], 4, "{told}");
    let (code, told) = run(&["report", "add", "--spam", "--user", "anna", file.to_str().unwrap()], &config);
    assert_eq!(code, 0, "{told}");
    assert!(daemon.reload().ends_with("interfaces.toml: read again"));
    assert!(daemon.terminate().success());
    let (code, told) = run(&["status"], &config);
    assert!(code == 75 && told.contains("no interfaces daemon answers at "), "{told}");

    let milter = site.start();
    milter.log.wait_for(0, "the interface dccifd is at");
    assert!(end(begin(&site), &letter(1)).contains(" Body=5 "));
}

/// A client that is sending a message at the signal to end still gets its answer.
#[test]
fn it_ends_when_it_has_answered() {
    let site = site(DCCIFD);
    let daemon = start(&site);
    let stream = begin(&site);
    let is_open = || match metrics(&daemon)["bulkmark_interface_connections{interface=\"dccifd\"}"] {
        1.0 => Ok(()),
        n => Err(format!("{n} connections")),
    };
    wait_until("it has the connection", is_open);
    daemon.signal("TERM");
    daemon.log.wait_for(0, "stopping: no more connections are taken");
    assert!(end(stream, &letter(1)).contains(" Body=1 "));
    assert!(daemon.wait().success());
    let _daemon = start(&site);
    assert!(end(begin(&site), &letter(1)).contains(" Body=2 "), "the one at the end was counted");
}

/// Each interface is checked, and neither Postfix nor a milter's listener is mentioned.
#[test]
fn doctor_asks_each_interface() {
    let site = site(&all_four());
    let _daemon = start(&site);
    let (_, told) = run(&["doctor"], &site.interfaces());
    for interface in ["http", "dccifd", "razor", "pyzor"] {
        assert!(told.contains(&format!("ok       interfaces: {interface} answers at ")), "{told}");
    }
    assert!(told.contains("ok       daemon: the interfaces daemon answers, up for "), "{told}");
    assert!(!told.contains("postfix") && !told.contains("listener") && !told.contains("error "), "{told}");
}

/// An interface whose address is in use leaves the others open, and every report names it and the reason. If none can open, the daemon ends.
#[test]
fn an_interface_whose_address_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let http = format!("[interfaces.http]\nlisten = \"{at}\"\n");
    let mut site = site(&format!("{DCCIFD}{http}"));
    let daemon = start(&site);
    let why = format!("cannot listen on {at} (interfaces.http.listen): Address already in use");
    daemon.log.wait_for(0, &format!("the interface http is not open: {why}"));
    assert!(end(begin(&site), &letter(1)).contains(" Body=1 "));
    let found = metrics(&daemon);
    let open = ["http", "dccifd"]
        .map(|interface| found[&format!("bulkmark_interface_open{{interface=\"{interface}\"}}")]);
    assert_eq!(open, [0.0, 1.0]);
    let (_, told) = run(&["status"], &site.interfaces());
    assert!(told.contains(&format!("  http at {at} IS NOT OPEN: {why}")), "{told}");
    assert!(told.contains("  dccifd at unix:") && told.contains("1 counted; "), "{told}");
    drop(daemon);
    site.extra = format!("{STATUS}{http}");
    let daemon = spawn(&site);
    daemon.log.wait_for(0, &why);
    daemon.log.wait_for(0, "no interface could be opened");
    assert_eq!(daemon.wait().code(), Some(1));
}

/// An invalid configuration of interfaces is refused with code 78, and the error names the missing or surplus key; nor does a milter accept one.
#[test]
fn files_that_are_no_interfaces() {
    let site = site(DCCIFD);
    let right = fs::read_to_string(site.interfaces()).unwrap();
    let refused = |command: &str, name: &str, text: &str| {
        let path = site.path(name);
        fs::write(&path, text).unwrap();
        let (code, told) = run(&[command], &path);
        assert_eq!(code, 78, "{told}");
        told.replace(&format!("{}/", site.directory.path().display()), "")
    };
    let none = right.replace(&format!("unix:{}", site.path("dccifd.sock").display()), "");
    let told = refused("interfaces", "interfaces.toml", &none);
    assert!(
        told.contains(
            "interfaces: no interface is configured, so there is nothing to do; expected listen in "
        ),
        "{told}"
    );
    let told = refused("interfaces", "interfaces.toml", &right.replace("\"none\"", "\"inet:127.0.0.1:0\""));
    assert!(
        told.starts_with("bulkmark: interfaces.toml: expected listen = \"none\" before the first table"),
        "{told}"
    );
    let told = refused("milter", "interfaces.toml", &right);
    assert!(
        told.starts_with(
            "bulkmark: interfaces.toml: found listen = \"none\", which is for `bulkmark interfaces`"
        ),
        "{told}"
    );
    let check =
        |path: &Path| Command::new(program()).args(["config", "check"]).arg(path).output().unwrap().status;
    fs::write(site.path("my-interfaces.toml"), &right).unwrap();
    assert_eq!(check(&site.path("my-interfaces.toml")).code(), Some(0));
    fs::write(site.path("my-interfaces.toml"), none).unwrap();
    assert_eq!(check(&site.path("my-interfaces.toml")).code(), Some(78));
}

/// A reload applies the changes, and interfaces stay open as they were.
#[test]
fn a_reload_leaves_the_interfaces_as_they_are() {
    let mut site = site(DCCIFD);
    let daemon = start(&site);
    site.extra += "many = \"bulk\"\n[thresholds]\nbody = 1\nmin-sources = 1\n";
    site.interfaces();
    assert!(daemon.reload().ends_with("interfaces.toml: read again"));
    daemon.log.wait_for(0, "interfaces.toml: [interfaces] was changed, which takes effect at the next start");
    let answer = end(begin(&site), &letter(1));
    assert!(answer.contains("; bulk Body=1 "), "{answer}");
}

/// The open sockets of a process.
fn sockets(daemon: &Daemon) -> usize {
    let links = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// A milter opens only configured interfaces, and four idle ones take little memory.
#[test]
fn interfaces_take_little_memory_and_none_by_themselves() {
    const MOST: u64 = 5 << 10;
    let sites = [site(""), site(&all_four())];
    let [without, with] = sites.each_ref().map(Site::start);
    with.log.wait_for(0, "the interface pyzor is at");
    // Once it has answered, all of its tasks have started.
    for daemon in [&without, &with] {
        assert_eq!(metrics(daemon)["bulkmark_ledger_available"], 1.0);
    }
    let told = sites.each_ref().map(|site| run(&["status"], &site.config()).1);
    assert_eq!(told.each_ref().map(|told| told.contains("\ninterfaces:\n")), [false, true], "{told:?}");
    // The clients' connections close a moment later.
    wait_until("there are four sockets more", || {
        let found = [&without, &with].map(sockets);
        if found[0] + 4 == found[1] { Ok(()) } else { Err(format!("{found:?}")) }
    });
    let [without, with] = [resident(&without), resident(&with)];
    let more = with.saturating_sub(without);
    println!("without interfaces {without} kB, with all four {with} kB: {more} kB more");
    assert!(more <= MOST, "{more} kB");
}
