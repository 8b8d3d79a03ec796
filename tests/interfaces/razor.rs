// SPDX-License-Identifier: GPL-3.0-or-later
//! The interface of Razor2: razor-agents against it, each with its own home, and two mail servers of one federation.

use crate::spamassassin::run;
use bulkmark_testing::letters::offer;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, PATIENCE, Site, skip, wait_until};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Three reporters make spam, and each newcomer has full weight.
pub(crate) const TRUSTING: &str = "[user-reports]\ntrust = { new-reporter = 1.0, federation-weight = 1.0 }\n";

/// An address of this machine that no other test has: clients find discovery servers at port 2703 only.
pub(crate) fn own_address() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("127.{}.{}.{n}", 1 + pid / 256 % 250, pid % 256)
}

/// Adds the interface to a site; `keys` are more keys of it.
pub(crate) fn open(mut site: Site, keys: &str) -> (Site, String) {
    let address = own_address();
    // Limits apply to all interfaces.
    let is_bound =
        |line: &&str| line.starts_with("idle-timeout = ") || line.starts_with("max-connections = ");
    let bounds: Vec<_> = keys.lines().filter(is_bound).collect();
    let keys: Vec<_> = keys.lines().filter(|line| !is_bound(line)).collect();
    let (bounds, keys) = (bounds.join("\n"), keys.join("\n"));
    site.extra =
        format!("{bounds}\n{}\n[interfaces.razor]\nlisten = \"{address}:2703\"\n{keys}\n", site.extra);
    (site, address)
}

/// Starts it, and waits until the interface is open.
pub(crate) fn start(site: &Site) -> Daemon {
    let daemon = site.start();
    daemon.log.wait_for(0, "the interface razor is at");
    daemon
}

/// A user with razor-agents.
pub(crate) struct Agent {
    home: PathBuf,
}

impl Agent {
    /// With a home in the site's directory, and this address for discovery; none if razor-agents are not installed.
    pub(crate) fn new(site: &Site, name: &str, address: &str) -> Option<Self> {
        if Command::new("razor-admin").arg("-v").output().is_err() {
            skip("razor is not installed");
            return None;
        }
        let home = site.path(name);
        fs::create_dir(&home).unwrap();
        let conf = format!(
            "razorhome = {}\nrazordiscovery = {address}\nlogfile = razor.log\ndebuglevel = 12\n",
            home.display()
        );
        fs::write(home.join("razor-agent.conf"), conf).unwrap();
        Some(Self { home })
    }

    /// Runs one of the programs.
    pub(crate) fn run(&self, program: &str, arguments: &[&str], message: &[u8]) -> Output {
        let mut command = Command::new(program);
        command.arg(format!("-home={}", self.home.display()));
        command.arg(format!("-conf={}", self.home.join("razor-agent.conf").display()));
        let command = command.args(arguments).env("HOME", &self.home).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that reads no message has ended already.
        let _ = child.stdin.take().unwrap().write_all(message);
        child.wait_with_output().unwrap()
    }

    /// The same, which must succeed.
    fn does(&self, program: &str, arguments: &[&str], message: &[u8]) {
        let output = self.run(program, arguments, message);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}\n{}", self.log());
    }

    /// A new account of this name.
    pub(crate) fn register(&self, user: &str) {
        self.does("razor-admin", &["-register", &format!("-user={user}"), "-pass=a-password"], b"");
    }

    pub(crate) fn report(&self, message: &[u8]) {
        self.does("razor-report", &["-f"], message);
    }

    fn revoke(&self, message: &[u8]) {
        self.does("razor-revoke", &["-f"], message);
    }

    /// Whether its client takes a message for spam.
    pub(crate) fn is_spam(&self, message: &[u8]) -> bool {
        match self.run("razor-check", &[], message).status.code() {
            Some(0) => true,
            Some(1) => false,
            code => panic!("{code:?}\n{}", self.log()),
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.join("razor.log")).unwrap_or_default()
    }
}

/// A message with a link, so that both engines have a part of it, with lines as in a mailbox.
fn advertisement(name: &str) -> Vec<u8> {
    let text = String::from_utf8(offer(name)).unwrap().replace("\r\n", "\n");
    format!("{text}\nhttp://parcels.example.com/{name}\n").into_bytes()
}

