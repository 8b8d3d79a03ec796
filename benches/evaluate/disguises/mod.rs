// SPDX-License-Identifier: GPL-3.0-or-later
//! Disguises of advertisements, generated here. Each text and disguise has its own ledger: copies from as many networks and
//! domains as there are copies, and the same ones from one network.

mod advert;
mod beside;
mod copy;
mod form;
mod letters;
mod words;

use crate::client::From;
use crate::counts::Share;
use crate::draft::{Draft, Made, write_examples};
use crate::figures::{Wish, both};
use crate::runs::{Bench, Job};
use crate::stream::Message;
use advert::{Advert, adverts};
use copy::{Copy, Disguise};
use std::path::Path;

/// For each text and disguise.
const COPIES: usize = 40;

/// The senders of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Senders {
    /// A network and a domain for each copy.
    Many,
    /// One network, one domain.
    One,
}

/// All disguises, in the order of the table; the last three leave nothing of the text.
fn disguises() -> Vec<Disguise> {
    [words::DISGUISES, beside::DISGUISES, letters::DISGUISES, form::DISGUISES, form::REWRITTEN].concat()
}

/// Texts of this disguise: all copies of each.
fn texts(place: usize, disguise: Disguise, adverts: &[Advert], senders: Senders) -> Vec<Vec<Made>> {
    adverts.iter().map(|advert| copies(place, disguise, advert, senders)).collect()
}

fn copies(place: usize, (_, make): Disguise, advert: &Advert, senders: Senders) -> Vec<Made> {
    let one = |number: usize| {
        let sender = if senders == Senders::Many { number } else { 0 };
        let mut w = advert.writer(place as u64, number);
        let (to, host) = (w.person(), ["lunar", "pixel", "cedar"][advert.number % 3]);
        let subject = advert.subject.clone();
        let mut copy = Copy { advert, w, to, subject, paragraphs: advert.paragraphs.clone() };
        let part = make(&mut copy);
        let seed = [8004, place as u64, advert.number as u64];
        let mut draft = Draft::new(advert.language, &seed, number, format!("{host}{sender}.example"));
        (draft.subject, draft.to) = (copy.subject, copy.to);
        Made { raw: draft.message(&part), from: From::Network(1000 + sender as u32) }
    };
    (0..COPIES).map(one).collect()
}

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    let adverts = adverts();
    if let Some(directory) = &bench.examples {
        examples(&directory.join("disguises"), &adverts)?;
    }
    println!(
        "disguises of {} texts, {COPIES} copies each, a fresh ledger for each: could be at 20 and are, %; {} keys, mean and worst",
        adverts.len(),
        bench.keys.len()
    );
    println!("{:<34}{:>40}{:>40}", "", "networks and domains: one a copy", "one");
    println!(
        "{:<34}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "at 20", "worst", "refused", "worst", "at 20", "worst", "refused", "worst"
    );
    let wanted = std::env::var("DISGUISE").ok();
    for (place, disguise) in disguises().into_iter().enumerate() {
        if wanted.as_ref().is_some_and(|w| !w.split(',').any(|w| w == disguise.0)) {
            continue;
        }
        let groups: Vec<Vec<Message>> = [Senders::Many, Senders::One]
            .into_iter()
            .flat_map(|senders| texts(place, disguise, &adverts, senders))
            .map(|copies| copies.into_iter().map(Made::into_message).collect())
            .collect();
        let job = |key| groups.iter().map(move |group| Job { key, parts: vec![group] });
        let (counts, refused) = bench.highest(&bench.keys.iter().flat_map(job).collect::<Vec<_>>());
        let columns = |senders: usize| {
            let by_key = |counts: &[Vec<u32>]| -> Vec<f64> {
                let of_key =
                    |counts: &[Vec<u32>]| at_threshold(&counts[senders * adverts.len()..][..adverts.len()]);
                counts.chunks(groups.len()).map(of_key).collect()
            };
            [&counts, &refused].map(|counts| both(&by_key(counts), Wish::High, 1)).concat()
        };
        println!("{:<34}{}{}", disguise.0, columns(0), columns(1));
    }
    Ok(())
}

/// The share of copies at the threshold, of those from the twentieth on.
fn at_threshold(groups: &[Vec<u32>]) -> f64 {
    groups.iter().map(|copies| Share::at_threshold(copies)).sum::<Share>().percent()
}

/// The copies from many networks, as files.
fn examples(directory: &Path, adverts: &[Advert]) -> Result<(), String> {
    let all: Vec<(String, Vec<Made>)> = disguises()
        .into_iter()
        .enumerate()
        .flat_map(|(place, disguise)| {
            let texts = texts(place, disguise, adverts, Senders::Many).into_iter().enumerate();
            texts.map(move |(text, copies)| (format!("{}/{text:02}", disguise.0), copies))
        })
        .collect();
    let groups = all.iter().map(|(name, copies)| (name.clone(), "advertisement", &copies[..]));
    write_examples(directory, groups).map_err(|e| e.to_string())
}
