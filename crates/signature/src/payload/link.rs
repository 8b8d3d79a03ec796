// SPDX-License-Identifier: GPL-3.0-or-later
//! Targets of links: a page, a telephone number, a mail address, a wallet.

use super::address;
use super::host::{Host, decoded};
use super::shape::shape;
use super::telephone;
use super::wallet::wallet;
use std::borrow::Cow;

/// Bytes of a link that are read. Links that browsers open are longer only if they carry data.
const LONGEST: usize = 2048;

/// Bytes of a page's path that are kept.
const MAX_PATH: usize = 512;

/// Schemes of wallets.
const COINS: [&str; 8] =
    ["bitcoin", "bitcoincash", "dogecoin", "ethereum", "litecoin", "monero", "tron", "dash"];

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Page(Page),
    Telephone(String),
    Address(String),
    Wallet(String),
}

/// A page on the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) host: Host,
    /// The registered domain, and the shape of path and query: the same in all copies of a mailing.
    pub(super) site: String,
    /// Host and path as written, if the shape has less than these.
    pub(super) exact: Option<String>,
}

/// Passes on the targets of a link. `base` is that of its HTML page. If the link of a page contains another link, to which it redirects,
/// both are passed on.
pub(super) fn targets(link: &str, base: Option<&str>, emit: &mut impl FnMut(Target)) {
    let link = link[..link.floor_char_boundary(LONGEST)].trim_matches(|c: char| c <= ' ');
    // Browsers ignore these anywhere.
    let link = if memchr::memchr3(b'\t', b'\r', b'\n', link.as_bytes()).is_some() {
        Cow::Owned(link.replace(['\t', '\r', '\n'], ""))
    } else {
        Cow::Borrowed(link)
    };
    let Some((scheme, rest)) = scheme(&link) else { return relative(&link, base, emit) };
    let scheme = scheme.to_ascii_lowercase();
    let emit_found = |found: Option<Target>, emit: &mut dyn FnMut(Target)| found.into_iter().for_each(emit);
    match &*scheme {
        "http" | "https" | "hxxp" | "hxxps" => pages(rest, emit),
        "tel" | "sms" | "callto" => {
            emit_found(telephone::target(&decoded(rest)).map(Target::Telephone), emit)
        }
        "whatsapp" => emit_found(phone_parameter(rest).map(Target::Telephone), emit),
        "mailto" => {
            let to = decoded(rest.split('?').next().unwrap_or_default());
            to.split(',').take(4).for_each(|to| emit_found(address::form(to).map(Target::Address), emit));
        }
        coin if COINS.contains(&coin) => {
            let end = rest.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
            emit_found(wallet(&rest[..end]).map(Target::Wallet), emit);
        }
        _ => (),
    }
}

/// A link without a scheme.
fn relative(link: &str, base: Option<&str>, emit: &mut impl FnMut(Target)) {
    let slashes = |link: &str| link.bytes().take(2).filter(|b| matches!(b, b'/' | b'\\')).count();
    if slashes(link) == 2 || link.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www.")) {
        return pages(link, emit);
    }
    let Some(("http" | "https", base)) = base.and_then(scheme) else { return };
    if !link.is_empty() && !link.starts_with('#') {
        let host =
            base.trim_start_matches(['/', '\\']).split(['/', '\\', '?', '#']).next().unwrap_or_default();
        pages(&format!("{host}/{link}"), emit);
    }
}

/// The scheme of a link, and the text behind its colon.
fn scheme(link: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = link.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    (is_scheme && scheme.len() <= 16 && !scheme.contains('.')).then_some((scheme, rest))
}

/// The page whose address follows a scheme, and the page that this one names.
fn pages(rest: &str, emit: &mut impl FnMut(Target)) {
    let (outer, inner) = parted(rest);
    page(outer, emit);
    if let Some(inner) = inner {
        // The inner link is one parameter; the next ones do not belong to it.
        let end = if outer.contains('?') { inner.find('&').unwrap_or(inner.len()) } else { inner.len() };
        page(&decoded(&inner[..end]), emit);
    }
}

/// The beginnings of a link within another one. None of them is the end of another.
const SCHEMES: [&str; 4] = ["https://", "http://", "https%3a%2f%2f", "http%3a%2f%2f"];

