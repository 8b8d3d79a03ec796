// SPDX-License-Identifier: GPL-3.0-or-later
//! The simulation study: the same on any machine, and right where there is a closed form. The 156 published means are
//! compared by `make study`. And the studies of layouts and of near signatures, on the command line.

use bulkmark_study::paper::{Configuration, Experiment, Extension, compare, published, run};
use bulkmark_study::reporters::{Day, Lie, Runs, Scenario, Seeds, young};
use bulkmark_study::revocation::{Form, Law, measure};
use std::process::{Command, Output};

fn experiment(number: &str, m: u32, k: usize) -> Configuration {
    Configuration { experiment: number.parse::<Experiment>().unwrap(), m, k }
}

#[test]
fn a_seed_gives_the_same_results_in_any_company() {
    let [a, b] = [experiment("4", 80_000, 4), experiment("1", 80_000, 6)];
    let together = run(&[a, b], 3, 7, &|| ());
    assert_eq!(together[2..], run(&[b], 3, 7, &|| ()));
    assert_ne!(together[2..], run(&[b], 3, 8, &|| ()));
}

/// Equation 1 of the paper: a key counts wrongly in the intuitive extension when others hit all of its cells.
#[test]
fn the_intuitive_extension_has_a_closed_form() {
    for k in [4, 6, 8] {
        let outcome = run(&[experiment("2", 80_000, k)], 6, 1, &|| ())[0];
        assert_eq!(outcome.extension, Extension::Intuitive);
        let k = k as f64;
        let expected = (1.0 - (-k * 10_000.0 / 80_000.0).exp()).powf(k);
        assert!((outcome.mean / expected - 1.0).abs() < 0.15, "k = {k}: {} for {expected}", outcome.mean);
    }
}

/// The paper's main finding, and the rule of comparison: our means agree, and wrong ones do not.
#[test]
fn the_refined_extension_counts_better_and_deviations_are_found() {
    let mut outcomes = run(&[experiment("6", 80_000, 6)], 8, 1, &|| ());
    assert!(outcomes[1].mean < outcomes[0].mean / 2.0);
    assert!(compare(&outcomes).iter().all(|c| c.agrees) && compare(&outcomes).len() == 2);
    outcomes[1].mean *= 1.3;
    assert!(!compare(&outcomes)[1].agrees);
    assert_eq!(published().count(), 156);
}

const TABLES: [(&str, &str); 4] = [
    ("manifest.tsv", "file\tlabel\nham1\tham\nham2\tham\nspam1\tspam\nspam2\tspam\nspam3\tspam\n"),
    ("campaigns.tsv", "cluster\tfile\na\tspam1\na\tspam2\n"),
    ("ham_groups.tsv", "file\n"),
    ("related.tsv", "a\tb\n"),
];

/// Twelve lines of twelve words, different for each number.
fn text(number: u32) -> String {
    let line =
        |i: u32| (0..12).map(|j| format!("w{} ", number * 1000 + i * 12 + j)).collect::<String>() + "\n";
    (0..12).map(line).collect()
}

/// Each variant finds the copy in a campaign and joins no unrelated ham; if a table is missing, the error names it.
#[test]
fn the_sweep_joins_copies_only() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    for (name, number) in [("ham1", 1), ("ham2", 2), ("spam1", 3), ("spam2", 3), ("spam3", 4)] {
        write(name, &format!("Subject: {name}\n\n{}", text(number)));
    }
    let options = format!("near {}", directory.path().display());
    for (name, table) in TABLES {
        let output = study(&options);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.starts_with("bulkmark-study: cannot read "), "{told}");
        write(name, table);
    }
    let table = printed(&options);
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert!(rows.len() == 21 && rows[0].ends_with("shipped"), "{table}");
    for row in rows {
        let fields: Vec<&str> = row.split("/20 ").nth(1).unwrap().split_whitespace().collect();
        assert_eq!(fields[..3], ["0.0", "100.0", "100.0"], "{row}");
    }
}

