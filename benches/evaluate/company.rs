// SPDX-License-Identifier: GPL-3.0-or-later
//! The mail of synthetic companies: letters and programs' mail that have blocks in common, and mailings; before and after their
//! blocks became known.

use crate::client::{PROVIDER, STRANGER};
use crate::counts::{AT, Share};
use crate::figures::{Wish, both};
use crate::generated::python;
use crate::labelled::{LabelledError, Table};
use crate::lists;
use crate::runs::{Bench, Job};
use crate::stream::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// Optional mail before the rest: see `firms.py`.
const BEFORE: [&str; 4] = ["", "to25", "alone", "beneath"];

/// The mail of one seed.
struct Mail {
    before: BTreeMap<String, Vec<Message>>,
    messages: Vec<Message>,
    /// For each of the messages.
    about: Vec<About>,
}

struct About {
    kind: String,
    recipients: usize,
    words: usize,
    blocks: Vec<String>,
    /// The mailing of this copy; empty for messages that were sent to one recipient.
    group: String,
}

impl About {
    fn is_letter(&self, words: std::ops::Range<usize>) -> bool {
        matches!(&*self.kind, "letter" | "reply") && words.contains(&self.words)
    }

    fn has(&self, block: &str) -> bool {
        self.is_letter(0..usize::MAX) && self.blocks.iter().any(|one| one == block)
    }
}

/// A selection of a run's counts.
type Way = for<'a> fn(&'a Run<'_>) -> &'a [u32];

/// All messages at the threshold, and the refused ones among them.
const WAYS: [Way; 2] = [|run| &run.counts, |run| &run.refused];

/// A figure of one mailing.
type OfMailing = fn(&[u32]) -> Share;

/// A class of the mail that was not a mailing.
type Row = (&'static str, fn(&About) -> bool);

const LETTERS: [Row; 5] = [
    ("letters, replies: 3 to 9 own words", |a| a.is_letter(0..10)),
    ("letters, replies: 10 to 19 own words", |a| a.is_letter(10..20)),
    ("letters, replies: 20 to 99 own words", |a| a.is_letter(20..100)),
    ("letters, replies: 100 own words or more", |a| a.is_letter(100..usize::MAX)),
    ("letters, replies: 10 own words or more", |a| a.is_letter(10..usize::MAX)),
];

const OTHERS: [Row; 9] = [
    ("  of these with a signature", |a| a.has("signature")),
    ("  with a long signature", |a| a.has("signature-long")),
    ("  with a disclaimer", |a| a.has("disclaimer")),
    ("  with an enclosed logo", |a| a.has("logo-embedded")),
    ("  with a remote logo", |a| a.has("logo-remote")),
    ("  with links to social networks", |a| a.has("social")),
    ("invitations", |a| a.kind == "invitation"),
    ("invoices and tickets, no aim", |a| matches!(&*a.kind, "invoice" | "ticket")),
    ("all of these", |_| true),
];

/// One stream of mail and its counts; and the same where messages that are only marked count as below the threshold.
struct Run<'a> {
    mail: &'a Mail,
    counts: Vec<u32>,
    refused: Vec<u32>,
}

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    bench.existing("streams/company.py")?;
    let lists = lists::files(bench)?;
    let make = |seed| Mail::make(bench, seed, &lists[0]);
    let mails = (1..=bench.seeds).map(make).collect::<Result<Vec<_>, _>>()?;
    let runs = BEFORE.map(|before| runs(bench, &mails, before));
    println!("company mail: {} seeds, {} keys, mean and worst", bench.seeds, bench.keys.len());
    println!();
    false_bulk(&runs[0]);
    println!();
    mailings(&runs[0]);
    println!();
    known_blocks(&runs);
    Ok(())
}

