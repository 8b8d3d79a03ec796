// SPDX-License-Identifier: GPL-3.0-or-later
//! What commands print, and their exit codes. All of it goes by here: `println!` and its like panic when nobody reads any more, as in
//! `bulkmark explain letter.eml | head -1`, so the lints of `lib.rs` forbid them.

use crate::config::ConfigError;
use bulkmark_types::visible;
use serde::Serialize;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, StdoutLock, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Exit code of sysexits.h for a configuration that cannot be used.
pub(crate) const EX_CONFIG: u8 = 78;

/// Exit code of sysexits.h for what works later: the daemon does not answer, or takes no more today.
pub(super) const EX_TEMPFAIL: u8 = 75;

/// Exit code for a command line that is not valid, as clap has it, and for every error without a code of its own.
pub(super) const EX_ERROR: u8 = 2;

/// The exit status that a shell shows of a program that SIGPIPE ended. Rust's runtime ignores that signal.
const ENDED_BY_SIGPIPE: i32 = 128 + 13;

/// Standard output. Once its reader is gone, there is nothing left to do or to say: the process ends, as others do.
pub(super) struct Output(StdoutLock<'static>);

/// Standard output, for this thread alone until it is dropped.
pub(super) fn output() -> Output {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    Output(io::stdout().lock())
}

fn or_end<T>(written: io::Result<T>) -> io::Result<T> {
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(ENDED_BY_SIGPIPE),
        written => written,
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_end(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        or_end(self.0.flush())
    }
}

/// Prints a line on standard output.
///
/// # Errors
/// When it cannot be written, for example because the disk is full.
pub(super) fn print(line: impl Display) -> io::Result<()> {
    writeln!(output(), "{line}")
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

    /// Adds one, `of` a file of this name.
    pub(super) fn add(&mut self, file: &str, of: &impl Serialize) -> io::Result<()> {
        #[derive(Serialize)]
        struct Message<'a, T> {
            file: &'a str,
            #[serde(flatten)]
            of: &'a T,
        }
        let text = serde_json::to_string(&Message { file, of })?;
        let comma = if std::mem::replace(&mut self.is_first, false) { "" } else { "," };
        write!(output(), "{comma}{text}")
    }

    pub(super) fn end(self) -> io::Result<()> {
        writeln!(output(), "]}}")
    }
}

/// Says something on standard error, of whatever files and names it speaks: nothing in it reaches the terminal but text and the ends
/// of lines. If nobody listens there either, nobody can be told.
pub(super) fn complain(text: impl Display) {
    let text = text.to_string();
    let lines: Vec<String> =
        text.split('\n').map(|line| line.split('\t').map(visible).collect::<Vec<_>>().join("\t")).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// The name of a file as it is shown: somebody else may have given it, with what moves a cursor in it.
pub(super) fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// Opens a regular file for reading. Others, such as pipes, would be waited for: they are opened without that, and refused.
///
/// # Errors
/// When it cannot be opened, or is another kind of file.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Says on standard error what ended a command, which then has this exit code; or that of a configuration, if one cannot be used.
pub fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    complain(format_args!("bulkmark: {error:#}"));
    let is_of_config = error.chain().any(|cause| cause.is::<ConfigError>());
    ExitCode::from(if is_of_config { EX_CONFIG } else { code })
}
