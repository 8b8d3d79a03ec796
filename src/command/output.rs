// SPDX-License-Identifier: GPL-3.0-or-later
//! What commands print, and their exit codes. All of it goes by here: `println!` and its like panic when nobody reads any more, as in
//! `bulkmark explain letter.eml | head -1`, so the lints of `lib.rs` forbid them.

use std::fmt::Display;
use std::io::{self, StdoutLock, Write};
use std::process::ExitCode;

/// Exit code of sysexits.h for a configuration that cannot be used.
pub(crate) const EX_CONFIG: u8 = 78;

/// Exit code of sysexits.h for a command line that says too little or too much.
pub(crate) const EX_USAGE: u8 = 64;

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

/// Says something on standard error. If nobody listens there either, nobody can be told.
pub fn complain(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says on standard error what ended a command, which then has this exit code.
pub(super) fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    complain(format_args!("bulkmark: {error:#}"));
    ExitCode::from(code)
}
