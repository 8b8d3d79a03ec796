// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of a page in the visual order of its boxes.

/// Levels of boxes, and boxes on one level, that are put in order. Others stay in source order.
const MAX_OPEN: usize = 8;
const MAX_BOXES: usize = 1 << 10;

/// The open boxes that reorder their inner boxes, outermost first.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    open: Vec<Open>,
    /// Open levels beyond [`MAX_OPEN`].
    deeper: usize,
}

#[derive(Debug)]
struct Open {
    reversed: bool,
    /// The order number of each inner box, and where its text begins. Text between two boxes belongs to the first.
    boxes: Vec<(i16, usize)>,
}

impl Boxes {
    /// A box that reorders its inner boxes begins.
    pub(super) fn open(&mut self, reversed: bool) {
        if self.open.len() < MAX_OPEN {
            self.open.push(Open { reversed, boxes: Vec::new() });
        } else {
            self.deeper += 1;
        }
    }

    /// An inner box begins at this byte of the text.
    pub(super) fn next(&mut self, order: i16, at: usize) {
        if let Some(open) =
            self.open.last_mut().filter(|open| self.deeper == 0 && open.boxes.len() <= MAX_BOXES)
        {
            open.boxes.push((order, at));
        }
    }

    /// The innermost level ends. Costs the length of its text.
    pub(super) fn close(&mut self, text: &mut String) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(open) = self.open.pop() {
            open.arrange(text);
        }
    }

    /// The page ends.
    pub(super) fn close_all(&mut self, text: &mut String) {
        self.deeper = 0;
        while !self.open.is_empty() {
            self.close(text);
        }
    }
}

impl Open {
    fn arrange(self, text: &mut String) {
        let Some(&(_, start)) = self.boxes.first().filter(|_| self.boxes.len() <= MAX_BOXES) else { return };
        let ends = self.boxes.iter().skip(1).map(|&(_, at)| at).chain([text.len()]);
        let mut parts: Vec<_> =
            self.boxes.iter().zip(ends).map(|(&(order, at), end)| (order, at..end)).collect();
        parts.sort_by_key(|&(order, _)| order);
        if self.reversed {
            parts.reverse();
        }
        if !parts.is_sorted_by_key(|(_, range)| range.start) {
            let arranged: String = parts.into_iter().filter_map(|(_, range)| text.get(range)).collect();
            text.truncate(start);
            text.push_str(&arranged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of boxes with these numbers and texts; an empty text opens an inner level.
    fn arranged(reversed: bool, boxes: &[(i16, &str)]) -> String {
        let (mut open, mut text) = (Boxes::default(), "a ".to_owned());
        open.open(reversed);
        for (order, inner) in boxes {
            open.next(*order, text.len());
            text.push_str(inner);
        }
        open.close(&mut text);
        text
    }

    #[test]
    fn boxes_are_read_where_they_stand() {
        assert_eq!(arranged(false, &[(0, "b "), (0, "c "), (0, "d ")]), "a b c d ");
        assert_eq!(arranged(true, &[(0, "b "), (0, "c "), (0, "d ")]), "a d c b ");
        assert_eq!(arranged(false, &[(2, "b "), (1, "c "), (0, "d "), (-1, "e ")]), "a e d c b ");
        assert_eq!(arranged(true, &[(1, "b "), (0, "c "), (1, "d ")]), "a d b c ");
    }

    #[test]
    fn boxes_in_boxes_have_bounds() {
        let (mut open, mut text) = (Boxes::default(), String::new());
        for level in 0..1000 {
            open.next(0, text.len());
            text.push_str(if level % 2 == 0 { "x" } else { "y" });
            open.open(true);
        }
        open.close_all(&mut text);
        assert_eq!(text.len(), 1000);
        let many: Vec<_> = (0..5000).map(|n| (n % 3, "z")).collect();
        assert_eq!(arranged(true, &many).len(), 5002);
    }
}
