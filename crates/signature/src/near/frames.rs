// SPDX-License-Identifier: GPL-3.0-or-later
//! Of the parts of a message that are open: what of them will be read once they end.

use super::content::Content;

/// The most words of a receipt, which mail programs send in the name of a person (RFC 8098, 3.1); those known have 20 to 45.
const RECEIPT: usize = 60;

/// A multipart or message that is open.
#[derive(Debug)]
pub(super) enum Frame {
    /// Alternatives: the best of those that ended, and the one that is open.
    Alternatives { best: Content, open: Content },
    /// A report of a program: its own parts, the messages in it, whether its author is a mail server, and whether a program can
    /// read what it reports.
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

    /// A part of it was read.
    pub(super) fn add(&mut self, part: Content) {
        match self {
            Self::Alternatives { open, .. } => open.append(part),
            Self::Report { own, .. } => own.append(part),
            Self::Message(content) => content.append(part),
        }
    }

    /// A message in it was read.
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

    /// A part of this type is in it, which only programs read.
    pub(super) fn see_type(&mut self, (kind, subtype): (&str, &str)) {
        if let Self::Report { has_status, .. } = self {
            *has_status |= kind == "message" && is_status(subtype);
        }
    }

    /// What is read of all of it.
    pub(super) fn finish(mut self) -> Content {
        self.next_alternative();
        match self {
            Self::Alternatives { best: content, .. } | Self::Message(content) => content,
            // What calls itself a report and reports nothing is shown like any other message. So is one by a person, unless it
            // says no more than a receipt does.
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

/// The second part of a report: of delivery (RFC 3464), of reading (RFC 8098), of abuse (RFC 5965), of tracking (RFC 3886).
fn is_status(subtype: &str) -> bool {
    let subtype = subtype.strip_prefix("global-").unwrap_or(subtype);
    matches!(subtype, "delivery-status" | "disposition-notification" | "feedback-report" | "tracking-status")
}
