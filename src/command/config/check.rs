// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config check`

use super::super::next_start;
use super::super::output::EX_CONFIG;
use super::super::output::{complain, print};
use super::file_args::FileArgs;
use crate::config::{self, Checked, Kind};
use crate::lookup::Resolver;
use bulkmark_counts::Role;
use bulkmark_ledger::directory::User;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

pub(super) fn run(file: &FileArgs, strict: bool, json: bool) -> anyhow::Result<ExitCode> {
    let (path, kind) = file.find()?;
    let checked = check(&path, kind, strict, json);
    if json && let Err(e) = &checked {
        print(json!({ "file": path, "kind": kind.name(), "usable": false, "error": format!("{e:#}") }))?;
    }
    checked
}

fn check(path: &Path, kind: Kind, strict: bool, json: bool) -> anyhow::Result<ExitCode> {
    let mut of_lists = Vec::new();
    let (role, control, state_dir, key) = match kind {
        Kind::Milter | Kind::Interfaces => {
            let checked = config::load(path)?;
            of_lists = whitelist_warnings(&checked);
            let settings = &checked.file.authentication;
            // `bulkmark doctor` asks the configured name servers; this checks only that there are any.
            let missing = settings.is_here().then(|| Resolver::new(settings).err()).flatten();
            of_lists
                .extend(missing.map(|e| {
                    format!("{}: authentication.authenticate is \"self\", but {e}", path.display())
                }));
            let Checked { file, key, .. } = checked;
            (Role::Site, file.control, file.state_dir, key)
        }
        Kind::Server => {
            let (file, key) = config::load_server(path)?;
            (file.role(), file.control, file.state_dir, key)
        }
    };
    let is_packaged = path.parent() == Path::new(kind.default_path()).parent();
    let user = User::of_daemon(&control, &state_dir, is_packaged);
    let warnings = config::warnings(path, kind, &user, SystemTime::now())?;
    let mut warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    warnings.extend(of_lists);
    let daemon =
        next_start::Daemon { config: path, kind, role, state_dir: &state_dir, control: &control, key: &key };
    warnings.extend(next_start::warning(&daemon)?.map(|warning| warning.to_string()));
    let code = if strict && !warnings.is_empty() { ExitCode::from(EX_CONFIG) } else { ExitCode::SUCCESS };
    if json {
        print(json!({ "file": path, "kind": kind.name(), "usable": true, "warnings": warnings }))?;
        return Ok(code);
    }
    for warning in &warnings {
        complain(format_args!("warning: {warning}"));
    }
    let summary = match warnings.len() {
        0 => String::new(),
        1 => ", with a warning".to_owned(),
        n => format!(", with {n} warnings"),
    };
    print(format_args!("{}: ok{summary}", path.display()))?;
    Ok(code)
}

/// Returns warnings about entries that anybody can make match, and entries that can never match.
fn whitelist_warnings(checked: &Checked) -> Vec<String> {
    let policies = &checked.policies.0;
    let default_actions = &checked.file.actions;
    let policy_lists = policies.iter().map(|policy| (&policy.whitelist, policy.actions.do_more_than_mark()));
    let acts = default_actions.do_more_than_mark()
        || policies.iter().any(|policy| policy.actions.do_more_than_mark());
    let lists = std::iter::once((&checked.whitelist, acts)).chain(policy_lists);
    lists
        .flat_map(|(list, acts)| bulkmark_policy::warnings(list, acts, &checked.file.authentication))
        .collect()
}
