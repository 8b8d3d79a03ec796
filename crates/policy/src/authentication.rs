// SPDX-License-Identifier: GPL-3.0-or-later
//! Whose word counts on DKIM, SPF and DMARC, and what it proves.
//!
//! A sender can write Authentication-Results himself. So a result counts only
//!
//! - if its server is trusted, and the field is as servers write it ([`AuthenticationResults::parse`]);
//! - if no field above says what came of the same method, or cannot be read: what our servers write stands above what came with
//!   the message, and a sender may have made it long or odd;
//! - if the message has what was verified: a whole DKIM signature of that domain, a From address, a sender. A verifier then has
//!   something to say, above, of what somebody forged.

use super::authenticate::{Authenticate, Authentication};
use bulkmark_mail::{AuthenticationResults, Fields, MethodResult, is_of_provider};
use std::fmt;

/// Names that stand behind a message, since it was verified that they do. In lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proven {
    /// Domains with a valid DKIM signature.
    pub dkim: Vec<String>,
    /// Envelope senders, or their domains, for whom the client may send.
    pub spf: Vec<String>,
    /// Domains of the From field by their own rules.
    pub dmarc: Vec<String>,
}

impl Proven {
    /// What a message claims: who signed it, for whom its client sends, and from whom it is. Nothing of it is verified.
    #[must_use]
    pub fn claimed(fields: &Fields, sender: Option<&str>) -> Self {
        let lower = |name: &str| name.to_lowercase();
        let mut dkim = fields.signed_by.clone();
        dkim.dedup();
        // The null sender is nobody's.
        let spf = sender.filter(|sender| sender.contains('@')).map(lower).into_iter().collect();
        let mut from: Vec<_> = fields.from.iter().map(|from| lower(domain(from))).collect();
        from.dedup();
        Self { dkim, spf, dmarc: if from.len() == 1 { from } else { Vec::new() } }
    }

    /// Who stands behind a message from these addresses: the domain of them all, if it was verified that it, or one above or below
    /// it, sent it or signed it; and the address itself where anybody can have one in that domain.
    #[must_use]
    pub fn author(&self, from: &[String]) -> Option<String> {
        let (address, others) = from.split_first()?;
        let of = domain(address).to_lowercase();
        if of.is_empty() || others.iter().any(|other| domain(other).to_lowercase() != of) {
            return None;
        }
        let mut names = [&self.dkim, &self.spf, &self.dmarc].into_iter().flatten().map(|name| domain(name));
        let is_aligned = names.any(|name| is_below(name, &of) || is_below(&of, name));
        let author = if is_of_provider(&of) && others.is_empty() { address.to_lowercase() } else { of };
        is_aligned.then_some(author)
    }

    /// Whether there is no name at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        [&self.dkim, &self.spf, &self.dmarc].iter().all(|names| names.is_empty())
    }

    /// Adds those of the other that are not there yet.
    pub fn extend(&mut self, other: Self) {
        let Self { dkim, spf, dmarc } = other;
        for (all, more) in [(&mut self.dkim, dkim), (&mut self.spf, spf), (&mut self.dmarc, dmarc)] {
            for name in more {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
    }
}

static NOTHING: Proven = Proven { dkim: Vec::new(), spf: Vec::new(), dmarc: Vec::new() };

impl Proven {
    /// The same, or nothing where the sender has a name by which he could write results of his own into those of a verifier.
    #[must_use]
    pub fn for_sender(&self, sender: Option<&str>) -> &Self {
        if sender.is_some_and(breaks_fields) { &NOTHING } else { self }
    }
}

/// Why a result does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// `authenticate` is not "header".
    Off,
    /// Its server is not trusted.
    Untrusted,
    /// Its method is none of those that our servers verify.
    Method,
    /// It is not as servers write it.
    Malformed,
    /// A field above says what came of this method.
    Below,
    /// A field above cannot be read.
    BelowMalformed,
    /// It is not "pass".
    NoPass,
    /// It does not say of whom, or says it twice.
    NoName,
    /// The message has no whole DKIM signature of that domain.
    Unsigned,
    /// The message is not from that domain alone.
    OtherFrom,
    /// An address in the message could break the field.
    OddAddress,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "authentication.authenticate is not \"header\"",
            Self::Untrusted => "its server is not in authentication.authserv-ids",
            Self::Method => "authentication.methods does not name it",
            Self::Malformed => "it is not as mail servers write it",
            Self::Below => "a field above it says what came of this method, so a sender may have written it",
            Self::BelowMalformed => "a field above it cannot be read, and may say the contrary",
            Self::NoPass => "that proves nothing",
            Self::NoName => "it does not name one domain",
            Self::Unsigned => "the message has no whole DKIM signature of that domain",
            Self::OtherFrom => "the message is not from that domain alone",
            Self::OddAddress => "an address of the message has characters that could break the field",
        })
    }
}

