// SPDX-License-Identifier: GPL-3.0-or-later
//! Selectors (Selectors Level 4), read from style sheets.

use super::attribute::Attribute;
use super::tree::Needs;
use cssparser::{ParseError, Parser, Token, parse_nth};
use html5ever::LocalName;

/// Classes in one compound that are told apart, and all else that it asks for.
const MAX_CLASSES: usize = 4;
const MAX_OTHERS: usize = 8;

/// Compounds of one selector, and levels of `:not()` and its like.
const MAX_OUTER: usize = 12;
const MAX_DEPTH: usize = 3;

/// Weights of specificity (Selectors Level 4, 17), far enough from one another for what mail has.
const ID: u32 = 1 << 16;
const CLASS: u32 = 1 << 8;
const TYPE: u32 = 1;

/// What an element must be.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Compound {
    pub(super) kind: Option<LocalName>,
    pub(super) id: Option<String>,
    pub(super) classes: Vec<String>,
    pub(super) others: Vec<Simple>,
}

/// What an element must be besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Simple {
    Attribute(Attribute),
    /// Its number, in all or among those of its name, is `a * n + b` for some `n`.
    Nth {
        a: i32,
        b: i32,
        of_kind: bool,
    },
    Not(Vec<Selector>),
    Any(Vec<Selector>),
    /// The outermost element.
    Root,
    /// Something that no element is while a message is read: under the mouse, visited.
    Never,
    /// Something that is not known here.
    Unknown,
}

/// How an element stands to the one that the next compound fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combinator {
    Inside,
    Child,
    Next,
    Later,
}

/// Text that a rule puts before or behind that of the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pseudo {
    Before,
    After,
}

/// One selector of a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) compound: Compound,
    /// What stands left of it, the nearest first.
    pub(super) outer: Vec<(Combinator, Compound)>,
    pub(super) specificity: u32,
    /// There was more of it than is kept.
    pub(super) is_cut: bool,
    pub(super) pseudo: Option<Pseudo>,
    /// Its first compound is the element of the rule around it (`&`); otherwise, in a rule, it stands so to that.
    joins: bool,
    leading: Option<Combinator>,
}

impl Selector {
    /// Whether an element by itself tells whether it fits.
    pub(super) const fn is_of_one(&self) -> bool {
        self.outer.is_empty()
    }

    /// What it asks for.
    pub(super) fn needs(&self) -> Needs {
        let compounds = self.outer.iter().map(|(_, compound)| compound).chain([&self.compound]);
        let others = || compounds.clone().flat_map(|compound| &compound.others);
        let asks = |simple: &Simple| matches!(simple, Simple::Attribute(_) | Simple::Not(_) | Simple::Any(_));
        let has_inner = others().any(|simple| matches!(simple, Simple::Not(_) | Simple::Any(_)));
        Needs {
            anything: !self.outer.is_empty() || others().next().is_some(),
            attributes: others().any(asks),
            siblings: has_inner
                || self
                    .outer
                    .iter()
                    .any(|(combinator, _)| matches!(combinator, Combinator::Next | Combinator::Later)),
        }
    }

    /// What it is within a rule with the selector `parent` (CSS Nesting Module, 3).
    pub(super) fn within(mut self, parent: &Self) -> Self {
        self.specificity = self.specificity.saturating_add(parent.specificity);
        self.is_cut |= parent.is_cut;
        if self.joins {
            let first = self.outer.last_mut().map_or(&mut self.compound, |(_, compound)| compound);
            self.is_cut |= !first.join(&parent.compound);
        } else {
            self.outer.push((self.leading.unwrap_or(Combinator::Inside), parent.compound.clone()));
        }
        self.outer.extend(parent.outer.iter().cloned());
        self.is_cut |= self.outer.len() > MAX_OUTER;
        self.outer.truncate(MAX_OUTER);
        self
    }
}

