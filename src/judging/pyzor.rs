// SPDX-License-Identifier: GPL-3.0-or-later
//! Digests that clients of Pyzor made: how often they are told of, and what is counted of what is said of them.
//!
//! A digest has two counts, in the same ledger as all others, and so the same for a whole federation: of those who reported it, and of those
//! who put it on the white list. What is said of it is a nomination or a revocation, too, by which reporters are judged.

use super::digests::{are_shared, in_time, name, say};
use super::report::{Refused, is_heard};
use super::service::Service;
use super::thin::raise;
use crate::activity::Became;
use bulkmark_counts::{Report, Shared, Side};
use bulkmark_ledger::now;
use bulkmark_types::{FederationKey, Foreign, ReporterId, Signature, foreign};
use serde::Deserialize;
use sha1::{Digest as _, Sha1};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::LazyLock;

/// What is left of messages that say nothing, where Pyzor's clients have taken away what they take away, lines of fewer than eight letters
/// among them: nothing; or of an attached file the last line of its base64, where that has just eight letters, for it is not decoded. All PNG
/// pictures end alike, and all PDF documents, but for their line ends.
const NOTHING: [&str; 16] = [
    "", "TkSuQmCC", "RK5CYII=", "rkJggg==", "CiUlRU9G", "JSVFT0Y=", "JUVPRg==", "JSVFT0YK", "JUVPRgo=",
    "RU9GCg==", "JUVPRg0K", "RU9GDQo=", "T0YNCg==", "JSVFT0YN", "JUVPRg0=", "RU9GDQ==",
];

/// Their digests.
static SAY_NOTHING: LazyLock<[[u8; 20]; 16]> =
    LazyLock::new(|| NOTHING.map(|text| Sha1::digest(text).into()));

/// Those who say something and have no account are together one more reporter, which says no more in a day than others do: addresses can be
/// made up.
const STRANGERS: &[u8] = b"door:pyzor:strangers";

/// A digest of Pyzor: SHA-1 of some lines of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PyzorDigest([u8; 20]);

/// A text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a digest of 40 hexadecimal digits")]
pub struct ParseDigestError;

impl FromStr for PyzorDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text: &[u8; 40] = text.as_bytes().try_into().map_err(|_| ParseDigestError)?;
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            for &digit in pair {
                let value = char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
                *byte = *byte << 4 | value.ok_or(ParseDigestError)?;
            }
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for PyzorDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|e| format!("found \"{text}\", {e}"))
    }
}

impl PyzorDigest {
    /// Whether it is never counted: very different messages have it.
    #[must_use]
    pub fn says_nothing(self) -> bool {
        self.0 == [0; 20] || SAY_NOTHING.contains(&self.0)
    }

    /// The signatures by which its reports are counted, and its white-listing.
    #[must_use]
    pub fn signatures(self, key: &FederationKey) -> [Signature; 2] {
        [foreign(key, Foreign::Pyzor, &self.0), self.with(key, b"whitelist")]
    }

    /// A signature that says more of it: no other digest is as long.
    fn with(self, key: &FederationKey, more: &[u8]) -> Signature {
        foreign(key, Foreign::Pyzor, &[&self.0, more].concat())
    }
}

/// Who says something of a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Teller {
    /// Somebody with an account.
    Account(String),
    /// Anybody in the network of an address.
    Network {
        /// The network, or the address where that is its own.
        network: IpAddr,
        /// Whether it is this machine.
        is_here: bool,
    },
}

impl Teller {
    fn name(&self) -> Vec<u8> {
        match self {
            Self::Account(name) => format!("door:pyzor:account:{name}").into_bytes(),
            Self::Network { network, .. } => format!("door:pyzor:network:{network}").into_bytes(),
        }
    }

    /// Whether nobody knows who it is, and where.
    fn is_stranger(&self) -> bool {
        matches!(self, Self::Network { is_here: false, .. })
    }
}

/// What counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// A reporter, for a digest and window; newcomers no further than their words weigh.
    Reporter,
    /// Each report.
    Report,
    /// Each report, and this one has a signature by which it is known on disk if it comes again.
    Signed([u8; 20]),
}

