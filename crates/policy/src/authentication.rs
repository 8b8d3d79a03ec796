// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of DKIM, SPF and DMARC that count, and the names that they verify.
//!
//! A sender can write Authentication-Results too. So a result counts only
//!
//! - if its server is trusted, and the field is as servers write it ([`AuthenticationResults::parse`]);
//! - if no field above has a result of the same method or is unreadable: our servers write above the fields that came with the message, and a
//!   sender can make their field long or malformed;
//! - if the message has the verified part: a whole DKIM signature of that domain, a From address, a sender. A verifier then writes its own
//!   result above a forged one.

use super::authenticate::{Authenticate, Authentication};
use bulkmark_mail::{AuthenticationResults, Fields, MethodResult, is_of_provider};
use std::fmt;

/// The verified names of a message, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedNames {
    /// Domains with a valid DKIM signature.
    pub dkim: Vec<String>,
    /// Envelope senders, or their domains, for which the client may send.
    pub spf: Vec<String>,
    /// Domains of the From field, by their own policies.
    pub dmarc: Vec<String>,
}

impl VerifiedNames {
    /// The names that a message claims: its signers, its envelope sender and its author. None is verified.
    #[must_use]
    pub fn claimed(fields: &Fields, sender: Option<&str>) -> Self {
        let lower = |name: &str| name.to_lowercase();
        let mut dkim = fields.signed_by.clone();
        dkim.dedup();
        // The null sender has no domain.
        let spf = sender.filter(|sender| sender.contains('@')).map(lower).into_iter().collect();
        let mut from: Vec<_> = fields.from.iter().map(|from| lower(domain(from))).collect();
        from.dedup();
        Self { dkim, spf, dmarc: if from.len() == 1 { from } else { Vec::new() } }
    }

    /// The verified author of a message from these addresses: their common domain, if this domain, one above or one below sent or signed it;
    /// at a mail provider, the whole address.
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

    /// Adds the other's names, without duplicates.
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

static NONE: VerifiedNames = VerifiedNames { dkim: Vec::new(), spf: Vec::new(), dmarc: Vec::new() };

impl VerifiedNames {
    /// The same, or nothing if the sender's address could inject results into a verifier's field.
    #[must_use]
    pub fn for_sender(&self, sender: Option<&str>) -> &Self {
        if sender.is_some_and(breaks_fields) { &NONE } else { self }
    }
}

/// The reason why a result does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// `authenticate` is not "header".
    Off,
    /// Its server is not trusted.
    Untrusted,
    /// Our servers do not verify its method.
    Method,
    /// Its form is not a server's.
    Malformed,
    /// A field above has a result of this method.
    Below,
    /// A field above cannot be read.
    BelowMalformed,
    /// It is not "pass".
    NoPass,
    /// It names no domain, or two.
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

/// A callback for each result: the field's server, the result, and whether it counts.
pub type OnResult<'a> = dyn FnMut(&str, Option<&MethodResult>, Result<(), Ignored>) + 'a;

impl Authentication {
    /// The verified names of a message with these fields.
    #[must_use]
    pub fn verified(&self, fields: &Fields) -> VerifiedNames {
        // No result counts, so none needs to be read.
        if self.authenticate != Authenticate::Header {
            return VerifiedNames::default();
        }
        self.judge(fields, &mut |_, _, _| ())
    }

    /// The same. `on_result` is called for each result; without server and result for a field that has none.
    pub fn judge(&self, fields: &Fields, on_result: &mut OnResult<'_>) -> VerifiedNames {
        let mut verified = VerifiedNames::default();
        // Methods with a result in a trusted field above.
        let mut seen: Vec<String> = Vec::new();
        let mut was_malformed = false;
        for value in &fields.authentication_results {
            let Some(field) = AuthenticationResults::parse(value) else {
                on_result("", None, Err(Ignored::Malformed));
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
                    None if seen.contains(&result.method) => Err(Ignored::Below),
                    None => verified.take(result, fields),
                };
                on_result(&field.server, Some(result), taken);
            }
            if ignored.is_none() {
                seen.extend(field.results.into_iter().map(|result| result.method));
            }
        }
        verified
    }
}

impl VerifiedNames {
    /// Adds the name of a trusted server's result.
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

/// Whether `domain` is `other` or below it.
fn is_below(domain: &str, other: &str) -> bool {
    domain.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The domain of an address, or the whole text if it has no `@`.
pub(super) fn domain(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain)
}

/// Whether a name has characters that end a part of a field.
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