impl Compound {
    /// Whether it asks for nothing.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Asks for all that another one asks for, too; false where it cannot.
    fn join(&mut self, other: &Self) -> bool {
        let is_one = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        let fits = is_one(&self.id, &other.id)
            && (self.kind.is_none() || other.kind.is_none() || self.kind == other.kind);
        self.kind = self.kind.take().or_else(|| other.kind.clone());
        self.id = self.id.take().or_else(|| other.id.clone());
        self.classes.extend(other.classes.iter().cloned());
        self.others.extend(other.others.iter().cloned());
        fits && self.classes.len() <= 2 * MAX_CLASSES && self.others.len() <= 2 * MAX_OTHERS
    }
}

/// Reads a list of selectors; within a rule they may begin with a combinator. Those of a pseudo-element other than `::before` and `::after`
/// are left out, as no text is in it that is not in the element.
///
/// `None` where it is not a list of selectors; its rule is then invalid.
pub(super) fn list(input: &mut Parser<'_>, is_nested: bool) -> Option<Vec<Selector>> {
    list_at(input, is_nested, 0)
}

fn list_at(input: &mut Parser<'_>, is_nested: bool, depth: usize) -> Option<Vec<Selector>> {
    let mut all = Vec::new();
    let mut reader = Reader::new(is_nested, depth);
    while let Ok(token) = input.next_including_whitespace() {
        if matches!(token, Token::Comma) {
            all.extend(std::mem::replace(&mut reader, Reader::new(is_nested, depth)).finish()?);
        } else {
            let token = token.clone();
            reader.token(&token, input)?;
        }
    }
    all.extend(reader.finish()?);
    Some(all)
}

struct Reader {
    selector: Selector,
    /// Nothing of the compound was read yet; of the whole selector.
    is_empty: bool,
    is_all_empty: bool,
    /// Blanks or a combinator were read, which begin the next compound if one follows.
    apart: Option<Combinator>,
    is_of_other_pseudo: bool,
    is_nested: bool,
    depth: usize,
}

impl Reader {
    fn new(is_nested: bool, depth: usize) -> Self {
        Self {
            selector: Selector::default(),
            is_empty: true,
            is_all_empty: true,
            apart: None,
            is_of_other_pseudo: false,
            is_nested,
            depth,
        }
    }

    fn finish(self) -> Option<Option<Selector>> {
        // It must not end with a combinator.
        let is_open = self.is_empty || !matches!(self.apart, None | Some(Combinator::Inside));
        (!is_open).then(|| (!self.is_of_other_pseudo).then_some(self.selector))
    }

    fn token(&mut self, token: &Token<'_>, input: &mut Parser<'_>) -> Option<()> {
        let combinator = match token {
            Token::WhiteSpace(_) => {
                if !self.is_empty {
                    self.apart.get_or_insert(Combinator::Inside);
                }
                return Some(());
            }
            Token::Delim('>') => Some(Combinator::Child),
            Token::Delim('+') => Some(Combinator::Next),
            Token::Delim('~') => Some(Combinator::Later),
            _ => None,
        };
        if let Some(combinator) = combinator {
            return self.combine(combinator);
        }
        if let Some(combinator) = self.apart.take() {
            self.next_compound(combinator);
        }
        let is_first = std::mem::replace(&mut self.is_empty, false);
        self.is_all_empty = false;
        self.simple(token, input, is_first)
    }

    fn combine(&mut self, combinator: Combinator) -> Option<()> {
        if self.is_all_empty {
            // None at the beginning of a rule that stands by itself.
            return (self.is_nested && self.selector.leading.replace(combinator).is_none()).then_some(());
        }
        let is_second = !matches!(self.apart, None | Some(Combinator::Inside));
        self.apart = Some(combinator);
        (!is_second).then_some(())
    }

