// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks the milter, or its ledger, about a message that is at hand.

use super::signature::read_message;
use crate::config::{self, DEFAULT_PATH, MilterFile};
use crate::control;
use crate::ledger::{self, Shares};
use crate::mail::RawMessage;
use crate::signature::Signature;
use crate::table::Tables;
use crate::verdict::{Content, Counted, Envelope, Finding, Inquiry, Mode, Question, Rules};
use anyhow::Context;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct MessageArgs {
    /// The milter's configuration.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// The client that the message comes from; without it, its network counts as none (min-sources).
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    /// The message; "-" is standard input.
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
}

impl MessageArgs {
    /// Reads configuration and message.
    pub(super) fn read(&self) -> anyhow::Result<(Asker, RawMessage)> {
        let mut checked = config::load(&self.config)?;
        // Whoever may not read it is told of a canary what is told of any other message.
        checked.file.signature.canary = super::canary::read(&checked.file.state_dir).ok();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let file = checked.file.clone();
        let envelope = Envelope { client: self.ip.map(|ip| ip.to_canonical()), ..Envelope::default() };
        Ok((Asker { file, rules: checked.into_rules(), runtime, envelope }, read_message(&self.file)?))
    }
}

/// Asks the running milter, or reads its ledger when none is running.
pub(super) struct Asker {
    file: MilterFile,
    pub(super) rules: Rules,
    /// What is known of the message's.
    pub(super) envelope: Envelope,
    runtime: tokio::runtime::Runtime,
}

impl Asker {
    /// The counts of these signatures, in their order.
    pub(super) fn shares(&self, signatures: &[Signature]) -> anyhow::Result<Vec<Shares>> {
        let file = &self.file;
        match self.runtime.block_on(control::counts(&file.control, signatures)) {
            Ok(counts) => Ok(counts),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                ledger::read(&file.state_dir, &file.ledger, &self.rules.key, signatures, ledger::now())
                    .with_context(|| format!("no milter answers at {} ({e})", file.control.display()))
            }
            Err(e) => {
                Err(e).with_context(|| format!("the milter at {} does not answer", file.control.display()))
            }
        }
    }

    /// What the milter would find of a message that it had not counted yet, and all that was asked for it. Only what the
    /// message itself says, and the client's address where it was told, can be held against the white list.
    pub(super) fn judge<'a>(&'a self, content: &'a Content) -> anyhow::Result<(Finding, Inquiry<'a>)> {
        let inquiry = Inquiry::new(&content.signatures, &self.rules.key, Mode::Ask);
        let mut inquiry = inquiry.from_network(self.envelope.network(), &self.rules.thresholds);
        while let Some(Question { asked, .. }) = inquiry.ask() {
            let counts: Vec<u32> = self.shares(&asked)?.iter().map(Shares::total).collect();
            inquiry.answer(&counts);
        }
        let finding = Finding::uncounted(content).unwrap_or_else(|| {
            let known = (inquiry.counts(), inquiry.backings());
            let mut envelope = self.envelope.clone();
            if self.rules.is_bulk(known.0) {
                let (questions, _) = self.rules.whitelist.questions(&content.facts(&envelope, &self.rules));
                let answers = Tables::default();
                envelope.answers = self.runtime.block_on(answers.ask(questions, self.rules.table_timeout));
                if let Some(why) = &envelope.answers.failed {
                    eprintln!("bulkmark: a table of the white list did not answer: {why}");
                }
            }
            Finding::Counted(Counted::new(&self.rules, &envelope, content, known, None))
        });
        Ok((finding, inquiry))
    }
}
