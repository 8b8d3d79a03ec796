// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders of a federation as they hold at one machine.

use super::mailings::Mailings;
use super::order::{Allowance, Pause};
use super::server_lists::{ServerLists, SiteOrders, Standing};
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Orders of one partner that a message is compared with, at most: a partner could give a thousand for a signature that many messages have.
const MOST_COMPARED: usize = 16;

/// Partners that must have allowed a message.
const PARTNERS: usize = 2;

/// Whether an order of another site holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It holds; one of a partner, for messages that another partner's order covers as well.
    InForce,
    /// It waits for a second partner.
    Waiting,
    /// The operator revoked it.
    Revoked,
}

impl State {
    /// All states.
    pub const ALL: [Self; 3] = [Self::InForce, Self::Waiting, Self::Revoked];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InForce => "in-force",
            Self::Waiting => "waiting",
            Self::Revoked => "revoked",
        }
    }
}

/// An order of another site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SiteOrder {
    /// The site.
    pub site: String,
    /// The kind of the site.
    pub standing: Standing,
    /// Whether it holds here.
    pub state: State,
    /// The mailing, with the end of the order here.
    #[serde(flatten)]
    pub mailing: Allowance,
}

impl SiteOrder {
    fn holds(&self, now: u64) -> bool {
        self.state != State::Revoked && self.mailing.until.is_none_or(|until| until > now)
    }
}

/// The orders of other sites, in the form in which messages are compared with them.
#[derive(Debug, Default)]
pub(super) struct View {
    orders: Vec<SiteOrder>,
    mailings: Mailings,
    /// The names of mailings whose orders by sites an operator revoked.
    revoked: HashSet<String>,
    /// Pauses for all sites, with their servers.
    pauses: Vec<Pause>,
}

impl View {
    /// Makes the view of a machine, without its own orders. Orders of its own site hold here as an own site's.
    pub(super) fn new(lists: &ServerLists, machine: u64, own_site: Option<&str>) -> Self {
        let latest = lists.latest();
        let is_operator = |site: &&SiteOrders| site.standing == Standing::Operator;
        let revoked = latest.iter().copied().filter(is_operator).flat_map(|site| &site.revoked);
        let mut view =
            Self { revoked: revoked.map(|order| order.name().to_owned()).collect(), ..Self::default() };
        for site in latest.iter().copied().filter(|site| site.machine != machine) {
            if let Some(pause) = site.pause.as_ref().filter(|_| site.standing == Standing::Operator) {
                let until = Some(site.end(pause.until));
                view.pauses.push(Pause { until, site: Some(site.site.clone()), ..pause.clone() });
            }
            let is_home = site.standing == Standing::Partner && own_site == Some(&*site.site);
            let standing = if is_home { Standing::Own } else { site.standing };
            for order in &site.allowed {
                let is_revoked = standing != Standing::Operator && view.is_revoked(order);
                let state = if is_revoked { State::Revoked } else { State::InForce };
                let mailing = Allowance { until: Some(site.end(order.until)), ..order.clone() };
                view.orders.push(SiteOrder { site: site.site.clone(), standing, state, mailing });
            }
        }
        view.indexed()
    }

    /// Wraps orders that a command received from the daemon.
    pub(super) fn of(orders: Vec<SiteOrder>) -> Self {
        Self { orders, ..Self::default() }.indexed()
    }

    /// Whether an operator revoked a site's order about this mailing.
    pub(super) fn is_revoked(&self, order: &Allowance) -> bool {
        self.revoked.contains(order.name())
    }

    fn indexed(mut self) -> Self {
        self.mailings = Mailings::new(self.orders.iter().map(|order| &order.mailing));
        self
    }

    /// Returns the pause that an operator ordered for all sites and that ends last.
    pub(super) fn pause(&self, now: u64) -> Option<&Pause> {
        self.pauses.iter().filter(|pause| pause.until > Some(now)).max_by_key(|pause| pause.until)
    }

