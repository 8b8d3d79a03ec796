// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study partners`

use bulkmark_study::partners::{Conspiracy, Way};
use std::num::NonZeroU32;
use std::process::ExitCode;

/// How often a message that the partners want to be bulk has been counted, including this time: the last one is new.
const SEEN: [u32; 4] = [15, 10, 5, 1];

/// Compute how much of others' mail conspiring partners of a server can make bulk, and try it on a ledger.
///
/// Each partner covers all cells of as many blocks as its quota reaches, in each of seven windows. Prints the shares of
/// signatures that they raise to the threshold, in percent, as computed and as tried. crates/study/docs/partners.md explains the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The most partners.
    #[arg(long, value_name = "PARTNERS", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    partners: u32,
    /// The most that a partner can add to any signature's count.
    #[arg(long, value_name = "N", default_value = "5")]
    max_influence: NonZeroU32,
    /// The different signatures that a partner can report in a window, in millionths of the capacity.
    #[arg(long, value_name = "MILLIONTHS", default_value_t = 62_500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    quota: u32,
    /// The count from which on a message is bulk.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(16..=1_000))]
    threshold: u32,
    /// The signatures that a window is made for.
    #[arg(long, value_name = "SIGNATURES", default_value = "100000")]
    capacity: NonZeroU32,
    /// The signatures that are asked for.
    #[arg(long, value_name = "SIGNATURES", default_value_t = 100_000)]
    samples: u32,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let Args { max_influence: influence, quota, threshold, capacity, .. } = *args;
    println!("percent of signatures that become bulk; each partner adds {influence} at most");
    let before =
        SEEN.map(|seen| if seen == 1 { "if new".to_owned() } else { format!("if seen {seen} times") });
    println!("{:<9}{}{:>23}", "", before.map(|text| format!("{text:>18}")).concat(), "if new, unnoticed");
    println!("{:<9}{}{:>23}", "partners", "  computed   tried".repeat(SEEN.len()), "computed   tried");
    for partners in 1..=args.partners {
        let all = Conspiracy { partners, influence, quota, threshold, capacity };
        let mut line = format!("{partners:<9}");
        for rise in SEEN.map(|seen| all.rise(seen)) {
            let tried = runtime.block_on(all.tried(Way::Whole, rise, args.samples))?;
            line += &format!("{:>10.2}{:>8.2}", 100.0 * all.computed(rise), 100.0 * tried.share);
            anyhow::ensure!(tried.noticed > 0, "the server noticed nothing");
        }
        let rise = all.rise(1);
        let tried = runtime.block_on(all.tried(Way::Unnoticed, rise, args.samples))?;
        let noticed = if tried.noticed > 0 { " (noticed)" } else { "" };
        println!("{line}{:>15.2}{:>8.2}{noticed}", 100.0 * all.computed_unnoticed(rise), 100.0 * tried.share);
    }
    Ok(ExitCode::SUCCESS)
}
