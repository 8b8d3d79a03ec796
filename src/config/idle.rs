// SPDX-License-Identifier: GPL-3.0-or-later
//! Settings of a milter that are valid and have no effect, or one that nobody wants.

use super::error::ConfigError;
use super::milter::MilterFile;
use super::source::Source;
use bulkmark_policy::{MatchSettings, Rehearse};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the problems of policies, rehearsals and relays.
pub(super) fn idle_warnings(source: &Source, now: SystemTime) -> Result<Vec<ConfigError>, ConfigError> {
    let file: MilterFile = source.parse()?;
    let mut found = unreached(source, &file);
    found.extend(rehearsals(source, &file, now));
    for (i, relay) in file.relays.iter().enumerate().filter(|(_, relay)| relay.is_everybody()) {
        let message = format!(
            "{relay} has all clients, so anybody can write which client sent a message; name your own relays"
        );
        found.push(source.error(&format!("relays.{i}"), message));
    }
    Ok(found)
}

/// Returns the policies that a policy before them takes the mail of.
fn unreached(source: &Source, file: &MilterFile) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (i, policy) in file.policy.iter().enumerate() {
        let takes =
            |matches: &MatchSettings| *matches == MatchSettings::default() || *matches == policy.matches;
        let Some(j) = file.policy[..i].iter().position(|before| takes(&before.matches)) else { continue };
        let (before, all) = (&file.policy[j], file.policy[j].matches == MatchSettings::default());
        let place = source.place(&format!("policy.{j}.name")).unwrap_or_default();
        let fits = if all { "fits all mail" } else { "has the same match" };
        let message = format!(
            "the policy {} is never reached: {} before it, {place}, {fits}",
            policy.name.as_str(),
            before.name.as_str()
        );
        found.push(source.error(&format!("policy.{i}.name"), message));
    }
    found
}

/// Returns the rehearsals that change nothing.
fn rehearsals(source: &Source, file: &MilterFile, now: SystemTime) -> Vec<ConfigError> {
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let policies: Vec<_> =
        file.policy.iter().map(|policy| (policy, policy.actions.over(&file.actions))).collect();
    let mut acts = file.actions.do_more_than_mark();
    acts |= policies.iter().any(|(own, all)| own.actions.rehearse.is_none() && all.do_more_than_mark());
    let mut all = vec![("actions.rehearse".to_owned(), file.actions.rehearse, acts)];
    for (i, (own, merged)) in policies.iter().enumerate() {
        let rehearse = own.actions.rehearse.unwrap_or_default();
        all.push((format!("policy.{i}.actions.rehearse"), rehearse, merged.do_more_than_mark()));
    }
    let problem = |(key, rehearse, acts): (String, Rehearse, bool)| {
        let message = match rehearse {
            Rehearse::Never => return None,
            _ if !acts => "without effect: bulk, near and spam are all \"mark\"",
            Rehearse::Until(time) if time.seconds() <= now => {
                "this time has passed, so the actions are taken; remove rehearse"
            }
            _ => return None,
        };
        Some(source.error(&key, message.to_owned()))
    };
    all.into_iter().filter_map(problem).collect()
}
