// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of DKIM, SPF and DMARC, and the reasons why some do not count: they show why a white list does not want a message.

use crate::lookup::Found;
use bulkmark_mail::RawMessage;
use bulkmark_policy::Authenticate;
use bulkmark_verdict::Rules;
use serde::Serialize;
use std::fmt;

/// A result of DKIM, SPF or another method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// The server with this result; empty for an unreadable field, and `None` if it was verified here.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The result.
    result: String,
    /// The reason why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<String>,
}

impl Statement {
    /// All results of a message, in the order of its header; empty if none matters.
    pub(super) fn all(rules: &Rules, message: &RawMessage, verified: &[Found]) -> Vec<Self> {
        let here = verified.iter().map(|found| Self {
            server: None,
            result: format!("{} {}", found.method.name(), found.name),
            ignored: found.result.clone().err(),
        });
        let mut all: Vec<_> = here.collect();
        // Results of other servers do not count then.
        if rules.authentication.is_here() {
            return all;
        }
        let is_off = rules.authentication.authenticate == Authenticate::No;
        if is_off && !rules.whitelist.needs_verification() {
            return all;
        }
        rules.authentication.judge(&message.fields(), &mut |server, result, taken| {
            let result = result.map_or_else(|| "a field".to_owned(), ToString::to_string);
            all.push(Self {
                server: Some(server.to_owned()),
                result,
                ignored: taken.err().map(|why| why.to_string()),
            });
        });
        all
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server.as_deref() {
            None => {
                return match &self.ignored {
                    Some(why) => write!(f, "{}: not verified: {why}", self.result),
                    None => write!(f, "{}: verified", self.result),
                };
            }
            Some("") => f.write_str("Authentication-Results that cannot be read")?,
            Some(server) => write!(f, "{server} says {}", self.result)?,
        }
        match &self.ignored {
            Some(why) => write!(f, ": ignored, since {why}"),
            None => f.write_str(": counts"),
        }
    }
}