    /// Returns the site by whose order a message with these signatures and counts is never refused, or the partners.
    pub(super) fn allows(&self, signatures: &Signatures, counted: Option<&Seen>, now: u64) -> Option<String> {
        let mut compared: HashMap<&str, usize> = HashMap::new();
        let may_compare = |i: usize| {
            let order = &self.orders[i];
            if !order.holds(now) || order.standing != Standing::Partner {
                return order.holds(now);
            }
            let of_site = compared.entry(&order.site).or_default();
            *of_site += 1;
            *of_site <= MOST_COMPARED
        };
        let found = self.mailings.find(signatures, counted, may_compare);
        let (mut partners, mut others) = (BTreeSet::new(), BTreeSet::new());
        for order in found.into_iter().map(|i| &self.orders[i]) {
            let sites = if order.standing == Standing::Partner { &mut partners } else { &mut others };
            sites.insert(&*order.site);
        }
        if let Some(site) = others.first() {
            return Some((*site).to_owned());
        }
        let both: Vec<_> = partners.into_iter().take(PARTNERS).collect();
        (both.len() == PARTNERS).then(|| both.join("+"))
    }

    /// Returns the orders that have not ended, and whether they hold.
    pub(super) fn list(&self, now: u64) -> Vec<SiteOrder> {
        self.states(now).map(|(order, state)| SiteOrder { state, ..order.clone() }).collect()
    }

    /// Returns the number of these orders in each state.
    pub(super) fn numbers(&self, now: u64) -> BTreeMap<State, usize> {
        let mut numbers = BTreeMap::new();
        self.states(now).for_each(|(_, state)| *numbers.entry(state).or_default() += 1);
        numbers
    }

