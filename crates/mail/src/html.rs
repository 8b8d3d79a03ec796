// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of HTML, what of it a reader sees, and where its links lead.

use super::elements::{Elements, How};
use super::lexer::{MAX_SEPARATORS, SEPARATORS, Tokens, ordinary};
use super::names::ends_word;
use super::piece::Piece;
use super::style::Sheet;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::{LocalName, local_name};
use std::cell::{Cell, RefCell};

/// Shows the text and the link targets of `html`, in order.
///
/// Tokenised by the rules of browsers, since that is how readers see it. Comments, scripts, styles and the title are
/// left out, and so are `cid:` and `mid:` targets: they name other parts by a label that differs in each copy.
pub fn pieces(html: &str, see: &mut dyn FnMut(Piece<'_>)) {
    let sheet = Sheet::of(html);
    let elements = RefCell::new(Elements::new(&sheet));
    let mut shown = 0;
    let swallowed = tokenize_all(html, &[], &elements, &mut |piece| {
        if let Piece::Text(text) = piece {
            shown += text.bytes().filter(|b| !b.is_ascii_whitespace()).count();
        }
        see(piece);
    });
    if let Some(swallowed) = swallowed.filter(|swallowed| shown < swallowed.text.len() / SWALLOWED) {
        show_swallowed(swallowed, &elements, see);
    }
}

/// A page of which so much more was swallowed than is shown is not what its writer meant.
const SWALLOWED: usize = 4;

/// What an element that is never closed took with it.
struct Swallowed<'a> {
    by: LocalName,
    text: &'a str,
}

impl<'a> Swallowed<'a> {
    /// What is behind the start tag of an element in `html` that is not closed at its end.
    fn of(html: &'a str, by: LocalName) -> Option<Self> {
        let bytes = html.as_bytes();
        let is = |at: usize, mark: &str| {
            let tag = bytes[at..].strip_prefix(mark.as_bytes()).unwrap_or_default();
            tag.get(..by.len()).is_some_and(|name| name.eq_ignore_ascii_case(by.as_bytes()))
        };
        // The last end tag closed another one.
        let from = memchr::memrchr_iter(b'<', bytes).find(|&at| is(at, "</")).unwrap_or(0);
        let start = memchr::memchr_iter(b'<', &bytes[from..]).map(|at| from + at).find(|&at| is(at, "<"))?;
        let (_, text) = html[start..].split_once('>')?;
        // Style sheets and scripts up to the first tag are no text.
        let skipped = if by == local_name!("title") { 0 } else { text.find('<').unwrap_or(text.len()) };
        Some(Self { by, text: &text[skipped..] })
    }
}

/// Shows what was swallowed. It may swallow some of itself once more, by another element.
fn show_swallowed(
    swallowed: Swallowed<'_>,
    elements: &RefCell<Elements<'_>>,
    see: &mut dyn FnMut(Piece<'_>),
) {
    let mut passed = Vec::new();
    let mut next = Some(swallowed);
    while let Some(Swallowed { by, text }) = next {
        // Each of three kinds once.
        passed.push(by);
        next = tokenize_all(text, &passed, elements, &mut |piece| match piece {
            Piece::Text(text) => see(Piece::Swallowed(text)),
            Piece::Target(target) => see(Piece::SwallowedTarget(target)),
            Piece::Break | Piece::Start { .. } | Piece::End(_) => see(piece),
            _ => (),
        });
    }
}

/// Tokenises all of `html`, passing over the start tags of some elements. Returns what was swallowed at its end.
fn tokenize_all<'a>(
    html: &'a str,
    passed: &[LocalName],
    elements: &RefCell<Elements<'_>>,
    see: &mut dyn FnMut(Piece<'_>),
) -> Option<Swallowed<'a>> {
    let mut rest = html;
    while !rest.is_empty() {
        rest = match tokenize(rest, passed, elements, see) {
            Stopped::AtEnd => "",
            Stopped::InSilence(by) => return Swallowed::of(rest, by),
            // The comment goes on, and is not seen; nor is its end tokenised.
            Stopped::InComment(after) => after.split_once("-->").map_or("", |(_, after)| after),
            Stopped::InTag(after) => {
                see(Piece::Text(after));
                ""
            }
        };
    }
    None
}

