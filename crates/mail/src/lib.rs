// SPDX-License-Identifier: GPL-3.0-or-later
//! The content of a raw message: decoded text, visible text of HTML, attachments.
//!
//! [`RawMessage`] collects the needed bytes of a message; [`RawMessage::visit`] passes its content, part by part, to a [`Visitor`]. Nothing
//! here fails: malformed or excessive content is still passed on, as bytes. [`mbox`] finds the messages of a file.
//!
//! Pure: no file, no socket, no clock. It knows no other crate of bulkmark.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod atoms;
mod authres;
mod bidi;
mod charset;
mod cms;
mod data;
mod decode;
mod elements;
mod entity;
mod flow;
mod html;
mod legacy;
mod lexer;
mod look;
pub mod mbox;
mod meta;
mod mime;
mod names;
mod part;
mod piece;
mod providers;
mod raw;
mod received;
mod reference;
mod stored;
mod structured;
mod style;
mod transfer;

pub use authres::{AuthenticationResults, MethodResult};
pub use bidi::in_reading_order;
pub use data::{contained, data, is_data};
pub use decode::{Correspondents, Fields, header_fields, subject};
pub use html::pieces;
pub use mime::{MAX_DEPTH, MAX_PARTS, Visitor};
pub use part::{File, Text};
pub use piece::Piece;
pub use providers::is_of_provider;
pub use raw::{MAX_BODY, MAX_HEADERS, RawMessage};
pub use received::Received;
pub use stored::{Stored, values};
pub use style::Work;
