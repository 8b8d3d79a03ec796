// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces beside the milter: by which other programs ask the same daemon about a message.
//!
//! Each speaks its protocol, and makes a [`Message`](crate::judging::Message) of what it is told, which is judged as the milter's
//! are. `http` takes a message and answers with JSON; `dccifd` speaks the protocol of DCC's interface daemon, for whose clients are
//! there; `razor` answers Razor's clients, who tell signatures instead of messages; `pyzor` is what `pyzord` is for the clients of
//! Pyzor, and counts their digests. `head` finds the end of a message's header, `settings` is `[interfaces]` of the configuration. None is
//! open unless it is configured.

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
    DccifdSettings, HttpSettings, Many, PyzorSettings, RazorSettings, Registers, Settings, Tally,
};