/// A connection without razor-agents.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect((address, 2703)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut raw = Self(BufReader::new(stream));
        assert_eq!(raw.line(), "sn=CN&srl=1&ep4=7542-10&a=l&a=cg\r\n");
        raw
    }

    /// The next line of an answer; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        // A reset is an end, too.
        let _ = self.0.read_line(&mut line);
        line
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.0.get_ref()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // It may be closed already.
        let _ = self.0.get_mut().write_all(bytes);
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.line().trim_end().to_owned()
    }
}

/// All actions of razor-agents, from discovery on, with nothing but this interface.
#[test]
fn razor_agents_from_discovery_to_revocation() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let daemon = start(&site);
    let Some(anna) = Agent::new(&site, "anna", &address) else { return };
    anna.does("razor-admin", &["-discover"], b"");
    for list in ["catalogue", "nomination"] {
        let servers = fs::read_to_string(anna.home.join(format!("servers.{list}.lst"))).unwrap();
        assert_eq!(servers.trim(), format!("{address}:2703"));
    }
    anna.register("anna@box.test");
    let kept = fs::read_to_string(site.path("state/razor-accounts")).unwrap();
    assert!(kept.starts_with("anna@box.test ") && !kept.contains("a-password"), "{kept}");
    let mail = advertisement("Anna");
    assert!(!anna.is_spam(&mail));
    anna.report(&mail);
    anna.report(&mail);
    assert!(!anna.is_spam(&mail), "one reporter counts once");
    assert!(anna.log().contains("Server accepted report"), "{}", anna.log());
    for name in ["bert", "carl"] {
        let agent = Agent::new(&site, name, &address).unwrap();
        agent.register(name);
        agent.report(&mail);
    }
    assert!(anna.is_spam(&mail), "{}", anna.log());
    assert!(anna.log().contains("cf=51"), "{}", anna.log());
    let other = format!("Subject: x\n\n{}\n", "Shall we meet on Thursday, or rather next week?\n".repeat(9));
    assert!(!anna.is_spam(other.as_bytes()), "another body");
    anna.revoke(&mail);
    assert!(!anna.is_spam(&mail));
    anna.report(&mail);
    // Reports survive the daemon, as accounts do.
    daemon.kill();
    let _daemon = start(&site);
    assert!(anna.is_spam(&mail));
    anna.revoke(&mail);
    assert!(!anna.is_spam(&mail));
}

/// If no name is chosen, the server assigns one, and knows it from then on.
#[test]
fn an_account_that_is_made_up() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let _daemon = start(&site);
    let Some(anna) = Agent::new(&site, "anna", &address) else { return };
    anna.does("razor-admin", &["-create"], b"");
    anna.does("razor-admin", &["-register"], b"");
    anna.report(&advertisement("Anna"));
    let kept = fs::read_to_string(site.path("state/razor-accounts")).unwrap();
    assert_eq!(kept.lines().count(), 1);
}

/// Three users report at one mail server, and it is spam at another of the federation.
#[test]
fn what_is_reported_at_one_is_spam_at_another() {
    let server = Server::new("");
    let _server = server.start();
    let site_of = |name: &str| {
        let mut site = milter(&[server.entry(name, "report")]);
        site.extra += TRUSTING;
        open(site, "")
    };
    let [(near, at_near), (far, at_far)] = ["near", "far"].map(site_of);
    let (_near, _far) = (start(&near), start(&far));
    let Some(anna) = Agent::new(&near, "anna", &at_near) else { return };
    let zora = Agent::new(&far, "zora", &at_far).unwrap();
    let mail = advertisement("Anna");
    for (agent, name) in [
        (&anna, "anna"),
        (&Agent::new(&near, "bert", &at_near).unwrap(), "bert"),
        (&Agent::new(&near, "carl", &at_near).unwrap(), "carl"),
    ] {
        assert!(!zora.is_spam(&mail), "before {name} reports it");
        agent.register(name);
        agent.report(&mail);
    }
    let spam = || if zora.is_spam(&mail) { Ok(()) } else { Err("it is no spam there".to_owned()) };
    wait_until("it is spam at the other mail server", spam);
    anna.revoke(&mail);
    let clean = || if zora.is_spam(&mail) { Err("it is spam".to_owned()) } else { Ok(()) };
    wait_until("it is no spam any more at the other mail server", clean);
}

