// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config show`

use super::super::output::output;
use super::Which;
use crate::config::{self, Kind, Setting};
use std::io::{self, Write};
use std::process::ExitCode;

/// The column behind which it says where a value is from, as far as values are shorter.
const MARGIN: usize = 44;

pub(super) fn run(which: &Which, changed: bool, json: bool) -> anyhow::Result<ExitCode> {
    let (path, kind) = which.find()?;
    match kind {
        Kind::Milter => drop(config::load_parts(path)?),
        Kind::Server => drop(config::load_server_parts(path)?),
    }
    let mut shown = config::settings(path, kind)?;
    if changed {
        shown.settings.retain(|setting| !setting.is_default);
    }
    let mut out = output();
    if json {
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (i, file) in shown.files.iter().enumerate() {
        writeln!(out, "# {}{}", if i > 0 { "and over it " } else { "" }, file.display())?;
    }
    // Keys of the first level stand above all tables.
    let parts = |setting: &'_ Setting| {
        let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        (table.to_owned(), name.to_owned())
    };
    let order: Vec<_> = shown.settings.iter().map(|setting| parts(setting).0).collect();
    let first = |table: &str| order.iter().position(|other| other == table);
    shown.settings.sort_by_cached_key(|setting| {
        let (table, _) = parts(setting);
        (!table.is_empty(), first(&table))
    });
    let mut last = String::new();
    for setting in &shown.settings {
        let (table, name) = parts(setting);
        if table != last {
            writeln!(out, "\n[{table}]")?;
            last = table;
        }
        line(&mut out, &name, setting)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(out: &mut impl Write, name: &str, setting: &Setting) -> io::Result<()> {
    let Some(value) = &setting.value else { return writeln!(out, "# {name} is not set") };
    let text = format!("{name} = {value}");
    match (&setting.file, setting.line) {
        (Some(file), Some(line)) => writeln!(out, "{text:MARGIN$} # {}:{line}", file.display()),
        _ => writeln!(out, "{text:MARGIN$} # default"),
    }
}
