// SPDX-License-Identifier: GPL-3.0-or-later
//! The last table: the required values, and whether they were reached.

use super::contenders::LARGE_BATCH;
use super::plain::BATCH;
use super::race::Results;

/// Nanoseconds of an addition, measured elsewhere, in dablooms' counting filters at an error of .01, with 1, 10 and
/// 100 million elements: 5, 48 and 479 MB.
pub(crate) const DABLOOMS: [f64; 3] = [66.0, 96.0, 217.0];

/// The requirement for a value.
#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Only for comparison.
    None,
}

/// Rows of the last table.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<(String, f64, Target)>,
}

impl Table {
    fn row(&mut self, label: impl Into<String>, value: f64, target: Target) {
        self.rows.push((label.into(), value, target));
    }

    /// Adds one size of filter: additions compared with those of dablooms, and the effect of bulk and batches.
    pub(crate) fn additions(&mut self, size: &str, results: &Results, dablooms: f64) {
        let ns = |name: &str| results.ns(name);
        let least = Target::AtMost(dablooms);
        self.row(format!("{size}: report+count, ns"), ns("filter, report+count"), least);
        let batch = "filter, report+count, batch";
        self.row(format!("{size}: report+count, batch, ns"), ns(batch), least);
        let gain = results.ratio("filter, report+count", batch);
        self.row(format!("{size}: report+count, single / batch"), gain, Target::None);
        let gain = results.ratio("filter, count", "filter, count, batch");
        self.row(format!("{size}: count, single / batch"), gain, Target::None);
        let bulk = results.ratio("filter, report+count, batch, bulk", batch);
        self.row(format!("{size}: report+count, batch, bulk / mixed"), bulk, Target::None);
    }

    /// Adds the filter of 1 GB compared with the machine's limits.
    pub(crate) fn limits(&mut self, results: &Results) {
        let r = |a: &str, b: &str| results.ratio(a, b);
        let batch = "filter, report+count, batch";
        let lines =
            ["two lines, changed, huge pages", "two lines, changed, prefetched to level 1, huge pages"];
        let faster = if r(lines[0], lines[1]) < 1.0 { lines[0] } else { lines[1] };
        self.row("1 GB: report+count, batch / two lines changed", r(batch, faster), Target::AtMost(1.5));
        let level_2 = r(batch, "two lines, changed, prefetched to level 2, huge pages");
        self.row("1 GB: report+count, batch / the same, prefetched to level 2", level_2, Target::None);
        let read = r("filter, count, batch", "two lines, read, huge pages");
        self.row("1 GB: count, batch / two lines read", read, Target::None);
        let dependent = r("two lines, read one after the other, huge pages", "two lines, read, huge pages");
        self.row("1 GB: two lines, one after the other / independent", dependent, Target::None);
        let changed = r("two lines, changed, small pages", "two lines, changed, huge pages");
        self.row("1 GB: two lines changed, small / huge pages", changed, Target::None);
        let prefetched = "filter's batch, prefetched to level 2, huge pages";
        let pages = r("filter's batch, prefetched to level 2, small pages", prefetched);
        self.row("1 GB: filter's batch, small / huge pages", pages, Target::None);
        let level_1 = r("filter's batch, prefetched to level 1, huge pages", prefetched);
        self.row("1 GB: filter's batch, prefetched to level 1 / 2", level_1, Target::None);
        let read = r("filter's batch, read ahead, huge pages", prefetched);
        self.row("1 GB: filter's batch, read ahead / prefetched", read, Target::None);
        let nothing = r("filter's batch, nothing ahead, huge pages", prefetched);
        self.row("1 GB: filter's batch, nothing ahead / prefetched", nothing, Target::None);
    }

    /// Adds filter and hash maps of 50 million elements; `filter` and `map` are their bytes.
    pub(crate) fn maps(&mut self, results: &Results, filter: usize, map: usize) {
        for operation in ["report+count", "count"] {
            for hasher in ["no hashing", "foldhash"] {
                let batch = format!("filter, {operation}, batch");
                let faster = results.ratio(&format!("hashbrown, {hasher}, {operation}"), &batch);
                let label = format!("50 million: {operation}, hashbrown ({hasher}) / batch");
                self.row(label, faster, Target::AtLeast(1.5));
            }
        }
        let (mega, share) = (1e6, filter as f64 / map as f64);
        self.row("50 million: MB of the filter", filter as f64 / mega, Target::None);
        self.row("50 million: MB of hashbrown", map as f64 / mega, Target::None);
        self.row("50 million: memory, filter / hashbrown", share, Target::AtMost(0.1));
    }

    /// Adds counting in one filter from two threads.
    pub(crate) fn count_threads(&mut self, results: &Results) {
        let gain = results.ratio("filter, count, batch, 1 threads", "filter, count, batch, 2 threads");
        self.row("1 GB: count, batch, 2 threads / 1", gain, Target::AtLeast(1.8));
    }

    /// Adds two threads on a filter in parts.
    pub(crate) fn sharded(&mut self, results: &Results) {
        for operation in ["report+count", "count"] {
            for batch in [BATCH, LARGE_BATCH] {
                let name = |threads| format!("sharded, {operation}, batch of {batch}, {threads} threads");
                let gain = results.ratio(&name(1), &name(2));
                let label = format!("1 GB, sharded: {operation}, batch of {batch}, 2 threads / 1");
                self.row(label, gain, Target::AtLeast(1.8));
            }
        }
    }

    pub(crate) fn print(&self) {
        println!(
            "\nratios of times (medians over rounds); dablooms: {} to {} ns an addition",
            DABLOOMS[0], DABLOOMS[2]
        );
        for (label, value, target) in &self.rows {
            let verdict = |holds| if holds { "ok" } else { "not" };
            let (bound, verdict) = match *target {
                Target::AtMost(bound) => (format!("<= {bound}"), verdict(*value <= bound)),
                Target::AtLeast(bound) => (format!(">= {bound}"), verdict(*value >= bound)),
                Target::None => (String::new(), ""),
            };
            println!("{label:<62} {value:>9.2} {bound:>8} {verdict:>4}");
        }
    }
}
