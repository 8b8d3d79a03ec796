// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks other servers about bulk that a white list may want: name servers, and servers of tables.
//!
//! `verifier` verifies DKIM, SPF and DMARC with `authenticate = "self"`. [`Evidence`] is taken while the message is in memory: its raw
//! header, and the hash of its body. Once the message is known to be bulk, a verifier compares both with DNS (`resolver`), within a bounded
//! time. `table` queries the remote tables of white lists.

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
