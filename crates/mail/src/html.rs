// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of HTML, its visible part, and the targets of its links.

use super::bidi::{Line, in_reading_order};
use super::elements::{Edge, Elements};
use super::lexer::{MAX_SEPARATORS, SEPARATORS, Tokens, ordinary};
use super::look::Visibility;
use super::piece::Piece;
use super::style::{Sheet, Work};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::{LocalName, local_name};
use std::cell::{Cell, RefCell};

/// Passes on the text and the link targets of `html`, in order.
///
/// It follows the browsers' tokenizer, since readers see mail that way. Comments, scripts, styles and the title are left out, as are `cid:`
/// and `mid:` targets: they name other parts by a label that differs in each copy. All pages of a message share its `work`: text that style sheets hide beyond that is shown.
pub fn pieces(html: &str, work: &Work, emit: &mut dyn FnMut(Piece<'_>)) {
    let sheet = Sheet::of(html, work.take(html.len()));
    if sheet.needs_lookahead() {
        let elements = RefCell::new(Elements::listing(&sheet));
        tokenize_all(html, &[], &elements, &mut |_| ());
        elements.into_inner().list().into_iter().for_each(|nodes| sheet.keep_document(nodes));
    }
    let elements = RefCell::new(Elements::new(&sheet));
    let mut shown = 0;
    let swallowed = tokenize_all(html, &[], &elements, &mut |piece| {
        if let Piece::Text(text) = piece {
            shown += written(text.trim());
        }
        emit(piece);
    });
    // On a page of pictures their alternative texts are shown, and labels if nothing else is; beside text, the pictures themselves.
    let [longer, all] = elements.borrow_mut().take_alternatives();
    let alternatives = if shown == 0 { all } else { longer };
    if shown < alternatives.len() {
        for text in alternatives.lines() {
            emit(Piece::Break);
            emit(Piece::Text(text));
        }
    }
    if let Some(swallowed) = swallowed.filter(|swallowed| shown < swallowed.text.len() / SWALLOWED) {
        show_swallowed(swallowed, &elements, emit);
    }
    let elements = elements.into_inner();
    work.put_back(elements.left());
}

/// Bytes of a text without white space, counted in chunks so that the compiler can vectorise it.
fn written(text: &str) -> usize {
    let of = |piece: &[u8]| piece.iter().map(|b| u8::from(!b.is_ascii_whitespace())).sum::<u8>();
    text.as_bytes().chunks(255).map(|piece| usize::from(of(piece))).sum()
}

/// If a page hides this many times more swallowed text than it shows, its author did not intend that.
const SWALLOWED: usize = 4;

/// The text inside an element that is never closed.
struct Swallowed<'a> {
    by: LocalName,
    text: &'a str,
}

impl<'a> Swallowed<'a> {
    /// The text behind the start tag of the element that is unclosed at the end of `html`.
    fn of(html: &'a str, by: LocalName) -> Option<Self> {
        let bytes = html.as_bytes();
        let is = |at: usize, mark: &str| {
            let tag = bytes[at..].strip_prefix(mark.as_bytes()).unwrap_or_default();
            tag.get(..by.len()).is_some_and(|name| name.eq_ignore_ascii_case(by.as_bytes()))
        };
        // The last end tag closed an earlier one.
        let from = memchr::memrchr_iter(b'<', bytes).find(|&at| is(at, "</")).unwrap_or(0);
        let start = memchr::memchr_iter(b'<', &bytes[from..]).map(|at| from + at).find(|&at| is(at, "<"))?;
        let (_, text) = html[start..].split_once('>')?;
        // Style sheets and scripts up to the first tag are no text.
        let skipped = if by == local_name!("title") { 0 } else { text.find('<').unwrap_or(text.len()) };
        Some(Self { by, text: &text[skipped..] })
    }
}

