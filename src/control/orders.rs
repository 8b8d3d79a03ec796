// SPDX-License-Identifier: GPL-3.0-or-later
//! Executes orders of the administrator: pauses, and mailings that are never refused.

use super::ordered::{Allow, Given, KnownBy, Order, Ordered};
use super::question::Answer;
use super::report::{PATIENCE, read_message};
use super::reported::MAX_REPORTED;
use super::status::Daemon;
use crate::orders::{Allowance, Failure, Forgotten, MAX_TEXT, Orders, Pause, author};
use bulkmark_counts::Shares;
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_ledger::now;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncRead;

/// Signatures of a mailing at most; a message has fewer.
const MOST: usize = 100;

/// The answer of a server to an order.
const NONE_HERE: &str = "a signature server refuses no mail, ask a milter";

/// The answer of a fleet's aggregator to an order, and the warning of its milters.
const OF_FLEET: &str =
    "the machines of a fleet exchange no orders: an order holds at one mail server alone, so give it at each";

/// The answer of a server to a message whose mailing is allowed.
const NO_MESSAGE: &str = "a signature server cannot read messages; give the signature of its log line, or allow the message at a milter of your own";

/// Executes an order, whose message follows if it has one.
pub(super) async fn answer(
    reader: &mut (impl AsyncRead + Unpin),
    given: Given,
    daemon: &Daemon,
) -> io::Result<Answer> {
    if given.length() > MAX_REPORTED || given.by.len() > MAX_TEXT || given.reason.len() > MAX_TEXT {
        let why = format!("expected a message of {MAX_REPORTED} bytes at most, and texts of {MAX_TEXT}");
        return Ok(Answer::Error(why));
    }
    let message = tokio::time::timeout(PATIENCE, read_message(reader, given.length()));
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the message did not arrive in time");
    let message = message.await.map_err(slow)??;
    let is_about_mail = matches!(given.order, Order::Forget(_) | Order::Remember(_) | Order::ForgetUser(_));
    let Some(orders) = daemon.orders.as_ref().filter(|_| !(daemon.is_server() && is_about_mail)) else {
        let why = if daemon.fleet.is_some() && !is_about_mail { OF_FLEET } else { NONE_HERE };
        return Ok(Answer::Error(why.to_owned()));
    };
    let known = match &given.order {
        Order::Allow(Allow { signatures, .. }) if signatures.is_empty() => {
            let Some(know) = &daemon.know_mailing else { return Ok(Answer::Unclear(NO_MESSAGE.to_owned())) };
            match know(message, given.by.clone()).await {
                Ok(known) => known,
                Err(e) => return Ok(Answer::Unclear(e)),
            }
        }
        Order::Allow(Allow { signatures, .. }) | Order::Forget(Allow { signatures, .. }) => {
            match signatures.iter().take(MOST).map(|text| text.parse()).collect() {
                Ok(signatures) => KnownBy { signatures, ..KnownBy::default() },
                Err(e) => return Ok(Answer::Unclear(format!("it is no signature: {e}"))),
            }
        }
        _ => KnownBy::default(),
    };
    let mut before = Vec::new();
    if matches!(given.order, Order::Forget(_)) {
        match daemon.shares(known.signatures.clone(), true).await {
            Ok(shares) => before = shares.iter().map(Shares::total).collect(),
            Err(e) => return Ok(Answer::Error(e.to_string())),
        }
    }
    let holds_here_alone = daemon.fleet.is_some() && !is_about_mail && given.order != Order::List;
    // The disk may block.
    let (orders, pairs) = (Arc::clone(orders), daemon.correspondents.clone());
    let done =
        tokio::task::spawn_blocking(move || carry_out(&orders, pairs.as_deref(), given, (&known, &before)))
            .await;
    Ok(match done {
        Ok(Ok(mut ordered)) => {
            ordered.troubles.extend(holds_here_alone.then(|| OF_FLEET.to_owned()));
            Answer::Ordered(Box::new(ordered))
        }
        Ok(Err(e)) => Answer::Unclear(e.to_string()),
        Err(_) => Answer::Error("it was not carried out".to_owned()),
    })
}

/// Forgets all correspondents of a user, and returns their number.
fn forget_user(pairs: &Correspondents, numbers: Vec<u64>, author: &str) -> usize {
    let forgotten = numbers.into_iter().map(|number| pairs.forget_user(number)).sum();
    pairs.flush();
    log::info!("{forgotten} correspondents of a user are forgotten, {author}");
    forgotten
}

fn carry_out(
    orders: &Orders,
    correspondents: Option<&Correspondents>,
    Given { order, by, reason }: Given,
    (known, before): (&KnownBy, &[u32]),
) -> Result<Ordered, Failure> {
    let now = now();
    let until = |seconds: Option<u64>| seconds.map(|seconds| now.saturating_add(seconds));
    let mut done = Ordered { shared: known.shared, ..Ordered::default() };
    let author = author(&by, &reason);
    let (seconds, here) = match &order {
        Order::Allow(allow) | Order::Forget(allow) => (allow.seconds, allow.here || known.is_private),
        _ => (None, false),
    };
    let signatures = known.signatures.iter().map(ToString::to_string).collect();
    let mailing = Allowance { signatures, since: now, until: until(seconds), by, reason, here };
    let kept = match order {
        Order::List => Ok(()),
        Order::ForgetUser(numbers) => {
            done.forgotten = correspondents.map(|pairs| forget_user(pairs, numbers, &author));
            Ok(())
        }
        Order::Pause(seconds) => {
            let duration = seconds.map_or_else(String::new, |seconds| format!(" for {seconds} s"));
            log::warn!("paused{duration}: nothing is refused, {author}");
            let Allowance { since, by, reason, .. } = mailing;
            orders.pause(Pause { since, until: until(seconds), by, reason, site: None })
        }
        Order::Resume => {
            log::warn!("resumed, {author}");
            orders.resume(now).map(drop)
        }
        Order::Remove(prefix) => orders.remove(&prefix, mailing).map(|removed| {
            log::info!("mailing {} is no longer allowed, {author}", removed.name());
            done.mailing = Some(removed);
        }),
        Order::Remember(prefix) => orders.remember(&prefix, now).map(|removed| {
            log::info!("the counts of mailing {} are no longer forgotten, {author}", removed.name());
            done.mailing = Some(removed);
        }),
        Order::Forget(_) => {
            log::warn!("the counts of mailing {} start over, {author}", mailing.name());
            done.mailing = Some(mailing.clone());
            let most = before.iter().copied().max().unwrap_or_default();
            let body = before.first().copied().unwrap_or_default();
            orders.forget(Forgotten { mailing, body, near: most })
        }
        Order::Allow(_) => {
            done.mailing = Some(mailing.clone());
            let allowed = orders.allow(mailing);
            if let (Ok(()) | Err(Failure::NotKept { .. }), Some(mailing)) = (&allowed, &done.mailing) {
                log::info!("mailing {} is allowed, {author}", mailing.name());
            }
            allowed
        }
    };
    done.warning = match kept {
        Err(e @ (Failure::NotKept { .. } | Failure::NoRoom(_))) => Some(e.to_string()),
        other => other.map(|()| None)?,
    };
    done.orders = orders.all(now);
    done.standing = orders.federation.standing();
    done.revoked = orders.federation.revoked(&done.orders.allowed);
    (done.others, done.troubles) = (orders.federation.list(now), orders.federation.troubles());
    Ok(done)
}
