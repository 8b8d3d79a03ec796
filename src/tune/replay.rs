// SPDX-License-Identifier: GPL-3.0-or-later
//! Has all messages counted, in the order in which they came.

use super::archive::{Archive, Faults, Label};
use super::border::Border;
use super::clusters::{Cluster, Clusters};
use super::index::{Entry, Index, Source, threads};
use super::letter::Letter;
use super::report::{AtThreshold, ClusterRow, Configured, Kept, Labels, PolicyRow, Standing, Tuning};
use super::tally::{MAX, Tally};
use super::wanted::Correspondents;
use bulkmark_ledger::{Ledger, LedgerError};
use bulkmark_mail::{RawMessage, Stored};
use bulkmark_policy::{Action, Backings, Counts, PolicyRef, Verdict};
use bulkmark_verdict::{Content, Counted, Envelope, Finding, Inquiry, Mode, Question, Rules};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Messages that a core may be ahead of the count.
const AHEAD: usize = 64;

/// The thresholds that a report shows.
const THRESHOLDS: [u32; 5] = [5, 10, 20, 50, 100];

/// Why there is nothing of a message.
enum Lost {
    TooLarge,
    Unreadable(String),
}

/// Counts all messages of an archive in this ledger, by these rules, and says what would have come of them. `border` says from
/// which client each came; where that is not known, it does not matter. `tell` is called for each message.
///
/// # Errors
/// When the ledger does not count.
pub fn replay(
    index: &Index<'_>,
    rules: &Rules,
    ledger: &Ledger,
    border: &Border,
    tell: &dyn Fn(),
) -> Result<Tuning, LedgerError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|e| LedgerError::Unavailable(e.to_string()))?;
    let threads = threads();
    thread::scope(|scope| {
        let mut ready = Vec::new();
        // Of n threads each takes every nth message, so that their results are in order when they are taken in turn.
        for first in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            ready.push(receiver);
            let mine = index.entries.iter().skip(first).step_by(threads);
            scope.spawn(move || read_all(index.archive(), mine, (rules, border), &sender));
        }
        let result = runtime.block_on(count_all(index, rules, ledger, &ready, tell));
        // After an error, this ends the threads.
        drop(ready);
        result
    })
}

fn read_all<'a>(
    archive: &Archive,
    entries: impl Iterator<Item = &'a Entry>,
    by: (&Rules, &Border),
    ready: &SyncSender<Result<Letter, Lost>>,
) {
    let mut source = Source::new(archive);
    for entry in entries {
        if ready.send(read(&mut source, entry, by)).is_err() {
            return;
        }
    }
}

fn read(source: &mut Source<'_>, entry: &Entry, (rules, border): (&Rules, &Border)) -> Result<Letter, Lost> {
    let raw = source.read(entry).map_err(|e| Lost::Unreadable(e.to_string()))?.ok_or(Lost::TooLarge)?;
    let message = RawMessage::from_bytes(&raw).map_err(|_| Lost::TooLarge)?;
    // A panic costs this message its count and nothing else, as in the milter.
    catch_unwind(AssertUnwindSafe(|| {
        let stored = Stored::of(&raw);
        let envelope = Envelope {
            client: border.client(&stored.received, &rules.exempt_networks),
            sender: stored.return_path,
            recipients: stored.delivered_to.into_iter().collect(),
            ..Envelope::default()
        };
        Letter { time: entry.time, subject: stored.subject, envelope, content: Content::of(&message, rules) }
    }))
    .map_err(|_| Lost::Unreadable("the message could not be read".to_owned()))
}

async fn count_all(
    index: &Index<'_>,
    rules: &Rules,
    ledger: &Ledger,
    ready: &[Receiver<Result<Letter, Lost>>],
    tell: &dyn Fn(),
) -> Result<Tuning, LedgerError> {
    let mut collected = Collected::new(index, rules);
    for (entry, ready) in index.entries.iter().zip(ready.iter().cycle()) {
        let Ok(letter) = ready.recv() else { break };
        let label = index.archive().files[entry.file as usize].label;
        match letter {
            Err(Lost::TooLarge) => collected.kept.too_large += 1,
            Err(Lost::Unreadable(reason)) => {
                collected.faults.add(&index.archive().path(entry.file), &reason);
                continue;
            }
            Ok(letter) if !rules.judges_any(&rules.parties(&letter.envelope)) => {
                collected.kept.by_policy += 1
            }
            Ok(letter) if Finding::uncounted(&letter.content).is_some() => collected.kept.exempt += 1,
            Ok(letter) => {
                let reported = count(&letter, rules, ledger).await?;
                collected.add(&letter, label, reported, rules);
            }
        }
        collected.labels[label.index()] += 1;
        tell();
    }
    Ok(collected.report())
}

/// What came of a message's report.
#[derive(Clone, Copy)]
struct Reported {
    known: (Counts, Backings),
    signatures: usize,
}

/// Reports a message at the time when it came.
async fn count(letter: &Letter, rules: &Rules, ledger: &Ledger) -> Result<Reported, LedgerError> {
    let mut inquiry = Inquiry::new(&letter.content.signatures, &rules.key, Mode::Report(1))
        .sent_by(letter.content.provenance(&letter.envelope, rules));
    if let network @ Some(_) = letter.envelope.network() {
        inquiry = inquiry.from_network(network, rules.range());
    }
    while let Some(Question { reported, once, also, asked, times, .. }) = inquiry.ask() {
        let now = letter.time;
        let report = bulkmark_counts::Report {
            signatures: reported,
            once,
            also,
            asked,
            times,
            now,
            ..Default::default()
        };
        inquiry.answer(&ledger.report(report).await?);
    }
    Ok(Reported { known: (inquiry.counts(), inquiry.backings()), signatures: inquiry.reported() })
}

