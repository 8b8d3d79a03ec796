// SPDX-License-Identifier: GPL-3.0-or-later
//! What is verified of a message, what is not, and why: for whoever asks why a white list does not want it.

use crate::lookup::Found;
use bulkmark_mail::RawMessage;
use bulkmark_policy::Authenticate;
use bulkmark_verdict::Rules;
use serde::Serialize;
use std::fmt;

/// A statement of a mail server on DKIM, SPF or another method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Who says so; empty for a field that cannot be read, and none for what was verified here.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// What.
    result: String,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<String>,
}

impl Statement {
    /// All that the message has, in the order of its header; nothing where nobody cares.
    pub(super) fn all(rules: &Rules, message: &RawMessage, verified: &[Found]) -> Vec<Self> {
        let here = verified.iter().map(|found| Self {
            server: None,
            result: format!("{} {}", found.method.name(), found.name),
            ignored: found.result.clone().err(),
        });
        let mut all: Vec<_> = here.collect();
        // What others say of it does not matter then.
        if rules.authentication.is_here() {
            return all;
        }
        let is_off = rules.authentication.authenticate == Authenticate::No;
        if is_off && !rules.whitelist.needs_proof() {
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
