// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark explain`

use super::asker::{Asker, Judged, MessageArgs};
use super::output::{output, print};
use super::proofs::Statement;
use super::show::time;
use crate::ledger::Shares;
use crate::mail::{File, RawMessage, Text, Visitor};
use crate::policy::{Held, Verdict, Weight};
use crate::signature::Signature;
use crate::signature::near::{self, Bound, Judgement, Known, Passage, Position, Scheme, Thing};
use crate::verdict::{Content, Finding, FromWhere, Missed, because};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Explain why a message is bulk or not.
///
/// Prints every signature of the message, what it was made from, how often and when it was seen, and the verdict that
/// follows. Nothing is counted. Asks the running milter as "check" does.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    message: MessageArgs,
}

/// Everything that is told.
#[derive(Serialize)]
struct Explanation {
    verdict: String,
    because: String,
    /// The policy that decides, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The one of another recipient for whose sake less is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    milder: Option<String>,
    thresholds: Thresholds,
    counts: Counted,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist: Option<String>,
    /// Entries of the white list that nearly match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<Missed>,
    /// What mail servers say of DKIM, SPF and DMARC, or what was verified here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authentication: Vec<Statement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<FromWhere>,
    /// Why it is only marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Explained>,
    near: Vec<Explained>,
    /// What people say of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    people: Option<People>,
}

/// What people say, in units of an eighth of a person.
#[derive(Serialize)]
struct People {
    /// In people whose word weighs whole.
    weight: String,
    nominated: Shares,
    revoked: Shares,
}

#[derive(Serialize)]
struct Thresholds {
    body: u32,
    near: u32,
    spam: u32,
}

#[derive(Serialize)]
struct Counted {
    body: Option<u32>,
    near: Option<u32>,
}