/// What is known so far.
struct Collected {
    kept: Kept,
    labels: [u64; 3],
    bulk: [u64; 3],
    configured: Configured,
    policies: HashMap<PolicyRef, PolicyRow>,
    faults: Faults,
    tally: Tally,
    clusters: Clusters,
    correspondents: Correspondents,
}

impl Collected {
    fn new(index: &Index<'_>, rules: &Rules) -> Self {
        let time = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.time);
        Self {
            kept: Kept {
                no_mail: index.no_mail,
                first: time(index.entries.first()),
                last: time(index.entries.last()),
                ..Kept::default()
            },
            labels: [0; 3],
            bulk: [0; 3],
            configured: Configured {
                body: rules.thresholds.body.get(),
                near: rules.thresholds.near.get(),
                min_sources: rules.thresholds.min_sources.get(),
                ..Configured::default()
            },
            policies: HashMap::new(),
            faults: index.faults.clone(),
            tally: Tally::new(),
            clusters: Clusters::default(),
            correspondents: Correspondents::default(),
        }
    }

    fn add(&mut self, letter: &Letter, label: Label, reported: Reported, rules: &Rules) {
        let counts = reported.known.0;
        let to = (&letter.envelope, &rules.parties(&letter.envelope)[..]);
        // What is not judged was not counted either, and does not come here.
        let Some(counted) = Counted::new(rules, to, &letter.content, reported.known, None) else { return };
        let decision = counted.decision;
        let verdict = decision.verdict;
        if let Some(name) = rules.name(decision.by) {
            let new = || PolicyRow { policy: name.to_owned(), ..PolicyRow::default() };
            let row = self.policies.entry(decision.by).or_insert_with(new);
            row.messages += 1;
            row.bulk += u64::from(verdict == Verdict::Bulk);
            row.refused += u64::from(decision.action != Action::Mark);
        }
        let whitelisted = verdict == Verdict::Whitelisted;
        self.kept.counted += 1;
        self.kept.signatures += reported.signatures as u64;
        self.kept.without_network += u64::from(letter.envelope.client.is_none());
        self.configured.held += u64::from(decision.held.is_some());
        self.configured.whitelisted += u64::from(whitelisted);
        self.bulk[label.index()] += u64::from(verdict == Verdict::Bulk);
        let sender = letter.content.from.first().map_or("", |address| address);
        self.tally.add(counts, label, sender, whitelisted);
        let count = counts.body.max(counts.near).unwrap_or(0);
        if !whitelisted {
            self.correspondents.add(letter, label, count, verdict == Verdict::Bulk);
        }
        self.clusters.add(letter, label, count, whitelisted);
    }

    fn report(self) -> Tuning {
        let proposals = self.correspondents.proposals();
        let mut policies: Vec<_> = self.policies.into_values().collect();
        policies.sort_by(|a, b| b.messages.cmp(&a.messages).then_with(|| a.policy.cmp(&b.policy)));
        let bulk = self.bulk.iter().sum::<u64>();
        let wanted = proposals.iter().filter(|proposal| proposal.standing == Standing::Wanted);
        let wanted: u64 = wanted.map(|proposal| proposal.bulk).sum();
        let row = |threshold| {
            let reached = self.tally.reached(threshold);
            AtThreshold {
                threshold,
                messages: reached.messages(),
                body: reached.body,
                near: reached.messages() - reached.body,
                senders: self.tally.senders(threshold),
                labels: Labels::from(reached.labels),
                whitelisted: reached.whitelisted,
            }
        };
        // Each point sums up what is above it: enough of them for a line on a logarithmic scale.
        let right = self.tally.peak().clamp(THRESHOLDS[4], MAX);
        let at = std::iter::successors(Some(1), |&t| Some(t + (t / 20).max(1))).take_while(|&t| t <= right);
        Tuning {
            archive: Kept {
                messages: self.labels.iter().sum(),
                unreadable: self.faults.number(),
                labels: Labels::from(self.labels),
                ..self.kept
            },
            thresholds: THRESHOLDS.map(row).into(),
            curve: at.map(row).collect(),
            configured: Configured {
                bulk,
                labels: Labels::from(self.bulk),
                policies,
                bulk_with_proposals: bulk.saturating_sub(wanted),
                ..self.configured
            },
            clusters: self.clusters.ranked(THRESHOLDS[0]).iter().map(cluster).collect(),
            proposals,
            unreadable: self.faults.into_listed(),
        }
    }
}

fn cluster(cluster: &Cluster) -> ClusterRow {
    let (from, from_is_all) = cluster.from.ranked();
    ClusterRow {
        messages: cluster.messages,
        count: cluster.peak,
        same_body: cluster.exact,
        whitelisted: cluster.whitelisted,
        labels: Labels::from(cluster.labels),
        first: cluster.first,
        last: cluster.last,
        from,
        from_is_all,
        list_ids: cluster.list_ids.ranked().0,
        subjects: cluster.subjects.ranked().0,
    }
}
