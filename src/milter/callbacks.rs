// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter protocol: translates between `indymilter` and a [`Session`], and negotiates options with the MTA.

use super::repair::UNREADABLE;
use super::session::{Client, Session};
use crate::judging::{MAX_FORGED, Service, judge};
use bulkmark_policy::{Action, Verdict};
use bulkmark_verdict::{Exempt, Outcome, Reply};
use indymilter::{
    ActionError, Actions, Callbacks, Context, ContextActions, EomActions, EomContext, MacroStage, Macros,
    NegotiateContext, ProtoOpts, SetErrorReply, SocketInfo, Status,
};
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// The actions on messages, if the MTA offers them.
const WANTED_ACTIONS: Actions = Actions::ADD_HEADER.union(Actions::CHANGE_HEADER).union(Actions::QUARANTINE);

/// Answers that the MTA need not wait for. Those to DATA and to the end of a message stay: without the former, Postfix sends the headers as a
/// second small segment, which then waits for a delayed acknowledgement.
const UNANSWERED: ProtoOpts = ProtoOpts::NOREPLY_CONNECT
    .union(ProtoOpts::NOREPLY_HELO)
    .union(ProtoOpts::NOREPLY_MAIL)
    .union(ProtoOpts::NOREPLY_RCPT)
    .union(ProtoOpts::NOREPLY_HEADER)
    .union(ProtoOpts::NOREPLY_EOH)
    .union(ProtoOpts::NOREPLY_BODY);

/// The state of a connection.
pub(super) struct State {
    session: Session,
    /// Stages without an answer, as agreed with this MTA.
    unanswered: ProtoOpts,
    actions: Actions,
    /// Whether values of header fields have the blank after the colon, in both directions.
    has_blanks: bool,
}

impl State {
    /// The status after a stage.
    fn on(&self, stage: ProtoOpts) -> Status {
        if self.unanswered.contains(stage) { Status::Noreply } else { Status::Continue }
    }
}

/// The callbacks of sessions on the listener of this name.
pub(super) fn callbacks(service: Arc<Service>, listener: Option<Arc<str>>) -> Callbacks<State> {
    Callbacks::new()
        .on_negotiate(move |cx, actions, opts| {
            let session = Session::new(Arc::clone(&service), listener.as_deref());
            Box::pin(async move { negotiate(cx, session, actions, opts) })
        })
        .on_connect(|cx, host, socket| Box::pin(async move { connect(cx, &host, &socket) }))
        .on_helo(|cx, name| {
            Box::pin(async move { step(cx, ProtoOpts::NOREPLY_HELO, |s| s.helo(&name.to_string_lossy())) })
        })
        .on_mail(|cx, args| Box::pin(async move { mail(cx, &args) }))
        .on_rcpt(|cx, args| Box::pin(async move { rcpt(cx, &args) }))
        .on_data(|_| Box::pin(async { Status::Continue }))
        .on_header(|cx, name, value| {
            Box::pin(async move {
                let blank = if cx.data.as_ref().is_some_and(|state| state.has_blanks) { "" } else { " " };
                step(cx, ProtoOpts::NOREPLY_HEADER, |s| {
                    if let Some(message) = &mut s.message {
                        message.header(name.to_bytes(), &[blank.as_bytes(), value.to_bytes()].concat());
                    }
                })
            })
        })
        // Without this stage the library would not go from DATA to the body of a message without header fields.
        .on_eoh(|cx| Box::pin(async move { step(cx, ProtoOpts::NOREPLY_EOH, |_| ()) }))
        // Never `Noreply`: the library omits the answer itself, and a body that comes with the end of the message needs `Continue` to reach
        // that end.
        .on_body(|cx, chunk| {
            Box::pin(async move {
                step(cx, ProtoOpts::empty(), |s| {
                    if let Some(message) = &mut s.message {
                        message.body(&chunk);
                    }
                });
                Status::Continue
            })
        })
        .on_eom(|cx| Box::pin(eom(cx)))
        .on_abort(|cx| {
            Box::pin(async move {
                if let Some(state) = &mut cx.data {
                    state.session.message = None;
                }
                Status::Continue
            })
        })
        .on_close(|cx| {
            Box::pin(async move {
                // An MTA may use the milter connection for another SMTP client then.
                if let Some(state) = &mut cx.data {
                    state.session.disconnect();
                }
                Status::Continue
            })
        })
}

fn negotiate(
    cx: &mut NegotiateContext<State>,
    session: Session,
    offered_actions: Actions,
    offered: ProtoOpts,
) -> Status {
    let wanted = if session.removes_traps() { WANTED_ACTIONS | Actions::DELETE_RCPT } else { WANTED_ACTIONS };
    let actions = wanted & offered_actions;
    if !actions.contains(Actions::ADD_HEADER) {
        log::warn!("the MTA does not let this milter add headers: its verdicts will not be seen");
    }
    let unanswered = UNANSWERED & offered;
    cx.requested_actions = actions | (Actions::REQUEST_MACROS & offered_actions);
    // The library proposes to skip the stages without a callback (unknown commands); an MTA that cannot skip them gets its answers from the
    // library. SPF may depend on the name of HELO, and signatures may cover the blank.
    let has_blanks = session.verifies() && offered.contains(ProtoOpts::LEADING_SPACE);
    let of_verification = if session.verifies() { ProtoOpts::LEADING_SPACE } else { ProtoOpts::NO_HELO };
    cx.requested_opts =
        ((cx.requested_opts & offered) - ProtoOpts::SKIP) | unanswered | (of_verification & offered);
    if offered_actions.contains(Actions::REQUEST_MACROS) {
        for (stage, names) in [
            (MacroStage::Connect, c"j"),
            (MacroStage::Mail, c"i {auth_authen} {auth_type}"),
            (MacroStage::Data, c"i"),
            (MacroStage::Eom, c"i"),
        ] {
            cx.requested_macros.insert(stage, names.into());
        }
    }
    cx.data = Some(State { session, unanswered, actions, has_blanks });
    Status::Continue
}

