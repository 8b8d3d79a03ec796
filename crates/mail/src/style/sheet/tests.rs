// SPDX-License-Identifier: GPL-3.0-or-later
//! Which text the style sheets of a page hide.

use super::*;
use crate::{Piece, Work, pieces};
use html5ever::tokenizer::TagKind;
use html5ever::{Attribute, QualName, ns};
use proptest::prelude::*;

const SOUP: &str = "{ } ( ) [ ] , : ; > + ~ * & . # .a #i div p [a=b] [a^='b'i] :not( :is( :nth-child(2n+1) :hover ::before @media @supports @layer \
    screen not and (display:grid) display:none color:#fff color:hsl( left:calc( -9999px 100vw 1e9 var(--a) --a:none content:'x' attr(a) \
    background:linear-gradient( #fff 50% clip-path:polygon( 0 font-size:.1em transform:matrix( z-index:-1 !important \\61 /* */ \u{e9} \u{202e}";

proptest! {
    /// Any sheet is read without a panic, and shows or hides the text, which stays.
    #[test]
    fn any_sheet_is_read(soup in prop::collection::vec(0..1000usize, 0..60)) {
        let all: Vec<&str> = SOUP.split_ascii_whitespace().collect();
        let css: String = soup.iter().flat_map(|&n| [all[n % all.len()], if n % 3 == 0 { " " } else { "" }]).collect();
        for page in [format!("<style>{css}</style>{X}"), format!("<p style=\"{css}\">x</p>")] {
            let mut found = 0;
            pieces(&page, &Work::default(), &mut |piece| {
                if let Piece::Text(text) | Piece::Hidden(text) = piece {
                    found += text.matches('x').count();
                }
            });
            prop_assert!(found >= 1, "{}", page);
        }
    }
}

/// Whether a page with one word `x` shows it.
fn shows(css: &str, body: &str) -> bool {
    shows_within(&Work::default(), css, body)
}

/// The same, as a page of a message for which this work is left.
fn shows_within(work: &Work, css: &str, body: &str) -> bool {
    let mut all = String::new();
    pieces(&format!("<style>{css}</style>{body}"), work, &mut |piece| {
        if let Piece::Text(text) = piece {
            all.push_str(text);
        }
    });
    all.contains('x')
}

const X: &str = "<div class='a b' id=i><p class=c>x</div>";

#[test]
fn rules_hide() {
    for css in [
        ".a{display:none}",
        "/* .z */ .z, .a { color: red; DISPLAY : NONE }",
        "#i{display:none}",
        "div{display:none}",
        "*{display:none}",
        "p.c{visibility:hidden}",
        ".b.a{display:none}",
        "div#i.b{display:none}",
        "<!-- .a{display:none} -->",
        "@media screen{.a{display:none}}",
        "@media only screen and (min-width:100px){@media all{.a{display:none}}}",
        "@import 'x'; @font-face{src:url(x)} .a{display:none}",
        "}.z{} .a{display:none}",
        ".z{a:b;{c:d}} .a{display:none}",
        ".\\61 {dis\\70lay:n\\6fne}",
        ".a{display:/**/none/**/}",
        ".a{font-size:0}",
        ".a{opacity:0;color:#fff}",
        ".a{max-height:0;overflow:hidden}",
        ".a{position:absolute;left:-9999px}",
        "body{background:#eee} .a{color:#eeeeef;background-color:#eee}",
        ".a{display:none",
        "body .a{display:none}",
        "html > body > .a{display:none}",
        "div > p{display:none}",
        ".b p.c{display:none}",
        "body>*>p:first-child{display:none}",
        "p:nth-child(odd){display:none}",
        "p:nth-of-type(1){display:none}",
        "p:last-child{display:none}",
        ".a:has(> p){display:none}",
        ".a:not(:has(> b)) .c:only-child{display:none}",
        "p:nth-last-of-type(1){display:none}",
        "p:nth-child(1 of .c){display:none}",
        ":is(:unheard-of, .a){display:none}",
        ".a[id=i]{display:none}",
        "div[class~=b][id^='i']{display:none}",
        ".a:not(.z){display:none}",
        ":is(.z,.a) :where(p){display:none}",
        "s + .a{display:none} u ~ div p{display:none} div:nth-child(1){display:none}",
        "@supports (display:grid){.a{display:none}}",
        "@supports not (mso-x:y){.a{display:none}}",
        "@layer x{.a{display:none}}",
        "@media (prefers-color-scheme:light){.a{display:none}}",
        "@media not print{.a{display:none}}",
        ".a{.c{display:none}}",
        ".a{&.b{display:none}}",
        ".z,.a{> p{display:none}}",
        ".a{@media screen{display:none}}",
        ":root{--x:none} .a{display:var(--x)}",
        ".a{display:var(--y,none)}",
        // Shown only under the mouse.
        ".a{display:none} .a:hover{display:block}",
        ".a{display:none} .z .a{display:block}",
        ".a{display:none} p > .a{display:block}",
        ".a{display:none} @layer x{.a{display:block}}",
    ] {
        assert!(!shows(css, X), "{css}");
    }
}

