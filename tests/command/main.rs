// SPDX-License-Identifier: GPL-3.0-or-later
//! The command line: the output and the exit code of each command.

mod cli;
mod client;
mod closed_pipe;
mod completions;
mod config_check;
mod config_errors;
mod config_pieces;
mod digest;
mod exit_codes;
mod install;
mod json;
mod promises;
mod reports;
mod signature;
mod status;
mod tune;
