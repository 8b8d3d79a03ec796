// SPDX-License-Identifier: GPL-3.0-or-later
//! Entries of white lists that are valid and will hardly match anything: what was written for another program.

use ipnet::IpNet;
use std::io;
use std::path::{Path, PathBuf};

/// Files that are read for one list. A list whose files include one another is refused before it is looked at here.
const MOST_FILES: usize = 1000;

/// Entries that are told of: whoever has more, has seen by then what is wrong.
const MOST_DOUBTS: usize = 100;

/// An entry that will not do what its author wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub what: String,
}

/// The first entries of these files, and of those that they include, that can match nothing. Files that `read` does not give are
/// left out.
#[must_use]
pub fn doubts(files: &[PathBuf], read: &dyn Fn(&Path) -> io::Result<String>) -> Vec<Doubt> {
    let mut waiting: Vec<PathBuf> = files.iter().rev().cloned().collect();
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(path) = waiting.pop() {
        seen += 1;
        let Ok(text) = read(&path) else { continue };
        if seen > MOST_FILES || found.len() >= MOST_DOUBTS {
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
            // Conditions of one entry that must hold together stand between these.
            let conditions = entry.split('&').map(str::trim);
            let what = conditions.filter_map(|condition| {
                let (form, value) = condition.split_once(char::is_whitespace)?;
                doubt(form, value.trim())
            });
            found.extend(what.map(|what| Doubt { path: path.clone(), line: i + 1, what }));
        }
    }
    found.truncate(MOST_DOUBTS);
    found
}

/// What is to be said of one condition.
fn doubt(form: &str, value: &str) -> Option<String> {
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

/// The network that is meant by an address in it, where that is written with the length of a prefix: `192.0.2.7/24`.
#[must_use]
pub fn host_bits(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().ok()?;
    Some(network.trunc()).filter(|meant| *meant != network)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let read = |path: &Path| match path.to_str() {
            Some("/l") => Ok(text.to_owned()),
            Some("/more") => Ok("\nfrom \"a@b.example\"\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let all = doubts(&["/l".into()], &read);
        all.into_iter()
            .map(|doubt| format!("{}:{}: {}", doubt.path.display(), doubt.line, doubt.what))
            .collect()
    }

    #[test]
    fn what_other_programs_understand_matches_nothing_here() {
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
            let told = told(&format!("# comment\n{entry} # *\n"));
            assert!(
                told.len() == 1 && told[0].starts_with("/l:2: ") && told[0].contains(expected),
                "{told:?}"
            );
        }
        assert_eq!(
            told("include more\ninclude none\n"),
            [
                "/more:2: from \"a@b.example\" can never match: quotes are taken as a part of it; write it without them"
            ]
        );
    }

    #[test]
    fn what_can_match_is_no_doubt() {
        let good = "ip 192.0.2.0/24\nip 192.0.2.7\nip 2001:db8::/32\nhost .example.org\nhost mx.example.org\nsender <>\n\
                    sender \"a.b\"@example.org\nsender example.org\nfrom .example.org\nrecipient reader@example.org\n\
                    recipient localhost\nlist-id <news>\nlist-id news.example.org & dkim example.org\n\
                    signature 01010101010101010101010101010101\n\n# host *.example.org\n";
        assert_eq!(told(good), [""; 0]);
    }
}
