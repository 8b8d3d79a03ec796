// SPDX-License-Identifier: GPL-3.0-or-later
//! What the elements of HTML are by their names.

use html5ever::{LocalName, local_name};

/// Elements without content and end tag.
pub(super) fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("area")
            | local_name!("base")
            | local_name!("br")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("link")
            | local_name!("meta")
            | local_name!("param")
            | local_name!("source")
            | local_name!("track")
            | local_name!("wbr")
    )
}

/// Elements that end where the next of the same name begins.
pub(super) fn closes_its_like(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("p")
            | local_name!("li")
            | local_name!("dt")
            | local_name!("dd")
            | local_name!("td")
            | local_name!("th")
            | local_name!("tr")
            | local_name!("option")
    )
}

/// Elements in which others of the name of an outer one may stand.
pub(super) fn holds_its_own(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("table")
            | local_name!("ul")
            | local_name!("ol")
            | local_name!("dl")
            | local_name!("div")
            | local_name!("blockquote")
    )
}

/// Elements in the middle of a word.
pub(super) fn is_inline(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("a")
            | local_name!("abbr")
            | local_name!("b")
            | local_name!("bdo")
            | local_name!("big")
            | local_name!("code")
            | local_name!("del")
            | local_name!("em")
            | local_name!("font")
            | local_name!("i")
            | local_name!("ins")
            | local_name!("kbd")
            | local_name!("label")
            | local_name!("mark")
            | local_name!("nobr")
            | local_name!("s")
            | local_name!("small")
            | local_name!("span")
            | local_name!("strike")
            | local_name!("strong")
            | local_name!("sub")
            | local_name!("sup")
            | local_name!("tt")
            | local_name!("u")
            | local_name!("wbr")
    )
}

/// Parts of a table, which are as large as what is in them.
pub(super) fn is_of_table(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("table")
            | local_name!("caption")
            | local_name!("thead")
            | local_name!("tbody")
            | local_name!("tfoot")
            | local_name!("tr")
            | local_name!("td")
            | local_name!("th")
    )
}
