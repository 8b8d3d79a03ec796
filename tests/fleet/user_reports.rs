// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports in a fleet: reports at two mail servers count at a third, and all users of a partner together weigh less than one. Real
//! daemons.

use bulkmark_testing::fleet::{AGGREGATORS, Fleet};
use bulkmark_testing::letters::{letter, offer, send};
use bulkmark_testing::members::Members;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Site, reports, status, wait_until};
use serde_json::Value;

/// A user reports a message at a milter.
fn report(site: &Site, arguments: &[&str], message: &[u8]) {
    let answer = reports::report(site, arguments, message);
    assert!(answer["shared"] == true, "{answer}");
}

/// Waits until a milter's `check` shows this verdict, with this weight of user reports.
#[track_caller]
fn wait_for(site: &Site, message: &[u8], verdict: &str, weight: Option<&str>) {
    wait_until("user reports", || {
        let (_, answer) = site.check(message);
        let told: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
        let is_so = told["verdict"] == verdict && told["spam"]["weight"].as_str() == weight;
        if is_so { Ok(()) } else { Err(told.to_string()) }
    });
}

/// A milter that trusts all users fully.
fn believing(fleet: &Fleet, name: &str) -> Site {
    let mut site = fleet.milter(name);
    site.extra += "[user-reports]\ntrust = { federation-weight = 1.0, new-reporter = 1.0 }\n";
    site
}

/// Both aggregators, two milters whose users report, and two that receive the counts; the last one has a partial copy.
fn start(fleet: &Fleet) -> Members {
    let servers = AGGREGATORS.map(|name| fleet.aggregator(name));
    let mut sites = ["mx1", "mx2", "mx3", "mx4"].map(|name| believing(fleet, name));
    let ask = servers.each_ref().map(|server| server.entry("mx4", "read")).join(", ");
    let partial = format!("aggregators = [{ask}]\n[sync]\ncopy = \"partial\"\n");
    sites[3].extra = sites[3].extra.replace("[sync]\n", &partial);
    let members = Members::of(servers.into(), sites.into());
    // From its first report on, steps list bulk and user reports separately.
    send(members.milter(3), &letter(9), 1);
    wait_until("bulk that is told apart", || {
        let status = status(&members.sites[3]);
        if status["ledger"]["bulk"]["bound"] == 10 { Ok(()) } else { Err(status.to_string()) }
    });
    members
}

#[test]
fn what_users_of_two_say_is_spam_at_all() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    report(&members.sites[0], &["--user", "anna"], &offer("Anna"));
    report(&members.sites[0], &["--user", "bert"], &offer("Bert"));
    members.sites.iter().for_each(|site| wait_for(site, &offer("Dora"), "clean", Some("2")));
    // The daemons that counted and sent it are killed; the same report again counts nothing.
    members.kill_aggregators();
    report(&members.sites[1], &["--user", "carl"], &offer("Carl"));
    members.milters[1].take().unwrap().kill();
    members.milters[1] = Some(members.sites[1].start());
    report(&members.sites[1], &["--user", "carl"], &offer("Carl"));
    members.start_aggregators();
    for (n, site) in members.sites.iter().enumerate() {
        wait_for(site, &offer("Dora"), "spam", Some("3"));
        let header = session(members.milter(n)).message(&Mail::raw(&offer("Emil"))).header().to_owned();
        assert!(header.starts_with("spam; body=") && header.contains("; spam=3; "), "{header}");
    }
    report(&members.sites[0], &["forget", "--user", "bert"], &offer("Bert"));
    members.sites.iter().for_each(|site| wait_for(site, &offer("Dora"), "clean", Some("2")));
}

/// This holds for any number of users: the limit is five eighths, and nothing remains once the partner's reports are withdrawn.
#[test]
fn a_partners_users_are_five_eighths_of_one() {
    let Some(fleet) = Fleet::postgres() else { return };
    let members = start(&fleet);
    let partner = believing(&fleet, "isp");
    let _at_partner = partner.start();
    for user in 0..9 {
        report(&partner, &["--user", &user.to_string()], &offer("Anna"));
    }
    members.sites.iter().for_each(|site| wait_for(site, &offer("Dora"), "clean", Some("0.625")));
    report(&members.sites[0], &["--user", "anna"], &offer("Anna"));
    members.sites.iter().for_each(|site| wait_for(site, &offer("Dora"), "clean", Some("1.625")));
    let output = fleet.set_up(&fleet.members(&bulkmark_testing::fleet::MILTERS, 1), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    members.sites[..3].iter().for_each(|site| wait_for(site, &offer("Dora"), "clean", Some("1")));
}
