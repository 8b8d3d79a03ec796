// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark canary`

use super::output::{AS_ROOT, output, print};
use crate::config::{self, DEFAULT_PATH};
use crate::net::own_name;
use anyhow::Context;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::random_bytes;
use bulkmark_signature::Canary;
use serde_json::json;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// The name of the file with the line in the milter's state directory.
const FILE: &str = "canary";

/// Members of the group may use the control socket, so they may also send a canary.
const MODE: u32 = 0o640;

/// Print a message that is always bulk here, to test a mail system.
///
/// The message is complete; pipe it to `sendmail -t`. Its first line makes it bulk for the milter of this machine, whatever white lists contain.
/// It is never counted or reported, and appears only in the log: in no metric of messages, and not on the status page. The line is a secret of
/// this site: the milter makes it at its first start and keeps it in its state directory, where root and its group can read it. Exempt clients
/// stay exempt, including local ones: send it from outside. It arrives with the header field "X-Bulkmark: bulk; reason=canary; host=...", or is
/// treated according to actions.bulk in bulkmark.toml(5). With --json it prints an object with from, to and message.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The milter's configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// The sender [default: postmaster at this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    from: Option<String>,
    /// The recipient [default: postmaster at this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    to: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Checks an address, which can then be part of a header field.
pub(super) fn address(text: &str) -> Result<String, String> {
    let atoms = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        !part.is_empty() && part.len() <= 255 && part.chars().all(|c| allowed(c) && !c.is_control())
    };
    match text.rsplit_once('@') {
        Some((local, domain)) if atoms(local) && (atoms(domain) || is_literal(domain)) => Ok(text.to_owned()),
        _ => Err(format!("found {text:?}, expected an address such as postmaster@example.org")),
    }
}

/// Whether the domain is an address in brackets.
fn is_literal(domain: &str) -> bool {
    let inner = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|ip| ip.trim_start_matches("IPv6:").parse::<std::net::IpAddr>().is_ok())
}

/// Reads the canary of the milter with this state directory.
pub(super) fn read(state_dir: &Path) -> anyhow::Result<Canary> {
    let path = state_dir.join(FILE);
    let bytes = StateDirectory::open(state_dir).and_then(|directory| directory.read(FILE));
    let bytes = bytes.with_context(|| {
        let path = path.display();
        format!("cannot read the canary {path}, which the milter makes when it starts; {AS_ROOT}")
    })?;
    String::from_utf8_lossy(&bytes).parse().with_context(|| format!("{} is no canary", path.display()))
}

/// Reads the canary, or makes one if there is none. Without a canary, mail is judged all the same.
pub(super) fn read_or_make(state_dir: &Path) -> Option<Canary> {
    let made = || -> anyhow::Result<Canary> {
        let directory = StateDirectory::open(state_dir)?;
        match directory.file(FILE, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let canary = Canary::new(random_bytes()?);
                directory.replace(FILE, format!("{}\n", canary.line()).as_bytes(), MODE)?;
                Ok(canary)
            }
            _ => read(state_dir),
        }
    };
    made().map_err(|e| log::warn!("no message is a canary: {e:#}")).ok()
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = config::load(&args.config)?.file;
    let canary = read(&file.state_dir)?;
    let host = own_name(&file.hostname);
    let host = Some(&*host).filter(|host| !host.is_empty()).unwrap_or("localhost");
    let address = |given: &Option<String>| given.clone().unwrap_or_else(|| format!("postmaster@{host}"));
    let (from, to) = (address(&args.from), address(&args.to));
    let text = message(&canary, file.header.as_str(), (&from, &to), host)?;
    if args.json {
        print(json!({ "from": from, "to": to, "message": text }))?;
    } else {
        output().write_all(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the message, with LF line ends.
pub(super) fn message(
    canary: &Canary,
    header: &str,
    (from, to): (&str, &str),
    host: &str,
) -> anyhow::Result<String> {
    let id = u128::from_le_bytes(random_bytes().context("no random numbers")?);
    // RFC 5322 has a numeric zone where HTTP has the old name.
    let date = httpdate::fmt_http_date(SystemTime::now()).replace("GMT", "+0000");
    Ok(format!(
        "From: {from}\nTo: {to}\nSubject: bulkmark's canary\nDate: {date}\nMessage-ID: <{id:032x}@{host}>\n\
         MIME-Version: 1.0\nContent-Type: text/plain; charset=us-ascii\n\n\
         {line}\n\n\
         This message tests whether bulkmark is asked about mail on its way. It is bulk by the line above, by whatever\n\
         route it comes, unless its client is exempt. If you see it with a header field\n\
         \"{header}: bulk; reason=canary; ...\", the test has passed. It is counted nowhere.\n",
        line = canary.line()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Checked, MilterFile};
    use bulkmark_mail::RawMessage;
    use bulkmark_policy::{Policies, Traps, WhiteList};
    use bulkmark_types::FederationKey;
    use bulkmark_verdict::{Content, Finding};

    #[test]
    fn the_printed_message_is_a_canary() {
        let canary = Canary::new(random_bytes().unwrap());
        let text = message(&canary, "X-Bulkmark", ("a@example.org", "b@example.net"), "mx.test").unwrap();
        assert!(text.lines().all(|line| line.len() <= 120) && text.is_ascii(), "{text}");
        let raw = RawMessage::from_bytes(text.as_bytes());
        let (mut file, key) = (MilterFile::default(), FederationKey::public());
        let [whitelist, private] = [WhiteList::default(), WhiteList::default()];
        file.signature.canary = Some(canary);
        let content = Content::of(
            &raw,
            &Checked {
                file,
                key,
                whitelist,
                private,
                traps: Traps::default(),
                policies: Policies::default(),
            }
            .into_rules(),
        );
        assert!(matches!(Finding::uncounted(&content), Some(Finding::Canary(_))));
    }

    #[test]
    fn a_milter_makes_its_own_and_keeps_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let [one, two] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        assert!(read(one.path()).unwrap_err().to_string().contains("which the milter makes when it starts"));
        let made = read_or_make(one.path());
        assert!(made.is_some() && made != read_or_make(two.path()));
        assert_eq!((read(one.path()).ok(), read_or_make(one.path())), (made, made));
        let mode = std::fs::metadata(one.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn addresses_are_checked() {
        for good in ["a@example.org", "post.master+x@localhost", "jörg@bücher.example", "a@[192.0.2.1]"] {
            assert_eq!(address(good).as_deref(), Ok(good));
        }
        for bad in ["", "a", "@b", "a@", "a b@c", "a@b\nBcc: x@y", "<a@b>", "a@b, c@d", "a@[b]"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
