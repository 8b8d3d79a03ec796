// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of one client: its new accounts, and its authenticated user.

use super::accounts::{Accounts, NoAccount};
use super::answer::Answer;
use super::secret::{Secret, random_text};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The most failed authentications and new accounts of one connection.
const MOST_TRIES: u32 = 3;

/// The delay after a failed authentication, against guessing.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A user that the client claims to be, and has to prove.
#[derive(Debug)]
struct Claim {
    user: String,
    /// The stored secret of that user.
    secret: Secret,
    challenge: String,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The client's address.
    ip: Option<IpAddr>,
    claim: Option<Claim>,
    /// The authenticated user.
    user: Option<String>,
    tries: u32,
    /// Whether an authentication failed since the last answer.
    pub(super) was_wrong: bool,
    /// Whether nothing more is answered.
    pub(super) is_over: bool,
}

impl Session {
    /// A session of a client with this address.
    pub(super) fn new(ip: Option<IpAddr>) -> Self {
        Self { ip, ..Self::default() }
    }

    /// The name of its reporter. At other interfaces the same user has another name, since it is unknown whether it is the same person.
    pub(super) fn reporter(&self) -> Option<Vec<u8>> {
        self.user.as_ref().map(|user| [b"interface:razor:", user.as_bytes()].concat())
    }

    /// Creates an account for a client of this machine: the password comes in plain text.
    pub(super) async fn register(
        &mut self,
        accounts: &Arc<Accounts>,
        (user, password): (Option<String>, Option<String>),
    ) -> Answer {
        let is_local = self.ip.is_some_and(|ip| ip.to_canonical().is_loopback());
        if !is_local || self.has_too_many_tries() {
            return Answer::Forbidden;
        }
        let accounts = Arc::clone(accounts);
        let ip = self.ip;
        let added = tokio::task::spawn_blocking(move || accounts.add(ip, (user, password))).await;
        match added {
            Ok(Ok((user, password))) => {
                log::info!("razor: a new account: {}", bulkmark_types::remote_text(&user));
                Answer::Account { user, password }
            }
            Ok(Err(NoAccount::Taken)) => Answer::UserExists,
            Ok(Err(why)) => {
                log::info!("razor: no new account: {why}");
                Answer::Refused
            }
            Err(_) => Answer::Refused,
        }
    }

    /// Takes the name of a user, and returns a challenge.
    pub(super) fn identify(&mut self, accounts: &Accounts, user: String) -> Answer {
        self.user = None;
        let Some(secret) = accounts.secret(&user) else { return Answer::UnknownUser };
        match random_text() {
            Ok(challenge) => {
                self.claim = Some(Claim { user, secret, challenge: challenge.clone() });
                Answer::Challenge(challenge)
            }
            Err(e) => {
                log::error!("razor: no random number: {e}");
                Answer::Refused
            }
        }
    }

    /// Checks the answer to a challenge, once.
    pub(super) fn prove(&mut self, proof: &str) -> Answer {
        let Some(Claim { user, secret, challenge }) = self.claim.take() else { return Answer::Forbidden };
        if secret.is_proved(&challenge, proof) {
            self.user = Some(user);
            return Answer::Done;
        }
        log::info!("razor: a wrong password of {}", bulkmark_types::remote_text(&user));
        self.has_too_many_tries();
        self.was_wrong = true;
        Answer::Refused
    }

    /// Counts a try; returns whether there were too many, which ends the session.
    fn has_too_many_tries(&mut self) -> bool {
        self.tries += 1;
        self.is_over |= self.tries >= MOST_TRIES;
        self.tries > MOST_TRIES
    }
}