/// Unchanged copies are all found, fewer of the rewritten ones, and no ham. The curves are drawn.
#[test]
fn rewritten_copies_are_found_less() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    for (name, number) in [("ham1", 1), ("ham2", 2), ("spam1", 3), ("spam2", 3), ("spam3", 4)] {
        // Sentences of two lines.
        let text: String = text(number).lines().map(|line| format!("{line}\n")).collect();
        let text = text.replace("7 \n", "7.\n");
        write(name, &format!("Subject: {name}\n\n{text}"));
    }
    for (name, table) in TABLES {
        write(name, table);
    }
    let figure = directory.path().join("curves.svg");
    let table = printed(&format!("rewritten {} --plot {}", directory.path().display(), figure.display()));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "2 unrelated ham messages: 0.0 joined, 0.0 at 20");
    assert!(lines.len() == 14 && lines[1].starts_with("copies of 1 texts"), "{table}");
    let row = |line: &str| -> Vec<f64> {
        let shares = line.split('%').nth(1).unwrap().split_whitespace();
        shares.map(|share| share.parse().unwrap()).collect()
    };
    let (none, half) = (row(lines[3]), row(lines[13]));
    assert_eq!((&none[..2], half[0], half[1]), (&[100.0, 100.0][..], 0.0, 0.0), "{table}");
    let tenth = row(lines[5]);
    assert!(tenth[3] < none[3], "sentences in another order have other passages: {table}");
    let shares: Vec<f64> = lines[3..].iter().map(|line| row(line)[0]).collect();
    assert!(shares.is_sorted_by(|a, b| a >= b) && std::fs::read_to_string(figure).unwrap().contains("<svg"));
}

/// Liars who get much ham marked as spam with equal weights fail with trust, and spam is still found. Each run gives the same
/// results.
#[test]
fn trust_keeps_liars_from_deciding() {
    let liars = Scenario { liars: 30, lie: Lie::Opposite, eager: false, accounts: None };
    let runs = Runs { people: 1_000, days: 40, vouched: 0, trapped: 30, runs: 1 };
    let [plain, trust] = [false, true].map(|trust| liars.run(runs, trust));
    let [plain_end, trust_end] = [&plain, &trust].map(|days| Day::sum(&days[30..]));
    assert!(plain_end.false_spam() > 5.0 && trust_end.false_spam() < 0.5, "{plain_end:?} {trust_end:?}");
    assert!(trust_end.missed() < plain_end.missed() + 10.0, "{plain_end:?} {trust_end:?}");
    assert!(trust_end.honest > 2.0 * trust_end.liars, "{trust_end:?}");
    assert_eq!(trust, liars.run(runs, true));
}

/// Twelve accounts that vouch for each other by their own mail gain nothing in 20 days, but honest people do as soon as traps report, too.
#[test]
fn accounts_in_one_hand_gain_nothing_on_a_young_site() {
    for trapped in [0, 30] {
        let (days, weights) = young(500, Seeds { vouched: 0, trapped }, 1);
        assert!(weights[..8].iter().all(|weights| weights.liars <= 0.25), "{weights:?}");
        let last = weights.last().unwrap();
        assert_eq!(last.established > 20 && last.honest > 0.3, trapped > 0, "{last:?}");
        assert!(trapped == 0 || Day::sum(&days[20..]).false_spam() < 0.5, "{days:?}");
    }
}

/// All tables have a row for each scenario, and there is the figure.
#[test]
fn a_study_of_trust_prints_what_it_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let figure = directory.path().join("trust.svg");
    let told = printed(&format!("trust --people 50 --days 12 --runs 1 --plot {}", figure.display()));
    for title in ["ham called spam", "spam missed", "of these, called spam before", "mean weight"] {
        let rows =
            told.split(title).nth(1).unwrap().lines().skip(3).take_while(|line| !line.is_empty()).count();
        assert!(rows == Scenario::all().len() || title == "mean weight", "{title}: {told}");
    }
    assert!(told.contains("30 % patient, eager") && told.contains("1000 new accounts, patient"), "{told}");
    assert!(std::fs::read_to_string(figure).unwrap().contains("<svg"));
}