/// Whether a text ends with these ASCII characters, in any case.
fn ends_with(text: &str, end: &str) -> bool {
    let (text, end) = (text.as_bytes(), end.as_bytes());
    text.len().checked_sub(end.len()).is_some_and(|start| text[start..].eq_ignore_ascii_case(end))
}

/// A link up to the last other link in it, and the text behind that one's scheme.
fn parted(rest: &str) -> (&str, Option<&str>) {
    let start = rest.len() - rest.trim_start_matches(['/', '\\']).len();
    // Few links have the last byte of such a scheme behind their host.
    for (end, _) in rest.bytes().enumerate().rev().filter(|(_, b)| matches!(b, b'/' | b'f' | b'F')) {
        let (before, inner) = rest.split_at(end + 1);
        let length = SCHEMES.iter().find(|scheme| ends_with(before, scheme)).map(|scheme| scheme.len());
        if let Some(at) = length.map(|length| before.len() - length).filter(|&at| at > start) {
            return (&rest[..at], Some(inner));
        }
    }
    (rest, None)
}

fn page(rest: &str, emit: &mut impl FnMut(Target)) {
    let rest = rest.trim_start_matches(['/', '\\']).split('#').next().unwrap_or_default();
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let (authority, path) = place.split_at(place.find(['/', '\\']).unwrap_or(place.len()));
    let Some(host) = Host::of_authority(authority) else { return };
    if host.is_uninformative() {
        return;
    }
    let path = path.replace('\\', "/");
    if let Some(number) = messenger(&host, &path, query) {
        return emit(Target::Telephone(number));
    }
    let (shape, is_more) = shape(&path, query);
    let is_kept = is_more && !path.trim_matches('/').is_empty();
    let exact = is_kept.then(|| format!("{}{}", host.name, &path[..path.floor_char_boundary(MAX_PATH)]));
    emit(Target::Page(Page { site: format!("{}{shape}", host.site()), exact, host }));
}

/// The telephone number of a messenger's page.
fn messenger(host: &Host, path: &str, query: Option<&str>) -> Option<String> {
    match host.site() {
        "wa.me" => telephone::target(&format!("+{}", path.trim_matches(['/', '+']))),
        "whatsapp.com" => phone_parameter(query?),
        _ => None,
    }
}

/// This messenger's numbers begin with the country code.
fn phone_parameter(query: &str) -> Option<String> {
    let value = query
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("phone=").or_else(|| pair.strip_prefix("//send/?phone=")))?;
    let value = decoded(value);
    telephone::target(&format!("+{}", value.trim_start_matches(['+', ' '])))
}

/// The link in a token of a text, if there is one.
pub(super) fn in_token(token: &str) -> Option<&str> {
    // Nearly all tokens are words.
    let slash = memchr::memchr(b'/', token.as_bytes());
    if slash.is_none() && !token.contains(['w', 'W']) {
        return None;
    }
    let colon = slash.and_then(|slash| {
        memchr::memmem::find(&token.as_bytes()[slash.saturating_sub(1)..], b"://")
            .map(|at| slash.saturating_sub(1) + at)
    });
    let link = match colon {
        Some(at) => {
            let scheme = token[..at].bytes().rev().take_while(u8::is_ascii_alphabetic).count();
            &token[at - scheme..]
        }
        None => {
            let token = token.trim_start_matches(|c: char| !c.is_alphanumeric());
            (is_www(token) || has_page(token)).then_some(token)?
        }
    };
    let end = link
        .find(|c: char| matches!(c, '<' | '>' | '"' | '|') || crate::text::is_unspaced(c))
        .unwrap_or(link.len());
    Some(link[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', ')', ']', '}', '*', '_']))
}

fn is_www(token: &str) -> bool {
    token.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."))
}

/// `shop.example/autumn`, with a known top-level domain.
fn has_page(token: &str) -> bool {
    let Some((host, path)) = token.split_once('/') else { return false };
    host.len() <= 253
        && !path.is_empty()
        && host.contains('.')
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        && psl::suffix(host.to_ascii_lowercase().as_bytes()).is_some_and(|suffix| suffix.is_known())
}