/// Passes on swallowed text, which may contain another unclosed element.
fn show_swallowed(
    swallowed: Swallowed<'_>,
    elements: &RefCell<Elements<'_>>,
    emit: &mut dyn FnMut(Piece<'_>),
) {
    let mut skipped = Vec::new();
    let mut next = Some(swallowed);
    while let Some(Swallowed { by, text }) = next {
        // Each of the three element kinds can swallow only once.
        skipped.push(by);
        next = tokenize_all(text, &skipped, elements, &mut |piece| match piece {
            Piece::Text(text) => emit(Piece::Swallowed(text)),
            Piece::Target(target) => emit(Piece::SwallowedTarget(target)),
            Piece::Break | Piece::Start { .. } | Piece::End(_) => emit(piece),
            _ => (),
        });
    }
}

/// Tokenises all of `html`, ignoring the start tags of `passed`. Returns the text that an unclosed element swallowed.
fn tokenize_all<'a>(
    html: &'a str,
    skipped: &[LocalName],
    elements: &RefCell<Elements<'_>>,
    emit: &mut dyn FnMut(Piece<'_>),
) -> Option<Swallowed<'a>> {
    let mut rest = html;
    while !rest.is_empty() {
        rest = match tokenize(rest, skipped, elements, emit) {
            Stopped::AtEnd => "",
            Stopped::InIgnored(by) => return Swallowed::of(rest, by),
            // The rest of the comment is invisible and not tokenised.
            Stopped::InComment(after) => after.split_once("-->").map_or("", |(_, after)| after),
            Stopped::InTag(after) => {
                emit(Piece::Text(after));
                ""
            }
        };
    }
    None
}

/// Bytes that are tokenised at a time.
const PIECE: usize = 4 << 10;

/// Where [`tokenize`] stopped, with the rest.
#[derive(Debug)]
enum Stopped<'a> {
    AtEnd,
    /// At the end, in an element whose text is no content.
    InIgnored(LocalName),
    InTag(&'a str),
    InComment(&'a str),
}

/// Tokenises `html` up to its end, or up to a tag or comment that grows without bound.
fn tokenize<'a>(
    html: &'a str,
    skipped: &[LocalName],
    elements: &RefCell<Elements<'_>>,
    emit: &mut dyn FnMut(Piece<'_>),
) -> Stopped<'a> {
    let sink = Sink::new(skipped, elements, emit);
    let ordinary = ordinary(html, &sink);
    read_on(html, ordinary, sink)
}

/// Tokenises the bytes behind the first `known` ones.
fn read_on<'a>(html: &'a str, known: usize, sink: Sink<'_, '_>) -> Stopped<'a> {
    if known == html.len() {
        sink.end();
        // A drawing may end with a style sheet that is open.
        return sink.ignored.take().map_or(Stopped::AtEnd, Stopped::InIgnored);
    }
    // Pieces have the same bounds as when tokenising from the beginning.
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
        // In a piece that holds an earlier token, bytes before the rest do not count.
        if known == 0 {
            tokenizer.sink.separate(piece);
        }
        input.push_back(StrTendril::from_slice(&piece[std::mem::take(&mut known)..]));
        // The sink never stops at a script, so one feed takes the whole piece.
        let _ = tokenizer.feed(&input);
        rest = after;
    }
    tokenizer.sink.last_is_comment.set(false);
    tokenizer.end();
    tokenizer.sink.end();
    // The end of input makes a token of an open comment, but not of an open tag. The comment's own end may have begun.
    match (rest.is_empty(), tokenizer.sink.last_is_comment.get()) {
        (true, _) => tokenizer.sink.ignored.take().map_or(Stopped::AtEnd, Stopped::InIgnored),
        (false, false) => Stopped::InTag(rest),
        (false, true) => {
            let dashes =
                html[..html.len() - rest.len()].bytes().rev().take(2).take_while(|&b| b == b'-').count();
            Stopped::InComment(&html[html.len() - rest.len() - dashes..])
        }
    }
}

/// Words of an alternative text that is only a label: a logo, a product.
const LABEL: usize = 3;

/// Whether a field of this type shows such a value.
fn shows_value(kind: &str, value: &str) -> bool {
    match kind {
        // Browsers drop a value with words.
        "number" | "date" | "time" | "month" | "week" | "datetime-local" => {
            value.bytes().all(|b| b.is_ascii_digit() || b"-+:.TWe".contains(&b))
        }
        _ => !value.is_empty() && has_text(kind),
    }
}

fn has_placeholder(kind: &str) -> bool {
    has_text(kind)
        && !matches!(kind, "submit" | "reset" | "button")
        && !matches!(kind, "date" | "time" | "month" | "week" | "datetime-local")
}

fn has_text(kind: &str) -> bool {
    !matches!(kind, "hidden" | "checkbox" | "radio" | "password" | "image" | "file" | "range" | "color")
}

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

