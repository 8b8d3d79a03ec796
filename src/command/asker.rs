// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks the milter, or its ledger, about a message that is at hand.

use super::output::complain;
use super::show::called;
use super::signature::read_message;
use crate::config::{self, DEFAULT_PATH, MilterFile};
use crate::control;
use crate::ledger::{self, Hold, Shares};
use crate::mail::RawMessage;
use crate::policy::{Correspondence, Counts, Name, Weight};
use crate::signature::{Signature, outbound};
use crate::table::Tables;
use crate::verdict::{
    Content, Counted, Envelope, Exempt, Finding, Hearing, Inquiry, Mode, Question, Rules, questions,
    to_verify,
};
use crate::verify::{Case, Evidence, Found, Verifiers};
use anyhow::Context;
use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Pairs of a recipient and an address that are asked for: they fit a line of the control socket.
const MOST_PAIRS: usize = 500;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct MessageArgs {
    /// The milter's configuration.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// The client that the message comes from; without it, its network counts as none (min-sources).
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// A recipient, whose policy decides; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    recipient: Vec<String>,
    /// The envelope sender; "<>" is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// The listener on which the mail server would ask; one of those that have names.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    /// The name by which the client authenticated.
    #[arg(long, value_name = "NAME")]
    login: Option<String>,
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
        self.check_listener(&file)?;
        let address = |smtp: &String| smtp.trim_start_matches('<').trim_end_matches('>').to_owned();
        let envelope = Envelope {
            client: self.ip.map(|ip| ip.to_canonical()),
            sender: self.sender.as_ref().map(address),
            recipients: self.recipient.iter().map(address).collect(),
            authenticated: self.login.is_some(),
            login: self.login.clone(),
            listener: self.listener.clone(),
            ..Envelope::default()
        };
        let may_ask = Cell::new(false);
        Ok((
            Asker { file, rules: checked.into_rules(), runtime, envelope, may_ask },
            read_message(&self.file)?,
        ))
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

/// What is found of a message.
pub(super) struct Judged<'a> {
    pub(super) finding: Finding,
    pub(super) inquiry: Inquiry<'a>,
    /// What people say of it, if anybody called it spam.
    pub(super) said: Option<PeopleSaid>,
    /// With what is proven of it.
    pub(super) content: Content,
    /// What was verified for that.
    pub(super) verified: Vec<Found>,
}

/// What people say of a message.
pub(super) struct PeopleSaid {
    /// What it comes to.
    pub(super) weight: Weight,
    /// Of the signature that was nominated most: the nominations.
    pub(super) nominated: Shares,
    /// And the revocations.
    pub(super) revoked: Shares,
}

/// Asks the running milter, or reads its ledger when none is running.
pub(super) struct Asker {
    file: MilterFile,
    pub(super) rules: Rules,
    /// What is known of the message's.
    pub(super) envelope: Envelope,
    runtime: tokio::runtime::Runtime,
    /// Whether others may be asked about the message, where not all counts are held here.
    may_ask: Cell<bool>,
}

impl Asker {
    /// The counts of this signature of the message; of outbound mail, that which stands for it there.
    pub(super) fn share(&self, signature: Signature) -> anyhow::Result<Shares> {
        let is_apart = self.rules.is_outbound(&self.envelope);
        let asked = if is_apart { outbound(&self.rules.key, signature) } else { signature };
        Ok(self.shares(&[asked], self.may_ask.get())?.pop().unwrap_or_default())
    }

    /// Why the milter would not even read the message, as far as that is known: the client is told by --ip and --login.
    pub(super) fn exempt(&self) -> Option<Exempt> {
        let Self { rules, envelope, .. } = self;
        let client = rules.exempt_as_told(envelope);
        client.or_else(|| (!rules.judges_any(&rules.parties(envelope))).then_some(Exempt::Policy))
    }

