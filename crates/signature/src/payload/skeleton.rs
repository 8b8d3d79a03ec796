// SPDX-License-Identifier: GPL-3.0-or-later
//! The skeleton of an HTML part: its elements in order, without anything that is written in them. Two mailings from one template
//! have the same one, and so have those of everybody who uses that template: it says nothing alone.

use bulkmark_mail::Attributes;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// Elements of structure below which a page has no form of its own.
const MIN: usize = 12;

/// Elements that are read.
const MAX: usize = 4096;

/// Attributes of an element that are read, and bytes of their names.
const MAX_ATTRIBUTES: usize = 12;
const MAX_NAME: usize = 16;

/// The elements of structure. Those of phrases come and go with the text, and unknown ones are noise.
const STRUCTURE: [&str; 45] = [
    "a",
    "area",
    "article",
    "blockquote",
    "body",
    "button",
    "caption",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "html",
    "img",
    "input",
    "label",
    "li",
    "main",
    "map",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "select",
    "table",
    "tbody",
    "td",
    "textarea",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Elements with which a row begins.
const ROWS: [&str; 6] = ["div", "li", "option", "p", "table", "tr"];

/// The skeleton of what was read so far.
#[derive(Debug, Default)]
pub(super) struct Skeleton {
    digest: Sha256,
    /// The row that is open, and those that were taken in.
    row: String,
    rows: BTreeSet<String>,
    /// Elements in the rows that were taken in, in the open one, and all that were read.
    elements: usize,
    in_row: usize,
    read: usize,
}

/// What stands for a skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) digest: [u8; 32],
    /// Elements in it; those of equal rows count once.
    pub(super) elements: usize,
}

impl Skeleton {
    /// An element begins.
    pub(super) fn start(&mut self, name: &str, attributes: Attributes<'_>) {
        if self.read >= MAX || STRUCTURE.binary_search(&name).is_err() {
            return;
        }
        self.read += 1;
        if ROWS.contains(&name) {
            self.end_row();
        }
        self.in_row += 1;
        self.row.push_str(name);
        let is_plain = |name: &&str| name.len() <= MAX_NAME && name.bytes().all(|b| b.is_ascii_lowercase());
        let mut names: Vec<&str> = attributes.names().filter(is_plain).take(MAX_ATTRIBUTES).collect();
        names.sort_unstable();
        for name in names {
            self.row.push(' ');
            self.row.push_str(name);
        }
        self.row.push('\n');
    }

    /// Rows like an earlier one leave no trace: of them there are as many as there are articles or paragraphs.
    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !self.rows.contains(&row) {
            self.digest.update(&row);
            self.elements += self.in_row;
            self.rows.insert(row);
        }
        self.in_row = 0;
    }

    /// What stands for all of it, if there is enough. Begins anew.
    pub(super) fn finish(&mut self) -> Option<Form> {
        self.end_row();
        let Self { digest, elements, .. } = std::mem::take(self);
        (elements >= MIN).then(|| Form { digest: digest.finalize().into(), elements })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_mail::{Piece, pieces};

    fn form(html: &str) -> Option<Form> {
        let mut skeleton = Skeleton::default();
        pieces(html, &mut |piece| {
            if let Piece::Start { name, attributes, .. } = piece {
                skeleton.start(name, attributes);
            }
        });
        skeleton.finish()
    }

    fn page(rows: usize, text: &str, colour: &str) -> String {
        let row =
            format!("<tr><td style='color:{colour}'><img src=x width=1><td><a href='{text}'>{text}</a>");
        let rest = "<div class=a><h1>x</h1></div><div id=b><p align=c><ul><li><a href=x>y</a></ul><hr>";
        format!("<html><body bgcolor=white><table>{}</table>{rest}", row.repeat(rows))
    }

    #[test]
    fn names_are_in_order() {
        assert!(STRUCTURE.is_sorted());
    }

    #[test]
    fn text_and_values_and_equal_rows_do_not_matter() {
        let one = form(&page(1, "one", "red"));
        assert!(one.is_some());
        for other in [
            page(1, "two", "blue"),
            page(9, "one", "red"),
            page(1, "one", "red").replace("<td>", "<td><b><x83j>z</x83j></b><br>"),
            page(1, "one", "red").replace("src=x width=1", "width=7 SRC=y"),
        ] {
            assert_eq!(form(&other), one, "{other}");
        }
        for other in [
            page(1, "one", "red").replace("<hr>", "<hr size=1>"),
            page(1, "one", "red").replace("<h1>", "<h2>"),
        ] {
            assert_ne!(form(&other), one);
        }
    }

    #[test]
    fn little_structure_is_none() {
        assert_eq!(
            form("<html><body><p>one<p>two<p>three<p>four<p>five<p>six<p>seven<p>eight<p>nine<p>ten"),
            None
        );
        assert_eq!(form(""), None);
        assert_eq!(form(&"<table><tr><td>".repeat(100_000)), None);
    }
}
