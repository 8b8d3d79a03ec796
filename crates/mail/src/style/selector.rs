// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads selectors (Selectors Level 4) from style sheets.

use super::attribute::Attribute;
use super::compound::{Among, Combinator, MAX_CLASSES, MAX_OTHERS, MAX_OUTER, Pseudo, Selector, Simple};
use cssparser::{Delimiter, ParseError, Parser, Token, parse_nth};
use html5ever::LocalName;

/// Levels of `:not()` and the like.
const MAX_DEPTH: usize = 3;

/// Weights of specificity (Selectors Level 4, 17), with enough bits for mail.
const ID: u32 = 1 << 16;
const CLASS: u32 = 1 << 8;
const TYPE: u32 = 1;

/// Reads a list of selectors; in a nested rule they may begin with a combinator. Selectors of pseudo-elements other than `::before` and
/// `::after` are dropped, since these contain only text of the element itself.
///
/// Returns `None` if it is not a list of selectors; its rule is invalid then.
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
    /// Nothing of the compound was read yet; nothing of the whole selector.
    is_empty: bool,
    is_all_empty: bool,
    /// The blanks or combinator before the next compound, if one follows.
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
            // Only a nested rule may begin with a combinator.
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
                    self.element(&name)?;
                }
                _ => return None,
            },
            Token::Ident(name) => {
                let name = name.to_ascii_lowercase();
                // Those that may be written with a single colon.
                if matches!(&*name, "before" | "after" | "first-line" | "first-letter") {
                    self.element(&name)?;
                } else {
                    self.selector.specificity = self.selector.specificity.saturating_add(CLASS);
                    of_name(&name)?.into_iter().for_each(|simple| self.other(simple));
                }
            }
            Token::Function(name) => return self.function(&name.to_ascii_lowercase(), input),
            _ => return None,
        }
        Some(())
    }

    /// A pseudo-element; `None` if not all browsers know it, and those that do not leave the rule out.
    fn element(&mut self, name: &str) -> Option<()> {
        const OTHERS: [&str; 13] = [
            "first-line",
            "first-letter",
            "selection",
            "marker",
            "placeholder",
            "backdrop",
            "cue",
            "file-selector-button",
            "target-text",
            "highlight",
            "part",
            "slotted",
            "details-content",
        ];
        match name {
            "before" => self.selector.pseudo = Some(Pseudo::Before),
            "after" => self.selector.pseudo = Some(Pseudo::After),
            _ if OTHERS.contains(&name) || name.starts_with("-webkit-") => self.is_of_other_pseudo = true,
            _ => return None,
        }
        Some(())
    }

    fn function(&mut self, name: &str, input: &mut Parser<'_>) -> Option<()> {
        let depth = self.depth + 1;
        let (simple, weight) = input
            .parse_nested_block(|input| {
                let read = if depth > MAX_DEPTH {
                    Some((Simple::Unknown, CLASS))
                } else {
                    function(name, input, depth)
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

/// A pseudo-class with arguments, and its specificity. `None` if they are invalid, or browsers do not know it.
fn function(name: &str, input: &mut Parser<'_>, depth: usize) -> Option<(Simple, u32)> {
    let weight = |all: &[Selector]| all.iter().map(|selector| selector.specificity).max().unwrap_or(0);
    Some(match name {
        "not" | "-webkit-any" | "-moz-any" | "matches" => {
            let all = list_at(input, false, depth)?;
            let weight = weight(&all);
            (if name == "not" { Simple::Not(all) } else { Simple::Any(all) }, weight)
        }
        // These drop invalid selectors, without invalidating the rule.
        "is" | "where" => {
            let all = forgiving(input, depth);
            let weight = if name == "is" { weight(&all) } else { 0 };
            (Simple::Any(all), weight)
        }
        "has" => {
            let all = list_at(input, true, depth)?;
            let weight = weight(&all);
            (Simple::Has(all), weight)
        }
        "nth-child" | "nth-last-child" | "nth-of-type" | "nth-last-of-type" => {
            let (a, b) = parse_nth(input).ok()?;
            let from_end = name.contains("last");
            let among = match input.next() {
                Err(_) if name.ends_with("type") => Among::Kind,
                Err(_) => Among::All,
                Ok(Token::Ident(word)) if word.eq_ignore_ascii_case("of") && name.ends_with("child") => {
                    Among::Such(list_at(input, false, depth)?)
                }
                Ok(_) => return None,
            };
            let weight = if let Among::Such(all) = &among { CLASS + weight(all) } else { CLASS };
            (Simple::Nth { a, b, among, from_end }, weight)
        }
        "lang"
        | "dir"
        | "state"
        | "host"
        | "host-context"
        | "nth-col"
        | "nth-last-col"
        | "current"
        | "active-view-transition-type"
        | "heading" => (Simple::Unknown, CLASS),
        _ if name.starts_with('-') => (Simple::Unknown, CLASS),
        _ => return None,
    })
}

/// The valid selectors of a list.
fn forgiving(input: &mut Parser<'_>, depth: usize) -> Vec<Selector> {
    let one =
        |input: &mut Parser<'_>| list_at(input, false, depth).ok_or_else(|| ParseError::<()>::custom(()));
    let mut all = Vec::new();
    loop {
        if let Ok(found) = input.parse_until_before(Delimiter::Comma, one) {
            all.extend(found);
        }
        if input.next().is_err() {
            return all;
        }
    }
}

/// A pseudo-class without arguments; `None` if browsers do not know it.
fn of_name(name: &str) -> Option<Vec<Simple>> {
    let nth = |among, from_end| Simple::Nth { a: 0, b: 1, among, from_end };
    let of = |among: Among| vec![nth(among.clone(), false), nth(among, true)];
    Some(vec![match name {
        "only-child" => return Some(of(Among::All)),
        "only-of-type" => return Some(of(Among::Kind)),
        "first-child" => nth(Among::All, false),
        "first-of-type" => nth(Among::Kind, false),
        "last-child" => nth(Among::All, true),
        "last-of-type" => nth(Among::Kind, true),
        "empty" => Simple::Empty,
        "link" | "any-link" => Simple::Attribute(Attribute::named("href")),
        "checked" => Simple::Attribute(Attribute::named("checked")),
        "disabled" => Simple::Attribute(Attribute::named("disabled")),
        "root" => Simple::Root,
        "hover" | "active" | "focus" | "focus-visible" | "focus-within" | "visited" | "target"
        | "fullscreen" | "modal" | "popover-open" => Simple::Never,
        "scope" => Simple::Root,
        "read-only" | "defined" => Simple::OfState(true),
        "enabled" | "read-write" | "placeholder-shown" | "default" | "indeterminate" | "valid"
        | "invalid" | "in-range" | "out-of-range" | "required" | "optional" | "user-valid"
        | "user-invalid" | "autofill" | "open" | "muted" | "paused" | "playing" | "picture-in-picture" => {
            Simple::OfState(false)
        }
        "blank" | "host" | "first" | "left" | "right" | "current" | "past" | "future" | "heading" => {
            Simple::Unknown
        }
        _ if name.starts_with('-') => Simple::Unknown,
        _ => return None,
    }])
}

#[cfg(test)]
mod tests {
    use super::super::compound::Compound;
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
            (&".a".repeat(17), &[&*format!("?{} 1100", ".a".repeat(16))]),
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
    fn invalid_lists_are_rejected() {
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
