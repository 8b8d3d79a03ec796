// SPDX-License-Identifier: GPL-3.0-or-later
//! A white-list line for bulk that somebody may want.

/// The most letters of a name below a top-level domain that registries use for everybody: co.uk, com.au, gov.uk.
const OF_REGISTRIES: usize = 3;

/// The line that would want bulk of this envelope sender's domain: by the client's name, if it is verified and belongs to the domain;
/// otherwise by the list id, which anybody can forge. `None` if there is neither.
#[must_use]
pub fn suggestion(host: Option<&str>, domain: &str, list_id: Option<&str>) -> Option<String> {
    let of_host = host.and_then(|host| owner(host, domain)).map(|owner| format!("host .{owner}"));
    let of_list = || list_id.filter(|id| is_name(id)).map(|id| format!("list-id <{}>", id.to_lowercase()));
    of_host.or_else(of_list)
}

/// The domain that contains both a host and a sender's domain: the sender's, or the one above it.
fn owner(host: &str, domain: &str) -> Option<String> {
    let (host, domain) = (host.to_lowercase(), domain.to_lowercase());
    let is_below = |above: &str| {
        host.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) && is_name(above)
    };
    if is_below(&domain) {
        return Some(domain);
    }
    let (_, above) = domain.split_once('.')?;
    let (name, top) = above.split_once('.')?;
    let is_own = top.contains('.') || name.len() > OF_REGISTRIES;
    (is_own && is_below(above)).then(|| above.to_owned())
}

/// Whether it can be a name in a white list.
fn is_name(text: &str) -> bool {
    text.contains('.') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, WhiteList};
    use std::path::PathBuf;

    #[test]
    fn a_line_is_one_that_wants_the_mail_and_not_that_of_a_whole_registry() {
        for (host, domain, list, expected) in [
            (Some("mail.shop.example"), "shop.example", None, Some("host .shop.example")),
            (Some("shop.example"), "Shop.Example", Some("x.y"), Some("host .shop.example")),
            (Some("out.museum.example"), "bounce.museum.example", None, Some("host .museum.example")),
            (Some("out.evil.co.uk"), "museum.co.uk", None, None),
            (Some("notshop.example"), "shop.example", None, None),
            (
                Some("mail.provider.example"),
                "shop.example",
                Some("news.shop.example"),
                Some("list-id <news.shop.example>"),
            ),
            (None, "shop.example", Some("a b # c"), None),
            (Some("mail.example"), "", None, None),
            (Some("x.example"), "example", None, None),
        ] {
            let found = suggestion(host, domain, list);
            assert_eq!(found.as_deref(), expected, "{host:?} {domain}");
            let Some(line) = found else { continue };
            let list_of = WhiteList::load(&[PathBuf::from("x")], &|_| Ok(line.clone().into_bytes())).unwrap();
            let facts = Facts { client_host: host, list_id: list, ..Facts::default() };
            assert!(list_of.message(&facts).is_some(), "{line} does not want it");
        }
    }
}
