// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark pause` and `bulkmark resume`

use super::milter_args::{self, unanswered};
use super::output::{complain, output};
use super::show::{ago, time};
use crate::config;
use crate::control::{self, Given, Order, Ordered};
use crate::orders::Pause;
use crate::refusals::{Query, find};
use bulkmark_types::told;
use humantime_serde::re::humantime;
use std::io::Write as _;
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
/// The running milter obeys at once. Until the pause ends, nothing is refused, discarded or held, for whatever reason: bulk, spam, an account
/// over its limit, a trap, or a message that could not be judged. Counting continues, and header and log have the action as would=. A pause
/// outlives a restart; `bulkmark status`, `doctor`, the status page and bulkmark_paused show it. Exit code 0: paused; 75: the milter does not
/// answer.
#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    /// The duration, such as 2h or 30m [default: until `bulkmark resume`]
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    order: OrderArgs,
}

/// End a pause: bulk and spam are refused again according to the configuration.
///
/// Exit code 0: there is no pause now; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    order: OrderArgs,
}

pub(super) fn run(args: &PauseArgs) -> anyhow::Result<ExitCode> {
    let seconds = args.duration.map(|duration| duration.as_secs());
    args.order.carry_out(Order::Pause(seconds), b"", |ordered| match &ordered.orders.pause {
        Some(pause) => sentence(pause),
        None => "the pause has ended already".to_owned(),
    })
}

pub(super) fn resume(args: &ResumeArgs) -> anyhow::Result<ExitCode> {
    args.order.carry_out(Order::Resume, b"", |_| "not paused: the configured actions are in force".to_owned())
}

/// Describes a pause.
pub(super) fn sentence(pause: &Pause) -> String {
    let until = pause.until.map_or_else(|| "bulkmark resume".to_owned(), |until| time(until).to_string());
    let why = if pause.reason.is_empty() { String::new() } else { format!(": {}", told(&pause.reason)) };
    format!("paused until {until}, by {}{why}; bulk and spam are only marked", told(&pause.by))
}

/// Describes the remaining time of an order.
pub(super) fn left(until: Option<u64>, now: u64) -> String {
    until.map_or_else(
        || "until it is removed".to_owned(),
        |until| format!("for {}", ago(until.saturating_sub(now))),
    )
}

impl OrderArgs {
    /// Sends an order to the milter, and prints the result.
    pub(super) fn carry_out(
        &self,
        order: Order,
        message: &[u8],
        words: impl FnOnce(&Ordered) -> String,
    ) -> anyhow::Result<ExitCode> {
        let socket = self.milter.socket()?;
        let given = Given { order, by: self.by(), reason: self.reason.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ordered = match runtime.block_on(control::order(&socket, &given, message)) {
            Ok(ordered) => ordered,
            Err(e) => return Ok(unanswered(&socket, e)),
        };
        if self.milter.json {
            writeln!(output(), "{}", serde_json::to_string(&ordered)?)?;
        } else {
            writeln!(output(), "{}", words(&ordered))?;
        }
        if let Some(warning) = &ordered.warning {
            complain(format_args!("warning: {warning}"));
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

/// Returns the user who runs this command; under sudo, the user who called it.
pub(super) fn operator() -> String {
    let own = std::env::var("SUDO_USER").ok().filter(|user| !user.is_empty());
    own.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
