// SPDX-License-Identifier: GPL-3.0-or-later
//! Takes connections for whom there is a place: where there is none, the one that has been silent for longest makes room.

use super::accept::{Accepted, Acceptor};
use super::crowd::{Crowd, Member};
use super::socket::Socket;
use std::sync::Arc;

/// Has each connection served by a task of its own, as many as `crowd` allows, until `end` is done. Those that are open then go on. Whoever
/// is sent away is dropped in the midst of it, unless it is [busy](Member::busy).
pub async fn serve_seated<F: Future<Output = ()> + Send + 'static>(
    socket: Arc<Socket>,
    crowd: Arc<Crowd>,
    end: impl Future<Output = ()>,
    mut serve: impl FnMut(Accepted, Member) -> F,
) {
    let mut acceptor = Acceptor::new(socket);
    let mut end = std::pin::pin!(end);
    loop {
        let next = async {
            crowd.room().await;
            std::future::poll_fn(|cx| acceptor.poll_accept(cx)).await
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            () = &mut end => return,
        };
        let Some(seat) = crowd.enter(accepted.ip) else {
            log::debug!("no room for one more connection of {:?}", accepted.ip);
            continue;
        };
        let served = serve(accepted, seat.member());
        tokio::spawn(async move {
            tokio::select! {
                () = served => (),
                () = seat.sent_away() => (),
            }
        });
    }
}
