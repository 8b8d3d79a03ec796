// SPDX-License-Identifier: GPL-3.0-or-later
//! The answer: letters, and a header line with counts in DCC's terms.

use super::super::settings::Many;
use super::request::{Request, Shows};
use bulkmark_policy::{Action, Decision, Verdict};
use bulkmark_verdict::{Content, Counted, Finding, Outcome, Rules};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The most bytes of the header line: Exim keeps as many.
const LONGEST: usize = 120;

/// The judgement of a message.
pub(super) struct Found<'a> {
    pub(super) rules: &'a Rules,
    pub(super) finding: &'a Finding,
    pub(super) outcome: &'a Outcome,
    pub(super) content: Option<&'a Content>,
    /// The number of its reports.
    pub(super) times: usize,
}

/// The style of the header line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style<'a> {
    /// The NAME in `X-DCC-NAME-Metrics`.
    pub(super) name: &'a str,
    pub(super) many: Many,
    /// The mail server's name.
    pub(super) host: &'a str,
}

/// The whole answer, without a returned message.
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
        // A message that could not be judged will return: this is no refusal of bulk, which `no-reject` forbids.
        Action::Tempfail if !no_reject || matches!(outcome.verdict, Verdict::Unknown) => 'T',
        // There is no letter for discarding; that the sender learns of it is the lesser evil.
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
            let shown = counts.iter().fold(String::new(), |mut text, (kind, count)| {
                let _ = write!(text, " {kind}={count}");
                text
            });
            format!(" {id};{bulk}{shown}")
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

/// The counts in DCC's terms: the body count, and twice the near count.
fn counts(rules: &Rules, counted: &Counted, many: Many) -> Vec<(&'static str, String)> {
    let thresholds = rules.terms(counted.decision.by).thresholds;
    let decision = &counted.decision;
    // Clients refuse a message with "many", and a held one must only be marked.
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

/// The table of checksums, with our signatures instead of DCC's.
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

    /// Reported spam is "many", by which clients refuse it, unless a recipient wrote to its sender.
    #[test]
    fn held_messages_are_not_many() {
        let rules = Rules::default();
        let envelope = Envelope {
            sender: Some("a@friends.test".to_owned()),
            host: Some("mx.friends.test".to_owned()),
            recipients: vec!["anna@box.test".to_owned()],
            ..Envelope::default()
        };
        let mut content = Content::of(&RawMessage::from_bytes(RAW), &rules);
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