fn step(cx: &mut Context<State>, stage: ProtoOpts, act: impl FnOnce(&mut Session)) -> Status {
    let Some(state) = &mut cx.data else { return Status::Continue };
    act(&mut state.session);
    state.on(stage)
}

fn connect(cx: &mut Context<State>, host: &CStr, socket: &SocketInfo) -> Status {
    let client = match socket {
        SocketInfo::Inet(address) => Client::At(address.ip()),
        SocketInfo::Unix(path) if path.to_bytes() == UNREADABLE => Client::Unknown,
        SocketInfo::Unix(_) | SocketInfo::Unknown => Client::Local,
    };
    step(cx, ProtoOpts::NOREPLY_CONNECT, |session| session.connect(&host.to_string_lossy(), client))
}

fn mail(cx: &mut Context<State>, args: &[CString]) -> Status {
    let login = text(&cx.macros, c"{auth_authen}");
    let authenticated = login.is_some() || text(&cx.macros, c"{auth_type}").is_some();
    step(cx, ProtoOpts::NOREPLY_MAIL, |session| session.mail(&first(args), authenticated, login))
}

fn rcpt(cx: &mut Context<State>, args: &[CString]) -> Status {
    step(cx, ProtoOpts::NOREPLY_RCPT, |session| {
        if let Some(message) = &mut session.message {
            message.rcpt(&first(args));
        }
    })
}

/// The first argument of an SMTP command: the address.
fn first(args: &[CString]) -> Cow<'_, str> {
    args.first().map_or(Cow::Borrowed(""), |address| address.to_string_lossy())
}

async fn eom(cx: &mut EomContext<State>) -> Status {
    let Some(state) = &mut cx.data else { return Status::Continue };
    let Some(mut message) = state.session.message.take() else { return Status::Continue };
    message.content_begins();
    let host = text(&cx.macros, c"j");
    message.envelope.id = text(&cx.macros, c"i");
    let id = message.envelope.id().to_owned();
    // Marks by our own networks stay; header fields of our name from others are forged.
    let forged = if message.exempt.is_some_and(Exempt::is_our_own) { 0 } else { message.forged };
    let name = message.rules.header.as_str().to_owned();
    let outcome = judge(&mut message, &state.session.service, host.as_deref()).await.outcome;
    match outcome.action {
        Action::Discard => return Status::Discard,
        Action::Reject | Action::Tempfail => return refuse(&mut cx.reply, outcome),
        Action::Mark | Action::Quarantine => (),
    }
    let mut outcome = outcome;
    if state.has_blanks {
        outcome.header.insert(0, ' ');
    }
    if forged > MAX_FORGED {
        log::warn!(
            "{id}: it came with {forged} header fields of the name {name}: {MAX_FORGED} are removed, and ours is above the others"
        );
    }
    if let Err(e) = change(&cx.actions, state.actions, &name, forged, outcome).await {
        log::warn!("{id}: the message could not be marked: {e}");
    }
    Status::Continue
}

fn text(macros: &Macros, name: &CStr) -> Option<String> {
    macros.get(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn refuse(reply: &mut indymilter::SmtpReply, outcome: Outcome) -> Status {
    if let Some(Reply { code, status, text }) = outcome.reply
        && let Err(e) = reply.set_error_reply(&code, Some(&status), [text])
    {
        log::warn!("the reply text is invalid and was left out: {e}");
    }
    if outcome.action == Action::Reject { Status::Reject } else { Status::Tempfail }
}

/// Marks the message. Forged fields beyond the bound stay below ours.
async fn change(
    eom: &EomActions,
    available: Actions,
    name: &str,
    forged: usize,
    outcome: Outcome,
) -> Result<(), ActionError> {
    let is_first = forged > MAX_FORGED;
    if available.contains(Actions::DELETE_RCPT) {
        for trap in &outcome.leaving {
            eom.delete_recipient(format!("<{trap}>")).await?;
        }
    }
    if available.contains(Actions::CHANGE_HEADER) {
        // From the last to the first, since an MTA may renumber the fields after a removed one.
        for index in (1..=forged.min(MAX_FORGED)).rev() {
            eom.change_header(name, i32::try_from(index).unwrap_or(i32::MAX), None::<&str>).await?;
        }
    }
    // The header shows in the queue why a message is held.
    let has_header = !outcome.is_silent || outcome.action == Action::Quarantine;
    if available.contains(Actions::ADD_HEADER) && has_header {
        if is_first {
            eom.insert_header(0, name, outcome.header).await?;
        } else {
            eom.add_header(name, outcome.header).await?;
        }
    }
    if outcome.action == Action::Quarantine {
        let why = match outcome.verdict {
            Verdict::Spam => "reported as spam (bulkmark)",
            Verdict::Bulk => "bulk mail (bulkmark)",
            // Of other mail, only that of an account over its limit is held.
            _ => "mail of an account over its limit (bulkmark)",
        };
        eom.quarantine(why).await?;
    }
    Ok(())
}