/// Is called with a field's server, one of its results, and what became of that.
pub type Tell<'a> = dyn FnMut(&str, Option<&MethodResult>, Result<(), Ignored>) + 'a;

impl Authentication {
    /// What is proven of a message with these fields.
    #[must_use]
    pub fn proven(&self, fields: &Fields) -> Proven {
        // Nothing is, so they need not be read.
        if self.authenticate != Authenticate::Header {
            return Proven::default();
        }
        self.judge(fields, &mut |_, _, _| ())
    }

    /// The same. `tell` is called with each field's server, its results, and what became of
    /// them; without server and result for a field that says nothing.
    pub fn judge(&self, fields: &Fields, tell: &mut Tell<'_>) -> Proven {
        let mut proven = Proven::default();
        // Methods of which a trusted field said something already.
        let mut said: Vec<String> = Vec::new();
        let mut was_malformed = false;
        for value in &fields.authentication_results {
            let Some(field) = AuthenticationResults::parse(value) else {
                tell("", None, Err(Ignored::Malformed));
                was_malformed = true;
                continue;
            };
            let ignored = if self.authenticate != Authenticate::Header {
                Some(Ignored::Off)
            } else if !self.authserv_ids.iter().any(|id| id.0 == field.server) {
                Some(Ignored::Untrusted)
            } else {
                was_malformed.then_some(Ignored::BelowMalformed)
            };
            for result in &field.results {
                let taken = match ignored {
                    Some(ignored) => Err(ignored),
                    None if !self.verifies(&result.method) => Err(Ignored::Method),
                    None if said.contains(&result.method) => Err(Ignored::Below),
                    None => proven.take(result, fields),
                };
                tell(&field.server, Some(result), taken);
            }
            if ignored.is_none() {
                said.extend(field.results.into_iter().map(|result| result.method));
            }
        }
        proven
    }
}

impl Proven {
    /// Takes the result of a trusted server.
    fn take(&mut self, result: &MethodResult, fields: &Fields) -> Result<(), Ignored> {
        let (property, names) = match &*result.method {
            "dkim" => ("header.d", &mut self.dkim),
            "spf" => ("smtp.mailfrom", &mut self.spf),
            "dmarc" => ("header.from", &mut self.dmarc),
            _ => return Err(Ignored::Method),
        };
        if result.result != "pass" {
            return Err(Ignored::NoPass);
        }
        let name = result.property(property).ok_or(Ignored::NoName)?.to_lowercase();
        let domain = domain(&name);
        if domain.is_empty() || breaks_fields(&name) {
            return Err(Ignored::NoName);
        }
        if fields.from.iter().any(|address| breaks_fields(address)) {
            return Err(Ignored::OddAddress);
        }
        match property {
            "header.d" if !fields.signed_by.contains(&name) => return Err(Ignored::Unsigned),
            "header.from"
                if fields.from.is_empty() || fields.from.iter().any(|from| self::domain(from) != domain) =>
            {
                return Err(Ignored::OtherFrom);
            }
            _ => (),
        }
        if !names.contains(&name) {
            names.push(name);
        }
        Ok(())
    }
}

/// Whether a domain is the other one or below it.
fn is_below(domain: &str, other: &str) -> bool {
    domain.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The domain of an address, or the whole.
pub(super) fn domain(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain)
}