/// The answers, byte for byte.
#[test]
fn each_answer() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let daemon = start(&site);
    let mut raw = Raw::connect(&address);
    assert_eq!(
        raw.ask("cn=test&cv=1\r\na=g&pm=state"),
        "ac=50&bql=50&bqs=64&dre=4&ep4=7542-10&se=88&sn=CN&srl=1"
    );
    assert_eq!(raw.ask("a=g&pm=csl"), "-csl=?");
    assert_eq!([raw.line(), raw.line()], [format!("{address}:2703\r\n"), ".\r\n".to_owned()]);
    for (asked, told) in [
        ("a=wrong", "err=202"),
        ("a=c&e=4&ep4=7542-10&s=abc", "p=0"),
        ("a=r&e=4&ep4=7542-10&s=abc", "err=203"),
        ("a=revoke&e=4&s=abc", "err=203"),
        ("a=auth&aresp=abc", "err=203"),
        ("a=ai&user=nobody", "err=213"),
        ("a=reg&user=anna&pass=short", "res=0"),
        ("a=reg&user=anna&pass=a-password", "pass=a-password&res=1&user=anna"),
        ("a=reg&user=anna&pass=another-one", "err=210"),
    ] {
        assert_eq!(raw.ask(asked), told, "{asked}");
    }
    let mut raw = Raw::connect(&address);
    raw.send(
        b"-a=c&e=8&s=abc\r\na=c&e=9&s=abc\r\n.\r\n-a=r&message=*\r\nSubject: x\r\n\r\nx\r\n.\r\na=q\r\n",
    );
    let told: Vec<String> = std::iter::from_fn(|| Some(raw.line()).filter(|line| !line.is_empty())).collect();
    assert_eq!(told, ["-p=0\r\n", "err=202\r\n", ".\r\n", "res=0\r\n"]);
    drop(daemon);
}

/// A wrong password is refused, and after three of them the connection is closed.
#[test]
fn wrong_passwords() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let _daemon = start(&site);
    let mut raw = Raw::connect(&address);
    raw.ask("a=reg&user=anna&pass=a-password");
    let mut raw = Raw::connect(&address);
    for _ in 0..3 {
        assert!(raw.ask("a=ai&user=anna").starts_with("achal="));
        assert_eq!(raw.ask("a=auth&aresp=AAAAAAAAAAAAAAAAAAAAAAAAAAAA"), "res=0");
    }
    assert_eq!(raw.line(), "");
    // A challenge is valid for one proof.
    let mut raw = Raw::connect(&address);
    raw.ask("a=ai&user=anna");
    assert_eq!(raw.ask("a=auth&aresp="), "res=0");
    assert_eq!(raw.ask("a=auth&aresp="), "err=203");
    assert_eq!(raw.ask("a=r&e=8&s=abc"), "err=203");
}