    fn simple(&mut self, token: &Token<'_>, input: &mut Parser<'_>, is_first: bool) -> Option<()> {
        let selector = &mut self.selector;
        let mut weigh = |weight: u32| selector.specificity = selector.specificity.saturating_add(weight);
        match token {
            Token::Delim('*') if is_first => (),
            Token::Delim('&') if is_first && selector.outer.is_empty() && self.is_nested => {
                selector.joins = true
            }
            Token::Delim('&') => selector.is_cut = true,
            Token::Ident(name) if is_first || selector.joins && selector.compound.is_empty() => {
                weigh(TYPE);
                selector.compound.kind = Some(LocalName::from(name.to_ascii_lowercase()));
            }
            Token::IDHash(name) => {
                weigh(ID);
                selector.is_cut |= selector.compound.id.is_some();
                selector.compound.id = Some((**name).to_owned());
            }
            Token::Delim('.') => {
                let Ok(Token::Ident(name)) = input.next_including_whitespace() else { return None };
                weigh(CLASS);
                if selector.compound.classes.len() < MAX_CLASSES {
                    selector.compound.classes.push((**name).to_owned());
                } else {
                    selector.is_cut = true;
                }
            }
            Token::SquareBracketBlock => {
                weigh(CLASS);
                let read = |input: &mut Parser<'_>| {
                    Attribute::read(input).ok_or_else(|| ParseError::<()>::custom(()))
                };
                self.other(Simple::Attribute(input.parse_nested_block(read).ok()?));
            }
            Token::Colon => return self.pseudo(input),
            _ => return None,
        }
        Some(())
    }

    fn other(&mut self, simple: Simple) {
        if self.selector.compound.others.len() < MAX_OTHERS {
            self.selector.compound.others.push(simple);
        } else {
            self.selector.is_cut = true;
        }
    }

    fn pseudo(&mut self, input: &mut Parser<'_>) -> Option<()> {
        let token = input.next_including_whitespace().ok()?.clone();
        match token {
            Token::Colon => match input.next_including_whitespace().ok()? {
                Token::Ident(name) | Token::Function(name) => {
                    let name = name.to_ascii_lowercase();
                    self.element(&name);
                }
                _ => return None,
            },
            Token::Ident(name) => {
                let name = name.to_ascii_lowercase();
                // Those that may be written with a single colon.
                if matches!(&*name, "before" | "after" | "first-line" | "first-letter") {
                    self.element(&name);
                } else {
                    self.selector.specificity = self.selector.specificity.saturating_add(CLASS);
                    self.other(of_name(&name));
                }
            }
            Token::Function(name) => return self.function(&name.to_ascii_lowercase(), input),
            _ => return None,
        }
        Some(())
    }

    fn element(&mut self, name: &str) {
        match name {
            "before" => self.selector.pseudo = Some(Pseudo::Before),
            "after" => self.selector.pseudo = Some(Pseudo::After),
            _ => self.is_of_other_pseudo = true,
        }
    }

    fn function(&mut self, name: &str, input: &mut Parser<'_>) -> Option<()> {
        let depth = self.depth + 1;
        let (simple, weight) = input
            .parse_nested_block(|input| {
                let read = match name {
                    "not" | "is" | "where" | "-webkit-any" | "-moz-any" | "matches" if depth <= MAX_DEPTH => {
                        list_at(input, false, depth).map(|all| {
                            let weight = all.iter().map(|s| s.specificity).max().unwrap_or(0);
                            let simple = if name == "not" { Simple::Not(all) } else { Simple::Any(all) };
                            (simple, if name == "where" { 0 } else { weight })
                        })
                    }
                    "nth-child" | "nth-of-type" => parse_nth(input).ok().map(|(a, b)| {
                        let simple = Simple::Nth { a, b, of_kind: name == "nth-of-type" };
                        (if input.is_exhausted() { simple } else { Simple::Unknown }, CLASS)
                    }),
                    _ => Some((Simple::Unknown, CLASS)),
                };
                while input.next().is_ok() {}
                read.ok_or_else(|| ParseError::<()>::custom(()))
            })
            .ok()?;
        self.selector.specificity = self.selector.specificity.saturating_add(weight);
        self.other(simple);
        Some(())
    }

    fn next_compound(&mut self, combinator: Combinator) {
        let compound = std::mem::take(&mut self.selector.compound);
        self.selector.outer.insert(0, (combinator, compound));
        if self.selector.outer.len() > MAX_OUTER {
            self.selector.is_cut = true;
            self.selector.outer.truncate(MAX_OUTER);
        }
        self.is_empty = true;
    }
}

