// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message is held against white lists by.

use crate::signature::Signature;
use std::net::IpAddr;

/// What is known of a message besides its count. Addresses stand without angle brackets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// The client's name, if the MTA verified one.
    pub client_host: Option<&'a str>,
    /// The envelope sender, if it is known; empty for the null sender.
    pub sender: Option<&'a str>,
    /// The envelope recipients.
    pub recipients: &'a [String],
    /// The addresses of the From field.
    pub from: &'a [String],
    /// The list id.
    pub list_id: Option<&'a str>,
    /// The `body` signature.
    pub signature: Option<Signature>,
}
