// SPDX-License-Identifier: GPL-3.0-or-later
//! The settings of user reports.

use super::persons::Persons;
use super::reporters::Reporters;
use super::settings::Threshold;
use bulkmark_types::UNIT;
use serde::Deserialize;

/// `[user-reports]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UserReportSettings {
    /// The weight of users without history, and of other sites' users.
    pub trust: Reporters,
    /// Domains whose mail, and that of all below them, cannot be reported as spam.
    pub own_domains: Vec<String>,
    /// Whether the log names reporters.
    pub log_names: bool,
}

impl UserReportSettings {
    /// The settings of trust, for this threshold of spam.
    ///
    /// # Errors
    /// A weight is out of its bounds.
    pub fn trust(&self, spam: Threshold) -> Result<bulkmark_trust::Settings, bulkmark_trust::SettingsError> {
        let [new, all] = [self.trust.new_reporter, self.trust.max_newcomers].map(Persons::in_persons);
        bulkmark_trust::Settings::new(new, all, spam.get().saturating_mul(UNIT))
    }

    /// Whether this domain, or one above it, is one's own.
    #[must_use]
    pub fn owns(&self, domain: &str) -> bool {
        let domain = domain.trim_end_matches('.').to_lowercase();
        self.own_domains.iter().any(|own| {
            let own = own.trim_matches('.').to_lowercase();
            domain.strip_suffix(&own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// The first of the own domains that is invalid.
    #[must_use]
    pub fn bad_domain(&self) -> Option<&str> {
        let is_good = |domain: &str| {
            let labels = domain.trim_matches('.');
            !labels.is_empty() && labels.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
        };
        self.own_domains.iter().map(String::as_str).find(|domain| !is_good(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fraction;

    #[test]
    fn a_domain_and_all_below_it_are_own() {
        let own = UserReportSettings {
            own_domains: vec!["Example.org".to_owned()],
            ..UserReportSettings::default()
        };
        assert!(own.owns("example.ORG") && own.owns("mail.example.org.") && own.owns("example.org"));
        assert!(!own.owns("badexample.org") && !own.owns("org") && !own.owns(""));
    }

    #[test]
    fn the_defaults_are_those_of_trust() {
        let three = 3i64.try_into().unwrap();
        assert_eq!(UserReportSettings::default().trust(three), Ok(bulkmark_trust::Settings::default()));
    }

    #[test]
    fn a_weight_is_at_least_one_unit() {
        let units = |weight: f64| Fraction::try_from(weight).unwrap().units();
        assert_eq!([0.0, 0.1, 0.5, 1.0].map(units), [1, 1, 4, 8]);
        assert!(Fraction::try_from(1.1).is_err() && Fraction::try_from(f64::NAN).is_err());
        assert!(Persons::try_from(0.1).is_err() && Persons::try_from(f64::NAN).is_err());
    }
}
