// SPDX-License-Identifier: GPL-3.0-or-later
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const NOW: u64 = 1_795_000_000;

fn order(name: u8) -> Allowance {
    let signatures = vec![format!("{name:032x}")];
    Allowance { signatures, since: NOW, by: "anna".to_owned(), ..Allowance::default() }
}

fn orders(site: &str, machine: u64, at: u64, allowed: &[u8]) -> SiteOrders {
    let allowed = allowed.iter().map(|&name| order(name)).collect();
    let (site, standing) = (site.to_owned(), Standing::Own);
    SiteOrders { at, site, machine, standing, pause: None, allowed, revoked: Vec::new() }
}

/// The allowed mailings of each machine.
fn allowed(lists: &ServerLists) -> Vec<(String, Vec<String>)> {
    let names = |site: &SiteOrders| site.allowed.iter().map(|order| order.name()[30..].to_owned()).collect();
    lists.latest().into_iter().map(|site| (site.site.clone(), names(site))).collect()
}

fn list() -> impl Strategy<Value = ServerList> {
    let machine = (0_u8..3, 0_u64..2, 0_u64..4, vec(0_u8..4, 0..3));
    (0_u64..4, 0_u64..3, vec(machine, 0..3)).prop_map(|(version, server, machines)| {
        let machine = |(site, machine, at, names): &(u8, u64, u64, Vec<u8>)| {
            orders(&format!("mx{site}"), *machine, NOW + at, names)
        };
        let mut sites: Vec<_> = machines.iter().map(machine).collect();
        sites.sort();
        sites.dedup_by(|one, other| one.key() == other.key());
        ServerList { version: NOW * 1000 + version, server, sites }
    })
}

fn merged<'a>(all: impl IntoIterator<Item = &'a ServerList>) -> ServerLists {
    let mut lists = ServerLists::default();
    for list in all {
        lists.merge(ServerLists { servers: vec![list.clone()] }, u64::MAX, NOW);
    }
    lists
}

proptest! {
    /// Lists give the same orders, in any order of arrival, however often and through however many servers.
    #[test]
    fn the_order_of_arrival_does_not_matter(
        (all, shuffled) in vec(list(), 0..8).prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        cut in 0_usize..8,
    ) {
        let expected = merged(&all);
        prop_assert_eq!(&merged(&shuffled), &expected);
        let cut = cut.min(all.len());
        let (mut one, other) = (merged(&shuffled[..cut]), merged(&shuffled[cut..]));
        one.merge(other, u64::MAX, NOW);
        prop_assert_eq!(&one, &expected);
        prop_assert!(!one.merge(expected.clone(), u64::MAX, NOW).0, "it changes nothing a second time");
        prop_assert_eq!(&one, &expected);
    }
}

/// A site that changes its server takes its orders along, and can end them there, while the first server is away.
#[test]
fn a_machine_has_the_orders_that_a_server_took_last() {
    let (mut one, mut two) = (ServerLists::default(), ServerLists::default());
    assert!(one.put(1, orders("mx", 7, NOW, &[1, 2])).unwrap());
    assert!(!one.put(1, orders("mx", 7, NOW + 5, &[1, 2])).unwrap(), "the same again");
    assert!(one.put(1, orders("mx", 7, NOW + DAY, &[1, 2])).unwrap(), "confirmed after a day");
    two.merge(one.clone(), 2, NOW + DAY);
    // The clock of this server is behind.
    two.put(2, orders("mx", 7, NOW + 9, &[2])).unwrap();
    assert_eq!(allowed(&two), [("mx".to_owned(), vec!["02".to_owned()])]);
    two.put(2, orders("mx", 7, NOW + 10, &[])).unwrap();
    assert_eq!(allowed(&two), [("mx".to_owned(), vec![])]);
    one.merge(two.clone(), 1, NOW + DAY);
    assert_eq!(allowed(&one), allowed(&two));
    // Back at the first server; nothing is left of the move.
    one.put(1, orders("mx", 7, NOW + DAY, &[3])).unwrap();
    two.merge(one.clone(), 2, NOW + DAY);
    assert_eq!(allowed(&two), [("mx".to_owned(), vec!["03".to_owned()])]);
    one.put(1, orders("mx", 7, NOW + DAY, &[])).unwrap();
    two.merge(one.clone(), 2, NOW + DAY);
    for (lists, server) in [(&mut two, 2), (&mut one, 1)] {
        lists.tidy(server, |_| Some(Standing::Own), NOW + DAY);
        assert!(lists.list_of(server).sites.is_empty(), "{lists:?}");
    }
}

