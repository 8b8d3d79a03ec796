// SPDX-License-Identifier: GPL-3.0-or-later
//! Policies: the settings of each recipient. The first policy that fits a recipient decides; without one, the defaults do.

use super::by_recipient::{ByRecipient, Numbers, bit};
use super::mailbox::Mailboxes;
use super::matching::{MatchSettings, MessageMatch, Name, Origin};
use super::overrides::{ActionOverrides, ThresholdOverrides};
use super::recipients::Recipients;
use super::settings::{Actions, Thresholds, WhiteListFiles};
use super::source::utf8;
use super::whitelist::{WhiteList, WhiteListError};
use serde::Deserialize;
use std::borrow::Cow;
use std::io;
use std::path::Path;

/// The most policies. Larger groups of recipients belong in files.
pub const MAX_POLICIES: usize = 100;

/// The name of the defaults in header and log.
pub const DEFAULT: &str = "default";

/// An entry of `[[policy]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PolicySettings {
    /// The name in header and log.
    pub name: Name,
    /// The messages and recipients that it applies to.
    #[serde(default, rename = "match")]
    pub matches: MatchSettings,
    /// Whether their mail is judged and counted.
    #[serde(default = "yes")]
    pub judge: bool,
    /// The thresholds.
    #[serde(default)]
    pub thresholds: ThresholdOverrides,
    /// The actions.
    #[serde(default)]
    pub actions: ActionOverrides,
    /// The bulk that they want, beside what everybody wants.
    #[serde(default)]
    pub whitelist: WhiteListFiles,
}

/// The default of `judge`.
const fn yes() -> bool {
    true
}

/// The settings for recipients without a policy.
#[derive(Debug, Clone, Copy)]
pub struct Defaults<'a> {
    /// The thresholds.
    pub thresholds: &'a Thresholds,
    /// The actions.
    pub actions: &'a Actions,
}

/// The settings for some recipients.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: Name,
    /// Whether their mail is judged and counted.
    pub judge: bool,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// The actions.
    pub actions: Actions,
    /// The bulk that they want, beside what everybody wants.
    pub whitelist: WhiteList,
    message: MessageMatch,
    /// `None` if no key names recipients. Empty files name nobody.
    recipients: Option<Recipients>,
}

impl Policy {
    /// Loads a policy on top of these defaults, with the files that it names.
    ///
    /// # Errors
    /// The first file that cannot be read, or the first line that is no entry; and the key that names the file.
    pub fn load(
        settings: &PolicySettings,
        defaults: Defaults<'_>,
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, (&'static str, WhiteListError)> {
        let text = |path: &Path| read(path).and_then(utf8);
        let MatchSettings { recipient, recipient_files, .. } = &settings.matches;
        let is_named = !recipient.0.is_empty() || !recipient_files.is_empty();
        let recipients = is_named
            .then(|| Recipients::load(&recipient.0, recipient_files, &text))
            .transpose()
            .map_err(|e| ("match.recipient-files", e))?;
        let whitelist =
            WhiteList::load(&settings.whitelist.files, read).map_err(|e| ("whitelist.files", e))?;
        Ok(Self {
            name: settings.name.clone(),
            judge: settings.judge,
            thresholds: settings.thresholds.over(defaults.thresholds),
            actions: settings.actions.over(defaults.actions),
            whitelist,
            message: settings.matches.message(),
            recipients,
        })
    }
}

/// The index of a policy; `None` for the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PolicyRef(pub Option<usize>);

/// The recipients with the same policy.
#[derive(Debug)]
pub struct Party<'a> {
    /// The policy.
    pub by: PolicyRef,
    /// In the order of the envelope.
    pub recipients: Cow<'a, [String]>,
}

/// All policies, in their order.
#[derive(Debug, Default)]
pub struct Policies(pub Vec<Policy>, ByRecipient);

impl Policies {
    /// These policies, 100 at most.
    #[must_use]
    pub fn new(mut all: Vec<Policy>) -> Self {
        let mut index = ByRecipient::default();
        for (number, policy) in all.iter_mut().enumerate() {
            index.add(number, std::mem::take(&mut policy.recipients));
        }
        Self(all, index)
    }

    /// Groups the recipients of a message by policy. There is always at least one party: if recipients are unknown, it is empty, and policies
    /// that name recipients do not apply.
    #[must_use]
    pub fn parties<'a>(
        &self,
        origin: &Origin<'_>,
        recipients: &'a [String],
        mailboxes: &Mailboxes,
    ) -> Vec<Party<'a>> {
        let candidates = self.candidates(origin);
        if candidates == 0 || recipients.is_empty() {
            let by = first(candidates & self.1.of_unknown());
            return vec![Party { by, recipients: Cow::Borrowed(recipients) }];
        }
        let mut parties: Vec<Party<'a>> = Vec::new();
        for recipient in recipients {
            let by = first(candidates & self.1.of(recipient, mailboxes));
            match parties.iter_mut().find(|party| party.by == by) {
                Some(party) => party.recipients.to_mut().push(recipient.clone()),
                None => parties.push(Party { by, recipients: Cow::Owned(vec![recipient.clone()]) }),
            }
        }
        parties
    }

    /// The policies that fit messages of this origin, for some recipient at least.
    fn candidates(&self, origin: &Origin<'_>) -> Numbers {
        let fitting = self.0.iter().enumerate().filter(|(_, policy)| policy.message.fits(origin));
        fitting.fold(0, |all, (number, _)| all | bit(number))
    }
}