/// The pair of Bloom filters is small, but nominations after a revocation have no effect in it; counting filters allow
/// revocations and new nominations.
#[test]
fn revocation_costs_what_the_table_says() {
    let pair = measure(Form::Pair(1e-6), Law::Three, 20_000, 5, 10_000).unwrap();
    assert_eq!((pair.kept, pair.again, pair.false_spam), (0.0, 0.0, (0, 10_000)));
    let windows = measure(Form::Windows(2), Law::Three, 20_000, 5, 10_000).unwrap();
    assert_eq!((windows.kept, windows.lost, windows.again), (0.0, 0.0, 100.0));
    let usual = measure(Form::Windows(2), Law::Pareto, 100_000, 5, 100_000).unwrap();
    assert_eq!((usual.false_spam, usual.again), ((0, 100_000), 100.0));
    let deleting = measure(Form::Deleting, Law::Three, 20_000, 5, 10_000).unwrap();
    assert!(deleting.lost < f64::EPSILON && deleting.again > 99.9 && deleting.memory < pair.memory);
    let table = printed("revocation --elements 1000 --strange 1000");
    assert!(
        table.lines().count() == 2 + Form::ALL.len() + 1 + 2 + 3 && table.contains("SBF and RBF, rate 1e-3"),
        "{table}"
    );
}

/// `bulkmark-study` with these arguments.
fn study(options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulkmark-study"));
    command.args(options.split_whitespace()).env_remove("BULKMARK_CORPUS").output().unwrap()
}

fn printed(options: &str) -> String {
    let output = study(options);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SMALL: &str = "layouts --elements 3000 --unseen 20000 --only pareto --only zipf --only cells";

/// The accuracy of layouts is the same in each run, whatever the order in which the cores measure them; another seed
/// draws another history.
#[test]
fn a_study_of_layouts_has_a_seed() {
    let options =
        format!("{SMALL} --format csv --bits 40 --layout 2x4/4 --layout 8x1/5+paper --layout 2x4/5+0");
    let first = printed(&options);
    assert_eq!(first, printed(&options));
    assert_ne!(first, printed(&format!("{options} --seed 2")));
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("distribution,wanted,layout,bits,")).count(), 3);
    // Three layouts at one size under each law, and at nine numbers of cells.
    assert_eq!(lines.iter().filter(|line| line.starts_with("Pareto(1),40 bits,")).count(), 3);
    assert_eq!(lines.iter().filter(|line| line.starts_with("Zipf(1.2),40 bits,")).count(), 3);
    assert_eq!(lines.iter().filter(|line| line.contains(" cells,")).count(), 27);
    for line in lines.iter().filter(|line| line.contains(",40 bits,")) {
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(fields.len(), 18, "{line}");
        let bits: f64 = fields[3].parse().unwrap();
        assert!((38.5..=41.5).contains(&bits), "all memory is counted: {line}");
        assert_eq!(fields[7].is_empty(), fields[2] == "2x4/5+0", "cells that stay at 31 tell no 100: {line}");
    }
}

/// The standard layouts, the shipped one first, each in as much memory as the others or with the reason why not.
#[test]
fn a_study_of_layouts_for_user_reports() {
    let table = printed("layouts --elements 2000 --unseen 1000 --only pareto --bits 12");
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("Pareto(1): 2000 elements, "), "{table}");
    let layouts: Vec<&str> = lines.skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(layouts.len() >= 15 && layouts[0] == "2x4/4" && layouts.contains(&"2x4/5+paper"), "{table}");
    assert!(table.contains("split storage alone needs more than 12 bits"), "{table}");
}

#[test]
fn senseless_options_are_refused() {
    for (options, expected) in [
        ("layouts --layout 0x4/4", "blocks of an element is 0, expected 1 to 16"),
        ("layouts --layout 2x0/4", "cells of an element in a block is 0, expected 1 to 128"),
        ("layouts --layout 1x103/5", "cells of an element in a block is 103, expected 1 to 102"),
        ("layouts --layout 4x5/4", "cells of an element is 20, expected 1 to 16"),
        ("layouts --layout 2x4/7", "bits of a cell is 7, expected 4, 5 or 8"),
        ("layouts --layout 2x4/4+9", "cells with further counts is 9, expected 0 to 8"),
        ("layouts --layout nonsense", "expected BLOCKSxCELLS/BITS such as 2x4/4"),
        ("layouts --bits 1", "bits for each element is 1, expected 8 to 1000"),
        ("layouts --elements 5", "5 is not in 100..=20000000"),
        ("layouts --only corpus", "BULKMARK_CORPUS is not set"),
        ("layouts --rounds 10", "unexpected argument"),
        ("paper --layout 2x4/4", "unexpected argument"),
    ] {
        let output = study(options);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(expected), "{options}: {told}");
    }
}

