// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads messages that are not small, a few at a time and in turn: so the threads that serve connections stay free for small ones,
//! and no client's messages keep those of others waiting.

use bulkmark_verdict::Unknown;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::oneshot;

/// Messages that wait at most. There is one for each connection at most, and max-connections is 1,000 by default; the budget of
/// the bodies bounds their bytes.
const MOST_WAITING: usize = 1000;

/// What is to be done, and then forgotten.
type Job = Box<dyn FnOnce() + Send>;

/// Who sent a message: one address, or one customer's network. None for local submission.
type Client = Option<IpAddr>;

/// Threads that read, as many as the machine has cores.
#[derive(Clone)]
pub(super) struct Readers {
    most: usize,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    /// Jobs that are being done.
    running: usize,
    waiting: usize,
    /// The jobs of each client, in their order.
    jobs: HashMap<Client, VecDeque<Job>>,
    /// The clients that have jobs, in the order of their turns.
    turns: VecDeque<Client>,
}

impl Queue {
    fn put(&mut self, client: Client, job: Job) {
        let jobs = self.jobs.entry(client).or_default();
        if jobs.is_empty() {
            self.turns.push_back(client);
        }
        jobs.push_back(job);
        self.waiting += 1;
    }

    /// The next job of the client whose turn it is; its next turn is after all others'.
    fn take(&mut self) -> Option<Job> {
        let client = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&client)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        self.waiting -= usize::from(job.is_some());
        job
    }
}

impl Default for Readers {
    fn default() -> Self {
        // With two, one long message does not hold up all others.
        Self::new(available_parallelism().map_or(2, NonZeroUsize::get).max(2))
    }
}

impl Readers {
    fn new(most: usize) -> Self {
        Self { most, queue: Arc::default() }
    }

    /// Does some work when it is this client's turn. Whoever stops waiting for the result gets it dropped undone.
    ///
    /// # Errors
    /// The reason why there is no result: too much waits already, or the work panicked.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        client: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unknown> {
        let (done, result) = oneshot::channel();
        let job = Box::new(move || {
            if !done.is_closed() {
                // Whoever waited may have given up meanwhile.
                drop(done.send(catch_unwind(AssertUnwindSafe(work)).ok()));
            }
        });
        if !self.start(client.map(network), job) {
            return Err(Unknown::Overloaded);
        }
        result.await.ok().flatten().ok_or(Unknown::InternalError)
    }

    /// Puts a job into the queue, and has somebody work on it; false when the queue is full.
    fn start(&self, client: Client, job: Job) -> bool {
        let mut queue = self.queue.lock();
        if queue.waiting >= MOST_WAITING {
            return false;
        }
        queue.put(client, job);
        if queue.running < self.most {
            queue.running += 1;
            let queue = Arc::clone(&self.queue);
            tokio::task::spawn_blocking(move || work(&queue));
        }
        true
    }
}

/// Does what waits, until nothing does.
fn work(queue: &Mutex<Queue>) {
    loop {
        let job = {
            let mut queue = queue.lock();
            let Some(job) = queue.take() else {
                queue.running -= 1;
                return;
            };
            job
        };
        job();
    }
}

/// An address of IPv4, or the network of 64 bits that one customer has at least.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn client(n: u8) -> Option<IpAddr> {
        Some([192, 0, 2, n].into())
    }

    /// Readers that are busy until the sender is dropped.
    async fn busy(most: usize) -> (Readers, Vec<mpsc::Sender<()>>) {
        let (readers, mut release) = (Readers::new(most), Vec::new());
        for _ in 0..most {
            let (end, ended) = mpsc::channel::<()>();
            let (begin, began) = oneshot::channel();
            let of = readers.clone();
            tokio::spawn(async move {
                of.read(client(0), move || {
                    begin.send(()).unwrap();
                    ended.recv().unwrap_err();
                })
                .await
            });
            began.await.unwrap();
            release.push(end);
        }
        (readers, release)
    }

    fn start(readers: &Readers, from: u8, told: &mpsc::Sender<u8>) -> bool {
        let told = told.clone();
        readers.start(client(from), Box::new(move || told.send(from).unwrap()))
    }

    #[tokio::test]
    async fn each_client_has_its_turn() {
        let (readers, release) = busy(1).await;
        let (told, order) = mpsc::channel();
        for _ in 0..100 {
            assert!(start(&readers, 1, &told));
        }
        assert!(start(&readers, 2, &told) && start(&readers, 3, &told));
        drop((release, told));
        let order: Vec<u8> = tokio::task::spawn_blocking(move || order.iter().collect()).await.unwrap();
        assert_eq!(order[..4], [1, 2, 3, 1]);
        assert_eq!(order.len(), 102);
        // Whoever has a network of IPv6 has one turn.
        assert_eq!(network("2001:db8::1".parse().unwrap()), network("2001:db8::2:1".parse().unwrap()));
    }

    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let (readers, release) = busy(2).await;
        let (told, order) = mpsc::channel();
        for _ in 0..MOST_WAITING {
            assert!(start(&readers, 1, &told));
        }
        assert!(!start(&readers, 2, &told));
        assert_eq!(readers.read(client(2), || ()).await, Err(Unknown::Overloaded));
        drop((release, told));
        let done = tokio::task::spawn_blocking(move || order.iter().count()).await.unwrap();
        assert_eq!(done, MOST_WAITING);
    }

    /// After its deadline a message costs nothing more; and a panic costs one message its verdict.
    #[tokio::test]
    async fn nobody_works_for_who_is_gone() {
        let (readers, release) = busy(1).await;
        let (told, heard) = mpsc::channel::<()>();
        let mut wait = Box::pin(readers.read(client(1), move || told.send(()).unwrap()));
        assert!(futures_poll(&mut wait).await);
        drop(wait);
        drop(release);
        assert_eq!(
            readers.read(client(1), || panic!("of a message")).await,
            Err::<(), _>(Unknown::InternalError)
        );
        assert_eq!(readers.read(client(1), || 7).await, Ok(7));
        assert!(heard.recv().is_err());
    }

    /// Begins to wait; true when there is nothing yet.
    async fn futures_poll<T>(wait: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *wait).poll(cx).is_pending())
        })
        .await
    }
}
