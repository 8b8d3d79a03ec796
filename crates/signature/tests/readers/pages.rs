// SPDX-License-Identifier: GPL-3.0-or-later
//! Pages: a name, a style sheet, and a body in which `{a}`, `{b}` and so on are passages.

use super::rows::{Row, Writer};

/// Elements, and words that tags enclose.
const HTML: &[(&str, &str)] = &[
    ("word in tags", "<p>{a} mi<b>lli</b>on re<i>port</i> <font>gar</font>den {b}</p>"),
    ("word in unknown tags", "<p>{a} mi<x>lli</y>on re<xyz:q>port</xyz:q> {b}</p>"),
    ("word and comment", "<p>{a} mi<!-- x -->lli<!-- > -->on {b}</p>"),
    ("word and hidden letters", "<p>{a} mi<span style='display:none'>zzz</span>llion {b}</p>"),
    ("word and hidden element", "<p>{a} gar<i hidden>zzz</i>den {b}</p>"),
    ("word and image without size", "<p>{a} mil<img width=0 height=0 src=x>lion {b}</p>"),
    ("word and hidden input", "<p>{a} mil<input type=hidden value=zzz>lion {b}</p>"),
    ("word and wbr", "<p>{a} mil<wbr>lion gar&shy;den {b}</p>"),
    ("words and line breaks", "<p>{a} one<br>two<br/>three</br>four {b}</p>"),
    ("words and blocks", "<div>{a}<div>one</div>two<p>three<ul><li>four<li>five</ul>{b}</div>"),
    ("words and cells", "<table><tr><td>one<td>two<th>three<tr><td>four</table><p>{a}"),
    ("words and table rows", "{a}<table><caption>one</caption><tr><td>two</td></tr></table>{b}"),
    ("definition list", "<dl><dt>{a}<dd>{b}<dt>{c}<dd>{d}</dl>"),
    ("references", "<p>{a} caf&eacute; &#x6d;il&#108;ion &lt;tag&gt; a&ampb &copy2026 {b}</p>"),
    ("references without end", "<p>{a} &notit; gard&#101n &nbsp{b}</p>"),
    ("attribute with tag", "<p title='a>b' alt=\"<i>\">{a}</p><p title=x>y {b}</p>"),
    ("unclosed tags", "<div><p>{a}<b>{b}<i>{c}</div>{d}"),
    ("misnested", "<b><i>{a}</b>{b}</i><table><b>{c}<tr><td>{d}</table>"),
    ("stray ends", "</p></div></td>{a}</b></font>{b}"),
    ("nested links", "<a href=http://one.example>{a}<a href=http://two.example>{b}</a></a>"),
    ("head with text", "</head><title>zzz</title>{a}<head>{b}</head>"),
    ("second body", "<body bgcolor=white>{a}</body>{b}<body>{c}</body></html>{d}"),
    (
        "script and style",
        "<script>var x='zzz'</script>{a}<style>p{}</style>{b}<script>if (a<b) zzz</script>{c}",
    ),
    ("noscript", "{a}<noscript>{b}</noscript>{c}"),
    ("textarea", "{a}<textarea>{b} <b>bold</b></textarea>{c}"),
    ("pre and listing", "<pre>{a}\n\n{b}</pre><xmp>{c} <b>bold</b></xmp><listing>{d}</listing>"),
    ("inputs", "{a}<input value='{b}'><input type=submit value='{c}'><input type=checkbox value=zzz>"),
    (
        "button and label",
        "<button>{a}</button><label>{b}</label><fieldset><legend>{c}</legend>{d}</fieldset>",
    ),
    ("select", "{a}<select><option>zzz<option>yyy</select>{b}"),
    ("template", "{a}<template><p>{b}</p></template>{c}"),
    ("dialog", "{a}<dialog>{b}</dialog><dialog open style='position:static'>{c}</dialog>{d}"),
    ("details", "{a}<details><summary>{b}</summary>{c}</details><details open>{d}</details>"),
    ("iframe", "{a}<iframe>{b}</iframe><iframe srcdoc='zzz'></iframe>{c}"),
    ("object", "{a}<object>{b}</object>{c}"),
    ("video and audio", "{a}<video>{b}</video><audio>{c}</audio><canvas>{d}</canvas>"),
    ("frames", "{a}<noframes>{b}</noframes><noembed>{c}</noembed>"),
    ("ruby", "<p>{a} <ruby>house<rp>(</rp><rt>dom</rt><rp>)</rp></ruby> {b}"),
    ("svg text", "{a}<svg width=400 height=30><text x=5 y=20>garden of the north</text></svg>{b}"),
    ("svg title", "{a}<svg width=40 height=30><title>{b}</title><desc>{c}</desc></svg>{d}"),
    ("math", "{a}<math><mi>garden</mi><annotation>{b}</annotation></math>{c}"),
    ("marquee", "<marquee scrollamount=0 behavior=slide>{a}</marquee><center>{b}</center><big>{c}</big>"),
    ("deleted", "<del>{a}</del><ins>{b}</ins><s>{c}</s><q>{d}</q>"),
    ("conditional comments", "{a}<!--[if mso]>{b}<![endif]-->{c}<!--[if !mso]><!-->{d}<!--<![endif]-->"),
    ("declarations", "{a}<!DOCTYPE x><!x y><?xml z?></ zzz>{b}<![CDATA[zzz]]>{c}"),
    ("hidden attribute", "<p hidden>{a}</p><p hidden=until-found>{b}</p><p>{c}"),
    ("aria hidden", "<p aria-hidden=true>{a}</p><p role=none>{b}"),
    ("override", "<p><bdo dir=rtl>{a}</bdo><bdi>{b}</bdi></p>"),
    ("alt of a remote picture", "{a}<img src=http://pictures.example/x.png alt='{b}' width=600 height=200>"),
    (
        "pictures alone",
        "<img src=http://pictures.example/x.png alt='{a}'><img src=http://pictures.example/y.png alt='{b}'>",
    ),
    (
        "picture in the text",
        "{a}<img alt='{b}' src=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\">{c}",
    ),
    ("null letters", "<p>{a} gar\u{0}den {b}"),
    ("letters of no width", "<p>{a} gar\u{200b}den mil\u{2060}lion re\u{feff}port {b}"),
    ("many blanks", "<p>{a}\u{a0}\u{a0}\u{2003}garden\u{3000}report\u{2028}million {b}"),
    ("swallowed title", "<title>zzz<p>{a}"),
    ("empty elements", "<p></p><div></div><span></span>{a}<b/>{b}<div/>{c}"),
];

