// SPDX-License-Identifier: GPL-3.0-or-later
//! Entries of white lists that are valid but hardly match anything, because they are written for another program.

use ipnet::IpNet;
use std::io;
use std::path::{Path, PathBuf};

/// The most files that are read for one list. Lists whose files include one another are refused earlier.
const MAX_FILES: usize = 1000;

/// The most entries that are reported: they are enough to see the mistake.
const MAX_REPORTED: usize = 100;

/// An entry that does not do what its author wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatchable {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The problem, and a better entry.
    pub what: String,
}

/// The first entries that can match nothing, of these files and of those that they include. Files that `read` cannot give are skipped.
#[must_use]
pub fn unmatchable(files: &[PathBuf], read: &dyn Fn(&Path) -> io::Result<String>) -> Vec<Unmatchable> {
    let mut waiting: Vec<PathBuf> = files.iter().rev().cloned().collect();
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(path) = waiting.pop() {
        seen += 1;
        let Ok(text) = read(&path) else { continue };
        if seen > MAX_FILES || found.len() >= MAX_REPORTED {
            break;
        }
        for (i, line) in text.lines().enumerate() {
            let entry = line.split_once('#').map_or(line, |(entry, _)| entry).trim();
            let (form, value) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
            if form == "include" {
                let value = value.trim();
                waiting.push(path.parent().map_or_else(|| value.into(), |folder| folder.join(value)));
                continue;
            }
            // `&` joins the conditions of one entry.
            let conditions = entry.split('&').map(str::trim);
            let what = conditions.filter_map(|condition| {
                let (form, value) = condition.split_once(char::is_whitespace)?;
                problem(form, value.trim())
            });
            found.extend(what.map(|what| Unmatchable { path: path.clone(), line: i + 1, what }));
        }
    }
    found.truncate(MAX_REPORTED);
    found
}

/// The problem of one condition.
fn problem(form: &str, value: &str) -> Option<String> {
    let is_name =
        matches!(form, "host" | "sender" | "from" | "recipient" | "list-id" | "dkim" | "spf" | "dmarc");
    let bare = value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value);
    if form == "ip" {
        return host_bits(value)
            .map(|network| format!("{value} has bits of a host, and is taken as {network}"));
    }
    if !is_name || bare.is_empty() {
        return None;
    }
    let never = |why: &str| Some(format!("{form} {value} can never match: {why}"));
    let quoted = |quote| bare.len() > 1 && bare.starts_with(quote) && bare.ends_with(quote);
    if quoted('"') || quoted('\'') {
        never("quotes are taken as a part of it; write it without them")
    } else if bare.starts_with('/') && bare[1..].contains('/') {
        never("there are no regular expressions; write a name, or .domain for all below a domain")
    } else if let Some(domain) = bare.strip_prefix("*.").filter(|domain| !domain.contains('*')) {
        never(&format!("there is no *; write .{domain} for all below {domain}"))
    } else if let Some(domain) = bare.strip_prefix("*@").filter(|domain| !domain.contains('*')) {
        never(&format!("there is no *; write {domain} for all of it"))
    } else if bare.contains('*') {
        never("there is no *; write a domain, or .domain for all below one")
    } else if bare.ends_with([',', ';']) {
        never("an entry has one value; write each on a line of its own")
    } else if form == "host" && bare.contains('@') {
        never("a host's name has no @")
    } else if form == "host" && bare.parse::<std::net::IpAddr>().is_ok() {
        never(&format!("it is an address; write ip {bare}"))
    } else if matches!(form, "sender" | "from" | "recipient")
        && !bare.contains(['.', '@', ':'])
        && !bare.eq_ignore_ascii_case("localhost")
    {
        never(&format!("it is taken as a domain; write {bare}@ and the domain"))
    } else {
        None
    }
}

/// The network of an address with a prefix length and host bits, such as `192.0.2.7/24`.
#[must_use]
pub fn host_bits(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().ok()?;
    Some(network.trunc()).filter(|meant| *meant != network)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let read = |path: &Path| match path.to_str() {
            Some("/l") => Ok(text.to_owned()),
            Some("/more") => Ok("\nfrom \"a@b.example\"\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let all = unmatchable(&["/l".into()], &read);
        all.into_iter()
            .map(|problem| format!("{}:{}: {}", problem.path.display(), problem.line, problem.what))
            .collect()
    }

    #[test]
    fn entries_for_other_programs_are_reported() {
        for (entry, expected) in [
            ("host *.example.org", "there is no *; write .example.org for all below example.org"),
            ("sender *@example.org", "there is no *; write example.org for all of it"),
            ("from news-*@example.org", "there is no *; write a domain"),
            ("from \"news@example.org\"", "quotes are taken as a part of it"),
            ("list-id '<news.example.org>'", "quotes are taken as a part of it"),
            ("sender /^bounce-/", "there are no regular expressions"),
            ("sender /@example\\.org$/i", "there are no regular expressions"),
            ("recipient reader", "it is taken as a domain; write reader@ and the domain"),
            ("sender a@example.org,", "an entry has one value"),
            ("host 192.0.2.7", "it is an address; write ip 192.0.2.7"),
            ("host a@example.org", "a host's name has no @"),
            ("ip 192.0.2.7/24", "192.0.2.7/24 has bits of a host, and is taken as 192.0.2.0/24"),
            ("list-id <news.example.org> & dkim *.example.org", "write .example.org"),
        ] {
            let lines = shown(&format!("# comment\n{entry} # *\n"));
            assert!(
                lines.len() == 1 && lines[0].starts_with("/l:2: ") && lines[0].contains(expected),
                "{lines:?}"
            );
        }
        assert_eq!(
            shown("include more\ninclude none\n"),
            [
                "/more:2: from \"a@b.example\" can never match: quotes are taken as a part of it; write it without them"
            ]
        );
    }

    #[test]
    fn entries_that_can_match_are_not_reported() {
        let good = "ip 192.0.2.0/24\nip 192.0.2.7\nip 2001:db8::/32\nhost .example.org\nhost mx.example.org\nsender <>\n\
                    sender \"a.b\"@example.org\nsender example.org\nfrom .example.org\nrecipient reader@example.org\n\
                    recipient localhost\nlist-id <news>\nlist-id news.example.org & dkim example.org\n\
                    signature 01010101010101010101010101010101\n\n# host *.example.org\n";
        assert_eq!(shown(good), [""; 0]);
    }
}
