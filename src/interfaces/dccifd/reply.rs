// SPDX-License-Identifier: GPL-3.0-or-later
//! What is answered: letters, and a header line with counts in DCC's words.

use super::super::settings::Many;
use super::request::{Request, Shows};
use bulkmark_policy::{Action, Decision, Verdict};
use bulkmark_verdict::{Content, Counted, Finding, Outcome, Rules};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Bytes of the header line: Exim keeps so many.
const LONGEST: usize = 120;

/// What was found of a message.
pub(super) struct Found<'a> {
    pub(super) rules: &'a Rules,
    pub(super) finding: &'a Finding,
    pub(super) outcome: &'a Outcome,
    pub(super) content: Option<&'a Content>,
    /// How often it was reported.
    pub(super) times: usize,
}

/// How the header line is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style<'a> {
    /// In `X-DCC-NAME-Metrics`.
    pub(super) name: &'a str,
    pub(super) many: Many,
    /// The mail server's name.
    pub(super) host: &'a str,
}

/// All that is answered before a message that is returned, and without one.
pub(super) fn reply(request: &Request, found: &Found<'_>, style: Style<'_>) -> String {
    let letter = letter(found.outcome, request.no_reject);
    let leaving: HashSet<&str> = match request.no_reject {
        true => HashSet::new(),
        false => found.outcome.leaving.iter().map(String::as_str).collect(),
    };
    let of = |recipient: &String| if leaving.contains(recipient.as_str()) { 'R' } else { letter };
    let letters: String =
        request.recipients.iter().map(of).chain(std::iter::repeat_n(letter, request.unkept)).collect();
    let mut text = format!("{letter}\n{letters}\n");
    match request.shows {
        Shows::Nothing => (),
        Shows::Header => text += &format!("{}\n\n", header(found, style)),
        Shows::Checksums => text += &format!("{}\n{}\n", header(found, style), table(found, style)),
        Shows::Message => text += &format!("{}\n", header(found, style)),
    }
    text
}

const fn letter(outcome: &Outcome, no_reject: bool) -> char {
    match outcome.action {
        // What could not be judged comes again: that is no word of bulk, which is what `no-reject` is about.
        Action::Tempfail if !no_reject || matches!(outcome.verdict, Verdict::Unknown) => 'T',
        // There is no word for what is discarded; that its sender learns of it is the lesser evil.
        Action::Reject | Action::Discard if !no_reject => 'R',
        _ => 'A',
    }
}

/// The header line, without its end.
fn header(found: &Found<'_>, style: Style<'_>) -> String {
    let name = if is_wanted(found.finding) { "" } else { style.name };
    let id = found.rules.key.id() % 32_768;
    let rest = match found.finding {
        Finding::Counted(_) if is_wanted(found.finding) => "; whitelist".to_owned(),
        Finding::Counted(counted) => {
            let bulk = if counted.decision.verdict.is_unwanted() { " bulk" } else { "" };
            let counts = counts(found.rules, counted, style.many);
            let told = counts.iter().fold(String::new(), |mut text, (kind, count)| {
                let _ = write!(text, " {kind}={count}");
                text
            });
            format!(" {id};{bulk}{told}")
        }
        Finding::Canary(_) => format!(" {id}; bulk Body=many Fuz1=many Fuz2=many"),
        Finding::Exempt(reason) => format!(" {id}; exempt {reason}"),
        Finding::Unknown(reason, _) => format!(" {id}; unknown {reason}"),
    };
    let begin = format!("X-DCC-{name}-Metrics: ");
    let is_plain = |c: &char| c.is_ascii_graphic() && *c != ';';
    let room = LONGEST.saturating_sub(begin.len() + rest.len());
    let host: String = style.host.chars().filter(is_plain).take(room).collect();
    begin + &host + &rest
}

fn is_wanted(finding: &Finding) -> bool {
    matches!(
        finding,
        Finding::Counted(Counted { decision: Decision { verdict: Verdict::Whitelisted, .. }, .. })
    )
}

/// The counts in DCC's words: that of the same body, and twice that of what is like it.
fn counts(rules: &Rules, counted: &Counted, many: Many) -> Vec<(&'static str, String)> {
    let thresholds = rules.terms(counted.decision.by).thresholds;
    let decision = &counted.decision;
    // A client refuses what has "many"; what is held is only to be marked.
    let is_spam = decision.verdict == Verdict::Spam && decision.held.is_none();
    let is_bulk = many == Many::Bulk && decision.verdict == Verdict::Bulk && decision.held.is_none();
    let shown = |count: u32, is_reached: bool| {
        if is_spam || is_bulk && is_reached { "many".to_owned() } else { count.to_string() }
    };
    let body = counted.counts.body.map(|count| shown(count, count >= thresholds.body.get()));
    let near = counted.counts.near.map(|count| shown(count, count >= thresholds.near.get()));
    let all = [("Body", body), ("Fuz1", near.clone()), ("Fuz2", near)];
    all.into_iter().filter_map(|(kind, count)| Some((kind, count?))).collect()
}

/// The table of checksums: our signatures in the place of DCC's.
fn table(found: &Found<'_>, style: Style<'_>) -> String {
    let spam = if found.outcome.verdict == Verdict::Spam { " spam" } else { "" };
    let reported = format!("reported: {}{spam}", found.times);
    let mut text = format!("{reported:>26} {:<35} {:>7}\n", "checksum", "server");
    let (Finding::Counted(counted), Some(content)) = (found.finding, found.content) else { return text };
    for (kind, count) in counts(found.rules, counted, style.many) {
        let of = if kind == "Body" {
            content.signatures.body.ok()
        } else {
            content.signatures.near.reported().next()
        };
        let Some(signature) = of else { continue };
        let digits = signature.to_string();
        let hex: Vec<_> = (0..4).filter_map(|at| digits.get(8 * at..8 * at + 8)).collect();
        let hex = hex.join(" ");
        let _ = writeln!(text, "{kind:>25}: {hex:<35} {count:>7}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_mail::RawMessage;
    use bulkmark_policy::{Backings, Counts, Weight};
    use bulkmark_verdict::Envelope;

    const RAW: &[u8] = b"From: a@friends.test\n\nA letter of eight words, or more than these.\n";

    /// What people call spam is "many", by which clients refuse it, unless a recipient wrote to its sender.
    #[test]
    fn what_is_held_is_not_many() {
        let rules = Rules::default();
        let envelope = Envelope {
            sender: Some("a@friends.test".to_owned()),
            host: Some("mx.friends.test".to_owned()),
            recipients: vec!["anna@box.test".to_owned()],
            ..Envelope::default()
        };
        let mut content = Content::of(&RawMessage::from_bytes(RAW).unwrap(), &rules);
        let known = Counts { body: Some(3), near: None, spam: Some(Weight::of_units(24)) };
        let body = |content: &Content| {
            let finding = Counted::find(&rules, &envelope, content, (known, Backings::default()), None);
            let Finding::Counted(counted) = &finding else { panic!("{finding:?}") };
            assert_eq!(counted.decision.verdict, Verdict::Spam);
            counts(&rules, counted, Many::default())
        };
        assert_eq!(body(&content), [("Body", "many".to_owned())]);
        content.correspondences = content.possible_correspondences(&envelope);
        assert_eq!(body(&content), [("Body", "3".to_owned())]);
    }
}