struct Sink<'a, 's> {
    emit: RefCell<&'a mut dyn FnMut(Piece<'_>)>,
    /// The names of elements that are ignored.
    skipped: &'a [LocalName],
    /// The open element whose text is no content. Such elements contain only text, so they do not nest.
    ignored: RefCell<Option<LocalName>>,
    /// The open elements, which decide how text is shown.
    elements: &'a RefCell<Elements<'s>>,
    /// Text since the last tag. The tokenizer passes it in pieces, one for each character reference, but words must be passed on whole.
    text: RefCell<String>,
    line: RefCell<Line>,
    /// Bytes since the last token that may have ended an attribute, including those of that token's piece.
    separators: Cell<usize>,
    last_is_comment: Cell<bool>,
}

impl<'a, 's> Sink<'a, 's> {
    fn new(
        skipped: &'a [LocalName],
        elements: &'a RefCell<Elements<'s>>,
        emit: &'a mut dyn FnMut(Piece<'_>),
    ) -> Self {
        Self {
            emit: RefCell::new(emit),
            skipped,
            ignored: RefCell::new(None),
            elements,
            text: RefCell::default(),
            line: RefCell::default(),
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
            let mut elements = self.elements.borrow_mut();
            if !text.trim_ascii().is_empty() {
                elements.begin_body();
            }
            elements.fill();
            let visibility = elements.visibility();
            let shown = if visibility == Visibility::Hidden { text.len() } else { elements.fit(&text) };
            let (seen, cut) = text.split_at(shown);
            if matches!(visibility, Visibility::Shown) {
                elements.shown(seen);
            }
            let is_reversed = elements.is_reversed();
            let mut line = self.line.borrow_mut();
            line.read(seen, visibility, is_reversed, *self.emit.borrow_mut());
            line.read(cut, Visibility::Hidden, is_reversed, *self.emit.borrow_mut());
            text.clear();
        }
    }

    /// Passes on text of style sheets, which may look unlike that around it. Hidden text of this kind is left out.
    fn insert(&self, text: &str, visibility: Visibility) {
        let (around, is_reversed) = {
            let elements = self.elements.borrow();
            (elements.visibility(), elements.is_reversed())
        };
        if visibility == around {
            self.text.borrow_mut().push_str(text);
        } else if visibility != Visibility::Hidden {
            self.end_text();
            self.line.borrow_mut().read(text, visibility, is_reversed, *self.emit.borrow_mut());
        }
    }

    /// Ends the last text.
    fn end(&self) {
        self.end_text();
        self.line.borrow_mut().end(*self.emit.borrow_mut());
    }

    /// Passes on the edges of boxes that a tag began or ended.
    fn show_boxes(&self) {
        let (mut elements, mut emit) = (self.elements.borrow_mut(), self.emit.borrow_mut());
        let mut line = self.line.borrow_mut();
        let edge = elements.take_edge();
        if edge == Edge::Shown {
            line.end(*emit);
        } else if !elements.is_reversed() {
            line.end_reversed(*emit);
        }
        elements.show_boxes(*emit);
        match edge {
            Edge::Shown => emit(Piece::Break),
            Edge::Hidden => emit(Piece::Hidden("\n")),
            Edge::None => (),
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
        (self.emit.borrow_mut())(Piece::Start { name: &tag.name, link });
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
                (self.emit.borrow_mut())(Piece::Target(target));
            }
        }
    }

    fn picture(&self, tag: &Tag) {
        let value = |name: LocalName| tag.attrs.iter().find(|a| a.name.local == name).map(|a| a.value.trim());
        if tag.name != local_name!("img") || !self.elements.borrow().shows_picture() {
            return;
        }
        if let Some(source) = value(local_name!("src")).filter(|source| !source.is_empty()) {
            let pixels = |text: &str| text.strip_suffix("px").unwrap_or(text).trim_end().parse().ok();
            let size = [local_name!("width"), local_name!("height")].map(|name| value(name).and_then(pixels));
            (self.emit.borrow_mut())(Piece::Picture { source, size: size.into() });
        }
    }

    /// Text in attributes that a reader sees: values of fields and buttons, and alternative texts of pictures that mail programs do not
    /// show at once. They show one that is enclosed.
    fn attribute_text(&self, tag: &Tag) {
        let is_field = tag.name == local_name!("input");
        if !is_field && tag.name != local_name!("img") {
            return;
        }
        let value = |name: LocalName| tag.attrs.iter().find(|a| a.name.local == name).map(|a| a.value.trim());
        let kind = value(local_name!("type")).unwrap_or("").to_ascii_lowercase();
        if tag.name == local_name!("img") || is_field && kind == "image" {
            let alt = value(local_name!("alt")).filter(|alt| !alt.is_empty());
            let is_enclosed = begins(value(local_name!("src")).unwrap_or(""), "cid:");
            if let Some(alt) = alt.filter(|_| !is_enclosed) {
                let is_label = alt.split_whitespace().nth(LABEL).is_none();
                self.elements.borrow_mut().keep_alternative(alt, is_label);
            }
        } else if is_field {
            let written = value(local_name!("value")).filter(|value| shows_value(&kind, value));
            let text =
                written.or_else(|| value(local_name!("placeholder")).filter(|_| has_placeholder(&kind)));
            text.filter(|text| !text.is_empty()).into_iter().for_each(|text| self.field(text));
        }
    }

    /// The text in a field, which is a line of its own.
    fn field(&self, text: &str) {
        let mut elements = self.elements.borrow_mut();
        let visibility = elements.own_visibility();
        if matches!(visibility, Visibility::Shown) {
            elements.shown(text);
        }
        let emit = &mut *self.emit.borrow_mut();
        emit(visibility.piece(&in_reading_order(text)));
        emit(if matches!(visibility, Visibility::Hidden) { Piece::Hidden("\n") } else { Piece::Break });
    }

    /// How the tokenizer must continue after the start tag of `name`, as the tree builder of the HTML standard decides.
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

    fn is_ignored(name: &LocalName) -> bool {
        matches!(*name, local_name!("script") | local_name!("style") | local_name!("title"))
    }
}

