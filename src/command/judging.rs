// SPDX-License-Identifier: GPL-3.0-or-later
//! What the milter, or its ledger, would say of a message that is at hand.

use super::signature::read_message;
use crate::config::{self, Checked, DEFAULT_PATH};
use crate::control;
use crate::ledger::{self, Shares};
use crate::mail::RawMessage;
use crate::policy::{Actions, Counts, Decision, Facts, decide};
use crate::signature::near::Seen;
use crate::signature::{Signature, Signatures};
use anyhow::Context;
use std::io;
use std::path::PathBuf;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct Question {
    /// The milter's configuration.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    /// The message; "-" is standard input.
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
}

impl Question {
    pub(super) fn read(&self) -> anyhow::Result<(Checked, RawMessage)> {
        Ok((config::load(&self.config)?, read_message(&self.file)?))
    }
}

/// Asks the running milter, or reads its ledger when none is running.
pub(super) struct Asker<'a> {
    checked: &'a Checked,
    runtime: tokio::runtime::Runtime,
}

impl<'a> Asker<'a> {
    pub(super) fn new(checked: &'a Checked) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { checked, runtime })
    }

    /// The counts of these signatures, in their order.
    pub(super) fn shares(&self, signatures: &[Signature]) -> anyhow::Result<Vec<Shares>> {
        if signatures.is_empty() {
            return Ok(Vec::new());
        }
        let file = &self.checked.file;
        match self.runtime.block_on(control::counts(&file.control, signatures)) {
            Ok(counts) => Ok(counts),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                ledger::read(&file.state_dir, &file.ledger, &self.checked.key, signatures, ledger::now())
                    .with_context(|| format!("no milter answers at {} ({e})", file.control.display()))
            }
            Err(e) => {
                Err(e).with_context(|| format!("the milter at {} does not answer", file.control.display()))
            }
        }
    }

    fn counts(&self, signatures: &[Signature]) -> anyhow::Result<Vec<u32>> {
        Ok(self.shares(signatures)?.iter().map(Shares::total).collect())
    }

    /// How often the message was seen, as it is counted now, and what is known of its signatures.
    pub(super) fn seen(&self, signatures: &Signatures) -> anyhow::Result<(Counts, Seen)> {
        let key = &self.checked.key;
        let near = &signatures.near;
        let all = [signatures.reported(), near.asked()].concat();
        let mut seen = Seen::new(&all, &self.counts(&all)?);
        let doubts = near.doubts(key, &seen);
        seen.add(&doubts, &self.counts(&doubts)?);
        let counts = Counts {
            body: signatures.body.ok().map(|signature| seen.count(signature)),
            near: (!near.is_empty()).then(|| near.count(key, &seen)),
        };
        Ok((counts, seen))
    }
}

/// The verdict. Only what the message itself says can be held against the white list: no client, no envelope.
pub(super) fn verdict(
    checked: &Checked,
    message: &RawMessage,
    body: Option<Signature>,
    counts: Counts,
    actions: &Actions,
) -> Decision {
    let fields = message.fields();
    let facts = Facts {
        client_ip: None,
        client_host: None,
        sender: None,
        recipients: &[],
        from: &fields.from,
        list_id: fields.list_id.as_deref(),
        signature: body,
    };
    decide(counts, &checked.file.thresholds, actions, &checked.whitelist, &facts)
}
