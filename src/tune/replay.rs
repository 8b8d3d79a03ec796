// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts all messages in the order of their arrival.

use super::archive::{Archive, Faults, Label};
use super::border::Border;
use super::clusters::{Cluster, Clusters};
use super::index::{Entry, Index, Source, threads};
use super::letter::Letter;
use super::report::{AtThreshold, ClusterRow, Configured, Contents, Labels, PolicyRow, Standing, Tuning};
use super::tally::{MAX, Tally};
use super::wanted::Senders;
use bulkmark_ledger::{Ledger, LedgerError};
use bulkmark_mail::{RawMessage, Stored};
use bulkmark_policy::{Action, Backings, Counts, PolicyRef, Verdict};
use bulkmark_verdict::{Content, Counted, Envelope, Finding, Inquiry, Mode, Question, Rules};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Messages that a thread may be ahead of the count.
const AHEAD: usize = 64;

/// The thresholds that a report shows.
const THRESHOLDS: [u32; 5] = [5, 10, 20, 50, 100];

/// Counts all messages of an archive in this ledger by these rules, and returns the result. `border` finds the client of each message; in an
/// archive without clients, it does not matter. `progress` is called for each message.
///
/// # Errors
/// If the ledger does not count.
pub fn replay(
    index: &Index<'_>,
    rules: &Rules,
    ledger: &Ledger,
    border: &Border,
    progress: &dyn Fn(),
) -> Result<Tuning, LedgerError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|e| LedgerError::Unavailable(e.to_string()))?;
    let threads = threads();
    thread::scope(|scope| {
        let mut ready = Vec::new();
        // Each of n threads takes every nth message, so that taking their results in turn keeps the order.
        for first in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            ready.push(receiver);
            let mine = index.entries.iter().skip(first).step_by(threads);
            scope.spawn(move || read_all(index.archive(), mine, (rules, border), &sender));
        }
        let result = runtime.block_on(count_all(index, rules, ledger, &ready, progress));
        // After an error, this ends the threads.
        drop(ready);
        result
    })
}

fn read_all<'a>(
    archive: &Archive,
    entries: impl Iterator<Item = &'a Entry>,
    by: (&Rules, &Border),
    ready: &SyncSender<Result<Letter, String>>,
) {
    let mut source = Source::new(archive);
    for entry in entries {
        if ready.send(read(&mut source, entry, by)).is_err() {
            return;
        }
    }
}

fn read(
    source: &mut Source<'_>,
    entry: &Entry,
    (rules, border): (&Rules, &Border),
) -> Result<Letter, String> {
    let raw = source.read(entry).map_err(|e| e.to_string())?;
    let message = RawMessage::from_bytes(&raw);
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
    .map_err(|_| "the message could not be read".to_owned())
}

async fn count_all(
    index: &Index<'_>,
    rules: &Rules,
    ledger: &Ledger,
    ready: &[Receiver<Result<Letter, String>>],
    progress: &dyn Fn(),
) -> Result<Tuning, LedgerError> {
    let mut collected = Collected::new(index, rules);
    for (entry, ready) in index.entries.iter().zip(ready.iter().cycle()) {
        let Ok(letter) = ready.recv() else { break };
        let label = index.archive().files[entry.file as usize].label;
        match letter {
            Err(reason) => {
                collected.faults.add(&index.archive().path(entry.file), &reason);
                continue;
            }
            Ok(letter) if !rules.judges_any(&rules.parties(&letter.envelope)) => {
                collected.contents.by_policy += 1
            }
            Ok(letter) if Finding::uncounted(&letter.content).is_some() => collected.contents.exempt += 1,
            Ok(letter) => {
                let reported = count(&letter, rules, ledger).await?;
                collected.add(&letter, label, reported, rules);
            }
        }
        collected.labels[label.index()] += 1;
        progress();
    }
    Ok(collected.report())
}

/// The result of a message's report.
#[derive(Clone, Copy)]
struct Reported {
    known: (Counts, Backings),
    signatures: usize,
}

/// Reports a message at the time of its arrival.
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

/// The data collected so far.
struct Collected {
    contents: Contents,
    labels: [u64; 3],
    bulk: [u64; 3],
    configured: Configured,
    policies: HashMap<PolicyRef, PolicyRow>,
    faults: Faults,
    tally: Tally,
    clusters: Clusters,
    senders: Senders,
}

impl Collected {
    fn new(index: &Index<'_>, rules: &Rules) -> Self {
        let time = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.time);
        Self {
            contents: Contents {
                no_mail: index.no_mail,
                first: time(index.entries.first()),
                last: time(index.entries.last()),
                ..Contents::default()
            },
            labels: [0; 3],
            bulk: [0; 3],
            configured: Configured {
                body: rules.thresholds.body.get(),
                near: rules.thresholds.near.configured(),
                min_sources: rules.thresholds.min_sources.get(),
                ..Configured::default()
            },
            policies: HashMap::new(),
            faults: index.faults.clone(),
            tally: Tally::new(),
            clusters: Clusters::default(),
            senders: Senders::default(),
        }
    }

    fn add(&mut self, letter: &Letter, label: Label, reported: Reported, rules: &Rules) {
        let counts = reported.known.0;
        let to = (&letter.envelope, &rules.parties(&letter.envelope)[..]);
        // A message that is not judged was not counted either, and does not come here.
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
        self.contents.counted += 1;
        self.contents.signatures += reported.signatures as u64;
        self.contents.without_network += u64::from(letter.envelope.client.is_none());
        self.configured.held += u64::from(decision.held.is_some());
        self.configured.whitelisted += u64::from(whitelisted);
        self.bulk[label.index()] += u64::from(verdict == Verdict::Bulk);
        let sender = letter.content.from.first().map_or("", |address| address);
        self.tally.add(counts, label, sender, whitelisted);
        let count = counts.body.max(counts.near).unwrap_or(0);
        if !whitelisted {
            self.senders.add(letter, label, count, verdict == Verdict::Bulk);
        }
        self.clusters.add(letter, label, count, whitelisted);
    }

    fn report(self) -> Tuning {
        let proposals = self.senders.proposals();
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
        // Each point is a sum over the counts above it: enough points for a line on a logarithmic scale.
        let right = self.tally.peak().clamp(THRESHOLDS[4], MAX);
        let at = std::iter::successors(Some(1), |&t| Some(t + (t / 20).max(1))).take_while(|&t| t <= right);
        Tuning {
            archive: Contents {
                messages: self.labels.iter().sum(),
                unreadable: self.faults.number(),
                labels: Labels::from(self.labels),
                ..self.contents
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
