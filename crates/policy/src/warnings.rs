// SPDX-License-Identifier: GPL-3.0-or-later
//! Warnings about a valid white list.

use super::authenticate::{Authenticate, Authentication};
use super::source::Source;
use super::whitelist::WhiteList;

/// The most places that one warning names.
const NAMED: usize = 5;

/// Warns of entries that any sender can make match, if bulk is not only marked (`acts`); and of entries that match nothing, since mail is not
/// verified.
#[must_use]
pub fn warnings(list: &WhiteList, acts: bool, authentication: &Authentication) -> Vec<String> {
    let mut warnings = Vec::new();
    if acts {
        warnings.extend(warning(
            &list.forgeable(),
            "any sender can write what it asks for, and so is not refused; join it with what is verified, as in \"list-id <...> & \
             dkim example.org\"",
        ));
    }
    for (method, places) in list.verified_only() {
        if !authentication.verifies(method) {
            let why = match authentication.authenticate {
                Authenticate::No => "authentication.authenticate is \"no\"".to_owned(),
                Authenticate::Header => format!("authentication.methods does not have \"{method}\""),
                Authenticate::Here => continue,
            };
            warnings.extend(warning(
                &places,
                &format!("it never matches, since nobody verifies {method}: {why}"),
            ));
        }
    }
    warnings
}

fn warning(places: &[Source], what: &str) -> Option<String> {
    let named: Vec<_> = places.iter().take(NAMED).map(ToString::to_string).collect();
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}: {what}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Actions};
    use std::path::PathBuf;

    fn of(text: &str, bulk: Action, authenticate: Authenticate) -> Vec<String> {
        let list = WhiteList::load(&[PathBuf::from("l")], &|_| Ok(text.into())).unwrap();
        let actions = Actions { bulk, ..Actions::default() };
        let acts = actions.do_more_than_mark();
        let authentication = Authentication { authenticate, ..Authentication::default() };
        let places = |warning: String| warning.split(": ").next().unwrap().to_owned();
        warnings(&list, acts, &authentication).into_iter().map(places).collect()
    }

    #[test]
    fn forgeable_entries_are_named_if_bulk_is_refused() {
        let forgeable = "list-id <a.b>\nip 192.0.2.1\nsender <>\nfrom a.b & list-id a.b\nfrom a.b & dkim a.b\nrecipient a@b.c";
        assert_eq!(of(forgeable, Action::Reject, Authenticate::Header), ["l:1, l:3, l:4"]);
        assert_eq!(of(forgeable, Action::Mark, Authenticate::Header), [""; 0]);
        let many: String = (0..9).map(|n| format!("from {n}.example\n")).collect();
        assert_eq!(of(&many, Action::Reject, Authenticate::Header), ["l:1, l:2, l:3, l:4, l:5 and 4 more"]);
    }

    #[test]
    fn entries_that_need_a_verifier_are_named_if_there_is_none() {
        let proofs = "dkim a.b\nip 192.0.2.1\nlist-id a & spf b.c";
        assert_eq!(of(proofs, Action::Mark, Authenticate::No), ["l:1", "l:3"]);
        // By default, only DKIM results count.
        assert_eq!(of(proofs, Action::Mark, Authenticate::Header), ["l:3"]);
        assert_eq!(of(proofs, Action::Mark, Authenticate::Here), [""; 0]);
    }
}