/// One signature.
#[derive(Serialize)]
struct Explained {
    signature: String,
    made_of: String,
    /// How often it was seen.
    count: u32,
    /// Of what the count is made up.
    seen: Shares,
    /// Messages in which it was found below new text.
    strays: u32,
    /// Whether it says anything of this message.
    counts: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let args = &args.message;
    let (asker, message) = args.read()?;
    let explanation = explain(&asker, &message)?;
    if args.json {
        print(serde_json::to_string(&explanation)?)?;
    } else {
        write!(output(), "{}: {}", args.file.display(), for_people(&explanation))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(asker: &Asker, message: &RawMessage) -> anyhow::Result<Explanation> {
    let content = Content::claiming(message, &asker.rules, asker.envelope.sender.as_deref());
    let signatures = &content.signatures;
    let Judged { finding, inquiry, said, content: proven, verified } = asker.judge(&content, message)?;
    let (counts, judged) = (inquiry.counts(), inquiry.near());
    let by = match &finding {
        Finding::Counted(counted) => counted.decision.by,
        _ => asker.rules.parties(&asker.envelope).first().map(|party| party.by).unwrap_or_default(),
    };
    let limits = asker.rules.terms(by).thresholds;
    let (body, near, spam) = (limits.body.get(), limits.near.get(), limits.spam.get());
    let thresholds = Thresholds { body, near, spam };
    let (verdict, mut because) = because(&finding, limits, signatures.body.err());
    if verdict == Verdict::Clean {
        let why = match judged {
            Some(judged) => judged.bound.map(why),
            None => asker.rules.signature.near.then_some(NO_NEAR),
        };
        because.extend(why.into_iter().flat_map(|why| ["; ", why]));
    }
    let decision = match &finding {
        Finding::Counted(counted) => Some(&counted.decision),
        Finding::Canary(_) | Finding::Exempt(_) | Finding::Unknown(..) => None,
    };
    let whitelist = decision.and_then(|decision| decision.whitelist.as_ref()).map(ToString::to_string);
    let missed =
        if whitelist.is_none() { Missed::all(&asker.rules, &asker.envelope, &proven) } else { Vec::new() };
    let sources = decision.and_then(|decision| FromWhere::of(&asker.rules, &asker.envelope, decision));
    let body = match signatures.body {
        Ok(signature) => {
            let known = Known { count: counts.body.unwrap_or(0), strays: 0 };
            Some(explained(asker, signature, outline(message), known, true)?)
        }
        Err(_) => None,
    };
    let people = said.map(|said| People {
        weight: said.weight.to_string(),
        nominated: said.nominated,
        revoked: said.revoked,
    });
    let near = judged.map_or_else(|| Ok(Vec::new()), |judged| explain_near(message, asker, judged))?;
    Ok(Explanation {
        verdict: verdict.to_string(),
        because,
        policy: asker.rules.name(by).map(str::to_owned),
        milder: decision.and_then(|decision| asker.rules.name(decision.milder?)).map(str::to_owned),
        thresholds,
        counts: Counted { body: counts.body, near: counts.near },
        whitelist,
        missed,
        authentication: Statement::all(asker, message, verified),
        sources,
        held: decision.and_then(|decision| decision.held).map(|held| held.to_string()),
        body,
        near,
        people,
    })
}

fn explained(
    asker: &Asker,
    signature: Signature,
    made_of: String,
    Known { count, strays }: Known,
    counts: bool,
) -> anyhow::Result<Explained> {
    let seen = asker.share(signature)?;
    Ok(Explained { signature: signature.to_string(), made_of, count, seen, strays, counts })
}

/// Why a message has no near signatures.
const NO_NEAR: &str = "it has no near signatures, since it has too little text of its own for them, and a picture, file or \
                       link that stands below a few words is not the message";

/// Why text that was seen often does not make a message bulk, for a postmaster.
const fn why(bound: Bound) -> &'static str {
    match bound {
        Bound::Letter => {
            "new text stands above what was seen before, as in a letter above a signature or a disclaimer"
        }
        Bound::Block => {
            "what it shares with others keeps coming below new text, as a signature, a disclaimer or a form does"
        }
        Bound::Part => "what it shares with others is too small a part of it",
    }
}

fn explain_near(message: &RawMessage, asker: &Asker, judged: &Judgement) -> anyhow::Result<Vec<Explained>> {
    let key = &asker.rules.key;
    let (near, positions) = near::traced(message, key);
    let mut all = Vec::new();
    for (slot, said) in near.slots.iter().zip(&judged.slots) {
        let (passage, signature) = slot.passages[said.passage];
        all.push(explained(asker, signature, words(&passage, &positions), said.known, said.counts)?);
    }
    for (&(thing, signature), &known) in near.things.iter().zip(&judged.things) {
        let made_of = match thing {
            Thing::File(n) => format!("attached file {}, its beginning", n + 1),
            Thing::Links => "where all its links lead".to_owned(),
            Thing::Path(n) => format!("picture {} on the net, its path", n + 1),
            Thing::Hidden => "text that its style hides".to_owned(),
            Thing::Band(n) => format!("what its picture looks like, {} of 7", n + 1),
        };
        all.push(explained(asker, signature, made_of, known, !known.is_block())?);
    }
    Ok(all)
}

/// The words among which those of a passage are, and where they stand.
fn words(passage: &Passage, positions: &[Position]) -> String {
    let reach = Scheme::SHIPPED.reach().min(positions.len());
    let words: Vec<&Position> = positions.iter().cycle().skip(passage.at).take(reach).collect();
    let text = words.iter().map(|place| &*place.word).collect::<Vec<_>>().join(" ");
    match (words.first(), words.last()) {
        (Some(first), Some(last)) if first.part == last.part && first.line < last.line => {
            format!("part {}, lines {} to {}: {text}", first.part, first.line, last.line)
        }
        (Some(first), _) => format!("part {}, from line {} on: {text}", first.part, first.line),
        _ => text,
    }
}

fn for_people(explanation: &Explanation) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(text, "{}, since {}", explanation.verdict, explanation.because);
    if let Some(policy) = &explanation.policy {
        let _ = writeln!(text, "by the policy {policy}");
    }
    if let Some(milder) = &explanation.milder {
        let _ = writeln!(text, "for another recipient the policy {milder} is milder, so it is only marked");
    }
    if let Some(sources) = &explanation.sources {
        let _ = writeln!(text, "{}", sources.sentence());
    }
    if explanation.held == Some(Held::Correspondent.to_string()) {
        let _ = writeln!(text, "{}", Held::Correspondent.why());
    }
    for missed in &explanation.missed {
        let _ = writeln!(text, "{missed}");
    }
    for statement in &explanation.authentication {
        let _ = writeln!(text, "{statement}");
    }
    let mut kind = |name: &str, of: &[&Explained]| {
        for explained in of {
            let _ = writeln!(text, "\n{name} {}: {}", explained.signature, times(explained.count));
            let _ = writeln!(text, "  {}", explained.made_of);
            for (who, shares) in [("here", &explained.seen.own), ("by others", &explained.seen.others)] {
                for share in shares {
                    let _ = writeln!(text, "  window of {}: {} {who}", time(share.window), share.count);
                }
            }
            if explained.seen.waiting > 0 {
                let _ = writeln!(text, "  waiting for a server: {}", explained.seen.waiting);
            }
            if let Some(asked) = explained.seen.asked {
                let _ = writeln!(text, "  the server counts {asked} in all");
            }
            if explained.strays > 0 {
                let _ = writeln!(text, "  of these below new text: {}", explained.strays);
            }
            if !explained.counts {
                text.push_str("  so it does not count\n");
            }
        }
    };
    kind("body", &explanation.body.iter().collect::<Vec<_>>());
    kind("near", &explanation.near.iter().collect::<Vec<_>>());
    if let Some(people) = &explanation.people {
        text.push_str(&of_people(people));
    }
    if explanation.verdict != Verdict::Exempt.to_string() {
        text.push_str(
            "\nWhat is not told of its envelope (--ip, --sender, --recipient, --login, --listener) is not known here; white lists and \
             policies may name it.\n",
        );
    }
    text
}

