// SPDX-License-Identifier: GPL-3.0-or-later
//! The task that checks for problems and posts them.

use super::problems::{Event, Jump, Problem, Problems, Refusals};
use crate::activity::Webhook;
use crate::control::Daemon;
use bulkmark_ledger::now;
use bulkmark_policy::Action;
use bulkmark_sync::RemoteError;
use humantime_serde::re::humantime::format_rfc3339_seconds;
use parking_lot::Mutex;
use reqwest::{Client, Url};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::Notify;

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time limit of a post.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause after a failed post.
const PAUSE: Duration = Duration::from_secs(30);

/// Events that wait to be posted; beyond that the oldest are dropped.
const MOST_WAITING: usize = 200;

/// Accounts that are checked.
const ACCOUNTS: usize = 20;

/// The events that wait to be posted.
#[derive(Default)]
struct Waiting {
    events: Mutex<VecDeque<Event>>,
    /// Notified when there are more.
    more: Notify,
}

impl Waiting {
    /// Adds events; returns the number of all.
    fn add(&self, events: Vec<Event>) -> usize {
        let mut waiting = self.events.lock();
        waiting.extend(events);
        while waiting.len() > MOST_WAITING {
            waiting.pop_front();
        }
        let number = waiting.len();
        drop(waiting);
        self.more.notify_one();
        number
    }

    /// Waits for the oldest one and takes it out.
    async fn next(&self) -> Event {
        loop {
            let oldest = self.events.lock().pop_front();
            if let Some(event) = oldest {
                return event;
            }
            self.more.notified().await;
        }
    }

    /// Puts the oldest one back, if there is room; returns the number of all.
    fn put_back(&self, event: Event) -> usize {
        let mut waiting = self.events.lock();
        if waiting.len() < MOST_WAITING {
            waiting.push_front(event);
        }
        waiting.len()
    }
}

