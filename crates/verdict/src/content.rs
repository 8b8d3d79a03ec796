// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message itself says.

use super::envelope::Envelope;
use super::inquiry::{Inquiry, Mode};
use super::rules::Rules;
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Authenticate, Claim, Correspondence, Facts, Proven, WhiteList};
use bulkmark_signature::near::Slot;
use bulkmark_signature::{Signatures, signatures};
use bulkmark_types::{FederationKey, Provenance};

/// Recipients of a message of whom it is asked whether they wrote to its sender.
const MOST_LOOKED: usize = 1000;

/// The signatures of a message, and the fields by which white lists know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Addresses of the From field.
    pub from: Vec<String>,
    /// The list id.
    pub list_id: Option<String>,
    /// The Message-ID as it stands.
    pub message_id: Option<String>,
    /// Names that stand behind it, as far as it was verified.
    pub proven: Proven,
    /// Names that it claims, where they are verified here.
    pub claimed: Proven,
    /// Why not all of them could be, if DNS had no answer.
    pub unverified: Option<&'static str>,
    /// Recipients who wrote to an address by which it comes, whoever sent it; where that is known.
    pub correspondences: Vec<Correspondence>,
    /// Whether the administrator allowed its mailing.
    pub is_allowed: bool,
    /// The signatures.
    pub signatures: Signatures,
    /// Those under the federation key before, while the key changes.
    pub earlier: Option<Box<Signatures>>,
}

/// The signatures that count: without the passages, pictures and files that the white list of all recipients names.
fn counting(signatures: Signatures, list: &WhiteList) -> Signatures {
    let Signatures { body, mut near, canary } = signatures;
    list.leave_out(&mut near.slots, Slot::reported);
    list.leave_out(&mut near.things, |&(_, signature)| signature);
    // It says nothing beside what is no text.
    near.payload = near.payload.filter(|_| !near.slots.is_empty());
    Signatures { body, near, canary }
}

impl Content {
    /// Reads a message.
    #[must_use]
    pub fn of(message: &RawMessage, rules: &Rules) -> Self {
        let fields = message.fields();
        let under = |key| counting(signatures(message, key, &rules.signature), &rules.whitelist);
        Self {
            proven: rules.authentication.proven(&fields),
            claimed: Proven::default(),
            unverified: None,
            correspondences: Vec::new(),
            is_allowed: false,
            from: fields.from,
            list_id: fields.list_id,
            message_id: fields.message_id,
            signatures: under(&rules.key),
            earlier: rules.key.before().map(|key| Box::new(under(key))),
        }
    }

    /// The same with what it claims, where that is verified here.
    #[must_use]
    pub fn claiming(message: &RawMessage, rules: &Rules, sender: Option<&str>) -> Self {
        let content = Self::of(message, rules);
        let claims = || Proven::claimed(&message.fields(), sender);
        Self { claimed: rules.verifies().then(claims).unwrap_or_default(), ..content }
    }