fn first(numbers: Numbers) -> PolicyRef {
    PolicyRef((numbers != 0).then_some(numbers.trailing_zeros() as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    fn load(text: &str) -> Policies {
        load_with(text, "carl@box.example\n")
    }

    /// The policies, with this content of their files.
    fn load_with(text: &str, content: &'static str) -> Policies {
        #[derive(Deserialize)]
        struct File {
            policy: Vec<PolicySettings>,
        }
        let file: File = toml::from_str(text).unwrap();
        let (thresholds, actions) =
            (Thresholds::default(), Actions { near: Action::Quarantine, ..Actions::default() });
        let defaults = Defaults { thresholds: &thresholds, actions: &actions };
        let read = |_: &Path| -> io::Result<Vec<u8>> { Ok(content.as_bytes().to_vec()) };
        Policies::new(file.policy.iter().map(|entry| Policy::load(entry, defaults, &read).unwrap()).collect())
    }

    const POLICIES: &str = r#"
[[policy]]
name = "out"
match = { recipient-files = ["/opt-out"] }
judge = false

[[policy]]
name = "inside"
match = { recipient = "box.example", client = "192.0.2.0/24" }

[[policy]]
name = "strict"
match = { recipient = ["box.example", "abuse@"] }
thresholds = { near = 7 }
actions = { bulk = "reject", reject-reply = "554 5.7.1 {reason}" }
"#;

    fn grouped(origin: &Origin<'_>, recipients: &[&str]) -> Vec<(String, Vec<String>)> {
        let policies = load(POLICIES);
        let recipients: Vec<String> = recipients.iter().map(|&recipient| recipient.to_owned()).collect();
        let parties = policies.parties(origin, &recipients, &Mailboxes::default());
        let name = |by: PolicyRef| by.0.map_or(DEFAULT, |i| policies.0[i].name.as_str()).to_owned();
        parties.into_iter().map(|party| (name(party.by), party.recipients.into_owned())).collect()
    }

    #[test]
    fn the_first_that_fits_decides_for_each_recipient() {
        let of = |name: &str, recipients: &[&str]| {
            (name.to_owned(), recipients.iter().map(|&recipient| recipient.to_owned()).collect::<Vec<_>>())
        };
        let all = ["anna@box.example", "carl@box.example", "x@else.example", "ben@box.example"];
        let expected = [
            of("strict", &["anna@box.example", "ben@box.example"]),
            of("out", &["carl@box.example"]),
            of("default", &["x@else.example"]),
        ];
        assert_eq!(grouped(&Origin::default(), &all), expected);
        let inside = Origin { client: "192.0.2.7".parse().ok(), ..Origin::default() };
        assert_eq!(grouped(&inside, &["anna@box.example"]), [of("inside", &["anna@box.example"])]);
        assert_eq!(grouped(&inside, &["abuse@else.example"]), [of("strict", &["abuse@else.example"])]);
        assert_eq!(
            grouped(&inside, &[]),
            [of("default", &[])],
            "unknown recipients have no policy that names recipients"
        );
    }

    #[test]
    fn a_policy_with_an_empty_file_is_for_nobody() {
        let policies = load_with(POLICIES, "# nobody yet\n");
        let all = ["anna@box.example".to_owned(), "x@else.example".to_owned()];
        let parties = policies.parties(&Origin::default(), &all, &Mailboxes::default());
        let names: Vec<_> =
            parties.iter().map(|party| party.by.0.map(|i| policies.0[i].name.as_str())).collect();
        assert_eq!(names, [Some("strict"), None]);
    }

    #[test]
    fn a_policy_without_a_key_has_the_default() {
        let Policies(all, _) = load(POLICIES);
        let [out, inside, strict] = &all[..] else { panic!("{all:?}") };
        assert!(!out.judge && inside.judge && strict.judge);
        assert_eq!((strict.thresholds.body.get(), strict.thresholds.near.get()), (20, 7));
        assert_eq!((strict.actions.bulk, strict.actions.near), (Action::Reject, Action::Quarantine));
        let reject = &strict.actions.reject_reply;
        assert_eq!((&*reject.code, &*reject.status), ("554", "5.7.1"));
        assert_eq!(inside.thresholds, Thresholds::default());
    }

    /// A message to thousands of recipients costs as much with a hundred policies as with one.
    #[test]
    fn each_recipient_is_looked_up_once_for_all_policies() {
        let all = MAX_POLICIES;
        let policy =
            |n: usize| format!("[[policy]]\nname = \"p{n}\"\nmatch = {{ recipient = \"d{n}.example\" }}\n");
        let policies = load(&(0..all).map(policy).collect::<String>());
        let recipients: Vec<String> = (0..1000).map(|n| format!("u{n}@d{}.example", n % (all + 1))).collect();
        let before = crate::mailbox::read();
        let parties = policies.parties(&Origin::default(), &recipients, &Mailboxes::default());
        assert_eq!(crate::mailbox::read() - before, recipients.len());
        assert_eq!(parties.len(), all + 1);
        for (n, party) in parties.iter().enumerate() {
            assert_eq!(party.by, PolicyRef((n < all).then_some(n)), "{:?}", party.recipients);
        }
    }
}