#[test]
fn the_highest_declaration_counts() {
    for (css, is_shown) in [
        (".a{display:none} .a{display:block}", true),
        (".a{display:block} .a{display:none}", false),
        (".a{display:none!important} .a{display:block}", false),
        (".a{display:none ! IMPORTANT} .a{display:block!important}", true),
        (".a{display:none} div{display:block}", false),
        ("#i{display:block} .a{display:none} div{display:none}", true),
        (".a.b{display:block} .a{display:none} .b{display:none}", true),
        (".a{display:none;display:block}", true),
        (".a{display:none!important;display:block}", false),
        (".b{display:none} .a{color:red}", false),
    ] {
        assert_eq!(shows(css, X), is_shown, "{css}");
    }
    // The element's own is higher, unless the rule is important.
    assert!(shows(".a{display:none}", "<div class=a style='display:block'>x</div>"));
    assert!(!shows(".a{display:none!important}", "<div class=a style='display:block'>x</div>"));
    assert!(shows(".a{display:none!important}", "<div class=a style='display:block!important'>x</div>"));
    assert!(shows("font{color:black}", "<font color=white>x</font>"));
}

/// A reader may see it.
#[test]
fn uncertain_rules_hide_nothing() {
    for css in [
        "",
        ".z{display:none}",
        ".A{display:none}",
        "p .a{display:none}",
        "p>.a, .a:hover, .a[x]{display:none}",
        ".a:not(.b){display:none}",
        "div:nth-child(2){display:none}",
        "div + .a{display:none}",
        ".c > .a{display:none}",
        "div[class=a]{display:none}",
        ".a:has(b){display:none}",
        "p:nth-last-child(2){display:none}",
        "p:only-of-type + p, div:empty, p:not(:only-child){display:none}",
        ".z, .a:unheard-of{display:none}",
        ".a{display:var(--o)} .z{--o:none}",
        "@supports not (display:grid){.a{display:none}}",
        ".a{.z{display:none}}",
        ".z{.c{display:none}}",
        ".a{display:none} .a:not(.z){display:block}",
        ":root{--x:none} .z{--x:block} .a{display:var(--x)}",
        "@starting-style{.a{display:none}}",
        ".a::before, .a:after{display:none}",
        "@media print{.a{display:none}}",
        "@media only screen and (max-width:600px){.a{display:none}}",
        "@media (prefers-color-scheme:dark){.a{display:none}}",
        "@keyframes a{.a{display:none}}",
        ".a{;\"display:none\"}",
        ".a{content:';display:none'}",
        ".a{font-family:x(;display:none)}",
        ".a{display:none} body .a{display:block}",
        ".a{display:none} @media (orientation:landscape){.a{display:block}}",
        ".a{display:none; &.b{display:block}}",
        ".z, {} , .a{display:none}",
        ".a..b, .a{display:none}",
        ".a{color:#fff} body .a{background:#003}",
        ".a{color:#fff} div{background:url(x)}",
        ".a{color:#fff;background-image:linear-gradient(#000,#111)}",
    ] {
        assert!(shows(css, X), "{css}");
    }
}

