// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters with only a block in common: in their usual order, and after one message with that block to 25 recipients.

use crate::counts::{AT, number};
use crate::figures::{Wish, both, mean};
use crate::generated::python;
use crate::runs::{Bench, Job};
use crate::stream;

/// The recipients of the first message.
const RECIPIENTS: usize = 25;

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    let out = bench.examples.clone().unwrap_or_else(|| bench.work("letters"));
    let rows = python("letters.py", &[&out], "")?;
    println!(
        "100 letters to one recipient each that share only a block: at 20; {} keys, mean and worst",
        bench.keys.len()
    );
    println!("{:<34}{:>30}{:>30}", "block, own words", "refused", "after one to 25   refused");
    for row in rows {
        let mut letters = stream::directory(&out.join(&row));
        // The last one by name is the message to many recipients.
        let many: Vec<_> = letters.pop().into_iter().map(|message| message.to(RECIPIENTS)).collect();
        let before = |many| {
            let jobs = bench.keys.iter().map(|key| Job { key, parts: vec![many, &letters] });
            let (counts, refused) = bench.highest(&jobs.collect::<Vec<_>>());
            let at = |counts: &Vec<u32>| number(&counts[many.len()..], AT) as f64;
            let all = |counts: &[Vec<u32>]| counts.iter().map(at).collect::<Vec<_>>();
            format!("{}{:>10.1}", both(&all(&counts), Wish::Low, 1), mean(&all(&refused)))
        };
        println!("{row:<34}{}{}", before(&[]), before(&many));
    }
    Ok(())
}