/// Checks `daemon` for problems and posts them to `url`, as those of the machine `name`. Never returns.
pub async fn watch(daemon: Arc<Daemon>, url: Url, name: String) {
    let host = url.host_str().unwrap_or_default().to_owned();
    let http = Client::builder()
        .user_agent(concat!("bulkmark/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .build();
    let http = match http {
        Ok(http) => http,
        Err(e) => return log::error!("alerts: nothing can be posted: {e}"),
    };
    let (mut problems, mut refused) = (Problems::default(), Refusals::default());
    let look = || {
        let jump = refused.note(all_refused(&daemon), now());
        problems.check(find(&daemon, jump), now())
    };
    let send = |event: Event| {
        let (http, url, body) = (http.clone(), url.clone(), body(daemon.name, &name, &event));
        async move { post(&http, &url, body).await.map_err(|why| (event, why)) }
    };
    daemon.activity.webhook.opened(&host);
    look_and_send(look, send, (&host, &daemon.activity.webhook), CHECK_INTERVAL).await;
}

/// Looks for events at intervals, and beside that sends them one by one, so that problems begin and end in time whatever a post takes. Never
/// returns.
async fn look_and_send<F>(
    mut look: impl FnMut() -> Vec<Event>,
    send: impl Fn(Event) -> F,
    (host, webhook): (&str, &Webhook),
    interval: Duration,
) where
    F: Future<Output = Result<(), (Event, String)>>,
{
    let waiting = Waiting::default();
    let looks = async {
        loop {
            webhook.waits(waiting.add(look()));
            tokio::time::sleep(interval).await;
        }
    };
    let sends = async {
        loop {
            match send(waiting.next().await).await {
                Ok(()) => {
                    if webhook.posted() {
                        log::info!("alerts: {host} accepts them again");
                    }
                }
                Err((event, why)) => {
                    webhook.waits(waiting.put_back(event));
                    if webhook.failed(why.clone(), now()) {
                        log::warn!("alerts: {host} takes none: {why}; they wait");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::join!(looks, sends);
}

/// Returns an event of a daemon at a machine as JSON.
fn body(daemon: &str, name: &str, event: &Event) -> String {
    let time = |seconds| format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
    let Event { begins, problem, since, at } = event;
    let body = json!({
        "event": if *begins { "begin" } else { "end" },
        "problem": problem.kind,
        "about": problem.about,
        "text": problem.text,
        "since": time(*since),
        "at": time(*at),
        "daemon": daemon,
        "host": name,
    });
    body.to_string()
}

/// Posts one event. The error never contains the address, which may be a secret.
async fn post(http: &Client, url: &Url, body: String) -> Result<(), String> {
    let request = http.post(url.clone()).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(|e| RemoteError::from(e).to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
}

/// Messages refused since the start, permanently or temporarily.
fn all_refused(daemon: &Daemon) -> u64 {
    let is_refusal = |action| matches!(action, Action::Reject | Action::Tempfail | Action::Discard);
    let counts = daemon.activity.messages().into_iter().filter(|messages| is_refusal(messages.action));
    counts.map(|messages| messages.count).sum()
}

/// The present problems.
fn find(daemon: &Daemon, jump: Option<Jump>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |kind, about: String, text: String| found.push(Problem { kind, about, text });
    if let Some(why) = daemon.ailment() {
        add("ledger", String::new(), daemon.ledger.fault().unwrap_or_else(|| why.to_owned()));
    }
    if let Some(disk) = daemon.disk().filter(|disk| disk.short) {
        let free = disk.available / (disk.size / 100).max(1);
        add("disk", String::new(), format!("{free} % of the disk of {} is free", daemon.state_dir.display()));
    }
    for link in daemon.links.status() {
        if let Some(error) = link.error {
            add("upstream", link.url, error);
        }
    }
    for account in
        daemon.activity.busiest_accounts(ACCOUNTS, now()).into_iter().filter(|account| account.over)
    {
        let text =
            format!("over its limit: {} copies of bulk; recipients: {}", account.bulk, account.recipients);
        add("account", account.account, text);
    }
    if let Some(Jump { hour, usual }) = jump {
        let text = format!("{hour} messages refused in the last hour; {usual} are usual");
        add("refused", String::new(), text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(about: usize) -> Event {
        let problem = Problem { kind: "upstream", about: about.to_string(), text: String::new() };
        Event { begins: true, problem, since: 0, at: 0 }
    }

    /// A webhook that never answers its first post: further looks find the next problems, of which the last ones wait.
    #[tokio::test]
    async fn a_slow_webhook_delays_no_look() {
        let (looks, mut seen) = tokio::sync::mpsc::channel(1);
        let mut number = 0;
        let look = || {
            number += 1;
            let _ = looks.try_send(number);
            vec![event(number)]
        };
        let never = |_| std::future::pending();
        let webhook = Webhook::default();
        let all = look_and_send(look, never, ("hooks.example.org", &webhook), Duration::ZERO);
        let many = async { while seen.recv().await.is_some_and(|number| number < 20) {} };
        tokio::select! {
            () = all => unreachable!("it never ends"),
            done = tokio::time::timeout(Duration::from_secs(60), many) => assert!(done.is_ok(), "it waits for the webhook"),
        }
    }

    #[tokio::test]
    async fn the_last_events_wait_in_their_order() {
        let waiting = Waiting::default();
        waiting.add((0..10_000).map(event).collect());
        let oldest = waiting.next().await;
        assert_eq!(oldest, event(10_000 - MOST_WAITING));
        waiting.put_back(oldest.clone());
        assert_eq!(waiting.next().await, oldest);
        waiting.add(vec![event(10_000)]);
        waiting.put_back(oldest);
        assert_eq!(waiting.next().await, event(10_001 - MOST_WAITING), "no room for an older one");
        assert_eq!(waiting.events.lock().len(), MOST_WAITING - 1);
    }
}
