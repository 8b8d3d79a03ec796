// SPDX-License-Identifier: GPL-3.0-or-later
//! The pieces of pages.

use super::*;
use proptest::prelude::*;

fn seen(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &Work::default(), &mut |piece| match piece {
        Piece::Text(text) => all.push_str(text),
        Piece::Quoted(text) => all.push_str(&format!(">{text}<")),
        Piece::Hidden("\n") => (),
        Piece::Hidden(text) => all.push_str(&format!("({text})")),
        Piece::Target(target) => all.push_str(&format!("[{target}]")),
        Piece::Picture { source, size } => all.push_str(&format!("{{{source} {size:?}}}")),
        Piece::Break | Piece::Start { .. } | Piece::End(_) => (),
        Piece::Boxes { .. } | Piece::Box { .. } | Piece::BoxesEnd => (),
        Piece::Swallowed(text) => all.push_str(&format!("{{{text}}}")),
        Piece::SwallowedTarget(target) => all.push_str(&format!("{{[{target}]}}")),
    });
    all
}

#[test]
fn visible_text() {
    assert_eq!(seen("<p>one<!-- no --> <b>t</b>wo &amp; &eacute;</p>"), "one two & é");
    assert_eq!(seen("<title>no</title><style>p{}</style><script>if (a<b) {}</script>yes"), "yes");
    assert_eq!(seen("<head>no end <p title=\"a>b\">yes"), "no end yes");
    assert_eq!(seen("<textarea>a<b</textarea>c"), "a<bc");
    assert_eq!(seen("<script>never closed"), "");
}

/// In these, no element holds raw text (HTML standard, 13.2.6.5).
#[test]
fn drawings_and_formulas_hold_elements_and_text() {
    for root in ["svg", "math"] {
        for raw in
            ["style", "title", "script", "textarea", "iframe", "xmp", "noembed", "noframes", "plaintext"]
        {
            assert_eq!(seen(&format!("<{root}><{raw}/></{root}>one")), "one", "{root} {raw}");
        }
        assert_eq!(seen(&format!("<{root}><style><p>one</p>")), "one", "{root}");
    }
    assert_eq!(seen("<svg><style>no</style><text>one</text></svg>"), "one");
    assert_eq!(seen("<svg><text><![CDATA[one <b>]]></text></svg>"), "one <b>");
    assert_eq!(seen("<math><mtext><![CDATA[one]]></mtext></math>"), "one");
    assert_eq!(seen("<p><![CDATA[no]]>one"), "one");
    assert_eq!(
        seen("<svg><foreignObject width=9 height=9><style>no</style>one</foreignObject></svg>"),
        "one"
    );
}

/// Pieces of HTML, ordinary and not.
const SOUP: &str = "< </ <! <!-- --> -- - ! > <p> </p> <P <a\u{a0}href=\" <a\u{a0}href=' \" ' = / \t \n \r \r\n & &amp; &amp \
    &ampx &not &notit; &notin; &copy= &#65; &#x41 &# &#0; &#150; &#x80; &#xD800; &#1114112; &#99999999999; &x; \0 a b \
    wort\u{a0} é \u{feff} <style> </style> </STYLE\u{a0} <title> </title> <script> </script> <textarea> </textarea> \
    <br/> <?xml?> <!DOCTYPE\u{a0}html> <![endif]--> <!--[if\u{a0}mso]> <b> </b> <span\u{a0}style='display:none'> \
    </span> <td\u{a0}class=x\u{a0}y=z\u{a0}y=w> <img\u{a0}src=http://a.example/?a=b&c=d> <> </> </\u{a0}x> <a\"b> \
    <a=b> <a\u{a0}b=> <a\u{a0}b\u{a0}=\u{a0}c> <a\u{a0}b/c> <plaintext> <a\u{a0}b='c'd=\"e&lt\"> LONG \
    <svg> </svg> <math> </math> <mtext> <desc> <style/> <title/> <![CDATA[ ]]>";

proptest! {
    /// The fast lexer and the tokenizer give the same pieces.
    #[test]
    fn the_lexer_agrees_with_the_tokenizer(soup in prop::collection::vec(0..1000usize, 0..40)) {
        let pieces: Vec<String> = SOUP.split(' ').filter(|s| !s.is_empty()).map(|s| s.replace('\u{a0}', " ")).collect();
        let long = "a=b ".repeat(1030);
        let html: String = soup.iter().map(|&n| &*pieces[n % pieces.len()]).map(|s| if s == "LONG" { &long } else { s }).collect();
        let sheet = Sheet::default();
        let read = |whole: bool| {
            let (mut seen, elements) = (String::new(), RefCell::new(Elements::new(&sheet)));
            let mut emit = |piece: Piece<'_>| seen.push_str(&format!("{piece:?}"));
            let stopped = if whole {
                read_on(&html, 0, Sink::new(&[], &elements, &mut emit))
            } else {
                tokenize(&html, &[], &elements, &mut emit)
            };
            seen + &format!("{stopped:?}")
        };
        prop_assert_eq!(read(true), read(false), "{}", html);
    }
}

