// SPDX-License-Identifier: GPL-3.0-or-later
//! The links of an HTML part that a reader can follow.

use super::found::Found;
use super::link::targets;
use bulkmark_mail::Piece;

/// Pixels of the side of a visible picture, at least.
const VISIBLE: u32 = 3;

/// Links that are read of a part; the few hundred kept contents have no room for more.
const MAX_LINKS: usize = 1024;

/// An HTML part.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The payload of the part itself, and of the messages that it quotes.
    found: Found,
    quoted: Found,
    /// The open link; it counts once something visible is in it.
    open: Option<String>,
    base: Option<String>,
    links: usize,
}

impl Page {
    /// Reads a piece of the part.
    pub(crate) fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Start { name, link } => self.start(name, link),
            Piece::End("a") => self.open = None,
            Piece::Text(text) | Piece::Swallowed(text) if !is_blank(text) => self.shown(false),
            Piece::Quoted(text) if !is_blank(text) => self.shown(true),
            Piece::Picture { size: (width, height), .. }
                if [width, height].iter().flatten().all(|side| *side >= VISIBLE) =>
            {
                self.shown(false);
            }
            _ => (),
        }
    }

    fn start(&mut self, name: &str, link: Option<&str>) {
        match name {
            "base" => self.base = self.base.take().or_else(|| link.map(str::to_owned)),
            "a" => self.open = link.filter(|_| self.links < MAX_LINKS).map(str::to_owned),
            // An area has no content, and a form encloses everything.
            "area" | "form" => {
                if let Some(link) = link.filter(|_| self.links < MAX_LINKS) {
                    self.links += 1;
                    targets(link, self.base.as_deref(), &mut |target| self.found.target(target));
                }
            }
            _ => (),
        }
    }

    /// Something visible appears, of this message or of one that it quotes.
    fn shown(&mut self, is_quoted: bool) {
        if let Some(link) = self.open.take() {
            self.links += 1;
            let found = if is_quoted { &mut self.quoted } else { &mut self.found };
            targets(&link, self.base.as_deref(), &mut |target| found.target(target));
        }
    }

    /// The payload of the part, and of the messages that it quotes. Resets the state.
    pub(crate) fn finish(&mut self) -> (Found, Found) {
        let Self { found, quoted, .. } = std::mem::take(self);
        (found, quoted)
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(crate::text::is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_mail::{Work, pieces};

    fn seen(html: &str) -> [Vec<String>; 2] {
        let mut page = Page::default();
        pieces(html, &Work::default(), &mut |piece| page.piece(piece));
        let (found, quoted) = page.finish();
        [found.contents(), quoted.contents()]
    }

    #[test]
    fn visible_links_count() {
        for html in [
            "<a href=http://a.example/x>here</a>",
            "<a href=http://a.example/x><b><font color=red>here",
            "<a href=http://a.example/x><img src=cid:1 width=200></a>",
            "<map><area href=http://a.example/x></map>",
            "<form action=http://a.example/x>",
            "<base href=http://a.example/y/><a href=/x>here</a>",
            "<title><a href=http://a.example/x>here is a text of some words",
        ] {
            assert_eq!(seen(html), [vec!["Site a.example/x".to_owned()], vec![]], "{html}");
        }
        for html in [
            "<a href=http://a.example/x></a>here",
            "<a href=http://a.example/x> &nbsp;&#8203; </a>",
            "<a href=http://a.example/x style='display:none'>here</a>",
            "<div style='display:none'><a href=http://a.example/x>here</a><form action=http://a.example/x></div>",
            "<a href=http://a.example/x style='color:#ffffff'>here</a>",
            "<a href=http://a.example/x><img src=http://b.example/p width=1 height=1></a>",
            "<img src=http://a.example/x alt='+1 212 555 0100'>",
            "<link href=http://a.example/x>",
        ] {
            assert_eq!(seen(html), [vec![], vec![]] as [Vec<String>; 2], "{html}");
        }
        let quoted = seen("<blockquote type=cite><a href=http://a.example/x>here</a></blockquote>");
        assert_eq!(quoted, [vec![], vec!["Site a.example/x".to_owned()]]);
    }

    #[test]
    fn many_links_are_bounded() {
        let html: String = (0..5000).map(|n| format!("<a href=http://a{n}.example>x</a>")).collect();
        assert_eq!(seen(&html)[0].len(), 64);
    }
}
