// SPDX-License-Identifier: GPL-3.0-or-later
//! The rules of style sheets that may hide text, indexed by a key of the element.
//!
//! A rule that may or may not apply hides nothing, but shows text that another one hides: possibly visible text is shown.

use super::cascade::{Cascade, Found, Rank, perhaps};
use super::compound::{Compound, Pseudo, Selector};
use super::generated::Generated;
use super::matching::{self, Budget, is_such};
use super::media::Applies;
use super::tree::{Needs, Node, Own};
use super::vars::Vars;
use html5ever::LocalName;
use html5ever::tokenizer::Tag;
use std::collections::HashMap;
use std::rc::Rc;

/// Declarations that are kept, counted for each selector of their rule.
const MAX_KEPT: usize = 1 << 16;

/// Rules with conditions besides their key, such as `p.x`; each is tested for each element with the key.
const MAX_COMPOUNDS: usize = 32;

/// Comparisons with elements for one page: a base, more for each byte of it, and a bound.
const BASE_BUDGET: usize = 1 << 16;
const BUDGET_PER_BYTE: usize = 8;
const MAX_BUDGET: usize = 1 << 21;

/// The rules that may hide or show text.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    ids: HashMap<String, Rules>,
    classes: HashMap<String, Rules>,
    kinds: HashMap<LocalName, Rules>,
    all: Rules,
    /// Number of declarations kept; 0 if there is nothing to look up.
    kept: usize,
    /// Whether there was more than is read.
    is_over: bool,
    needs: Needs,
    generated: Vec<Generated>,
    vars: Vars,
    budget: Budget,
}

/// The declarations for elements with one key.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Unconditional ones, at most one for each slot.
    own: Vec<Found>,
    /// Ones with further conditions.
    compounds: Vec<(Selector, Vec<Found>)>,
}

impl Rules {
    pub(super) fn add(&mut self, found: Found) {
        match self.own.iter_mut().find(|there| there.0 == found.0) {
            Some(there) if there.1 <= found.1 => *there = found,
            Some(_) => (),
            None => self.own.push(found),
        }
    }

    /// The unconditional declarations.
    pub(super) fn own(&self) -> &[Found] {
        &self.own
    }

    fn add_compound(&mut self, selector: Selector, found: Vec<Found>) {
        if self.compounds.len() < MAX_COMPOUNDS {
            self.compounds.push((selector, found));
        } else {
            found
                .into_iter()
                .filter_map(|(s, r, v)| Some((s, r, perhaps(s, v)?)))
                .for_each(|found| self.add(found));
        }
    }

    fn apply(&self, own: &Own, node: Option<&Node>, budget: &Budget, cascade: &mut Cascade) {
        for (selector, found) in &self.compounds {
            let applies = match node {
                _ if !is_such(own, &selector.compound) => Applies::No,
                Some(node) => matching::fits(selector, node, budget),
                None => Applies::Yes,
            };
            for &(slot, rank, value) in found {
                let value = match applies {
                    Applies::Yes => Some(value),
                    Applies::Perhaps => perhaps(slot, value),
                    Applies::No => None,
                };
                if let Some(value) = value {
                    cascade.add(slot, rank, value);
                }
            }
        }
        self.own.iter().for_each(|&(slot, rank, value)| cascade.add(slot, rank, value));
    }
}

impl Sheet {
    /// An empty sheet for a page with these custom properties and this many bytes.
    pub(super) fn new(vars: Vars, bytes: usize) -> Self {
        let comparisons = MAX_BUDGET.min(BASE_BUDGET + BUDGET_PER_BYTE * bytes);
        let budget = Budget::new(u32::try_from(comparisons).unwrap_or(u32::MAX));
        Self { vars, budget, ..Self::default() }
    }

    /// The sheet after all was read: without rules, if there were too many.
    pub(super) fn finish(mut self) -> Self {
        if self.is_over {
            return Self { vars: self.vars, ..Self::default() };
        }
        // Most pages only have rules without text, such as those that end floats.
        if self.generated.iter().all(Generated::is_empty) {
            self.generated.clear();
        }
        for generated in &self.generated {
            self.needs.add(generated.selector().needs());
            // The text may contain values of attributes.
            self.needs.anything = true;
            self.needs.attributes = true;
        }
        self
    }

    /// The custom properties and animations of the page.
    pub(super) const fn vars(&self) -> &Vars {
        &self.vars
    }

    /// The document that contains the elements, if rules need an element's context.
    pub(crate) fn document(&self) -> Option<Rc<Node>> {
        self.needs.anything.then(|| Node::root(self.needs))
    }

