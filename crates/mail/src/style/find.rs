// SPDX-License-Identifier: GPL-3.0-or-later
//! Finds the `<style>` elements of a page before it is tokenised, since they may stand behind the text that they hide.

use memchr::{memchr, memrchr_iter};

/// Passes on the text of each `style` element and its `media` attribute, if its type is that of style sheets.
///
/// It skips tags, comments and the text of scripts and the like exactly as the tokenizer does: a false `style` element would hide visible
/// text. It reads no further than the last one.
pub(super) fn style_elements<'a>(html: &'a str, emit: &mut dyn FnMut(&'a str, &'a str)) {
    let is_style = |at: &usize| begins(&html.as_bytes()[*at..], b"<style");
    let Some(last) = memrchr_iter(b'<', html.as_bytes()).find(is_style) else { return };
    // A sheet in a template does not apply.
    let (mut at, mut templates) = (0, 0usize);
    while at <= last {
        let Some(found) = memchr(b'<', &html.as_bytes()[at..]) else { return };
        at += found + 1;
        let rest = &html[at..];
        let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        let after = if let Some(comment) = rest.strip_prefix("!--") {
            Some(after_comment(comment))
        } else if is_name(rest) {
            templates += usize::from(names(rest, "template"));
            element(rest, &mut |sheet, media| {
                if templates == 0 {
                    emit(sheet, media);
                }
            })
        } else if let Some(end_tag) = rest.strip_prefix('/').filter(|text| is_name(text)) {
            templates = templates.saturating_sub(usize::from(names(end_tag, "template")));
            Tag::read(end_tag).map(|tag| tag.after)
        } else if rest.starts_with(['!', '?', '/']) {
            Some(rest.split_once('>').map_or("", |(_, after)| after))
        } else {
            Some(rest)
        };
        let Some(after) = after else { return };
        at = html.len() - after.len();
    }
}

/// Whether a tag, from its name on, has this name.
fn names(tag: &str, name: &str) -> bool {
    let ends = |b: &u8| b" \t\n\r\x0c/>".contains(b);
    begins(tag.as_bytes(), name.as_bytes()) && tag.as_bytes().get(name.len()).is_some_and(ends)
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// Skips a start tag, and the raw text behind it. `None` if the rest cannot be read.
fn element<'a>(text: &'a str, emit: &mut dyn FnMut(&'a str, &'a str)) -> Option<&'a str> {
    const RAW: [&str; 8] = ["script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea"];
    let tag = Tag::read(text)?;
    let is = |name: &str| tag.name.eq_ignore_ascii_case(name);
    if is("plaintext") {
        return None;
    }
    let Some(raw) = RAW.into_iter().find(|name| is(name)) else { return Some(tag.after) };
    // Without an end tag it continues to the end.
    let end = end_tag(tag.after, raw)?;
    let (inner, after) = tag.after.split_at(end);
    Tag::read(&after["</".len()..])?;
    if raw == "style" && (tag.kind.is_empty() || tag.kind.trim().eq_ignore_ascii_case("text/css")) {
        emit(inner, tag.media);
    }
    // A script with a comment may continue behind its first end tag.
    (raw != "script" || !inner.contains("<!--")).then_some(after)
}

/// The start of an element's end tag.
fn end_tag(text: &str, name: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'<', &text.as_bytes()[at..])?;
        let rest = text[at + 1..].strip_prefix('/').unwrap_or("");
        if names(rest, name) {
            return Some(at);
        }
        at += 1;
    }
}

/// The text behind a comment; `text` begins inside it.
fn after_comment(text: &str) -> &str {
    if let Some(after) = text.strip_prefix('>').or_else(|| text.strip_prefix("->")) {
        return after;
    }
    let mut at = 0;
    while let Some(found) = memchr(b'>', &text.as_bytes()[at..]) {
        let (comment, after) = (&text[..at + found], &text[at + found + 1..]);
        if comment.ends_with("--") || comment.ends_with("--!") {
            return after;
        }
        at += found + 1;
    }
    ""
}

/// A tag, from its name on.
struct Tag<'a> {
    name: &'a str,
    /// Its attribute `type`, as written.
    kind: &'a str,
    /// Its attribute `media`, as written.
    media: &'a str,
    after: &'a str,
}