/// Declarations that hide `.x`, or seem to.
const HIDES: &[&str] = &[
    "display:none",
    "display:none!important",
    "dis\\70lay:none",
    "visibility:hidden",
    "opacity:0",
    "opacity:.01",
    "opacity:.5",
    "font-size:0",
    "font-size:1px",
    "font:0/0 serif",
    "font-size:.01em",
    "color:#fff",
    "color:white;background:black",
    "color:rgba(0,0,0,0)",
    "color:transparent",
    "color:hsl(0 0% 100%)",
    "color:color-mix(in srgb,white,white)",
    "color:white;text-shadow:0 0 2px black",
    "background:#234;color:#234",
    "background:linear-gradient(#fff,#fff);color:#fff",
    "-webkit-text-fill-color:transparent",
    "height:0;overflow:hidden",
    "max-height:0;overflow:hidden",
    "max-height:0",
    "height:1px;width:1px;overflow:hidden",
    "width:0;overflow:hidden;white-space:nowrap",
    "line-height:0;overflow:hidden",
    "block-size:0;overflow:clip",
    "overflow:hidden;height:.4em;line-height:3em",
    "position:absolute;left:-9999px",
    "position:absolute;left:9999px",
    "position:absolute;top:-500px",
    "position:absolute;left:-100vw;width:50vw",
    "position:absolute;left:calc(-1 * 2000px)",
    "position:relative;left:-9999px",
    "position:absolute;clip:rect(0,0,0,0)",
    "position:fixed;inset:0 auto auto -9999px",
    "text-indent:-9999px",
    "text-indent:100%;overflow:hidden;white-space:nowrap",
    "margin-left:-9999px",
    "margin-top:-500px",
    "padding-left:9999px",
    "letter-spacing:-1em",
    "clip-path:inset(50%)",
    "clip-path:circle(0)",
    "clip-path:polygon(0 0,0 0,0 0)",
    "clip-path:polygon(0 0,100% 0,100% 100%,0 100%)",
    "transform:scale(0)",
    "transform:translateX(-9999px)",
    "transform:rotateY(90deg)",
    "transform:rotate(180deg)",
    "scale:0",
    "translate:-9999px",
    "zoom:.01",
    "filter:opacity(0)",
    "filter:blur(40px)",
    "mask:linear-gradient(transparent,transparent)",
    "content-visibility:hidden",
    "display:table-column",
    "display:contents;opacity:0",
    "display:contents;height:0;overflow:hidden",
    "width:min(0px,10px);overflow:hidden;white-space:nowrap",
    "height:clamp(0px,0px,5px);overflow:hidden",
    "float:left;width:0;height:0;overflow:hidden",
    "position:relative;z-index:-1",
    "all:unset;display:none",
    "display:var(--none,none)",
    "display:none;display:nonsense",
    "display:none;display:block",
    "mso-hide:all",
    "writing-mode:vertical-rl",
    "font-variant:small-caps",
    "text-transform:uppercase",
    "word-spacing:-1em",
];

