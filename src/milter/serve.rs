// SPDX-License-Identifier: GPL-3.0-or-later
//! The life of the service, from the first connection to the last.

use super::callbacks::callbacks;
use super::listen::Socket;
use super::service::Service;
use indymilter::Listener;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a shutdown waits for messages that are being sent. Below systemd's usual 90 s and long enough for a slow
/// client to finish; what is cut then is tried again by its sender.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which an idle connection is closed; libmilter's own value, above all timeouts of MTAs.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(7210);

/// How often it is said that all connections are taken.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Runs sessions until `shutdown` completes; then takes no more connections, lets the messages that are being sent
/// come to their end (for 20 seconds at most), and returns.
///
/// # Errors
/// None is known: connections that cannot be taken are logged and tried again.
pub async fn serve(
    socket: Socket,
    max_connections: usize,
    service: Arc<Service>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopped, stop) = watch::channel(false);
    let accepting = Accepting {
        socket: Some(socket),
        max_connections,
        warned: None,
        stop: Box::pin(wait_until_true(stop.clone())),
    };
    // Apart from accepting, which rests while all connections are taken.
    tokio::spawn(async move {
        shutdown.await;
        stopped.send_replace(true);
    });
    let mut in_flight = service.in_flight();
    let drained = async move {
        wait_until_true(stop).await;
        let idle = in_flight.wait_for(|n| *n == 0);
        if tokio::time::timeout(DRAIN_TIMEOUT, idle).await.is_err() {
            log::warn!("shutting down while messages are being received; their senders will try again");
        }
    };
    let config =
        indymilter::Config { max_connections, connection_timeout: CONNECTION_TIMEOUT, ..Default::default() };
    indymilter::run(accepting, callbacks(service), config, drained).await
}

async fn wait_until_true(mut flag: watch::Receiver<bool>) {
    // The sender is dropped only after it sent.
    let _ = flag.wait_for(|flag| *flag).await;
}

/// Takes connections until it is told to stop; then the socket is closed and the MTA finds nobody there.
struct Accepting {
    socket: Option<Socket>,
    max_connections: usize,
    /// When it was last said that no more connections are taken.
    warned: Option<Instant>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Listener for Accepting {
    type Io = <Socket as Listener>::Io;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        if self.socket.is_some() && self.stop.as_mut().poll(cx).is_ready() {
            self.socket = None;
        }
        let Some(socket) = &mut self.socket else { return Poll::Pending };
        let accepted = ready!(socket.poll_accept(cx));
        if socket.connections() >= self.max_connections
            && self.warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL)
        {
            self.warned = Some(Instant::now());
            log::warn!(
                "{} connections are open, as many as max-connections allows: the MTA has to wait for more",
                socket.connections()
            );
        }
        Poll::Ready(accepted)
    }
}
