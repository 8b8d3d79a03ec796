// SPDX-License-Identifier: GPL-3.0-or-later
//! `interfaces.toml`: a milter's configuration with `listen = "none"`, and with different paths.

use super::error::ConfigError;
use super::in_force::MILTER_EXAMPLE;
use super::source::Source;
use crate::interfaces::Settings;
use crate::milter::NONE;
use std::sync::LazyLock;

/// The default path of the file.
pub const INTERFACES_PATH: &str = "/etc/bulkmark/interfaces.toml";

/// The default paths of its ledger and its control socket.
pub(super) const STATE_DIR: &str = "/var/lib/bulkmark/interfaces";
pub(super) const CONTROL: &str = "/run/bulkmark/interfaces.sock";

/// Keys whose defaults differ from a milter's; `listen` is the key by which such a file is recognised.
const OTHER_DEFAULTS: [(&str, &str); 3] = [("listen", NONE), ("state-dir", STATE_DIR), ("control", CONTROL)];

/// Its keys with their defaults, in the order of the milter's.
static KEYS: LazyLock<String> = LazyLock::new(|| {
    let key = |line: &str| line.split_once(" = ").map_or("", |(key, _)| key).to_owned();
    // Tables have keys of the same names.
    let (mut text, mut is_first) = (String::new(), true);
    for line in MILTER_EXAMPLE.lines() {
        is_first &= !line.starts_with('[');
        match OTHER_DEFAULTS.iter().find(|(name, _)| is_first && *name == key(line)) {
            Some((name, value)) => text.extend([name, " = \"", value, "\"\n"]),
            None => text.extend([line, "\n"]),
        }
    }
    text
});

/// Returns every key with its default.
pub(super) fn example() -> &'static str {
    &KEYS
}

/// Checks a file of interfaces alone that is valid for a milter with these interfaces.
pub(super) fn check(source: &Source, settings: &Settings) -> Result<(), ConfigError> {
    if !settings.are_open() {
        let message = "no interface is configured, so there is nothing to do; expected listen in [interfaces.http], [interfaces.dccifd], [interfaces.razor] or \
                    [interfaces.pyzor]";
        return Err(source.error("interfaces", message.to_owned()));
    }
    Ok(())
}
