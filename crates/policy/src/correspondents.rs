// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail from correspondents, that is, from addresses that one's own users wrote to: its treatment, and its verification.

use super::authentication::{VerifiedNames, domain};
use super::facts::Facts;
use super::name::Name;
use serde::Deserialize;

/// The treatment of bulk and spam from a correspondent of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Correspondents {
    /// It is only marked.
    #[default]
    NeverRefuse,
    /// The same as for all other mail.
    Off,
}

/// The place of a sender's address. The sender writes both, so neither is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The envelope's sender.
    Sender,
    /// The only address of the From field.
    From,
}

/// A recipient wrote to an address that the message claims as its sender, verified or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correspondence {
    /// The recipient, as in the envelope.
    pub recipient: String,
    /// The address.
    pub address: String,
    /// The place of the address.
    pub claim: Claim,
}

impl Correspondence {
    /// Whether the message is verified to come from this address: by SPF for a sender; for the From field by DMARC, or a signature of its
    /// domain. Where mail is not verified (`by_host`), by the verified name of the client, which must be in that domain.
    #[must_use]
    pub fn is_verified(&self, facts: &Facts<'_>, by_host: bool) -> bool {
        let of = domain(&self.address);
        let verified = match self.claim {
            Claim::Sender => facts.spf().any(|name| same(domain(name), of)),
            Claim::From => facts.verified.is_some_and(|VerifiedNames { dkim, dmarc, .. }| {
                // A signature does not verify the sender: anybody with a signed message can send it again.
                dkim.iter().any(|signer| is_within(of, signer)) || dmarc.iter().any(|name| same(name, of))
            }),
        };
        verified || by_host && facts.client_host.is_some_and(|host| is_within(host, of))
    }

    /// The claimed names that would verify this correspondence.
    #[must_use]
    pub fn claims(&self, claimed: &VerifiedNames) -> VerifiedNames {
        let of = domain(&self.address);
        let keep = |claim: Claim, names: &[String], fits: &dyn Fn(&str) -> bool| -> Vec<String> {
            let names = names.iter().filter(|name| claim == self.claim && fits(name));
            names.cloned().collect()
        };
        VerifiedNames {
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
    // A name without a dot is a top-level domain, which verifies nobody.
    above.contains('.')
        && name.strip_suffix(&*above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(kind: &str, name: &str) -> VerifiedNames {
        let (mut verified, names) = (VerifiedNames::default(), vec![name.to_owned()]);
        match kind {
            "dkim" => verified.dkim = names,
            "spf" => verified.spf = names,
            _ => verified.dmarc = names,
        }
        verified
    }

    fn of(claim: Claim, address: &str) -> Correspondence {
        Correspondence { recipient: "anna@box.test".to_owned(), address: address.to_owned(), claim }
    }

    #[test]
    fn only_its_own_domain_verifies_an_address() {
        let facts = Facts { sender: Some("bounce@mailer.example"), ..Facts::default() };
        let by = |kind: &str, name: &str, claim: Claim, address: &str| {
            of(claim, address).is_verified(&Facts { verified: Some(&verified(kind, name)), ..facts }, true)
        };
        assert!(!of(Claim::From, "ben@friends.example").is_verified(&facts, true), "anybody can write that");
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
    fn without_verification_the_clients_name_counts() {
        let facts =
            |host| Facts { sender: Some("ben@friends.example"), client_host: host, ..Facts::default() };
        let ben = of(Claim::Sender, "ben@friends.example");
        for host in ["friends.example", "mx1.Friends.example."] {
            assert!(ben.is_verified(&facts(Some(host)), true), "{host}");
            assert!(!ben.is_verified(&facts(Some(host)), false), "mail is verified, and this name was not");
        }
        for host in [None, Some("example"), Some("friends.example.evil.test"), Some("badfriends.example")] {
            assert!(!ben.is_verified(&facts(host), true), "{host:?}");
        }
        assert!(!of(Claim::Sender, "ben").is_verified(&facts(Some("friends.example")), true));
    }

    #[test]
    fn only_names_that_would_verify_it_are_claimed() {
        let claimed = VerifiedNames {
            dkim: vec!["friends.example".to_owned(), "mailer.example".to_owned()],
            spf: vec!["bounce@mailer.example".to_owned()],
            dmarc: vec!["friends.example".to_owned()],
        };
        let claims = |claim: Claim, address: &str| {
            let VerifiedNames { dkim, spf, dmarc } = of(claim, address).claims(&claimed);
            [dkim, spf, dmarc].concat()
        };
        assert_eq!(claims(Claim::From, "ben@friends.example"), ["friends.example", "friends.example"]);
        assert_eq!(claims(Claim::Sender, "bounce@mailer.example"), ["bounce@mailer.example"]);
        assert_eq!(claims(Claim::From, "who@else.example"), [""; 0]);
    }
}
