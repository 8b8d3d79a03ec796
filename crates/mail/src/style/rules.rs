// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads style sheets: rules, nested rules, and rules within `@media` and the like.

use super::cascade::{Cascade, Found, Origin, Rank, perhaps};
use super::compound::Selector;
use super::declaration::{self, Declaration};
use super::find::style_elements;
use super::generated::{Generated, content};
use super::keyframes;
use super::media::{self, Applies};
use super::selector;
use super::sheet::{Rules, Sheet};
use super::supports::supports;
use super::vars::{Scope, Vars};
use super::work::Left;
use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, StyleSheetParser,
};
use std::rc::Rc;

/// Bytes of style sheets that are read of one page. Gmail reads 16 KiB, newsletters have up to 100. If a page has more, none is read: the
/// unread rest might show text that the read part hides.
const MAX_BYTES: usize = 256 << 10;

/// Levels of nested rules.
const MAX_DEPTH: usize = 8;

impl Sheet {
    /// Reads all style sheets of a page, which may do so much work.
    pub(crate) fn of(html: &str, work: Left) -> Self {
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        style_elements(html, &mut |css, media| {
            bytes += css.len();
            if bytes <= MAX_BYTES {
                found.push((css, media::applies(media)));
            }
        });
        let mut vars = Vars::of(html);
        keyframes::add(html, &mut vars);
        let mut sheet = Self::new(vars, work);
        if bytes > MAX_BYTES {
            sheet.give_up();
            found.clear();
        }
        let mut order = 0;
        for (css, applies) in found {
            let context = Context { applies, origin: Origin::Sheet, depth: 0, selectors: Rc::default() };
            let mut reader =
                Reader { sheet: &mut sheet, context, order: &mut order, block: Block::default() };
            StyleSheetParser::new(&mut Parser::new(css), &mut reader).for_each(drop);
        }
        sheet.finish()
    }
}

/// The context of a rule.
#[derive(Debug, Clone)]
struct Context {
    applies: Applies,
    origin: Origin,
    depth: usize,
    /// Those of the outer rule; none outside of rules.
    selectors: Rc<[Selector]>,
}

/// The declarations of one block.
#[derive(Debug, Default)]
struct Block {
    found: Rules,
    /// The custom properties that it declares.
    own: Vec<String>,
    content: Option<String>,
    /// Whether it has unknown contents.
    has_unknown: bool,
}

struct Reader<'a> {
    sheet: &'a mut Sheet,
    context: Context,
    order: &'a mut u32,
    block: Block,
}

impl Reader<'_> {
    /// Reads the block of a rule.
    fn block(&mut self, context: Context, input: &mut Parser<'_>) {
        if context.applies == Applies::No || self.sheet.gave_up() {
            return;
        }
        if context.depth > MAX_DEPTH {
            self.sheet.give_up();
            return;
        }
        *self.order += 1;
        let mut block = Block::default();
        if self.sheet.vars().has_any() {
            let start = input.state();
            while input.next().is_ok() {}
            block.own = self.sheet.vars().declared_in(input.slice_from(start.position()));
            input.reset(&start);
        }
        let mut inner = Reader { sheet: self.sheet, context, order: self.order, block };
        let mut has_unknown = false;
        for item in RuleBodyParser::new(input, &mut inner) {
            // Rules that cannot be read.
            has_unknown |= item.is_err_and(|(_, text, _)| text.contains('{'));
        }
        inner.block.has_unknown = has_unknown;
        inner.finish();
    }

    fn finish(self) {
        let Self { sheet, context, block, order } = self;
        let is_sure = context.applies == Applies::Yes && !block.has_unknown;
        let sure = |&(slot, rank, value): &Found| {
            Some((slot, rank, if is_sure { value } else { perhaps(slot, value)? }))
        };
        let found: Vec<_> = block.found.own().iter().filter_map(sure).collect();
        let is_empty = found.is_empty() && block.content.is_none();
        // The sheet copies the selectors.
        if is_empty || !sheet.weigh(Selector::weight(&context.selectors)) {
            return;
        }
        let mut cascade = Cascade::default();
        found.iter().for_each(|&(slot, rank, value)| cascade.add(slot, rank, value));
        let cascade = Rc::new(cascade);
        for selector in context.selectors.iter() {
            match (selector.pseudo, &block.content) {
                (None, _) => sheet.add(selector, &found),
                (Some(_), Some(content)) if is_sure => {
                    let specificity = selector.specificity;
                    let rank =
                        Rank { is_important: false, origin: context.origin, specificity, order: *order };
                    sheet.add_generated(Generated::new(selector.clone(), content, Rc::clone(&cascade), rank));
                }
                _ => (),
            }
        }
    }

    fn rank(&self, is_important: bool) -> Rank {
        Rank { is_important, origin: self.context.origin, specificity: 0, order: *self.order }
    }
}

