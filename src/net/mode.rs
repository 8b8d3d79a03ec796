// SPDX-License-Identifier: GPL-3.0-or-later
//! The permissions of a Unix socket.

use serde::Deserialize;

/// The permissions of a Unix socket, written in octal: "0660".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mode(u32);

impl Mode {
    /// Returns the bits for the system.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self(0o660)
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(Self).ok_or_else(|| format!("found \"{text}\", expected an octal mode such as \"0660\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read() {
        assert_eq!(Mode::try_from("0640".to_owned()).unwrap().0, 0o640);
        assert!(Mode::try_from("abc".to_owned()).is_err() && Mode::try_from("7777".to_owned()).is_err());
    }
}
