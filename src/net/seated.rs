// SPDX-License-Identifier: GPL-3.0-or-later
//! Accepts connections within bounds: if there is no room, the one that has been silent for longest is closed, or the new one waits.

use super::accept::{Accepted, Acceptor};
use super::crowd::{Crowd, Member};
use super::socket::Socket;
use std::sync::Arc;

/// Serves each connection in its own task, as many as `crowd` allows, until `end` completes. Open connections then continue. A connection
/// that has to make room is dropped at any point, unless it is [busy](Member::busy).
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
            let Accepted { stream, ip, uid } = std::future::poll_fn(|cx| acceptor.poll_accept(cx)).await;
            (stream, (ip, uid), crowd.enter(ip).await)
        };
        let (stream, (ip, uid), seat) = tokio::select! {
            next = next => next,
            () = &mut end => return,
        };
        let Some(seat) = seat else {
            log::debug!("no room for one more connection of {ip:?}");
            continue;
        };
        let served = serve(Accepted { stream: seat.monitor(stream), ip, uid }, seat.member());
        tokio::spawn(async move {
            tokio::select! {
                () = served => (),
                () = seat.sent_away() => (),
            }
        });
    }
}