impl<'i> QualifiedRuleParser<'i> for Reader<'_> {
    type Prelude = Rc<[Selector]>;
    type QualifiedRule = ();
    type Error = ();

    fn parse_prelude(&mut self, input: &mut Parser<'i>) -> Result<Rc<[Selector]>, ParseError<()>> {
        let outer = Rc::clone(&self.context.selectors);
        let all = selector::list(input, !outer.is_empty()).ok_or_else(|| ParseError::custom(()))?;
        if outer.is_empty() {
            return Ok(all.into());
        }
        let [inner_weight, outer_weight] = [&all[..], &outer].map(Selector::weight);
        // Before they are copied.
        if !self.sheet.weigh(inner_weight.saturating_mul(outer.len()))
            || !self.sheet.weigh(outer_weight.saturating_mul(all.len()))
        {
            return Err(ParseError::custom(()));
        }
        let within = all.iter().flat_map(|inner| outer.iter().map(|outer| inner.clone().within(outer)));
        Ok(within.collect())
    }

    fn parse_block(
        &mut self,
        selectors: Rc<[Selector]>,
        _start: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        // If all selectors of a rule are dropped, its nested rules are, too.
        if !selectors.is_empty() {
            let depth = self.context.depth + usize::from(!self.context.selectors.is_empty());
            let context = Context { selectors, depth, ..self.context.clone() };
            self.block(context, input);
        }
        Ok(())
    }
}

impl<'i> AtRuleParser<'i> for Reader<'_> {
    type Prelude = (Applies, Origin);
    type AtRule = ();
    type Error = ();

    fn parse_prelude(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
    ) -> Result<(Applies, Origin), ParseError<()>> {
        let start = input.position();
        while input.next().is_ok() {}
        let is = |rule: &str| name.eq_ignore_ascii_case(rule);
        let origin = self.context.origin;
        if is("media") {
            Ok((media::applies(input.slice_from(start)), origin))
        } else if is("supports") {
            Ok((supports(input.slice_from(start)), origin))
        } else if is("layer") {
            Ok((Applies::Yes, Origin::Layer))
        } else if is("container") || is("scope") || is("-moz-document") {
            Ok((Applies::Perhaps, origin))
        } else {
            Err(ParseError::custom(()))
        }
    }

    fn rule_without_block(&mut self, _prelude: (Applies, Origin), _start: &ParserState) -> Result<(), ()> {
        Ok(())
    }

    fn parse_block(
        &mut self,
        (applies, origin): (Applies, Origin),
        _start: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        let context = &self.context;
        let (applies, depth) = (applies.min(context.applies), context.depth + 1);
        self.block(Context { applies, origin, depth, selectors: Rc::clone(&context.selectors) }, input);
        Ok(())
    }
}

impl<'i> DeclarationParser<'i> for Reader<'_> {
    type Declaration = ();
    type Error = ();

    fn parse_value(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
        _start: &ParserState,
    ) -> Result<(), ParseError<()>> {
        let (important, plain) = (self.rank(true), self.rank(false));
        let Block { found, own, content: text, .. } = &mut self.block;
        let scope = Scope { page: self.sheet.vars(), own };
        if name.eq_ignore_ascii_case("content") {
            if let Some(value) = content(input, scope) {
                *text = Some(value);
            }
            return Ok(());
        }
        declaration::of_value(&name, input, scope, &mut |Declaration { slot, value, is_important }| {
            found.add((slot, if is_important { important } else { plain }, value));
        });
        Ok(())
    }
}

impl RuleBodyItemParser<'_, (), ()> for Reader<'_> {
    fn parse_declarations(&self) -> bool {
        // There are none outside of rules.
        !self.context.selectors.is_empty()
    }

    fn parse_qualified(&self) -> bool {
        true
    }
}
