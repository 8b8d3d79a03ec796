// SPDX-License-Identifier: GPL-3.0-or-later
//! Which elements are boxes, and which of them hide their content by their size, place or opacity.

use super::cascade::{Cascade, Slot, Value, WHOLE};
use super::shift::holds_fixed;
use crate::names::is_block;
use html5ever::{LocalName, local_name};

/// Whether a share of opacity or scale leaves nothing to read.
pub(crate) const fn is_faint(share: u32) -> bool {
    share < WHOLE / 20
}

/// Boxes that cut off what is beyond their size, whatever their style says.
pub(super) const fn cuts_itself(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("marquee") | local_name!("textarea") | local_name!("select") | local_name!("input")
    )
}

/// Whether sizes apply to an element: not to inline ones, and a cell grows with its content.
pub(super) fn is_box(cascade: &Cascade, name: &LocalName) -> bool {
    let is_cut_item = || cascade.hides(Slot::Item) && cascade.hides(Slot::Clips);
    cascade.hides(Slot::Float)
        || cascade.hides(Slot::OutOfFlow)
        || is_cut_item()
        || match cascade.get(Slot::Block) {
            Some(value) => value == Value::Hides(true),
            None => is_block(name),
        }
}

/// Whether the lines around an element continue beside its box.
pub(super) fn is_apart(cascade: &Cascade) -> bool {
    let is_in_line = cascade.hides(Slot::Block) && !cascade.hides(Slot::Parts);
    cascade.hides(Slot::Float) || cascade.hides(Slot::OutOfFlow) || is_in_line
}

/// Whether a picture has nearly no width or height.
pub(super) fn is_thin(cascade: &Cascade) -> bool {
    let hides = |slot| cascade.hides(slot);
    (hides(Slot::Width) || hides(Slot::MaxWidth)) && !hides(Slot::MinWidth)
        || (hides(Slot::Height) || hides(Slot::MaxHeight)) && !hides(Slot::MinHeight)
}

/// The shares of opacity and scale that an element leaves to its content.
pub(super) struct Shares {
    pub(super) opacity: Option<u32>,
    pub(super) scale: Option<u32>,
}

impl Shares {
    pub(super) fn of(cascade: &Cascade, name: &LocalName) -> Self {
        let share = |slot| match cascade.get(slot) {
            Some(Value::Share(share)) => Some(share),
            _ => None,
        };
        let in_a_box = [Slot::Scale, Slot::Shrinks].map(|slot| share(slot).filter(|_| is_box(cascade, name)));
        // A page sets no letters in a zoom that small for reading.
        let zoom = share(Slot::Zoom).map(|zoom| if zoom < WHOLE / 10 { 0 } else { zoom });
        let scales = in_a_box.into_iter().chain([zoom]).flatten();
        Self { opacity: share(Slot::Faint), scale: scales.reduce(times) }
    }
}

/// A share of a share.
pub(crate) fn times(outer: u32, share: u32) -> u32 {
    let product = u64::from(outer) * u64::from(share) / u64::from(WHOLE);
    u32::try_from(product).unwrap_or(u32::MAX)
}

/// Whether an element is a box that cuts off what overflows it.
fn cuts(cascade: &Cascade, name: &LocalName) -> bool {
    let clips = cascade.hides(Slot::Clips) || cascade.hides(Slot::Contains);
    // What the body of a page cuts off, the window shows.
    let is_page = matches!(*name, local_name!("body") | local_name!("html"));
    is_box(cascade, name) && clips && !is_page || *name == local_name!("svg") || cuts_itself(name)
}

/// Whether an element has a box without height around lines without height.
pub(super) fn is_line_flat(cascade: &Cascade, name: &LocalName) -> bool {
    let hides = |slot| cascade.hides(slot);
    hides(Slot::LineHeight)
        && cuts(cascade, name)
        && ![Slot::MinHeight, Slot::PaddingBottom].into_iter().any(hides)
}

/// Whether an element is a box so small that nobody sees its content.
pub(super) fn is_flat(cascade: &Cascade, name: &LocalName) -> bool {
    let hides = |slot| cascade.hides(slot);
    let cuts = cuts(cascade, name);
    let is_low = (hides(Slot::Height) || hides(Slot::MaxHeight))
        && !hides(Slot::MinHeight)
        && !hides(Slot::PaddingBottom);
    let is_thin = (hides(Slot::Width) || hides(Slot::MaxWidth)) && !hides(Slot::MinWidth);
    let has_height = matches!(cascade.get(Slot::Height), Some(value) if value != Value::Inherit);
    let is_empty =
        hides(Slot::Sized) && !has_height && !hides(Slot::MinHeight) && !hides(Slot::PaddingBottom);
    let is_item = hides(Slot::Item) && hides(Slot::FlexBasis) && !hides(Slot::FlexGrow);
    let is_shrunk = is_item && !hides(Slot::MinWidth) && !hides(Slot::MinHeight);
    cuts && (is_empty || is_shrunk || is_low || is_thin || hides(Slot::IndentOut))
}

/// Whether inner boxes with a place of their own have it in an element (CSS Positioned Layout Module Level 3, 2.1).
pub(super) fn is_container(cascade: &Cascade, name: &LocalName) -> bool {
    cascade.hides(Slot::Moved) || holds_fixed(cascade) || *name == local_name!("svg")
}

/// Whether an element takes no space, or only space that nobody sees, in any place.
pub(super) fn is_hidden(cascade: &Cascade, name: &LocalName) -> bool {
    let hides = |slot| cascade.hides(slot);
    let anywhere = [Slot::NotDisplayed, Slot::ClipPath, Slot::Filter, Slot::Mask];
    let in_a_box = [Slot::Transform, Slot::Rotate, Slot::ContentHidden];
    anywhere.into_iter().any(hides)
        || is_box(cascade, name) && in_a_box.into_iter().any(hides)
        || hides(Slot::OutOfFlow) && hides(Slot::Clip)
}
