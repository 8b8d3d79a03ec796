// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study layouts`

use super::corpus;
use super::format::Format;
use anyhow::Context;
use bulkmark_study::layouts::{
    self, BITS, Cost, Distribution, FILTER_BYTES, History, Layout, Measured, RATIOS, Row, Size, Speed,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Measure layouts of the filter: accuracy at equal memory and by the number of cells, and speed.
///
/// The paper left this as future work: how often layouts mistake other elements for bulk, in the same memory, when
/// elements are added as often as mail is; and the cost of an addition and a question in filters from 5 MB to 4 GB, as far
/// as half of the free memory allows. Except for the costs, the results are the same on any machine.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A layout, BLOCKSxCELLS/BITS such as 2x4/4, then +N for the number of cells with further counts or +paper; may be
    /// given more than once [default: the shipped one and those that it is compared with]
    #[arg(long, value_name = "LAYOUT")]
    layout: Vec<Layout>,
    /// Bits for each element at which layouts are compared; may be given more than once [default: 32, 40, 44 and 48 in
    /// the part "pareto", 40 in "zipf" and "corpus"]
    #[arg(long, value_name = "BITS", value_parser = bits)]
    bits: Vec<f64>,
    /// Elements that are added to a filter.
    #[arg(
        long,
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(100..=20_000_000),
    )]
    elements: u32,
    /// Elements that were never added and are asked for.
    #[arg(
        long,
        default_value_t = 20_000_000,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000_000),
    )]
    unseen: u64,
    /// Only this part; may be given more than once. "corpus" needs the environment variable BULKMARK_CORPUS, a
    /// directory of mail [default: all]
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// The seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// A part of the study.
// The manual explains them: lines of help that begin with a dash are for options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    // Layouts at equal memory, elements added by Pareto(1).
    Pareto,
    // The same with Zipf's law.
    Zipf,
    // The same with the bodies of a directory of mail.
    Corpus,
    // Four layouts by the number of cells for each element.
    Cells,
    // The cost of an addition and a question.
    Speed,
}

/// Bits for each element where one size is enough.
const ONE_SIZE: [f64; 1] = [40.0];

/// Layouts that are measured by the number of cells: the shipped one, without blocks, with one block, and with five bits.
const BY_CELLS: [&str; 4] = ["2x4/4", "8x1/4", "1x8/4", "2x3/5"];

fn bits(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(bits) if (8.0..=1000.0).contains(&bits) => Ok(bits),
        _ => Err(format!("bits for each element is {text}, expected 8 to 1000")),
    }
}

