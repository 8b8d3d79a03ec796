// SPDX-License-Identifier: GPL-3.0-or-later
//! Follows docs/federation.md literally: its commands and files are used as they stand, on machines that have only the package. Only the
//! environment differs: directories, ports, systemctl and scp.

use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::{Daemon, Site, program, wait_until};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A step of the guide.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// A complete command.
    Run(String),
    /// A file: its path and content.
    Write(String, String),
}

/// The steps below the heading `heading`, up to the next one.
fn steps(heading: &str) -> Vec<Step> {
    let guide = fs::read_to_string("docs/federation.md").unwrap();
    let start = guide.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("there is no {heading}"));
    let text = &guide[start + heading.len() + 2..];
    let end = text.find("\n#").unwrap_or(text.len());
    let (mut steps, mut file, mut fenced) = (Vec::new(), None, None::<String>);
    // A line that ends in a backslash continues on the next one.
    for line in text[..end].replace("\\\n", " ").lines() {
        match &mut fenced {
            Some(content) if line == "```" => {
                let place = file.take().unwrap_or_else(|| panic!("no file is named for:\n{content}"));
                steps.push(Step::Write(place, std::mem::take(content)));
                fenced = None;
            }
            Some(content) => *content += &format!("{line}\n"),
            None if line == "```toml" => fenced = Some(String::new()),
            None if line.starts_with("    ") => steps.push(Step::Run(line.trim().to_owned())),
            None => {
                // The last file name before the content.
                let named = line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".toml"));
                file = named.last().map(str::to_owned).or(file);
            }
        }
    }
    steps
}

/// The configuration directories of the other machines, by name.
type Etc = BTreeMap<String, PathBuf>;

/// A machine: its directories, and the daemon that runs there.
struct Machine {
    site: Site,
    daemon: Option<Daemon>,
    /// Texts of the guide and their replacements here.
    mapped: Vec<(String, String)>,
}

