// SPDX-License-Identifier: GPL-3.0-or-later
//! What a client did since the server was started, and how it is.

use super::clients::{Client, Role};
use super::refusals::Refusals;
use super::registration::UNAPPROVED;
use crate::control::{ClientState, ClientStatus};
use std::time::{Duration, Instant};

/// A client that asks for nothing for so long is silent: its stream ends, and it does not report. An open stream asks once a minute.
const SILENT: Duration = Duration::from_secs(600);

/// How long a refusal says how a client is, unless a report is counted.
const FRESH: Duration = Duration::from_secs(600);

/// Characters of a version.
const MOST_OF_VERSION: usize = 20;

const DAY: u64 = 86_400;

/// What a client did.
#[derive(Debug, Default)]
pub(super) struct Seen {
    batches: u64,
    signatures: u64,
    /// The day, and signatures in it.
    today: (u64, u64),
    refused: u64,
    last_refusal: Option<String>,
    pub(super) refusals: Refusals,
    /// When it was refused, and whether by its limits, if nothing was counted since.
    refused_at: Option<(Instant, bool)>,
    pub(super) heard: Option<Instant>,
    reported: Option<Instant>,
    version: Option<String>,
}

impl Seen {
    /// Notes a batch that was counted at the time `now`, in seconds since 1970.
    pub(super) fn counted(&mut self, signatures: u64, now: u64) {
        self.batches += 1;
        self.signatures += signatures;
        let today = self.today(now);
        self.today = (now / DAY, today + signatures);
        self.reported = Some(Instant::now());
        self.refused_at = None;
    }

    /// Signatures in the day of `now`, by UTC.
    const fn today(&self, now: u64) -> u64 {
        if self.today.0 == now / DAY { self.today.1 } else { 0 }
    }

    pub(super) fn refused(&mut self, why: String, by_limit: bool) {
        self.refused += 1;
        self.last_refusal = Some(why);
        self.refused_at = Some((Instant::now(), by_limit));
    }

    /// Notes the program, by the `User-Agent` field of a request.
    pub(super) fn asked_by(&mut self, program: &str) {
        let version = program.strip_prefix("bulkmark/").unwrap_or_default();
        let version = version.split(' ').next().unwrap_or_default();
        if self.version.as_deref() != Some(version) && !version.is_empty() {
            self.version = Some(version.chars().take(MOST_OF_VERSION).collect());
        }
    }

    /// How this client is at the time `now`, in seconds since 1970.
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
            heard_seconds_ago: ago(self.heard),
        }
    }

    fn state(&self, client: &Client, made_up: bool, now: u64) -> ClientState {
        let refused = self.refused_at.filter(|(at, _)| at.elapsed() < FRESH);
        match (self.heard, refused) {
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

/// All unapproved sites in one line; none where there are none.
pub(super) fn together(sites: impl Iterator<Item = ClientStatus>) -> Option<ClientStatus> {
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
    let limits = sum.limits.map(|limits| format!("{limits} for all {count} sites"));
    let (name, state) = (UNAPPROVED.to_owned(), ClientState::Unapproved);
    Some(ClientStatus { name, limits, state, version: None, made_up: false, ..sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn what_a_client_did_today_starts_over_at_midnight() {
        let mut seen = Seen::default();
        seen.counted(7, NOW);
        seen.counted(5, NOW);
        assert_eq!((seen.today(NOW), seen.today(NOW + DAY)), (12, 0));
        seen.counted(1, NOW + DAY);
        assert_eq!((seen.today(NOW + DAY), seen.signatures), (1, 13));
    }

    #[test]
    fn how_a_client_is() {
        let client = |more: &str| -> Client {
            let text = format!(
                r#"{{"name":"mx","role":"report","max-influence":null,"rate":null,"tokens":[]{more}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let mut seen = Seen::default();
        let state = |seen: &Seen| seen.state(&client(""), false, NOW);
        assert_eq!(state(&seen), ClientState::NotHeard);
        seen.heard = Some(Instant::now());
        assert_eq!(state(&seen), ClientState::Well);
        seen.refused("its clock".to_owned(), false);
        assert_eq!(state(&seen), ClientState::Refused);
        seen.refused("its quota".to_owned(), true);
        assert_eq!(state(&seen), ClientState::OverLimits);
        seen.counted(1, NOW);
        assert_eq!(state(&seen), ClientState::Well);
        seen.heard = Instant::now().checked_sub(SILENT + Duration::from_secs(1));
        assert_eq!(state(&seen), ClientState::Silent);
        let expired = client(&format!(r#","expires":{NOW}"#));
        assert_eq!(seen.state(&expired, false, NOW), ClientState::Expired);
        assert_eq!(seen.state(&expired, true, NOW), ClientState::MadeUp);
    }

    #[test]
    fn the_version_of_a_client_is_told_and_nothing_else_of_its_program() {
        let mut seen = Seen::default();
        for other in ["curl/8.0", "bulkmark/", "bulkmark/ x", ""] {
            seen.asked_by(other);
            assert_eq!(seen.version, None, "{other}");
        }
        seen.asked_by("bulkmark/0.1.0 more");
        assert_eq!(seen.version.as_deref(), Some("0.1.0"));
        seen.asked_by(&format!("bulkmark/{}", "9".repeat(1000)));
        assert_eq!(seen.version.map(|version| version.len()), Some(MOST_OF_VERSION));
    }
}
