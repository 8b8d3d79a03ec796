// SPDX-License-Identifier: GPL-3.0-or-later
//! Moves of boxes, which add up: what one moves out of the window another one in it may bring back.

use super::cascade::{Cascade, Slot, Value};
use super::length::{AWAY, FAR};

/// Pixels to the right, and down.
pub(crate) type Place = [i16; 2];

/// The move of a box.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) by: Place,
    /// Whether it is moved in each direction from the place of an outer container, not from where it is written.
    pub(crate) is_placed: [bool; 2],
    /// Whether this container is the window, or one that holds fixed boxes.
    pub(crate) is_fixed: bool,
    /// Whether it is such a container.
    pub(crate) holds_fixed: bool,
}

/// The slots that move a box, or hold fixed ones.
const MOVES: [Slot; 10] = [
    Slot::Moved,
    Slot::MarginLeft,
    Slot::MarginTop,
    Slot::Transform,
    Slot::Translate,
    Slot::Scale,
    Slot::Rotate,
    Slot::Filter,
    Slot::Contains,
    Slot::Fixed,
];

/// Whether a place is out of every window.
#[allow(clippy::cast_possible_truncation, reason = "constants")]
pub(crate) const fn is_away([x, y]: Place) -> bool {
    x <= -AWAY as i16 || x >= FAR as i16 || y <= -AWAY as i16
}

/// The sum of two places.
pub(crate) fn moved(place: Place, by: Place) -> Place {
    [0, 1].map(|at| place[at].saturating_add(by[at]))
}

/// Whether fixed boxes in an element have their place in it.
pub(super) fn holds_fixed(cascade: &Cascade) -> bool {
    let sets = |slot| cascade.get(slot).is_some_and(|value| value != Value::Inherit);
    let anyhow = [Slot::Transform, Slot::Translate, Slot::Scale, Slot::Rotate, Slot::Filter];
    cascade.hides(Slot::Contains) || anyhow.into_iter().any(sets)
}

impl Shift {
    pub(super) fn of(cascade: &Cascade, is_box: bool) -> Self {
        // Nearly all elements stay where they are written.
        if !cascade.has_any(&MOVES) && !cascade.hides(Slot::PaddingLeft) {
            return Self::default();
        }
        let hides = |slot| cascade.hides(slot);
        let holds_fixed = holds_fixed(cascade);
        let length = |slot| match cascade.get(slot) {
            Some(Value::Number(pixels) | Value::Away(pixels) | Value::High(pixels)) => pixels,
            _ => 0,
        };
        let is_auto = |slot| matches!(cascade.get(slot), None | Some(Value::Inherit));
        let is_placed = hides(Slot::OutOfFlow);
        // How far the end of a container is away depends on its size.
        let from_end = |slot| if is_placed && !hides(slot) { 0 } else { length(slot).saturating_neg() };
        let from = |first, last| if is_auto(first) { from_end(last) } else { length(first) };
        // A box that begins far to the left of its end shows text at that end.
        let is_at_end = hides(Slot::AlignsRight) || hides(Slot::RightToLeft);
        let is_stretched = is_at_end && !is_auto(Slot::Right) && !hides(Slot::Right);
        let mut by = [0, 0];
        if hides(Slot::Moved) {
            let right = if is_stretched { 0 } else { from(Slot::Left, Slot::Right) };
            by = [right, from(Slot::Top, Slot::Bottom)];
        }
        if !is_at_end {
            by = moved(by, [length(Slot::MarginLeft), 0]);
        }
        if is_box {
            // An indent takes back a padding for the first line.
            if !is_at_end && !hides(Slot::Indent) {
                by = moved(by, [length(Slot::PaddingLeft), 0]);
            }
            by = moved(by, [0, length(Slot::MarginTop).saturating_add(length(Slot::PaddingTop))]);
            for slot in [Slot::Transform, Slot::Translate] {
                if let Some(Value::By(x, y)) = cascade.get(slot) {
                    by = moved(by, [x, y]);
                }
            }
        }
        let are_set =
            [!is_auto(Slot::Left) || !is_auto(Slot::Right), !is_auto(Slot::Top) || !is_auto(Slot::Bottom)];
        Self {
            by,
            is_placed: are_set.map(|is_set| is_placed && is_set),
            is_fixed: hides(Slot::Fixed),
            holds_fixed,
        }
    }
}
