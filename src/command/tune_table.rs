// SPDX-License-Identifier: GPL-3.0-or-later
//! The result of `bulkmark tune` as text, in 80 columns.

use super::show::messages as in_words;
use crate::tune::{
    AtThreshold, ClusterRow, Configured, Contents, Labels, PolicyRow, Proposal, Standing, Tuning, date, plain,
};
use std::io::{self, Write};

/// Columns of a line.
const WIDTH: usize = 79;

pub(super) fn print_text(
    out: &mut impl Write,
    report: &Tuning,
    limit: usize,
    is_configured: bool,
) -> io::Result<()> {
    print_archive(out, &report.archive)?;
    print_thresholds(out, report, is_configured)?;
    print_clusters(out, &report.clusters, limit)?;
    print_proposals(out, report)
}

fn print_archive(out: &mut impl Write, archive: &Contents) -> io::Result<()> {
    writeln!(out, "{}, {}", in_words(archive.messages), span(archive.first, archive.last))?;
    let mut line = |number, text: &str| match number {
        0 => Ok(()),
        _ => writeln!(out, "{number:>9} {text}"),
    };
    line(archive.counted, "were counted")?;
    line(archive.exempt, "say too little to be counted")?;
    line(archive.by_policy, "are not judged, by the policy of their recipient")?;
    line(archive.unreadable, "files or messages could not be read")?;
    line(archive.no_mail, "files are not mail")?;
    if archive.labels.ham + archive.labels.spam > 0 {
        writeln!(out, "  labels: {}", labels(archive.labels))?;
    }
    Ok(())
}