/// Style sheets, each with its body.
const SHEETS: &[(&str, &str, &str)] = &[
    ("descendant", ".o .x{display:none}", "<div class=o><p><b class=x>{a}</b></div><b class=x>{b}</b>"),
    ("child", ".o>.x{display:none}", "<div class=o><p class=x>{a}</p><div><p class=x>{b}</p></div></div>"),
    ("next sibling", "h4+p{display:none}", "<h4>{a}</h4><p>{b}<p>{c}"),
    ("later sibling", "h4~p{display:none}", "<p>{a}<h4>{b}</h4><p>{c}<div>{d}</div><p>{e}"),
    ("first-child", "li:first-child{display:none}", "<ul><li>{a}<li>{b}<li>{c}</ul>"),
    ("last-child", "li:last-child{display:none}", "<ul><li>{a}<li>{b}<li>{c}</ul>"),
    (
        "last-child of paragraphs",
        ".o p:last-child{display:none}",
        "<div class=o><p>{a}</p><p>{b}</p></div><p>{c}</p>",
    ),
    ("last-child that is not", "p:last-child{display:none}", "<div><p>{a}<p>{b}<span>{c}</span></div>"),
    ("only-child", "p:only-child{display:none}", "<div><p>{a}</p></div><div><p>{b}</p><p>{c}</p></div>"),
    (
        "only-of-type",
        "p:only-of-type{display:none}",
        "<div><p>{a}</p><i>x</i></div><div><p>{b}</p><p>{c}</p></div>",
    ),
    (
        "first-of-type",
        ".o p:first-of-type{display:none}",
        "<div class=o><b>{a}</b><p>{b}</p><p>{c}</p></div>",
    ),
    ("last-of-type", ".o p:last-of-type{display:none}", "<div class=o><p>{a}</p><p>{b}</p><i>{c}</i></div>"),
    ("nth-child", "li:nth-child(2n+1){display:none}", "<ul><li>{a}<li>{b}<li>{c}<li>{d}</ul>"),
    ("nth-child of", "li:nth-child(2 of .x){display:none}", "<ul><li class=x>{a}<li>{b}<li class=x>{c}</ul>"),
    ("nth-last-child", "li:nth-last-child(2){display:none}", "<ul><li>{a}<li>{b}<li>{c}</ul>"),
    ("nth-last-child range", "li:nth-last-child(-n+2){display:none}", "<ul><li>{a}<li>{b}<li>{c}</ul>"),
    (
        "nth-last-of-type",
        ".o p:nth-last-of-type(1){display:none}",
        "<div class=o><p>{a}</p><p>{b}</p><b>{c}</b></div>",
    ),
    ("has", ".o:has(.m){display:none}", "<div class=o>{a}<i class=m></i></div><div class=o>{b}</div>"),
    ("has child", "div:has(> i){display:none}", "<div>{a}<i></i></div><div>{b}<b><i></i></b></div>"),
    ("has next", "p:has(+ .m){display:none}", "<div><p>{a}</p><p class=m>{b}</p><p>{c}</p></div>"),
    ("not has", "p:not(:has(b)){display:none}", "<p>{a}</p><p><b>{b}</b></p>"),
    ("empty", "p:empty + p{display:none}", "<p></p><p>{a}</p><p>x</p><p>{b}</p>"),
    (
        "is",
        ":is(.x,.y) b{display:none}",
        "<div class=x><b>{a}</b></div><div class=y><b>{b}</b></div><b>{c}</b>",
    ),
    ("where", ":where(.x) b{display:none} b{display:inline}", "<div class=x><b>{a}</b></div><b>{b}</b>"),
    ("not", "p:not(.k){display:none}", "<p>{a}</p><p class=k>{b}</p>"),
    ("not of several", "p:not(.k, #l){display:none}", "<p>{a}</p><p class=k>{b}</p><p id=l>{c}</p>"),
    ("attribute", "p[title]{display:none}", "<p title=x>{a}</p><p>{b}</p>"),
    ("attribute value", "[data-x=\"1\"]{display:none}", "<p data-x=1>{a}</p><p data-x=2>{b}</p>"),
    (
        "attribute parts",
        "[class^=mx],[class$=zz],[class*=kk]{display:none}",
        "<p class=mxa>{a}</p><p class=azz>{b}</p><p class=akka>{c}</p><p class=q>{d}</p>",
    ),
    ("important", ".x{display:none!important}", "<p class=x style='display:block'>{a}</p><p>{b}</p>"),
    ("specificity", "#i.x{display:block} .x{display:none}", "<p class=x id=i>{a}</p><p class=x>{b}</p>"),
    (
        "later wins",
        ".x{display:none} .x{display:block} .y{display:block} .y{display:none}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "media screen",
        "@media screen{.x{display:none}} @media print{.y{display:none}}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "media width",
        "@media (min-width:200px){.x{display:none}} @media (max-width:200px){.y{display:none}}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "supports",
        "@supports (display:grid){.x{display:none}} @supports not (display:grid){.y{display:none}}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "layers",
        "@layer a{.x{display:none}} .x{display:block} @layer b{.y{display:none}}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "layer order",
        "@layer a,b; @layer b{.x{display:none}} @layer a{.x{display:block}}",
        "<p class=x>{a}</p><p>{b}</p>",
    ),
    (
        "nesting",
        ".o{& .x{display:none} .y{display:none}}",
        "<div class=o><b class=x>{a}</b><b class=y>{b}</b></div><b class=x>{c}</b>",
    ),
    (
        "container",
        "@container (min-width:1px){.x{display:none}}",
        "<div style='container-type:inline-size'><p class=x>{a}</p></div><p>{b}</p>",
    ),
    ("scope", "@scope (.o){.x{display:none}}", "<div class=o><p class=x>{a}</p></div><p class=x>{b}</p>"),
    (
        "variables",
        ":root{--d:none} .x{display:var(--d)} .y{display:var(--e,block)}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    (
        "variable of an element",
        ".o{--d:none} .x{display:var(--d)}",
        "<div class=o><p class=x>{a}</p></div><p class=x>{b}</p>",
    ),
    ("escaped class", ".\\78 {display:none}", "<p class=x>{a}</p><p>{b}</p>"),
    ("class in capitals", ".X{display:none} P.y{display:none}", "<p class=x>{a}</p><p class=y>{b}</p>"),
    ("broken rules", "}.z{} .x{display:none} .y{display", "<p class=x>{a}</p><p class=y>{b}</p>"),
    ("unclosed comment", ".x{display:none} /* .y{display:none}", "<p class=x>{a}</p><p class=y>{b}</p>"),
    ("comment marks", "<!-- .x{display:none} -->", "<p class=x>{a}</p><p>{b}</p>"),
    (
        "invalid selector in a list",
        ".x, .y:nonsense(1){display:none}",
        "<p class=x>{a}</p><p class=y>{b}</p>",
    ),
    ("forgiving list", ":is(.x, :nonsense){display:none}", "<p class=x>{a}</p><p>{b}</p>"),
    (
        "before and after",
        ".x::before{content:'garden of'} .x::after{content:'the north'}",
        "<p><b class=x> {a} </b></p>",
    ),
    ("before with attribute", ".x::before{content:attr(title)}", "<p class=x title='{a}'> {b}</p>"),
    (
        "white on a dark cell",
        ".o{background:#123} .o a{color:#fff}",
        "<table><tr><td class=o><a href=http://x.example>{a}</a></table>",
    ),
    ("white inherits", ".o{color:#fff} .k{color:#000}", "<div class=o>{a}<p class=k>{b}</p></div>"),
    ("links in white", "a{color:#fff}", "<a href=http://x.example>{a}</a><p>{b}</p>"),
    (
        "hidden but visible inside",
        ".o{visibility:hidden} .k{visibility:visible}",
        "<div class=o>{a}<p class=k>{b}</p></div>",
    ),
    (
        "cover by a box",
        ".o{position:relative} .k{position:absolute;inset:0;background:#fff}",
        "<div class=o>{a}<div class=k></div></div>{b}",
    ),
    (
        "cover by margin",
        ".k{margin-top:-60px;height:60px;background:#fff;position:relative}",
        "<div class=o style='height:60px'>{a}</div><div class=k></div>{b}",
    ),
    (
        "cover that is clear",
        ".o{position:relative} .k{position:absolute;inset:0}",
        "<div class=o>{a}<div class=k></div></div>{b}",
    ),
    (
        "cover with its text",
        ".o{position:relative} .k{position:absolute;top:0;left:0;width:100%;height:100%;background:#fff}",
        "<div class=o>{a}<div class=k>{b}</div></div>{c}",
    ),
    (
        "behind",
        ".o{background:#fff} .x{position:relative;z-index:-1}",
        "<div class=o><p class=x>{a}</p></div>{b}",
    ),
    (
        "clipped parent",
        ".o{height:0;overflow:hidden} .x{height:50px}",
        "<div class=o><p class=x>{a}</p></div>{b}",
    ),
    (
        "scroll far away",
        ".o{height:40px;overflow:hidden} .x{margin-top:400px}",
        "<div class=o><p class=x>{a}</p></div>{b}",
    ),
    (
        "inside of nothing",
        ".o{width:0;height:0;overflow:hidden;position:absolute}",
        "<div class=o><table><tr><td>{a}</table></div>{b}",
    ),
    ("tiny inside", ".o{font-size:0} .k{font-size:14px}", "<div class=o>{a}<span class=k>{b}</span></div>"),
    (
        "table parts",
        ".x{display:none} .y{visibility:collapse}",
        "<table><tr class=x><td>{a}<tr class=y><td>{b}<tr><td>{c}</table>",
    ),
    (
        "attribute of media",
        "",
        "<style media=print>.x{display:none}</style><style media='screen, print'>.y{display:none}</style><p class=x>{a}</p><p class=y>{b}</p>",
    ),
    ("sheet behind", "", "<p class=x>{a}</p><p>{b}</p><style>.x{display:none}</style>"),
    ("sheet in a comment", "", "<!-- <style>.x{display:none}</style> --><p class=x>{a}</p>"),
    (
        "animation",
        "@keyframes k{to{opacity:1}} .x{opacity:0;animation:k 1s forwards}",
        "<p class=x>{a}</p><p>{b}</p>",
    ),
    ("hover", ".x{display:none} .x:hover{display:block}", "<p class=x>{a}</p><p>{b}</p>"),
    (
        "checked",
        "input:checked~.x{display:none}",
        "<input type=checkbox checked><p class=x>{a}</p><p>{b}</p>",
    ),
    (
        "target and links",
        "a:link{display:none} a:visited{display:inline}",
        "<a href=http://x.example>{a}</a><a>{b}</a>",
    ),
    ("lang", "p:lang(en){display:none}", "<p lang=en>{a}</p><p>{b}</p>"),
    ("grid areas", ".o{display:grid}", "<div class=o><p>{a}</p><p>{b}</p></div>"),
];

