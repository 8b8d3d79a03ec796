// SPDX-License-Identifier: GPL-3.0-or-later
//! Text that is not between tags: of style sheets, and alternative texts of pictures.

use super::open::Element;
use super::{Elements, MAX_GENERATED, empty_tag};
use crate::look::{Look, Visibility};
use crate::style::{Left, Node, Pseudo, Style};
use html5ever::{LocalName, local_name};
use std::rc::Rc;

impl Elements<'_> {
    /// Keeps the alternative text of the picture that just began.
    pub(crate) fn keep_alternative(&mut self, text: &str, is_label: bool) {
        if self.own_visibility() == Visibility::Shown {
            for all in self.alternatives.iter_mut().skip(usize::from(is_label)) {
                if all.len() + text.len() < MAX_GENERATED {
                    all.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
                    all.push('\n');
                }
            }
        }
    }

    /// Takes the alternative texts that are more than a label, and all.
    pub(crate) fn take_alternatives(&mut self) -> [String; 2] {
        std::mem::take(&mut self.alternatives)
    }

    /// Text that style sheets put at the beginning of the element that just began.
    pub(crate) fn before(&mut self) -> Option<(String, Visibility)> {
        let node = self.begun_node.take()?;
        self.generate(&node, self.begun?, Pseudo::Before)
    }

    /// Text that style sheets put at the end of the element that this end tag closes.
    pub(crate) fn after(&mut self, name: &LocalName) -> Option<(String, Visibility)> {
        if !self.sheet.generates_text() {
            return None;
        }
        let Element { node, look, .. } = self.open.get(*self.innermost.get(name)?)?;
        let (node, look) = (Rc::clone(node.as_ref()?), *look);
        self.generate(&node, look, Pseudo::After)
    }

    /// The work that the page leaves over.
    pub(crate) fn left(&self) -> Left {
        let inserted = self.sheet.inserts().min(MAX_GENERATED).saturating_sub(self.generated);
        let left = self.sheet.left();
        Left { inserted: left.inserted.saturating_sub(inserted), ..left }
    }

    fn generate(&mut self, node: &Node, look: Look, pseudo: Pseudo) -> Option<(String, Visibility)> {
        let (text, cascade) = self.sheet.generated(Some(node), pseudo)?;
        let style = Style::alone(cascade);
        self.generated = self.generated.checked_sub(text.len())?;
        let look = look.within(&style, &empty_tag(&local_name!("span")), false);
        Some((text, self.on_this_line(look).visibility()))
    }
}