/// Passes on the targets of a link in a text, where a link without a scheme is a page.
pub(super) fn targets_of_text(link: &str, emit: &mut impl FnMut(Target)) {
    if link.contains("://") {
        targets(link, None, emit);
    } else {
        pages(&link[..link.floor_char_boundary(LONGEST)], emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(link: &str, base: Option<&str>) -> String {
        let mut all = Vec::new();
        targets(link, base, &mut |target| {
            all.push(match target {
                Target::Page(page) => format!("{} {}", page.site, page.exact.as_deref().unwrap_or("-")),
                Target::Telephone(number) => number,
                Target::Address(address) => address,
                Target::Wallet(wallet) => wallet,
            });
        });
        all.join("|")
    }

    #[test]
    fn pages_in_many_forms() {
        for link in [
            "http://shop.example/autumn/8374",
            "HTTPS://www.Shop.Example./autumn/8374#top",
            "http:\\\\bank.example@shop.example:80\\autumn/8374",
            "//shop.example/autumn/8374",
            "http:shop.example/autumn/8374",
            " ht\ntp://shop.exa\tmple/autumn/8374 ",
            "hxxp://shop.example/autumn/8374",
        ] {
            assert_eq!(seen(link, None).split(' ').next(), Some("shop.example/autumn/<9>"), "{link}");
        }
        assert_eq!(seen("www.shop.example", None), "shop.example -");
        assert_eq!(
            seen("autumn/4711", Some("http://shop.example/x")),
            "shop.example/autumn/<9> shop.example/autumn/4711"
        );
        assert_eq!(seen("http://a.shop.example/?u=7", None), "shop.example?u -");
        assert_eq!(seen("https://me.github.io/pay", None), "me.github.io/pay -");
    }

    #[test]
    fn a_page_that_leads_on() {
        for (link, both) in [
            (
                "https://bank.example/url?q=https%3A%2F%2Fshop.example%2Fx%3Fa%26b&sa=D",
                "bank.example/url?q -|shop.example/x?a&b -",
            ),
            ("http://bank.example/url?q=http://shop.example/x&y=1", "bank.example/url?q -|shop.example/x -"),
            ("http://rd.bank.example/*http://shop.example/x?a&b", "bank.example/* -|shop.example/x?a&b -"),
        ] {
            assert_eq!(seen(link, None), both, "{link}");
        }
    }

    #[test]
    fn other_targets() {
        for (link, target) in [
            ("tel:+1-212-555-0100", "+12125550100"),
            ("tel:%2B44%2020%207946%200958", "+442079460958"),
            ("https://wa.me/2348035550100?text=x", "+2348035550100"),
            ("https://api.whatsapp.com/send?text=x&phone=2348035550100", "+2348035550100"),
            ("whatsapp://send/?phone=%2B2348035550100", "+2348035550100"),
            ("MAILTO:A.B%40mail.example?subject=x", "a.b@mail.example"),
            ("mailto:a@b.example,c@b.example", "a@b.example|c@b.example"),
            ("bitcoin:1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa?amount=1", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            (
                "ethereum:0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359@1",
                "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359",
            ),
        ] {
            assert_eq!(seen(link, None), target, "{link}");
        }
        for link in [
            "",
            "#top",
            "/x",
            "javascript:alert(1)",
            "cid:a@b.example",
            "ftp://a.example",
            "http://",
            "http://localhost/",
            "http://www.w3.org/TR",
            "data:text/html,http",
            "tel:1",
        ] {
            assert_eq!(seen(link, None), "", "{link}");
        }
    }

    #[test]
    fn links_in_a_text() {
        for (token, link) in [
            ("<http://a.example/x>", Some("http://a.example/x")),
            ("(see:https://a.example/x).", Some("https://a.example/x")),
            ("www.A.example,", Some("www.A.example")),
            ("shop.com/x", Some("shop.com/x")),
            ("http://a.example/点击", Some("http://a.example/")),
            ("shop.com", None),
            ("and/or", None),
            ("1.2.3.4/24", None),
            ("a@b.com/x", None),
        ] {
            assert_eq!(in_token(token), link, "{token}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(link in "(https?:|tel:|mailto:|bitcoin:|www\\.)?([/\\\\?&=@%:#.\\[\\]a-z0-9]|\\PC){0,60}", base in "\\PC{0,20}") {
            targets(&link, Some(&base), &mut |target| if let Target::Page(page) = target {
                assert!(page.site.starts_with(page.host.site()));
            });
            if let Some(link) = in_token(&link) {
                targets_of_text(link, &mut |_| ());
            }
        }
    }
}
