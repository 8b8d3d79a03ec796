// SPDX-License-Identifier: GPL-3.0-or-later
//! The service: the shared state of all sessions.

use super::budget::{Budget, Reservation};
use super::daily_limits::DailyLimits;
use super::duplicates::Duplicates;
use super::in_progress::InProgress;
use super::readers::Readers;
use super::recheck_queue::RecheckQueue;
use super::record::expect;
use super::trap_networks::TrapNetworks;
use crate::activity::Activity;
use crate::lookup::Tables;
use crate::lookup::Verifiers;
use crate::orders::Orders;
use crate::refusals::Refusals;
use arc_swap::ArcSwap;
use bulkmark_ledger::Ledger;
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_sync::{Links, RemoteCounts};
use bulkmark_verdict::{Rules, SourceCache};
use std::sync::Arc;
use tokio::sync::watch;

/// The shared state of all sessions.
pub struct Service {
    /// The rules in force; a reload stores new ones.
    pub rules: ArcSwap<Rules>,
    /// The counts.
    pub ledger: Ledger,
    /// The connections to upstream servers.
    pub links: Arc<Links>,
    /// The numbers and records of all messages.
    pub activity: Arc<Activity>,
    pub(super) budget: Budget,
    pub(super) readers: Readers,
    /// The client of white lists' remote tables.
    pub(super) tables: Tables,
    /// For a partial copy: the queries to the server for the rest of the counts.
    pub asks: Option<Arc<RemoteCounts>>,
    /// Messages to check again once the rest of their counts is known.
    pub(super) recheck_queue: RecheckQueue,
    /// The verifiers of mail, if no other server is trusted to.
    pub(super) verifiers: Verifiers,
    /// The correspondents of one's own users.
    pub correspondents: Arc<Correspondents>,
    /// The administrator's orders.
    pub orders: Arc<Orders>,
    /// The records of refused mail, if configured.
    pub(super) refusals: Refusals,
    /// The daily limits of reporters.
    pub(super) daily_limits: DailyLimits,
    /// The digests that are being counted now.
    pub(super) in_progress: InProgress,
    /// The sources of current mailings' copies.
    pub(super) source_cache: SourceCache,
    /// The networks of mailings that traps nominated.
    pub(super) trap_networks: TrapNetworks,
    /// Messages that came through several interfaces.
    pub(super) duplicates: Duplicates,
    /// Signals that the configuration was reloaded.
    reloads: watch::Sender<()>,
    /// The number of messages that are being received.
    in_flight: watch::Sender<usize>,
}

impl Service {
    /// A service with these rules, ledger, correspondents, orders and refusals, which updates `activity`. `has_interfaces`: messages may come
    /// through several interfaces. With `asks`, the ledger is a partial copy.
    #[must_use]
    pub fn new(
        rules: Rules,
        (ledger, correspondents): (Ledger, Arc<Correspondents>),
        (orders, refusals): (Arc<Orders>, Refusals),
        has_interfaces: bool,
        links: Arc<Links>,
        asks: Option<Arc<RemoteCounts>>,
        activity: Arc<Activity>,
    ) -> Arc<Self> {
        expect(&activity);
        Arc::new(Self {
            rules: ArcSwap::from_pointee(rules),
            ledger,
            links,
            asks,
            activity,
            budget: Budget::default(),
            readers: Readers::default(),
            tables: Tables::default(),
            recheck_queue: RecheckQueue::default(),
            verifiers: Verifiers::default(),
            correspondents,
            orders,
            refusals,
            daily_limits: DailyLimits::default(),
            in_progress: InProgress::default(),
            source_cache: SourceCache::default(),
            trap_networks: TrapNetworks::default(),
            duplicates: if has_interfaces {
                Duplicates::for_several_interfaces()
            } else {
                Duplicates::default()
            },
            reloads: watch::Sender::new(()),
            in_flight: watch::Sender::new(0),
        })
    }

    /// Puts new rules into force, and makes every task reload the files that the configuration names.
    pub fn put_in_force(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
        self.reloads.send_replace(());
    }

    /// Changes whenever the configuration was reloaded.
    #[must_use]
    pub fn reloads(&self) -> watch::Receiver<()> {
        self.reloads.subscribe()
    }

    /// The number of messages that are being received, as it changes.
    #[must_use]
    pub fn in_flight(&self) -> watch::Receiver<usize> {
        self.in_flight.subscribe()
    }

    /// An empty reservation for one more message, from the memory of all messages.
    #[must_use]
    pub fn reservation(&self) -> Reservation {
        self.budget.reservation()
    }

    pub(super) fn begin_message(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|n| *n += 1);
        InFlight(Arc::clone(self))
    }
}

/// A message that is being received, until dropped.
pub(super) struct InFlight(Arc<Service>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|n| *n = n.saturating_sub(1));
    }
}
