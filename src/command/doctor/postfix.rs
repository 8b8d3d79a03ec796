// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether Postfix asks the milter, and has permission to.

use super::report::Report;
use crate::net::Address;
use bulkmark_ledger::directory::{Obstacle, User, WRITE};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = "postfix";

/// Postfix's own answers, by postconf(1).
struct Postconf<'a> {
    directory: Option<&'a Path>,
}

impl Postconf<'_> {
    /// Returns its output; none if there is no Postfix.
    fn ask(&self, arguments: &[&str]) -> Option<Result<String, String>> {
        let ask = |program: &str| {
            let mut command = Command::new(program);
            if let Some(directory) = self.directory {
                command.arg("-c").arg(directory);
            }
            command.args(arguments).output().ok()
        };
        // An ordinary user's path lacks its directory.
        let output = ask("postconf").or_else(|| ask("/usr/sbin/postconf"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Some(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
    }

    /// Returns the expanded value of a parameter; empty if it is unknown.
    fn value(&self, name: &str) -> String {
        self.ask(&["-hx", name]).and_then(Result::ok).unwrap_or_default()
    }
}

/// Searches for the listener in Postfix's configuration in `directory`, or in the usual one.
pub(super) fn examine(directory: Option<&Path>, listen: &Address, report: &mut Report) {
    let postconf = Postconf { directory };
    let milters = match postconf.ask(&["-hx", "smtpd_milters"]) {
        None => return report.ok(CHECK, "there is no postconf here, so Postfix was not checked"),
        Some(Ok(milters)) => milters,
        Some(Err(e)) => {
            let first = e.lines().next().unwrap_or("no output").to_owned();
            return report.error(
                CHECK,
                format!("postconf fails: {first}"),
                "correct Postfix's configuration",
            );
        }
    };
    let service = Service::facing_outside(&postconf);
    let own = service.own_milters(&postconf);
    let (place, is_main) = match &own {
        Some(_) => (format!("smtpd_milters of {} in master.cf", service.name), false),
        None => ("smtpd_milters".to_owned(), true),
    };
    let milters = own.unwrap_or(milters);
    let jail = service.jail(&postconf);
    if specs(&milters).iter().any(|spec| is_ours(spec, listen, jail.as_deref())) {
        report.ok(CHECK, format!("{place} has {}", listen.in_postfix()));
        examine_socket(&postconf, listen, report);
        return;
    }
    let found = if milters.is_empty() { "empty".to_owned() } else { format!("\"{milters}\"") };
    let ours = format!("{{ {}, default_action=accept }}", seen_from(listen, jail.as_deref()));
    // The present milters stay and are asked first, except for the listener under a name that does not reach it.
    let others = entries(&milters).into_iter().filter(|(_, spec)| !is_ours(spec, listen, None));
    let line = others.map(|(entry, _)| entry.to_owned()).chain([ours]).collect::<Vec<_>>().join(", ");
    let advice = if is_main {
        format!("put this into main.cf and run postfix reload: smtpd_milters = {line}")
    } else {
        format!(
            "what master.cf says of {} goes before main.cf: put this there in its place and run postfix reload: \
             -o {{ smtpd_milters = {line} }}",
            service.name
        )
    };
    report.error(
        CHECK,
        format!("{place} is {found}, and does not have {}: bulkmark is not asked", listen.in_postfix()),
        advice,
    );
}

/// The service of master.cf that takes mail from outside.
struct Service {
    /// Its name in the form of postconf(1): `smtp/inet`.
    name: &'static str,
    /// Its line.
    line: String,
}

impl Service {
    /// Returns the service on port 25; if that is postscreen(8), the service behind it.
    fn facing_outside(postconf: &Postconf<'_>) -> Self {
        let find = |name| {
            let line = postconf.ask(&["-M", name]).and_then(Result::ok).unwrap_or_default();
            Self { name, line }
        };
        let first = find("smtp/inet");
        if first.column(7) == Some("postscreen") { find("smtpd/pass") } else { first }
    }

    fn column(&self, n: usize) -> Option<&str> {
        self.line.split_whitespace().nth(n)
    }

    /// Returns its own milters, which replace those of main.cf.
    fn own_milters(&self, postconf: &Postconf<'_>) -> Option<String> {
        let own = postconf.ask(&["-Px", &format!("{}/smtpd_milters", self.name)])?.ok()?;
        own.split_once('=').map(|(_, own)| own.trim().to_owned())
    }

    /// Returns the root directory of its jail, if it has one.
    fn jail(&self, postconf: &Postconf<'_>) -> Option<PathBuf> {
        let jailed = self.column(4) == Some("y");
        jailed.then(|| postconf.value("queue_directory").into())
    }
}

/// Returns the addresses of the milters in a value of smtpd_milters.
fn specs(value: &str) -> Vec<&str> {
    entries(value).into_iter().map(|(_, spec)| spec).collect()
}

/// Returns the entries of a value of smtpd_milters, each with its address.
fn entries(value: &str) -> Vec<(&str, &str)> {
    let mut entries = Vec::new();
    let mut rest = value;
    let is_blank = |c: char| c == ',' || c.is_whitespace();
    loop {
        rest = rest.trim_start_matches(is_blank);
        if rest.is_empty() {
            return entries;
        }
        let end = if rest.starts_with('{') { rest.find('}').map(|end| end + 1) } else { rest.find(is_blank) };
        let (entry, after) = rest.split_at(end.unwrap_or(rest.len()));
        let inner = entry.trim_matches(['{', '}']);
        let spec = inner.split(is_blank).find(|word| !word.is_empty());
        entries.extend(spec.map(|spec| (entry, spec)));
        rest = after;
    }
}

/// Whether Postfix reaches the listener by this address.
fn is_ours(spec: &str, listen: &Address, jail: Option<&Path>) -> bool {
    match (Address::of_postfix(spec), listen) {
        (Ok(Address::Tcp(theirs)), Address::Tcp(ours)) => theirs == *ours || overlap(&theirs, ours),
        (Ok(theirs), Address::Unix(_)) => match (jail, theirs) {
            (_, Address::Tcp(_)) => false,
            (None, theirs) => theirs == *listen,
            (Some(jail), Address::Unix(path)) => {
                Address::Unix(jail.join(path.strip_prefix("/").unwrap_or(&path))) == *listen
            }
        },
        _ => false,
    }
}

/// Whether a name leads to an address on which the other listens.
fn overlap(theirs: &str, ours: &str) -> bool {
    let resolve = |name: &str| name.to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
    let (theirs, ours): (Vec<SocketAddr>, Vec<SocketAddr>) = (resolve(theirs), resolve(ours));
    let covers = |ours: IpAddr, theirs: IpAddr| ours == theirs || ours.is_unspecified();
    ours.iter().any(|a| theirs.iter().any(|b| a.port() == b.port() && covers(a.ip(), b.ip())))
}

/// Returns the listener's address in the form that Postfix needs.
fn seen_from(listen: &Address, jail: Option<&Path>) -> String {
    match (listen, jail) {
        (Address::Unix(path), Some(jail)) => match path.strip_prefix(jail) {
            Ok(inside) => format!("unix:/{}", inside.display()),
            Err(_) => listen.in_postfix(),
        },
        _ => listen.in_postfix(),
    }
}

/// Examines whether Postfix's user may connect to a Unix socket.
fn examine_socket(postconf: &Postconf<'_>, listen: &Address, report: &mut Report) {
    let Address::Unix(path) = listen else { return };
    let Some(user) = User::named(&postconf.value("mail_owner")) else { return };
    if let Err(Obstacle::Mode(at)) = user.reach(path, WRITE) {
        report.error(
            CHECK,
            format!("{} may not connect to {} (mode of {})", user.name, path.display(), at.display()),
            format!(
                "gpasswd -a {} bulkmark && postfix reload, or see docs/postfix.md, Unix socket",
                user.name
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milters_are_found_in_any_notation() {
        assert!(specs("").is_empty());
        assert_eq!(specs("inet:a:1, unix:/b inet:c:2"), ["inet:a:1", "unix:/b", "inet:c:2"]);
        assert_eq!(
            specs("{ inet:a:1, default_action=accept, connect_timeout=1s },{unix:/b}"),
            ["inet:a:1", "unix:/b"]
        );
    }

    #[test]
    fn the_listener_is_known_by_other_names() {
        let ours = |spec: &str, listen: &str, jail: Option<&str>| {
            is_ours(spec, &Address::of_postfix(listen).unwrap(), jail.map(Path::new))
        };
        assert!(ours("inet:127.0.0.1:8720", "inet:127.0.0.1:8720", None));
        assert!(ours("inet:localhost:8720", "inet:127.0.0.1:8720", None));
        assert!(ours("inet:127.0.0.1:8720", "inet:0.0.0.0:8720", None));
        assert!(!ours("inet:127.0.0.1:8891", "inet:0.0.0.0:8720", None));
        assert!(!ours("inet:192.0.2.1:8720", "inet:127.0.0.1:8720", None));
        let socket = "unix:/var/spool/postfix/b/m.sock";
        assert!(ours(socket, socket, None) && !ours(socket, socket, Some("/var/spool/postfix")));
        assert!(ours("unix:/b/m.sock", socket, Some("/var/spool/postfix")));
        assert!(!ours("unix:/b/m.sock", socket, None) && !ours("nonsense", socket, None));
        assert_eq!(
            seen_from(&Address::of_postfix(socket).unwrap(), Some(Path::new("/var/spool/postfix"))),
            "unix:/b/m.sock"
        );
    }
}