/// A pseudo-class without arguments.
fn of_name(name: &str) -> Simple {
    let nth = |of_kind| Simple::Nth { a: 0, b: 1, of_kind };
    match name {
        "first-child" => nth(false),
        "first-of-type" => nth(true),
        "link" | "any-link" => Simple::Attribute(Attribute::named("href")),
        "checked" => Simple::Attribute(Attribute::named("checked")),
        "disabled" => Simple::Attribute(Attribute::named("disabled")),
        "root" => Simple::Root,
        "hover" | "active" | "focus" | "focus-visible" | "focus-within" | "visited" | "target"
        | "fullscreen" | "modal" => Simple::Never,
        _ => Simple::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<String>> {
        let of = |c: &Compound| {
            let kind = c.kind.as_ref().map(ToString::to_string).unwrap_or_default();
            let id = c.id.as_ref().map(|id| format!("#{id}")).unwrap_or_default();
            let classes: String = c.classes.iter().map(|class| format!(".{class}")).collect();
            format!("{kind}{id}{classes}{}", "+".repeat(c.others.len()))
        };
        let written = |s: Selector| {
            let outer: String =
                s.outer.iter().map(|(c, compound)| format!("{c:?} {} ", of(compound))).collect();
            let pseudo = s.pseudo.map(|p| format!("{p:?} ")).unwrap_or_default();
            format!(
                "{}{} {outer}{pseudo}{:x}",
                if s.is_cut { "?" } else { "" },
                of(&s.compound),
                s.specificity
            )
        };
        Some(list(&mut Parser::new(text), false)?.into_iter().map(written).collect())
    }

    #[test]
    fn selectors_are_read() {
        for (text, expected) in [
            ("P.x , #a", &["p.x 101", "#a 10000"][..]),
            ("*", &[" 0"]),
            ("*.x.y", &[".x.y 200"]),
            (".\\6b x", &[".kx 100"]),
            ("div > p.x", &["p.x Child div 102"]),
            ("a div\n+ p ~ b", &["b Later p Next div Inside a 4"]),
            (" p ", &["p 1"]),
            ("a:hover", &["a+ 101"]),
            ("td[width]", &["td+ 101"]),
            ("[a='b' i][c|=d]", &["++ 200"]),
            (".a.b.c.d.e", &["?.a.b.c.d 500"]),
            ("p::before, .x:after, b::selection", &["p Before 1", ".x After 100"]),
            ("p:not(.x, #y)", &["p+ 10001"]),
            (":where(.x) p:nth-child(2n + 1)", &["p+ Inside + 101"]),
        ] {
            let found = read(text);
            assert_eq!(
                found.as_deref(),
                Some(&expected.iter().map(|&s| s.to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_list_is_not_read() {
        for text in [
            "",
            ",",
            "p,",
            "> p",
            "p >",
            "p > > b",
            "p + ~ b",
            ". x",
            "#1",
            "p..x",
            "p*",
            ".x p.",
            "p:",
            "@x",
            "p{",
            "5",
            "[",
            "[]",
            "[a=]",
            "[a b]",
            ":not(",
            "p:not(..x)",
            ":nth-child(x)",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let deep = format!("{}a{}", ":not(".repeat(5000), ")".repeat(5000));
        assert!(read(&deep).is_some());
    }
}
