// SPDX-License-Identifier: GPL-3.0-or-later
//! The rules of style sheets that may hide text, kept by what they ask of an element.
//!
//! A rule that does not surely apply hides nothing, but shows what another one hides: what a reader may see is shown.

use super::cascade::{Cascade, Origin, Rank, Slot, Value, perhaps};
use super::declaration::{self, Declaration};
use super::find::style_elements;
use super::media::{self, Applies};
use super::selector::{self, Compound, Selector};
use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, StyleSheetParser,
};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::collections::HashMap;

/// Bytes of style sheets that are read of one page. Gmail reads 16 KiB, newsletters have up to 100. Of a page with more
/// none is read: what was not read might show what was hidden.
const MAX_BYTES: usize = 256 << 10;

/// Declarations that are kept, each for each selector of its rule.
const MAX_KEPT: usize = 1 << 16;

/// Levels of `@media` in one another.
const MAX_DEPTH: usize = 8;

/// Classes of an element that are looked up; one with more is not touched by a sheet. Real mail has up to ten.
const MAX_CLASSES: usize = 32;

/// Rules that ask for something besides their key, such as `p.x`; each is looked at for each element with the key.
const MAX_COMPOUNDS: usize = 8;

/// The rules that may hide or show text.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    ids: HashMap<String, Rules>,
    classes: HashMap<String, Rules>,
    kinds: HashMap<LocalName, Rules>,
    all: Rules,
    /// Declarations that were kept; 0 if there is nothing to look up.
    kept: usize,
    /// There was more than is read.
    is_over: bool,
}

/// What is said of elements with one key.
#[derive(Debug, Default)]
struct Rules {
    /// Of all of them. No more than there are slots.
    own: Vec<Found>,
    /// Of those that are something besides.
    compounds: Vec<(Compound, Vec<Found>)>,
}

/// A declaration of a rule.
type Found = (Slot, Rank, Value);

impl Rules {
    fn add(&mut self, found: Found) {
        match self.own.iter_mut().find(|there| there.0 == found.0) {
            Some(there) if there.1 <= found.1 => *there = found,
            Some(_) => (),
            None => self.own.push(found),
        }
    }

    fn add_compound(&mut self, compound: Compound, found: Vec<Found>) {
        if self.compounds.len() < MAX_COMPOUNDS {
            self.compounds.push((compound, found));
        } else {
            found
                .into_iter()
                .filter_map(|(s, r, v)| Some((s, r, perhaps(s, v)?)))
                .for_each(|found| self.add(found));
        }
    }

    fn apply(&self, element: &Compound, cascade: &mut Cascade) {
        let fitting = self.compounds.iter().filter(|(compound, _)| is_such(element, compound));
        let all = fitting.flat_map(|(_, found)| found).chain(&self.own);
        all.for_each(|&(slot, rank, value)| cascade.add(slot, rank, value));
    }
}

/// Whether an element is all that a compound asks for.
fn is_such(element: &Compound, asked: &Compound) -> bool {
    asked.kind.as_ref().is_none_or(|kind| element.kind.as_ref() == Some(kind))
        && asked.id.as_ref().is_none_or(|id| element.id.as_ref() == Some(id))
        && asked.classes.iter().all(|class| element.classes.contains(class))
}

impl Sheet {
    /// Reads the style sheets in a page, wherever they stand.
    pub(crate) fn of(html: &str) -> Self {
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        style_elements(html, &mut |css, media| {
            bytes += css.len();
            if bytes <= MAX_BYTES {
                found.push((css, media::applies(media)));
            }
        });
        let mut sheet = Self { is_over: bytes > MAX_BYTES, ..Self::default() };
        if !sheet.is_over {
            let mut order = 0;
            for (css, applies) in found {
                let mut reader = Reader { sheet: &mut sheet, applies, depth: 0, order: &mut order };
                StyleSheetParser::new(&mut Parser::new(css), &mut reader).for_each(drop);
            }
        }
        if sheet.is_over { Self::default() } else { sheet }
    }