fn print_thresholds(out: &mut impl Write, report: &Tuning, is_configured: bool) -> io::Result<()> {
    let archive = &report.archive;
    let is_labelled = archive.labels.ham + archive.labels.spam > 0;
    writeln!(out, "\nWould have been bulk, by threshold:\n")?;
    write!(
        out,
        "threshold{:>9}{:>7}{:>9}{:>9}{:>9}{:>9}",
        "messages", "%", "by body", "by near", "senders", "wanted"
    )?;
    writeln!(out, "{}", if is_labelled { format!("{:>9}{:>9}", "ham", "spam") } else { String::new() })?;
    for row in &report.thresholds {
        let AtThreshold { threshold, messages, body, near, senders, whitelisted, labels, .. } = row;
        let share = *messages as f64 * 100.0 / archive.messages.max(1) as f64;
        write!(out, "{threshold:>9}{messages:>9}{share:>7.2}{body:>9}{near:>9}{senders:>9}{whitelisted:>9}")?;
        if is_labelled {
            write!(out, "{:>9}{:>9}", labels.ham, labels.spam)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "\n  by near: by near alone. wanted: reached it, but the white list wants them.")?;
    let configured = &report.configured;
    let source = if is_configured { "this configuration" } else { "the defaults" };
    writeln!(
        out,
        "\nWith {source} (body {}, near {}): {} bulk, {} whitelisted",
        configured.body, configured.near, configured.bulk, configured.whitelisted
    )?;
    if is_labelled {
        writeln!(out, "  of the bulk: {}", labels(configured.labels))?;
    }
    for PolicyRow { policy, messages, bulk, refused } in &configured.policies {
        writeln!(
            out,
            "  by the policy {policy}: {}, {bulk} bulk, {refused} of it not delivered",
            in_words(messages)
        )?;
    }
    print_sources(out, report)
}

/// Prints the effect of networks.
fn print_sources(out: &mut impl Write, report: &Tuning) -> io::Result<()> {
    let Configured { min_sources, held, .. } = report.configured;
    if min_sources <= 1 {
        return Ok(());
    }
    writeln!(out, "  only marked, from less than {min_sources} other networks (min-sources): {held}")?;
    match report.archive.without_network {
        0 => Ok(()),
        all => writeln!(out, "  network not known (--border), judged as with min-sources = 1: {all}"),
    }
}

fn print_clusters(out: &mut impl Write, clusters: &[ClusterRow], limit: usize) -> io::Result<()> {
    let shown = &clusters[..clusters.len().min(limit)];
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWhat was seen most often ({} of {} clusters):", shown.len(), clusters.len())?;
    for cluster in shown {
        let ClusterRow { messages, count, first, last, .. } = cluster;
        let mut line = format!("{}, count up to {count}, {}", in_words(messages), span(*first, *last));
        if cluster.labels.none < *messages {
            line += &format!(": {}", labels(cluster.labels));
        }
        writeln!(out, "\n  {}", plain(&line, WIDTH - 2))?;
        if cluster.whitelisted > 0 {
            writeln!(out, "    {:<9}{} of them", "wanted", cluster.whitelisted)?;
        }
        let rest = if cluster.from_is_all { "" } else { ", ..." };
        let list = |texts: &[(String, u64)]| {
            let alone = texts.len() == 1;
            let one = |(text, n): &(String, u64)| if alone { text.clone() } else { format!("{text} ({n})") };
            texts.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        for (name, text) in [
            ("from", list(&cluster.from) + rest),
            ("list-id", list(&cluster.list_ids)),
            ("subject", cluster.subjects.first().map_or(String::new(), |(text, _)| text.clone())),
        ] {
            if !text.is_empty() {
                writeln!(out, "    {name:<9}{}", plain(&text, WIDTH - 13))?;
            }
        }
    }
    Ok(())
}

fn print_proposals(out: &mut impl Write, report: &Tuning) -> io::Result<()> {
    let with = |standing| report.proposals.iter().filter(move |proposal| proposal.standing == standing);
    if with(Standing::Wanted).next().is_some() {
        writeln!(out, "\nWhite list for the bulk that looks wanted:\n")?;
        writeln!(out, "# Anybody can forge these fields; if you know the client, use \"host\" or \"ip\"")?;
        writeln!(out, "# is better: see bulkmark-whitelist(5).")?;
        with(Standing::Wanted).try_for_each(|proposal| print_proposal(out, proposal, ""))?;
        writeln!(
            out,
            "\nWith these lines {} would have been bulk instead of {}.",
            in_words(report.configured.bulk_with_proposals),
            report.configured.bulk
        )?;
    }
    for (standing, title) in [
        (Standing::Unsure, "These may or may not be wanted; remove the # from those that are:"),
        (Standing::Both, "Labelled both ham and spam:"),
    ] {
        if with(standing).next().is_some() {
            writeln!(out, "\n# {title}")?;
            with(standing).try_for_each(|proposal| print_proposal(out, proposal, "#"))?;
        }
    }
    Ok(())
}

/// Prints a line of a white list, behind `mark`, and a comment above it.
fn print_proposal(out: &mut impl Write, proposal: &Proposal, mark: &str) -> io::Result<()> {
    let Proposal { line, bulk, messages, days, first, last, subject, .. } = proposal;
    let days = if *days == 1 { String::new() } else { format!(" on {days} days") };
    let numbers = format!("# {bulk} of {messages} bulk{days}, {}: ", span(*first, *last));
    let room = WIDTH.saturating_sub(numbers.len());
    writeln!(out, "{numbers}{}\n{mark}{line}", plain(subject, room))
}

fn labels(labels: Labels) -> String {
    let Labels { none, ham, spam } = labels;
    let all = [(ham, "ham"), (spam, "spam"), (none, "unlabelled")];
    let some = all.iter().filter(|(number, _)| *number > 0).map(|(number, name)| format!("{number} {name}"));
    some.collect::<Vec<_>>().join(", ")
}

/// Formats one day, or the first and the last one.
fn span(first: u64, last: u64) -> String {
    let day = |seconds| date(seconds)[..10].to_owned();
    let (first, last) = (day(first), day(last));
    if first == last { first } else { format!("{first} to {last}") }
}
