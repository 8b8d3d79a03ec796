// SPDX-License-Identifier: GPL-3.0-or-later
//! The tasks of a daemon in a fleet.

use super::supervisor::Supervisor;
use crate::activity::{Activity, Mailing};
use bulkmark_ledger::{Ledger, now};
use bulkmark_sync::fleet::{
    Fleet, FleetMailing, MAX_MAILINGS, MemberRole, PublishSettings, aggregate, follow, gather, publish_state,
    push,
};
use bulkmark_sync::log::{Log, LogError, Settings};
use bulkmark_sync::{BulkBound, Links, trim, with_log};
use std::sync::Arc;
use std::time::Duration;

/// The shortest and the longest time between two reports of a machine's state.
const STATE_INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// The task of a machine in a fleet.
#[derive(Clone)]
pub(super) enum Duty {
    /// It reports at this interval, and applies steps; with a bound it holds a partial copy.
    Report(Duration, Option<BulkBound>),
    /// It makes steps at this interval.
    Aggregate(Duration),
}

impl Duty {
    /// Returns how often this machine reports its state: a minute at an aggregator by default.
    fn publishes_every(&self) -> Duration {
        let (Self::Report(interval, _) | Self::Aggregate(interval)) = self;
        (*interval * 60).clamp(STATE_INTERVALS[0], STATE_INTERVALS[1])
    }
}

/// A member of a fleet.
pub(super) struct Joined {
    /// The link to the log.
    pub(super) links: Arc<Links>,
    pub(super) fleet: Arc<Fleet>,
}

/// Begins the tasks of a member of a fleet. The log need not answer yet.
pub(super) async fn join(
    settings: &Settings,
    duty: &Duty,
    (ledger, counts): (&Ledger, &bulkmark_counts::Settings),
    activity: &Arc<Activity>,
    tasks: &mut Supervisor,
) -> anyhow::Result<Joined> {
    let links = Arc::new(Links::new(&[&settings.log], false));
    let link = links.get(0).unwrap_or_default();
    let mut fleet = Fleet::new(&settings.log, Arc::clone(&links));
    if let Duty::Report(_, Some(from)) = duty {
        fleet = fleet.holding(Arc::clone(from));
    }
    let fleet = Arc::new(fleet);
    let context = |e: LogError| anyhow::Error::new(e).context(format!("[fleet] log = {:?}", settings.log));
    let joined = Joined { links, fleet };
    let publish = publish_settings(settings, duty, activity);
    let begun = async {
        with_log!(settings, link, |log| {
            begin(Arc::new(log), (duty, publish), (ledger, counts), &joined, tasks);
            Ok(())
        })
    };
    begun.await.map_err(context)?;
    Ok(joined)
}

/// What this machine tells the other members of itself: its mailings if that is configured, and their subjects if the page has them.
fn publish_settings(settings: &Settings, duty: &Duty, activity: &Arc<Activity>) -> PublishSettings {
    let role = match duty {
        Duty::Report(_, None) => MemberRole::Milter,
        Duty::Report(_, Some(_)) => MemberRole::PartialMilter,
        Duty::Aggregate(_) => MemberRole::Aggregator,
    };
    let activity = Arc::clone(activity);
    let mailings = move || {
        let all = activity.bulk(usize::MAX, now()).into_iter().filter(|mailing| !mailing.stays_here);
        all.take(MAX_MAILINGS).map(fleet_mailing).collect()
    };
    PublishSettings {
        every: duty.publishes_every(),
        role,
        mailings: settings
            .mailings
            .then(|| -> Arc<dyn Fn() -> Vec<FleetMailing> + Send + Sync> { Arc::new(mailings) }),
    }
}

fn fleet_mailing(mailing: Mailing) -> FleetMailing {
    FleetMailing {
        count: mailing.body.max(mailing.near).unwrap_or_default(),
        signature: mailing.signature,
        messages: mailing.messages,
        recipients: mailing.recipients,
        first: mailing.first,
        last: mailing.last,
        members: Vec::new(),
        subject: mailing.subject,
    }
}

fn begin<L: Log>(
    log: Arc<L>,
    (duty, publish): (&Duty, PublishSettings),
    (ledger, counts): (&Ledger, &bulkmark_counts::Settings),
    Joined { links, fleet }: &Joined,
    tasks: &mut Supervisor,
) {
    let with = (ledger.clone(), counts.clone(), Arc::clone(&log), Arc::clone(fleet));
    tasks.run("follow", move || {
        let (ledger, counts, log, fleet) = with.clone();
        follow(ledger, counts, log, fleet)
    });
    let (every, with) = (publish.every, (ledger.clone(), Arc::clone(&log), Arc::clone(fleet), publish));
    tasks.run("tell", move || {
        let (ledger, log, fleet, publish) = with.clone();
        publish_state(ledger, log, fleet, publish)
    });
    match duty {
        &Duty::Report(interval, _) => {
            let with = (ledger.clone(), log, Arc::clone(fleet));
            tasks.run("push", move || {
                let (ledger, log, fleet) = with.clone();
                push(ledger, interval, log, fleet)
            });
            let (of_ledger, to) = (ledger.clone(), Arc::clone(links));
            tasks.run("spool", move || trim(of_ledger.clone(), Arc::clone(&to)));
        }
        Duty::Aggregate(_) => {
            let with = (Arc::clone(&log), Arc::clone(fleet));
            tasks.run("gather", move || {
                let (log, fleet) = with.clone();
                gather(log, fleet, every)
            });
            let with = (ledger.clone(), counts.clone(), log, Arc::clone(fleet));
            tasks.run("aggregate", move || {
                let (ledger, counts, log, fleet) = with.clone();
                aggregate(ledger, counts, log, fleet)
            });
        }
    }
}