impl Tokens for Sink<'_, '_> {
    fn characters(&self, text: &str) {
        if self.ignored.borrow().is_none() {
            self.text.borrow_mut().push_str(text);
        }
    }

    fn tag(&self, tag: Tag) {
        let _ = self.process_token(Token::TagToken(tag), 0);
    }

    fn content_of(&self, name: &LocalName) -> TokenSinkResult<()> {
        if self.skipped.contains(name) || self.elements.borrow().foreign().is_some() {
            return TokenSinkResult::Continue;
        }
        Self::content_of(name)
    }

    fn has_sections(&self) -> bool {
        self.elements.borrow().has_sections()
    }
}

impl TokenSink for Sink<'_, '_> {
    type Handle = ();

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.has_sections()
    }

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        // Errors are no tokens of text: a tag with many attributes may have as many errors.
        if let Token::ParseError(_) | Token::EOFToken = token {
            return TokenSinkResult::Continue;
        }
        self.separators.set(0);
        self.last_is_comment.set(matches!(token, Token::CommentToken(_)));
        match token {
            Token::CharacterTokens(text) if self.ignored.borrow().is_none() => {
                self.text.borrow_mut().push_str(&text);
            }
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                self.end_text();
                let foreign = self.elements.borrow().foreign().cloned();
                self.elements.borrow_mut().open(&tag);
                self.show_boxes();
                self.start(&tag);
                self.targets(&tag);
                self.picture(&tag);
                self.attribute_text(&tag);
                let text = self.elements.borrow_mut().before();
                text.into_iter().for_each(|(text, visibility)| self.insert(&text, visibility));
                if self.skipped.contains(&tag.name) {
                    return TokenSinkResult::Continue;
                }
                // In drawings and formulas these hold elements like others, and only drawings leave their text out.
                let is_ignored = Self::is_ignored(&tag.name)
                    && foreign.as_ref().is_none_or(|root| *root == local_name!("svg") && !tag.self_closing);
                *self.ignored.borrow_mut() = is_ignored.then(|| tag.name.clone());
                return if foreign.is_some() {
                    TokenSinkResult::Continue
                } else {
                    Self::content_of(&tag.name)
                };
            }
            Token::TagToken(tag) => {
                let text = self.elements.borrow_mut().after(&tag.name);
                text.into_iter().for_each(|(text, visibility)| self.insert(&text, visibility));
                self.end_text();
                self.elements.borrow_mut().close(&tag.name);
                self.show_boxes();
                (self.emit.borrow_mut())(Piece::End(&tag.name));
                *self.ignored.borrow_mut() = None;
            }
            _ => (),
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests;
