// SPDX-License-Identifier: GPL-3.0-or-later
//! Digests of Pyzor's clients: their counts, and reports of them.
//!
//! A digest has two counts, in the same ledger as all others, so that a whole federation shares them: the reports, and the white-listings.
//! Each is also a nomination or a revocation, by which reporters are judged.

use super::digests::{are_shared, in_time, log_name, submit};
use super::partial::raise;
use super::report::{Refused, is_admitted};
use super::service::Service;
use crate::activity::ReportResult;
use bulkmark_counts::{Report, Shared, Side};
use bulkmark_ledger::now;
use bulkmark_types::{FederationKey, Foreign, ReporterId, Signature, foreign};
use serde::Deserialize;
use sha1::{Digest as _, Sha1};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::LazyLock;

/// The rest of messages without content, after Pyzor's clients have removed their parts, including lines with fewer than eight characters:
/// nothing; or the last line of an attached file's base64, which is not decoded, if it has exactly eight characters. All PNG pictures have
/// the same end, and all PDF documents except for their line ends.
const EMPTY_RESTS: [&str; 16] = [
    "", "TkSuQmCC", "RK5CYII=", "rkJggg==", "CiUlRU9G", "JSVFT0Y=", "JUVPRg==", "JSVFT0YK", "JUVPRgo=",
    "RU9GCg==", "JUVPRg0K", "RU9GDQo=", "T0YNCg==", "JSVFT0YN", "JUVPRg0=", "RU9GDQ==",
];

/// The digests of [`EMPTY_RESTS`].
static EMPTY_DIGESTS: LazyLock<[[u8; 20]; 16]> =
    LazyLock::new(|| EMPTY_RESTS.map(|text| Sha1::digest(text).into()));

/// All reporters without an account are together one more reporter, with the same daily limit as others: addresses can be made up.
const ANONYMOUS: &[u8] = b"interface:pyzor:strangers";

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
    pub fn is_meaningless(self) -> bool {
        self.0 == [0; 20] || EMPTY_DIGESTS.contains(&self.0)
    }

    /// The signatures that count its reports, and its white-listings.
    #[must_use]
    pub fn signatures(self, key: &FederationKey) -> [Signature; 2] {
        [foreign(key, Foreign::Pyzor, &self.0), self.with(key, b"whitelist")]
    }

    /// A signature of the digest with more data: no other digest is as long.
    fn with(self, key: &FederationKey, more: &[u8]) -> Signature {
        foreign(key, Foreign::Pyzor, &[&self.0, more].concat())
    }
}

/// A reporter of digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PyzorReporter {
    /// A user with an account.
    Account(String),
    /// All users in the network of an address.
    Network {
        /// The network, or the address if that is its own network.
        network: IpAddr,
        /// Whether it is this machine.
        is_here: bool,
    },
}

impl PyzorReporter {
    fn name(&self) -> Vec<u8> {
        match self {
            Self::Account(name) => format!("interface:pyzor:account:{name}").into_bytes(),
            Self::Network { network, .. } => format!("interface:pyzor:network:{network}").into_bytes(),
        }
    }

    /// Whether it is anonymous and remote.
    fn is_anonymous(&self) -> bool {
        matches!(self, Self::Network { is_here: false, .. })
    }
}

/// The unit that counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOnce {
    /// A reporter, for a digest and window; newcomers only up to their weight.
    Reporter,
    /// Each report.
    Report,
    /// Each report; this one has a signature by which it is recognized, on disk, if it is repeated.
    Signed([u8; 20]),
}

/// Counts a report of a digest; returns whether its count is higher by one.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_pyzor(
    service: &Service,
    digest: PyzorDigest,
    (by, side): (&PyzorReporter, Side),
    once: CountOnce,
) -> Result<bool, Refused> {
    let (rules, now) = (service.rules.load_full(), now());
    let each = once != CountOnce::Reporter;
    let own = by.name();
    let reporter = ReporterId::of(&rules.key, &own);
    let is_admitted =
        |name| is_admitted(service, &rules, (ReporterId::of(&rules.key, name), name), side, now);
    let is_admitted = is_admitted(&own) && (!by.is_anonymous() || is_admitted(ANONYMOUS));
    if !is_admitted && !each {
        service.activity.user_reports.add(side == Side::Spam, ReportResult::OverLimit);
        return Err(Refused::TooMany);
    }
    let [reported, whitelisted] = digest.signatures(&rules.key);
    let (of, mark) = match side {
        Side::Spam => (reported, [&b"reported by "[..], reporter.bytes()].concat()),
        Side::NotSpam => (whitelisted, [&b"whitelisted by "[..], reporter.bytes()].concat()),
    };
    let mark = match once {
        CountOnce::Signed(signature) => digest.with(&rules.key, &[&b"signed "[..], &signature].concat()),
        CountOnce::Reporter | CountOnce::Report => digest.with(&rules.key, &mark),
    };
    let Some(_turn) = service.in_progress.begin(mark) else { return Ok(false) };
    let is_marked = once != CountOnce::Report;
    let is_known = is_marked && service.ledger.counts(vec![mark], now).await?.iter().any(|&count| count > 0);
    if is_known && each {
        return Ok(false);
    }
    let weighs = if is_admitted {
        let tally = submit(service, &rules, reported, (reporter, side), now).await?;
        log_name(&rules, reporter, &own);
        let has_weight = tally.counted + tally.withdrawn > 0;
        // A digest without reports cannot be revoked, but can be white-listed; without room, an account's report still counts.
        has_weight || side == Side::NotSpam || tally.no_room > 0 && !by.is_anonymous()
    } else {
        false
    };
    if !each && (is_known || !weighs) {
        return Ok(false);
    }
    // The mark stays here: it records that this reporter, or this report, was counted, and derives from nothing that others have.
    let marks = if is_marked { vec![mark] } else { Vec::new() };
    let shared = if are_shared(&rules) { Shared::Once } else { Shared::Nothing };
    let report = Report { signatures: marks, once: vec![of], times: 1, shared, now, ..Report::default() };
    service.ledger.report(report).await?;
    Ok(true)
}

/// The counts of digests, of reports and of white-listings, by one question to the ledger for each key. A milter with a partial copy also asks
/// its server, if digests may be sent to others. `None` if the ledger does not answer before the deadline of verdicts.
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
        assert!(read(empty).unwrap().is_meaningless() && !read(&"01".repeat(20)).unwrap().is_meaningless());
    }

    /// In base64 the last eight characters are four to six bytes: all three rests of each file end are known, and nothing else.
    #[test]
    fn ends_of_files_are_meaningless() {
        let ends: [&[u8]; 5] =
            [b"\0\0\0\0IEND\xaeB`\x82", b"9\n%%EOF", b"9\n%%EOF\n", b"9\r\n%%EOF\r\n", b"9\r%%EOF\r"];
        let wanted: HashSet<_> =
            ends.iter().flat_map(|end| (4..=6).map(|length| end[end.len() - length..].to_vec())).collect();
        let known: HashSet<_> =
            EMPTY_RESTS[1..].iter().map(|text| base64_decode(text.as_bytes()).unwrap()).collect();
        assert_eq!(known, wanted);
    }

    /// Reports, white-listings and reporters have different signatures.
    #[test]
    fn a_digest_has_two_counts() {
        let key = FederationKey::public();
        let [one, other] = [PyzorDigest([1; 20]), PyzorDigest([2; 20])].map(|digest| digest.signatures(&key));
        let all: HashSet<_> = one.into_iter().chain(other).collect();
        assert_eq!(all.len(), 4);
    }
}
