// SPDX-License-Identifier: GPL-3.0-or-later
//! Labelled mail on one ledger: unrelated ham, campaigns, other spam.

use crate::client::From;
use crate::counts::{AT, Counts, Share, number};
use crate::figures::{Wish, mean, worst};
use crate::labelled::Labelled;
use crate::pyzor;
use crate::runs::Bench;
use crate::stream::Message;
use std::ops::Range;
use std::path::PathBuf;

/// The kinds of the counts, in the order of the mail.
struct Order {
    ham: Range<usize>,
    campaigns: Vec<Range<usize>>,
    alone: Range<usize>,
}

/// The network of a campaign's copy, by the numbers of campaign and copy.
type NetworkOf = fn(usize, usize) -> From;

/// A figure, from the counts of all messages.
type Figure = fn(&Order, &[u32]) -> f64;

const ROWS: [(&str, Wish, Figure); 8] = [
    ("unrelated ham, counted 2 or more", Wish::Low, |o, c| number(&c[o.ham.clone()], 2) as f64),
    ("unrelated ham, counted 5 or more", Wish::Low, |o, c| number(&c[o.ham.clone()], 5) as f64),
    ("unrelated ham at 20", Wish::Low, |o, c| number(&c[o.ham.clone()], AT) as f64),
    ("campaigns beyond the first, joined, %", Wish::High, |o, c| of_campaigns(o, c, Share::joined)),
    ("whole campaigns, %", Wish::High, whole),
    ("campaigns: could be at 20 and are, %", Wish::High, |o, c| of_campaigns(o, c, Share::at_threshold)),
    ("other spam, counted 2 or more", Wish::Low, |o, c| number(&c[o.alone.clone()], 2) as f64),
    ("other spam at 20", Wish::Low, |o, c| number(&c[o.alone.clone()], AT) as f64),
];

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    bench.existing("manifest.tsv")?;
    let corpus = Labelled::read(&bench.corpus).map_err(|e| e.to_string())?;
    let mut files: Vec<PathBuf> = corpus.ham.clone();
    let campaign = |campaign: &Vec<PathBuf>| {
        let begin = files.len();
        files.extend_from_slice(campaign);
        begin..files.len()
    };
    let campaigns: Vec<_> = corpus.campaigns.iter().map(campaign).collect();
    let order =
        Order { ham: 0..corpus.ham.len(), campaigns, alone: files.len()..files.len() + corpus.alone.len() };
    files.extend_from_slice(&corpus.alone);

    let messages: Vec<_> = files.iter().cloned().map(Message::file).collect();
    let counts = bench.counts(&bench.under_each_key(&messages));
    let pyzor = pyzor::counts(&files);
    println!("labelled mail, one ledger for all; means of {} keys, and the worst of both", bench.keys.len());
    println!(
        "{:<44}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "messages", "body", "near", "both", "worst", "refused", "Pyzor"
    );
    for (name, wish, figure) in ROWS {
        let way = |of: fn(&Counts) -> u32| -> Vec<f64> {
            let one = |counts: &Vec<_>| figure(&order, &counts.iter().map(of).collect::<Vec<u32>>());
            counts.iter().map(one).collect()
        };
        let both = way(|counts| counts.highest());
        let refused = if name.contains("at 20") {
            format!("{:.1}", mean(&way(|counts| counts.refused())))
        } else {
            "-".to_owned()
        };
        let pyzor =
            pyzor.as_ref().map_or_else(|| "-".to_owned(), |counts| format!("{:.1}", figure(&order, counts)));
        println!(
            "{name:<44}{:>9}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{refused:>9}{pyzor:>9}",
            messages_of(name, &order),
            mean(&way(|counts| counts.body)),
            mean(&way(|counts| counts.near)),
            mean(&both),
            worst(&both, wish),
        );
    }
    campaigns_from(bench, &order, &messages);
    Ok(())
}

/// The campaigns again: each from one network, and each copy from its own network.
fn campaigns_from(bench: &Bench, order: &Order, messages: &[Message]) {
    println!("{:<44}{:>9}{:>9}{:>9}", "campaigns: could be at 20 and are, %", "", "at 20", "refused");
    let one = |campaign: usize, _: usize| From::Network(100 + campaign as u32);
    let many = |campaign: usize, copy: usize| From::Network(1000 * (campaign as u32 + 1) + copy as u32);
    let ways: [(&str, NetworkOf); 2] = [("from one network", one), ("from many networks", many)];
    for (name, from) in ways {
        let mut messages = messages.to_vec();
        for (number, campaign) in order.campaigns.iter().enumerate() {
            for (copy, at) in campaign.clone().enumerate() {
                messages[at] = messages[at].clone().from(from(number, copy));
            }
        }
        let (counts, refused) = bench.highest(&bench.under_each_key(&messages));
        let of = |counts: &[Vec<u32>]| {
            mean(
                &counts
                    .iter()
                    .map(|counts| of_campaigns(order, counts, Share::at_threshold))
                    .collect::<Vec<_>>(),
            )
        };
        println!("  {name:<42}{:>9}{:>9.1}{:>9.1}", "", of(&counts), of(&refused));
    }
}

/// The number of messages, or campaigns, in a row.
fn messages_of(row: &str, order: &Order) -> usize {
    let sizes = order.campaigns.iter().map(ExactSizeIterator::len);
    match row {
        _ if row.starts_with("unrelated ham") => order.ham.len(),
        _ if row.starts_with("other spam") => order.alone.len(),
        _ if row.starts_with("whole") => order.campaigns.len(),
        _ if row.contains("at 20") => sizes.map(|size| (size + 1).saturating_sub(AT as usize)).sum(),
        _ => sizes.map(|size| size.saturating_sub(1)).sum(),
    }
}

fn of_campaigns(order: &Order, counts: &[u32], share: fn(&[u32]) -> Share) -> f64 {
    order.campaigns.iter().map(|campaign| share(&counts[campaign.clone()])).sum::<Share>().percent()
}

/// The share of campaigns without a missed message.
fn whole(order: &Order, counts: &[u32]) -> f64 {
    let is_whole = |campaign: &&Range<usize>| {
        let share = Share::joined(&counts[(*campaign).clone()]);
        share.part == share.whole
    };
    let part = order.campaigns.iter().filter(is_whole).count();
    Share { part, whole: order.campaigns.len() }.percent()
}
