// SPDX-License-Identifier: GPL-3.0-or-later
//! The charset that HTML declares.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::{LocalName, local_name};
use std::cell::RefCell;

/// Bytes that are searched for the declaration, by the HTML standard (13.2.3.2).
const PRESCAN: usize = 1024;

/// The charset of the first `<meta>` that declares one.
pub(super) fn charset(html: &[u8]) -> Option<String> {
    // Tags are ASCII in any charset.
    let start: String = html.iter().take(PRESCAN).map(|&b| char::from(b)).collect();
    let tokenizer = Tokenizer::new(Metas::default(), html5ever::tokenizer::TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(&start));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let label = tokenizer.sink.0.take();
    // The tag was readable as ASCII, so the charset cannot be UTF-16.
    label.map(
        |label| if label.to_ascii_lowercase().starts_with("utf-16") { "utf-8".to_owned() } else { label },
    )
}

#[derive(Default)]
struct Metas(RefCell<Option<String>>);

impl TokenSink for Metas {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if let Token::TagToken(tag) = token
            && tag.kind == TagKind::StartTag
            && tag.name == local_name!("meta")
            && self.0.borrow().is_none()
        {
            *self.0.borrow_mut() = named_by(&tag);
        }
        TokenSinkResult::Continue
    }
}

/// `<meta charset=...>`, or `<meta http-equiv="Content-Type" content="text/html; charset=...">`.
fn named_by(tag: &Tag) -> Option<String> {
    let value = |name: LocalName| tag.attrs.iter().find(|a| a.name.local == name).map(|a| a.value.trim());
    if let Some(charset) = value(local_name!("charset")) {
        return Some(charset.to_owned());
    }
    value(local_name!("http-equiv")).filter(|v| v.eq_ignore_ascii_case("content-type"))?;
    in_content(value(local_name!("content"))?)
}

/// The charset in a content type.
fn in_content(content: &str) -> Option<String> {
    let lower = content.to_ascii_lowercase();
    let label =
        lower.split("charset").skip(1).find_map(|rest| rest.trim_start().strip_prefix('='))?.trim_start();
    let label = match label.chars().next()? {
        quote @ ('"' | '\'') => label[1..].split_once(quote)?.0,
        _ => label.split([';', ' ', '\t', '\r', '\n', '\x0c']).next()?,
    };
    Some(label.to_owned())
}
