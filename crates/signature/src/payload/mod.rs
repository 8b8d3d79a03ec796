// SPDX-License-Identifier: GPL-3.0-or-later
//! The payload signature: of the content that survives when a program rewrites the text of each copy, since the sender wants the reader to
//! use it. It is the wallet or account to pay to, the number to call, the address to answer to, or the page behind the links.
//! docs/signatures.md describes it and gives reasons.

mod address;
mod base58;
mod digits;
mod fold;
mod found;
mod host;
mod iban;
mod link;
mod page;
mod scan;
mod shape;
mod telephone;
#[cfg(test)]
mod tests;
mod wallet;

pub(crate) use found::{Found, Payload};
pub(crate) use page::Page;
pub(crate) use scan::Scanner;
