// SPDX-License-Identifier: GPL-3.0-or-later
//! Which lines a box with a height cuts off.
//!
//! A spammer writes a line of text into a box of one line, and below it words that no reader sees. How high a line stands is known only
//! after a layout, but the least height is known before: by the breaks, margins and boxes above it, and by the number of letters that fit
//! into a line. Text below the end of its box by this measure is hidden. All that may stand higher than it is written, such as a box with a
//! position or one in a grid, is shown.

use super::look::Look;
use super::names::is_cell;
use super::style::{Extent, Flow, LineHeight, WHOLE, times};
use html5ever::LocalName;

/// The width of a line in a wide window, in pixels.
const WIDE: f32 = 2500.0;

/// The least width of a letter and of a blank, in shares of its size; that of a character of East Asia.
const LETTER: f32 = 0.28;
const BLANK: f32 = 0.2;
const SQUARE: f32 = 0.8;

/// The least height of a line by the fonts of mail.
const NORMAL: f32 = 1.1;

/// The part of a letter that must be visible for reading it.
const TOP: f32 = 0.25;

/// Pixels of padding that a box may have at its right side.
const SLACK: f32 = 100.0;

/// Boxes around a text that are tracked; in deeper ones everything is shown.
const MAX_BOXES: usize = 256;

/// The place at which the next letter stands at least.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    /// Pixels below the top of the outermost box that cuts.
    top: f32,
    /// The largest margin since the last text.
    margin: f32,
    /// Pixels from which on text is cut off.
    end: f32,
    width: f32,
    /// Pixels from the left side of the outermost box with a width, and its width.
    left: f32,
    side: f32,
    /// Pixels of the line that its letters take, and its height.
    taken: f32,
    line: f32,
    /// Whether the line has letters.
    is_filled: bool,
    /// Whether text may stand higher.
    is_unknown: bool,
}

/// A box that is open.
#[derive(Debug)]
struct Open {
    /// Its index among the open elements.
    at: usize,
    before: Cursor,
    /// Its height, if its content does not decide that.
    height: Option<f32>,
    margin: Option<f32>,
    /// Whether text behind it stands as if it were not there.
    is_beside: bool,
}

/// The place of text in boxes that cut it off.
#[derive(Debug, Default)]
pub(super) struct Course {
    cursor: Option<Cursor>,
    open: Vec<Open>,
}

/// The size of letters with this look, in pixels.
#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn size_of(look: &Look) -> f32 {
    times(look.size, look.scale.min(WHOLE)) as f32 / 64.0
}

/// The least height of a line with this look, in pixels.
#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn line_of(look: &Look) -> f32 {
    match look.line {
        LineHeight::Normal => size_of(look) * NORMAL,
        LineHeight::Times(times) => size_of(look) * times as f32 / 64.0,
        LineHeight::Of(height) => height as f32 / 64.0,
    }
}

/// Pixels, with letters of this size; `None` if they are not known.
#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn pixels(extent: Extent, size: f32) -> Option<f32> {
    match extent {
        Extent::Pixels(pixels) => Some(f32::from(pixels)),
        Extent::Times(times) => Some(size * times as f32 / 64.0),
        Extent::None | Extent::Unknown => None,
    }
}

impl Cursor {
    /// At the top of a box.
    const START: Self = Self {
        top: 0.0,
        margin: 0.0,
        end: f32::INFINITY,
        width: WIDE,
        left: 0.0,
        side: f32::INFINITY,
        taken: 0.0,
        line: 0.0,
        is_filled: false,
        is_unknown: false,
    };

    /// Ends a line with letters.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_filled) {
            self.top += self.line;
        }
        (self.taken, self.line) = (0.0, 0.0);
    }

    fn take_margin(&mut self, margin: Extent, size: f32) {
        match pixels(margin, size) {
            Some(margin) if margin < 0.0 => self.top += margin,
            Some(margin) => self.margin = self.margin.max(margin),
            None => self.is_unknown |= margin == Extent::Unknown,
        }
    }
}

impl Course {
    /// Whether text may be cut off here.
    pub(super) const fn is_cut(&self) -> bool {
        self.cursor.is_some()
    }

