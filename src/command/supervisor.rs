// SPDX-License-Identifier: GPL-3.0-or-later
//! Tasks that a daemon needs permanently: one that ends, or fails by an error of the program, is restarted.

use crate::activity::Tasks;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinHandle};

/// The pause before a task is restarted, doubled each time until the task lasted longer than that.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// The tasks of a daemon; they end when it is dropped.
pub(super) struct Supervisor {
    counts: Arc<Tasks>,
    running: Vec<Running>,
}

/// A task that ends when this is dropped.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Supervisor {
    /// Creates a supervisor without tasks. Restarts are counted in `counts`.
    pub(super) fn new(counts: Arc<Tasks>) -> Self {
        Self { counts, running: Vec::new() }
    }

    /// Begins a task that should never end; `begin` is called again if it does. Several tasks may have one name.
    pub(super) fn run<F>(&mut self, name: &'static str, begin: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let counts = Arc::clone(&self.counts);
        counts.expect(name);
        self.running.push(Running(tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                let began = Instant::now();
                let ended = Running(tokio::spawn(begin())).finished().await;
                // The panic itself is in the log already.
                let how = match ended {
                    Ok(()) => "ended, which it should not",
                    Err(_) => "failed by an error of the program",
                };
                if began.elapsed() > LAST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                counts.restarted(name);
                log::error!("the task {name} {how}; it is started again in {} ms", pause.as_millis());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        })));
    }
}

impl Running {
    /// Waits for its end; it also ends if this future is dropped.
    async fn finished(mut self) -> Result<(), JoinError> {
        (&mut self.0).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::mpsc::unbounded_channel;

    /// Tasks that panic or end are restarted until they last, and counted; they end with the supervisor.
    #[tokio::test]
    async fn tasks_are_started_again() {
        let counts = Arc::new(Tasks::default());
        let mut supervisor = Supervisor::new(Arc::clone(&counts));
        let (lasts, mut lasting) = unbounded_channel();
        for (name, panics) in [("panics", true), ("ends", false)] {
            let (begun, lasts) = (Arc::new(AtomicU32::new(0)), lasts.clone());
            supervisor.run(name, move || {
                let (time, lasts) = (begun.fetch_add(1, Ordering::Relaxed), lasts.clone());
                async move {
                    assert!(time > 1 || !panics, "as it is meant to");
                    if time > 1 {
                        lasts.send(name).unwrap();
                        std::future::pending::<()>().await;
                    }
                }
            });
        }
        drop(lasts);
        let mut names = [lasting.recv().await.unwrap(), lasting.recv().await.unwrap()];
        names.sort_unstable();
        assert_eq!(names, ["ends", "panics"]);
        assert_eq!(counts.restarts(), [("ends", 2), ("panics", 2)]);
        drop(supervisor);
        assert_eq!(lasting.recv().await, None, "they live on without their supervisor");
    }
}