#[test]
fn unclosed_elements_are_read() {
    let page = "<p>An offer <a href=u:x>for you</a></p><div style='display:none'>no</div>";
    let text = "{An offer }{[u:x]}{for you}";
    assert_eq!(seen(&format!("<title>{page}")), text);
    assert_eq!(seen(&format!("<title>yes</title><STYLE type=x>p{{}}{page}")), text);
    assert_eq!(seen(&format!("<script>a();{page}")), text);
    // Each by another one.
    assert_eq!(seen(&format!("<title><style>a<script>{page}")), text);
    assert_eq!(seen(&format!("<title>{}{page}", "<style></style>".repeat(3))), text);
    // Closed elements are not read, and an end without text is no loss.
    assert_eq!(seen(&format!("<title>{page}</title>")), "");
    assert_eq!(
        seen("<p>A letter of some words, and more of them.</p><style>p{}"),
        "A letter of some words, and more of them."
    );
}

/// An unbounded tag is not tokenised to its end, which would take minutes; a long comment hides nothing else.
#[test]
fn endless_tags_and_long_comments() {
    let attributes = "a1 b2=c ".repeat(300_000);
    let all = seen(&format!("one <p {attributes}>two"));
    assert!(all.starts_with("one ") && all.ends_with(">two"));
    let styles = "<w:LsdException Locked=\"false\" Priority=\"9\" Name=\"heading 1\"/>\n".repeat(2000);
    assert_eq!(
        seen(&format!("one <!--[if gte mso 9]>{styles}<![endif]-->two <b>three</b>")),
        "one two three"
    );
    for padding in 0..12 {
        let comment = " ".repeat(8192 - 12 + padding);
        assert_eq!(seen(&format!("one <!--{comment}-->two")), "one two", "{padding}");
    }
    assert_eq!(seen(&format!("one <!--{styles}")), "one ");
}

#[test]
fn text_in_attributes_is_read() {
    for (html, expected) in [
        ("<input value='Buy now'><input type=hidden value=no><input type=Submit value=Go>", "Buy nowGo"),
        ("<input placeholder='your name'><input type=password value=no>", "your name"),
        (
            "<img src='http://a.example/x' alt='Our winter sale ends on Sunday'>",
            "[http://a.example/x]{http://a.example/x (None, None)}Our winter sale ends on Sunday",
        ),
        // Beside text, the alternative text is not shown.
        (
            "<img src='//a.example/x' alt='Our winter sale ends on Sunday'>A letter of many words that is longer than it",
            "[//a.example/x]{//a.example/x (None, None)}A letter of many words that is longer than it",
        ),
        // A label, alone and beside text, and pictures that are shown or not.
        (
            "<img src='http://a.example/x' alt='Our logo'>",
            "[http://a.example/x]{http://a.example/x (None, None)}Our logo",
        ),
        (
            "<img src='http://a.example/x' alt='Our logo'>one",
            "[http://a.example/x]{http://a.example/x (None, None)}one",
        ),
        ("<img src=x.png alt='Our logo'>", "[x.png]{x.png (None, None)}Our logo"),
        (
            "<img alt='Sale'>&nbsp;<img style='display:none' alt='no'><img hidden src=a alt=no>",
            "\u{a0}[a]Sale",
        ),
        ("<input type=image alt='Sign in'>", "Sign in"),
        ("<img src=cid:x alt='Our winter sale ends on Sunday'>", "{cid:x (None, None)}"),
        ("<p hidden><input value=x>", "(x)"),
        ("<input style='display:none' value=x><input hidden value=x>", "(x)(x)"),
        ("<style>.a{display:none}</style><input class=a value=x><input class=b value=y>", "(x)y"),
        ("<input style='color:#fff;background:#fff' value=x>", "(x)"),
        // Fields do not take the look of letters from what is around them.
        ("<div style='color:#fff;font-size:0'><input value=x></div>", "x"),
        (
            "<input type=date value=x><input type=number value=x placeholder=y><input type=number value=-5>",
            "y-5",
        ),
    ] {
        assert_eq!(seen(html), expected, "{html}");
    }
}