    /// An inquiry about it: from which networks its copies came is asked, unless it is outbound and counted apart, since one's own users
    /// are where they are.
    #[must_use]
    pub fn about<'a>(&self, inquiry: Inquiry<'a>, envelope: &Envelope, rules: &Rules) -> Inquiry<'a> {
        let inquiry = inquiry.sent_by(self.provenance(envelope, rules));
        if rules.is_outbound(envelope) {
            inquiry.apart()
        } else {
            inquiry.from_network(envelope.network(), rules.range())
        }
    }

    /// The signatures under the key before, and that key; none where the key does not change.
    #[must_use]
    pub fn under_key_before<'a>(&'a self, rules: &'a Rules) -> Option<(&'a Signatures, &'a FederationKey)> {
        self.earlier.as_deref().zip(rules.key.before())
    }

    /// The questions about these signatures. Nothing is reported.
    #[must_use]
    pub fn about_earlier<'a>(
        &self,
        (signatures, key): (&'a Signatures, &'a FederationKey),
        envelope: &Envelope,
        rules: &Rules,
    ) -> Inquiry<'a> {
        self.about(Inquiry::new(signatures, key, Mode::Ask), envelope, rules)
    }

    /// Who sends it, as far as that is known before it is counted: of what is verified, what a mail server tells. What one's own users
    /// send is sent by an account.
    #[must_use]
    pub fn provenance(&self, envelope: &Envelope, rules: &Rules) -> Provenance {
        if rules.is_outbound(envelope) {
            return Provenance { network: None, domain: Some(envelope.account()) };
        }
        let proven = self.proven.for_sender(envelope.sender.as_deref());
        Provenance { network: envelope.network(), domain: proven.author(&self.from) }
    }

    /// What it is held against lists by.
    #[must_use]
    pub fn facts<'a>(&'a self, envelope: &'a Envelope, rules: &'a Rules) -> Facts<'a> {
        Facts {
            client_ip: envelope.client,
            client_host: envelope.host.as_deref(),
            sender: envelope.sender.as_deref(),
            recipients: &envelope.recipients,
            from: &self.from,
            list_id: self.list_id.as_deref(),
            signature: self.signatures.body.ok(),
            earlier_signature: self.earlier.as_ref().and_then(|earlier| earlier.body.ok()),
            proven: Some(self.proven.for_sender(envelope.sender.as_deref())),
            claimed: rules.authentication.is_here().then_some(&self.claimed),
            mailboxes: Some(&rules.mailboxes),
            known_to: &[],
            is_allowed: self.is_allowed,
            answers: Some(&envelope.answers),
        }
    }

    /// Its recipients, each with the addresses by which it comes: they may have written there.
    #[must_use]
    pub fn possible_correspondences(&self, envelope: &Envelope) -> Vec<Correspondence> {
        let sender = envelope.sender.iter().map(|sender| (Claim::Sender, sender));
        // Of several authors none is proven.
        let from = if let [from] = &self.from[..] { Some((Claim::From, from)) } else { None };
        let claims: Vec<_> = sender.chain(from).filter(|(_, address)| address.contains('@')).collect();
        let of = |recipient: &String, &(claim, address): &(Claim, &String)| Correspondence {
            recipient: recipient.clone(),
            address: address.clone(),
            claim,
        };
        let recipients = envelope.recipients.iter().take(MOST_LOOKED);
        recipients.flat_map(|recipient| claims.iter().map(move |claim| of(recipient, claim))).collect()
    }

    /// Recipients who wrote to whom it comes from, as far as it is verified that it does. Whoever verifies mail is believed; where nobody
    /// does, the client's name must do.
    #[must_use]
    pub(super) fn known_to(&self, facts: &Facts<'_>, rules: &Rules) -> Vec<String> {
        let by_host = rules.authentication.authenticate == Authenticate::No;
        let known = self.correspondences.iter().filter(|of| of.is_proven(facts, by_host));
        known.map(|of| of.recipient.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_samples::prose::Prose;
    use std::io;
    use std::path::Path;

    /// A passage of every letter of a company, such as its signature block, is as if it were not there once the white list names it; the rest of
    /// the message counts as before.
    #[test]
    fn a_passage_that_the_white_list_names_does_not_count() {
        let text = Prose::new(1).text(300);
        let raw = RawMessage::from_bytes(format!("Subject: news\n\n{text}\n").as_bytes()).unwrap();
        let of = |entries: String| {
            let read = move |_: &Path| -> io::Result<Vec<u8>> { Ok(entries.clone().into_bytes()) };
            let whitelist = WhiteList::load(&["/list".into()], &read).unwrap();
            let content = Content::of(&raw, &Rules { whitelist, ..Rules::default() });
            (content.signatures.body, content.signatures.near.reported().collect::<Vec<_>>())
        };
        let (body, all) = of(String::new());
        assert!(all.len() > 3, "{all:?}");
        let named = all[1];
        let expected: Vec<_> = all.iter().copied().filter(|&signature| signature != named).collect();
        assert_eq!(of(format!("signature {named}\n")), (body, expected));
        // Together with something else it is no entry of a passage.
        assert_eq!(of(format!("signature {named} & dkim example.org\n")).1, all);
        let every: String = all.iter().map(|signature| format!("signature {signature}\n")).collect();
        assert_eq!(of(every), (body, Vec::new()));
    }
}
