// SPDX-License-Identifier: GPL-3.0-or-later
//! The service: what all sessions share.

use super::budget::{Account, Budget};
use super::daily::Daily;
use super::later::Later;
use super::readers::Readers;
use super::record::expect;
use super::trap_networks::TrapNetworks;
use super::turns::Turns;
use super::twice::Twice;
use crate::activity::Activity;
use crate::lookup::Tables;
use crate::lookup::Verifiers;
use crate::orders::Orders;
use crate::refusals::Refusals;
use arc_swap::ArcSwap;
use bulkmark_ledger::Ledger;
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_sync::{Links, RemoteCounts};
use bulkmark_verdict::{Rules, Settled};
use std::sync::Arc;
use tokio::sync::watch;

/// What all sessions share.
pub struct Service {
    /// The rules in force; a reload stores new ones.
    pub rules: ArcSwap<Rules>,
    /// The counts.
    pub ledger: Ledger,
    /// The connections to upstream servers.
    pub links: Arc<Links>,
    /// What was done.
    pub activity: Arc<Activity>,
    pub(super) budget: Budget,
    pub(super) readers: Readers,
    /// The tables that white lists ask.
    pub(super) tables: Tables,
    /// Where only bulk is held of others' counts: who is asked for the rest.
    pub asks: Option<Arc<RemoteCounts>>,
    /// Messages of which there may be more to report once the rest is known.
    pub(super) later: Later,
    /// Who verifies mail, where nobody else is trusted to.
    pub(super) verifiers: Verifiers,
    /// Whom one's own users write to.
    pub correspondents: Arc<Correspondents>,
    /// What the administrator ordered.
    pub orders: Arc<Orders>,
    /// What was refused, where that is kept.
    pub(super) refusals: Refusals,
    /// How much each reporter said today.
    pub(super) daily: Daily,
    /// What is said of digests at this moment.
    pub(super) turns: Turns,
    /// From where the copies of mailings come that are on their way.
    pub(super) settled: Settled,
    /// From which networks traps were told of mailings.
    pub(super) trap_networks: TrapNetworks,
    /// What came through several interfaces.
    pub(super) twice: Twice,
    /// Tells that the configuration was read again.
    reloads: watch::Sender<()>,
    /// The number of messages that are being received.
    in_flight: watch::Sender<usize>,
}

impl Service {
    /// A service with these rules on this ledger, with these correspondents, and with orders and refusals of its state directory, which tells what it does to `activity`. Messages may come through several interfaces where it `has_interfaces`. With `asks` it holds only bulk of others' counts.
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
            later: Later::default(),
            verifiers: Verifiers::default(),
            correspondents,
            orders,
            refusals,
            daily: Daily::default(),
            turns: Turns::default(),
            settled: Settled::default(),
            trap_networks: TrapNetworks::default(),
            twice: if has_interfaces { Twice::watching() } else { Twice::default() },
            reloads: watch::Sender::new(()),
            in_flight: watch::Sender::new(0),
        })
    }

    /// Puts new rules into force, and has everybody read anew what the configuration names.
    pub fn put_in_force(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
        self.reloads.send_replace(());
    }

    /// Changes whenever the configuration was read again.
    #[must_use]
    pub fn reloads(&self) -> watch::Receiver<()> {
        self.reloads.subscribe()
    }

    /// The number of messages that are being received, as it changes.
    #[must_use]
    pub fn in_flight(&self) -> watch::Receiver<usize> {
        self.in_flight.subscribe()
    }

    /// Memory for one message more, none of it taken yet, of what all messages may take together.
    #[must_use]
    pub fn hold(&self) -> Account {
        self.budget.account()
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
