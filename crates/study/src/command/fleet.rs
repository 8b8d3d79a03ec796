// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study fleet`

use bulkmark_study::fleet::law::Law;
use bulkmark_study::fleet::plan::{Engine, Load, Needs, PROGRAM, Plan};
use bulkmark_study::fleet::sample::{SIGNATURES, Sample, sample};
use bulkmark_study::fleet::shard::{Budget, limits, shards};
use bulkmark_study::fleet::{Partial, partial};
use std::process::ExitCode;

/// Reports that a milter keeps at most, and for how long: with the default `ledger.capacity`.
const SPOOL: f64 = 1e6;
const SPOOL_SECONDS: f64 = 86_400.0;

/// The assumed messages a day of one mail server.
const OF_A_MILTER: f64 = 5e6;

/// The way of counts between machines.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Log {
    /// Nothing: each milter counts for itself.
    Embedded,
    /// A signature server.
    Https,
    /// A fleet on NATS JetStream.
    Nats,
    /// A fleet on PostgreSQL.
    Postgres,
}

/// Compute the needs of the machines of a federation or a fleet.
///
/// Real ledgers give the cost of a report: they make, encode and apply batches, steps, snapshots and notes of a sampled day;
/// the rest is multiplied. Prints a column for each number of messages a day. crates/study/docs/fleet.md explains the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Messages a day, all mail servers together, such as 10M or 1G; may be given several times.
    #[arg(long, value_name = "MESSAGES", value_parser = number, default_values = ["10M", "1G", "10G"])]
    messages: Vec<f64>,
    /// Signatures of a message.
    #[arg(long, value_name = "SIGNATURES", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=64))]
    per_message: u32,
    /// How mail repeats: pareto:ALPHA, pareto:ALPHA:MOST (copies), or same:COPIES.
    #[arg(long, value_name = "LAW", default_value = "pareto:1")]
    law: Law,
    /// The way of the counts between machines.
    #[arg(long, value_enum, default_value = "nats")]
    log: Log,
    /// Mail servers [default: one for each 5 million messages, at least 4].
    #[arg(long, value_name = "MILTERS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    milters: Option<u32>,
    /// Aggregators, or signature servers.
    #[arg(long, value_name = "AGGREGATORS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    aggregators: u32,
    /// Nodes of the log.
    #[arg(long, value_name = "NODES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    nodes: u32,
    /// Days that a report counts.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=60))]
    retention: u32,
    /// Milliseconds between two batches of a milter.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    milter_interval: u32,
    /// Milliseconds between two steps of an aggregator.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    interval: u32,
    /// The reports of the busiest hour, as a multiple of the average.
    #[arg(long, value_name = "TIMES", default_value_t = 3.0)]
    busy: f64,
    /// Different signatures of the day that is sampled.
    #[arg(long, value_name = "SIGNATURES", default_value_t = SIGNATURES, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    sampled: u32,
    /// Memory that an aggregator may take, in GB: for the number of shards.
    #[arg(long, value_name = "GB", default_value_t = 64.0)]
    aggregator_memory: f64,
    /// Memory that a milter may take, in GB.
    #[arg(long, value_name = "GB", default_value_t = 4.0)]
    milter_memory: f64,
    /// The most that a milter may receive, in Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = 100.0)]
    milter_mbit: f64,
    /// The most that an aggregator may use for snapshots, in Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = 500.0)]
    snapshot_mbit: f64,
}

/// A number with k, M or G behind it.
fn number(text: &str) -> Result<f64, String> {
    let units = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let (digits, unit) = units
        .iter()
        .find_map(|&(unit, times)| Some((text.strip_suffix(unit)?, times)))
        .unwrap_or((text, 1.0));
    let number = digits.parse::<f64>().map(|number| number * unit);
    let wrong = || format!("found {text:?}, expected 1000 to 1000G, for example 10M");
    number.ok().filter(|number| (1e3..=1e12).contains(number)).ok_or_else(wrong)
}

