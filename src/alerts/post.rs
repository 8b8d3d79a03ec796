// SPDX-License-Identifier: GPL-3.0-or-later
//! The task that checks for problems and posts them.

use super::problems::{Event, LastHour, Problem, Problems};
use super::settings::Settings;
use crate::control::Daemon;
use crate::net::own_name;
use bulkmark_ledger::now;
use bulkmark_policy::Action;
use humantime_serde::re::humantime::format_rfc3339_seconds;
use reqwest::{Client, Url};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time limit of a post.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks that are skipped after a failed post.
const PAUSE: u32 = 6;

/// Events that wait to be posted; beyond that the oldest are dropped.
const MOST_WAITING: usize = 200;

/// Accounts that are checked.
const ACCOUNTS: usize = 20;

/// A disk with a smaller free share, in percent, is a problem.
const FREE: u64 = 5;

/// Checks `daemon` for problems and posts them to `url`. Never returns.
pub async fn watch(daemon: Arc<Daemon>, settings: Settings, url: Url) {
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
    let (mut problems, mut refused, mut waiting) =
        (Problems::default(), LastHour::default(), VecDeque::new());
    let (mut fails, mut pause) = (false, 0_u32);
    loop {
        let refused = refused.note(all_refused(&daemon), now());
        waiting.extend(problems.check(find(&daemon, &settings, refused), now()));
        while waiting.len() > MOST_WAITING {
            waiting.pop_front();
        }
        pause = pause.saturating_sub(1);
        while pause == 0
            && let Some(event) = waiting.front()
        {
            match post(&http, &url, &daemon, event).await {
                Ok(()) => {
                    waiting.pop_front();
                    fails = false;
                }
                Err(why) => {
                    if !fails {
                        log::warn!("alerts: {host} takes none: {why}; they wait");
                    }
                    (fails, pause) = (true, PAUSE);
                }
            }
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Posts one event. The error never contains the address, which may be a secret.
async fn post(http: &Client, url: &Url, daemon: &Daemon, event: &Event) -> Result<(), String> {
    let time = |seconds| format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
    let Event { begins, problem, since, at } = event;
    let body = json!({
        "event": if *begins { "begin" } else { "end" },
        "problem": problem.kind,
        "about": problem.about,
        "text": problem.text,
        "since": time(*since),
        "at": time(*at),
        "daemon": daemon.name,
        "host": own_name(),
    });
    let request = http.post(url.clone()).header("content-type", "application/json").body(body.to_string());
    let answer = request.send().await.map_err(|e| e.without_url().to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
}

/// Messages refused since the start, permanently or temporarily.
fn all_refused(daemon: &Daemon) -> u64 {
    let is_refusal = |action| matches!(action, Action::Reject | Action::Tempfail | Action::Discard);
    let counts = daemon.activity.messages().into_iter().filter(|messages| is_refusal(messages.action));
    counts.map(|messages| messages.count).sum()
}

/// The present problems.
fn find(daemon: &Daemon, settings: &Settings, refused: u64) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |kind, about: String, text: String| found.push(Problem { kind, about, text });
    if let Some(why) = daemon.ailment() {
        add("ledger", String::new(), daemon.ledger.fault().unwrap_or_else(|| why.to_owned()));
    }
    if let Some(disk) = daemon.disk().filter(|disk| disk.available < disk.size / 100 * FREE) {
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
            format!("over its limit: {} copies of bulk, {} recipients", account.bulk, account.recipients);
        add("account", account.account, text);
    }
    if settings.refused_per_hour > 0 && refused >= settings.refused_per_hour {
        let limit = settings.refused_per_hour;
        add(
            "refused",
            String::new(),
            format!("{refused} messages refused in the last hour, the limit is {limit}"),
        );
    }
    found
}
