// SPDX-License-Identifier: GPL-3.0-or-later
//! Pages whose text is seen, or not, by paint, boxes and rules that a first look takes for the opposite.

use super::pages::add;
use super::rows::Row;

/// A name, a style sheet, and a body as in [`super::pages`].
#[rustfmt::skip]
const PAGES: &[(&str, &str, &str)] = &[
    ("little of a colour", ".x{color:rgba(0,0,0,.04)}", "<p class=x>{a}</p><p style='color:rgba(0,0,0,.5)'>{b}</p>"),
    ("mark on white", "", "<div style='color:#fff'><mark>{a}</mark></div>"),
    ("yellow on a mark", "", "<mark style='color:#ff0'>{a}</mark><p>{b}"),
    ("open dialog", "dialog{position:static}", "<div style='color:#fff'><dialog open>{a}</dialog></div>"),
    ("colour of links", "", "<body link=white><a href=http://x.example>{a}</a><p>{b}</body>"),
    ("filter without effect", ".x{color:#fff;filter:contrast(1)}", "<p class=x>{a}</p>{b}"),
    ("clip to letters with a colour", ".x{color:#fff;background-clip:text}", "<p class=x>{a}</p>{b}"),
    ("inner shadow in white", ".x{color:#fff;box-shadow:inset 0 0 9px 9px #fff}", "<p class=x>{a}</p>{b}"),
    ("gradient that ends clear", ".x{color:#fff;background:linear-gradient(#fff,transparent)}", "<p class=x>{a}</p>{b}"),
    ("stroke of nearly no width", ".x{color:#fff;-webkit-text-stroke:.01px #fefefe}", "<p class=x>{a}</p>{b}"),
    ("body without a tag", "body{color:#fff} b{color:#000;font-weight:normal}", "{a}<b>{b}</b>"),
    ("text behind the end", "body{color:#fff}", "<body>{a}</body></html>{b}<p style='color:#000'>{c}"),
    ("body of no height", "body{height:0;overflow:hidden}", "{a}"),
    ("body of no height by an attribute", "", "<body style='height:0;overflow:hidden'>{a}</body>"),
    ("greatest height as a share", ".x{max-height:0%;overflow:hidden}", "<div class=x>{a}</div>{b}"),
    ("moved up by its height", ".x{transform:translateY(-100%)}", "<div style='height:90px'></div><div class=x>{a}</div>{b}"),
    ("place as a share", ".x{position:relative;top:-100%}", "<!DOCTYPE html><div><div class=x>{a}</div></div>{b}"),
    ("padding around a margin", ".o{padding-left:1000px} .x{margin-left:-1000px}", "<div class=o><div class=x>{a}</div></div>{b}"),
    ("margin in a margin", ".o{margin-top:-1000px} .x{margin-top:1000px}", "<div class=o><div class=x>{a}</div></div>{b}"),
    ("padding against a margin", ".x{margin-top:-1000px;padding-top:1000px}", "<div class=x>{a}</div>{b}"),
    ("lines in lines of no height", ".o{line-height:0;overflow:hidden} .x{line-height:20px}", "<div class=o><p class=x>{a}</p></div>{b}"),
    ("lines of no height", ".o{line-height:0;overflow:hidden}", "<div class=o><p style='margin:0'>{a}</p></div>{b}"),
    ("marquee of no size", "", "{a}<marquee width=0 height=0>{b}</marquee>{c}"),
    ("marquee of no height", "", "{a}<marquee style='height:1px'>{b}</marquee>{c}"),
    ("animation of another property", "@keyframes k{to{left:0}} .x{opacity:0;animation:k 9s}", "<p class=x>{a}</p>{b}"),
    ("animation without blocks", "@keyframes k{} .x{max-height:0;overflow:hidden;animation:k 9s}", "<p class=x>{a}</p>{b}"),
    ("unknown medium", "@media zzz{.x{display:block}} .x{display:none}", "<p class=x>{a}</p>{b}"),
    ("unknown feature", "@media (zzz){.x{display:block!important}} .x{display:none}", "<p class=x>{a}</p>{b}"),
    ("density of no screen", "@media (min-resolution:99dppx){.x{display:block!important}} .x{display:none}", "<p class=x>{a}</p>{b}"),
    ("window of no screen", "@media (min-height:99999px){.x{display:block!important}} .x{display:none}", "<p class=x>{a}</p>{b}"),
];

/// All of them.
pub(super) fn rows(rows: &mut Vec<Row>) {
    for (name, css, body) in PAGES {
        add(rows, &format!("paint/{name}"), css, body);
    }
}
