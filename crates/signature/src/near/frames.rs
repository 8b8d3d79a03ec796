// SPDX-License-Identifier: GPL-3.0-or-later
//! The open parts of a message, and the content to read of each when it ends.

use super::content::Content;

/// The most words of a receipt, which mail programs send in a person's name (RFC 8098, 3.1); known ones have 20 to 45.
const RECEIPT: usize = 60;

/// The most words of a mail server's notice, with the answers of other servers and a header in it.
const NOTICE: usize = 500;

/// An open multipart or message.
#[derive(Debug)]
pub(super) enum Frame {
    /// Alternatives: the best of those that ended, and the open one.
    Alternatives { best: Content, open: Content },
    /// A program's report: its own parts, its messages, whether its author is a mail server, the kind of its machine-readable status, and
    /// whether it returns a message or the header of one.
    Report { own: Content, enclosed: Content, by_daemon: bool, status: Option<Status>, returns: bool },
    /// An enclosed message.
    Message(Content),
}

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// On reading (RFC 8098) or abuse (RFC 5965), in anybody's name.
    Receipt,
    /// On delivery (RFC 3464) or tracking (RFC 3886), by a mail server.
    Notice,
}

impl Frame {
    pub(super) fn alternatives() -> Self {
        Self::Alternatives { best: Content::default(), open: Content::default() }
    }

    pub(super) fn report(by_daemon: bool) -> Self {
        let (own, enclosed) = (Content::default(), Content::default());
        Self::Report { own, enclosed, by_daemon, status: None, returns: false }
    }

    /// Adds a part.
    pub(super) fn add(&mut self, part: Content) {
        match self {
            Self::Alternatives { open, .. } => open.append(part),
            Self::Report { own, .. } => own.append(part),
            Self::Message(content) => content.append(part),
        }
    }

    /// Adds an enclosed message.
    pub(super) fn add_message(&mut self, message: Content) {
        match self {
            Self::Report { enclosed, returns, .. } => {
                *returns = true;
                enclosed.append(message);
            }
            _ => self.add(message),
        }
    }

    /// The next alternative begins.
    pub(super) fn next_alternative(&mut self) {
        if let Self::Alternatives { best, open } = self {
            best.or_better(std::mem::take(open));
        }
    }

    /// Notes the type of a part that only programs read.
    pub(super) fn note_type(&mut self, (kind, subtype): (&str, &str)) {
        if let Self::Report { status, returns, .. } = self {
            *returns |= (kind, subtype) == ("text", "rfc822-headers");
            *status = status.or_else(|| status_of(subtype).filter(|_| kind == "message"));
        }
    }

    /// The content of all of it.
    pub(super) fn finish(mut self) -> Content {
        self.next_alternative();
        match self {
            Self::Alternatives { best: content, .. } | Self::Message(content) => content,
            // A message that calls itself a report without a status is shown like any other. So is one with more or other text than programs
            // write: a receipt is short, and a mail server's notice returns the message that it is about.
            Self::Report { mut own, enclosed, by_daemon, status, returns } => {
                let is_short = own.words.len() <= RECEIPT && !own.page.has_links();
                let is_notice = by_daemon && returns && own.words.len() <= NOTICE;
                let is_of_program = match status {
                    None => false,
                    Some(Status::Receipt) => is_short || is_notice,
                    Some(Status::Notice) => is_notice,
                };
                if is_of_program {
                    return enclosed;
                }
                own.append(enclosed);
                own
            }
        }
    }
}

/// The kind of a report with this second part.
fn status_of(subtype: &str) -> Option<Status> {
    match subtype.strip_prefix("global-").unwrap_or(subtype) {
        "disposition-notification" | "feedback-report" => Some(Status::Receipt),
        "delivery-status" | "tracking-status" => Some(Status::Notice),
        _ => None,
    }
}
