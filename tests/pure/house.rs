// SPDX-License-Identifier: GPL-3.0-or-later
//! docs/house.svg: the crates and the rooms of the program, each above those that it uses, drawn from Cargo.toml and from the list that
//! `layering` enforces.

use super::layering::ROOMS;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

type Uses = BTreeMap<String, BTreeSet<String>>;

const WIDTH: f64 = 820.0;
const BOX: (f64, f64) = (98.0, 30.0);
const ROW: f64 = 66.0;

/// The program's libraries, each with those that it uses, without those for studies and tests.
fn crates() -> Uses {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = |dependency: &String| dependency.strip_prefix("bulkmark-").map(str::to_owned);
    let dependencies = |path: &Path| -> BTreeSet<String> {
        let text = fs::read_to_string(path).unwrap();
        let table: toml::Table = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        table["dependencies"].as_table().unwrap().keys().filter_map(name).collect()
    };
    let mut all = Uses::new();
    let mut open: Vec<String> = dependencies(&root.join("Cargo.toml")).into_iter().collect();
    while let Some(name) = open.pop() {
        let uses = dependencies(&root.join(format!("crates/{name}/Cargo.toml")));
        open.extend(uses.iter().filter(|used| !all.contains_key(*used)).cloned());
        all.insert(name, uses);
    }
    all
}

fn rooms() -> Uses {
    let uses =
        |&(room, uses): &(&str, &[&str])| (room.to_owned(), uses.iter().map(|&u| u.to_owned()).collect());
    ROOMS.iter().map(uses).collect()
}

/// All that one of them uses indirectly.
fn reached(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&String> = uses[from].iter().collect();
    while let Some(next) = open.pop() {
        if all.insert(next.clone()) {
            open.extend(&uses[next]);
        }
    }
    all
}

/// Without the implied lines: every user of the ledger also uses the counts.
fn reduced(uses: &Uses) -> Uses {
    let needed = |of: &BTreeSet<String>| {
        let by_others: BTreeSet<String> = of.iter().flat_map(|other| reached(uses, other)).collect();
        of.difference(&by_others).cloned().collect()
    };
    uses.iter().map(|(name, of)| (name.clone(), needed(of))).collect()
}

/// The rows from the top: each box is directly below the lowest of its users, and near the middle of them.
fn rows(uses: &Uses) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut left: BTreeSet<&String> = uses.keys().collect();
    while !left.is_empty() {
        let used: BTreeSet<&String> = left.iter().flat_map(|&name| &uses[name]).collect();
        let free: Vec<&String> = left.difference(&used).copied().collect();
        assert!(!free.is_empty(), "a circle among {left:?}");
        left.retain(|name| !free.contains(name));
        let place = |name: &String| {
            let users =
                rows.iter().flat_map(|row| (0..row.len()).map(move |i| (&row[i], center(i, row.len()))));
            let of: Vec<f64> = users.filter(|(user, _)| uses[*user].contains(name)).map(|(_, x)| x).collect();
            if of.is_empty() { WIDTH / 2.0 } else { of.iter().sum::<f64>() / of.len() as f64 }
        };
        let mut row: Vec<(f64, String)> = free.iter().map(|&name| (place(name), name.clone())).collect();
        row.sort_by(|a, b| a.partial_cmp(b).unwrap());
        rows.push(row.into_iter().map(|(_, name)| name).collect());
    }
    rows
}

/// The middle of the box at this place of a row.
fn center(place: usize, of: usize) -> f64 {
    WIDTH * (place as f64 + 0.5) / of as f64
}

/// Draws boxes and lines from `top` on, and returns their lower end.
fn draw(svg: &mut String, uses: &Uses, top: f64, colors: (&str, &str)) -> f64 {
    let uses = reduced(uses);
    let rows = rows(&uses);
    let at: BTreeMap<&String, (f64, f64)> = rows
        .iter()
        .enumerate()
        .flat_map(|(n, row)| {
            row.iter().enumerate().map(move |(i, name)| (name, (center(i, row.len()), top + ROW * n as f64)))
        })
        .collect();
    for (name, of) in &uses {
        let (x, y) = at[name];
        for (to_x, to_y) in of.iter().map(|used| at[used]) {
            let (y, bend) = (y + BOX.1, ROW / 2.0);
            let _ = writeln!(
                svg,
                r##"<path d="M{x:.0} {y:.0}C{x:.0} {:.0} {to_x:.0} {:.0} {to_x:.0} {to_y:.0}" fill="none" stroke="{}"/>"##,
                y + bend,
                to_y - bend,
                colors.1
            );
        }
    }
    for (name, (x, y)) in &at {
        let _ = writeln!(
            svg,
            r##"<rect x="{:.0}" y="{y:.0}" width="{}" height="{}" rx="5" fill="{}" stroke="{}"/><text x="{x:.0}" y="{:.0}">{name}</text>"##,
            x - BOX.0 / 2.0,
            BOX.0,
            BOX.1,
            colors.0,
            colors.1,
            y + 20.0
        );
    }
    top + ROW * (rows.len() - 1) as f64 + BOX.1
}

fn picture() -> String {
    let mut drawn = String::new();
    let middle = draw(&mut drawn, &rooms(), 40.0, ("#ffffff", "#0369a1")) + 56.0;
    let end = draw(&mut drawn, &crates(), middle, ("#f1f5f9", "#334155")) + 16.0;
    let title = "The house: rooms of the program above, crates below. A line goes from each to those that it uses, but for \
        those that it uses by way of others. Rooms may use all crates.";
    let line = middle - 34.0;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end:.0}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="14">
<title id="title">{title}</title>
<rect width="{WIDTH}" height="{end:.0}" fill="#ffffff"/>
<path d="M0 {line:.0}H{WIDTH}" stroke="#94a3b8" stroke-dasharray="4 4"/>
<text x="8" y="22" fill="#0369a1">rooms in src/</text>
<text x="8" y="{:.0}" fill="#334155">crates/</text>
<g text-anchor="middle">
{drawn}</g>
</svg>
"##,
        line + 20.0
    )
}

/// With `WRITE_HOUSE` in the environment it writes the drawing, as `make house` does.
#[test]
fn the_picture_of_the_house_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/house.svg");
    if std::env::var_os("WRITE_HOUSE").is_some() {
        fs::write(path, picture()).unwrap();
    } else {
        assert!(
            fs::read_to_string(path).unwrap() == picture(),
            "docs/house.svg is out of date: run \"make house\""
        );
    }
}
