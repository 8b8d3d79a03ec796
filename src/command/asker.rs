// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks the milter, or reads its ledger, about a given message.

use super::output::complain;
use super::show::called;
use super::values::mailbox;
use crate::config::{self, DEFAULT_PATH, MilterFile};
use crate::control::{self, Given, Order};
use crate::judging::{Case, Judged, Source, find};

use crate::lookup::{Evidence, Tables, Verifiers};
use crate::orders::{All, Orders};
use anyhow::Context;
use bulkmark_counts::{LocalCopy, Shares};
use bulkmark_mail::RawMessage;
use bulkmark_policy::Name;
use bulkmark_types::{FederationKey, Signature};
use bulkmark_verdict::{Content, Envelope, Rules};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct MessageArgs {
    /// The milter's configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// The client that sent the message. Without it, the network of the client is not counted as another one (thresholds.min-sources).
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// A recipient, for the choice of the policy. May be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = mailbox)]
    recipient: Vec<String>,
    /// The envelope sender; "<>" is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// The name of the listener on which the mail server would ask.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    /// The name by which the client authenticated.
    #[arg(long, value_name = "NAME")]
    login: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

impl MessageArgs {
    /// Reads the configuration.
    pub(super) fn asker(&self) -> anyhow::Result<Asker> {
        let mut checked = config::load(&self.config)?;
        // Without permission to read it, a canary is judged as any other message.
        checked.file.signature.canary = super::canary::read(&checked.file.state_dir).ok();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let file = checked.file.clone();
        self.check_listener(&file)?;
        let address = |smtp: &String| smtp.trim_start_matches('<').trim_end_matches('>').to_owned();
        let envelope = Envelope {
            client: self.ip.map(|ip| ip.to_canonical()),
            sender: self.sender.as_ref().map(address),
            recipients: self.recipient.clone(),
            authenticated: self.login.is_some(),
            login: self.login.clone(),
            listener: self.listener.clone(),
            ..Envelope::default()
        };
        let rules = checked.into_rules();
        let (tables, verifiers) = (Tables::default(), Verifiers::default());
        let orders = runtime.block_on(orders(&file));
        let known = Known { orders, file, key: rules.key.clone(), tables, verifiers };
        Ok(Asker { rules, envelope, runtime, known })
    }
}

impl MessageArgs {
    fn check_listener(&self, file: &MilterFile) -> anyhow::Result<()> {
        let Some(wanted) = &self.listener else { return Ok(()) };
        let names: Vec<_> = file.listen.names().map(Name::as_str).collect();
        if names.contains(&wanted.as_str()) {
            return Ok(());
        }
        let known = if names.is_empty() { "none has a name".to_owned() } else { names.join(", ") };
        anyhow::bail!(
            "--listener: found \"{wanted}\", expected a name that listen in {} has: {known}",
            self.config.display()
        )
    }
}

/// The source of counts for a command: the running milter, or its ledger if none is running.
pub(super) struct Asker {
    pub(super) rules: Rules,
    /// The known part of the message's envelope.
    pub(super) envelope: Envelope,
    runtime: tokio::runtime::Runtime,
    known: Known,
}

/// Reads the orders in force from the daemon, or from their file if no daemon runs.
async fn orders(file: &MilterFile) -> Orders {
    let list = Given { order: Order::List, by: String::new(), reason: String::new() };
    match control::order(&file.control, &list, b"").await {
        Ok(ordered) => Orders::of(ordered.orders, ordered.others),
        Err(_) => Orders::stored(&file.state_dir).unwrap_or_else(|_| Orders::of(All::default(), Vec::new())),
    }
}

/// The daemon or ledger that is asked.
struct Known {
    file: MilterFile,
    key: FederationKey,
    orders: Orders,
    tables: Tables,
    verifiers: Verifiers,
}

impl Source for Known {
    type Error = anyhow::Error;

    async fn shares(&self, signatures: &[Signature], may_ask: bool) -> anyhow::Result<Vec<Shares>> {
        let file = &self.file;
        match control::counts(&file.control, signatures, may_ask).await {
            Ok(counts) => Ok(counts),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                bulkmark_ledger::read(
                    &file.state_dir,
                    &file.ledger,
                    &self.key,
                    signatures,
                    bulkmark_ledger::now(),
                )
                .with_context(|| {
                    format!("no {} answers at {} ({e})", called(file.daemon()), file.control.display())
                })
            }
            Err(e) => Err(e).with_context(|| {
                format!("the {} at {} does not answer", called(file.daemon()), file.control.display())
            }),
        }
    }

    /// Returns correspondents from a running milter; none without one.
    async fn know(&self, pairs: &[u64]) -> Vec<bool> {
        control::correspondents(&self.file.control, pairs).await.unwrap_or_default()
    }

    fn is_partial(&self) -> bool {
        self.file.sync.copy == LocalCopy::Partial
    }

    fn orders(&self) -> &Orders {
        &self.orders
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn verifiers(&self) -> &Verifiers {
        &self.verifiers
    }
}

impl Asker {
    /// Returns the counts of these signatures, in their order. With `may_ask` a milter with a partial copy asks other servers for counts that it
    /// does not hold.
    pub(super) fn shares(&self, signatures: &[Signature], may_ask: bool) -> anyhow::Result<Vec<Shares>> {
        self.runtime.block_on(self.known.shares(signatures, may_ask))
    }

    /// Returns the content of the message.
    pub(super) fn read(&self, message: &RawMessage) -> Content {
        Content::claiming(message, &self.rules, self.envelope.sender.as_deref())
    }

    /// Returns the milter's judgement of a message with this content, as if it had not been counted yet.
    pub(super) fn judge(&self, message: &RawMessage, content: &Content) -> anyhow::Result<Judged> {
        let evidence = self.rules.verifies().then(|| Evidence::of(message)).flatten();
        let case = Case { rules: &self.rules, envelope: &self.envelope, evidence: evidence.as_ref() };
        let judged = self.runtime.block_on(find(&self.known, case, content))?;
        judged.troubles.iter().for_each(complain);
        Ok(judged)
    }
}
