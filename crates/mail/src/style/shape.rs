// SPDX-License-Identifier: GPL-3.0-or-later
//! Shapes that clip a box, and functions that move or flatten it.

use super::length::{AWAY, FAR, arguments, functions, length, number, words};

/// Whether `clip: rect(top, right, bottom, left)` leaves a pixel or less.
pub(super) fn clips_all(value: &str) -> bool {
    let list = value.trim_start().strip_prefix("rect").and_then(|rest| rest.trim_start().strip_prefix('('));
    let Some(list) = list else { return false };
    let sides = list.split([',', ' ', ')']).filter(|word| !word.is_empty());
    let sides: Vec<f32> = sides.take(4).filter_map(length).collect();
    matches!(sides[..], [top, right, bottom, left] if bottom - top <= 1.0 || right - left <= 1.0)
}

/// Whether a `clip-path` leaves nothing.
pub(super) fn cuts_all(value: &str) -> bool {
    functions(value).any(|(name, list)| match name {
        "inset" => is_all_inset(list),
        "circle" | "ellipse" => {
            words(list).take(2).any(|radius| share(radius).is_some_and(|radius| radius < 1.0))
        }
        "polygon" => is_flat(list),
        "rect" => {
            let sides: Vec<f32> = words(list).take(4).filter_map(share).collect();
            matches!(sides[..], [top, right, bottom, left] if bottom - top < 1.0 || right - left < 1.0)
        }
        "xywh" => words(list).skip(2).take(2).any(|side| share(side).is_some_and(|side| side < 1.0)),
        _ => false,
    })
}

/// A length or a percentage as a number, for comparing two of one kind.
fn share(text: &str) -> Option<f32> {
    text.strip_suffix('%').map_or_else(|| length(text), |text| text.parse().ok())
}

/// Whether two opposite sides meet.
fn is_all_inset(list: &str) -> bool {
    let sides: Vec<&str> = words(list).take_while(|word| *word != "round").take(4).collect();
    let percent = |at: usize| sides.get(at)?.strip_suffix('%')?.parse::<f32>().ok();
    let pixels = |at: usize| sides.get(at).and_then(|side| length(side)).filter(|_| percent(at).is_none());
    let [top, right, bottom, left] = match sides.len() {
        1 => [0; 4],
        2 => [0, 1, 0, 1],
        3 => [0, 1, 2, 1],
        _ => [0, 1, 2, 3],
    };
    let meet = |a, b| {
        percent(a).unwrap_or(0.0) + percent(b).unwrap_or(0.0) >= 100.0
            || pixels(a).unwrap_or(0.0) + pixels(b).unwrap_or(0.0) >= FAR
    };
    !sides.is_empty() && (meet(top, bottom) || meet(left, right))
}

/// Whether a polygon has no area, if its points have lengths or percentages.
fn is_flat(list: &str) -> bool {
    let mut points = Vec::new();
    for point in arguments(list).filter(|point| !matches!(*point, "nonzero" | "evenodd")).take(64) {
        let mut both = words(point).map(share);
        let (Some(Some(x)), Some(Some(y))) = (both.next(), both.next()) else { return false };
        points.push((x, y));
    }
    // Twice the area, by the shoelace formula.
    let next = points.iter().cycle().skip(1);
    let area: f32 = points.iter().zip(next).map(|((x, y), (next_x, next_y))| x * next_y - next_x * y).sum();
    !points.is_empty() && area.abs() < 2.0
}

/// Whether a function of a `transform` hides the box.
pub(super) fn transforms_away((name, list): (&str, &str)) -> bool {
    let all = || arguments(list).flat_map(words);
    match name {
        "scale" | "scalex" | "scaley" => {
            all().any(|factor| number(factor).is_some_and(|factor| factor.abs() < 0.05))
        }
        "scale3d" => all().take(2).any(|factor| number(factor).is_some_and(|factor| factor.abs() < 0.05)),
        "translate" | "translatex" | "translatey" | "translate3d" => {
            all().take(2).any(|by| length(by).is_some_and(|pixels| pixels <= -AWAY || pixels >= FAR))
        }
        "rotatex" | "rotatey" => is_edge_on(list),
        "matrix" => {
            let numbers: Vec<f32> = all().filter_map(number).collect();
            match numbers[..] {
                // The factor of the area, and the move.
                [a, b, c, d, x, y] => {
                    (a * d - b * c).abs() < 0.0025 || [x, y].iter().any(|by| *by <= -AWAY || *by >= FAR)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether a box is turned edge-on by this angle, around its own axis.
pub(super) fn is_edge_on(angle: &str) -> bool {
    let units = [("deg", 360.0), ("grad", 400.0), ("rad", std::f32::consts::TAU), ("turn", 1.0)];
    let Some((number, whole)) =
        units.into_iter().find_map(|(unit, whole)| Some((angle.trim().strip_suffix(unit)?, whole)))
    else {
        return false;
    };
    // A quarter or three quarters of a turn.
    number.parse::<f32>().is_ok_and(|n| ((n / whole).rem_euclid(0.5) - 0.25).abs() < 0.005)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_without_an_area_cut_all() {
        for shape in [
            "inset(50%)",
            "inset(100%)",
            "inset(0 100% 0 0)",
            "inset(50% 0)",
            "circle(0)",
            "circle(0% at 5px 5px)",
            "ellipse(0 50%)",
            "polygon(0 0, 0 0, 0 0)",
            "polygon(0 0,100% 100%,50% 50%)",
            "polygon(evenodd, 0 0, 0 100%)",
            "rect(0 0 0 0)",
            "xywh(0 0 0 10px)",
            "inset(9999px)",
        ] {
            assert!(cuts_all(shape), "{shape}");
        }
        for shape in [
            "none",
            "inset(10%)",
            "inset(5px round 9px)",
            "circle(50%)",
            "polygon(0 0, 100% 0, 100% 100%)",
            "polygon(0 0, x 0)",
            "polygon(",
            "url(#a)",
            "rect(0 100% 100% 0)",
            "inset(",
        ] {
            assert!(!cuts_all(shape), "{shape}");
        }
        for (name, list, expected) in [
            ("rotatey", "90deg", true),
            ("rotatex", "-.25turn", true),
            ("rotatey", "180deg", false),
            ("matrix", "0,0,0,0,0,0", true),
            ("matrix", "1,0,0,1,-9999,0", true),
            ("matrix", "1,0,0,1,0,0", false),
            ("scale3d", "1,1,0", false),
            ("translate", "0, -9999px", true),
        ] {
            assert_eq!(transforms_away((name, list)), expected, "{name}({list})");
        }
    }
}
