// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark pause` and `bulkmark resume`

use super::milter_args::{self, unanswered};
use super::output::{complain, print};
use super::show::time;
use super::values::order_duration;
use crate::config::{self, DEFAULT_PATH, Kind, SERVER_PATH};
use crate::control::{self, Given, Order, Ordered};
use crate::orders::{MAX_TEXT, Pause};
use crate::refusals::{Query, find};
use anyhow::Context as _;
use bulkmark_ledger::directory::User;
use bulkmark_types::remote_text;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct OrderArgs {
    /// The reason, for the log and the lists.
    #[arg(long, value_name = "TEXT", default_value = "", global = true)]
    reason: String,
    /// The name of the person who orders it [default: the user who runs the command]
    #[arg(long, value_name = "NAME", global = true)]
    by: Option<String>,
    #[command(flatten)]
    pub(super) milter: milter_args::MilterArgs,
}

/// Refuse nothing for a while: bulk and spam are only marked.
///
/// The running milter obeys at once; with --server, all milters of the federation do. Until the pause ends, nothing is refused, discarded or held, for any reason: bulk, spam, an account
/// over its limit, a trap, or a message that could not be judged. Counting continues, and header and log have the action as would=. A pause
/// outlives a restart; `bulkmark status`, `doctor`, the status page and bulkmark_paused show it. Exit code 0: paused; 75: the milter does not
/// answer.
#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    /// The duration, such as 2h or 30m [default: until `bulkmark resume`]
    #[arg(long = "for", value_name = "TIME", value_parser = order_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    at: DaemonOrderArgs,
}

/// End a pause: bulk and spam are refused again according to the configuration.
///
/// A pause of the whole federation ends where it was ordered, with --server. Exit code 0: the order was carried out; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    at: DaemonOrderArgs,
}

pub(super) fn run(args: &PauseArgs) -> anyhow::Result<ExitCode> {
    let seconds = args.duration.map(|duration| duration.as_secs());
    let is_for_all = args.at.server_config().is_some();
    args.at.carry_out(Order::Pause(seconds), b"", |ordered| match &ordered.orders.pause {
        Some(pause) if is_for_all => {
            let all = "; all mail servers of the federation are paused, and bulkmark resume --server ends it";
            sentence(pause) + all
        }
        Some(pause) => sentence(pause),
        None => "the pause has ended already".to_owned(),
    })
}

pub(super) fn resume(args: &ResumeArgs) -> anyhow::Result<ExitCode> {
    args.at.carry_out(Order::Resume, b"", |ordered| match &ordered.orders.pause {
        Some(pause) => {
            format!("this daemon's own pause is over, but it is still {}; {}", sentence(pause), remedy(pause))
        }
        None => "not paused: the configured actions are in force".to_owned(),
    })
}

/// Returns how a pause is ended.
pub(super) fn remedy(pause: &Pause) -> String {
    match &pause.site {
        Some(site) => format!("end it at {} with `bulkmark resume --server`", remote_text(site)),
        None => "end it with `bulkmark resume`".to_owned(),
    }
}

/// Describes a pause.
pub(super) fn sentence(pause: &Pause) -> String {
    let until = pause.until.map_or_else(|| "bulkmark resume".to_owned(), |until| time(until).to_string());
    let site = pause.site.as_ref().map(|site| format!(" at {site}, for all sites")).unwrap_or_default();
    let why =
        if pause.reason.is_empty() { String::new() } else { format!(": {}", remote_text(&pause.reason)) };
    format!("paused until {until}, by {}{site}{why}; bulk and spam are only marked", remote_text(&pause.by))
}

/// Describes the end of an order.
pub(super) fn end(until: Option<u64>) -> String {
    let end = until.map_or_else(|| "it is removed".to_owned(), |until| time(until).to_string());
    format!("until {end}")
}

impl OrderArgs {
    /// Sends an order to the milter, and prints the result.
    pub(super) fn carry_out(
        &self,
        order: Order,
        message: &[u8],
        words: impl FnOnce(&Ordered) -> String,
    ) -> anyhow::Result<ExitCode> {
        self.carry_out_at(&self.milter.socket()?, order, message, words)
    }