    /// Whether rules for elements depend on inner or later elements.
    pub(crate) const fn needs_lookahead(&self) -> bool {
        self.needs.following && self.kept > 0
    }

    /// Stores the elements of the page, in order, after it was read.
    pub(crate) fn keep_document(&self, nodes: Vec<Rc<Node>>) {
        // It is read once.
        let _ = self.budget.nodes().set(nodes);
    }

    /// An element of the page by its number, if it was read in advance.
    pub(crate) fn known(&self, number: usize) -> Option<&Rc<Node>> {
        self.budget.nodes().get()?.get(number)
    }

    /// Adds the declarations for an element; returns false if there are certainly none. `node` is the element if the sheet needs
    /// [more](Self::document) than its tag.
    pub(super) fn apply(&self, tag: &Tag, node: Option<&Node>, cascade: &mut Cascade) -> bool {
        if self.kept == 0 {
            return false;
        }
        let alone;
        let own = match node {
            Some(node) => &*node.own,
            None => {
                let Some(own) = Own::of(tag) else { return false };
                alone = own;
                &alone
            }
        };
        let by_id = own.id.as_deref().and_then(|id| self.ids.get(id));
        let by_class = own.classes().filter_map(|class| self.classes.get(class));
        let all = by_class.chain(by_id).chain(self.kinds.get(&tag.name)).chain([&self.all]);
        all.for_each(|rules| rules.apply(own, node, &self.budget, cascade));
        true
    }

    /// The text that rules insert before or behind that of an element, and the declarations for it.
    pub(crate) fn generated(&self, node: Option<&Node>, pseudo: Pseudo) -> Option<(String, &Cascade)> {
        let node = node.filter(|_| !self.generated.is_empty())?;
        let fitting = self.generated.iter().filter(|generated| {
            generated.is_for(pseudo)
                && matching::fits(generated.selector(), node, &self.budget) == Applies::Yes
        });
        let highest = fitting.max_by_key(|generated| generated.rank())?;
        (!highest.is_empty()).then(|| (highest.text(&node.own), highest.cascade()))
    }

    /// Adds the declarations of a rule for one of its selectors.
    pub(super) fn add(&mut self, selector: Selector, found: &[Found]) {
        let of_selector = |&(slot, rank, value): &Found| {
            let value = if selector.is_cut { perhaps(slot, value) } else { Some(value) };
            Some((slot, Rank { specificity: selector.specificity, ..rank }, value?))
        };
        let found: Vec<_> = found.iter().filter_map(of_selector).collect();
        self.keep(found.len());
        if found.is_empty() || self.is_over {
            return;
        }
        let Compound { kind, id, classes, others } = &selector.compound;
        let is_plain = selector.is_of_one() && others.is_empty();
        self.needs.add(selector.needs());
        let is_one = usize::from(kind.is_some()) + usize::from(id.is_some()) + classes.len() <= 1;
        let rules = match (kind, id, classes.last()) {
            (_, Some(id), _) => self.ids.entry(id.clone()).or_default(),
            (_, None, Some(class)) => self.classes.entry(class.clone()).or_default(),
            (Some(kind), None, None) => self.kinds.entry(kind.clone()).or_default(),
            (None, None, None) => &mut self.all,
        };
        if is_plain && is_one {
            found.into_iter().for_each(|found| rules.add(found));
        } else {
            rules.add_compound(selector, found);
        }
    }

    /// Adds a rule that inserts text, or keeps others from it.
    pub(super) fn add_generated(&mut self, generated: Generated) {
        let is_same = |there: &&Generated| there.is_empty() == generated.is_empty();
        if self.generated.iter().filter(is_same).count() < Generated::MAX {
            self.generated.push(generated);
        }
    }

    /// Whether any rule inserts text.
    pub(crate) const fn generates_text(&self) -> bool {
        !self.generated.is_empty()
    }

    /// Counts more declarations kept, or selectors made.
    pub(super) const fn keep(&mut self, more: usize) {
        self.kept = self.kept.saturating_add(more);
        self.is_over |= self.kept > MAX_KEPT;
    }

    /// Drops all rules, as there are more than are read: the unread rest might show text that others hide.
    pub(super) const fn give_up(&mut self) {
        self.is_over = true;
    }

    pub(super) const fn gave_up(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use crate::{Piece, pieces};
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
                pieces(&page, &mut |piece| {
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
        let classes = "a ".repeat(40);
        assert!(shows(hidden, &format!("<div class='{classes}'>x</div>")));
    }
}
