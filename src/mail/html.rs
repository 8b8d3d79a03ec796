// SPDX-License-Identifier: GPL-3.0-or-later
//! The visible text of HTML, and where its links lead.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::{LocalName, local_name};
use std::cell::{Cell, RefCell};

/// A piece of what a reader of an HTML part sees or follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible<'a> {
    /// Characters, with references such as `&amp;` resolved. A word may come in several pieces.
    Text(&'a str),
    /// The target of a link, form or remote picture.
    Target(&'a str),
}

/// Shows the visible text and the link targets of `html`, in order.
///
/// Tokenised by the rules of browsers, since that is how readers see it. Comments, scripts, styles and the title are
/// left out, and so are `cid:` and `mid:` targets: they name other parts by a label that differs in each copy.
pub fn visible(html: &str, see: &mut dyn FnMut(Visible<'_>)) {
    let sink = Sink { see: RefCell::new(see), hidden: Cell::new(false) };
    let tokenizer = Tokenizer::new(sink, html5ever::tokenizer::TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The sink never asks to stop at a script, so one feed takes all of it.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
}

struct Sink<'a> {
    see: RefCell<&'a mut dyn FnMut(Visible<'_>)>,
    /// Inside an element whose text is not shown. Such elements hold only text, so they do not nest.
    hidden: Cell<bool>,
}

impl Sink<'_> {
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
                (self.see.borrow_mut())(Visible::Target(target));
            }
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

    fn is_hidden(name: &LocalName) -> bool {
        matches!(*name, local_name!("script") | local_name!("style") | local_name!("title"))
    }
}

impl TokenSink for Sink<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if !self.hidden.get() => {
                (self.see.borrow_mut())(Visible::Text(&text));
            }
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                self.targets(&tag);
                self.hidden.set(Self::is_hidden(&tag.name));
                return Self::content_of(&tag.name);
            }
            Token::TagToken(_) => self.hidden.set(false),
            _ => (),
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(html: &str) -> String {
        let mut all = String::new();
        visible(html, &mut |piece| match piece {
            Visible::Text(text) => all.push_str(text),
            Visible::Target(target) => all.push_str(&format!("[{target}]")),
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

    #[test]
    fn link_targets() {
        assert_eq!(
            seen("<A HREF=' http://a.example/?x=1&amp;y=2 '>here</a>"),
            "[http://a.example/?x=1&y=2]here"
        );
        assert_eq!(seen("<img src=\"cid:1@x\"><img src=http://b.example/i.png>"), "[http://b.example/i.png]");
    }
}