/// Elements around it, and before it.
#[test]
fn selectors_look_at_the_page() {
    for (css, body) in [
        ("table > tbody > tr > td{display:none}", "<table><tr><td>x</table>"),
        ("p + p{display:none}", "<p>a<p>x"),
        ("img + p{display:none}", "<img><p>x"),
        ("h1 ~ p{display:none}", "<h1>a</h1><hr><b></b><p>x"),
        ("p:nth-child(3n){display:none}", "<p>a<p>a<p>x<p>a"),
        ("p:nth-of-type(2){display:none}", "<b></b><p>a<b></b></p><p>x"),
        (".a .b .c{display:none}", "<div class=a><p class=b><i><b class=c>x"),
        (".a > .b .c{display:none}", "<i class=a><i class=b><i class=b><b class=c>x"),
    ] {
        assert!(!shows(css, body), "{css}");
    }
    for (css, body) in [
        ("p + p{display:none}", "<p>a</p><hr><p>x"),
        (".a > .c{display:none}", "<div class=a><p><b class=c>x"),
        ("p:nth-child(2n){display:none}", "<p>x"),
        ("td > p{display:none}", "<table><tr><td></table><p>x"),
        ("h1 ~ p{display:none}", &format!("<div><h1></h1></div>{}<p>x", "<b></b>".repeat(50))),
    ] {
        assert!(shows(css, body), "{css}");
    }
}

/// Each compound matches each of the outer elements.
#[test]
fn comparisons_are_bounded() {
    let deep = "<b>".repeat(500);
    let css = format!("{} .z i{{display:none}}", "b ".repeat(11));
    assert!(shows(&css, &format!("{deep}<i>x</i>")));
    let css = format!("{}{{display:none}}", "b:not(.q,.r) ~ ".repeat(11) + "i");
    assert!(shows(&css, &format!("{}<s>x", "<b></b><i></i>".repeat(20_000))));
    // Each level makes as many selectors as all above it.
    let nested = "b,i,u,s{".repeat(8) + "color:red" + &"}".repeat(8);
    assert!(shows(&format!(".a{{display:none}}{nested}"), X));
}

#[test]
fn only_sheets_are_read() {
    let rule = ".a{display:none}";
    for page in [
        format!("<div class=a>x</div><style>{rule}</style>"),
        format!("<STYLE type='text/css' media=screen\n>{rule}</STYLE ><div class=a>x</div>"),
        format!("<p title='>'><style a/>{rule}</style><div class=a>x</div>"),
    ] {
        assert!(!shows("", &page), "{page}");
    }
    for page in [
        format!("<!-- <style>{rule}</style> --><div class=a>x</div>"),
        format!("<!--[if mso]><style>{rule}</style><![endif]--><div class=a>x</div>"),
        format!("<img alt='<style>{rule}</style>'><div class=a>x</div>"),
        format!("<title><style>{rule}</style></title><div class=a>x</div>"),
        format!("<script><!-- <script> </script><style>{rule}</style></script><div class=a>x</div>"),
        format!("<style type=text/less>{rule}</style><div class=a>x</div>"),
        format!("<style media=print>{rule}</style><div class=a>x</div>"),
        format!("<div class=a>x</div><style>{rule}"),
    ] {
        assert!(shows("", &page), "{page}");
    }
}

/// With more than is read, none counts: the unread rest might show text that the read part hides.
#[test]
fn sheets_over_a_bound_hide_nothing() {
    let hidden = ".a{display:none}";
    assert!(!shows(&format!("{hidden}{}", ".z{top:1px}".repeat(100)), X));
    assert!(shows(&format!("{hidden}{}", "p{}".repeat(100_000)), X));
    let deep = |depth| format!("{}{hidden}", "@media all{".repeat(depth));
    assert!(!shows(&deep(8), X) && shows(&deep(9), X));
    let many = |n| (0..n).fold(String::new(), |all, i| format!("{all}.b{i}.a{{top:0}}"));
    assert!(!shows(&format!("{}.b.a{{display:none}}", many(5)), X));
    assert!(shows(&format!("{}.b.a{{display:none}}", many(40)), X));
    let selectors = |n: usize| vec!["b"; n].join(",");
    let nested = |n: usize| format!("a:not({}){{{}{{top:0}}}}", selectors(n), vec!["&"; n].join(","));
    assert!(!shows(&format!("{hidden}{}", nested(50)), X));
    assert!(shows(&format!("{hidden}{}", nested(250)), X));
    let text = "y".repeat(20_000);
    let conditionals = "@media all{top:0}".repeat(20);
    for outer in [
        format!("a[b={text}]"),
        format!(".{text}"),
        format!("#{text}"),
        format!("p:nth-child(2 of .{text})"),
        format!("a:is(b:not({}))", selectors(5000)),
        format!("a:has({})", selectors(5000)),
    ] {
        let copies = vec!["&"; 500].join(",");
        assert!(!shows(&format!("{hidden}{outer}{{top:0}}"), X), "{}", &outer[..12]);
        assert!(shows(&format!("{hidden}{outer}{{{copies}{{top:0}}}}"), X), "{}", &outer[..12]);
        let by_rules =
            format!("{hidden}{outer}{{{conditionals}}}{outer}::before{{{conditionals}content:'a'}}");
        let is_heavy = outer.contains(",b");
        assert_eq!(shows(&by_rules, X), is_heavy, "{}", &outer[..12]);
    }
}

