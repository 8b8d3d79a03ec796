// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages by the policy that decided: of one customer, one domain, one listener.

use bulkmark_policy::{Action, MAX_POLICIES, Verdict};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;

/// Policies that are counted separately: twice as many as a configuration has, since a reload may add others. Further ones are counted together.
const MOST: usize = 2 * (MAX_POLICIES + 1);

/// The name under which further policies are counted, which no policy can have.
const OTHERS: &str = "(others)";

/// Messages of one policy.
#[derive(Debug, Clone, Default)]
struct Counts {
    /// By verdict and action.
    done: [[u64; Action::ALL.len()]; Verdict::ALL.len()],
    /// By rehearsed action.
    rehearsed: [u64; Action::ALL.len()],
}

/// The messages of a policy, as the page shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyStatus {
    /// Its name.
    pub policy: String,
    /// Messages that it decided.
    pub messages: u64,
    /// Those that were bulk.
    pub bulk: u64,
    /// Messages that users report as spam.
    pub spam: u64,
    /// The actions for bulk and spam with their numbers; `would reject` if the action is only rehearsed.
    pub done: BTreeMap<String, u64>,
}

/// All policies that decided a message since the start.
#[derive(Debug, Default)]
pub struct Policies(Mutex<BTreeMap<String, Counts>>);

impl Policies {
    /// Counts a message that this policy decided.
    pub(super) fn add(&self, policy: &str, verdict: Verdict, action: Action, would: Option<Action>) {
        let mut all = self.0.lock();
        let name = if all.len() >= MOST && !all.contains_key(policy) { OTHERS } else { policy };
        if !all.contains_key(name) {
            all.insert(name.to_owned(), Counts::default());
        }
        let Some(counts) = all.get_mut(name) else { return };
        counts.done[verdict as usize][action as usize] += 1;
        if let Some(would) = would {
            counts.rehearsed[would as usize] += 1;
        }
    }

    /// Returns the policies in the order of their names.
    #[must_use]
    pub fn status(&self) -> Vec<PolicyStatus> {
        let all = self.0.lock();
        all.iter().map(|(name, counts)| PolicyStatus::of(name, counts)).collect()
    }

    /// Returns the number of messages by policy, verdict and action.
    #[must_use]
    pub fn messages(&self) -> Vec<(String, Verdict, Action, u64)> {
        let all = self.0.lock();
        let counted = |(name, counts): (&String, &Counts)| {
            let pairs =
                Verdict::ALL.into_iter().flat_map(|verdict| Action::ALL.map(|action| (verdict, action)));
            let found = pairs.map(|(verdict, action)| {
                (name.clone(), verdict, action, counts.done[verdict as usize][action as usize])
            });
            found.filter(|(.., count)| *count > 0).collect::<Vec<_>>()
        };
        all.iter().flat_map(counted).collect()
    }

    /// Returns the number of messages by policy and rehearsed action.
    #[must_use]
    pub fn rehearsed(&self) -> Vec<(String, Action, u64)> {
        let all = self.0.lock();
        let counted = |(name, counts): (&String, &Counts)| {
            let found = Action::ALL.map(|action| (name.clone(), action, counts.rehearsed[action as usize]));
            found.into_iter().filter(|(.., count)| *count > 0).collect::<Vec<_>>()
        };
        all.iter().flat_map(counted).collect()
    }
}

impl PolicyStatus {
    fn of(name: &str, counts: &Counts) -> Self {
        let sum = |verdict: Verdict| counts.done[verdict as usize].iter().sum::<u64>();
        let unwanted = |action: Action| -> u64 {
            [Verdict::Bulk, Verdict::Spam]
                .map(|verdict| counts.done[verdict as usize][action as usize])
                .iter()
                .sum()
        };
        let rehearsed: u64 = counts.rehearsed.iter().sum();
        let mut done = BTreeMap::new();
        for action in Action::ALL {
            // A message with a rehearsed action is marked, and is listed separately.
            let marked = if action == Action::Mark { rehearsed } else { 0 };
            done.insert(action.to_string(), unwanted(action).saturating_sub(marked));
            done.insert(format!("would {action}"), counts.rehearsed[action as usize]);
        }
        done.retain(|_, count| *count > 0);
        Self {
            policy: name.to_owned(),
            messages: Verdict::ALL.map(sum).iter().sum(),
            bulk: sum(Verdict::Bulk),
            spam: sum(Verdict::Spam),
            done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_told_apart_and_bounded() {
        let policies = Policies::default();
        for n in 0..2 * MOST {
            policies.add(&format!("p{n:04}"), Verdict::Clean, Action::Mark, None);
        }
        policies.add("p0000", Verdict::Bulk, Action::Reject, None);
        policies.add("p0000", Verdict::Bulk, Action::Mark, Some(Action::Reject));
        policies.add("p0000", Verdict::Spam, Action::Mark, None);
        let all = policies.status();
        assert_eq!((all.len(), &*all[0].policy, all[0].messages), (MOST + 1, OTHERS, MOST as u64));
        let done = ["mark", "reject", "would reject"].map(|action| (action.to_owned(), 1));
        let expected = PolicyStatus {
            policy: "p0000".to_owned(),
            messages: 4,
            bulk: 2,
            spam: 1,
            done: BTreeMap::from(done),
        };
        assert_eq!(all[1], expected);
        assert_eq!(policies.rehearsed(), [("p0000".to_owned(), Action::Reject, 1)]);
        assert_eq!(policies.messages().iter().filter(|(name, ..)| name == "p0000").count(), 4);
    }
}
