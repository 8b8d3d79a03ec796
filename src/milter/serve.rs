// SPDX-License-Identifier: GPL-3.0-or-later
//! The life of the service, from the first connection to the last.

use super::callbacks::callbacks;
use super::listen::Socket;
use super::place::Place;
use super::stream::{CONNECTION_TIMEOUT, Coalescing};
use crate::activity::Open;
use crate::judging::Service;
use crate::net::{self, Crowd, Seat, Stream};
use indymilter::Listener;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time that a shutdown waits for messages in transfer. Below systemd's usual 90 s, and long enough for a slow client to finish; senders
/// retry interrupted messages.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// The interval of warnings that all connections are taken.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// The bounds of connections.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Concurrent connections; others wait.
    pub connections: usize,
    /// While others wait, connections that were silent for this long are closed.
    pub idle: Duration,
}

/// Runs sessions on the listener of this name until `shutdown` completes; then accepts no more connections, lets messages in transfer finish
/// (for 20 seconds at most), and returns.
///
/// # Errors
/// None is known: connections that cannot be accepted are logged and tried again.
pub async fn serve(
    socket: Socket,
    bounds: Bounds,
    service: Arc<Service>,
    listener: Option<Arc<str>>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopped, stop) = watch::channel(false);
    // All connections come from a few addresses, and clients are not known by name.
    let of_crowd = net::Bounds { all: bounds.connections, address: usize::MAX, known: usize::MAX };
    let accepting = Accepting {
        socket: Some(socket),
        crowd: Crowd::new(of_crowd),
        bounds,
        next: None,
        warned: None,
        stop: Box::pin(wait_until_true(stop.clone())),
        stopping: stop.clone(),
    };
    // In its own task, since accepting pauses while all connections are taken.
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
    // One more, which is accepted and waits in `Accepting`.
    let max_connections = bounds.connections.saturating_add(1);
    let config =
        indymilter::Config { max_connections, connection_timeout: CONNECTION_TIMEOUT, ..Default::default() };
    indymilter::run(accepting, callbacks(service, listener), config, drained).await
}

async fn wait_until_true(mut flag: watch::Receiver<bool>) {
    // The sender is dropped only after it sent.
    let _ = flag.wait_for(|flag| *flag).await;
}

/// An accepted connection that waits for a place.
struct Waiting {
    stream: Stream,
    open: Open,
    seat: Pin<Box<dyn Future<Output = Option<Seat>> + Send>>,
}

/// Accepts connections until it must stop; then the socket is closed and the MTA cannot connect.
struct Accepting {
    socket: Option<Socket>,
    crowd: Arc<Crowd>,
    bounds: Bounds,
    next: Option<Waiting>,
    /// The time of the last warning, and the number of closed connections by then.
    warned: Option<(Instant, u64)>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The same, for the connections that it ends.
    stopping: watch::Receiver<bool>,
}

impl Listener for Accepting {
    type Io = Coalescing<Stream>;

    /// Never fails.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        if self.socket.is_some() && self.stop.as_mut().poll(cx).is_ready() {
            (self.socket, self.next) = (None, None);
        }
        let Some(socket) = &mut self.socket else { return Poll::Pending };
        loop {
            let mut next = match self.next.take() {
                Some(next) => next,
                None => {
                    let ((stream, open), crowd) = (ready!(socket.poll_accept(cx)), Arc::clone(&self.crowd));
                    Waiting { stream, open, seat: Box::pin(async move { crowd.enter(None).await }) }
                }
            };
            let seat = next.seat.as_mut().poll(cx);
            if self.crowd.open() >= self.bounds.connections
                && warn(&mut self.warned, &self.crowd, self.bounds)
            {
                self.warned = Some((Instant::now(), self.crowd.sent_away()));
            }
            match seat {
                Poll::Pending => {
                    self.next = Some(next);
                    return Poll::Pending;
                }
                // Only a known address can have too many.
                Poll::Ready(None) => (),
                Poll::Ready(Some(seat)) => {
                    let place = Place::new(seat, self.bounds.idle);
                    return Poll::Ready(Ok(Coalescing::new(
                        next.stream,
                        next.open,
                        place,
                        self.stopping.clone(),
                    )));
                }
            }
        }
    }
}

/// Warns at intervals that all connections are taken; true if it did.
fn warn(warned: &mut Option<(Instant, u64)>, crowd: &Crowd, bounds: Bounds) -> bool {
    if warned.is_some_and(|(at, _)| at.elapsed() < WARN_INTERVAL) {
        return false;
    }
    let closed = crowd.sent_away() - warned.map_or(0, |(_, closed)| closed);
    let detail = match closed {
        0 => String::new(),
        closed => {
            format!("; {closed} that said nothing for {} s were closed for others", bounds.idle.as_secs_f64())
        }
    };
    log::warn!(
        "{} connections are open, as many as max-connections allows: the MTA has to wait for more{detail}",
        bounds.connections
    );
    true
}
