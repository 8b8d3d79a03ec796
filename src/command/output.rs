// SPDX-License-Identifier: GPL-3.0-or-later
//! The output of commands, and their exit codes. All output passes here: `println!` and similar macros panic once the reader is gone, as in
//! `bulkmark explain letter.eml | head -1`, so the lints of `lib.rs` forbid them.

use crate::config::ConfigError;
use bulkmark_types::{is_invisible, visible};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

/// Exit code of sysexits.h for a configuration that cannot be used.
pub(crate) const EX_CONFIG: u8 = 78;

/// Exit code of sysexits.h for a temporary failure: the daemon does not answer, or accepts no more today.
pub(super) const EX_TEMPFAIL: u8 = 75;

/// Exit code for an invalid command line, as clap has it, and for every error without a separate code.
pub(super) const EX_ERROR: u8 = 2;

/// Exit code of monitoring plugins for a state that is not known.
const NAGIOS_UNKNOWN: i32 = 3;

/// The exit status that a shell shows for a program ended by SIGPIPE. Rust's runtime ignores that signal.
const ENDED_BY_SIGPIPE: i32 = 128 + 13;

/// Standard output. Once its reader is gone, the process ends, as other programs do.
pub(super) struct Output(StdoutLock<'static>);

/// Locks standard output for this thread until it is dropped.
pub(super) fn output() -> Output {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    Output(io::stdout().lock())
}

/// Whether a character would move the cursor or be invisible.
fn is_hidden(c: char) -> bool {
    is_invisible(c) && !"\n\t".contains(c)
}

/// The text, with hidden characters as `\u009b`: in JSON that is the same string.
fn as_in_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            let units =
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            shown.push_str(&units);
        } else {
            shown.push(c);
        }
    }
    shown
}

fn or_end<T>(written: io::Result<T>) -> io::Result<T> {
    written.map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => std::process::exit(ENDED_BY_SIGPIPE),
        kind => io::Error::new(kind, format!("cannot write to standard output: {e}")),
    })
}

/// Writes text as the terminal may have it, whatever the names and subjects in it contain.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(is_hidden) => {
                or_end(self.0.write_all(as_in_json(text).as_bytes())).map(|()| bytes.len())
            }
            _ => or_end(self.0.write(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        or_end(self.0.flush())
    }
}

/// Prints a line on standard output.
///
/// # Errors
/// If it cannot be written, for example because the disk is full.
pub(super) fn print(line: impl Display) -> io::Result<()> {
    writeln!(output(), "{line}")
}

/// Prints the result of a command: as a JSON object, or as text for people.
///
/// # Errors
/// As for `print`.
pub(super) fn print_result(json: bool, object: &serde_json::Value, text: impl Display) -> io::Result<()> {
    if json { print(object) } else { print(text) }
}

/// One JSON object with a list of messages, each printed as soon as it is known: `{"messages":[{"file":...},...]}`.
pub(super) struct Messages {
    is_first: bool,
}

impl Messages {
    pub(super) fn begin() -> io::Result<Self> {
        write!(output(), "{{\"messages\":[")?;
        Ok(Self { is_first: true })
    }

    /// Adds the object `content` of a file of this name.
    pub(super) fn add(&mut self, file: &str, content: &impl Serialize) -> io::Result<()> {
        #[derive(Serialize)]
        struct Message<'a, T> {
            file: &'a str,
            #[serde(flatten)]
            content: &'a T,
        }
        let text = serde_json::to_string(&Message { file, content })?;
        let comma = if std::mem::replace(&mut self.is_first, false) { "" } else { "," };
        write!(output(), "{comma}{text}")
    }

    pub(super) fn end(self) -> io::Result<()> {
        writeln!(output(), "]}}")
    }
}

/// Prints a text on standard error. Only its text and line ends reach the terminal, whatever the files and names in it contain. A failed write
/// is ignored, since no other place is left.
pub(super) fn complain(text: impl Display) {
    let text = text.to_string();
    let lines: Vec<String> =
        text.split('\n').map(|line| line.split('\t').map(visible).collect::<Vec<_>>().join("\t")).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// Returns the name of a file for the terminal: another user may have chosen it, with control characters in it.
pub(super) fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// The advice to a user without the permissions of the daemon's.
pub(super) const AS_ROOT: &str = "are you root, or in the group bulkmark?";

/// Prints on standard error the error that ended a command, and returns this exit code; or `EX_CONFIG`, if a configuration cannot be used.
pub fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    let text = format!("{error:#}");
    let is_of_config = error.chain().any(|cause| cause.is::<ConfigError>());
    let denied = io::Error::from(io::ErrorKind::PermissionDenied).to_string();
    // For root it is a file's system, or a file that the daemon's user must be able to read.
    let advice =
        is_of_config && text.to_lowercase().contains(&denied) && !rustix::process::geteuid().is_root();
    complain(format_args!("bulkmark: {text}{}", if advice { format!("\n{AS_ROOT}") } else { String::new() }));
    ExitCode::from(if is_of_config { EX_CONFIG } else { code })
}

/// Prints the help or version that was asked for, or what is wrong with the command line, and ends the process.
pub fn misused(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    let missing = error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    complain(format_args!("bulkmark: {}{text}", if missing { "a command is missing\n\n" } else { "" }));
    // Monitoring takes 2 for a broken daemon.
    let is_plugin = std::env::args_os().any(|option| option == "--nagios");
    std::process::exit(if is_plugin { NAGIOS_UNKNOWN } else { error.exit_code() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `serde_json` escapes only the controls of ASCII.
    #[test]
    fn no_value_in_json_reaches_the_terminal_as_a_control() {
        let subject = "\u{9b}2J\u{202e}a\u{7f}\u{e0041} 漢\t\"";
        let json = serde_json::json!({ "subject": subject }).to_string();
        let shown = as_in_json(&json);
        assert!(!shown.contains(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["subject"], subject);
        assert_eq!(as_in_json("a\tb\n\u{1b}[2J\r"), "a\tb\n\\u001b[2J\\u000d");
    }
}
