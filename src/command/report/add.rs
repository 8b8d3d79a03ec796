// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report add`, and `report forget` for single messages

use crate::command::milter_args::MilterArgs;
use crate::command::output::{EX_ERROR, EX_TEMPFAIL, Messages, complain, failed, output, shown};
use crate::command::show::some;
use crate::control::{self, MAX_REPORTED, MAX_REPORTER, Report, Reported};
use anyhow::bail;
use bulkmark_ledger::directory::open_regular;
use bulkmark_mail::mbox::{self, SEPARATOR, Shape, delivered};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Report messages as spam, or as not spam.
///
/// A user counts once for each message; the opposite report withdraws the first. Exit code 0: all reports are counted, now or before; 1: some
/// were refused, with the reason; 2: some messages cannot be read; 75: the milter does not answer, or accepts no more of this user's reports today.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Report them as spam, which is the default.
    #[arg(long, conflicts_with = "not_spam")]
    spam: bool,
    /// Report them as not spam.
    #[arg(long)]
    not_spam: bool,
    /// The user who reports them [default: the user who runs the command]
    #[arg(long, value_name = "NAME")]
    user: Option<OsString>,
    /// Also report mail from your own domains (user-reports.own-domains).
    #[arg(long)]
    force: bool,
    /// Exit with 0 also if the milter accepts no more of this user's reports today. The milter logs this once.
    #[arg(long)]
    lenient: bool,
    /// Messages, mboxes and Maildirs; "-" is a message or an mbox on standard input [default: -]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The kind of the reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// As not spam, in place of spam.
    pub(super) not_spam: bool,
    pub(super) force: bool,
    pub(super) lenient: bool,
    /// Withdraws earlier reports, and makes none.
    pub(super) forget: bool,
}

/// The results of all messages.
#[derive(Default)]
struct Sum {
    messages: u64,
    /// Messages that cannot be read.
    unread: u64,
    refused: u64,
    later: u64,
}

/// Sends reports to the milter.
struct Sender {
    kind: Kind,
    socket: PathBuf,
    user: Vec<u8>,
    runtime: tokio::runtime::Runtime,
    sum: Sum,
    /// The JSON output, if wanted.
    json: Option<Messages>,
}

pub(super) fn run(milter: &MilterArgs, args: &Args) -> anyhow::Result<ExitCode> {
    let Args { not_spam, force, lenient, .. } = *args;
    let files = if args.files.is_empty() { &[PathBuf::from("-")][..] } else { &args.files };
    send(milter, args.user.as_ref(), Kind { not_spam, force, lenient, forget: false }, files)
}

/// Sends a report of each message in these files.
pub(super) fn send(
    milter: &MilterArgs,
    user: Option<&OsString>,
    kind: Kind,
    files: &[PathBuf],
) -> anyhow::Result<ExitCode> {
    let socket = milter.socket()?;
    let user = self::user(user)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let json = milter.json.then(Messages::begin).transpose()?;
    let mut sender = Sender { kind, socket, user, runtime, sum: Sum::default(), json };
    let mut failure = None;
    for file in files {
        if let Err(e) = sender.path(file) {
            let code = if e.is::<Silent>() { EX_TEMPFAIL } else { EX_ERROR };
            failure = Some(failed(&e.context(format!("{}", file.display())), code));
            break;
        }
    }
    if let Some(json) = sender.json {
        json.end()?;
    }
    if let Some(code) = failure {
        return Ok(code);
    }
    let Sum { messages, unread, refused, later } = sender.sum;
    if messages == 0 && unread == 0 {
        bail!("no message was found");
    }
    Ok(match (unread, refused, later) {
        (_, _, 1..) => ExitCode::from(EX_TEMPFAIL),
        (1.., ..) => ExitCode::from(EX_ERROR),
        (0, 1.., 0) => ExitCode::FAILURE,
        (0, 0, 0) => ExitCode::SUCCESS,
    })
}

/// The milter did not answer.
#[derive(Debug, thiserror::Error)]
#[error("no daemon answers at {}: {error}", socket.display())]
struct Silent {
    socket: PathBuf,
    error: io::Error,
}

/// Returns the name of the reporting user.
fn user(given: Option<&OsString>) -> anyhow::Result<Vec<u8>> {
    let own = || format!("uid {}", rustix::process::getuid().as_raw()).into();
    let user = given.cloned().unwrap_or_else(own).into_vec();
    if user.is_empty() || user.len() > MAX_REPORTER {
        bail!("--user: found {} bytes, expected a name of 1 to {MAX_REPORTER}", user.len());
    }
    Ok(user)
}

impl Sender {
    fn path(&mut self, path: &Path) -> anyhow::Result<()> {
        if path == Path::new("-") {
            return self.standard_input();
        }
        if !path.is_dir() {
            return self.file(path);
        }
        // Delivered mail of a Maildir; below other directories, all files.
        let is_maildir = path.join("cur").is_dir() && path.join("new").is_dir();
        let mut below: Vec<PathBuf> = if is_maildir {
            ["cur", "new"].map(|name| path.join(name)).to_vec()
        } else {
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?
        };
        below.sort_unstable();
        // Links to directories may form a loop.
        below.iter().filter(|path| !(path.is_symlink() && path.is_dir())).try_for_each(|path| self.path(path))
    }

