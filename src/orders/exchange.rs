// SPDX-License-Identifier: GPL-3.0-or-later
//! The exchange of orders with servers: a milter sends its own to the server that it follows, and takes over all that the server knows; a
//! server adds those of its peers.

use super::book::Orders;
use super::failure::Failure;
use super::federation::name_of;
use super::server_lists::{BYTES_A_SECOND, ServerLists, Unsound};
use bulkmark_ledger::now;
use bulkmark_sync::{AllOrders, Code, Links, Remote, RemoteError};
use bulkmark_types::remote_text;
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server waits for a change before it answers.
const WAIT: Duration = Duration::from_secs(10);

/// The time between two requests.
const PAUSE: Duration = Duration::from_millis(500);

/// The pause after a failure, and after that of a server that cannot exchange orders.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);
const PAUSE_WITHOUT_ORDERS: Duration = Duration::from_secs(60);

/// How often a milter sends its orders again: a server may have lost them.
const CONFIRM: Duration = Duration::from_secs(600);

/// The time after an answer with a list of so many bytes: the answers that follow have as many.
fn pause_after_list(bytes: usize) -> Duration {
    let milliseconds = bytes.saturating_mul(1000) / BYTES_A_SECOND;
    PAUSE + Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

/// Why orders were not exchanged.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("it sent {0}")]
    Unsound(#[from] Unsound),
    #[error(transparent)]
    NotKept(#[from] Failure),
    #[error("internal error")]
    Panicked(#[from] tokio::task::JoinError),
}

impl Stopped {
    /// Whether the server will do the same in a minute. Other reasons end with the server's other problems, which are shown anyway.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Remote(RemoteError::Refused { status, .. }) => status.is_client_error(),
            Self::Remote(e) => matches!(e, RemoteError::Long(_)),
            Self::Unsound(_) | Self::NotKept(_) | Self::Panicked(_) => true,
        }
    }

    fn is_of_old_server(&self) -> bool {
        matches!(self, Self::Remote(RemoteError::Refused { status, code: None, .. }) if *status == StatusCode::NOT_FOUND)
    }

    /// Describes it for log and status.
    fn text(&self, url: &str) -> String {
        if self.is_of_old_server() {
            return format!(
                "{url}: this server is older and exchanges no orders: `bulkmark allow` and `pause` hold at this machine alone until it is \
                 upgraded"
            );
        }
        format!("{url}: the orders of other sites cannot be exchanged: {self}")
    }
}

/// Exchanges the orders of a milter with the server that it follows, forever. `sends` returns whether servers may receive exact signatures.
pub async fn exchange(
    orders: Arc<Orders>,
    servers: Vec<Arc<Remote>>,
    links: Arc<Links>,
    sends: impl Fn() -> bool,
) {
    loop {
        let Some((i, server)) = links.active().and_then(|i| Some((i, servers.get(i)?))) else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Err(e) = exchange_with(&orders, (server, &sends), || links.active() == Some(i)).await {
            let pause = pause_after(&orders, "", (server, &e));
            // Another server may be followed meanwhile.
            let until = Instant::now() + pause;
            while Instant::now() < until && links.active() == Some(i) {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Records a failure that does not end with the server's other problems, and returns how long to wait.
fn pause_after(orders: &Orders, of: &str, (server, stopped): (&Remote, &Stopped)) -> Duration {
    if stopped.is_lasting() {
        orders.federation.set_trouble(of, Some(remote_text(&stopped.text(server.url()))));
        return PAUSE_WITHOUT_ORDERS;
    }
    PAUSE_AFTER_FAILURE
}

async fn exchange_with(
    orders: &Arc<Orders>,
    (server, sends): (&Remote, &impl Fn() -> bool),
    is_followed: impl Fn() -> bool,
) -> Result<(), Stopped> {
    let (mut changes, mut known) = (orders.changes(), String::new());
    let until = Instant::now() + CONFIRM;
    let mut refusal = give(orders, server, sends()).await?;
    while is_followed() && Instant::now() < until {
        let mut pause = PAUSE;
        tokio::select! {
            answer = server.orders(&known, WAIT) => {
                let AllOrders { site, json } = answer?;
                site.into_iter().for_each(|site| orders.federation.set_site(site));
                if let Some(json) = json {
                    pause = pause_after_list(json.len());
                    known = name_of(&json);
                    take_over(orders, json).await?;
                }
                orders.federation.set_trouble("", refusal.clone());
            }
            _ = changes.changed() => refusal = give(orders, server, sends()).await?,
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Sends a milter's orders. Returns the reason if it may only read those of others.
async fn give(orders: &Orders, server: &Remote, sends: bool) -> Result<Option<String>, Stopped> {
    let Some(mut post) = orders.post(now()) else { return Ok(None) };
    let mut why = None;
    if !sends && !std::mem::take(&mut post.allowed).is_empty() {
        why = Some("sync.withhold has \"exact\", so the orders of this machine hold here alone".to_owned());
    }
    match server.give_orders(post.encode()).await {
        Ok(()) => Ok(why),
        // Without orders there is nothing to refuse.
        Err(e)
            if matches!(
                e.code(),
                Some(Code::Role | Code::Unapproved | Code::TooMany | Code::BodyTooLong)
            ) =>
        {
            let url = server.url();
            let why = || format!("{url}: the orders of this machine hold here alone: {e}");
            Ok((!post.allowed.is_empty()).then(why))
        }
        Err(e) => Err(e.into()),
    }
}

/// Puts the orders that a server knows in force.
async fn take_over(orders: &Arc<Orders>, json: Vec<u8>) -> Result<(), Stopped> {
    let orders = Arc::clone(orders);
    let taking =
        move || -> Result<(), Stopped> { Ok(orders.federation.replace(ServerLists::parse(&json)?, now())?) };
    tokio::task::spawn_blocking(taking).await?
}

/// Adds the orders that a server's peer knows, forever.
pub async fn follow_peer_orders(orders: Arc<Orders>, peer: Arc<Remote>) {
    let mut known = String::new();
    loop {
        let pause = match hear(&orders, &peer, &mut known).await {
            Ok(bytes) => {
                orders.federation.set_trouble(peer.url(), None);
                pause_after_list(bytes)
            }
            Err(e) => {
                known.clear();
                pause_after(&orders, peer.url(), (&peer, &e))
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Waits for a change of a peer's orders, and adds it. Returns the bytes of the answer.
async fn hear(orders: &Arc<Orders>, peer: &Remote, known: &mut String) -> Result<usize, Stopped> {
    let Some(json) = peer.orders(known, WAIT).await?.json else { return Ok(0) };
    let (orders, name, bytes) = (Arc::clone(orders), name_of(&json), json.len());
    let merging =
        move || -> Result<usize, Stopped> { Ok(orders.federation.merge(ServerLists::parse(&json)?, now())?) };
    let left_out = tokio::task::spawn_blocking(merging).await??;
    if left_out > 0 {
        log::warn!(
            "{}: there is no room for the orders of {left_out} of its servers",
            remote_text(peer.url())
        );
    }
    *known = name;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest list is read twice a minute, and a short one at once.
    #[test]
    fn long_lists_are_asked_for_less_often() {
        let pauses = [0, 450, 450_000, 8 << 20].map(|bytes| pause_after_list(bytes).as_millis());
        assert_eq!(pauses, [500, 501, 2216, 32_500]);
    }
}
