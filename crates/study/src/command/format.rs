// SPDX-License-Identifier: GPL-3.0-or-later
//! The output format of results.

/// As a table for people, or for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    Table,
    Csv,
}