/// Whether an address or name has characters that end something in a field.
fn breaks_fields(name: &str) -> bool {
    name.contains(|c: char| c.is_whitespace() || c.is_control() || "\"();,\\<>".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use bulkmark_mail::RawMessage;

    fn trusting(ids: &[&str]) -> Authentication {
        let authserv_ids = ids.iter().map(|&id| id.to_owned().try_into().unwrap()).collect();
        let methods = vec![Method::Dkim, Method::Spf, Method::Dmarc];
        Authentication {
            authenticate: Authenticate::Header,
            authserv_ids,
            methods,
            ..Authentication::default()
        }
    }

    const SIGNED: &str = "DKIM-Signature: v=1; a=rsa-sha256; d=shop.example; s=s; h=from; bh=AA==; b=AA==\n";

    /// What is proven by these fields above a message that the shop signed, and why not.
    fn judge(fields: &str) -> (String, Vec<Ignored>) {
        let raw = format!("{fields}{SIGNED}From: News <news@shop.example>\n\nbody\n");
        judge_raw(&raw, &trusting(&["MX.test", "filter.test"]))
    }

    fn judge_raw(raw: &str, trusting: &Authentication) -> (String, Vec<Ignored>) {
        let fields = RawMessage::from_bytes(raw.as_bytes()).unwrap().fields();
        let mut ignored = Vec::new();
        let proven = trusting.judge(&fields, &mut |_, _, taken| ignored.extend(taken.err()));
        let Proven { dkim, spf, dmarc } = proven;
        let names = [("dkim", dkim), ("spf", spf), ("dmarc", dmarc)];
        let names: Vec<_> =
            names.iter().flat_map(|(m, all)| all.iter().map(move |name| format!("{m} {name}"))).collect();
        (names.join(", "), ignored)
    }

    const PASS: &str = "Authentication-Results: mx.test; dkim=pass header.d=shop.example\n";

    #[test]
    fn what_trusted_servers_say_counts() {
        assert_eq!(judge(PASS), ("dkim shop.example".to_owned(), vec![]));
        let all = "Authentication-Results: filter.test; dmarc=pass header.from=Shop.example;\n \
                   spf=pass smtp.mailfrom=bounce@shop.example\n";
        let all = judge(&format!("{all}{PASS}"));
        assert_eq!(
            all,
            ("dkim shop.example, spf bounce@shop.example, dmarc shop.example".to_owned(), vec![])
        );
        assert_eq!(judge(&PASS.replace("pass", "fail")), (String::new(), vec![Ignored::NoPass]));
    }

    #[test]
    fn what_others_say_does_not() {
        assert_eq!(
            judge(&PASS.replace("mx.test", "relay.example")),
            (String::new(), vec![Ignored::Untrusted])
        );
        let off = Authentication { authenticate: Authenticate::No, ..trusting(&["mx.test"]) };
        assert_eq!(judge_raw(PASS, &off), (String::new(), vec![Ignored::Off]));
        // OpenDKIM removes no such field that says nothing of DKIM.
        let dkim_alone = Authentication { methods: vec![Method::Dkim], ..trusting(&["mx.test"]) };
        let spf = judge_raw(&PASS.replace("dkim=pass header.d", "spf=pass smtp.mailfrom"), &dkim_alone);
        assert_eq!(spf, (String::new(), vec![Ignored::Method]));
        // Under another name: what removes forged fields does not find it.
        assert_eq!(judge(&PASS.replace("Results:", "Results :")), (String::new(), vec![]));
    }

    /// The verifier's field stands on top, whether the other server is trusted as well or not.
    #[test]
    fn what_stands_below_a_verifiers_field_does_not() {
        let none = "Authentication-Results: filter.test; dkim=none\n";
        let unsure = judge(&format!("{none}{PASS}"));
        assert_eq!(unsure, (String::new(), vec![Ignored::NoPass, Ignored::Below]));
        // A sender with many signatures, or odd ones, makes the verifier's field long or odd.
        let long = "Authentication-Results: mx.test".to_owned()
            + &"; dkim=fail header.d=evil.example".repeat(200)
            + "\n";
        let odd = "Authentication-Results: mx.test; dkim=fail header.i=\\@evil.example\n".to_owned();
        for above in [long, odd] {
            let below = judge(&format!("{above}{PASS}"));
            assert_eq!(below, (String::new(), vec![Ignored::Malformed, Ignored::BelowMalformed]), "{above}");
            assert_eq!(judge(&format!("{PASS}{above}")).0, "dkim shop.example");
        }
        let other = "Authentication-Results: filter.test; spf=none\n";
        assert_eq!(judge(&format!("{other}{PASS}")).0, "dkim shop.example");
    }

    /// A verifier that says nothing of mail without a signature leaves what a sender wrote on top.
    #[test]
    fn a_message_that_has_nothing_to_verify_proves_nothing() {
        let trusting = trusting(&["mx.test"]);
        let judge = |raw: String| judge_raw(&raw, &trusting);
        let unsigned = judge(format!("{PASS}From: a@shop.example\n\n"));
        assert_eq!(unsigned, (String::new(), vec![Ignored::Unsigned]));
        let broken = judge(format!("{PASS}DKIM-Signature: d=shop.example\nFrom: a@shop.example\n\n"));
        assert_eq!(broken, (String::new(), vec![Ignored::Unsigned]));
        let dmarc = PASS.replace("dkim=pass header.d", "dmarc=pass header.from");
        for from in ["From: a@other.example", "From: a@shop.example, b@other.example", "Subject: none"] {
            let other = judge(format!("{dmarc}{from}\n\n"));
            assert_eq!(other, (String::new(), vec![Ignored::OtherFrom]), "{from}");
        }
    }

    /// A domain speaks for its own mail alone, and a provider for each of its users.
    #[test]
    fn who_stands_behind_it() {
        let author = |from: &[&str], dkim: &str| {
            let proven = Proven { dkim: vec![dkim.to_owned()], ..Proven::default() };
            proven.author(&from.iter().map(|&from| from.to_owned()).collect::<Vec<_>>())
        };
        let shop = Some("shop.example".to_owned());
        assert_eq!(author(&["a@Shop.example"], "shop.example"), shop);
        assert_eq!(author(&["a@shop.example", "b@shop.example"], "mail.shop.example"), shop);
        assert_eq!(author(&["a@news.shop.example"], "shop.example"), Some("news.shop.example".to_owned()));
        assert_eq!(author(&["Anna@gmail.com"], "gmail.com"), Some("anna@gmail.com".to_owned()));
        assert_eq!(author(&["a@yahoo.co.uk"], "yahoo.co.uk"), Some("a@yahoo.co.uk".to_owned()));
        for (from, dkim) in [
            (&["a@shop.example"][..], "p.example"),
            (&["a@shop.example"], "op.example"),
            (&[], "shop.example"),
        ] {
            assert_eq!(author(from, dkim), None);
        }
        assert_eq!(author(&["a@shop.example", "b@other.example"], "shop.example"), None);
        let by_sender = Proven { spf: vec!["bounce@shop.example".to_owned()], ..Proven::default() };
        assert_eq!(by_sender.author(&["a@shop.example".to_owned()]), shop);
    }

    #[test]
    fn a_sender_who_could_break_a_field_proves_nothing() {
        let proven = Proven { dkim: vec!["shop.example".to_owned()], ..Proven::default() };
        assert_eq!(proven.for_sender(Some("bounce=me+x@shop.example")), &proven);
        assert_eq!(proven.for_sender(None), &proven);
        for odd in ["\"a; dkim=pass\"@evil.example", "a) dkim=pass (@evil.example", "a b@evil.example"] {
            assert_eq!(proven.for_sender(Some(odd)), &Proven::default(), "{odd}");
        }
        let twice = PASS.replace("header.d", "header.d=evil.example header.d");
        assert_eq!(judge(&twice), (String::new(), vec![Ignored::NoName]));
    }
}
