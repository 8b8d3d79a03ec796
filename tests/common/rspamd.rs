// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with Debian's configuration and a directory of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The command that runs it with these files, named below the directory; workers are off unless a file says otherwise.
pub fn command(directory: &Path, files: &[(&str, String)]) -> Command {
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
    let mut command = Command::new("rspamd");
    command.args(["-i", "-f", "-u", "root", "-g", "root", "-c", "/etc/rspamd/rspamd.conf"]);
    for (name, value) in
        [("LOCAL_CONFDIR", path("")), ("DBDIR", path("db")), ("RUNDIR", path("run")), ("LOGDIR", path("log"))]
    {
        command.arg(format!("--var={name}={value}"));
    }
    command
}

/// Its `options.inc`, with this name server and these filters.
pub fn options(directory: &Path, nameserver: &str, timeout: &str, filters: &str) -> String {
    // The list of all domains below which anybody may have one takes a long time to be read.
    let domains = directory.join("tld");
    fs::write(&domains, "example\ntest\n").unwrap();
    format!(
        "dns {{ nameserver = [\"{nameserver}\"]; timeout = {timeout}; }}\nurl_tld = \"{}\";\nfilters = \"{filters}\";\n",
        domains.display()
    )
}
