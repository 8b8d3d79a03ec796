// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark canary`

use crate::ledger::random_bytes;
use crate::signature::CANARY;
use anyhow::Context;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

/// Print a message that is always bulk, to test a mail system.
///
/// It is complete; pipe it to sendmail -t. A line in its body makes it bulk wherever bulkmark judges it, whatever white
/// lists say; it is never counted. Exempt clients stay exempt: send it from outside.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sender [default: postmaster at this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    from: Option<String>,
    /// The recipient [default: postmaster at this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    to: Option<String>,
}

/// An address that can stand in a header field as it is.
fn address(text: &str) -> Result<String, String> {
    let atoms = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        !part.is_empty() && part.len() <= 255 && part.chars().all(|c| allowed(c) && !c.is_control())
    };
    match text.rsplit_once('@') {
        Some((local, domain)) if atoms(local) && (atoms(domain) || is_literal(domain)) => Ok(text.to_owned()),
        _ => Err(format!("found {text:?}, expected an address such as postmaster@example.org")),
    }
}

/// An address in brackets in the place of a domain.
fn is_literal(domain: &str) -> bool {
    let inner = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|ip| ip.trim_start_matches("IPv6:").parse::<std::net::IpAddr>().is_ok())
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost");
    let address = |given: &Option<String>| given.clone().unwrap_or_else(|| format!("postmaster@{host}"));
    std::io::stdout().write_all(message(&address(&args.from), &address(&args.to), host)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The message, with LF line ends.
pub(super) fn message(from: &str, to: &str, host: &str) -> anyhow::Result<String> {
    let id = u128::from_le_bytes(random_bytes().context("no random numbers")?);
    // RFC 5322 has numbers where HTTP has the old name.
    let date = httpdate::fmt_http_date(SystemTime::now()).replace("GMT", "+0000");
    Ok(format!(
        "From: {from}\nTo: {to}\nSubject: bulkmark's canary\nDate: {date}\nMessage-ID: <{id:032x}@{host}>\n\
         MIME-Version: 1.0\nContent-Type: text/plain; charset=us-ascii\n\n\
         This message tests whether bulkmark is asked about mail on its way. It is bulk by the following line, by\n\
         whatever route it comes, unless its client is exempt:\n\n{CANARY}\n\n\
         If you see it with a header field \"X-Bulkmark: bulk; reason=canary; ...\", the test has passed. It is counted\n\
         nowhere.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Checked, MilterFile};
    use crate::mail::RawMessage;
    use crate::policy::WhiteList;
    use crate::signature::FederationKey;
    use crate::verdict::{Content, Finding};

    #[test]
    fn what_is_printed_is_a_canary() {
        let text = message("a@example.org", "b@example.net", "mx.test").unwrap();
        assert!(text.lines().all(|line| line.len() <= 120) && text.is_ascii(), "{text}");
        let raw = RawMessage::from_bytes(text.as_bytes()).unwrap();
        let (file, key, whitelist) = (MilterFile::default(), FederationKey::public(), WhiteList::default());
        let content = Content::of(&raw, &Checked { file, key, whitelist }.into_rules());
        assert!(matches!(Finding::uncounted(&content), Some(Finding::Canary(_))));
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
