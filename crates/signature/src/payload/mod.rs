// SPDX-License-Identifier: GPL-3.0-or-later
//! The payload signatures: of what stays when a program writes the text of each copy anew, since the sender wants it of the reader.
//! It is the wallet or account to pay to, the number to call, the address to answer to, and the page behind the links.
//! docs/signatures.md says what they are made of, and why.

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

pub(crate) use found::Found;
#[cfg(test)]
pub(crate) use found::Payload;
pub(crate) use page::Page;
pub(crate) use scan::Scanner;