/// Classes, and those of a selector, are as many as a page has.
#[test]
fn many_classes_are_read() {
    let classes: String = (0..1000).map(|i| format!("c{i} ")).collect();
    let body = format!("<div class='{classes}'>x</div>");
    for css in [
        ".c999{display:none}",
        ".c0.c1.c2.c3.c4.c5.c6.c7.c8.c500{display:none}",
        "div.c700:not(p){display:none}",
    ] {
        assert!(!shows(css, &body), "{css}");
    }
}

/// 32 keys with 32 compound rules each, and 40 declarations.
fn heavy_rules() -> (String, String) {
    let classes: Vec<String> = (0..32).map(|i| format!("c{i}")).collect();
    let inner: String = classes.iter().map(|class| format!("&:not(#{class}),")).collect();
    let properties = "display:block;float:left;visibility:visible;opacity:1;height:9px;max-height:9px;width:9px;max-width:9px;min-height:9px;\
        min-width:9px;padding-bottom:9px;line-height:9px;order:1;overflow:visible;contain:none;position:static;left:9px;right:9px;top:9px;\
        bottom:9px;text-indent:9px;margin-left:9px;padding-left:9px;margin-top:9px;clip:auto;clip-path:none;transform:none;translate:none;\
        scale:1;rotate:none;zoom:1;filter:none;mask:none;content-visibility:visible;z-index:1;direction:ltr";
    let css = format!(".{}{{{}{{{properties}}}}}", classes.join(",."), inner.trim_end_matches(','));
    (css, classes.join(" "))
}

/// Each rule that an element's classes find costs a comparison, and more with many declarations.
#[test]
fn declarations_cost_their_number() {
    let (css, classes) = heavy_rules();
    let sheet = Sheet::of(&format!("<style>{css}</style>"), Work::default().take(css.len()));
    let attribute =
        Attribute { name: QualName::new(None, ns!(), LocalName::from("class")), value: (&*classes).into() };
    let tag = Tag {
        kind: TagKind::StartTag,
        name: "p".into(),
        self_closing: false,
        attrs: vec![attribute],
        had_duplicate_attributes: false,
    };
    let node = sheet.document().unwrap().open(&tag);
    let mut cascade = Cascade::default();
    let mut apply = || sheet.apply(&tag, Some(&node), &mut cascade);
    let elements = (0..1000).take_while(|_| apply() && !sheet.budget.is_over()).count();
    // Each needs 32 * 32 comparisons with a selector, and with the id in it, and the work of 40 declarations.
    assert!((5..12).contains(&elements), "{elements}");
}

/// When the budget is spent, all rules apply perhaps, also those without conditions.
#[test]
fn rules_beyond_the_budget_hide_nothing() {
    let (css, classes) = heavy_rules();
    let css = format!("{css}.z{{display:none}}.y{{display:block!important}}");
    for (elements, is_shown) in [(3, false), (100, true)] {
        let many = format!("<p class='{classes}'>a</p>").repeat(elements);
        assert_eq!(shows(&css, &format!("{many}<p class=z>x</p>")), is_shown);
        assert_eq!(shows(&css, &format!("{many}<p style='display:none'>x</p>")), is_shown);
    }
}

/// Selectors whose copies weigh half of what a small message may have: a second page with them is read without style sheets, and others
/// behind it with theirs.
#[test]
fn pages_share_the_weight_of_selectors() {
    let work = Work::default();
    let heavy = format!(".z{{display:none}}{}color:red{}", "p,b,i,u,a,q,s,em{".repeat(4), "}".repeat(4));
    let page = |css: &str| shows_within(&work, css, "<p class=z>x</p>");
    let shown = [".z{display:none}", &heavy, &heavy, &heavy, ".z{display:none}"].map(page);
    assert_eq!(shown, [false, false, true, true, false]);
}