    /// The verified names by these fields above a message that the shop signed, and the reasons for the other results.
    fn judge(fields: &str) -> (String, Vec<Ignored>) {
        let raw = format!("{fields}{SIGNED}From: News <news@shop.example>\n\nbody\n");
        judge_raw(&raw, &trusting(&["MX.test", "filter.test"]))
    }

    fn judge_raw(raw: &str, trusting: &Authentication) -> (String, Vec<Ignored>) {
        let fields = RawMessage::from_bytes(raw.as_bytes()).fields();
        let mut ignored = Vec::new();
        let verified = trusting.judge(&fields, &mut |_, _, taken| ignored.extend(taken.err()));
        let VerifiedNames { dkim, spf, dmarc } = verified;
        let names = [("dkim", dkim), ("spf", spf), ("dmarc", dmarc)];
        let names: Vec<_> =
            names.iter().flat_map(|(m, all)| all.iter().map(move |name| format!("{m} {name}"))).collect();
        (names.join(", "), ignored)
    }

    const PASS: &str = "Authentication-Results: mx.test; dkim=pass header.d=shop.example\n";

    #[test]
    fn results_of_trusted_servers_count() {
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
    fn results_of_others_do_not_count() {
        assert_eq!(
            judge(&PASS.replace("mx.test", "relay.example")),
            (String::new(), vec![Ignored::Untrusted])
        );
        let off = Authentication { authenticate: Authenticate::No, ..trusting(&["mx.test"]) };
        assert_eq!(judge_raw(PASS, &off), (String::new(), vec![Ignored::Off]));
        // OpenDKIM does not remove a field without DKIM results.
        let dkim_alone = Authentication { methods: vec![Method::Dkim], ..trusting(&["mx.test"]) };
        let spf = judge_raw(&PASS.replace("dkim=pass header.d", "spf=pass smtp.mailfrom"), &dkim_alone);
        assert_eq!(spf, (String::new(), vec![Ignored::Method]));
        // Programs that remove forged fields do not find it under this name.
        assert_eq!(judge(&PASS.replace("Results:", "Results :")), (String::new(), vec![]));
    }

    /// The verifier's field is on top, whether or not the other server is trusted too.
    #[test]
    fn results_below_a_verifiers_field_do_not_count() {
        let none = "Authentication-Results: filter.test; dkim=none\n";
        let unsure = judge(&format!("{none}{PASS}"));
        assert_eq!(unsure, (String::new(), vec![Ignored::NoPass, Ignored::Below]));
        // A sender with many or malformed signatures makes the verifier's field long or malformed.
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

    /// A verifier that writes no field for unsigned mail leaves the sender's field on top.
    #[test]
    fn a_message_without_anything_to_verify_has_no_verified_name() {
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

    /// A domain verifies its own mail only, and a provider each of its users.
    #[test]
    fn the_author_is_an_aligned_domain_or_a_providers_user() {
        let author = |from: &[&str], dkim: &str| {
            let verified = VerifiedNames { dkim: vec![dkim.to_owned()], ..VerifiedNames::default() };
            verified.author(&from.iter().map(|&from| from.to_owned()).collect::<Vec<_>>())
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
        let by_sender =
            VerifiedNames { spf: vec!["bounce@shop.example".to_owned()], ..VerifiedNames::default() };
        assert_eq!(by_sender.author(&["a@shop.example".to_owned()]), shop);
    }

    #[test]
    fn a_sender_that_could_break_a_field_has_no_verified_name() {
        let verified = VerifiedNames { dkim: vec!["shop.example".to_owned()], ..VerifiedNames::default() };
        assert_eq!(verified.for_sender(Some("bounce=me+x@shop.example")), &verified);
        assert_eq!(verified.for_sender(None), &verified);
        for odd in ["\"a; dkim=pass\"@evil.example", "a) dkim=pass (@evil.example", "a b@evil.example"] {
            assert_eq!(verified.for_sender(Some(odd)), &VerifiedNames::default(), "{odd}");
        }
        let twice = PASS.replace("header.d", "header.d=evil.example header.d");
        assert_eq!(judge(&twice), (String::new(), vec![Ignored::NoName]));
    }
}
