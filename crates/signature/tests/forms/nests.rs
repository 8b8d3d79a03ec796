// SPDX-License-Identifier: GPL-3.0-or-later
//! No construct of a message is nested as deep as its sender likes on the reader's stack: each of them is nested 1,500 times, and read with
//! a stack on which as many calls have no room. An overflow ends the test program, and its message names the construct.

use super::reading::all;

const LEVELS: usize = 1500;
const STACK: usize = 256 << 10;

const HEAD: &str = "Subject: x\nMIME-Version: 1.0\n";

/// Reads each message of a list of constructs and messages.
fn read(messages: impl IntoIterator<Item = (String, String)>) {
    for (name, message) in messages {
        let name = name.replace('\0', " ");
        let reader = std::thread::Builder::new().name(name).stack_size(STACK);
        reader.spawn(move || all(message.as_bytes())).unwrap().join().unwrap();
    }
}

fn page(html: &str) -> String {
    format!("{HEAD}Content-Type: text/html\n\n{html}<p>some words of a letter that everybody reads</p>")
}

fn sheet(css: &str) -> String {
    page(&format!("<style>{css}</style>"))
}

#[test]
fn values_are_not_read_level_by_level() {
    const PROPERTIES: &str = "display color background background-image height left transform translate scale rotate clip clip-path filter mask \
        font-size font text-shadow -webkit-text-stroke opacity z-index animation inset";
    const FUNCTIONS: &str = "light-dark( calc( min( clamp( var(--a, rgb( hsl( color( color-mix( linear-gradient( polygon( path( inset( circle( \
        matrix( rotate( scale( url( attr( env( translate( opacity( image-set( shape( rect( ( [ { ' light-dark(rgb( calc((";
    read(FUNCTIONS.split_ascii_whitespace().map(|function| {
        let value = function.repeat(LEVELS) + "0" + &")".repeat(function.matches('(').count() * LEVELS);
        let all = PROPERTIES
            .split_ascii_whitespace()
            .map(|property| format!("<p style=\"{property}:{value}\">w</p>"));
        (function.to_owned(), page(&all.collect::<String>()))
    }));
    // Quotes end an attribute, but not a sheet's value.
    read(FUNCTIONS.split_ascii_whitespace().map(|function| {
        let value = function.repeat(LEVELS) + "0";
        (format!("content {function}"), sheet(&format!("p::before{{content:{value}}}p{{color:{value}}}")))
    }));
}

#[test]
fn rules_are_not_read_level_by_level() {
    const SELECTORS: &str = ":not( :is( :has( :nth-child(2n+1_of_ :where( :not(:is( [a= ( a> a+ a~ * & .a #a ::before \\ \" /* @media{ @layer{ \
        @supports(a:b){ a{ a{& a{@media_all{ a:b{ a{}";
    read(SELECTORS.split_ascii_whitespace().flat_map(|selector| {
        let open = selector.replace('_', " ").repeat(LEVELS);
        let closed = format!("{open}a{}{{color:red}}", ")".repeat(LEVELS));
        [(selector.to_owned(), sheet(&open)), (format!("{selector} closed"), sheet(&closed))]
    }));
    const CONDITIONS: [&str; 9] = [
        "not ",
        "not (",
        "(",
        "only ",
        "(not ",
        "((min-width:1px) and ",
        "screen and ",
        "not all and (",
        "not not",
    ];
    read(CONDITIONS.into_iter().flat_map(|condition| {
        let open = condition.repeat(LEVELS);
        let rule =
            |name: &str| sheet(&format!("@{name} {open}(a:b){}{{p{{color:red}}}}", ")".repeat(LEVELS)));
        [
            (format!("@media {condition}"), rule("media")),
            (format!("@supports {condition}"), rule("supports")),
            (format!("@container {condition}"), rule("container")),
            (format!("media={condition}"), page(&format!("<style media=\"{open}x\">p{{color:red}}</style>"))),
        ]
    }));
}

#[test]
fn elements_are_not_read_level_by_level() {
    const ELEMENTS: &str = "<div> <b> <table> <table><tr><td> <svg> <svg><foreignObject> <template> <select> <form> <bdo_dir=rtl> <q> <blockquote> \
        <ul><li> <a> <button> <ruby><rt> <noscript> <title> <textarea> <details> <!-- <![CDATA[ <style> </p> </br> <p> <h1> <dl><dd> <math> <xmp> \
        <plaintext> <iframe> <p_style='display:flex;flex-direction:row-reverse'> <p_style='unicode-bidi:bidi-override;direction:rtl'>";
    read(ELEMENTS.split_ascii_whitespace().flat_map(|element| {
        let nested = (element.replace('_', " ") + "a ").repeat(LEVELS);
        // With such rules, each element is known with all around it.
        let rules = "<style>a b,p~p,i:has(u),div div:last-child{display:none}a{color:red}*{top:0}</style>";
        [
            (element.to_owned(), page(&nested)),
            (format!("{element} with rules"), page(&format!("{rules}{nested}"))),
        ]
    }));
}

#[test]
fn parts_and_texts_are_not_read_level_by_level() {
    let numbered = |end: &str| {
        (0..LEVELS)
            .map(|i| format!("Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n{end}"))
            .collect::<String>()
    };
    let many = |text: &str| text.repeat(LEVELS);
    let heads = [
        ("message/rfc822", HEAD.to_owned() + &many("Content-Type: message/rfc822\n\n")),
        ("message with returns", HEAD.to_owned() + &many("Content-Type: message/rfc822\n\nA: b\r")),
        ("multipart", HEAD.to_owned() + &numbered("")),
        ("multipart with returns", HEAD.to_owned() + &numbered("A: b\r")),
        ("comments of a type", format!("{HEAD}Content-Type: text/plain {}\n\nx\n", many("("))),
        ("escapes of a parameter", format!("{HEAD}Content-Type: text/plain; a=\"{}\n\nx\n", many("\\"))),
        ("comments of From", format!("From: {}\n\nx\n", many("("))),
        ("brackets of From", format!("From: {}\n\nx\n", many("<"))),
        ("encoded words", format!("Subject: {}\n\nx\n", many("=?utf-8?q?"))),
        (
            "S/MIME",
            format!(
                "{HEAD}Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\n{}",
                many("MIAwgDCA")
            ),
        ),
    ];
    read(heads.map(|(name, message)| (name.to_owned(), message)));
    const TEXTS: [&str; 20] = [
        "http://a.example/?u=",
        "http%3A%2F%2Fa.example%2F%3Fu%3D",
        "<http://",
        "mailto:",
        "> ",
        "On 1 Jan 2020 a wrote:\n> ",
        "-----BEGIN PGP MESSAGE-----\n",
        "begin 644 a\n",
        "\u{202e}",
        "\u{2067}",
        "\u{202b}",
        "(",
        "[",
        "'",
        "\"",
        "data:text/html,",
        "{\\rtf1 {\\*\\a ",
        "<?xml?><a>",
        "%PDF-1 <</A ",
        "+AG",
    ];
    read(TEXTS.into_iter().flat_map(|text| {
        ["plain", "rtf", "xml", "calendar"].map(|kind| {
            let head = format!("{HEAD}Content-Type: text/{kind}; charset=utf-8\n\n");
            (
                format!("{kind} {text}"),
                format!("{head}{} some words of a letter that everybody reads\n", many(text)),
            )
        })
    }));
}