    /// Sends an order to the daemon behind this control socket, and prints the result.
    fn carry_out_at(
        &self,
        socket: &Path,
        order: Order,
        message: &[u8],
        words: impl FnOnce(&Ordered) -> String,
    ) -> anyhow::Result<ExitCode> {
        let given = Given { order, by: self.by(), reason: self.reason.clone() };
        for (option, text) in [("--reason", &given.reason), ("--by", &given.by)] {
            let length = text.len();
            anyhow::ensure!(
                length <= MAX_TEXT,
                "{option}: found {length} bytes, expected at most {MAX_TEXT}"
            );
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ordered = match runtime.block_on(control::order(socket, &given, message)) {
            Ok(ordered) => ordered,
            Err(e) => return Ok(unanswered(socket, e)),
        };
        let text = if self.milter.json { serde_json::to_string(&ordered)? } else { words(&ordered) };
        print(text).context("the daemon has carried out the order")?;
        if let Some(warning) = &ordered.warning {
            complain(format_args!("warning: {warning}"));
        }
        for trouble in &ordered.troubles {
            complain(format_args!("warning: {}", remote_text(trouble)));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns all signatures of the mailing with this one, which comes first: from a stored refusal, if there is one.
    pub(super) fn copies_of(&self, signature: &str) -> anyhow::Result<Vec<String>> {
        let mut all = vec![signature.to_owned()];
        if self.milter.control.is_some() {
            return Ok(all);
        }
        let file = config::load_parts(&self.milter.config)?.file;
        if file.refusals.days > 0 {
            let query = Query { mailing: Some(signature.to_owned()), ..Query::default() };
            // Without permission to read refusals, only messages with this signature are allowed.
            let last = find(&file.state_dir, &query, 1).ok().and_then(|found| found.last.into_iter().next());
            let others = last.into_iter().flat_map(|entry| entry.signatures);
            all.extend(others.filter(|other| other != signature));
        }
        Ok(all)
    }

    /// Returns the author of the order.
    fn by(&self) -> String {
        self.by.clone().unwrap_or_else(operator)
    }
}

/// The daemon that gets an order, and the order.
#[derive(Debug, clap::Args)]
pub(super) struct DaemonOrderArgs {
    /// Give the order at the server of this machine, for all sites of its federation [default configuration: /etc/bulkmark/server.toml]
    #[arg(long)]
    server: bool,
    #[command(flatten)]
    order: OrderArgs,
}

impl DaemonOrderArgs {
    /// Sends an order to the daemon, and prints the result.
    pub(super) fn carry_out(
        &self,
        order: Order,
        message: &[u8],
        words: impl FnOnce(&Ordered) -> String,
    ) -> anyhow::Result<ExitCode> {
        let milter = &self.order.milter;
        let socket = match (&milter.control, self.server_config()) {
            (None, Some(path)) => config::load_server(&path)?.0.control,
            _ => milter.socket()?,
        };
        self.order.carry_out_at(&socket, order, message, words)
    }

    /// Returns all signatures of the mailing with this one, which comes first; a server knows no others.
    pub(super) fn copies_of(&self, signature: &str) -> anyhow::Result<Vec<String>> {
        if self.server_config().is_some() {
            return Ok(vec![signature.to_owned()]);
        }
        self.order.copies_of(signature)
    }

    /// Returns the configuration if it is a server's: by --server, or else by its content.
    fn server_config(&self) -> Option<PathBuf> {
        let path = &self.order.milter.config;
        match self.server {
            true if path == Path::new(DEFAULT_PATH) => Some(SERVER_PATH.into()),
            true => Some(path.clone()),
            false => (Kind::of(path).ok()? == Kind::Server).then(|| path.clone()),
        }
    }
}

/// Returns the user who runs this command; under sudo, the user who called it.
pub(super) fn operator() -> String {
    let own = std::env::var("SUDO_USER").ok().filter(|user| !user.is_empty());
    own.unwrap_or_else(|| User::of(rustix::process::getuid().as_raw()).name)
}
