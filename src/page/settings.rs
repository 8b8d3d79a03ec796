// SPDX-License-Identifier: GPL-3.0-or-later
//! `[status]` of the configuration.

use crate::activity::Record;
use crate::net::Listen;
use serde::Deserialize;

/// Personal data that the page can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// Subjects of bulk, which are then kept over a restart.
    Subjects,
    /// Names and addresses of clients.
    Clients,
    /// Recipients.
    Recipients,
}

/// The keys of `[status]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The address of the page.
    pub listen: Listen,
    /// Names by which browsers may ask for it, beside addresses and localhost. With a name, other machines may ask.
    pub hosts: Vec<String>,
    /// The personal data that it shows.
    pub show: Vec<Show>,
}

/// The defaults of a milter.
impl Default for Settings {
    fn default() -> Self {
        Self { listen: Listen::here(8722), hosts: Vec::new(), show: Vec::new() }
    }
}

impl Settings {
    /// Whether there is a page.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.listen.address().is_some()
    }

    /// Returns which data of messages are kept for the page.
    #[must_use]
    pub fn record(&self) -> Record {
        if !self.is_wanted() {
            return Record::default();
        }
        let has = |item| self.show.contains(&item);
        let (subjects, clients) = (has(Show::Subjects), has(Show::Clients));
        Record { verdicts: true, subjects, clients, recipients: has(Show::Recipients) }
    }

    /// Whether the keys agree with one another.
    ///
    /// # Errors
    /// An error about `listen`.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.is_outside() && self.hosts.is_empty() {
            return Err(format!(
                "found \"{}\", expected a loopback address or unix:/PATH, since there is no password; hosts = [\"NAME\"], the \
                 name by which they ask, shows it to other machines",
                self.listen
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_others_can_see_must_be_allowed() {
        let settings = |listen: &str, is_allowed: bool| Settings {
            listen: Listen::try_from(listen.to_owned()).unwrap(),
            hosts: is_allowed.then(|| "mx.example.org".to_owned()).into_iter().collect(),
            ..Settings::default()
        };
        for here in ["", "127.0.0.1:8722", "127.9.9.9:1", "[::1]:8722", "localhost:8722", "unix:/run/page"] {
            assert_eq!(settings(here, false).check(), Ok(()), "{here}");
        }
        for outside in ["0.0.0.0:8722", "[::]:8722", "192.0.2.1:8722"] {
            assert!(settings(outside, false).check().is_err(), "{outside}");
            assert_eq!(settings(outside, true).check(), Ok(()), "{outside}");
        }
        for bad in ["8722", "localhost", "unix:page"] {
            assert!(Listen::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
