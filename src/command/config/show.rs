// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config show`

use super::super::output::output;
use super::file_args::FileArgs;
use crate::config::{self, Kind, Setting};
use std::io::{self, Write};
use std::process::ExitCode;

/// The column of the comment about a value's file, if the value is shorter.
const MARGIN: usize = 44;

pub(super) fn run(file: &FileArgs, changed: bool, json: bool) -> anyhow::Result<ExitCode> {
    let (path, kind) = file.find()?;
    let path = &*path;
    match kind {
        Kind::Milter | Kind::Interfaces => drop(config::load_parts(path)?),
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
    // Keys of the first level precede all tables.
    let mut tables: Vec<(&str, Vec<(&str, &Setting)>)> = vec![("", Vec::new())];
    for setting in &shown.settings {
        let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        match tables.iter_mut().find(|(other, _)| *other == table) {
            Some((_, settings)) => settings.push((name, setting)),
            None => tables.push((table, vec![(name, setting)])),
        }
    }
    for (table, settings) in tables.iter().filter(|(_, settings)| !settings.is_empty()) {
        writeln!(out)?;
        if !table.is_empty() && settings.iter().any(|(_, setting)| setting.value.is_some()) {
            writeln!(out, "[{table}]")?;
        }
        for (name, setting) in settings {
            line(&mut out, name, setting)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(out: &mut impl Write, name: &str, setting: &Setting) -> io::Result<()> {
    let Some(value) = &setting.value else { return writeln!(out, "# {} is not set", setting.key) };
    let text = format!("{name} = {value}");
    match (&setting.file, setting.line) {
        (Some(file), Some(line)) => {
            let before = setting.entries.iter().map(|(file, line)| format!("{}:{line}, ", file.display()));
            writeln!(out, "{text:MARGIN$} # {}{}:{line}", before.collect::<String>(), file.display())
        }
        _ => writeln!(out, "{text:MARGIN$} # default"),
    }?;
    for was in &setting.replaces {
        writeln!(out, "{:MARGIN$} # replaces {} of {}:{}", "", was.value, was.file.display(), was.line)?;
    }
    Ok(())
}
