// SPDX-License-Identifier: GPL-3.0-or-later
//! docs/dovecot.md on a real Dovecot with two users over IMAP, who move messages into Junk and out of it.

use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::rig::{NEWS, message};
use bulkmark_testing::server::{self, Server};
use bulkmark_testing::{Daemon, PATIENCE, Site, program, skip, text_of, wait_for_some};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Owner of the mail, and user of the program: one that every machine has.
const MAILS: &str = "nobody";
const PROGRAMS: &str = "daemon";

/// A Dovecot with the guide's configuration, in its own directory.
struct Dovecot {
    place: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Dovecot {
    /// Starts it before this site's milter; none if a program is missing.
    fn start(site: &Site) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("Dovecot needs root, since it changes to other users");
            return None;
        }
        if Command::new("sievec").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            skip("dovecot-sieve is missing; run tests/mta/install as root");
            return None;
        }
        let place = tempfile::Builder::new().prefix("bulkmark-dovecot-").tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for directory in [place.path(), site.directory.path()] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in ["run", "mail"] {
            fs::create_dir(path(name)).unwrap();
        }
        let (mails, _) = ids(MAILS);
        chown(path("mail"), Some(mails), None).unwrap();
        // The program as shipped, beside the tested one.
        let script = text_of("packaging/dovecot/bulkmark-report")
            .replace("/run/bulkmark/milter.sock", site.path("control.sock").to_str().unwrap())
            .replace("bulkmark report add", &format!("{} report add", path("bulkmark").display()));
        fs::write(path("bulkmark-report"), script).unwrap();
        fs::set_permissions(path("bulkmark-report"), fs::Permissions::from_mode(0o755)).unwrap();
        if fs::hard_link(program(), path("bulkmark")).is_err() {
            fs::copy(program(), path("bulkmark")).unwrap();
        }
        let port = free_port();
        fs::write(path("dovecot.conf"), config(place.path(), port)).unwrap();
        let (before, after) = commands(place.path());
        before.iter().chain(&after).for_each(|line| run(line));
        let child = Command::new("dovecot")
            .args(["-F", "-c"])
            .arg(path("dovecot.conf"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let dovecot = Self { place, port, child };
        wait_for_some("Dovecot", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(dovecot)
    }

    fn user(&self, name: &str) -> Imap {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut imap = Imap { stream: BufReader::new(stream), number: 0 };
        imap.line();
        imap.command(&format!("LOGIN \"{name}\" secret"));
        imap
    }

    /// Delivers these messages to a user who has logged in before.
    fn deliver(&self, name: &str, messages: impl Iterator<Item = Vec<u8>>) {
        let (mails, _) = ids(MAILS);
        for (n, message) in messages.enumerate() {
            let file = self.place.path().join(format!("mail/{name}/new/{n:06}.test"));
            fs::write(&file, message).unwrap();
            chown(&file, Some(mails), None).unwrap();
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("dovecot.log")).unwrap_or_default()
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The guide's commands before its configuration, and after it, adapted to the test: the packages' files are those of this tree, and services
/// that do not run yet are not reloaded.
fn commands(place: &Path) -> (Vec<String>, Vec<String>) {
    let guide = text_of("docs/dovecot.md");
    let section = guide.split_once("\n## Set it up\n").unwrap().1.split_once("\n## ").unwrap().0;
    let (before, block) = section.split_once("```dovecot\n").unwrap();
    let after = block.split_once("```\n").unwrap().1;
    let here = |part: &str| {
        let lines = part.lines().filter_map(|line| line.strip_prefix("    "));
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/dovecot/");
        let sievec = format!("sievec -c {}/dovecot.conf ", place.display());
        let done = lines.filter(|line| *line != "doveadm reload").map(|line| {
            line.replace("/usr/share/doc/bulkmark/examples/dovecot/", shipped)
                .replace("/etc/dovecot/sieve", &format!("{}/sieve", place.display()))
                .replace("sievec ", &sievec)
        });
        done.collect::<Vec<_>>()
    };
    let (before, after) = (here(before), here(after));
    assert_eq!((before.len(), after.len()), (2, 2), "the guide says something else");
    (before, after)
}

#[track_caller]
fn run(line: &str) {
    let done = Command::new("sh").args(["-euc", line]).output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

/// The guide's block, with the other settings of the guide's machine.
fn config(place: &Path, port: u16) -> String {
    let guide = text_of("docs/dovecot.md");
    let block = guide.split_once("```dovecot\n").unwrap().1.split_once("```").unwrap().0;
    let changed = [
        ("/etc/dovecot/sieve/", format!("{}/sieve/", place.display())),
        ("/usr/lib/bulkmark/bulkmark-report", format!("{}/bulkmark-report", place.display())),
        ("user = bulkmark", format!("user = {PROGRAMS}")),
        ("user = vmail", format!("user = {MAILS}")),
    ];
    let mut block = block.to_owned();
    for (old, new) in changed {
        assert!(block.contains(old), "the guide has no {old}");
        block = block.replace(old, &new);
    }
    let place = place.display();
    format!(
        "base_dir = {place}/run\nstate_dir = {place}/run\nlog_path = {place}/dovecot.log\nprotocols = imap\nlisten = 127.0.0.1\n\
         ssl = no\ndisable_plaintext_auth = no\nmail_location = maildir:{place}/mail/%u\nfirst_valid_uid = 1\n\
         passdb {{\n  driver = static\n  args = password=secret\n}}\n\
         userdb {{\n  driver = static\n  args = uid={MAILS} gid=nogroup home={place}/mail/%u\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    port = {port}\n  }}\n  inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
         namespace inbox {{\n  inbox = yes\n  mailbox Junk {{\n    auto = create\n  }}\n  mailbox Trash {{\n    auto = create\n  }}\n}}\n\
         {block}"
    )
}

fn ids(name: &str) -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
    let number = |n: usize| line.split(':').nth(n).unwrap().parse().unwrap();
    (number(2), number(3))
}

/// A user who reads mail.
struct Imap {
    stream: BufReader<TcpStream>,
    number: u32,
}

impl Imap {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("Dovecot does not answer");
        line
    }

    fn say(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Sends a command that must succeed.
    #[track_caller]
    fn command(&mut self, command: &str) {
        self.number += 1;
        self.say(&format!("{} {command}\r\n", self.number));
        self.expect_done(command);
    }

    #[track_caller]
    fn expect_done(&mut self, command: &str) {
        let tag = format!("{} ", self.number);
        loop {
            let line = self.line();
            if let Some(answer) = line.strip_prefix(&tag) {
                assert!(answer.starts_with("OK"), "{command}: {answer}");
                return;
            }
            assert!(!line.is_empty(), "{command}: Dovecot hung up");
        }
    }

    /// Puts a message into a folder.
    fn append(&mut self, folder: &str, message: &[u8]) {
        self.number += 1;
        self.say(&format!("{} APPEND {folder} {{{}}}\r\n", self.number, message.len()));
        assert!(self.line().starts_with('+'));
        self.stream.get_mut().write_all(message).unwrap();
        self.say("\r\n");
        self.expect_done("APPEND");
    }

    /// Moves all messages of a folder into another.
    #[track_caller]
    fn move_all(&mut self, from: &str, to: &str) {
        self.move_some(from, "1:*", to);
    }

    /// Moves these messages of a folder into another, by one command.
    #[track_caller]
    fn move_some(&mut self, from: &str, which: &str, to: &str) {
        self.command(&format!("SELECT {from}"));
        self.command(&format!("MOVE {which} {to}"));
    }

    /// The number of messages in a folder.
    fn count(&mut self, folder: &str) -> usize {
        self.number += 1;
        self.say(&format!("{} STATUS {folder} (MESSAGES)\r\n", self.number));
        let line = self.line();
        let count = line.trim_end().rsplit_once("(MESSAGES ").and_then(|(_, rest)| rest.strip_suffix(')'));
        let count = count.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        self.expect_done("STATUS");
        count
    }
}

/// A milter with a control socket for the program's group alone.
fn milter(site: &Site) -> Daemon {
    let daemon = site.start();
    let socket: PathBuf = site.path("control.sock");
    let (_, group) = ids(PROGRAMS);
    chown(&socket, None, Some(group)).unwrap();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    daemon
}

fn spam(site: &Site, message: &[u8]) -> Value {
    let (_, answer) = site.check(message);
    serde_json::from_str::<Value>(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"))["spam"]["weight"]
        .clone()
}

#[test]
fn who_moves_mail_into_junk_nominates_it_and_out_of_it_revokes() {
    let mut site = Site::new("[thresholds]\nspam = 2\n[user-reports]\ntrust = { new-reporter = 1.0 }\n");
    site.listen = format!("inet:127.0.0.1:{}", free_port());
    let daemon = milter(&site);
    let Some(dovecot) = Dovecot::start(&site) else { return };
    let news = message("", NEWS);
    let (mut anna, mut ben) = (dovecot.user("anna@box.test"), dovecot.user("ben"));
    for user in [&mut anna, &mut ben] {
        user.append("INBOX", &news);
        user.move_all("INBOX", "Junk");
    }
    assert_eq!(spam(&site, &news), "2", "{}", dovecot.log());
    // Reports survive a crash; a repeated one changes nothing.
    drop(daemon);
    let daemon = milter(&site);
    anna.append("Junk", &news);
    assert_eq!(spam(&site, &news), "2");
    daemon.log.wait_for(0, "reported: spam by=");
    // Deleting a message is no report; moving it back is a withdrawal.
    anna.move_all("Junk", "Trash");
    assert_eq!(spam(&site, &news), "2");
    ben.move_all("Junk", "INBOX");
    assert_eq!(spam(&site, &news), "1");
    daemon.log.wait_for(0, "reported: not-spam by=");
    // A message that cannot be counted is moved all the same, without an error.
    anna.append("INBOX", b"From: a@b.test\r\nSubject: x\r\n\r\n\r\n");
    anna.move_all("INBOX", "Junk");
    assert!(!dovecot.log().contains("Error"), "{}", dovecot.log());
    // Nor does a missing milter block anybody; Dovecot's log reports it.
    drop(daemon);
    ben.move_all("INBOX", "Junk");
    wait_for_some("the reason in Dovecot's log", || {
        dovecot.log().contains("no daemon answers").then_some(())
    });
}

/// Pigeonhole 0.5.19 waits so long for the socket of a program (5 seconds are meant), and then fails. On a busy machine this happens for
/// one of thousands.
const TOO_SLOW: &str = "Connection timed out (> 5 msecs)";

/// If a user moves thousands of messages by one command, all are moved, and as many count as are allowed in a day. The milter's log reports
/// that once, Dovecot's shows no error; moving back withdraws counted reports, also beyond the limit. `BULKMARK_MOVED` sets the number.
#[test]
fn who_moves_thousands_at_once_has_them_moved_and_is_told_of_once() {
    assert!((0..10).any(|_| move_thousands()), "Pigeonhole never reaches the program in time");
}

/// Returns false if Pigeonhole was too slow; then nothing is checked.
fn move_thousands() -> bool {
    const HEARD: usize = 2000;
    let moved =
        std::env::var("BULKMARK_MOVED").map_or(2500, |number| number.parse().expect("BULKMARK_MOVED"));
    let mut site = Site::new(&format!("{STATUS}[user-reports]\ntrust = {{ new-reporter = 1.0 }}\n"));
    site.listen = format!("inet:127.0.0.1:{}", free_port());
    let daemon = milter(&site);
    let Some(dovecot) = Dovecot::start(&site) else { return true };
    let mut anna = dovecot.user("anna");
    // Thousands of programs take their time.
    anna.stream
        .get_ref()
        .set_read_timeout(Some(PATIENCE + Duration::from_millis(250 * moved as u64)))
        .unwrap();
    assert_eq!(anna.count("INBOX"), 0);
    dovecot.deliver("anna", (0..moved).map(letter));
    assert_eq!(anna.count("INBOX"), moved);
    let began = Instant::now();
    anna.move_all("INBOX", "Junk");
    println!("{moved} messages were moved in {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!((anna.count("INBOX"), anna.count("Junk")), (0, moved));
    if dovecot.log().contains(TOO_SLOW) {
        return false;
    }
    assert!(!dovecot.log().contains("Error"), "{}", dovecot.log());
    let lines = |of: &str| daemon.log.lines().into_iter().filter(|line| line.contains(of)).count();
    daemon.log.wait_for(0, " of 2000 messages today; ");
    assert_eq!(lines(" of 2000 messages today; "), 1);
    assert_eq!(lines("a report was refused"), 0);
    let over = || metrics(&daemon)["bulkmark_user_reports_total{side=\"spam\",result=\"over-limit\"}"];
    assert_eq!(over(), (moved - HEARD) as f64);
    // Dovecot takes them in the order of their files.
    let weights = [0, HEARD - 1, HEARD, moved - 1].map(|n| spam(&site, &letter(n)) == "1");
    assert_eq!(weights, [true, true, false, false]);
    // Another user's report counts, and so do the first one's withdrawals.
    let mut ben = dovecot.user("ben");
    ben.append("INBOX", &message("", NEWS));
    ben.move_all("INBOX", "Junk");
    assert_eq!(spam(&site, &message("", NEWS)), "1");
    anna.move_some("Junk", "1:20", "INBOX");
    assert_eq!((anna.count("INBOX"), anna.count("Junk")), (20, moved - 20));
    let weights = [0, 19, 20].map(|n| spam(&site, &letter(n)) == "1");
    assert_eq!(weights, [false, false, true]);
    assert_eq!(over(), (moved - HEARD) as f64);
    assert!(!dovecot.log().contains("Error"), "{}", dovecot.log());
    true
}

/// Waits until a mail server's `check` returns this weight.
#[track_caller]
fn wait_for_weight(site: &Site, message: &[u8], expected: &Value) {
    bulkmark_testing::wait_until("user reports", || {
        let found = spam(site, message);
        if found == *expected { Ok(()) } else { Err(found.to_string()) }
    });
}

/// Two mail servers and a signature server, and Dovecot at the first one: a message that three of its users move into Junk is spam at the
/// second, as a near-replica; two move it back, and it is not. The first mail server and the signature server are killed in between.
#[test]
fn what_three_users_move_into_junk_is_spam_at_another_mail_server() {
    let server = Server::new("");
    let mut daemon = server.start();
    let [mut near, far] = ["near", "far"].map(|name| {
        let mut site = server::milter(&[server.entry(name, "report")]);
        site.extra += "[user-reports]\ntrust = { new-reporter = 1.0, federation-weight = 1.0 }\n";
        site
    });
    // A restarted program listens at the same address.
    near.listen = format!("inet:127.0.0.1:{}", free_port());
    let mut at_near = milter(&near);
    let at_far = far.start();
    let Some(dovecot) = Dovecot::start(&near) else { return };
    let mut users = [("anna@box.test", "Anna"), ("ben", "Bert"), ("carl", "Carl")]
        .map(|(login, name)| (name, dovecot.user(login)));
    for (name, user) in &mut users {
        user.append("INBOX", &offer(name));
    }
    let replica = offer("Dora");
    for (n, (_, user)) in users.iter_mut().enumerate() {
        let began = Instant::now();
        user.move_all("INBOX", "Junk");
        wait_for_weight(&far, &replica, &(n + 1).to_string().into());
        println!("the second mail server knew after {:.2} s", began.elapsed().as_secs_f64());
        match n {
            // Reports of moved messages are on disk.
            0 => {
                at_near.kill();
                at_near = milter(&near);
            }
            1 => {
                daemon.kill();
                daemon = server.start();
            }
            _ => (),
        }
    }
    let verdict = || {
        bulkmark_testing::milter::session(&at_far)
            .message(&bulkmark_testing::milter::Mail::raw(&replica))
            .header()
            .to_owned()
    };
    assert!(verdict().starts_with("spam; "), "{}", verdict());
    let [anna, ben, _carl] = &mut users;
    daemon.kill();
    anna.1.move_all("Junk", "INBOX");
    at_near.kill();
    at_near = milter(&near);
    daemon = server.start();
    ben.1.move_all("Junk", "INBOX");
    wait_for_weight(&far, &replica, &"1".into());
    assert!(verdict().starts_with("clean; "), "{}", verdict());
    assert!(!dovecot.log().contains("Error"), "{}", dovecot.log());
    assert!(at_near.terminate().success() && daemon.terminate().success());
}
