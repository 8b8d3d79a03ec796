// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads larger messages, a few at a time and in turn: the threads that serve connections stay free for small ones, and no client's messages
//! delay those of others.

use bulkmark_verdict::Unknown;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::oneshot;

/// The most messages that wait. There is at most one for each connection, and max-connections is 1,000 by default; the budget of memory
/// bounds their bytes.
const MOST_WAITING: usize = 1000;

/// A piece of work.
type Job = Box<dyn FnOnce() + Send>;

/// The client of a message: one address, or one customer's network. `None` for local submission.
type Client = Option<IpAddr>;

/// Threads that read, as many as the machine has cores.
#[derive(Clone)]
pub(super) struct Readers {
    most: usize,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    /// The number of running jobs.
    running: usize,
    waiting: usize,
    /// The number of jobs that were ever queued.
    queued: u64,
    /// The jobs of each client with their numbers, in their order.
    jobs: HashMap<Client, VecDeque<(u64, Job)>>,
    /// The clients with jobs, in the order of their turns.
    turns: VecDeque<Client>,
}

impl Queue {
    /// Queues a job, and returns its number.
    fn put(&mut self, client: Client, job: Job) -> u64 {
        let jobs = self.jobs.entry(client).or_default();
        if jobs.is_empty() {
            self.turns.push_back(client);
        }
        self.queued += 1;
        jobs.push_back((self.queued, job));
        self.waiting += 1;
        self.queued
    }

    /// Removes a job that has not begun. Linear in the number of clients if it was the client's last one.
    fn leave(&mut self, client: Client, number: u64) -> Option<Job> {
        let jobs = self.jobs.get_mut(&client)?;
        let at = jobs.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        let (_, job) = jobs.remove(at)?;
        self.waiting -= 1;
        if jobs.is_empty() {
            self.jobs.remove(&client);
            self.turns.retain(|&turn| turn != client);
        }
        Some(job)
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
        job.map(|(_, job)| job)
    }
}

impl Default for Readers {
    fn default() -> Self {
        // With two, one long message does not delay all others.
        Self::new(available_parallelism().map_or(2, NonZeroUsize::get).max(2))
    }
}

impl Readers {
    fn new(most: usize) -> Self {
        Self { most, queue: Arc::default() }
    }

    /// Does some work when it is this client's turn. If the caller stops waiting, the work is dropped at once, undone.
    ///
    /// # Errors
    /// The reason why there is no result: too many jobs wait already, or the work panicked.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        client: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unknown> {
        let (done, result) = oneshot::channel();
        let job = Box::new(move || {
            if !done.is_closed() {
                // The caller may have given up meanwhile.
                drop(done.send(catch_unwind(AssertUnwindSafe(work)).ok()));
            }
        });
        let _place = self.start(client.map(network), job).ok_or(Unknown::Overloaded)?;
        result.await.ok().flatten().ok_or(Unknown::InternalError)
    }

    /// Queues a job, and starts a thread if there are too few; `None` if the queue is full.
    fn start(&self, client: Client, job: Job) -> Option<Place> {
        let mut queue = self.queue.lock();
        if queue.waiting >= MOST_WAITING {
            return None;
        }
        let place = Place { queue: Arc::clone(&self.queue), client, number: queue.put(client, job) };
        if queue.running < self.most {
            queue.running += 1;
            let queue = Arc::clone(&self.queue);
            tokio::task::spawn_blocking(move || work(&queue));
        }
        Some(place)
    }
}

/// The place of a job in the queue. Dropped before its turn, it takes the job and its message out of memory.
struct Place {
    queue: Arc<Mutex<Queue>>,
    client: Client,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = self.queue.lock().leave(self.client, self.number);
        // Without the lock: it may be large.
        drop(left);
    }
}

/// Runs waiting jobs until there are none.
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

/// An address of IPv4, or a network of 64 bits, the smallest that a customer has.
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

    fn start(readers: &Readers, from: u8, done: &mpsc::Sender<u8>) -> Option<Place> {
        let done = done.clone();
        readers.start(client(from), Box::new(move || done.send(from).unwrap()))
    }

    #[tokio::test]
    async fn each_client_has_its_turn() {
        let (readers, release) = busy(1).await;
        let (done, order) = mpsc::channel();
        let places = [1; 100].into_iter().chain([2, 3]).map(|from| start(&readers, from, &done));
        let places: Vec<_> = places.collect();
        assert!(places.iter().all(Option::is_some));
        drop((release, done));
        let order: Vec<u8> = tokio::task::spawn_blocking(move || order.iter().collect()).await.unwrap();
        assert_eq!(order[..4], [1, 2, 3, 1]);
        assert_eq!(order.len(), 102);
        // An IPv6 network has one turn.
        assert_eq!(network("2001:db8::1".parse().unwrap()), network("2001:db8::2:1".parse().unwrap()));
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let (readers, release) = busy(2).await;
        let (done, order) = mpsc::channel();
        let places: Vec<_> = (0..MOST_WAITING).map(|_| start(&readers, 1, &done)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(start(&readers, 2, &done).is_none());
        assert_eq!(readers.read(client(2), || ()).await, Err(Unknown::Overloaded));
        drop((release, done));
        let number = tokio::task::spawn_blocking(move || order.iter().count()).await.unwrap();
        assert_eq!(number, MOST_WAITING);
    }

    /// After its deadline a message costs nothing more, not even memory while others are read; a panic costs one message its verdict.
    #[tokio::test]
    async fn abandoned_work_is_not_done() {
        let (readers, release) = busy(1).await;
        let (done, received) = mpsc::channel::<()>();
        let message = Arc::new(());
        let held = Arc::clone(&message);
        let mut wait = Box::pin(readers.read(client(1), move || {
            drop(held);
            done.send(()).unwrap();
        }));
        assert!(futures_poll(&mut wait).await);
        drop(wait);
        assert_eq!(Arc::strong_count(&message), 1, "the message is still in memory");
        assert!(readers.queue.lock().turns.is_empty());
        drop(release);
        assert_eq!(
            readers.read(client(1), || panic!("of a message")).await,
            Err::<(), _>(Unknown::InternalError)
        );
        assert_eq!(readers.read(client(1), || 7).await, Ok(7));
        assert!(received.recv().is_err());
    }

    /// Polls once; returns true if the future is pending.
    async fn futures_poll<T>(wait: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *wait).poll(cx).is_pending())
        })
        .await
    }
}
