// SPDX-License-Identifier: GPL-3.0-or-later
//! Shapes that clip a box, and functions that move or flatten it.

use super::length::{FAR, arguments, functions, length, number, words};

/// Whether `clip: rect(top, right, bottom, left)` leaves a pixel or less.
pub(super) fn clips_all(value: &str) -> bool {
    let list = value.trim_start().strip_prefix("rect").and_then(|rest| rest.trim_start().strip_prefix('('));
    let Some(list) = list else { return false };
    let words = list.split([',', ' ', ')']).filter(|word| !word.is_empty()).take(4);
    // At the right and below, `auto` is the side of the box.
    let auto = [0.0, f32::INFINITY, f32::INFINITY, 0.0];
    let side = |(word, auto)| if word == "auto" { Some(auto) } else { length(word) };
    let sides: Vec<f32> = words.zip(auto).filter_map(side).collect();
    matches!(sides[..], [top, right, bottom, left] if bottom - top <= 1.0 || right - left <= 1.0)
}

/// Whether a `clip-path` leaves nothing.
pub(super) fn cuts_all(value: &str) -> bool {
    functions(value).any(|(name, list)| match name {
        "inset" => is_all_inset(list),
        "circle" | "ellipse" => {
            words(list).take_while(|word| *word != "at").any(|radius| share(radius).is_some_and(|r| r < 1.0))
                || is_circle_beside(list)
        }
        "polygon" => is_flat(list),
        "path" => is_flat_path(list),
        "shape" => is_flat_shape(list),
        "rect" => {
            let sides: Vec<f32> = words(list).take(4).filter_map(share).collect();
            matches!(sides[..], [top, right, bottom, left] if bottom - top < 1.0 || right - left < 1.0)
        }
        "xywh" => {
            let sides: Vec<Option<f32>> = words(list).take(4).map(length).collect();
            let is_beside = |from: Option<f32>, side: Option<f32>| {
                from.zip(side).is_some_and(|(from, side)| from + side < 1.0)
            };
            words(list).skip(2).take(2).any(|side| share(side).is_some_and(|side| side < 1.0))
                || matches!(sides[..], [x, y, w, h] if is_beside(x, w) || is_beside(y, h))
        }
        _ => false,
    })
}

/// A length or a percentage as a number, for comparing two of one kind.
fn share(text: &str) -> Option<f32> {
    text.strip_suffix('%').map_or_else(|| length(text), |text| text.parse().ok())
}

/// Whether a circle stands beside or above its box.
fn is_circle_beside(list: &str) -> bool {
    let Some((radii, centre)) = list.split_once(" at ") else { return false };
    let mut radii = words(radii).filter_map(length);
    let Some(first) = radii.next() else { return false };
    let radii = [first, radii.next().unwrap_or(first)];
    words(centre).take(2).zip(radii).any(|(at, radius)| length(at).is_some_and(|at| at + radius < 1.0))
}

/// Whether two opposite sides meet.
fn is_all_inset(list: &str) -> bool {
    // A calculation of one value is this value.
    let plain = |word| {
        functions(word).next().filter(|(name, _)| *name == "calc").map_or(word, |(_, value)| value.trim())
    };
    let sides: Vec<&str> = words(list).take_while(|word| *word != "round").take(4).map(plain).collect();
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
    // Also one beside or above its box.
    let is_beside = points.iter().all(|(x, _)| *x < 1.0) || points.iter().all(|(_, y)| *y < 1.0);
    !points.is_empty() && (area(&points) < 1.0 || is_beside)
}

/// The area of a polygon, by the shoelace formula.
fn area(points: &[(f32, f32)]) -> f32 {
    let next = points.iter().cycle().skip(1);
    let twice: f32 = points.iter().zip(next).map(|((x, y), (next_x, next_y))| x * next_y - next_x * y).sum();
    twice.abs() / 2.0
}

/// Whether a path of straight lines has no area. Its letters are small here, so it must be flat with absolute and with relative numbers.
fn is_flat_path(list: &str) -> bool {
    let text = arguments(list).last().unwrap_or_default();
    let path = text.trim_matches(['"', '\'']);
    [false, true]
        .into_iter()
        .all(|is_relative| area_of_path(path, is_relative).is_some_and(|area| area < 1.0))
}

