// SPDX-License-Identifier: GPL-3.0-or-later
//! The activity of a client since the server was started, and its state.

use super::clients::{Client, Role};
use super::refusals::Refusals;
use super::registration::UNAPPROVED;
use crate::control::{ClientState, ClientStatus};
use std::time::{Duration, Instant};

/// A client without a request for this long is silent: it neither follows updates nor reports. An open stream counts as a request a minute.
const SILENT: Duration = Duration::from_secs(600);

/// How long a refusal determines the state of a client, unless a report is counted.
const FRESH: Duration = Duration::from_secs(600);

/// The most characters of a version.
const MAX_VERSION: usize = 20;

const DAY: u64 = 86_400;

/// The activity of a client.
#[derive(Debug, Default)]
pub(super) struct Seen {
    batches: u64,
    signatures: u64,
    /// A day, in days since 1970, and the signatures of that day.
    today: (u64, u64),
    refused: u64,
    last_refusal: Option<String>,
    pub(super) refusals: Refusals,
    /// The time of its last refusal, and whether a limit was the reason; `None` if a report was counted since then.
    refused_at: Option<(Instant, bool)>,
    pub(super) last_seen: Option<Instant>,
    reported: Option<Instant>,
    version: Option<String>,
}

impl Seen {
    /// Records a batch that was counted at the time `now`, in seconds since 1970.
    pub(super) fn counted(&mut self, signatures: u64, now: u64) {
        self.batches += 1;
        self.signatures += signatures;
        let today = self.today(now);
        self.today = (now / DAY, today + signatures);
        self.reported = Some(Instant::now());
        self.refused_at = None;
    }

    /// The signatures of the day of `now`, by UTC.
    const fn today(&self, now: u64) -> u64 {
        if self.today.0 == now / DAY { self.today.1 } else { 0 }
    }

    pub(super) fn refused(&mut self, why: String, by_limit: bool) {
        self.refused += 1;
        self.last_refusal = Some(why);
        self.refused_at = Some((Instant::now(), by_limit));
    }

    /// Records the program's version, from the `User-Agent` field of a request.
    pub(super) fn note_program(&mut self, program: &str) {
        let version = program.strip_prefix("bulkmark/").unwrap_or_default();
        let version = version.split(' ').next().unwrap_or_default();
        if self.version.as_deref() != Some(version) && !version.is_empty() {
            self.version = Some(version.chars().take(MAX_VERSION).collect());
        }
    }

    /// The status of this client at the time `now`, in seconds since 1970.
    pub(super) fn status(&self, client: &Client, made_up: bool, now: u64) -> ClientStatus {
        let ago = |at: Option<Instant>| at.map(|at| at.elapsed().as_secs());
        ClientStatus {
            name: client.name.clone(),
            state: self.state(client, made_up, now),
            role: client.role.to_string(),
            limits: client
                .max_influence
                .map(|most| format!("influence {most}, quota {}", client.quota.unwrap_or_default())),
            version: self.version.clone(),
            batches: self.batches,
            signatures: self.signatures,
            today: self.today(now),
            refused: self.refused,
            last_refusal: self.last_refusal.clone(),
            made_up,
            reported_seconds_ago: ago(self.reported),
            heard_seconds_ago: ago(self.last_seen),
        }
    }

    fn state(&self, client: &Client, made_up: bool, now: u64) -> ClientState {
        let refused = self.refused_at.filter(|(at, _)| at.elapsed() < FRESH);
        match (self.last_seen, refused) {
            _ if made_up => ClientState::MadeUp,
            _ if client.is_expired(now) => ClientState::Expired,
            _ if !client.is_approved() => ClientState::Unapproved,
            (_, Some((_, true))) => ClientState::OverLimits,
            (_, Some((_, false))) => ClientState::Refused,
            (None, _) => ClientState::NotHeard,
            (Some(heard), _) if client.role != Role::Metrics && heard.elapsed() > SILENT => {
                ClientState::Silent
            }
            _ => ClientState::Well,
        }
    }
}

/// Adds up all unapproved sites; none if there are none.
pub(super) fn sum_of_unapproved(sites: impl Iterator<Item = ClientStatus>) -> Option<ClientStatus> {
    let mut count = 0_u64;
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let add = |mut sum: ClientStatus, site: ClientStatus| {
        sum.batches += site.batches;
        sum.signatures += site.signatures;
        sum.today += site.today;
        sum.refused += site.refused;
        sum.last_refusal = site.last_refusal.or(sum.last_refusal);
        sum.heard_seconds_ago = least(sum.heard_seconds_ago, site.heard_seconds_ago);
        sum.reported_seconds_ago = least(sum.reported_seconds_ago, site.reported_seconds_ago);
        sum
    };
    let sum = sites.inspect(|_| count += 1).reduce(add)?;
    let limits = sum.limits.map(|limits| format!("{limits} together; sites: {count}"));
    let (name, state) = (UNAPPROVED.to_owned(), ClientState::Unapproved);
    Some(ClientStatus { name, limits, state, version: None, made_up: false, ..sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn the_signatures_of_today_start_over_at_midnight() {
        let mut seen = Seen::default();
        seen.counted(7, NOW);
        seen.counted(5, NOW);
        assert_eq!((seen.today(NOW), seen.today(NOW + DAY)), (12, 0));
        seen.counted(1, NOW + DAY);
        assert_eq!((seen.today(NOW + DAY), seen.signatures), (1, 13));
    }

    #[test]
    fn the_state_of_a_client() {
        let client = |more: &str| -> Client {
            let text = format!(
                r#"{{"name":"mx","role":"report","max-influence":null,"rate":null,"tokens":[]{more}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let mut seen = Seen::default();
        let state = |seen: &Seen| seen.state(&client(""), false, NOW);
        assert_eq!(state(&seen), ClientState::NotHeard);
        seen.last_seen = Some(Instant::now());
        assert_eq!(state(&seen), ClientState::Well);
        seen.refused("its clock".to_owned(), false);
        assert_eq!(state(&seen), ClientState::Refused);
        seen.refused("its quota".to_owned(), true);
        assert_eq!(state(&seen), ClientState::OverLimits);
        seen.counted(1, NOW);
        assert_eq!(state(&seen), ClientState::Well);
        seen.last_seen = Instant::now().checked_sub(SILENT + Duration::from_secs(1));
        assert_eq!(state(&seen), ClientState::Silent);
        let expired = client(&format!(r#","expires":{NOW}"#));
        assert_eq!(seen.state(&expired, false, NOW), ClientState::Expired);
        assert_eq!(seen.state(&expired, true, NOW), ClientState::MadeUp);
    }

    #[test]
    fn only_the_version_of_a_client_s_program_is_recorded() {
        let mut seen = Seen::default();
        for other in ["curl/8.0", "bulkmark/", "bulkmark/ x", ""] {
            seen.note_program(other);
            assert_eq!(seen.version, None, "{other}");
        }
        seen.note_program("bulkmark/0.1.0 more");
        assert_eq!(seen.version.as_deref(), Some("0.1.0"));
        seen.note_program(&format!("bulkmark/{}", "9".repeat(1000)));
        assert_eq!(seen.version.map(|version| version.len()), Some(MAX_VERSION));
    }
}