/// Pages whose visual order differs from their source order.
const PLACES: &[(&str, &str, &str)] = &[
    (
        "row-reverse",
        ".o{display:flex;flex-direction:row-reverse;justify-content:flex-end}",
        "<div class=o><span>one&nbsp;</span><span>two&nbsp;</span><span>three&nbsp;</span></div><p>{a}</p>",
    ),
    (
        "row-reverse by flex-flow",
        ".o{display:flex;flex-flow:row-reverse wrap;justify-content:flex-end}",
        "<div class=o><span>one&nbsp;</span><span>two&nbsp;</span><span>three&nbsp;</span></div><p>{a}</p>",
    ),
    (
        "row-reverse of letters",
        ".o{display:inline-flex;flex-direction:row-reverse}",
        "<p>{a} <span class=o><span>den</span><span>gar</span></span> {b}</p>",
    ),
    (
        "column-reverse",
        ".o{display:flex;flex-direction:column-reverse}",
        "<div class=o><div>{a}</div><div>{b}</div><div>{c}</div></div>",
    ),
    (
        "order",
        ".o{display:flex;flex-direction:column} .x{order:2} .y{order:1}",
        "<div class=o><div class=x>{a}</div><div class=y>{b}</div><div>{c}</div></div>",
    ),
    (
        "order below zero",
        ".o{display:flex;flex-direction:column} .y{order:-1}",
        "<div class=o><div>{a}</div><div>{b}</div><div class=y>{c}</div></div>",
    ),
    (
        "order in a grid",
        ".o{display:grid} .x{order:1}",
        "<div class=o><div class=x>{a}</div><div>{b}</div></div>",
    ),
    (
        "override of words",
        "",
        "<p>{a}</p><p style='direction:rtl;unicode-bidi:bidi-override'>nedrag troper</p>",
    ),
    ("override by letters", "", "<p>{a} \u{202e}nedrag\u{202c} {b}</p>"),
    (
        "float of letters",
        ".o b{float:right;font-weight:normal} .o{width:60px;font:16px monospace}",
        "<p>{a}</p><div class=o><b>n</b><b>e</b><b>d</b><b>r</b><b>a</b><b>g</b></div><p>{b}</p>",
    ),
];

