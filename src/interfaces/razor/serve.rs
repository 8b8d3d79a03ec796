// SPDX-License-Identifier: GPL-3.0-or-later
//! Answers the requests of a client of Razor.

use super::super::access::may_ask;
use super::accounts::Accounts;
use super::answer::{Answer, greeting, write_batch, write_one};
use super::lines::{Asked, Bad, Lines};
use super::request::{Digest, Request};
use super::session::{PAUSE, Session};
use crate::activity::{Done, Interface};
use crate::interfaces::settings::RazorSettings;
use crate::judging::{Refused, Service, report_weights, take_digest};
use crate::net::{Accepted, Member, Stream};
use bulkmark_counts::Side;
use bulkmark_types::{FederationKey, UNIT, foreign};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The most bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The shared state of all connections.
pub(in crate::interfaces) struct Context {
    pub(in crate::interfaces) service: Arc<Service>,
    pub(in crate::interfaces) settings: RazorSettings,
    pub(in crate::interfaces) accounts: Arc<Accounts>,
    /// The address that is sent to clients.
    pub(in crate::interfaces) public_address: String,
}

/// The reason why a connection ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Bad(#[from] Bad),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("it is silent")]
    Silent,
    #[error("a request did not come in time, or its answer was not taken")]
    Late,
}

/// Answers on one connection.
pub(in crate::interfaces) async fn connection(
    Accepted { mut stream, ip, .. }: Accepted,
    member: Member,
    context: Arc<Context>,
) {
    let interfaces = &context.service.activity.interfaces;
    if !may_ask(ip, &context.settings.networks) {
        log::info!("razor: {ip:?} may not ask (interfaces.networks)");
        return interfaces.add(Interface::Razor, Done::Refused);
    }
    match Box::pin(converse(&mut stream, &member, Session::new(ip), &context)).await {
        Ok(()) | Err(End::Silent) => (),
        Err(End::Late) => {
            log::debug!("razor: {}", End::Late);
            interfaces.add(Interface::Razor, Done::TimedOut);
        }
        Err(End::Broken(e)) => log::debug!("razor: {}", End::Broken(e)),
        Err(End::Bad(bad)) => {
            log::info!("razor: a connection is closed: {bad}");
            interfaces.add(Interface::Razor, Done::Refused);
            let mut text = String::new();
            write_one(&Answer::Unknown, &context.public_address, &mut text);
            // The client gets the error if it still reads.
            let _ = timeout(context.settings.timeout, stream.write_all(text.as_bytes())).await;
        }
    }
}

async fn converse(
    stream: &mut Stream,
    member: &Member,
    mut session: Session,
    context: &Arc<Context>,
) -> Result<(), End> {
    let patience = context.settings.timeout;
    write(stream, greeting().as_bytes(), context).await?;
    let (mut lines, mut asked) = (Lines::default(), Vec::new());
    let (mut piece, mut text) = (vec![0; PIECE], String::new());
    let mut deadline = Instant::now() + patience;
    loop {
        let late = |_| if lines.is_amid() { End::Late } else { End::Silent };
        let read = timeout_at(deadline, stream.read(&mut piece)).await.map_err(late)??;
        if read == 0 {
            return Ok(());
        }
        let bad = lines.take(&piece[..read], &mut asked).err();
        if !asked.is_empty() {
            // While we answer, it is not disconnected for being idle.
            let busy = member.busy();
            answer(&mut asked, &mut session, context, &mut text).await;
            drop(busy);
            if std::mem::take(&mut session.was_wrong) {
                sleep(PAUSE).await;
            }
            write(stream, text.as_bytes(), context).await?;
            text.clear();
            deadline = Instant::now() + patience;
        }
        if let Some(bad) = bad {
            return Err(bad.into());
        }
        if session.is_over {
            return Ok(());
        }
    }
}

async fn write(stream: &mut Stream, bytes: &[u8], context: &Context) -> Result<(), End> {
    timeout(context.settings.timeout, stream.write_all(bytes)).await.map_err(|_| End::Late)??;
    Ok(())
}

