// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of an open element.

use crate::look::Look;
use crate::names::{is_cell, is_of_table, is_special, may_nest};
use crate::style::Node;
use html5ever::{LocalName, local_name};
use std::rc::Rc;

/// The edge of an element's box.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Edge {
    /// There is none, or words continue over it.
    #[default]
    None,
    /// It ends words of hidden text.
    Hidden,
    /// It ends words.
    Shown,
}

/// An open element.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: LocalName,
    pub(super) look: Look,
    pub(super) edge: Edge,
    /// Whether its first line ended.
    pub(super) is_past_line: bool,
    /// Whether it is one of details with a summary.
    pub(super) has_summary: bool,
    /// Whether it reorders its inner boxes.
    pub(super) lays_out: bool,
    /// `None` if no selector needs the context of an element.
    pub(super) node: Option<Rc<Node>>,
    /// The index of the innermost outer element with the same name.
    pub(super) outer_with_name: Option<usize>,
    /// The innermost of these elements, this one or outer ones.
    pub(super) inner: Innermost,
}

/// The indices of the innermost open elements of some kinds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Innermost {
    /// One that [may nest](may_nest).
    pub(super) container: Option<usize>,
    /// A block or a part of a table.
    pub(super) block: Option<usize>,
    /// A part of a table, and one that [holds text](is_cell).
    pub(super) part: Option<usize>,
    pub(super) cell: Option<usize>,
    pub(super) table: Option<usize>,
    /// A drawing or a formula.
    pub(super) foreign: Option<usize>,
}

impl Innermost {
    /// With an element opened at `at`.
    pub(super) fn with(self, name: &LocalName, at: usize) -> Self {
        let is_part = is_of_table(name);
        let of = |is: bool, outer| if is { Some(at) } else { outer };
        Self {
            container: of(may_nest(name), self.container),
            block: of(is_special(name), self.block),
            part: of(is_part, self.part),
            cell: of(is_part && is_cell(name), self.cell),
            table: of(*name == local_name!("table"), self.table),
            foreign: of(matches!(*name, local_name!("svg") | local_name!("math")), self.foreign),
        }
    }
}