/// Counts what somebody says of a digest; whether its count is higher by one for it.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_pyzor(
    service: &Service,
    digest: PyzorDigest,
    (teller, side): (&Teller, Side),
    once: Once,
) -> Result<bool, Refused> {
    let (rules, now) = (service.rules.load_full(), now());
    let each = once != Once::Reporter;
    let own = teller.name();
    let reporter = ReporterId::of(&rules.key, &own);
    let is_admitted = |name| is_heard(service, &rules, (ReporterId::of(&rules.key, name), name), side, now);
    let is_admitted = is_admitted(&own) && (!teller.is_stranger() || is_admitted(STRANGERS));
    if !is_admitted && !each {
        service.activity.words.add(side == Side::Spam, Became::OverLimit);
        return Err(Refused::TooMany);
    }
    let [reported, whitelisted] = digest.signatures(&rules.key);
    let (of, mark) = match side {
        Side::Spam => (reported, [&b"reported by "[..], reporter.bytes()].concat()),
        Side::NotSpam => (whitelisted, [&b"whitelisted by "[..], reporter.bytes()].concat()),
    };
    let mark = match once {
        Once::Signed(signature) => digest.with(&rules.key, &[&b"signed "[..], &signature].concat()),
        Once::Reporter | Once::Report => digest.with(&rules.key, &mark),
    };
    let Some(_turn) = service.turns.begin(mark) else { return Ok(false) };
    let is_marked = once != Once::Report;
    let is_known = is_marked && service.ledger.counts(vec![mark], now).await?.iter().any(|&count| count > 0);
    if is_known && each {
        return Ok(false);
    }
    let weighs = if is_admitted {
        let said = say(service, &rules, reported, (reporter, side), now).await?;
        name(&rules, reporter, &own);
        let has_weight = said.counted + said.taken_back > 0;
        // What nobody reported cannot be revoked, and can be white-listed; where there is no room, an account is known all the same.
        has_weight || side == Side::NotSpam || said.no_room > 0 && !teller.is_stranger()
    } else {
        false
    };
    if !each && (is_known || !weighs) {
        return Ok(false);
    }
    // The mark stays here: it says that this reporter, or this report, was counted, and follows from nothing that others have.
    let marks = if is_marked { vec![mark] } else { Vec::new() };
    let shared = if are_shared(&rules) { Shared::Once } else { Shared::Nothing };
    let report = Report { signatures: marks, once: vec![of], times: 1, shared, now, ..Report::default() };
    service.ledger.report(report).await?;
    Ok(true)
}

/// The counts of digests, each of its reports and of its white-listing, by one question to the ledger for each key. A thin milter puts another one to its
/// server, where others may be told of digests. None when the ledger does not answer before the deadline of verdicts.
pub async fn digest_counts(service: &Service, digests: &[PyzorDigest]) -> Option<Vec<[u32; 2]>> {
    let rules = service.rules.load_full();
    let mut sums = vec![0u32; digests.len() * 2];
    for key in rules.key.all() {
        let signatures: Vec<Signature> = digests.iter().flat_map(|digest| digest.signatures(key)).collect();
        let mut counts = in_time(&rules, service.ledger.counts(signatures.clone(), now())).await?;
        if let Some(asks) = service.asks.as_deref().filter(|_| are_shared(&rules)) {
            raise(asks, &signatures, &mut counts).await;
        }
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    Some(sums.as_chunks().0.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::decoders::base64::base64_decode;
    use std::collections::HashSet;

    #[test]
    fn digests_are_read() {
        let read = |text: &str| text.parse::<PyzorDigest>();
        assert_eq!(read(&"0aF9".repeat(10)), Ok(PyzorDigest([0x0a, 0xf9].repeat(10).try_into().unwrap())));
        for bad in ["", "+f", &"0g".repeat(20), &"0".repeat(39), &"é".repeat(20)] {
            assert_eq!(read(bad), Err(ParseDigestError), "{bad}");
        }
        let empty = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
        assert!(read(empty).unwrap().says_nothing() && !read(&"01".repeat(20)).unwrap().says_nothing());
    }

    /// In base64 the last eight letters are four to six bytes: of each end of a file all three are known, and nothing else.
    #[test]
    fn ends_of_files_say_nothing() {
        let ends: [&[u8]; 5] =
            [b"\0\0\0\0IEND\xaeB`\x82", b"9\n%%EOF", b"9\n%%EOF\n", b"9\r\n%%EOF\r\n", b"9\r%%EOF\r"];
        let wanted: HashSet<_> =
            ends.iter().flat_map(|end| (4..=6).map(|length| end[end.len() - length..].to_vec())).collect();
        let known: HashSet<_> =
            NOTHING[1..].iter().map(|text| base64_decode(text.as_bytes()).unwrap()).collect();
        assert_eq!(known, wanted);
    }

    /// The count of reports, that of white-listing, and who said so never meet.
    #[test]
    fn a_digest_has_two_counts() {
        let key = FederationKey::public();
        let [one, other] = [PyzorDigest([1; 20]), PyzorDigest([2; 20])].map(|digest| digest.signatures(&key));
        let all: HashSet<_> = one.into_iter().chain(other).collect();
        assert_eq!(all.len(), 4);
    }
}