/// All mails under all keys.
fn runs<'a>(bench: &Bench, mails: &'a [Mail], before: &str) -> Vec<Run<'a>> {
    let all: Vec<_> = mails.iter().flat_map(|mail| bench.keys.iter().map(move |key| (mail, key))).collect();
    let job = |&(mail, key): &(&'a Mail, _)| Job { key, parts: vec![mail.before(before), &mail.messages] };
    let (counts, refused) = bench.highest(&all.iter().map(job).collect::<Vec<_>>());
    let of_mail = |((&(mail, _), counts), refused): ((&(&'a Mail, _), Vec<u32>), Vec<u32>)| {
        let of = |counts: Vec<u32>| counts[mail.before(before).len()..].to_vec();
        Run { mail, counts: of(counts), refused: of(refused) }
    };
    all.iter().zip(counts).zip(refused).map(of_mail).collect()
}

fn false_bulk(runs: &[Run<'_>]) {
    let title = "false bulk: at 20, for 10,000 messages";
    println!("{title:<44}{:>9}{:>10}{:>10}{:>10}{:>10}", "messages", "", "worst", "refused", "worst");
    for row in LETTERS.iter().chain(&OTHERS) {
        let per_10_000 = |counts: Way| -> Vec<f64> {
            runs.iter().map(|run| run.innocent(row, counts(run)).per_10_000()).collect()
        };
        let shares: Vec<Share> = runs.iter().map(|run| run.innocent(row, &run.counts)).collect();
        let columns = WAYS.map(|way| both(&per_10_000(way), Wish::Low, 1)).concat();
        println!("{:<44}{:>9}{columns}", row.0, messages(&shares));
    }
}

fn mailings(runs: &[Run<'_>]) {
    println!(
        "{:<44}{:>9}{:>10}{:>10}{:>10}{:>10}",
        "mailings, %", "messages", "", "worst", "refused", "worst"
    );
    let rows: [(&str, OfMailing); 2] = [
        ("copies that could be at 20 and are", Share::at_threshold),
        ("copies beyond the first, joined", Share::joined),
    ];
    for (name, share) in rows {
        let shares =
            |way: Way| -> Vec<Share> { runs.iter().map(|run| run.mailings(share, way(run))).collect() };
        let percent = |way: Way| -> Vec<f64> { shares(way).iter().map(|share| share.percent()).collect() };
        let columns = WAYS.map(|way| both(&percent(way), Wish::High, 1));
        // Whether a copy is joined is independent of its refusal.
        let shown = if name.contains("at 20") { &columns[..] } else { &columns[..1] };
        println!("{name:<44}{:>9}{}", messages(&shares(WAYS[0])), shown.concat());
    }
}

/// The same mail after its blocks became known.
fn known_blocks(runs: &[Vec<Run<'_>>; BEFORE.len()]) {
    for (name, way) in
        ["at 20, %; each block before:", "refused, %; each block before:"].into_iter().zip(WAYS)
    {
        println!(
            "{name:<44}{:>20}{:>20}{:>20}{:>20}",
            "not", "once, to 25", "alone, 25 times", "below words, 25"
        );
        for row in LETTERS.iter().chain(&OTHERS) {
            let column = |runs: &Vec<Run<'_>>| {
                let percent: Vec<f64> =
                    runs.iter().map(|run| run.innocent(row, way(run)).percent()).collect();
                both(&percent, Wish::Low, 1)
            };
            println!("{:<44}{}", row.0, runs.each_ref().map(column).concat());
        }
    }
}

/// The average number of messages of one seed in these shares.
fn messages(shares: &[Share]) -> usize {
    shares.iter().map(|share| share.whole).sum::<usize>() / shares.len().max(1)
}

impl Mail {
    fn make(bench: &Bench, seed: usize, sentences: &Path) -> Result<Self, String> {
        let (streams, out) = (bench.corpus.join("streams"), bench.work(&format!("company-{seed}")));
        python("firms.py", &[&streams, &sentences, &seed.to_string(), &out], "")?;
        Self::read(&out).map_err(|e| e.to_string())
    }

    fn read(directory: &Path) -> Result<Self, LabelledError> {
        let table = Table::read(directory.join("messages.tsv"))?;
        let mut mail = Self { before: BTreeMap::new(), messages: Vec::new(), about: Vec::new() };
        for row in &table.rows {
            let field = |column| table.field(row, column);
            let number = |column| Ok(field(column)?.parse().unwrap_or(0));
            let recipients = number("recipients")?;
            let message = Message::file(directory.join(field("file")?)).to(recipients);
            // A company's mail comes from the network of the domain in its From field.
            let message = match field("part")? {
                "alone" | "beneath" => message.from(STRANGER),
                _ if !field("group")?.is_empty() => message.from(PROVIDER),
                _ => message,
            };
            match field("part")? {
                "mail" => mail.messages.push(message),
                part => {
                    mail.before.entry(part.to_owned()).or_default().push(message);
                    continue;
                }
            }
            mail.about.push(About {
                kind: field("kind")?.to_owned(),
                recipients,
                words: number("words")?,
                blocks: field("blocks")?.split(' ').map(str::to_owned).collect(),
                group: field("group")?.to_owned(),
            });
        }
        Ok(mail)
    }

    fn before(&self, part: &str) -> &[Message] {
        self.before.get(part).map_or(&[], Vec::as_slice)
    }
}

impl Run<'_> {
    /// The messages of a row at the threshold, without mailings.
    fn innocent(&self, (_, belongs): &Row, counts: &[u32]) -> Share {
        let judged =
            |about: &About| about.group.is_empty() && about.recipients < AT as usize && belongs(about);
        let of_row = self.mail.about.iter().zip(counts).filter(|(about, _)| judged(about));
        Share::counted(&of_row.map(|(_, &count)| count).collect::<Vec<_>>(), AT)
    }

    /// For the copies of all mailings.
    fn mailings(&self, share: OfMailing, counts: &[u32]) -> Share {
        let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (about, &count) in self.mail.about.iter().zip(counts) {
            if !about.group.is_empty() {
                groups.entry(&about.group).or_default().push(count);
            }
        }
        groups.values().map(|copies| share(copies)).sum()
    }
}