/// A plan, and its results.
struct Column {
    plan: Plan,
    load: Load,
    sample: Sample,
    partial: Partial,
    needs: Needs,
}

impl Args {
    fn plan(&self, messages: f64) -> Plan {
        let milters = self.milters.map_or_else(|| (messages / OF_A_MILTER).ceil().max(4.0), f64::from);
        let engine = match self.log {
            Log::Embedded => Engine::Embedded,
            Log::Https => Engine::Https,
            Log::Nats => Engine::Nats,
            Log::Postgres => Engine::Postgres,
        };
        Plan {
            messages,
            width: self.per_message.into(),
            law: self.law,
            milters,
            aggregators: self.aggregators.into(),
            nodes: if engine.is_log() { self.nodes.into() } else { 0.0 },
            engine,
            windows: f64::from(self.retention) + 1.0,
            sync: f64::from(self.milter_interval) / 1e3,
            interval: f64::from(self.interval) / 1e3,
        }
    }

    const fn budget(&self) -> Budget {
        Budget {
            aggregator: self.aggregator_memory * 1e9,
            milter: self.milter_memory * 1e9,
            down: self.milter_mbit * 1e6 / 8.0,
            snapshots: self.snapshot_mbit * 1e6 / 8.0,
            busy: self.busy,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut columns = Vec::new();
    for &messages in &args.messages {
        let plan = args.plan(messages);
        let load = plan.load();
        let steps = load.steps * 86_400.0;
        let sample = runtime.block_on(sample(plan.law, args.sampled, steps))?;
        let partial = runtime.block_on(partial(plan.law, args.sampled, steps))?;
        columns.push(Column { plan, load, sample, partial, needs: plan.needs(&load, &sample, &partial) });
    }
    let Some(first) = columns.first() else { return Ok(ExitCode::SUCCESS) };
    let plan = &first.plan;
    println!(
        "{:?}, {} signatures a message, {}; {} aggregators, {} nodes; {} windows; a program takes {}",
        plan.engine,
        plan.width,
        plan.law,
        plan.aggregators,
        plan.nodes,
        plan.windows,
        bytes(PROGRAM)
    );
    let row = |what: &str, of: &dyn Fn(&Column) -> String| {
        println!(
            "{what:<42}{}",
            columns.iter().map(|column| format!("{:>16}", of(column))).collect::<String>()
        );
    };
    load_rows(&row);
    need_rows(&row, plan.engine);
    if plan.engine.is_log() {
        lost_rows(&row);
        println!("of a chain in use, in the busiest hour ({} times the average), in percent:", args.busy);
        let budget = args.budget();
        let used = |column: &Column| limits(&column.plan, &column.load, &column.needs, &budget);
        for (i, limit) in used(first).iter().enumerate() {
            let mark = if limit.sharding_helps { "" } else { " *" };
            row(&format!("  {}{mark}", limit.what), &|column| format!("{:.1}", 100.0 * used(column)[i].used));
        }
        row("shards (* is not divided by them)", &|column| shards(&used(column)).to_string());
    }
    Ok(ExitCode::SUCCESS)
}

type Rows<'a> = dyn Fn(&str, &dyn Fn(&Column) -> String) + 'a;

fn load_rows(row: &Rows<'_>) {
    row("messages a day", &|c| count(c.plan.messages));
    row("mail servers", &|c| count(c.plan.milters));
    row("reports a second", &|c| count(c.load.reports));
    row("batches a second, all milters", &|c| count(c.load.batches));
    row("steps a second", &|c| format!("{:.2}", c.load.steps));
    row("different signatures a day", &|c| count(c.load.distinct));
    row("capacity", &|c| count(c.load.capacity.into()));
    row("bytes a report, up in a batch", &|c| {
        format!("{:.1}", c.sample.batch + c.sample.empty_batch * c.load.batches / c.load.reports)
    });
    row("bytes a report, down in a step", &|c| format!("{:.2}", c.sample.step));
    row("bytes a report, down as notes of bulk", &|c| format!("{:.2}", c.partial.note));
    row("bytes a report, down in a step with bulk", &|c| format!("{:.2}", c.sample.step + c.partial.note));
}

fn need_rows(row: &Rows<'_>, engine: Engine) {
    let has = engine.is_log();
    row("memory: a milter that holds all", &|c| bytes(c.needs.milter));
    row("memory: a milter that holds bulk", &|c| bytes(c.needs.partial));
    row("memory: an aggregator or server", &|c| bytes(c.needs.aggregator));
    row("disk: a ledger that holds all", &|c| bytes(c.needs.file));
    row("up, from a milter", &|c| rate(c.needs.up));
    row("down, to a milter that holds all", &|c| rate(c.needs.down));
    if has {
        row("  of it marks of spools", &|c| rate(c.needs.marks));
        row("down, to each where some hold bulk", &|c| rate(c.needs.partial_down));
    } else {
        row("down, to one that holds bulk", &|c| rate(c.needs.partial_down));
    }
    row("to each aggregator or server", &|c| rate(c.needs.read));
    if has {
        row("from the aggregator that makes steps", &|c| rate(c.needs.written));
        row("  of it snapshots", &|c| rate(c.needs.snapshots));
        row("from node to node of the log", &|c| rate(c.needs.within));
        row("disk: a node of the log", &|c| bytes(c.needs.log));
    }
    row("from the log or servers to all", &|c| rate(c.needs.out));
    row("processor: a milter that holds all, cores", &|c| format!("{:.4}", c.needs.apply));
    if has {
        row("processor: the aggregator that makes steps", &|c| format!("{:.4}", c.needs.aggregate));
    }
    row("from a message to all others, usually", &|c| format!("{:.2} s", c.needs.usual));
    row("  at most, while nothing is dead", &|c| format!("{:.2} s", c.needs.most));
}

/// The cost of a machine's failure. No row has delayed mail or lost counts: there are none.
fn lost_rows(row: &Rows<'_>) {
    row("an aggregator dies: steps late by, at most", &|c| format!("{:.1} s", 3.0 * c.plan.interval));
    row("  a new one takes", &|c| bytes(c.needs.snapshot));
    row("a milter's disk is lost: reports, at most", &|c| {
        count(c.needs.most * c.load.reports / c.plan.milters)
    });
    row("the log's leader dies: late by, at most", &|c| match c.plan.engine.framing().leaderless {
        0.0 => "its failover".to_owned(),
        seconds => format!("{seconds:.1} s"),
    });
    row("  meanwhile kept by each milter, on disk", &|c| {
        let seconds = c.plan.engine.framing().leaderless;
        bytes(seconds.max(1.0) * c.load.reports / c.plan.milters * 36.0)
    });
    row("without a log a milter drops reports after", &|c| lasts(SPOOL / (c.load.reports / c.plan.milters)));
    row("a node's disk is lost: it gets", &|c| bytes(c.needs.log));
}

fn count(number: f64) -> String {
    scaled(number, &["", " k", " M", " G"])
}

fn bytes(number: f64) -> String {
    scaled(number, &[" B", " kB", " MB", " GB", " TB"])
}

/// The time for which the spool is large enough.
fn lasts(seconds: f64) -> String {
    let seconds = seconds.min(SPOOL_SECONDS);
    if seconds < 7200.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{:.1} h", seconds / 3600.0) }
}

/// Bytes a second as bits.
fn rate(number: f64) -> String {
    scaled(8.0 * number, &[" bit/s", " kbit/s", " Mbit/s", " Gbit/s"])
}

fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1e3;
        unit += 1;
    }
    let digits = if unit == 0 || number >= 99.95 { 0 } else { 1 };
    format!("{number:.digits$}{}", units[unit])
}