/// Bytes that are tokenised at a time.
const PIECE: usize = 4 << 10;

/// How far [`tokenize`] came, and what it left.
#[derive(Debug)]
enum Stopped<'a> {
    AtEnd,
    /// At the end, in an element whose text is no content.
    InSilence(LocalName),
    InTag(&'a str),
    InComment(&'a str),
}

/// Tokenises `html` until its end, or until so much of it made no token that it may be a tag without bounds.
fn tokenize<'a>(
    html: &'a str,
    passed: &[LocalName],
    elements: &RefCell<Elements<'_>>,
    see: &mut dyn FnMut(Piece<'_>),
) -> Stopped<'a> {
    let sink = Sink::new(passed, elements, see);
    let ordinary = ordinary(html, &sink);
    read_on(html, ordinary, sink)
}

/// Tokenises what is behind the first bytes, which were read.
fn read_on<'a>(html: &'a str, known: usize, sink: Sink<'_, '_>) -> Stopped<'a> {
    if known == html.len() {
        sink.end_text();
        return Stopped::AtEnd;
    }
    // The tokenizer goes on where its piece would be cut if it had begun at the beginning.
    let (mut rest, mut known) = (html, known);
    while rest.ceil_char_boundary(PIECE) <= known {
        let length = rest.ceil_char_boundary(PIECE);
        rest = &rest[length..];
        known -= length;
    }
    let tokenizer = Tokenizer::new(sink, html5ever::tokenizer::TokenizerOpts::default());
    let input = BufferQueue::default();
    while !rest.is_empty() && tokenizer.sink.separators.get() <= MAX_SEPARATORS {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        // In a piece with a token before, what stands before is none of its own.
        if known == 0 {
            tokenizer.sink.separate(piece);
        }
        input.push_back(StrTendril::from_slice(&piece[std::mem::take(&mut known)..]));
        // The sink never asks to stop at a script, so one feed takes all of the piece.
        let _ = tokenizer.feed(&input);
        rest = after;
    }
    tokenizer.sink.last_is_comment.set(false);
    tokenizer.end();
    tokenizer.sink.end_text();
    // Its end makes a token of an open comment, and none of an open tag. The comment's own end may have begun.
    match (rest.is_empty(), tokenizer.sink.last_is_comment.get()) {
        (true, _) => tokenizer.sink.silent.take().map_or(Stopped::AtEnd, Stopped::InSilence),
        (false, false) => Stopped::InTag(rest),
        (false, true) => {
            let dashes =
                html[..html.len() - rest.len()].bytes().rev().take(2).take_while(|&b| b == b'-').count();
            Stopped::InComment(&html[html.len() - rest.len() - dashes..])
        }
    }
}

struct Sink<'a, 's> {
    see: RefCell<&'a mut dyn FnMut(Piece<'_>)>,
    /// The names of elements that are passed over.
    passed: &'a [LocalName],
    /// The element that is open whose text is no content. Such elements hold only text, so they do not nest.
    silent: RefCell<Option<LocalName>>,
    /// The open elements, which say how text is shown.
    elements: &'a RefCell<Elements<'s>>,
    /// Text since the last tag. It comes in pieces, a letter that is written as a reference in one of its own; a word
    /// must be seen whole.
    text: RefCell<String>,
    /// Bytes since the last token that may have ended an attribute, and those of the piece in which it came.
    separators: Cell<usize>,
    last_is_comment: Cell<bool>,
}