    /// Adds what is said of an element, and tells whether there is anything.
    pub(super) fn apply(&self, tag: &Tag, cascade: &mut Cascade) -> bool {
        if self.kept == 0 {
            return false;
        }
        let value = |name| tag.attrs.iter().find(|a| a.name.local == name).map(|a| &*a.value);
        let names = value(local_name!("class")).unwrap_or("").split_ascii_whitespace();
        let classes: Vec<String> = names.take(MAX_CLASSES + 1).map(str::to_owned).collect();
        if classes.len() > MAX_CLASSES {
            return false;
        }
        let id = value(local_name!("id")).map(|id| id.trim().to_owned());
        let element = Compound { kind: Some(tag.name.clone()), id, classes };
        let by_id = element.id.as_ref().and_then(|id| self.ids.get(id));
        let by_class = element.classes.iter().filter_map(|class| self.classes.get(class));
        let all = by_class.chain(by_id).chain(self.kinds.get(&tag.name)).chain([&self.all]);
        all.for_each(|rules| rules.apply(&element, cascade));
        true
    }

    /// Adds what a rule says of what one of its selectors fits.
    fn add(&mut self, selector: Selector, found: &[Found]) {
        let of_selector = |&(slot, rank, value): &Found| {
            let value = if selector.is_simple { Some(value) } else { perhaps(slot, value) };
            Some((slot, Rank { specificity: selector.specificity, ..rank }, value?))
        };
        let found: Vec<_> = found.iter().filter_map(of_selector).collect();
        self.kept += found.len();
        self.is_over |= self.kept > MAX_KEPT;
        if found.is_empty() || self.is_over {
            return;
        }
        let Compound { kind, id, mut classes } = selector.compound;
        let is_compound = usize::from(kind.is_some()) + usize::from(id.is_some()) + classes.len() > 1;
        let rest = |kind, id, classes| Compound { kind, id, classes };
        let (rules, rest) = match (kind, id, classes.pop()) {
            (kind, Some(id), class) => {
                classes.extend(class);
                (self.ids.entry(id).or_default(), rest(kind, None, classes))
            }
            (kind, None, Some(class)) => (self.classes.entry(class).or_default(), rest(kind, None, classes)),
            (Some(kind), None, None) => (self.kinds.entry(kind).or_default(), Compound::default()),
            (None, None, None) => (&mut self.all, Compound::default()),
        };
        if is_compound {
            rules.add_compound(rest, found);
        } else {
            found.into_iter().for_each(|found| rules.add(found));
        }
    }
}

/// Reads rules, and those within `@media` and its like.
struct Reader<'a> {
    sheet: &'a mut Sheet,
    applies: Applies,
    depth: usize,
    order: &'a mut u32,
}

impl<'i> QualifiedRuleParser<'i> for Reader<'_> {
    type Prelude = Vec<Selector>;
    type QualifiedRule = ();
    type Error = ();

    fn parse_prelude(&mut self, input: &mut Parser<'i>) -> Result<Vec<Selector>, ParseError<()>> {
        selector::list(input).ok_or_else(|| ParseError::custom(()))
    }

    fn parse_block(
        &mut self,
        selectors: Vec<Selector>,
        _start: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        if self.applies == Applies::No {
            return Ok(());
        }
        let order = *self.order;
        *self.order += 1;
        let mut found = Rules::default();
        let is_plain = declaration::of_block(input, &mut |Declaration { slot, value, is_important }| {
            found.add((slot, Rank { is_important, origin: Origin::Sheet, specificity: 0, order }, value));
        });
        let is_sure = self.applies == Applies::Yes && is_plain;
        let sure = |&(slot, rank, value): &Found| {
            Some((slot, rank, if is_sure { value } else { perhaps(slot, value)? }))
        };
        let found: Vec<_> = found.own.iter().filter_map(sure).collect();
        selectors.into_iter().for_each(|selector| self.sheet.add(selector, &found));
        Ok(())
    }
}

