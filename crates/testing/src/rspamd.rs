// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with Debian's configuration in a separate directory.

use super::mta::EX_UNAVAILABLE;
use super::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of rspamd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// The one of this machine, 3.4 on Debian 12.
    Installed,
    /// The one of a newer Debian, unpacked here: 3.12 of Debian 13.
    Newer(PathBuf),
}

impl Version {
    /// All available versions, and those of the releases of Debian in `BULKMARK_RSPAMD`.
    pub fn all() -> Vec<Self> {
        let more = std::env::var("BULKMARK_RSPAMD").unwrap_or_default();
        let newer = ["trixie"].into_iter().chain(more.split_whitespace()).filter_map(Self::of);
        [Self::Installed].into_iter().chain(newer).collect()
    }

    /// The version of a release of Debian; none where it cannot be fetched.
    fn of(suite: &str) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mta/rspamd");
        let fetched = Command::new(script).args(["fetch", suite]).output().unwrap();
        let told = String::from_utf8_lossy(&fetched.stderr);
        if fetched.status.code() == Some(EX_UNAVAILABLE) {
            skip(&format!("no rspamd of {suite}: {told}"));
            return None;
        }
        assert!(fetched.status.success(), "{told}");
        Some(Self::Newer(String::from_utf8(fetched.stdout).unwrap().trim_end().into()))
    }

    /// Whether its dcc module has rspamd's issue 5451: no symbol for counts above its limits.
    pub fn forgets_the_score(&self) -> bool {
        let share = match self {
            Self::Installed => "/usr/share/rspamd".into(),
            Self::Newer(place) => place.join("usr/share/rspamd"),
        };
        let module = fs::read_to_string(share.join("lualib/lua_scanners/dcc.lua")).unwrap();
        module.contains("score = score * rep")
    }

    /// The command that runs it, without arguments.
    fn command(&self) -> Command {
        let Self::Newer(place) = self else { return Command::new("rspamd") };
        let mut command = Command::new(place.join("linker"));
        let libraries = fs::read_to_string(place.join("libraries")).unwrap();
        command.args(["--library-path", libraries.trim_end()]).arg(place.join("usr/bin/rspamd"));
        command
    }

    /// The version number.
    pub fn number(&self) -> String {
        let told = self.command().arg("--version").output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        told.lines().next().and_then(|line| line.split(' ').next_back()).unwrap_or_default().to_owned()
    }

    /// The directory of its configuration.
    fn configuration(&self) -> PathBuf {
        match self {
            Self::Installed => "/etc/rspamd".into(),
            Self::Newer(place) => place.join("etc/rspamd"),
        }
    }

    /// The variables for the paths of its files, if they are in an unusual place.
    fn places(&self) -> Vec<(&'static str, String)> {
        let Self::Newer(place) = self else { return Vec::new() };
        let share = |name: &str| place.join("usr/share/rspamd").join(name).display().to_string();
        let places =
            [("SHAREDIR", ""), ("PLUGINSDIR", "plugins"), ("RULESDIR", "rules"), ("LUALIBDIR", "lualib")];
        let confdir = [("CONFDIR", self.configuration().display().to_string())];
        places.map(|(name, below)| (name, share(below))).into_iter().chain(confdir).collect()
    }
}

/// The command that runs it with these files, named below the directory. Workers are off unless a file turns them on.
pub fn command(version: &Version, directory: &Path, files: &[(&str, String)]) -> Command {
    let path = |name: &str| directory.join(name).display().to_string();
    for name in ["local.d", "plugins.d", "db", "run", "log"] {
        fs::create_dir(path(name)).unwrap();
    }
    for worker in ["normal", "proxy", "controller", "fuzzy"] {
        fs::write(path(&format!("local.d/worker-{worker}.inc")), "enabled = false;\n").unwrap();
    }
    fs::write(path("local.d/rbl.conf"), "enabled = false;\n").unwrap();
    let log = format!("type = \"file\"; filename = \"{}\";\n", path("log/log"));
    fs::write(path("local.d/logging.inc"), log).unwrap();
    for (name, text) in files {
        fs::write(path(name), text).unwrap();
    }
    let mut command = version.command();
    command.args(["-i", "-f", "-u", "root", "-g", "root", "-c"]);
    command.arg(version.configuration().join("rspamd.conf"));
    let own = [
        ("LOCAL_CONFDIR", path("")),
        ("DBDIR", path("db")),
        ("RUNDIR", path("run")),
        ("LOGDIR", path("log")),
    ];
    for (name, value) in own.into_iter().chain(version.places()) {
        command.arg(format!("--var={name}={value}"));
    }
    command
}

/// Its `options.inc`, with this name server and these filters.
pub fn options(directory: &Path, nameserver: &str, timeout: &str, filters: &str) -> String {
    // The list of all public suffixes takes a long time to load.
    let domains = directory.join("tld");
    fs::write(&domains, "example\ntest\n").unwrap();
    format!(
        "dns {{ nameserver = [\"{nameserver}\"]; timeout = {timeout}; }}\ntask_timeout = 300s;\nurl_tld = \"{}\";\nfilters = \"{filters}\";\n",
        domains.display()
    )
}