/// How much was said, by how many, and when; never by whom.
fn of_people(people: &People) -> String {
    let mut text = format!("\npeople call it spam, with the weight {}\n", people.weight);
    for (what, shares) in [("nominated", &people.nominated), ("revoked", &people.revoked)] {
        let weight = |units: u32| Weight::of_units(units);
        for (who, shares) in [("here", &shares.own), ("by others", &shares.others)] {
            for share in shares {
                let _ = writeln!(text, "  {what} from {}: {} {who}", time(share.window), weight(share.count));
            }
        }
        if shares.waiting > 0 {
            let _ = writeln!(text, "  {what}, waiting for a server: {}", weight(shares.waiting));
        }
        if shares.reporters > 0 {
            let _ = writeln!(
                text,
                "  {what} by users here: {}, in all {}",
                shares.reporters,
                weight(shares.said)
            );
        }
    }
    text
}

fn times(count: u32) -> String {
    match count {
        0 => "never seen".to_owned(),
        1 => "seen once".to_owned(),
        n => format!("seen {n} times"),
    }
}

/// Of what parts a message is made.
fn outline(message: &RawMessage) -> String {
    let mut outline = Outline(Vec::new());
    message.visit(&mut outline);
    outline.0.join("; ")
}

struct Outline(Vec<String>);

impl Visitor for Outline {
    fn text(&mut self, text: Text<'_>) {
        self.0.push(format!("text of {} lines", text.shown.lines().count()));
    }

    fn html(&mut self, html: Text<'_>) {
        self.0.push(format!("HTML of {} bytes", html.shown.len()));
    }

    fn file(&mut self, file: File<'_>) {
        self.0.push(format!("file of {} bytes", file.shown.len()));
    }

    fn message(&mut self, _fields: &[&[u8]]) {
        self.0.push("enclosed message:".to_owned());
    }

    fn message_end(&mut self) {}
}