/// The printed tables and their format.
struct Printer {
    format: Format,
    seed: u64,
    parts: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (seed, format) = (args.seed, args.format);
    let mut printer = Printer { format, seed, parts: 0 };
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let layouts = |standard: &dyn Fn() -> Vec<Layout>| {
        if args.layout.is_empty() { standard() } else { args.layout.clone() }
    };
    let accuracy = |part, name: &str, distribution: &Distribution, printer: &mut Printer| {
        if wanted(part) {
            let layouts = layouts(&Layout::standard);
            let standard = if part == Part::Pareto { &BITS[..] } else { &ONE_SIZE };
            let bits = if args.bits.is_empty() { standard } else { &args.bits };
            let sizes: Vec<Size> = bits.iter().copied().map(Size::Bits).collect();
            printer.accuracy(args, name, distribution, &layouts, &sizes)?;
        }
        anyhow::Ok(())
    };
    accuracy(Part::Pareto, "Pareto(1)", &Distribution::Pareto, &mut printer)?;
    accuracy(Part::Zipf, "Zipf(1.2)", &Distribution::Zipf, &mut printer)?;
    match std::env::var_os(corpus::VARIABLE) {
        Some(directory) if wanted(Part::Corpus) => {
            let counts = corpus::counts(Path::new(&directory))?;
            let name = format!(
                "corpus ({} messages, {} bodies)",
                counts.iter().map(|&c| u64::from(c)).sum::<u64>(),
                counts.len()
            );
            accuracy(Part::Corpus, &name, &Distribution::Found(counts), &mut printer)?;
        }
        Some(_) => (),
        None if args.only.contains(&Part::Corpus) => {
            anyhow::bail!("{} is not set: it names a directory of mail", corpus::VARIABLE)
        }
        None => (),
    }
    if wanted(Part::Cells) {
        let layouts = layouts(&|| BY_CELLS.iter().filter_map(|text| text.parse().ok()).collect());
        let sizes = RATIOS.map(Size::Cells);
        printer.accuracy(args, "Pareto(1)", &Distribution::Pareto, &layouts, &sizes)?;
    }
    if wanted(Part::Speed) {
        printer.speeds()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn progress(steps: usize) -> anyhow::Result<ProgressBar> {
    Ok(ProgressBar::new(steps as u64).with_style(ProgressStyle::with_template(
        "{elapsed_precise} {wide_bar} {pos}/{len} filters, {eta} left",
    )?))
}

impl Printer {
    /// An empty line between tables.
    fn begin(&mut self, title: &str) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.parts > 0 {
            writeln!(out)?;
        }
        self.parts += 1;
        if self.format == Format::Table { writeln!(out, "{title}") } else { Ok(()) }
    }

    fn accuracy(
        &mut self,
        args: &Args,
        name: &str,
        distribution: &Distribution,
        layouts: &[Layout],
        sizes: &[Size],
    ) -> anyhow::Result<()> {
        let named = || format!("--elements {}", args.elements);
        let history = History::draw(distribution, args.elements, self.seed).with_context(named)?;
        let bar = progress(layouts.len() * sizes.len())?;
        let rows =
            layouts::compare(layouts, sizes, &history, args.unseen, &|| bar.inc(1)).with_context(named)?;
        bar.finish_and_clear();
        self.begin(&format!(
            "{name}: {} elements, {} of them 20 times or more; {} additions; {} others asked for",
            history.elements(),
            history.reaching(20),
            history.additions(),
            args.unseen
        ))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", header(self.format))?;
        for row in &rows {
            writeln!(out, "{}", line(self.format, name, row))?;
        }
        Ok(())
    }

    fn speeds(&mut self) -> anyhow::Result<()> {
        let free = layouts::free_memory();
        let (fitting, left_out): (Vec<u64>, Vec<u64>) =
            FILTER_BYTES.into_iter().partition(|&bytes| free.is_none_or(|free| bytes <= free / 2));
        let bar = progress(fitting.len())?;
        let mut speeds = Vec::new();
        for bytes in fitting {
            speeds.push(layouts::speed(bytes, self.seed).with_context(|| format!("{bytes} bytes"))?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        self.begin("Shipped filter: nanoseconds for each element, all of them different")?;
        print_speeds(self.format, &speeds)?;
        for bytes in left_out {
            eprintln!("left out: {bytes} bytes, more than half of the free memory");
        }
        Ok(())
    }
}

fn header(format: Format) -> String {
    match format {
        Format::Csv => "distribution,wanted,layout,bits,cells,too_high,false_bulk_20,false_bulk_100,unseen_2,unseen_20,\
                        unseen_100,expected_2,expected_20,expected_100,equation_20,equation_100,reached_20,reached_100"
            .to_owned(),
        Format::Table => format!(
            "{:<11} {:>6} {:>5} | {:>7} | {:>7} {:>7} | {:>7} {:>6} {:>6} | {:>7} {:>7} {:>7} | {:>8} {:>7}",
            "", "", "", "too", "false bulk", "", "unseen", "", "", "chance", "of", "", "eq. 4", "reached"
        ) + &format!(
            "\n{:<11} {:>6} {:>5} | {:>7} | {:>7} {:>7} | {:>7} {:>6} {:>6} | {:>7} {:>7} {:>7} | {:>8} {:>7}",
            "layout", "bits", "cells", "high", ">= 20", ">= 100", ">= 2", ">= 20", ">= 100", ">= 2", ">= 20", ">= 100",
            ">= 20", ">= 20"
        ),
    }
}

/// An unknown value is a dash, in CSV nothing.
fn line(format: Format, name: &str, Row { layout, size, measured }: &Row) -> String {
    let wanted = match size {
        Size::Bits(bits) => format!("{bits} bits"),
        Size::Cells(cells) => format!("{cells} cells"),
    };
    let Some(measured) = measured else {
        return match format {
            Format::Csv => format!("{name},{wanted},{layout},,,,,,,,,,,,,,,"),
            Format::Table => format!("{layout:<11} split storage alone needs more than {wanted}"),
        };
    };
    let Measured {
        cells_per_element: cells,
        bits,
        too_high,
        false_bulk,
        unseen,
        expected,
        equation,
        reached,
    } = measured;
    let rate = |value: &Option<f64>| match (value, format) {
        (Some(value), Format::Table) => format!("{value:.1e}"),
        (Some(value), Format::Csv) => format!("{value:e}"),
        (None, Format::Table) => "-".to_owned(),
        (None, Format::Csv) => String::new(),
    };
    let none = rate(&None);
    let [bulk_20, bulk_100] = false_bulk.each_ref().map(&rate);
    let [two, twenty, hundred] = unseen.map(|n| n.map_or_else(|| none.clone(), |n| n.to_string()));
    let [e_two, e_twenty, e_hundred] = expected.each_ref().map(&rate);
    let [[eq_20, eq_100], [hit_20, hit_100]] = [equation, reached].map(|both| both.map(|v| rate(&Some(v))));
    let high = rate(&Some(*too_high));
    match format {
        Format::Csv => format!(
            "{name},{wanted},{layout},{bits},{cells},{high},{bulk_20},{bulk_100},{two},{twenty},{hundred},{e_two},\
             {e_twenty},{e_hundred},{eq_20},{eq_100},{hit_20},{hit_100}"
        ),
        Format::Table => format!(
            "{layout:<11} {bits:>6.2} {cells:>5.2} | {high:>7} | {bulk_20:>7} {bulk_100:>7} | {two:>7} {twenty:>6} \
             {hundred:>6} | {e_two:>7} {e_twenty:>7} {e_hundred:>7} | {eq_20:>8} {hit_20:>7}"
        ),
    }
}

fn print_speeds(format: Format, speeds: &[Speed]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let ways = ["single", "batch", "shared", "2 threads"];
    match format {
        Format::Csv => writeln!(
            out,
            "megabytes,single_add,single_count,batch_add,batch_count,shared_add,shared_count,two_threads_add,\
             two_threads_count"
        )?,
        Format::Table => {
            let names = ways.map(|way| format!(" | {way:<13}")).concat();
            let columns = ways.map(|_| format!(" | {:>6} {:>6}", "add", "count")).concat();
            writeln!(out, "{:>5}{names}\n{:>5}{columns}", "", "MB")?;
        }
    }
    for Speed { bytes, single, batch, shared, two_threads } in speeds {
        let megabytes = bytes / 1_000_000;
        let costs = [single, batch, shared, two_threads];
        let text = costs.map(|Cost { add, count }| match format {
            Format::Csv => format!(",{add:.1},{count:.1}"),
            Format::Table => format!(" | {add:>6.0} {count:>6.0}"),
        });
        match format {
            Format::Csv => writeln!(out, "{megabytes}{}", text.concat())?,
            Format::Table => writeln!(out, "{megabytes:>5}{}", text.concat())?,
        }
    }
    Ok(())
}
