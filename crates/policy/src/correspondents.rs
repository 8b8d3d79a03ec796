// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail from those to whom one's own users wrote: what is done with it, and when it really is from them.

use super::authentication::{Proven, domain};
use super::facts::Facts;
use super::name::Name;
use serde::Deserialize;

/// What is done with bulk and spam from somebody to whom a recipient wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Correspondents {
    /// It is only marked.
    #[default]
    NeverRefuse,
    /// What is done with that of anybody.
    Off,
}

/// By what a message says from whom it is. Either is written by whoever sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The envelope's sender.
    Sender,
    /// The one address of the From field.
    From,
}

/// That a recipient wrote to an address by which a message comes, whoever really sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correspondence {
    /// The recipient, as the envelope has it.
    pub recipient: String,
    /// The address.
    pub address: String,
    /// Where it stands.
    pub claim: Claim,
}

impl Correspondence {
    /// Whether the message really comes from there, as far as somebody verified that: SPF for a sender; for the From field DMARC, or a
    /// signature of its domain. Where nobody verifies mail (`by_host`), the verified name of the client, which must be of that domain.
    #[must_use]
    pub fn is_proven(&self, facts: &Facts<'_>, by_host: bool) -> bool {
        let of = domain(&self.address);
        let proven = match self.claim {
            Claim::Sender => facts.spf().any(|name| same(domain(name), of)),
            Claim::From => facts.proven.is_some_and(|Proven { dkim, dmarc, .. }| {
                // A signature says nothing of the sender: whoever has a signed message can send it again.
                dkim.iter().any(|signer| is_within(of, signer)) || dmarc.iter().any(|name| same(name, of))
            }),
        };
        proven || by_host && facts.client_host.is_some_and(|host| is_within(host, of))
    }

    /// Of what a message claims, that by which this would be proven.
    #[must_use]
    pub fn claims(&self, claimed: &Proven) -> Proven {
        let of = domain(&self.address);
        let keep = |claim: Claim, names: &[String], fits: &dyn Fn(&str) -> bool| -> Vec<String> {
            let names = names.iter().filter(|name| claim == self.claim && fits(name));
            names.cloned().collect()
        };
        Proven {
            dkim: keep(Claim::From, &claimed.dkim, &|signer| is_within(of, signer)),
            spf: keep(Claim::Sender, &claimed.spf, &|sender| same(domain(sender), of)),
            dmarc: keep(Claim::From, &claimed.dmarc, &|name| same(name, of)),
        }
    }
}

fn same(one: &str, other: &str) -> bool {
    !other.is_empty() && Name::of(one) == Name::of(other)
}

/// Whether a domain is `above`, or below it.
fn is_within(name: &str, above: &str) -> bool {
    let lower = |name: &str| name.trim_end_matches('.').to_lowercase();
    let (name, above) = (lower(name), lower(above));
    // A name without a dot is a top-level domain, which speaks for nobody.
    above.contains('.')
        && name.strip_suffix(&*above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven(kind: &str, name: &str) -> Proven {
        let (mut proven, names) = (Proven::default(), vec![name.to_owned()]);
        match kind {
            "dkim" => proven.dkim = names,
            "spf" => proven.spf = names,
            _ => proven.dmarc = names,
        }
        proven
    }

    fn of(claim: Claim, address: &str) -> Correspondence {
        Correspondence { recipient: "anna@box.test".to_owned(), address: address.to_owned(), claim }
    }

    #[test]
    fn only_its_own_domain_stands_behind_an_address() {
        let facts = Facts { sender: Some("bounce@mailer.example"), ..Facts::default() };
        let by = |kind: &str, name: &str, claim: Claim, address: &str| {
            of(claim, address).is_proven(&Facts { proven: Some(&proven(kind, name)), ..facts }, true)
        };
        assert!(!of(Claim::From, "ben@friends.example").is_proven(&facts, true), "anybody can write that");
        assert!(by("dkim", "friends.example", Claim::From, "Ben@Friends.example"));
        assert!(by("dmarc", "friends.example", Claim::From, "ben@friends.example"));
        assert!(by("dkim", "friends.example", Claim::From, "ben@mail.friends.example"));
        assert!(by("spf", "mailer.example", Claim::Sender, "bounce@mailer.example"));
        for (kind, name, claim, address) in [
            ("dkim", "mail.friends.example", Claim::From, "ben@friends.example"),
            ("dkim", "badfriends.example", Claim::From, "ben@friends.example"),
            ("dkim", "example", Claim::From, "ben@friends.example"),
            ("dkim", "mailer.example", Claim::Sender, "bounce@mailer.example"),
            ("spf", "mailer.example", Claim::From, "ben@mailer.example"),
            ("spf", "friends.example", Claim::Sender, "ben@friends.example"),
            ("dmarc", "mailer.example", Claim::Sender, "bounce@mailer.example"),
        ] {
            assert!(!by(kind, name, claim, address), "{kind} {name} for {address}");
        }
    }

    #[test]
    fn where_nobody_verifies_mail_the_clients_name_does() {
        let facts =
            |host| Facts { sender: Some("ben@friends.example"), client_host: host, ..Facts::default() };
        let ben = of(Claim::Sender, "ben@friends.example");
        for host in ["friends.example", "mx1.Friends.example."] {
            assert!(ben.is_proven(&facts(Some(host)), true), "{host}");
            assert!(!ben.is_proven(&facts(Some(host)), false), "somebody verifies, and did not find it");
        }
        for host in [None, Some("example"), Some("friends.example.evil.test"), Some("badfriends.example")] {
            assert!(!ben.is_proven(&facts(host), true), "{host:?}");
        }
        assert!(!of(Claim::Sender, "ben").is_proven(&facts(Some("friends.example")), true));
    }

    #[test]
    fn what_would_prove_it_is_asked_for_and_nothing_else() {
        let claimed = Proven {
            dkim: vec!["friends.example".to_owned(), "mailer.example".to_owned()],
            spf: vec!["bounce@mailer.example".to_owned()],
            dmarc: vec!["friends.example".to_owned()],
        };
        let claims = |claim: Claim, address: &str| {
            let Proven { dkim, spf, dmarc } = of(claim, address).claims(&claimed);
            [dkim, spf, dmarc].concat()
        };
        assert_eq!(claims(Claim::From, "ben@friends.example"), ["friends.example", "friends.example"]);
        assert_eq!(claims(Claim::Sender, "bounce@mailer.example"), ["bounce@mailer.example"]);
        assert_eq!(claims(Claim::From, "who@else.example"), [""; 0]);
    }
}
