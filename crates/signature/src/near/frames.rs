// SPDX-License-Identifier: GPL-3.0-or-later
//! The open parts of a message, and the content to read of each when it ends.

use super::content::Content;

/// The most words of a receipt, which mail programs send in a person's name (RFC 8098, 3.1); known ones have 20 to 45.
const RECEIPT: usize = 60;

/// An open multipart or message.
#[derive(Debug)]
pub(super) enum Frame {
    /// Alternatives: the best of those that ended, and the open one.
    Alternatives { best: Content, open: Content },
    /// A program's report: its own parts, its messages, whether its author is a mail server, and whether it has a machine-readable status.
    Report { own: Content, enclosed: Content, by_daemon: bool, has_status: bool },
    /// An enclosed message.
    Message(Content),
}

impl Frame {
    pub(super) fn alternatives() -> Self {
        Self::Alternatives { best: Content::default(), open: Content::default() }
    }

    pub(super) fn report(by_daemon: bool) -> Self {
        Self::Report { own: Content::default(), enclosed: Content::default(), by_daemon, has_status: false }
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
            Self::Report { enclosed, .. } => enclosed.append(message),
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
        if let Self::Report { has_status, .. } = self {
            *has_status |= kind == "message" && is_status(subtype);
        }
    }

    /// The content of all of it.
    pub(super) fn finish(mut self) -> Content {
        self.next_alternative();
        match self {
            Self::Alternatives { best: content, .. } | Self::Message(content) => content,
            // A message that calls itself a report without a status is shown like any other. So is a report by a person, unless it is as
            // short as a receipt.
            Self::Report { mut own, enclosed, by_daemon, has_status } => {
                let is_short = own.words.len() <= RECEIPT && !own.page.has_links();
                if has_status && (by_daemon || is_short) {
                    return enclosed;
                }
                own.append(enclosed);
                own
            }
        }
    }
}

/// Whether this is the second part of a report: on delivery (RFC 3464), reading (RFC 8098), abuse (RFC 5965) or tracking (RFC 3886).
fn is_status(subtype: &str) -> bool {
    let subtype = subtype.strip_prefix("global-").unwrap_or(subtype);
    matches!(subtype, "delivery-status" | "disposition-notification" | "feedback-report" | "tracking-status")
}