/// Adds a page.
pub(super) fn add(rows: &mut Vec<Row>, name: &str, css: &str, body: &str) {
    let mut writer = Writer::new(name);
    let (head, tail) = (writer.words(24), writer.words(12));
    let style = if css.is_empty() { String::new() } else { format!("<style>{css}</style>") };
    let body = writer.fill(body);
    let page = format!("<html><head>{style}</head><body><p>{head}</p>\n{body}\n<p>{tail}</p></body></html>");
    let mut row = Row::of_page(name, &page);
    row.by_place = name.starts_with("place/") || name.contains("/override");
    rows.push(row);
}

/// Adds a page in which a style sheet gives the declarations, and one in which an attribute does.
pub(super) fn add_declarations(rows: &mut Vec<Row>, declarations: &str) {
    add(rows, &format!("css/{declarations}"), &format!(".x{{{declarations}}}"), "<div class=x>{a}</div>");
    let within = format!("<p>{{a}} <span style='{declarations}'>{{b}}</span> {{c}}</p>");
    add(rows, &format!("inline/{declarations}"), "", &within);
}

/// All of them.
pub(super) fn rows(rows: &mut Vec<Row>) {
    for (name, body) in HTML {
        add(rows, &format!("html/{name}"), "", body);
    }
    for declarations in HIDES {
        add_declarations(rows, declarations);
    }
    for (name, css, body) in SHEETS {
        add(rows, &format!("sheet/{name}"), css, body);
    }
    for (name, css, body) in PLACES {
        add(rows, &format!("place/{name}"), css, body);
    }
}