impl Machine {
    /// A machine after installation of the package: a configuration and directories.
    fn new(kind: &str, port: u16, settings: &str) -> Self {
        let site = Site::new("");
        let path = |name: &str| site.path(name).display().to_string();
        for directory in ["etc", "lib", "backups", "bin", "home"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for directory in ["etc/milter.d", "etc/server.d", "lib/milter", "lib/server"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        let text = format!(
            "control = \"{0}/{kind}.sock\"\nstate-dir = \"{1}/{kind}\"\n{settings}\n[status]\nlisten = \"\"\n[log]\ntarget = \"stderr\"\n",
            path("bin"),
            path("lib")
        );
        fs::write(path(&format!("etc/{kind}.toml")), text).unwrap();
        // Adds the paths of this machine; on a real one the program finds its files at the default paths.
        let (program, server, milter) = (program(), path("etc/server.toml"), path("etc/milter.toml"));
        let script = format!(
            "#!/bin/sh\nfile={milter}\n[ \"$1\" = client ] && file={server}\nfor word; do [ \"$word\" = --server ] && file={server}; done\n\
             case \"$1 $2\" in 'config check') exec {program} \"$@\" \"$file\" ;; esac\nexec {program} \"$@\" --config \"$file\"\n"
        );
        fs::write(path("bin/bulkmark"), script).unwrap();
        fs::set_permissions(path("bin/bulkmark"), fs::Permissions::from_mode(0o755)).unwrap();
        let mapped = [
            ("/etc/bulkmark", path("etc")),
            ("/var/lib/bulkmark", path("lib")),
            ("/var/backups", path("backups")),
            // Packages set the owners; the test has only one user.
            ("-o bulkmark -g bulkmark ", String::new()),
            ("counts.example.org:8721", format!("localhost:{port}")),
            ("counts.example.org", "localhost".to_owned()),
            ("[::]:8721", format!("127.0.0.1:{port}")),
        ];
        let mapped = mapped.map(|(from, to)| (from.to_owned(), to)).to_vec();
        Self { site, daemon: None, mapped }
    }

    fn here(&self, text: &str) -> String {
        self.mapped.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// Stands in for `systemctl` on this machine.
    fn systemctl(&mut self, verb: &str, kind: &str) {
        if verb == "enable" {
            return;
        }
        if let Some(daemon) = self.daemon.take() {
            assert!(daemon.terminate().success());
        }
        if verb != "stop" {
            let file = self.site.path(&format!("etc/{kind}.toml"));
            let daemon = self.site.spawn_by(Command::new(program()).args([kind, "--config"]).arg(file));
            self.daemon = Some(daemon.listening());
        }
    }

    /// Runs a command and returns its output. A command that fails ends the test.
    fn run(&self, command: &str) -> String {
        let path = format!("{}:{}", self.site.path("bin").display(), std::env::var("PATH").unwrap());
        let mut sh = Command::new("sh");
        let output =
            sh.args(["-ec", &self.here(command)]).env("PATH", path).current_dir(self.site.path("home"));
        let output = output.output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{command}\n{told}");
        told
    }

    /// Follows the steps, and returns each command's output.
    fn follow(&mut self, steps: &[Step], others: &Etc) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for step in steps {
            let words: Vec<&str> = match step {
                Step::Write(place, content) => {
                    fs::write(self.here(place), self.here(content)).unwrap();
                    continue;
                }
                Step::Run(command) => command.split_whitespace().collect(),
            };
            let Step::Run(command) = step else { continue };
            match words[..] {
                ["systemctl", verb, unit] => {
                    self.systemctl(verb, unit.strip_prefix("bulkmark-").unwrap());
                }
                ["scp", from, to] => {
                    let (host, place) = to.split_once(":/etc/bulkmark/").unwrap();
                    let from = self.site.path("home").join(self.here(from));
                    fs::copy(from, others[host].join(place)).unwrap();
                }
                // This user does not exist here.
                ["chown", "root:bulkmark", ..] => {
                    for file in &words[2..] {
                        assert!(Path::new(&self.here(file)).exists(), "{command}");
                    }
                }
                _ => told.push((command.clone(), self.run(command))),
            }
        }
        told
    }

    fn running(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }
}

/// Mail servers on which the package is installed and which already count.
fn mail_servers(names: &[&str], port: u16) -> Vec<Machine> {
    let settings = "listen = \"inet:127.0.0.1:0\"\nhostname = \"mx.test\"\nexempt = [\"authenticated\"]\n[sync]\ninterval = \"20ms\"";
    let start = |_| {
        let mut machine = Machine::new("milter", port, settings);
        machine.systemctl("start", "milter");
        send(machine.running(), &letter(1), 2);
        machine
    };
    names.iter().map(start).collect()
}

/// Follows the section "On each mail server", and checks the results that it promises.
fn join(machine: &mut Machine, others: &Etc) {
    let told = machine.follow(&steps("### On each mail server"), others);
    let said = |command: &str| told.iter().find(|(run, _)| run == command).unwrap().1.clone();
    let warned = said("bulkmark config check");
    assert!(warned.contains("at the next start the milter begins a new ledger"), "{warned}");
    machine.running().log.wait_for(0, "was made under another federation key");
    wait_until("a milter that follows", || {
        let status = machine.run("bulkmark status || true");
        if status.contains(": followed\n  up to date\n") { Ok(()) } else { Err(status) }
    });
}

/// Waits until a mail server's count of a letter is `expected`.
fn wait_for(machine: &Machine, letters: &[u8], expected: u64) {
    fs::write(machine.site.path("home/check.eml"), letters).unwrap();
    wait_until("a count", || {
        let told = machine.run("bulkmark check --json check.eml || true");
        let answer = serde_json::from_str::<serde_json::Value>(&told).unwrap_or_default();
        if answer["messages"][0]["body"]["count"].as_u64() == Some(expected) { Ok(()) } else { Err(told) }
    });
}

/// The index of the first step that begins with `command`.
fn place(steps: &[Step], command: &str) -> usize {
    let is_it = |step: &Step| matches!(step, Step::Run(run) if run.starts_with(command));
    steps.iter().position(is_it).unwrap_or_else(|| panic!("no {command} in {steps:#?}"))
}

/// Starts with machines on which the package is installed and counts, and ends with two mail servers that share their counts; then a backup
/// is restored and the capacity raised.
#[test]
fn the_guide_is_done_by_its_lines() {
    let (port, names) = (free_port(), ["mx1", "mx2"]);
    let mut server = Machine::new("server", port, "[sync]\ninterval = \"50ms\"");
    let mut mail = mail_servers(&names, port);
    let etc = |(name, machine): (&&str, &Machine)| (format!("{name}.example.org"), machine.site.path("etc"));
    let others: Etc = names.iter().zip(&mail).map(etc).collect();

    let on_server = steps("### On the server");
    let (once, for_each) = on_server.split_at(place(&on_server, "bulkmark client add"));
    server.follow(once, &others);
    for (name, machine) in names.iter().zip(&mut mail) {
        let of_this = |step: &Step| match step {
            Step::Run(command) => Step::Run(command.replace("mx1", name)),
            write @ Step::Write(..) => write.clone(),
        };
        server.follow(&for_each.iter().map(of_this).collect::<Vec<_>>(), &others);
        join(machine, &others);
    }
    let [one, two] = &mail[..] else { unreachable!() };
    send(one.running(), &letter(2), 20);
    wait_for(two, &letter(2), 20);
    let answer = session(two.running()).message(&Mail::raw(&letter(2)));
    assert!(answer.verdict().starts_with("bulk; body=21;"), "{}", answer.verdict());
    wait_for(one, &letter(2), 21);

    // Daily operation.
    let running = steps("## Running one");
    let backup = place(&running, "bulkmark ledger backup");
    let backup = &running[backup..backup + 4];
    assert_eq!(place(backup, "systemctl start bulkmark-server"), 3);
    server.follow(backup, &others);
    server.follow(&steps("## Raising the capacity"), &others);
    send(one.running(), &letter(2), 1);
    wait_for(two, &letter(2), 22);
    let told = server.run("bulkmark status --server");
    assert!(
        told.contains(" of 1000000 signatures") && !told.contains(" of 5000000 signatures"),
        "what began keeps its size: {told}"
    );
}
