// SPDX-License-Identifier: GPL-3.0-or-later
//! Sides, margins and paddings of boxes.

use super::cascade::{Slot, Value};
use super::flow::{is_high, margin};
use super::length::{AWAY, FAR, length, words};

/// By how much a box is moved: [`Value::Away`] if that is out of every window.
#[allow(clippy::cast_possible_truncation, reason = "clamped")]
fn away(value: &str, first: f32, last: f32) -> Value {
    if value == "auto" {
        return Value::Inherit;
    }
    let Some(pixels) = length(value) else { return Value::Hides(false) };
    let moved = pixels.clamp(-30000.0, 30000.0).round() as i16;
    if pixels <= first || pixels >= last { Value::Away(moved) } else { Value::Number(moved) }
}

fn away_left(value: &str) -> Value {
    away(value, -AWAY, FAR)
}

/// Whether a distance moves text out of every window.
pub(super) fn leaves(value: &str) -> Value {
    match away_left(value) {
        Value::Away(_) => Value::Hides(true),
        Value::Number(_) => Value::Hides(false),
        other => other,
    }
}

fn away_right(value: &str) -> Value {
    away(value, -FAR, FAR)
}

fn away_up(value: &str) -> Value {
    upright(value, -AWAY, f32::INFINITY)
}

/// The same, up or down. A share of the height around is unknown.
fn upright(value: &str, first: f32, last: f32) -> Value {
    if value.ends_with('%') { Value::Hides(false) } else { away(value, first, last) }
}

/// Padding that brings back what a margin moves away, or moves it out of the window.
fn padding(value: &str) -> Value {
    away(value, f32::NEG_INFINITY, AWAY)
}

fn margin_above(value: &str) -> Value {
    match away_up(value) {
        known @ (Value::Away(_) | Value::Inherit) => known,
        _ => margin(value),
    }
}

fn away_down(value: &str) -> Value {
    upright(value, f32::NEG_INFINITY, FAR)
}

/// Moves of a box to one side, or by margins.
pub(super) fn sides(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let all: Vec<&str> = words(value).take(4).collect();
    let first = all.first().copied().unwrap_or("");
    let end = all.get(1).copied().unwrap_or(first);
    // Of top, right, bottom and left, an omitted one equals its opposite.
    let bottom = all.get(2).copied().unwrap_or(first);
    let left = all.get(3).copied().unwrap_or(end);
    match name {
        "left" | "inset-inline-start" => set(Slot::Left, away_left(value)),
        "right" | "inset-inline-end" => set(Slot::Right, away_right(value)),
        "top" | "inset-block-start" => set(Slot::Top, away_up(value)),
        "bottom" | "inset-block-end" => set(Slot::Bottom, away_down(value)),
        "inset" => {
            set(Slot::Top, away_up(first));
            set(Slot::Right, away_right(end));
            set(Slot::Bottom, away_down(bottom));
            set(Slot::Left, away_left(left));
        }
        "inset-inline" => {
            set(Slot::Left, away_left(first));
            set(Slot::Right, away_right(end));
        }
        "inset-block" => {
            set(Slot::Top, away_up(first));
            set(Slot::Bottom, away_down(end));
        }
        "margin-left" | "margin-inline" | "margin-inline-start" => set(Slot::MarginLeft, away_left(first)),
        "padding-left" | "padding-inline" | "padding-inline-start" => {
            set(Slot::PaddingLeft, padding(first));
        }
        "padding" => {
            set(Slot::PaddingTop, is_high(first));
            set(Slot::PaddingLeft, padding(left));
            set(Slot::PaddingBottom, is_high(bottom));
        }
        "padding-bottom" | "padding-block-end" => set(Slot::PaddingBottom, is_high(value)),
        "padding-top" | "padding-block-start" => set(Slot::PaddingTop, is_high(value)),
        "padding-block" => {
            set(Slot::PaddingTop, is_high(first));
            set(Slot::PaddingBottom, is_high(end));
        }
        "margin-top" | "margin-block-start" => set(Slot::MarginTop, margin_above(first)),
        "margin-bottom" | "margin-block-end" => set(Slot::MarginBottom, margin(value)),
        "margin-block" => {
            set(Slot::MarginTop, margin_above(first));
            set(Slot::MarginBottom, margin(end));
        }
        "margin" => {
            set(Slot::MarginLeft, away_left(left));
            set(Slot::MarginTop, margin_above(first));
            set(Slot::MarginBottom, margin(bottom));
        }
        _ => (),
    }
}
