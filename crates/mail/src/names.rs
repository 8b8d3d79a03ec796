// SPDX-License-Identifier: GPL-3.0-or-later
//! Properties of HTML elements by their names and attributes.

use html5ever::tokenizer::Tag;
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

/// The open elements without an end tag that end before an element begins (HTML standard, 13.1.2.4).
pub(super) fn ended_by(name: &LocalName) -> &'static [LocalName] {
    static PARAGRAPH: [LocalName; 1] = [local_name!("p")];
    static ITEM: [LocalName; 1] = [local_name!("li")];
    static TERM: [LocalName; 2] = [local_name!("dt"), local_name!("dd")];
    static CELL: [LocalName; 3] = [local_name!("td"), local_name!("th"), local_name!("caption")];
    static ROW: [LocalName; 4] =
        [local_name!("tr"), local_name!("td"), local_name!("th"), local_name!("caption")];
    static ROWS: [LocalName; 5] = [
        local_name!("tbody"),
        local_name!("thead"),
        local_name!("tfoot"),
        local_name!("tr"),
        local_name!("caption"),
    ];
    static OPTION: [LocalName; 1] = [local_name!("option")];
    static LINK: [LocalName; 1] = [local_name!("a")];
    static BUTTON: [LocalName; 1] = [local_name!("button")];
    match *name {
        local_name!("p") => &PARAGRAPH,
        local_name!("li") => &ITEM,
        local_name!("dt") | local_name!("dd") => &TERM,
        local_name!("td") | local_name!("th") => &CELL,
        local_name!("tr") => &ROW,
        local_name!("tbody") | local_name!("thead") | local_name!("tfoot") => &ROWS,
        local_name!("option") => &OPTION,
        local_name!("a") => &LINK,
        local_name!("button") => &BUTTON,
        _ => &[],
    }
}

/// A heading, which the end tag of any other one ends.
pub(super) fn is_heading(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("h1")
            | local_name!("h2")
            | local_name!("h3")
            | local_name!("h4")
            | local_name!("h5")
            | local_name!("h6")
    )
}

/// Elements for the look of letters, which end at their end tag even if a block begins within them (HTML standard, 13.2.6.4.7).
fn is_formatting(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("a")
            | local_name!("b")
            | local_name!("big")
            | local_name!("code")
            | local_name!("em")
            | local_name!("font")
            | local_name!("i")
            | local_name!("nobr")
            | local_name!("s")
            | local_name!("small")
            | local_name!("strike")
            | local_name!("strong")
            | local_name!("tt")
            | local_name!("u")
    )
}

/// Elements that are closed by their end tag whatever is open in them.
pub(super) fn encloses(name: &LocalName) -> bool {
    matches!(*name, local_name!("table") | local_name!("template"))
}

/// Elements that are closed by their end tag whatever is open in them, but for cells of a table.
pub(super) fn ends_blocks(name: &LocalName) -> bool {
    is_block(name)
        || is_formatting(name)
        || matches!(
            *name,
            local_name!("applet")
                | local_name!("button")
                | local_name!("marquee")
                | local_name!("object")
                | local_name!("select")
        )
}

/// Blocks that the end tag of an element around them does not end, unless that is a block, too (HTML standard, 13.2.4.2, "special").
pub(super) fn is_special(name: &LocalName) -> bool {
    let is_other = matches!(
        *name,
        local_name!("dialog") | local_name!("legend") | local_name!("optgroup") | local_name!("option")
    );
    is_of_table(name) || is_block(name) && !is_other
}

/// A part of a table that holds text.
pub(super) fn is_cell(name: &LocalName) -> bool {
    matches!(*name, local_name!("td") | local_name!("th") | local_name!("caption"))
}

/// Whether a paragraph without an end tag ends before it (HTML standard, 13.2.6.4.7). Before a table it does not, in the old pages that
/// mail has.
pub(super) fn closes_paragraph(name: &LocalName) -> bool {
    is_block(name)
        && !matches!(
            *name,
            local_name!("html")
                | local_name!("body")
                | local_name!("frameset")
                | local_name!("noframes")
                | local_name!("legend")
                | local_name!("optgroup")
                | local_name!("option")
        )
}

/// Elements before the body of a page, or around it.
pub(super) fn is_before_body(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("html")
            | local_name!("head")
            | local_name!("title")
            | local_name!("style")
            | local_name!("script")
            | local_name!("noscript")
            | local_name!("template")
            | local_name!("meta")
            | local_name!("link")
            | local_name!("base")
    )
}

