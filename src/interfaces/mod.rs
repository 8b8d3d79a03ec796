// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces beside the milter, by which other programs ask the same daemon about a message.
//!
//! Each implements its protocol and makes a [`Message`](crate::judging::Message) of the request, which is judged like the milter's. `http`
//! takes a message and answers with JSON; `dccifd` implements the protocol of DCC's interface daemon for its existing clients; `razor`
//! answers Razor's clients, which send signatures instead of messages; `pyzor` replaces `pyzord` for Pyzor's clients, and counts their
//! digests. `head` finds the end of a message's header, `settings` is `[interfaces]` of the configuration. Interfaces are closed by default.

mod access;
pub mod dccifd;
mod envelope;
mod head;
mod http;
mod open;
pub mod pyzor;
pub mod razor;
mod settings;

pub use envelope::{Asked, asked};
pub use head::Head;
pub use open::{InterfaceError, OpenInterfaces};
pub use settings::{
    Common, CountUnit, DccifdSettings, HttpSettings, IDLE_TIMEOUT, MAX_CONNECTIONS, Many, PyzorSettings,
    RazorSettings, Settings,
};
