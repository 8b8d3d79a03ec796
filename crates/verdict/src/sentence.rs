// SPDX-License-Identifier: GPL-3.0-or-later
//! The reason of a verdict, as a sentence.

use super::finding::Finding;
use super::reason::Exempt;
use bulkmark_policy::{Counts, Thresholds, Verdict};
use bulkmark_types::LowInformation;

/// The verdict, and its reason.
#[must_use]
pub fn sentence(
    finding: &Finding,
    thresholds: &Thresholds,
    low: Option<LowInformation>,
) -> (Verdict, String) {
    let counted = match finding {
        Finding::Canary(_) => {
            return (Verdict::Bulk, "it is the canary, which is always bulk and never counted".to_owned());
        }
        Finding::Exempt(Exempt::Policy) => {
            return (Verdict::Exempt, "its policy says judge = false".to_owned());
        }
        Finding::Exempt(reason) if *reason != Exempt::LowInformation => {
            return (Verdict::Exempt, format!("the milter does not judge such mail: {reason}"));
        }
        Finding::Exempt(reason) => {
            let why = low.map_or_else(|| reason.to_string(), |low| low.to_string());
            return (
                Verdict::Exempt,
                format!("it has too little text to be distinguished from others: {why}"),
            );
        }
        Finding::Unknown(reason, detail) => {
            return (Verdict::Unknown, format!("{reason} {detail}").trim_end().to_owned());
        }
        Finding::Counted(counted) => counted,
    };
    let Counts { body, near, spam } = counted.counts;
    let spam = spam.filter(|_| counted.decision.verdict == Verdict::Spam);
    let least = |count: u32| if counted.shown(count).ends_with('+') { "at least " } else { "" };
    let kinds = [("body", body, thresholds.body.get()), ("near", near, thresholds.near.get())];
    let counts_that = |reached: bool| {
        let kinds = kinds.iter().filter_map(|&(kind, count, threshold)| {
            let count = count.filter(|&count| (count >= threshold) == reached)?;
            Some(format!("its {kind} count is {}{count}, the threshold {threshold}", least(count)))
        });
        kinds.collect::<Vec<_>>().join(", and ")
    };
    let verdict = counted.decision.verdict;
    let reason = match (verdict, &counted.decision.whitelist) {
        (Verdict::Whitelisted, Some(entry)) => format!("the white list wants it: {entry}"),
        (Verdict::Spam, _) => {
            let spam = spam.unwrap_or_default();
            format!("users report it as spam with the weight {spam}, the threshold {}", thresholds.spam.get())
        }
        (Verdict::Bulk, _) => counts_that(true),
        _ => counts_that(false),
    };
    (verdict, reason)
}
