// SPDX-License-Identifier: GPL-3.0-or-later
//! The installed configurations: those of conf/reference with one sentence for each key.

/// The text before the first section of milter.toml.
const MILTER: &str = r#"# SPDX-License-Identifier: GPL-3.0-or-later
# /etc/bulkmark/milter.toml: the configuration of `bulkmark milter`, and of the commands that ask it. Every key has its default here;
# keys without one are commented out. bulkmark.toml(5) has all that there is to say of a key.
#
# Write your own values into files of their own, /etc/bulkmark/milter.d/*.toml, which are laid over this one; then upgrades have nothing
# to ask. Check with `bulkmark config check`, apply with `systemctl reload bulkmark-milter`; keys marked "at start" need a restart.
#
# A new site looks at these first:
#   listen                       where Postfix or Sendmail asks
#   relays, exempt-networks      your own mail servers in front of this one, and mail that is not judged
#   thresholds.body, .near       how many copies are bulk
#   actions.bulk, .rehearse      what happens to bulk, and a rehearsal of it
#   whitelist.files              bulk that is wanted
#   upstream                     servers that share counts
#   ledger.capacity              for more than a million signatures a day
#   status.listen                the page and the metrics
"#;

/// The text before the first section of server.toml.
const SERVER: &str = r#"# SPDX-License-Identifier: GPL-3.0-or-later
# /etc/bulkmark/server.toml: the configuration of `bulkmark server` and `bulkmark client`. Every key has its default here; keys without
# one are commented out. bulkmark.toml(5) has all that there is to say of a key.
#
# Write your own values into files of their own, /etc/bulkmark/server.d/*.toml, which are laid over this one. Check with
# `bulkmark config check --server`; all takes effect at the start, but for certificate and key, which SIGHUP rereads, and clients.
#
# A new server looks at these first: listen, [tls] cert and key, peer, ledger.capacity, ledger.federation-key-file, status.listen.
"#;

/// The short form of `reference`, the text of conf/reference/`name`.
pub(crate) fn of(name: &str, reference: &str) -> String {
    let (_, body) = reference.split_once("\n## ").expect("a section");
    let mut short = if name == "server.toml" { SERVER } else { MILTER }.to_owned();
    let mut comment: Vec<&str> = Vec::new();
    let mut was_table = true;
    for line in format!("\n## {body}").lines() {
        match line.strip_prefix("# ").or_else(|| (line == "#").then_some("")) {
            Some(text) => comment.push(text),
            None => {
                let is_table = line.starts_with('[') || line.starts_with("#[");
                if let Some(sentence) = first_sentence(&comment) {
                    if is_table && !short.ends_with("\n\n") {
                        short.push('\n');
                    }
                    wrap(&mut short, &sentence);
                } else if is_table && !was_table && !short.ends_with("\n\n") {
                    short.push('\n');
                }
                comment.clear();
                // There are no empty lines between keys, so that a table is seen as one.
                if let Some(title) = line.strip_prefix("## ") {
                    short += &format!("\n## {title}\n\n");
                } else if !line.is_empty() {
                    short += line;
                    short.push('\n');
                }
                was_table = is_table;
            }
        }
    }
    short
}

/// The first sentence of a comment, with the values that later ones name. "At start" follows it.
fn first_sentence(comment: &[&str]) -> Option<String> {
    let text = comment.join(" ");
    let begun = text.strip_prefix("At start").and_then(|rest| rest.split_once(". "));
    let (text, start) = match begun {
        Some((how, rest)) => (rest, format!(" At start{how}.")),
        None => (&*text, String::new()),
    };
    let is_new = |rest: &str| {
        !rest.starts_with(|c: char| c.is_lowercase())
            || rest.starts_with("true: ")
            || rest.starts_with("false: ")
    };
    let end = text.match_indices(". ").map(|(at, _)| at + 1).find(|&at| is_new(&text[at + 1..]));
    let (sentence, rest) = text.split_at(end.unwrap_or(text.len()));
    let sentence = sentence.trim();
    let values = values(rest);
    let all = if values.is_empty() {
        sentence.to_owned()
    } else {
        format!("{}: {values}.", sentence.trim_end_matches('.'))
    };
    (!sentence.is_empty()).then(|| format!("{all}{start}"))
}

/// The values explained by a text, as in `"mark": deliver it. "reject": refuse it.`
fn values(text: &str) -> String {
    let names = text.match_indices("\": ").filter_map(|(at, _)| {
        let open = text[..at].rfind('"')?;
        let before = text[..open].trim_end();
        let is_first = before.is_empty() || before.ends_with(['.', ';']);
        is_first.then(|| text[open..=at].to_owned())
    });
    let mut names: Vec<_> = names.collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        _ => String::new(),
    }
}

/// Adds a comment, in lines of at most 130 characters.
fn wrap(out: &mut String, text: &str) {
    let mut line = "#".to_owned();
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > 130 {
            out.push_str(&line);
            out.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
