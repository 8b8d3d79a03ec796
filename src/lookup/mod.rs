// SPDX-License-Identifier: GPL-3.0-or-later
//! Verifies DKIM, SPF and DMARC, where a white list asks for it and nobody else is trusted to: `authenticate = "self"`.
//!
//! [`Evidence`] is taken of a message while it is at hand: its header as it came, and what its body hashes to. Once it is known
//! that the message is bulk, a verifier holds that against what DNS says, within a bounded time.

mod evidence;
mod resolver;
mod result;
mod table;
mod verifier;

pub use evidence::Evidence;
pub use resolver::{Resolver, ResolverError};
pub use result::{Found, Unverified, Verified};
pub use table::Tables;
pub use verifier::{Case, Verifiers};
