// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients that were removed together with their counts, while their reports may still be on their way.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long reports of a removed client may still be on their way.
pub(super) const UNDER_WAY: Duration = Duration::from_secs(120);

/// Returns the names whose reports may still be on their way; `since` stores when each was noticed.
pub(super) fn under_way(names: &[String], since: &mut HashMap<String, Instant>, now: Instant) -> Vec<String> {
    let known: HashSet<&String> = names.iter().collect();
    since.retain(|name, _| known.contains(name));
    let is_new = |name: &&String| now < *since.entry((*name).clone()).or_insert(now) + UNDER_WAY;
    names.iter().filter(is_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For two minutes after its removal, a client's reports may still arrive, and it is returned; if it is removed again, for two minutes
    /// more.
    #[test]
    fn reports_on_their_way_may_arrive_for_two_minutes() {
        let (mut since, begin) = (HashMap::new(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(under_way(&names(&["a"]), &mut since, at(0)), ["a"]);
        assert_eq!(under_way(&names(&["a", "b"]), &mut since, at(119)), ["a", "b"]);
        assert_eq!(under_way(&names(&["a", "b"]), &mut since, at(120)), ["b"]);
        assert_eq!(under_way(&names(&["b"]), &mut since, at(121)), ["b"]);
        assert_eq!(since.len(), 1, "nothing is remembered of others");
        assert_eq!(under_way(&names(&["a", "b"]), &mut since, at(240)), ["a"]);
    }
}
