// SPDX-License-Identifier: GPL-3.0-or-later
//! The content of a message: its signatures and some fields.

use super::envelope::Envelope;
use super::inquiry::{Inquiry, Mode};
use super::rules::Rules;
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Allowed, Authenticate, Claim, Correspondence, Facts, VerifiedNames, WhiteList};
use bulkmark_signature::near::Slot;
use bulkmark_signature::{Signatures, signatures};
use bulkmark_types::{FederationKey, Provenance};

/// The most recipients of a message who are looked up as correspondents of its sender.
const MOST_LOOKED: usize = 1000;

/// The signatures of a message, and the fields that white lists match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Addresses of the From field.
    pub from: Vec<String>,
    /// The list id.
    pub list_id: Option<String>,
    /// The raw Message-ID.
    pub message_id: Option<String>,
    /// Its verified names.
    pub verified: VerifiedNames,
    /// The names that it claims, if the milter verifies them.
    pub claimed: VerifiedNames,
    /// The reason why not all of them could be verified, if DNS did not answer.
    pub unverified: Option<&'static str>,
    /// Recipients who wrote to an address that the message claims as its sender; unverified.
    pub correspondences: Vec<Correspondence>,
    /// By whose order its mailing is allowed, if it is.
    pub allowed: Option<Allowed>,
    /// The signatures.
    pub signatures: Signatures,
    /// The signatures under the old federation key, during a change of keys.
    pub old_key: Option<Box<Signatures>>,
}

/// The signatures that count: without passages, pictures and files that the white list of all recipients names.
fn counting(signatures: Signatures, list: &WhiteList) -> Signatures {
    let Signatures { body, mut near, canary } = signatures;
    list.remove_named(&mut near.slots, Slot::reported);
    list.remove_named(&mut near.things, |&(_, signature)| signature);
    // A payload without text is no evidence.
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
            verified: rules.authentication.verified(&fields),
            claimed: VerifiedNames::default(),
            unverified: None,
            correspondences: Vec::new(),
            allowed: None,
            from: fields.from,
            list_id: fields.list_id,
            message_id: fields.message_id,
            signatures: under(&rules.key),
            old_key: rules.key.old().map(|key| Box::new(under(key))),
        }
    }

    /// The same with the names that it claims, if the milter verifies them.
    #[must_use]
    pub fn claiming(message: &RawMessage, rules: &Rules, sender: Option<&str>) -> Self {
        let content = Self::of(message, rules);
        let claims = || VerifiedNames::claimed(&message.fields(), sender);
        Self { claimed: rules.verifies().then(claims).unwrap_or_default(), ..content }
    }

    /// Prepares an inquiry about it. The networks of its copies are looked up unless it is outbound: outbound mail is counted separately, and
    /// its networks are always the site's own.
    #[must_use]
    pub fn about<'a>(&self, inquiry: Inquiry<'a>, envelope: &Envelope, rules: &Rules) -> Inquiry<'a> {
        let inquiry = inquiry.sent_by(self.provenance(envelope, rules));
        if rules.is_outbound(envelope) {
            inquiry.outbound()
        } else {
            inquiry.from_network(envelope.network(), rules.range())
        }
    }

    /// The signatures under the old key, and that key; `None` outside a change of keys.
    #[must_use]
    pub fn under_old_key<'a>(&'a self, rules: &'a Rules) -> Option<(&'a Signatures, &'a FederationKey)> {
        self.old_key.as_deref().zip(rules.key.old())
    }

    /// The questions about the signatures under the old key. Nothing is reported.
    #[must_use]
    pub fn about_old_key<'a>(
        &self,
        (signatures, key): (&'a Signatures, &'a FederationKey),
        envelope: &Envelope,
        rules: &Rules,
    ) -> Inquiry<'a> {
        self.about(Inquiry::new(signatures, key, Mode::Ask), envelope, rules)
    }

    /// Its sender, as far as it is known before counting: the network, and the domain if a mail server's results verify it. The sender of
    /// outbound mail is an account.
    #[must_use]
    pub fn provenance(&self, envelope: &Envelope, rules: &Rules) -> Provenance {
        if rules.is_outbound(envelope) {
            return Provenance { network: None, domain: Some(envelope.account()) };
        }
        let verified = self.verified.for_sender(envelope.sender.as_deref());
        Provenance { network: envelope.network(), domain: verified.author(&self.from) }
    }

    /// The facts that white lists are matched against.
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
            old_key_signature: self.old_key.as_ref().and_then(|old| old.body.ok()),
            verified: Some(self.verified.for_sender(envelope.sender.as_deref())),
            claimed: rules.authentication.is_here().then_some(&self.claimed),
            mailboxes: Some(&rules.mailboxes),
            known_to: &[],
            allowed: self.allowed.as_ref(),
            answers: Some(&envelope.answers),
        }
    }

    /// Its recipients, each with each address that it claims as its sender. Some may have written there.
    #[must_use]
    pub fn possible_correspondences(&self, envelope: &Envelope) -> Vec<Correspondence> {
        let sender = envelope.sender.iter().map(|sender| (Claim::Sender, sender));
        // If From has several authors, none is verified.
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

    /// Recipients who wrote to its verified sender. If mail is not verified, the client's name must match.
    #[must_use]
    pub(super) fn known_to(&self, facts: &Facts<'_>, rules: &Rules) -> Vec<String> {
        let by_host = rules.authentication.authenticate == Authenticate::No;
        let known = self.correspondences.iter().filter(|of| of.is_verified(facts, by_host));
        known.map(|of| of.recipient.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_samples::prose::Prose;
    use std::io;
    use std::path::Path;

    /// A passage of all of a company's letters, such as its signature block, is ignored once the white list names it; the rest of the message
    /// counts as before.
    #[test]
    fn a_passage_that_the_white_list_names_does_not_count() {
        let text = Prose::new(1).text(300);
        let raw = RawMessage::from_bytes(format!("Subject: news\n\n{text}\n").as_bytes());
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
        // An entry with another condition does not name a passage.
        assert_eq!(of(format!("signature {named} & dkim example.org\n")).1, all);
        let every: String = all.iter().map(|signature| format!("signature {signature}\n")).collect();
        assert_eq!(of(every), (body, Vec::new()));
    }
}