impl<'a, 's> Sink<'a, 's> {
    fn new(
        passed: &'a [LocalName],
        elements: &'a RefCell<Elements<'s>>,
        see: &'a mut dyn FnMut(Piece<'_>),
    ) -> Self {
        Self {
            see: RefCell::new(see),
            passed,
            silent: RefCell::new(None),
            elements,
            text: RefCell::default(),
            separators: Cell::new(0),
            last_is_comment: Cell::new(false),
        }
    }

    fn separate(&self, piece: &str) {
        let new = piece.bytes().filter(|b| SEPARATORS.contains(b)).count();
        self.separators.set(self.separators.get() + new);
    }

    fn end_text(&self) {
        let mut text = self.text.borrow_mut();
        if !text.is_empty() {
            let how = self.elements.borrow().how();
            if matches!(how, How::Shown) {
                self.elements.borrow_mut().shown(&text);
            }
            (self.see.borrow_mut())(match how {
                How::Shown => Piece::Text(&text),
                How::Quoted => Piece::Quoted(&text),
                How::Hidden => Piece::Hidden(&text),
            });
            text.clear();
        }
    }

    fn end_word(&self, tag: &Tag) {
        if ends_word(tag) {
            (self.see.borrow_mut())(Piece::Break);
        }
    }

    fn start(&self, tag: &Tag) {
        let opened_by = match tag.name {
            local_name!("a") | local_name!("area") | local_name!("base") => Some(local_name!("href")),
            local_name!("form") => Some(local_name!("action")),
            _ => None,
        };
        let link = opened_by.filter(|_| self.elements.borrow().is_displayed()).and_then(|name| {
            let attribute = tag.attrs.iter().find(|a| a.name.local == name)?;
            Some(attribute.value.trim()).filter(|value| !value.is_empty())
        });
        (self.see.borrow_mut())(Piece::Start { name: &tag.name, link });
    }

    fn targets(&self, tag: &Tag) {
        for attribute in &tag.attrs {
            let is_target = matches!(
                attribute.name.local,
                local_name!("href") | local_name!("src") | local_name!("action") | local_name!("background")
            );
            let target = attribute.value.trim();
            let scheme = target.as_bytes().get(..4).unwrap_or_default();
            let names_a_part = scheme.eq_ignore_ascii_case(b"cid:") || scheme.eq_ignore_ascii_case(b"mid:");
            if is_target && !target.is_empty() && !names_a_part {
                (self.see.borrow_mut())(Piece::Target(target));
            }
        }
    }

    fn picture(&self, tag: &Tag) {
        let value = |name: LocalName| tag.attrs.iter().find(|a| a.name.local == name).map(|a| a.value.trim());
        if tag.name != local_name!("img") || !self.elements.borrow().shows_pictures() {
            return;
        }
        if let Some(source) = value(local_name!("src")).filter(|source| !source.is_empty()) {
            let pixels = |text: &str| text.strip_suffix("px").unwrap_or(text).trim_end().parse().ok();
            let size = [local_name!("width"), local_name!("height")].map(|name| value(name).and_then(pixels));
            (self.see.borrow_mut())(Piece::Picture { source, size: size.into() });
        }
    }

    /// The way in which the tokenizer must read on after the start tag of `name`, as the tree builder of the HTML
    /// standard would tell it.
    fn content_of(name: &LocalName) -> TokenSinkResult<()> {
        match *name {
            local_name!("script") => TokenSinkResult::RawData(RawKind::ScriptData),
            local_name!("style")
            | local_name!("xmp")
            | local_name!("iframe")
            | local_name!("noembed")
            | local_name!("noframes") => TokenSinkResult::RawData(RawKind::Rawtext),
            local_name!("title") | local_name!("textarea") => TokenSinkResult::RawData(RawKind::Rcdata),
            local_name!("plaintext") => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }

    fn is_silent(name: &LocalName) -> bool {
        matches!(*name, local_name!("script") | local_name!("style") | local_name!("title"))
    }
}

impl Tokens for Sink<'_, '_> {
    fn characters(&self, text: &str) {
        if self.silent.borrow().is_none() {
            self.text.borrow_mut().push_str(text);
        }
    }

    fn tag(&self, tag: Tag) {
        let _ = self.process_token(Token::TagToken(tag), 0);
    }