#[test]
fn text_of_style_sheets_is_read() {
    let page = |css: &str, body: &str| seen(&format!("<style>{css}</style>{body}"));
    assert_eq!(
        page("p::before{content:'Buy '} .x:after{content:\" now\"}", "<p class=x>this</p>"),
        "Buy this now"
    );
    assert_eq!(page("p::before{content:attr(data-a) '\\21'}", "<p data-a=one>two<p>three"), "one!two!three");
    assert_eq!(page("div > b:first-child:before{content:'1'}", "<div><b>x</b><b>y</b></div>"), "1xy");
    for css in [
        "p::before{content:''}",
        "p::before{content:'no';display:none}",
        "p::before{content:'no';color:#fff}",
        "p::before{content:none}",
        "p{content:'no'}",
        "p:hover::before{content:'no'}",
        "@media print{p::before{content:'no'}}",
        "p::before{color:red}",
        "p::before{content:'no'} p::before{content:none}",
        "p::before{content:normal} .z,p::before{color:red}",
        "p.x::before{content:none} p::before{content:'no';color:red}",
        "p::before{content:'no'} p::before{content:'other';display:none}",
    ] {
        assert_eq!(page(css, "<p class=x>x</p>"), "x", "{css}");
    }
    for css in [
        "p{font-size:0} p::before{content:'a';font-size:16px}",
        "p{color:#fff} p::before{content:'a';color:#000}",
        "p{visibility:hidden} p::before{content:'a';visibility:visible}",
        "p{background:#000} p::before{content:'a';color:#fff}",
    ] {
        assert!(page(css, "<p class=x>x</p>").starts_with('a'), "{css}");
    }
    assert_eq!(page("meta{display:block}meta::before{content:attr(content)}", "<meta content=a>x"), "ax");
    assert_eq!(
        page("meta::before{content:attr(content)}img::before{content:'a'}", "<meta content=a><img>x"),
        "x"
    );
    for css in [
        "p::before{content:'a'} p::before{content:5px} .z::before{content:none}",
        ":root{--a:'a'} p::before{content:var(--a)}",
        "p::before{content:'a'} p::before{content:var(--b)}",
    ] {
        assert_eq!(page(css, "<p>x</p>"), "ax", "{css}");
    }
    assert_eq!(page("p::before{content:'a'}", "<div style='display:none'><p>x</p></div>"), "(ax)");
    // The text is bounded, however many elements there are.
    let much = page(&format!("b:before{{content:'{}'}}", "x".repeat(2000)), &"<b>".repeat(100_000));
    assert!(much.len() <= 32 << 10, "{}", much.len());
}

#[test]
fn reversed_text_is_read_in_visual_order() {
    for html in [
        "one <bdo dir=rtl>owt</bdo>",
        "one <span style='unicode-bidi:bidi-override;direction:rtl'>owt</span>",
        "one &#8238;owt",
    ] {
        assert_eq!(seen(html), "one two", "{html}");
    }
    assert_eq!(seen("<bdo dir=ltr>one</bdo><p dir=rtl>two"), "onetwo");
    // Over several elements, up to the end of the line.
    for html in [
        "<bdo dir=rtl><b>owt</b> <b>eno</b></bdo>",
        "<bdo dir=rtl>owt<i hidden></i> eno</bdo>",
        "&#8238;owt<b> </b>eno",
        "&#8238;owt\n<b>e</b>n<i>o</i>",
        "<bdo dir=rtl>eno</bdo> <bdo dir=rtl>owt</bdo>",
        "one &#8238;ow&#8238;t&#8236;<b></b>",
        "&#8238;<b>eno</b><p> two</p>",
    ] {
        assert_eq!(seen(html).replace('\n', " "), "one two", "{html}");
    }
}

/// The cells of a row follow the direction of its text.
#[test]
fn cells_from_right_to_left_are_boxes() {
    let boxes = |html: &str| {
        let mut all = Vec::new();
        pieces(html, &Work::default(), &mut |piece| match piece {
            Piece::Boxes { reversed } => all.push(reversed),
            Piece::Box { .. } => all.push(false),
            _ => (),
        });
        all
    };
    assert_eq!(boxes("<table dir=rtl><tr><td>b<td>a</table>"), [true, false, false]);
    assert_eq!(boxes("<div dir=rtl><table dir=ltr><tr><td>b<td>a</table></div>"), [false; 0]);
}

#[test]
fn link_targets() {
    assert_eq!(seen("<A HREF=' http://a.example/?x=1&amp;y=2 '>here</a>"), "[http://a.example/?x=1&y=2]here");
    assert_eq!(
        seen("<img src=\"cid:1@x\"><input type=image src=http://b.example/i.png>"),
        "{cid:1@x (None, None)}[http://b.example/i.png]"
    );
}

