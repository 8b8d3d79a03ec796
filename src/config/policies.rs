// SPDX-License-Identifier: GPL-3.0-or-later
//! `[[policy]]` and `[outbound]` against the rest of the file, with the files that they name.

use super::error::ConfigError;
use super::source::Source;
use crate::milter::Listeners;
use bulkmark_ledger::directory::open_regular;
use bulkmark_policy::{
    DEFAULT, Defaults, MAX_POLICIES, Name, OneOrMany, OutboundSettings, Policies, Policy, PolicySettings,
    WhiteListError,
};
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes of a white list or table, which is kept in memory: some million entries.
const LARGEST_LIST: u64 = 256 << 20;

/// Checks that names are unique, and that named listeners exist.
pub(super) fn check(
    source: &Source,
    listeners: &Listeners,
    policies: &[PolicySettings],
    outbound: &OutboundSettings,
) -> Result<(), ConfigError> {
    if policies.len() > MAX_POLICIES {
        let message = format!("found {} policies, expected {MAX_POLICIES} at most", policies.len());
        return Err(source.error("policy", message));
    }
    for (i, policy) in policies.iter().enumerate() {
        let name = policy.name.as_str();
        let is_taken = policies[..i].iter().any(|other| other.name == policy.name);
        if is_taken || name == DEFAULT {
            let why = if is_taken { "twice" } else { "which is the name for mail without a policy" };
            let message = format!("found \"{name}\" {why}, expected a name of its own");
            return Err(source.error(&format!("policy.{i}.name"), message));
        }
        check_listeners(source, listeners, &format!("policy.{i}.match.listener"), &policy.matches.listener)?;
    }
    check_listeners(source, listeners, "outbound.match.listener", &outbound.matches.listener)?;
    outbound.check().map_err(|(key, message)| source.error(&format!("outbound.{key}"), message))
}

/// Checks that listeners exist, since an unknown one would never match.
fn check_listeners(
    source: &Source,
    listeners: &Listeners,
    key: &str,
    wanted: &OneOrMany<Name>,
) -> Result<(), ConfigError> {
    let Some(unknown) = wanted.0.iter().find(|wanted| listeners.names().all(|name| name != *wanted)) else {
        return Ok(());
    };
    let known: Vec<_> = listeners.names().map(Name::as_str).collect();
    let expected = match &known[..] {
        [] => "but listen has no listener with a name".to_owned(),
        known => format!("expected a name that listen has: {}", known.join(", ")),
    };
    Err(source.error(key, format!("found \"{}\", {expected}", unknown.as_str())))
}

/// Reads all policies, with the files that they name.
pub(super) fn load(
    source: &Source,
    policies: &[PolicySettings],
    defaults: Defaults<'_>,
) -> Result<Policies, ConfigError> {
    let load = |(i, settings)| {
        Policy::load(settings, defaults, &read_bounded).map_err(|(key, e)| match e {
            WhiteListError::Read { .. } => source.error(&format!("policy.{i}.{key}"), e.to_string()),
            WhiteListError::Entry { path, line, what } => {
                ConfigError::file(Path::new(&format!("{}:{line}", path.display())), what)
            }
        })
    };
    policies.iter().enumerate().map(load).collect::<Result<_, _>>().map(Policies::new)
}

/// Reads a file of a white list, up to a size bound.
///
/// # Errors
/// If it cannot be read, or is larger.
pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_LIST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_LIST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {LARGEST_LIST} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    /// The owner of one list could otherwise stop the task that reads all lists again.
    #[test]
    fn a_pipe_in_the_place_of_a_list_hangs_nobody() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("whitelist");
        mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        assert!(read_bounded(&path).unwrap_err().to_string().contains("no regular file"));
    }
}
