// SPDX-License-Identifier: GPL-3.0-or-later
//! Innocent mail of many kinds, in five languages, generated here: letters, forms and transactions that have a block in common.
//! Each kind alone on a ledger, and all of them mixed on one.

mod calendar;
mod daily;
mod forms;
mod gateway;
mod kind;
mod lists;
mod office;
mod people;
mod services;
mod tickets;

use crate::counts::{AT, number};
use crate::draft::{Made, write_examples};
use crate::figures::{Wish, both, mean};
use crate::runs::{Bench, Job};
use crate::stream::Message;
use kind::{Class, Kind};

/// For each kind.
const MESSAGES: usize = 60;

/// All kinds, in the order of the table.
fn kinds() -> Vec<&'static Kind> {
    let all = [
        gateway::KINDS,
        lists::KINDS,
        tickets::KINDS,
        forms::KINDS,
        calendar::KINDS,
        office::KINDS,
        people::KINDS,
        services::KINDS,
        daily::KINDS,
    ];
    all.into_iter().flatten().collect()
}

/// The number of messages of each kind at the threshold, by key.
struct Found {
    alone: Vec<Vec<f64>>,
    mixed: Vec<Vec<f64>>,
    refused: Vec<Vec<f64>>,
}

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    let kinds = kinds();
    let made: Vec<Vec<Made>> =
        kinds.iter().enumerate().map(|(place, kind)| kind.messages(place, MESSAGES)).collect();
    if let Some(directory) = &bench.examples {
        let named =
            kinds.iter().zip(&made).map(|(kind, made)| (kind.name.to_owned(), kind.class.name(), &made[..]));
        write_examples(&directory.join("innocent"), named).map_err(|e| e.to_string())?;
    }
    let messages: Vec<Vec<Message>> =
        made.into_iter().map(|made| made.into_iter().map(Made::into_message).collect()).collect();
    let found = found(bench, &messages);
    println!(
        "innocent mail of {} kinds, {MESSAGES} messages each: at 20, each kind alone and all mixed; {} keys, mean and worst",
        kinds.len(),
        bench.keys.len()
    );
    println!(
        "{:<34}{:<13}{:>9}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "", "networks", "domains", "alone", "worst", "mixed", "worst", "refused", "worst"
    );
    for (at, kind) in kinds.iter().enumerate() {
        let of = |figure: &[Vec<f64>]| both(&figure[at], Wish::Low, 1);
        println!(
            "{:<34}{:<13}{:>9}{:>9}{}{}{}",
            kind.name,
            kind.class.name(),
            kind.networks.name(),
            kind.domains.name(),
            of(&found.alone),
            of(&found.mixed),
            of(&found.refused)
        );
    }
    sums(bench, &kinds, &found);
    Ok(())
}

/// All messages of each class, and kinds of it with any message at the threshold.
fn sums(bench: &Bench, kinds: &[&Kind], found: &Found) {
    for class in [Class::Letter, Class::Form, Class::Transaction] {
        let places: Vec<usize> = (0..kinds.len()).filter(|&at| kinds[at].class == class).collect();
        let by_key = |figure: &[Vec<f64>], one: fn(f64) -> f64| -> Vec<f64> {
            (0..bench.keys.len()).map(|key| places.iter().map(|&at| one(figure[at][key])).sum()).collect()
        };
        let line = |name: &str, whole: usize, one: fn(f64) -> f64| {
            let columns =
                [&found.alone, &found.mixed, &found.refused].map(|f| both(&by_key(f, one), Wish::Low, 1));
            println!("{:<65}{}", format!("{name} of class {}, of {whole}", class.name()), columns.concat());
        };
        line("messages", places.len() * MESSAGES, |n| n);
        line("kinds with any", places.len(), |n| f64::from(n > 0.0));
    }
    let all: Vec<f64> = found.mixed.iter().map(|by_key| mean(by_key)).collect();
    println!("all messages, mixed: {:.1}", all.iter().sum::<f64>());
}

fn found(bench: &Bench, messages: &[Vec<Message>]) -> Found {
    // The first one of each kind, then the second ones, and so on.
    let mixed: Vec<Message> =
        (0..MESSAGES).flat_map(|n| messages.iter().filter_map(move |kind| kind.get(n)).cloned()).collect();
    let of_key = |key| {
        let alone = messages.iter().map(move |kind| Job { key, parts: vec![kind] });
        [Job { key, parts: vec![&mixed] }].into_iter().chain(alone)
    };
    let (counts, refused) = bench.highest(&bench.keys.iter().flat_map(of_key).collect::<Vec<_>>());
    let jobs = messages.len() + 1;
    let of_mixed = |counts: &[Vec<u32>], kind: usize| {
        let of_key = |counts: &[Vec<u32>]| {
            let of_kind: Vec<u32> = counts[0].iter().skip(kind).step_by(messages.len()).copied().collect();
            number(&of_kind, AT) as f64
        };
        counts.chunks(jobs).map(of_key).collect::<Vec<f64>>()
    };
    let alone =
        |kind: usize| counts.chunks(jobs).map(|counts| number(&counts[kind + 1], AT) as f64).collect();
    let each = 0..messages.len();
    Found {
        alone: each.clone().map(alone).collect(),
        mixed: each.clone().map(|kind| of_mixed(&counts, kind)).collect(),
        refused: each.map(|kind| of_mixed(&refused, kind)).collect(),
    }
}