    /// Returns the orders that have not ended with their states. An order of a partner is shown as in force if another partner's has one of its
    /// signatures.
    fn states(&self, now: u64) -> impl Iterator<Item = (&SiteOrder, State)> {
        let mut partners: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        let present =
            || self.orders.iter().filter(move |order| order.mailing.until.is_none_or(|until| until > now));
        for order in present().filter(|order| order.standing == Standing::Partner && order.holds(now)) {
            for signature in &order.mailing.signatures {
                partners.entry(signature).or_default().insert(&order.site);
            }
        }
        let has_second = move |order: &SiteOrder| {
            let of =
                |signature: &String| partners.get(&**signature).is_some_and(|sites| sites.len() >= PARTNERS);
            order.mailing.signatures.iter().any(of)
        };
        present().map(move |order| match order.state {
            State::InForce if order.standing == Standing::Partner && !has_second(order) => {
                (order, State::Waiting)
            }
            other => (order, other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_signature::near::Near;
    use bulkmark_types::Signature;

    const NOW: u64 = 1_795_000_000;

    fn signature(n: usize) -> Signature {
        format!("{n:032x}").parse().unwrap()
    }

    fn orders(site: &str, standing: Standing, names: &[usize]) -> SiteOrders {
        let order = |&n: &usize| Allowance {
            signatures: vec![signature(n).to_string()],
            since: NOW,
            by: "anna".to_owned(),
            ..Allowance::default()
        };
        let allowed = names.iter().map(order).collect();
        let machine = site.bytes().map(u64::from).sum();
        SiteOrders {
            at: NOW,
            site: site.to_owned(),
            machine,
            standing,
            pause: None,
            allowed,
            revoked: Vec::new(),
        }
    }

    fn view(sites: &[SiteOrders], own_site: Option<&str>) -> View {
        let mut lists = ServerLists::default();
        sites.iter().for_each(|site| assert!(lists.put(1, site.clone()).unwrap()));
        View::new(&lists, 0, own_site)
    }

    /// The site by whose order a message with this body is allowed.
    fn by(view: &View, n: usize, now: u64) -> Option<String> {
        // All messages have one signature in common.
        let near = Near { rest: Some(signature(99)), ..Near::default() };
        view.allows(&Signatures { body: Ok(signature(n)), near, canary: false }, None, now)
    }

    #[test]
    fn an_own_site_decides_alone_and_a_partner_with_another_one() {
        use Standing::{Operator, Own, Partner};
        let sites = [
            orders("mx", Own, &[1]),
            orders("counts", Operator, &[2]),
            orders("pf1", Partner, &[1, 3, 4]),
            orders("pf2", Partner, &[4]),
        ];
        let all = view(&sites, None);
        let found = [1, 2, 3, 4, 5].map(|n| by(&all, n, NOW));
        assert_eq!(
            found.each_ref().map(Option::as_deref),
            [Some("mx"), Some("counts"), None, Some("pf1+pf2"), None]
        );
        let states = all.list(NOW).iter().map(|order| order.state).collect::<Vec<_>>();
        use State::{InForce, Waiting};
        assert_eq!(states, [InForce, InForce, Waiting, Waiting, InForce, InForce]);
        // A second machine of the same partner is no second partner, but at home it suffices.
        let twice = [orders("pf1", Partner, &[3]), SiteOrders { machine: 9, ..orders("pf1", Partner, &[3]) }];
        assert_eq!(by(&view(&twice, None), 3, NOW), None);
        assert_eq!(by(&view(&sites, Some("pf1")), 3, NOW).as_deref(), Some("pf1"));
        // When the second one's ends.
        let mut ending = sites;
        ending[3].allowed[0].until = Some(NOW + 10);
        let all = view(&ending, None);
        assert_eq!(by(&all, 4, NOW + 9).as_deref(), Some("pf1+pf2"));
        assert_eq!(by(&all, 4, NOW + 10), None);
        assert_eq!(by(&all, 1, orders("mx", Own, &[]).end(None)), None, "none lasts for ever");
    }

    /// A partner who adds another partner's signature to his own campaign's order has not won him for the campaign.
    #[test]
    fn the_second_partner_must_have_allowed_the_message_itself() {
        let mut bad = orders("bad", Standing::Partner, &[66]);
        bad.allowed[0].signatures.push(signature(1).to_string());
        let all = view(&[orders("pf", Standing::Partner, &[1]), bad], None);
        assert_eq!(by(&all, 66, NOW), None);
        assert_eq!(by(&all, 1, NOW).as_deref(), Some("bad+pf"));
    }

    #[test]
    fn the_operator_revokes_orders_of_sites_and_pauses_all() {
        let mut operator = orders("counts", Standing::Operator, &[]);
        operator.revoked = orders("", Standing::Own, &[1]).allowed;
        operator.pause = Some(Pause { since: NOW, until: None, by: "root".to_owned(), ..Pause::default() });
        // Only the operator can do either.
        let mut partner = orders("pf", Standing::Partner, &[]);
        (partner.revoked, partner.pause) = (orders("", Standing::Own, &[2]).allowed, operator.pause.clone());
        let all = view(&[partner.clone(), orders("mx", Standing::Own, &[1, 2]), operator], None);
        assert_eq!([1, 2].map(|n| by(&all, n, NOW).is_some()), [false, true]);
        assert_eq!(all.list(NOW)[0].state, State::Revoked);
        assert_eq!(all.pause(NOW).unwrap().site.as_deref(), Some("counts"));
        assert_eq!(all.pause(partner.end(None)), None);
        assert_eq!(view(&[partner], None).pause(NOW), None);
    }

    /// However many orders a partner gives for a signature that many messages have, few of them are compared with a message.
    #[test]
    fn a_partner_cannot_slow_milters_down() {
        let bad = |orders_before: usize| {
            let mut bad = orders("bad", Standing::Partner, &(100..100 + orders_before).collect::<Vec<_>>());
            bad.allowed.iter_mut().for_each(|order| order.signatures.push(signature(99).to_string()));
            bad.allowed.extend(orders("", Standing::Partner, &[7]).allowed);
            bad
        };
        let sites = |bad| [bad, orders("pf", Standing::Partner, &[7]), orders("mx", Standing::Own, &[1])];
        let by = |orders_before, n| by(&view(&sites(bad(orders_before)), None), n, NOW);
        assert_eq!(by(MOST_COMPARED - 1, 7).as_deref(), Some("bad+pf"));
        assert_eq!(by(MOST_COMPARED, 7), None);
        assert_eq!(by(900, 1).as_deref(), Some("mx"), "orders of others are compared as before");
    }
}