    fn content_of(&self, name: &LocalName) -> TokenSinkResult<()> {
        if self.passed.contains(name) { TokenSinkResult::Continue } else { Self::content_of(name) }
    }
}

impl TokenSink for Sink<'_, '_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        // No tokens of the text: a tag of many attributes may have as many errors.
        if let Token::ParseError(_) | Token::EOFToken = token {
            return TokenSinkResult::Continue;
        }
        self.separators.set(0);
        self.last_is_comment.set(matches!(token, Token::CommentToken(_)));
        match token {
            Token::CharacterTokens(text) if self.silent.borrow().is_none() => {
                self.text.borrow_mut().push_str(&text);
            }
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                self.end_text();
                self.elements.borrow_mut().open(&tag);
                self.end_word(&tag);
                self.start(&tag);
                self.targets(&tag);
                self.picture(&tag);
                if self.passed.contains(&tag.name) {
                    return TokenSinkResult::Continue;
                }
                *self.silent.borrow_mut() = Self::is_silent(&tag.name).then(|| tag.name.clone());
                return Self::content_of(&tag.name);
            }
            Token::TagToken(tag) => {
                self.end_text();
                self.elements.borrow_mut().close(&tag.name);
                self.end_word(&tag);
                (self.see.borrow_mut())(Piece::End(&tag.name));
                *self.silent.borrow_mut() = None;
            }
            _ => (),
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(html: &str) -> String {
        let mut all = String::new();
        pieces(html, &mut |piece| match piece {
            Piece::Text(text) => all.push_str(text),
            Piece::Quoted(text) => all.push_str(&format!(">{text}<")),
            Piece::Hidden(text) => all.push_str(&format!("({text})")),
            Piece::Target(target) => all.push_str(&format!("[{target}]")),
            Piece::Picture { source, size } => all.push_str(&format!("{{{source} {size:?}}}")),
            Piece::Break | Piece::Start { .. } | Piece::End(_) => (),
            Piece::Swallowed(text) => all.push_str(&format!("{{{text}}}")),
            Piece::SwallowedTarget(target) => all.push_str(&format!("{{[{target}]}}")),
        });
        all
    }

    #[test]
    fn what_a_reader_sees() {
        assert_eq!(seen("<p>one<!-- no --> <b>t</b>wo &amp; &eacute;</p>"), "one two & é");
        assert_eq!(seen("<title>no</title><style>p{}</style><script>if (a<b) {}</script>yes"), "yes");
        assert_eq!(seen("<head>no end <p title=\"a>b\">yes"), "no end yes");
        assert_eq!(seen("<textarea>a<b</textarea>c"), "a<bc");
        assert_eq!(seen("<script>never closed"), "");
    }

    /// Pieces of HTML that are ordinary, and such that are not.
    const SOUP: &str = "< </ <! <!-- --> -- - ! > <p> </p> <P <a\u{a0}href=\" <a\u{a0}href=' \" ' = / \t \n \r \r\n & &amp; &amp \
        &ampx &not &notit; &notin; &copy= &#65; &#x41 &# &#0; &#150; &#x80; &#xD800; &#1114112; &#99999999999; &x; \0 a b \
        wort\u{a0} é \u{feff} <style> </style> </STYLE\u{a0} <title> </title> <script> </script> <textarea> </textarea> \
        <br/> <?xml?> <!DOCTYPE\u{a0}html> <![endif]--> <!--[if\u{a0}mso]> <b> </b> <span\u{a0}style='display:none'> \
        </span> <td\u{a0}class=x\u{a0}y=z\u{a0}y=w> <img\u{a0}src=http://a.example/?a=b&c=d> <> </> </\u{a0}x> <a\"b> \
        <a=b> <a\u{a0}b=> <a\u{a0}b\u{a0}=\u{a0}c> <a\u{a0}b/c> <plaintext> <a\u{a0}b='c'd=\"e&lt\"> LONG";

    proptest! {
        /// Whether HTML is found to be ordinary or not, the same is seen.
        #[test]
        fn what_is_ordinary_is_read_as_by_the_tokenizer(soup in prop::collection::vec(0..1000usize, 0..40)) {
            let pieces: Vec<String> = SOUP.split(' ').filter(|s| !s.is_empty()).map(|s| s.replace('\u{a0}', " ")).collect();
            let long = "a=b ".repeat(1030);
            let html: String = soup.iter().map(|&n| &*pieces[n % pieces.len()]).map(|s| if s == "LONG" { &long } else { s }).collect();
            let sheet = Sheet::default();
            let read = |whole: bool| {
                let (mut seen, elements) = (String::new(), RefCell::new(Elements::new(&sheet)));
                let mut see = |piece: Piece<'_>| seen.push_str(&format!("{piece:?}"));
                let stopped = if whole {
                    read_on(&html, 0, Sink::new(&[], &elements, &mut see))
                } else {
                    tokenize(&html, &[], &elements, &mut see)
                };
                seen + &format!("{stopped:?}")
            };
            prop_assert_eq!(read(true), read(false), "{}", html);
        }
    }

    #[test]
    fn what_is_never_closed_is_read_after_all() {
        let page = "<p>An offer <a href=u:x>for you</a></p><div style='display:none'>no</div>";
        let text = "{An offer }{[u:x]}{for you}";
        assert_eq!(seen(&format!("<title>{page}")), text);
        assert_eq!(seen(&format!("<title>yes</title><STYLE type=x>p{{}}{page}")), text);
        assert_eq!(seen(&format!("<script>a();{page}")), text);
        // Each by another one.
        assert_eq!(seen(&format!("<title><style>a<script>{page}")), text);
        assert_eq!(seen(&format!("<title>{}{page}", "<style></style>".repeat(3))), text);
        // What is closed is not read, and an end without a text is no loss.
        assert_eq!(seen(&format!("<title>{page}</title>")), "");
        assert_eq!(
            seen("<p>A letter of some words, and more of them.</p><style>p{}"),
            "A letter of some words, and more of them."
        );
    }

    /// A tag without bounds is not tokenised to its end, which would take minutes; a long comment hides nothing else.
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
    fn link_targets() {
        assert_eq!(
            seen("<A HREF=' http://a.example/?x=1&amp;y=2 '>here</a>"),
            "[http://a.example/?x=1&y=2]here"
        );
        assert_eq!(
            seen("<img src=\"cid:1@x\"><input type=image src=http://b.example/i.png>"),
            "{cid:1@x (None, None)}[http://b.example/i.png]"
        );
    }

    #[test]
    fn elements_and_their_links() {
        let seen = |html: &str| {
            let mut all = String::new();
            pieces(html, &mut |piece| match piece {
                Piece::Start { name, link } => all.push_str(&format!("<{name} {}>", link.unwrap_or("-"))),
                Piece::End(name) => all.push_str(&format!("</{name}>")),
                _ => (),
            });
            all
        };
        assert_eq!(seen("<A class=x HREF=' u '>a</A><br>"), "<a u></a><br ->");
        assert_eq!(seen("<form action=v><link href=w>"), r#"<form v><link ->"#);
        assert_eq!(seen("<p hidden><a href=u>"), r#"<p -><a ->"#);
        // What the reader of a swallowed page sees has elements, too.
        let page = "<a href=u>some words and some more of them</a>";
        assert_eq!(seen(&format!("<title>{page}")), "<title -><a u></a>");
    }

    #[test]
    fn pictures() {
        assert_eq!(
            seen(
                "<img src=' http://a.example/i.png ' width=120 HEIGHT='80px'><img width=50% src=cid:b><img>"
            ),
            "[http://a.example/i.png]{http://a.example/i.png (Some(120), Some(80))}{cid:b (None, None)}"
        );
        let hidden = "<div style='display:none'><img src=cid:a></div><blockquote type=cite><img src=cid:b></blockquote>";
        assert_eq!(seen(&format!("{hidden}<font color=white><img src=cid:c>no")), "{cid:c (None, None)}(no)");
    }
}
