// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors for parameters that cannot be used, or do not fit together.

use std::fmt;

/// The reason why a filter cannot be made or two filters cannot be merged. Names the parameter and its values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct ParameterError {
    name: &'static str,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq)]
enum Problem {
    Range { found: u64, least: u64, most: u64 },
    Differ { ours: u64, theirs: u64 },
    Memory { found: u64 },
    Rate { found: f64 },
}

impl ParameterError {
    /// Checks a value against its bounds.
    pub fn check(name: &'static str, found: u64, least: u64, most: u64) -> Result<(), Self> {
        if (least..=most).contains(&found) {
            Ok(())
        } else {
            Err(Self { name, problem: Problem::Range { found, least, most } })
        }
    }

    /// Checks that two filters agree in a parameter.
    pub fn same(name: &'static str, ours: u64, theirs: u64) -> Result<(), Self> {
        if ours == theirs { Ok(()) } else { Err(Self { name, problem: Problem::Differ { ours, theirs } }) }
    }

    /// Returns the error for more memory than this machine has.
    pub const fn memory(name: &'static str, found: u64) -> Self {
        Self { name, problem: Problem::Memory { found } }
    }

    /// Returns the error for an invalid error rate.
    pub(crate) const fn rate(found: f64) -> Self {
        Self { name: "f", problem: Problem::Rate { found } }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.problem {
            Problem::Range { found, least, most } => {
                write!(f, "{name} is {found}, expected {least} to {most}")
            }
            Problem::Differ { ours, theirs } => {
                write!(f, "the filters do not go together: {name} is {ours} in one and {theirs} in the other")
            }
            Problem::Memory { found } => {
                write!(f, "{name} is {found}, more than this machine has memory for")
            }
            Problem::Rate { found } => write!(f, "{name} is {found}, expected more than 0 and less than 1"),
        }
    }
}