/// The sum of the areas of a path's parts; `None` if it has curves or cannot be read.
fn area_of_path(path: &str, is_relative: bool) -> Option<f32> {
    let (mut sum, mut points, mut last) = (0.0, Vec::new(), (0.0, 0.0));
    let mut command = None;
    for step in path.split_inclusive(|c: char| c.is_ascii_alphabetic()) {
        // Numbers stand between their command and the next one.
        let numbers = step.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let next = step[numbers.len()..].chars().next();
        let Some(known) = std::mem::replace(&mut command, next) else { continue };
        let (width, is_upright) = match known {
            'm' | 'l' => (2, false),
            'h' | 'v' => (1, known == 'v'),
            'z' if numbers.trim().is_empty() => continue,
            _ => return None,
        };
        if known == 'm' {
            sum += area(&std::mem::take(&mut points));
        }
        let numbers = numbers.split([',', ' ']).filter(|number| !number.is_empty());
        let numbers: Vec<f32> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
        for number in numbers.chunks(width) {
            let from = if is_relative { last } else { (0.0, 0.0) };
            last = match *number {
                [x, y] => (from.0 + x, from.1 + y),
                [y] if is_upright => (last.0, from.1 + y),
                [x] if width == 1 => (from.0 + x, last.1),
                _ => return None,
            };
            points.push(last);
        }
    }
    (!points.is_empty()).then(|| sum + area(&points))
}

/// Whether a `shape()` of straight lines has no area.
fn is_flat_shape(list: &str) -> bool {
    let mut points = Vec::new();
    for step in arguments(list).take(64) {
        let mut all = words(step).skip_while(|word| matches!(*word, "nonzero" | "evenodd"));
        let is_line = match all.next() {
            Some("close") => continue,
            Some("from") => true,
            Some("line" | "move") => all.next() == Some("to"),
            _ => false,
        };
        let (Some(Some(x)), Some(Some(y)), true) = (all.next().map(share), all.next().map(share), is_line)
        else {
            return false;
        };
        points.push((x, y));
    }
    !points.is_empty() && area(&points) < 1.0
}

/// By how much the functions of a `transform` together move a box to the right and down; `None` if they turn it edge-on.
pub(super) fn transformed(value: &str) -> Option<[f32; 2]> {
    let (mut moved, mut turns) = ([0.0; 2], 0);
    for (name, list) in functions(value) {
        let all = || arguments(list).flat_map(words);
        let by = |at| all().nth(at).and_then(length).unwrap_or(0.0);
        // A share of its own height is little.
        let down = |at| all().nth(at).filter(|by| !by.ends_with('%')).and_then(length).unwrap_or(0.0);
        let (by, is_turn) = match name {
            "translatey" => ([0.0, down(0)], false),
            "translatex" => ([by(0), 0.0], false),
            "translate" | "translate3d" => ([by(0), down(1)], false),
            "matrix" | "matrix3d" => (matrix(list).map_or([0.0; 2], |(_, by)| by), false),
            "skew" | "skewx" | "skewy" => ([0.0; 2], arguments(list).any(is_edge_on)),
            "rotatex" | "rotatey" => ([0.0; 2], is_edge_on(list)),
            "rotate3d" => {
                let is_turn =
                    matches!(*all().collect::<Vec<_>>(), [x, y, z, angle] if turns_by([x, y, z], angle));
                ([0.0; 2], is_turn)
            }
            _ => continue,
        };
        moved = [moved[0] + by[0], moved[1] + by[1]];
        turns += usize::from(is_turn);
    }
    // A second turn brings it back.
    (turns % 2 == 0).then_some(moved)
}

/// The factor by which a function of a `transform` changes the size of letters, in the direction in which it shrinks them most.
pub(super) fn scale_of((name, list): (&str, &str)) -> f32 {
    match name {
        "scalez" if number(list) == Some(0.0) => 0.0,
        "scale" | "scalex" | "scaley" | "scale3d" => {
            let factors = arguments(list).take(2).filter_map(number).map(f32::abs);
            factors.reduce(f32::min).unwrap_or(1.0)
        }
        "matrix" | "matrix3d" => matrix(list).map_or(1.0, |(area, _)| area.sqrt()),
        _ => 1.0,
    }
}