    /// Begins the box of an open element with this index; `is_box` unless it is a part of lines.
    pub(super) fn begin(&mut self, at: usize, name: &LocalName, flow: &Flow, look: &Look, is_box: bool) {
        let size = size_of(look);
        let end = Self::end_of(flow, look).filter(|_| is_box);
        if self.cursor.is_none() && end.is_none() {
            return;
        }
        let mut cursor = self.cursor.unwrap_or(Cursor::START);
        let is_beside = flow.is_beside || flow.is_placed || is_cell(name);
        if self.open.len() >= MAX_BOXES || !(is_box || is_cell(name) || flow.is_placed) {
            // What is too deep may be anywhere, and parts of lines have no height.
            cursor.is_unknown |= self.open.len() >= MAX_BOXES;
            self.cursor = Some(cursor);
            return;
        }
        if !is_beside {
            cursor.end_line();
        }
        let before = cursor;
        let is_outermost = self.cursor.is_none();
        if !is_outermost {
            cursor.take_margin(flow.margin[0], size);
        }
        cursor.is_unknown |= flow.is_placed;
        let left = flow.left.map(|left| pixels(left, size).unwrap_or(0.0));
        cursor.left += left[1] + if is_outermost { 0.0 } else { left[0] };
        let [above, _] = flow.padding.map(|padding| pixels(padding, size).unwrap_or(0.0));
        if let Some(end) = end {
            let width = pixels(flow.width, size).unwrap_or(WIDE);
            cursor.width = if is_outermost { width } else { cursor.width.max(width) };
            if is_outermost && flow.width != Extent::None {
                cursor.side = width + pixels(flow.left[1], size).unwrap_or(WIDE) + SLACK;
            }
            cursor.end = cursor.end.min(cursor.top + cursor.margin + end);
        } else if flow.width != Extent::None {
            cursor.width = cursor.width.max(pixels(flow.width, size).unwrap_or(WIDE));
        }
        if above > 0.0 {
            cursor.top += std::mem::take(&mut cursor.margin) + above;
        }
        (cursor.taken, cursor.line, cursor.is_filled) = (0.0, 0.0, false);
        let [height, most] = [flow.height, flow.max_height]
            .map(|extent| if extent == Extent::Unknown { Some(0.0) } else { pixels(extent, size) });
        let height = match (height, most) {
            (Some(height), Some(most)) => Some(height.min(most)),
            (height, most) => height.or_else(|| most.map(|most| -most)),
        };
        let margin = if flow.margin[1] == Extent::Unknown {
            Some(f32::NEG_INFINITY)
        } else {
            pixels(flow.margin[1], size)
        };
        self.open.push(Open { at, before, height, margin, is_beside });
        self.cursor = Some(cursor);
    }

    /// The end of what a box shows, from the top of its padding.
    fn end_of(flow: &Flow, look: &Look) -> Option<f32> {
        let size = size_of(look);
        let of = |extent| pixels(extent, size);
        let height = match (of(flow.height), of(flow.max_height)) {
            (Some(height), Some(most)) => height.min(most),
            // A line without an end may be cut off at its side.
            (None, None) if look.no_wrap && of(flow.width).is_some() => f32::INFINITY,
            (height, most) => height.or(most)?,
        };
        let padding: f32 = flow.padding.iter().map(|&padding| of(padding).unwrap_or(0.0)).sum();
        let is_known = !flow.padding.contains(&Extent::Unknown);
        (flow.cuts && is_known).then_some(height + padding)
    }

    /// Ends the boxes of the open elements from this index on.
    pub(super) fn end(&mut self, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.at >= at) {
            let Some(mut cursor) = self.cursor else { return };
            if self.open.is_empty() {
                self.cursor = None;
                return;
            }
            cursor.end_line();
            let Open { before, height, margin, is_beside, .. } = open;
            if is_beside {
                self.cursor = Some(Cursor { is_filled: before.is_filled, ..before });
                continue;
            }
            cursor.top = match height {
                Some(height) if height >= 0.0 => before.top + height,
                // The greatest height.
                Some(most) => cursor.top.min(before.top - most),
                None => cursor.top,
            };
            match margin {
                Some(margin) if margin == f32::NEG_INFINITY => cursor.is_unknown = true,
                Some(margin) if margin < 0.0 => cursor.top += margin,
                Some(margin) => cursor.margin = cursor.margin.max(margin),
                None => (),
            }
            // What is unknown in it by its place is known again behind it.
            self.cursor = Some(Cursor {
                end: before.end,
                width: before.width,
                left: before.left,
                taken: 0.0,
                line: 0.0,
                is_filled: false,
                ..cursor
            });
        }
    }

    /// Breaks a line of letters with this look.
    pub(super) fn break_line(&mut self, look: &Look) {
        if let Some(cursor) = &mut self.cursor {
            cursor.line = cursor.line.max(line_of(look));
            cursor.is_filled = true;
            cursor.end_line();
        }
    }

    /// Bytes of a text that are shown, if it has this look.
    pub(super) fn fit(&mut self, text: &str, look: &Look) -> usize {
        let Some(cursor) = &mut self.cursor else { return text.len() };
        if text.trim_ascii().is_empty() {
            return text.len();
        }
        let (size, line) = (size_of(look), line_of(look));
        cursor.top += std::mem::take(&mut cursor.margin);
        cursor.line = cursor.line.max(line);
        cursor.is_filled = true;
        // Letters stand in the middle of their line.
        let top = (line - size) / 2.0 + size * TOP;
        let is_cut = |cursor: &Cursor| {
            let is_beside = look.no_wrap && cursor.taken > cursor.width || cursor.left >= cursor.side;
            !cursor.is_unknown && (is_beside || cursor.top + top >= cursor.end)
        };
        let mut shown = text.len();
        let mut is_blank = true;
        for (at, c) in text.char_indices() {
            let is_word = !c.is_whitespace();
            if is_word && is_blank && is_cut(cursor) {
                shown = shown.min(at);
            }
            cursor.taken += size * width_of(c, is_blank);
            is_blank = !is_word;
            if !look.no_wrap && cursor.taken > cursor.width {
                cursor.taken = 0.0;
                cursor.top += line;
            }
        }
        shown
    }
}

/// The least width of a character behind a blank or a letter.
fn width_of(c: char, is_behind_blank: bool) -> f32 {
    match c {
        _ if c.is_whitespace() => {
            if is_behind_blank {
                0.0
            } else {
                BLANK
            }
        }
        'f' | 'i' | 'j' | 'l' | 't' | 'I' | '!'..='/' | ':' | ';' | '|' => BLANK,
        '\u{2e80}'..='\u{fdff}' => SQUARE,
        _ if c.is_ascii() || c.is_alphanumeric() => LETTER,
        _ => 0.0,
    }
}
