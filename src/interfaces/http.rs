// SPDX-License-Identifier: GPL-3.0-or-later
//! The HTTP interface: a request's body is a message, and the answer is its judgement as JSON.

use super::access::{Access, Denied};
use super::envelope::{Asked, asked};
use super::head::Head;
use crate::activity::{Done, Interface};
use crate::judging::{Explanation, Judgement, Message, Service, Thresholds, decides, explain, judge};
use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{self, AsHeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use bulkmark_mail::MAX_BODY;
use bulkmark_verdict::{Answer, sentence};
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The shared state of all requests.
pub(super) struct Context {
    pub(super) service: Arc<Service>,
    pub(super) access: Access,
    /// The time for a message.
    pub(super) timeout: Duration,
}

/// The reason why there is no answer.
struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct ErrorBody {
            error: String,
        }
        let Self(status, error) = self;
        let mut response = (status, Json(ErrorBody { error })).into_response();
        let fields = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // It tells the client that the coding may be the reason (RFC 9110, 15.5.16).
            fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        // The rest of the message is not read.
        fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// The answer.
#[derive(Serialize)]
struct JudgeAnswer {
    #[serde(flatten)]
    answer: Answer,
    /// The reason, as a sentence.
    because: String,
    /// The thresholds of the policy that decides.
    thresholds: Thresholds,
    /// Whether the message was counted by this request.
    counted: bool,
    header: Field,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    /// The explanation before this request, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    explained: Option<Explanation>,
}

/// The header field that the milter would add.
#[derive(Serialize)]
struct Field {
    name: String,
    value: String,
}

/// The SMTP reply of a refusal.
#[derive(Serialize)]
struct Reply {
    code: String,
    status: String,
    text: String,
}

/// The paths of this interface.
pub(super) fn router(context: Arc<Context>) -> Router {
    // The body is bounded as it is read.
    Router::new().route("/v1/judge", post(handle)).layer(DefaultBodyLimit::disable()).with_state(context)
}

async fn handle(State(context): State<Arc<Context>>, request: Request) -> Response {
    let interfaces = &context.service.activity.interfaces;
    match respond(&context, request).await {
        Ok(answer) => {
            interfaces.add(Interface::Http, if answer.counted { Done::Counted } else { Done::Asked });
            Json(answer).into_response()
        }
        Err(failure) => {
            let is_late = failure.0 == StatusCode::REQUEST_TIMEOUT;
            interfaces.add(Interface::Http, if is_late { Done::TimedOut } else { Done::Refused });
            log::debug!("http: a request was refused: {} {}", failure.0, failure.1);
            failure.into_response()
        }
    }
}

async fn respond(context: &Context, request: Request) -> Result<JudgeAnswer, Failure> {
    let (parts, body) = request.into_parts();
    context.access.check(&parts.headers, &parts.uri).map_err(|denied| match denied {
        Denied::Token => {
            Failure(StatusCode::UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN".to_owned())
        }
        Denied::Host => Failure(
            StatusCode::MISDIRECTED_REQUEST,
            "this machine does not have that name; use its address, or a token (token-file in [interfaces.http])"
                .to_owned(),
        ),
    })?;
    check_type(&parts.headers)?;
    let asked = asked(parts.uri.query().unwrap_or_default(), |name| texts(&parts.headers, name));
    let Asked { envelope, recipients, counts, explains } =
        asked.map_err(|why| Failure(StatusCode::BAD_REQUEST, why))?;
    let mut message = Message::new(&context.service, envelope, Interface::Http);
    recipients.iter().for_each(|recipient| message.rcpt(recipient));
    if !counts {
        message.only_look_up();
    }
    if explains {
        message.explain();
    }
    timeout(context.timeout, read(&mut message, Head::new(context.service.reservation()), body))
        .await
        .map_err(|_| {
            let seconds = context.timeout.as_secs_f64();
            Failure(StatusCode::REQUEST_TIMEOUT, format!("the message did not come within {seconds} s"))
        })??;
    let explained = if explains { Box::pin(explain(&message, &context.service)).await } else { None };
    let judgement = Box::pin(judge(&mut message, &context.service, None)).await;
    Ok(JudgeAnswer { explained, ..judge_answer(&message, judgement) })
}

/// Refuses a body that is not a plain message: another type, or a compressed one. Without prior permission, no web site can make a browser
/// send `message/rfc822` to this machine.
fn check_type(fields: &HeaderMap) -> Result<(), Failure> {
    let refused = |why| Err(Failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    let types = texts(fields, header::CONTENT_TYPE);
    let is_mail = |found: &String| {
        found.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("message/rfc822")
    };
    if types.is_empty() || !types.iter().all(is_mail) {
        return refused(format!("found Content-Type {:?}, expected message/rfc822", types.join(", ")));
    }
    let codings = |name| texts(fields, name).join(",");
    let is_one_of = |codings: &str, plain: &str| {
        codings
            .split(',')
            .map(str::trim)
            .all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(plain))
    };
    let coding = codings(header::CONTENT_ENCODING);
    if !is_one_of(&coding, "identity") {
        return refused(format!(
            "found Content-Encoding {coding:?}, expected none: send the message as it is"
        ));
    }
    // hyper decodes chunks, but no compression within them.
    let coding = codings(header::TRANSFER_ENCODING);
    if !is_one_of(&coding, "chunked") {
        return Err(Failure(
            StatusCode::NOT_IMPLEMENTED,
            format!("found Transfer-Encoding {coding:?}, expected none or chunked"),
        ));
    }
    Ok(())
}

/// All values of a field.
fn texts(fields: &HeaderMap, name: impl AsHeaderName) -> Vec<String> {
    let values = fields.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// Reads the message.
async fn read(message: &mut Message, mut head: Head, mut body: Body) -> Result<(), Failure> {
    let (mut is_filled, mut size) = (false, 0usize);
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame =
            frame.map_err(|e| Failure(StatusCode::BAD_REQUEST, format!("the message ended early: {e}")))?;
        let Ok(bytes) = frame.into_data() else { continue };
        size = size.saturating_add(bytes.len());
        if size > super::head::MOST + MAX_BODY {
            let why = format!("the message is longer than {MAX_BODY} bytes");
            return Err(Failure(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let rest = head.take(&bytes);
        if head.is_whole() && !is_filled {
            is_filled = true;
            head.fill(message);
        }
        if !rest.is_empty() {
            message.body(rest);
        }
    }
    if !is_filled {
        head.fill(message);
    }
    message.content_begins();
    Ok(())
}

fn judge_answer(message: &Message, judgement: Judgement) -> JudgeAnswer {
    let (rules, envelope) = (&message.rules, &message.envelope);
    let Judgement { finding, outcome, content, reported, .. } = judgement;
    let answer = Answer::of(rules, envelope, content.as_ref(), &finding);
    let low = content.as_ref().and_then(|content| content.signatures.body.err());
    let thresholds = rules.terms(decides(rules, envelope, &finding)).thresholds;
    let (_, because) = sentence(&finding, thresholds, low);
    JudgeAnswer {
        answer: Answer { action: Some(outcome.action.to_string()), ..answer },
        because,
        thresholds: thresholds.into(),
        counted: reported > 0,
        header: Field { name: rules.header.as_str().to_owned(), value: outcome.header },
        reply: outcome.reply.map(|reply| Reply { code: reply.code, status: reply.status, text: reply.text }),
        explained: None,
    }
}