/// The factor of the area, and the moves, of a matrix.
fn matrix(list: &str) -> Option<(f32, [f32; 2])> {
    let numbers: Vec<f32> = arguments(list).flat_map(words).take(17).filter_map(number).collect();
    match numbers[..] {
        [a, b, c, d, x, y] | [a, b, _, _, c, d, _, _, _, _, _, _, x, y, _, _] => {
            Some(((a * d - b * c).abs(), [x, y]))
        }
        _ => None,
    }
}

/// Whether a `rotate` turns a box edge-on.
pub(super) fn turns_edge_on(value: &str) -> bool {
    match *words(value).collect::<Vec<_>>() {
        ["x" | "y", angle] | [angle, "x" | "y"] => is_edge_on(angle),
        [angle, x, y, z] if number(angle).is_none() => turns_by([x, y, z], angle),
        [x, y, z, angle] => turns_by([x, y, z], angle),
        _ => false,
    }
}

/// Whether a box is turned edge-on around an axis in its own plane.
fn turns_by(axis: [&str; 3], angle: &str) -> bool {
    let [x, y, z] = axis.map(number);
    let is_in_plane = z == Some(0.0) && [x, y].iter().flatten().any(|n| *n != 0.0);
    is_in_plane && is_edge_on(angle)
}

/// Whether a box is turned edge-on by this angle, around its own axis.
fn is_edge_on(angle: &str) -> bool {
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
            "inset(calc(100%))",
            "circle(50px at -900px 0)",
            "circle(1px at 0 -50px)",
            "ellipse(5px 9px at 0 -50px)",
            "polygon(-9px -9px,-5px -9px,-5px -5px)",
            "polygon(0 -9px,90px -9px,90px -20px)",
            "xywh(-100px 0 50px 50px)",
            "path('m0 0')",
            "path(evenodd, \"m0 0 l10 0 z\")",
            "path('m0,0h0v0z m5 5')",
            "shape(from 0 0, line to 0 0, line to 100% 0, close)",
        ] {
            assert!(cuts_all(shape), "{shape}");
        }
        for shape in [
            "none",
            "inset(10%)",
            "inset(5px round 9px)",
            "circle(50%)",
            "circle(50% at 0 0)",
            "circle(20px at -5px 5px)",
            "circle(at 0 0)",
            "polygon(-9px -9px, 90px -9px, 90px 90px)",
            "xywh(-9px 0 50px 50px)",
            "inset(calc(100% - 9px))",
            "polygon(0 0, 100% 0, 100% 100%)",
            "polygon(0 0, x 0)",
            "polygon(",
            "url(#a)",
            "rect(0 100% 100% 0)",
            "inset(",
            "path('m0 0h9v9z')",
            "path('m0 0c1 1 2 2 3 3')",
            "path('m10 0 10 10 20 20z')",
            "path()",
            "shape(from 0 0, hline to 100%, vline to 100%)",
            "shape(from 0 0, line to 100% 0, line to 0 100%)",
        ] {
            assert!(!cuts_all(shape), "{shape}");
        }
    }

    #[test]
    fn functions_move_and_shrink() {
        for (name, list, expected) in [
            ("rotatey", "90deg", true),
            ("skewx", "90deg", true),
            ("skew", "9deg, 9deg", false),
            ("rotatex", "-.25turn", true),
            ("rotatey", "180deg", false),
            ("matrix", "1,0,0,1,-9999,0", true),
            ("matrix", "1,0,0,1,0,0", false),
            ("rotate3d", "1,0,0,90deg", true),
            ("rotate3d", "0,0,1,90deg", false),
            ("matrix3d", "1,0,0,0,0,1,0,0,0,0,1,0,-9999,0,0,1", true),
            ("translate", "0, -9999px", true),
        ] {
            let moved = transformed(&format!("{name}({list})"));
            let is_away = moved.is_none_or(|moved| moved.into_iter().any(|by| by < -900.0));
            assert_eq!(is_away, expected, "{name}({list})");
        }
        for (name, list, expected) in [
            ("matrix", "0,0,0,0,0,0", 0.0),
            ("matrix3d", &["0"; 16].join(","), 0.0),
            ("scale3d", "1,.5,0", 0.5),
            ("scalex", "-.5", 0.5),
            ("scalez", "0", 0.0),
            ("scale", "x", 1.0),
        ] {
            assert!((scale_of((name, list)) - expected).abs() < 1e-6, "{name}({list})");
        }
    }
}
