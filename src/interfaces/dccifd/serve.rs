// SPDX-License-Identifier: GPL-3.0-or-later
//! Answers a request of a client of dccifd.

use super::super::access::may_ask;
use super::super::head::Head;
use super::super::settings::DccifdSettings;
use super::reply::{Found, Style, reply};
use super::request::{Bad, Preamble, Request, Shows};
use crate::activity::{Done, Interface};
use crate::judging::{Judgement, Message, Refused, Reservation, Service, UserReport, judge, take_report};
use crate::net::{Accepted, Member, Stream};
use bulkmark_counts::Side;
use bulkmark_mail::{MAX_BODY, header_fields};
use bulkmark_verdict::{Envelope, Rules, Unknown};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// The name in `X-DCC-NAME-Metrics`.
const NAME: &str = "bulkmark";

/// The most bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The shared state of all connections.
pub(in crate::interfaces) struct Context {
    pub(in crate::interfaces) service: Arc<Service>,
    pub(in crate::interfaces) settings: DccifdSettings,
}

/// A complete request.
struct Received {
    request: Request,
    /// The memory of the request's lines.
    _of_lines: Reservation,
    message: Message,
    /// The whole message, if it is returned or nominated.
    copy: Option<Copy>,
}

/// A raw message, and the memory that it takes.
struct Copy {
    bytes: Vec<u8>,
    reservation: Reservation,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Bad(#[from] Bad),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("there is no memory left for its lines, or for the message, which must be returned or nominated")]
    NoRoom,
}

/// Answers on one connection.
pub(in crate::interfaces) async fn connection(
    Accepted { mut stream, ip, uid }: Accepted,
    member: Member,
    context: Arc<Context>,
) {
    let context = &*context;
    let (interfaces, settings) = (&context.service.activity.interfaces, &context.settings);
    if !may_ask(ip, &settings.networks) {
        log::info!("dccifd: {ip:?} may not ask (interfaces.networks)");
        return interfaces.add(Interface::Dccifd, Done::Refused);
    }
    let received = match timeout(settings.timeout, read(&mut stream, context)).await {
        Ok(Ok(received)) => received,
        Ok(Err(why)) => {
            log::info!("dccifd: a request was not answered: {why}");
            return interfaces.add(Interface::Dccifd, Done::Refused);
        }
        Err(_) => {
            let seconds = settings.timeout.as_secs_f64();
            log::info!("dccifd: a request was not answered: it did not come within {seconds} s");
            return interfaces.add(Interface::Dccifd, Done::TimedOut);
        }
    };
    // While we answer, it is not disconnected for being idle.
    let busy = member.busy();
    let (done, answer) = Box::pin(answer(context, received, uid)).await;
    drop(busy);
    interfaces.add(Interface::Dccifd, done);
    let write = async {
        stream.write_all(&answer).await?;
        stream.shutdown().await
    };
    match timeout(settings.timeout, write).await {
        Ok(Ok(())) => (),
        Ok(Err(e)) => log::debug!("dccifd: an answer was not taken: {e}"),
        Err(_) => log::debug!("dccifd: an answer was not taken in time"),
    }
}

async fn read(stream: &mut Stream, context: &Context) -> Result<Received, Failure> {
    let mut piece = vec![0; PIECE];
    let (mut preamble, mut rest) = (Preamble::default(), Vec::new());
    let mut of_lines = context.service.reservation();
    loop {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Err(Bad::Early.into());
        }
        if !of_lines.take(read) {
            return Err(Failure::NoRoom);
        }
        if let Some(bytes) = preamble.take(&piece[..read])? {
            rest.extend_from_slice(bytes);
            break;
        }
    }
    let request = preamble.into_request();
    let mut copy = (request.shows == Shows::Message || request.spam)
        .then(|| Copy { bytes: Vec::new(), reservation: context.service.reservation() });
    let (mut head, mut message) = (Head::new(context.service.reservation()), None);
    loop {
        if let Some(copy) = &mut copy {
            copy.add(&rest)?;
        }
        let body = head.take(&rest);
        if head.is_whole() {
            let message = message.get_or_insert_with(|| begin(context, &request, &mut head));
            if !body.is_empty() {
                message.body(body);
            }
        }
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        rest.clear();
        rest.extend_from_slice(&piece[..read]);
    }
    let mut message = message.unwrap_or_else(|| begin(context, &request, &mut head));
    message.content_begins();
    Ok(Received { request, _of_lines: of_lines, message, copy })
}