/// Elements that may hold another element of an outer one's name.
pub(super) fn may_nest(name: &LocalName) -> bool {
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

/// Elements that are blocks by the style sheet of browsers (HTML standard, 15.3).
pub(super) fn is_block(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("address")
            | local_name!("article")
            | local_name!("aside")
            | local_name!("blockquote")
            | local_name!("body")
            | local_name!("center")
            | local_name!("dd")
            | local_name!("details")
            | local_name!("dialog")
            | local_name!("dir")
            | local_name!("div")
            | local_name!("dl")
            | local_name!("dt")
            | local_name!("fieldset")
            | local_name!("figcaption")
            | local_name!("figure")
            | local_name!("footer")
            | local_name!("form")
            | local_name!("frameset")
            | local_name!("h1")
            | local_name!("h2")
            | local_name!("h3")
            | local_name!("h4")
            | local_name!("h5")
            | local_name!("h6")
            | local_name!("header")
            | local_name!("hgroup")
            | local_name!("hr")
            | local_name!("html")
            | local_name!("legend")
            | local_name!("li")
            | local_name!("listing")
            | local_name!("main")
            | local_name!("menu")
            | local_name!("nav")
            | local_name!("noframes")
            | local_name!("ol")
            | local_name!("optgroup")
            | local_name!("option")
            | local_name!("p")
            | local_name!("plaintext")
            | local_name!("pre")
            | local_name!("section")
            | local_name!("summary")
            | local_name!("ul")
            | local_name!("xmp")
    )
}

/// Elements that are laid out like a large letter.
pub(super) fn is_replaced(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("audio")
            | local_name!("button")
            | local_name!("canvas")
            | local_name!("embed")
            | local_name!("iframe")
            | local_name!("img")
            | local_name!("input")
            | local_name!("meter")
            | local_name!("object")
            | local_name!("progress")
            | local_name!("select")
            | local_name!("svg")
            | local_name!("textarea")
            | local_name!("video")
    )
}

/// Whether a word ends at the edges of an element's box; `by_display` is that of its `display`, if it decides.
pub(super) fn ends_word(name: &LocalName, by_display: Option<bool>) -> bool {
    match *name {
        local_name!("br") => true,
        // Browsers have one of each, before all text.
        local_name!("html") | local_name!("body") | local_name!("head") | local_name!("frameset") => false,
        _ if is_replaced(name) => true,
        _ => by_display.unwrap_or_else(|| is_block(name) || is_of_table(name)),
    }
}

/// Whether an element has no box by the style sheet of browsers (HTML standard, 15.3.1).
pub(super) fn has_no_box(tag: &Tag) -> bool {
    let value = |name: LocalName| tag.attrs.iter().find(|a| a.name.local == name).map(|a| a.value.trim());
    match tag.name {
        local_name!("noembed") => true,
        local_name!("template") => is_inert(tag),
        local_name!("audio") => value(local_name!("controls")).is_none(),
        local_name!("input") => {
            value(local_name!("type")).is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"))
        }
        _ => false,
    }
}

/// Whether a template is nothing; with this attribute it is what is shown of the element around it (HTML standard, 4.12.3).
fn is_inert(tag: &Tag) -> bool {
    let is_mode = |value: &str| ["open", "closed"].iter().any(|mode| value.eq_ignore_ascii_case(mode));
    !tag.attrs.iter().any(|a| &*a.name.local == "shadowrootmode" && is_mode(&a.value))
}

/// Whether the style sheet of browsers does not display an element; `display` may.
pub(super) fn is_undisplayed(tag: &Tag) -> bool {
    let has = |name: &str| tag.attrs.iter().any(|a| &*a.name.local == name);
    const NAMES: [LocalName; 8] = [
        local_name!("noframes"),
        local_name!("datalist"),
        local_name!("rp"),
        local_name!("area"),
        local_name!("base"),
        local_name!("link"),
        local_name!("meta"),
        local_name!("param"),
    ];
    NAMES.contains(&tag.name) || tag.name == local_name!("dialog") && !has("open") || has("popover")
}

/// Whether an element has a background by attributes of old HTML (HTML standard, 15.3).
pub(super) fn has_background(name: &LocalName) -> bool {
    matches!(*name, local_name!("body") | local_name!("marquee"))
        || is_of_table(name) && *name != local_name!("caption")
}

/// Fields and buttons, whose letters have a look of their own in browsers.
pub(super) fn is_control(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("input") | local_name!("button") | local_name!("select") | local_name!("textarea")
    )
}

/// Elements of a drawing that may stand behind letters.
pub(super) fn is_shape(name: &LocalName) -> bool {
    matches!(
        &**name,
        "rect"
            | "circle"
            | "ellipse"
            | "path"
            | "polygon"
            | "polyline"
            | "line"
            | "image"
            | "use"
            | "foreignobject"
    )
}