#[test]
fn elements_and_their_links() {
    let seen = |html: &str| {
        let mut all = String::new();
        pieces(html, &Work::default(), &mut |piece| match piece {
            Piece::Start { name, link } => all.push_str(&format!("<{name} {}>", link.unwrap_or("-"))),
            Piece::End(name) => all.push_str(&format!("</{name}>")),
            _ => (),
        });
        all
    };
    assert_eq!(seen("<A class=x HREF=' u '>a</A><br>"), "<a u></a><br ->");
    assert_eq!(seen("<form action=v><link href=w>"), r#"<form v><link ->"#);
    assert_eq!(seen("<p hidden><a href=u>"), r#"<p -><a ->"#);
    // The visible part of swallowed text has elements, too.
    let page = "<a href=u>some words and some more of them</a>";
    assert_eq!(seen(&format!("<title>{page}")), "<title -><a u></a>");
}

#[test]
fn pictures() {
    assert_eq!(
        seen("<img src=' http://a.example/i.png ' width=120 HEIGHT='80px'><img width=50% src=cid:b><img>"),
        "[http://a.example/i.png]{http://a.example/i.png (Some(120), Some(80))}{cid:b (None, None)}"
    );
    let hidden =
        "<div style='display:none'><img src=cid:a></div><blockquote type=cite><img src=cid:b></blockquote>";
    assert_eq!(seen(&format!("{hidden}<font color=white><img src=cid:c>no")), "{cid:c (None, None)}(no)");
}

/// The words of a page, which end at the edges of boxes.
fn words(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &Work::default(), &mut |piece| match piece {
        Piece::Text(text) => all.push_str(text),
        Piece::Break => all.push(' '),
        _ => (),
    });
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn words_continue_where_no_box_begins_or_ends() {
    for tag in [
        "</div>",
        "</td>",
        "</tr>",
        "</table>",
        "</body>",
        "</html>",
        "</li>",
        "</h1>",
        "</img>",
        "<td>",
        "<tr>",
        "<caption>",
        "<body>",
        "<html>",
        "<head>",
        "<frameset>",
        "<br style='display:none'>",
        "<hr hidden>",
        "<img src=x hidden>",
        "<img src=x style='display:none'>",
        "<img src=x style='width:0'>",
        "<img src=x width=1 height=1>",
        "<input style='display:none' value=x>",
        "<div hidden></div>",
        "<div style='display:none'>x<br>x</div>",
        "<div style='display:inline'></div>",
        "<p style='display:contents'></p>",
        "<dialog>x</dialog>",
        "<datalist><option>x</datalist>",
        "<audio>x</audio>",
        "<noframes>x</noframes>",
        "<table hidden><tr><td>x</table>",
        "<svg style='display:none'></svg>",
        "<select hidden><option>x</select>",
        "<button style='display:none'>x</button>",
        "<div style='position:absolute;left:-9999px'>x<p>x</div>",
        "<div style='display:inline-block;width:0;overflow:hidden'>x</div>",
        "<form>",
    ] {
        let page = |inner: &str| words(&format!("<style>.a{{display:none}}</style><form>mil{inner}lion"));
        assert_eq!(page(tag), "million", "{tag}");
    }
    assert_eq!(words("<style>br{display:none}</style>mil<br>lion"), "million");
    assert_eq!(words("<details open><summary>mil<div hidden><p></div>lion"), "million");
}

#[test]
fn words_end_at_the_edges_of_boxes() {
    for tag in [
        "</p>",
        "</br>",
        "<br>",
        "<hr>",
        "<img src=x>",
        "<input>",
        "<div></div>",
        "<div>",
        "<li>",
        "<table><tr><td></table>",
        "<svg></svg>",
        "<select><option>x</select>",
        "<button></button>",
        "<iframe></iframe>",
        "<audio controls></audio>",
        "<dialog open></dialog>",
        "<span style='display:block'></span>",
        "<div style='visibility:hidden'></div>",
        "<div style='opacity:0'></div>",
        "<img src=x style='display:inline'>",
        "<b style='display:list-item'>",
    ] {
        assert_eq!(words(&format!("mil{tag}lion")), "mil lion", "{tag}");
    }
    assert_eq!(words("<table><tr><td>mil<td>lion<tr><td>one</table>two"), "mil lion one two");
    assert_eq!(words("<p>one<span>two<p>three"), "onetwo three");
    // More elements than are tracked.
    let deep = "<b>".repeat(600);
    assert_eq!(words(&format!("{deep}one<div>two</div>three<br>four")), "one two three four");
}

#[test]
fn a_foot_stands_at_the_end_of_its_table() {
    let mut all = String::new();
    pieces("<table><tfoot><tr><td>c<tbody><tr><td>a</table><tfoot>d", &Work::default(), &mut |piece| {
        match piece {
            Piece::Text(text) => all.push_str(text),
            Piece::Boxes { .. } => all.push('['),
            Piece::Box { order } => all.push_str(&order.to_string()),
            Piece::BoxesEnd => all.push(']'),
            _ => (),
        }
    });
    assert_eq!(all, "[1c0a]d");
}