impl<'a> Tag<'a> {
    /// Reads a tag by the HTML standard (13.2.5.8 and 13.2.5.32 to 13.2.5.40). Returns `None` if it does not end.
    fn read(text: &'a str) -> Option<Self> {
        let is_blank = |b: u8| b" \t\n\r\x0c".contains(&b);
        let bytes = text.as_bytes();
        let until = |from: usize, ends: &dyn Fn(u8) -> bool| {
            bytes[from..].iter().position(|&b| ends(b)).map_or(bytes.len(), |n| from + n)
        };
        let mut at = until(0, &|b| is_blank(b) || b == b'/' || b == b'>');
        let mut tag = Self { name: &text[..at], kind: "", media: "", after: "" };
        let (mut has_kind, mut has_media) = (false, false);
        loop {
            at = until(at, &|b| !is_blank(b) && b != b'/');
            if *bytes.get(at)? == b'>' {
                tag.after = &text[at + 1..];
                return Some(tag);
            }
            let name_end = until(at + 1, &|b| is_blank(b) || matches!(b, b'/' | b'>' | b'='));
            let name = &text[at..name_end.min(text.len())];
            at = until(name_end, &|b| !is_blank(b));
            let mut value = "";
            if bytes.get(at) == Some(&b'=') {
                at = until(at + 1, &|b| !is_blank(b));
                let (start, end) = match bytes.get(at) {
                    Some(&quote @ (b'"' | b'\'')) => (at + 1, until(at + 1, &|b| b == quote)),
                    Some(b'>') | None => (at, at),
                    Some(_) => (at, until(at, &|b| is_blank(b) || b == b'>')),
                };
                value = &text[start..end];
                // Past the closing quote.
                at = if start > at { (end + 1).min(bytes.len()) } else { end };
            }
            // The first of a name counts.
            if name.eq_ignore_ascii_case("type") && !std::mem::replace(&mut has_kind, true) {
                tag.kind = value;
            } else if name.eq_ignore_ascii_case("media") && !std::mem::replace(&mut has_media, true) {
                tag.media = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::states::RawKind;
    use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
    use proptest::prelude::*;
    use std::cell::RefCell;

    /// The texts of the `style` elements that the tokenizer finds.
    #[derive(Default)]
    struct Styles(RefCell<(Option<String>, Vec<String>)>);

    impl TokenSink for Styles {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            let (open, all) = &mut *self.0.borrow_mut();
            match token {
                Token::CharacterTokens(text) => open.iter_mut().for_each(|style| style.push_str(&text)),
                Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                    return match &*tag.name {
                        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                        "style" => {
                            *open = Some(String::new());
                            TokenSinkResult::RawData(RawKind::Rawtext)
                        }
                        "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
                        "title" => TokenSinkResult::RawData(RawKind::Rcdata),
                        "plaintext" => TokenSinkResult::Plaintext,
                        _ => TokenSinkResult::Continue,
                    };
                }
                Token::TagToken(_) => all.extend(open.take()),
                _ => (),
            }
            TokenSinkResult::Continue
        }
    }

    fn tokenized(html: &str) -> Vec<String> {
        let tokenizer = Tokenizer::new(Styles::default(), html5ever::tokenizer::TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        tokenizer.sink.0.take().1
    }

    const PIECES: &[&str] = &[
        "<style>",
        "<style ",
        "</style>",
        "</style",
        "<STYLE\t/>",
        "<script>",
        "</script>",
        "<title>",
        "</title >",
        "<xmp a=>",
        "</xmp/>",
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<!--->",
        "<!",
        "<?",
        "</",
        "<",
        ">",
        "/",
        "\"",
        "'",
        "=",
        " ",
        "\n",
        "a",
        "-",
        "!",
        "<p",
        "<a b=\"",
        "<a b='",
        "<a b=",
        "<plaintext>",
        "\u{e9}",
        "</p>",
        "<![CDATA[",
        "]]>",
        "&lt;",
        "<!DOCTYPE a '",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// A false style element would hide visible text.
        #[test]
        fn the_tokenizer_finds_the_same(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
            let html: String = pieces.into_iter().map(|i| PIECES[i]).collect();
            let mut found = Vec::new();
            style_elements(&html, &mut |css, _| found.push(css.to_owned()));
            let expected = tokenized(&html);
            // It stops behind a script with a comment.
            let all = if html.contains("<script") && html.contains("<!--") { found.len() } else { expected.len() };
            prop_assert_eq!(&found[..], &expected[..all.min(expected.len())], "{}", html);
        }
    }

    #[test]
    fn attributes_are_read() {
        let mut found = Vec::new();
        let html = "<style media=\"a>b\" MEDIA=c>1</style><style a media='x' type=text/css/>2</style><style =type=x media>3</style>";
        style_elements(html, &mut |css, media| found.push((css.to_owned(), media.to_owned())));
        let expected = [("1", "a>b"), ("3", "")].map(|(css, media)| (css.to_owned(), media.to_owned()));
        assert_eq!(found, expected);
    }
}