/// Whether text directly in an element of a drawing is shown; `None` for elements that do not decide it.
pub(super) fn is_drawn_text(name: &LocalName) -> Option<bool> {
    match &**name {
        "svg" => Some(false),
        "text" | "foreignobject" => Some(true),
        _ => None,
    }
}

/// Whether a drawing ends before an element, which is one of pages only (HTML standard, 13.2.6.5).
#[rustfmt::skip]
pub(super) fn ends_drawing(tag: &Tag) -> bool {
    const OF_PAGES: [&str; 44] = ["b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1",
        "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s",
        "small", "span", "strike", "strong", "sub", "sup", "table", "tt", "u", "ul", "var"];
    let is_of_look = |name: &LocalName| {
        matches!(*name, local_name!("color") | local_name!("face") | local_name!("size"))
    };
    OF_PAGES.contains(&&*tag.name)
        || tag.name == local_name!("font") && tag.attrs.iter().any(|a| is_of_look(&a.name.local))
}

/// Whether browsers never show the content of an element: it is for programs, or a substitute for content that is shown. Mail programs run
/// no script, so they show that of a canvas.
pub(super) fn is_never_shown(tag: &Tag) -> bool {
    let has = |name: LocalName| tag.attrs.iter().any(|a| a.name.local == name);
    match tag.name {
        local_name!("template") => is_inert(tag),
        local_name!("video")
        | local_name!("audio")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("progress")
        | local_name!("meter")
        // In drawings and formulas: definitions and descriptions.
        | local_name!("defs")
        | local_name!("symbol")
        | local_name!("desc")
        | local_name!("metadata")
        | local_name!("mask")
        | local_name!("pattern")
        | local_name!("marker")
        | local_name!("annotation")
        | local_name!("annotation-xml")
        | local_name!("mphantom") => true,
        // An object shows its content if its data does not load, as others' data in mail, and a list of several rows its options.
        local_name!("object") => {
            let data = tag.attrs.iter().find(|a| a.name.local == local_name!("data"));
            let scheme = data.and_then(|a| a.value.trim().split_once(':')).map(|(scheme, _)| scheme);
            scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data") || scheme.eq_ignore_ascii_case("cid"))
        }
        local_name!("select") => {
            let rows = tag.attrs.iter().find(|a| a.name.local == local_name!("size"));
            let rows = rows.and_then(|a| a.value.trim().parse::<u32>().ok());
            !has(local_name!("multiple")) && rows.is_none_or(|rows| rows < 2)
        }
        _ => &*tag.name == "clippath",
    }
}

/// Parts of a table, which are as large as their content.
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

/// Whether an element is folded; `None` for all others.
pub(super) fn is_folded(tag: &Tag) -> Option<bool> {
    match tag.name {
        local_name!("details") => {
            (!tag.attrs.iter().any(|a| a.name.local == local_name!("open"))).then_some(true)
        }
        _ => None,
    }
}

/// Whether only the author breaks the lines of an element; `None` if it does not decide.
pub(super) fn is_unwrapped(tag: &Tag) -> Option<bool> {
    match tag.name {
        local_name!("pre") | local_name!("listing") | local_name!("xmp") | local_name!("nobr") => Some(true),
        local_name!("td") | local_name!("th") => {
            tag.attrs.iter().any(|a| a.name.local == local_name!("nowrap")).then_some(true)
        }
        local_name!("textarea") => Some(false),
        _ => None,
    }
}

/// Whether the letters of an element are forced to read from right to left; `None` if it does not decide.
pub(super) fn is_override(tag: &Tag) -> Option<bool> {
    let direction = tag.attrs.iter().find(|a| a.name.local == local_name!("dir"))?;
    (tag.name == local_name!("bdo")).then(|| direction.value.trim().eq_ignore_ascii_case("rtl"))
}

/// Whether an element quotes an answered message, by the marks of mail programs or an announcing line: many quotes have no mark.
pub(super) fn is_quote(tag: &Tag, is_announced: bool) -> bool {
    if tag.name == local_name!("blockquote") && is_announced {
        return true;
    }
    if tag.name != local_name!("blockquote") && tag.name != local_name!("div") {
        return false;
    }
    let value = |name: &LocalName| tag.attrs.iter().find(|a| a.name.local == *name).map(|a| &a.value);
    let cited = value(&local_name!("type")).is_some_and(|v| v.eq_ignore_ascii_case("cite"));
    let class = value(&local_name!("class"));
    cited
        || class.is_some_and(|v| {
            v.split_whitespace()
                .any(|c| c == "moz-cite-prefix" || c.ends_with("_quote") || c.ends_with("_quoted"))
        })
}