impl Copy {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.bytes.len() + bytes.len() > 2 * MAX_BODY || !self.reservation.take(bytes.len()) {
            return Err(Failure::NoRoom);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Begins a message whose header is complete.
fn begin(context: &Context, request: &Request, head: &mut Head) -> Message {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    // If the request has no client, a Received field has it, with its HELO name.
    let received =
        request.client.is_none().then(|| head.client(request.skipped)).flatten().unwrap_or_default();
    let envelope = Envelope {
        client: request.client.or(received.client),
        host: request.host.clone(),
        helo: text(&request.helo).or(received.helo),
        sender: Some(request.sender.clone()),
        ..Envelope::default()
    };
    let mut message = Message::new(&context.service, envelope, Interface::Dccifd);
    request.recipients.iter().for_each(|recipient| message.rcpt(recipient));
    if request.unkept > 0 {
        message.fail(Unknown::TooManyRecipients);
    }
    // DCC counts recipients: without any, nothing is counted. A message that is reported as spam was already counted.
    let is_lookup = request.query || request.spam || request.recipients.is_empty();
    if is_lookup || !context.settings.count {
        message.only_look_up();
    }
    head.fill(&mut message);
    message
}

async fn answer(context: &Context, received: Received, uid: Option<u32>) -> (Done, Vec<u8>) {
    let Received { request, _of_lines, mut message, mut copy } = received;
    let service = &context.service;
    let is_nominated = match &mut copy {
        // A second copy is returned.
        Some(copy) if request.spam && request.shows == Shows::Message => {
            let has_room = copy.reservation.take(copy.bytes.len());
            if !has_room {
                log::info!(
                    "dccifd: a message that was reported as spam is not nominated: there is no memory for it"
                );
            }
            has_room && nominate(service, uid, copy.bytes.clone()).await
        }
        Some(copy) if request.spam => nominate(service, uid, std::mem::take(&mut copy.bytes)).await,
        _ => false,
    };
    let times = message.rules.times(&message.rules.parties(&message.envelope)) as usize;
    let Judgement { finding, outcome, content, reported, .. } = judge(&mut message, service, None).await;
    let rules = &message.rules;
    let found = Found {
        rules,
        finding: &finding,
        outcome: &outcome,
        content: content.as_ref(),
        times: if reported > 0 { times } else { 0 },
    };
    let style = Style { name: NAME, many: context.settings.many, host: host(rules) };
    let mut answer = reply(&request, &found, style).into_bytes();
    if let (Shows::Message, Some(copy)) = (request.shows, &copy) {
        without_marks(&copy.bytes, &mut answer);
    }
    let done = if is_nominated {
        Done::Nominated
    } else if reported > 0 {
        Done::Counted
    } else {
        Done::Asked
    };
    (done, answer)
}

fn host(rules: &Rules) -> &str {
    rules.hostname.as_deref().unwrap_or("localhost")
}

/// Nominates a message; returns whether it was accepted.
async fn nominate(service: &Service, uid: Option<u32>, raw: Vec<u8>) -> bool {
    // Clients can send any name, so names do not count. On a Unix socket the system identifies the user; all clients by TCP are one reporter.
    let reporter = match uid {
        Some(uid) => format!("interface:dccifd:uid:{uid}"),
        None => "interface:dccifd:tcp".to_owned(),
    };
    let reporter = reporter.into_bytes();
    let report = UserReport { reporter, side: Side::Spam, force: false, only_withdraws: false };
    match take_report(service, raw, report).await {
        Ok(_) => true,
        // This is logged once a day.
        Err(Refused::TooMany) => false,
        Err(why) => {
            log::info!("dccifd: a message that was reported as spam is not nominated: {why}");
            false
        }
    }
}

/// Writes a message without the DCC header lines that came with it.
fn without_marks(raw: &[u8], answer: &mut Vec<u8>) {
    let (head, body) = split(raw);
    for field in fields(head) {
        let name = header_fields(field).next().map(|(name, _)| name.trim_ascii().to_ascii_lowercase());
        let is_mark = name.is_some_and(|name| name.starts_with(b"x-dcc-") && name.ends_with(b"-metrics"));
        if !is_mark {
            answer.extend_from_slice(field);
        }
    }
    answer.extend_from_slice(body);
}

/// The header, and the rest with the empty line.
fn split(raw: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < raw.len() {
        let line = &raw[at..];
        let end = memchr::memchr(b'\n', line).map_or(line.len(), |end| end + 1);
        if matches!(&line[..end], b"\n" | b"\r\n") {
            return raw.split_at(at);
        }
        at += end;
    }
    (raw, &[])
}

/// The fields of a header, each with all its lines.
fn fields(head: &[u8]) -> Vec<&[u8]> {
    let (mut fields, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < head.len() {
        at += memchr::memchr(b'\n', &head[at..]).map_or(head.len() - at, |end| end + 1);
        if !matches!(head.get(at), Some(b' ' | b'\t')) {
            fields.push(&head[begin..at]);
            begin = at;
        }
    }
    fields
}