    fn standard_input(&mut self) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MAX_REPORTED + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_REPORTED {
            bail!("it has more than {MAX_REPORTED} bytes; report an mbox as a file");
        }
        let mut places = Vec::new();
        let shape = mbox::scan(&mut &bytes[..], bytes.len() as u64, &mut |found| {
            places.push((found.at, found.length));
        })?;
        if shape == Shape::Other || shape == Shape::Compressed {
            bail!("it is no mail");
        }
        for (at, length) in places {
            let (at, length) = (usize::try_from(at)?, usize::try_from(length)?);
            let message = bytes.get(at..at.saturating_add(length)).unwrap_or_default();
            self.message("-", message)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        // A missing file, or a socket, does not stop the report of others.
        let opened = open_regular(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                self.unread(&path.display().to_string(), e);
                return Ok(());
            }
        };
        let mut places = Vec::new();
        let shape = mbox::scan(&mut BufReader::new(&file), size, &mut |found| {
            places.push((found.at, found.length));
        })?;
        if shape == Shape::Other || shape == Shape::Compressed {
            self.unread(&path.display().to_string(), "it is no mail");
            return Ok(());
        }
        let several = places.len() > 1;
        for (number, (at, length)) in (1..).zip(places) {
            let name = shown(path);
            let name = if several { format!("{name}, message {number}") } else { name };
            if length > MAX_REPORTED {
                self.unread(&name, format_args!("it has {length} bytes, expected at most {MAX_REPORTED}"));
                continue;
            }
            let mut message = vec![0; usize::try_from(length)?];
            file.read_exact_at(&mut message, at)?;
            self.message(&name, &message)?;
        }
        Ok(())
    }

    /// Prints why a message, or a file, cannot be read.
    fn unread(&mut self, name: &str, why: impl Display) {
        self.sum.unread += 1;
        complain(format_args!("bulkmark: {name}: {why}"));
    }

    /// Reports one message of an mbox.
    fn message(&mut self, name: &str, raw: &[u8]) -> anyhow::Result<()> {
        let message = delivered(raw);
        let head = if message.starts_with(SEPARATOR) {
            memchr::memchr(b'\n', &message).map_or(message.len(), |end| end + 1)
        } else {
            0
        };
        let message = &message[head..];
        let Self { kind, socket, user, runtime, sum, json } = self;
        let report = Report {
            user: user.clone(),
            // A withdrawn report may be either; the milter decides.
            spam: !kind.not_spam,
            force: kind.force,
            forget: kind.forget,
            length: message.len() as u64,
        };
        let reported = runtime.block_on(control::report(socket, &report, message));
        let reported = reported.map_err(|error| Silent { socket: socket.clone(), error })?;
        sum.messages += 1;
        let is_let_pass = kind.lenient && reported.too_many;
        sum.later += u64::from(reported.later && !is_let_pass);
        sum.refused += u64::from((reported.refused.is_some() || reported.too_often > 0) && !is_let_pass);
        match json {
            Some(json) => json.add(name, &reported)?,
            None => writeln!(output(), "{name}: {}", sentence(*kind, &reported))?,
        }
        Ok(())
    }
}

/// Describes the result of a message.
fn sentence(kind: Kind, reported: &Reported) -> String {
    if let Some(why) = &reported.refused {
        return format!("refused: {why}");
    }
    let side = if kind.not_spam { "not spam" } else { "spam" };
    let Reported {
        signatures,
        counted,
        taken_back,
        known,
        too_often,
        no_room,
        shared,
        weightless,
        weight,
        ..
    } = reported;
    let mut parts = Vec::new();
    if *taken_back > 0 {
        parts.push(format!(
            "the opposite withdraws this user's earlier report of {}",
            some(taken_back, "signature")
        ));
    }
    if *counted > 0 {
        let weight = if *weight < 1.0 { format!(", with the weight {weight:.3}") } else { String::new() };
        parts.push(format!("counted as {side} by {counted} of {}{weight}", some(signatures, "signature")));
    }
    if parts.is_empty() && *known > 0 {
        parts.push(if kind.forget {
            "no report of this user on it counts".to_owned()
        } else {
            format!("counted as {side} before")
        });
    }
    if *too_often > 0 {
        parts.push(format!(
            "{too_often} not counted, since this user changed their mind about them too often"
        ));
    }
    if *no_room > 0 {
        parts.push(format!("{no_room} not counted, since there is no room for more user reports"));
    }
    if *weightless > 0 {
        let why = if kind.not_spam {
            "nobody reported them as spam, or this user is not trusted"
        } else {
            "new users have reached their common limit, or this user is not trusted"
        };
        parts.push(format!("{weightless} not counted, since {why}"));
    }
    let where_to = if *shared && *counted + *taken_back > 0 { "; other servers are told" } else { "" };
    format!("{}{where_to}", parts.join("; "))
}
