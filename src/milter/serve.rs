// SPDX-License-Identifier: GPL-3.0-or-later
//! The life of the service, from the first connection to the last.

use super::callbacks::callbacks;
use super::crowd::Crowd;
use super::listen::Socket;
use crate::judging::Service;
use indymilter::Listener;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How long a shutdown waits for messages that are being sent. Below systemd's usual 90 s and long enough for a slow
/// client to finish; what is cut then is tried again by its sender.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which an idle connection is closed; libmilter's own value, above all timeouts of MTAs.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(7210);

/// How often it is said that all connections are taken.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// How often it is seen whether a silent connection may be closed, while another one waits.
const TICK: Duration = Duration::from_millis(250);

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// At a time; others wait.
    pub connections: usize,
    /// While others wait, those are closed on which the MTA said nothing for so long.
    pub idle: Duration,
}

/// Runs sessions on the listener of this name until `shutdown` completes; then takes no more connections, lets the messages that are being sent
/// come to their end (for 20 seconds at most), and returns.
///
/// # Errors
/// None is known: connections that cannot be taken are logged and tried again.
pub async fn serve(
    socket: Socket,
    bounds: Bounds,
    service: Arc<Service>,
    listener: Option<Arc<str>>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopped, stop) = watch::channel(false);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let accepting = Accepting {
        socket: Some(socket),
        bounds,
        next: None,
        tick,
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
    // One more, which is taken and waits in `Accepting`.
    let max_connections = bounds.connections.saturating_add(1);
    let config =
        indymilter::Config { max_connections, connection_timeout: CONNECTION_TIMEOUT, ..Default::default() };
    indymilter::run(accepting, callbacks(service, listener), config, drained).await
}

async fn wait_until_true(mut flag: watch::Receiver<bool>) {
    // The sender is dropped only after it sent.
    let _ = flag.wait_for(|flag| *flag).await;
}

/// Takes connections until it is told to stop; then the socket is closed and the MTA finds nobody there.
struct Accepting {
    socket: Option<Socket>,
    bounds: Bounds,
    /// One that was taken, and waits until there is a place for it.
    next: Option<<Socket as Listener>::Io>,
    /// Since nobody tells when a silent connection has become one that may go.
    tick: Interval,
    /// When it was last said that no more connections are taken, and how many had been closed by then.
    warned: Option<(Instant, u64)>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Listener for Accepting {
    type Io = <Socket as Listener>::Io;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        if self.socket.is_some() && self.stop.as_mut().poll(cx).is_ready() {
            (self.socket, self.next) = (None, None);
        }
        let Some(socket) = &mut self.socket else { return Poll::Pending };
        if self.next.is_none() {
            self.next = Some(ready!(socket.poll_accept(cx))?);
        }
        let crowd = socket.crowd();
        if crowd.len() >= self.bounds.connections && warn(&mut self.warned, crowd, self.bounds) {
            self.warned = Some((Instant::now(), crowd.closed()));
        }
        // First, so that nobody ends unnoticed.
        crowd.wake_when_one_ends(cx.waker());
        if crowd.len() <= self.bounds.connections
            && let Some(next) = self.next.take()
        {
            next.begin();
            return Poll::Ready(Ok(next));
        }
        crowd.close_one(self.bounds.idle, Instant::now());
        while self.tick.poll_tick(cx).is_ready() {}
        Poll::Pending
    }
}

/// Says, once in a while, that all connections are taken; true if it did.
fn warn(warned: &mut Option<(Instant, u64)>, crowd: &Crowd, bounds: Bounds) -> bool {
    if warned.is_some_and(|(at, _)| at.elapsed() < WARN_INTERVAL) {
        return false;
    }
    let closed = crowd.closed() - warned.map_or(0, |(_, closed)| closed);
    let told = match closed {
        0 => String::new(),
        closed => {
            format!("; {closed} that said nothing for {} s were closed for others", bounds.idle.as_secs_f64())
        }
    };
    log::warn!(
        "{} connections are open, as many as max-connections allows: the MTA has to wait for more{told}",
        bounds.connections
    );
    true
}
