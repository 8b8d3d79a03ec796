// SPDX-License-Identifier: GPL-3.0-or-later
//! What one client said of itself: accounts that it makes, and who it is.

use super::accounts::{Accounts, NoAccount};
use super::answer::Answer;
use super::secret::{Secret, made_up};
use crate::interfaces::settings::Registers;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Wrong proofs, and accounts, of one connection.
const MOST_TRIES: u32 = 3;

/// How long the answer takes where a proof was wrong, so that nobody tries many.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A user that the client claims to be, and has to prove.
#[derive(Debug)]
struct Claim {
    user: String,
    /// What is kept of that user's password.
    secret: Secret,
    challenge: String,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The client's address.
    ip: Option<IpAddr>,
    claim: Option<Claim>,
    /// Who it is.
    user: Option<String>,
    tries: u32,
    /// Whether a proof was wrong since the last answer left.
    pub(super) was_wrong: bool,
    /// Whether nothing more is to be answered.
    pub(super) is_over: bool,
}

impl Session {
    /// Of a client with this address.
    pub(super) fn new(ip: Option<IpAddr>) -> Self {
        Self { ip, ..Self::default() }
    }

    /// By which name what it says is counted. What users tell elsewhere is by other names, since nobody knows whether it is the same person.
    pub(super) fn reporter(&self) -> Option<Vec<u8>> {
        self.user.as_ref().map(|user| [b"interface:razor:", user.as_bytes()].concat())
    }

    /// Makes an account.
    pub(super) async fn register(
        &mut self,
        (accounts, registers): (&Arc<Accounts>, Registers),
        (user, password): (Option<String>, Option<String>),
    ) -> Answer {
        let is_local = self.ip.is_some_and(|ip| ip.to_canonical().is_loopback());
        let may = match registers {
            Registers::Nobody => false,
            Registers::Local => is_local,
            Registers::All => true,
        };
        if !may || self.is_tried() {
            return Answer::Forbidden;
        }
        let accounts = Arc::clone(accounts);
        let ip = self.ip;
        let added = tokio::task::spawn_blocking(move || accounts.add(ip, (user, password))).await;
        match added {
            Ok(Ok((user, password))) => {
                log::info!("razor: a new account: {}", bulkmark_types::told(&user));
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

    /// Somebody says who they are.
    pub(super) fn identify(&mut self, accounts: &Accounts, user: String) -> Answer {
        self.user = None;
        let Some(secret) = accounts.secret(&user) else { return Answer::UnknownUser };
        match made_up() {
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

    /// The proof: each challenge is for one.
    pub(super) fn prove(&mut self, proof: &str) -> Answer {
        let Some(Claim { user, secret, challenge }) = self.claim.take() else { return Answer::Forbidden };
        if secret.is_proved(&challenge, proof) {
            self.user = Some(user);
            return Answer::Done;
        }
        log::info!("razor: a wrong password of {}", bulkmark_types::told(&user));
        self.is_tried();
        self.was_wrong = true;
        Answer::Refused
    }

    /// Counts a try; whether there were too many, which ends the session.
    fn is_tried(&mut self) -> bool {
        self.tries += 1;
        self.is_over |= self.tries >= MOST_TRIES;
        self.tries > MOST_TRIES
    }
}