/// A digest of a link's host, which engine 8 checks, is spam once reported, which razor-agents cannot do: a client of another kind logs in,
/// and razor-check finds it in a message that is unknown to engine 4.
#[test]
fn what_is_reported_by_engine_8_is_spam() {
    let (site, address) =
        open(Site::new("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n"), "");
    let _daemon = start(&site);
    let Some(anna) = Agent::new(&site, "anna", &address) else { return };
    anna.does("razor-admin", &["-discover"], b"");
    let [mail, other] = ["Anna", "Bert"].map(|name| {
        let text = String::from_utf8(advertisement(name)).unwrap();
        text.replace(&format!("com/{name}"), "com/sale").into_bytes()
    });
    assert!(!anna.is_spam(&mail));
    let log = anna.log();
    let signature = log.split("a=c&e=8&s=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let signature = signature.unwrap_or_else(|| panic!("{log}")).to_owned();
    let mut raw = Raw::connect(&address);
    assert!(raw.ask("a=reg&user=zora&pass=a-password").ends_with("&res=1&user=zora"));
    let mut raw = Raw::connect(&address);
    let challenge = raw.ask("a=ai&user=zora&cn=other&cv=1");
    let challenge = challenge.strip_prefix("achal=").unwrap_or_else(|| panic!("{challenge}"));
    let proof = "use Razor2::String qw(hmac_sha1 xor_key); print hmac_sha1($ARGV[0], xor_key($ARGV[1]))";
    let proof = Command::new("perl").args(["-e", proof, challenge, "a-password"]).output().unwrap();
    let proof = String::from_utf8(proof.stdout).unwrap();
    assert_eq!(raw.ask(&format!("a=auth&aresp={proof}")), "res=1");
    assert_eq!(raw.ask(&format!("a=r&e=8&s={signature}")), "res=1");
    assert!(anna.is_spam(&mail) && anna.is_spam(&other), "{}", anna.log());
    let elsewhere = String::from_utf8(mail).unwrap().replace("parcels.example.com", "letters.example.net");
    assert!(!anna.is_spam(elsewhere.as_bytes()), "another link: {}", anna.log());
    assert_eq!(raw.ask(&format!("a=revoke&e=8&s={signature}")), "res=1");
    assert!(!anna.is_spam(&other), "{}", anna.log());
}

/// Thousands of checks in flight are answered in order, each by the weight of its reports.
#[test]
fn many_checks_at_once() {
    let (site, address) =
        open(Site::new("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n"), "");
    let _daemon = start(&site);
    let Some(anna) = Agent::new(&site, "anna", &address) else { return };
    let mail = advertisement("Anna");
    anna.register("anna");
    anna.report(&mail);
    let log = anna.log();
    let known = log.split("a=r&e=4&ep4=7542-10&s=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let known = known.unwrap_or_else(|| panic!("{log}"));
    let mut raw = Raw::connect(&address);
    let batch = format!("-a=c&e=4&ep4=7542-10&s=?\r\n{}{known}\r\n.\r\n", "abc\r\n".repeat(999));
    let mut writer = raw.stream().try_clone().unwrap();
    let bytes = batch.repeat(20);
    let sends = std::thread::spawn(move || writer.write_all(bytes.as_bytes()).unwrap());
    for n in 0..20 {
        assert_eq!(raw.line(), "-p=0\r\n", "{n}");
        for _ in 1..999 {
            assert_eq!(raw.line(), "p=0\r\n");
        }
        assert_eq!([raw.line(), raw.line()], ["p=1&cf=51\r\n", ".\r\n"]);
    }
    sends.join().unwrap();
}

/// SpamAssassin reports by its plugin, and its plugin finds the reported message.
#[test]
fn spamassassin_checks_and_reports() {
    let (site, address) =
        open(Site::new("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n"), "");
    let _daemon = start(&site);
    let Some(anna) = Agent::new(&site, "anna", &address) else { return };
    anna.does("razor-admin", &["-discover"], b"");
    anna.register("anna");
    let conf = anna.home.join("razor-agent.conf");
    let rules = format!(
        "use_razor2 1\nrazor_config {}\nfull RAZOR2_CHECK eval:check_razor2()\nscore RAZOR2_CHECK 1\n\
         full RAZOR2_CF_RANGE_51_100 eval:check_razor2_range('','51','100')\nscore RAZOR2_CF_RANGE_51_100 1\n\
         add_header all Status \"_YESNO_ tests=_TESTS_\"\n",
        conf.display()
    );
    let mail = advertisement("Anna");
    let run = |arguments: &[&str]| {
        run(&site, "loadplugin Mail::SpamAssassin::Plugin::Razor2\n", &rules, arguments, &mail)
    };
    let Some(checked) = run(&["-t"]) else { return };
    assert!(!checked.contains("RAZOR2_"), "{checked}");
    run(&["-r"]).unwrap();
    let checked = run(&["-t"]).unwrap();
    assert!(
        checked.contains("RAZOR2_CHECK") && checked.contains("RAZOR2_CF_RANGE_51_100"),
        "{checked}\n{}",
        anna.log()
    );
}
