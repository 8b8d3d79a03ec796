// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests to JetStream, and its answers: <https://docs.nats.io/reference/reference-protocols/nats_api_reference>.

use super::connection::Connection;
use super::names::{ANSWER, get_of, info_for_members};
use crate::log::types::{LogError, Place};
use async_nats::{HeaderMap, Message, StatusCode};
use bulkmark_types::remote_text;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

/// Error codes with a meaning here.
const NO_SUCH_STREAM: u64 = 10059;
const NOT_ENABLED: [u64; 2] = [10039, 10076];
const FULL: [u64; 2] = [10023, 10047];
const NOT_STORED: u64 = 10077;
const WRONG_LAST: [u64; 2] = [10071, 10164];
const REPEAT_IN_PROCESS: u64 = 10158;

/// The pause before a repeated request, if something is not decided yet, or not on all nodes.
const BRIEF: Duration = Duration::from_millis(50);

/// An error of JetStream.
#[derive(Debug, Deserialize)]
struct Failure {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        let what = remote_text(&failure.description);
        match failure.err_code {
            NO_SUCH_STREAM => {
                Self::NotSetUp(format!("the log is not set up: {what}; see bulkmark fleet setup"))
            }
            code if NOT_ENABLED.contains(&code) => Self::NotSetUp(format!(
                "{what}: nats-server needs jetstream {{ }} in its configuration; where it has it, its disk was full, and it is to \
                     be restarted when there is space"
            )),
            code if FULL.contains(&code) || what.contains("no space left") => {
                Self::Full(format!("{what} ({code})"))
            }
            NOT_STORED if what.contains("maximum bytes exceeded") => Self::Unavailable(format!(
                "{what} ({NOT_STORED}): a stream has no more room; nats stream edit NAME --max-bytes makes more, which bulkmark fleet \
                 setup leaves so"
            )),
            code => Self::Unavailable(format!("{what} ({code})")),
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    error: Option<Failure>,
}

/// Parses an answer, or the error in its place.
fn answer<T: DeserializeOwned>(message: &Message) -> Result<Result<T, Failure>, LogError> {
    let unexpected = |e: serde_json::Error| {
        LogError::Unavailable(remote_text(&format!("{} answered something else: {e}", message.subject)))
    };
    if let Some(failure) = serde_json::from_slice::<Answer>(&message.payload).map_err(unexpected)?.error {
        return Ok(Err(failure));
    }
    serde_json::from_slice(&message.payload).map(Ok).map_err(unexpected)
}

impl Connection {
    /// Sends a request to JetStream's API, by one of its subjects.
    pub(super) async fn api<T: DeserializeOwned>(
        &self,
        subject: &str,
        question: &Value,
    ) -> Result<Result<T, LogError>, LogError> {
        let payload = if question.is_null() { Bytes::new() } else { question.to_string().into() };
        let message = self.ask(subject, None, payload, Instant::now() + ANSWER).await?;
        Ok(answer(&message)?.map_err(LogError::from))
    }
}

/// The result of appending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    /// It is stored.
    At(Place),
    /// Another message was first.
    TooLate,
}

#[derive(Deserialize)]
struct Acknowledgement {
    seq: u64,
}

/// Appends a message to the stream of its subject. Repeats until it is stored, or the time is over: a server answers "duplicate" with
/// number 0, or an error, for a message that it received and has not yet stored.
pub(super) async fn append(
    connection: &Connection,
    subject: &str,
    headers: &HeaderMap,
    payload: Bytes,
) -> Result<Appended, LogError> {
    let deadline = Instant::now() + ANSWER;
    loop {
        let message = connection.ask(subject, Some(headers.clone()), payload.clone(), deadline).await?;
        match answer::<Acknowledgement>(&message)? {
            Ok(stored) if stored.seq > 0 => return Ok(Appended::At(Place(stored.seq))),
            Err(failure) if WRONG_LAST.contains(&failure.err_code) => return Ok(Appended::TooLate),
            Err(failure) if failure.err_code != REPEAT_IN_PROCESS => return Err(failure.into()),
            _ if Instant::now() + BRIEF < deadline => sleep(BRIEF).await,
            _ => {
                // A server whose leader died in between may answer so as long as it remembers ids (2.10.27).
                return Err(LogError::NotStored(
                    "the log received it, and has not stored it in time".to_owned(),
                ));
            }
        }
    }
}