    /// The counts of these signatures, in their order. With `may_ask` a thin milter asks for what it does not hold.
    fn shares(&self, signatures: &[Signature], may_ask: bool) -> anyhow::Result<Vec<Shares>> {
        let file = &self.file;
        match self.runtime.block_on(control::counts(&file.control, signatures, may_ask)) {
            Ok(counts) => Ok(counts),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                ledger::read(&file.state_dir, &file.ledger, &self.rules.key, signatures, ledger::now())
                    .with_context(|| {
                        format!("no {} answers at {} ({e})", called(file.daemon()), file.control.display())
                    })
            }
            Err(e) => Err(e).with_context(|| {
                format!("the {} at {} does not answer", called(file.daemon()), file.control.display())
            }),
        }
    }

    /// What the milter would find of a message that it had not counted yet, and all that was asked for it. What is not told of its
    /// envelope cannot be held against the white list, and has no policy.
    pub(super) fn judge<'a>(
        &'a self,
        content: &'a Content,
        message: &RawMessage,
    ) -> anyhow::Result<Judged<'a>> {
        let inquiry = Inquiry::new(&content.signatures, &self.rules.key, Mode::Ask);
        let mut inquiry = self.rules.about(inquiry, &self.envelope);
        // What others are not told of a message they are not asked, either.
        let is_told = self.rules.shares_exact && !self.rules.is_outbound(&self.envelope);
        self.may_ask.set(is_told && !self.rules.private.names(&content.facts(&self.envelope, &self.rules)));
        let is_thin = self.file.sync.hold == Hold::Bulk && !self.rules.is_outbound(&self.envelope);
        while let Some(Question { asked, .. }) = inquiry.ask() {
            let shares = self.shares(&asked, self.may_ask.get())?;
            let counts: Vec<u32> = shares.iter().map(Shares::total).collect();
            let in_part = is_thin && shares.iter().any(|shares| shares.asked.is_none());
            if in_part && !inquiry.is_first() {
                inquiry.stop(self.rules.hold_from());
                break;
            }
            inquiry.answer(&counts);
            if in_part {
                inquiry.stop(self.rules.hold_from());
            }
        }
        let said = self.hear(content, &inquiry)?;
        let counts = Counts { spam: said.as_ref().map(|said| said.weight), ..inquiry.counts() };
        let (mut content, mut verified) = (content.clone(), Vec::new());
        let exempt = self.exempt().map(Finding::Exempt);
        let finding = exempt.or_else(|| Finding::uncounted(&content)).unwrap_or_else(|| {
            let known = (counts, inquiry.backings());
            let mut envelope = self.envelope.clone();
            let parties = self.rules.parties(&self.envelope);
            let (questions, _) = questions(&self.rules, &parties, &self.envelope, &content, known.0);
            if !questions.is_empty() {
                let tables = Tables::default();
                envelope.answers = self.runtime.block_on(tables.ask(questions, self.rules.table_timeout));
                if let Some(why) = &envelope.answers.failed {
                    complain(format_args!("a table of the white list did not answer: {why}"));
                }
            }
            content.correspondences = self.correspondences(&content);
            verified = self.verify(&envelope, &mut content, message);
            match Counted::find(&self.rules, &envelope, &content, known, None) {
                Finding::Counted(counted) => {
                    Finding::Counted(Counted { unknown_below: inquiry.unknown_below(), ..counted })
                }
                other => other,
            }
        });
        Ok(Judged { finding, inquiry, said, content, verified })
    }

    /// What people say of the message, as the milter hears it.
    fn hear(&self, content: &Content, inquiry: &Inquiry<'_>) -> anyhow::Result<Option<PeopleSaid>> {
        if content.signatures.is_empty() || self.rules.is_outbound(&self.envelope) {
            return Ok(None);
        }
        let mut hearing = Hearing::new(&content.signatures, &self.rules.key);
        let thousandths = self.rules.people.federation_weight.thousandths();
        let weighed = |shares: &[Shares]| shares.iter().map(|of| of.weighed(thousandths)).collect::<Vec<_>>();
        // A thin milter asks nobody what people say, either.
        let nominated = self.shares(&hearing.nominations(), false)?;
        let revocations = hearing.revocations(&weighed(&nominated));
        if revocations.is_empty() {
            return Ok(None);
        }
        let revoked = self.shares(&revocations, false)?;
        hearing.revoked(&weighed(&revoked));
        // That of which most was said.
        let nominated = nominated.into_iter().filter(|shares| shares.weighed(thousandths) > 0).zip(revoked);
        let most = nominated.max_by_key(|(nominated, _)| nominated.total());
        let weight = hearing.weight(inquiry.seen());
        Ok(most.map(|(nominated, revoked)| PeopleSaid { weight, nominated, revoked }))
    }

    /// By which of its addresses a recipient wrote to it, as far as a running milter knows.
    fn correspondences(&self, content: &Content) -> Vec<Correspondence> {
        if self.rules.is_outbound(&self.envelope) || !self.rules.spares_correspondents() {
            return Vec::new();
        }
        let mut all = content.possible_correspondences(&self.envelope);
        all.truncate(MOST_PAIRS);
        let pairs: Vec<u64> = all.iter().map(|of| self.rules.correspondence(of)).collect();
        let known =
            self.runtime.block_on(control::correspondents(&self.file.control, &pairs)).unwrap_or_default();
        all.into_iter().zip(known).filter_map(|(of, is_known)| is_known.then_some(of)).collect()
    }

    /// Verifies what the milter would if the message were bulk, and says what came of it.
    fn verify(&self, envelope: &Envelope, content: &mut Content, message: &RawMessage) -> Vec<Found> {
        let rules = &self.rules;
        let bulk = Counts { body: Some(u32::MAX), near: Some(u32::MAX), spam: None };
        let asked = to_verify(rules, &rules.parties(&self.envelope), envelope, content, bulk);
        if asked.is_empty() {
            return Vec::new();
        }
        let case = Case {
            asked,
            evidence: Evidence::of(message),
            client: envelope.client,
            helo: "unknown".to_owned(),
            sender: envelope.sender.clone().unwrap_or_default(),
            host: rules.hostname.clone().unwrap_or_else(|| "localhost".to_owned()),
        };
        let settings = &rules.authentication;
        let verifiers = Verifiers::default();
        let verified = self.runtime.block_on(verifiers.verify(settings, case, settings.dns_timeout));
        if let Some(unverified) = &verified.unverified {
            complain(&unverified.detail);
            content.unverified = Some(unverified.reason);
        }
        content.proven = verified.proven;
        verified.found
    }
}