#[test]
fn a_site_and_partners_have_bounds() {
    let many = |site: &str, standing, number: u64| {
        let name = |n| Allowance { signatures: vec![format!("{n:032x}")], ..order(0) };
        SiteOrders { standing, allowed: (0..number).map(name).collect(), ..orders(site, 1, NOW, &[]) }
    };
    let mut lists = ServerLists::default();
    assert_eq!(lists.put(1, many("pf", Standing::Partner, 1001)), Err(Full::Site));
    lists.put(1, many("pf", Standing::Partner, 1000)).unwrap();
    let second = SiteOrders { machine: 2, ..many("pf", Standing::Partner, 1) };
    assert_eq!(lists.put(1, second), Err(Full::Site), "also with another machine");
    for n in 2..=5 {
        lists.put(1, many(&format!("pf{n}"), Standing::Partner, 1000)).unwrap();
    }
    assert_eq!(lists.put(1, many("pf6", Standing::Partner, 1)), Err(Full::All));
    lists.put(1, many("mx", Standing::Own, 1000)).unwrap();
    // Long ones, by their bytes.
    let mut lists = ServerLists::default();
    let long = |site: &str, number| {
        let mut site = many(site, Standing::Partner, number);
        site.allowed.iter_mut().for_each(|order| order.reason = "r".repeat(MAX_TEXT));
        site.allowed.iter_mut().for_each(|order| order.signatures = vec![format!("{:032x}", 1); 100]);
        site
    };
    assert_eq!(lists.put(1, long("pf1", 250)), Err(Full::Site));
    for n in 1..=5 {
        lists.put(1, long(&format!("pf{n}"), 200)).unwrap();
    }
    assert_eq!(lists.put(1, long("pf6", 200)), Err(Full::All));
    assert_eq!(lists.put(1, many("pf1", Standing::Partner, 3)), Ok(true), "it takes the place of its own");
}

/// A false server cannot fill the memory, nor give orders for ever.
#[test]
fn orders_from_outside_have_bounds() {
    let json = |lists: &ServerLists| serde_json::to_vec(lists).unwrap();
    let of =
        |sites: Vec<SiteOrders>| ServerLists { servers: vec![ServerList { version: 1, server: 1, sites }] };
    let good = of(vec![orders("mx", 1, NOW, &[1])]);
    assert_eq!(ServerLists::parse(&json(&good)).unwrap(), good);
    let many = vec![orders("mx", 1, NOW, &[1; 1000]); 11];
    assert_eq!(ServerLists::parse(&json(&of(many))), Err(Unsound::Many));
    let servers = (0..40).map(|server| ServerList { version: 1, server, sites: Vec::new() }).collect();
    assert_eq!(ServerLists::parse(&json(&ServerLists { servers })), Err(Unsound::Many));
    let of_one = |change: &dyn Fn(&mut SiteOrders)| {
        let mut site = orders("mx", 1, NOW, &[1]);
        change(&mut site);
        ServerLists::parse(&json(&of(vec![site])))
    };
    assert_eq!(of_one(&|site| site.allowed = vec![order(1); 1001]), Err(Unsound::Order));
    assert_eq!(of_one(&|site| site.site = "a b".to_owned()), Err(Unsound::Order));
    assert_eq!(of_one(&|site| site.allowed[0].reason = "r".repeat(501)), Err(Unsound::Order));
    assert_eq!(of_one(&|site| site.allowed[0].signatures.clear()), Err(Unsound::Order));
    assert_eq!(of_one(&|site| site.allowed[0].signatures = vec!["x".to_owned()]), Err(Unsound::Order));
    assert!(matches!(ServerLists::parse(b"{\"servers\":[{}]}"), Err(Unsound::Form(_))));

    let year_9999 = 253_370_764_800;
    let mut site = orders("mx", 1, NOW, &[1]);
    site.allowed[0].until = Some(year_9999);
    assert_eq!(site.end(site.allowed[0].until), NOW + LONGEST);
    let mut lists = ServerLists::default();
    let future = ServerList { version: 1, server: 1, sites: vec![orders("mx", 1, year_9999, &[1])] };
    assert!(!lists.merge(ServerLists { servers: vec![future] }, 2, NOW).0, "a server's clock is ahead");
    let future = ServerList { version: year_9999 * 1000, server: 1, sites: Vec::new() };
    assert!(!lists.merge(ServerLists { servers: vec![future] }, 2, NOW).0);
    let own = ServerList { version: NOW * 1000, server: 2, sites: vec![orders("mx", 1, NOW, &[1])] };
    assert!(
        !lists.merge(ServerLists { servers: vec![own] }, 2, NOW).0,
        "nobody else changes this server's list"
    );
}

#[test]
fn a_client_that_is_removed_loses_its_orders_and_a_changed_one_gets_its_new_standing() {
    let mut lists = ServerLists::default();
    lists.put(1, orders("mx", 1, NOW, &[1])).unwrap();
    lists.put(1, orders("pf", 2, NOW, &[2])).unwrap();
    let standing = |site: &SiteOrders| (site.site == "pf").then_some(Standing::Partner);
    assert!(lists.tidy(1, standing, NOW));
    assert_eq!(allowed(&lists), [("pf".to_owned(), vec!["02".to_owned()])]);
    assert_eq!(lists.latest()[0].standing, Standing::Partner);
    assert!(!lists.tidy(1, standing, NOW), "nothing changes");
    assert!(lists.tidy(1, standing, NOW + LONGEST), "its site is silent for 90 days");
    assert!(lists.latest().is_empty());
}