/// Writes the answers to all requests, in order. The ledger is asked once for all checks.
async fn answer(asked: &mut Vec<Asked>, session: &mut Session, context: &Arc<Context>, text: &mut String) {
    let mut found = check(asked, context).await.into_iter();
    let mut answers = Vec::new();
    for one in asked.drain(..) {
        if session.is_over {
            return;
        }
        match one {
            Asked::One(request) => {
                let answer = reply(request, session, context, &mut found).await;
                write_one(&answer, &context.public_address, text);
            }
            Asked::Batch(requests) => {
                answers.clear();
                for request in requests {
                    if session.is_over {
                        break;
                    }
                    answers.push(reply(request, session, context, &mut found).await);
                }
                write_batch(&answers, &context.public_address, text);
            }
        }
    }
}

/// The answers to all checks.
async fn check(asked: &[Asked], context: &Context) -> Vec<Answer> {
    let service = &context.service;
    let rules = service.rules.load();
    let threshold = rules.thresholds.spam.get().saturating_mul(UNIT);
    drop(rules);
    let of = |request: &Request| match request {
        Request::Check(digest) => Some(*digest),
        _ => None,
    };
    let digests: Vec<_> = asked
        .iter()
        .flat_map(|asked| match asked {
            Asked::One(request) => std::slice::from_ref(request),
            Asked::Batch(requests) => requests,
        })
        .filter_map(of)
        .collect();
    if digests.is_empty() {
        return Vec::new();
    }
    let under = |key: &FederationKey| {
        digests.iter().map(|digest| foreign(key, digest.engine(), digest.content())).collect()
    };
    match report_weights(service, under).await {
        Some(all) => all.into_iter().map(|weights| Answer::Found(weights, threshold)).collect(),
        None => vec![Answer::Unavailable; digests.len()],
    }
}

async fn reply(
    request: Request,
    session: &mut Session,
    context: &Arc<Context>,
    found: &mut impl Iterator<Item = Answer>,
) -> Answer {
    let interfaces = &context.service.activity.interfaces;
    let answer = match request {
        Request::Check(_) => found.next().unwrap_or(Answer::Unavailable),
        Request::Report(digest) => report(digest, Side::Spam, session, context).await,
        Request::Revoke(digest) => report(digest, Side::NotSpam, session, context).await,
        // Mail is not asked for: only signatures are counted.
        Request::Mail => Answer::Refused,
        Request::State => Answer::State,
        Request::Catalogues => Answer::Servers("csl"),
        Request::Nominations => Answer::Servers("nsl"),
        Request::Register { user, password } => session.register(&context.accounts, (user, password)).await,
        Request::Identify(user) => session.identify(&context.accounts, user),
        Request::Prove(proof) => session.prove(&proof),
        Request::Introduction => Answer::Nothing,
        Request::Quit => {
            session.is_over = true;
            Answer::Nothing
        }
        Request::Unknown => Answer::Unknown,
    };
    if let Some(done) = done(&answer) {
        interfaces.add(Interface::Razor, done);
    }
    answer
}

/// The metric of a request with this answer.
const fn done(answer: &Answer) -> Option<Done> {
    match answer {
        Answer::Found(..) => Some(Done::Asked),
        Answer::Refused | Answer::Forbidden | Answer::Unknown | Answer::Unavailable => Some(Done::Refused),
        _ => None,
    }
}

/// Counts a report of the client's user.
async fn report(digest: Digest, side: Side, session: &Session, context: &Context) -> Answer {
    let Some(reporter) = session.reporter() else { return Answer::Forbidden };
    let service = &context.service;
    let of = foreign(&service.rules.load().key, digest.engine(), digest.content());
    match take_digest(service, of, (&reporter, side)).await {
        Ok(tally) if tally.no_room + tally.too_often == 0 => {
            service.activity.interfaces.add(Interface::Razor, Done::Nominated);
            Answer::Done
        }
        Ok(_) => Answer::Refused,
        Err(why @ Refused::Ledger(_)) => {
            log::warn!("razor: {why}");
            Answer::Unavailable
        }
        Err(why) => {
            log::info!("razor: {why}");
            Answer::Refused
        }
    }
}