/// The values of a row, by column.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
    line[42..].split("  ").map(str::trim).filter(|field| !field.is_empty()).collect()
}

/// The values of a fleet's plan, by column.
const OF_A_PLAN: [&str; 42] = [
    "messages a day",
    "mail servers",
    "reports a second",
    "batches a second, all milters",
    "steps a second",
    "different signatures a day",
    "capacity",
    "bytes a report, up in a batch",
    "memory: a milter that holds all",
    "memory: a milter that holds bulk",
    "memory: an aggregator or server",
    "disk: a ledger that holds all",
    "up, from a milter",
    "down, to a milter that holds all",
    "  of it marks of spools",
    "down, to each where some hold bulk",
    "to each aggregator or server",
    "from the aggregator that makes steps",
    "  of it snapshots",
    "from node to node of the log",
    "disk: a node of the log",
    "from the log or servers to all",
    "processor: a milter that holds all, cores",
    "processor: the aggregator that makes steps",
    "from a message to all others, usually",
    "  at most, while nothing is dead",
    "an aggregator dies: steps late by, at most",
    "  a new one takes",
    "a milter's disk is lost: reports, at most",
    "the log's leader dies: late by, at most",
    "  meanwhile kept by each milter, on disk",
    "without a log a milter drops reports after",
    "a node's disk is lost: it gets",
    "  memory of an aggregator",
    "  time for steps, one after the other",
    "  a snapshot in the log",
    "  putting snapshots",
    "  batches that the log takes *",
    "  memory of a milter that holds all *",
    "  memory of a milter that holds bulk *",
    "  bytes to a milter *",
    "shards (* is not divided by them)",
];

/// A plan of a fleet has each machine's memory, network, disk and CPU, the delay of counts, the cost of a machine's failure, and the used
/// part of one chain. The cost of bulk stays small, and limits grow with the mail. In the small sampled day, a step covers as large a
/// part as a second of a usual day.
#[test]
fn a_plan_of_a_fleet_has_all_rows() {
    let plan = |log: &str| {
        printed(&format!("fleet --messages 2M --messages 1G --sampled 20000 --interval 60000 --log {log}"))
    };
    let on_nats = plan("nats");
    for name in OF_A_PLAN {
        let fields = row(&on_nats, name);
        let is_told = |field: &&str| field.starts_with(|first: char| first.is_ascii_digit());
        assert!(fields.len() == 2 && fields.iter().all(is_told), "{name}: {fields:?}");
    }
    let number = |name: &str, column: usize| -> f64 {
        row(&on_nats, name)[column].split(' ').next().unwrap().parse().unwrap()
    };
    let [step, notes, both] = ["down in a step  ", "down as notes of bulk", "down in a step with bulk"]
        .map(|what| number(&format!("bytes a report, {what}"), 0));
    assert!((step + notes - both).abs() < 0.02, "{on_nats}");
    assert!(step < 6.0 && notes < 3.0, "{on_nats}");
    assert_eq!(row(&on_nats, "without a log a milter drops reports after")[1], "32 min");
    assert!(number("shards", 0) < 2.0 && number("shards", 1) > 8.0, "{on_nats}");

    let postgres = plan("postgres");
    assert_eq!(row(&postgres, "the log's leader dies")[0], "its failover");
    assert!(!postgres.contains("a snapshot in the log"), "{postgres}");
    // Without a log, no log can fail.
    let https = plan("https");
    assert!(!https.contains("shards") && row(&https, "down, to one that holds bulk").len() == 2, "{https}");
}