impl<'i> AtRuleParser<'i> for Reader<'_> {
    type Prelude = Applies;
    type AtRule = ();
    type Error = ();

    fn parse_prelude(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
    ) -> Result<Applies, ParseError<()>> {
        let start = input.position();
        while input.next().is_ok() {}
        let is = |rule: &str| name.eq_ignore_ascii_case(rule);
        if is("media") {
            Ok(media::applies(input.slice_from(start)))
        } else if is("supports") || is("layer") || is("container") || is("scope") {
            Ok(Applies::Perhaps)
        } else {
            Err(ParseError::custom(()))
        }
    }

    fn rule_without_block(&mut self, _prelude: Applies, _start: &ParserState) -> Result<(), ()> {
        Ok(())
    }

    fn parse_block(
        &mut self,
        applies: Applies,
        _start: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        let applies = applies.min(self.applies);
        if applies > Applies::No && self.depth < MAX_DEPTH {
            let (sheet, order) = (&mut *self.sheet, &mut *self.order);
            let mut inner = Reader { sheet, applies, depth: self.depth + 1, order };
            RuleBodyParser::new(input, &mut inner).for_each(drop);
        } else if applies > Applies::No {
            // What is not read might show what was hidden.
            self.sheet.is_over = true;
        }
        Ok(())
    }
}

/// There are none outside of rules.
impl DeclarationParser<'_> for Reader<'_> {
    type Declaration = ();
    type Error = ();
}

impl RuleBodyItemParser<'_, (), ()> for Reader<'_> {
    fn parse_declarations(&self) -> bool {
        false
    }

    fn parse_qualified(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Piece, pieces};

    /// What is seen of a page with one word `x`.
    fn shows(css: &str, body: &str) -> bool {
        let mut all = String::new();
        pieces(&format!("<style>{css}</style>{body}"), &mut |piece| {
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
    fn what_does_not_surely_apply_hides_nothing() {
        for css in [
            "",
            ".z{display:none}",
            ".A{display:none}",
            "p .a{display:none}",
            "p>.a, .a:hover, .a[x]{display:none}",
            ".a::before, .a:after{display:none}",
            "@media print{.a{display:none}}",
            "@media only screen and (max-width:600px){.a{display:none}}",
            "@media (prefers-color-scheme:dark){.a{display:none}}",
            "@supports (display:grid){.a{display:none}}",
            "@keyframes a{.a{display:none}}",
            ".a{;\"display:none\"}",
            ".a{content:';display:none'}",
            ".a{font-family:x(;display:none)}",
            ".a{display:none} body .a{display:block}",
            ".a{display:none} @media (orientation:landscape){.a{display:block}}",
            ".a{display:none; &.b{display:block}}",
            ".z, {} , .a{display:none}",
            ".a..b, .a{display:none}",
            ".a{color:#fff} table .a{background:#003}",
            ".a{color:#fff} div{background:url(x)}",
            ".a{color:#fff;background-image:linear-gradient(#000,#111)}",
        ] {
            assert!(shows(css, X), "{css}");
        }
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

    /// More than is read: none of it, as what was left out might show what the rest hides.
    #[test]
    fn what_is_over_a_bound_hides_nothing() {
        let hidden = ".a{display:none}";
        assert!(!shows(&format!("{hidden}{}", ".z{top:1px}".repeat(100)), X));
        assert!(shows(&format!("{hidden}{}", "p{}".repeat(100_000)), X));
        let deep = |depth| format!("{}{hidden}", "@media all{".repeat(depth));
        assert!(!shows(&deep(8), X) && shows(&deep(9), X));
        let many = |n| (0..n).fold(String::new(), |all, i| format!("{all}.b{i}.a{{top:0}}"));
        assert!(!shows(&format!("{}.b.a{{display:none}}", many(5)), X));
        assert!(shows(&format!("{}.b.a{{display:none}}", many(10)), X));
        let classes = "a ".repeat(40);
        assert!(shows(hidden, &format!("<div class='{classes}'>x</div>")));
    }
}
