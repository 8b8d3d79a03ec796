// SPDX-License-Identifier: GPL-3.0-or-later
//! The evidence of a message, by which its signatures can be verified once its body is gone.

use bulkmark_mail::RawMessage;
use mail_auth::AuthenticatedMessage;
use mail_auth::common::crypto::{Algorithm, HashAlgorithm};
use mail_auth::common::headers::Header;
use mail_auth::dkim::{Canonicalization, Signature};
use std::borrow::Cow;

/// The most comparisons of names of fields that one signature may cost. A usual one covers thirty of a hundred fields.
const MOST_COMPARED: usize = 1 << 20;

/// The raw header, and the hashes of the body.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// With the empty line.
    header: Vec<u8>,
    /// The SHA-256 hashes in each form that a signature needs: two at most.
    hashes: Vec<(Canonicalization, Vec<u8>)>,
}

impl Evidence {
    /// Reads the evidence of a message; `None` if its header was not kept.
    #[must_use]
    pub fn of(message: &RawMessage) -> Option<Self> {
        let header = [message.exact_header()?, b"\r\n"].concat();
        let signatures = Self { header, hashes: Vec::new() };
        let parsed = signatures.message();
        let mut forms: Vec<Canonicalization> = Vec::new();
        for (parsed, signed) in
            parsed.iter().flat_map(|parsed| parsed.dkim_headers.iter().map(move |signed| (parsed, signed)))
        {
            if flaw(&signed.header, parsed.headers.len()).is_none() && !forms.contains(&signed.header.cb) {
                forms.push(signed.header.cb);
            }
        }
        drop(parsed);
        let body = with_crlf(message.exact_body());
        let hash = |form: Canonicalization| {
            let hash = HashAlgorithm::Sha256.hash(form.canonical_body(&body, 0));
            (form, hash.as_ref().to_vec())
        };
        Some(Self { hashes: forms.into_iter().map(hash).collect(), ..signatures })
    }

    /// Its size in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.header.len()
    }

    /// The header for the verifier, with the body's hashes; `None` if there is no header.
    pub(super) fn message(&self) -> Option<AuthenticatedMessage<'_>> {
        let mut message = AuthenticatedMessage::parse_with_opts(&self.header, None, false)?;
        let hashes = self.hashes.iter().cloned();
        message.body_hashes = hashes.map(|(form, hash)| (form, HashAlgorithm::Sha256, 0, hash)).collect();
        // No entry needs this newer protocol.
        (message.dkim2_signatures, message.dkim2_instances) = (Vec::new(), Vec::new());
        Some(message)
    }

    /// The number of From fields.
    pub(super) fn froms(message: &AuthenticatedMessage<'_>) -> usize {
        message.headers.iter().filter(|(name, _)| name.trim_ascii().eq_ignore_ascii_case(b"from")).count()
    }
}

/// A signature with its header field.
pub(super) type Signed<'a> = Header<'a, Signature>;

/// The reason why a signature in a header of so many fields is worthless, whatever its key is.
pub(super) fn flaw(signature: &Signature, fields: usize) -> Option<&'static str> {
    // The library compares each covered name with those before it, and with all fields.
    let names = signature.h.len();
    if names.saturating_mul(names.saturating_add(fields)) > MOST_COMPARED {
        Some("it covers too many fields")
    } else if signature.a == Algorithm::RsaSha1 {
        Some("it is made by SHA-1, which can be forged")
    } else if signature.l != 0 {
        Some("it covers the beginning of the body only (l=), so anybody may add to it")
    } else if !signature.h.iter().any(|name| name.eq_ignore_ascii_case("from")) {
        Some("it does not cover From")
    } else if !is_name(&format!("{}._domainkey.{}", signature.s, signature.d)) {
        // Some servers answer such a question with an error, which would look like a failure of DNS.
        Some("its key has no name that can stand in DNS")
    } else {
        None
    }
}

/// Whether DNS can be asked for a name.
pub(super) fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_label)
}

/// The body with the line ends of SMTP. Files have others.
fn with_crlf(body: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(body, b"\r\n").is_some() || !body.contains(&b'\n') {
        return Cow::Borrowed(body);
    }
    let mut wire = Vec::with_capacity(body.len() + body.len() / 32);
    for line in body.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                wire.extend_from_slice(line);
                wire.extend_from_slice(b"\r\n");
            }
            None => wire.extend_from_slice(line),
        }
    }
    Cow::Owned(wire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No message causes a panic, and every needed hash exists.
        #[test]
        fn any_message_can_be_taken(
            tags in proptest::collection::vec("(v=1|a=rsa-sha256|a=x|c=relaxed|c=simple/relaxed|d=a\\.b|s=s|h=from|bh=AA==|b=AA==|l=[0-9]{1,20}|x=[0-9]{1,20}|[a-z]=.{0,9})", 0..12),
            rest in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let field = format!("DKIM-Signature: {}\r\nFrom: a@a.b\r\n", tags.join("; "));
            let message = RawMessage::exact_from_bytes(&[field.as_bytes(), &rest].concat());
            let evidence = Evidence::of(&message).unwrap();
            let parsed = evidence.message().unwrap();
            for signed in parsed.dkim_headers.iter().filter(|signed| flaw(&signed.header, parsed.headers.len()).is_none()) {
                prop_assert!(parsed.body_hashes.iter().any(|(form, _, length, _)| *form == signed.header.cb && *length == 0));
            }
        }
    }

    /// A signature of a domain that somebody wants costs as much as the sender likes, until its key proves it false.
    #[test]
    fn a_signature_that_covers_too_many_fields_is_not_verified() {
        let flaw_of = |names: usize, fields: usize| {
            let names: String = (0..names).map(|n| format!(":{n:x}")).collect();
            let signed =
                format!("DKIM-Signature: v=1; a=rsa-sha256; d=a.b; s=s; h=from{names}; bh=AA==; b=AA==\r\n");
            let mail = [&signed, "From: a@a.b\r\n", &"x:\r\n".repeat(fields)].concat();
            let message = RawMessage::exact_from_bytes(mail.as_bytes());
            let evidence = Evidence::of(&message).unwrap();
            let parsed = evidence.message().unwrap();
            assert_eq!(parsed.headers.len(), fields + 2);
            flaw(&parsed.dkim_headers[0].header, parsed.headers.len())
        };
        assert_eq!(flaw_of(100, 1000), None);
        for (names, fields) in [(20_000, 30_000), (1, 1), (20_000, 0), (25, 50_000)] {
            let expected = (names > 1).then_some("it covers too many fields");
            assert_eq!(flaw_of(names, fields), expected, "{names} {fields}");
        }
    }

    #[test]
    fn names_are_those_that_dns_can_have() {
        for good in ["a.b", "s1._domainkey.shop-1.example", &format!("{}.b", "x".repeat(63))] {
            assert!(is_name(good), "{good}");
        }
        let long = format!("{}b", "x.".repeat(127));
        for bad in [
            "",
            "a",
            "a..b",
            ".a",
            "a.",
            "a b.c",
            "a%.b",
            "\u{e9}.b",
            &format!("{}.b", "x".repeat(64)),
            &long,
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
