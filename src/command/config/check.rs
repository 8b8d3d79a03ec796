// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config check`

use super::super::exit::EX_CONFIG;
use super::super::output::{complain, print};
use super::which::Which;
use crate::config::{self, Kind};
use crate::directory::User;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

pub(super) fn run(which: &Which, strict: bool) -> anyhow::Result<ExitCode> {
    let (path, kind) = which.find()?;
    let (control, state_dir) = match kind {
        Kind::Milter => {
            let file = config::load(path)?.file;
            (file.control, file.state_dir)
        }
        Kind::Server => {
            let (file, _) = config::load_server(path)?;
            (file.control, file.state_dir)
        }
    };
    let is_packaged = path.parent() == Path::new(kind.default_path()).parent();
    let user = User::of_daemon(&control, &state_dir, is_packaged);
    let warnings = config::warnings(path, kind, &user, SystemTime::now())?;
    for warning in &warnings {
        complain(format_args!("warning: {warning}"));
    }
    let told = match warnings.len() {
        0 => String::new(),
        1 => ", with a warning".to_owned(),
        n => format!(", with {n} warnings"),
    };
    print(format_args!("{}: ok{told}", path.display()))?;
    Ok(if strict && !warnings.is_empty() { ExitCode::from(EX_CONFIG) } else { ExitCode::SUCCESS })
}