/// The state of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// The time of its creation, in nanoseconds since 1970.
    pub(super) made: u64,
    /// The first message, or the number of the next one if it is empty.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The log's clock.
    pub(super) now: SystemTime,
    /// The requested subjects.
    pub(super) subjects: Vec<String>,
    pub(super) config: Value,
}

#[derive(Deserialize)]
struct Info {
    created: String,
    ts: Option<String>,
    config: Value,
    state: InfoState,
}

#[derive(Deserialize)]
struct InfoState {
    messages: u64,
    first_seq: u64,
    last_seq: u64,
    #[serde(default)]
    subjects: serde_json::Map<String, Value>,
}

/// Returns the state of a stream from its leader, with the subjects in it that match a filter.
pub(super) async fn state(
    connection: &Connection,
    stream: &str,
    subjects: Option<&str>,
) -> Result<State, LogError> {
    let question = subjects.map_or(Value::Null, |filter| json!({ "subjects_filter": filter }));
    let info: Info = connection.api(&info_for_members(stream), &question).await??;
    let made = time(&info.created)?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let next = info.state.last_seq + 1;
    Ok(State {
        made: u64::try_from(made.as_nanos()).unwrap_or(u64::MAX),
        first: if info.state.messages == 0 { next } else { info.state.first_seq },
        last: info.state.last_seq,
        now: info.ts.as_deref().map_or_else(|| Ok(SystemTime::now()), time)?,
        subjects: info.state.subjects.into_iter().map(|(subject, _)| subject).collect(),
        config: info.config,
    })
}

fn time(text: &str) -> Result<SystemTime, LogError> {
    humantime_serde::re::humantime::parse_rfc3339(text)
        .map_err(|e| LogError::Unavailable(remote_text(&format!("the log sent the time as {text:?}: {e}"))))
}

/// A stored message.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) place: Place,
    pub(super) subject: String,
    pub(super) at: SystemTime,
    pub(super) payload: Bytes,
}

/// Returns the message of a stream that a request describes; none if there is none. Any node may answer, even one that lags behind.
pub(super) async fn get(
    connection: &Connection,
    stream: &str,
    question: &Value,
) -> Result<Option<Stored>, LogError> {
    let subject = get_of(stream);
    let payload = question.to_string().into();
    let message = connection.ask(&subject, None, payload, Instant::now() + ANSWER).await?;
    match message.status {
        Some(StatusCode::NOT_FOUND) => return Ok(None),
        Some(status) if status.as_u16() >= 300 => {
            let why = message.description.as_deref().unwrap_or_default();
            return Err(LogError::Unavailable(remote_text(&format!("{subject}: {status} {why}"))));
        }
        _ => (),
    }
    let place = header(&message, "Nats-Sequence").and_then(|number| number.parse().ok());
    let (Some(place), Some(subject), Some(at)) =
        (place, header(&message, "Nats-Subject"), header(&message, "Nats-Time-Stamp"))
    else {
        return Err(LogError::Unavailable(format!("{subject}: an answer without number, subject and time")));
    };
    let (subject, at) = (subject.to_owned(), time(at)?);
    Ok(Some(Stored { place: Place(place), subject, at, payload: message.payload }))
}

/// Returns the last message of a subject; repeats for `time` if the log does not answer.
pub(super) async fn last_of(
    connection: &Connection,
    stream: &str,
    subject: &str,
    time: Duration,
) -> Result<Option<Stored>, LogError> {
    let deadline = Instant::now() + time;
    loop {
        match get(connection, stream, &json!({ "last_by_subj": subject })).await {
            Err(LogError::Unavailable(_)) if Instant::now() + BRIEF < deadline => sleep(BRIEF).await,
            outcome => return outcome,
        }
    }
}

/// Returns a header of a message.
pub(super) fn header<'a>(message: &'a Message, name: &'static str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}
