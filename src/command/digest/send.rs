// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends a text by mail, through the mail system of this machine.

use anyhow::Context;
use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

/// Candidates for sendmail(1): in the path, or in the directories that a user's path may lack.
const PROGRAMS: [&str; 3] = ["sendmail", "/usr/sbin/sendmail", "/usr/lib/sendmail"];

/// Passes a mail to the local mail system. `to` is an address that can be part of a header field.
///
/// # Errors
/// If there is no sendmail, or it refuses the mail.
pub(super) fn send(to: &str, subject: &str, text: &str) -> anyhow::Result<()> {
    let mail = format!(
        "To: {to}\nSubject: {subject}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{text}"
    );
    for program in PROGRAMS {
        let spawned = Command::new(program).args(["-i", "--", to]).stdin(Stdio::piped()).spawn();
        let mut child = match spawned {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            spawned => spawned.with_context(|| format!("cannot run {program}"))?,
        };
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(mail.as_bytes()));
        let status = child.wait().with_context(|| format!("cannot wait for {program}"))?;
        anyhow::ensure!(status.success(), "{program} did not take the mail to {to} ({status})");
        return written.with_context(|| format!("{program} did not read the mail to {to}"));
    }
    anyhow::bail!(
        "there is no sendmail here, which takes mail from programs; look in {}",
        PROGRAMS.join(", ")
    )
}
